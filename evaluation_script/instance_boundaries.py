"""The IoU of the boundaries of masks, which says how well outlines agree where masks are large."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Dict

import numpy as np

from .instance_overlaps import Masks
from .kernel_runs import Pairs
from .masks import Array
from .rle import runs_of


@dataclass(frozen=True)
class Boundary:
    """The boundary of a mask: booleans (columns, rows) of the box around it, and where that begins."""

    flags: Array
    left: int
    top: int
    pixels: int


def smaller_of_both(pairs: Pairs, sent: Masks, real: Masks, ious: Array, wanted: Array, share: float) -> Array:
    """Return the IoU of each pair, that of the boundaries where it is wanted and smaller.

    Boundaries are as wide as this share of the image's diagonal.
    """
    ious = ious.copy()
    group = np.searchsorted(pairs.bounds, np.arange(len(ious)), side="right")
    known: Dict[int, Boundary] = {}
    last_group, last_sent = -1, -1
    for index in np.flatnonzero(wanted).tolist():
        one, other = int(pairs.sent[index]), int(pairs.real[index])
        if group[index] != last_group:
            known, last_group = {}, int(group[index])
        if one != last_sent:
            mine, last_sent = _boundary_of(sent, one, share), one
        if other not in known:
            known[other] = _boundary_of(real, other, share)
        ious[index] = min(ious[index], _iou(mine, known[other]))
    return ious


def reach_of(height: int, width: int, share: float) -> int:
    """Return how wide boundaries are; halves are rounded to even numbers, as in the original."""
    return max(1, round(share * math.sqrt(height**2 + width**2)))


def boundary_of(flags: Array, reach: int) -> Array:
    """Return the pixels of a mask that are at most so far from one outside it, or from the array's border."""
    inside, boundary = whole_windows(flags, 2 * reach + 1, 2 * reach + 1), flags.copy()
    if inside.size:
        boundary[reach:-reach, reach:-reach] &= ~inside
    return boundary


def whole_windows(flags: Array, *sides: int) -> Array:
    """Return which windows with these sides are flagged all over."""
    for side in sides:  # along the first axis, then, turned, along the other
        span = 1
        while span < side:
            step = min(span, side - span)
            flags = flags[:-step] & flags[step:]
            span += step
        flags = flags.T
    return flags


def _boundary_of(masks: Masks, index: int, share: float) -> Boundary:
    height, width = masks.sizes[index].tolist()
    runs = runs_of(masks.texts[index], height * width)
    ends = np.cumsum(runs)
    first, last = int(ends[0]) // height, int(ends[len(ends) // 2 * 2 - 1] - 1) // height + 1
    runs[0] -= first * height
    flags = np.repeat(np.arange(len(runs)) % 2 == 1, runs)[: (last - first) * height].reshape(last - first, height)
    rows = np.flatnonzero(flags.any(axis=0))
    top, bottom = int(rows[0]), int(rows[-1]) + 1
    boundary = boundary_of(flags[:, top:bottom], reach_of(height, width, share))
    return Boundary(boundary, first, top, int(np.count_nonzero(boundary)))


def _iou(one: Boundary, other: Boundary) -> float:
    left, top = max(one.left, other.left), max(one.top, other.top)
    right = min(one.left + one.flags.shape[0], other.left + other.flags.shape[0])
    bottom = min(one.top + one.flags.shape[1], other.top + other.flags.shape[1])
    if right <= left or bottom <= top:
        return 0.0
    cut = (
        mask.flags[left - mask.left : right - mask.left, top - mask.top : bottom - mask.top] for mask in (one, other)
    )
    shared = int(np.count_nonzero(np.logical_and(*cut)))
    return shared / (one.pixels + other.pixels - shared)
