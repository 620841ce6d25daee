"""Masks of phrases that are rearranged, or belong to other pairs, are named; those of weak methods are not."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from segjudge import score
from segjudge.evaluation_script.masks.stack import Array
from segjudge.masks.run_lengths import encode_labels
from tests.builders import written

SIZE, PAIRS = (60, 80), 24
#: The objects of each pair.
Objects = list[list[Array]]


def draw(generator: Any) -> Objects:
    """Return one to three rectangles for each pair, and none for every fourth one."""

    def draw_one() -> Array:
        mask = np.zeros(SIZE, np.uint8)
        row, column, height, width = generator.integers((0, 0, 12, 12), (40, 60, 20, 20))
        mask[row : row + height, column : column + width] = 1
        return mask

    return [[draw_one() for _ in range(generator.integers(1, 4) if pair % 4 else 0)] for pair in range(PAIRS)]


def list_warnings(objects: Objects, predicted: Objects, folder: Path) -> list[str]:
    records = [
        {"image_id": pair, "category_id": 1, "segmentation": _encode(mask), "score": 0.9}
        for pair, masks in enumerate(predicted, 1) for mask in masks
    ]  # fmt: skip
    images = [
        {"id": pair, "file_name": "", "text_input": "", "height": SIZE[0], "width": SIZE[1],
         "is_instance_exhaustive": 1, "is_pixel_exhaustive": 1}
        for pair in range(1, PAIRS + 1)
    ]  # fmt: skip
    annotations = [
        {"id": number, "image_id": pair, "category_id": 1, "iscrowd": 0, "segmentation": _encode(mask)}
        for number, (pair, mask) in enumerate([(pair, mask) for pair, masks in enumerate(objects, 1) for mask in masks])
    ]  # fmt: skip
    document = {"images": images, "annotations": annotations, "categories": [{"id": 1, "name": ""}]}
    folder.joinpath("truth").mkdir(exist_ok=True)
    truth = written(folder / "truth", {f"gold_demo_merged_{name}_release_test.json": document for name in "abc"})
    (folder / "demo.json").write_text(json.dumps(records))
    warnings: list[str] = score(folder / "demo.json", truth, "sa-co-gold").warnings
    return warnings


def _encode(mask: Array) -> dict[str, Any]:
    return {"size": list(mask.shape), "counts": encode_labels(mask)[1]}


def change(place: Callable[[Array], Array]) -> Callable[[Objects, Any], Objects]:
    return lambda objects, _: [[np.ascontiguousarray(place(mask)) for mask in masks] for masks in objects]


def halve(mask: Array) -> Array:
    small = np.zeros_like(mask)
    small[: SIZE[0] // 2, : SIZE[1] // 2] = mask[::2, ::2]
    return small


_MOVED = "Check which pair each of them belongs to"
MISTAKES: dict[str, tuple[str, Callable[[Objects, Any], Objects]]] = {
    "mirrored": ("masks look mirrored", change(lambda mask: mask[:, ::-1])),
    "upside down": ("masks look upside down", change(lambda mask: mask[::-1])),
    "rotated": ("masks look rotated by 180 degrees", change(lambda mask: mask[::-1, ::-1])),
    "half": ("masks look half as wide and high, in the upper left corner", change(halve)),
    "moved on": (_MOVED, lambda objects, _: objects[1:] + objects[:1]),
    "at random": (_MOVED, lambda objects, generator: [objects[pair] for pair in generator.permutation(PAIRS)]),
    "right": ("", lambda objects, _: objects),
    "a pixel off": ("", change(lambda mask: np.roll(mask, 1, (0, 1)))),
    "moved": ("masks look moved by 3 along x and 2 along y", change(lambda mask: np.roll(mask, (2, 3), (0, 1)))),
    "half of them wrong": (
        "",
        lambda objects, generator: [
            masks if generator.random() < 0.5 else objects[generator.integers(PAIRS)] for masks in objects
        ],
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_misplaced_masks_are_named(mistake: str, tmp_path: Path) -> None:
    named, spoil = MISTAKES[mistake]
    generator = np.random.default_rng(8)  # none of the masks of other pairs reaches an IoU of 0.5
    objects = draw(generator)
    predicted = spoil(copy.deepcopy(objects), generator)
    lines = list_warnings(objects, predicted, tmp_path)
    looks = [line for line in lines if " look " in line or _MOVED in line]
    assert [named in line for line in looks] == [True] * bool(named)
