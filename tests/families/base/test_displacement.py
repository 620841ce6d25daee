"""Maps that are all moved by the same pixels are named beside their score, those of inexact methods are not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from segjudge import score
from segjudge.evaluation_script.families.base.displacement import MOVED_BY, judge_shifts
from segjudge.evaluation_script.families.base.readings import read_rearranged
from segjudge.evaluation_script.masks.restoration import find_shift, undo_shift
from tests.families.base.test_other_readings import CELLS, IMAGE_MAPS, draw, save
from tests.report.known_scenes import make_world
from tests.report.test_known_faults import BENCHMARKS

SLIP = "look moved by about this many pixels: "


def move(image: Any, down: int, across: int) -> Any:
    """Return a map moved by so many pixels, with 0 for what lies outside."""
    moved = np.zeros_like(image)
    height, width = image.shape
    moved[max(down, 0) : height + min(down, 0), max(across, 0) : width + min(across, 0)] = image[
        max(-down, 0) : height - max(down, 0), max(-across, 0) : width - max(across, 0)
    ]
    return moved


@pytest.mark.parametrize("steps", [(0, 0), (0, 3), (-4, 0), (5, -2)])
def test_borders_show_the_steps(steps: tuple[int, int]) -> None:
    for seed in range(5):
        image = draw(seed)
        moved = move(image, *steps)
        assert find_shift(image, moved) == steps
        inside = (slice(5, -5), slice(5, -5))
        assert (undo_shift(moved, steps)[inside] == image[inside]).all()


def test_maps_without_borders_are_not_moved() -> None:
    assert find_shift(draw(1), np.zeros_like(draw(1))) == (0, 0)


@pytest.mark.parametrize("protocol", [IMAGE_MAPS, CELLS])
def test_moved_maps_are_named(protocol: str, tmp_path: Path) -> None:
    images = [draw(number) for number in range(18)]
    (tmp_path / "truth").mkdir()
    for name, data in save(protocol, images).items():
        (tmp_path / "truth" / name).write_bytes(data)
    random = np.random.default_rng(2)
    for kind in ("moved", "right", "inexact"):
        steps = {"moved": (3, -2), "right": (0, 0)}
        sent = [move(image, *steps.get(kind, random.integers(-4, 5, 2))) for image in images]
        folder = tmp_path / kind
        folder.mkdir()
        for name, data in save(protocol, sent).items():
            (folder / name).write_bytes(data)
        lines = [line for line in score(folder, tmp_path / "truth", protocol).warnings if SLIP in line]
        assert len(lines) == (kind == "moved"), kind
        assert all(f"{SLIP}-2 along x, 3 along y: corrected, " in line for line in lines)
        assert [line for line in score(folder, tmp_path / "truth", protocol, jobs=2).warnings if SLIP in line] == lines


@pytest.mark.parametrize("steps", [(0, 0), (5, 4)])
def test_moved_masks_of_sequences_are_named(steps: tuple[int, int], tmp_path: Path) -> None:
    benchmark, (down, across) = BENCHMARKS["davis2017"], steps
    world = make_world(np.random.default_rng(4), 9, benchmark.frames, benchmark.kinds)
    predicted = [video.copy() for video in world]
    for video in predicted:
        video.labels = np.stack([move(frame, down, across) for frame in video.labels])
    (tmp_path / "truth").mkdir()
    truth = benchmark.publish(world, tmp_path / "truth")
    (tmp_path / "results.zip").write_bytes(benchmark.send(predicted))
    lines = [line for line in score(tmp_path / "results.zip", truth, "davis2017").warnings if SLIP in line]
    assert len(lines) == any(steps)
    assert all(f"masks {SLIP}{across} along x, {down} along y: corrected, the IoU over all" in line for line in lines)


@pytest.mark.parametrize(
    ("steps", "is_named"),
    [
        ([(3, 3)] * 3, True),
        ([(3, 3)] * 2, False),
        ([(3, 3), (4, 3), (3, 2)], False),  # each by chance
        ([(3, 3), (4, 3), (3, 2), (3, 3), (2, 4)], True),
        ([(1, 0), (0, 0), (-1, 0), (0, 1), (0, 0)], False),
        ([(3, 3)] * 3 + [None] * 2, False),
        ([(3, 3)] * 6 + [None] * 2, True),
    ],
)
def test_units_must_agree(steps: list[tuple[int, int] | None], is_named: bool) -> None:
    units = [{"moved": (0.5, 0.9), **({MOVED_BY: tuple(map(float, step))} if step else {})} for step in steps]
    lines = judge_shifts(units, 24, read_rearranged("image", "maps"), "mIoU")  # type: ignore[arg-type]
    assert bool(lines) is is_named
