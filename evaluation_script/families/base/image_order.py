"""A suspicion about maps that belong to other images: the sizes of their classes fit other truths, each its own."""

from __future__ import annotations

from typing import List, Sequence

import numpy as np

from ...files import name_list
from ...masks.stack import Array
from ...values.arithmetic import mean

#: The minimum number of images, and the maximum that are compared with all truths, evenly spread.
_FEWEST, _MOST = 8, 32
#: Maps belong to other images if their sizes fit those at least this well on average, and this many times better than
#: their own, and nearly all fit different images.
_LEAST, _TIMES, _DISTINCT = 0.7, 1.5, 0.8
#: The maximum share of images whose own truth fits best.
_MOST_OWN = 0.2


def judge_image_order(names: Sequence[str], true: Array, predicted: Array) -> List[str]:
    """Return a suspicion if maps look exchanged at random, given the pixels of each class (columns) by image."""
    chosen = np.arange(len(names))[:: max(1, len(names) // _MOST)]
    chosen = chosen[predicted[chosen].any(axis=1)]
    if len(chosen) < _FEWEST:
        return []
    likeness = np.stack([_compare(predicted[row], true) for row in chosen.tolist()])
    best = likeness.argmax(axis=1)
    rows = np.arange(len(chosen))
    fit, fit_to_own = mean(likeness[rows, best]), mean(likeness[rows, chosen])
    moved = best != chosen
    if (
        fit < max(_LEAST, _TIMES * fit_to_own)
        or len(np.unique(best)) < _DISTINCT * len(chosen)
        or np.count_nonzero(moved) < (1 - _MOST_OWN) * len(chosen)
    ):
        return []
    pairs = zip(chosen[moved].tolist(), best[moved].tolist())
    examples = name_list([f"the map of {names[row]} fits {names[partner]}" for row, partner in pairs], 2)
    shares = f"the image's own truth to {100 * fit_to_own:.0f} %, but another image's to {100 * fit:.0f} %"
    slip = f"maps look exchanged among images: the sizes of classes match {shares}"
    return [f"{slip} ({examples}). Check which image each map belongs to"]


def _compare(sizes: Array, true: Array) -> Array:
    """Return how well the sizes of classes fit those of each truth: 1 if they are equal, 0 if no class is shared."""
    likeness: Array = np.minimum(sizes, true).sum(axis=1) / np.maximum(1, np.maximum(sizes, true).sum(axis=1))
    return likeness
