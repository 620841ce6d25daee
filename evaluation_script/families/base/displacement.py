"""Suspicions about maps and masks that are all moved by the same pixels, as after a crop or padding.

A unit's first map shows by how many pixels. The unit is counted again with all of its maps moved back, and several
units must agree. Masks in run lengths show it by their boxes, and few of their pixels are compared.
"""

from __future__ import annotations

import math
from typing import List, Mapping, Optional, Sequence, Tuple

import numpy as np

from ...files import quantity
from ...masks.backend import backend
from ...masks.run_lengths import pack_texts
from ...masks.stack import Array, Size
from .readings import MOVED, MOVED_BY, OVERALL_IOU, TIMES_MOVED, Reading, ReadingScores, describe_gain

#: The size and the masks of some frames; frames of two units are compared in pairs.
Frames = List[Tuple[Size, List[str]]]

#: The minimum number of units that are moved by the same pixels, and by the same but for one; their minimum share of
#: those tried, and the number of pixels from which they may differ by one.
_FEWEST, _FEWEST_ABOUT, _SHARE, _FAR = 3, 5, 0.75, 3
#: The minimum score of maps that are moved back.
_LEAST_MOVED = 0.5
_REMEDY = "Write the pixels of the whole image"


def judge_shifts(scores: Sequence[ReadingScores], count: int, reading: Reading, metric: str) -> List[str]:
    """Return a suspicion if nearly all units with low scores are moved alike, and score more when moved back."""
    tried = [unit[MOVED] for unit in scores if MOVED in unit]
    moved = [(*unit[MOVED], *unit[MOVED_BY]) for unit in scores if MOVED_BY in unit]
    if not moved:
        return []
    x, y = (sorted(column)[len(moved) // 2] for column in list(zip(*moved))[2:])
    about, exactly = ([unit for unit in moved if max(abs(unit[2] - x), abs(unit[3] - y)) <= gap] for gap in (1, 0))
    alike = about if len(about) >= _FEWEST_ABOUT and max(abs(x), abs(y)) >= _FAR else exactly
    if len(alike) < max(_FEWEST, _SHARE * len(tried)) or not (x or y):
        return []
    before, after = (math.fsum(column) / len(alike) for column in list(zip(*alike))[:2])
    if after < max(_LEAST_MOVED, TIMES_MOVED * before):
        return []
    scope = f"(tried on {quantity(len(alike), reading.noun, count)})"
    gain = f"{describe_gain(reading.metric or metric, before, after)} {scope}"
    steps = ", ".join(f"{step:.0f} along {axis}" for axis, step in (("x", x), ("y", y)) if step)
    return [f"{reading.slip} look moved by about this many pixels: {steps}: {gain}. {_REMEDY}"]


def judge_moved_masks(scores: Mapping[str, ReadingScores], noun: str, count: int) -> List[str]:
    """Return the same suspicion about masks, by the scores of `compare_places`."""
    reading = Reading(MOVED, "masks", "", noun, lambda submission: submission)
    return judge_shifts([*scores.values()], count, reading, OVERALL_IOU)


#: The maximum number of masks of a side that are compared, the pixels by which opposite edges may differ, the minimum
#: share of masks whose edges agree, and the number of places at which masks are compared.
_MOST_MASKS, _RAGGED, _AGREEING, _PLACES = 32, 2, 0.5, 1000
#: What is noted of a unit whose masks do not look moved.
STILL: ReadingScores = {MOVED: (1.0, 1.0)}
#: An IoU from which masks can hardly gain enough, and the share of a unit's masks that reach it.
EXACT, EXACT_SHARE = 0.9, 0.5


def compare_places(truth: Frames, predicted: Frames) -> ReadingScores:
    """Return the IoU of a unit's masks as sent and moved back, and by how many pixels along x and y.

    Only the first frame with masks on both sides is compared; empty without one, or if all masks lie elsewhere.
    """
    for (size, texts), (predicted_size, predicted_texts) in zip(truth, predicted):
        if size == predicted_size:
            sides = [_keep_some(side, size[0] * size[1]) for side in (texts, predicted_texts)]
            if all(sides):
                return _compare_frame(sides[0], sides[1], size)
    return {}


def _keep_some(texts: List[str], pixels: int) -> List[str]:
    """Return masks that are neither faulty nor empty."""
    some = [text for text in texts if text][:_MOST_MASKS]
    checked = backend().check_masks(some, np.full(len(some), pixels))
    return [
        text for text, fault, area in zip(some, checked.fault.tolist(), checked.area.tolist()) if area and not fault
    ]


def _compare_frame(truth: List[str], predicted: List[str], size: Size) -> ReadingScores:
    true_boxes, predicted_boxes = (_find_corners(side, size) for side in (truth, predicted))
    shift = _find_move(true_boxes, predicted_boxes, size)
    if shift is None:
        return {}
    if not any(shift):
        return STILL
    before, after = _measure_moved(truth, predicted, true_boxes, size, shift)
    if after <= TIMES_MOVED * before:
        return STILL
    return {MOVED: (before, after), MOVED_BY: (float(shift[0]), float(shift[1]))}


def _find_corners(texts: List[str], size: Size) -> Array:
    """Return the column and row where each mask begins, and those behind its end."""
    boxes = backend().mask_boxes(pack_texts(texts), np.array([size] * len(texts))).astype(np.int64)
    return np.concatenate([boxes[:, :2], boxes[:, :2] + boxes[:, 2:]], axis=1)


def _find_move(true: Array, predicted: Array, size: Size) -> Optional[Tuple[int, int]]:
    """Return by how many pixels along x and y most masks seem to be moved, by their corners; 0 if these disagree.

    Each true mask is compared with the one whose corners are nearest; None if all lie elsewhere.
    """
    gaps = predicted - true[:, None]
    nearest = np.abs(gaps).sum(axis=2).argmin(axis=1)
    gaps, predicted = gaps[np.arange(len(true)), nearest], predicted[nearest]
    sides = true[:, 2:] - true[:, :2]
    is_near = (np.abs(gaps[:, :2] + gaps[:, 2:]) <= 2 * sides).all(axis=1)
    if not is_near.any():
        return None
    # Where a mask is cut at the edge of the frame, its opposite side tells.
    is_cut = (true == [0, 0, *size[::-1]]) | (predicted == [0, 0, *size[::-1]])
    firsts = np.where(is_cut[:, :2], gaps[:, 2:], gaps[:, :2])
    lasts = np.where(is_cut[:, 2:], gaps[:, :2], gaps[:, 2:])
    agree = is_near & (np.abs(firsts - lasts) <= _RAGGED).all(axis=1)
    if np.count_nonzero(agree) < _AGREEING * np.count_nonzero(is_near):
        return 0, 0
    x, y = (int(np.sort(column)[len(column) // 2]) for column in ((firsts + lasts)[agree] // 2).T)
    return x, y


def _measure_moved(
    truth: List[str], predicted: List[str], boxes: Array, size: Size, shift: Tuple[int, int]
) -> Tuple[float, float]:
    """Return the IoU of all masks at few places around the true ones, as sent and moved back."""
    (height, width), (x, y) = size, shift
    column, row = boxes[:, :2].min(axis=0).tolist()
    last_column, last_row = boxes[:, 2:].max(axis=0).tolist()
    step = max(1, math.isqrt((last_column - column) * (last_row - row) // _PLACES))
    columns = np.arange(max(column, -x), min(last_column, width - x), step)
    rows = np.arange(max(row, -y), min(last_row, height - y), step)
    places = columns * height + rows[:, None]
    (true,) = backend().cover_places(truth, places[None], height * width)
    ious = []
    for flags in backend().cover_places(predicted, np.stack([places, places + x * height + y]), height * width):
        union = int(np.count_nonzero(true | flags))
        ious.append(int(np.count_nonzero(true & flags)) / union if union else 0.0)
    return ious[0], ious[1]
