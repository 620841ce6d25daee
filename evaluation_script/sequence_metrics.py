"""The metrics of one object, from its counts in each frame."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Dict, FrozenSet, List, Optional, Tuple

import numpy as np

from .masks import Array
from .sequence_protocols import COMBINED, SequenceProtocol
from .similarity import Counts, Disk, Region, boundary_similarity, diagonal_tolerance, disk, reach, region_similarity

Values = Dict[str, Optional[float]]


@dataclass(frozen=True)
class ObjectScore:
    """The score of one object of one sequence."""

    sequence: str
    name: str
    values: Values
    #: Frame by frame: names, J and F of the frames that counted.
    frames: List[str]
    j: Array
    f: Array
    unseen: bool = False
    #: Which proposal was matched, in protocols that match.
    proposal: int = 0


#: A frame is recalled when its value is larger than this.
RECALLED = 0.5
#: Decay compares the first and the last of this many parts.
PARTS = 4
#: J_last begins after this share of the frames.
LATE = 0.75
#: MOSEv2's second F matches within this share of the root of the object's area.
NEAR = 0.1


def mean(values: Array) -> Optional[float]:
    """Return the mean of the values that are not NaN; None where there are none."""
    numbers = values[~np.isnan(values)]
    return float(np.add.reduce(numbers) / len(numbers)) if len(numbers) else None  # `.mean()` in a third of its time


def recall(values: Array) -> Optional[float]:
    """Return the share of frames above one half."""
    return float((values > RECALLED).mean()) if len(values) else None


def decay(values: Array) -> Optional[float]:
    """Return the mean of the first part minus the mean of the last; neighbouring parts share a frame.

    The official code keeps the edges in 8 bits and is wrong beyond 255 values; this is not.
    """
    if not len(values):
        return None
    early, late = _parts(len(values))
    first, last = mean(values[: early + 1]), mean(values[late:])
    return None if first is None or last is None else first - last


@lru_cache(maxsize=1024)
def _parts(count: int) -> Tuple[int, int]:
    """Return the last of the frames in the first part, and the first in the last one."""
    edges = np.round(np.linspace(1, count, PARTS + 1) + 1e-10).astype(int) - 1
    return int(edges[1]), int(edges[-2])


def consistency(values: Array) -> Optional[float]:
    """Return V of LVOS: the spread of J&F, its variance rounded to four decimals first."""
    if not len(values):
        return None
    # NumPy's rounding, which now and then differs from Python's in the last of the four.
    return math.sqrt(np.round(((values.mean() - values) ** 2).sum() / len(values), 4))


@lru_cache(maxsize=64)
def _wanted(metrics: Tuple[str, ...]) -> FrozenSet[str]:
    """Return the metrics that others are made of, and those that stand alone."""
    return frozenset(part for named in metrics for part in COMBINED.get(named, (named,)))


def summary(counts: Counts, j: Array, f: Array, protocol: SequenceProtocol) -> Values:
    """Return every per-object metric that the protocol names, except MOSEv2's, from J and F of the frames."""
    both = (j + f) / 2
    if protocol.salient:  # LVOS stores the first frame last here, and V is summed in that order
        both = np.roll(both, -1)
    series = {"J": j, "F": f, "J_last": j[math.floor(LATE * len(j)) :], "V": both}
    summaries = {"Mean": mean, "Recall": recall, "Decay": decay}
    values: Values = {}
    for metric in _wanted(protocol.metrics):
        name, _, kind = metric.rpartition("-")
        if name in series:
            values[metric] = (consistency if name == "V" else summaries[kind])(series[name])
    empty = not counts.truth.any()
    values["N-acc" if empty else "T-acc"] = float(empty != counts.prediction.any())
    values["T-acc" if empty else "N-acc"] = None
    return only_named(values, protocol)


def only_named(values: Values, protocol: SequenceProtocol) -> Values:
    """Return the protocol's metrics in its order, with the combined ones."""
    chosen: Values = {}
    for metric in protocol.metrics:
        if metric in COMBINED and set(COMBINED[metric]) <= values.keys():
            chosen[metric] = average([values[part] for part in COMBINED[metric]])
        elif metric in values:
            chosen[metric] = values[metric]
    return chosen


def average(values: List[Optional[float]]) -> Optional[float]:
    """Return the mean of the values that are not None; None where there are none."""
    numbers = [value for value in values if value is not None]
    return sum(numbers) / len(numbers) if numbers else None


def beside(counts: Counts, j: Array, f: Array) -> Values:
    """Return our own statistics, which absent objects do not raise; the same in every protocol."""
    visible = counts.truth > 0
    alarms = counts.prediction[~visible] > 0
    volume = counts.summed() if len(visible) else None
    return {
        "J-Volume": None if volume is None else float(region_similarity(volume)[0]),
        "F-Volume": None if volume is None else float(boundary_similarity(volume)[0]),
        "J-Visible": mean(j[visible]),
        "F-Visible": mean(f[visible]),
        "False-Alarm": float(alarms.mean()) if len(alarms) else None,
    }


def rewarded_similarity(counts: Counts) -> Array:
    """Return J as MOSEv2 defines it: one pixel is added to both sides of the fraction."""
    union = counts.union
    return np.where(union == 0, 1.0, (counts.shared + 1) / (union + 1))


def fractional_disk(radius: float) -> Disk:
    """Return the disk that scikit-image and OpenCV make of a radius that is not whole: a little off-centre."""
    grid = np.arange(-radius, radius + 1)
    centre = len(grid) // 2
    columns = []
    for column, x in enumerate(grid):
        rows = np.flatnonzero(x * x + grid * grid <= radius * radius)
        if len(rows):
            columns.append((column - centre, int(rows[0]) - centre, int(rows[-1]) - centre))
    # A disk without a point, as frames below 60 pixels have it, is one point to OpenCV: the kernel's first.
    return tuple(columns) or ((-centre, -centre, -centre),)


def strict_boundary(truth: Region, prediction: Region) -> Tuple[Array, Array]:
    """Return MOSEv2's second F, whose tolerance shrinks with the object, and its F, frame by frame."""
    size = truth.stack.size
    widest = diagonal_tolerance(size)
    f_values, new_values = [], []
    for frame, area in enumerate(truth.area.tolist()):
        radius = math.ceil(NEAR * math.sqrt(area)) if area else reach(size)
        truth_frame, prediction_frame = truth.frame(frame), prediction.frame(frame)
        shrunk = radius < widest
        counts = truth_frame.compared(prediction_frame, disk(radius) if shrunk else fractional_disk(widest))
        new_values.append(boundary_similarity(counts)[0])
        if shrunk:
            counts = truth_frame.compared(prediction_frame, disk(reach(size)))
        f_values.append(boundary_similarity(counts)[0])
    return np.array(new_values), np.array(f_values)


def reappearance(j: Array, f_new: Array, f: Array, visible: Array) -> Values:
    """Return MOSEv2's values of an object: plain means, and those over its absences and returns."""
    was = np.concatenate(([True], visible[:-1])) if len(visible) else visible
    vanishings = np.flatnonzero(was & ~visible)
    returns = np.flatnonzero(~was & visible)
    values: Values = {"J-Mean": mean(j), "F_new-Mean": mean(f_new), "F-Mean": mean(f)}
    end = len(visible)
    absent = [(start, returns[i] if i < len(returns) else end) for i, start in enumerate(vanishings) if start > 0]
    back = [(start, vanishings[i + 1] if i + 1 < len(vanishings) else end) for i, start in enumerate(returns)]
    for name, segments in (("disappear", absent), ("reappear", back)):
        for metric, series in (("J", j), ("F_new", f_new)):
            values[f"{name}_{metric}-Mean"] = average([mean(series[start:stop]) for start, stop in segments])
    return values
