"""Rankings of algorithms from their values in each case, of all cases or of redrawn ones, and their plots."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from segjudge.analysis import Method
from segjudge.analysis.statistics import Floats, Ties, flip_signs, holm, jackknife_error, kendall, ranks_of, wilcoxon
from segjudge.evaluation_script.families.base.reports import interval
from segjudge.evaluation_script.files.packed import replace_file
from segjudge.system.errors import UsageError, install_line
from segjudge.system.files import file_name, make_folder

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_Adjustment = Literal["none", "holm"]
#: A p that is at most this decides.
_ALPHA = 0.05
#: Rows of weights that are looked at together, which bounds the memory.
_BLOCK = 250


@dataclass(frozen=True)
class TaskScores:
    """The values of the algorithms (rows) in the cases (columns) of one task; NaN where there is none."""

    name: str
    algorithms: tuple[str, ...]
    cases: tuple[str, ...]
    values: Floats
    #: Small values are good.
    smaller: bool = False

    def fill(self, value: float) -> TaskScores:
        """Put a value in place of each missing one."""
        return replace(self, values=np.where(np.isnan(self.values), value, self.values))

    @property
    def missing(self) -> bool:
        return bool(np.isnan(self.values).any())

    @property
    def zero_is_worst(self) -> bool:
        """Whether no value is worse than 0, so that a missing one may count as that."""
        values = self.values[~np.isnan(self.values)]
        return bool((values <= 0).all() if self.smaller else (values >= 0).all())

    def fill_with_worst(self) -> TaskScores:
        """Put the worst value of the case in place of each missing one."""
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
    adjustment: _Adjustment = "none"
    alpha: float = _ALPHA


@dataclass(frozen=True)
class _Ranking:
    """What the algorithms reached, and their ranks: a row for each redrawing."""

    values: Floats
    ranks: Floats


def fill_missing(task: TaskScores, rule: Rule) -> TaskScores:
    """Fill a task for a rule so that nobody gains by a missing value, unless its case is to be left out.

    Ranks within cases put it last; what averages or tests values takes the worst of the case.
    """
    return task if rule.remove or rule.method.startswith("rank-") else task.fill_with_worst()


def rank_task(task: TaskScores, rule: Rule, weights: Floats | None = None) -> _Ranking:
    """Rank a task for each row of weights: how often each case counts, by default once.

    A case that counts twice is two cases.
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
        values = _average_values(task.values, weights, rule.method)
    return _Ranking(values, ranks_of(values, smaller=smaller, ties=rule.ties))


def _average_values(values: Floats, weights: Floats, method: Method) -> Floats:
    if method in ("mean-then-rank", "rank-then-mean"):
        return _weigh_means(values, weights)
    return np.stack([_weigh_medians(row, weights) for row in values], axis=1)


def _weigh_means(values: Floats, weights: Floats) -> Floats:
    """The mean of each row of values for each row of weights, rounded once, so that equal means are equal.

    A value is the sum of one with few digits, whose weighted sums are exact, and a small rest.
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


def pairwise_p(task: TaskScores, weights: Floats | None = None, adjustment: _Adjustment = "none") -> Floats:
    """Test by one-sided signed ranks whether the row's algorithm is better than the column's.

    The p have the shape (rows of weights, algorithms, algorithms), with NaN on the diagonal; they may be adjusted for
    all ordered pairs.
    """
    if weights is None:
        weights = np.ones((1, len(task.cases)))
    count = len(task.algorithms)
    p_values = np.full((len(weights), count, count), np.nan)
    for row, column in combinations(range(count), 2):
        difference = task.values[row] - task.values[column]
        greater, less = wilcoxon(-difference if task.smaller else difference, weights)
        p_values[:, row, column], p_values[:, column, row] = greater, less
    return p_values if adjustment == "none" else holm(p_values.reshape(len(p_values), -1)).reshape(p_values.shape)


def _count_beaten(task: TaskScores, rule: Rule, weights: Floats) -> Floats:
    """The share of the other algorithms that each is significantly better than."""
    with np.errstate(invalid="ignore"):
        better = pairwise_p(task, weights, rule.adjustment) <= rule.alpha
    shares: Floats = better.sum(axis=2) / max(1, len(task.algorithms) - 1)
    return shares


def _cut_blocks(weights: Floats) -> Iterator[Floats]:
    for start in range(0, len(weights), _BLOCK):
        yield weights[start : start + _BLOCK]


def count_ranks(task: TaskScores) -> NDArray[np.intp]:
    """Count how many cases gave each algorithm (row) each rank (column); a missing value has none."""
    ranks = ranks_of(task.values.T, smaller=task.smaller).T
    places = np.arange(1, len(task.algorithms) + 1)
    took_rank = (ranks[:, :, None] == places) & ~np.isnan(task.values)[:, :, None]
    counts: NDArray[np.intp] = took_rank.sum(axis=1)
    return counts


# ── stability ───────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class _Stability:
    """How rankings of redrawn cases spread around the ranking of all cases."""

    #: The share of the redrawings in which each algorithm (row) took each rank (column).
    frequency: Floats
    #: The median rank of each algorithm, and where 95 % of its ranks lie.
    median: Floats
    low: Floats
    high: Floats
    #: Kendall's tau-b of each redrawn ranking with the whole one; undefined ones are left out.
    tau: Floats


def redraw_cases(cases: int, draws: int) -> Floats:
    """How often each case is drawn in each of the redrawings, equal ones for equal arguments."""
    generator = np.random.Generator(np.random.PCG64(0))
    return generator.multinomial(cases, np.full(cases, 1 / cases), draws).astype(np.float64)


def measure_stability(task: TaskScores, rule: Rule, weights: Floats) -> _Stability:
    ranks, redrawn_ranks = rank_task(task, rule).ranks, rank_task(task, rule, weights).ranks
    places = np.arange(1, len(task.algorithms) + 1)
    tau = np.concatenate([kendall(rows, np.broadcast_to(ranks, rows.shape)) for rows in _cut_blocks(redrawn_ranks)])
    low, median, high = np.quantile(redrawn_ranks, [0.025, 0.5, 0.975], axis=0)
    frequency = np.stack([np.mean(redrawn_ranks == rank, axis=0) for rank in places], axis=1)
    return _Stability(frequency, median, low, high, tau[~np.isnan(tau)])


def average_ranks(rankings: dict[str, dict[str, float]]) -> dict[str, float]:
    """Average each algorithm's rank over tasks (ties averaged); who lacks in a task is last there."""
    names = sorted({name for ranks in rankings.values() for name in ranks})
    table = np.array([[ranks.get(name, np.nan) for name in names] for ranks in rankings.values()])
    means = ranks_of(table, smaller=True, ties="average").mean(axis=0)
    return dict(sorted(zip(names, means.tolist(), strict=True), key=lambda pair: (pair[1], pair[0])))


# ── what can be told apart ──────────────────────────────────────────────────


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
        return self.adjusted <= _ALPHA


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


# ── plots ───────────────────────────────────────────────────────────────────


_BLUE, _ORANGE, _GREY = "#0072b2", "#e69f00", "#8a8f98"
#: Points of a blob that took every redrawing.
_LARGEST = 900


def plot_ranking(task: TaskScores, ranked: dict[str, Any], folder: str) -> list[str]:
    """Write the plots of one ranking, as `segjudge rank` made it; return their files."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise UsageError(f"plots need matplotlib: {install_line('interactive')}") from None
    import matplotlib as mpl

    make_folder(folder)
    order = sorted(range(len(task.algorithms)), key=lambda row: (ranked["ranks"][row], task.algorithms[row]))
    name = file_name(task.name) or "all"
    plots = {
        "stability": _draw_stability,
        "places": _draw_places,
        "significance": _draw_significance,
        "methods": _draw_methods,
    }
    paths = []
    with mpl.rc_context({"svg.hashsalt": name, "font.size": 9, "text.parse_math": False}):
        for kind, draw in plots.items():
            size = 2.2 + 0.35 * len(order)
            figure = Figure(figsize=(max(4.5, size), max(3.2, size * 0.8)), layout="constrained")
            axes = figure.subplots()
            draw(axes, task, ranked, order)
            for ending, metadata in (("svg", {"Date": None}), ("png", {"Software": None})):
                paths.append(os.path.join(folder, f"{name}-{kind}.{ending}"))
                with replace_file(paths[-1]) as partial:
                    figure.savefig(partial, format=ending, dpi=150, metadata=metadata)
    return paths


def _format_label(name: str) -> str:
    """Write a name as legends show it: they leave out what begins with an underscore."""
    return f" {name}" if name.startswith("_") else name


def _set_names(axes: Axes, task: TaskScores, order: list[int]) -> None:
    axes.set_xticks(range(len(order)), [task.algorithms[row] for row in order], rotation=45, ha="right")


def _draw_stability(axes: Axes, task: TaskScores, ranked: dict[str, Any], order: list[int]) -> None:
    """Draw how often redrawn cases gave each rank: the larger the blob, the more often."""
    spread = ranked["stability"]
    frequency = np.array(spread["frequency"])[order]
    columns, ranks = np.nonzero(frequency)
    axes.scatter(columns, ranks + 1, frequency[columns, ranks] * _LARGEST, color=_BLUE, alpha=0.75, linewidths=0)
    axes.vlines(range(len(order)), [spread["low"][row] for row in order], [spread["high"][row] for row in order], _GREY)
    axes.plot(range(len(order)), [spread["median"][row] for row in order], "x", color="black")
    axes.set(ylabel="rank", title=f"{task.name}: ranks of redrawn cases; × median, line 95 %".lstrip(": "))
    axes.set_yticks(range(1, len(order) + 1))
    axes.set(xlim=(-0.7, len(order) - 0.3), ylim=(len(order) + 0.7, 0.3))
    _set_names(axes, task, order)


def _draw_places(axes: Axes, task: TaskScores, _ranked: dict[str, Any], order: list[int]) -> None:
    """Draw the value of each algorithm in each case, at the place that it took there."""
    count = len(order)
    within = ranks_of(task.values.T, smaller=task.smaller)
    for values, ranks in zip(task.values.T, within, strict=True):
        # Ties are broken by the ranking itself, so that equal runs draw equal plots.
        order_in_case = sorted(range(count), key=lambda index: (ranks[order[index]], index))
        x = [rank * (count + 1) + index for rank, index in enumerate(order_in_case)]
        y = [values[order[index]] for index in order_in_case]
        axes.plot(x, y, color=_GREY, linewidth=0.4, alpha=0.5)
        axes.scatter(x, y, 12, [f"C{index % 10}" for index in order_in_case], zorder=2)
    axes.set_xticks([rank * (count + 1) + (count - 1) / 2 for rank in range(count)], [f"{r + 1}" for r in range(count)])
    axes.set(xlabel="place in the case", ylabel="value", title=f"{task.name}: who took which place".lstrip(": "))
    for index, row in enumerate(order):
        axes.scatter([], [], 12, f"C{index % 10}", label=_format_label(task.algorithms[row]))
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5), fontsize=7)


def _draw_significance(axes: Axes, task: TaskScores, ranked: dict[str, Any], order: list[int]) -> None:
    """Draw which algorithm (row) is significantly better or worse than which (column)."""
    better = np.array(ranked["better"])[np.ix_(order, order)]
    for row, column in np.ndindex(better.shape):
        if row != column:
            sign, colour = (
                ("+", _BLUE) if better[row, column] else ("−", _ORANGE) if better[column, row] else ("=", _GREY)
            )
            axes.text(column, row, sign, ha="center", va="center", color=colour, weight="bold")
    axes.set(xlim=(-0.5, len(order) - 0.5), ylim=(len(order) - 0.5, -0.5))
    axes.set_title(f"{task.name}: row better +, worse −, not told apart = (Holm)".lstrip(": "))
    axes.set_yticks(range(len(order)), [task.algorithms[row] for row in order])
    axes.set_aspect("equal")
    _set_names(axes, task, order)


def _draw_methods(axes: Axes, task: TaskScores, ranked: dict[str, Any], order: list[int]) -> None:
    """Draw the rank of each algorithm by each method of ranking."""
    methods = list(ranked["by_method"])
    for index, row in enumerate(order):
        ranks = [ranked["by_method"][method][row] for method in methods]
        axes.plot(range(len(methods)), ranks, "o-", color=f"C{index % 10}", label=_format_label(task.algorithms[row]))
    axes.set_xticks(range(len(methods)), methods, rotation=30, ha="right")
    axes.set(ylabel="rank", title=f"{task.name}: does the method of ranking matter?".lstrip(": "))
    axes.set_yticks(range(1, len(order) + 1))
    axes.invert_yaxis()
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5), fontsize=7)
