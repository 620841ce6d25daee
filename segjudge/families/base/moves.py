"""Displacements: by how many pixels segments are beside their place, which their edges prove."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from segjudge.evaluation_script.masks.stack import Array

#: Segments are displaced if this share of them moved alike, by at least so many pixels, with all edges: they differ by
#: at most this share of the distance.
_AGREEING, _LEAST_MOVE, _ALIKE = 0.75, 1.0, 0.25

#: By how many pixels the left, right, top and bottom edges of two boxes differ; NaN at the border of a picture.
Edges = tuple[float, float, float, float]


def compare_edges(truth: Array, prediction: Array, size: Sequence[int]) -> Edges:
    """Return by how much two boxes (x, y, width, height) differ at their left, right, top and bottom edges.

    An edge at the border of a picture of this height and width is NaN, because the picture may cut it.
    """
    edges = [(box[axis], box[axis] + box[axis + 2]) for box in (truth, prediction) for axis in (0, 1)]
    moves = []
    for axis, side in enumerate((size[1], size[0])):
        for end, border in enumerate((0, side)):
            places = edges[axis][end], edges[2 + axis][end]
            moves.append(math.nan if border in places else float(places[1] - places[0]))
    left_move, right_move, top_move, bottom_move = moves
    return left_move, right_move, top_move, bottom_move


def find_boxes(numbers: Array, count: int) -> Array:
    """Return the box (x, y, width, height) of each number from 1 in a picture; of an absent number, zeros."""
    boxes = np.zeros((count, 4), np.int64)
    for axis in (0, 1):
        is_present = np.zeros((numbers.shape[1 - axis], count + 1), bool)
        places = np.arange(len(is_present))
        is_present[places if axis == 0 else places[:, None], numbers] = True
        firsts, ends = is_present.argmax(axis=0), len(is_present) - is_present[::-1].argmax(axis=0)
        boxes[:, axis] = firsts[1:]
        boxes[:, axis + 2] = np.where(is_present.any(axis=0), ends - firsts, 0)[1:]
    return boxes


def find_move(edges: Sequence[Edges]) -> tuple[float, float] | None:
    """Return the displacement to the right and down of segments whose edges all moved alike; None if few agree."""
    if not edges:
        return None
    moves = np.array(edges)
    moves = moves[np.isfinite(moves).sum(axis=1) > 1]
    if not len(moves) or 2 * len(moves) < len(edges):
        return None
    finite_moves = [column[np.isfinite(column)] for column in moves.T]
    left_move, right_move, top_move, bottom_move = (
        float(np.median(column)) if len(column) else math.nan for column in finite_moves
    )
    x, y = (left_move + right_move) / 2, (top_move + bottom_move) / 2
    distance = math.hypot(x, y)
    if not distance >= _LEAST_MOVE:
        return None
    differing = (np.abs(moves - [x, x, y, y]) > max(_LEAST_MOVE / 2, _ALIKE * distance)).any(axis=1)
    return (x, y) if differing.mean() <= 1 - _AGREEING else None


def describe_move(x: float, y: float) -> str:
    """Describe a displacement in pixels, without a side that is short beside the other."""
    sides = (x, "to the right", "to the left"), (y, "down", "up")
    return " and ".join(
        f"{abs(pixels):.2g} px {ahead if pixels > 0 else back}"
        for pixels, ahead, back in sides
        if abs(pixels) > max(abs(x), abs(y)) / 5
    )
