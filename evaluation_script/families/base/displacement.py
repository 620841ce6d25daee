"""Suspicions about maps and masks that are all moved by the same pixels or stretched alike, as after a crop or padding.

A unit's first map shows by how many pixels, or by which ratio from a side or the middle. The unit is counted again with
all of its maps at their true places, and several units must agree. Masks in run lengths are drawn for one frame.
"""

from __future__ import annotations

import math
from typing import List, Mapping, Sequence, Tuple

import numpy as np

from ...files import quantity
from ...masks.backend import backend
from ...masks.restoration import Displacement, try_stretch
from ...masks.stack import Array, Size, measure_iou
from .readings import (
    MOVED,
    MOVED_BY,
    OVERALL_IOU,
    STARTS_AT,
    STRETCHED_BY,
    TIMES_MOVED,
    Reading,
    ReadingScores,
    describe_gain,
    is_moved,
)

#: The size and the masks of some frames; frames of two units are compared in pairs.
Frames = List[Tuple[Size, List[str]]]

#: The minimum number of units that are moved by the same pixels, and by the same but for one; their minimum share of
#: those tried, and the number of pixels from which they may differ by one.
_FEWEST, _FEWEST_ABOUT, _SHARE, _FAR = 3, 5, 0.75, 3
#: The minimum score of maps that are moved back.
_LEAST_MOVED = 0.5
_REMEDY = "Write the pixels of the whole image"


def note_displacement(displacement: Displacement) -> ReadingScores:
    """Return what is noted of maps (height, width) that are moved or stretched."""
    if displacement.stretch is None:
        y, x = displacement.shift
        return {MOVED_BY: (float(x), float(y))}
    down, across = displacement.stretch
    starts = [(1 - ratio) * anchor for ratio, anchor in (across, down)]
    return {STRETCHED_BY: (across[0], down[0]), STARTS_AT: (starts[0], starts[1])}


def judge_displacements(scores: Sequence[ReadingScores], count: int, reading: Reading, metric: str) -> List[str]:
    """Return a suspicion if nearly all units with low scores are moved or stretched alike, and score more otherwise."""
    return judge_shifts(scores, count, reading, metric) or judge_stretches(scores, count, reading, metric)


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


#: The maximum difference of the ratios of units, and of the places of their frames' starts, the minimum share of alike
#: units, what remains of what their scores lack at most, and the difference of a ratio from 1 that is named.
_ALIKE, _SHARE_ALIKE, _REMAINS, _NAMED = (0.12, 0.12, 0.06, 0.06), 0.5, 0.45, 0.015
UNDO_STRETCH = "Undo each crop and padding before you resize to the size of the image"


def judge_stretches(scores: Sequence[ReadingScores], count: int, reading: Reading, metric: str) -> List[str]:
    """Return the same suspicion about stretched units."""
    tried = sum(MOVED in unit for unit in scores)
    stretched = [(*unit[MOVED], *unit[STRETCHED_BY], *unit[STARTS_AT]) for unit in scores if STRETCHED_BY in unit]
    if not stretched:
        return []
    middle = [sorted(column)[len(stretched) // 2] for column in list(zip(*stretched))[2:]]
    alike = [unit for unit in stretched if all(abs(a - b) <= gap for a, b, gap in zip(unit[2:], middle, _ALIKE))]
    if len(alike) < max(_FEWEST, _SHARE_ALIKE * tried):
        return []
    before, after = (math.fsum(column) / len(alike) for column in list(zip(*alike))[:2])
    if after < _LEAST_MOVED or 1 - after > _REMAINS * (1 - before):
        return []
    scope = f"(tried on {quantity(len(alike), reading.noun, count)})"
    gain = f"{describe_gain(reading.metric or metric, before, after)} {scope}"
    return [f"{reading.slip} look {describe_ratios(*middle[:2])}: {gain}. {UNDO_STRETCH}"]


def describe_ratios(across: float, down: float) -> str:
    """Return the clause that compares widths and heights with the truth's."""
    if abs(across - down) < _NAMED:
        return f"about {(across + down) / 2:.2f} times as wide and high as the truth's"
    sides = [
        f"{ratio:.2f} times as {side}" for side, ratio in (("wide", across), ("high", down)) if abs(ratio - 1) >= _NAMED
    ]
    return f"about {' and '.join(sides)} as the truth's"


def judge_moved_masks(scores: Mapping[str, ReadingScores], noun: str, count: int) -> List[str]:
    """Return the same suspicion about masks, by the scores of `compare_places`."""
    reading = Reading(MOVED, "masks", "", noun, lambda submission: submission)
    return judge_displacements([*scores.values()], count, reading, OVERALL_IOU)


def may_be_moved(scores: Sequence[ReadingScores], count: int) -> bool:
    """Return whether enough of so many units can still be moved alike, by the scores of those looked at."""
    still = sum(MOVED in unit and not is_moved(unit) for unit in scores)
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
    """Return the IoU of the pixels (columns, rows) of masks as sent and at their true places, and how they are moved.

    Empty if they lie elsewhere.
    """

    def measure(displacement: Displacement) -> float:
        return measure_iou(truth, displacement.undo(predicted))

    moved = Displacement((_find_step(truth, predicted, 0), _find_step(truth, predicted, 1)))
    before, fit = measure_iou(truth, predicted), measure(moved)
    if fit <= TIMES_MOVED * before:
        moved, fit = Displacement(), before
    displacement, after = try_stretch(moved, fit, (truth, predicted), measure)
    if not displacement:
        return STILL if before else {}
    return {MOVED: (before, after), **note_displacement(displacement.transpose())}


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
