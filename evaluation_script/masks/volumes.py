"""The kernel's functions of volumes (z, y, x): boxes, surfaces, borders, distances, runs and their components.

`families.volumes` has equivalent numpy code beside each call.
"""

from __future__ import annotations

import ctypes
from functools import partial
from typing import Callable, Optional, Tuple

import numpy as np

from .stack import Array

#: The statuses of functions.
FINE, FULL = 0, 2
#: The types of numbers in a label map.
MAPS = ("|u1", "<u2", "<u4")


class VolumeKernel:
    """The library's functions of volumes, which return None for unsupported input."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self.library = library

    def find_boxes(self, labels: Array, end: int) -> Optional[Tuple[Array, Array]]:
        """Return the voxels of each label below an end, of a volume, and its box: from and to along z, y and x."""
        if labels.dtype.str not in MAPS:
            return None
        voxels, boxes = np.zeros(end, np.int64), np.zeros((end, 6), np.int64)
        status = self.library.sj_boxes(labels, labels.itemsize, *labels.shape, end, voxels, boxes)
        return (voxels, boxes) if status == FINE else None

    def find_surface(self, mask: Array, limit: int) -> Optional[Tuple[int, Array, Array]]:
        """Return the number of corners on a mask's surface, their positions and the codes of their voxels.

        Positions and codes are empty if there are more than the limit.
        """
        if mask.dtype != bool or not mask.size:
            return None
        surface = partial(self.library.sj_surface, mask.view(np.uint8), *mask.shape)
        count = _count(partial(surface, None, None))
        if count is None:
            return None
        room = count if count <= limit else 0
        positions, codes = np.empty(room, np.int32), np.empty(room, np.uint8)
        _count(partial(surface, positions, codes), room)
        return count, positions, codes

    def find_border(self, mask: Array, *, open_ends: bool = False, corners: bool = False) -> Optional[Array]:
        """Return the positions of a mask's border: its voxels with a neighbour outside it, of six, or 26 with corners.

        With open ends, the outside of the volume is no neighbour.
        """
        if mask.dtype != bool or not mask.size or (open_ends and corners):
            return None
        border = partial(self.library.sj_border, mask.view(np.uint8), *mask.shape, 2 * corners + open_ends)
        count = _count(partial(border, None))
        if count is None:
            return None
        positions = np.empty(count, np.int32)
        _count(partial(border, positions), count)
        return positions

    def find_squares(
        self,
        queries: Array,
        places: Array,
        shape: Tuple[int, ...],
        spacing: Tuple[float, float, float],
        limit: float = np.inf,
    ) -> Optional[Array]:
        """Return the square of each query's distance to the nearest place, by positions in a volume, in its order.

        It is infinite if it is not below the limit.
        """
        if queries.dtype != np.int32 or places.dtype != np.int32:
            return None
        squares, numbers = np.zeros(len(queries)), np.array([*spacing, limit])
        status = self.library.sj_squares(queries, len(queries), places, len(places), *shape, numbers, squares)
        return squares if status == FINE else None

    def find_runs(self, mask: Array, offset: int, kind: type) -> Optional[Array]:
        """Return where the runs of a mask start and end, from the position of its first voxel on.

        A voxel of background follows each row, and such a row each plane.
        """
        if mask.dtype != bool or not mask.size:
            return None
        depth, height, width = mask.shape
        edges: Array = np.empty(depth * height * (width + 1), kind)  # unwritten ones take no memory
        runs = partial(self.library.sj_find_runs, mask.view(np.uint8), *mask.shape, offset, edges, edges.itemsize)
        count = _count(runs, len(edges))
        edges.resize(count or 0, refcheck=False)
        return None if count is None else edges

    def find_components(self, starts: Array, ends: Array, rows: Array) -> Optional[Array]:
        """Return the component of each run of voxels, from 0 in the order of their first runs.

        A run joins those that it meets after it is moved by a step to a row behind, and widened by 0 or 1.
        """
        if len({starts.dtype.str, ends.dtype.str}) > 1 or starts.dtype.str not in ("<i4", "<i8"):
            return None
        names = np.zeros(len(starts), np.int32)
        status = self.library.sj_components(starts, ends, starts.itemsize, len(starts), rows, len(rows), names)
        return names if status == FINE else None


def _count(fill: Callable[..., int], room: int = 0) -> Optional[int]:
    """Fill lists with room for so many items; return how many there are, None if that failed."""
    count = ctypes.c_int64(0)
    return count.value if fill(room, ctypes.byref(count)) == FINE else None
