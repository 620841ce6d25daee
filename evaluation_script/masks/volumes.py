"""The kernel's functions of volumes (z, y, x): boxes, surfaces, borders, runs, what they join, and distances.

`families.volumes` has equivalent numpy code beside each call.
"""

from __future__ import annotations

import ctypes
import math
from functools import partial
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

import numpy as np

from .distances import SurfaceIndex, WeightedSurface, limit_rounding
from .stack import Array

#: The statuses of functions.
FINE, FULL = 0, 2
#: The types of numbers in a label map.
MAPS = ("|u1", "<u2", "<u4")
#: The initial space for places on a surface, at least and at most; it grows by a half.
_FIRST_PLACES, _MOST_AT_FIRST = 1 << 15, 1 << 22
#: The number of places that are written at once, for which each row needs space.
_AT_ONCE = 4
#: The voxels of a volume for each place in this space.
_PER_PLACE = 2
#: The number of corners around a run of one voxel, of which speckle mostly consists.
_PLACES_A_RUN = 8
#: The bits of the sides of an index's blocks.
_BITS = 2
#: The number of codes of the voxels around a corner.
_CODES = 256
#: The start of each run of voxels, the voxel after it, and its component.
NamedRuns = Tuple[Array, Array, Array]


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

    def find_surface(self, labels: Array, chosen: Tuple[int, ...], limit: int) -> Optional[Tuple[int, Array, Array]]:
        """Return the number of corners on the surface of some labels, their positions and the codes of their voxels.

        Positions and codes are empty if there are more than the limit.
        """
        if labels.dtype == bool:
            labels = labels.view(np.uint8)
        if labels.dtype.str not in MAPS or not labels.size or labels.strides[2] != labels.itemsize:
            return None
        flags = np.zeros(max(chosen) + 1, np.uint8)
        flags[list(chosen)] = 1
        volume = (labels.ctypes.data, labels.itemsize, *labels.shape, *labels.strides[:2], flags, len(flags))
        room = _find_room(labels)
        positions, codes = np.empty(room, np.int32), np.empty(room, np.uint8)
        status, count = _fill_lists(partial(self.library.sj_surface, *volume), (positions, codes), limit)
        return (count, positions, codes) if status == FINE else None

    def find_border(self, mask: Array, *, open_ends: bool = False, corners: bool = False) -> Optional[Array]:
        """Return the positions of a mask's border: its voxels with a neighbour outside it, of six, or 26 with corners.

        With open ends, the outside of the volume is no neighbour.
        """
        if mask.dtype != bool or not mask.size or (open_ends and corners):
            return None
        positions = np.empty(_find_room(mask), np.int32)
        border = partial(self.library.sj_border, mask.view(np.uint8), *mask.shape, 2 * corners + open_ends)
        status, _ = _fill_lists(border, (positions,), mask.size)
        return positions if status == FINE else None

    def list_run_surface(
        self, edges: Sequence[Array], rows: Tuple[int, int], box: Sequence[Tuple[int, int]], limit: int
    ) -> Optional[Tuple[int, Array, Array]]:
        """Return what `find_surface` does of runs in a box, by starts and ends, a plane's rows and their length."""
        if not _are_short(edges):
            return None
        room = max(_FIRST_PLACES, box[2][1] - box[2][0] + _AT_ONCE, _PLACES_A_RUN * len(edges[0]))
        positions, codes = np.empty(room, np.int32), np.empty(room, np.uint8)
        surface = partial(self.library.sj_run_surface, *edges, len(edges[0]), *rows, np.array(box))
        status, count = _fill_lists(surface, (positions, codes), limit)
        return (count, positions, codes) if status == FINE else None

    def list_run_border(
        self,
        edges: Sequence[Array],
        rows: Tuple[int, int],
        box: Sequence[Tuple[int, int]],
        *,
        open_ends: bool = False,
        corners: bool = False,
    ) -> Optional[Array]:
        """Return what `find_border` does of runs in a box, by starts and ends, a plane's rows and their length."""
        if not _are_short(edges) or (open_ends and corners):
            return None
        voxels = int((edges[1].astype(np.int64) - edges[0]).sum())
        positions = np.empty(max(_FIRST_PLACES, voxels + box[2][1] - box[2][0] + 1), np.int32)
        runs = *edges, len(edges[0]), *rows, np.array(box)
        border = partial(self.library.sj_run_border, *runs, 2 * corners + open_ends)
        status, _ = _fill_lists(border, (positions,), 1 << 31)
        return positions if status == FINE else None

    def count_label_runs(self, labels: Array, chosen: Sequence[int]) -> Optional[Dict[int, int]]:
        """Return how many runs of voxels each of some labels has in a volume."""
        counts = np.zeros(len(chosen), np.int64)
        is_fine = self._list_labels(labels, chosen, counts, (None, None), 0)
        return dict(zip(chosen, counts.tolist())) if is_fine else None

    def list_label_runs(
        self, labels: Array, chosen: Sequence[int], bounds: Sequence[int]
    ) -> Optional[Tuple[Array, Array]]:
        """Return where the runs of some labels start and end, those of each label between two bounds.

        A voxel of background follows each row of the volume, and such a row each plane.
        """
        following = np.array(bounds[:-1], np.int64)
        starts, ends = np.zeros(bounds[-1], np.int32), np.zeros(bounds[-1], np.int32)
        is_fine = self._list_labels(labels, chosen, following, (starts, ends), bounds[-1])
        return (starts, ends) if is_fine and following.tolist() == list(bounds[1:]) else None

    def list_label_borders(
        self,
        labels: Array,
        chosen: Sequence[int],
        boxes: Sequence[Sequence[int]],
        bounds: Sequence[int],
        *,
        corners: bool,
    ) -> Optional[List[Array]]:
        """Return the border of each of some labels, in bytes, as `find_border` does in its box: from and to along z, y
        and x. Each has at most as many positions as are between its bounds.
        """
        if labels.dtype != np.uint8 or not labels.size or not 0 < len(chosen) < _CODES:
            return None
        positions, totals, starts = np.empty(bounds[-1], np.int32), np.zeros(len(chosen), np.int64), np.array(bounds)
        lists = np.array(boxes), len(chosen), 2 * corners, starts, totals, positions, bounds[-1]
        status = self.library.sj_label_borders(labels, *labels.shape, *_number_labels(chosen), *lists)
        ends = zip(bounds, totals.tolist())
        return [positions[start : start + total] for start, total in ends] if status == FINE else None

    def measure_label_areas(
        self, labels: Array, chosen: Sequence[int], areas: Array
    ) -> Optional[Tuple[Array, Array, Array]]:
        """Return the area of the surface of each of some labels, in bytes, with the bits of `sum_areas`; the number of
        its corners; and that of corners whose first voxel has the label.
        """
        if labels.dtype != np.uint8 or not labels.size or not 0 < len(chosen) < _CODES or len(areas) != _CODES:
            return None
        sums, counts, firsts = np.zeros(len(chosen)), np.zeros(len(chosen), np.int64), np.zeros(len(chosen), np.int64)
        volume = (labels, *labels.shape, *_number_labels(chosen), areas)
        status = self.library.sj_label_areas(*volume, len(chosen), sums, counts, firsts)
        return (sums, counts, firsts) if status == FINE else None

    def _list_labels(
        self, labels: Array, chosen: Sequence[int], following: Array, edges: Tuple[Optional[Array], ...], room: int
    ) -> bool:
        """Write the runs of some labels, or count them; return whether that was possible."""
        if labels.dtype.str not in MAPS or not labels.size:
            return False
        volume = (labels, labels.itemsize, *labels.shape, *_number_labels(chosen))
        return bool(self.library.sj_label_runs(*volume, following, len(following), *edges, room) == FINE)

    def grow_volume(self, mask: Array, steps: int) -> Optional[Array]:
        """Return a mask after this many steps to 18 neighbours."""
        if mask.dtype != bool or not mask.size:
            return None
        grown = np.empty(mask.shape, bool)
        status = self.library.sj_grow_volume(mask.view(np.uint8), *mask.shape, steps, grown.view(np.uint8))
        return grown if status == FINE else None

    def find_blocks(self, places: Array, shape: Tuple[int, ...], bits: int) -> Optional[Array]:
        """Return the number of the block of each position in a volume; the sides of blocks have this many bits."""
        if places.dtype != np.int32:
            return None
        blocks = np.zeros(len(places), np.int32)
        status = self.library.sj_find_blocks(places, len(places), *shape, bits, blocks)
        return blocks if status == FINE else None

    def move_places(
        self,
        places: Array,
        codes: Array,
        shape: Tuple[int, ...],
        to: Tuple[Sequence[Tuple[int, int]], Tuple[int, ...], Tuple[int, ...]],
    ) -> Optional[Tuple[Array, Array]]:
        """Return the places of a box as places of a volume of another shape, where the box begins at some voxel, and
        their codes.
        """
        if places.dtype != np.int32 or codes.dtype != np.uint8:
            return None
        box, sides, corner = to
        room, count = min(len(places), math.prod(end - start for start, end in box)), ctypes.c_int64(0)
        target = np.empty(room, np.int32), np.empty(room, np.uint8)
        volume = (places, codes, len(places), *shape, np.array(box), np.array([*sides, *corner]))
        status = self.library.sj_move_places(*volume, *target, room, ctypes.byref(count))
        if status != FINE:
            return None
        _resize(target, count.value)
        return target

    def sum_areas(self, codes: Array, areas: Array, flags: Optional[Array] = None) -> Optional[float]:
        """Return the sum of the areas of codes, or of those with a flag, with the bits of `add_parts`."""
        if codes.dtype != np.uint8 or len(areas) != _CODES or (flags is not None and flags.dtype != bool):
            return None
        total, chosen = np.zeros(1), None if flags is None else flags.view(np.uint8)
        status = self.library.sj_sum_areas(codes, chosen, len(codes), areas, total)
        return float(total[0]) if status == FINE else None

    def find_runs(self, mask: Array, offset: int, kind: type) -> Optional[Array]:
        """Return where the runs of a mask start and end, from the position of its first voxel on.

        A voxel of background follows each row, and such a row each plane.
        """
        if mask.dtype != bool or not mask.size:
            return None
        depth, height, width = mask.shape
        room, count = depth * height * (width + 1), ctypes.c_int64(0)
        edges: Array = np.empty(room, kind)  # unwritten ones take no memory
        volume = (mask.view(np.uint8), *mask.shape, offset)
        status = self.library.sj_find_runs(*volume, edges, edges.itemsize, room, ctypes.byref(count))
        edges.resize(count.value if status == FINE else 0, refcheck=False)
        return edges if status == FINE else None

    def draw_runs(
        self, starts: Array, ends: Array, rows: Tuple[int, int], box: Tuple[Tuple[int, int], ...]
    ) -> Optional[Array]:
        """Return 1 for the voxels of runs in a box, and 0 for others, given the rows of a plane and their length."""
        if not _are_runs(starts, ends):
            return None
        mask, sides = np.zeros([end - start for start, end in box], np.uint8), np.array(box)
        status = self.library.sj_draw_runs(starts, ends, starts.itemsize, len(starts), *rows, sides, mask)
        return mask if status == FINE else None

    def find_components(self, starts: Array, ends: Array, rows: Array) -> Optional[Array]:
        """Return the component of each run of voxels, from 0 in the order of their first runs.

        A run joins those that it meets after it is moved by a step to a row behind, and widened by 0 or 1.
        """
        if not _are_runs(starts, ends):
            return None
        names = np.zeros(len(starts), np.int32)
        status = self.library.sj_components(starts, ends, starts.itemsize, len(starts), rows, len(rows), names)
        return names if status == FINE else None

    def find_run_boxes(self, runs: NamedRuns, rows: Tuple[int, int], total: int) -> Optional[Array]:
        """Return the box of each component: from and to along z, y and x. Given are a plane's rows and their length."""
        if not _are_runs(*runs[:2]):
            return None
        boxes = np.empty((total, 6), np.int64)
        status = self.library.sj_run_boxes(*runs, len(runs[0]), runs[0].itemsize, *rows, total, boxes)
        return boxes if status == FINE else None

    def name_within(self, runs: NamedRuns, starts: Array, ends: Array) -> Optional[Array]:
        """Return the component of each run of a smaller mask; None if one does not lie in a run of a component."""
        if not _are_runs(*runs[:2], starts, ends):
            return None
        names = np.empty(len(starts), np.int32)
        status = self.library.sj_name_within(*runs, len(runs[0]), starts, ends, len(starts), starts.itemsize, names)
        return names if status == FINE else None

    def touch_neighbours(self, runs: NamedRuns, neighbours: NamedRuns, rows: Array, firsts: Array) -> Optional[Array]:
        """Return the least of a first number of each component and of the neighbours that its runs meet in some rows.

        A run meets those that it overlaps after it is moved by a step to a row, and widened by 0 or 1.
        """
        if not _are_runs(*runs[:2], *neighbours[:2]):
            return None
        sides, least = (*runs, len(runs[0]), *neighbours, len(neighbours[0])), firsts.astype(np.int64)
        status = self.library.sj_touch(*sides, runs[0].itemsize, rows, len(rows), least, len(least))
        return least if status == FINE else None

    def share_runs(self, runs: NamedRuns, partners: NamedRuns, width: int) -> Optional[Tuple[Array, Array]]:
        """Return the codes of pairs of names, of which some may come again, and the voxels that their runs share.

        A code is the first name, times a width that is above the partner's names, and the partner's name.
        """
        if not _are_runs(*runs[:2], *partners[:2]):
            return None
        room, pairs = len(runs[0]) + len(partners[0]), ctypes.c_int64(0)
        codes, voxels = np.empty(room, np.int64), np.empty(room, np.int64)
        sides = (*runs, len(runs[0]), *partners, len(partners[0]), runs[0].itemsize)
        status = self.library.sj_share_runs(*sides, width, codes, voxels, room, ctypes.byref(pairs))
        return (codes[: pairs.value], voxels[: pairs.value]) if status == FINE else None

    def find_distances(
        self,
        queries: Array,
        places: Array,
        shape: Tuple[int, ...],
        spacing: Tuple[float, float, float],
        limit: float,
    ) -> Optional[Array]:
        """Return the distance of each query to the nearest place; both are positions in a volume, in its order.

        It is infinite if its square is not below the limit.
        """
        squares = self.find_squares(queries, places, shape, spacing, limit)
        return None if squares is None else np.sqrt(squares, out=squares)

    def flag_near(
        self,
        queries: Array,
        places: Array,
        shape: Tuple[int, ...],
        spacing: Tuple[float, float, float],
        limit: float,
    ) -> Optional[Array]:
        """Return for each query whether the square of its distance to a place is below a limit, which must be small.

        Both are positions in a volume, in its order.
        """
        flags = np.empty(len(queries), np.uint8)
        status = _answer(self.library.sj_near_places, queries, places, shape, (*spacing, limit), flags)
        return flags.view(bool) if status == FINE else None

    def find_squares(
        self,
        queries: Array,
        places: Array,
        shape: Tuple[int, ...],
        spacing: Tuple[float, float, float],
        limit: float = np.inf,
    ) -> Optional[Array]:
        """Return the squares of the distances that `find_distances` returns."""
        squares = np.zeros(len(queries))
        status = _answer(self.library.sj_squares, queries, places, shape, (*spacing, limit), squares)
        return squares if status == FINE else None

    def index_surface(self, surface: WeightedSurface, shape: Tuple[int, ...]) -> Optional[SurfaceIndex]:
        """Return the index of a surface, for several calls of `find_shares` by the same areas."""
        cells, count = math.prod((side - 1 >> _BITS) + 1 for side in shape), len(surface.places)
        if not surface.is_short:
            return None
        sums, starts = np.empty(cells), np.empty(cells + 1, np.int32)
        voxels, codes = np.empty(count, np.uint16), np.empty(count, np.uint8)
        places = surface.places, surface.codes, count, *shape, surface.areas
        status = self.library.sj_index_surface(*places, sums, cells, starts, voxels, codes)
        return (sums, starts, voxels, codes) if status == FINE else None

    def find_shares(
        self,
        surface: WeightedSurface,
        targets: Array,
        shape: Tuple[int, ...],
        spacing: Tuple[float, float, float],
        shares: Tuple[float, float],
    ) -> Optional[Tuple[float, float]]:
        """Return the squares of the distances to targets at which two shares of a surface's area are reached.

        Places and targets are positions in a volume, in its order.
        """
        if not surface.is_short or targets.dtype != np.int32:
            return None
        more = (None, 0) if surface.extras is None else (surface.extras, len(surface.extras))
        index: Tuple[Any, ...] = None, 0, None, None, None
        if surface.blocks is not None:
            sums, starts, voxels, codes = surface.blocks
            if len(starts) != len(sums) + 1 or {len(voxels), len(codes)} != {len(surface.places)}:
                return None
            index = sums, len(sums), starts, voxels, codes
        squares, volume = np.zeros(2), (*shape, np.array(spacing), surface.areas, np.array(shares))
        places = surface.places, surface.codes, len(surface.places), targets, len(targets)
        status = self.library.sj_share(*places, *volume, *more, *index, squares)
        return (float(squares[0]), float(squares[1])) if status == FINE else None

    def find_share(
        self,
        surface: WeightedSurface,
        targets: Array,
        shape: Tuple[int, ...],
        spacing: Tuple[float, float, float],
        share: float,
    ) -> Optional[float]:
        """Return the distance at which one share is reached; None if rounding could decide which place has it."""
        by = limit_rounding(len(surface.places) + (0 if surface.extras is None else len(surface.extras)))
        squares = self.find_shares(surface, targets, shape, spacing, (share - by, share + by))
        return math.sqrt(squares[0]) if squares and squares[0] == squares[1] else None


def _number_labels(chosen: Sequence[int]) -> Tuple[Array, int]:
    """Return the index of each label among some, -1 for others, and how many labels that lists."""
    numbers: Array = np.full(max(chosen, default=0) + 1, -1, np.int32)
    numbers[list(chosen)] = np.arange(len(chosen))
    return numbers, len(numbers)


def _find_room(labels: Array) -> int:
    """Return the initial space for the places on a surface in a volume, at least for those of a row."""
    return max(_FIRST_PLACES, int(labels.shape[2]) + _AT_ONCE, min(labels.size // _PER_PLACE, _MOST_AT_FIRST))


def _are_runs(*edges: Array) -> bool:
    """Return whether all positions have the same type, of 32 or 64 bits."""
    kinds = {each.dtype.str for each in edges}
    return len(kinds) == 1 and kinds <= {"<i4", "<i8"}


def _are_short(edges: Sequence[Array]) -> bool:
    """Return whether starts and ends are as many, of 32 bits."""
    return {each.dtype for each in edges} == {np.dtype(np.int32)} and len({len(each) for each in edges}) == 1


def _answer(
    answer: Callable[..., int],
    queries: Array,
    places: Array,
    shape: Tuple[int, ...],
    numbers: Tuple[float, ...],
    answers: Array,
) -> Optional[int]:
    """Write the answers to queries by places of a volume; return the status, None if positions have another type."""
    if queries.dtype != np.int32 or places.dtype != np.int32:
        return None
    return answer(queries, len(queries), places, len(places), *shape, np.array(numbers), answers)


def _fill_lists(fill: Callable[..., int], lists: Tuple[Array, ...], limit: int) -> Tuple[int, int]:
    """Fill lists by a function that goes on where it stopped; return its status and the number of entries.

    Lists grow by a half in place, and are empty if there are more entries than the limit.
    """
    begun, count, status = ctypes.c_int64(0), ctypes.c_int64(0), FULL
    while status == FULL and count.value <= limit:
        if begun.value:
            _resize(lists, len(lists[0]) + len(lists[0]) // 2)
        status = fill(*lists, len(lists[0]), ctypes.byref(begun), ctypes.byref(count))
    if status == FULL:
        status = fill(*(None for _ in lists), len(lists[0]), ctypes.byref(begun), ctypes.byref(count))
    _resize(lists, count.value if count.value <= limit else 0)
    return status, count.value


def _resize(lists: Tuple[Array, ...], length: int) -> None:
    for each in lists:
        each.resize(length, refcheck=False)  # without a copy beside it
