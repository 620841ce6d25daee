"""Mask files that are moved, mirrored or of other classes are named, by any parts; inexact ones are not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from segjudge import score
from segjudge.evaluation_script.families import PROTOCOLS, report_of
from segjudge.evaluation_script.runner.parallel import Part
from segjudge.families.truths import TruthSource
from segjudge.scoring.request import ScoreRequest, prepare
from tests.families.base.test_displacement import move
from tests.report.known_scenes import OBJECTS, SIZE, Video, World
from tests.report.test_known_faults import BENCHMARKS

PROTOCOL = "cityscapes-instance"
IMAGES = 9


def make_images() -> World:
    """Make images of rectangles without any symmetry."""
    random = np.random.default_rng(3)
    world = []
    for image in range(1, IMAGES + 1):
        labels = np.zeros((1, *SIZE), np.int64)
        for number in range(1, OBJECTS + 1):
            row, column = (number - 1) % 2, (number - 1) // 2
            top, left = 45 * row + random.integers(2, 30), 40 * column + random.integers(2, 12)
            labels[0, top : top + random.integers(6, 18), left : left + random.integers(8, 24)] = number
        world.append(Video(f"scene{image:02d}", labels, {number: 1 + number % 3 for number in range(1, OBJECTS + 1)}))
    return world


def write(folder: Path, change: Callable[[Any], Any]) -> tuple[Path, Path]:
    world = make_images()
    (folder / "truth").mkdir()
    truth = BENCHMARKS[PROTOCOL].publish(world, folder / "truth")
    for video in world:
        video.labels[0] = change(video.labels[0])
    results = folder / "results.zip"
    results.write_bytes(BENCHMARKS[PROTOCOL].send(world))
    return truth, results


def exchange(labels: Any) -> Any:
    """Give each object the number of one of the next class."""
    return np.array([0, 2, 3, 1, 5, 6, 4])[labels]


def ragged(labels: Any) -> Any:
    random = np.random.default_rng(int(labels.sum()))
    return np.where(random.random(labels.shape) < 0.5, labels, np.roll(labels, 2, 1))


def grow(labels: Any) -> Any:
    return np.where(labels, labels, np.roll(labels, (3, 3), (0, 1)))


SLIPS: dict[str, Callable[[Any], Any]] = {
    "masks look moved by about 5 pixels along x and 4 along y: ": lambda labels: move(labels, 4, 5),
    "masks look mirrored, with left and right exchanged: ": lambda labels: labels[:, ::-1],
    "masks look upside down: ": lambda labels: labels[::-1],
    "masks look rotated by 180 degrees: ": lambda labels: labels[::-1, ::-1],
    "categories look exchanged, such as ": exchange,
}


def list_places(lines: Any) -> list[str]:
    return [line.partition(": ")[2] for line in lines if " look " in line]


@pytest.mark.parametrize("slip", SLIPS)
def test_misplaced_files_are_named(slip: str, tmp_path: Path) -> None:
    truth, results = write(tmp_path, SLIPS[slip])
    (line,) = list_places(score(results, truth, PROTOCOL).warnings)
    assert line.startswith(slip)
    assert line.endswith(("Write the pixels of the whole image", "Write pixels of the whole image", "ids of the truth"))
    assert list_places(score(results, truth, PROTOCOL, jobs=2).warnings) == [line]
    source = TruthSource(str(truth))
    (scorer,) = prepare(ScoreRequest(str(results), source, PROTOCOLS[PROTOCOL])).scorers.values()
    merged, part = (scorer.count(str(results), Part(number, 2)) for number in (1, 2))
    merged.merge(part)
    assert list_places(report_of(scorer.split, merged).warnings) == [line]


@pytest.mark.parametrize("change", [lambda labels: labels, ragged, grow, np.zeros_like])
def test_inexact_files_are_not(change: Callable[[Any], Any], tmp_path: Path) -> None:
    truth, results = write(tmp_path, change)
    assert list_places(score(results, truth, PROTOCOL).warnings) == []
