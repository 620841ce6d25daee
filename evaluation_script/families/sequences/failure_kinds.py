"""Kinds of failure of masks over time: what a frame of an object is, and how the loss of a tracked one is shared."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import List, Tuple

import numpy as np
from numpy.typing import NDArray

from ...masks.similarity import Region, reach, shared_pixels
from ...masks.stack import WORD, Array, Size, Stack, Stacks, joined, nothing, ones, united
from .truth import VOID

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

    frames: List[str]
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
    #: Where other objects of the truth are, and where others are predicted.
    others: Words
    other_predictions: Words
    #: The tolerance of boundaries, in pixels.
    radius: int


def _count(words: Words) -> Array:
    """Return how many pixels each frame has."""
    return ones(np.ascontiguousarray(words).reshape(len(words), -1))


def states_of(name: str, block: ComparedBlock) -> List[str]:
    """Return the kind of each frame by itself, or that it is right, or that the object is tracked."""
    truth, prediction = _of(block.truth, name, block), _of(block.predicted, name, block)
    in_truth, predicted, shared = truth.area, prediction.area, shared_pixels(truth, prediction)
    j = shared / np.maximum(in_truth + predicted - shared, 1)
    swapped = np.zeros(len(j), bool)
    for label, other in block.truth.items():
        if label not in (name, VOID):
            taken = shared_pixels(other, prediction)
            swapped |= (2 * taken >= predicted) & (taken / np.maximum(other.area + predicted - taken, 1) > j)
    empty = predicted == 0
    conditions = [(in_truth == 0) & empty, in_truth == 0, empty, swapped, j < LOST]
    return [str(state) for state in np.select(conditions, [RIGHT, "ghost", "miss", "swap", "drift"], TRACKED)]


def _of(side: Stacks, name: str, block: ComparedBlock) -> Stack:
    return side[name] if name in side else nothing(len(block.frames), block.size)


def tracked_parts(window: ObjectWindow, *, boundaries: bool = True) -> NDArray[np.float64]:
    """Return how the loss of frames in which the object is tracked is shared among the last four kinds.

    Without boundaries it is the loss of J alone.
    """
    truth, prediction = window.truth, window.prediction
    near = _grown(window.truth_boundary, window.radius)
    lacking, surplus = truth & ~prediction & ~near, prediction & ~truth & ~near
    far = {"part": _count(lacking), "leak": _count(surplus)}
    mixed = {"part": _count(lacking & window.other_predictions), "leak": _count(surplus & window.others)}
    shares = np.stack([
        mixed["part"] + mixed["leak"], far["part"] - mixed["part"], far["leak"] - mixed["leak"],
        _count((truth ^ prediction) & near),
    ]) / np.maximum(_count(truth | prediction), 1)  # fmt: skip
    if not boundaries:
        return shares.T
    shares /= 2
    for row, (kind, missed) in enumerate(zip(("part", "leak"), _boundary_losses(window, near)), 1):
        of_others = missed / 2 * mixed[kind] / np.maximum(far[kind], 1)
        shares[0] += of_others
        shares[row] += np.where(far[kind] > 0, missed / 2 - of_others, 0)
        shares[3] += np.where(far[kind] > 0, 0, missed / 2)
    return shares.T


def _boundary_losses(window: ObjectWindow, near: Words) -> Tuple[Array, Array]:
    """Return the two halves of 1 - F: boundary for which the prediction is too small, and too large."""
    of_truth, of_prediction = _count(window.truth_boundary), _count(window.prediction_boundary)
    open_truth = window.truth_boundary & ~_grown(window.prediction_boundary, window.radius)
    open_prediction = window.prediction_boundary & ~near
    some_truth, some_prediction = np.maximum(of_truth, 1), np.maximum(of_prediction, 1)
    recall = np.where(of_truth > 0, 1 - _count(open_truth) / some_truth, 0)
    precision = np.where(of_prediction > 0, 1 - _count(open_prediction) / some_prediction, 0)
    both = precision + recall
    weight = np.where(both > 0, precision / np.where(both > 0, both, 1), 0.5)
    weight = np.where((of_truth > 0) & (of_prediction > 0), weight, of_truth > 0)
    truth_share, prediction_share = weight / some_truth, (1 - weight) / some_prediction
    within = _count(open_truth & window.prediction), _count(open_prediction & window.truth)
    under = truth_share * (_count(open_truth) - within[0]) + prediction_share * within[1]
    over = truth_share * within[0] + prediction_share * (_count(open_prediction) - within[1])
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


def with_lateness(states: List[str], visible: List[bool]) -> List[str]:
    """Return the states of an object's frames in order; what is not found again since its return is late."""
    kinds, waiting = [], False
    for number, (state, seen) in enumerate(zip(states, visible)):
        if not seen:
            waiting = False
        elif number and not visible[number - 1]:
            waiting = True
        waiting = waiting and state != TRACKED
        kinds.append("late" if waiting and state in ("miss", "swap", "drift") else state)
    return kinds


def window_of(name: str, block: ComparedBlock, rows: Array) -> ObjectWindow:
    """Return an object in some frames of a block, in the window that holds its truth and its prediction."""
    mine, other = (_of(side, name, block).frames(rows) for side in (block.truth, block.predicted))
    stacks = [mine, other, Region(mine).boundary, Region(other).boundary]
    window = joined(stacks, len(rows), block.size)

    def placed(*those: Stack) -> Words:
        return united(Stack(np.zeros_like(window.words), window.top, window.left, block.size), those).words

    truth, prediction, *boundaries = map(placed, stacks)
    others, other_predictions = (
        placed(*(stack.frames(rows) for label, stack in side.items() if label not in (name, hidden)))
        for side, hidden in ((block.truth, VOID), (block.predicted, name))
    )
    return ObjectWindow(truth, prediction, boundaries[0], boundaries[1], others, other_predictions, reach(block.size))
