"""Mirrored maps and maps of other images are named by the score that they would have."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from segjudge import score
from tests.builders import png, zipped

IMAGES = 9


def draw(number: int) -> Any:
    """Return an image with three disks at places of its own."""
    random, image = np.random.default_rng(number), np.zeros((60, 80), np.uint8)
    rows, columns = np.mgrid[:60, :80]
    for label in (1, 2, 3):
        y, x = random.integers((8, 8), (52, 72))
        image[(rows - y) ** 2 + (columns - x) ** 2 < 64] = label
    return image


#: The shades that labels have in each benchmark.
SHADES = {"ade20k": [1, 2, 3, 4], "bdd100k": [0, 1, 2, 3], "cellpose-ap": [0, 1, 2, 3], "sod": [0, 255, 255, 255]}
NAMES = {"cellpose-ap": "{:03d}_masks.png"}


def save(protocol: str, images: list[Any]) -> dict[str, bytes]:
    shades = np.array(SHADES[protocol], np.uint8)
    name = NAMES.get(protocol, "{:03d}.png")
    return {name.format(number): png(shades[image]) for number, image in enumerate(images)}


CHANGES: dict[str, Any] = {
    "look mirrored, with left and right exchanged": lambda images: [image[:, ::-1] for image in images],
    "look upside down": lambda images: [image[::-1] for image in images],
    "looks as if it belonged to the image before its own": lambda images: [images[-1], *images[:-1]],
    "looks as if it belonged to the image after its own": lambda images: [*images[1:], images[0]],
}


@pytest.mark.parametrize("protocol", SHADES)
@pytest.mark.parametrize("slip", CHANGES)
def test_the_reading_that_fits_is_named(slip: str, protocol: str, tmp_path: Path) -> None:
    images = [draw(number) for number in range(IMAGES)]
    (tmp_path / "truth").mkdir()
    for name, data in save(protocol, images).items():
        (tmp_path / "truth" / name).write_bytes(data)
    for changed, is_named in ((CHANGES[slip](images), True), (images, False)):
        (tmp_path / "results.zip").write_bytes(zipped(save(protocol, changed)))
        lines = score(tmp_path / "results.zip", tmp_path / "truth", protocol).warnings
        named = [line for line in lines if slip in line]
        assert len(named) == is_named
        assert all(" would be 1.00 instead of 0." in line and "(tried on 3 of 9 images)" in line for line in named)
