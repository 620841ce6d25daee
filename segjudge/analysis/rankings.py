"""Rankings of algorithms from their values per case, over all cases or bootstrap draws."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from segjudge.analysis import METHODS, Method
from segjudge.analysis.statistics import ALPHA, Floats, Ties, holm, kendall, ranks_of, subtract, wilcoxon
from segjudge.evaluation_script.files.problems import quantity
from segjudge.report.tables import format_number

_Adjustment = Literal["none", "holm"]
#: The number of rows of weights processed at once, which limits the memory.
_BLOCK = 250
#: The column with the ranks that most bootstrap samples give.
SPREAD = "95 % of bootstraps"


@dataclass(frozen=True)
class TaskScores:
    """The values of the algorithms (rows) in the cases (columns) of one task; NaN where there is none."""

    name: str
    algorithms: tuple[str, ...]
    cases: tuple[str, ...]
    values: Floats
    #: Smaller values are better.
    smaller: bool = False
    #: The number of objects in each case, if the metric is the mean over all objects; otherwise cases weigh the same.
    sizes: Floats | None = None
    #: The values are jackknife pseudo-values, for a metric that is not a mean.
    pseudo: bool = False

    @property
    def count_of_cases(self) -> str:
        """The number of cases, or of groups of cases, in words."""
        return f"{quantity(len(self.cases), 'group')} of cases" if self.pseudo else quantity(len(self.cases), "case")

    def fill(self, value: float) -> TaskScores:
        """Return the task with missing values replaced with a value."""
        return replace(self, values=np.where(np.isnan(self.values), value, self.values))

    @property
    def missing(self) -> bool:
        return bool(np.isnan(self.values).any())

    @property
    def zero_is_worst(self) -> bool:
        """Return whether 0 is the worst value, so that missing values may count as 0."""
        values = self.values[~np.isnan(self.values)]
        return bool((values <= 0).all() if self.smaller else (values >= 0).all())

    def fill_with_worst(self) -> TaskScores:
        """Return the task with missing values replaced by the worst of their case."""
        missing, sign = np.isnan(self.values), -1.0 if self.smaller else 1.0
        worst = np.min(np.where(missing, np.inf, sign * self.values), axis=0, initial=np.inf) * sign
        return replace(self, values=np.where(missing, np.where(np.isfinite(worst), worst, np.nan), self.values))


@dataclass(frozen=True)
class Rule:
    """The rule of a ranking."""

    method: Method = "mean-then-rank"
    ties: Ties = "min"
    #: Omit the case of a missing value for its algorithm, which may gain by it; otherwise it ranks last in the case.
    remove: bool = False
    #: The adjustment of p for test-then-rank.
    adjustment: _Adjustment = "none"
    alpha: float = ALPHA


@dataclass(frozen=True)
class _Ranking:
    """The values and ranks of the algorithms, one row per bootstrap draw."""

    values: Floats
    ranks: Floats


def _fill_missing(task: TaskScores, rule: Rule) -> TaskScores:
    """Return the task with missing values filled so that they favour no method, unless the rule ignores them.

    Ranks within cases put them last; means and tests use the worst value of the case.
    """
    return task if rule.remove or rule.method.startswith("rank-") else task.fill_with_worst()


def _rank_task(task: TaskScores, rule: Rule, weights: Floats | None = None) -> _Ranking:
    """Return the ranking for each row of case weights (default: one row of ones).

    A case with a weight of two counts as two cases.
    """
    if weights is None:
        weights = np.ones((1, len(task.cases)))
    smaller = task.smaller
    if rule.method == "test-then-rank":
        values = np.concatenate([_count_beaten(task, rule, rows) for rows in _cut_blocks(weights)])
        smaller = False
    elif rule.method in ("rank-then-mean", "rank-then-median"):
        within = ranks_of(task.values.T, smaller=smaller, ties=rule.ties).T
        if rule.remove:
            within[np.isnan(task.values)] = np.nan
        values, smaller = _average_values(within, weights, rule.method), True
    else:
        sizes = task.sizes if rule.method == "mean-then-rank" and task.sizes is not None else 1.0
        values = _average_values(task.values, weights * sizes, rule.method)
    return _Ranking(values, ranks_of(values, smaller=smaller, ties=rule.ties))


def _average_values(values: Floats, weights: Floats, method: Method) -> Floats:
    if method in ("mean-then-rank", "rank-then-mean"):
        return _weigh_means(values, weights)
    return np.stack([_weigh_medians(row, weights) for row in values], axis=1)


def _weigh_means(values: Floats, weights: Floats) -> Floats:
    """Return the weighted means of each row, rounded once so that equal means are equal.

    A value is split into a number with few digits, whose weighted sums are exact, and a small rest.
    """
    present = ~np.isnan(values)
    plain = np.where(present, values, 0.0)
    unit = 2.0 ** (np.ceil(np.log2(max(float(np.abs(plain).max(initial=0)), 1e-300))) - 26)
    coarse = np.round(plain / unit) * unit
    sums = weights @ coarse.T + weights @ (plain - coarse).T
    with np.errstate(invalid="ignore"):
        means: Floats = sums / (weights @ present.T)
    return means


def _weigh_medians(values: Floats, weights: Floats) -> Floats:
    order = np.argsort(values)[: np.count_nonzero(~np.isnan(values))]
    if not len(order):
        return np.full(len(weights), np.nan)
    counted = np.cumsum(weights[:, order], axis=1)
    total = counted[:, -1:]
    lower, upper = (np.argmax(counted > position, axis=1) for position in ((total - 1) // 2, total // 2))
    medians: Floats = np.where(total[:, 0] > 0, (values[order][lower] + values[order][upper]) / 2, np.nan)
    return medians


def _pairwise_p(task: TaskScores, weights: Floats | None = None, adjustment: _Adjustment = "none") -> Floats:
    """Return one-sided signed-rank p that the row's algorithm is better than the column's.

    The p have the shape (rows of weights, algorithms, algorithms), with NaN on the diagonal; they may be adjusted for
    all ordered pairs.
    """
    if weights is None:
        weights = np.ones((1, len(task.cases)))
    count = len(task.algorithms)
    p_values = np.full((len(weights), count, count), np.nan)
    for row, column in combinations(range(count), 2):
        difference = subtract(task.values[row], task.values[column], pseudo=task.pseudo)
        greater, less = wilcoxon(-difference if task.smaller else difference, weights)
        p_values[:, row, column], p_values[:, column, row] = greater, less
    return p_values if adjustment == "none" else holm(p_values.reshape(len(p_values), -1)).reshape(p_values.shape)


def _count_beaten(task: TaskScores, rule: Rule, weights: Floats) -> Floats:
    """Return for each algorithm the fraction of others that it beats significantly."""
    with np.errstate(invalid="ignore"):
        better = _pairwise_p(task, weights, rule.adjustment) <= rule.alpha
    shares: Floats = better.sum(axis=2) / max(1, len(task.algorithms) - 1)
    return shares


def _cut_blocks(weights: Floats) -> Iterator[Floats]:
    for start in range(0, len(weights), _BLOCK):
        yield weights[start : start + _BLOCK]


def _count_ranks(task: TaskScores) -> NDArray[np.intp]:
    """Return how many cases gave each algorithm (row) each rank (column), without missing values."""
    ranks = ranks_of(task.values.T, smaller=task.smaller).T
    places = np.arange(1, len(task.algorithms) + 1)
    took_rank = (ranks[:, :, None] == places) & ~np.isnan(task.values)[:, :, None]
    counts: NDArray[np.intp] = took_rank.sum(axis=1)
    return counts


# ── stability ───────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class _Stability:
    """The spread of bootstrap rankings around the ranking of all cases."""

    #: The share of bootstrap samples in which each algorithm (row) has each rank (column).
    frequency: Floats
    #: The median rank of each algorithm, and the range of 95 % of its ranks.
    median: Floats
    low: Floats
    high: Floats
    #: Kendall's tau-b of each bootstrap ranking with the full one, without undefined ones.
    tau: Floats


def _redraw_cases(cases: int, draws: int) -> Floats:
    """Return the number of draws of each case per bootstrap draw, deterministic in its arguments."""
    generator = np.random.Generator(np.random.PCG64(0))
    return generator.multinomial(cases, np.full(cases, 1 / cases), draws).astype(np.float64)


def _measure_stability(task: TaskScores, rule: Rule, weights: Floats) -> _Stability:
    ranks, redrawn_ranks = _rank_task(task, rule).ranks, _rank_task(task, rule, weights).ranks
    places = np.arange(1, len(task.algorithms) + 1)
    tau = np.concatenate([kendall(rows, np.broadcast_to(ranks, rows.shape)) for rows in _cut_blocks(redrawn_ranks)])
    low, median, high = np.quantile(redrawn_ranks, [0.025, 0.5, 0.975], axis=0)
    frequency = np.stack([np.mean(redrawn_ranks == rank, axis=0) for rank in places], axis=1)
    return _Stability(frequency, median, low, high, tau[~np.isnan(tau)])


def average_ranks(rankings: dict[str, dict[str, float]]) -> dict[str, float]:
    """Return each algorithm's mean rank over tasks; missing ones rank last."""
    names = sorted({name for ranks in rankings.values() for name in ranks})
    table = np.array([[ranks.get(name, np.nan) for name in names] for ranks in rankings.values()])
    means = ranks_of(table, smaller=True, ties="average").mean(axis=0)
    return dict(sorted(zip(names, means.tolist(), strict=True), key=lambda pair: (pair[1], pair[0])))


# ── a ranked task ───────────────────────────────────────────────────────────


@dataclass(frozen=True)
class RankedTask:
    """The ranked algorithms of a task; lists follow the order of its algorithms."""

    scores: TaskScores
    values: list[float]
    ranks: list[float]
    #: The ranks by each other method.
    by_method: Mapping[str, list[float]]
    #: The number of cases that gave each algorithm (row) each rank (column).
    heatmap: list[list[int]]
    #: Wilcoxon's one-sided test, Holm over all ordered pairs: the row is better than the column.
    better: list[list[bool]]
    #: The spread of the ranks of bootstrap samples: `frequency`, `median`, `low`, `high`, `tau`.
    stability: Mapping[str, list[Any]]

    @property
    def order(self) -> list[int]:
        """Return the indices of the algorithms, the best first."""
        names = self.scores.algorithms
        return sorted(range(len(names)), key=lambda row: (self.ranks[row], names[row]))

    @property
    def tau(self) -> str:
        """Return in words how bootstrap rankings agree with this ranking."""
        tau = self.stability["tau"]
        mean = f"{sum(tau) / len(tau):.3f}" if tau else "undefined"
        return f"Kendall's tau between this ranking and bootstrap rankings: {mean} on average"

    @property
    def title(self) -> str:
        return self.scores.name or "All cases"

    def rows(self) -> list[dict[str, Any]]:
        """Return a row per algorithm, the best first."""
        return [
            {
                "rank": self.ranks[row],
                "algorithm": self.scores.algorithms[row],
                "value": self.values[row],
                "low": self.stability["low"][row],
                "high": self.stability["high"][row],
                "better than": sum(self.better[row]),
                **{method: ranks[row] for method, ranks in self.by_method.items()},
            }
            for row in self.order
        ]

    def cells(self) -> tuple[list[str], list[list[str]]]:
        """Return header and rows of the printed table."""
        body = []
        for row in self.rows():
            low, high = f"{row.pop('low'):g}", f"{row.pop('high'):g}"
            rank, name, value, beaten, *other_ranks = row.values()
            spread = low if low == high else f"{low}–{high}"
            body.append(
                [f"{rank:g}", name, format_number(value), spread, str(beaten), *(f"{rank:g}" for rank in other_ranks)]
            )
        return ["rank", "algorithm", "value", SPREAD, "better than", *self.by_method], body

    def sign(self, row: int, column: int) -> str:
        """Return "+", "−" or "=" if an algorithm is better, worse, or not significantly different."""
        return "+" if self.better[row][column] else "−" if self.better[column][row] else "="

    def verdict(self) -> str:
        """Return the sentence that names the leader and the significantly worse methods."""
        names, order = self.scores.algorithms, self.order
        cases = self.scores.count_of_cases
        leaders = [row for row in order if self.ranks[row] == self.ranks[order[0]]]
        if len(leaders) > 1:
            tied = ", ".join(names[row] for row in leaders)
            return f"{self.title}: {tied} share the first rank over {cases}."
        leader, following = order[0], order[1:]
        close = [names[row] for row in following if self.sign(leader, row) == "="]
        apart = (
            f"does not differ significantly from {', '.join(close)}"
            if close
            else "is significantly better than every other"
        )
        text = f"{self.title}: {names[leader]} is first over {cases}"
        return f"{text}, and {apart}." if following else f"{text}."

    def document(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        names = {"task": self.scores.name, "cases": [*self.scores.cases], "algorithms": [*self.scores.algorithms]}
        values = ("values", "ranks", "by_method", "heatmap", "better", "stability")
        return names | {name: getattr(self, name) for name in values}


def rank_by_every_rule(task: TaskScores, rule: Rule, draws: int) -> RankedTask:
    """Return the task ranked by the rule and by all other methods, with significant pairs."""
    rules = {method: Rule(method, remove=rule.remove) for method in METHODS}
    filled, tested = _fill_missing(task, rule), _fill_missing(task, rules["test-then-rank"])
    ranked = _rank_task(filled, rule)
    spread = _measure_stability(filled, rule, _redraw_cases(len(task.cases), draws))
    return RankedTask(
        task,
        ranked.values[0].tolist(),
        ranked.ranks[0].tolist(),
        {
            name: _rank_task(_fill_missing(task, other_rule), other_rule).ranks[0].tolist()
            for name, other_rule in rules.items()
        },
        _count_ranks(task).tolist(),
        [[bool(p <= rule.alpha) for p in row] for row in _pairwise_p(tested, None, "holm")[0].tolist()],
        {key: value.tolist() for key, value in asdict(spread).items()},
    )
