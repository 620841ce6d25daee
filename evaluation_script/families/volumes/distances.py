"""Distances from voxels of a volume (z, y, x) to the nearest place, exact in 64 bits, in millimetres.

The square of a distance is the least sum of squares of steps times the spacing, x and y first, then z.  Rounding keeps
the order of sums, so the kernel and numpy find the same bits in whichever order they look at places.
"""

from __future__ import annotations

import sys
from typing import Iterator, List, NamedTuple, Tuple

import numpy as np

from ...masks.backend import backend
from ...masks.stack import Array
from .boxes import Box, cover, cut_slabs
from .places import Places, Spacing, cut_list

#: The lookups per voxel of a box that take as long as its transform, and those that take as long as a call of numpy.
_LOOKUPS, _CALL = 3, 1_000
#: Rows are first looked up within this multiple of the square of the largest spacing, then within four times that.
_NEAR = 16.0
#: The number of squares transformed at once.
_SLAB = 1 << 20
#: The number of places along a line between two whose nearest site is searched among all, and of sites up to which each
#: is tried at all places; rounding decides nothing if the square of a step is more than this share of the greatest.
_SPAN, _FEW, _PRECISE = 16, 16, 2.0**-48
#: The share of a square by which rounding may differ.
_ROUNDING = 1e-9


class _Queries(NamedTuple):
    """Voxels whose nearest place is not yet known."""

    #: The position in the answers, that in the volume, and the row in its plane.
    indices: Array
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
    limit, kernel = farthest * farthest * (1 + _ROUNDING) + sys.float_info.min, backend().kernel
    squares = (
        kernel.find_squares(queries.positions, places.positions, queries.shape, spacing, limit) if kernel else None
    )
    return np.sqrt(_find_squares(queries, places, spacing, limit) if squares is None else squares)


def _find_squares(queries: Places, places: Places, spacing: Spacing, limit: float) -> Array:
    """Return the square of each query's distance to the nearest place, infinite from a limit on."""
    box = cover([queries.box, places.box])
    steps = _count_steps(places.crop(box))
    squares = [np.square(np.arange(side) * step) for side, step in zip(steps.shape[::-1], spacing)]
    squares[0] = np.append(squares[0], np.inf)
    answers, unanswered = np.empty(len(queries)), []
    for chunk in cut_list(len(queries)):
        some = queries.choose(chunk)
        z, rows, x = (axis - axis.dtype.type(side.start) for axis, side in zip(some.locate(), box))
        voxels = (z * z.dtype.type(steps.shape[1]) + rows) * z.dtype.type(steps.shape[2]) + x
        indices = np.arange(chunk.start, chunk.start + len(some), dtype=z.dtype)
        best = np.minimum(squares[0].take(steps.reshape(-1).take(voxels)), limit)
        lookups = _LOOKUPS * steps.size * len(some) // len(queries)
        unanswered.append(_search(_Queries(indices, voxels, rows, best), steps, squares, lookups, answers))
    indices = np.concatenate(unanswered)
    if len(indices):
        _transform(indices, queries, box, steps, squares, answers)
    answers[answers >= limit] = np.inf
    return answers


def _count_steps(places: Array) -> Array:
    """Return the steps along x from each voxel to the nearest place, or the width if its row has none."""
    width = places.shape[2]
    # If a side has no place, it counts as one or two widths away from the row.
    columns: Array = np.arange(-width, 2 * width + 1, dtype=np.min_scalar_type(-3 * width))
    before_row, behind_row, columns = columns[0], columns[-1], columns[width : 2 * width]
    steps: Array = np.full(places.shape, width, np.min_scalar_type(width))
    for planes in cut_slabs(places.shape):
        is_place = places[planes]
        if not is_place.any():
            continue
        before = np.maximum.accumulate(np.where(is_place, columns, before_row), axis=2)
        behind = np.minimum.accumulate(np.where(is_place, columns, behind_row)[:, :, ::-1], axis=2)[:, :, ::-1]
        steps[planes] = np.minimum(np.minimum(columns - before, behind - columns), width)
    return steps


# ── one by one ──────────────────────────────────────────────────────────────


def _list_rows(squares: List[Array], nearest: float, end: float) -> Iterator[Tuple[float, int, int]]:
    """Yield the rows from one squared distance to another, the nearest first: square, steps along y, steps along z."""
    y, z = (side[side < end] for side in squares[1:])
    sums = y + z[:, None]
    planes, rows = np.nonzero((sums >= nearest) & (sums < end))
    order = np.argsort(sums[planes, rows], kind="stable")
    yield from zip(sums[planes, rows][order].tolist(), rows[order].tolist(), planes[order].tolist())


def _search(queries: _Queries, steps: Array, squares: List[Array], lookup_limit: int, answers: Array) -> Array:
    """Answer queries by rows as near as they are; return the indices of those left after too many lookups."""
    _, y, z = squares
    lookups, nearest = 0, 0.0
    end = _NEAR * float(max(y[1:2].max(initial=0), z[1:2].max(initial=0)))
    while end and nearest <= y[-1] + z[-1]:
        for square, row, plane in _list_rows(squares, nearest, end):
            is_open = queries.best > square
            if not is_open.all():
                answers[queries.indices] = queries.best
                queries = queries.choose(is_open)
            if not len(queries.indices) or lookups > lookup_limit:
                answers[queries.indices] = queries.best
                return queries.indices
            for step_z in {plane, -plane}:
                for step_y in {row, -row}:
                    lookups += len(queries.indices) + _CALL
                    _look_up(queries, steps, squares, (step_z, step_y))
        nearest, end = end, 4 * end
    answers[queries.indices] = queries.best
    return queries.indices[:0]


def _look_up(queries: _Queries, steps: Array, squares: List[Array], by: Tuple[int, int]) -> None:
    """Improve the least squares by the places in rows at these steps along z and y."""
    depth, height, width = steps.shape
    # Queries are in the volume's order, so queries with such a plane are adjacent.
    ends = np.array([-by[0], depth - by[0]]) * (height * width)
    chosen = slice(*np.searchsorted(queries.voxels, ends).tolist())
    rows, voxels = queries.rows[chosen], queries.voxels[chosen] + (by[0] * height + by[1]) * width
    sums = squares[0].take(steps.reshape(-1).take(voxels, mode="clip"))
    sums += squares[1][abs(by[1])]
    sums += squares[2][abs(by[0])]
    sums[rows < -by[1] if by[1] < 0 else rows >= height - by[1]] = np.inf
    np.minimum(queries.best[chosen], sums, out=queries.best[chosen])


# ── all at once ─────────────────────────────────────────────────────────────


def _transform(indices: Array, queries: Places, box: Box, steps: Array, squares: List[Array], answers: Array) -> None:
    """Improve the answers to some queries by the least squares in all planes of a box, first along y, then along z."""
    depth, height, width = steps.shape
    planes = np.flatnonzero([(plane < width).any() for plane in steps])
    x = queries.positions[indices] % queries.shape[2] - box[2].start
    order = np.argsort(x, kind="stable")
    indices, x = indices[order], x[order]
    del order  # a large list, as all of queries
    columns, at_once = np.unique(x), max(1, _SLAB // (depth * height))
    for start in range(0, len(columns), at_once):
        some = columns[start : start + at_once]
        chosen = slice(*np.searchsorted(x, [some[0], some[-1] + 1]).tolist())
        along_x = squares[0].take(steps[np.ix_(planes, np.arange(height), some)].transpose(0, 2, 1))
        along_y = _find_least_sums(along_x.reshape(-1, height), squares[1])
        lines: Array = np.full((len(some), height, depth), np.inf)
        lines[:, :, planes] = along_y.reshape(len(planes), len(some), height).transpose(1, 2, 0)
        least = _find_least_sums(lines.reshape(-1, depth), squares[2]).reshape(lines.shape)
        z, y, _ = queries.choose(indices[chosen]).locate()
        reached = least[np.searchsorted(some, x[chosen]), y - box[1].start, z - box[0].start]
        answers[indices[chosen]] = np.minimum(answers[indices[chosen]], reached)


def _find_least_sums(values: Array, squares: Array) -> Array:
    """Return for each place of lines (rows) the least sum of a value and of the square of the steps to it.

    The nearest site never decreases along a line: moving one place changes the difference between the sums of two sites
    by twice the square of a step, which is more than rounding.
    """
    places, sites = np.arange(values.shape[1]), np.flatnonzero(np.isfinite(values).any(axis=0))
    greatest = float(values[:, sites].max(initial=0, where=np.isfinite(values[:, sites]))) + squares[-1]
    if len(sites) <= _FEW or not squares[1] > _PRECISE * greatest:
        least: Array = np.full_like(values, np.inf)
        for site in sites.tolist():
            np.minimum(least, values[:, site : site + 1] + squares[np.abs(places - site)], out=least)
        return least
    ends = np.append(places[:-1:_SPAN], places[-1])
    sums, nearest = np.full((len(ends), len(values)), np.inf), np.zeros((len(ends), len(values)), np.int32)
    for number, site in enumerate(sites.tolist()):
        trial = values[:, site] + squares[np.abs(ends - site)][:, None]
        nearest[trial < sums] = number
        np.minimum(sums, trial, out=sums)
    least = np.full((len(values), len(ends) * _SPAN), np.inf)
    for span, start in enumerate(ends[:-1].tolist()):
        # Between two places, only the sites from the nearest of one to that of the other are tried.
        inner, lowest, highest = np.arange(start, start + _SPAN), nearest[span], nearest[span + 1]
        for number in range(int((highest - lowest).max()) + 1):
            lines = np.flatnonzero(lowest + number <= highest)
            site = sites[lowest[lines] + number]
            away = np.minimum(np.abs(inner - site[:, None]), len(squares) - 1)
            trial = values[lines, site][:, None] + squares[away]
            least[lines, start : start + _SPAN] = np.minimum(least[lines, start : start + _SPAN], trial)
    least[:, places[-1]] = sums[-1]
    return least[:, : len(places)]
