"""How scans are scored: IoU from one confusion of all points, PQ from the segments of each scan."""

from __future__ import annotations

from typing import Any, Dict, List, NamedTuple, Optional

import numpy as np

from ...files.problems import name_list
from ...masks.stack import Array
from ..base.family import Values
from ..base.reports import judge_matches
from ..base.units import Shapes, UnitAccumulator, unit_engine
from .counting import IOU, MATCHED, MISSED, SURPLUS, count, list_cells, place_labels, sum_confusion
from .files import REMEDY, ScanSubmission, read_truth
from .protocols import GROUPS, QUALITIES, ScanProtocol


class _ClassMeasures(NamedTuple):
    """What all points and segments give for each class, by its place."""

    #: Points by class in the truth (rows) and in the prediction (columns); the last is none.
    confusion: Array
    #: By class and column of `counting`; empty where no segments are matched.
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
    _, labels, points = list_cells(accumulator.complete_counts())
    unknown = (place_labels(protocol)[labels] == len(protocol.class_labels)) & ~np.isin(labels, protocol.unscored)
    notes = []
    if unknown.any():
        examples = name_list([str(label) for label in np.unique(labels[unknown]).tolist()])
        share = f"{100 * points[unknown].sum() / points.sum():.2g} % of the points that count"
        notes.append(f"{share} have labels that are no classes ({examples}), and are missed. {REMEDY}")
    if protocol.panoptic:
        counts = accumulator.stack("segments").sum(axis=(0, 1))
        matched, surplus, missed = (int(counts[column]) for column in (MATCHED, SURPLUS, MISSED))
        notes += judge_matches("segment", matched + missed, matched + surplus, matched)
    return notes


ENGINE = unit_engine(read_truth, ScanSubmission, count, _values, _tables, _shapes, _oddities, facts={})
