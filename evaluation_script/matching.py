"""The best assignment of proposals to objects."""

from __future__ import annotations

from typing import List

from .masks import Array


def best_proposals(quality: Array) -> List[int]:
    """Return for each object (column) its proposal (row), so that the sum of quality is largest.

    SciPy is imported here because it takes 0.2 s and most protocols never need it;
    ties fall as they do in the official evaluators, which call the same function.
    """
    from scipy.optimize import linear_sum_assignment

    rows, columns = linear_sum_assignment(-quality)
    chosen = [0] * quality.shape[1]
    for row, column in zip(rows, columns):
        chosen[int(column)] = int(row)
    return chosen
