"""Places of a volume (z, y, x) as a list, far fewer than its voxels."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any, Iterator, List, Optional, Tuple

import numpy as np

from ...masks.backend import backend
from ...masks.distances import SurfaceIndex, WeightedSurface
from ...masks.stack import Array
from ...values.arithmetic import add_parts
from .boxes import Box

#: Millimetres between voxels along x, y and z.
Spacing = Tuple[float, float, float]
#: The number of voxels or places processed at once.
_SLAB = 1 << 18
#: The number of places for each row of a box from which on those in the box are looked up row by row.
_PER_ROW = 4
#: The bytes of a word, and the minimum number of bytes for each word that is not empty if words are to be listed first.
_WORD, _MOST_FILLED = 8, 32


class Places:
    """The bytes other than 0 of a volume: their positions, in its order, and their values."""

    def __init__(self, shape: Tuple[int, ...], positions: Array, values: Array) -> None:
        self.shape, self.positions, self.values = shape, positions, values
        #: Several searches go through these places.
        self.is_shared = False
        self._index: Optional[SurfaceIndex] = None
        self._areas: Optional[Array] = None

    def __len__(self) -> int:
        return len(self.positions)

    def index(self, areas: Array) -> Optional[SurfaceIndex]:
        """Return the kernel's index of places by areas of their values, if they are shared."""
        kernel = backend().kernel
        if kernel and self.is_shared and self._areas is not areas:
            self._index = kernel.index_surface(WeightedSurface(self.positions, self.values, areas), self.shape)
            self._areas = areas
        return self._index

    def choose(self, chosen: Any) -> Places:
        """Return some of the places."""
        return Places(self.shape, self.positions[chosen], self.values[chosen])

    def merge(self, more: Places) -> Places:
        """Return these places and others of the same volume, none of which is the same."""
        positions, values = np.append(self.positions, more.positions), np.append(self.values, more.values)
        order = np.argsort(positions, kind="stable")
        return Places(self.shape, positions[order], values[order])

    def locate(self, chosen: slice) -> Tuple[Array, Array, Array]:
        """Return z, y and x of some places."""
        rows, x = np.divmod(self.positions[chosen], self.positions.dtype.type(self.shape[2]))
        z, y = np.divmod(rows, rows.dtype.type(self.shape[1]))
        return z, y, x

    def find_planes(self, planes: slice) -> slice:
        """Return where the places of some planes begin and end in the list."""
        plane, kind = self.shape[1] * self.shape[2], np.int64
        if len(self) and plane * planes.stop < 1 << 31:
            kind = self.positions.dtype.type  # of another type, numpy would copy all positions
        ends = np.array([plane * planes.start, plane * planes.stop], kind)
        return slice(*np.searchsorted(self.positions, ends).tolist())

    def within(self, box: Box) -> Places:
        """Return the places in a box."""
        listed = self.find_planes(box[0])
        inside: Array = np.zeros(len(self), bool)
        for chunk in cut_list(listed.stop - listed.start):
            places = slice(listed.start + chunk.start, min(listed.start + chunk.stop, listed.stop))
            _, y, x = self.locate(places)
            inside[places] = (y >= box[1].start) & (y < box[1].stop) & (x >= box[2].start) & (x < box[2].stop)
        return self.choose(inside)

    def cut_out(self, box: Box) -> Places:
        """Return the places in a box, by their positions in a volume of its size."""
        shape = tuple(side.stop - side.start for side in box)
        if shape == self.shape:
            return self
        moved = self._move(box, (0, 0, 0), shape)
        if moved is not None:
            return moved
        depth, height, width = shape
        chosen: Any = self.find_planes(box[0])
        rows, offset = depth * height, box[2].start
        if _PER_ROW * rows < chosen.stop - chosen.start:
            planes, lines = np.arange(box[0].start, box[0].stop)[:, None], np.arange(box[1].start, box[1].stop)
            starts = ((planes * self.shape[1] + lines) * self.shape[2] + offset).reshape(-1)
            starts = starts.astype(self.positions.dtype)  # of another type, numpy would copy all positions
            firsts = np.searchsorted(self.positions, starts)
            lengths = np.searchsorted(self.positions, starts + starts.dtype.type(width)) - firsts
            ends = np.cumsum(lengths)
            chosen = np.arange(ends[-1]) + np.repeat(firsts - (ends - lengths), lengths)
            positions = self.positions[chosen] - np.repeat(starts - np.arange(rows) * width, lengths)
            return Places(shape, positions.astype(kind_of(shape)), self.values[chosen])
        z, y, x = (axis.astype(np.int64) - side.start for axis, side in zip(self.locate(chosen), box))
        inside = (y >= 0) & (y < height) & (x >= 0) & (x < width)
        positions = ((z * height + y) * width + x)[inside]
        return Places(shape, positions.astype(kind_of(shape)), self.values[chosen][inside])

    def crop(self, box: Box) -> Array:
        """Return 1 for each place, and 0 for other voxels, in a box that holds all places."""
        array: Array = np.zeros([side.stop - side.start for side in box], np.uint8)
        for chunk in cut_list(len(self)):
            array[tuple(axis - side.start for axis, side in zip(self.locate(chunk), box))] = 1
        return array

    def move(self, steps: Tuple[int, ...], shape: Tuple[int, ...]) -> Places:
        """Return the places in a larger volume, in which this one begins after some steps along z, y and x."""
        if self.shape == shape:
            return self
        moved = self._move(tuple(map(slice, (0, 0, 0), self.shape)), steps, shape)
        if moved is not None:
            return moved
        kind = kind_of(shape)
        positions: Array = np.empty(len(self), kind)
        for chunk in cut_list(len(self)):
            z, y, x = (axis.astype(kind) + kind(step) for axis, step in zip(self.locate(chunk), steps))
            positions[chunk] = (z * kind(shape[1]) + y) * kind(shape[2]) + x
        return Places(shape, positions, self.values)

    def _move(self, box: Box, steps: Tuple[int, ...], shape: Tuple[int, ...]) -> Optional[Places]:
        """Return the places of a box in another volume, in which the box begins after some steps, by the kernel."""
        kernel, sides = backend().kernel, [(side.start, side.stop) for side in box]
        moved = kernel.move_places(self.positions, self.values, self.shape, (sides, shape, steps)) if kernel else None
        return None if moved is None else Places(shape, moved[0], moved[1])

    @cached_property
    def ends(self) -> List[Tuple[int, int]]:
        """The first and the last z, y and x of all places."""
        parts = [self.locate(chunk) for chunk in cut_list(len(self))]
        return [(min(int(axis.min()) for axis in axes), max(int(axis.max()) for axis in axes)) for axes in zip(*parts)]

    @property
    def box(self) -> Box:
        """The box that holds all places, of which there must be one."""
        return tuple(slice(lowest, highest + 1) for lowest, highest in self.ends)

    def box_within(self, distance: float, spacing: Spacing) -> Box:
        """Return the box that holds all voxels at most this far from a place, and one more on each side."""
        reaches = (int(distance / step) + 1 for step in spacing[::-1])
        return tuple(
            slice(max(0, lowest - reach), min(side, highest + 1 + reach))
            for side, (lowest, highest), reach in zip(self.shape, self.ends, reaches)
        )


def cut_list(length: int, step: int = 0) -> Iterator[slice]:
    """Yield slices of a list."""
    step = step or _SLAB
    for start in range(0, length, step):
        yield slice(start, start + step)


def sum_areas(kinds: Array, areas: Array, flags: Optional[Array] = None) -> float:
    """Return the sum of the areas of places, or of those with a flag, given their kinds."""
    kernel = backend().kernel
    total = kernel.sum_areas(kinds, areas, flags) if kernel else None
    if total is not None:
        return total
    kinds = kinds if flags is None else kinds[flags]
    return add_parts(areas.take(kinds[chunk]) for chunk in cut_list(len(kinds)))


def find_filled(codes: Array) -> Array:
    """Return the positions of bytes other than 0, of which most volumes have few."""
    end = len(codes) // _WORD * _WORD
    words = np.flatnonzero(codes[:end].view(np.uint64) != 0)
    if _MOST_FILLED * len(words) > end:  # numpy lists flags sooner than numbers
        return np.flatnonzero(codes != 0)
    near: Array = np.append((words[:, None] * _WORD + np.arange(_WORD)).reshape(-1), np.arange(end, len(codes)))
    filled: Array = near[codes[near] != 0]
    return filled


def kind_of(shape: Tuple[int, ...]) -> Any:
    """Return the type of positions in a volume."""
    return np.int32 if math.prod(shape) < 1 << 31 else np.int64


def list_places(array: Array) -> Places:
    """Return the places of an array: its bytes other than 0."""
    flat = array.reshape(-1)
    positions: Array = np.empty(np.count_nonzero(flat), kind_of(array.shape))
    count = 0
    for chunk in cut_list(flat.size):
        listed = find_filled(flat[chunk])
        positions[count : count + len(listed)] = listed + chunk.start
        count += len(listed)
    return Places(array.shape, positions, flat[positions])
