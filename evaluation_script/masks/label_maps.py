"""Maps with a label for each pixel, and what two of them have in common."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional, Tuple

import numpy as np

from . import kernel, kernel_frames
from .stack import Array

#: A pair of labels is one number: that of the truth so many bits further up.
SHIFT = 25


@dataclass(frozen=True)
class LabelMap:
    """A number for each pixel, and the labels that they are indices of; without those they are the labels."""

    numbers: Array
    labels: Optional[Array] = None

    def at(self, pixels: Array) -> Array:
        """Return the labels of some pixels, counted row by row."""
        return self.labels_of(self.numbers.reshape(-1)[pixels])

    def labels_of(self, numbers: Array) -> Array:
        """Return the labels that these numbers stand for."""
        return numbers.astype(np.int64) if self.labels is None else self.labels[numbers]


@dataclass(frozen=True)
class LabelPairs:
    """Ids of the truth and of the prediction that lie over each other, and in how many pixels."""

    truth: Array
    prediction: Array
    pixels: Array


def summed(keys: Array, weights: Array) -> Tuple[Array, Array]:
    """Return the keys once each, and the sums of their weights."""
    unique, places = np.unique(keys, return_inverse=True)
    return unique, np.bincount(places, weights, len(unique)).astype(np.int64)


def pairs_of(keys: Array, weights: Array) -> LabelPairs:
    """Return the sums of the weights of pairs, whose keys hold both labels."""
    unique, pixels = summed(keys, weights)
    return LabelPairs(unique >> SHIFT, unique & ((1 << SHIFT) - 1), pixels)


def overlaps_of(truth: LabelMap, prediction: LabelMap) -> LabelPairs:
    """Return the pairs of two maps, counted by runs of pixels that have the same pair."""
    found = kernel_frames.label_pairs(truth.numbers, prediction.numbers, kernel.library())
    if found is not None:
        numbers, pixels = found
        return pairs_of((truth.labels_of(numbers[:, 0]) << SHIFT) | prediction.labels_of(numbers[:, 1]), pixels)
    one, two = truth.numbers.reshape(-1), prediction.numbers.reshape(-1)
    starts = np.flatnonzero(np.append(True, (one[1:] != one[:-1]) | (two[1:] != two[:-1])))
    lengths = np.diff(np.append(starts, one.size))
    return pairs_of((truth.at(starts) << SHIFT) | prediction.at(starts), lengths)
