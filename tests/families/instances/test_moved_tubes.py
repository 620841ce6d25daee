"""Masks of videos that are all moved by the same pixels are named, with specks too; others are not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from segjudge import score
from segjudge.evaluation_script.families.instances import moved_tubes, orders
from segjudge.evaluation_script.masks.run_lengths import compress
from segjudge.masks.run_lengths import runs_of_mask
from tests.families.instances.test_orders import HEIGHT, WIDTH, Tube, write

SLIP = "masks look moved by about this many pixels: "


def move(down: int, across: int) -> Callable[[Tube], Tube]:
    return lambda tube: [np.roll(mask, (down, across), (0, 1)) for mask in tube]


def speckle(tube: Tube) -> Tube:
    generator = np.random.default_rng(1)
    return [np.where(generator.random(mask.shape) < 0.02, 1 - mask, mask) for mask in tube]


def scatter(tube: Tube) -> Tube:
    """Move an object as a weak method does, by other pixels than the next one."""
    steps = np.random.default_rng(int(tube[0].sum())).integers(-3, 4, 2)
    return [np.roll(mask, steps, (0, 1)) for mask in tube]


def list_moved(folder: Path, change: Callable[[Tube], Tube]) -> list[str]:
    truth, results = write(folder, change)
    lines = score(results, truth, "ovis").warnings
    assert score(results, truth, "ovis", jobs=2).warnings == lines
    return [line.partition(": ")[2] for line in lines if SLIP in line]


@pytest.mark.parametrize(
    ("steps", "described"),
    [((0, 1), "1 along x"), ((5, 0), "5 along y"), ((3, -4), "-4 along x, 3 along y")],
)
@pytest.mark.parametrize("noise", [None, speckle])
def test_moved_videos_are_named(steps: Any, described: str, noise: Any, tmp_path: Path) -> None:
    (line,) = list_moved(tmp_path, lambda tube: (noise or list)(move(*steps)(tube)))
    assert line.startswith(f"{SLIP}{described}: corrected, the IoU over all pixels would be ")
    assert line.endswith(" of 6 videos). Write the pixels of the whole image")


@pytest.mark.parametrize("share", [0.001, 0.4], ids=["read", "painted"])
def test_a_frame_is_drawn_as_its_runs_say(share: float) -> None:
    height, width, frames = 91, 123, 13  # frames begin inside bytes
    pixels = np.random.default_rng(2).random((frames, width, height)) < share
    text = compress(runs_of_mask(pixels.reshape(1, -1)))
    assert orders.is_painted(text, pixels.size) == (share == 0.4)
    for frame in range(frames):
        assert (moved_tubes._draw(text, (height, width * height, frames), frame) == pixels[frame]).all()


@pytest.mark.parametrize(
    "change",
    [list, speckle, scatter, move(HEIGHT // 2, WIDTH // 2), lambda tube: [np.zeros_like(mask) for mask in tube]],
    ids=["right", "specks", "scattered", "elsewhere", "empty"],
)
def test_poor_videos_are_not_moved(change: Callable[[Tube], Tube], tmp_path: Path) -> None:
    assert list_moved(tmp_path, change) == []
