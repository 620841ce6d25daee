"""Mirrored, rotated and padded maps and maps of other images are named by the score that they would have."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from segjudge import score
from segjudge.evaluation_script.families.base import readings
from segjudge.evaluation_script.masks import restoration
from segjudge.evaluation_script.masks.overlaps import LabelMap
from tests.builders import png, zipped
from tests.families.choices import CELLS, IMAGE_MAPS, IMAGE_MAPS_FROM_0, SALIENCY

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
SHADES = {IMAGE_MAPS: [1, 2, 3, 4], IMAGE_MAPS_FROM_0: [0, 1, 2, 3], CELLS: [0, 1, 2, 3], SALIENCY: [0, 255, 255, 255]}
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


def pad(image: Any, top: int, left: int) -> Any:
    """Return an image that is shrunk to lie within bars."""
    height, width = image.shape
    rows = np.arange(height - 2 * top) * height // (height - 2 * top)
    columns = np.arange(width - 2 * left) * width // (width - 2 * left)
    return np.pad(image[rows][:, columns], ((top, top), (left, left)), constant_values=9)


PADDED = "look as if their images had been padded with bars"


@pytest.mark.parametrize(("top", "left"), [(10, 0), (0, 12), (9, 9)])
def test_bars_are_named_where_every_pixel_has_a_label(top: int, left: int, tmp_path: Path) -> None:
    shades = np.append(SHADES[IMAGE_MAPS], [0] * 6).astype(np.uint8)
    images = [draw(number) for number in range(IMAGES)]
    (tmp_path / "truth").mkdir()
    for name, data in save(IMAGE_MAPS, images).items():
        (tmp_path / "truth" / name).write_bytes(data)
    results = {f"{number:03d}.png": png(shades[pad(image, top, left)]) for number, image in enumerate(images)}
    (tmp_path / "results.zip").write_bytes(zipped(results))
    lines = score(tmp_path / "results.zip", tmp_path / "truth", IMAGE_MAPS).warnings
    (named,) = [line for line in lines if PADDED in line]
    assert float(named.partition("corrected, mIoU would be ")[2][:4]) > 0.75
    assert "Cut off the bars before you resize" in named


def test_the_image_is_cut_from_its_square() -> None:
    square = np.array([[0, 0, 0, 0], [1, 1, 2, 2], [3, 3, 4, 4], [0, 0, 0, 0]], np.uint8)
    wide, tall = square, square.T
    squeezed = np.repeat(wide, 2, axis=1)
    assert restoration.cut_square(squeezed, centered=True).tolist() == np.repeat(squeezed[1:3], 2, axis=0).tolist()
    assert restoration.cut_square(squeezed, centered=False).tolist() == np.repeat(squeezed[:2], 2, axis=0).tolist()
    assert restoration.cut_square(tall, centered=True).tolist() == tall.tolist()


def test_bars_on_one_side_are_content() -> None:
    image = np.array([[0, 0, 0], [0, 0, 0], [0, 1, 1], [0, 1, 1]], np.uint8)
    assert readings._cut_bars(image) is image
    assert readings._cut_bars(np.zeros((3, 3), np.uint8)).any() == 0
    barred = np.array([[0, 0], [1, 2], [3, 4], [0, 0]], np.uint8)
    assert readings._cut_bars(barred).tolist() == [[1, 2], [1, 2], [3, 4], [3, 4]]


def blend(image: Any) -> Any:
    """Return the mean of 3 x 3 neighbours, as interpolation gives along borders."""
    shifts = [np.roll(image.astype(float), (down, across), (0, 1)) for down in (-1, 0, 1) for across in (-1, 0, 1)]
    return np.round(np.mean(shifts, axis=0)).astype(np.uint8)


def speckle(image: Any) -> Any:
    random = np.random.default_rng(int(image.sum()))
    return np.where(random.random(image.shape) < 0.1, random.permuted(image, axis=1), image)


def warn(folder: Path, spoil: Callable[[Any], Any], scale: int) -> Sequence[str]:
    """Return the warnings about spoilt label maps, whose pixels are squares of this side."""
    shades = np.array([1, 140, 60, 100], np.uint8)
    images = [np.kron(shades[draw(number)], np.ones((scale, scale), np.uint8)) for number in range(IMAGES)]
    (folder / "truth").mkdir()
    for number, image in enumerate(images):
        (folder / "truth" / f"{number:03d}.png").write_bytes(png(image))
    results = {f"{number:03d}.png": png(spoil(image)) for number, image in enumerate(images)}
    (folder / "results.zip").write_bytes(zipped(results))
    return score(folder / "results.zip", folder / "truth", IMAGE_MAPS).warnings


@pytest.mark.parametrize(
    ("spoil", "is_named"),
    [(blend, True), (speckle, False), (lambda image: np.roll(image, 3, axis=1), False), (lambda image: image, False)],
    ids=["blended", "speckled", "moved", "right"],
)
def test_labels_that_blend_along_borders_are_named(spoil: Any, is_named: bool, tmp_path: Path) -> None:
    lines = warn(tmp_path, spoil, 1)
    named = [line for line in lines if "blend along borders, as if resized with interpolation" in line]
    assert len(named) == is_named
    assert all("Resize labels by nearest neighbour" in line for line in named)


def compress(image: Any, quality: int = 75) -> Any:
    stream = io.BytesIO()
    Image.fromarray(image).save(stream, "JPEG", quality=quality)
    return np.array(Image.open(stream))


SPOILT: dict[str, tuple[Any, bool]] = {
    "JPEG": (compress, True),
    "fine JPEG": (lambda image: compress(image, 90), True),
    "speckled": (speckle, False),
    "coarse": (lambda image: image[::8, ::8].repeat(8, 0).repeat(8, 1)[: len(image)], False),
    "moved": (lambda image: np.roll(image, 3, axis=1), False),
    "right": (lambda image: image, False),
}


@pytest.mark.parametrize("kind", SPOILT)
def test_maps_that_were_compressed_with_losses_are_named(kind: str, tmp_path: Path) -> None:
    spoil, is_named = SPOILT[kind]
    lines = warn(tmp_path, spoil, 3)
    named = [line for line in lines if "waver along borders, as after JPEG compression: corrected, mIoU" in line]
    assert len(named) == is_named


def test_numbered_cells_that_were_compressed_are_named(tmp_path: Path) -> None:
    images = {f"{number:03d}_masks.png": np.kron(draw(number) * 7, np.ones((3, 3), np.uint8)) for number in range(3)}
    (tmp_path / "truth").mkdir()
    for name, image in images.items():
        (tmp_path / "truth" / name).write_bytes(png(image))
    for spoil, is_named in ((compress, True), (lambda image: image, False)):
        (tmp_path / "results.zip").write_bytes(zipped({name: png(spoil(image)) for name, image in images.items()}))
        lines = score(tmp_path / "results.zip", tmp_path / "truth", CELLS).warnings
        assert any("as after JPEG compression: corrected, AP50 would be" in line for line in lines) == is_named


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
    assert unseen.are_related()
    maps._truth, maps._prediction = LabelMap(truth), truth * 7 + 5
    assert maps.measure() == 1
    assert maps.measure(np.transpose) == 0
    assert not maps.improve(np.transpose)
    assert not maps.are_unrelated()
    assert maps.are_related()
