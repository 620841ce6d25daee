"""Maps that are all moved by the same pixels are named beside their score, those of inexact methods are not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from segjudge import score
from segjudge.evaluation_script.families import PROTOCOLS
from segjudge.evaluation_script.families.base.displacement import MOVED_BY, judge_shifts
from segjudge.evaluation_script.families.base.readings import read_rearranged
from segjudge.evaluation_script.masks.restoration import find_shift, undo_shift
from tests.families.base.test_other_readings import CELLS, draw, save
from tests.report.known_scenes import Video, make_world
from tests.report.test_known_faults import BENCHMARKS, score_worlds

#: Protocols whose masks are run lengths.
WITH_MASKS = [name for name in BENCHMARKS if PROTOCOLS[name].family in {"phrases", "referring", "tracking"}]
SLIP = "look moved by "


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


@pytest.mark.parametrize("protocol", [CELLS])
def test_moved_maps_are_named(protocol: str, tmp_path: Path) -> None:
    images = [draw(number) for number in range(18)]
    (tmp_path / "truth").mkdir()
    for name, data in save(protocol, images).items():
        (tmp_path / "truth" / name).write_bytes(data)
    random = np.random.default_rng(2)
    for kind in ("moved", "right", "inexact"):
        steps = {"moved": (6, -5), "right": (0, 0)}
        sent = [move(image, *steps.get(kind, random.integers(-4, 5, 2))) for image in images]
        folder = tmp_path / kind
        folder.mkdir()
        for name, data in save(protocol, sent).items():
            (folder / name).write_bytes(data)
        lines = [line for line in score(folder, tmp_path / "truth", protocol).warnings if SLIP in line]
        assert len(lines) == (kind == "moved"), kind
        assert all(f"{SLIP}-5 along x and 6 along y (in pixels): corrected, " in line for line in lines)
        assert [line for line in score(folder, tmp_path / "truth", protocol, jobs=2).warnings if SLIP in line] == lines


def move_all(video: Video, kind: str, random: np.random.Generator) -> None:
    """Move the objects of a video alike, each object in its own way, or none."""
    for index, labels in enumerate(video.labels):
        moved = move(labels, 4, 5) if kind in {"moved", "speckled"} else np.zeros_like(labels)
        for number in video.numbers() if kind == "inexact" else ():
            moved[move(labels == number, *random.integers(-3, 4, 2))] = number
        if kind == "speckled":
            specks = random.random(labels.shape) < 0.03
            moved[specks] = random.choice(video.numbers(), np.count_nonzero(specks))
        video.labels[index] = labels if kind == "right" else moved


@pytest.mark.parametrize("kind", ["moved", "speckled", "right", "inexact"])
@pytest.mark.parametrize("protocol", WITH_MASKS)
def test_moved_masks_are_named(protocol: str, kind: str, tmp_path: Path) -> None:
    benchmark, random = BENCHMARKS[protocol], np.random.default_rng(4)
    world = make_world(random, 9, benchmark.frames, benchmark.kinds)
    predicted = [video.copy() for video in world]
    for video in predicted:
        move_all(video, kind, random)
    lines = [line for line in score_worlds(protocol, world, predicted, tmp_path).warnings if SLIP in line]
    assert len(lines) == (kind in {"moved", "speckled"})
    assert all(f"masks {SLIP}5 along x and 4 along y (in pixels): corrected, " in line for line in lines)


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
    lines = judge_shifts(units, 24, read_rearranged("image", "maps")[-1], "mIoU")  # type: ignore[arg-type]
    assert bool(lines) is is_named
