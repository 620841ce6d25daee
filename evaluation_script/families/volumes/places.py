"""Few places of a volume (z, y, x) as a list, and bounds of their distances to a box, by which most need no search."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Iterator, List, NamedTuple, Tuple

import numpy as np

from ...masks.stack import Array
from ...values.arithmetic import add_parts
from .boxes import Box
from .distances import Spacing

#: The number of voxels or places processed at once.
_SLAB = 1 << 18
#: The number of bins of bounds, up to the diagonal of the volume.
_BINS = 1 << 14
#: The number of places to which distances are bounded.
_SAMPLES = 64
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

    def cut(self, box: Box) -> Array:
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


def list_places(array: Array) -> Places:
    """Return the places of an array of bytes."""
    flat = array.reshape(-1)
    positions: Array = np.empty(np.count_nonzero(flat), np.int32 if flat.size < 1 << 31 else np.int64)
    count = 0
    for chunk in cut_list(flat.size):
        listed = np.flatnonzero(flat[chunk])
        positions[count : count + len(listed)] = listed + chunk.start
        count += len(listed)
    return Places(array.shape, positions, flat[positions])


class Bounds(NamedTuple):
    """Bounds of the distance from a place to the nearest of others, of which each face of their box has one.

    The tables are by z, y and x: squares of the distance to the box, to its farther face, and the difference of the
    squares of the distances to its nearer and its farther face.
    """

    least: List[Array]
    farthest: List[Array]
    nearer: List[Array]

    def measure(self, places: Tuple[Array, ...]) -> Tuple[Array, Array]:
        """Return the least and the greatest possible distance of places."""
        least, greatest = (
            sides[0][places[0]] + sides[1][places[1]] + sides[2][places[2]] for sides in (self.least, self.farthest)
        )
        nearer = [side[axis] for side, axis in zip(self.nearer, places)]
        greatest += np.minimum(np.minimum(nearer[0], nearer[1]), nearer[2])
        return np.sqrt(least), np.sqrt(np.maximum(greatest, 0))


def _make_bounds(targets: Places, spacing: Spacing) -> Bounds:
    tables = Bounds([], [], [])
    for side, (lowest, highest), step in zip(targets.shape, targets.ends, spacing[::-1]):
        at = np.arange(side)
        before, behind = np.abs(at - lowest) * step, np.abs(at - highest) * step
        nearer, farther = (np.square(function(before, behind)) for function in (np.minimum, np.maximum))
        tables.least.append(np.where((at < lowest) | (at > highest), nearer, 0.0))
        tables.farthest.append(farther)
        tables.nearer.append(nearer - farther)
    return tables


def choose_places(places: Places, areas: Array, targets: Places, spacing: Spacing, share: float) -> Tuple[Array, float]:
    """Return which places may lie where a share of the area is reached, and the area of surely nearer ones.

    Areas are by the values of places.
    """
    bounds = _make_bounds(targets, spacing)
    width = sum(side * step for side, step in zip(places.shape, spacing[::-1])) / (_BINS - 1)
    sums = np.zeros((2, _BINS))
    for chunk in cut_list(len(places)):
        for index, distances in enumerate(bounds.measure(places.locate(chunk))):
            sums[index] += np.bincount((distances / width).astype(np.int32), areas[places.values[chunk]], _BINS)
    total = float(sums[0].sum())
    least, greatest = (
        int(np.searchsorted(np.cumsum(row), (share + rounding) * total))
        for row, rounding in zip(sums, (-ROUNDING, ROUNDING))
    )
    chosen, nearer = np.empty(len(places), bool), 0.0
    for chunk in cut_list(len(places)):
        lower, upper = bounds.measure(places.locate(chunk))
        # One bin more on both sides, since bounds are rounded too.
        is_nearer = upper < (least - 1) * width
        nearer += float(areas[places.values[chunk][is_nearer]].sum())
        chosen[chunk] = ~is_nearer & (lower <= (greatest + 2) * width)
    return chosen, nearer


def measure_samples(places: Places, targets: Places, spacing: Spacing) -> Array:
    """Return for each place its distance to the nearest of a few targets, which are spread over their list."""
    samples = Places(targets.shape, targets.positions[:: -(-len(targets) // _SAMPLES)], targets.values)
    nearest: Array = np.full(len(places), np.inf)
    for chunk in cut_list(len(places)):
        located = places.locate(chunk)
        for sample in zip(*(axis.tolist() for axis in samples.locate(slice(None)))):
            squares = [np.square((at - axis) * step) for at, axis, step in zip(sample, located, spacing[::-1])]
            np.minimum(nearest[chunk], squares[0] + squares[1] + squares[2], out=nearest[chunk])
    return np.sqrt(nearest)
