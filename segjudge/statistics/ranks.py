"""Ranks of values, and how much two rankings agree."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
#: What equal values get: the smallest of their places, or the mean of their places.
Ties = Literal["min", "average"]


def groups(ordered: Floats) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return for each of the ordered values of a row the first and the last place (from 0) with its value."""
    count = ordered.shape[-1]
    places = np.broadcast_to(np.arange(count), ordered.shape)
    begins = np.ones(ordered.shape, bool)
    begins[..., 1:] = ordered[..., 1:] != ordered[..., :-1]
    first = np.maximum.accumulate(np.where(begins, places, 0), axis=-1)
    ends = np.roll(begins, -1, axis=-1)
    ends[..., -1:] = True
    last = np.minimum.accumulate(np.where(ends, places, count)[..., ::-1], axis=-1)[..., ::-1]
    return first, last


def ranks_of(values: Floats, *, smaller: bool = False, ties: Ties = "min") -> Floats:
    """Return the ranks along the last axis, 1 for the best; what is missing (NaN) comes after the rest."""
    keys = np.where(np.isnan(values), np.inf, values if smaller else -values)
    order = np.argsort(keys, axis=-1, kind="stable")
    first, last = groups(np.take_along_axis(keys, order, axis=-1))
    ranked = first + 1.0 if ties == "min" else (first + last) / 2 + 1
    ranks = np.empty(values.shape)
    np.put_along_axis(ranks, order, ranked, axis=-1)
    missing = np.isnan(values)
    if missing.any():
        largest = np.max(np.where(missing, 0, ranks), axis=-1, initial=0, keepdims=True)
        after = largest + (1 if ties == "min" else (missing.sum(axis=-1, keepdims=True) + 1) / 2)
        ranks = np.where(missing, after, ranks)
    return ranks


def kendall(one: Floats, other: Floats) -> Floats:
    """Return Kendall's tau-b of two rankings along the last axis, NaN where all of one are equal."""
    signs = [np.sign(ranks[..., :, None] - ranks[..., None, :]) for ranks in (one, other)]
    untied = [np.sum(sign != 0, axis=(-2, -1), dtype=np.float64) for sign in signs]
    with np.errstate(invalid="ignore", divide="ignore"):
        agreed: Floats = np.sum(signs[0] * signs[1], axis=(-2, -1)) / np.sqrt(untied[0] * untied[1])
    return agreed


def footrule(one: Floats, other: Floats) -> float:
    """Return Spearman's footrule: the sum of the differences of ranks."""
    return float(np.abs(one - other).sum())
