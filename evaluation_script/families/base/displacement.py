"""Suspicions about maps and masks that are all moved by the same pixels, as after a crop or padding.

A unit's first map shows by how many pixels. The unit is counted again with all of its maps moved back, and several
units must agree. Masks in run lengths are drawn for one frame of a unit.
"""

from __future__ import annotations

import math
from typing import List, Mapping, Sequence, Tuple

import numpy as np

from ...files import quantity
from ...masks.backend import backend
from ...masks.restoration import undo_shift
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


def may_be_moved(scores: Sequence[ReadingScores], count: int) -> bool:
    """Return whether enough of so many units can still be moved alike, by the scores of those looked at."""
    still = sum(MOVED in unit and MOVED_BY not in unit for unit in scores)
    return still <= (1 - _SHARE) * count


#: The maximum number of masks of a side that are compared, and of pixels by which they may be moved, as a share of the
#: frame's side.
_MOST_MASKS, _FARTHEST = 32, 8
#: The maximum number of pixels of a frame that is drawn.
MOST_PIXELS = 1 << 24
#: What is noted of a unit whose masks do not look moved.
STILL: ReadingScores = {MOVED: (1.0, 1.0)}
#: An IoU from which masks can hardly gain enough, and the share of a unit's masks that reach it.
EXACT, EXACT_SHARE = 0.9, 0.5


def compare_places(truth: Frames, predicted: Frames) -> ReadingScores:
    """Return the IoU of a unit's masks as sent and moved back, and by how many pixels along x and y.

    Only the first frame with masks on both sides is compared; empty without one, or if all masks lie elsewhere.
    """
    for (size, texts), (predicted_size, predicted_texts) in zip(truth, predicted):
        if size == predicted_size and size[0] * size[1] <= MOST_PIXELS:
            covers = [_draw(side, size) for side in (texts, predicted_texts)]
            if all(cover.any() for cover in covers):
                return compare_covers(*covers)
    return {}


def _draw(texts: List[str], size: Size) -> Array:
    """Return the pixels (columns, rows) that any of some masks covers, without faulty ones."""
    pixels = size[0] * size[1]
    some = [text for text in texts if text][:_MOST_MASKS]
    faults = backend().check_masks(some, np.full(len(some), pixels)).fault.tolist()
    packed = np.zeros((pixels + 7) // 8, np.uint8)
    for text, fault in zip(some, faults):
        if not fault:
            packed |= backend().draw_mask(text, pixels)[: len(packed)]
    drawn: Array = np.unpackbits(packed, count=pixels, bitorder="little").view(bool)
    return drawn.reshape(size[::-1])


def compare_covers(truth: Array, predicted: Array) -> ReadingScores:
    """Return the IoU of the pixels (columns, rows) of masks as sent and moved back, and by how many pixels.

    Empty if they lie elsewhere.
    """
    x, y = (_find_step(truth, predicted, axis) for axis in (0, 1))
    before, after = (_measure(truth, pixels) for pixels in (predicted, undo_shift(predicted, (x, y))))
    if after <= TIMES_MOVED * before:
        return STILL if before else {}
    return {MOVED: (before, after), MOVED_BY: (float(x), float(y))}


def _find_step(truth: Array, predicted: Array, axis: int) -> int:
    """Return by how many places pixels are moved along an axis, by their sums along the other one: the smallest step of
    those that fit best.

    Specks hide the borders of masks, but hardly change these sums.
    """
    true, sums = (
        np.add.reduce(pixels.view(np.uint8), axis=1 - axis, dtype=np.uint32).astype(np.int64)
        for pixels in (truth, predicted)
    )
    farthest = len(true) // _FARTHEST
    if not farthest:
        return 0
    steps, beyond = np.arange(-farthest, farthest + 1), np.zeros(farthest, np.int64)
    padded = np.concatenate([beyond, sums, beyond])
    products = np.correlate(padded, true)
    begins, ends = np.maximum(0, -steps), len(true) - np.maximum(0, steps)
    squares = [np.append(0, np.cumsum(side * side)) for side in (true, sums)]
    totals = squares[0][ends] - squares[0][begins] + squares[1][ends + steps] - squares[1][begins + steps]
    gaps = (totals - 2 * products) / (ends - begins)
    return int(steps[np.lexsort((np.abs(steps), gaps))[0]])


def _measure(truth: Array, predicted: Array) -> float:
    return int(np.count_nonzero(truth & predicted)) / max(1, int(np.count_nonzero(truth | predicted)))
