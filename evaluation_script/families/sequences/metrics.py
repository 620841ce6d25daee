"""The metrics of one object, from its counts in each frame, and means over objects, also without each sequence."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Callable, Collection, Dict, FrozenSet, List, Optional, Tuple

import numpy as np

from ...masks.similarity import (
    Counts,
    Disk,
    Region,
    boundary_similarity,
    diagonal_tolerance,
    disk,
    reach,
    region_similarity,
)
from ...masks.stack import Array
from ..base.family import Values
from ..base.reports import Report, Row
from .protocols import BESIDE, COMBINED, SequenceProtocol


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


class ScoreTable:
    """The values of objects, ready to be averaged with or without a sequence."""

    def __init__(self, scores: List[ObjectScore], protocol: SequenceProtocol) -> None:
        order = {name: index for index, name in enumerate(dict.fromkeys(score.sequence for score in scores))}
        # Matched proposals are summed in their own order officially: it decides the last bit.
        scores = sorted(scores, key=lambda score: (order[score.sequence], score.proposal))
        # The rounds of a video are not independent, and differ before the slash.
        videos = [score.sequence.rpartition("/")[2] for score in scores]
        self._videos, self._video_of = np.unique(videos, return_inverse=True)
        unseen = np.array([score.unseen for score in scores], bool)
        self._groups = {"": np.ones(len(scores), bool), "seen": ~unseen, "unseen": unseen}
        self._protocol, self._metrics = protocol, (*protocol.metrics, *BESIDE)
        self._columns = {name: np.array([score.values.get(name) for score in scores], float) for name in self._metrics}

    def averaged(self) -> Values:
        """Return the means of the protocol's metrics, and of those beside it."""
        means = self._combined(self._mean)
        return {metric: None if np.isnan(value[0]) else float(value[0]) for metric, value in means.items()}

    def averaged_without_each(self, _metrics: Collection[str] = ()) -> Dict[str, Array]:
        """Return all these means, each without one sequence at a time; nothing of a single sequence."""
        return self._combined(self._means_without_each) if len(self._videos) > 1 else {}

    def sums(self, metric: str, group: str = "") -> Tuple[Array, Array]:
        """Return what a metric of objects, or of a group of them, sums to in each sequence, and over how many."""
        values = np.where(self._groups[group], self._columns[metric], np.nan)
        present = ~np.isnan(values)
        sums = np.bincount(self._video_of, np.where(present, values, 0.0), len(self._videos))
        return sums, np.bincount(self._video_of, present, len(self._videos))

    def cases(self, metric: str) -> int:
        """Return how many sequences a metric is of; of a mean over seen and unseen ones, the fewer of both."""
        count, seen, unseen = (len(np.unique(self._video_of[rows])) for rows in self._groups.values())
        if "-seen-" in metric or "-unseen-" in metric:
            return unseen if "-unseen-" in metric else seen
        if self._protocol.by_class and metric in self._protocol.metrics:
            return min(seen or unseen, unseen or seen)
        return count

    def _mean(self, metric: str, group: str) -> Array:
        value = mean(self._columns[metric][self._groups[group]])
        return np.array([np.nan if value is None else value])

    def _means_without_each(self, metric: str, group: str) -> Array:
        sums, counts = self.sums(metric, group)
        left = counts.sum() - counts
        return np.where(left > 0, (sums.sum() - sums) / np.maximum(left, 1), np.nan)

    def _combined(self, mean: Callable[[str, str], Array]) -> Dict[str, Array]:
        """Return means by metric, NaN where nothing has a value, then means of means, which leave an empty part out."""
        values: Dict[str, Array] = {}
        for metric in self._metrics:
            letter, _, group = metric.rpartition("-")[0].partition("-")
            if group in ("seen", "unseen"):
                values[metric] = mean(f"{letter}-Mean", group)
            elif metric not in COMBINED:
                values[metric] = mean(metric, "")
        if self._protocol.by_class:
            for letter in {metric[0] for metric in values if "-seen-" in metric}:
                values[f"{letter}-Mean"] = _average_of_each(
                    values[f"{letter}-seen-Mean"], values[f"{letter}-unseen-Mean"]
                )
        for metric in self._protocol.metrics:
            if metric in COMBINED:
                values[metric] = _average_of_each(*(values[part] for part in COMBINED[metric]))
        return {metric: values[metric] for metric in self._metrics}


def _average_of_each(*parts: Array) -> Array:
    """Return the mean of the parts that are not NaN, element by element."""
    present = [~np.isnan(part) for part in parts]
    total = sum(np.where(here, part, 0.0) for here, part in zip(present, parts))
    count = np.sum(present, axis=0)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def by_sequence(scores: List[ObjectScore], metrics: List[str]) -> Dict[str, Values]:
    """Return the values of each sequence, the means over its objects."""
    sequences: Dict[str, List[ObjectScore]] = {}
    for score in scores:
        sequences.setdefault(score.sequence, []).append(score)
    return {
        name: {metric: average([score.values[metric] for score in objects]) for metric in metrics}
        for name, objects in sequences.items()
    }


#: A sum over sequences that differs by less from a metric is the metric.
SAME = 1e-9


class SequenceReport(Report):
    """Scores of mask sequences."""

    protocol: SequenceProtocol

    def __init__(self, split: str, protocol: SequenceProtocol, scores: List[ObjectScore], warnings: List[str]) -> None:
        self._table = ScoreTable(scores, protocol)
        super().__init__(split, protocol, self._table.averaged(), {}, warnings)
        self.scores, self._left_out = scores, self._table.averaged_without_each

    @property
    def metrics(self) -> List[str]:
        """The metrics that sequences and objects have."""
        known = {metric for score in self.scores for metric in score.values}
        return [metric for metric in (*self.protocol.metrics, *BESIDE) if metric in known]

    def sums(self, metrics: Collection[str]) -> Dict[str, Tuple[Array, Array]]:
        found = super().sums(metrics)
        for metric in list(found):
            sums, counts = self._table.sums(metric)
            if abs(sums.sum() / max(counts.sum(), 1) - (self.values[metric] or 0.0)) <= SAME:
                found[metric] = sums, counts
        return found

    def cases(self, metric: str) -> int:
        return self._table.cases(metric)

    def rows(self) -> Dict[str, List[Row]]:
        means = by_sequence(self.scores, self.metrics)
        return {
            "sequences": [{"split": self.split, "sequence": name, **values} for name, values in means.items()],
            "objects": [
                {"split": self.split, "sequence": score.sequence, "object": score.name, **score.values}
                for score in self.scores
            ],
        }
