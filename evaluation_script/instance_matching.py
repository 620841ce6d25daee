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


#: Indices of the detections and the instances of one image and category.
Group = Tuple[Array, Array]
#: The IoU of each pair of each group, group by group, detection by detection.
Overlap = Callable[[List[Group]], Array]


@dataclass(frozen=True)
class Matches:
    """Detections by image, category and falling score, with their rank there and what they were matched with."""

    order: Array
    rank: Array
    #: (areas, thresholds, detections): matched with an instance.
    matched: Array
    #: (areas, thresholds, detections): counts neither for nor against.
    ignored: Array


def match(truth: Instances, detections: Detections, cap: int, overlap: Overlap) -> Matches:
    """Match the detections that are among the first of their image and category."""
    order = np.lexsort((-detections.score, detections.category, detections.image))
    rank = rank_in_group(detections.category[order], detections.image[order])
    order, rank = order[rank < cap], rank[rank < cap]
    category, image, area = detections.category[order], detections.image[order], detections.area[order]
    outside = np.array([(area < low) | (area > high) for low, high in RANGES])
    ignored = np.repeat(outside[:, None], len(THRESHOLDS), axis=1)
    matched = np.zeros_like(ignored)
    ignored_instances = truth.ignored()
    groups = list(_Groups(truth, category, image, area))
    ious = overlap([(order[members], instances) for members, instances in groups])
    special = _with_choice(groups, ious, truth.crowd)
    stop = 0
    for (members, instances), is_special in zip(groups, special.tolist()):
        start, stop = stop, stop + len(members) * len(instances)
        if is_special:
            table = ious[start:stop].reshape(len(members), len(instances))
            for index in range(len(RANGES)):
                group = _Group(truth, instances, ignored_instances[index])
                group.match(table, members, matched[index], ignored[index])
    pairs = _clear_pairs(groups, ious, special)
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


def _sizes(groups: List[Group]) -> Tuple[Array, Array]:
    """Return how many detections and instances each group has."""
    detections = np.fromiter((len(members) for members, _ in groups), np.int64, len(groups))
    instances = np.fromiter((len(instances) for _, instances in groups), np.int64, len(groups))
    return detections, instances


def _with_choice(groups: List[Group], ious: Array, crowd: Array) -> Array:
    """Return which groups have a crowd, or a detection that overlaps several instances by half."""
    detections, instances = _sizes(groups)
    rows = np.repeat(instances, detections)  # of each detection, how many instances its group has
    row = np.repeat(np.arange(len(rows)), rows)
    several = np.bincount(row[ious >= REACHED[0]], minlength=len(rows)) > 1
    group_of_row = np.repeat(np.arange(len(groups)), detections)
    special = np.bincount(group_of_row[several], minlength=len(groups)) > 0
    if crowd.any():
        special |= np.array([bool(crowd[members].any()) for _, members in groups], bool)
    return special


@dataclass(frozen=True)
class _Pairs:
    """Overlaps of at least a half, where no detection had a choice, by detection."""

    detections: Array
    instances: Array
    ious: Array


def _clear_pairs(groups: List[Group], ious: Array, special: Array) -> _Pairs:
    """Return the pairs of all groups that are not special."""
    detections, instances = _sizes(groups)
    nothing = np.zeros(0, np.int64)
    all_detections = np.concatenate([nothing, *(members for members, _ in groups)])
    all_instances = np.concatenate([nothing, *(members for _, members in groups)])
    rows = np.repeat(instances, detections)
    row = np.repeat(np.arange(len(rows)), rows)
    first_row, first_instance = (np.cumsum(sizes) - sizes for sizes in (detections, instances))
    group = np.repeat(np.arange(len(groups)), detections * instances)
    taken = np.flatnonzero((ious >= REACHED[0]) & ~special[group])
    row, group = row[taken], group[taken]
    start = (np.cumsum(detections * instances) - detections * instances)[group]
    column = taken - start - (row - first_row[group]) * instances[group]
    chosen = all_detections[row]
    order = np.argsort(chosen, kind="stable")
    return _Pairs(chosen[order], all_instances[first_instance[group] + column][order], ious[taken][order])


def _match_in_order(
    pairs: _Pairs, truth: Instances, ignored_instances: List[Array], matched: Array, ignored: Array
) -> None:
    """Give each instance, at each threshold, to the first detection that reaches it."""
    detections, instances, ious = pairs.detections, pairs.instances, pairs.ious
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
