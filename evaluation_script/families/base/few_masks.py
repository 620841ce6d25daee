"""How well a few masks of a video agree with the truth's, as submitted and with their pixels rearranged.

Only places in the box around the true masks are compared, so nothing is rewritten.
"""

from __future__ import annotations

import math
from typing import Callable, List, Sequence, Tuple

import numpy as np

from ...masks.backend import backend
from ...masks.run_lengths import pack_texts
from ...masks.stack import Array, Size
from ...values.arithmetic import mean

#: The number of places in a frame.
_PLACES = 1000
#: The class and the run lengths of each mask, by frame.
FrameMasks = List[List[Tuple[int, str]]]


#: Returns the place in run lengths of pixels (row, column) of frames (height, width).
Place = Callable[[Array, Array, int, int], Array]


def measure_agreement(truth: FrameMasks, predicted: FrameMasks, size: Size, changes: Sequence[Place]) -> List[float]:
    """Return the mean IoU of each true mask with the closest one of its frame and class, for each change of pixels."""
    texts, predicted_texts = ([text for masks in side for _, text in masks] for side in (truth, predicted))
    if not texts:
        return [0.0] * len(changes)
    height, width = size
    rows, columns = _choose_places(backend().mask_boxes(pack_texts(texts), np.array([size] * len(texts))))
    grid = rows[:, None], columns
    places = [change(*grid, height, width).reshape(-1) for change in changes]
    (objects,) = backend().draw_masks(texts, [(grid[1] * height + grid[0]).reshape(-1)], height * width)
    are_comparable, agreements = _compare_labels(truth, predicted), []
    for masks in backend().draw_masks(predicted_texts, places, height * width):
        ious = _find_closest(objects, masks, are_comparable)
        agreements.append(mean(ious) if ious else 0.0)
    return agreements


def _compare_labels(truth: FrameMasks, predicted: FrameMasks) -> Array:
    """Return whether each true mask (rows) and each predicted one (columns) have the same frame and class."""
    labels, predicted_labels = (
        np.array([(frame, kind) for frame, masks in enumerate(side) for kind, _ in masks], np.int64).reshape(-1, 2)
        for side in (truth, predicted)
    )
    same: Array = (labels[:, None] == predicted_labels).all(axis=2)
    return same


def _choose_places(boxes: Array) -> Tuple[Array, Array]:
    """Return the rows and columns of places in the box around all of these."""
    x, y = boxes[:, :2].min(axis=0).tolist()
    width, height = ((boxes[:, :2] + boxes[:, 2:]).max(axis=0) - (x, y)).tolist()
    step = max(1, math.isqrt(width * height // _PLACES))
    return np.arange(y, y + height, step), np.arange(x, x + width, step)


def _find_closest(objects: Array, masks: Array, are_comparable: Array) -> List[float]:
    """Return the maximum IoU of each object that covers a place with a comparable mask, both (masks, places)."""
    is_shown = objects.any(axis=1)
    objects = objects[is_shown]
    shared = np.array([np.count_nonzero(masks & flags, axis=1) for flags in objects]).reshape(len(objects), len(masks))
    union = objects.sum(axis=1)[:, None] + masks.sum(axis=1) - shared
    closest: List[float] = (shared / union * are_comparable[is_shown]).max(axis=1, initial=0).tolist()
    return closest
