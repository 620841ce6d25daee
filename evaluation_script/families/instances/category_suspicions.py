"""A suspicion about categories that stand for each other: instances are found, under exchanged categories."""

from __future__ import annotations

from typing import Any, List, Sequence, Tuple

import numpy as np

from ...files import name_list, quantity
from ...masks.overlaps import best_assignment, tabulate
from ...masks.stack import Array
from .records import Examples

#: The minimum number of instances that records reach, the maximum share under their own category, the minimum share
#: under the one that stands for theirs, and the minimum number of such categories and of instances of each.
_FEWEST, _MOST_RIGHT, _EXPLAINED, _FEWEST_MOVED, _TELLING = 10, 0.25, 0.8, 2, 2
#: Common numberings of categories.
ADDED, SUBTRACTED = "1 was added to each", "1 was subtracted from each"
FROM_0, FROM_1 = "they were numbered from 0", "they were numbered from 1"
#: The minimum IoU of the boxes of an instance and its record.
_REACHED = 0.5


def judge_exchanged_categories(
    examples: Examples, ids: Array, image: Array, category: Array, score: Array, boxes: Array
) -> List[str]:
    """Return a warning if the records of some instances have categories that are exchanged for each other."""
    pairs = []
    for holder, true, box in zip(examples.image, examples.category, examples.boxes):
        within = np.flatnonzero(image == holder)
        reached = within[_overlap(boxes[within], box) >= _REACHED]
        if len(reached):
            pairs.append((int(true), int(category[reached[np.argmax(score[reached])]])))
    return judge_pairs(ids, pairs)


def judge_pairs(ids: Array, pairs: Sequence[Tuple[int, int]]) -> List[str]:
    """Return the same warning, given the true category of each instance that a record reaches, and the record's."""
    pairs = [pair for pair in pairs if pair[1] >= 0]  # the truth lacks other categories
    if len(pairs) < _FEWEST:
        return []
    true, predicted = np.array(pairs).T
    table = tabulate(true, predicted, np.ones(len(pairs), np.int64), (len(ids),) * 2)
    rows, columns = best_assignment(table)
    explained = int(table[rows, columns].sum())
    moved = np.flatnonzero((rows != columns) & (table[rows, columns] >= _TELLING))
    if (
        int(np.trace(table)) > _MOST_RIGHT * len(pairs)
        or explained < _EXPLAINED * len(pairs)
        or len(moved) < _FEWEST_MOVED
    ):
        return []
    gain = f"with the truth's ids {quantity(explained, 'instance', len(pairs))} tried would have their category"
    slip = f"categories look {_describe(ids, rows[moved], columns[moved])}"
    return [f"{slip}: {gain}, not {int(np.trace(table)):,}. Write the ids of the truth"]


def _describe(ids: Array, true: Array, predicted: Array) -> str:
    """Return how categories, by their indices, were renumbered."""
    for name, coded in ((ADDED, ids[true] + 1), (SUBTRACTED, ids[true] - 1), (FROM_0, true), (FROM_1, true + 1)):
        if (ids[predicted] == coded).all():
            return f"as if {name}"
    examples = [f"{ids[column]} for {ids[row]}" for row, column in zip(true.tolist(), predicted.tolist())]
    return f"exchanged, such as {name_list(examples)}"


def _overlap(boxes: Array, box: Any) -> Array:
    """Return the IoU of boxes (x, y, width, height) with one."""
    x, y, width, height = box
    start, top, across, down = boxes.T
    shared = np.maximum(np.minimum(start + across, x + width) - np.maximum(start, x), 0)
    shared = shared * np.maximum(np.minimum(top + down, y + height) - np.maximum(top, y), 0)
    ious: Array = shared / np.maximum(across * down + width * height - shared, 1e-9)
    return ious
