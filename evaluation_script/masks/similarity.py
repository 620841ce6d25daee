"""J and F of masks: region overlap and boundary agreement in pixels.

All functions take stacks of one object over some frames and return one number per frame. They return counts, and two
functions at the end turn counts into J and F, so that sums over a video use the same counts.

Two properties come from DAVIS. The border of the image never makes a boundary, so a full frame has none. A boundary
lies on the pixel above or left of the change, so a mirrored mask may score differently.
"""

from __future__ import annotations

import math
from functools import cached_property, lru_cache
from typing import Dict, NamedTuple, Tuple

import numpy as np

from .stack import WORD, Array, Size, Stack, ones, overlap, pad

#: The maximum distance of matching boundary pixels, as a fraction of the image's diagonal.
BOUNDARY_TOLERANCE = 0.008

#: The pixels around a boundary pixel that match it: column offset -> rows from, to (inclusive).
Disk = Tuple[Tuple[int, int, int], ...]


def diagonal_tolerance(size: Size) -> float:
    """Return the tolerance in pixels, before it is rounded up."""
    return BOUNDARY_TOLERANCE * float(np.linalg.norm(size))


@lru_cache(maxsize=None)
def reach(size: Size) -> int:
    """Return the distance in pixels within which boundary pixels match."""
    return math.ceil(diagonal_tolerance(size))


@lru_cache(maxsize=None)
def disk(radius: int) -> Disk:
    """Return all offsets within this distance, column by column."""
    heights = [(dx, math.isqrt(radius * radius - dx * dx)) for dx in range(-radius, radius + 1)]
    return tuple((dx, -height, height) for dx, height in heights)


def fractional_disk(radius: float) -> Disk:
    """Return the slightly off-centre disk of scikit-image and OpenCV for a fractional radius."""
    grid = np.arange(-radius, radius + 1)
    centre = len(grid) // 2
    columns = []
    for column, x in enumerate(grid):
        rows = np.flatnonzero(x * x + grid * grid <= radius * radius)
        if len(rows):
            columns.append((column - centre, int(rows[0]) - centre, int(rows[-1]) - centre))
    # An empty disk, as in frames below 60 pixels, is one point in OpenCV: the kernel's first.
    return tuple(columns) or ((-centre, -centre, -centre),)


class Counts(NamedTuple):
    """Areas, shared pixels and matched boundary pixels of two masks, one entry per frame."""

    truth: Array
    prediction: Array
    shared: Array
    truth_boundary: Array
    prediction_boundary: Array
    truth_matched: Array
    prediction_matched: Array

    @property
    def union(self) -> Array:
        """The number of pixels in either mask."""
        union: Array = self.truth + self.prediction - self.shared
        return union

    def select(self, frames: Array) -> Counts:
        """Return the counts of some frames."""
        return Counts(*(field[frames] for field in self))

    def sum_frames(self) -> Counts:
        """Return the sums over all frames, as one frame."""
        return Counts(*(np.add.reduce(field, keepdims=True) for field in self))


def join_counts(parts: list[Counts]) -> Counts:
    """Return the frames of several counts, one after the other."""
    return Counts(*map(np.concatenate, zip(*parts)))


class Region:
    """One object in some frames, with its boundary, ready to be compared."""

    def __init__(self, stack: Stack) -> None:
        self.stack = stack
        self._grown: Dict[Disk, Stack] = {}

    @cached_property
    def area(self) -> Array:
        """The number of pixels in each frame."""
        return self.stack.area

    @cached_property
    def boundary(self) -> Stack:
        """The pixels of the boundary."""
        return _find_boundary(self.stack)

    @cached_property
    def boundary_size(self) -> Array:
        """The number of boundary pixels in each frame."""
        return self.boundary.area

    def frame(self, index: int) -> Region:
        """Return one frame alone."""
        return Region(self.stack.frames(np.array([index])))

    def count_matches(self, region: Region, match: Disk) -> Array:
        """Return per frame the number of boundary pixels with a boundary pixel of the region within reach."""
        if match not in region._grown:
            region._grown[match] = grow(region.boundary, match)
        return count_shared(self.boundary, region._grown[match])


def count_shared(a: Stack, b: Stack) -> Array:
    """Return the number of shared pixels of two masks in each frame."""
    parts = overlap(a, b)
    if parts is None:
        return np.zeros(len(a.words), np.int64)
    both = a.words[parts[0]] & b.words[parts[1]]
    return ones(both.reshape(len(both), -1))


def _find_boundary(stack: Stack) -> Stack:
    """Return the pixels that differ from their right, lower or diagonal neighbour."""
    if not stack.words.size:
        return stack
    height, width = stack.size
    up, back = int(stack.top > 0), int(stack.column > 0)
    bits = pad(stack.words, up, 0, back, 0)
    top, column = stack.top - up, stack.column - back
    right = bits >> 1
    right[:, :, :-1] |= bits[:, :, 1:] << (WORD - 1)
    last_word, last_bit = divmod(width - 1, WORD)
    if column + bits.shape[2] > last_word:  # no pixel lies right of the last column
        right[:, :, last_word - column] |= bits[:, :, last_word - column] & np.uint64(1 << last_bit)
    union, shared = bits | right, np.bitwise_and(bits, right, out=right)
    edge = union.copy()
    edge[:, :-1] |= union[:, 1:]
    shared[:, :-1] &= shared[:, 1:]
    if top + bits.shape[1] < height:  # below a window that ends inside the frame, all pixels are empty
        shared[:, -1] = 0
    edge ^= shared  # some of the four pixels are set, but not all
    return Stack(edge, top, column, stack.size)


def grow(stack: Stack, match: Disk) -> Stack:
    """Return the pixels that have a pixel of a stack within reach."""
    high = max(max(abs(low), abs(top)) for _, low, top in match)
    wide = max(abs(dx) for dx, _, _ in match) // WORD + 1
    words = pad(stack.words, 2 * high, 2 * high, 2 * wide, 2 * wide)
    grown = np.zeros_like(words[:, high : words.shape[1] - high, wide:-wide])
    rows, across = grown.shape[1:]
    for dx, low, top in match:
        column = _join_rows(words[:, high + low : high + top + rows], top - low + 1)
        offset, shift = divmod(dx, WORD)
        start = wide + offset
        grown |= column[:, :, start : start + across] >> shift
        if shift:
            grown |= column[:, :, start + 1 : start + 1 + across] << (WORD - shift)
    return Stack(grown, stack.top - high, stack.column - wide, stack.size)


def _join_rows(words: Array, count: int) -> Array:
    """Return the unions of this many consecutive rows."""
    joined = 1
    while joined < count:
        step = min(joined, count - joined)
        words, joined = words[:, :-step] | words[:, step:], joined + step
    return words


def region_similarity(counts: Counts) -> Array:
    """Return J, the intersection over union; two empty masks score 1."""
    union = counts.union
    return np.where(union == 0, 1.0, counts.shared / np.maximum(union, 1))


def boundary_similarity(counts: Counts) -> Array:
    """Return F, the harmonic mean of boundary precision and recall; two empty boundaries score 1."""
    precision = counts.prediction_matched / np.maximum(counts.prediction_boundary, 1)
    recall = counts.truth_matched / np.maximum(counts.truth_boundary, 1)
    total = precision + recall
    score = 2 * precision * recall / np.where(total == 0, 1, total)
    none = (counts.truth_boundary == 0) & (counts.prediction_boundary == 0)
    return np.where(none, 1.0, score)
