"""Polygons filled as OpenCV 4.8 fills them, which defines the masks of ReasonSeg.

Corners are whole numbers. A polygon is its outline, drawn in steps of one pixel, and the pixels between every other
pair of crossings of a row with its sides. Crossings have a precision of 1/65,536. Sides that leave the image are
clipped first, which changes their slope slightly.
"""

from __future__ import annotations

from typing import List, NamedTuple, Sequence, Tuple

import numpy as np

from ...masks.stack import Array, Size

Point = Tuple[int, int]

#: The bits of a crossing's fraction.
_BITS = 16
_HALF = 1 << (_BITS - 1)
#: The position of a point relative to the image.
_BEFORE, _AFTER, _ABOVE, _BELOW = 1, 2, 4, 8


class _Side(NamedTuple):
    """A side of a polygon: its rows, its crossing with the first row, and its slope."""

    top: int
    bottom: int
    crossing: int
    step: int


def fill(corners: Sequence[Point], size: Size) -> Array:
    """Return the mask (height, width) of a polygon and its outline."""
    mask = np.zeros(size, bool)
    sides: List[_Side] = []
    for start, end in zip([corners[-1], *corners[:-1]], corners):
        clipped_start, clipped_end, is_visible = _clip(start, end, size)
        if is_visible:
            _draw_line(mask, clipped_start, clipped_end)
        if start[1] != end[1]:
            sides.append(_trace_side(start, end, clipped_start, clipped_end, size))
    _fill_rows(mask, sides)
    return mask


def _trace_side(start: Point, end: Point, clipped_start: Point, clipped_end: Point, size: Size) -> _Side:
    """Return the crossings of rows with a side, for the rows inside the image."""
    half = 0
    if not _place(start, size) | _place(end, size):
        half = _HALF
    elif clipped_start[1] == clipped_end[1]:
        clipped_start, clipped_end = start, end
    (x0, y0), (x1, y1) = clipped_start, clipped_end
    x0, x1 = (x0 << _BITS) + half, (x1 << _BITS) + half
    step = _divide(x1 - x0, y1 - y0)
    if start[1] < end[1]:
        return _Side(start[1], end[1], x0 + (start[1] - y0) * step, step)
    return _Side(end[1], start[1], x1 + (end[1] - y1) * step, step)


def _divide(number: int, divisor: int) -> int:
    """Return a quotient rounded towards zero."""
    quotient = abs(number) // abs(divisor)
    return quotient if (number < 0) == (divisor < 0) else -quotient


def _place(point: Point, size: Size) -> int:
    (x, y), (height, width) = point, size
    return _BEFORE * (x < 0) + _AFTER * (x >= width) + _ABOVE * (y < 0) + _BELOW * (y >= height)


def _clip(start: Point, end: Point, size: Size) -> Tuple[Point, Point, bool]:
    """Return the part of a line inside the image, and whether there is any, clipped step by step."""
    bottom, right = size[0] - 1, size[1] - 1
    points, places = [start, end], [_place(start, size), _place(end, size)]
    for beyond, axis, sides in ((_ABOVE | _BELOW, 1, (_ABOVE, bottom)), (_BEFORE | _AFTER, 0, (_BEFORE, right))):
        if places[0] & places[1] or not places[0] | places[1]:
            break
        for index in (0, 1):
            if not places[index] & beyond:
                continue
            border = 0 if places[index] & sides[0] else sides[1]
            (x0, y0), (x1, y1) = points
            if axis:
                x = points[index][0] + int(float(border - points[index][1]) * (x1 - x0) / (y1 - y0))
                points[index] = (x, border)
                places[index] = _BEFORE * (x < 0) + _AFTER * (x > right)
            else:
                y = points[index][1] + int(float(border - points[index][0]) * (y1 - y0) / (x1 - x0))
                points[index] = (border, y)
                places[index] = 0
    return points[0], points[1], not places[0] & places[1]


def _draw_line(mask: Array, start: Point, end: Point) -> None:
    """Draw a line within the image, from left to right, in steps of one pixel along its longer side."""
    (x0, y0), (x1, y1) = (start, end) if start[0] <= end[0] else (end, start)
    across, down, sign = x1 - x0, abs(y1 - y0), 1 if y1 >= y0 else -1
    longer, shorter = max(across, down, 1), min(across, down)
    steps = np.arange(max(across, down) + 1)
    offsets = (2 * shorter * steps + longer - 1) // (2 * longer)
    if down > across:
        mask[y0 + sign * steps, x0 + offsets] = True
    else:
        mask[y0 + sign * offsets, x0 + steps] = True


def _fill_rows(mask: Array, sides: List[_Side]) -> None:
    """Fill the pixels between every other pair of crossings."""
    if len(sides) < 2:
        return
    tops, bottoms, crossings, steps = (np.array(column, np.int64) for column in zip(*sides))
    for row in range(max(0, int(tops.min())), min(len(mask), int(bottoms.max()))):
        crossed = (tops <= row) & (row < bottoms)
        across = np.sort(crossings[crossed] + (row - tops[crossed]) * steps[crossed]) >> _BITS
        for start, stop in across.reshape(-1, 2).tolist():
            mask[row, max(start, 0) : max(stop + 1, 0)] = True
