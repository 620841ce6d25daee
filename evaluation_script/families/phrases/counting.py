"""The counts of a pair: the answer to the phrase, and the objects found at each threshold."""

from __future__ import annotations

from bisect import bisect_right
from typing import Any, List, Sequence, Tuple

import numpy as np

from ...masks.backend import backend
from ...masks.overlaps import Pairs, best_assignment
from ...masks.run_lengths import Masks, pack_texts
from ...masks.stack import Array, Size
from ...values.arithmetic import add, mean
from ..base.units import TruthFrame, Unit, UnitCounts
from .files import PhraseSubmission

#: The minimum IoU of a detected object. These are NumPy's numbers, some of which differ slightly from the printed ones.
THRESHOLDS: Array = np.linspace(0.5, 0.95, 10)
#: The number that the script adds to denominators.
EPSILON = 1e-4
#: The outcomes of a pair: true positive, false positive, false negative, true negative.
RIGHT, WRONG, SILENT, REJECTED = range(4)
#: The columns of a pair: its subset, its outcome, the annotator's objects, how many of them have a prediction assigned,
#: predictions that count; whether any annotator sees objects, and whether any sees none.
SUBSET, ANSWER, OBJECTS, ASSIGNED, PREDICTIONS, SEEN, ABSENT = range(7)
#: Further columns: matched objects and surplus predictions at each threshold.
FOUND, SURPLUS = slice(7, 17), slice(17, 27)
COLUMNS = 27


#: The thresholds as Python floats, which are faster to read individually.
_THRESHOLDS: List[float] = THRESHOLDS.tolist()
_COUNT = len(_THRESHOLDS)
#: The masks of an annotator: whether each is a crowd, its text and its area.
_Rows = Sequence[Tuple[int, str, int]]


def count_image(unit: Unit, submission: PhraseSubmission) -> UnitCounts:
    """Count a pair."""
    (frame,) = unit.load()
    predictions, other_size = submission.masks(unit.name, frame.size)
    row = count_pair(frame, predictions, other_size, official=submission.protocol.official)
    row[SUBSET] = unit.facts["subset"]
    return UnitCounts(unit.name, {"pair": np.array(row, np.int64)})


def count_pair(frame: TruthFrame, predictions: Masks, other_size: Array, *, official: bool) -> List[int]:
    """Return the columns of a pair, against the annotator who agrees most with its prediction."""
    if len(other_size):
        annotators = [_Annotator(rows, official=official) for rows in frame.rows]
        row = _choose_annotator(
            annotators, _measure_overlaps(predictions, annotators, frame.size), other_size, official=official
        )
    else:
        row = _answer_nothing(frame.rows, official=official)
    row[SEEN], row[ABSENT] = int(any(frame.rows)), int(not all(frame.rows))
    return row


def count_answer(rows: _Rows, ious: Array, *, official: bool) -> List[int]:
    """Return the columns of a pair for one annotator, from the IoU of each prediction with each object."""
    row = _Annotator(rows, official=official).compare(ious) if len(ious) else _answer_nothing([rows], official=official)
    row[SEEN], row[ABSENT] = int(bool(rows)), int(not rows)
    return row


def _answer_nothing(annotators: Sequence[_Rows], *, official: bool) -> List[int]:
    """Return the columns of a pair without predictions, for the annotator with the fewest objects."""
    row = [0] * COLUMNS
    masks = [_choose_masks(rows, official=official) if rows else rows for rows in annotators]
    if not all(masks):
        row[ANSWER] = REJECTED
        return row
    objects = [sum(not crowd for crowd, _, _ in rows) for rows in masks]
    row[ANSWER], row[OBJECTS] = SILENT, objects[0] if official else min(objects)
    return row


def _choose_masks(rows: _Rows, *, official: bool) -> _Rows:
    """Return the masks of an annotator that count: officially all except crowds, else those with pixels."""
    return [row for row in rows if (not row[0] if official else row[2])]


def _choose_annotator(annotators: List[_Annotator], ious: Array, other_size: Array, *, official: bool) -> List[int]:
    """Return the columns of a pair against the annotator who agrees most."""
    ious[other_size] = -1.0
    best: List[int] = []
    column = 0
    for annotator in annotators:
        row = annotator.compare(ious[:, column : column + len(annotator.texts)])
        column += len(annotator.texts)
        if not best or (_official_f1(row) > _official_f1(best) if official else _rank(row) > _rank(best)):
            best = row
    return best


class _Annotator:
    """The objects of a pair according to one annotator."""

    def __init__(self, rows: _Rows, *, official: bool) -> None:
        masks = _choose_masks(rows, official=official)
        #: Its masks, their areas, and whether each is a crowd.
        self.texts, self.areas = [text for _, text, _ in masks], [area for _, _, area in masks]
        self.crowds = [bool(crowd) for crowd, _, _ in masks]
        self.objects = self.crowds.count(False)

    def compare(self, ious: Array) -> List[int]:
        """Return the columns of a pair with predictions."""
        predictions, objects = len(ious), self.objects
        row = [0] * COLUMNS
        row[OBJECTS], row[PREDICTIONS] = objects, predictions
        row[ANSWER] = RIGHT if self.texts else WRONG
        # Below this threshold, a prediction is not surplus: it has an object, or lies on a crowd.
        excused = [0] * predictions
        if objects:
            table = ious[:, ~np.array(self.crowds, bool)] if objects < len(self.crowds) else ious
            for index, iou in _assign(table):
                row[ASSIGNED] += iou > 0
                excused[index] = reach = bisect_right(_THRESHOLDS, iou)
                for threshold in range(reach):
                    row[FOUND.start + threshold] += 1
        if objects < len(self.crowds):
            shares = ious[:, np.array(self.crowds, bool)].max(axis=1).tolist()
            excused = [max(reach, bisect_right(_THRESHOLDS, share)) for reach, share in zip(excused, shares)]
        for reach in excused:
            for threshold in range(reach, _COUNT):
                row[SURPLUS.start + threshold] += 1
        return row


def _assign(ious: Array) -> List[Tuple[int, float]]:
    """Return the assignment of predictions to objects with the largest sum of IoU, and the IoU of each."""
    if ious.shape[1] == 1:
        index = int(ious.argmax())
        return [(index, float(ious[index, 0]))]
    indices, columns = best_assignment(ious)
    return list(zip(indices.tolist(), ious[indices, columns].tolist()))


def _measure_overlaps(predictions: Masks, annotators: List[_Annotator], size: Size) -> Array:
    """Return the IoU of each prediction (rows) with each mask; for crowds the share inside the crowd."""
    texts = [text for annotator in annotators for text in annotator.texts]
    rows, columns = len(predictions.texts), len(texts)
    if not rows or not columns:
        return np.zeros((rows, columns))
    pairs = Pairs(np.arange(rows).repeat(columns), np.tile(np.arange(columns), rows), np.array([0, rows * columns]))
    areas = np.array([area for annotator in annotators for area in annotator.areas], np.int64)
    truths = Masks(pack_texts(texts), areas, np.array([size] * columns))
    crowds = np.array([flag for annotator in annotators for flag in annotator.crowds], bool)
    ious: Array = backend().mask_overlaps(pairs, predictions, truths, crowds).reshape(rows, columns)
    return ious


def _official_f1(row: List[int]) -> float:
    hits, surplus = np.array(row[FOUND]), np.array(row[SURPLUS])
    return mean(f1_of(hits, surplus, row[OBJECTS] - hits, official=True))


def _rank(row: List[int]) -> Tuple[Any, ...]:
    """Return the sort key of annotators, independent of the order of their files; the best is last."""
    right = row[ANSWER] == RIGHT
    errors = [surplus + row[OBJECTS] - hits for surplus, hits in zip(row[SURPLUS], row[FOUND])]
    f1 = [2 * hits / (2 * hits + wrong) if hits or wrong else float(right) for hits, wrong in zip(row[FOUND], errors)]
    # Sums of equal fractions may differ in their last bits.
    return round(add(f1), 12), right, -sum(errors), *row[FOUND]


def f1_of(hits: Array, surplus: Array, missed: Array, *, official: bool) -> Array:
    """Return F1 from numbers of objects; 0 without any."""
    if not official:
        f1: Array = 2 * hits / np.maximum(2 * hits + surplus + missed, 1)
        return f1
    precision, recall = hits / (hits + surplus + EPSILON), hits / (hits + missed + EPSILON)
    return np.asarray(2 * precision * recall / (precision + recall + EPSILON))
