"""Few places of a volume (z, y, x) as a list, and bounds of their distances, which spare most of them a search."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any, Iterator, List, Tuple

import numpy as np

from ...masks.stack import Array
from ...values.arithmetic import add_parts
from .boxes import Box
from .distances import Spacing, find_distances

#: The number of voxels or places processed at once.
_SLAB = 1 << 18
#: The bytes of a word, and the minimum number of bytes for each word that is not empty if words are to be listed first.
_WORD, _MOST_FILLED = 8, 32
#: The number of voxels along each side of a block, whose places share bounds.
_BLOCK = 4
#: The share of the weight by which rounding may differ.
ROUNDING = 1e-9


class Places:
    """The bytes other than 0 of an array, which are few beside its voxels."""

    def __init__(self, shape: Tuple[int, ...], positions: Array, values: Array) -> None:
        self.shape, self.positions, self.values = shape, positions, values

    def __len__(self) -> int:
        return len(self.positions)

    def choose(self, chosen: Any) -> Places:
        """Return some of the places."""
        return Places(self.shape, self.positions[chosen], self.values[chosen])

    def fill(self) -> Array:
        """Return the array."""
        return self.draw(self.positions, self.values)

    def draw(self, positions: Array, values: Array) -> Array:
        """Return an array of this shape with values at some positions."""
        array = np.zeros(self.shape, values.dtype)
        array.reshape(-1)[positions] = values
        return array

    def locate(self, chosen: slice) -> Tuple[Array, Array, Array]:
        """Return z, y and x of some places."""
        rows, x = np.divmod(self.positions[chosen], self.positions.dtype.type(self.shape[2]))
        z, y = np.divmod(rows, rows.dtype.type(self.shape[1]))
        return z, y, x

    def crop(self, box: Box) -> Array:
        """Return the array in a box."""
        array = np.zeros([side.stop - side.start for side in box], self.values.dtype)
        for chunk in cut_list(len(self)):
            places = self.locate(chunk)
            inside = np.ones(len(places[0]), bool)
            for axis, side in zip(places, box):
                inside &= (axis >= side.start) & (axis < side.stop)
            array[tuple(axis[inside] - side.start for axis, side in zip(places, box))] = self.values[chunk][inside]
        return array

    @cached_property
    def ends(self) -> List[Tuple[int, int]]:
        """The first and the last z, y and x of all places."""
        parts = [self.locate(chunk) for chunk in cut_list(len(self))]
        return [(min(int(axis.min()) for axis in axes), max(int(axis.max()) for axis in axes)) for axes in zip(*parts)]

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


def sum_areas(kinds: Array, areas: Array) -> float:
    """Return the sum of the areas of places, given their kinds."""
    return add_parts(areas[kinds[chunk]] for chunk in cut_list(len(kinds)))


def find_filled(codes: Array) -> Array:
    """Return the positions of bytes other than 0, of which most volumes have few."""
    end = len(codes) // _WORD * _WORD
    words = np.flatnonzero(codes[:end].view(np.uint64) != 0)
    if _MOST_FILLED * len(words) > end:  # numpy lists flags sooner than numbers
        return np.flatnonzero(codes != 0)
    near: Array = np.append((words[:, None] * _WORD + np.arange(_WORD)).reshape(-1), np.arange(end, len(codes)))
    filled: Array = near[codes[near] != 0]
    return filled


def list_places(array: Array) -> Places:
    """Return the places of an array of bytes."""
    flat = array.reshape(-1)
    positions: Array = np.empty(np.count_nonzero(flat), np.int32 if flat.size < 1 << 31 else np.int64)
    count = 0
    for chunk in cut_list(flat.size):
        listed = find_filled(flat[chunk])
        positions[count : count + len(listed)] = listed + chunk.start
        count += len(listed)
    return Places(array.shape, positions, flat[positions])


class BlockDistances:
    """The distances from blocks of voxels with places to the nearest block with targets, from centre to centre.

    From a place to the nearest target it is at most `slack` more or less.
    """

    def __init__(self, places: Places, targets: Places, spacing: Spacing) -> None:
        self._places = places
        self._shape = [-(-side // _BLOCK) for side in places.shape]
        filled, filled_by_targets = map(self._fill_blocks, (places, targets))
        x, y, z = (_BLOCK * step for step in spacing)
        self._distances: Array = np.zeros(filled.size)
        self._filled = np.flatnonzero(filled)
        self._distances[self._filled] = find_distances(filled, filled_by_targets, (x, y, z))
        self.slack = (1 + ROUNDING) * (_BLOCK - 1) / _BLOCK * math.sqrt(x * x + y * y + z * z)

    def _fill_blocks(self, listed: Places) -> Array:
        """Return 1 for each block with a place, 0 for others."""
        is_filled: Array = np.zeros(self._shape, np.uint8)
        for chunk in cut_list(len(listed)):
            is_filled.reshape(-1)[self._find_blocks(listed, chunk)] = 1
        return is_filled

    def _find_blocks(self, listed: Places, chunk: slice) -> Array:
        """Return the number of the block of each of some places."""
        z, y, x = (axis // _BLOCK for axis in listed.locate(chunk))
        blocks: Array = (z * self._shape[1] + y) * self._shape[2] + x
        return blocks

    @property
    def greatest(self) -> float:
        """A distance that no place exceeds."""
        return float(self._distances.max()) + self.slack

    def find_bounds(self, areas: Array, share: float) -> Tuple[float, float]:
        """Return the bounds of the distance within which a share of the area of places lies; rounding is allowed for.

        Areas are by the values of places.
        """
        sums = np.zeros(len(self._distances))
        for chunk in cut_list(len(self._places)):
            blocks = self._find_blocks(self._places, chunk)
            sums += np.bincount(blocks, areas[self._places.values[chunk]], len(sums))
        order = self._filled[np.argsort(self._distances[self._filled])]
        shares = np.cumsum(sums[order])
        ends = np.searchsorted(shares, [(share + by) * shares[-1] for by in (-ROUNDING, ROUNDING)])
        least, greatest = self._distances[order[np.minimum(ends, len(order) - 1)]].tolist()
        return least - self.slack, greatest + self.slack

    def choose(self, areas: Array, share: float) -> Tuple[Array, float]:
        """Return the places where a share of the area may be reached, as flags, and the area of nearer places."""
        least, greatest = self.find_bounds(areas, share)
        chosen, nearer = np.empty(len(self._places), bool), 0.0
        for chunk in cut_list(len(self._places)):
            distances = self._distances[self._find_blocks(self._places, chunk)]
            is_nearer = distances < least - self.slack
            nearer += float(areas[self._places.values[chunk][is_nearer]].sum())
            chosen[chunk] = ~is_nearer & (distances <= greatest + self.slack)
        return chosen, nearer
