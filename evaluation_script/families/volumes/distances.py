"""Distances from voxels of a volume (z, y, x) to the nearest place, exact in 64 bits, in millimetres.

The square of a distance is the least sum of squares of steps times the spacing, x and y first, then z.  Rounding keeps
the order of sums, so the kernel and numpy find the same bits in whichever order they look at places.
"""

from __future__ import annotations

import math
import sys
from functools import cached_property
from typing import Callable, Iterator, List, Tuple

import numpy as np

from ...masks.backend import backend
from ...masks.stack import Array
from ...values import NamedTuple
from .boxes import Box, cover, cut_slabs
from .places import Places, Spacing, cut_list, kind_of, list_places

#: Places are looked up one by one up to this number per voxel of columns with queries; beyond it, the transform of
#: these columns is faster.
_LOOKUPS = 3
#: The lookups of one query that take as long as a call of numpy. A few distant queries would make many calls.
_CALL = 1_000
#: If more than this share of queries is unanswered after a fraction of the lookups, the others would be in vain.
_FAR, _HOPELESS = 0.9, 8
#: The number of rows in a piece; most searches end with the first piece.
_LISTED = 4_096
#: The number of voxels transformed at once.
_SLAB = 1 << 20
#: Rows are first looked up within this multiple of the square of the largest spacing, then within four times that.
_NEAR = 16.0
#: The number of squares that fit into a processor's cache.
_CACHED = 1 << 17
#: The number of rows with places above which only those between the nearest of two rows are tried for rows between
#: these, and how many rows lie there; rounding decides nothing if the least square is more than this share of the
#: greatest.
_MANY_ROWS, _SPAN, _PRECISE = 16, 16, 2.0**-48
#: The number of steps along z after which the few planes with places are tried one by one.
_TRIED = 8
#: The nearness of a place itself.
_SAME = 255
#: The bits and the number of voxels along each side of a block, whose places share bounds.
_BITS = 2
_BLOCK = 1 << _BITS
#: The share of a weight, or of the square of a distance, by which rounding may differ.
ROUNDING = 1e-9
#: The number of steps after which the transform checks whether more can matter.
_CHECKED = 8


class _Field:
    """The places of a volume, in the form that queries search."""

    def __init__(self, nearness: Array, spacing: Spacing) -> None:
        """Store by how many steps less than _SAME each voxel is from the nearest place along x, at least 1.

        It is 0 if the row has no place. Planes without places take no memory.
        """
        self.nearness = nearness
        lengths = (np.arange(side) * step for side, step in zip(nearness.shape[::-1], spacing))
        #: The squares of steps along x, y and z.
        self.squares: List[Array] = [length * length for length in lengths]
        self._by_nearness: Array = np.full(_SAME + 1, np.inf)
        near = self.squares[0][: _SAME - 1]
        self._by_nearness[_SAME + 1 - len(near) :] = near[::-1]

    @property
    def is_precise(self) -> bool:
        """Return True if rounding is far less than the square of a step along y."""
        x, y, _ = self.squares
        return bool(y[1:2].max(initial=0) > _PRECISE * (x[-1] + y[-1]))

    @cached_property
    def _places(self) -> Array:
        """The positions of all places."""
        plane = self.nearness[0].size
        slabs = cut_slabs(self.nearness.shape)
        listed = (np.flatnonzero(self.nearness[slab] == _SAME) + slab.start * plane for slab in slabs)
        places: Array = np.concatenate([positions.astype(kind_of(self.nearness.shape)) for positions in listed])
        return places

    def measure_rows(self, nearness: Array, list_voxels: Callable[[Array], Array]) -> Array:
        """Return the squares of steps along x to the nearest place, infinite without one, by the nearness of voxels.

        A function returns the voxels with some indices of the flat array; they are far from places.
        """
        squares: Array = self._by_nearness.take(nearness)
        if len(self.squares[0]) < _SAME:
            return squares
        indices = np.flatnonzero(nearness == 1)
        if len(indices):
            squares.reshape(-1)[indices] = self._measure_far(list_voxels(indices))
        return squares

    def _measure_far(self, voxels: Array) -> Array:
        """Return the squares of steps along x to the nearest place of voxels in rows with places."""
        places, width = self._places, len(self.squares[0])
        behind = np.searchsorted(places, voxels)
        steps: Array = np.full(len(voxels), width - 1)
        for index in (behind - 1, behind):
            nearest = places[np.clip(index, 0, len(places) - 1)]
            is_in_row = nearest // width == voxels // width
            np.minimum(steps, np.abs(nearest - voxels), out=steps, where=is_in_row)
        return self.squares[0][steps]


class _Queries(NamedTuple):
    """Voxels whose nearest place is not yet known."""

    #: The position in the answers.
    indices: Array
    #: The position in the volume, and the row in its plane.
    voxels: Array
    rows: Array
    #: The smallest square up to now.
    best: Array

    def choose(self, chosen: Array) -> _Queries:
        return _Queries(*(values[chosen] for values in self))


def find_distances(queries: Places, places: Places, spacing: Spacing, farthest: float = np.inf) -> Array:
    """Return the distance from each query to the nearest place of the same volume, in the order of the queries.

    Without a place the distance is infinite, and so it is beyond the farthest place that matters.
    """
    answers: Array = np.full(len(queries), np.inf)
    if not len(queries) or not len(places):
        return answers
    limit = farthest * farthest * (1 + ROUNDING) + sys.float_info.min
    kernel = backend().kernel
    if kernel:
        measured = kernel.find_distances(queries.positions, places.positions, queries.shape, spacing, limit)
        if measured is not None:
            return measured
    box = cover([queries.box, places.box])
    field, start, open_queries = _make_field(places.crop(box), spacing), 0, []
    for planes in cut_slabs(field.nearness.shape):
        portion = queries.within((slice(box[0].start + planes.start, box[0].start + planes.stop), *box[1:]))
        listed = _list_queries(portion, box, start, field)
        np.minimum(listed.best, limit, out=listed.best)
        start += len(listed.indices)
        columns = len(np.unique(portion.locate(slice(None))[2]))
        lookups = _LOOKUPS * columns * (planes.stop - planes.start) * field.nearness.shape[1]
        unanswered = _search(listed, field, lookups, answers)
        answers[unanswered.indices] = unanswered.best
        if len(unanswered.indices):
            open_queries.append((unanswered.indices, unanswered.voxels))
    if open_queries:
        _transform(open_queries, field, answers)
    answers[answers >= limit] = np.inf
    np.sqrt(answers, out=answers)
    return answers


def _list_queries(queries: Places, box: Box, start: int, field: _Field) -> _Queries:
    """Return queries in a box from an index on, with the nearest place of their row."""
    _, height, width = field.nearness.shape
    kind = kind_of(field.nearness.shape)
    z, rows, x = (axis.astype(kind) - kind(side.start) for axis, side in zip(queries.locate(slice(None)), box))
    voxels = (z * kind(height) + rows) * kind(width) + x
    best = field.measure_rows(field.nearness.reshape(-1).take(voxels), voxels.take)
    return _Queries(np.arange(start, start + len(voxels), dtype=kind), voxels, rows, best)


def _make_field(places: Array, spacing: Spacing) -> _Field:
    width = places.shape[2]
    # If a side has no place, it counts as two widths before the row, or three after it.
    kind = np.int16 if 4 * width <= np.iinfo(np.int16).max else np.int32
    columns, far = np.arange(width, dtype=kind), kind(2 * width)
    nearness: Array = np.zeros(places.shape, np.uint8)
    for planes in cut_slabs(places.shape):
        is_place = places[planes] > 0
        has_place = is_place.any(axis=2, keepdims=True)
        if not has_place.any():
            continue
        before = np.where(is_place, columns, -far)
        np.maximum.accumulate(before, axis=2, out=before)
        np.subtract(columns, before, out=before)
        behind = np.where(is_place, columns, kind(2 * far))[:, :, ::-1]
        behind = np.minimum.accumulate(behind, axis=2)[:, :, ::-1]
        np.minimum(before, np.subtract(behind, columns), out=before)
        np.maximum(kind(_SAME) - before, has_place, out=before)
        np.multiply(before, has_place, out=nearness[planes], casting="unsafe")
    return _Field(nearness, spacing)


def _list_rows(squares_y: Array, squares_z: Array, nearest: float, end: float) -> Iterator[Tuple[float, int, int]]:
    """Yield the rows from one squared distance to another, the nearest first: square, steps along y, steps along z."""
    y, z = squares_y[squares_y < end], squares_z[squares_z < end]
    sums = y + z[:, None]
    levels, rows = np.nonzero((sums >= nearest) & (sums < end))
    squares = sums[levels, rows]
    order = np.argsort(squares, kind="stable")
    for start in range(0, len(order), _LISTED):
        listed = order[start : start + _LISTED]
        yield from zip(squares[listed].tolist(), rows[listed].tolist(), levels[listed].tolist())


def _search(queries: _Queries, field: _Field, limit: int, answers: Array) -> _Queries:
    """Answer queries by rows in the order of their distance; return those left after too many lookups."""
    _, y, z = field.squares
    lookups, nearest, total = 0, 0.0, len(queries.indices)
    end = _NEAR * float(max(y[1:2].max(initial=0), z[1:2].max(initial=0)))
    while end and nearest <= y[-1] + z[-1]:
        for square, row, level in _list_rows(y, z, nearest, end):
            open_queries = queries.best > square
            count = int(np.count_nonzero(open_queries))
            if count < len(open_queries):
                closed = ~open_queries
                answers[queries.indices[closed]] = queries.best[closed]
                queries = queries.choose(open_queries)
            if not count or lookups > (limit if count < _FAR * total else limit // _HOPELESS):
                return queries
            for plane_step in {level, -level}:
                for row_step in {row, -row}:
                    lookups += count + _CALL
                    _look_up(queries, field, row_step, plane_step)
        nearest, end = end, 4 * end
    answers[queries.indices] = queries.best
    return queries.choose(np.zeros(0, np.int64))


def _look_up(queries: _Queries, field: _Field, row_step: int, plane_step: int) -> None:
    """Improve the least squares by the places in rows at these distances."""
    depth, height, width = field.nearness.shape
    plane = height * width
    # Queries are in the volume's order, so queries with such a plane are adjacent.
    start = int(np.searchsorted(queries.voxels, -plane_step * plane))
    last = int(np.searchsorted(queries.voxels, (depth - plane_step) * plane))
    chosen = slice(start, last)
    if last <= start:
        return
    offset = plane_step * plane + row_step * width
    voxels = queries.voxels[chosen] + offset
    sums = field.measure_rows(field.nearness.reshape(-1).take(voxels, mode="clip"), voxels.take)
    sums += field.squares[1][abs(row_step)]
    sums += field.squares[2][abs(plane_step)]
    rows = queries.rows[chosen]
    sums[rows < -row_step if row_step < 0 else rows >= height - row_step] = np.inf
    np.minimum(queries.best[chosen], sums, out=queries.best[chosen])


def _transform(queries: List[Tuple[Array, Array]], field: _Field, answers: Array) -> None:
    """Answer queries, by their indices and voxels, from the least squares in all planes with places.

    A few columns are processed at a time, because intermediate results of many queries take much memory.
    """
    depth, height, width = field.nearness.shape
    has_place = np.array([plane.any() for plane in field.nearness])
    planes = np.flatnonzero(has_place)
    index_of = np.cumsum(has_place) - 1
    step = max(1, _SLAB // (max(len(planes), depth) * height))
    has_query = np.zeros(width, bool)
    for _, voxels in queries:
        has_query[voxels % width] = True
    columns, rank_of = np.flatnonzero(has_query), np.cumsum(has_query) - 1
    blocks = [(rank_of // step).astype(np.min_scalar_type(width))[voxels % width] for _, voxels in queries]
    for start in range(0, len(columns), step):
        chosen = [block == start // step for block in blocks]
        indices, voxels = (
            np.concatenate([values[flags] for values, flags in zip(parts, chosen)]) for parts in zip(*queries)
        )
        rows, within = np.divmod(voxels, voxels.dtype.type(width))
        level, rows = np.divmod(rows, rows.dtype.type(height))
        within = rank_of[within] - start
        best = answers[indices]
        greatest = float(best.max())
        squares = _transform_rows(_measure_columns(field, planes, columns[start : start + step]), field, greatest)
        active = np.arange(len(indices))
        for plane_step, square in enumerate(field.squares[2].tolist()):
            active = active[best[active] > square]
            if not active.size:
                break
            if plane_step == _TRIED and len(planes) < np.searchsorted(field.squares[2], best[active].max()):
                _try_planes(best, active, (level, rows, within), (planes, squares), field)
                break
            for signed in {plane_step, -plane_step}:
                source = level[active] + signed
                source_is_there = (source >= 0) & (source < depth)
                source_is_there[source_is_there] = has_place[source[source_is_there]]
                answered = active[source_is_there]
                values = squares[index_of[level[answered] + signed], within[answered], rows[answered]] + square
                best[answered] = np.minimum(best[answered], values)
        answers[indices] = best


def _measure_columns(field: _Field, planes: Array, columns: Array) -> Array:
    """Return the squares of steps along x to the nearest place for columns of planes (z, x, y)."""
    _, height, width = field.nearness.shape
    nearness = np.ascontiguousarray(field.nearness[np.ix_(planes, np.arange(height), columns)].transpose(0, 2, 1))

    def list_voxels(indices: Array) -> Array:
        plane, column, row = np.unravel_index(indices, nearness.shape)
        voxels: Array = (planes[plane] * height + row) * width + columns[column]
        return voxels

    return field.measure_rows(nearness, list_voxels)


def _try_planes(
    best: Array, active: Array, position: Tuple[Array, Array, Array], squares: Tuple[Array, Array], field: _Field
) -> None:
    """Improve the least squares of active queries by all planes with places, given their numbers and squares."""
    level, rows, within = (values[active] for values in position)
    places, least = within.astype(np.int64) * squares[1].shape[2] + rows, best[active]
    for plane, values in zip(squares[0].tolist(), squares[1].reshape(len(squares[1]), -1)):
        sums = values.take(places)
        sums += field.squares[2].take(np.abs(level - plane))
        np.minimum(least, sums, out=least)
    best[active] = least


def _transform_rows(nearest: Array, field: _Field, greatest: float) -> Array:
    """Return the least squares in planes (z, x, y) from those of each row; above the greatest they may be larger."""
    squares, step = np.empty_like(nearest), max(1, _CACHED // nearest[0].size)
    for start in range(0, len(nearest), step):
        squares[start : start + step] = _transform_planes(nearest[start : start + step], field, greatest)
    return squares


def _transform_planes(nearest: Array, field: _Field, greatest: float) -> Array:
    """Return the least squares of planes that fit into a processor's cache."""
    squares, squares_y = nearest.copy(), field.squares[1]
    rows = np.flatnonzero(np.isfinite(nearest).any(axis=(0, 1)))
    steps = int(np.searchsorted(squares_y, greatest))
    if _MANY_ROWS < len(rows) < 2 * steps and field.is_precise:
        return _transform_lines(nearest, rows, squares_y)
    if 2 * len(rows) < steps:
        sums = np.empty_like(squares)
        for row in rows.tolist():
            along_y = np.append(squares_y[row:0:-1], squares_y[: len(squares_y) - row])
            np.minimum(squares, np.add(nearest[:, :, row : row + 1], along_y, out=sums), out=squares)
        return squares
    for step, square in enumerate(squares_y.tolist()):
        if square >= greatest or (step % _CHECKED == 1 and square >= squares.max()):
            break
        if step:
            np.minimum(squares[:, :, step:], nearest[:, :, :-step] + square, out=squares[:, :, step:])
            np.minimum(squares[:, :, :-step], nearest[:, :, step:] + square, out=squares[:, :, :-step])
    return squares


def _transform_lines(nearest: Array, rows: Array, squares_y: Array) -> Array:
    """Return the same by trying for a voxel only the rows between those that are nearest to two voxels around it.

    The nearest row never decreases along y: moving one voxel changes the difference between the squares of two rows by
    twice the square of a step, which is more than rounding.
    """
    height = nearest.shape[2]
    lines = np.ascontiguousarray(nearest.reshape(-1, height)[:, rows].T)
    ends = np.minimum(np.arange(0, height - 1 + _SPAN, _SPAN), height - 1)
    least, nearest_rows = _find_nearest(lines, rows, ends, squares_y)
    spans, total = len(ends) - 1, lines.shape[1]
    counts = (nearest_rows[:, 1:] - nearest_rows[:, :-1]).reshape(-1)
    order = np.argsort(-counts, kind="stable")
    surplus, lowest = -counts[order], nearest_rows[:, :-1].reshape(-1)
    # The squares of the steps from a row to each voxel of a span.
    steps = np.concatenate([squares_y[:0:-1], squares_y, np.full(_SPAN, np.inf)])
    windows = np.ascontiguousarray(np.lib.stride_tricks.sliding_window_view(steps, _SPAN))
    squares: Array = np.full((total * spans, _SPAN), np.inf)
    for number in range(1 - int(surplus.min())):
        tried = order[: np.searchsorted(surplus, -number, side="right")]
        row, (line, span) = lowest[tried] + number, np.divmod(tried, spans)
        sums = windows.take(span * _SPAN - rows[row] + height - 1, axis=0)
        sums += lines[row, line][:, None]
        squares[tried] = np.minimum(squares[tried], sums)
    squares = np.append(squares.reshape(total, -1)[:, : height - 1], least[:, -1:], axis=1)
    return squares.reshape(nearest.shape)


def _find_nearest(lines: Array, rows: Array, ends: Array, squares_y: Array) -> Tuple[Array, Array]:
    """Return for each line (columns) and each voxel the least square, and the index of the row that has it."""
    least = np.full((len(ends), lines.shape[1]), np.inf)
    index, sums = np.zeros(least.shape, np.int32), np.empty_like(least)
    for number, row in enumerate(rows.tolist()):
        np.add(lines[number], squares_y[np.abs(ends - row)][:, None], out=sums)
        index[sums < least] = number
        np.minimum(least, sums, out=least)
    return least.T, np.ascontiguousarray(index.T)


class BlockDistances:
    """The distances from blocks of voxels with places to the nearest block with targets, from centre to centre.

    From a place to the nearest target it is at most `slack` more or less.
    """

    def __init__(self, places: Places, targets: Places, spacing: Spacing) -> None:
        self._places = places
        self._shape = tuple(-(-side // _BLOCK) for side in places.shape)
        filled, filled_by_targets = map(self._list_blocks, (places, targets))
        x, y, z = (_BLOCK * step for step in spacing)
        self._distances: Array = np.zeros(math.prod(self._shape))
        self._filled = filled.positions
        self._distances[self._filled] = find_distances(filled, filled_by_targets, (x, y, z))
        self.slack = (1 + ROUNDING) * (_BLOCK - 1) / _BLOCK * math.sqrt(x * x + y * y + z * z)

    def _list_blocks(self, listed: Places) -> Places:
        """Return the blocks with a place."""
        is_filled: Array = np.zeros(self._shape, np.uint8)
        for chunk in cut_list(len(listed)):
            is_filled.reshape(-1)[self._find_blocks(listed, chunk)] = 1
        return list_places(is_filled)

    def _find_blocks(self, listed: Places, chunk: slice) -> Array:
        """Return the number of the block of each of some places."""
        kernel = backend().kernel
        numbers = kernel.find_blocks(listed.positions[chunk], listed.shape, _BITS) if kernel else None
        if numbers is not None:
            return numbers
        z, y, x = (axis >> _BITS for axis in listed.locate(chunk))
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
            sums += np.bincount(blocks, areas.take(self._places.values[chunk]), len(sums))
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
            distances = self._distances.take(self._find_blocks(self._places, chunk))
            is_nearer = distances < least - self.slack
            nearer += float(areas.take(self._places.values[chunk][is_nearer]).sum())
            chosen[chunk] = ~is_nearer & (distances <= greatest + self.slack)
        return chosen, nearer
