"""The faults of a frame's segments: the kinds that all families share, and how to judge them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from segjudge.evaluation_script.masks.stack import Array
from segjudge.report.colours import style_of_kind

#: The verdicts on a segment; 0 is unjudged.
RIGHT, MISSED, SURPLUS, WRONG_CLASS, MERGED, SPLIT, INEXACT, SWAPPED, PARTIAL = range(1, 10)
#: The IoU above which segments match, and the share above which a part is most of a segment.
HALF = 0.5
#: The minimum share of a segment that several predictions inside it cover to be its fragments.
FRAGMENTS = 0.25
#: The minimum IoU at which a prediction of another class represents a segment, and the minimum share of one of the two
#: in the other.
_ASTRAY, _WITHIN = 0.25, 0.75
#: The IoU below which segments of a class are unrelated.
LEAST_IOU = 0.1
#: The number of frames between two runs of one fault that still form one moment.
_GAP = 2


class _Fault(NamedTuple):
    """A kind of fault: its name and description."""

    name: str
    about: str

    @property
    def style(self) -> str:
        return style_of_kind(self.name, 0)


#: The faults by the verdict on a segment.
FAULTS = {
    RIGHT: _Fault("right", "matches"),
    MISSED: _Fault("missed", "a segment of the truth that nothing matches"),
    SURPLUS: _Fault("surplus", "a predicted segment that matches nothing"),
    WRONG_CLASS: _Fault("wrong class", "in the right place, with the wrong class"),
    MERGED: _Fault("merged", "one prediction over several segments"),
    SPLIT: _Fault("split", "several predictions in one segment"),
    INEXACT: _Fault("inexact", "matches, but not exactly"),
    SWAPPED: _Fault("swapped", "has the identity of another object"),
    PARTIAL: _Fault("partial", "has an IoU of one half or less"),
}


class JudgedSegments(NamedTuple):
    """The judged segments of a frame."""

    truth: Array
    prediction: Array
    #: For each predicted segment, the true segment that it represents, or -1.
    partner: Array
    #: For each true segment, the prediction that represents it, or -1, if partners do not determine it.
    taken_for: Array | None = None

    def list_partners(self) -> dict[int, int]:
        """Return the predicted segment that represents each true segment, if any."""
        if self.taken_for is not None:
            return {row: column for row, column in enumerate(self.taken_for.tolist()) if column >= 0}
        return {row: column for column, row in reversed(list(enumerate(self.partner.tolist()))) if row >= 0}


def judge_segments(shared: Array, areas: tuple[Array, Array], classes: tuple[Array, Array]) -> JudgedSegments:
    """Return the judged segments, given the shared pixels of true (rows) and predicted ones (columns).

    A match has an IoU above one half. Unmatched segments are wrong in class, merged, split or partial if they overlap
    enough, else missed or surplus.
    """
    rows, columns = shared.shape
    truth, prediction = np.full(rows, MISSED), np.full(columns, SURPLUS)
    partner = np.full(columns, -1)
    if not shared.size:
        return JudgedSegments(truth, prediction, partner)
    same = classes[0][:, None] == classes[1]
    ious = shared / np.maximum(areas[0][:, None] + areas[1] - shared, 1)
    free = [np.ones(rows, bool), np.ones(columns, bool)]

    def join(row: int, column: int, kind: int) -> None:
        truth[row] = prediction[column] = kind
        partner[column], free[0][row], free[1][column] = row, False, False

    def join_closest(likeness: Array, least: float, kind: int) -> None:
        """Join free segments, the most alike first, down to the least likeness."""
        for index in np.argsort(-likeness, axis=None, kind="stable").tolist():
            row, column = divmod(index, columns)
            if likeness[row, column] < least:
                break
            if truth[row] == MISSED and free[1][column]:
                join(row, column, kind)

    for kind, flags in ((RIGHT, same), (WRONG_CLASS, ~same)):
        join_closest(np.where(flags, ious, 0), np.nextafter(HALF, 1), kind)
    covered, inside = shared / np.maximum(areas[0], 1)[:, None], shared / np.maximum(areas[1], 1)
    over, within = (covered >= HALF) & same, (inside >= HALF) & same
    # A prediction of the wrong class may join segments of the class that it stands for.
    over |= (covered >= HALF) & (prediction == WRONG_CLASS) & (classes[0][:, None] == classes[0][partner])
    for row in np.flatnonzero(free[0]).tolist():
        merging = np.flatnonzero(over[row] & (over.sum(axis=0) > 1))
        parts = np.flatnonzero(within[row])
        if len(merging):
            truth[row], column = MERGED, int(merging[0])
            if free[1][column]:
                join(row, column, MERGED)
        elif len(parts) > 1 and covered[row, parts].sum() >= FRAGMENTS:
            for column in parts[free[1][parts]].tolist():
                join(row, column, SPLIT)
    for column in np.flatnonzero(free[1]).tolist():
        if within[:, column].any():
            row = int(np.argmax(inside[:, column] * same[:, column]))
            if truth[row] in {RIGHT, SPLIT}:
                prediction[column], partner[column] = SPLIT, row
                free[1][column] = False
    join_closest(np.where(same, ious, 0), LEAST_IOU, PARTIAL)
    join_closest(np.where(~same & (np.maximum(inside, covered) >= _WITHIN), ious, 0), _ASTRAY, WRONG_CLASS)
    return JudgedSegments(truth, prediction, partner)


def judge_classes(shared: Array, areas: tuple[Array, Array], classes: tuple[Array, Array]) -> JudgedSegments:
    """Return the judged classes of a frame, each one region, which is correct above an IoU of one half."""
    if not shared.size:
        return JudgedSegments(
            np.full(len(areas[0]), MISSED), np.full(len(areas[1]), SURPLUS), np.full(len(areas[1]), -1)
        )
    same = classes[0][:, None] == classes[1]
    ious = (shared * same / np.maximum(areas[0][:, None] + areas[1] - shared, 1)).max(axis=1)
    largest = shared.argmax(axis=1)
    is_other = ~same[np.arange(len(largest)), largest]
    truth = np.select([ious > HALF, is_other, ious > 0], [RIGHT, WRONG_CLASS, PARTIAL], MISSED)
    partner = np.where(same.any(axis=0), same.argmax(axis=0), -1)
    prediction = np.where(partner >= 0, truth[partner], SURPLUS)
    return JudgedSegments(truth, prediction, partner, np.where(shared.any(axis=1), largest, -1))


def find_runs(faults: Sequence[object], frames: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield the runs of one fault in some frames, bridging small gaps; an empty fault is none."""
    wrong = [entry for entry, fault in enumerate(faults) if fault]
    breaks = [
        index
        for index, (before, after) in enumerate(pairwise(wrong), 1)
        if faults[before] != faults[after] or frames[after] - frames[before] > _GAP + 1
    ]
    for start, stop in pairwise([0, *breaks, len(wrong)] if wrong else []):
        yield wrong[start], wrong[stop - 1] + 1
