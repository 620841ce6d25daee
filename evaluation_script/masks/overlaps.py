"""Overlaps of masks, boxes and label maps, and the best assignment by them.

Masks and boxes: the IoU of pairs; with a crowd, the share of the detection inside it. Boundary IoU compares the
outlines of large masks. Label maps: the shared pixels of pairs of labels.
"""

from __future__ import annotations

import math
from functools import lru_cache, partial
from typing import List, NamedTuple, Optional, Tuple

import numpy as np

from .run_lengths import Masks, decode, runs_of
from .stack import Array


class Pairs(NamedTuple):
    """Pairs of a prediction and a truth, by index, grouped by image and category."""

    prediction: Array
    truth: Array
    bounds: Array


class PairGroups(NamedTuple):
    """Groups of consecutive predictions, and the consecutive truths with which each group is compared."""

    #: Where the predictions of each group begin, and the last end.
    starts: Array
    #: Where its truths begin and end.
    low: Array
    high: Array

    def count_pairs(self) -> int:
        """Return the number of all pairs."""
        return int(((self.high - self.low) * np.diff(self.starts)).sum())


#: Tolerance for rounding of bounds by size; it need not be exact.
SLACK = 1e-3


def similar_pairs(groups: PairGroups, predictions: Array, truths: Array, crowd: Array, least: float) -> Pairs:
    """Return the pairs whose extents let their IoU reach a bound; with a crowd it is another fraction."""
    sizes = np.diff(groups.starts)
    count = np.repeat(groups.high - groups.low, sizes)
    prediction = np.repeat(np.arange(len(count)), count)
    truth = np.arange(len(prediction)) + np.repeat(np.repeat(groups.low, sizes) - (np.cumsum(count) - count), count)
    extents = predictions[prediction], truths[truth]
    similar = (np.minimum(*extents) + SLACK >= least * np.maximum(*extents)) | crowd[truth]
    prediction, truth = prediction[similar], truth[similar]
    return Pairs(prediction, truth, np.searchsorted(prediction, groups.starts))


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
    """Return the number of pixels that two checked, non-empty masks of one size share."""
    background, covered, first_pairs = decode([first_mask, second_mask])
    second = int(first_pairs[1])
    run_ends = _find_borders(background[:second], covered[:second])
    borders = _find_borders(background[second:], covered[second:])
    before = np.append(0, np.cumsum(covered[second:])).repeat(2)
    # Pixels of the second mask before each border of the first: of whole runs, and of part of the run around it.
    runs = np.searchsorted(borders, run_ends, side="left")
    totals = before[runs] + np.where(runs % 2 == 1, run_ends - borders[runs - 1], 0)
    return int(totals[1::2].sum() - totals[0::2].sum())


def _find_borders(background: Array, covered: Array) -> Array:
    """Return the ends of the runs, alternating background and object."""
    borders: Array = np.cumsum(np.stack([background, covered], axis=1).reshape(-1))
    return borders


class _Boundary(NamedTuple):
    """The boundary of a mask: booleans (columns, rows) of its box, and the box's origin."""

    flags: Array
    column: int
    row: int
    pixels: int


def smaller_of_both(pairs: Pairs, predictions: Masks, truths: Masks, ious: Array, wanted: Array, share: float) -> Array:
    """Return the IoU of each pair, or the smaller of mask and boundary IoU if requested.

    The width of boundaries is this share of the image's diagonal.
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
            ious[index], _compute_iou(prediction_boundary(pairs.prediction[index]), truth_boundary(pairs.truth[index]))
        )
    return ious


def reach_of(height: int, width: int, share: float) -> int:
    """Return the width of boundaries; halves round to even, as in the original."""
    return max(1, round(share * math.sqrt(height * height + width * width)))


def _keep_boundary(flags: Array, reach: int) -> Array:
    """Return the pixels of a mask within a distance of the outside or the array's border."""
    inside, boundary = whole_windows(flags, 2 * reach + 1, 2 * reach + 1), flags.copy()
    if inside.size:
        boundary[reach:-reach, reach:-reach] &= ~inside
    return boundary


def whole_windows(flags: Array, *sides: int) -> Array:
    """Return the windows of these sides that are flagged entirely."""
    for side in sides:  # along the first axis, then along the other
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


def _compute_iou(prediction: _Boundary, truth: _Boundary) -> float:
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


#: The bits by which a pair's true label is shifted, so that a pair is one number.
SHIFT = 25


class LabelMap(NamedTuple):
    """A label map: a number per pixel, which is a label or an index of `labels`."""

    numbers: Array
    labels: Optional[Array] = None

    @property
    def image(self) -> Array:
        """The label of each pixel."""
        return self.numbers if self.labels is None else self.labels[self.numbers]

    def labels_at(self, pixels: Array) -> Array:
        """Return the labels of some pixels, counted row by row."""
        return self.labels_of(self.numbers.reshape(-1)[pixels])

    def labels_of(self, numbers: Array) -> Array:
        """Return the labels of these numbers."""
        return numbers.astype(np.int64) if self.labels is None else self.labels[numbers]


class LabelPairs(NamedTuple):
    """Pairs of true and predicted ids that overlap, and their shared pixels."""

    truth: Array
    prediction: Array
    pixels: Array

    @property
    def keys(self) -> Array:
        """Both ids combined into one number."""
        keys: Array = (self.truth << SHIFT) | self.prediction
        return keys


#: The bits of a point's label, above which its object number lies; in keys of cells, the class.
LABEL_BITS = 16
LABEL_MASK = (1 << LABEL_BITS) - 1


def list_cells(table: Array) -> Array:
    """Return the keys (the class above the label) and the points of the cells of a table that have points."""
    points = table.reshape(-1)
    cells = np.flatnonzero(points)
    classes, labels = np.divmod(cells, table.shape[1])
    return np.array(((classes << LABEL_BITS) | labels, points[cells]))


class SegmentRules(NamedTuple):
    """The rules by which points with a label, and an object number above 16 bits, form segments."""

    #: The class of each label; points whose true label has a class beyond the last one are skipped.
    classes: Array
    count_of_classes: int
    #: The number of leading classes with objects; each other class is one segment.
    things: int
    #: Unmatched segments with fewer points are not counted.
    fewest_points: int
    #: Whether each value is a segment, whatever its class.
    has_values: bool = False


#: Labels are counted in a table if there are at most this many pairs, or a quarter as many as pixels; the second number
#: limits its cells.
_SMALL_TABLE, _MOST_CELLS = 1024, 1 << 20


def shape_of_table(truth: Array, prediction: Array) -> Optional[Tuple[int, int]]:
    """Return the shape of a table of all pairs of labels, by the greatest ones; None where it would be too large."""
    limit = min(max(_SMALL_TABLE, truth.size // 4), _MOST_CELLS)
    rows, columns = (int(side.max()) + 1 for side in (truth, prediction))
    return (rows, columns) if rows * columns <= limit else None


def sum_by_key(keys: Array, weights: Array) -> Tuple[Array, Array]:
    """Return the distinct keys and the sums of their weights."""
    whole = np.asarray(weights).astype(np.int64)
    if (keys[1:] > keys[:-1]).all():  # or none
        return keys, whole
    order = np.argsort(keys, kind="stable")
    ordered, whole = keys[order], whole[order]
    starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
    return ordered[starts], np.add.reduceat(whole, starts)


class LabelSums(NamedTuple):
    """The distinct labels of some pairs in order, the sums of their pixels, and the index of each pair's label."""

    labels: Array
    pixels: Array
    indices: Array


def sum_by_label(labels: Array, pixels: Array) -> LabelSums:
    """Add up the pixels of one side's labels."""
    unique, indices = np.unique(labels, return_inverse=True)
    return LabelSums(unique, np.bincount(indices, pixels, len(unique)).astype(np.int64), indices)


def tabulate(rows: Array, columns: Array, weights: Array, shape: Tuple[int, int]) -> Array:
    """Return the sums of whole weights by row and column in a table of this shape."""
    table = np.zeros(shape[0] * shape[1], np.int64)
    np.add.at(table, rows * shape[1] + columns, weights.astype(np.int64, copy=False))
    return table.reshape(shape)


def sum_label_pairs(truth: Array, prediction: Array, pixels: Array) -> LabelPairs:
    """Return the distinct pairs of labels and the sums of their pixels."""
    keys, sums = sum_by_key((truth << SHIFT) | prediction, pixels)
    return LabelPairs(keys >> SHIFT, keys & ((1 << SHIFT) - 1), sums)


def best_assignment(quality: Array) -> Tuple[Array, Array]:
    """Return the assignment (rows, columns) with the largest sum of quality.

    Ties break as in the official evaluators, which call the same function.
    """
    from scipy.optimize import linear_sum_assignment  # few protocols assign

    rows, columns = linear_sum_assignment(-quality)
    return rows, columns


def best_proposals(quality: Array) -> List[int]:
    """Return each object's (column's) proposal (row) in the assignment with the largest sum of quality."""
    chosen = [0] * quality.shape[1]
    for row, column in zip(*best_assignment(quality)):
        chosen[int(column)] = int(row)
    return chosen
