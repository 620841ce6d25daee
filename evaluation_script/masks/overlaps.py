"""How much masks, boxes and label maps overlap, and the best assignment by that.

Masks and boxes: the IoU of pairs; with a crowd, the share of the detection that lies in it.  Or that of the boundaries
of masks, which says how well outlines agree where masks are large.  Label maps: the pixels that pairs of labels share.
"""

from __future__ import annotations

import math
import os
from functools import lru_cache, partial
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from typing import Callable, List, NamedTuple, Optional, Tuple

import numpy as np

from .run_lengths import Masks, decode, runs_of
from .stack import Array


class Pairs(NamedTuple):
    """Pairs of a prediction and a truth, by index; those between two bounds are of one image and category."""

    prediction: Array
    truth: Array
    bounds: Array


def box_overlaps(pairs: Pairs, predictions: Array, truths: Array, crowd: Array) -> Array:
    """Return the IoU of each pair of boxes (left, top, width, height)."""
    prediction, truth = predictions[pairs.prediction], truths[pairs.truth]
    end = np.minimum(prediction[:, 2:] + prediction[:, :2], truth[:, 2:] + truth[:, :2])
    sides = end - np.maximum(prediction[:, :2], truth[:, :2])
    meet = (sides > 0).all(axis=1)
    shared = sides[:, 0] * sides[:, 1]
    area = prediction[:, 2] * prediction[:, 3]
    joint = np.where(crowd[pairs.truth], area, area + truth[:, 2] * truth[:, 3] - shared)
    ious = np.zeros(len(meet))
    ious[meet] = shared[meet] / joint[meet]
    return ious


def count_shared_pixels(first_mask: str, second_mask: str) -> int:
    """Return how many pixels two masks of one size share, both of them checked and not empty."""
    background, covered, first_pairs = decode([first_mask, second_mask])
    second = int(first_pairs[1])
    ends = _borders(background[:second], covered[:second])
    borders = _borders(background[second:], covered[second:])
    before = np.append(0, np.cumsum(covered[second:])).repeat(2)
    # Pixels of the second mask before each border of the first: those of whole runs, and a part of that it lies in.
    runs = np.searchsorted(borders, ends, side="left")
    totals = before[runs] + np.where(runs % 2 == 1, ends - borders[runs - 1], 0)
    return int(totals[1::2].sum() - totals[0::2].sum())


def _borders(background: Array, covered: Array) -> Array:
    """Return where runs end, of background and object in turn."""
    borders: Array = np.cumsum(np.stack([background, covered], axis=1).reshape(-1))
    return borders


class _Boundary(NamedTuple):
    """The boundary of a mask: booleans (columns, rows) of the box around it, and where that begins."""

    flags: Array
    column: int
    row: int
    pixels: int


def smaller_of_both(pairs: Pairs, predictions: Masks, truths: Masks, ious: Array, wanted: Array, share: float) -> Array:
    """Return the IoU of each pair, that of the boundaries where it is wanted and smaller.

    Boundaries are as wide as this share of the image's diagonal.
    """
    ious = ious.copy()
    group = np.searchsorted(pairs.bounds, np.arange(len(ious)), side="right")
    prediction_boundary = lru_cache(maxsize=1)(partial(_boundary_of, predictions, share=share))
    truth_boundary = lru_cache(maxsize=None)(partial(_boundary_of, truths, share=share))
    last = -1
    for index in np.flatnonzero(wanted).tolist():
        if group[index] != last:
            truth_boundary.cache_clear()
            last = group[index]
        ious[index] = min(
            ious[index], _iou(prediction_boundary(pairs.prediction[index]), truth_boundary(pairs.truth[index]))
        )
    return ious


def reach_of(height: int, width: int, share: float) -> int:
    """Return how wide boundaries are; halves are rounded to even numbers, as in the original."""
    return max(1, round(share * math.sqrt(height**2 + width**2)))


def _keep_boundary(flags: Array, reach: int) -> Array:
    """Return the pixels of a mask that are at most so far from one outside it, or from the array's border."""
    inside, boundary = whole_windows(flags, 2 * reach + 1, 2 * reach + 1), flags.copy()
    if inside.size:
        boundary[reach:-reach, reach:-reach] &= ~inside
    return boundary


def whole_windows(flags: Array, *sides: int) -> Array:
    """Return which windows with these sides are flagged all over."""
    for side in sides:  # along the first axis, then, turned, along the other
        span = 1
        while span < side:
            step = min(span, side - span)
            flags = flags[:-step] & flags[step:]
            span += step
        flags = flags.T
    return flags


def _boundary_of(masks: Masks, index: int, share: float) -> _Boundary:
    height, width = masks.sizes[index].tolist()
    runs = runs_of(masks.texts[index], height * width)
    ends = np.cumsum(runs)
    first_column, end_column = int(ends[0]) // height, int(ends[len(ends) // 2 * 2 - 1] - 1) // height + 1
    runs[0] -= first_column * height
    flags = np.repeat(np.arange(len(runs)) % 2 == 1, runs)[: (end_column - first_column) * height].reshape(
        end_column - first_column, height
    )
    rows = np.flatnonzero(flags.any(axis=0))
    top, bottom = int(rows[0]), int(rows[-1]) + 1
    boundary = _keep_boundary(flags[:, top:bottom], reach_of(height, width, share))
    return _Boundary(boundary, first_column, top, int(np.count_nonzero(boundary)))


def _iou(prediction: _Boundary, truth: _Boundary) -> float:
    column, row = max(prediction.column, truth.column), max(prediction.row, truth.row)
    end_column = min(prediction.column + prediction.flags.shape[0], truth.column + truth.flags.shape[0])
    end_row = min(prediction.row + prediction.flags.shape[1], truth.row + truth.flags.shape[1])
    if end_column <= column or end_row <= row:
        return 0.0
    cut = (
        mask.flags[column - mask.column : end_column - mask.column, row - mask.row : end_row - mask.row]
        for mask in (prediction, truth)
    )
    shared = int(np.count_nonzero(np.logical_and(*cut)))
    return shared / (prediction.pixels + truth.pixels - shared)


#: A pair of labels is one number: that of the truth so many bits further up.
SHIFT = 25


class LabelMap(NamedTuple):
    """A number for each pixel, and the labels that they are indices of; without those they are the labels."""

    numbers: Array
    labels: Optional[Array] = None

    @property
    def image(self) -> Array:
        """The label of each pixel."""
        return self.numbers if self.labels is None else self.labels[self.numbers]

    def at(self, pixels: Array) -> Array:
        """Return the labels of some pixels, counted row by row."""
        return self.labels_of(self.numbers.reshape(-1)[pixels])

    def labels_of(self, numbers: Array) -> Array:
        """Return the labels that these numbers stand for."""
        return numbers.astype(np.int64) if self.labels is None else self.labels[numbers]


class LabelPairs(NamedTuple):
    """Ids of the truth and of the prediction that lie over each other, and in how many pixels."""

    truth: Array
    prediction: Array
    pixels: Array

    @property
    def keys(self) -> Array:
        """Both ids as one number."""
        keys: Array = (self.truth << SHIFT) | self.prediction
        return keys


def sum_by_key(keys: Array, weights: Array) -> Tuple[Array, Array]:
    """Return the keys once each, and the sums of their weights."""
    unique, index = np.unique(keys, return_inverse=True)
    return unique, np.bincount(index, weights, len(unique)).astype(np.int64)


def sum_label_pairs(truth: Array, prediction: Array, pixels: Array) -> LabelPairs:
    """Return pairs of labels once each, and the sums of their pixels."""
    keys, sums = sum_by_key((truth << SHIFT) | prediction, pixels)
    return LabelPairs(keys >> SHIFT, keys & ((1 << SHIFT) - 1), sums)


@lru_cache(maxsize=1)
def _solver() -> Callable[[Array], Tuple[Array, Array]]:
    """Return SciPy's function alone: to import all of `scipy.optimize` takes up to 0.3 s."""
    package = find_spec("scipy")
    folder = os.path.join(os.path.dirname(package.origin or ""), "optimize") if package else ""
    spec = PathFinder.find_spec("_lsap", [folder])
    if spec is None or spec.loader is None:  # another version of SciPy
        from scipy.optimize import linear_sum_assignment

        return linear_sum_assignment
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    solver: Callable[[Array], Tuple[Array, Array]] = module.linear_sum_assignment
    return solver


def best_assignment(quality: Array) -> Tuple[Array, Array]:
    """Return rows and columns so that the sum of quality is largest.

    Ties fall as they do in the official evaluators, which call the same function.
    """
    return _solver()(-quality)


def best_proposals(quality: Array) -> List[int]:
    """Return for each object (column) its proposal (row), so that the sum of quality is largest."""
    chosen = [0] * quality.shape[1]
    for row, column in zip(*best_assignment(quality)):
        chosen[int(column)] = int(row)
    return chosen
