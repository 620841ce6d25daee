"""Statistics: ranks, paired tests, jackknife errors, and significant differences."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from itertools import combinations
from statistics import NormalDist
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from segjudge.evaluation_script.families.base.reports import interval, standard_errors
from segjudge.evaluation_script.masks.stack import Array

Floats = NDArray[np.float64]
#: The maximum p of a significant difference.
ALPHA = 0.05
#: The power of a test that detects a difference often enough.
_POWER = 0.8
#: Estimates of cases are stated up to this multiple of the existing ones.
_MOST_TIMES = 100
#: The rank of equal values: the smallest of their places, or the mean.
Ties = Literal["min", "average"]


def ranks_of(values: Floats, *, smaller: bool = False, ties: Ties = "min") -> Floats:
    """Return ranks along the last axis, 1 for the best; missing values (NaN) rank last."""
    missing = np.isnan(values)
    keys = np.where(missing, np.inf, values if smaller else -values)
    ranks = _rank_ties_lowest(keys)
    if ties == "average":
        ranks = (ranks + keys.shape[-1] + 1 - _rank_ties_lowest(-keys)) / 2
    if missing.any():
        largest = np.max(np.where(missing, 0, ranks), axis=-1, initial=0, keepdims=True)
        after = largest + (1 if ties == "min" else (missing.sum(axis=-1, keepdims=True) + 1) / 2)
        ranks = np.where(missing, after, ranks)
    return ranks


def _rank_ties_lowest(keys: Floats) -> Floats:
    """Return the rank of each key in rising order; ties get the smallest rank."""
    order = np.argsort(keys, axis=-1, kind="stable")
    ordered = np.take_along_axis(keys, order, axis=-1)
    begins = np.ones(keys.shape, bool)
    begins[..., 1:] = ordered[..., 1:] != ordered[..., :-1]
    smallest = np.maximum.accumulate(np.where(begins, np.arange(1.0, keys.shape[-1] + 1), 0), axis=-1)
    places = np.empty(keys.shape)
    np.put_along_axis(places, order, smallest, axis=-1)
    return places


def kendall(before: Floats, after: Floats) -> Floats:
    """Return Kendall's tau-b of two rankings along the last axis; NaN if one is constant."""
    signs = [np.sign(ranks[..., :, None] - ranks[..., None, :]) for ranks in (before, after)]
    untied = [np.sum(sign != 0, axis=(-2, -1), dtype=np.float64) for sign in signs]
    with np.errstate(invalid="ignore", divide="ignore"):
        agreed: Floats = np.sum(signs[0] * signs[1], axis=(-2, -1)) / np.sqrt(untied[0] * untied[1])
    return agreed


# ── paired tests ────────────────────────────────────────────────────────────


#: The maximum number of cases for which all sign flips are tried, and the number of random flips beyond it.
_EXACT_FLIPS, _DRAWN_FLIPS = 16, 9_999
#: The number of weights processed at once, which stay in the processor's cache.
_CELLS = 1 << 17
#: Values of cases, and sums of flipped differences, are equal if they differ by less.
_TOLERANCE = 1e-12
#: Up to this share of a pair's largest difference, differences of pseudo-values count as none: those of a case in which
#: two algorithms are equal are rarely 0 if the metric is not a mean, but small, and all have the same sign.
_PSEUDO_SHARE = 0.05


def subtract(values: Floats, rival: Floats, *, pseudo: bool) -> Floats:
    """Return the differences by case for tests; small differences of pseudo-values are 0.

    Tests stay exact, since sizes alone decide which differences are 0, and flipped signs do not change sizes.
    """
    between = values - rival
    if pseudo and between.size:
        between = np.where(np.abs(between) > _PSEUDO_SHARE * np.abs(between).max(), between, 0)
    return between


def wilcoxon(differences: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Return the one-sided p of Wilcoxon's signed-rank test, for greater and for less.

    A row of weights gives the number of times each case counts; a case that counts twice ties with itself. Missing
    (NaN) and zero differences do not count. The distribution of the statistic is approximated by a normal one, as in R
    for ties.
    """
    from scipy.special import erfc

    order = np.flatnonzero(~np.isnan(differences) & (differences != 0))
    order = order[np.argsort(np.abs(differences[order]), kind="stable")]
    _, group, alike = np.unique(np.abs(differences[order]), return_inverse=True, return_counts=True)
    positive, rows = differences[order] > 0, max(1, _CELLS // max(1, len(order)))
    batches = [
        _center_and_variance(np.take(weights[start : start + rows], order, axis=1), positive, group, alike)
        for start in range(0, len(weights), rows)
    ]
    center, variance = np.concatenate(batches, axis=1)
    with np.errstate(divide="ignore"):  # the half corrects for continuity
        scores = (center - 0.5) / np.sqrt(variance), -(center + 0.5) / np.sqrt(variance)
    return erfc(scores[0] / math.sqrt(2)) / 2, erfc(scores[1] / math.sqrt(2)) / 2


def _center_and_variance(weights: Floats, positive: Array, group: Array, tie_groups: Array) -> tuple[Floats, Floats]:
    """Return the centred sum of the positive differences' ranks, and its variance.

    Cases are in the order of their differences; `tie_groups` has groups of equal ones. Sums of whole numbers and
    halves are exact in any order.
    """
    reached = np.take(np.cumsum(weights, axis=1), np.cumsum(tie_groups) - 1, axis=1)
    tied = np.diff(reached, axis=1, prepend=0)
    ranks = reached - (tied - 1) / 2
    statistic = np.einsum("ij,ij->i", weights[:, positive], ranks[:, group[positive]])
    count = weights.sum(axis=1)
    variance = count * (count + 1) * (2 * count + 1) / 24 - (np.einsum("ij,ij,ij->i", tied, tied, tied) - count) / 48
    return statistic - count * (count + 1) / 4, variance


def _flip_signs(differences: Floats) -> Floats:
    """Return the two-sided p of each row's sum of paired differences under random signs.

    With at most 16 cases, all signs are tried; with more, the same random ones for every row. Zero differences are
    skipped.
    """
    p_values = np.ones(len(differences))
    cases = np.count_nonzero(differences, axis=1)
    for count in np.unique(cases[cases > 0]).tolist():
        rows = np.flatnonzero(cases == count)
        nonzero = differences[rows]
        nonzero = nonzero[nonzero != 0].reshape(len(rows), count)
        observed = np.abs([math.fsum(row) for row in nonzero]) - _TOLERANCE * np.maximum(
            1.0, np.abs(nonzero).max(axis=1)
        )
        p_values[rows] = (_sign_flip_p_value if count <= _EXACT_FLIPS else _flip_at_random)(nonzero, observed)
    return p_values


def _sign_flip_p_value(differences: Floats, observed: Floats) -> Floats:
    """Return the fraction of sign patterns whose sum is at least the observed one."""
    shares = []
    for row, least in zip(differences, observed, strict=True):
        sums = np.zeros(1)
        for difference in row:
            sums = np.concatenate([sums + difference, sums - difference])
        shares.append(np.count_nonzero(np.abs(sums) >= least) / len(sums))
    return np.array(shares)


def _flip_at_random(differences: Floats, observed: Floats) -> Floats:
    generator, cases = np.random.Generator(np.random.PCG64(0)), differences.shape[1]
    reached = np.zeros(len(differences))
    for batch in np.array_split(np.arange(_DRAWN_FLIPS), max(1, cases // 64)):
        signs = generator.integers(0, 2, (len(batch), cases)) * 2.0 - 1
        reached += np.count_nonzero(np.abs(signs @ differences.T) >= observed, axis=0)
    share: Floats = (1 + reached) / (1 + _DRAWN_FLIPS)
    return share


def holm(p_values: Floats) -> Floats:
    """Return p adjusted by Holm along the last axis, ignoring NaN."""
    tests = np.count_nonzero(~np.isnan(p_values), axis=-1, keepdims=True)
    order = np.argsort(p_values, axis=-1)
    ascending = np.take_along_axis(p_values, order, axis=-1)
    stepped = np.maximum.accumulate((tests - np.arange(p_values.shape[-1])) * ascending, axis=-1)
    result = np.empty_like(p_values)
    np.put_along_axis(result, order, np.minimum(1, stepped), axis=-1)
    return result


def _jackknife_error(sums: Floats, counts: Floats) -> float:
    """Return the jackknife error of total sum / total count over cases; NaN for one case."""
    without = (sums.sum() - sums) / (counts.sum() - counts) if len(sums) > 1 else sums
    return standard_errors({"": without}).get("", math.nan)


def _cases_needed(difference: float, error: float, cases: int, algorithms: int) -> int | None:
    """Estimate how many cases detect a difference with a power of 80 %, adjusted for all pairs; None if unknown.

    The spread comes from the given cases. The estimate is at least the number of cases whose full agreement would be
    significant.
    """
    if not difference or not error or math.isnan(error):
        return None
    pairs = algorithms * (algorithms - 1) // 2
    normal = NormalDist()
    reach = normal.inv_cdf(1 - ALPHA / pairs / 2) + normal.inv_cdf(_POWER)
    fewest = math.ceil(math.log2(2 * pairs / ALPHA))
    return max(math.ceil((reach * error * math.sqrt(cases) / difference) ** 2), fewest)


# ── differences and their significance ─────────────────────────────────────


#: The cases: sequences for metrics that are means over their objects; otherwise a fixed number of groups.
SEQUENCES, GROUPS = "sequences", "groups of cases"


@dataclass(frozen=True)
class Difference:
    """The difference of two algorithms over the same cases: first minus second."""

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
    """The mean of an algorithm over the cases, and its range of ranks."""

    name: str
    value: float
    error: float
    low: float | None
    high: float | None
    #: Over all pairs, its place is in this range with 95 % confidence.
    place_from: int
    place_to: int

    @property
    def is_alone_best(self) -> bool:
        """Return whether it is significantly better than every other."""
        return self.place_to == 1

    @property
    def places(self) -> str:
        return str(self.place_from) if self.place_from == self.place_to else f"{self.place_from}–{self.place_to}"


@dataclass(frozen=True)
class Sums:
    """The sums of a metric per algorithm and case, and the numbers of objects."""

    algorithms: tuple[str, ...]
    #: (algorithms, cases)
    sums: Floats
    #: (cases)
    counts: Floats
    smaller: bool = False
    #: The sums are jackknife pseudo-values, for a metric that is not a mean.
    pseudo: bool = False

    def subtract(self, row: int, column: int) -> Floats:
        """Return the differences of two algorithms by case, for tests."""
        return subtract(self.sums[row], self.sums[column], pseudo=self.pseudo)

    def sort_pair(self, pair: Difference) -> tuple[str, str]:
        """Return the names of a pair, the better one first."""
        ahead = not pair.difference or (pair.difference > 0) != self.smaller
        return (pair.name, pair.rival) if ahead else (pair.rival, pair.name)

    def better_pairs(self, pairs: list[Difference]) -> set[tuple[str, str]]:
        """Return the names of significantly different pairs, the better one first."""
        return {self.sort_pair(pair) for pair in pairs if pair.apart}


def compare_pairs(table: Sums) -> list[Difference]:
    """Return the differences of all pairs: jackknife intervals, sign-flip p, Holm's adjustment."""
    pairs = list(combinations(range(len(table.algorithms)), 2))
    cases, differences = len(table.counts), []
    flips = _flip_signs(np.array([table.subtract(*pair) for pair in pairs]).reshape(-1, cases))
    for (row, column), p, adjusted in zip(pairs, flips.tolist(), holm(flips).tolist(), strict=True):
        between = table.sums[row] - table.sums[column]
        value = float(between.sum() / table.counts.sum())
        error = _jackknife_error(between, table.counts)
        low, high = interval(value, error, cases) if cases > 1 else (None, None)
        names = table.algorithms[row], table.algorithms[column]
        differences.append(Difference(*names, value, error, low, high, p, adjusted))
    return differences


def estimate_means(table: Sums, pairs: list[Difference], *, bounds: tuple[float, float] = (0.0, 1.0)) -> list[Mean]:
    """Return each algorithm's mean, its interval cut to the metric's bounds, and its range of ranks."""
    cases, means = len(table.counts), []
    better = table.better_pairs(pairs)
    for name, sums in zip(table.algorithms, table.sums, strict=True):
        value = float(sums.sum() / table.counts.sum())
        error = _jackknife_error(sums, table.counts)
        low, high = (None, None) if cases < 2 else np.clip(interval(value, error, cases), *bounds).tolist()
        place_from = 1 + sum(worse == name for _, worse in better)
        place_to = len(table.algorithms) - sum(winner == name for winner, _ in better)
        means.append(Mean(name, value, error, low, high, place_from, place_to))
    return means


def describe_pair(pair: Difference, table: Sums, cases_are: str = SEQUENCES) -> str:
    """Return the sentence about a pair's difference and its significance."""
    better, worse = table.sort_pair(pair)
    sign, cases = (1 if better == pair.name else -1), len(table.counts)
    between = table.subtract(table.algorithms.index(better), table.algorithms.index(worse)).tolist()
    cases_won, cases_lost = sum(value > _TOLERANCE for value in between), sum(value < -_TOLERANCE for value in between)
    if table.smaller:
        cases_won, cases_lost = cases_lost, cases_won
    interval = ""
    if pair.low is not None and pair.high is not None:
        low, high = sorted((sign * pair.low, sign * pair.high))
        interval = f", 95 % {low:+.3f} to {high:+.3f}"
        if not pair.apart and low * high > 0 and len(table.algorithms) > 2:
            interval += " without adjustment"
    text = (
        f"{better} − {worse}: {sign * pair.difference:+.3f}{interval}; "
        f"p {pair.p:.3g}, adjusted {pair.adjusted:.3g}; "
        f"{cases_won} won, {cases_lost} lost, {cases - cases_won - cases_lost} tied"
    )
    if pair.apart:
        return f"{text}: {better} is better."
    needed = _cases_needed(pair.difference, pair.error, cases, len(table.algorithms))
    times = (needed or 0) / cases
    many = f"about {needed} {cases_are}" if cases_are == SEQUENCES else f"{times:.1f} times as many"
    if times > _MOST_TIMES:
        many = f"more than {_MOST_TIMES} times as many"
    # An estimate of at most the existing cases would contradict the test, which shows that these are too few.
    outlook = "" if needed is None or needed <= cases else f"; to detect a difference of this size, compare {many}"
    return f"{text}: {better} and {worse} do not differ significantly on {cases} {cases_are}{outlook}."
