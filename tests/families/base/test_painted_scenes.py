"""Pages describe and draw small scenes as noted, which only an intended change renews."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from segjudge.families.base.painted import PaintedUnit
from segjudge.families.base.pictures import paint_mask, paint_masks
from segjudge.families.base.segments import (
    FAULTS,
    MISSED,
    PARTIAL,
    RIGHT,
    SPLIT,
    SURPLUS,
    WRONG_CLASS,
    judge_classes,
    judge_segments,
)
from tests import calls
from tests.builders import run_length_text
from tests.families.base import painted_scenes


def test_small_scenes_are_told_and_drawn_as_was_noted() -> None:
    calls.hold(painted_scenes.write_scenes(), painted_scenes.FILE)


# ── numbers of small frames, counted by hand ──


def paint(*frames: tuple[str, str], pixels: int = 0) -> PaintedUnit:
    """Return a unit of frames of one row; each digit is the number of a true and of a predicted segment."""
    unit = PaintedUnit("row", [f"{index:02d}" for index in range(len(frames))], (1, len(frames[0][0])), pixels)
    for sides in frames:
        truth, prediction = (np.array([list(map(int, side))]) for side in sides)
        unit.add(painted_scenes._see(truth, prediction, drawn=False), truth_alone=False)
    return unit


EXACT, EMPTY = ("1111110000", "1111110000"), ("0000000000", "0000000000")
CLOSE = ("1111110000", "1111000000")
MISSING, ADDED = ("1111110000", "0000000000"), ("0000000000", "0000111111")


@pytest.mark.parametrize(
    ("sides", "style", "text"),
    [
        (CLOSE, "missed", "everything matches: 33 % of the truth is missing, 0 % of the prediction is surplus"),
        (("1111000000", "1111110000"), "surplus", "everything matches: 0 % of the truth is missing, 33 % of the prediction is surplus"),
        (("1111110000", "0111111000"), "surplus", "everything matches: 17 % of the truth is missing, 17 % of the prediction is surplus"),
        (("1111111100", "0011111110"), "missed", "everything matches: 25 % of the truth is missing, 14 % of the prediction is surplus"),
    ],
)  # fmt: skip
def test_a_unit_without_faults_shows_the_frame_that_overlaps_least(
    sides: tuple[str, str], style: str, text: str
) -> None:
    (moment,) = paint(EXACT, EMPTY, sides, EXACT).find_moments(0.5, dense=False)
    assert (moment.worst, moment.cost, moment.label, moment.subject) == ("02", 0.5, "", ", frame 02")
    assert (moment.style, moment.text) == (FAULTS[MISSED if style == "missed" else SURPLUS].style, text)
    (image,) = paint(sides).find_moments(0.25, dense=False)
    assert (image.cost, image.style, image.text) == (0.25, moment.style, text)
    (dense,) = paint(EXACT, sides).find_moments(0.5, dense=True)
    assert (dense.worst, dense.text) == ("01", "all segments match, but inexactly")
    assert paint(EXACT, sides).find_moments(0, dense=False) == []
    assert paint(EMPTY, EMPTY).find_moments(0.5, dense=False) == []


@pytest.mark.parametrize(
    "rows",
    ["000 000", "100 000", "000 001", "110 110", "010 011", "001 100", "111 111", "0100 0010", "0001 0001", "1 1 0 1"],
)
def test_a_mask_paints_its_own_pixels(rows: str) -> None:
    mask = np.array([list(map(int, row)) for row in rows.split()])
    text = run_length_text(mask)
    image = np.full(mask.shape, 3, np.uint16)
    paint_mask(image, text, mask.shape, 7)
    assert image.tolist() == np.where(mask, 7, 3).tolist()
    enlarged = paint_masks([text, text], mask.shape, (2 * mask.shape[0], 3 * mask.shape[1]))
    assert enlarged.tolist() == np.kron(2 * mask, np.ones((2, 3), int)).tolist()


# ── verdicts ──

#: Shared pixels of true (rows) and predicted regions (columns), their areas and classes, and the verdicts:
#: on the truth, on the prediction, the partner of each prediction, and the prediction that covers most of each region.
CLASS_VERDICTS: list[tuple[Any, tuple[Any, Any], tuple[Any, Any], tuple[Any, Any, Any, Any]]] = [
    ([[6]], ([6], [6]), ([1], [1]), ([RIGHT], [RIGHT], [0], [0])),
    ([[1]], ([1], [1]), ([1], [1]), ([RIGHT], [RIGHT], [0], [0])),
    ([[4]], ([6], [6]), ([1], [1]), ([PARTIAL], [PARTIAL], [0], [0])),
    ([[5]], ([6], [6]), ([1], [1]), ([RIGHT], [RIGHT], [0], [0])),
    ([[0]], ([6], [6]), ([1], [1]), ([MISSED], [MISSED], [0], [-1])),
    ([[6]], ([6], [6]), ([1], [2]), ([WRONG_CLASS], [SURPLUS], [-1], [0])),
    ([[0, 6], [5, 0]], ([6, 5], [5, 6]), ([1, 2], [1, 2]), ([WRONG_CLASS] * 2, [WRONG_CLASS] * 2, [0, 1], [1, 0])),
    ([[3, 3]], ([6], [3, 3]), ([1], [1, 2]), ([PARTIAL], [PARTIAL, SURPLUS], [0, -1], [0])),
    ([[6, 2]], ([8], [6, 9]), ([1], [1, 2]), ([RIGHT], [RIGHT, SURPLUS], [0, -1], [0])),
]


@pytest.mark.parametrize("case", range(len(CLASS_VERDICTS)))
def test_a_region_of_a_class_is_right_above_an_iou_of_one_half(case: int) -> None:
    shared, areas, classes, verdicts = CLASS_VERDICTS[case]
    judged = judge_classes(
        np.array(shared, float), (np.array(areas[0]), np.array(areas[1])), (np.array(classes[0]), np.array(classes[1]))
    )
    assert judged.taken_for is not None
    assert (*(side.tolist() for side in judged[:3]), judged.taken_for.tolist()) == verdicts


@pytest.mark.parametrize(
    ("shared", "areas", "classes", "verdicts"),
    [
        ([[1]], ([1], [1]), ([1], [1]), ([RIGHT], [RIGHT], [0])),
        ([[3, 2]], ([20], [3, 2]), ([1], [1, 1]), ([SPLIT], [SPLIT, SPLIT], [0, 0])),
        ([[2, 2]], ([20], [2, 2]), ([1], [1, 1]), ([PARTIAL], [PARTIAL, SURPLUS], [0, -1])),
        ([[3]], ([30], [3]), ([1], [1]), ([PARTIAL], [PARTIAL], [0])),
        ([[3]], ([31], [3]), ([1], [1]), ([MISSED], [SURPLUS], [-1])),
        ([[3]], ([12], [3]), ([1], [2]), ([WRONG_CLASS], [WRONG_CLASS], [0])),
        ([[3]], ([13], [3]), ([1], [2]), ([MISSED], [SURPLUS], [-1])),
        ([[3]], ([4], [11]), ([1], [2]), ([WRONG_CLASS], [WRONG_CLASS], [0])),
        ([[5]], ([7], [7]), ([1], [2]), ([WRONG_CLASS], [WRONG_CLASS], [0])),
        ([[4]], ([6], [6]), ([1], [2]), ([MISSED], [SURPLUS], [-1])),
    ],
)
def test_a_segment_on_either_side_of_a_limit(shared: Any, areas: Any, classes: Any, verdicts: Any) -> None:
    sides = (np.array(areas[0]), np.array(areas[1])), (np.array(classes[0]), np.array(classes[1]))
    judged = judge_segments(np.array(shared, float), *sides)
    assert (judged.truth.tolist(), judged.prediction.tolist(), judged.partner.tolist()) == verdicts
