"""The conversion of polygons to compressed run lengths, within a limit of work.

Drawing walks every outline in steps of a fifth of a pixel, kept in memory: a few characters that jump across the image
take 80 kB.
"""

from __future__ import annotations

from itertools import chain
from typing import Any, List, NamedTuple

import numpy as np

from ..files.problems import Flaw
from .detections import Rings
from .stack import Array

_EXAMPLE = "[[x1, y1, x2, y2, x3, y3, ...]]"

#: The maximum distance of a corner from the image, in image sizes.
_FAR = 4
#: The maximum pixels of an outline, which take 30 MB during drawing; contours of 4K masks have a tenth of it.
LONGEST_OUTLINE = 250_000
#: The cost of a ring in addition to its outline, in pixels.
_RING_COST = 100
#: The number of masks whose corners are checked at once, as arrays.
_CHECKED_AT_ONCE = 1024

#: The pixels of outlines that any file may have; COCO's own polygons have 0.8 per byte.
_OUTLINES_ANYWAY = 16 << 20
_OUTLINES_PER_BYTE = 4


class _Outlines(NamedTuple):
    """The checked rings of some polygon masks."""

    rings: Rings
    #: The cost of drawing all of them, in pixels walked.
    cost: int


def polygon_mask(polygons: object, height: int, width: int) -> str:
    """Return the compressed runs of the union of these polygons."""
    return polygon_masks([polygons], np.array([(height, width)]))[0]


def polygon_masks(masks: List[Any], sizes: Array) -> List[str]:
    """Return the compressed runs of each mask's polygons, in images of these sizes."""
    from .backend import backend

    texts: List[str] = []
    for start in range(0, len(masks), _CHECKED_AT_ONCE):
        batch = slice(start, start + _CHECKED_AT_ONCE)
        drawn = backend().draw_polygons(outlines(masks[batch], sizes[batch].max(axis=1)).rings, sizes[batch])[0]
        texts += [drawn[index] for index in range(len(drawn))]
    return texts


def outlines(masks: List[Any], sides: Array) -> _Outlines:
    """Return the rings of masks, given the images' longer sides; raises a Flaw for invalid polygons."""
    rings: List[List[Any]] = [mask if mask and isinstance(mask[0], list) else [mask] for mask in masks]
    all_rings = list(chain.from_iterable(rings))
    lengths = np.array([len(ring) if type(ring) is list else 0 for ring in all_rings], np.int64)
    _check_lengths(lengths)
    numbers = _numbers(list(chain.from_iterable(all_rings)))
    joined = Rings(numbers, np.append(0, np.cumsum(lengths)), np.cumsum([0, *map(len, rings)]))
    return _Outlines(joined, measure(joined, sides))


def measure(rings: Rings, sides: Array) -> int:
    """Return the cost of drawing masks in images with these longer sides; a Flaw if one is far from its image."""
    lengths = np.diff(rings.ends)
    _check_lengths(lengths)
    corners = rings.numbers.reshape(-1, 2)
    far = _FAR * np.maximum(np.repeat(sides, np.diff(rings.masks)), 1)
    if not (_measure_reach(rings.numbers, rings.ends[:-1]) <= far).all():
        raise _FAR_OUTSIDE
    cost = _outline_lengths(corners, lengths // 2)
    if (longest := cost.max(initial=0)) > LONGEST_OUTLINE:
        fault = f"has a polygon whose outline is {longest:,} pixels long; the limit is {LONGEST_OUTLINE:,}"
        raise Flaw(fault, "Write masks as run lengths")
    return int(cost.sum()) + _RING_COST * len(lengths)


def _check_lengths(lengths: Array) -> None:
    if (lengths < 6).any() or (lengths % 2).any():
        raise Flaw("has a polygon without three corners (x, y)", f"Write {_EXAMPLE}")


_FAR_OUTSIDE = Flaw(
    "has a polygon with corners that are not numbers or lie far outside the image",
    "Write corners as numbers within the image",
)


def _numbers(values: List[Any]) -> Array:
    if not set(map(type, values)) <= {int, float}:
        raise _FAR_OUTSIDE
    try:
        return np.array(values, float)
    except OverflowError:
        raise _FAR_OUTSIDE from None


def _measure_reach(numbers: Array, starts: Array) -> Array:
    """Return the largest absolute number of each ring, or what is not a number."""
    return np.maximum.reduceat(np.abs(numbers), starts) if len(starts) else np.zeros(0)


def _outline_lengths(corners: Array, counts: Array) -> Array:
    """Return the pixels along each ring, plus one per corner."""
    if not len(counts):
        return np.zeros(0, np.int64)
    ends = np.cumsum(counts)
    steps = np.empty_like(corners)
    np.subtract(corners[1:], corners[:-1], out=steps[1:])
    steps[ends - counts] = corners[ends - counts] - corners[ends - 1]
    np.abs(steps, out=steps)
    longer = np.maximum(steps[:, 0], steps[:, 1])
    return np.ceil(np.add.reduceat(longer, ends - counts)).astype(np.int64) + counts


def outline_limit(count: int) -> int:
    """Return the limit of outline pixels for the polygons of a file of this size."""
    return _OUTLINES_ANYWAY + _OUTLINES_PER_BYTE * count
