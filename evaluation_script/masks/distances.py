"""Distances in a grey map from an object's mask: the brightness around it, and the nearest values.

Distances are exact up to `REACH` pixels; greater ones count as `REACH`. Of equally near object pixels, the one in the
leftmost column counts, then the upper one, as in SciPy.
"""

from __future__ import annotations

from functools import lru_cache
from math import isqrt
from typing import Iterator, List, NamedTuple, Tuple

import numpy as np

from .stack import Array

REACH = 255
#: The number of possible squared distances, including 0.
SQUARES = REACH * REACH + 1
#: The number of pixels processed at once.
_BLOCK = 1 << 15
#: The number of steps between checks whether all distances are known.
_EVERY = 8


class Surroundings(NamedTuple):
    """The surroundings of an object in a grey map."""

    #: For each squared distance, the sum by which outside pixels exceed a value.
    excess: Array
    #: The map in which outside pixels have the maximum value, but near ones have the value of the nearest inside pixel.
    spread: Array


def measure_surroundings(truth: Array, values: Array, least: int, near_square: int) -> Surroundings:
    """Measure a byte map beside its object; a pixel is near if its squared distance is at most `near_square`, which is
    less than `_EVERY` squared.
    """
    surroundings = Surroundings(np.zeros(SQUARES, np.int64), np.where(truth, values, np.uint8(255)))
    wrong = ~truth & (values > least)
    pixels = truth | wrong
    if pixels.any():
        box = _crop(pixels, isqrt(near_square))
        squares = _square_distances(truth[box], wrong[box])
        outside = wrong[box]
        surroundings.excess[:] = np.bincount(squares[outside], values[box][outside] - float(least), SQUARES)
        _copy_near(truth[box], squares, near_square, surroundings.spread[box])
    return surroundings


def _crop(pixels: Array, margin: int) -> Tuple[slice, slice]:
    """Return the rows and columns of these pixels and their neighbours."""
    sides = []
    for axis in (1, 0):
        filled = np.flatnonzero(pixels.any(axis=axis))
        sides.append(slice(max(0, int(filled[0]) - margin), int(filled[-1]) + 1 + margin))
    return sides[0], sides[1]


def _blocks(shape: Tuple[int, ...]) -> Iterator[slice]:
    """Yield blocks of rows that are processed at once."""
    step = max(1, _BLOCK // shape[1])
    return (slice(top, top + step) for top in range(0, shape[0], step))


def _square_distances(truth: Array, wrong: Array) -> Array:
    """Return squared distances to the truth for wrong pixels and those within `_EVERY`.

    First along rows, then down columns: stepping k pixels away adds 2 k - 1 to the square.
    """
    squares = np.empty(truth.shape, np.uint16)
    for rows in _blocks(truth.shape):
        squares[rows] = np.square(_measure_rows(truth[rows]))
    for columns in _blocks(truth.shape[::-1]):
        block, needed = np.ascontiguousarray(squares[:, columns]), wrong[:, columns].view(np.uint8)
        if block.min() == REACH * REACH:
            continue
        longer = np.empty_like(block)
        for step in range(1, REACH + 1):
            np.add(block, 2 * step - 1, out=longer)
            np.minimum(block[1:], longer[:-1], out=block[1:])
            np.minimum(block[:-1], longer[1:], out=block[:-1])
            if step % _EVERY == 0 and (block * needed).max() <= step * step:
                break
        squares[:, columns] = block
    return squares


def _measure_rows(truth: Array) -> Array:
    """Return the distance to the nearest true pixel in the same row, at most `REACH`."""
    width = truth.shape[1]
    places = np.arange(width, dtype=np.int32)
    before = np.maximum.accumulate(np.where(truth, places, np.int32(-REACH)), axis=1)
    behind = np.minimum.accumulate(np.where(truth, places, np.int32(width + REACH))[:, ::-1], axis=1)[:, ::-1]
    lengths: Array = np.minimum(np.minimum(places - before, behind - places), REACH).astype(np.uint16)
    return lengths


@lru_cache(maxsize=1)
def _directions(near_square: int) -> List[Tuple[int, List[Tuple[int, int]]]]:
    """Return the steps to pixels at each squared distance, in the order of preference."""
    reach = range(-isqrt(near_square), isqrt(near_square) + 1)
    steps = [(down, across) for across in reach for down in reach]
    squares = sorted({down * down + across * across for down, across in steps} - {0})
    return [
        (square, [step for step in steps if step[0] * step[0] + step[1] * step[1] == square])
        for square in squares
        if square <= near_square
    ]


def _copy_near(truth: Array, squares: Array, near_square: int, spread: Array) -> None:
    """Copy the value of the object's nearest pixel to nearby pixels."""
    margin = isqrt(near_square)
    width = truth.shape[1] + 2 * margin
    inside, sources = np.pad(truth, margin).reshape(-1), np.pad(spread, margin).reshape(-1)
    rows, columns = np.nonzero((squares <= near_square) & ~truth)
    distances, places = squares[rows, columns], (rows + margin) * width + columns + margin
    for square, steps in _directions(near_square):
        pixels = places[distances == square]
        for down, across in steps:
            nearest = pixels + down * width + across
            is_truth = inside[nearest]
            sources[pixels[is_truth]] = sources[nearest[is_truth]]
            pixels = pixels[~is_truth]
    spread[rows, columns] = sources[places]
