"""What the values of one object over its frames are summed up to."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Dict, List, Optional, Tuple

import numpy as np

from .masks import Array
from .sequence_protocols import COMBINED, SequenceProtocol
from .similarity import Counts, Disk, Region, boundary_similarity, diagonal_tolerance, disk, reach, region_similarity

Values = Dict[str, Optional[float]]


@dataclass(frozen=True)
class ObjectScore:
    """What one object of one sequence scored."""

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
    """The mean of the numbers among them; None where there are none."""
    numbers = values[~np.isnan(values)]
    return float(numbers.mean()) if len(numbers) else None


def recall(values: Array) -> Optional[float]:
    """The share of frames above one half."""
    return float((values > RECALLED).mean()) if len(values) else None


def decay(values: Array) -> Optional[float]:
    """The mean of the first part minus the mean of the last; neighbouring parts share a frame.

    The official code keeps the edges in 8 bits and is wrong beyond 255 values; this is not.
    """
    if not len(values):
        return None
    edges = np.round(np.linspace(1, len(values), PARTS + 1) + 1e-10).astype(int) - 1
    first, last = mean(values[: edges[1] + 1]), mean(values[edges[-2] :])
    return None if first is None or last is None else first - last


def consistency(values: Array) -> Optional[float]:
    """V of LVOS: the spread of J&F, its variance rounded to four decimals first."""
    if not len(values):
        return None
    # NumPy's rounding, which now and then differs from Python's in the last of the four.
    return math.sqrt(np.round(((values.mean() - values) ** 2).sum() / len(values), 4))


def summary(counts: Counts, protocol: SequenceProtocol) -> Values:
    """Every per-object metric that the protocol names, but for MOSEv2's."""
    j, f = region_similarity(counts), boundary_similarity(counts)
    late = j[math.floor(LATE * len(j)) :]
    both = (j + f) / 2
    if protocol.salient:  # LVOS stores the first frame last here, and V is summed in that order
        both = np.roll(both, -1)
    everything: Values = {"V-Mean": consistency(both)}
    for name, values in (("J", j), ("F", f), ("J_last", late)):
        everything[f"{name}-Mean"] = mean(values)
        everything[f"{name}-Recall"] = recall(values)
        everything[f"{name}-Decay"] = decay(values)
    return only_named(everything, protocol)


def only_named(values: Values, protocol: SequenceProtocol) -> Values:
    """The protocol's metrics in its order, with the combined ones."""
    chosen: Values = {}
    for metric in protocol.metrics:
        if metric in COMBINED:
            chosen[metric] = average([values[part] for part in COMBINED[metric]])
        elif metric in values:
            chosen[metric] = values[metric]
    return chosen


def average(values: List[Optional[float]]) -> Optional[float]:
    """The mean of those that are there."""
    numbers = [value for value in values if value is not None]
    return sum(numbers) / len(numbers) if numbers else None


def beside(counts: Counts) -> Values:
    """Statistics that absence cannot flatter (our own, the same in every protocol)."""
    visible = counts.truth > 0
    alarms = counts.prediction[~visible] > 0
    volume = counts.summed() if len(visible) else None
    return {
        "J-Volume": None if volume is None else float(region_similarity(volume)[0]),
        "F-Volume": None if volume is None else float(boundary_similarity(volume)[0]),
        "J-Visible": mean(region_similarity(counts)[visible]),
        "F-Visible": mean(boundary_similarity(counts)[visible]),
        "False-Alarm": float(alarms.mean()) if len(alarms) else None,
    }


def rewarded_similarity(counts: Counts) -> Array:
    """J as MOSEv2 has it: one pixel is added to both sides of the fraction."""
    union = counts.union
    return np.where(union == 0, 1.0, np.minimum((counts.shared + 1) / (union + 1), 1.0))


def fractional_disk(radius: float) -> Disk:
    """The disk that scikit-image and OpenCV make of a radius that is no whole number: a little off-centre."""
    grid = np.arange(-radius, radius + 1)
    centre = len(grid) // 2
    columns = []
    for place, x in enumerate(grid):
        rows = np.flatnonzero(x * x + grid * grid <= radius * radius)
        if len(rows):
            columns.append((place - centre, int(rows[0]) - centre, int(rows[-1]) - centre))
    # A disk without a point, as frames below 60 pixels have it, is one point to OpenCV: the kernel's first.
    return tuple(columns) or ((-centre, -centre, -centre),)


def strict_boundary(truth: Region, prediction: Region) -> Tuple[Array, Array]:
    """MOSEv2's second F, whose tolerance shrinks with the object, and its F, frame by frame."""
    size = truth.stack.size
    widest = diagonal_tolerance(size)
    fs, news = [], []
    for frame, area in enumerate(truth.area.tolist()):
        radius = math.ceil(NEAR * math.sqrt(area)) if area else reach(size)
        one, other = truth.frame(frame), prediction.frame(frame)
        shrunk = radius < widest
        new = one.compared(other, disk(radius) if shrunk else fractional_disk(widest))
        news.append(boundary_similarity(new)[0])
        fs.append(boundary_similarity(one.compared(other, disk(reach(size))))[0] if shrunk else news[-1])
    return np.array(news), np.array(fs)


def reappearance(j: Array, f_new: Array, f: Array, visible: Array) -> Values:
    """MOSEv2's values of an object: plain means, and those over its absences and returns."""
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
