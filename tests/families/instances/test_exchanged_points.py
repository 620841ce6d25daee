"""The verdict of keypoints names exchanged sides, even where no detection matches anybody."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import segjudge
from segjudge.evaluation_script.masks.stack import Array
from tests.report.test_known_faults import find_cause

_SIDED = ("eye", "ear", "shoulder", "elbow", "wrist", "hip", "knee", "ankle")
_NAMES = ["nose", *(f"{side}_{part}" for part in _SIDED for side in ("left", "right"))]
_OTHERS = [0, *(point + 1 if point % 2 else point - 1 for point in range(1, len(_NAMES)))]
_WIDTH, _HEIGHT, _IMAGES = 400, 200, 4


def _make_people(random: np.random.Generator) -> list[Array]:
    """Return the points of a person of each image, on the left of it, the sides far from each other."""
    people = []
    for _ in range(_IMAGES):
        points = np.empty((len(_NAMES), 2))
        points[:, 1] = random.integers(20, 180, len(_NAMES))
        points[0, 0] = 70
        points[1::2, 0], points[2::2, 0] = random.integers(20, 50, 8), random.integers(90, 120, 8)
        people.append(points)
    return people


def _score(people: list[Array], predicted: list[Array], folder: Path) -> str:
    def record(image: int, points: Array) -> dict[str, object]:
        return {"image_id": image, "category_id": 1, "keypoints": np.insert(points, 2, 2, axis=1).reshape(-1).tolist()}

    images = [{"id": image, "width": _WIDTH, "height": _HEIGHT} for image in range(_IMAGES + 1)]  # the first is empty
    box = {"bbox": [20, 20, 100, 160], "area": 8000, "iscrowd": 0, "num_keypoints": len(_NAMES)}
    annotations = [{"id": image, **record(image, points), **box} for image, points in enumerate(people, 1)]
    categories = [{"id": 1, "name": "person", "keypoints": _NAMES}]
    document = {"images": images, "annotations": annotations, "categories": categories}
    (folder / "truth.json").write_text(json.dumps(document))
    records = [{**record(image, points), "score": 0.9} for image, points in enumerate(predicted, 1)]
    (folder / "results.json").write_text(json.dumps(records))
    return find_cause(segjudge.score(folder / "results.json", folder / "truth.json", "coco-keypoints"))


@pytest.mark.parametrize(
    ("spoil", "cause"),
    [
        (lambda points: points[_OTHERS],
         "Left_eye and right_eye, and left_ear and right_ear, and 6 more pairs, are exchanged in all 4 images."),
        (lambda points: [_WIDTH - 1, 0] + points * [-1, 1], "Left and right are exchanged in all 4 images."),
        (lambda points: [_WIDTH - 1, 0] + points[_OTHERS] * [-1, 1], "Left and right are exchanged in all 4 images."),
        (lambda points: points, ""),
    ],
    ids=["names", "pictures", "both", "right"],
)  # fmt: skip
def test_exchanged_sides_are_named(spoil: Callable[[Array], Array], cause: str, tmp_path: Path) -> None:
    people = _make_people(np.random.default_rng(23))
    assert _score(people, [spoil(points) for points in people], tmp_path) == cause
