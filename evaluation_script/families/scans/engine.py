"""How scans are scored: IoU from one confusion of all points, PQ from the segments of each scan.

What is counted in a scan comes first: points by true and predicted label, and of segments how many match, and how well.
"""

from __future__ import annotations

from typing import Any, Dict, Iterable, List, NamedTuple, Optional, Tuple

import numpy as np

from ...files.problems import Problems, name_list
from ...masks.overlaps import LabelMap, sum_by_key
from ...masks.stack import Array
from ..base.family import Values
from ..base.reports import judge_matches
from ..base.units import Shapes, Unit, UnitAccumulator, UnitCounts, unit_engine
from .files import REMEDY, ScanSubmission, read_truth
from .protocols import GROUPS, LABELS_END, QUALITIES, ScanProtocol

#: The columns of what is counted of the segments of a class.
IOU, MATCHED, SURPLUS, MISSED = range(4)
#: A key is the place of the true class so many bits further up than the predicted label, as a point's number is.
_BITS = 16
_LABEL = (1 << _BITS) - 1
#: The class of a segment stands above the 32 bits of a point.
_CLASS = 2 * _BITS
_HALF = 0.5


def _place_labels(protocol: ScanProtocol) -> Array:
    """Return the place of each label's class; of one that is none, the number of classes."""
    places = np.full(LABELS_END, len(protocol.class_labels))
    for index, labels in enumerate(protocol.class_labels):
        places[labels] = index
    return places


def _count(unit: Unit, submission: ScanSubmission) -> UnitCounts:
    """Count a scan."""
    problems, (frame,) = Problems(), unit.load()
    values = submission.read(unit.name, frame.size[1], problems)
    tables = {} if values is None else count_scan(frame.read(), values, submission.protocol)
    return UnitCounts(unit.name, tables, problems.first, problems.count)


def count_scan(truth: LabelMap, values: Array, protocol: ScanProtocol) -> Dict[str, Array]:
    """Return the tables of a scan: what the truth has of each point, and what the prediction."""
    true, predicted, points = _count_pairs(truth, values if protocol.panoptic else values & _LABEL)
    places = _place_labels(protocol)
    own = places[true & _LABEL]
    scored = own < len(protocol.class_labels)
    own, true, predicted, points = own[scored], true[scored], predicted[scored], points[scored]
    tables = {"cells": np.stack(sum_by_key((own << _BITS) | (predicted & _LABEL), points))}
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
    if len(true) * len(predicted) <= max(len(starts), 1 << _BITS):
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
    names = values if protocol.as_script else np.where(classes < protocol.things, values >> _BITS, 0)
    joined: Array = (classes << _CLASS) | names
    return joined


def sum_confusion(units: Iterable[UnitCounts], protocol: ScanProtocol) -> Array:
    """Return how many points have which class in the truth (rows) and in the prediction (columns); the last is none."""
    classes = len(protocol.class_labels)
    own, labels, points = _list_cells(units)
    if ((own >= classes) | (labels >= LABELS_END)).any():
        raise ValueError("has counted a label that is refused")
    keys = own * (classes + 1) + _place_labels(protocol)[labels]
    table: Array = np.bincount(keys, points, (classes + 1) ** 2).astype(np.int64).reshape(classes + 1, -1)
    return table


def _list_cells(units: Iterable[UnitCounts]) -> Tuple[Array, Array, Array]:
    """Return true classes, predicted labels, and how many points have them."""
    cells = [np.zeros((2, 0), np.int64), *(counts.tables["cells"] for counts in units)]
    keys, points = np.concatenate(cells, axis=1)
    return keys >> _BITS, keys & _LABEL, points


class _ClassMeasures(NamedTuple):
    """What all points and segments give for each class, by its place."""

    #: Points by class in the truth (rows) and in the prediction (columns); the last is none.
    confusion: Array
    #: By class and column; empty where no segments are matched.
    segments: Array
    #: IoU, and of segments PQ, SQ and RQ, by name; 0 where there is nothing to divide by.
    by_name: Dict[str, Array]
    #: Whether means are over a class: those of the truth, all for the script; of motion the one that is reported.
    averaged: Array
    #: Whether it has a row: it is averaged, or truth or prediction has it.
    shown: Array


def measure_classes(accumulator: UnitAccumulator[ScanProtocol]) -> _ClassMeasures:
    """Sum what was counted in all scans."""
    protocol = accumulator.protocol
    table = sum_confusion(accumulator.complete_counts(), protocol)
    own, hits = table.sum(axis=1)[:-1], np.diagonal(table)[:-1]
    union = own + table.sum(axis=0)[:-1] - hits
    by_name, segments = {"IoU": hits / np.maximum(union, 1)}, np.zeros((0, 4))
    if protocol.panoptic:
        segments = accumulator.stack("segments").sum(axis=0)
        matched = segments[:, MATCHED]
        quality = segments[:, IOU] / np.maximum(matched, 1)
        share = matched / np.maximum(matched + (segments[:, SURPLUS] + segments[:, MISSED]) / 2, 0.5)
        by_name.update(zip(QUALITIES, (quality * share, quality, share)))
    averaged = own > 0
    if protocol.reported >= 0:
        averaged &= np.arange(len(own)) == protocol.reported
    elif protocol.as_script:
        averaged[:] = averaged.any()
    return _ClassMeasures(table, segments, by_name, averaged, averaged | (union > 0))


def _average(values_of_classes: Array, members: Array) -> Optional[float]:
    return float(values_of_classes[members].mean()) if members.any() else None


def _values(accumulator: UnitAccumulator[ScanProtocol]) -> Values:
    """Return the benchmark's metrics of all scans; None where the truth has no class of those that are averaged."""
    protocol, (table, _, by_name, averaged, _) = accumulator.protocol, measure_classes(accumulator)
    if protocol.reported >= 0:
        return {protocol.metrics[0]: _average(by_name["IoU"], averaged)}
    metrics: Values = {"mIoU": _average(by_name["IoU"], averaged)}
    if protocol.panoptic:
        things = np.arange(len(averaged)) < protocol.things
        for group, members in zip(GROUPS, (averaged, averaged & things, averaged & ~things)):
            metrics.update({f"{quality}{group}": _average(by_name[quality], members) for quality in QUALITIES})
        metrics["PQ_dagger"] = _average(np.where(things, by_name["PQ"], by_name["IoU"]), averaged)
    else:
        answered = (table[:, :-1] if protocol.as_script else table).sum()
        metrics["mIoU-official"] = _average(by_name["IoU"], np.full(len(averaged), averaged.any()))
        metrics["Acc"] = float(np.trace(table) / max(answered, 1)) if averaged.any() else None
    return {metric: metrics[metric] for metric in protocol.metrics}


def _tables(accumulator: UnitAccumulator[ScanProtocol]) -> Dict[str, List[Dict[str, Any]]]:
    """Return a row for each class that is averaged, or that truth or prediction has; without values if neither is."""
    names, measures = accumulator.protocol.class_names, measure_classes(accumulator)
    has_value = measures.averaged | (measures.confusion.sum(axis=1)[:-1] > 0)
    rows = []
    for index in np.flatnonzero(measures.shown).tolist():
        row: Dict[str, Any] = {"id": index + 1, "name": names[index]}
        for metric in (*QUALITIES, "IoU") if len(measures.segments) else ("IoU",):
            row[metric] = float(measures.by_name[metric][index]) if has_value[index] else None
        if len(measures.segments):
            counted = measures.segments[index].astype(int).tolist()
            row.update(matched=counted[MATCHED], surplus=counted[SURPLUS], missed=counted[MISSED])
        rows.append(row)
    return {"categories": rows}


def _shapes(protocol: ScanProtocol, _facts: Dict[str, Any]) -> Shapes:
    """Return the shapes of what is counted in a scan."""
    cells: Shapes = {"cells": (2, "n")}
    return {**cells, "segments": (len(protocol.class_labels), 4)} if protocol.panoptic else cells


def _oddities(accumulator: UnitAccumulator[ScanProtocol]) -> List[str]:
    """Return what is odd about the labels of all scans, and about their segments."""
    protocol = accumulator.protocol
    _, labels, points = _list_cells(accumulator.complete_counts())
    unknown = (_place_labels(protocol)[labels] == len(protocol.class_labels)) & ~np.isin(labels, protocol.unscored)
    notes = []
    if unknown.any():
        examples = name_list([str(label) for label in np.unique(labels[unknown]).tolist()])
        share = f"{100 * points[unknown].sum() / points.sum():.3g} % of the points that count"
        notes.append(f"{share} have labels that are no classes ({examples}), and are missed. {REMEDY}")
    if protocol.panoptic:
        counts = accumulator.stack("segments").sum(axis=(0, 1))
        matched, surplus, missed = (int(counts[column]) for column in (MATCHED, SURPLUS, MISSED))
        notes += judge_matches("segment", matched + missed, matched + surplus, matched)
    return notes


ENGINE = unit_engine(read_truth, ScanSubmission, _count, _values, _tables, _shapes, _oddities, facts={})
