"""Weighted F: errors near an object weigh less outside it, and those inside are shared by neighbours."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from ...masks.backend import backend
from ...masks.distances import SQUARES
from ...masks.stack import Array

#: Errors inside are a mean over this many pixels each way, by a Gaussian of this width.
_RADIUS, _SIGMA = 3, 5
#: Pixels outside that such a mean takes in are no further than this, squared.
_NEAR = 2 * _RADIUS * _RADIUS
#: The weight of an error outside comes half as near to 2 every so many pixels, and is 2 beyond the reach of distances.
_HALVING = 5
#: So many pixels are worked on at once.
_BLOCK = 1 << 15
_EPSILON = float(np.spacing(1))


def measure_weighted(values: Array, truth: Array, levels: Array) -> float:
    """Return weighted F of a map of values, each of which has a level: 0 up to one value, 1 from another on, and rising
    evenly between; the truth has a pixel or more.
    """
    least, top = int(np.searchsorted(levels, 0, "right")) - 1, int(np.searchsorted(levels, 1))
    excess, spread = backend().survey(truth, values, least, _NEAR)
    outside = float((excess * _weights()).sum()) / (top - least)
    inside, total = _sum_inside(spread, truth, 1 - levels), np.count_nonzero(truth)
    right = total - inside
    precision, recall = right / (right + outside + _EPSILON), 1 - inside / total
    return max(0.0, 2 * recall * precision / (recall + precision + _EPSILON))


@lru_cache(maxsize=1)
def _weights() -> Array:
    """Return the weight of an error by its squared distance."""
    weights: Array = 2 - np.exp(np.log(0.5) / _HALVING * np.sqrt(np.arange(SQUARES)))
    return weights


def _sum_inside(spread: Array, truth: Array, errors: Array) -> float:
    """Sum the errors inside an object, each the least of itself and the mean around it, which takes in outside what the
    nearest pixel of the object has; the greatest value has none.
    """
    rows, columns = (np.flatnonzero(truth.any(axis=axis)) for axis in (1, 0))
    (top, bottom), (begin, end) = ((int(side[0]), int(side[-1]) + 1) for side in (rows, columns))
    sources = np.pad(spread, _RADIUS, constant_values=255)[:, begin : end + 2 * _RADIUS]
    kernel = np.exp(-(np.arange(-_RADIUS, _RADIUS + 1) ** 2) / (2 * _SIGMA**2))
    kernel /= kernel.sum()
    total, step = 0.0, max(1, _BLOCK // (end - begin))
    for start in range(top, bottom, step):
        flags = truth[start : min(start + step, bottom), begin:end]
        around = errors[sources[start : start + len(flags) + 2 * _RADIUS]]
        own = around[_RADIUS:-_RADIUS, _RADIUS:-_RADIUS]
        blurred = _blur(_blur(around, kernel, 0), kernel, 1)
        total += float((np.minimum(own, blurred, out=blurred) * flags).sum())
    return total


def _blur(numbers: Array, kernel: Array, axis: int) -> Array:
    """Return means along an axis, without the margins that have none."""
    length = numbers.shape[axis] - 2 * _RADIUS
    parts = [numbers[offset : offset + length] if axis == 0 else numbers[:, offset : offset + length]
             for offset in range(2 * _RADIUS + 1)]  # fmt: skip
    blurred: Array = kernel[_RADIUS] * parts[_RADIUS]
    pair = np.empty_like(blurred)
    for offset in range(_RADIUS):
        np.add(parts[offset], parts[-1 - offset], out=pair)
        pair *= kernel[offset]
        blurred += pair
    return blurred
