"""Maps whose bright values wrap round at 256 are named; soft, noisy and sharp ones are not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from segjudge import score
from segjudge.evaluation_script.families.saliency.engine import _unwrap
from segjudge.evaluation_script.masks.stack import Array
from tests.builders import png

IMAGES = 6
#: How far the border of an object fades, in pixels.
SOFT, HARD = 14.0, 0.5


def draw(seed: int, fade: float) -> Array:
    """Return how salient each pixel is, up to 1 within a disk."""
    random = np.random.default_rng(seed)
    rows, columns = np.mgrid[:90, :120]
    y, x = random.uniform((35, 35), (55, 85))
    distances = np.sqrt((rows - y) ** 2 + (columns - x) ** 2)
    values: Array = np.clip(0.5 + (20 - distances) / fade, 0, 1)
    return values


def list_lines(maps: list[Array], folder: Path) -> list[str]:
    for name, images in (("truth", [draw(seed, HARD) > 0.5 for seed in range(IMAGES)]), ("sent", maps)):
        (folder / name).mkdir()
        for seed, image in enumerate(images):
            (folder / name / f"{seed}.png").write_bytes(png(image * np.uint8(255) if name == "truth" else image))
    return [line for line in score(folder / "sent", folder / "truth", "sod").warnings if "wrapped round" in line]


def test_maps_times_256_are_named(tmp_path: Path) -> None:
    maps = [(draw(seed, SOFT) * 256).astype(int).astype(np.uint8) for seed in range(IMAGES)]
    (line,) = list_lines(maps, tmp_path)
    assert (
        "bright values of maps look wrapped round to 0, as after * 256 and a cast to 8 bits: corrected, S would be 0.9"
        in line
    )
    assert line.endswith("Multiply by 255, and clip to 0 and 255 before the cast")


@pytest.mark.parametrize("noise", [0.0, 0.1, 0.5])
@pytest.mark.parametrize("fade", [SOFT, HARD])
def test_other_maps_are_not(fade: float, noise: float, tmp_path: Path) -> None:
    random = np.random.default_rng(3)
    maps = [
        (np.clip(np.roll(draw(seed, fade), 9 * seed, 1) + random.normal(0, noise, (90, 120)), 0, 1) * 255).astype(
            np.uint8
        )
        for seed in range(IMAGES)
    ]
    assert list_lines(maps, tmp_path) == []


def test_each_pixel_differs_by_the_shorter_way_round() -> None:
    wrapped = np.array([[0, 100, 200, 44, 250, 150, 50], [250, 10, 250, 140, 30, 0, 0]], np.uint8)
    assert _unwrap(wrapped).tolist() == [[0, 100, 200, 255, 250, 150, 50], [250, 255, 250, 140, 30, 0, 0]]
