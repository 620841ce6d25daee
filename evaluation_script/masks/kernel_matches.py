"""The kernel's functions on matched masks: who gets which instance, and the points of curves."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Tuple

import numpy as np

from .kernel_runs import require_fine
from .stack import Array


@dataclass(frozen=True)
class Overlapping:
    """Pairs of a detection and an instance, by detection, and their IoU."""

    sent: Array
    real: Array
    iou: Array

    def of(self, flags: Array) -> Overlapping:
        """Return some of the pairs."""
        return Overlapping(self.sent[flags], self.real[flags], self.iou[flags])


def match(
    close: Overlapping, kinds: Array, reached: Array, areas: int, outside: Array, loaded: ctypes.CDLL
) -> Tuple[Array, Array]:
    """Return words of bits for each detection: where it was matched, and where it counts neither for nor against.

    `kinds` has a bit for each range of areas in which an instance does not count, one for crowds and one for what
    cannot be matched; `outside` the bits in which a detection's own area does not count.
    """
    matched, ignored = np.zeros(len(outside), np.uint64), np.array(outside, np.uint64)
    require_fine(
        loaded.sj_match(
            close.sent, close.real, close.iou, len(close.sent), kinds, len(kinds), reached, len(reached), areas,
            len(ignored), matched, ignored,
        )
    )  # fmt: skip
    return matched, ignored


@dataclass(frozen=True)
class RankedBits:
    """The detections of one category by falling score: words of bits, the places in their images, and these."""

    true: Array
    counted: Array
    rank: Array
    image: Array

    def within(self, cap: int) -> RankedBits:
        """Return the first detections of each image, up to the cap."""
        taken = self.rank < cap
        return RankedBits(self.true[taken], self.counted[taken], self.rank[taken], self.image[taken])


def curve(
    ranked: RankedBits, cap: int, shift: int, thresholds: int, needed: Array, loaded: ctypes.CDLL
) -> Tuple[Array, Array]:
    """Return points (thresholds, recalls, 2) and how many detections are true at each threshold.

    The bits from `shift` on are those of the thresholds; `needed` says how many true detections each recall takes.
    A point's precision is its first number, of true detections, over its second, of those counted; zeros where the
    recall is not reached.
    """
    points, found = np.zeros((thresholds, len(needed), 2), np.int64), np.zeros(thresholds, np.int64)
    require_fine(
        loaded.sj_curve(
            ranked.true, ranked.counted, ranked.rank, len(ranked.rank), cap, shift, thresholds, needed, len(needed),
            points, found,
        )
    )  # fmt: skip
    return points, found


def curves_without(
    ranked: RankedBits, group: Array, shift: int, thresholds: int, needed: Array, loaded: ctypes.CDLL
) -> Tuple[Array, Array]:
    """Return what `curve` does by groups of detections, each of which is left out in turn.

    `needed` says for each group how many true detections each recall takes without it.
    """
    groups, recalls = needed.shape
    points, found = np.zeros((groups, thresholds, recalls, 2), np.int64), np.zeros((groups, thresholds), np.int64)
    require_fine(
        loaded.sj_curves_without(
            ranked.true, ranked.counted, group, len(group), shift, thresholds, groups, needed, recalls, points, found
        )
    )
    return points, found
