"""The counts of an image: histograms of object and background values, and the metrics they give."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Dict, List, NamedTuple, Tuple

import numpy as np

from ...masks.backend import backend
from ...masks.distances import SQUARES
from ...masks.stack import Array
from ...values.arithmetic import add, exp, mean
from .protocols import SaliencyProtocol

#: The number of values of a map; a pixel of a truth from the middle on belongs to the object.
VALUES, MIDDLE = 256, 128
#: The columns of an image: its data set; pixels of the object, of the upper half of the map's levels, and of both; and
#: values that are averaged over images.
GROUP, TRUTH_AREA, MAP_AREA, SHARED, S, E_ADAPTIVE, F_ADAPTIVE, WEIGHTED_F, ABSOLUTE_ERROR = range(9)
COLUMNS = 9
#: The rows of curves, with a number per threshold.
F_CURVE, E_CURVE = range(2)
#: The weight of precision relative to recall.
_BETA = 0.3
_EPSILON = float(np.spacing(1))
#: The number of pixels counted at once.
_BLOCK = 1 << 16
#: A level this close to the threshold is compared with the mean over all pixels one by one.
_CLOSE = 1e-9


class _Histograms(NamedTuple):
    """Histograms of values: of background and object, in the four corners around the object's centre."""

    #: Top or bottom, left or right, background or object, value.
    corners: Array
    #: Rows and columns of the upper left corner.
    centre: Tuple[int, int]


def count_map(group: int, truth: Array, values: Array, protocol: SaliencyProtocol) -> Dict[str, Array]:
    """Return the tables of an image: booleans of its object, and a map of 8 bits."""
    histograms = _count_corners(truth, values)
    counts = histograms.corners.sum(axis=(0, 1))
    levels = _list_levels(counts.sum(axis=0), protocol)
    curves, adaptive = _measure_thresholds(counts, levels, _find_threshold(counts, values, levels), protocol)
    area = int(counts[1].sum())
    row = [
        float(group),
        area,
        counts[:, MIDDLE + 1 :].sum(),
        counts[1, MIDDLE + 1 :].sum(),
        _measure_structure(histograms, values, counts, levels, protocol),
        adaptive[E_CURVE],
        adaptive[F_CURVE],
        _measure_weighted(values, truth, levels) if area else 0.0,
        (add(counts[0] * levels) + add(counts[1] * (1 - levels))) / truth.size,
    ]
    return {"image": np.array(row, float), "curves": curves}


def _count_corners(truth: Array, values: Array) -> _Histograms:
    height, width = truth.shape
    by_row, by_column = np.count_nonzero(truth, axis=1), np.count_nonzero(truth, axis=0)
    area = by_row.sum()
    if area:
        centre = [int(np.round((np.arange(len(side)) * side).sum() / area)) + 1 for side in (by_row, by_column)]
    else:
        centre = [height, width]
    corners = np.zeros((2, 2 * 2 * VALUES), np.int64)
    is_right = np.arange(width) >= centre[1]
    offsets = (is_right * (2 * VALUES)).astype(np.uint16)
    step = max(1, _BLOCK // width)
    for side, (top, bottom) in enumerate(((0, centre[0]), (centre[0], height))):
        for start in range(top, bottom, step):
            rows = slice(start, min(start + step, bottom))
            keys = truth[rows] * np.uint16(VALUES)
            keys += values[rows]
            keys += offsets
            corners[side] += np.bincount(keys.reshape(-1), minlength=corners.shape[1])
    return _Histograms(corners.reshape(2, 2, 2, VALUES), (centre[0], centre[1]))


def _list_levels(counts: Array, protocol: SaliencyProtocol) -> Array:
    """Return the level from 0 to 1 of each value; the script first stretches a map's values."""
    levels = np.arange(VALUES) / (VALUES - 1)
    held_values = levels[np.flatnonzero(counts)[[0, -1]]]
    if protocol.as_script and held_values[0] != held_values[1]:
        levels = np.clip((levels - held_values[0]) / (held_values[1] - held_values[0]), 0, 1)
    return levels


def _find_threshold(counts: Array, values: Array, levels: Array) -> float:
    """Return twice the mean level, at most 1."""
    threshold = 2 * add(counts.sum(axis=0) * levels) / values.size
    if (np.abs(levels - threshold) < _CLOSE).any():
        threshold = 2 * mean(levels[values])
    return min(threshold, 1.0)


def _measure_thresholds(
    counts: Array, levels: Array, threshold: float, protocol: SaliencyProtocol
) -> Tuple[Array, List[float]]:
    """Return F and E at every threshold from the highest to 0, and at the adaptive one."""
    steps = np.zeros((2, VALUES + 1), np.int64)
    places = VALUES - 1 - (levels * (VALUES - 1)).astype(np.uint8).astype(int)
    for side in (0, 1):
        steps[side, :VALUES] = np.cumsum(np.bincount(places, counts[side], VALUES).astype(np.int64))
    steps[:, VALUES] = counts[:, levels >= threshold].sum(axis=1)
    false, true = steps
    curves = np.stack([_measure_f(false, true, counts), _measure_e(false, true, counts, protocol)])
    return curves[:, :VALUES], curves[:, VALUES].tolist()


def _measure_f(false: Array, true: Array, counts: Array) -> Array:
    precision, recall = true / np.maximum(false + true, 1), true / max(int(counts[1].sum()), 1)
    both = (1 + _BETA) * precision * recall
    means: Array = both / np.where(both == 0, 1, _BETA * precision + recall)
    return means


def _measure_e(false: Array, true: Array, counts: Array, protocol: SaliencyProtocol) -> Array:
    """Return the mean enhanced alignment of both sides over the pixels."""
    background, area = counts.sum(axis=1).tolist()
    pixels = background + area
    predicted = false + true
    if not area:
        total: Array = pixels - predicted
    elif not background:
        total = predicted
    else:
        total = np.zeros(len(true))
        shares, own_mean = predicted / pixels, area / pixels
        for pixels_of_kind, side, own_side in (
            (true, 1, 1), (false, 1, 0), (area - true, 0, 1), (background - false, 0, 0)
        ):  # fmt: skip
            own_deviation, deviation = own_side - own_mean, side - shares
            squares = np.square(deviation) + own_deviation * own_deviation
            alignment = 2 * (deviation * own_deviation) / (squares + _EPSILON)
            total += np.square(alignment + 1) / 4 * pixels_of_kind
    means: Array = total / (pixels - 1 + _EPSILON if protocol.as_script else pixels)
    return means


def _measure_structure(
    histograms: _Histograms, values: Array, counts: Array, levels: Array, protocol: SaliencyProtocol
) -> float:
    """Return S: the similarity of object and background, and that of the corners around the object's centre."""
    background, area = (int(pixels) for pixels in counts.sum(axis=1))
    pixels = background + area
    if not area or not background:
        share = add(counts.sum(axis=0) * levels) / pixels
        return share if area else 1 - share
    own_share: float = area / pixels
    within = own_share * _compare_side(counts[1], levels) + (1 - own_share) * _compare_side(counts[0], 1 - levels)
    (height, width), (bottom, right) = values.shape, histograms.centre
    shares = [bottom * right / pixels, bottom * (width - right) / pixels, (height - bottom) * right / pixels]
    shares.append(1 - add(shares))
    areas = [(rows, columns) for rows in (slice(0, bottom), slice(bottom, height))
             for columns in (slice(0, right), slice(right, width))]  # fmt: skip
    alike = 0.0
    for share, corner, region in zip(shares, histograms.corners.reshape(4, 2, VALUES), areas):
        if corner.any():
            alike += share * _compare_corner(corner, _find_mean(corner, values, region, levels, protocol), levels)
    return max(0.0, 0.5 * within + 0.5 * alike)


def _find_mean(
    counts: Array, values: Array, region: Tuple[slice, slice], levels: Array, protocol: SaliencyProtocol
) -> float:
    """Return the mean level of a corner. For a uniform corner it is the script's mean, whose last digit may be wrong;
    such a corner then has no similarity.
    """
    held_values = np.flatnonzero(counts.sum(axis=0))
    if len(held_values) > 1:
        return add(counts.sum(axis=0) * levels) / int(counts.sum())
    is_whole = levels[held_values[0]] in (0, 1)
    return float(levels[held_values[0]]) if is_whole or not protocol.as_script else mean(levels[values][region])


def _compare_side(counts: Array, levels: Array) -> float:
    """Return the similarity of a side: how close its levels are to 1, and how even."""
    pixels = int(counts.sum())
    level = add(counts * levels) / pixels
    deviation = math.sqrt(add(counts * np.square(levels - level)) / (pixels - 1)) if pixels > 1 else 0.0
    return 2 * level / (level * level + 1 + deviation + _EPSILON)


def _compare_corner(counts: Array, level: float, levels: Array) -> float:
    """Return the structural similarity of both sides of a corner."""
    background, area = (int(pixels) for pixels in counts.sum(axis=1))
    pixels = background + area
    own_mean, less = area / pixels, pixels - 1 + _EPSILON
    deviations = levels - level
    spread = add(counts.sum(axis=0) * np.square(deviations)) / less
    own_spread = (area * ((1 - own_mean) * (1 - own_mean)) + background * own_mean * own_mean) / less
    common = (add(counts[1] * deviations) * (1 - own_mean) - add(counts[0] * deviations) * own_mean) / less
    agreement, bound = 4 * level * own_mean * common, (level * level + own_mean * own_mean) * (spread + own_spread)
    if agreement:
        return agreement / (bound + _EPSILON)
    return float(bound == 0)


# ── weighted F: errors near an object weigh less outside it, and those inside are shared by neighbours ──

#: Errors inside are averaged over this many pixels each way, with a Gaussian of this width.
_RADIUS, _SIGMA = 3, 5
#: The square of the maximum distance from the object of outside pixels in such averages.
_NEAR = 2 * _RADIUS * _RADIUS
#: The distance in pixels that halves the difference of an outside error's weight from 2; where the distance is unknown,
#: the weight is 2.
_HALVING = 5
_LN2 = 0.6931471805599453
#: The number of pixels blurred at once.
_BLURRED_AT_ONCE = 1 << 15


def _measure_weighted(values: Array, truth: Array, levels: Array) -> float:
    """Return weighted F of a map of values. Levels are 0 up to one value, 1 from another value on, and rise linearly
    between; the truth has at least one pixel.
    """
    least, top = int(np.searchsorted(levels, 0, "right")) - 1, int(np.searchsorted(levels, 1))
    excess, spread = backend().measure_surroundings(truth, values, least, _NEAR)
    outside = add(excess * _make_weights()) / (top - least)
    inside, total = _sum_inside(spread, truth, 1 - levels), np.count_nonzero(truth)
    right = total - inside
    precision, recall = right / (right + outside + _EPSILON), 1 - inside / total
    return max(0.0, 2 * recall * precision / (recall + precision + _EPSILON))


@lru_cache(maxsize=1)
def _make_weights() -> Array:
    """Return the weight of an error at each squared distance."""
    weights: Array = 2 - exp(-_LN2 / _HALVING * np.sqrt(np.arange(SQUARES)))
    return weights


@lru_cache(maxsize=1)
def _make_kernel() -> Array:
    """Return the weights of neighbours along an axis, which sum to 1."""
    weights = exp(-np.square(np.arange(-_RADIUS, _RADIUS + 1)) / (2 * _SIGMA * _SIGMA))
    weights /= add(weights)
    return weights


def _sum_inside(spread: Array, truth: Array, errors: Array) -> float:
    """Sum the errors inside an object. Each is the smaller of itself and the mean around it; outside, the mean uses the
    value of the nearest object pixel. The greatest value has no error.
    """
    rows, columns = (np.flatnonzero(truth.any(axis=axis)) for axis in (1, 0))
    (top, bottom), (begin, end) = ((int(side[0]), int(side[-1]) + 1) for side in (rows, columns))
    sources = np.pad(spread, _RADIUS, constant_values=255)[:, begin : end + 2 * _RADIUS]
    kernel, total, step = _make_kernel(), 0.0, max(1, _BLURRED_AT_ONCE // (end - begin))
    for start in range(top, bottom, step):
        flags = truth[start : min(start + step, bottom), begin:end]
        around = errors[sources[start : start + len(flags) + 2 * _RADIUS]]
        inner = around[_RADIUS:-_RADIUS, _RADIUS:-_RADIUS]
        blurred = _blur(_blur(around, kernel, 0), kernel, 1)
        total += add(np.minimum(inner, blurred, out=blurred) * flags)
    return total


def _blur(numbers: Array, kernel: Array, axis: int) -> Array:
    """Return means along an axis, without the margins, for which means are undefined."""
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
