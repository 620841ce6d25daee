"""The scoring of scans: IoU from one confusion matrix of all points, PQ from the segments of each scan.

A scan's counts are its points by true and predicted label, and the number and IoU of its matched segments.
"""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Any, Dict, Iterable, Iterator, List, NamedTuple, Optional, Tuple

import numpy as np

from ...doctor import Examination, Sample, fit_classes
from ...files.problems import Problems, name_list
from ...masks.backend import backend
from ...masks.overlaps import LABEL_BITS, LABEL_MASK, LabelMap, SegmentRules, sum_by_key, tabulate
from ...masks.stack import Array
from ...values.arithmetic import mean
from ..base.family import Values
from ..base.unit_counts import CellBatch
from ..base.units import Shapes, Unit, UnitAccumulator, UnitCounts, score_samples, unit_engine
from .files import REMEDY, ScanSubmission, read_truth
from .protocols import GROUPS, LABELS_END, QUALITIES, ScanProtocol

#: The columns of counted segments of a class.
IOU, MATCHED, SURPLUS, MISSED = range(4)
#: The bits by which a segment's class is shifted above the 32 bits of a point.
_CLASS = 2 * LABEL_BITS
_HALF = 0.5


@lru_cache(maxsize=None)
def _index_classes(protocol: ScanProtocol) -> Array:
    """Return the index of each label's class; the number of classes for other labels."""
    class_indices = np.full(LABELS_END, len(protocol.class_labels))
    for index, labels in enumerate(protocol.class_labels):
        class_indices[labels] = index
    return class_indices


def _count(unit: Unit, submission: ScanSubmission) -> UnitCounts:
    """Count a scan."""
    problems, (frame,) = Problems(), unit.load()
    values = submission.read(unit.name, frame.size[1], problems)
    tables = {} if values is None else count_scan(frame.read(), values, submission.protocol)
    return UnitCounts(unit.name, tables, problems.first, problems.count)


def count_scan(truth: LabelMap, values: Array, protocol: ScanProtocol) -> Dict[str, Array]:
    """Return the tables of a scan from the true and predicted values of its points, whose labels are checked."""
    class_indices, rules = _index_classes(protocol), _describe_segments(protocol)
    if not protocol.panoptic:
        numbers, classes = _find_classes(truth, rules)
        cells = backend().count_points(numbers, values, classes, (rules.count_of_classes, LABELS_END))
        if cells is None:
            raise ValueError("has a label that is rejected")
        return {"cells": cells}
    kernel = backend().kernel
    tables = None if kernel is None else kernel.match_segments(truth.numbers, truth.labels, values, rules)
    if tables is not None:
        return {"cells": tables[0], "segments": _join_counts(*tables[1:])}
    true, predicted, points = backend().pair_values(truth.numbers, values)
    true = truth.labels_of(true)
    true_labels = class_indices[true & LABEL_MASK]
    scored = true_labels < len(protocol.class_labels)
    true_labels, true, predicted, points = true_labels[scored], true[scored], predicted[scored], points[scored]
    return {
        "cells": np.stack(sum_by_key((true_labels << LABEL_BITS) | (predicted & LABEL_MASK), points)),
        "segments": _match_segments(
            (true, predicted), (true_labels, class_indices[predicted & LABEL_MASK]), points, protocol
        ),
    }


def _find_classes(truth: LabelMap, rules: SegmentRules) -> Tuple[Array, Array]:
    """Return the numbers of a scan's points, and the class of each number or of its lower bits."""
    if truth.labels is None:
        return truth.numbers, rules.classes
    classes = rules.classes[truth.labels & LABEL_MASK]
    if len(classes) <= LABEL_MASK:
        return truth.numbers, classes
    return classes[truth.numbers].astype(np.uint32), np.arange(rules.count_of_classes + 1, dtype=np.uint16)


@lru_cache(maxsize=None)
def _describe_segments(protocol: ScanProtocol) -> SegmentRules:
    """Return a protocol's rules as the kernel reads them."""
    classes = _index_classes(protocol).astype(np.uint16)
    count = len(protocol.class_labels)
    return SegmentRules(classes, count, protocol.things, protocol.fewest_points, protocol.as_script)


def _join_counts(matches: Array, unmatched: Array) -> Array:
    """Return the table of `_match_segments` from matches, by class, shared and joint points, and from the others."""
    (missed, surplus), (classes, shared, joint) = unmatched, matches.T
    count_of_classes = len(missed)
    table = np.zeros((count_of_classes, 4))
    table[:, IOU] = np.bincount(classes, shared / joint, count_of_classes)
    table[:, MATCHED] = np.bincount(classes, minlength=count_of_classes)
    table[:, SURPLUS], table[:, MISSED] = surplus, missed
    return table


def _match_segments(
    values: Tuple[Array, Array], classes: Tuple[Array, Array], points: Array, protocol: ScanProtocol
) -> Array:
    """Return per class (rows) the sum of IoU of matching segments, and the numbers matched, surplus and missed."""
    count_of_classes = len(protocol.class_labels)
    answered: Array = classes[1] < count_of_classes
    shared = answered & (classes[0] == classes[1])
    segments, areas, indices = [], [], []
    for side, side_classes, visible in zip(values, classes, (np.ones_like(answered), answered)):
        names = _name_segments(side, side_classes, protocol)
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
    """Return a segment number for each value, with its class in the bits above."""
    names = values if protocol.as_script else np.where(classes < protocol.things, values >> LABEL_BITS, 0)
    joined: Array = (classes << _CLASS) | names
    return joined


def _sum_labels(accumulator: UnitAccumulator[ScanProtocol]) -> Array:
    """Return the points by true class (rows) and predicted label (columns)."""
    shape = len(accumulator.protocol.class_labels), LABELS_END
    return accumulator.add_up_cells(_split_keys, shape)


def _split_keys(keys: Array) -> Tuple[Array, Array]:
    """Return the true classes and predicted labels of cells."""
    return keys >> LABEL_BITS, keys & LABEL_MASK


def find_classes(keys: Array, protocol: ScanProtocol) -> Tuple[Array, Array]:
    """Return the true and predicted classes of cells; the number of classes for labels that are none."""
    classes, labels = _split_keys(keys)
    return classes, _index_classes(protocol)[labels]


def _list_cells(accumulator: UnitAccumulator[ScanProtocol]) -> Tuple[Array, Array, Array]:
    """Return true classes, predicted labels, and the number of points with each pair."""
    table = _sum_labels(accumulator)
    classes, labels = np.nonzero(table)
    return classes, labels, table[classes, labels]


def sum_confusion(accumulator: UnitAccumulator[ScanProtocol]) -> Array:
    """Return the confusion matrix of points: true classes (rows), predicted ones (columns), none last."""
    end = len(accumulator.protocol.class_labels) + 1
    classes, labels, points = _list_cells(accumulator)
    return tabulate(classes, _index_classes(accumulator.protocol)[labels], points, (end, end))


def confuse_units(batches: Iterable[CellBatch], protocol: ScanProtocol) -> Iterator[Tuple[Array, Array]]:
    """Yield the numbers of some scans at a time, and their matrices."""
    end = len(protocol.class_labels) + 1
    for batch in batches:
        true, predicted = find_classes(batch.keys, protocol)
        tables = tabulate(batch.rows() * end + true, predicted, batch.sums, (len(batch.numbers) * end, end))
        yield batch.numbers, tables.reshape(-1, end, end)


class _ClassMeasures(NamedTuple):
    """The measures of each class over all points and segments, by class index."""

    #: Points by class in the truth (rows) and in the prediction (columns); the last row and column are for no class.
    confusion: Array
    #: By class and column; empty unless segments are matched.
    segments: Array
    #: IoU, and for segments PQ, SQ and RQ, by name; 0 for empty denominators.
    by_name: Dict[str, Array]
    #: Whether means include a class: all classes for the script, else the truth's classes; for motion, the reported
    #: one.
    averaged: Array
    #: Whether a class has a row in tables: means include it, or truth or prediction contains it.
    shown: Array


def measure_classes(accumulator: UnitAccumulator[ScanProtocol], confusion: Optional[Array] = None) -> _ClassMeasures:
    """Return the sums of all scans' counts; `confusion` is that of all points, if known."""
    protocol = accumulator.protocol
    table = sum_confusion(accumulator) if confusion is None else confusion
    true_points, hits = table.sum(axis=1)[:-1], np.diagonal(table)[:-1]
    union = true_points + table.sum(axis=0)[:-1] - hits
    by_name, segments = {"IoU": hits / np.maximum(union, 1)}, np.zeros((0, 4))
    if protocol.panoptic:
        segments = accumulator.stack("segments").sum(axis=0)
        matched = segments[:, MATCHED]
        quality = segments[:, IOU] / np.maximum(matched, 1)
        share = matched / np.maximum(matched + (segments[:, SURPLUS] + segments[:, MISSED]) / 2, 0.5)
        by_name.update(zip(QUALITIES, (quality * share, quality, share)))
    averaged = true_points > 0
    if protocol.reported >= 0:
        averaged &= np.arange(len(true_points)) == protocol.reported
    elif protocol.as_script:
        averaged[:] = averaged.any()
    return _ClassMeasures(table, segments, by_name, averaged, averaged | (union > 0))


def _average(values_of_classes: Array, members: Array) -> Optional[float]:
    return mean(values_of_classes[members]) if members.any() else None


def _compute_metrics(accumulator: UnitAccumulator[ScanProtocol]) -> Values:
    """Return the benchmark's metrics of all scans; None if the truth has none of the averaged classes."""
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
    """Return a row per class that is averaged or occurs; without values if neither side has it."""
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
    """Return the shapes of a scan's tables."""
    cells: Shapes = {"cells": (2, "n")}
    return {**cells, "segments": (len(protocol.class_labels), 4)} if protocol.panoptic else cells


def _note_unknown(accumulator: UnitAccumulator[ScanProtocol]) -> List[str]:
    """Return a note about points with labels that are not classes."""
    protocol = accumulator.protocol
    _, labels, points = _list_cells(accumulator)
    unknown = (_index_classes(protocol)[labels] == len(protocol.class_labels)) & ~np.isin(labels, protocol.unscored)
    if not unknown.any():
        return []
    examples = name_list([str(label) for label in np.unique(labels[unknown]).tolist()])
    share = f"{100 * points[unknown].sum() / points.sum():.3g} % of the scored points"
    return [f"{share} have labels that are not classes ({examples}) and count as missed. {REMEDY}"]


def _examine(submission: ScanSubmission) -> Examination:
    """Return a submission as the doctor examines it: true labels, and all 32 bits of predicted points."""
    units, protocol = submission.truth.units, submission.protocol
    ids = np.array([*(labels[0] for labels in protocol.class_labels), -1])
    classes = ids[_index_classes(protocol)]

    def sample(number: int) -> List[Sample]:
        unit, (frame,) = units[number], units[number].load()
        truth, values = frame.read(), submission.read(unit.name, frame.size[1], Problems())
        if values is None:
            return []
        true_labels = truth.labels_of(truth.numbers).astype(np.int64) & LABEL_MASK
        prediction = values.astype(np.int64).reshape(true_labels.shape)
        labels = prediction & LABEL_MASK
        prediction += np.where(classes[labels] < 0, labels, classes[labels]) - labels  # one label of each class
        return [Sample(number, unit.name, [classes[true_labels]], [prediction], origin=[truth])]

    def tabulate(sample: Sample) -> Dict[str, Array]:
        values = sample.prediction[0].reshape(-1)
        values = np.where(values & LABEL_MASK < LABELS_END, values, 0).astype(np.uint32)
        return count_scan(sample.origin[0], values, protocol)

    return Examination(
        submission.truth.item_names, sample, frozenset({"filled", "units", "labels", "halves"}), "scan", "scans",
        fit=fit_classes, rescore=partial(score_samples, protocol, {}, _compute_metrics, tabulate),
        metric=protocol.metrics[0], agreement="the mean IoU of classes",
        classes=tuple(ids[:-1].tolist()), label_bits=LABEL_BITS,
    )  # fmt: skip


ENGINE = unit_engine(
    read_truth,
    ScanSubmission,
    _count,
    _compute_metrics,
    _tables,
    _shapes,
    facts={},
    examine=_examine,
    notes=_note_unknown,
)
