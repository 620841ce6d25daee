"""The causes of scans' losses: of PQ by the segments of the costliest scans, of IoU by the classes of all."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import numpy as np

from segjudge.evaluation_script.families.base.family import ScoringRules
from segjudge.evaluation_script.families.base.units import UnitAccumulator, UnitTruth
from segjudge.evaluation_script.families.scans.engine import sum_confusion
from segjudge.evaluation_script.families.scans.files import ScanSubmission
from segjudge.evaluation_script.files.problems import Problems, quantity
from segjudge.evaluation_script.masks.backend import backend
from segjudge.evaluation_script.masks.overlaps import sum_by_key
from segjudge.evaluation_script.masks.stack import Array
from segjudge.families.base.causes import CauseCounts
from segjudge.families.base.pictures import SeenFrame, Side
from segjudge.families.base.segments import judge_classes, judge_segments

#: So many scans are looked at, those that cost most.
_MOST_SCANS = 40
#: A label has a class in its lower bits, and a number above them.
_BITS, _LABEL = 16, 0xFFFF


def describe_causes(results: str, truth: UnitTruth, rules: ScoringRules, order: list[int]) -> str:
    """Describe the causes that cost most segments in the first scans of an order."""
    protocol: Any = rules.protocol
    counts, names = CauseCounts("segment", "scan"), tuple(protocol.class_names)
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
            seen = _see(pixels.labels_of(true), predicted, points, protocol)
            areas, classes = (seen.truth.areas, seen.prediction.areas), (seen.truth.classes, seen.prediction.classes)
            counts.add(unit.name, seen, judge_segments(seen.shared, areas, classes), names)
    scope = f"In the {quantity(len(chosen), 'scan')} that cost most, " if len(chosen) < len(truth.units) else ""
    return counts.describe(scope)


def describe_classes(accumulator: UnitAccumulator[Any]) -> str:
    """Describe the causes that cost most classes of scans, each of which has a region per scan."""
    protocol, names = accumulator.protocol, tuple(accumulator.protocol.class_names)
    counts = CauseCounts("region", "scan", "points")
    for unit in accumulator.complete_counts():
        table = sum_confusion([unit], protocol)
        predicted = table.sum(axis=0)
        sides = np.flatnonzero(table.sum(axis=1)[:-1]), np.flatnonzero(predicted[:-1])
        shared, areas = table[np.ix_(*sides)], (table.sum(axis=1)[sides[0]], predicted[sides[1]])
        truth, prediction = (
            Side(side.tolist(), [names[kind] for kind in side.tolist()], area, side, np.zeros(len(side), bool))
            for side, area in zip(sides, areas, strict=True)
        )
        seen = SeenFrame(truth, prediction, shared, np.zeros(len(sides[1]), bool), None)
        counts.add(unit.name, seen, judge_classes(shared, areas, sides), names)
    return counts.describe()


def _see(true: Array, predicted: Array, points: Array, protocol: Any) -> SeenFrame:
    """Return the segments of pairs of values, without points whose class is not scored, and small segments."""
    count = len(protocol.class_labels)
    places = np.full(_LABEL + 1, count)
    for index, labels in enumerate(protocol.class_labels):
        places[labels] = index
    scored = places[true & _LABEL] < count
    true, predicted, points = true[scored], predicted[scored], points[scored]
    sides, columns = [], []
    for values in (true, predicted):
        classes = places[values & _LABEL]
        names = (classes << _BITS) | np.where(classes < protocol.things, values >> _BITS, 0)
        keys, areas = sum_by_key(names.astype(np.int64), points)
        large = (areas >= protocol.fewest_points) & (keys >> _BITS < count)
        keys, areas, kinds = keys[large], areas[large], (keys >> _BITS)[large]
        called = [protocol.class_names[kind] for kind in kinds.tolist()]
        sides.append(Side(keys.tolist(), called, areas, kinds, kinds < protocol.things))
        places_of_names = np.searchsorted(keys, names)
        places_of_names[places_of_names == len(keys)] = 0
        columns.append((places_of_names, keys[places_of_names] == names if len(keys) else np.zeros(len(names), bool)))
    shared = np.zeros((len(sides[0].keys), len(sides[1].keys)))
    both = columns[0][1] & columns[1][1]
    np.add.at(shared, (columns[0][0][both], columns[1][0][both]), points[both])
    return SeenFrame(sides[0], sides[1], shared, np.zeros(len(sides[1].keys), bool), None)
