"""Detections matched with instances as the COCO API matches them, for all images at once.

A detection rarely overlaps more than one instance by half, so almost all of the
matching is: the first detection that reaches a threshold gets the instance.
Only where a detection could choose, or crowds are about, the greedy loop of the
original runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Callable, Iterator, List, Tuple

import numpy as np

from .instance_protocols import AREAS, THRESHOLDS
from .masks import Array

#: What a detection must reach: never quite 1, as in the original.
REACHED = np.minimum(np.array(THRESHOLDS), 1 - 1e-10)

RANGES = np.array(list(AREAS.values()), float)


@dataclass(frozen=True)
class Instances:
    """The truth, one entry for each instance: indices of image and category, and what matching needs."""

    image: Array
    category: Array
    #: As the annotation says: it decides between small, medium and large.
    area: Array
    #: As it is compared: pixels of the mask, or of the box.
    extent: Array
    crowd: Array
    #: It cannot be matched (the original's trouble with id 0).
    unmatchable: Array

    def ignored(self) -> List[Array]:
        """Return for each range of areas which instances do not count."""
        return [self.crowd | (self.area < low) | (self.area > high) for low, high in RANGES]


@dataclass(frozen=True)
class Detections:
    """What was sent, in the order of the file."""

    image: Array
    category: Array
    area: Array
    score: Array


#: Overlap of some detections with some instances of one image and category: (detections, instances) → IoU.
Overlap = Callable[[Array, Array], Array]


@dataclass(frozen=True)
class Matches:
    """Detections by category, image and falling score, with their rank there and what they were matched with."""

    order: Array
    rank: Array
    #: (areas, thresholds, detections): matched with an instance.
    matched: Array
    #: (areas, thresholds, detections): counts neither for nor against.
    ignored: Array


def match(truth: Instances, detections: Detections, cap: int, overlap: Overlap) -> Matches:
    """Match the detections that are among the first of their image and category."""
    order = np.lexsort((-detections.score, detections.image, detections.category))
    rank = rank_in_group(detections.category[order], detections.image[order])
    order, rank = order[rank < cap], rank[rank < cap]
    category, image, area = detections.category[order], detections.image[order], detections.area[order]
    outside = np.array([(area < low) | (area > high) for low, high in RANGES])
    ignored = np.repeat(outside[:, None], len(THRESHOLDS), axis=1)
    matched = np.zeros_like(ignored)
    ignored_instances = truth.ignored()
    crowds = bool(truth.crowd.any())
    pairs = _Pairs()
    for members, instances in _Groups(truth, category, image, area):
        ious = overlap(order[members], instances)
        choice = len(instances) > 1 and ((ious >= REACHED[0]).sum(axis=1) > 1).any()
        if choice or (crowds and truth.crowd[instances].any()):
            for index in range(len(RANGES)):
                group = _Group(truth, instances, ignored_instances[index])
                group.match(ious, members, matched[index], ignored[index])
        else:
            pairs.add(members, instances, ious)
    _match_in_order(pairs, truth, ignored_instances, matched, ignored)
    return Matches(order, rank, matched, ignored)


def rank_in_group(*keys: Array) -> Array:
    """Return the position of each entry in its group: neighbours with the same keys."""
    indices = np.arange(len(keys[0]))
    first = np.ones(len(indices), bool)
    first[1:] = np.any([key[1:] != key[:-1] for key in keys], axis=0)
    ranks: Array = indices - np.maximum.accumulate(np.where(first, indices, 0))
    return ranks


class _Groups:
    """Images and categories that have both truth and detections that might overlap by half."""

    def __init__(self, truth: Instances, category: Array, image: Array, extent: Array) -> None:
        images = int(max(truth.image.max(initial=0), image.max(initial=0))) + 1
        key = truth.category.astype(np.int64) * images + truth.image
        self._instances = np.argsort(key, kind="stable")
        self._instance_keys = key[self._instances]
        self._keys = category.astype(np.int64) * images + image
        # The overlap with a crowd is another fraction, which sizes do not bound.
        with_crowd = np.isin(self._keys, key[truth.crowd])
        self._likely = np.flatnonzero(_similar_in_size(key, truth.extent, self._keys, extent) | with_crowd)

    def __iter__(self) -> Iterator[Tuple[Array, Array]]:
        """Yield indices of detections and instances, group by group."""
        keys = self._keys[self._likely]
        starts = np.flatnonzero(rank_in_group(keys) == 0)
        low = np.searchsorted(self._instance_keys, keys[starts], side="left").tolist()
        high = np.searchsorted(self._instance_keys, keys[starts], side="right").tolist()
        stops = [*starts[1:].tolist(), len(keys)]
        for start, stop, first, last in zip(starts.tolist(), stops, low, high):
            yield self._likely[start:stop], self._instances[first:last]


def _similar_in_size(key: Array, extent: Array, detection_key: Array, detection_extent: Array) -> Array:
    """Return which detections have an instance of half to twice their size in their group.

    The ratio of their sizes bounds their IoU.
    """
    if not len(key):
        return np.zeros(len(detection_key), bool)
    wide = 4.0 * max(float(extent.max(initial=0)), float(detection_extent.max(initial=0)), 1.0)
    sizes = np.sort(key * wide + extent)
    slack = 1e-3  # against rounding; this need not be exact
    index = np.searchsorted(sizes, detection_key * wide + detection_extent / 2 - slack)
    upper = detection_key * wide + 2 * detection_extent + slack
    near: Array = sizes[np.minimum(index, len(sizes) - 1)] <= upper
    return near & (index < len(sizes))


class _Pairs:
    """Overlaps of at least a half, where no detection had a choice."""

    def __init__(self) -> None:
        nothing = np.zeros(0, int)
        self._parts: List[Tuple[Array, Array, Array]] = [(nothing, nothing, np.zeros(0))]

    def add(self, detections: Array, instances: Array, ious: Array) -> None:
        """Keep the pairs of one group, detections in order of score."""
        rows, columns = np.nonzero(ious >= REACHED[0])
        if len(rows):
            self._parts.append((detections[rows], instances[columns], ious[rows, columns]))

    def joined(self) -> Tuple[Array, Array, Array]:
        """Return detections, instances and IoU of every pair, by detection."""
        detections, instances, ious = map(np.concatenate, zip(*self._parts))
        order = np.argsort(detections, kind="stable")
        return detections[order], instances[order], ious[order]


def _match_in_order(
    pairs: _Pairs, truth: Instances, ignored_instances: List[Array], matched: Array, ignored: Array
) -> None:
    """Give each instance, at each threshold, to the first detection that reaches it."""
    detections, instances, ious = pairs.joined()
    for row, threshold in enumerate(REACHED):
        reached = ious >= threshold
        taken, first = np.unique(instances[reached], return_index=True)
        winners = detections[reached][first]
        matched[:, row, winners] = ~truth.unmatchable[taken]
        for index, ignored_here in enumerate(ignored_instances):
            # Matched with an instance that does not count: ignored; else it counts whatever its own area.
            unmatchable = truth.unmatchable[taken] & ignored[index, row, winners]
            ignored[index, row, winners] = ignored_here[taken] | unmatchable


class _Group:
    """The instances of one image and category where detections have a choice, those that count first."""

    def __init__(self, truth: Instances, instances: Array, ignored: Array) -> None:
        self._order = np.argsort(ignored[instances], kind="stable")
        chosen = instances[self._order]
        self._ignored: List[bool] = ignored[chosen].tolist()
        self._crowd: List[bool] = truth.crowd[chosen].tolist()
        self._unmatchable: List[bool] = truth.unmatchable[chosen].tolist()

    def match(self, ious: Array, detections: Array, matched: Array, ignored: Array) -> None:
        """Run the original's loop: each detection takes the best instance left."""
        table = ious[:, self._order].tolist()
        for row, threshold in enumerate(REACHED.tolist()):
            taken = [False] * len(self._ignored)
            for detection, overlaps in zip(detections.tolist(), table):
                best = self._best(overlaps, threshold, taken)
                if best >= 0:
                    taken[best] = True
                    unmatchable = self._unmatchable[best]
                    matched[row, detection] = not unmatchable
                    ignored[row, detection] = self._ignored[best] or (unmatchable and ignored[row, detection])

    def _best(self, overlaps: List[float], reached: float, taken: List[bool]) -> int:
        best = -1
        for column, iou in enumerate(overlaps):
            if taken[column] and not self._crowd[column]:
                continue
            if best > -1 and not self._ignored[best] and self._ignored[column]:
                break
            if iou >= reached:
                best, reached = column, iou
        return best
