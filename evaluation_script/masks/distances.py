"""Distances in a grey map from an object's mask: the brightness around it, and the nearest values.

Distances are exact up to `REACH` pixels; greater ones count as `REACH`. Of equally near object pixels, the one in the
leftmost column counts, then the upper one, as in SciPy.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .stack import Array

REACH = 255
#: The number of possible squared distances, including 0.
SQUARES = REACH * REACH + 1


class Surroundings(NamedTuple):
    """The surroundings of an object in a grey map."""

    #: For each squared distance, the sum by which outside pixels exceed a value.
    excess: Array
    #: The map in which outside pixels have the maximum value, but near ones have the value of the nearest inside pixel.
    spread: Array


def measure_surroundings(truth: Array, values: Array, least: int, near_square: int) -> Surroundings:
    """Measure a byte map beside its object; a pixel is near if its squared distance is at most `near_square`."""
    wrong, spread = ~truth & (values > least), np.where(truth, values, np.uint8(255))
    squares = np.full(truth.shape, REACH * REACH, np.int32)
    if truth.any():
        from scipy.ndimage import distance_transform_edt  # the kernel needs none

        nearest = distance_transform_edt(~truth, return_distances=False, return_indices=True)
        steps = nearest - np.indices(truth.shape, np.int32)
        np.minimum(np.square(steps[0]) + np.square(steps[1]), squares, out=squares)
        near = ~truth & (squares <= near_square)
        spread[near] = values[nearest[0][near], nearest[1][near]]
    excess = np.bincount(squares[wrong], values[wrong] - float(least), SQUARES).astype(np.int64)
    return Surroundings(excess, spread)
