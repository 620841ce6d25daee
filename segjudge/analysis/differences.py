"""Differences of algorithms over the same cases: intervals, and which of them can be told from chance."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from itertools import combinations

import numpy as np

from segjudge.evaluation_script.families.base.reports import interval

from .statistics import ALPHA, Floats, cases_needed, flip_signs, holm, jackknife_error

#: What is compared: sequences, of metrics that are means over their objects; else groups, always as many.
SEQUENCES, GROUPS = "sequences", "groups of images or videos"


@dataclass(frozen=True)
class Difference:
    """How two algorithms differ over the same cases: the first less the second."""

    name: str
    rival: str
    difference: float
    error: float
    low: float | None
    high: float | None
    p: float
    #: p adjusted by Holm for all pairs.
    adjusted: float

    def document(self) -> dict[str, object]:
        values = asdict(self)
        return {"one": values.pop("name"), "other": values.pop("rival"), **values}

    @property
    def apart(self) -> bool:
        return self.adjusted <= ALPHA


@dataclass(frozen=True)
class Mean:
    """The mean of an algorithm over the cases, and the places that it may have."""

    name: str
    value: float
    error: float
    low: float | None
    high: float | None
    #: All pairs considered, its place is in this range with 95 % certainty.
    place_from: int
    place_to: int

    @property
    def is_alone_best(self) -> bool:
        """Whether it is better than every other, and can be told apart from them."""
        return self.place_to == 1

    @property
    def places(self) -> str:
        return str(self.place_from) if self.place_from == self.place_to else f"{self.place_from}–{self.place_to}"


@dataclass(frozen=True)
class Sums:
    """What a metric of each algorithm sums to in each case, and over how many objects."""

    algorithms: tuple[str, ...]
    #: (algorithms, cases)
    sums: Floats
    #: (cases)
    counts: Floats
    smaller: bool = False

    def sort_pair(self, pair: Difference) -> tuple[str, str]:
        """The names of a pair, the better one first."""
        ahead = not pair.difference or (pair.difference > 0) != self.smaller
        return (pair.name, pair.rival) if ahead else (pair.rival, pair.name)

    def better_pairs(self, pairs: list[Difference]) -> set[tuple[str, str]]:
        """The names of the pairs that can be told apart, the better ones first."""
        return {self.sort_pair(pair) for pair in pairs if pair.apart}


def compare_pairs(table: Sums) -> list[Difference]:
    """Compare each pair of algorithms: jackknife interval, sign flips by case, Holm over all pairs."""
    pairs = list(combinations(range(len(table.algorithms)), 2))
    cases, differences = len(table.counts), []
    flips = flip_signs(np.array([table.sums[row] - table.sums[column] for row, column in pairs]).reshape(-1, cases))
    for (row, column), p, adjusted in zip(pairs, flips.tolist(), holm(flips).tolist(), strict=True):
        between = table.sums[row] - table.sums[column]
        value = float(between.sum() / table.counts.sum())
        error = jackknife_error(between, table.counts)
        low, high = interval(value, error, cases) if cases > 1 else (None, None)
        names = table.algorithms[row], table.algorithms[column]
        differences.append(Difference(*names, value, error, low, high, p, adjusted))
    return differences


def estimate_means(table: Sums, pairs: list[Difference], *, bounds: tuple[float, float] = (0.0, 1.0)) -> list[Mean]:
    """Estimate the mean of each algorithm with its interval, cut to the metric's bounds, and its range of places."""
    cases, means = len(table.counts), []
    better = table.better_pairs(pairs)
    for name, sums in zip(table.algorithms, table.sums, strict=True):
        value = float(sums.sum() / table.counts.sum())
        error = jackknife_error(sums, table.counts)
        low, high = (None, None) if cases < 2 else np.clip(interval(value, error, cases), *bounds).tolist()
        place_from = 1 + sum(worse == name for _, worse in better)
        place_to = len(table.algorithms) - sum(winner == name for winner, _ in better)
        means.append(Mean(name, value, error, low, high, place_from, place_to))
    return means


def describe_pair(pair: Difference, table: Sums, cases_are: str = SEQUENCES) -> str:
    """Say in a sentence what the difference of a pair is, and whether it can be told from chance."""
    better, worse = table.sort_pair(pair)
    sign, cases = (1 if better == pair.name else -1), len(table.counts)
    rows = [table.algorithms.index(name) for name in (better, worse)]
    between = (table.sums[rows[0]] - table.sums[rows[1]]).tolist()
    cases_won, cases_lost = sum(value > 0 for value in between), sum(value < 0 for value in between)
    if table.smaller:
        cases_won, cases_lost = cases_lost, cases_won
    interval = ""
    if pair.low is not None and pair.high is not None:
        low, high = sorted((sign * pair.low, sign * pair.high))
        interval = f", 95 % {low:+.3f} to {high:+.3f}"
    text = (
        f"{better} − {worse}: {sign * pair.difference:+.3f}{interval}; "
        f"p {pair.p:.3g}, adjusted {pair.adjusted:.3g}; "
        f"{cases_won} won, {cases_lost} lost, {cases - cases_won - cases_lost} tied"
    )
    if pair.apart:
        return f"{text}: {better} is better."
    needed = cases_needed(pair.difference, pair.error, cases, len(table.algorithms))
    many = f"about {needed}" if cases_are == SEQUENCES or not needed else f"{needed / cases:.1f} times as many"
    outlook = "" if needed is None else f"; to detect a difference of this size takes {many}"
    return f"{text}: cannot be told apart on {cases} {cases_are}{outlook}."
