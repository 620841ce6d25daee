"""The boxes of labels in a volume (z, y, x), and how many voxels each label has."""

from __future__ import annotations

from typing import Iterable, NamedTuple, Set, Tuple

import numpy as np

from ...masks.backend import backend
from ...masks.stack import Array

#: From and to along z, y and x.
Box = Tuple[slice, ...]


class Boxes(NamedTuple):
    """The labels of a volume, without 0."""

    #: The voxels of each label.
    voxels: Array
    #: From and to along z, y and x, for each label; 0 and 0 if no voxel has it.
    sides: Array

    @property
    def labels(self) -> Set[int]:
        """Return the labels of a voxel."""
        return set(np.flatnonzero(self.voxels).tolist())

    def box_of(self, label: int) -> Box:
        """Return the box of a label; empty if no voxel has it."""
        starts, stops = self.sides[label, ::2].tolist(), self.sides[label, 1::2].tolist()
        return tuple(slice(*ends) for ends in zip(starts, stops))


def cover(boxes: Iterable[Box]) -> Box:
    """Return the smallest box that holds all boxes; empty if all are."""
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
    voxels, starts, stops = np.zeros(end, np.int64), np.full((end, 3), 1 << 62), np.zeros((end, 3), np.int64)
    for z, plane in enumerate(labels):
        y, x = np.nonzero(plane)
        if not len(y):
            continue
        names = plane[y, x].astype(np.int64)
        counts = np.bincount(names)
        voxels[: len(counts)] += counts
        for axis, coordinates in enumerate((np.full(len(y), z), y, x)):
            np.minimum.at(starts[:, axis], names, coordinates)
            np.maximum.at(stops[:, axis], names, coordinates + 1)
    starts[voxels == 0] = 0
    return Boxes(voxels, np.stack([starts, stops], axis=2).reshape(end, 6))


def find_box(*masks: Array) -> Box:
    """Return the smallest box around all masks; empty if all are."""
    return cover(find_boxes(mask.view(np.uint8), 2).box_of(1) for mask in masks)
