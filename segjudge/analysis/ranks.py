"""Ranks of values, and how much two rankings agree."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
#: What equal values get: the smallest of their places, or the mean of their places.
Ties = Literal["min", "average"]


def ranks_of(values: Floats, *, smaller: bool = False, ties: Ties = "min") -> Floats:
    """Return the ranks along the last axis, 1 for the best; what is missing (NaN) comes after the rest."""
    missing = np.isnan(values)
    keys = np.where(missing, np.inf, values if smaller else -values)
    ranks = _smallest_places(keys)
    if ties == "average":
        ranks = (ranks + keys.shape[-1] + 1 - _smallest_places(-keys)) / 2
    if missing.any():
        largest = np.max(np.where(missing, 0, ranks), axis=-1, initial=0, keepdims=True)
        after = largest + (1 if ties == "min" else (missing.sum(axis=-1, keepdims=True) + 1) / 2)
        ranks = np.where(missing, after, ranks)
    return ranks


def _smallest_places(keys: Floats) -> Floats:
    """Return the place of each key in rising order; equal ones have the smallest of theirs."""
    order = np.argsort(keys, axis=-1, kind="stable")
    ordered = np.take_along_axis(keys, order, axis=-1)
    begins = np.ones(keys.shape, bool)
    begins[..., 1:] = ordered[..., 1:] != ordered[..., :-1]
    first = np.maximum.accumulate(np.where(begins, np.arange(1.0, keys.shape[-1] + 1), 0), axis=-1)
    places = np.empty(keys.shape)
    np.put_along_axis(places, order, first, axis=-1)
    return places


def kendall(one: Floats, other: Floats) -> Floats:
    """Return Kendall's tau-b of two rankings along the last axis, NaN where all of one are equal."""
    signs = [np.sign(ranks[..., :, None] - ranks[..., None, :]) for ranks in (one, other)]
    untied = [np.sum(sign != 0, axis=(-2, -1), dtype=np.float64) for sign in signs]
    with np.errstate(invalid="ignore", divide="ignore"):
        agreed: Floats = np.sum(signs[0] * signs[1], axis=(-2, -1)) / np.sqrt(untied[0] * untied[1])
    return agreed
