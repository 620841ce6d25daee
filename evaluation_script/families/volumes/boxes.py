"""The boxes of labels in a volume (z, y, x), and how many voxels each label has."""

from __future__ import annotations

import math
from typing import Iterable, Iterator, NamedTuple, Set, Tuple

import numpy as np

from ...masks.backend import backend
from ...masks.stack import Array

#: From and to (exclusive) along z, y and x.
Box = Tuple[slice, ...]
#: The number of voxels processed at once.
_SLAB = 1 << 20


class Boxes(NamedTuple):
    """The labels of a volume, without 0."""

    #: The voxels of each label.
    voxels: Array
    #: From and to along z, y and x, for each label; 0 and 0 for an absent label.
    sides: Array

    @property
    def labels(self) -> Set[int]:
        """Return the labels of a voxel."""
        return set(np.flatnonzero(self.voxels).tolist())

    def box_of(self, label: int) -> Box:
        """Return the box of a label; empty if no voxel has it."""
        starts, stops = self.sides[label, ::2].tolist(), self.sides[label, 1::2].tolist()
        return tuple(slice(*ends) for ends in zip(starts, stops))


def cut_slabs(shape: Tuple[int, ...], times: int = 1) -> Iterator[slice]:
    """Yield slices of planes with few voxels, or so many times as many."""
    step = max(1, times * _SLAB // max(1, math.prod(shape[1:])))
    for start in range(0, shape[0], step):
        yield slice(start, min(start + step, shape[0]))


def cover(boxes: Iterable[Box]) -> Box:
    """Return the smallest box that holds all boxes; empty if all boxes are empty."""
    filled = [box for box in boxes if box[0].stop]
    if not filled:
        return (slice(0, 0),) * 3
    return tuple(
        slice(min(extent.start for extent in side), max(extent.stop for extent in side)) for side in zip(*filled)
    )


def find_boxes(labels: Array, end: int) -> Boxes:
    """Return the boxes of all labels below an end."""
    kernel = backend().kernel
    arrays = kernel.find_boxes(labels, end) if kernel and labels.size else None
    if arrays is not None:
        return Boxes(*arrays)
    voxels, sides = np.zeros(end, np.int64), np.zeros((end, 3, 2), np.int64)
    sides[:, :, 0] = 1 << 62
    for slab in cut_slabs(labels.shape) if labels.size else ():
        _add_runs(labels[slab], slab.start, voxels, sides)
    sides[voxels == 0] = 0
    return Boxes(voxels, sides.reshape(end, 6))


def _add_runs(labels: Array, plane: int, voxels: Array, sides: Array) -> None:
    """Count the labels of planes from one on, and widen their boxes; equal labels in a row are a run."""
    _, height, width = labels.shape
    values = np.ascontiguousarray(labels).reshape(-1)
    ends = np.append(np.flatnonzero(values[1:] != values[:-1]), len(values) - 1)
    names, starts = values[ends].astype(np.int64), np.append(0, ends[:-1] + 1)
    has_label = names > 0
    names, starts, ends = names[has_label], starts[has_label], ends[has_label]
    if not len(names):
        return
    counts = np.bincount(names, weights=ends + 1 - starts)
    voxels[: len(counts)] += counts.astype(np.int64)
    # A run that continues in the next row covers all columns between them; in the next plane, all rows.
    rows, last_rows = starts // width, ends // width
    planes, last_planes = rows // height, last_rows // height
    is_row, is_plane = rows == last_rows, planes == last_planes
    extents = (
        (plane + planes, plane + last_planes),
        (np.where(is_plane, rows % height, 0), np.where(is_plane, last_rows % height, height - 1)),
        (np.where(is_row, starts % width, 0), np.where(is_row, ends % width, width - 1)),
    )
    for axis, (firsts, lasts) in enumerate(extents):
        np.minimum.at(sides[:, axis, 0], names, firsts)
        np.maximum.at(sides[:, axis, 1], names, lasts + 1)


def select_labels(labels: Array, chosen: Tuple[int, ...]) -> Array:
    """Return the voxels that have one of some labels."""
    mask: Array = labels == chosen[0]
    for slab in cut_slabs(labels.shape) if len(chosen) > 1 else ():
        for label in chosen[1:]:
            mask[slab] |= labels[slab] == label
    return mask
