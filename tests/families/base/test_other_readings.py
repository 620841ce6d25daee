"""Mirrored, rotated and padded maps and maps of other images are named by the score that they would have."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from segjudge import score
from segjudge.evaluation_script.families.base import readings
from segjudge.evaluation_script.masks import restoration
from segjudge.evaluation_script.masks.overlaps import LabelMap
from tests.builders import png, zipped
from tests.families.choices import CELLS, IMAGE_MAPS

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
SHADES = {IMAGE_MAPS: [1, 2, 3, 4], CELLS: [0, 1, 2, 3]}
NAMES = {CELLS: "{:03d}_masks.png"}


def save(protocol: str, images: list[Any]) -> dict[str, bytes]:
    shades = np.array(SHADES[protocol], np.uint8)
    name = NAMES.get(protocol, "{:03d}.png")
    return {name.format(number): png(shades[image]) for number, image in enumerate(images)}


CHANGES: dict[str, Any] = {
    "look mirrored, with left and right exchanged": lambda images: [image[:, ::-1] for image in images],
    "look upside down": lambda images: [image[::-1] for image in images],
    "look rotated by 180 degrees": lambda images: [image[::-1, ::-1] for image in images],
    "look reshaped from (width, height) to (height, width)": lambda images: [
        np.ascontiguousarray(image.T).reshape(image.shape) for image in images
    ],
    "looks as if it belonged to the image before its own": lambda images: [images[-1], *images[:-1]],
    "looks as if it belonged to the image after its own": lambda images: [*images[1:], images[0]],
}


@pytest.mark.parametrize("protocol", [CELLS])
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
        assert all(" would be 1.00 instead of 0." in line and "(tried on 9 of 9 images)" in line for line in named)


def test_the_image_is_cut_from_its_square() -> None:
    square = np.array([[0, 0, 0, 0], [1, 1, 2, 2], [3, 3, 4, 4], [0, 0, 0, 0]], np.uint8)
    wide, tall = square, square.T
    squeezed = np.repeat(wide, 2, axis=1)
    assert restoration.cut_square(squeezed, centered=True).tolist() == np.repeat(squeezed[1:3], 2, axis=0).tolist()
    assert restoration.cut_square(squeezed, centered=False).tolist() == np.repeat(squeezed[:2], 2, axis=0).tolist()
    assert restoration.cut_square(tall, centered=True).tolist() == tall.tolist()


def test_labels_of_short_runs_become_the_nearest_others() -> None:
    row = [*[3] * 12, 4, 5, 6, *[9] * 12, 40]
    assert restoration.settle(np.array([row], np.uint8)).tolist() == [[*[3] * 14, 3, *[9] * 12, 9]]
    noise = np.arange(12, dtype=np.uint8).reshape(3, 4)
    assert restoration.settle(noise) is noise


def test_smooth_labels_are_medians_along_rows_and_columns() -> None:
    speck = np.full((5, 6), 4, np.uint8)
    speck[2, 3] = 9
    assert restoration.smooth(speck).tolist() == np.full((5, 6), 4).tolist()
    halves = np.repeat([[1, 1, 1, 7, 7, 7]], 5, axis=0)
    assert restoration.smooth(halves).tolist() == halves.tolist()


def test_odd_values_of_borders_lie_in_short_runs() -> None:
    image = np.repeat([[1, 1, 1, 9, 5, 5, 5, 9, 9, 9, 9, 9]], 60, axis=0)
    assert restoration.are_short(image[:, :7], image[:, :7] == 9)
    assert not restoration.are_short(image[:9, :7], image[:9, :7] == 9)
    assert not restoration.are_short(image, image == 9)


def test_blended_runs_have_the_nearer_label() -> None:
    image = np.array([[9, 9, 9, 7, 5, 2, 2, 2], [9, 9, 4, 4, 9, 9, 9, 9]], np.uint8)
    assert restoration.sharpen(image).tolist() == [[9, 9, 9, 9, 2, 2, 2, 2], [9, 9, 4, 4, 9, 9, 9, 9]]
    flat = np.full((3, 4), 5, np.uint8)
    assert restoration.sharpen(flat).tolist() == flat.tolist()


def test_maps_that_are_no_label_images_are_neither_blended_nor_compressed() -> None:
    maps, truth, picture = readings.FirstMaps(), LabelMap(np.eye(4, dtype=int)), np.zeros((4, 4, 3), int)
    for maps._truth, maps._prediction in ((None, None), (truth, None), (None, picture[..., 0]), (truth, picture)):
        assert (maps.are_blended(), maps.are_compressed()) == (False, False)


def test_maps_agree_by_their_segments_whatever_their_labels() -> None:
    truth = np.repeat([[1, 2, 3, 4]], 4, axis=0)
    unseen, maps = readings.FirstMaps(), readings.FirstMaps()
    assert unseen.measure() is None
    assert unseen.are_unrelated()
    maps._truth, maps._prediction = LabelMap(truth), truth * 7 + 5
    assert maps.measure() == 1
    assert maps.measure(np.transpose) == 0
    assert not maps.improve(np.transpose)
    assert not maps.are_unrelated()
