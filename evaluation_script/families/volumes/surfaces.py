"""Distances between the surfaces of two masks (z, y, x), in millimetres.

A surface is a set of places, each with a weight:

- by elements, the corners between eight voxels that are not all alike, weighted by the area of the surface there;
- by borders, the voxels of a mask that touch its outside, each weighted 1.

Distances lead to the nearest place of the other surface.
"""

from __future__ import annotations

import math
from functools import lru_cache, partial, reduce
from itertools import permutations, product
from typing import Any, Iterable, Iterator, List, Optional, Sequence, Tuple, Union

import numpy as np

from ...files.problems import Flaw
from ...masks.backend import backend
from ...masks.distances import WeightedSurface, limit_rounding
from ...masks.stack import Array
from ...runner.tuning import release_memory
from ...values import NamedTuple
from ...values.arithmetic import add, add_parts, interpolate, mean
from .boxes import cut_slabs, select_labels
from .distances import ROUNDING, BlockDistances, find_distances
from .label_runs import RegionRuns
from .places import Places, Spacing, cut_list, list_places, sum_areas

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
#: More places than a surface has.
_ALL = 1 << 62
#: The maximum number of places on a truth's surface.
_MOST_TRUE_PLACES = 1 << 25
#: The maximum number of places on a truth's surface if it has more than this many per voxel, as isolated voxels have.
_MOST_SPECKS, _PER_VOXEL = 1 << 20, 4
#: The number of places above which bounds first choose those to measure.
MOST_MEASURED = 1 << 14
#: The number of places of a border up to which all are measured.
_MOST_RANKED = 1 << 12
#: The number of places of a list that are measured at once.
_MOST_AT_ONCE = 1 << 21
#: The number of planes around few places, and as many millimetres along rows and columns, in which their nearest
#: targets are first looked for.
_PLANES = 8
#: The number of places above which they are divided into bins by distance before they are sorted, if it decides nothing
#: in which order their weights are added, and otherwise; and the number of bins.
_MOST_IN_ORDER, _MOST_SORTED, _BINS = 1 << 12, 1 << 20, 1 << 12


class Surface(NamedTuple):
    """The surface of one mask, compared with another."""

    #: The distances to the other surface; infinite if there is none.
    distances: Array
    #: The kind of each place, in 8 bits, and the weight of each kind.
    kinds: Array
    areas: Array

    def choose(self, chosen: Any) -> Surface:
        """Return some places of the surface."""
        return Surface(self.distances[chosen], self.kinds[chosen], self.areas)

    @property
    def weights(self) -> Array:
        """The weight of each place, which takes eight times the memory of its kind."""
        weights: Array = self.areas.take(self.kinds)
        return weights

    @property
    def parts(self) -> Iterator[Surface]:
        """The surface in parts of few places."""
        return map(self.choose, cut_list(len(self.kinds)))

    @property
    def total(self) -> float:
        """The sum of all weights."""
        return sum_areas(self.kinds, self.areas)

    @property
    def moment(self) -> float:
        """The sum of all distances, each times its weight."""
        return add_parts(surface.distances * surface.weights for surface in self.parts)


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


def find_surface(labels: Array, chosen: Tuple[int, ...] = (1,)) -> Places:
    """Return the corners on the surface of some labels, each with a code of the eight voxels around it.

    The outside of the volume is background; corners inside a region are not on its surface.
    """
    return _list_surface(labels, chosen, _ALL)[1]


def find_surfaces(
    labels: Tuple[Array, Array], chosen: Tuple[int, ...], runs: Optional[Sequence[RegionRuns]] = None
) -> Tuple[Places, Places]:
    """Return the surfaces of labels in the truth and in the prediction; raises a Flaw if either is noise.

    Those of runs, if they are given, take less time.
    """

    def list_side(side: int, limit: int) -> Tuple[int, Places]:
        listed = runs[side].list_surface(limit) if runs else None
        return listed or _list_surface(labels[side], chosen, limit)

    true, truth = list_side(0, _MOST_TRUE_PLACES)
    check_noise(true, 0)
    predicted, prediction = list_side(1, max(_MOST_PLACES, _NOISE * true))
    check_noise(true, predicted)
    return truth, prediction


def _list_surface(labels: Array, chosen: Tuple[int, ...], limit: int) -> Tuple[int, Places]:
    """Return how many places the surface of some labels has, and the places unless they exceed a limit."""
    kernel, shape = backend().kernel, tuple(side + 1 for side in labels.shape)
    listed = kernel.find_surface(labels, chosen, limit) if kernel else None
    if listed is not None:
        count, positions, values = listed
        return count, Places(shape, positions, values)
    codes = _find_codes(select_labels(labels, chosen))
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


def measure_surfaces(surfaces: Sequence[Places], spacing: Spacing, farthest: float = np.inf) -> Sides:
    """Return the elements of both surfaces and their distances, infinite beyond the farthest."""
    areas = list_areas(spacing)
    distances = measure_distances(surfaces, spacing, farthest)
    return Sides(*(Surface(side, places.values, areas) for side, places in zip(distances, surfaces)))


def measure_borders(
    masks: Iterable[Union[Array, RegionRuns, Places]],
    spacing: Spacing,
    *,
    open_ends: bool = False,
    corners: bool = False,
) -> Sides:
    """Return the border voxels of truth and prediction and their distances; `find_border` explains the options.

    With open ends, a mask has no border where it touches a face of the volume: the outside is not background.
    """
    borders, areas = list_borders(masks, open_ends=open_ends, corners=corners), np.ones(1)
    distances = measure_distances(borders, spacing)
    return Sides(*(Surface(side, np.zeros(len(side), np.uint8), areas) for side in distances))


def list_borders(
    masks: Iterable[Union[Array, RegionRuns, Places]], *, open_ends: bool = False, corners: bool = False
) -> List[Places]:
    """Return the border voxels of truth and prediction; raises a Flaw if either is noise."""
    # `map` forgets each mask before the next one is made.
    borders = list(map(partial(list_border, open_ends=open_ends, corners=corners), masks))
    check_noise(*map(len, borders))
    return borders


def list_border(mask: Union[Array, RegionRuns, Places], *, open_ends: bool = False, corners: bool = False) -> Places:
    """Return the voxels of a mask that `find_border` finds, as a list."""
    if isinstance(mask, Places):
        return mask
    if isinstance(mask, RegionRuns):
        border = mask.list_border(open_ends=open_ends, corners=corners)
        return border or list_border(mask.draw(), open_ends=open_ends, corners=corners)
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
    if len(truth) <= _MOST_SPECKS:
        return
    # Each voxel is the first of the eight around one corner; those inside a mask count nowhere.
    check_voxels(len(truth), sum(int(np.count_nonzero(truth.values[chunk] & 1)) for chunk in cut_list(len(truth))))


def check_voxels(places: int, voxels: int) -> None:
    """Raise a Flaw if the voxels of a truth are isolated, given the places of its surface and their voxels."""
    if places > max(_MOST_SPECKS, _PER_VOXEL * voxels):
        fault = f"has a truth with a region of isolated voxels: {places:,} places on the surface of {voxels:,} voxels"
        raise Flaw(fault, "Check the labels of the truth, which look like noise")


def measure_distances(places: Sequence[Places], spacing: Spacing, farthest: float = np.inf) -> List[Array]:
    """Return the distances from each side's places to the other side's; infinite beyond the farthest."""
    return [find_distances(places[index], places[1 - index], spacing, farthest) for index in range(2)]


# ── metrics ─────────────────────────────────────────────────────────────────


def share_within(sides: Sides, tolerance: float) -> float:
    """Return NSD: the share of both surfaces that is at most this far from the other."""
    total = sides.truth.total + sides.prediction.total
    near = [sum_areas(side.kinds, side.areas, side.distances <= tolerance) for side in sides]
    return (near[0] + near[1]) / total


def share_near(
    surfaces: Tuple[Places, Places], spacing: Spacing, tolerance: float, total: Optional[float] = None
) -> float:
    """Return NSD by the surfaces of truth and prediction; only places near both sides are measured.

    If the total area is given, surfaces may lack places that are not near.
    """
    areas = list_areas(spacing)
    total = add([sum_areas(side.values, areas) for side in surfaces]) if total is None else total
    if not all(map(len, surfaces)):
        return 0.0
    sides_near = cut_near(surfaces, min(surfaces, key=len), spacing, tolerance)
    near = flag_near(sides_near, spacing, tolerance)
    if near is not None:
        return add([sum_areas(side.values, areas, flags) for side, flags in zip(sides_near, near)]) / total
    truth, prediction = surfaces
    prediction = prediction.within(truth.box_within(tolerance, spacing))
    if not len(prediction):
        return 0.0
    truth = truth.within(prediction.box_within(tolerance, spacing))
    sides = measure_surfaces((truth, prediction), spacing, tolerance)
    return add([side.choose(side.distances <= tolerance).total for side in sides]) / total


def cut_near(places: Sequence[Places], around: Places, spacing: Spacing, tolerance: float) -> List[Places]:
    """Return lists of places of a volume in a box that holds all voxels at most this far from some, if it is small."""
    box = around.box_within(tolerance, spacing)
    if 2 * math.prod(side.stop - side.start for side in box) > math.prod(around.shape):
        return list(places)  # not worth copies
    return [each.cut_out(box) for each in places]


def flag_near(surfaces: Sequence[Places], spacing: Spacing, tolerance: float) -> Optional[List[Array]]:
    """Return which places of each side are at most this far from the other, if the kernel can tell; a root decides."""
    kernel = backend().kernel
    if not kernel or not tolerance < math.inf:
        return None
    limit = tolerance * tolerance
    while math.sqrt(limit) > tolerance:
        limit = float(np.nextafter(limit, -np.inf))
    while math.sqrt(limit) <= tolerance:
        limit = float(np.nextafter(limit, np.inf))
    if not all(map(len, surfaces)):
        return [np.zeros(len(side), bool) for side in surfaces]
    near = [
        kernel.flag_near(surfaces[index].positions, surfaces[1 - index].positions, surfaces[0].shape, spacing, limit)
        for index in range(2)
    ]
    flags = [each for each in near if each is not None]
    return flags if len(flags) == len(near) else None


def _distance_at(side: Surface, percent: float) -> float:
    """Return the distance within which this percentage of the weight lies."""
    total = side.total
    if len(side.distances) > _MOST_IN_ORDER:
        distance = _find_sure(side, percent / 100, total, (len(side.distances), 0.0))
        if distance is not None:
            return distance
    nearer, side = _narrow(side, percent / 100 * total)
    weights = side.weights
    order = np.lexsort((weights, side.distances))
    shares = (nearer + np.cumsum(weights[order])) / total
    index = min(int(np.searchsorted(shares, percent / 100)), len(shares) - 1)
    return float(side.distances[order[index]])


def _find_sure(side: Surface, share: float, total: float, places: Tuple[int, float]) -> Optional[float]:
    """Return the distance within which a share of a total weight lies; None if rounding could decide which one it is.

    The side may lack nearer places: the number of all places and the weight of these are given.
    """
    count, nearer = places
    by = limit_rounding(count)
    more, side = _narrow(side, share * total - nearer, _MOST_IN_ORDER)
    order, weights = np.argsort(side.distances, kind="stable"), side.weights
    shares = np.append(0.0, np.cumsum(weights[order])) + (nearer + more)
    shares /= total
    lower, upper = np.searchsorted(shares, (share - by, share + by)).tolist()
    if not 0 < lower <= upper < len(shares):
        return None
    lowest, highest = side.distances[order[[lower - 1, upper - 1]]].tolist()
    return lowest if lowest == highest else None


def _narrow(side: Surface, weight: float, limit: int = _MOST_SORTED) -> Tuple[float, Surface]:
    """Return the weight of the nearest places, and the few next ones with which a total weight is reached."""
    nearer = 0.0
    while len(side.distances) > limit:
        lowest, highest = float(side.distances.min()), float(side.distances.max())
        if lowest == highest:
            return nearer, Surface(side.distances[:1], np.zeros(1, np.uint8), np.array([side.total]))
        bins, sums = np.empty(len(side.distances), np.int16), np.zeros(_BINS)
        for chunk in cut_list(len(bins)):
            bins[chunk] = (side.distances[chunk] - lowest) * ((_BINS - 1) / (highest - lowest))
            # One after another, in the order of places; numpy adds fast by such indices.
            np.add.at(sums, bins[chunk].astype(np.intp), side.choose(chunk).weights)
        chosen = min(int(np.searchsorted(nearer + np.cumsum(sums), weight)), _BINS - 1)
        nearer += add(sums[:chosen])
        side = side.choose(bins == chosen)
    return nearer, side


def distance_by_weight(sides: Sides, percent: float) -> float:
    """Return HD or HD95 by elements: the larger distance of both sides within which a percentage of the area lies."""
    return max(_distance_at(side, percent) for side in sides)


def distance_by_places(surfaces: Tuple[Places, Places], spacing: Spacing, percent: float) -> float:
    """Return `distance_by_weight` by both surfaces, most of whose places need no search if they are many."""
    truth, prediction = surfaces
    distance = _distance_of_places(prediction, truth, spacing, percent)
    if distance and _is_within(truth, prediction, spacing, distance):
        return distance
    if len(prediction) > MOST_MEASURED and not backend().kernel:
        _, greatest = BlockDistances(truth, prediction, spacing).find_bounds(list_areas(spacing), percent / 100)
        if greatest < distance:
            return distance
    return max(distance, _distance_of_places(truth, prediction, spacing, percent))


def _is_within(truth: Places, prediction: Places, spacing: Spacing, distance: float) -> bool:
    """Return whether any place of the prediction in the truth's box is this near to all of the truth."""
    box = truth.box
    lengths = [(side.stop - side.start) * step for side, step in zip(box, spacing[::-1])]
    is_small = add([length * length for length in lengths]) < (1 - ROUNDING) * distance * distance
    return is_small and len(prediction.cut_out(box)) > 0


def distance_by_parts(truth: Places, parts: Sequence[Places], spacing: Spacing, percent: float) -> float:
    """Return `distance_by_places` of a truth and of parts of a prediction, of which the first one has most places."""
    many, few, kernel, areas = parts[0], parts[1:], backend().kernel, list_areas(spacing)
    if kernel and few and MOST_MEASURED < len(many) <= _MOST_PLACES:
        squares = [_find_squares(places, truth, spacing) for places in few]
        # Many places of a truth are looked for once, few ones without a copy of all targets.
        targets = [reduce(Places.merge, parts)] if len(truth) > MOST_MEASURED else parts
        nearest = [_find_squares(truth, places, spacing) for places in targets]
        extras = [
            np.stack([side, areas.take(places.values)], axis=1)
            for side, places in zip(squares, few)
            if side is not None
        ]
        sides = [side for side in nearest if side is not None]
        if len(extras) == len(few) and len(sides) == len(targets):
            surface = WeightedSurface(many.positions, many.values, areas, np.concatenate(extras), many.index(areas))
            distance = kernel.find_share(surface, truth.positions, many.shape, spacing, percent / 100)
            if distance is not None:
                distances = np.sqrt(np.minimum.reduce(sides))
                return max(distance, _distance_at(Surface(distances, truth.values, areas), percent))
    return distance_by_places((truth, reduce(Places.merge, parts)), spacing, percent)


def _distance_of_places(places: Places, targets: Places, spacing: Spacing, percent: float) -> float:
    """Return the distance to targets within which a percentage of the area of places lies."""
    areas = list_areas(spacing)
    if len(places) > MOST_MEASURED:
        distance = _find_distance(places, areas, targets, spacing, percent)
        if distance is not None:
            return distance
    distances = _measure_places(places, targets, spacing)
    return _distance_at(Surface(distances, places.values, areas), percent)


def _find_distance(places: Places, areas: Array, targets: Places, spacing: Spacing, percent: float) -> Optional[float]:
    """Return the same by measuring only places that may lie there; None if rounding could decide which one does."""
    share, kernel = percent / 100, backend().kernel
    if kernel and len(places) <= _MOST_PLACES:
        surface = WeightedSurface(places.positions, places.values, areas, blocks=places.index(areas))
        distance = kernel.find_share(surface, targets.positions, places.shape, spacing, share)
        if distance is not None:
            return distance
    total = sum_areas(places.values, areas)
    chosen, nearer = BlockDistances(places, targets, spacing).choose(areas, share)
    measured = places.choose(chosen)
    if len(places) > _MOST_SORTED:
        release_memory()
    side = Surface(_measure_places(measured, targets, spacing), measured.values, areas)
    return _find_sure(side, share, total, (len(places), nearer))


def _find_squares(places: Places, targets: Places, spacing: Spacing) -> Optional[Array]:
    """Return the squares of distances by the kernel, of few places in a box around them if targets are near."""
    kernel = backend().kernel
    if not kernel or len(places) > _MOST_AT_ONCE:
        return None
    if 0 < len(places) < len(targets) // 8:
        reach = _PLANES * spacing[2]
        box = places.box_within(reach, spacing)
        few, near = places.cut_out(box), targets.cut_out(box)
        squares = kernel.find_squares(few.positions, near.positions, few.shape, spacing)
        # No target outside the box is as near.
        if squares is not None and math.sqrt(squares.max()) < (1 - ROUNDING) * reach:
            return squares
    return kernel.find_squares(places.positions, targets.positions, places.shape, spacing)


def _measure_places(places: Places, targets: Places, spacing: Spacing) -> Array:
    """Return the distances of places to the nearest target; few places are compared with nearby targets only."""
    squares = _find_squares(places, targets, spacing)
    if squares is not None:
        return np.sqrt(squares)
    if not 0 < len(places) < len(targets) or backend().kernel:
        return np.concatenate(
            [
                find_distances(places.choose(portion), targets, spacing)
                for portion in cut_list(max(1, len(places)), _MOST_AT_ONCE)
            ]
        )
    near = targets.within(places.box_within(BlockDistances(places, targets, spacing).greatest, spacing))
    return find_distances(places, near, spacing)


def distance_by_side(sides: Sides, percent: float) -> float:
    """Return HD or HD95 by borders: the larger percentile of both sides, interpolated."""
    return max(float(np.percentile(side.distances, percent)) for side in sides)


def distance_pooled(sides: Sides, percent: float) -> float:
    """Return HD or HD95 by borders: the percentile of the distances of both sides together, interpolated."""
    return float(np.percentile(np.concatenate([side.distances for side in sides]), percent))


def distance_by_side_of_places(borders: Sequence[Places], spacing: Spacing, percent: float) -> float:
    """Return `distance_by_side` by both borders, most of whose places need no search if they are many."""
    sides = (borders[0], borders[1]), (borders[1], borders[0])
    return max(_find_percentile(*side, spacing, percent, pooled=False) for side in sides)


def distance_pooled_of_places(borders: Sequence[Places], spacing: Spacing, percent: float) -> float:
    """Return `distance_pooled` by both borders, most of whose places need no search if they are many."""
    targets, places = sorted(borders, key=len)
    return _find_percentile(places, targets, spacing, percent, pooled=True)


def _find_percentile(places: Places, targets: Places, spacing: Spacing, percent: float, *, pooled: bool) -> float:
    """Return a percentile of the distances of places to targets, interpolated, or of those of both sides together."""
    total, kernel = len(places) + pooled * len(targets), backend().kernel
    if kernel and len(targets) and _MOST_RANKED < len(places) <= _MOST_PLACES:
        rank, volume = (total - 1) * (percent / 100), (places.shape, spacing)
        shares = (int(rank) + 0.5) / total, (min(int(rank) + 1, total - 1) + 0.5) / total
        squares = kernel.find_squares(targets.positions, places.positions, *volume) if pooled else np.zeros(0)
        extras = None if squares is None else np.stack([squares, np.ones(len(squares))], axis=1)
        surface = WeightedSurface(places.positions, np.zeros(len(places), np.uint8), np.ones(_CODES), extras)
        pair = kernel.find_shares(surface, targets.positions, *volume, shares)
        if pair is not None and extras is not None:
            return interpolate(math.sqrt(pair[0]), math.sqrt(pair[1]), rank - int(rank))
    distances = [find_distances(places, targets, spacing)]
    distances += [find_distances(targets, places, spacing)] if pooled else []
    return float(np.percentile(np.concatenate(distances), percent))


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
