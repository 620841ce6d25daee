"""Curves and lines: from points that were drawn to points in between."""

from __future__ import annotations

import itertools
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.special import comb

#: More samples than this are never made.
MOST_POINTS = 1000


def bezier_curve(points: Any, nb_points: int = MOST_POINTS) -> Any:
    """One Bezier curve with all points as control points, from the last to the first.

    With many points close together it is a local smoother.  More points than samples come back as they are.
    """
    points = np.asarray(points, dtype=float)
    if points.ndim != 2 or points.shape[1] != 2:
        raise ValueError("`points` should be two dimensional and have shape: (N, 2)")
    nb_points = min(nb_points, MOST_POINTS)
    if len(points) > nb_points:
        return points
    return _weights(len(points), nb_points) @ points


@lru_cache(maxsize=16)
def _weights(count: int, samples: int) -> Any:
    """Bernstein's polynomials, a row for each sample; up to a thousand points no binomial overflows."""
    degree, place = count - 1, np.arange(count)
    t = np.linspace(0.0, 1.0, samples)[:, None]
    found: Any = comb(degree, place) * t ** (degree - place) * (1 - t) ** place
    return found


def bresenham(points: Any) -> Any:
    """All pixels on the straight lines between points; a point between two lines appears twice."""
    points = np.asarray(points).astype(int)
    if len(points) < 2:
        return points
    return np.concatenate([_line(first, last) for first, last in itertools.pairwise(points)])


def _line(first: Any, last: Any) -> Any:
    """From one pixel to another: a step along the longer side for each pixel, along y where both are equal."""
    delta = last - first
    length, sign = np.abs(delta), np.sign(delta)
    major = 0 if length[0] > length[1] else 1
    steps = np.arange(length[major] + 1)
    found = np.empty((len(steps), 2), dtype=int)
    found[:, major] = first[major] + sign[major] * steps
    long, short = int(length[major]), int(length[1 - major])
    aside = (2 * steps * short + long) // (2 * long) if long else steps
    found[:, 1 - major] = first[1 - major] + sign[1 - major] * aside
    return found
