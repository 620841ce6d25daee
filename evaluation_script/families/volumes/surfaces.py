"""Distances between the surfaces of two masks (z, y, x), in millimetres.

A surface is a set of places, each with a weight:

- by elements, the corners between eight voxels that are not all alike, weighted by the area of the surface there;
- by borders, the voxels of a mask that touch its outside, each weighted 1.

Distances lead to the nearest place of the other surface.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import permutations, product
from typing import Iterable, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from ...files.problems import Flaw
from ...masks.backend import backend
from ...masks.stack import Array
from ...values.arithmetic import add, add_parts, mean
from .boxes import cut_slabs
from .distances import find_distances
from .places import Places, Spacing, cut_list, list_places

#: For one set of corners (x, y, z) of each kind, the normals of its triangles, in eighths of a voxel's face. The table
#: is from DeepMind's surface-distance (Apache-2.0).
_KINDS: Tuple[Tuple[str, str], ...] = (
    ("000", "111"),
    ("000 001", "220 220"),
    ("100 111", "111 111"),
    ("000 111", "111 111"),
    ("100 101 110", "111 222 400"),
    ("000 011 101", "111 111 111"),
    ("011 111 100", "022 022 111"),
    ("100 101 110 111", "400 400"),
    ("000 100 010 001", "111 111 222 222"),
    ("100 110 111 011", "111 333 022 202"),
    ("100 101 110 011", "111 111 222 400"),
    ("010 011 100 101", "220 220 220 220"),
    ("001 010 100 111", "111 111 111 111"),
)
_CODES = 256
#: The maximum number of places on a prediction's surface, absolutely and as a multiple of the truth's.
_MOST_PLACES, _NOISE = 1 << 23, 16
#: The maximum number of places on a truth's surface.
_MOST_TRUE_PLACES = 1 << 25
#: The maximum number of places on a truth's surface if it has more than this many per voxel, as isolated voxels have.
_MOST_SPECKS, _PER_VOXEL = 1 << 20, 4
#: Each addition rounds by at most 2**-53 of the sum, and four sums are compared: totals, and those of nearer places.
_ROUNDING = 2.0**-51
#: The number of bins by distance, of which one or few are sorted.
_BINS = 1 << 12


class Surface(NamedTuple):
    """The surface of one mask, compared with another."""

    #: The distances to the other surface; infinite if there is none.
    distances: Array
    #: The kind of each place, in 8 bits, and the weight of each kind.
    kinds: Array
    areas: Array

    @property
    def weights(self) -> Array:
        """The weight of each place, which takes eight times the memory of its kind."""
        weights: Array = self.areas.take(self.kinds)
        return weights

    @property
    def total(self) -> float:
        """The sum of all weights."""
        return sum_areas(self.kinds, self.areas)

    @property
    def moment(self) -> float:
        """The sum of all distances, each times its weight."""
        return add_parts(
            self.distances[chunk] * self.areas.take(self.kinds[chunk]) for chunk in cut_list(len(self.kinds))
        )


class Sides(NamedTuple):
    """Both surfaces of a pair of masks."""

    truth: Surface
    prediction: Surface


@lru_cache(maxsize=1)
def _list_normals() -> Array:
    """Return for each code the normals (x, y, z) of up to four triangles, 0 where there is none."""
    normals = np.zeros((_CODES, 4, 3))
    corners = list(product((0, 1), repeat=3))
    for vertices, triangles in _KINDS:
        chosen = [tuple(map(int, word)) for word in vertices.split()]
        numbers = [list(map(int, word)) for word in triangles.split()]
        for axes, flips in product(permutations(range(3)), product((0, 1), repeat=3)):
            turned = {tuple(corner[axis] ^ flip for axis, flip in zip(axes, flips)) for corner in chosen}
            code = sum(1 << index for index, corner in enumerate(corners) if corner in turned)
            for number, triangle in enumerate(numbers):
                values = [triangle[axis] for axis in axes]
                normals[[code, _CODES - 1 - code], number] = values
    return normals


@lru_cache(maxsize=64)
def list_areas(spacing: Spacing) -> Array:
    """Return the area of the surface by the code of its eight voxels, in square millimetres."""
    x, y, z = spacing
    triangles = np.sqrt(np.square(_list_normals() * np.array([y * z, x * z, x * y])).sum(axis=2)) / 8
    areas: Array = triangles.sum(axis=1)
    return areas


def sum_areas(kinds: Array, areas: Array) -> float:
    """Return the sum of the areas of places, given their kinds."""
    return add_parts(areas.take(kinds[chunk]) for chunk in cut_list(len(kinds)))


def find_surface(mask: Array) -> Places:
    """Return the corners on the surface of a mask, each with a code of the eight voxels around it.

    The outside of the volume is background; corners inside the mask are not on its surface.
    """
    return _list_surface(mask, mask.size << 3)[1]


def find_surfaces(masks: Iterable[Array], listed: Optional[Places] = None) -> Tuple[Places, Places]:
    """Return the surfaces of the truth and of the prediction, unless it is listed; raises a Flaw if either is noise."""
    sides = iter(masks)  # which makes each mask after the other's surface is listed
    true, truth = _list_surface(next(sides), _MOST_TRUE_PLACES)
    check_noise(true, 0)
    limit = max(_MOST_PLACES, _NOISE * true)
    predicted, prediction = _list_surface(next(sides), limit) if listed is None else (len(listed), listed)
    check_noise(true, predicted)
    check_specks(truth)
    return truth, prediction


def _list_surface(mask: Array, limit: int) -> Tuple[int, Places]:
    """Return how many places the surface of a mask has, and the places unless they exceed a limit."""
    kernel, shape = backend().kernel, tuple(side + 1 for side in mask.shape)
    listed = kernel.find_surface(mask, limit) if kernel else None
    if listed is not None:
        count, positions, values = listed
        return count, Places(shape, positions, values)
    codes = _find_codes(mask)
    count = int(np.count_nonzero(codes))
    return count, list_places(codes if count <= limit else codes[:0])


def _find_codes(mask: Array) -> Array:
    """Return a code of the set voxels around each corner between voxels; it is 0 at corners inside the mask."""
    codes = np.zeros([side + 1 for side in mask.shape], np.uint8)
    _, height, width = codes.shape
    for slab in cut_slabs(codes.shape):
        planes, inside = codes[slab], mask[max(0, slab.start - 1) : slab.stop]
        if not inside.any():
            continue  # unwritten codes take no memory
        padded = np.zeros((len(planes) + 1, height + 1, width + 1), np.uint8)
        first_layer = int(slab.start == 0)
        padded[first_layer : first_layer + len(inside), 1:-1, 1:-1] = inside
        for index, (x, y, z) in enumerate(product((0, 1), repeat=3)):
            planes |= padded[z : z + len(planes), y : y + height, x : x + width] << np.uint8(index)
        planes[planes == _CODES - 1] = 0
    return codes


def list_borders(masks: Iterable[Array], *, open_ends: bool = False, corners: bool = False) -> Tuple[Places, Places]:
    """Return the border voxels of truth and prediction; raises a Flaw if either is noise."""
    # `map` forgets each mask before the next one is made.
    truth, prediction = (list_border(mask, open_ends=open_ends, corners=corners) for mask in masks)
    check_noise(len(truth), len(prediction))
    return truth, prediction


def list_border(mask: Array, *, open_ends: bool = False, corners: bool = False) -> Places:
    """Return the voxels of a mask that `find_border` finds, as a list."""
    kernel = backend().kernel
    positions = kernel.find_border(mask, open_ends=open_ends, corners=corners) if kernel else None
    if positions is not None:
        return Places(mask.shape, positions, np.ones(len(positions), np.uint8))
    return list_places(find_border(mask, open_ends=open_ends, corners=corners).view(np.uint8))


def find_border(mask: Array, *, open_ends: bool = False, corners: bool = False) -> Array:
    """Return the voxels of a mask that have a neighbour outside it, among six or, with `corners`, 26."""
    border: Array = np.zeros(mask.shape, bool)
    for slab in cut_slabs(mask.shape):
        before = min(slab.start, 1)
        filled = mask[slab.start - before : slab.stop + 1]
        rows = np.flatnonzero(filled.any(axis=(0, 2)))
        if not rows.size:
            continue  # unwritten voxels take no memory
        chosen = slice(int(rows[0]), int(rows[-1]) + 1)
        inside = filled.copy()
        for axis in range(3):
            moved, source = np.moveaxis(inside, axis, 0), np.moveaxis(inside.copy() if corners else filled, axis, 0)
            moved[1:] &= source[:-1]
            moved[:-1] &= source[1:]
            if not open_ends:
                moved[0] &= bool(axis == 0 and slab.start)
                moved[-1] &= bool(axis == 0 and slab.stop < len(mask))
        np.logical_not(inside, out=inside)
        planes = slice(before, before + slab.stop - slab.start)
        np.logical_and(inside[planes, chosen], mask[slab, chosen], out=border[slab, chosen])
    return border


def check_noise(true: int, predicted: int) -> None:
    """Raise a Flaw if a surface is noise: the truth has too many places, or the prediction many more than the truth."""
    if true > _MOST_TRUE_PLACES:
        fault = f"has a truth with a region whose surface has {true:,} places; the limit is {_MOST_TRUE_PLACES:,}"
        raise Flaw(fault, "Check the labels of the truth, which look like noise")
    if predicted > max(_MOST_PLACES, _NOISE * true):
        fault = f"has a region with a surface of {predicted:,} places; the truth's has {true:,}"
        raise Flaw(fault, "Check the labels, and remove isolated voxels")


def check_specks(truth: Places) -> None:
    """Raise a Flaw if the voxels of a truth, given its surface, are isolated."""
    places = len(truth)
    if places <= _MOST_SPECKS:
        return
    # Each voxel is the first of the eight around one corner; those inside a mask count nowhere.
    voxels = sum(int(np.count_nonzero(truth.values[chunk] & 1)) for chunk in cut_list(places))
    if places > _PER_VOXEL * voxels:
        fault = f"has a truth with a region of isolated voxels: {places:,} places on the surface of {voxels:,} voxels"
        raise Flaw(fault, "Check the labels of the truth, which look like noise")


def measure_surfaces(
    surfaces: Sequence[Places], spacing: Spacing, farthest: float = np.inf, areas: Optional[Array] = None
) -> Sides:
    """Return both surfaces with their distances, infinite beyond the farthest, and areas by the values of places.

    By default, these are the areas of elements.
    """
    areas = list_areas(spacing) if areas is None else areas
    return Sides(
        *(
            Surface(find_distances(side, opposite, spacing, farthest), side.values, areas)
            for side, opposite in zip(surfaces, surfaces[::-1])
        )
    )


def measure_borders(
    masks: Iterable[Array], spacing: Spacing, *, open_ends: bool = False, corners: bool = False
) -> Sides:
    """Return the border voxels of truth and prediction and their distances; `find_border` explains the options.

    With open ends, a mask has no border where it touches a face of the volume: the outside is not background.
    """
    return measure_surfaces(list_borders(masks, open_ends=open_ends, corners=corners), spacing, areas=np.ones(2))


# ── metrics ─────────────────────────────────────────────────────────────────


def share_within(sides: Sides, tolerance: float) -> float:
    """Return NSD: the share of both surfaces that is at most this far from the other."""
    near = [sum_areas(side.kinds[side.distances <= tolerance], side.areas) for side in sides]
    return (near[0] + near[1]) / (sides.truth.total + sides.prediction.total)


def _distance_at(side: Surface, percent: float) -> float:
    """Return the distance within which this percentage of the weight lies."""
    lowest, highest = float(side.distances.min()), float(side.distances.max())
    if not lowest < highest:
        return lowest
    # Bins leave few places to sort. In whichever order weights are added, their sums differ by rounding alone.
    share, total, bins = percent / 100, side.total, np.empty(len(side.kinds), np.int16)
    around, sums = share + np.array([-1, 1]) * len(bins) * _ROUNDING, np.zeros(_BINS + 1)
    for chunk in cut_list(len(bins)):
        bins[chunk] = (side.distances[chunk] - lowest) * (_BINS / (highest - lowest))
        sums += np.bincount(bins[chunk], side.areas.take(side.kinds[chunk]), _BINS + 1)
    start, end = np.minimum(np.searchsorted(np.cumsum(sums) / total, around), _BINS).tolist()
    chosen = np.flatnonzero((bins >= start) & (bins <= end))
    order = chosen[np.argsort(side.distances[chosen])]
    shares = (add(sums[:start]) + np.cumsum(side.areas.take(side.kinds[order]))) / total
    ends = np.minimum(np.searchsorted(shares, around), len(order) - 1)
    lower, upper = side.distances[order[ends]].tolist()
    if lower == upper:
        return float(lower)
    # Rounding decides: equal distances are added in the order of their weights.
    weights = side.weights
    order = np.lexsort((weights, side.distances))
    index = min(int(np.searchsorted(np.cumsum(weights[order]) / total, share)), len(order) - 1)
    return float(side.distances[order[index]])


def distance_by_weight(sides: Sides, percent: float) -> float:
    """Return HD or HD95 by elements: the larger distance of both sides within which a percentage of the area lies."""
    return max(_distance_at(side, percent) for side in sides)


def distance_by_side(sides: Sides, percent: float) -> float:
    """Return HD or HD95 by borders: the larger percentile of both sides, interpolated."""
    return max(float(np.percentile(side.distances, percent)) for side in sides)


def distance_pooled(sides: Sides, percent: float) -> float:
    """Return HD or HD95 by borders: the percentile of the distances of both sides together, interpolated."""
    return float(np.percentile(np.concatenate([side.distances for side in sides]), percent))


def mean_pooled(sides: Sides) -> float:
    """Return ASSD: the mean of the distances of both sides together."""
    return mean(np.concatenate([side.distances for side in sides]))


def mean_by_side(sides: Sides) -> float:
    """Return MASD: the mean of both sides' mean distances."""
    means = [mean_of_side(side) for side in sides]
    return (means[0] + means[1]) / 2


def mean_of_both(sides: Sides) -> float:
    """Return ASSD by elements: the mean distance of both surfaces by area."""
    return add([side.moment for side in sides]) / add([side.total for side in sides])


def mean_of_side(side: Surface) -> float:
    """Return the mean distance of a side by its weights."""
    return side.moment / side.total
