"""The overlap of two regions by their numbers of voxels, and each measure's value for empty ones."""

from __future__ import annotations

from typing import NamedTuple, Optional, Tuple

import numpy as np

from ...masks.backend import backend
from ...masks.stack import Array
from .boxes import Boxes, cut_slabs

#: The maximum number of pairs of labels in a table.
_MOST_PAIRS = 1 << 16


class Overlap(NamedTuple):
    """The voxels of a region: in the truth, in the prediction and in both."""

    truth: int
    prediction: int
    both: int

    @property
    def union(self) -> int:
        return self.truth + self.prediction - self.both

    @property
    def is_empty(self) -> bool:
        """Return True if neither side has the region."""
        return self.union == 0

    @property
    def dice(self) -> Optional[float]:
        """2 both / (truth + prediction); None if both are empty."""
        return None if self.is_empty else 2 * self.both / (self.truth + self.prediction)

    @property
    def iou(self) -> Optional[float]:
        """Both / union; None if both are empty."""
        return None if self.is_empty else self.both / self.union

    @property
    def recall(self) -> Optional[float]:
        """Both / truth; None if the truth is empty."""
        return self.both / self.truth if self.truth else None

    @property
    def precision(self) -> Optional[float]:
        """Both / prediction; None if the prediction is empty."""
        return self.both / self.prediction if self.prediction else None

    @property
    def volume_similarity(self) -> Optional[float]:
        """1 - |truth - prediction| / (truth + prediction); None if both are empty."""
        if self.is_empty:
            return None
        return 1 - abs(self.truth - self.prediction) / (self.truth + self.prediction)


def count_overlap(truth: Array, prediction: Array) -> Overlap:
    """Return the overlap of two masks (z, y, x)."""
    both = sum(int(np.count_nonzero(truth[planes] & prediction[planes])) for planes in cut_slabs(truth.shape))
    return Overlap(int(np.count_nonzero(truth)), int(np.count_nonzero(prediction)), both)


def count_pairs(truth: Array, prediction: Array, sides: Tuple[Boxes, Boxes]) -> Optional[Array]:
    """Return how many voxels have each label of the truth (rows) and of the prediction, given the boxes of both.

    None if no kernel counts them, or if the table would be large.
    """
    kernel = backend().kernel
    rows, columns = (max(side.labels, default=0) + 1 for side in sides)
    if (
        not kernel
        or rows * columns > min(truth.size, _MOST_PAIRS)
        or {truth.dtype.kind, prediction.dtype.kind} != {"u"}
    ):
        return None
    return kernel.label_table(truth, prediction, (rows, columns))


def find_overlap(pairs: Array, sides: Tuple[Boxes, Boxes], chosen: Tuple[int, ...]) -> Overlap:
    """Return the overlap of a region, given the voxels of all pairs of labels."""
    truth, prediction = (int(side.voxels[list(chosen)].sum()) for side in sides)
    rows, columns = ([label for label in chosen if label < end] for end in pairs.shape)
    return Overlap(truth, prediction, int(pairs[np.ix_(rows, columns)].sum()))
