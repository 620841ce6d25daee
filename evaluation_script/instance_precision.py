"""Average precision as the COCO API computes it, to the last bit."""

from __future__ import annotations

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
    """Detections matched once, from which the curves of all images or of a resampling of them are drawn."""

    def __init__(self, counts: InstanceCounts, categories: int, caps: Sequence[int]) -> None:
        self._truth, self._caps, self._categories = counts.truth, caps, categories
        found = counts.detections
        order = by_falling_score(
            found["score"], found["category"]
        )  # of equal scores the first image's, the first there
        self._bounds = np.searchsorted(found["category"][order], np.arange(categories + 1))
        self._image, self._rank = found["image"][order], found["rank"][order]
        self._counted = ~found["ignored"][order]
        self._true = found["matched"][order] & self._counted

    def curves(self, pairs: Sequence[Pair], weight: Optional[Array] = None) -> Curves:
        """Return the curves of every category, for these pairs; images may weigh more or less."""
        shape = (len(THRESHOLDS), len(RECALLS), self._categories, len(AREAS), len(self._caps))
        precision = -np.ones(shape)
        recall = -np.ones((shape[0], *shape[2:]))
        counts = self._instances(weight)
        for category in np.flatnonzero(counts.any(axis=1)).tolist():
            members = slice(self._bounds[category], self._bounds[category + 1])
            ranked = RankedBits(self._true[members], self._counted[members], self._rank[members])
            weights = None if weight is None else weight[self._image[members]]
            for area, cap in pairs:
                if counts[category, area]:
                    drawn = (precision[:, :, category, area, cap], recall[:, category, area, cap])
                    _draw_curve(ranked, (area, self._caps[cap]), weights, float(counts[category, area]), drawn)
        return Curves(precision, recall)

    def _instances(self, weight: Optional[Array]) -> Array:
        """Return how many instances of each category count in each range of areas."""
        category, weights = self._truth["category"], 1.0 if weight is None else weight[self._truth["image"]]
        columns = (self._truth["counted"][:, area] * weights for area in range(len(AREAS)))
        return np.stack([np.bincount(category, column, self._categories) for column in columns], axis=1)


def reported_pairs(caps: Sequence[int]) -> List[Pair]:
    """Return the pairs that the statistics read."""
    last = len(caps) - 1
    return [(0, cap) for cap in range(len(caps))] + [(area, last) for area in range(1, len(AREAS))]


def _draw_curve(
    ranked: RankedBits, pair: Pair, weight: Optional[Array], count: float, drawn: Tuple[Array, Array]
) -> None:
    """Fill in the precision and recall of one category at every threshold, for a range of areas and a cap."""
    area, cap = pair
    library = kernel.library()
    if weight is None and library is not None:
        _draw_by_kernel(ranked, pair, count, drawn, library)
        return
    taken = ranked.rank < cap
    true, counted = (_unpacked_bits(words[taken], area) for words in (ranked.true, ranked.counted))
    precision, recall = drawn
    precision[:] = 0.0
    recall[:] = 0.0
    if not true.shape[1]:
        return
    if weight is None:
        _draw_unweighted(true, counted, count, drawn)
        return
    weight = weight[taken]
    rising = np.cumsum(true * weight, axis=1).astype(float)
    false = np.cumsum((counted & ~true) * weight, axis=1).astype(float)
    reached = rising / count
    recall[:] = reached[:, -1]
    exact = rising / (false + rising + np.spacing(1))
    envelope = np.maximum.accumulate(exact[:, ::-1], axis=1)[:, ::-1]
    for row in range(len(true)):
        indices = np.searchsorted(reached[row], RECALLS, side="left")
        inside = indices < len(reached[row])
        precision[row, inside] = envelope[row, indices[inside]]


def _unpacked_bits(words: Array, area: int) -> Array:
    """Return the flags (thresholds, detections) of one range of areas."""
    shifts = np.arange(area * len(THRESHOLDS), (area + 1) * len(THRESHOLDS), dtype=np.uint64)
    flags: Array = (words >> shifts[:, None]) & np.uint64(1) != 0
    return flags


def _draw_by_kernel(ranked: RankedBits, pair: Pair, count: float, drawn: Tuple[Array, Array], library: CDLL) -> None:
    """Do the same where all images weigh the same."""
    area, cap = pair
    points, found = kernel_matches.curve(
        ranked, cap, area * len(THRESHOLDS), len(THRESHOLDS), _needed(int(count)), library
    )
    precision, recall = drawn
    precision[:] = points[..., 0] / (points[..., 1] + np.spacing(1))
    recall[:] = found / count


@lru_cache(maxsize=1024)
def _needed(count: int) -> Array:
    """Return how many of so many instances must be found to reach each recall."""
    needed: Array = np.searchsorted(np.arange(1, count + 1) / count, RECALLS, side="left") + 1
    return needed


def _draw_unweighted(true: Array, counted: Array, count: float, drawn: Tuple[Array, Array]) -> None:
    """Do the same without the kernel, from the true detections alone: recall and precision peak there."""
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
