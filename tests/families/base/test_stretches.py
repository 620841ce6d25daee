"""Stretches, as after a crop or padding, are measured and undone; grown and shrunk masks are not named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from segjudge.evaluation_script.families import PROTOCOLS
from segjudge.evaluation_script.families.base.displacement import describe_ratios, judge_stretches
from segjudge.evaluation_script.families.base.readings import MOVED, STARTS_AT, STRETCHED_BY, read_rearranged
from segjudge.evaluation_script.masks.restoration import Displacement
from segjudge.evaluation_script.masks.stretches import Grids, find_stretch, undo_stretch
from tests.families.base.test_other_readings import draw
from tests.report.known_scenes import Video, make_scattered_world
from tests.report.test_known_faults import BENCHMARKS, score_worlds

#: The protocols whose predictions are grown and shrunk.
FLAT = [
    name
    for name in BENCHMARKS
    if PROTOCOLS[name].family in {"cells", "instances", "microscopy", "phrases", "referring", "tracking"}
]


def stretch(pixels: Any, axes: Any) -> Any:
    """Return a map (height, width) that is stretched from places, with 0 for what lies outside."""
    places = [
        np.floor(side * (anchor + ((np.arange(side) + 0.5) / side - anchor) / ratio)).astype(int)
        for side, (ratio, anchor) in zip(pixels.shape, axes, strict=True)
    ]
    inside = [(place >= 0) & (place < side) for place, side in zip(places, pixels.shape, strict=True)]
    taken = pixels[np.ix_(*(np.clip(place, 0, side - 1) for place, side in zip(places, pixels.shape, strict=True)))]
    return np.where(inside[0][:, None] & inside[1], taken, 0)


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


@pytest.mark.parametrize("axes", [((1.25, 0.5), (1.25, 0.5)), ((1.0, 0.0), (0.85, 0.0)), ((1.14, 0.5), (1.5, 0.5))])
def test_stretches_are_measured_and_undone(axes: Any) -> None:
    for video in make_scattered_world(np.random.default_rng(2), 5, 1, 3):
        (image,) = video.labels
        stretched = stretch(image, axes)
        grids = Grids(image, stretched)
        measured = find_stretch(grids.agree, grids.sift)
        assert measured is not None
        for (ratio, anchor), (true_ratio, true_anchor) in zip(measured, axes, strict=True):
            assert abs(ratio - true_ratio) <= 0.08
            assert abs((1 - ratio) * anchor - (1 - true_ratio) * true_anchor) <= 0.05
        if max(ratio for ratio, _ in axes) <= 1:  # nothing is lost
            assert np.mean(undo_stretch(stretched, axes) == image) > 0.97
        assert (undo_stretch(image, axes) == Displacement(stretch=axes).transpose().undo(image.T).T).all()


def test_maps_that_fit_are_not_stretched() -> None:
    assert all(find_stretch(Grids(draw(seed), draw(seed)).agree) is None for seed in range(5))
    assert find_stretch(Grids(draw(1), np.zeros_like(draw(1))).agree) is None


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
