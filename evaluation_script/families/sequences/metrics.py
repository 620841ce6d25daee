"""The metrics of an object from its counts per frame, and means over objects, also without each sequence."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Callable, Collection, Dict, FrozenSet, List, NamedTuple, Optional, Tuple

import numpy as np

from ...files.problems import Problem, Problems, name_list, printable, quantity
from ...masks.overlaps import best_proposals
from ...masks.similarity import Counts, boundary_similarity, region_similarity
from ...masks.stack import Array
from ...values.arithmetic import add
from ..base.family import Values
from ..base.reports import Report, Row
from .counting import SequenceAccumulator, SequenceCounts, Warnings
from .protocols import BESIDE, COMBINED, LifespanRule, SequenceProtocol
from .truth import is_number, label_order


class ObjectScore(NamedTuple):
    """The score of one object of one sequence."""

    sequence: str
    name: str
    values: Values
    #: Frame by frame: names, J and F of the counted frames.
    frames: List[str]
    j: Array
    f: Array
    unseen: bool = False
    #: The matched proposal, in protocols that match.
    proposal: int = 0
    #: The truth's kind of the object, in protocols with means by kind.
    kind: str = ""


#: A frame is recalled if its value is larger than this.
_RECALLED = 0.5
#: Decay compares the first and the last of this many parts.
_PARTS = 4
#: J_last begins after this share of the frames.
_LATE = 0.75


def mean(values: Array) -> Optional[float]:
    """Return the mean of the values that are not NaN; None without any."""
    numbers = values[~np.isnan(values)]
    return add(numbers) / len(numbers) if len(numbers) else None


def recall(values: Array) -> Optional[float]:
    """Return the fraction of frames above one half."""
    return int(np.count_nonzero(values > _RECALLED)) / len(values) if len(values) else None


def _decay(values: Array) -> Optional[float]:
    """Return the mean of the first part minus the mean of the last; neighbouring parts share a frame.

    The official code stores the edges in 8 bits and is wrong beyond 255 values; this function is correct.
    """
    if not len(values):
        return None
    early, late = _parts(len(values))
    early_mean, late_mean = mean(values[: early + 1]), mean(values[late:])
    return None if early_mean is None or late_mean is None else early_mean - late_mean


@lru_cache(maxsize=1024)
def _parts(count: int) -> Tuple[int, int]:
    """Return the last frame of the first part and the first frame of the last part."""
    edges = np.round(np.linspace(1, count, _PARTS + 1) + 1e-10).astype(int) - 1
    return int(edges[1]), int(edges[-2])


def consistency(values: Array) -> Optional[float]:
    """Return V of LVOS: the standard deviation of J&F, from a variance rounded to four decimals."""
    if not len(values):
        return None
    # NumPy's rounding, which sometimes differs from Python's in the last of four digits.
    return math.sqrt(np.round(add(np.square(add(values) / len(values) - values)) / len(values), 4))


@lru_cache(maxsize=64)
def _list_parts(metrics: Tuple[str, ...]) -> FrozenSet[str]:
    """Return the metrics that combine others' parts, and the independent ones."""
    return frozenset(component for named in metrics for component in COMBINED.get(named, (named,)))


def summary(counts: Counts, j: Array, f: Array, protocol: SequenceProtocol, rates: Optional[Array] = None) -> Values:
    """Return every per-object metric of the protocol except MOSEv2's, from J and F (A and R) per frame."""
    both = (j + f) / 2
    if protocol.salient:  # LVOS stores the first frame last here, and V is summed in that order
        both = np.roll(both, -1)
    series = {"J": j, "F": f, "J_last": j[math.floor(_LATE * len(j)) :], "V": both}
    summaries = {"Mean": mean, "Recall": recall, "Decay": _decay}
    values: Values = {}
    for metric in _list_parts(protocol.metrics):
        name, _, kind = metric.rpartition("-")
        if name in series:
            values[metric] = (consistency if name == "V" else summaries[kind])(series[name])
    if rates is not None:
        values["A-Mean"], values["R-Mean"] = map(mean, rates)
    elif protocol.kinds:
        values.update(_span_similarity(counts, j))
    empty = not counts.truth.any()
    values["N-acc" if empty else "T-acc"] = float(empty != counts.prediction.any())
    values["T-acc" if empty else "N-acc"] = None
    return _select_metrics(values, protocol)


def _span_similarity(counts: Counts, j: Array) -> Values:
    """Return the temporal IoU of an object's presence, and its J over those frames; 1 if it is never present."""
    in_truth, in_prediction = counts.truth > 0, counts.prediction > 0
    in_both, frames = in_truth & in_prediction, int(np.count_nonzero(in_truth | in_prediction))
    if not frames:
        return {"tIoU-Mean": 1.0, "vIoU-Mean": 1.0}
    return {"tIoU-Mean": float(in_both.sum() / frames), "vIoU-Mean": add(j[in_both]) / frames}


def _select_metrics(values: Values, protocol: SequenceProtocol) -> Values:
    """Return the protocol's metrics in its order, including combined ones."""
    chosen: Values = {}
    for metric in protocol.metrics:
        if metric in COMBINED and set(COMBINED[metric]) <= values.keys():
            chosen[metric] = average([values[component] for component in COMBINED[metric]])
        elif metric in values:
            chosen[metric] = values[metric]
    return chosen


def average(values: List[Optional[float]]) -> Optional[float]:
    """Return the mean of the values that are not None; None without any."""
    numbers = [value for value in values if value is not None]
    return add(numbers) / len(numbers) if numbers else None


def _own_statistics(counts: Counts, j: Array, f: Array) -> Values:
    """Return Segjudge's own statistics, which absent objects do not raise; equal in all protocols."""
    visible = counts.truth > 0
    alarms = counts.prediction[~visible] > 0
    volume = counts.sum_frames() if len(visible) else None
    return {
        "J-Volume": None if volume is None else float(region_similarity(volume)[0]),
        "F-Volume": None if volume is None else float(boundary_similarity(volume)[0]),
        "J-Visible": mean(j[visible]),
        "F-Visible": mean(f[visible]),
        "False-Alarm": int(np.count_nonzero(alarms)) / len(alarms) if len(alarms) else None,
    }


def _smooth_similarity(counts: Counts) -> Array:
    """Return J as MOSEv2 defines it, with one pixel added to numerator and denominator."""
    union = counts.union
    return np.where(union == 0, 1.0, (counts.shared + 1) / (union + 1))


def reappearance(j: Array, f_new: Array, f: Array, visible: Array) -> Values:
    """Return MOSEv2's values of an object: plain means, and means over absences and returns."""
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


def score_objects(accumulator: SequenceAccumulator) -> Tuple[List[ObjectScore], List[str]]:
    """Return the score of every object, and warnings; raises SubmissionError with every problem."""
    accumulator.refuse_missing()
    protocol, problems, scores = accumulator.protocol, Problems(), []
    warnings = Warnings(accumulator.notes, strict=accumulator.strict, problems=problems)
    for counts in accumulator.all_counts():
        problems.extend(counts.problems, counts.problem_count)
        _warn(counts, protocol, problems, warnings)
        if _miss_all(counts, protocol):
            fault = "no mask overlaps the object with its number"
            warnings.note("numbers", Problem(counts.name, fault, ""))  # an assumption
        if not problems:
            proposals = _match_proposals(counts, protocol)
            scores += [_score_object(counts, protocol, index, label) for index, label in enumerate(proposals)]
    problems.raise_if_any()
    return scores, warnings.lines


def _warn(counts: SequenceCounts, protocol: SequenceProtocol, problems: Problems, warnings: Warnings) -> None:
    """Add the warnings about one sequence."""
    sequence = counts.name
    for label, frame in counts.unknown.items():
        fault = f"object {printable(label)} (first in frame {frame}) is not in the truth and was ignored"
        warnings.add("unknown", Problem(sequence, fault, "Use the object numbers of the first frame"))
    surplus = [label for label in counts.proposals if not (is_number(label) and int(label) <= protocol.proposals)]
    if surplus:
        fault = f"has proposals beyond {protocol.proposals}: {name_list(sorted(surplus, key=label_order))}"
        remedy = f"Number the proposals from 1 to {protocol.proposals}"
        if protocol.surplus_is_error:
            problems.add(Problem(sequence, fault, remedy))
        else:
            warnings.add("surplus", Problem(sequence, f"{fault}, which were ignored", remedy))
    if counts.shaded:
        masks = f"{quantity(len(counts.shaded), 'expression', len(counts.objects))}"
        fault = f"masks of {masks} hold values other than 0 and 1, which lowers A and R: {name_list(counts.shaded)}"
        warnings.note("shaded", Problem(sequence, f"{fault}. Save masks as 0 and 1", ""))


def _miss_all(counts: SequenceCounts, protocol: SequenceProtocol) -> bool:
    """Return whether both sides have masks, but none overlaps its object."""
    if protocol.proposals or protocol.salient or protocol.overlapping or counts.problem_count:
        return False
    truth, prediction, shared = (bool(counts.counts[:, :, field].any()) for field in range(3))
    return truth and prediction and not shared


def _counts_of(counts: SequenceCounts, protocol: SequenceProtocol, index: int, label: int) -> Tuple[Array, Counts]:
    """Return the compared frames that count for an object, and their counts."""
    of_object, flags = counts.select(index, label), counts.flags(index)
    if protocol.lifespan is LifespanRule.FIRST_SEEN:
        flags &= np.maximum.accumulate(flags & ((of_object.truth > 0) | (of_object.prediction > 0)))
    return flags, of_object.select(flags)


def _match_proposals(counts: SequenceCounts, protocol: SequenceProtocol) -> List[int]:
    """Return the proposal of each object; 0 in protocols without matching."""
    objects = len(counts.objects)
    if not protocol.proposals or not objects or not counts.frames:
        return [0] * objects
    rows = protocol.proposals
    if protocol.surplus_is_error:  # as many as submitted, at least as many as objects
        rows = max([objects, *(int(label) for label in counts.proposals if is_number(label))])
    quality = np.zeros((rows, objects))
    for column in range(objects):
        for row in range(rows):
            _, pair = _counts_of(counts, protocol, column, row)
            quality[row, column] = add([mean(f(pair)) or 0.0 for f in (region_similarity, boundary_similarity)]) / 2
    return [row + 1 for row in best_proposals(quality)]


def _score_object(counts: SequenceCounts, protocol: SequenceProtocol, index: int, proposal: int) -> ObjectScore:
    scored = counts.objects[index]
    flags, of_object = _counts_of(counts, protocol, index, max(proposal - 1, 0))
    j, f = region_similarity(of_object), boundary_similarity(of_object)
    if protocol.reappearance:
        f_new, f_plain = counts.strict[index][:, flags]
        values = reappearance(_smooth_similarity(of_object), f_new, f_plain, of_object.truth > 0)
        if not counts.is_sent or not counts.frames:  # zeros, no absences
            values = {metric: None if "appear_" in metric else 0.0 for metric in values}
        values = _select_metrics(values, protocol)
    else:
        rates = counts.strict[index][:, flags] if protocol.accuracy else None
        values = summary(of_object, j, f, protocol, None if rates is None else np.nan_to_num(rates))
        if not counts.is_sent or (rates is not None and np.isnan(rates).any()):
            values = {metric: None if value is None else 0.0 for metric, value in values.items()}
    if protocol.grey:
        values = {metric: None if value is None else round(100 * value, 2) / 100 for metric, value in values.items()}
    frames = [counts.frames[frame] for frame in np.flatnonzero(flags)]
    values = {**values, **_own_statistics(of_object, j, f)}
    return ObjectScore(counts.name, scored.name, values, frames, j, f, scored.unseen, proposal, scored.kind)


class _ScoreTable:
    """The values of objects, ready for means with or without each sequence."""

    def __init__(self, scores: List[ObjectScore], protocol: SequenceProtocol) -> None:
        order = {name: index for index, name in enumerate(dict.fromkeys(score.sequence for score in scores))}
        # The official code sums matched proposals in their own order, which decides the last bit.
        scores = sorted(scores, key=lambda score: (order[score.sequence], score.proposal))
        # The rounds of a video are not independent, and differ before the slash.
        videos = [score.sequence.rpartition("/")[2] for score in scores]
        self._videos, self._video_of = np.unique(videos, return_inverse=True)
        unseen = np.array([score.unseen for score in scores], bool)
        self._groups = {"": np.ones(len(scores), bool), "seen": ~unseen, "unseen": unseen}
        self._groups.update({kind: np.array([score.kind == kind for score in scores], bool) for kind in protocol.kinds})
        self._protocol, self._metrics = protocol, (*protocol.metrics, *BESIDE)
        #: If kinds of objects are unknown, all weigh the same.
        self._equal_groups = protocol.equal_groups if protocol.by_class or any(score.kind for score in scores) else ()
        self._columns = {name: np.array([score.values.get(name) for score in scores], float) for name in self._metrics}

    def has_equal_groups(self) -> bool:
        """Return whether the overall means are means of groups that all have objects."""
        return bool(self._equal_groups) and all(self._groups[group].any() for group in self._equal_groups)

    def means(self) -> Values:
        """Return the means of the protocol's metrics and of the additional ones."""
        means = self._combine(self._mean)
        return {metric: None if np.isnan(value[0]) else float(value[0]) for metric, value in means.items()}

    def means_without_each(self, _metrics: Collection[str] = ()) -> Dict[str, Array]:
        """Return all means leaving out one sequence at a time; empty for a single sequence."""
        return self._combine(self._means_without_each) if len(self._videos) > 1 else {}

    def sums(self, metric: str, group: str = "") -> Tuple[Array, Array]:
        """Return the sum of a metric over objects, or over a group, per sequence, and the number of summands."""
        values = np.where(self._groups[group], self._columns[metric], np.nan)
        present = ~np.isnan(values)
        sums = np.bincount(self._video_of, np.where(present, values, 0.0), len(self._videos))
        return sums, np.bincount(self._video_of, present, len(self._videos))

    def count_cases(self, metric: str) -> int:
        """Return the number of sequences behind a metric; for seen and unseen groups the smaller number."""
        counts = {  # unique loads masked arrays
            group: int(np.count_nonzero(np.bincount(self._video_of[rows]))) for group, rows in self._groups.items()
        }
        if self._equal_groups and metric in self._protocol.metrics and not _group_of(metric):
            return min(filter(None, (counts[group] for group in self._equal_groups)), default=0)
        return counts[_group_of(metric)]

    def _mean(self, metric: str, group: str) -> Array:
        value = mean(self._columns[metric][self._groups[group]])
        return np.array([np.nan if value is None else value])

    def _means_without_each(self, metric: str, group: str) -> Array:
        sums, counts = self.sums(metric, group)
        counts_left = counts.sum() - counts
        return np.where(counts_left > 0, (add(sums) - sums) / np.maximum(counts_left, 1), np.nan)

    def _combine(self, mean: Callable[[str, str], Array]) -> Dict[str, Array]:
        """Return means by metric (NaN without values), then means of means, which skip empty parts."""
        values: Dict[str, Array] = {}
        for metric in self._metrics:
            group = _group_of(metric)
            if metric not in COMBINED:
                values[metric] = mean(metric.replace(f"-{group}-", "-") if group else metric, group)
        for metric in self._protocol.metrics if self._equal_groups else ():
            if metric not in COMBINED and not _group_of(metric):
                columns = [metric.replace("-Mean", f"-{group}-Mean") for group in self._equal_groups]
                values[metric] = _average_of_each(*(values[column] for column in columns))
        for metric in self._protocol.metrics:
            if metric in COMBINED:
                values[metric] = _average_of_each(*(values[component] for component in COMBINED[metric]))
        return {metric: values[metric] for metric in self._metrics}


def _group_of(metric: str) -> str:
    """Return the group of objects of a metric such as J-seen-Mean; "" for all."""
    return metric.rpartition("-")[0].partition("-")[2]


def _average_of_each(*parts: Array) -> Array:
    """Return the elementwise mean of the parts that are not NaN."""
    present = [~np.isnan(values) for values in parts]
    total = sum(np.where(is_present, values, 0.0) for is_present, values in zip(present, parts))
    count = np.sum(present, axis=0)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def _by_sequence(scores: List[ObjectScore], metrics: List[str]) -> Dict[str, Values]:
    """Return the values of each sequence, averaged over its objects."""
    sequences: Dict[str, List[ObjectScore]] = {}
    for score in scores:
        sequences.setdefault(score.sequence, []).append(score)
    return {
        name: {metric: average([score.values[metric] for score in objects]) for metric in metrics}
        for name, objects in sequences.items()
    }


#: The tolerance within which a sum over sequences equals a metric.
_SAME = 1e-9


class SequenceReport(Report):
    """Scores of mask sequences."""

    protocol: SequenceProtocol

    def __init__(
        self,
        split: str,
        protocol: SequenceProtocol,
        scores: List[ObjectScore],
        warnings: List[str],
        counts: Optional[SequenceAccumulator] = None,
    ) -> None:
        self._table = _ScoreTable(scores, protocol)
        leave_out = self._table.means_without_each
        super().__init__(split, protocol, self._table.means(), {}, warnings, counts, leave_out=leave_out)
        self.scores = scores

    @property
    def metrics(self) -> List[str]:
        """Return the metrics of sequences and objects."""
        own_metrics = {metric for score in self.scores for metric in score.values}
        return [metric for metric in (*self.protocol.metrics, *BESIDE) if metric in own_metrics]

    @property
    def in_groups(self) -> bool:
        return bool(self.protocol.balanced) or self._table.has_equal_groups()

    def sums(self, metrics: Collection[str]) -> Dict[str, Tuple[Array, Array]]:
        sums_by_metric = super().sums(metrics)
        if self.in_groups:
            return sums_by_metric
        for metric in list(sums_by_metric):
            sums, counts = self._table.sums(metric)
            if abs(add(sums) / max(counts.sum(), 1) - (self.values[metric] or 0.0)) <= _SAME:
                sums_by_metric[metric] = sums, counts
        return sums_by_metric

    def count_cases(self, metric: str) -> int:
        return self._table.count_cases(metric)

    def rows(self) -> Dict[str, List[Row]]:
        means = _by_sequence(self.scores, self.metrics)
        return {
            "sequences": [{"split": self.split, "sequence": name, **values} for name, values in means.items()],
            "objects": [
                {"split": self.split, "sequence": score.sequence, "object": score.name, **score.values}
                for score in self.scores
            ],
        }
