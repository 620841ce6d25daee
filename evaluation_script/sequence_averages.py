"""Means over objects and sequences, also without each sequence."""

from __future__ import annotations

from typing import Callable, Collection, Dict, List, Tuple

import numpy as np

from . import sequence_metrics
from .masks import Array
from .sequence_metrics import ObjectScore, Values
from .sequence_protocols import BESIDE, COMBINED, SequenceProtocol


def averaged(scores: List[ObjectScore], protocol: SequenceProtocol) -> Values:
    """Return the means of the protocol's metrics, and of those beside it, over these objects."""
    table = _Table(scores, protocol)
    means = _combined(protocol, lambda metric, rows: table.means(metric, rows).reshape(1), table.groups)
    return {metric: None if np.isnan(value[0]) else float(value[0]) for metric, value in means.items()}


def averaged_without_each(
    scores: List[ObjectScore], protocol: SequenceProtocol, _metrics: Collection[str] = ()
) -> Dict[str, Array]:
    """Return the same means, all of them, each without one sequence at a time; nothing of a single sequence."""
    table = _Table(scores, protocol)
    return _combined(protocol, table.means_without_each, table.groups) if len(table.sequences) > 1 else {}


def sums_of_sequences(
    scores: List[ObjectScore], protocol: SequenceProtocol, metrics: Collection[str]
) -> Dict[str, Tuple[Array, Array]]:
    """Return what each of these metrics of objects sums to in each sequence, and over how many of them."""
    table = _Table(scores, protocol)
    return {metric: table.sums(metric, table.groups[""]) for metric in metrics}


def video_of(score: ObjectScore) -> str:
    """Return what an object is of; the rounds of a video are not independent, and differ before the slash."""
    return score.sequence.rpartition("/")[2]


class _Table:
    """The values of all objects, ready to be averaged with or without a sequence."""

    def __init__(self, scores: List[ObjectScore], protocol: SequenceProtocol) -> None:
        order = {name: index for index, name in enumerate(dict.fromkeys(score.sequence for score in scores))}
        # Matched proposals are summed in their own order officially: it decides the last bit.
        scores = sorted(scores, key=lambda score: (order[score.sequence], score.proposal))
        self.sequences, self._sequence_of = np.unique([video_of(score) for score in scores], return_inverse=True)
        unseen = np.array([score.unseen for score in scores], bool)
        self.groups = {"": np.ones(len(scores), bool), "seen": ~unseen, "unseen": unseen}
        names = [*protocol.metrics, *BESIDE]
        self._columns = {name: np.array([score.values.get(name) for score in scores], float) for name in names}

    def means(self, metric: str, rows: Array) -> Array:
        """Return the mean over some objects; NaN where none has a value."""
        value = sequence_metrics.mean(self._columns[metric][rows])
        return np.array(np.nan if value is None else value)

    def sums(self, metric: str, rows: Array) -> Tuple[Array, Array]:
        """Return the sum over some objects in each sequence, and how many have a value."""
        values = np.where(rows, self._columns[metric], np.nan)
        present = ~np.isnan(values)
        sums = np.bincount(self._sequence_of, np.where(present, values, 0.0), len(self.sequences))
        return sums, np.bincount(self._sequence_of, present, len(self.sequences))

    def means_without_each(self, metric: str, rows: Array) -> Array:
        """Return the means over some objects, each without one sequence."""
        sums, counts = self.sums(metric, rows)
        left = counts.sum() - counts
        return np.where(left > 0, (sums.sum() - sums) / np.maximum(left, 1), np.nan)


def _combined(
    protocol: SequenceProtocol, mean: Callable[[str, Array], Array], groups: Dict[str, Array]
) -> Dict[str, Array]:
    """Return means by metric, then means of means, which leave an empty part out."""
    values: Dict[str, Array] = {}
    for metric in (*protocol.metrics, *BESIDE):
        letter, _, group = metric.rpartition("-")[0].partition("-")
        if group in ("seen", "unseen"):
            values[metric] = mean(f"{letter}-Mean", groups[group])
        elif metric not in COMBINED:
            values[metric] = mean(metric, groups[""])
    if protocol.by_class:
        for letter in {metric[0] for metric in values if "-seen-" in metric}:
            values[f"{letter}-Mean"] = _average(values[f"{letter}-seen-Mean"], values[f"{letter}-unseen-Mean"])
    for metric in protocol.metrics:
        if metric in COMBINED:
            values[metric] = _average(*(values[part] for part in COMBINED[metric]))
    return {metric: values[metric] for metric in (*protocol.metrics, *BESIDE)}


def _average(*parts: Array) -> Array:
    """Return the mean of the parts that are not NaN, element by element."""
    present = [~np.isnan(part) for part in parts]
    total = sum(np.where(here, part, 0.0) for here, part in zip(present, parts))
    count = np.sum(present, axis=0)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def cases(scores: List[ObjectScore], protocol: SequenceProtocol, metric: str) -> int:
    """Return how many videos a metric is of; of a mean over seen and unseen ones, the fewer of both."""
    seen, unseen = (len({video_of(score) for score in scores if score.unseen is group}) for group in (False, True))
    if "-seen-" in metric or "-unseen-" in metric:
        return unseen if "-unseen-" in metric else seen
    if protocol.by_class and metric in protocol.metrics:
        return min(seen or unseen, unseen or seen)
    return len({video_of(score) for score in scores})


def by_sequence(scores: List[ObjectScore], metrics: List[str]) -> Dict[str, Values]:
    """Return the values of each sequence, the means over its objects."""
    sequences: Dict[str, List[ObjectScore]] = {}
    for score in scores:
        sequences.setdefault(score.sequence, []).append(score)
    return {
        name: {metric: sequence_metrics.average([score.values[metric] for score in objects]) for metric in metrics}
        for name, objects in sequences.items()
    }
