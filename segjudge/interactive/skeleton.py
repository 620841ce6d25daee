"""From a region to lines through its middle: open it, thin it, and take the longest way through each piece."""

from __future__ import annotations

import itertools
import math
from functools import lru_cache
from typing import Any

import numpy as np
from scipy import ndimage
from skimage.morphology import medial_axis

try:
    from skimage.morphology._skeletonize_various_cy import (  # type: ignore[import-not-found,unused-ignore]
        _skeletonize_loop as _loop,
    )
except ImportError:  # a private name may go
    _loop = None

#: While nothing is left the radius shrinks by this.
SHRINK = 0.9
_EIGHT = np.ones((3, 3), dtype=int)


def opened(region: Any, radius: float) -> Any:
    """Erosion, then dilation, by a disk; by ever smaller ones while nothing is left and the radius is above 1."""
    if radius <= 1:
        return region
    while radius > 1:
        found = _opened_by(region, radius)
        if found.any():
            return found
        radius *= SHRINK
    return np.zeros_like(region)


def _opened_by(region: Any, radius: float) -> Any:
    # What lies outside the image is ignored; the dilation is the erosion of what is not there, by the same disk.
    return ~_eroded(~_eroded(region, radius), radius)


def _eroded(region: Any, radius: float) -> Any:
    """Where the whole disk lies in the region.

    The disk has its centre between pixels for most radii, and is not turned round for the dilation: that shifts
    the result by up to a pixel, as in the original.
    """
    count = math.ceil(2 * radius + 1)
    offsets = np.arange(count) - count // 2
    places = np.arange(count) - radius
    height, width = region.shape
    # Pixels outside the region above each pixel of a column, so that a run is looked up in two steps.
    above = np.zeros((height + 1, width), dtype=np.int32)
    np.cumsum(~region, axis=0, out=above[1:])
    rows = np.arange(height)
    found = np.ones_like(region)
    for dx, place in zip(offsets, places, strict=True):
        column = np.flatnonzero(place * place + places * places <= radius * radius)
        if not len(column):
            continue
        first = np.clip(rows + offsets[column[0]], 0, height)
        last = np.clip(rows + offsets[column[-1]] + 1, 0, height)
        missing = above[last] != above[first]
        if dx >= 0:
            found[:, : width - dx] &= ~missing[:, dx:]
        else:
            found[:, -dx:] &= ~missing[:, : width + dx]
    return found


class _Legacy(np.random.Generator):
    """The order in which scikit-image broke ties up to 0.18; newer ones draw anew each time."""

    def __init__(self) -> None:
        super().__init__(np.random.PCG64(0))

    def permutation(self, x: Any, axis: int = 0) -> Any:
        """Always the same."""
        del axis
        return np.random.RandomState(0).permutation(x)


def skeleton(mask: Any) -> Any:
    """The medial axis, one pixel wide."""
    rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    found = np.zeros_like(mask)
    if not len(rows):
        return found
    box = (slice(rows[0], rows[-1] + 1), slice(columns[0], columns[-1] + 1))
    found[box] = _thinned(np.pad(mask[box], 1))[1:-1, 1:-1]
    return found


def _thinned(mask: Any) -> Any:
    """scikit-image's `medial_axis`; its inner loop alone where that can be had, since it makes a table for each call.

    The table takes 8 ms, which is more than all the rest for a region of usual size.
    """
    if _loop is None:
        return medial_axis(mask, rng=_Legacy())  # type: ignore[no-untyped-call]
    result = np.ascontiguousarray(mask, dtype=np.uint8)
    rows, columns = (np.ascontiguousarray(one, dtype=np.intp) for one in np.nonzero(mask))
    # Nearest to the outside first, then those with most neighbours, then in the old order of ties.
    ties = np.random.RandomState(0).permutation(np.arange(len(rows)))
    around = ndimage.convolve(result, _EIGHT, mode="constant")[rows, columns]
    distance = ndimage.distance_transform_edt(mask)[rows, columns]
    order = np.lexsort((ties, 9 - around.astype(int), distance)).astype(np.int32)
    _loop(result, rows, columns, order, _kept())
    return result.astype(bool)


@lru_cache(maxsize=1)
def _kept() -> Any:
    """For each pattern of a pixel and its neighbours whether the pixel stays: an end, or what holds pieces together."""

    def pieces(pattern: Any) -> int:
        return int(ndimage.label(pattern, structure=_EIGHT)[1])

    kept = np.zeros(512, dtype=np.uint8)
    for number in range(512):
        pattern = (number >> np.arange(9) & 1).reshape(3, 3)
        without = pattern.copy()
        without[1, 1] = 0
        kept[number] = pattern[1, 1] and (pattern.sum() < 3 or pieces(pattern) != pieces(without))
    return kept


def longest_paths(thin: Any, min_nodes: int) -> list[Any]:
    """The way with most pixels through each piece of a skeleton that is not too small, as rows of x and y."""
    ys, xs = np.nonzero(thin)
    if not len(ys):
        return []
    near = _neighbours(thin, ys, xs)
    pieces = ndimage.label(thin, structure=_EIGHT)[0][ys, xs]
    first = np.unique(pieces, return_index=True)[1]
    sizes = np.bincount(pieces)[1:]
    paths = []
    for start, size in zip(first.tolist(), sizes.tolist(), strict=True):
        if size < min_nodes:
            continue
        _cut_cycles(near, start, ys, xs)
        far = _walked(near, start)[-1]
        nodes = _walked(near, far)
        paths.append(np.stack([xs[nodes], ys[nodes]], axis=1))
    return paths


def _neighbours(thin: Any, ys: Any, xs: Any) -> list[list[int]]:
    """For each pixel those around it, both counted row by row."""
    height, width = thin.shape
    numbers = np.full((height + 2, width + 2), -1)
    numbers[ys + 1, xs + 1] = np.arange(len(ys))
    around = np.stack([numbers[ys + 1 + dy, xs + 1 + dx] for dy in (-1, 0, 1) for dx in (-1, 0, 1) if dy or dx], axis=1)
    return [[one for one in row if one >= 0] for row in around.tolist()]


def _cut_cycles(near: list[list[int]], start: int, ys: Any, xs: Any) -> None:
    """Cut each cycle of a piece at its first heaviest edge, as a search from its first pixel meets them.

    What was searched before a cut would be searched again in the same order, so the search goes on from there.
    """
    at = {start: 0}
    stack = [start]
    tried = [0]
    while stack:
        node, place = stack[-1], tried[-1]
        if place >= len(near[node]):
            stack.pop()
            tried.pop()
            if stack:
                tried[-1] += 1
            del at[node]
            continue
        other = near[node][place]
        if len(stack) > 1 and other == stack[-2]:
            tried[-1] += 1
        elif other in at:
            _cut(near, stack, tried, at, other, ys, xs)
        else:
            at[other] = len(stack)
            stack.append(other)
            tried.append(0)


def _cut(  # noqa: PLR0913, PLR0917 - the state of the search
    near: list[list[int]], stack: list[int], tried: list[int], at: dict[int, int], back: int, ys: Any, xs: Any
) -> None:
    """Take an edge out of the cycle that the search has closed, and go back to where that edge began."""
    cycle = [*stack[at[back] :], back]
    slanted = [abs(ys[a] - ys[b]) + abs(xs[a] - xs[b]) == 2 for a, b in itertools.pairwise(cycle)]
    cut = slanted.index(True) if any(slanted) else 0
    tail, head = cycle[cut], cycle[cut + 1]
    # The one that is tried now loses its place; earlier ones keep theirs.
    before = near[head].index(tail)
    near[tail].remove(head)
    near[head].remove(tail)
    for node in stack[at[tail] + 1 :]:
        del at[node]
    del stack[at[tail] + 1 :], tried[at[tail] + 1 :]
    if head in at and before < tried[at[head]]:
        tried[at[head]] -= 1


def _walked(near: list[list[int]], start: int) -> list[int]:
    """Pixels from the start to the first of those that are farthest from it."""
    before: dict[int, int] = {start: start}
    ring, far = [start], start
    while ring:
        far = ring[0]
        following = []
        for node in ring:
            for other in near[node]:
                if other not in before:
                    before[other] = node
                    following.append(other)
        ring = following
    found = [far]
    while found[-1] != start:
        found.append(before[found[-1]])
    return found[::-1]
