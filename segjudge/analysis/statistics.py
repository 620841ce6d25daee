"""Ranks of values, paired tests and their adjustment for how many there are, and errors of ratios by the jackknife."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from segjudge.evaluation_script.families.base.reports import standard_errors
from segjudge.evaluation_script.masks.stack import Array

Floats = NDArray[np.float64]
#: A p that is at most this decides.
ALPHA = 0.05
#: What equal values get: the smallest of their places, or the mean of their places.
Ties = Literal["min", "average"]


def ranks_of(values: Floats, *, smaller: bool = False, ties: Ties = "min") -> Floats:
    """Rank along the last axis, 1 for the best; what is missing (NaN) comes after the rest."""
    missing = np.isnan(values)
    keys = np.where(missing, np.inf, values if smaller else -values)
    ranks = _find_smallest_places(keys)
    if ties == "average":
        ranks = (ranks + keys.shape[-1] + 1 - _find_smallest_places(-keys)) / 2
    if missing.any():
        largest = np.max(np.where(missing, 0, ranks), axis=-1, initial=0, keepdims=True)
        after = largest + (1 if ties == "min" else (missing.sum(axis=-1, keepdims=True) + 1) / 2)
        ranks = np.where(missing, after, ranks)
    return ranks


def _find_smallest_places(keys: Floats) -> Floats:
    """The place of each key in rising order; equal ones have the smallest of theirs."""
    order = np.argsort(keys, axis=-1, kind="stable")
    ordered = np.take_along_axis(keys, order, axis=-1)
    begins = np.ones(keys.shape, bool)
    begins[..., 1:] = ordered[..., 1:] != ordered[..., :-1]
    smallest = np.maximum.accumulate(np.where(begins, np.arange(1.0, keys.shape[-1] + 1), 0), axis=-1)
    places = np.empty(keys.shape)
    np.put_along_axis(places, order, smallest, axis=-1)
    return places


def kendall(before: Floats, after: Floats) -> Floats:
    """Kendall's tau-b of two rankings along the last axis, NaN where all of a ranking are equal."""
    signs = [np.sign(ranks[..., :, None] - ranks[..., None, :]) for ranks in (before, after)]
    untied = [np.sum(sign != 0, axis=(-2, -1), dtype=np.float64) for sign in signs]
    with np.errstate(invalid="ignore", divide="ignore"):
        agreed: Floats = np.sum(signs[0] * signs[1], axis=(-2, -1)) / np.sqrt(untied[0] * untied[1])
    return agreed


# ── paired tests ────────────────────────────────────────────────────────────


#: Sign flips are all tried up to so many cases, and so many are drawn beyond.
_EXACT_FLIPS, _DRAWN_FLIPS = 16, 9_999
#: So many weights are looked at together, which stay in the processor's cache.
_CELLS = 1 << 17
#: Sums of flipped differences that differ by less are equal.
_SAME = 1e-12


def wilcoxon(differences: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Wilcoxon's signed-rank test: p that differences are greater than 0, and that they are less.

    A row of weights says how often each case counts; one that counts twice ties with itself. Differences that are
    missing (NaN) or zero do not count. The law of the statistic is approximated by a normal one, as R does for ties.
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


def _center_and_variance(weights: Floats, positive: Array, group: Array, alike: Array) -> tuple[Floats, Floats]:
    """By how much the ranks of positive differences sum to more than is expected, and the variance of that.

    Cases are in the order of their differences: `alike` ones, each in its group. Whole numbers and halves have sums
    that are exact in any order.
    """
    reached = np.take(np.cumsum(weights, axis=1), np.cumsum(alike) - 1, axis=1)
    tied = np.diff(reached, axis=1, prepend=0)
    ranks = reached - (tied - 1) / 2
    statistic = np.einsum("ij,ij->i", weights[:, positive], ranks[:, group[positive]])
    count = weights.sum(axis=1)
    variance = count * (count + 1) * (2 * count + 1) / 24 - (np.einsum("ij,ij,ij->i", tied, tied, tied) - count) / 48
    return statistic - count * (count + 1) / 4, variance


def flip_signs(differences: Floats) -> Floats:
    """The two-sided p of the sum of each row of paired differences under random signs.

    All signs are tried for 16 cases and fewer; beyond, the same ones for every row.  A difference of zero is no case.
    """
    p_values = np.ones(len(differences))
    cases = np.count_nonzero(differences, axis=1)
    for count in np.unique(cases[cases > 0]).tolist():
        rows = np.flatnonzero(cases == count)
        nonzero = differences[rows]
        nonzero = nonzero[nonzero != 0].reshape(len(rows), count)
        observed = np.abs([math.fsum(row) for row in nonzero]) - _SAME * np.maximum(1.0, np.abs(nonzero).max(axis=1))
        p_values[rows] = (_flip_all if count <= _EXACT_FLIPS else _flip_at_random)(nonzero, observed)
    return p_values


def _flip_all(differences: Floats, observed: Floats) -> Floats:
    """The share of all patterns of signs in which the sum of a row is as large as was observed."""
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
    """Adjust p by Holm for the number of tests along the last axis; missing ones (NaN) are not counted."""
    tests = np.count_nonzero(~np.isnan(p_values), axis=-1, keepdims=True)
    order = np.argsort(p_values, axis=-1)
    ascending = np.take_along_axis(p_values, order, axis=-1)
    stepped = np.maximum.accumulate((tests - np.arange(p_values.shape[-1])) * ascending, axis=-1)
    result = np.empty_like(p_values)
    np.put_along_axis(result, order, np.minimum(1, stepped), axis=-1)
    return result


def jackknife_error(sums: Floats, counts: Floats) -> float:
    """The standard error of total sum / total count, leaving out one case at a time; NaN of a single case."""
    without = (sums.sum() - sums) / (counts.sum() - counts) if len(sums) > 1 else sums
    return standard_errors({"": without}).get("", math.nan)


def cases_needed(difference: float, error: float, cases: int, algorithms: int) -> int | None:
    """How many cases would tell a difference four times out of five, None where that cannot be said.

    The spread is taken from so many cases.  No fewer are needed than all of them agreeing would be significant.
    """
    if not difference or not error or math.isnan(error):
        return None
    power = 2.80 * error * math.sqrt(cases) / abs(difference)
    pairs = algorithms * (algorithms - 1) / 2
    fewest = math.ceil(math.log2(2 * pairs / 0.05))
    return max(math.ceil(power**2), fewest)
