"""The causes of scans' losses: of PQ by the segments of the costliest scans, of IoU by the classes of all."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import numpy as np

from segjudge.evaluation_script.families.base.family import ScoringRules
from segjudge.evaluation_script.families.base.units import UnitAccumulator, UnitTruth
from segjudge.evaluation_script.families.scans.engine import confuse_units
from segjudge.evaluation_script.families.scans.files import ScanSubmission
from segjudge.evaluation_script.files.problems import Problems, quantity
from segjudge.evaluation_script.masks.backend import backend
from segjudge.evaluation_script.masks.overlaps import sum_by_key
from segjudge.evaluation_script.masks.stack import Array
from segjudge.families.base.causes import CauseCounts
from segjudge.families.base.pictures import SeenFrame, Side
from segjudge.families.base.segments import JudgedSegments, judge_classes, judge_segments

#: The maximum number of examined scans, the costliest first.
_MOST_SCANS = 40
#: The lower bits of a label hold its class, the bits above them a number.
_BITS, _LABEL = 16, 0xFFFF


def describe_causes(results: str, truth: UnitTruth, rules: ScoringRules, order: list[int]) -> str:
    """Describe the causes that affect most segments in the first scans of an order."""
    protocol: Any = rules.protocol
    counts = CauseCounts("segment", "scan", "points", edge_weight=2.0, one_to_one=True, averages_shares=True)
    names = tuple(protocol.class_names)
    chosen = order[:_MOST_SCANS]
    with closing(ScanSubmission(results, truth, protocol, rules.limits)) as submission:
        for index in chosen:
            unit = truth.units[index]
            (frame,) = unit.load()
            values = submission.read(unit.name, frame.size[1], Problems())
            if values is None:
                continue
            pixels = frame.read()
            true, predicted, points = backend().pair_values(pixels.numbers, values)
            seen = see_segments(pixels.labels_of(true), predicted, points, protocol)
            areas, classes = (seen.truth.areas, seen.prediction.areas), (seen.truth.classes, seen.prediction.classes)
            counts.add(unit.name, seen, judge_segments(seen.shared, areas, classes), names)
    scope = f"In the {quantity(len(chosen), 'scan')} that cost most, " if len(chosen) < len(truth.units) else ""
    return counts.describe(scope)


def describe_classes(accumulator: UnitAccumulator[Any]) -> str:
    """Describe the causes that affect most classes; each class is one region per scan."""
    protocol, names = accumulator.protocol, tuple(accumulator.protocol.class_names)
    counts = CauseCounts("region", "scan", "points", averages_shares=True)
    tables = np.zeros((len(accumulator.names), len(names), len(names) + 1), np.int64)
    for numbers, confusions in confuse_units(accumulator.cells(), protocol):
        tables[numbers] = confusions[:, :-1]
    for name, table in zip(accumulator.names, tables, strict=True):
        seen, judged = _judge_table(table, protocol)
        counts.add(name, seen, judged, names)
    return counts.describe()


def see_segments(true: Array, predicted: Array, points: Array, protocol: Any) -> SeenFrame:
    """Return the segments of pairs of values, without points whose class is not scored, and small segments."""
    count = len(protocol.class_labels)
    scored = place_classes(true, protocol) < count
    true, predicted, points = true[scored], predicted[scored], points[scored]
    sides, columns = [], []
    for values in (true, predicted):
        names = name_points(values, protocol)
        keys, areas = sum_by_key(names, points)
        large = (areas >= protocol.fewest_points) & (keys >> _BITS < count)
        keys, areas, kinds = keys[large], areas[large], (keys >> _BITS)[large]
        called = [protocol.class_names[kind] for kind in kinds.tolist()]
        sides.append(Side(keys.tolist(), called, areas, kinds, kinds < protocol.things))
        columns.append(find_names(names, keys))
    shared = np.zeros((len(sides[0].keys), len(sides[1].keys)))
    both = (columns[0] >= 0) & (columns[1] >= 0)
    np.add.at(shared, (columns[0][both], columns[1][both]), points[both])
    return SeenFrame(sides[0], sides[1], shared, np.zeros(len(sides[1].keys), bool), None)


def see_classes(true: Array, predicted: Array, points: Array, protocol: Any) -> SeenFrame:
    """Return the classes of pairs of values as regions, without points whose class is not scored."""
    count = len(protocol.class_labels)
    rows, columns = place_classes(true, protocol), place_classes(predicted, protocol)
    table = np.zeros((count + 1, count + 1))
    np.add.at(table, (rows, columns), points)
    seen, judged = _judge_table(table[:count], protocol)
    return seen._replace(judged=judged)


def _judge_table(table: Array, protocol: Any) -> tuple[SeenFrame, JudgedSegments]:
    """Judge the regions in a table of points by true class (rows) and predicted class (columns); the last is none."""
    areas = table.sum(axis=1), table.sum(axis=0)[:-1]
    classes = np.flatnonzero(areas[0]), np.flatnonzero(areas[1])
    names, shared = protocol.class_names, table[np.ix_(*classes)]
    truth, prediction = (
        Side(kinds.tolist(), [names[kind] for kind in kinds.tolist()], area[kinds], kinds, np.zeros(len(kinds), bool))
        for kinds, area in zip(classes, areas, strict=True)
    )
    seen = SeenFrame(truth, prediction, shared, np.zeros(len(classes[1]), bool), None)
    return seen, judge_classes(shared, (truth.areas, prediction.areas), classes)


def name_points(values: Array, protocol: Any) -> Array:
    """Return the name of each point's segment: its class above, and for things the number in the lower bits."""
    classes = place_classes(values, protocol)
    names: Array = (classes << _BITS) | np.where(classes < protocol.things, values >> _BITS, 0)
    return names.astype(np.int64)


def find_names(names: Array, keys: Array) -> Array:
    """Return the index of each name in sorted keys; -1 if it is missing."""
    places: Array = np.minimum(np.searchsorted(keys, names), max(len(keys) - 1, 0))
    return np.where(keys[places] == names, places, -1) if len(keys) else np.full(len(names), -1)


def place_classes(values: Array, protocol: Any) -> Array:
    """Return the index of each point's class; the number of classes for none."""
    count = len(protocol.class_labels)
    places = np.full(_LABEL + 1, count)
    for index, labels in enumerate(protocol.class_labels):
        places[labels] = index
    indices: Array = places[values & _LABEL]
    return indices
