"""Suspicions about volumes that look written along other axes, or with other labels."""

from __future__ import annotations

from typing import Any, Callable, List, Sequence

import numpy as np

from ...masks.stack import Array
from ..base.suspicions import Reading, ReadingScores, judge_readings, score_readings
from ..base.units import UnitAccumulator
from .boxes import Boxes, cover
from .protocols import VolumeProtocol

_METRIC = "Dice over all labels"
_AXES = "Write the axes in the order and direction in which the image was read"
_LABELS = "Write the labels of the truth"
#: No right volume matches so much better when it is turned.
_LEAST = 0.5


def _make_reading(name: str, slip: str, remedy: str, change: Callable[[Array], Array]) -> Reading:
    return Reading(name, slip, remedy, "case", lambda _: change, _LEAST)


def _lower(labels: Array) -> Array:
    return np.maximum(labels.astype(np.int64) - 1, 0)


def _raise(labels: Array) -> Array:
    return np.where(labels > 0, labels.astype(np.int64) + 1, 0)


#: Changes take the whole volume (z, y, x), and give a view, or one of its planes.
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


def look_at_case(truth: Array, prediction: Array, sides: Sequence[Boxes], overlaps: Array) -> ReadingScores:
    """Return the scores by other readings of a case; empty unless regions (true, predicted, both) hardly overlap."""
    voxels = [int(side.voxels[1:].sum()) for side in sides]
    *areas, shared_areas = overlaps.sum(axis=0).tolist()
    if not all(voxels) or 2 * shared_areas * Reading.times >= sum(areas):
        return {}
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
    return score_readings(dice, READINGS, score)


def suspect(accumulator: UnitAccumulator[VolumeProtocol]) -> List[str]:
    """Return suspicions about all cases together."""
    units = accumulator.complete_counts()
    voxels = np.concatenate([unit.tables["voxels"] for unit in units]).sum(axis=0).tolist()
    if not voxels[0]:
        return []
    if not voxels[1]:
        return ["no case has a predicted voxel: check the labels"]
    explained = judge_readings([unit.reading_scores for unit in units], len(units), READINGS, _METRIC)
    if explained or voxels[2]:
        return explained
    return ["no predicted voxel has the label of the truth: check the labels, and which case each volume belongs to"]
