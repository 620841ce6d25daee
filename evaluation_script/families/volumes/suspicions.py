"""Suspicions about volumes that look written along other axes, or with other labels."""

from __future__ import annotations

import re
from itertools import combinations
from typing import Any, Callable, List, Match, Pattern, Sequence, Set

import numpy as np

from ...masks.stack import Array
from ..base.suspicions import Reading, ReadingScores, judge_readings, score_readings
from ..base.units import UnitAccumulator
from .boxes import Boxes, cover
from .protocols import VolumeProtocol

_METRIC, _METRIC_OF_PAIRS, _METRIC_OF_LABEL = "Dice over all labels", "Dice of both", "its Dice"
_AXES = "Write the axes in the order and direction in which the image was read"
_LABELS = "Write the labels of the truth"
#: The minimum score of a turned reading; a correct volume never reaches it when turned.
_LEAST = 0.5


def _make_reading(
    name: str, slip: str, remedy: str, change: Callable[[Array], Array] = np.asarray, metric: str = ""
) -> Reading:
    return Reading(name, slip, remedy, "case", lambda _: change, _LEAST, metric=metric)


def _lower(labels: Array) -> Array:
    return np.maximum(labels.astype(np.int64) - 1, 0)


def _raise(labels: Array) -> Array:
    return np.where(labels > 0, labels.astype(np.int64) + 1, 0)


#: Changes of the whole volume (z, y, x), which give a view or one of its planes.
_TURNED = [
    _make_reading("x", "volumes look mirrored along x", _AXES, lambda volume: volume[:, :, ::-1]),
    _make_reading("y", "volumes look mirrored along y", _AXES, lambda volume: volume[:, ::-1]),
    _make_reading("z", "volumes look mirrored along z", _AXES, lambda volume: volume[::-1]),
    _make_reading("xy", "volumes look mirrored along x and y", _AXES, lambda volume: volume[:, ::-1, ::-1]),
    _make_reading("yx", "x and y look exchanged", _AXES, lambda volume: volume.transpose(0, 2, 1)),
    _make_reading("zx", "x and z look exchanged", _AXES, lambda volume: volume.transpose(2, 1, 0)),
]
_RELABELLED = [
    _make_reading("lower", "labels look 1 too high", _LABELS, _lower),
    _make_reading("higher", "labels look 1 too low", _LABELS, _raise),
]
READINGS = [*_TURNED, *_RELABELLED]
#: The names of the readings that exchange two labels, and that read a false label as a missing one.
_PAIR, _RENAMED = re.compile(r"(\d+)=(\d+)"), re.compile(r"(\d+)>(\d+)")
#: The maximum number of labels of both sides that are compared for exchanged pairs.
_MOST_LABELS = 200


def look_at_case(
    truth: Array, prediction: Array, sides: Sequence[Boxes], overlaps: Array, *, has_regions: bool
) -> ReadingScores:
    """Return the scores by other readings of a case; empty unless regions (true, predicted, both) hardly overlap.

    Where a protocol has regions, no label can be renamed.
    """
    voxels = [int(side.voxels[1:].sum()) for side in sides]
    if not all(voxels):
        return {}
    hardly_overlap = 2 * overlaps[:, 2] * Reading.times < overlaps[:, 0] + overlaps[:, 1]
    exchanged = (
        _exchange_labels(truth, prediction, sides) if (hardly_overlap & overlaps[:, :2].all(axis=1)).any() else {}
    )
    if not has_regions:
        exchanged.update(_rename_labels(truth, prediction, sides))
    *areas, shared_areas = overlaps.sum(axis=0).tolist()
    if 2 * shared_areas * Reading.times >= sum(areas):
        return exchanged
    box = cover(sides[0].box_of(label) for label in sides[0].labels if label)

    def count_shared(volume: Array, change: Callable[[Array], Array]) -> int:
        shared = 0
        for true, predicted in zip(truth[box], volume[box]):
            inside = true != 0
            shared += int(np.count_nonzero(change(predicted[inside]) == true[inside]))
        return shared

    def score(reading: Reading) -> Any:
        change: Callable[[Array], Array] = reading.open(prediction)
        if reading in _RELABELLED:
            kept_voxels = voxels[1] - (int(sides[1].voxels[1]) if change is _lower else 0)
            return 2 * count_shared(prediction, change) / (voxels[0] + kept_voxels)
        turned = change(prediction)
        has_shape = turned.shape == truth.shape
        return 2 * count_shared(turned, np.asarray) / sum(voxels) if has_shape else None

    dice = 2 * count_shared(prediction, np.asarray) / sum(voxels)
    return {**score_readings(dice, READINGS, score), **exchanged}


def _exchange_labels(truth: Array, prediction: Array, sides: Sequence[Boxes]) -> ReadingScores:
    """Return the Dice of two labels together, as predicted and exchanged, for pairs that each cover the other best."""
    labels = sorted(sides[0].labels & sides[1].labels)
    if len(labels) > _MOST_LABELS:
        return {}
    shared = {label: _count_labels(truth, prediction, sides, label) for label in labels}
    scores: ReadingScores = {}
    for pair in combinations(labels, 2):
        low, high = pair
        if shared[low].argmax() == high and shared[high].argmax() == low:
            total = sum(int(side.voxels[list(pair)].sum()) for side in sides)
            before, after = shared[low][low] + shared[high][high], shared[low][high] + shared[high][low]
            scores[f"{low}={high}"] = float(2 * before / total), float(2 * after / total)
    return scores


def _rename_labels(truth: Array, prediction: Array, sides: Sequence[Boxes]) -> ReadingScores:
    """Return the Dice of each label that the prediction lacks, as predicted and if it is the false label there."""
    missing, false = sorted(sides[0].labels - sides[1].labels), sides[1].labels - sides[0].labels
    scores: ReadingScores = {}
    for label in missing if false and len(missing) <= _MOST_LABELS else ():
        shared = _count_labels(truth, prediction, sides, label)
        best = int(shared.argmax())
        if best in false:
            scores[f"{best}>{label}"] = 0.0, float(2 * shared[best] / (sides[0].voxels[label] + sides[1].voxels[best]))
    return scores


def _count_labels(truth: Array, prediction: Array, sides: Sequence[Boxes], label: int) -> Array:
    """Return how many voxels of a true label have each predicted label; background counts 0."""
    box, counts = sides[0].box_of(label), np.zeros(len(sides[1].voxels), np.int64)
    for true, predicted in zip(truth[box], prediction[box]):
        numbers = np.bincount(predicted[true == label])
        counts[: len(numbers)] += numbers
    counts[0] = 0
    return counts


def suspect(accumulator: UnitAccumulator[VolumeProtocol]) -> List[str]:
    """Return suspicions about all cases together."""
    units = accumulator.complete_counts()
    voxels = np.concatenate([unit.tables["voxels"] for unit in units]).sum(axis=0).tolist()
    if not voxels[0]:
        return []
    if not voxels[1]:
        return ["no case has a predicted voxel: check the labels"]
    scores = [unit.reading_scores for unit in units]
    readings = [*READINGS, *_list_exchanges(scores), *_list_renamed(scores, accumulator)]
    explained = judge_readings(scores, len(units), readings, _METRIC)
    if explained or voxels[2]:
        return explained
    return ["no predicted voxel has the label of the truth: check the labels, and which case each volume belongs to"]


def _match_names(pattern: Pattern[str], scores: List[ReadingScores]) -> List[Match[str]]:
    """Return the matches of a pattern with the names of readings of the cases."""
    matches = map(pattern.fullmatch, sorted({name for case in scores for name in case}))
    return [match for match in matches if match]


def _list_exchanges(scores: List[ReadingScores]) -> List[Reading]:
    """Return the readings that exchange two labels of the cases."""
    return [
        _make_reading(match[0], f"labels {match[1]} and {match[2]} look exchanged", _LABELS, metric=_METRIC_OF_PAIRS)
        for match in _match_names(_PAIR, scores)
    ]


def find_true_labels(accumulator: UnitAccumulator[VolumeProtocol]) -> Set[int]:
    """Return the labels that a truth has, of a protocol without regions."""
    tables = [unit.tables for unit in accumulator.complete_counts()]
    return {label for table in tables for label in table["labels"][table["voxels"][:, 0] > 0].tolist()}


def _list_renamed(scores: List[ReadingScores], accumulator: UnitAccumulator[VolumeProtocol]) -> List[Reading]:
    """Return the readings of labels that no truth has as missing ones."""
    if accumulator.protocol.regions:
        return []
    true = find_true_labels(accumulator)
    return [
        _make_reading(match[0], f"label {match[1]} looks like label {match[2]}", _LABELS, metric=_METRIC_OF_LABEL)
        for match in _match_names(_RENAMED, scores)
        if int(match[1]) not in true
    ]
