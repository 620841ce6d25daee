"""How well a few masks agree with the truth's, at some places."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from segjudge.evaluation_script.families.base import readings
from segjudge.evaluation_script.families.base.few_masks import measure_agreement
from segjudge.evaluation_script.masks import run_lengths as rle

SIZE = (60, 100)


def draw(left: int) -> str:
    """Return the run lengths of a rectangle."""
    pixels = np.zeros(SIZE, np.uint8)
    pixels[5:14, left : left + 13] = 1
    down = pixels.T.reshape(-1)
    borders = np.flatnonzero(np.diff(down, prepend=0))
    return rle.compress(np.diff([0, *borders.tolist(), down.size]).tolist())


def test_agreement_is_the_iou_of_the_closest_mask_of_frame_and_class() -> None:
    first, second = draw(3), draw(7)  # 13 wide, 4 apart
    nothing = rle.compress([SIZE[0] * SIZE[1]])
    cases: list[tuple[Any, Any, float]] = [
        ([[(1, first)]], [[(1, first)]], 1.0),
        ([[(1, first), (3, second)]], [[(1, second), (2, first)]], 9 / 17 / 2),
        ([[(1, first)], [(1, first)]], [[(1, first)], []], 0.5),
        ([[(1, first), (1, nothing)]], [[(1, first), (1, nothing)]], 1.0),
        ([[(1, nothing)]], [[(1, first)]], 0.0),
        ([[(1, first)]], [[]], 0.0),
        ([], [], 0.0),
    ]
    for truth, sent, due in cases:
        unchanged, mirrored = measure_agreement(truth, sent, SIZE, [readings.keep_place, readings.PLACES["mirrored"]])
        assert unchanged == pytest.approx(due)
        assert mirrored == 0


@pytest.mark.parametrize("size", [(60, 100), (100, 60), (7, 7), (1, 9), (9, 1), (31, 47)])
def test_places_of_rearranged_pixels_are_those_that_rewriting_takes(size: tuple[int, int]) -> None:
    height, width = size
    positions = np.arange(height * width).reshape(width, height).T
    changes = {name: change for name, *_, change in readings._REARRANGEMENTS} | {"rows": rle.turn_pixels}
    places = readings.PLACES | readings._MORE_PLACES
    assert places.keys() == changes.keys()
    for name, place in places.items():
        rows, columns = np.arange(height)[:, None], np.arange(width)
        np.testing.assert_array_equal(place(rows, columns, height, width), changes[name](positions), name)
