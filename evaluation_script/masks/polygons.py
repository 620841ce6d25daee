"""Polygons → compressed run lengths by pycocotools, whose work is measured before it begins.

It walks every outline in steps of a fifth of a pixel and keeps all of them in
memory: a few characters that jump across the image cost 80 kB.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any, List, NamedTuple, TypeVar

import numpy as np

from ..files.problems import Flaw
from .stack import Array

if TYPE_CHECKING:
    from pycocotools import _EncodedRLE

Item = TypeVar("Item")

_EXAMPLE = "[[x1, y1, x2, y2, x3, y3, …]]"

#: A corner may lie this many image sizes outside.
_FAR = 4
#: Pixels of one outline, 30 MB while it is walked; contours of 4K masks have a tenth of it.
LONGEST_OUTLINE = 250_000
#: What a ring costs beside its outline, in pixels.
_RING_COST = 100
#: Masks are joined in groups of this size: joined singly, each would be compared with all before it.
_JOINED_AT_ONCE = 16
#: Masks whose corners are checked at once, as arrays.
_CHECKED_AT_ONCE = 1024

#: Pixels of all outlines that a file of so many bytes may hold; COCO's own polygons have 0.8 for each byte.
_OUTLINES_ANYWAY = 16 << 20
_OUTLINES_PER_BYTE = 4


class _Outlines(NamedTuple):
    """The checked rings of some polygon masks."""

    #: For each mask its rings, each x and y in turn.
    rings: List[List[List[float]]]
    #: What drawing all of them costs, in pixels walked.
    cost: int


def polygon_mask(polygons: object, height: int, width: int) -> str:
    """Return the compressed runs of what any of these polygons covers."""
    return polygon_masks([polygons], np.array([(height, width)]))[0]


def polygon_masks(masks: List[Any], sizes: Array) -> List[str]:
    """Return the compressed runs of what the polygons of each mask cover, in images of these sizes."""
    texts: List[str] = []
    for start in range(0, len(masks), _CHECKED_AT_ONCE):
        batch = slice(start, start + _CHECKED_AT_ONCE)
        rings = outlines(masks[batch], sizes[batch].max(axis=1)).rings
        texts += [mask_of(own, height, width) for own, (height, width) in zip(rings, sizes[batch].tolist())]
    return texts


def outlines(masks: List[Any], sides: Array) -> _Outlines:
    """Return the rings of masks in images with these longer sides; a Flaw when one is no polygon near its image."""
    rings: List[List[Any]] = [mask if mask and isinstance(mask[0], list) else [mask] for mask in masks]
    all_rings = list(chain.from_iterable(rings))
    lengths = np.array([len(ring) if type(ring) is list else 0 for ring in all_rings], np.int64)
    if (lengths < 6).any() or (lengths % 2).any():
        raise Flaw("has a polygon without three corners (x, y)", f"Write {_EXAMPLE}")
    corners = _numbers(list(chain.from_iterable(all_rings))).reshape(-1, 2)
    far = _FAR * np.maximum(np.repeat(np.repeat(sides, list(map(len, rings))), lengths // 2), 1)
    if not (np.abs(corners) <= far[:, None]).all():
        raise _FAR_OUTSIDE
    cost = _outline_lengths(corners, lengths // 2)
    if (longest := cost.max(initial=0)) > LONGEST_OUTLINE:
        fault = f"has a polygon whose outline is {longest:,} pixels long; {LONGEST_OUTLINE:,} is the limit"
        raise Flaw(fault, "Write masks as run lengths")
    return _Outlines(rings, int(cost.sum()) + _RING_COST * len(all_rings))


_FAR_OUTSIDE = Flaw("has a polygon with corners that are not numbers or far outside", "Keep it within the image")


def _numbers(values: List[Any]) -> Array:
    if not set(map(type, values)) <= {int, float}:
        raise _FAR_OUTSIDE
    try:
        return np.array(values, float)
    except OverflowError:
        raise _FAR_OUTSIDE from None


def _outline_lengths(corners: Array, counts: Array) -> Array:
    """Return the pixels along each ring of so many corners, and one for each corner."""
    ends = np.cumsum(counts)
    before = np.arange(-1, len(corners) - 1)
    before[ends - counts] = ends - 1
    steps = np.abs(corners - corners[before]).max(axis=1)
    return np.ceil(np.add.reduceat(steps, ends - counts)).astype(np.int64) + counts


def _groups(items: List[Item]) -> List[List[Item]]:
    return [items[start : start + _JOINED_AT_ONCE] for start in range(0, len(items), _JOINED_AT_ONCE)]


def outline_limit(count: int) -> int:
    """Return what all polygons of a file of so many bytes may cost."""
    return _OUTLINES_ANYWAY + _OUTLINES_PER_BYTE * count


def mask_of(rings: List[Any], height: int, width: int) -> str:
    """Return the compressed runs of what any of these rings covers."""
    import pycocotools.mask as coco

    if not height or not width:
        return ""
    parts = [_unite(coco.frPyObjects(group, height, width)) for group in _groups(rings)]
    while len(parts) > 1:
        parts = [_unite(group) for group in _groups(parts)]
    counts = parts[0]["counts"]
    return counts if isinstance(counts, str) else counts.decode("ascii")


def _unite(parts: List[_EncodedRLE]) -> _EncodedRLE:
    """Return what any of these masks covers; most have one ring, which is its own union."""
    import pycocotools.mask as coco

    return coco.merge(parts) if len(parts) > 1 else parts[0]
