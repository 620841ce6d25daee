"""Reports: the scores of one split as rows for people and programs, with standard errors and intervals.

Standard errors come from the jackknife, which leaves out one case at a time; intervals are Student's t.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, Callable, Collection, Dict, Iterator, List, Mapping, Optional, Tuple

import numpy as np

from ...masks.stack import Array
from ...values.arithmetic import add, atan, mean, power
from .accumulator import Accumulator
from .family import FamilyProtocol, Values

#: A row of a table: names and values that JSON can hold.
Row = Dict[str, Any]


class Report:
    """The scores of one split: its metrics, its tables of rows, its warnings, and the counts behind them."""

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
        suspicions: Collection[str] = (),
    ) -> None:
        """Report a split.

        `units` are its images, videos or sequences; `leave_out` returns some or all metrics without each unit or each
        group of units. `suspicions` are warnings about probable mistakes.
        """
        self.split, self.protocol, self._tables = split, protocol, tables
        self._units, self._leave_out = units, leave_out
        #: The counts behind the scores; None for scores from a file.
        self.counts = counts
        #: The protocol's metrics and additional ones.
        self.values = values
        #: The slips that the doctor names, which do not follow from the counts.
        self.slips: List[str] = []
        #: Warnings about suspected slips. They never reject a submission.
        self.suspicions = [f"{split}: {line}" for line in suspicions]
        self.warnings = [*(f"{split}: {line}" for line in warnings), *self.suspicions]
        self._without: Dict[Tuple[str, ...], Dict[str, Array]] = {}
        empty = [metric for metric in protocol.metrics if values[metric] is None]
        if empty:
            self.warnings.append(f"{split}: nothing to average for {', '.join(empty)}")

    def suspect(self, lines: Collection[str]) -> None:
        """Add suspicions that do not follow from counts."""
        self.slips = [*lines]
        suspicions = [f"{self.split}: {line}" for line in lines]
        self.suspicions += suspicions
        self.warnings += suspicions

    @property
    def in_groups(self) -> bool:
        """Return True if metrics can be computed without groups of units; otherwise they are means over objects."""
        return True

    def errors(self, metrics: Collection[str] = ()) -> Values:
        """Return the standard errors of these metrics, or of all metrics that have one."""
        return {**standard_errors(self.without_each(metrics))}

    def without_each(self, metrics: Collection[str] = ()) -> Dict[str, Array]:
        """Return these metrics, or all, leaving out one sequence or one group of units at a time."""
        key = tuple(metrics)
        if key not in self._without:
            self._without[key] = self._leave_out(key)
        return self._without[key]

    def sums(self, metrics: Collection[str]) -> Dict[str, Tuple[Array, Array]]:
        """Return for each metric the sum in every sequence or group, and the number of summands.

        For a metric that is not a mean, they are jackknife pseudo-values.
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

    def count_cases(self, metric: str) -> int:
        """Return the number of sequences, or groups of images, behind a metric's standard error."""
        return min(_GROUP_COUNT, self._units)

    def intervals(self, level: float = 0.95, metrics: Collection[str] = ()) -> Dict[str, Tuple[float, float]]:
        """Return Student's t intervals of these metrics, if they have an error and enough cases."""
        intervals = {}
        for metric, error in self.errors(metrics).items():
            value, cases = self.values[metric], self.count_cases(metric)
            if value is not None and error is not None and cases >= FEWEST_CASES:
                low, high = interval(value, error, cases, level)
                least, greatest = bounds_of(metric, self.protocol)
                intervals[metric] = max(low, least), min(high, greatest)
        return intervals

    def rows(self) -> Dict[str, List[Row]]:
        """Return the tables of averaged values, by name."""
        return {name: [{"split": self.split, **row} for row in rows] for name, rows in self._tables.items()}


#: The number of groups of images, videos or sequences for metrics that are not means; each group is a case. More groups
#: hardly cost more; an interval has one degree of freedom less than there are groups.
_GROUP_COUNT = 20
#: The minimum number of cases for an interval, and for an interval that participants see although the truth is hidden.
FEWEST_CASES, FEWEST_SHOWN = 5, 10
#: The search for a quantile ends when a step changes it by less than this share.
_PRECISION = 1e-12
#: The ranges of metrics that are not shares, by the first or last part of their names.
_BOUNDS = {"Decay": (-1.0, 1.0), "MOTSA": (-math.inf, 1.0), "sMOTSA": (-math.inf, 1.0), "IDSW": (0.0, math.inf)}


@lru_cache(maxsize=4)
def deal_groups(count: int) -> Array:
    """Return the group of each of `count` cases, drawn with a fixed seed.

    It equals numpy 2's `Generator(PCG64(0)).permutation(count)`; of numpy, all versions draw only the words alike.
    """
    order, draw = list(range(count)), _draw_words().__next__
    highest = count - 1
    while highest > 0:
        mask = (1 << highest.bit_length()) - 1
        for last in range(highest, mask >> 1, -1):
            chosen = draw() & mask
            while chosen > last:
                chosen = draw() & mask
            order[last], order[chosen] = order[chosen], order[last]
        highest = mask >> 1
    groups = np.array(order, np.int64) % max(1, min(_GROUP_COUNT, count))
    groups.setflags(write=False)
    return groups


#: The number of words of 64 bits that are drawn at a time.
_WORDS = 1024


def _draw_words() -> Iterator[int]:
    """Yield the words of 32 bits that PCG64 draws with seed 0."""
    from numpy.random import PCG64  # numpy 2 loads it only here

    generator = PCG64(0)
    while True:
        yield from generator.random_raw(_WORDS).astype("<u8").view("<u4").tolist()


def standard_errors(left_out: Mapping[str, Array]) -> Dict[str, float]:
    """Return the standard errors of metrics, given their values without each case."""
    return {
        name: math.sqrt((len(values) - 1) / len(values) * add(np.square(values - mean(values))))
        for name, values in left_out.items()
        if len(values) > 1 and not np.isnan(values).any()
    }


def _pseudo_values(value: float, left_out: Array) -> Array:
    """Return the jackknife's pseudo-value of each case: their mean is the metric, their spread its error.

    With pseudo-values, metrics that are not means over cases can be compared as if they were.
    """
    values: Array = value + (len(left_out) - 1) * (mean(left_out) - left_out)
    return values


def bounds_of(metric: str, protocol: Optional[FamilyProtocol] = None) -> Tuple[float, float]:
    """Return the bounds of a metric: those of the protocol's `bounds`, else 0 and 1."""
    stem, _, ending = metric.partition("-")
    bounds: Mapping[str, Tuple[float, float]] = getattr(protocol, "bounds", {})
    return bounds.get(metric) or _BOUNDS.get(stem) or _BOUNDS.get(ending) or (0.0, 1.0)


@lru_cache(maxsize=1024)
def _student_quantile(level: float, freedom: int) -> float:
    """Return the two-sided quantile of Student's t for an interval of this level, between 0 and 1."""
    if not 0 < level < 1 or freedom < 1:
        raise ValueError(f"there is no interval of level {level} with {freedom} degrees of freedom")
    scale = 1 / math.pi if freedom % 2 else math.sqrt(0.125)
    for lower in range(2 - freedom % 2, freedom, 2):
        scale *= (lower + 1) / lower * math.sqrt(lower / (lower + 2))
    quantile, step = 0.0, 1.0
    while step > _PRECISION * quantile:  # Newton's method, from below; importing SciPy would take longer
        tangent = quantile / math.sqrt(freedom)
        density = scale * power(1 / math.sqrt(1 + tangent * tangent), freedom + 1)
        step = (level - _student_within(tangent, freedom)) / (2 * density)
        quantile = max(quantile + step, (1 - _PRECISION) * quantile)  # near level 1, rounding may lead far off
    return quantile


def _student_within(tangent: float, freedom: int) -> float:
    """Return the probability that t lies within sqrt(freedom) * tangent, by the finite sums for whole freedoms."""
    odd = freedom % 2
    cosine = 1 / math.sqrt(1 + tangent * tangent)
    term, total = cosine if odd else 1.0, 0.0
    for index in range(2 + odd, freedom + 1, 2):
        total += term
        term *= (index - 1) / index * cosine * cosine
        if term < 1e-18:
            break
    inside = tangent * cosine * total
    return 2 / math.pi * (atan(tangent) + inside) if odd else inside


def interval(value: float, error: float, cases: int, level: float = 0.95) -> Tuple[float, float]:
    """Return Student's t interval of a value, given its error and number of cases."""
    reach = _student_quantile(level, cases - 1) * error
    return value - reach, value + reach
