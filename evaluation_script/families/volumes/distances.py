"""Distances from voxels of a volume (z, y, x) to the nearest place, exact in 64 bits, in millimetres.

The square of a distance is the least sum of squares of steps times the spacing, x and y first, then z.  Rounding keeps
the order of sums, so the kernel and numpy find the same bits in whichever order they look at places.
"""

from __future__ import annotations

from typing import Iterator, List, NamedTuple, Tuple

import numpy as np

from ...masks.backend import backend
from ...masks.stack import Array
from .boxes import cut_slabs

#: Millimetres between voxels along x, y and z.
Spacing = Tuple[float, float, float]
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
#: The number of steps after which the transform checks whether more can matter.
_CHECKED = 8


class _Field(NamedTuple):
    """The places of a volume, in the form that queries search."""

    #: Four widths minus the steps along x to the nearest place, or 0 to two widths if the row has none. Planes without
    #: places take no memory.
    nearness: Array
    #: The squares of steps along x by this nearness (infinite without a place), and the squares of steps along y and z.
    squares: Tuple[Array, Array, Array]

    @property
    def is_precise(self) -> bool:
        """Return True if rounding is far less than the square of a step along y."""
        x, y, _ = self.squares
        return bool(y[1:2].max(initial=0) > _PRECISE * (x[x < np.inf].max() + y[-1]))


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


def find_distances(queries: Array, places: Array, spacing: Spacing) -> Array:
    """Return the distance from each query voxel to the nearest place, in the order of the array.

    Bytes other than 0 and 255 mark queries and places. Without a place the distance is infinite.
    """
    kernel = backend().kernel
    kernel_distances = kernel.find_distances(queries, places, spacing) if kernel else None
    if kernel_distances is not None:
        return kernel_distances
    count = int(np.count_nonzero(queries))
    answers: Array = np.full(count, np.inf)
    if not count or not places.any():
        return answers
    field = _make_field(places, spacing)
    del places  # which may be no one else's
    start, open_queries = 0, []
    for planes in cut_slabs(queries.shape):
        listed = _list_queries(queries[planes], planes.start, start, field)
        start += len(listed.indices)
        columns = np.count_nonzero(queries[planes].any(axis=(0, 1)))
        limit = _LOOKUPS * columns * (queries[planes].size // queries.shape[2])
        unanswered = _search(listed, field, limit, answers)
        answers[unanswered.indices] = unanswered.best
        if len(unanswered.indices):
            open_queries.append((unanswered.indices, unanswered.voxels))
    del queries
    if open_queries:
        _transform(open_queries, field, answers)
    np.sqrt(answers, out=answers)
    return answers


def _list_queries(queries: Array, plane: int, start: int, field: _Field) -> _Queries:
    """Return the queries of some planes, with the nearest place of their row."""
    _, height, width = queries.shape
    kind = np.int32 if field.nearness.size < 1 << 31 else np.int64
    voxels = (np.flatnonzero(queries) + plane * height * width).astype(kind)
    rows = voxels // kind(width) % kind(height)
    best = field.squares[0].take(field.nearness.reshape(-1).take(voxels))
    return _Queries(np.arange(start, start + len(voxels), dtype=kind), voxels, rows, best)


def _make_field(places: Array, spacing: Spacing) -> _Field:
    depth, height, width = places.shape
    # If a side has no place, it counts as two widths before the row, or three after it.
    kind = np.int16 if 4 * width <= np.iinfo(np.int16).max else np.int32
    columns, far = np.arange(width, dtype=kind), kind(2 * width)
    nearness: Array = np.zeros(places.shape, kind)
    for planes in cut_slabs(places.shape):
        is_place = places[planes] > 0
        if not is_place.any():
            continue
        before = np.where(is_place, columns, -far)
        np.maximum.accumulate(before, axis=2, out=before)
        np.subtract(columns, before, out=before)
        behind = np.where(is_place, columns, kind(2 * far))[:, :, ::-1]
        behind = np.minimum.accumulate(behind, axis=2)[:, :, ::-1]
        np.minimum(before, np.subtract(behind, columns), out=before)
        np.subtract(kind(2 * far), before, out=nearness[planes])
    sides = (width, height, depth)
    lengths = [np.arange(side) * step for side, step in zip(sides, spacing)]
    x, y, z = (length * length for length in lengths)
    return _Field(nearness, (np.append(np.full(3 * width + 1, np.inf), x[::-1]), y, z))


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
    nearness = field.nearness.reshape(-1).take(queries.voxels[chosen] + offset, mode="clip")
    sums = field.squares[0].take(nearness)
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
    has_place = np.array([(plane > 3 * width).any() for plane in field.nearness])
    planes = np.flatnonzero(has_place)
    index_of = np.cumsum(has_place) - 1
    step = max(1, _SLAB // (max(len(planes), depth) * height))
    blocks = [(voxels % width // step).astype(np.min_scalar_type(width)) for _, voxels in queries]
    for start in range(0, width, step):
        chosen = [block == start // step for block in blocks]
        indices, voxels = (
            np.concatenate([values[flags] for values, flags in zip(parts, chosen)]) for parts in zip(*queries)
        )
        if not len(indices):
            continue
        rows, within = np.divmod(voxels, voxels.dtype.type(width))
        level, rows = np.divmod(rows, rows.dtype.type(height))
        within -= start
        best = answers[indices]
        greatest = float(best.max())
        nearness = np.ascontiguousarray(field.nearness[planes, :, start : start + step].transpose(0, 2, 1))
        squares = _transform_rows(field.squares[0].take(nearness), field, greatest)
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
