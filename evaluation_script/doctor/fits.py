"""How well predictions agree with the truth, from 0 to 1."""

from __future__ import annotations

from typing import Any, List, NamedTuple

import numpy as np

from ..masks.stack import Array
from ..values.arithmetic import exp, mean

#: The labels below which pairs are counted without sorting.
_SMALL = 512
#: The minimum number of sampled pixels of a segment.
_FEWEST = 4
#: The minimum IoU of a box with the true one that it stands for.
_REACHED = 0.5
#: The distance of a keypoint, in sizes of the person, at which it counts less than half.
_NEAR = 0.1


class ValuePairs(NamedTuple):
    """The pixels with each pair of a true label (row) and a predicted one (column), and these labels."""

    table: Array
    true: Array
    predicted: Array


def count_pairs(truth: List[Any], prediction: List[Any]) -> ValuePairs:
    """Count the pixels of maps, or the boxes that overlap, by both labels; negative true labels are left out."""
    if isinstance(truth[0], np.ndarray):
        true, predicted = (np.concatenate([frame.reshape(-1) for frame in side]) for side in (truth, prediction))
    else:
        true, predicted = _pair_boxes(truth, prediction)
    is_compared = true >= 0
    true, predicted = true[is_compared].astype(np.int64), predicted[is_compared].astype(np.int64)
    sides = []
    for labels in (true, predicted):
        if labels.size and labels.min() >= 0 and labels.max() < _SMALL:
            sides.append((np.arange(int(labels.max()) + 1), labels))
        else:
            names, codes = np.unique(labels, return_inverse=True)
            sides.append((names, codes.reshape(-1)))
    (rows, codes), (columns, other_codes) = sides
    table = np.bincount(codes * len(columns) + other_codes, minlength=len(rows) * len(columns))
    return ValuePairs(table.reshape(len(rows), len(columns)), rows, columns)


def _pair_boxes(truth: List[Any], prediction: List[Any]) -> Array:
    """Return the labels of true boxes and of the boxes that overlap them best, whatever their label."""
    pairs = [np.zeros((0, 2), np.int64)]
    for true, predicted in zip(truth, prediction):
        ious = _overlap(true, predicted)
        rows = np.flatnonzero(ious.max(axis=1, initial=0) >= _REACHED)
        if len(rows):
            pairs.append(np.column_stack([true.labels[rows], predicted.labels[ious[rows].argmax(axis=1)]]))
    return np.concatenate(pairs).T


def _overlap(truth: Any, prediction: Any) -> Array:
    """Return the IoU of each true box (row) with each predicted one."""
    (starts, ends), (other_starts, other_ends) = (
        (places[:, None, :2], places[:, None, :2] + places[:, None, 2:])
        for places in (np.asarray(side.places, float) for side in (truth, prediction))
    )
    other_starts, other_ends = other_starts[:, 0], other_ends[:, 0]
    shared = np.maximum(np.minimum(ends, other_ends) - np.maximum(starts, other_starts), 0).prod(axis=2)
    areas = [np.maximum(stop - start, 0).prod(axis=-1) for start, stop in ((starts, ends), (other_starts, other_ends))]
    ious: Array = shared / np.maximum(areas[0] + areas[1] - shared, 1e-9)
    return ious


def fit_masks(truth: List[Any], prediction: List[Any]) -> float:
    """Return the IoU over all pixels of maps in which 0 is background."""
    pairs = count_pairs(truth, prediction)
    same = pairs.true[:, None] == pairs.predicted
    same &= pairs.true[:, None] > 0
    shared = int(pairs.table[same].sum())
    both = int(pairs.table[pairs.true > 0].sum()) + int(pairs.table[:, pairs.predicted != 0].sum())
    return shared / (both - shared) if both > shared else 1.0


def fit_flags(truth: List[Any], prediction: List[Any]) -> float:
    """Return the IoU over all pixels of masks, whose predicted pixels have any value but 0."""
    return fit_masks(truth, [prediction != 0 for prediction in prediction])


def fit_classes(truth: List[Any], prediction: List[Any]) -> float:
    """Return the mean IoU of the classes of the truth."""
    pairs = count_pairs(truth, prediction)
    hits = (pairs.table * (pairs.true[:, None] == pairs.predicted)).sum(axis=1)
    areas = pairs.table.sum(axis=1)
    columns = dict(zip(pairs.predicted.tolist(), pairs.table.sum(axis=0).tolist()))
    unions = areas + [columns.get(label, 0) for label in pairs.true.tolist()] - hits
    present = areas > 0
    return mean(hits[present] / unions[present]) if present.any() else 1.0


def fit_segments(truth: List[Any], prediction: List[Any]) -> float:
    """Return the mean over true segments of the best IoU, whatever the numbers; 0 is background."""
    pairs = count_pairs(truth, prediction)
    inside = pairs.predicted != 0
    areas, rows = pairs.table.sum(axis=1), pairs.true > 0
    chosen = rows & (areas >= min(_FEWEST, int(areas[rows].max(initial=0)))) & (areas > 0)
    if not chosen.any():
        return 0.0 if pairs.table[:, inside].any() else 1.0
    shared = pairs.table[chosen][:, inside]
    unions = areas[chosen, None] + pairs.table[:, inside].sum(axis=0) - shared
    return float(mean((shared / np.maximum(unions, 1)).max(axis=1, initial=0)))


def fit_greys(truth: List[Any], prediction: List[Any]) -> float:
    """Return the soft IoU of grey values from 0 to 255 with objects of 1."""
    sums = np.zeros(2)
    for flags, values in zip(truth, prediction):
        true, grey = flags > 0, np.clip(values, 0, 255) / 255
        shared = float(grey[true].sum())
        sums += shared, np.count_nonzero(true) + float(grey.sum()) - shared
    return float(sums[0] / sums[1]) if sums[1] else 1.0


def fit_boxes(truth: List[Any], prediction: List[Any]) -> float:
    """Return the mean over true boxes of the best IoU of a box with their label."""
    best: List[float] = []
    for true, predicted in zip(truth, prediction):
        ious = _overlap(true, predicted) * (true.labels[:, None] == predicted.labels)
        best += ious.max(axis=1, initial=0).tolist()
    return sum(best) / len(best) if best else 1.0


def fit_points(truth: List[Any], prediction: List[Any]) -> float:
    """Return the mean over people of how near the best prediction's points lie, relative to the person's size."""
    best: List[float] = []
    for true, predicted in zip(truth, prediction):
        for places, marked in zip(true.places, true.marked):
            if marked.any():
                size = max(1.0, float(np.ptp(places[marked], axis=0).max()))
                distances = np.square(predicted.places[:, marked] - places[marked]).sum(axis=2)
                reach = _NEAR * size
                near = exp(-distances / (2 * reach * reach)).mean(axis=1)
                best.append(float(near.max(initial=0)))
    return sum(best) / len(best) if best else 1.0
