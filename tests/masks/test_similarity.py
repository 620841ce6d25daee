"""J and F: simple cases, laws, and a plain implementation for comparison."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from benchmarks import reference
from segjudge.evaluation_script.masks.backend import backend
from segjudge.evaluation_script.masks.similarity import (
    Counts,
    Region,
    boundary_similarity,
    disk,
    fractional_disk,
    reach,
    region_similarity,
)
from tests.builders import drawn, stack_of
from tests.drawing import examples

EXACT = 1e-12


def compared(truth: Any, prediction: Any, match: Any = None) -> Counts:
    region, other_region = Region(stack_of(truth)), Region(stack_of(prediction))
    return backend().compare([(region, other_region)], match or disk(reach(truth.shape)))[0]


def j(truth: Any, prediction: Any) -> float:
    return float(region_similarity(compared(truth, prediction))[0])


def f(truth: Any, prediction: Any) -> float:
    return float(boundary_similarity(compared(truth, prediction))[0])


def test_two_empty_masks_agree() -> None:
    empty = drawn("....", "....")
    assert (j(empty, empty), f(empty, empty)) == (1.0, 1.0)


def test_a_full_frame_has_no_boundary_inherited_from_davis() -> None:
    full, empty = drawn("####", "####"), drawn("....", "....")
    assert f(full, empty) == 1.0
    assert j(full, empty) == 0.0


def test_the_corner_pixel_has_three_boundary_pixels_inherited_from_davis() -> None:
    mask = drawn("....", "....", "...#")
    assert Region(stack_of(mask)).boundary_size.tolist() == [3]


shapes = st.tuples(st.integers(1, 40), st.integers(1, 150))


def masks(shape: Any) -> Any:
    """Return noise or a box: real masks are smooth, edge cases are not."""

    @st.composite
    def box(draw: Any) -> Any:
        mask = np.zeros(shape, bool)
        y, x = draw(st.integers(0, shape[0])), draw(st.integers(0, shape[1]))
        mask[y : y + draw(st.integers(0, shape[0])), x : x + draw(st.integers(0, shape[1]))] = True
        return mask

    return st.one_of(box(), hnp.arrays(bool, shape))


pairs = shapes.flatmap(lambda shape: st.tuples(masks(shape), masks(shape)))


@pytest.mark.long
@examples(300)
@given(pairs)
def test_it_equals_the_plain_formulas(pair: Any) -> None:
    truth, prediction = pair
    assert j(truth, prediction) == pytest.approx(reference.region_similarity(truth, prediction), abs=EXACT)
    assert f(truth, prediction) == pytest.approx(reference.boundary_similarity(truth, prediction), abs=EXACT)


@examples(40)
@given(pairs, st.floats(0.3, 12).filter(lambda radius: radius != int(radius)))
def test_a_disk_off_its_centre_is_grown_as_opencv_does(pair: Any, radius: float) -> None:
    offsets = {(dy, dx) for dx, low, high in fractional_disk(radius) for dy in range(low, high + 1)}
    truth, prediction = (reference.boundary(mask) for mask in pair)
    counts = compared(*pair, fractional_disk(radius))
    targets = set(map(tuple, np.argwhere(truth)))
    expected = sum(any((y + dy, x + dx) in targets for dy, dx in offsets) for y, x in np.argwhere(prediction))
    if truth.any() and prediction.any():
        assert counts.prediction_matched[0] == expected


def test_large_frames_reach_further_than_a_word() -> None:
    truth, prediction = np.zeros((4320, 7680), bool), np.zeros((4320, 7680), bool)
    truth[100, 100] = prediction[100, 171] = True
    assert reach(truth.shape) == 71
    assert f(truth, prediction) == 1.0
    prediction[100, 171] = False
    prediction[100, 173] = True
    assert f(truth, prediction) < 1.0
