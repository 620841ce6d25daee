"""The scores of one split as rows for people and programs, and how well metrics are known.

Errors come from the jackknife: from what metrics are without each case; intervals are Student's t.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, Callable, Collection, Dict, Iterator, List, Mapping, Optional, Tuple

import numpy as np

from ...files import name_list
from ...masks.overlaps import best_assignment
from ...masks.stack import Array
from .accumulator import Accumulator
from .family import FamilyProtocol, Values

#: A row of a table: names and values that JSON can hold.
Row = Dict[str, Any]


class Report:
    """One split's scores as rows for people and programs; what has no value is None."""

    def __init__(  # noqa: PLR0913, PLR0917 - each is one thing that a family says of a split
        self,
        split: str,
        protocol: FamilyProtocol,
        values: Values,
        tables: Dict[str, List[Row]],
        warnings: List[str],
        counts: Optional[Accumulator[Any, Any]] = None,
        units: int = 0,
        leave_out: Callable[[Collection[str]], Dict[str, Array]] = lambda _metrics: {},
    ) -> None:
        """Report a split.

        `units` are its images, videos or sequences; `leave_out` returns some metrics, or all, without each unit or each
        group of them.
        """
        self.split, self.protocol, self._tables = split, protocol, tables
        self._units, self._leave_out = units, leave_out
        #: What the scores were made of; None where they were read from a file.
        self.counts = counts
        #: The protocol's own metrics and those beside it.
        self.values = values
        self.warnings = [f"{split}: {line}" for line in warnings]
        self._without: Dict[Tuple[str, ...], Dict[str, Array]] = {}
        empty = [metric for metric in protocol.metrics if values[metric] is None]
        if empty:
            self.warnings.append(f"{split}: nothing to average for {', '.join(empty)}")

    @property
    def in_groups(self) -> bool:
        """Whether its metrics are known without groups of its units; else they are means over objects."""
        return True

    def errors(self, metrics: Collection[str] = ()) -> Values:
        """Return the standard errors of these metrics, or of all, where they have one."""
        return {**standard_errors(self.without_each(metrics))}

    def without_each(self, metrics: Collection[str] = ()) -> Dict[str, Array]:
        """Return these metrics, or all, without each sequence, or each group of images or videos."""
        key = tuple(metrics)
        if key not in self._without:
            self._without[key] = self._leave_out(key)
        return self._without[key]

    def sums(self, metrics: Collection[str]) -> Dict[str, Tuple[Array, Array]]:
        """Return what each of these metrics, or of all, sums to in each sequence or group, and over how many there.

        Of a metric that is no mean these are pseudo-values.
        """
        without = self.without_each(metrics)
        return {
            metric: (_pseudo_values(value, without[metric]), np.ones(len(without[metric])))
            for metric, value in self.values.items()
            if metric in (metrics or self.values)
            and metric in without
            and value is not None
            and not np.isnan(without[metric]).any()
        }

    def cases(self, metric: str) -> int:
        """Return how many sequences, or groups of images, a metric's standard error is known from."""
        return min(_GROUPS, self._units)

    def intervals(self, level: float = 0.95, metrics: Collection[str] = ()) -> Dict[str, Tuple[float, float]]:
        """Return Student's t interval of each of these metrics, or of all, that has an error from cases enough."""
        intervals = {}
        for metric, error in self.errors(metrics).items():
            value, cases = self.values[metric], self.cases(metric)
            if value is not None and error is not None and cases >= FEWEST_CASES:
                low, high = interval(value, error, cases, level)
                least, greatest = bounds_of(metric, self.protocol)
                intervals[metric] = max(low, least), min(high, greatest)
        return intervals

    def rows(self) -> Dict[str, List[Row]]:
        """Return the tables of what was averaged, by name."""
        return {name: [{"split": self.split, **row} for row in rows] for name, rows in self._tables.items()}


#: Images, videos and sequences whose metrics are no means are dealt into so many groups, each of which is a case: the
#: cost hardly grows with them, and an interval has one degree of freedom less.
_GROUPS = 20
#: Fewer cases make no interval, and fewer than these none that participants see where the truth is hidden.
FEWEST_CASES, FEWEST_SHOWN = 5, 10
#: A quantile is found when a step changes it by less than this share.
_PRECISION = 1e-12
#: What metrics lie between that are no shares, by the first or last part of their names.
_BOUNDS = {"Decay": (-1.0, 1.0), "MOTSA": (-math.inf, 1.0), "sMOTSA": (-math.inf, 1.0), "IDSW": (0.0, math.inf)}


def deal_groups(count: int) -> Array:
    """Return the group of each of `count` cases, drawn with a fixed seed.

    The lot is that of numpy's `Generator(PCG64(0)).permutation(count)`, which takes a while to import.
    """
    order, words = list(range(count)), _draw_words()
    for last in range(count - 1, 0, -1):
        mask = (1 << last.bit_length()) - 1
        chosen = next(word & mask for word in words if word & mask <= last)
        order[last], order[chosen] = order[chosen], order[last]
    return np.array(order, np.int64) % max(1, min(_GROUPS, count))


def _draw_words() -> Iterator[int]:
    """Yield the words of 32 bits that PCG64 draws with seed 0."""
    state, increment = 0x1AA1B5345996452D09585EB7A69561E3, 0x418DDADB3AF71A82588133BC447873A9
    while True:
        state = (state * 0x2360ED051FC65DA44385DF649FCCF645 + increment) % (1 << 128)
        word, turn = (state >> 64 ^ state) % (1 << 64), state >> 122
        word = (word >> turn | word << 64 - turn) % (1 << 64)
        yield word % (1 << 32)
        yield word >> 32


def standard_errors(without: Mapping[str, Array]) -> Dict[str, float]:
    """Return the standard errors of the metrics that are known without each case."""
    return {
        name: float(np.sqrt((len(values) - 1) / len(values) * ((values - values.mean()) ** 2).sum()))
        for name, values in without.items()
        if len(values) > 1 and not np.isnan(values).any()
    }


def _pseudo_values(value: float, without: Array) -> Array:
    """Return the jackknife's pseudo-value of each case: their mean is the metric, their spread its error.

    So metrics that are no means over cases compare as if they were.
    """
    values: Array = value + (len(without) - 1) * (without.mean() - without)
    return values


def bounds_of(metric: str, protocol: Optional[FamilyProtocol] = None) -> Tuple[float, float]:
    """Return the least and the most that a metric may be: a protocol may say so in `bounds`, others have shares."""
    stem, _, ending = metric.partition("-")
    bounds: Mapping[str, Tuple[float, float]] = getattr(protocol, "bounds", {})
    return bounds.get(metric) or _BOUNDS.get(stem) or _BOUNDS.get(ending) or (0.0, 1.0)


@lru_cache(maxsize=1024)
def _student_quantile(level: float, freedom: int) -> float:
    """Return the quantile of Student's t that an interval of this level, between 0 and 1, reaches on either side."""
    if not 0 < level < 1 or freedom < 1:
        raise ValueError(f"there is no interval of level {level} with {freedom} degrees of freedom")
    scale = math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)) / math.sqrt(freedom * math.pi)
    quantile, step = 0.0, 1.0
    while step > _PRECISION * quantile:  # by Newton's steps, from below; SciPy would take longer to import
        density = scale * (1 + quantile**2 / freedom) ** (-(freedom + 1) / 2)
        step = (level - _student_within(math.atan(quantile / math.sqrt(freedom)), freedom)) / (2 * density)
        quantile = max(quantile + step, (1 - _PRECISION) * quantile)  # rounding may lead far back next to level 1
    return quantile


def _student_within(angle: float, freedom: int) -> float:
    """Return the probability that t lies within sqrt(freedom) * tan(angle), by the finite sums for whole freedoms."""
    odd = freedom % 2
    term, total = math.cos(angle) if odd else 1.0, 0.0
    for index in range(2 + odd, freedom + 1, 2):
        total += term
        term *= (index - 1) / index * math.cos(angle) ** 2
        if term < 1e-18:
            break
    inside = math.sin(angle) * total
    return 2 / math.pi * (angle + inside) if odd else inside


def interval(value: float, error: float, cases: int, level: float = 0.95) -> Tuple[float, float]:
    """Return Student's t interval of a value whose error is known from so many cases."""
    reach = _student_quantile(level, cases - 1) * error
    return value - reach, value + reach


#: Labels are those of another coding where fewer pixels than this share are right, and more than this share would be.
_RIGHT, _WOULD_BE_RIGHT = 0.25, 0.5
#: A label tells nothing about the coding below this share of the pixels; one alone tells nothing at all.
_LEAST, _FEWEST = 0.01, 2
_CHECK = "check the numbers of the classes"


def judge_pixels(table: Array) -> List[str]:
    """Return what is odd about labels, of a table of pixels by the truth's label (rows) and the predicted one."""
    total = int(table.sum())
    if not total:
        return []
    if np.trace(table) < _RIGHT * total:
        shift = _shift(table, total)
        if shift is not None:
            return [f"labels look as if {abs(shift)} was {'added to' if shift > 0 else 'taken from'} each: {_CHECK}"]
        pairs = _match_codings(table, total)
        if pairs:
            examples = name_list([f"{label} for {truth_label}" for truth_label, label in pairs])
            return [f"labels look like those of another coding, such as {examples}: {_CHECK}"]
    unknown = np.where(table.sum(axis=1) == 0, table.sum(axis=0), 0)
    if unknown.sum() <= _WOULD_BE_RIGHT * total:
        return []
    labels = np.argsort(-unknown, kind="stable")[: np.count_nonzero(unknown)]
    examples = name_list(list(map(str, labels.tolist())))
    share = f"{100 * unknown.sum() / total:.0f} % of the pixels that count"
    return [f"{share} have labels that the truth has nowhere ({examples}): {_CHECK}"]


def _shift(table: Array, total: int) -> Optional[int]:
    """Return what was added to each label, where that explains most of them."""
    count = len(table)
    rows, columns = np.nonzero(table)
    sums = np.bincount(columns - rows + count, table[rows, columns], 2 * count)
    shift = int(sums.argmax()) - count
    telling = np.count_nonzero(np.diagonal(table, shift) >= _LEAST * total)
    return shift if sums.max() > _WOULD_BE_RIGHT * total and telling >= _FEWEST else None


def _match_codings(table: Array, total: int) -> List[Tuple[int, int]]:
    """Return labels of the truth and what stands for each, the most frequent first, where that explains most pixels.

    What stands for itself tells nothing.
    """
    rows, columns = best_assignment(table)
    pixels = table[rows, columns]
    tells = (rows != columns) & (pixels >= _LEAST * total)
    order = [index for index in np.argsort(-pixels, kind="stable").tolist() if tells[index]]
    explained = pixels.sum() > _WOULD_BE_RIGHT * total and len(order) >= _FEWEST
    return [(int(rows[index]), int(columns[index])) for index in order] if explained else []


def judge_matches(noun: str, in_truth: int, in_prediction: int, hits: int) -> List[str]:
    """Return what is odd where there are so many segments, instances or masks on both sides, and so many matches."""
    if not in_truth or hits:
        return []
    if not in_prediction:
        return [f"there is no {noun} of any class that counts: {_CHECK}"]
    return [f"not one {noun} was matched with one of its class: {_CHECK}, and of the images"]
