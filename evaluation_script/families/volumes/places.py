"""Places of a volume (z, y, x) as a list, far fewer than its voxels."""

from __future__ import annotations

import math
from typing import Any, Iterator, Tuple

import numpy as np

from ...masks.stack import Array
from .boxes import Box

#: Millimetres between voxels along x, y and z.
Spacing = Tuple[float, float, float]
#: The number of voxels or places processed at once.
_SLAB = 1 << 18


class Places:
    """The bytes other than 0 of a volume: their positions, in its order, and their values."""

    def __init__(self, shape: Tuple[int, ...], positions: Array, values: Array) -> None:
        self.shape, self.positions, self.values = shape, positions, values

    def __len__(self) -> int:
        return len(self.positions)

    def choose(self, chosen: Any) -> Places:
        """Return some of the places."""
        return Places(self.shape, self.positions[chosen], self.values[chosen])

    def locate(self) -> Tuple[Array, Array, Array]:
        """Return z, y and x of all places."""
        rows, x = np.divmod(self.positions, self.positions.dtype.type(self.shape[2]))
        z, y = np.divmod(rows, rows.dtype.type(self.shape[1]))
        return z, y, x

    @property
    def parts(self) -> Iterator[Places]:
        """The places, a limited number at once."""
        return map(self.choose, cut_list(len(self)))

    @property
    def box(self) -> Box:
        """The box that holds all places, of which there must be one."""
        ends = [[(int(axis.min()), int(axis.max()) + 1) for axis in chunk.locate()] for chunk in self.parts]
        return tuple(slice(min(side)[0], max(stop for _, stop in side)) for side in zip(*ends))

    def crop(self, box: Box) -> Array:
        """Return whether each voxel of a box that holds all places is one."""
        flags: Array = np.zeros([side.stop - side.start for side in box], bool)
        for chunk in self.parts:
            flags[tuple(axis - side.start for axis, side in zip(chunk.locate(), box))] = True
        return flags


def cut_list(length: int) -> Iterator[slice]:
    """Yield slices of a list."""
    for start in range(0, length, _SLAB):
        yield slice(start, start + _SLAB)


def kind_of(shape: Tuple[int, ...]) -> Any:
    """Return the type of positions in a volume."""
    return np.int32 if math.prod(shape) < 1 << 31 else np.int64


def list_places(array: Array) -> Places:
    """Return the places of an array: its bytes other than 0."""
    flat = array.reshape(-1)
    listed = [np.flatnonzero(flat[chunk]).astype(kind_of(array.shape)) + chunk.start for chunk in cut_list(flat.size)]
    positions: Array = np.concatenate(listed or [np.zeros(0, np.int32)])
    return Places(array.shape, positions, flat[positions])
