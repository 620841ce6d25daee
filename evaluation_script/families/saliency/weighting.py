"""Weighted F: errors near an object weigh less outside it, and those inside are shared by neighbours.

Distances are exact up to `_REACH` pixels; beyond, an error's weight is 2 to the last digit.  Of true pixels that are
equally near the one in the leftmost column is taken, and of that the upper one: SciPy's choice, whose number is ours.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Iterator, List, Tuple

import numpy as np

from ...masks.stack import Array

_REACH = 255
#: Errors inside are a mean over this many pixels each way, by a Gaussian of this width.
_RADIUS, _SIGMA = 3, 5
#: Pixels outside that such a mean takes in are no further than this, squared.
_NEAR = 2 * _RADIUS * _RADIUS
#: An object's neighbourhood in rows and columns, for all that is near.
_MARGIN = _RADIUS + 1
#: The weight of an error outside comes half as near to 2 every so many pixels.
_HALVING = 5
#: So many pixels are worked on at once.
_BLOCK = 1 << 15
#: How often it is looked whether distances are known.
_EVERY = 8
_EPSILON = float(np.spacing(1))


def measure_weighted(values: Array, truth: Array, levels: Array) -> float:
    """Return weighted F of a map of values, each of which has a level from 0 to 1; the truth has a pixel or more."""
    wrong = ~truth & (levels > 0)[values]
    box = _crop(truth | wrong)
    values, truth, wrong = values[box], truth[box], wrong[box]
    distances = _square_distances(truth, wrong)
    outside = 0.0
    for rows in _blocks(truth.shape):
        pixels = wrong[rows]
        outside += float((levels[values[rows][pixels]] * _weights()[distances[rows][pixels]]).sum())
    inside = _sum_inside(values, truth, distances, 1 - levels)
    total = np.count_nonzero(truth)
    right = total - inside
    precision, recall = right / (right + outside + _EPSILON), 1 - inside / total
    return max(0.0, 2 * recall * precision / (recall + precision + _EPSILON))


def _crop(pixels: Array) -> Tuple[slice, slice]:
    """Return rows and columns that hold these pixels and their neighbours."""
    sides = []
    for axis in (1, 0):
        filled = np.flatnonzero(pixels.any(axis=axis))
        sides.append(slice(max(0, int(filled[0]) - _RADIUS), int(filled[-1]) + 1 + _RADIUS))
    return sides[0], sides[1]


def _blocks(shape: Tuple[int, ...]) -> Iterator[slice]:
    """Yield rows that are worked on at once."""
    step = max(1, _BLOCK // shape[1])
    return (slice(top, top + step) for top in range(0, shape[0], step))


@lru_cache(maxsize=1)
def _weights() -> Array:
    """Return the weight of an error by its squared distance."""
    weights: Array = 2 - np.exp(np.log(0.5) / _HALVING * np.sqrt(np.arange(_REACH * _REACH + 1)))
    return weights


def _square_distances(truth: Array, wrong: Array) -> Array:
    """Return squared distances to the truth where something is wrong or near, the square of `_REACH` at the most.

    First along rows, then down columns: a step from the pixel k - 1 steps away adds 2 k - 1 to a square.
    """
    squares = np.empty(truth.shape, np.uint16)
    for rows in _blocks(truth.shape):
        squares[rows] = _measure_rows(truth[rows]) ** 2
    for columns in _blocks(truth.shape[::-1]):
        block, needed = np.ascontiguousarray(squares[:, columns]), wrong[:, columns].view(np.uint8)
        if block.min() == _REACH * _REACH:
            continue
        stepped = np.empty_like(block)
        for step in range(1, _REACH + 1):
            np.add(block, 2 * step - 1, out=stepped)
            np.minimum(block[1:], stepped[:-1], out=block[1:])
            np.minimum(block[:-1], stepped[1:], out=block[:-1])
            if step % _EVERY == 0 and (block * needed).max() <= step * step:
                break
        squares[:, columns] = block
    return squares


def _measure_rows(truth: Array) -> Array:
    """Return how far the nearest pixel of the truth in the same row is, `_REACH` at the most."""
    width = truth.shape[1]
    places = np.arange(width, dtype=np.int32)
    before = np.maximum.accumulate(np.where(truth, places, np.int32(-_REACH)), axis=1)
    behind = np.minimum.accumulate(np.where(truth, places, np.int32(width + _REACH))[:, ::-1], axis=1)[:, ::-1]
    lengths: Array = np.minimum(np.minimum(places - before, behind - places), _REACH).astype(np.uint16)
    return lengths


@lru_cache(maxsize=1)
def _directions() -> List[Tuple[int, List[Tuple[int, int]]]]:
    """Return, by squared distance, the steps to pixels as far away: rows and columns, in the order of the choice."""
    reach = range(-_MARGIN, _MARGIN + 1)
    steps = [(down, across) for across in reach for down in reach]
    squares = sorted({down * down + across * across for down, across in steps} - {0})
    return [
        (square, [step for step in steps if step[0] ** 2 + step[1] ** 2 == square])
        for square in squares
        if square <= _NEAR
    ]


def _sum_inside(values: Array, truth: Array, distances: Array, errors: Array) -> float:
    """Sum the errors inside an object, each the least of itself and the mean around it; outside a mean takes in what
    the nearest pixel of the object has.
    """
    width = truth.shape[1] + 2 * _MARGIN
    inside, sources = np.pad(truth, _MARGIN), np.pad(values, _MARGIN)
    counted, flat = inside.copy(), sources.reshape(-1)
    near = np.flatnonzero(np.pad((distances <= _NEAR) & ~truth, _MARGIN))
    squares = distances.reshape(-1)[(near // width - _MARGIN) * truth.shape[1] + near % width - _MARGIN]
    counted.reshape(-1)[near] = True
    for square, steps in _directions():
        pixels = near[squares == square]
        for down, across in steps:
            nearest = pixels + down * width + across
            is_truth = inside.reshape(-1)[nearest]
            flat[pixels[is_truth]] = flat[nearest[is_truth]]
            pixels = pixels[~is_truth]
    kernel = np.exp(-(np.arange(-_RADIUS, _RADIUS + 1) ** 2) / (2 * _SIGMA**2))
    kernel /= kernel.sum()
    total, margin = 0.0, _MARGIN - _RADIUS
    for rows in _blocks(truth.shape):
        flags = truth[rows]
        if not flags.any():
            continue
        area = slice(rows.start + margin, rows.start + margin + len(flags) + 2 * _RADIUS)
        around = errors[sources[area, margin:-margin]] * counted[area, margin:-margin]
        for axis in (0, 1):
            around = _blur(around, kernel, axis)
        total += float(np.minimum(errors[values[rows]], around)[flags].sum())
    return total


def _blur(numbers: Array, kernel: Array, axis: int) -> Array:
    """Return means along an axis, without the margins that have none."""
    length = numbers.shape[axis] - 2 * _RADIUS
    parts = [numbers[offset : offset + length] if axis == 0 else numbers[:, offset : offset + length]
             for offset in range(2 * _RADIUS + 1)]  # fmt: skip
    blurred: Array = kernel[_RADIUS] * parts[_RADIUS]
    for offset in range(_RADIUS):
        blurred += kernel[offset] * (parts[offset] + parts[-1 - offset])
    return blurred
