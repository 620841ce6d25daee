"""Stretched units must agree; grown and shrunk masks are not named."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from segjudge.evaluation_script.families import PROTOCOLS
from segjudge.evaluation_script.families.base.displacement import describe_ratios, judge_stretches
from segjudge.evaluation_script.families.base.readings import MOVED, STARTS_AT, STRETCHED_BY, read_rearranged
from tests.report.known_scenes import Video, make_scattered_world
from tests.report.test_known_faults import BENCHMARKS, score_worlds

#: The protocols whose predictions are grown and shrunk.
FLAT = [
    name
    for name in BENCHMARKS
    if PROTOCOLS[name].family in {"cells", "instances", "microscopy", "phrases", "referring", "tracking"}
]


def grow(video: Video, random: np.random.Generator) -> None:
    """Grow or shrink the objects of a video by some pixels."""
    step = int(random.integers(2, 5)) * random.choice((-1, 1))
    for index, labels in enumerate(video.labels):
        grown = labels
        for _ in range(abs(step)):
            beside = [np.roll(grown, by, axis) for by in (-1, 1) for axis in (0, 1)]
            if step > 0:
                for other in beside:
                    grown = np.where(grown == 0, other, grown)
            else:
                grown = np.where(np.all([other == grown for other in beside], axis=0), grown, 0)
        video.labels[index] = grown


@pytest.mark.parametrize("protocol", FLAT)
def test_grown_and_shrunk_masks_are_not_named(protocol: str, tmp_path: Path) -> None:
    benchmark, random = BENCHMARKS[protocol], np.random.default_rng(5)
    world = make_scattered_world(random, 24, benchmark.frames, benchmark.kinds)
    predicted = [video.copy() for video in world]
    for video in predicted:
        grow(video, random)
    assert not [line for line in score_worlds(protocol, world, predicted, tmp_path).warnings if " look" in line]


@pytest.mark.parametrize(
    ("ratios", "is_named"),
    [
        ([1.25] * 3, True),
        ([1.25] * 2, False),
        ([1.25, 1.3, 1.2], True),
        ([1.25, 1.6, 0.8, 0.6], False),
        ([1.25] * 3 + [None] * 3, True),
        ([1.25] * 3 + [None] * 4, False),
    ],
)
def test_units_must_agree(ratios: list[float | None], is_named: bool) -> None:
    units = [
        {MOVED: (0.4, 0.9), **({STRETCHED_BY: (1.0, ratio), STARTS_AT: (0.0, (1 - ratio) / 2)} if ratio else {})}
        for ratio in ratios
    ]
    lines = judge_stretches(units, 24, read_rearranged("image", "maps")[-1], "mIoU")  # type: ignore[arg-type]
    assert bool(lines) is is_named


def test_sides_are_named() -> None:
    assert describe_ratios(1.25, 1.254) == "about 1.25 times as wide and high as the truth's"
    assert describe_ratios(0.8, 1.0) == "about 0.80 times as wide as the truth's"
    assert describe_ratios(1.5, 1.2) == "about 1.50 times as wide and 1.20 times as high as the truth's"
