"""Paired tests, their adjustment for how many there are, and the errors of ratios by the jackknife."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from .ranks import Floats, groups

Adjustment = Literal["none", "holm", "hochberg", "bonferroni", "bh", "by"]
#: Sign flips are all tried up to so many cases, and so many are drawn beyond.
EXACT_FLIPS, DRAWN_FLIPS = 16, 9_999
#: The exact law of the signed ranks is used below so many differences, as R does.
EXACT_RANKS = 50
#: Sums of flipped differences that differ by less are equal.
SAME = 1e-12


@dataclass(frozen=True)
class SignedRank:
    """Wilcoxon's signed-rank test: the sum of the ranks of positive differences, and its p for each alternative."""

    statistic: Floats
    greater: Floats
    less: Floats
    two_sided: Floats


def signed_rank(differences: Floats, weights: Floats | None = None, *, corrected: bool = True) -> SignedRank:
    """Return the test by its normal approximation, for each row of weights: how often each case counts.

    Differences that are missing (NaN) or zero do not count.  A case that counts twice ties with itself.
    """
    if weights is None:
        weights = np.ones((1, len(differences)))
    used = np.flatnonzero(~np.isnan(differences) & (differences != 0))
    used = used[np.argsort(np.abs(differences[used]), kind="stable")]
    ordered = differences[used]
    if not len(used):
        nothing = np.zeros(len(weights))
        return SignedRank(nothing, *_p_values(nothing, nothing, corrected=corrected))
    first, _ = groups(np.abs(ordered))
    starts = np.flatnonzero(first == np.arange(len(ordered)))
    counted = weights[:, used]
    tied = np.add.reduceat(counted, starts, axis=1)
    ranks = np.cumsum(tied, axis=1) - (tied - 1) / 2
    statistic = np.sum(ranks * np.add.reduceat(counted * (ordered > 0), starts, axis=1), axis=1)
    count = counted.sum(axis=1)
    center = statistic - count * (count + 1) / 4
    variance = count * (count + 1) * (2 * count + 1) / 24 - np.sum(tied**3 - tied, axis=1) / 48
    return SignedRank(statistic, *_p_values(center, np.sqrt(variance), corrected=corrected))


def _p_values(center: Floats, deviation: Floats, *, corrected: bool) -> tuple[Floats, Floats, Floats]:
    """Return p of greater, less and two-sided, with the correction for continuity or without."""
    half = 0.5 if corrected else 0.0
    with np.errstate(invalid="ignore", divide="ignore"):
        greater = _upper_tail((center - half) / deviation)
        less = _upper_tail(-(center + half) / deviation)
        z = (center - np.sign(center) * half) / deviation
        two_sided = 2 * _upper_tail(np.abs(z))
    return greater, less, two_sided


def _upper_tail(z: Floats) -> Floats:
    from scipy.special import erfc

    tail: Floats = erfc(z / math.sqrt(2)) / 2
    return tail


def signed_rank_exactly(differences: Floats) -> SignedRank | None:
    """Return the test by its exact law, None where R would not: ties, zeros, or 50 differences and more."""
    known = differences[~np.isnan(differences)]
    count = len(known)
    if not 0 < count < EXACT_RANKS or not known.all() or len(np.unique(np.abs(known))) < count:
        return None
    law = np.ones(1)
    for rank in range(1, count + 1):
        longer = np.zeros(len(law) + rank)
        longer[: len(law)] += law / 2
        longer[rank:] += law / 2
        law = longer
    ranks = np.empty(count)
    ranks[np.argsort(np.abs(known))] = np.arange(1, count + 1)
    statistic = int(ranks[known > 0].sum())
    less, greater = law[: statistic + 1].sum(), law[statistic:].sum()
    return SignedRank(*(np.array([value]) for value in (statistic, greater, less, min(1.0, 2 * min(less, greater)))))


def sign_flips(differences: Floats) -> Floats:
    """Return the two-sided p of the sum of each row of paired differences under random signs.

    All signs are tried for 16 cases and fewer; beyond, the same ones for every row.  A difference of zero is no case.
    """
    found = np.ones(len(differences))
    cases = np.count_nonzero(differences, axis=1)
    for count in np.unique(cases[cases > 0]).tolist():
        rows = np.flatnonzero(cases == count)
        nonzero = differences[rows]
        nonzero = nonzero[nonzero != 0].reshape(len(rows), count)
        observed = np.abs([math.fsum(row) for row in nonzero]) - SAME * np.maximum(1.0, np.abs(nonzero).max(axis=1))
        found[rows] = (_all_flips if count <= EXACT_FLIPS else _drawn_flips)(nonzero, observed)
    return found


def _all_flips(differences: Floats, observed: Floats) -> Floats:
    """Return the share of all patterns of signs in which the sum of a row is as large as was observed."""
    shares = []
    for row, least in zip(differences, observed, strict=True):
        sums = np.zeros(1)
        for difference in row:
            sums = np.concatenate([sums + difference, sums - difference])
        shares.append(np.count_nonzero(np.abs(sums) >= least) / len(sums))
    return np.array(shares)


def _drawn_flips(differences: Floats, observed: Floats) -> Floats:
    generator, cases = np.random.Generator(np.random.PCG64(0)), differences.shape[1]
    reached = np.zeros(len(differences))
    for drawn in np.array_split(np.arange(DRAWN_FLIPS), max(1, cases // 64)):
        signs = generator.integers(0, 2, (len(drawn), cases)) * 2.0 - 1
        reached += np.count_nonzero(np.abs(signs @ differences.T) >= observed, axis=0)
    share: Floats = (1 + reached) / (1 + DRAWN_FLIPS)
    return share


def adjusted(p_values: Floats, method: Adjustment) -> Floats:
    """Return p adjusted for the number of tests along the last axis; missing ones (NaN) are not counted."""
    tests = np.count_nonzero(~np.isnan(p_values), axis=-1, keepdims=True)
    if method == "none":
        return p_values
    if method == "bonferroni":
        return np.minimum(1, p_values * tests)
    order = np.argsort(p_values, axis=-1)
    ascending = np.take_along_axis(p_values, order, axis=-1)
    place = np.arange(1, p_values.shape[-1] + 1)
    if method == "holm":
        stepped = np.maximum.accumulate((tests - place + 1) * ascending, axis=-1)
    else:
        inflated = ascending * ((tests - place + 1) if method == "hochberg" else tests / place)
        if method == "by":
            harmonic = np.concatenate([[0.0], np.cumsum(1 / place)])
            inflated = inflated * harmonic[tests]
        stepped = np.minimum.accumulate(np.where(np.isnan(inflated), np.inf, inflated)[..., ::-1], axis=-1)[..., ::-1]
    result = np.empty_like(p_values)
    np.put_along_axis(result, order, np.minimum(1, stepped), axis=-1)
    return np.where(np.isnan(p_values), np.nan, result)


def jackknife_error(sums: Floats, counts: Floats) -> Floats:
    """Return the standard error of total sum / total count along the last axis, leaving out one case at a time."""
    cases = sums.shape[-1]
    kept = counts.sum(axis=-1, keepdims=True) - counts
    means = (sums.sum(axis=-1, keepdims=True) - sums) / kept
    spread = means - means.mean(axis=-1, keepdims=True)
    error: Floats = np.sqrt((cases - 1) / cases * np.sum(spread**2, axis=-1))
    return error


def cases_needed(difference: float, error: float, cases: int, algorithms: int) -> int | None:
    """Return how many cases would tell a difference four times out of five, None where that cannot be said.

    The spread is taken from so many cases.  No fewer are needed than all of them agreeing would be significant.
    """
    if not difference or not error or math.isnan(error):
        return None
    power = 2.80 * error * math.sqrt(cases) / abs(difference)
    pairs = algorithms * (algorithms - 1) / 2
    fewest = math.ceil(math.log2(2 * pairs / 0.05))
    return max(math.ceil(power**2), fewest)
