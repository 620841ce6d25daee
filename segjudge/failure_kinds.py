"""Kinds of failure of masks over time: what a frame of an object is, and how the loss of a tracked one is shared."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from segjudge.evaluation_script.mask_files import Stacks
from segjudge.evaluation_script.masks import WORD, Array, Size, Stack, nothing, ones
from segjudge.evaluation_script.sequence_truth import VOID
from segjudge.evaluation_script.similarity import Region, reach

Words = NDArray[np.uint64]
#: The kinds, those of a whole frame first; the last four share the loss of a frame in which the object is tracked.
KINDS = ("ghost", "late", "miss", "swap", "drift", "confused", "part", "leak", "edge")
SHARED = KINDS[-4:]
#: What frames without any loss of a kind of their own are.
RIGHT, TRACKED = "right", "tracked"
#: Below this J an object is lost.
LOST = 0.1


@dataclass(frozen=True)
class ComparedBlock:
    """Frames that follow each other; predictions have the names of the objects that they are compared with."""

    frames: list[str]
    size: Size
    truth: Stacks
    predicted: Stacks


@dataclass(frozen=True)
class ObjectWindow:
    """An object in some frames: truth, prediction, their boundaries, and who else is there, as words of one window."""

    truth: Words
    prediction: Words
    truth_boundary: Words
    prediction_boundary: Words
    #: Each other object of the truth in the window, and how many pixels it has in each frame.
    others: list[tuple[Words, Array]]
    #: What other objects are predicted at.
    other_predictions: Words
    #: The tolerance of boundaries, in pixels.
    radius: int

    def only(self, rows: Array) -> ObjectWindow:
        """Return some of the frames."""
        return ObjectWindow(
            self.truth[rows],
            self.prediction[rows],
            self.truth_boundary[rows],
            self.prediction_boundary[rows],
            [(words[rows], area[rows]) for words, area in self.others],
            self.other_predictions[rows],
            self.radius,
        )


def count(words: Words) -> Array:
    """Return how many pixels each frame has."""
    return ones(np.ascontiguousarray(words).reshape(len(words), -1))


def states_of(window: ObjectWindow) -> list[str]:
    """Return the kind of each frame by itself, or that it is right, or that the object is tracked."""
    truth, prediction = count(window.truth), count(window.prediction)
    shared = count(window.truth & window.prediction)
    j = shared / np.maximum(truth + prediction - shared, 1)
    swapped = np.zeros(len(truth), bool)
    for other, area in window.others:
        taken = count(other & window.prediction)
        swapped |= (2 * taken >= prediction) & (taken / np.maximum(area + prediction - taken, 1) > j)
    empty = prediction == 0
    conditions = [(truth == 0) & empty, truth == 0, empty, swapped, j < LOST]
    return [str(state) for state in np.select(conditions, [RIGHT, "ghost", "miss", "swap", "drift"], TRACKED)]


def tracked_parts(window: ObjectWindow, *, boundaries: bool = True) -> NDArray[np.float64]:
    """Return how the loss of frames in which the object is tracked is shared among the last four kinds.

    Without boundaries it is the loss of J alone.
    """
    truth, prediction = window.truth, window.prediction
    near = _grown(window.truth_boundary, window.radius)
    lacking, surplus = truth & ~prediction & ~near, prediction & ~truth & ~near
    neighbours = np.zeros_like(truth)
    for other, _ in window.others:
        neighbours |= other
    far = {"part": count(lacking), "leak": count(surplus)}
    mixed = {"part": count(lacking & window.other_predictions), "leak": count(surplus & neighbours)}
    shares = np.stack([
        mixed["part"] + mixed["leak"], far["part"] - mixed["part"], far["leak"] - mixed["leak"],
        count((truth ^ prediction) & near),
    ]) / np.maximum(count(truth | prediction), 1)  # fmt: skip
    if not boundaries:
        return shares.T
    shares /= 2
    for row, (kind, missed) in enumerate(zip(("part", "leak"), _boundary_losses(window, near), strict=True), 1):
        of_others = missed / 2 * mixed[kind] / np.maximum(far[kind], 1)
        shares[0] += of_others
        shares[row] += np.where(far[kind] > 0, missed / 2 - of_others, 0)
        shares[3] += np.where(far[kind] > 0, 0, missed / 2)
    return shares.T


def _boundary_losses(window: ObjectWindow, near: Words) -> tuple[Array, Array]:
    """Return the two halves of 1 - F: boundary for which the prediction is too small, and too large."""
    of_truth, of_prediction = count(window.truth_boundary), count(window.prediction_boundary)
    open_truth = window.truth_boundary & ~_grown(window.prediction_boundary, window.radius)
    open_prediction = window.prediction_boundary & ~near
    some_truth, some_prediction = np.maximum(of_truth, 1), np.maximum(of_prediction, 1)
    recall = np.where(of_truth > 0, 1 - count(open_truth) / some_truth, 0)
    precision = np.where(of_prediction > 0, 1 - count(open_prediction) / some_prediction, 0)
    both = precision + recall
    weight = np.where(both > 0, precision / np.where(both > 0, both, 1), 0.5)
    weight = np.where((of_truth > 0) & (of_prediction > 0), weight, of_truth > 0)
    truth_share, prediction_share = weight / some_truth, (1 - weight) / some_prediction
    within = count(open_truth & window.prediction), count(open_prediction & window.truth)
    under = truth_share * (count(open_truth) - within[0]) + prediction_share * within[1]
    over = truth_share * within[0] + prediction_share * (count(open_prediction) - within[1])
    return under, over


def _grown(words: Words, radius: int) -> Words:
    """Return what lies within a radius of any pixel: each row spread as far as the disk is wide at its distance."""
    # Words across come first meanwhile: whole rows are then moved at once.
    spread, width, rows = np.ascontiguousarray(words.transpose(2, 0, 1)), 0, words.shape[1]
    grown, moved = np.zeros_like(spread), np.empty_like(spread)
    for distance in range(min(radius, rows - 1), -1, -1):
        half = math.isqrt(radius * radius - distance * distance)
        while width < half:
            step = min(half - width, 2 * width + 1, WORD - 1)
            spread, width = _spread(spread, step, moved), width + step
        grown[..., distance:] |= spread[..., : rows - distance]
        if distance:
            grown[..., :-distance] |= spread[..., distance:]
    return np.ascontiguousarray(grown.transpose(1, 2, 0))


def _spread(words: Words, step: int, moved: Words) -> Words:
    """Return each row joined with itself, moved by so many pixels either way; `moved` is overwritten."""
    joined = words << np.uint64(step)
    joined |= words
    joined |= np.right_shift(words, np.uint64(step), out=moved)
    joined[1:] |= np.right_shift(words[:-1], np.uint64(WORD - step), out=moved[1:])
    joined[:-1] |= np.left_shift(words[1:], np.uint64(WORD - step), out=moved[1:])
    return joined


def with_lateness(states: list[str], visible: list[bool]) -> list[str]:
    """Return the states of an object's frames in order; what is not found again since its return is late."""
    kinds, waiting = [], False
    for number, (state, seen) in enumerate(zip(states, visible, strict=True)):
        if not seen:
            waiting = False
        elif number and not visible[number - 1]:
            waiting = True
        waiting = waiting and state != TRACKED
        kinds.append("late" if waiting and state in ("miss", "swap", "drift") else state)
    return kinds


def window_of(name: str, block: ComparedBlock, rows: Array) -> ObjectWindow:
    """Return an object in some frames of a block, in the window that holds its truth and its prediction."""
    mine, other = (
        side[name].frames(rows) if name in side else nothing(len(rows), block.size)
        for side in (block.truth, block.predicted)
    )
    stacks = [mine, other, Region(mine).boundary, Region(other).boundary]
    known = [stack for stack in stacks if stack.words.size]
    top, left = (min((getattr(one, side) for one in known), default=0) for side in ("top", "left"))
    bottom = max((one.top + one.words.shape[1] for one in known), default=1)
    right = max((one.left + one.words.shape[2] for one in known), default=1)

    def placed(stack: Stack) -> Words:
        words = np.zeros((len(rows), bottom - top, right - left), np.uint64)
        high, low = max(top, stack.top), min(bottom, stack.top + stack.words.shape[1])
        first, last = max(left, stack.left), min(right, stack.left + stack.words.shape[2])
        if high < low and first < last:
            part = stack.words[:, high - stack.top : low - stack.top, first - stack.left : last - stack.left]
            words[:, high - top : low - top, first - left : last - left] = part
        return words

    others = [stack.frames(rows) for label, stack in block.truth.items() if label not in (name, VOID)]
    rest = [placed(stack.frames(rows)) for label, stack in block.predicted.items() if label != name]
    elsewhere = np.bitwise_or.reduce(rest) if rest else np.zeros((len(rows), bottom - top, right - left), np.uint64)
    truth, prediction, *boundaries = map(placed, stacks)
    apart = [(placed(stack), stack.area) for stack in others]
    return ObjectWindow(truth, prediction, boundaries[0], boundaries[1], apart, elsewhere, reach(block.size))
