"""The kernel's functions on matched masks: who gets which instance, and the points of curves."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Tuple

import numpy as np

from .kernel_runs import FINE
from .masks import Array


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
    sent, real = (np.ascontiguousarray(column, np.int64) for column in (close.sent, close.real))
    iou, levels = (np.ascontiguousarray(column, np.float64) for column in (close.iou, reached))
    bits, ignored = np.ascontiguousarray(kinds, np.uint8), np.array(outside, np.uint64)
    matched = np.zeros(len(ignored), np.uint64)
    status = loaded.sj_match(
        sent.ctypes.data, real.ctypes.data, iou.ctypes.data, len(sent), bits.ctypes.data, len(bits),
        levels.ctypes.data, len(levels), areas, len(ignored), matched.ctypes.data, ignored.ctypes.data,
    )  # fmt: skip
    if status != FINE:
        raise ValueError(f"the kernel says {status}")
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
    true, counted = (np.ascontiguousarray(words, np.uint64) for words in (ranked.true, ranked.counted))
    rank, least = np.ascontiguousarray(ranked.rank, np.uint32), np.ascontiguousarray(needed, np.int64)
    points, found = np.zeros((thresholds, len(least), 2), np.int64), np.zeros(thresholds, np.int64)
    status = loaded.sj_curve(
        true.ctypes.data, counted.ctypes.data, rank.ctypes.data, len(rank), cap, shift, thresholds,
        least.ctypes.data, len(least), points.ctypes.data, found.ctypes.data,
    )  # fmt: skip
    if status != FINE:
        raise ValueError(f"the kernel says {status}")
    return points, found


def curves_without(
    ranked: RankedBits, group: Array, shift: int, thresholds: int, needed: Array, loaded: ctypes.CDLL
) -> Tuple[Array, Array]:
    """Return what `curve` does by groups of detections, each of which is left out in turn.

    `needed` says for each group how many true detections each recall takes without it.
    """
    true, counted = (np.ascontiguousarray(words, np.uint64) for words in (ranked.true, ranked.counted))
    member, least = np.ascontiguousarray(group, np.uint8), np.ascontiguousarray(needed, np.int64)
    groups, recalls = least.shape
    points, found = np.zeros((groups, thresholds, recalls, 2), np.int64), np.zeros((groups, thresholds), np.int64)
    status = loaded.sj_curves_without(
        true.ctypes.data, counted.ctypes.data, member.ctypes.data, len(member), shift, thresholds, groups,
        least.ctypes.data, recalls, points.ctypes.data, found.ctypes.data,
    )  # fmt: skip
    if status != FINE:
        raise ValueError(f"the kernel says {status}")
    return points, found
