"""Maps that were exchanged at random among images are named; honest maps are not, however poor."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from segjudge import score
from segjudge.evaluation_script.families.base.image_order import judge_image_order
from tests.builders import png, written

DRAW = np.random.default_rng(2)


def make_scene(number: int) -> Any:
    """Return labels of an image with areas of four of 20 classes."""
    draw = np.random.default_rng(number)
    rows, columns = np.sort(draw.integers(4, 36, 2)), draw.integers(4, 44)
    labels = np.full((40, 48), draw.integers(1, 21))
    labels[rows[0] :, :columns], labels[rows[1] :], labels[: rows[0], columns:] = draw.integers(1, 21, 3)
    return labels.astype(np.uint8)


SCENES = {f"im{number:02d}.png": make_scene(number) for number in range(12)}


def find_suspicions(change: Any, folder: Path) -> list[str]:
    truth = written(folder / "truth", {name: png(labels) for name, labels in SCENES.items()})
    sent = written(folder / "sent", {name: png(change(name)) for name in SCENES})
    return [line for line in score(sent, truth, "ade20k").warnings if "exchanged among" in line]


def test_maps_exchanged_at_random_are_named(tmp_path: Path) -> None:
    places = dict(zip(SCENES, np.roll(np.array(list(SCENES)), 5)[[3, 0, 1, 2, 5, 6, 4, 7, 9, 11, 8, 10]].tolist()))
    (line,) = find_suspicions(lambda name: SCENES[places[name]], tmp_path)
    assert line.startswith("val: maps look exchanged among images, those of ")
    assert f"those of im00 fit {places['im00.png'][:4]}, " in line


@pytest.mark.parametrize(
    "change",
    [
        lambda labels: labels,
        lambda labels: np.where(DRAW.random(labels.shape) < 0.6, DRAW.integers(1, 21, labels.shape), labels),
        lambda labels: np.where(labels % 3 == 0, 5, labels),
        lambda labels: np.full_like(labels, 1 + labels[0, 0] % 20),
        lambda labels: np.roll(labels, 17, 0),
    ],
    ids=["right", "noise", "merged", "one class each", "moved"],
)
def test_poor_maps_of_their_own_images_are_not_suspected(change: Any, tmp_path: Path) -> None:
    assert find_suspicions(lambda name: change(SCENES[name]).astype(np.uint8), tmp_path) == []


@pytest.mark.parametrize("confusion", [0, 0.3, 0.6])
def test_sizes_of_many_images_are_compared_evenly(confusion: float) -> None:
    names, draw = [str(number) for number in range(200)], np.random.default_rng(1)
    true = draw.dirichlet(np.full(30, 0.2), 200)
    mixed = (1 - confusion) * np.eye(30) + confusion * draw.dirichlet(np.full(30, 0.2), 30)
    own, order = (1e4 * true @ mixed).astype(np.int64), draw.permutation(200)
    true = (1e4 * true).astype(np.int64)
    assert judge_image_order(names, true, own) == []
    assert len(judge_image_order(names, true, own[order])) == (confusion == 0)
    assert judge_image_order(names[:7], true[:7], own[:7][::-1]) == []
