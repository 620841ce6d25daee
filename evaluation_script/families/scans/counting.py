"""What is counted in a scan: points by true and predicted label, and of segments how many match, and how well."""

from __future__ import annotations

from typing import Dict, Iterable, Tuple

import numpy as np

from ...files.problems import Problems
from ...masks.overlaps import LabelMap, sum_by_key
from ...masks.stack import Array
from ..base.units import Unit, UnitCounts
from .files import ScanSubmission
from .protocols import LABELS_END, ScanProtocol

#: The columns of what is counted of the segments of a class.
IOU, MATCHED, SURPLUS, MISSED = range(4)
#: A key is the place of the true class so many bits further up than the predicted label, as a point's number is.
BITS = 16
_LABEL = (1 << BITS) - 1
#: The class of a segment stands above the 32 bits of a point.
_CLASS = 2 * BITS
_HALF = 0.5


def place_labels(protocol: ScanProtocol) -> Array:
    """Return the place of each label's class; of one that is none, the number of classes."""
    places = np.full(LABELS_END, len(protocol.class_labels))
    for index, labels in enumerate(protocol.class_labels):
        places[labels] = index
    return places


def count(unit: Unit, submission: ScanSubmission) -> UnitCounts:
    """Count a scan."""
    problems, (frame,) = Problems(), unit.load()
    values = submission.read(unit.name, frame.size[1], problems)
    tables = {} if values is None else count_scan(frame.read(), values, submission.protocol)
    return UnitCounts(unit.name, tables, problems.first, problems.count)


def count_scan(truth: LabelMap, values: Array, protocol: ScanProtocol) -> Dict[str, Array]:
    """Return the tables of a scan: what the truth has of each point, and what the prediction."""
    true, predicted, points = _count_pairs(truth, values if protocol.panoptic else values & _LABEL)
    places = place_labels(protocol)
    own = places[true & _LABEL]
    scored = own < len(protocol.class_labels)
    own, true, predicted, points = own[scored], true[scored], predicted[scored], points[scored]
    tables = {"cells": np.stack(sum_by_key((own << BITS) | (predicted & _LABEL), points))}
    if protocol.panoptic:
        tables["segments"] = _match_segments((true, predicted), (own, places[predicted & _LABEL]), points, protocol)
    return tables


def _count_pairs(truth: LabelMap, values: Array) -> Tuple[Array, Array, Array]:
    """Return each pair of values that points have, once, and how many have it; neighbours mostly have the same."""
    numbers, changes = truth.numbers.reshape(-1), np.ones(values.size, bool)
    np.not_equal(values[1:], values[:-1], out=changes[1:])
    changes[1:] |= numbers[1:] != numbers[:-1]
    starts = np.flatnonzero(changes)
    if values.max() < LABELS_END:  # labels alone need no sorting
        predicted, columns = np.arange(LABELS_END), values[starts]
    else:
        predicted, columns = np.unique(values[starts], return_inverse=True)
    if truth.labels is None:
        true, rows = np.unique(numbers[starts], return_inverse=True)
    else:
        true, rows = truth.labels, numbers[starts].astype(np.int64)
    keys, lengths = rows * len(predicted) + columns, np.diff(starts, append=values.size)
    if len(true) * len(predicted) <= max(len(starts), 1 << BITS):
        points = np.bincount(keys, lengths, len(true) * len(predicted)).astype(np.int64)
        keys = np.flatnonzero(points)
        points = points[keys]
    else:
        keys, points = sum_by_key(keys, lengths)
    return true[keys // len(predicted)].astype(np.int64), predicted[keys % len(predicted)].astype(np.int64), points


def _match_segments(
    values: Tuple[Array, Array], classes: Tuple[Array, Array], points: Array, protocol: ScanProtocol
) -> Array:
    """Return of each class (rows) the sum of IoU of the segments that match, and how many do or do not."""
    count_of_classes = len(protocol.class_labels)
    answered: Array = classes[1] < count_of_classes
    shared = answered & (classes[0] == classes[1])
    segments, areas, indices = [], [], []
    for side, places, visible in zip(values, classes, (np.ones_like(answered), answered)):
        names = _name_segments(side, places, protocol)
        unique, sizes = sum_by_key(names[visible], points[visible])
        segments.append(unique)
        areas.append(sizes)
        indices.append(np.searchsorted(unique, names[shared]))
    keys, common = sum_by_key(indices[0] * len(segments[1]) + indices[1], points[shared])
    rows, columns = keys // max(len(segments[1]), 1), keys % max(len(segments[1]), 1)
    ious = common / (areas[0][rows] + areas[1][columns] - common)
    matches = ious > _HALF
    table = np.zeros((count_of_classes, 4))
    matched_classes = segments[0][rows[matches]] >> _CLASS
    table[:, IOU] = np.bincount(matched_classes, ious[matches], count_of_classes)
    table[:, MATCHED] = np.bincount(matched_classes, minlength=count_of_classes)
    for column, index, partners in ((MISSED, 0, rows), (SURPLUS, 1, columns)):
        unmatched: Array = areas[index] >= protocol.fewest_points
        unmatched[partners[matches]] = False
        table[:, column] = np.bincount(segments[index][unmatched] >> _CLASS, minlength=count_of_classes)
    return table


def _name_segments(values: Array, classes: Array, protocol: ScanProtocol) -> Array:
    """Return a number for the segment of each value, with its class so many bits further up."""
    names = values if protocol.as_script else np.where(classes < protocol.things, values >> BITS, 0)
    joined: Array = (classes << _CLASS) | names
    return joined


def sum_confusion(units: Iterable[UnitCounts], protocol: ScanProtocol) -> Array:
    """Return how many points have which class in the truth (rows) and in the prediction (columns); the last is none."""
    classes = len(protocol.class_labels)
    own, labels, points = list_cells(units)
    if ((own >= classes) | (labels >= LABELS_END)).any():
        raise ValueError("has counted a label that is refused")
    keys = own * (classes + 1) + place_labels(protocol)[labels]
    table: Array = np.bincount(keys, points, (classes + 1) ** 2).astype(np.int64).reshape(classes + 1, -1)
    return table


def list_cells(units: Iterable[UnitCounts]) -> Tuple[Array, Array, Array]:
    """Return true classes, predicted labels, and how many points have them."""
    cells = [np.zeros((2, 0), np.int64), *(counts.tables["cells"] for counts in units)]
    keys, points = np.concatenate(cells, axis=1)
    return keys >> BITS, keys & _LABEL, points
