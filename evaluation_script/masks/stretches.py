"""Label maps that were stretched from a side or the middle: how to recognise it, and how to undo it."""

from __future__ import annotations

from functools import lru_cache
from typing import Callable, Iterator, List, Optional, Sequence, Tuple

import numpy as np

from .stack import Array

#: Along both axes, the ratio of the length to the true one, and the place that stays, as a share of the side.
Stretch = Tuple[Tuple[float, float], Tuple[float, float]]
#: As sent.
UNSTRETCHED: Stretch = ((1.0, 0.5), (1.0, 0.5))
#: The number of ratios that are tried first below and above 1, of which the last is 2, the places that may stay, and
#: the changes of the best ratio that are tried then, along each axis in turn, and at last.
_RATIOS, _ANCHORS = 9, (0.0, 0.5, 1.0)
_CHANGES, _LAST_CHANGES = (0.02, 0.04, 0.08, 0.16), (0.005, 0.01, 0.02)
#: The minimum agreement of stretched maps, its minimum gain as a share of what it lacks as sent, and the minimum change
#: of a ratio.
_LEAST, _GAIN, _TELLING = 0.25, 0.3, 0.03


#: Returns how well a prediction agrees with the truth once it is corrected, for each of some stretches.
Agree = Callable[[Sequence[Stretch]], Array]


def find_stretch(agree: Agree, sift: Optional[Agree] = None) -> Optional[Stretch]:
    """Return the stretch whose correction agrees best with the truth; None if none agrees clearly better.

    The first ones, which are many, are compared by a quicker way to sift them, if there is one.
    """
    sift, stretches = sift or agree, [UNSTRETCHED, *_list_stretches()]
    fits = sift(stretches).tolist()
    as_sent, fit = fits[0], max(fits)
    best = stretches[fits.index(fit)]
    if fit < max(_LEAST, as_sent + _GAIN * (1 - as_sent)):
        return None
    for compare, changes in ((sift, _CHANGES), (agree, _CHANGES), (agree, _LAST_CHANGES)):
        for axis in range(2):
            stretches = [best, *_vary(best, axis, changes, _ANCHORS if changes is _CHANGES else (best[axis][1],))]
            best = stretches[int(np.argmax(compare(stretches)))]
    return best if max(abs(ratio - 1) for ratio, _ in best) >= _TELLING else None


def _list_stretches() -> List[Stretch]:
    """Return stretches along both axes, and along either."""
    steps = [step for step in range(-_RATIOS, _RATIOS + 1) if step]
    axes = [(2.0 ** (step / _RATIOS), anchor) for step in steps for anchor in _ANCHORS]
    along_either = [pair for axis in axes for pair in ((UNSTRETCHED[0], axis), (axis, UNSTRETCHED[1]))]
    return [*((axis, axis) for axis in axes), *along_either]


def _vary(stretch: Stretch, axis: int, changes: Sequence[float], anchors: Sequence[float]) -> Iterator[Stretch]:
    """Return stretches with slightly other ratios along an axis, from some places."""
    for change in (0.0, *changes, *(-change for change in changes)):
        for anchor in anchors:
            varied = stretch[axis][0] * (1 + change), anchor
            yield (varied, stretch[1]) if axis == 0 else (stretch[0], varied)


def undo_stretch(pixels: Array, stretch: Stretch) -> Array:
    """Return pixels at their true places; those at the edge fill what lies outside."""
    rows, columns = (_place(side, side, axis) for side, axis in zip(pixels.shape, stretch))
    return np.ascontiguousarray(pixels[rows][:, columns])


@lru_cache(maxsize=1024)
def _place(side: int, points: int, axis: Tuple[float, float]) -> Array:
    """Return the places along a stretched side of points that are evenly spread over the true one."""
    ratio, anchor = axis
    shares = (np.arange(points) + 0.5) / points
    places: Array = np.floor(side * (anchor + (shares - anchor) * ratio)).astype(np.int64)
    return np.clip(places, 0, side - 1)


#: The maximum number of points along a side of the truth, of those that sift stretches, of those along a side of the
#: prediction, and of labels that are told apart.
_POINTS, _FEW_POINTS, _MORE_POINTS, _MOST_LABELS = 40, 24, 160, 32


class Grids:
    """Points of a true and a predicted map, and how well their segments agree, whatever their labels."""

    def __init__(self, truth: Array, predicted: Array) -> None:
        self._truth, self._few = (_number_labels(_spread(truth, points)) for points in (_POINTS, _FEW_POINTS))
        self._predicted = _number_labels(_spread(predicted, _MORE_POINTS))

    def agree(self, stretches: Sequence[Stretch]) -> Array:
        """Return the Rand indices of the prediction at its true places, adjusted for chance."""
        return self._compare(self._truth, stretches)

    def sift(self, stretches: Sequence[Stretch]) -> Array:
        """Return the same of fewer points."""
        return self._compare(self._few, stretches)

    def _compare(self, true: Array, stretches: Sequence[Stretch]) -> Array:
        rows, columns = (
            np.stack([_place(side, points, axis) for axis in axes])
            for side, points, axes in zip(self._predicted.shape, true.shape, zip(*stretches))
        )
        shape = len(stretches), int(true.max()) + 1, int(self._predicted.max()) + 1
        labels = self._predicted[rows[:, :, None], columns[:, None]]
        labels += true * shape[2]
        labels += (np.arange(shape[0]) * (shape[1] * shape[2]))[:, None, None]
        tables = np.bincount(labels.reshape(-1), minlength=shape[0] * shape[1] * shape[2]).reshape(shape)
        both, of_prediction = _add_squares(tables.reshape(shape[0], -1)), _add_squares(tables.sum(axis=1))
        of_truth = int(np.square(np.bincount(true.reshape(-1))).sum())
        by_chance, maximum = of_truth * of_prediction / (true.size * true.size), (of_truth + of_prediction) / 2
        possible = maximum - by_chance
        return np.where(possible > 0, (both - by_chance) / np.where(possible > 0, possible, 1), 0.0)


def _spread(pixels: Array, points: int) -> Array:
    rows, columns = (_place(side, min(points, side), UNSTRETCHED[0]) for side in pixels.shape)
    return np.ascontiguousarray(pixels[rows][:, columns])


def _number_labels(pixels: Array) -> Array:
    """Return the rank of each label by its frequency; all rare ones have the last."""
    labels = np.sort(pixels, axis=None)
    starts = np.flatnonzero(np.append(True, labels[1:] != labels[:-1]))
    order = np.argsort(-np.diff(starts, append=len(labels)), kind="stable")
    ranks = np.minimum(np.argsort(order, kind="stable"), _MOST_LABELS - 1)
    numbers: Array = ranks[np.searchsorted(labels[starts], pixels)]
    return numbers


def _add_squares(tables: Array) -> Array:
    sums: Array = (tables * tables).sum(axis=1)
    return sums
