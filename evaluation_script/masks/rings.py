"""Rings of polygons, drawn as compressed run lengths by pycocotools."""

from __future__ import annotations

from typing import Any, List, TypeVar

from .detections import Rings
from .stack import Array

Item = TypeVar("Item")

#: The number of masks joined at once; joined singly, each would be compared with all before it.
_JOINED_AT_ONCE = 16


def masks_of(rings: Rings, sizes: Array) -> List[str]:
    """Return the compressed runs of masks in images of these sizes."""
    bounds = rings.ends.tolist()
    corners_of_rings = [rings.numbers[start:stop].tolist() for start, stop in zip(bounds, bounds[1:])]
    masks = rings.masks.tolist()
    return [
        mask_of(corners_of_rings[start:stop], height, width)
        for start, stop, (height, width) in zip(masks, masks[1:], sizes.tolist())
    ]


def mask_of(rings: List[Any], height: int, width: int) -> str:
    """Return the compressed runs of the union of these rings."""
    import pycocotools.mask as coco

    if not height or not width:
        return ""
    masks = [_unite(coco.frPyObjects(group, height, width)) for group in _groups(rings)]
    while len(masks) > 1:
        masks = [_unite(group) for group in _groups(masks)]
    counts = masks[0]["counts"]
    return counts if isinstance(counts, str) else counts.decode("ascii")


def _unite(masks: List[Any]) -> Any:
    """Return the union of these masks; a single ring is its own union."""
    import pycocotools.mask as coco

    return coco.merge(masks) if len(masks) > 1 else masks[0]


def _groups(items: List[Item]) -> List[List[Item]]:
    return [items[start : start + _JOINED_AT_ONCE] for start in range(0, len(items), _JOINED_AT_ONCE)]
