"""Means over objects and sequences, also without each sequence."""

from __future__ import annotations

from typing import Callable, Collection, Dict, List, Tuple

import numpy as np

from . import sequence_metrics
from .masks import Array
from .sequence_metrics import ObjectScore, Values
from .sequence_protocols import BESIDE, COMBINED, SequenceProtocol


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
        value = sequence_metrics.mean(self._columns[metric][self._groups[group]])
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
                values[f"{letter}-Mean"] = _average(values[f"{letter}-seen-Mean"], values[f"{letter}-unseen-Mean"])
        for metric in self._protocol.metrics:
            if metric in COMBINED:
                values[metric] = _average(*(values[part] for part in COMBINED[metric]))
        return {metric: values[metric] for metric in self._metrics}


def _average(*parts: Array) -> Array:
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
        name: {metric: sequence_metrics.average([score.values[metric] for score in objects]) for metric in metrics}
        for name, objects in sequences.items()
    }
