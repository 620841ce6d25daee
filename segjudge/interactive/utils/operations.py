"""Curves and lines: from points that were drawn to points in between."""

import itertools
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import comb
from skimage.draw import line

from segjudge.evaluation_script.masks.stack import Array

#: The most samples of a curve.
MOST_POINTS = 1000


def bezier_curve(points: ArrayLike, nb_points: int = MOST_POINTS) -> Array:
    """Return one Bezier curve with all points as control points, from the last point to the first.

    With many points close together it is a local smoother.  More points than samples are returned unchanged.
    """
    points = np.asarray(points, dtype=float)
    if points.ndim != 2 or points.shape[1] != 2:
        raise ValueError("`points` should be two dimensional and have shape: (N, 2)")
    nb_points = min(nb_points, MOST_POINTS)
    if len(points) > nb_points:
        return points
    curve: Array = _bernstein_polynomials(len(points), nb_points) @ points
    return curve


@lru_cache(maxsize=16)
def _bernstein_polynomials(count: int, samples: int) -> Array:
    """Return a row of weights for each sample; up to a thousand points no binomial coefficient overflows."""
    degree, index = count - 1, np.arange(count)
    t = np.linspace(0.0, 1.0, samples)[:, None]
    weights: Array = comb(degree, index) * t ** (degree - index) * (1 - t) ** index
    return weights


def bresenham(points: ArrayLike) -> Array:
    """Return all pixels on the straight lines between points; a point between two lines appears twice."""
    points = np.asarray(points).astype(int)
    if len(points) < 2:
        return points
    ends = itertools.pairwise(points.tolist())
    lines = [line(*first, *last) for first, last in ends]  # type: ignore[no-untyped-call]
    return np.concatenate(lines, axis=1).T
