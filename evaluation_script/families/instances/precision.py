"""Average precision as the COCO API computes it, to the last bit, and without each group of images."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Dict, List, Optional, Sequence, Tuple

import numpy as np

from ...masks import kernel
from ...masks.kernel_matches import RankedBits, curve, curves_without
from ...masks.stack import Array
from .counts import InstanceCounts, by_falling_score
from .protocols import AREAS, FREQUENCIES, OCCLUSIONS, THRESHOLDS, InstanceProtocol

#: Precision is read off at these recalls.
RECALLS = np.linspace(0.0, 1.0, 101)

#: Index of a range of areas, index of a number of detections.
Pair = Tuple[int, int]

#: Metrics by name; None where there is nothing to average.
Averages = Dict[str, Optional[float]]


@dataclass(frozen=True)
class Curves:
    """Precision (thresholds, recalls, categories, areas, caps) and the recall reached; -1 where there is no truth."""

    precision: Array
    recall: Array


class MatchedDetections:
    """Detections matched once, from which curves are drawn."""

    def __init__(self, counts: InstanceCounts, categories: int, caps: Sequence[int]) -> None:
        self.truth, self.caps, self.categories = counts.truth, caps, categories
        found = counts.detections
        order = by_falling_score(
            found["score"], found["category"]
        )  # of equal scores the first image's, the first there
        self._bounds = np.searchsorted(found["category"][order], np.arange(categories + 1))
        self._image, self._rank = found["image"][order], found["rank"][order]
        self._counted = ~found["ignored"][order]
        self._true = found["matched"][order] & self._counted

    def curves(self, pairs: Sequence[Pair]) -> Curves:
        """Return the curves of every category, for these pairs."""
        shape = (len(THRESHOLDS), len(RECALLS), self.categories, len(AREAS), len(self.caps))
        precision = -np.ones(shape)
        recall = -np.ones((shape[0], *shape[2:]))
        (counts,) = self.instances(np.zeros(int(self.truth["image"].max(initial=0)) + 1, np.int64), 1)
        for category in np.flatnonzero(counts.any(axis=1)).tolist():
            ranked = self.of(category)
            for area, cap in pairs:
                count = int(counts[category, area])
                if count:
                    points, found = _points(ranked, area, self.caps[cap], _needed(count))
                    precision[:, :, category, area, cap], recall[:, category, area, cap] = points, found / count
        return Curves(precision, recall)

    def without_each(self, pairs: Sequence[Pair], group: Array, groups: int) -> List[Curves]:
        """Return the curves without each group of images; of precision the mean over all recalls stands for each."""
        shape = (groups, len(THRESHOLDS), self.categories, len(AREAS), len(self.caps))
        precision, recall = -np.ones(shape), -np.ones(shape)
        counts = self.instances(group, groups)
        counts = counts.sum(axis=0) - counts
        for category in np.flatnonzero(counts.any(axis=(0, 2))).tolist():
            ranked = self.of(category)
            for area, cap in pairs:
                left = counts[:, category, area]
                if left.any():
                    members, least = ranked.within(self.caps[cap]), np.stack([_needed(int(count)) for count in left])
                    points, found = _points_without_each(members, group[members.image], area, least)
                    some = left > 0
                    precision[some, :, category, area, cap] = points[some].mean(axis=2)
                    recall[some, :, category, area, cap] = found[some] / left[some, None]
        return [Curves(precision[number][:, None], recall[number]) for number in range(groups)]

    def of(self, category: int) -> RankedBits:
        """Return the detections of a category by falling score."""
        members = slice(self._bounds[category], self._bounds[category + 1])
        return RankedBits(self._true[members], self._counted[members], self._rank[members], self._image[members])

    def instances(self, group: Array, groups: int) -> Array:
        """Return how many instances count (groups of images, categories, ranges of areas)."""
        shape = (groups, self.categories)
        index = group[self.truth["image"]] * self.categories + self.truth["category"]
        columns = (self.truth["counted"][:, area] for area in range(len(AREAS)))
        return np.stack([np.bincount(index, one, math.prod(shape)).reshape(shape) for one in columns], axis=2)


def reported_pairs(caps: Sequence[int]) -> List[Pair]:
    """Return the pairs that the statistics read."""
    last = len(caps) - 1
    return [(0, cap) for cap in range(len(caps))] + [(area, last) for area in range(1, len(AREAS))]


def _points(ranked: RankedBits, area: int, cap: int, least: Array) -> Tuple[Array, Array]:
    """Return precision (thresholds, recalls) of one category, for a range of areas and a cap, and how many are true.

    `least` says how many true detections each recall takes.
    """
    library, thresholds = kernel.library(), len(THRESHOLDS)
    if library is not None:
        points, found = curve(ranked, cap, area * thresholds, thresholds, least, library)
        return points[..., 0] / (points[..., 1] + np.spacing(1)), found
    true, counted = _flags_of(ranked.within(cap), area)
    rows, columns = np.nonzero(true)
    seen = np.split(np.cumsum(counted, axis=1, dtype=np.int32)[rows, columns], np.cumsum(true.sum(axis=1))[:-1])
    precision = np.zeros((thresholds, len(least)))
    for row, counts in enumerate(seen):  # from the true detections alone: precision peaks there
        exact = np.arange(1, len(counts) + 1) / (counts + np.spacing(1))
        envelope = np.maximum.accumulate(exact[::-1])[::-1]
        reached = least[least <= len(counts)]
        precision[row, : len(reached)] = envelope[reached - 1]
    return precision, np.array(list(map(len, seen)))


def _points_without_each(ranked: RankedBits, group: Array, area: int, least: Array) -> Tuple[Array, Array]:
    """Return precision (groups, thresholds, recalls) of one category without each group, and how many are true.

    `least` says for each group how many true detections each recall takes without it.
    """
    library, thresholds = kernel.library(), len(THRESHOLDS)
    if library is not None:
        points, right = curves_without(ranked, group, area * thresholds, thresholds, least, library)
        return points[..., 0] / (points[..., 1] + np.spacing(1)), right
    true, counted = _flags_of(ranked, area)
    groups, width = len(least), int(true.sum(axis=1).max()) + 2
    #: The place, among those that are true at the threshold, of the next one from each detection on.
    place = np.cumsum(true, axis=1) - true

    def without(flags: Array) -> Array:
        """Return how many are flagged up to each place (thresholds, places, groups), those of a group left out."""
        rows, columns = np.nonzero(flags)
        index = (rows * width + place[rows, columns]) * groups + group[columns]
        inside = np.bincount(index, minlength=thresholds * width * groups).reshape(thresholds, width, groups)
        inside = np.cumsum(inside, axis=1)
        total: Array = inside.sum(axis=2, keepdims=True) - inside
        return total

    found, seen = without(true), without(counted)
    rows, columns = np.nonzero(true)
    places = place[rows, columns]
    one, other = np.nonzero(group[columns][:, None] != np.arange(groups))
    at = found[rows[one], places[one], other]
    #: By how many are found: precision there, then the best from there on.
    best = np.zeros((groups, thresholds, width))
    best[other, rows[one], at] = at / (seen[rows[one], places[one], other] + np.spacing(1))
    best = np.maximum.accumulate(best[..., ::-1], axis=2)[..., ::-1]
    return np.take_along_axis(best, np.minimum(least, width - 1)[:, None], axis=2), found[:, -1].T


def _flags_of(ranked: RankedBits, area: int) -> Tuple[Array, Array]:
    """Return the flags (thresholds, detections) of one range of areas: which are true, and which are counted."""
    shifts = np.arange(area * len(THRESHOLDS), (area + 1) * len(THRESHOLDS), dtype=np.uint64)[:, None]
    true, counted = ((words >> shifts) & np.uint64(1) != 0 for words in (ranked.true, ranked.counted))
    return true, counted


@lru_cache(maxsize=1024)
def _needed(count: int) -> Array:
    """Return how many of so many instances must be found to reach each recall."""
    count = max(count, 1)
    found: Array = np.clip(np.ceil(RECALLS * count) - 1, 1, count).astype(np.int64)
    for _ in range(2):  # what rounding may be off
        found += found / count < RECALLS
    return found


def averages(curves: Curves, protocol: InstanceProtocol, frequencies: Sequence[str]) -> Averages:
    """Return the statistics; of each category the frequency is given, or nothing."""
    caps, count = protocol.detections, len(frequencies)
    sizes, hidden = list(enumerate(AREAS))[1:], list(enumerate(OCCLUSIONS))[1:] if protocol.occlusion else []
    last = len(caps) - 1
    precision, recall = curves.precision[:, :, :count], curves.recall[:, :count]
    by_occlusion = curves.precision[:, :, count:], curves.recall[:, count:]
    groups = [(name, [one == name for one in frequencies]) for name in FREQUENCIES] if protocol.federated else []
    values = {
        "AP": _mean(precision[:, :, :, 0, last]),
        "AP50": _mean(precision[0, :, :, 0, last]),
        "AP75": _mean(precision[5, :, :, 0, last]),
        **{f"AP{name}": _mean(precision[:, :, :, area, last]) for area, name in sizes},
        **{f"AP{name}": _mean(by_occlusion[0][:, :, :, area, last]) for area, name in hidden},
        **{f"AP{name}": _mean(precision[:, :, members, 0, last]) for name, members in groups},
        **{f"AR@{most}": _mean(recall[:, :, 0, cap]) for cap, most in enumerate(caps)},
        **{f"AR{protocol.recall_of(name)}": _mean(recall[:, :, area, last]) for area, name in sizes},
        **{f"AR{name}": _mean(by_occlusion[1][:, :, area, last]) for area, name in hidden},
    }
    return {name: values[name] for name in protocol.metrics}


def category_averages(curves: Curves, category: int) -> Averages:
    """Return AP, AP50, AP75 and AR of one category, up to the last cap."""
    precision, recall = curves.precision[:, :, category, 0, -1], curves.recall[:, category, 0, -1]
    return {"AP": _mean(precision), "AP50": _mean(precision[0]), "AP75": _mean(precision[5]), "AR": _mean(recall)}


def _mean(values: Array) -> Optional[float]:
    present = values[values > -1]
    return float(np.mean(present)) if len(present) else None
