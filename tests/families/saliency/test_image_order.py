"""Maps that were exchanged at random among images are named; honest maps are not, however poor."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from segjudge import score
from tests.builders import png, written

NAMES = [f"im{number:02d}" for number in range(12)]
MOVED = [NAMES[number] for number in (4, 7, 0, 9, 1, 11, 2, 10, 5, 8, 6, 3)]


def draw_object(number: int) -> Any:
    """Return a mask of an ellipse anywhere in the image."""
    draw = np.random.default_rng(number)
    (y, x), (height, width) = draw.uniform(0.25, 0.75, 2), draw.uniform(0.08, 0.3, 2)
    rows, columns = np.ogrid[0:1:60j, 0:1:80j]
    return ((rows - y) / height) ** 2 + ((columns - x) / width) ** 2 < 1


SCENES = {name: draw_object(number) for number, name in enumerate(NAMES)}


def find_suspicions(maps: dict[str, Any], folder: Path) -> list[str]:
    truth = written(folder / "truth", {f"{name}.png": png(mask * np.uint8(255)) for name, mask in SCENES.items()})
    sent = written(folder / "sent", {f"{name}.png": png(mask * np.uint8(255)) for name, mask in maps.items()})
    return [line for line in score(sent, truth, "sod").warnings if "exchanged among" in line]


def test_maps_exchanged_at_random_are_named(tmp_path: Path) -> None:
    (line,) = find_suspicions({name: SCENES[place] for name, place in zip(NAMES, MOVED, strict=True)}, tmp_path)
    assert line.startswith("val: maps look exchanged among images, those of im00 fit im04, those of ")
    assert line.endswith(". Check which image each map belongs to")


@pytest.mark.parametrize(
    "change",
    [
        lambda mask, _: mask,
        lambda mask, draw: mask ^ (draw.random(mask.shape) < 0.3),
        lambda mask, draw: np.roll(mask, draw.integers(5, 40, 2), (0, 1)),
        lambda _, draw: draw_object(int(draw.integers(100, 10_000))),
        lambda mask, _: np.ones_like(mask) * (np.arange(80) > 40),
    ],
    ids=["right", "noise", "moved", "any object", "the same half"],
)
def test_poor_maps_of_their_own_images_are_not_suspected(change: Any, tmp_path: Path) -> None:
    draw = np.random.default_rng(5)
    assert find_suspicions({name: change(mask, draw) for name, mask in SCENES.items()}, tmp_path) == []
