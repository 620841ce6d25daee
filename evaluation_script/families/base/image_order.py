"""A suspicion about maps that belong to other images: the sizes of their classes, or the places of their objects, fit
other truths, each its own.
"""

from __future__ import annotations

from typing import Any, List, Sequence

import numpy as np

from ...files import name_list
from ...masks.stack import Array
from ...values.arithmetic import mean
from .unit_counts import UnitAccumulator

#: The minimum number of images, the maximum that are compared with all truths, evenly spread, and the minimum number of
#: classes or places, because many images have the same sizes of few.
_FEWEST, _MOST, _FEWEST_COLUMNS = 8, 32, 5
#: Maps belong to other images if their sizes fit those at least this well on average, and this many times better than
#: their own, and nearly all fit different images.
_LEAST, _TIMES, _DISTINCT = 0.7, 1.5, 0.8
#: The maximum share of images whose own truth fits best, and the maximum ratio of the misfits of the best and the
#: second truth: maps of no image fit several truths about as well. Of the gain of the best truth over an average one,
#: exchanged maps have at most this share with their own.
_MOST_OWN, _CLOSEST, _MOST_GAIN = 0.2, 0.7, 0.3
#: The number of cells along each side of the grid of places, and of the sampled pixels of a cell.
_CELLS, _SAMPLED = 8, 8
#: The shape of a table of places.
PLACES = (_CELLS * _CELLS,)


def find_places(flags: Array) -> Array:
    """Return the number of sampled pixels of an object in each cell of a grid over the image."""
    points = 2 * np.arange(_CELLS * _SAMPLED) + 1
    rows, columns = (side * points // (2 * _CELLS * _SAMPLED) for side in flags.shape)
    cells: Array = flags[np.ix_(rows, columns)].reshape(_CELLS, _SAMPLED, _CELLS, _SAMPLED).sum(axis=(1, 3))
    return cells.reshape(-1)


def judge_image_order(
    names: Sequence[str], true: Array, predicted: Array, compared: str = "the sizes of classes"
) -> List[str]:
    """Return a suspicion if maps look exchanged at random, given the pixels of each class or place (columns)."""
    chosen = np.arange(len(names))[:: max(1, len(names) // _MOST)]
    chosen = chosen[predicted[chosen].any(axis=1)]
    if len(chosen) < _FEWEST or np.count_nonzero(true.any(axis=0)) < _FEWEST_COLUMNS:
        return []
    likeness = np.stack([_compare(predicted[row], true) for row in chosen.tolist()])
    best = likeness.argmax(axis=1)
    rows = np.arange(len(chosen))
    fit, fit_to_own = mean(likeness[rows, best]), mean(likeness[rows, chosen])
    fit_to_second, fit_to_any = mean(np.partition(likeness, -2, axis=1)[:, -2]), mean(likeness.mean(axis=1))
    moved = best != chosen
    if (
        fit < max(_LEAST, _TIMES * fit_to_own)
        or 1 - fit > _CLOSEST * (1 - fit_to_second)
        or fit_to_own - fit_to_any > _MOST_GAIN * (fit - fit_to_any)
        or len(np.unique(best)) < _DISTINCT * len(chosen)
        or np.count_nonzero(moved) < (1 - _MOST_OWN) * len(chosen)
    ):
        return []
    pairs = zip(chosen[moved].tolist(), best[moved].tolist())
    examples = name_list([f"the map of {names[row]} fits {names[partner]}" for row, partner in pairs], 2)
    shares = f"the image's own truth to {100 * fit_to_own:.0f} %, but another image's to {100 * fit:.0f} %"
    slip = f"maps look exchanged among images: {compared} match {shares}"
    return [f"{slip} ({examples}). Check which image each map belongs to"]


def judge_stacked_order(
    accumulator: UnitAccumulator[Any], table: str, compared: str = "the sizes of classes"
) -> List[str]:
    """Return the same by a table of all units, truth and prediction; counts of earlier versions have none."""
    units = accumulator.complete_counts()
    if any(table not in unit.tables for unit in units):
        return []
    true, predicted = accumulator.stack(table).transpose(1, 0, 2)
    return judge_image_order([unit.name for unit in units], true, predicted, compared)


def _compare(sizes: Array, true: Array) -> Array:
    """Return how well the sizes of classes fit those of each truth: 1 if they are equal, 0 if no class is shared."""
    likeness: Array = np.minimum(sizes, true).sum(axis=1) / np.maximum(1, np.maximum(sizes, true).sum(axis=1))
    return likeness
