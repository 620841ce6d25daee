"""Stretches, as after a crop or padding, are measured and undone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from segjudge.evaluation_script.masks.restoration import Displacement
from segjudge.evaluation_script.masks.stretches import Grids, find_stretch, undo_stretch
from tests.families.base.test_other_readings import draw
from tests.report.known_scenes import make_scattered_world


def stretch(pixels: Any, axes: Any) -> Any:
    """Return a map (height, width) that is stretched from places, with 0 for what lies outside."""
    places = [
        np.floor(side * (anchor + ((np.arange(side) + 0.5) / side - anchor) / ratio)).astype(int)
        for side, (ratio, anchor) in zip(pixels.shape, axes, strict=True)
    ]
    inside = [(place >= 0) & (place < side) for place, side in zip(places, pixels.shape, strict=True)]
    taken = pixels[np.ix_(*(np.clip(place, 0, side - 1) for place, side in zip(places, pixels.shape, strict=True)))]
    return np.where(inside[0][:, None] & inside[1], taken, 0)


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
