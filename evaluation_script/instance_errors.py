"""Instance metrics without each group of images, which the jackknife takes."""

from __future__ import annotations

from typing import Collection, Dict, List, Sequence, Tuple

import numpy as np

from . import kernel
from .instance_precision import Curves, MatchedDetections, Pair, averages, flags_of, needed, reported_pairs
from .instance_protocols import AREAS, THRESHOLDS, InstanceProtocol
from .jackknife import dealt
from .kernel_matches import RankedBits, curves_without
from .masks import Array


def without_groups(
    matching: MatchedDetections,
    images: int,
    protocol: InstanceProtocol,
    frequencies: Sequence[str],
    metrics: Collection[str],
) -> Dict[str, Array]:
    """Return these metrics, or all if there are none, without each group of images; nothing of a single image."""
    if images < 2:
        return {}
    group, caps = dealt(images), protocol.detections
    groups = int(group.max()) + 1
    read = {f"AR@{cap}": (0, number) for number, cap in enumerate(caps)}
    read.update(dict.fromkeys(("AP", "AP50", "AP75"), (0, len(caps) - 1)))
    few = metrics and read.keys() >= set(metrics)
    pairs = list({read[name] for name in metrics}) if few else reported_pairs(caps)
    without = [averages(curves, protocol, frequencies) for curves in _without_each(matching, pairs, group, groups)]
    return {name: np.array([values[name] for values in without], float) for name in metrics or protocol.metrics}


def _without_each(matching: MatchedDetections, pairs: Sequence[Pair], group: Array, groups: int) -> List[Curves]:
    """Return the curves without each group of images; of precision the mean over all recalls stands for each."""
    shape = (groups, len(THRESHOLDS), matching.categories, len(AREAS), len(matching.caps))
    precision, recall = -np.ones(shape), -np.ones(shape)
    counts = matching.instances(group, groups)
    counts = counts.sum(axis=0) - counts
    for category in np.flatnonzero(counts.any(axis=(0, 2))).tolist():
        ranked = matching.of(category)
        for area, cap in pairs:
            left = counts[:, category, area]
            if left.any():
                members, least = ranked.within(matching.caps[cap]), np.stack([needed(int(count)) for count in left])
                points, found = _points_without_each(members, group[members.image], area, least)
                some = left > 0
                precision[some, :, category, area, cap] = points[some].mean(axis=2)
                recall[some, :, category, area, cap] = found[some] / left[some, None]
    return [Curves(precision[number][:, None], recall[number]) for number in range(groups)]


def _points_without_each(ranked: RankedBits, group: Array, area: int, least: Array) -> Tuple[Array, Array]:
    """Return precision (groups, thresholds, recalls) of one category without each group, and how many are true.

    `least` says for each group how many true detections each recall takes without it.
    """
    library, thresholds = kernel.library(), len(THRESHOLDS)
    if library is not None:
        points, right = curves_without(ranked, group, area * thresholds, thresholds, least, library)
        return points[..., 0] / (points[..., 1] + np.spacing(1)), right
    true, counted = flags_of(ranked, area)
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
