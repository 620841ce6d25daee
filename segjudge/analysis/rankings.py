"""Rankings of algorithms from their values in each case, of all cases or of redrawn ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from segjudge.evaluation_script.families.base.reports import interval

from . import Method
from .ranks import Floats, Ties, kendall, ranks_of
from .significance import holm, jackknife_error, sign_flips, signed_rank

Adjustment = Literal["none", "holm"]
#: A p that is at most this decides.
ALPHA = 0.05
#: Rows of weights that are looked at together, which bounds the memory.
BLOCK = 250


@dataclass(frozen=True)
class TaskScores:
    """The values of the algorithms (rows) in the cases (columns) of one task; NaN where there is none."""

    name: str
    algorithms: tuple[str, ...]
    cases: tuple[str, ...]
    values: Floats
    #: Small values are good.
    smaller: bool = False

    def filled(self, value: float) -> TaskScores:
        """Return the task with a value in place of each missing one."""
        return replace(self, values=np.where(np.isnan(self.values), value, self.values))

    @property
    def missing(self) -> bool:
        """Whether there are missing values."""
        return bool(np.isnan(self.values).any())

    @property
    def zero_is_worst(self) -> bool:
        """Whether no value is worse than 0, so that a missing one may count as that."""
        known = self.values[~np.isnan(self.values)]
        return bool((known <= 0).all() if self.smaller else (known >= 0).all())

    def filled_with_worst(self) -> TaskScores:
        """Return the task with the worst value of the case in place of each missing one."""
        missing, sign = np.isnan(self.values), -1.0 if self.smaller else 1.0
        worst = np.min(np.where(missing, np.inf, sign * self.values), axis=0, initial=np.inf) * sign
        return replace(self, values=np.where(missing, np.where(np.isfinite(worst), worst, np.nan), self.values))


@dataclass(frozen=True)
class Rule:
    """How a ranking is made."""

    method: Method = "mean-then-rank"
    ties: Ties = "min"
    #: A missing value's case is left out for its algorithm, which may gain by it; otherwise it ranks last in the case.
    remove: bool = False
    #: Of test-then-rank alone.
    adjustment: Adjustment = "none"
    alpha: float = ALPHA


@dataclass(frozen=True)
class Ranking:
    """What the algorithms reached, and their ranks: a row for each redrawing."""

    values: Floats
    ranks: Floats


def complete(task: TaskScores, rule: Rule) -> TaskScores:
    """Return the task as a rule ranks it so that nobody gains by a missing value, unless its case is to be left out.

    Ranks within cases put it last; what averages or tests values takes the worst of the case.
    """
    return task if rule.remove or rule.method.startswith("rank-") else task.filled_with_worst()


def ranking(task: TaskScores, rule: Rule, weights: Floats | None = None) -> Ranking:
    """Return the ranking of a task for each row of weights: how often each case counts, by default once.

    A case that counts twice is two cases.
    """
    if weights is None:
        weights = np.ones((1, len(task.cases)))
    smaller = task.smaller
    if rule.method == "test-then-rank":
        values = np.concatenate([_shares_beaten(task, rule, rows) for rows in _blocks(weights)])
        smaller = False
    elif rule.method in ("rank-then-mean", "rank-then-median"):
        within = ranks_of(task.values.T, smaller=smaller, ties=rule.ties).T
        if rule.remove:
            within[np.isnan(task.values)] = np.nan
        values, smaller = _averages(within, weights, rule.method), True
    else:
        values = _averages(task.values, weights, rule.method)
    return Ranking(values, ranks_of(values, smaller=smaller, ties=rule.ties))


def _averages(values: Floats, weights: Floats, method: Method) -> Floats:
    if method in ("mean-then-rank", "rank-then-mean"):
        return _means(values, weights)
    return np.stack([_medians(row, weights) for row in values], axis=1)


def _means(values: Floats, weights: Floats) -> Floats:
    """Return the mean of each row of values for each row of weights, rounded once, so that equal means are equal.

    A value is the sum of one with few digits, whose weighted sums are exact, and a small rest.
    """
    known = ~np.isnan(values)
    plain = np.where(known, values, 0.0)
    unit = 2.0 ** (np.ceil(np.log2(max(float(np.abs(plain).max(initial=0)), 1e-300))) - 26)
    coarse = np.round(plain / unit) * unit
    sums = weights @ coarse.T + weights @ (plain - coarse).T
    with np.errstate(invalid="ignore"):
        means: Floats = sums / (weights @ known.T)
    return means


def _medians(values: Floats, weights: Floats) -> Floats:
    """Return the median of the values for each row of weights."""
    order = np.argsort(values)[: np.count_nonzero(~np.isnan(values))]
    if not len(order):
        return np.full(len(weights), np.nan)
    counted = np.cumsum(weights[:, order], axis=1)
    total = counted[:, -1:]
    lower, upper = (np.argmax(counted > place, axis=1) for place in ((total - 1) // 2, total // 2))
    medians: Floats = np.where(total[:, 0] > 0, (values[order][lower] + values[order][upper]) / 2, np.nan)
    return medians


def pairwise_p(task: TaskScores, weights: Floats | None = None, adjustment: Adjustment = "none") -> Floats:
    """Return p of the one-sided signed-rank test that the row's algorithm is better than the column's.

    The result has the shape (rows of weights, algorithms, algorithms), with NaN on the diagonal; p may be adjusted for
    all ordered pairs.
    """
    if weights is None:
        weights = np.ones((1, len(task.cases)))
    count = len(task.algorithms)
    p_values = np.full((len(weights), count, count), np.nan)
    for one, other in combinations(range(count), 2):
        difference = task.values[one] - task.values[other]
        greater, less = signed_rank(-difference if task.smaller else difference, weights)
        p_values[:, one, other], p_values[:, other, one] = greater, less
    return p_values if adjustment == "none" else holm(p_values.reshape(len(p_values), -1)).reshape(p_values.shape)


def _shares_beaten(task: TaskScores, rule: Rule, weights: Floats) -> Floats:
    """Return the share of the other algorithms that each is significantly better than."""
    with np.errstate(invalid="ignore"):
        better = pairwise_p(task, weights, rule.adjustment) <= rule.alpha
    shares: Floats = better.sum(axis=2) / max(1, len(task.algorithms) - 1)
    return shares


def _blocks(weights: Floats) -> Iterator[Floats]:
    for start in range(0, len(weights), BLOCK):
        yield weights[start : start + BLOCK]


def heatmap(task: TaskScores) -> NDArray[np.intp]:
    """Return how many cases gave each algorithm (row) each rank (column); a missing value has none."""
    ranks = ranks_of(task.values.T, smaller=task.smaller).T
    places = np.arange(1, len(task.algorithms) + 1)
    taken = (ranks[:, :, None] == places) & ~np.isnan(task.values)[:, :, None]
    counts: NDArray[np.intp] = taken.sum(axis=1)
    return counts


# ── stability ───────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Stability:
    """How rankings of redrawn cases spread around the ranking of all cases."""

    #: The share of the redrawings in which each algorithm (row) took each rank (column).
    frequency: Floats
    #: The median rank of each algorithm, and where 95 % of its ranks lie.
    median: Floats
    low: Floats
    high: Floats
    #: Kendall's tau-b of each redrawn ranking with the whole one; undefined ones are left out.
    tau: Floats


def redrawn(cases: int, draws: int) -> Floats:
    """Return how often each case is drawn in each of the redrawings, equal ones for equal arguments."""
    generator = np.random.Generator(np.random.PCG64(0))
    return generator.multinomial(cases, np.full(cases, 1 / cases), draws).astype(np.float64)


def stability(task: TaskScores, rule: Rule, weights: Floats) -> Stability:
    """Return how the rankings of redrawn cases spread."""
    whole, drawn = ranking(task, rule).ranks, ranking(task, rule, weights).ranks
    places = np.arange(1, len(task.algorithms) + 1)
    tau = np.concatenate([kendall(rows, np.broadcast_to(whole, rows.shape)) for rows in _blocks(drawn)])
    low, median, high = np.quantile(drawn, [0.025, 0.5, 0.975], axis=0)
    frequency = np.stack([np.mean(drawn == place, axis=0) for place in places], axis=1)
    return Stability(frequency, median, low, high, tau[~np.isnan(tau)])


def consensus(rankings: dict[str, dict[str, float]]) -> dict[str, float]:
    """Return the mean over tasks of each algorithm's rank (ties averaged); who lacks in a task is last there."""
    names = sorted({name for ranks in rankings.values() for name in ranks})
    table = np.array([[ranks.get(name, np.nan) for name in names] for ranks in rankings.values()])
    means = ranks_of(table, smaller=True, ties="average").mean(axis=0)
    return dict(sorted(zip(names, means.tolist(), strict=True), key=lambda pair: (pair[1], pair[0])))


# ── what can be told apart ──────────────────────────────────────────────────


@dataclass(frozen=True)
class Difference:
    """How two algorithms differ over the same cases: the first less the second."""

    one: str
    other: str
    difference: float
    error: float
    low: float | None
    high: float | None
    p: float
    #: p adjusted by Holm for all pairs.
    adjusted: float

    @property
    def apart(self) -> bool:
        """Whether the two can be told apart."""
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


@dataclass(frozen=True)
class Sums:
    """What a metric of each algorithm sums to in each case, and over how many objects."""

    algorithms: tuple[str, ...]
    #: (algorithms, cases)
    sums: Floats
    #: (cases)
    counts: Floats
    smaller: bool = False

    def ordered(self, pair: Difference) -> tuple[str, str]:
        """Return the names of a pair, the better one first."""
        first = not pair.difference or (pair.difference > 0) != self.smaller
        return (pair.one, pair.other) if first else (pair.other, pair.one)

    def better_pairs(self, pairs: list[Difference]) -> set[tuple[str, str]]:
        """Return the names of the pairs that can be told apart, the better ones first."""
        return {self.ordered(pair) for pair in pairs if pair.apart}


def differences(table: Sums) -> list[Difference]:
    """Return how each pair of algorithms differs: jackknife interval, sign flips by case, Holm over all pairs."""
    pairs = list(combinations(range(len(table.algorithms)), 2))
    cases, found = len(table.counts), []
    flips = sign_flips(np.array([table.sums[one] - table.sums[other] for one, other in pairs]).reshape(-1, cases))
    for (one, other), p, adjusted in zip(pairs, flips.tolist(), holm(flips).tolist(), strict=True):
        between = table.sums[one] - table.sums[other]
        value = float(between.sum() / table.counts.sum())
        error = jackknife_error(between, table.counts)
        low, high = interval(value, error, cases) if cases > 1 else (None, None)
        names = table.algorithms[one], table.algorithms[other]
        found.append(Difference(*names, value, error, low, high, p, adjusted))
    return found


def means(table: Sums, pairs: list[Difference], *, bounds: tuple[float, float] = (0.0, 1.0)) -> list[Mean]:
    """Return the mean of each algorithm with its interval, cut to the metric's bounds, and its range of places."""
    cases, found = len(table.counts), []
    better = table.better_pairs(pairs)
    for name, sums in zip(table.algorithms, table.sums, strict=True):
        value = float(sums.sum() / table.counts.sum())
        error = jackknife_error(sums, table.counts)
        low, high = (None, None) if cases < 2 else np.clip(interval(value, error, cases), *bounds).tolist()
        first = 1 + sum(worse == name for _, worse in better)
        last = len(table.algorithms) - sum(one == name for one, _ in better)
        found.append(Mean(name, value, error, low, high, first, last))
    return found
