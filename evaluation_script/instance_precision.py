"""Average precision as the COCO API computes it, to the last bit."""

from __future__ import annotations

import math
from ctypes import CDLL
from dataclasses import dataclass
from functools import lru_cache
from typing import Dict, List, Optional, Sequence, Tuple

import numpy as np

from . import kernel, kernel_matches
from .instance_counts import InstanceCounts, by_falling_score
from .instance_protocols import AREAS, FREQUENCIES, OCCLUSIONS, THRESHOLDS, InstanceProtocol
from .kernel_matches import RankedBits
from .masks import Array

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
                if counts[category, area]:
                    drawn = (precision[:, :, category, area, cap], recall[:, category, area, cap])
                    _draw_curve(ranked, (area, self.caps[cap]), float(counts[category, area]), drawn)
        return Curves(precision, recall)

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


def _draw_curve(ranked: RankedBits, pair: Pair, count: float, drawn: Tuple[Array, Array]) -> None:
    """Fill in the precision and recall of one category at every threshold, for a range of areas and a cap."""
    area, cap = pair
    library = kernel.library()
    if library is not None:
        _draw_by_kernel(ranked, pair, count, drawn, library)
        return
    precision, recall = drawn
    precision[:] = 0.0
    recall[:] = 0.0
    true, counted = flags_of(ranked.within(cap), area)
    if true.shape[1]:
        _draw_without_kernel(true, counted, count, drawn)


def flags_of(ranked: RankedBits, area: int) -> Tuple[Array, Array]:
    """Return the flags (thresholds, detections) of one range of areas: which are true, and which are counted."""
    shifts = np.arange(area * len(THRESHOLDS), (area + 1) * len(THRESHOLDS), dtype=np.uint64)[:, None]
    true, counted = ((words >> shifts) & np.uint64(1) != 0 for words in (ranked.true, ranked.counted))
    return true, counted


def _draw_by_kernel(ranked: RankedBits, pair: Pair, count: float, drawn: Tuple[Array, Array], library: CDLL) -> None:
    """Do the same with the kernel."""
    area, cap = pair
    points, found = kernel_matches.curve(
        ranked, cap, area * len(THRESHOLDS), len(THRESHOLDS), needed(int(count)), library
    )
    precision, recall = drawn
    precision[:] = points[..., 0] / (points[..., 1] + np.spacing(1))
    recall[:] = found / count


@lru_cache(maxsize=1024)
def needed(count: int) -> Array:
    """Return how many of so many instances must be found to reach each recall."""
    count = max(count, 1)
    found: Array = np.clip(np.ceil(RECALLS * count) - 1, 1, count).astype(np.int64)
    for _ in range(2):  # what rounding may be off
        found += found / count < RECALLS
    return found


def _draw_without_kernel(true: Array, counted: Array, count: float, drawn: Tuple[Array, Array]) -> None:
    """Do the same from the true detections alone: recall and precision peak there."""
    precision, recall = drawn
    rows, columns = np.nonzero(true)
    found = np.bincount(rows, minlength=len(true))
    recall[:] = found / count
    rank = np.arange(1, len(rows) + 1) - np.repeat(np.cumsum(found) - found, found)
    exact = rank / (np.cumsum(counted, axis=1, dtype=np.int32)[rows, columns] + np.spacing(1))
    indices = np.searchsorted(np.arange(1, found.max() + 1) / count, RECALLS, side="left")
    stop = 0
    for row, number in enumerate(found.tolist()):
        start, stop = stop, stop + number
        envelope = np.maximum.accumulate(exact[start:stop][::-1])[::-1]
        reached = int(np.searchsorted(indices, number))  # indices rise: recalls from there on are never reached
        precision[row, :reached] = envelope[indices[:reached]]


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
