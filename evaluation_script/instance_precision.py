"""Average precision as the COCO API computes it, to the last bit, for all images at once.

A detection rarely overlaps more than one instance by half, so almost all of the
matching is: the first detection that reaches a threshold gets the instance.
Only where a detection could choose, or crowds are about, the greedy loop of the
original runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple

import numpy as np

from .instance_protocols import AREAS, THRESHOLDS

Array = np.ndarray[Any, Any]

#: Precision is read off at these recalls.
RECALLS = np.linspace(0.0, 1.0, 101)

#: What a detection must reach: never quite 1, as in the original.
REACHED = np.minimum(np.array(THRESHOLDS), 1 - 1e-10)

RANGES = np.array(list(AREAS.values()), float)


@dataclass(frozen=True)
class Instances:
    """The truth, one entry for each instance: places of image and category, and what matching needs."""

    image: Array
    category: Array
    #: As the annotation says: it decides between small, medium and large.
    area: Array
    #: As it is compared: pixels of the mask, or of the box.
    extent: Array
    crowd: Array
    #: Cannot be matched (the original's trouble with id 0).
    lost: Array


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
class Curves:
    """Precision (thresholds, recalls, categories, areas, caps) and the recall reached; -1 where there is no truth."""

    precision: Array
    recall: Array


@dataclass(frozen=True)
class Matches:
    """Detections by category, image and falling score, with their rank there and what became of them."""

    order: Array
    rank: Array
    #: (areas, thresholds, detections): matched an instance.
    right: Array
    #: (areas, thresholds, detections): judged by nobody.
    ignored: Array


#: Which range of areas, which number of detections.
Pair = Tuple[int, int]


class Curver:
    """Matches once, then draws the curves of all images or of a resampling of them."""

    def __init__(
        self, truth: Instances, found: Detections, categories: int, caps: Sequence[int], overlap: Overlap
    ) -> None:
        self._truth, self._caps, self._categories = truth, caps, categories
        self._matches = _matched(truth, found, caps[-1], overlap)
        category = found.category[self._matches.order]
        self._bounds = np.searchsorted(category, np.arange(categories + 1))
        self._score = found.score[self._matches.order]
        self._image = found.image[self._matches.order]
        seen = np.zeros(categories, bool)
        seen[truth.category] = True
        seen[category] = True
        self.seen = np.flatnonzero(seen).tolist()

    def curves(self, wanted: Sequence[Pair], weight: Optional[Array] = None) -> Curves:
        """The curves of every category, for these pairs; images may weigh more or less."""
        shape = (len(THRESHOLDS), len(RECALLS), self._categories, len(RANGES), len(self._caps))
        precision = -np.ones(shape)
        recall = -np.ones((shape[0], *shape[2:]))
        matches = self._matches
        counted = self._counted(weight)
        for k in self.seen:
            part = np.arange(self._bounds[k], self._bounds[k + 1])
            part = part[np.argsort(-self._score[part], kind="stable")]
            for area, cap in wanted:
                if counted[area, k]:
                    taken = part[matches.rank[part] < self._caps[cap]]
                    _curve(
                        matches.right[area][:, taken],
                        matches.ignored[area][:, taken],
                        None if weight is None else weight[self._image[taken]],
                        float(counted[area, k]),
                        (precision[:, :, k, area, cap], recall[:, k, area, cap]),
                    )
        return Curves(precision, recall)

    def _counted(self, weight: Optional[Array]) -> Array:
        """How many instances of each category count in each range of areas."""
        each = None if weight is None else weight[self._truth.image]
        counts = []
        for aside in _ignored(self._truth.area, self._truth.crowd):
            weights = None if each is None else each[~aside]
            counts.append(np.bincount(self._truth.category[~aside], weights, minlength=self._categories))
        return np.array(counts)


def joined_curves(parts: Sequence[Curves]) -> Curves:
    """Curves of different categories as one; what a part does not have is -1 in it."""
    return Curves(
        np.maximum.reduce([part.precision for part in parts]), np.maximum.reduce([part.recall for part in parts])
    )


def reported_pairs(caps: Sequence[int]) -> List[Pair]:
    """Those that the twelve statistics read."""
    last = len(caps) - 1
    return [(0, cap) for cap in range(len(caps))] + [(area, last) for area in range(1, len(RANGES))]


def _ignored(area: Array, crowd: Array) -> List[Array]:
    """For each range of areas: which instances do not count."""
    return [crowd | (area < low) | (area > high) for low, high in RANGES]


def _curve(right: Array, ignored: Array, weight: Optional[Array], count: float, into: Tuple[Array, Array]) -> None:
    """One category's curve at every threshold."""
    precision, recall = into
    precision[:] = 0.0
    recall[:] = 0.0
    if not right.shape[1]:
        return
    each = 1 if weight is None else weight
    true = np.cumsum((right & ~ignored) * each, axis=1).astype(float)
    false = np.cumsum((~right & ~ignored) * each, axis=1).astype(float)
    reached = true / count
    recall[:] = reached[:, -1]
    sharp = true / (false + true + np.spacing(1))
    envelope = np.maximum.accumulate(sharp[:, ::-1], axis=1)[:, ::-1]
    for row in range(len(right)):
        places = np.searchsorted(reached[row], RECALLS, side="left")
        inside = places < len(reached[row])
        precision[row, inside] = envelope[row, places[inside]]


def _matched(truth: Instances, found: Detections, cap: int, overlap: Overlap) -> Matches:
    order = np.lexsort((-found.score, found.image, found.category))
    rank = _rank(found.category[order], found.image[order])
    order, rank = order[rank < cap], rank[rank < cap]
    category, image, area = found.category[order], found.image[order], found.area[order]
    outside = np.array([(area < low) | (area > high) for low, high in RANGES])
    ignored = np.repeat(outside[:, None], len(THRESHOLDS), axis=1)
    right = np.zeros_like(ignored)
    aside = _ignored(truth.area, truth.crowd)
    crowds = bool(truth.crowd.any())
    pairs = _Pairs()
    for detections, instances in _Groups(truth, category, image, area):
        ious = overlap(order[detections], instances)
        choice = len(instances) > 1 and ((ious >= REACHED[0]).sum(axis=1) > 1).any()
        if choice or (crowds and truth.crowd[instances].any()):
            for place in range(len(RANGES)):
                group = _Group(truth, instances, aside[place])
                group.match(ious, detections, right[place], ignored[place])
        else:
            pairs.add(detections, instances, ious)
    _first_come(pairs, truth, aside, right, ignored)
    return Matches(order, rank, right, ignored)


def _rank(category: Array, image: Array) -> Array:
    """The place of each detection among those of its image and category, which stand together."""
    count = len(category)
    if not count:
        return np.zeros(0, np.int64)
    new = np.concatenate(([True], (category[1:] != category[:-1]) | (image[1:] != image[:-1])))
    starts = np.flatnonzero(new)
    return np.arange(count) - np.repeat(starts, np.diff(np.append(starts, count)))


class _Groups:
    """Images and categories that have both truth and detections that might overlap by half."""

    def __init__(self, truth: Instances, category: Array, image: Array, extent: Array) -> None:
        images = int(max(truth.image.max(initial=0), image.max(initial=0))) + 1
        key = truth.category.astype(np.int64) * images + truth.image
        self._instances = np.argsort(key, kind="stable")
        self._keys = key[self._instances]
        self._mine = category.astype(np.int64) * images + image
        self._likely = np.flatnonzero(_near(key, truth.extent, self._mine, extent) | self._crowded(truth, key))

    def _crowded(self, truth: Instances, key: Array) -> Array:
        """Detections of groups with a crowd, whose overlap is another fraction."""
        return np.isin(self._mine, key[truth.crowd])

    def __iter__(self) -> Iterator[Tuple[Array, Array]]:
        """Places of detections and instances, group by group."""
        if not len(self._likely):
            return
        mine = self._mine[self._likely]
        starts = np.flatnonzero(np.concatenate(([True], mine[1:] != mine[:-1])))
        low = np.searchsorted(self._keys, mine[starts], side="left").tolist()
        high = np.searchsorted(self._keys, mine[starts], side="right").tolist()
        stops = [*starts[1:].tolist(), len(mine)]
        for start, stop, first, last in zip(starts.tolist(), stops, low, high):
            yield self._likely[start:stop], self._instances[first:last]


def _near(key: Array, extent: Array, mine: Array, own: Array) -> Array:
    """Which detections have an instance in their group from half to twice their size: IoU is at most that fraction."""
    if not len(key):
        return np.zeros(len(mine), bool)
    wide = 4.0 * max(float(extent.max(initial=0)), float(own.max(initial=0)), 1.0)
    sizes = np.sort(key * wide + extent)
    slack = 1e-3  # against rounding; this need not be exact
    place = np.searchsorted(sizes, mine * wide + own / 2 - slack)
    near: Array = sizes[np.minimum(place, len(sizes) - 1)] <= mine * wide + 2 * own + slack
    return near & (place < len(sizes))


class _Pairs:
    """Overlaps of at least a half, where no detection had a choice."""

    def __init__(self) -> None:
        self._parts: List[Tuple[Array, Array, Array]] = []

    def add(self, detections: Array, instances: Array, ious: Array) -> None:
        """Keep the pairs of one group, detections in order of score."""
        rows, columns = np.nonzero(ious >= REACHED[0])
        if len(rows):
            self._parts.append((detections[rows], instances[columns], ious[rows, columns]))

    def all(self) -> Tuple[Array, Array, Array]:
        """Every pair."""
        if not self._parts:
            return np.zeros(0, int), np.zeros(0, int), np.zeros(0)
        detections, instances, ious = zip(*self._parts)
        return np.concatenate(detections), np.concatenate(instances), np.concatenate(ious)


def _first_come(pairs: _Pairs, truth: Instances, aside: List[Array], right: Array, ignored: Array) -> None:
    """At each threshold an instance goes to the first detection that reaches it."""
    detections, instances, ious = pairs.all()
    order = np.argsort(detections, kind="stable")
    detections, instances, ious = detections[order], instances[order], ious[order]
    for row, threshold in enumerate(REACHED):
        reached = ious >= threshold
        taken, first = np.unique(instances[reached], return_index=True)
        winners = detections[reached][first]
        right[:, row, winners] = ~truth.lost[taken]
        for place, aside_here in enumerate(aside):
            # Matched to an instance that does not count: judged by nobody; else it counts whatever its own area.
            ignored[place, row, winners] = aside_here[taken] | (truth.lost[taken] & ignored[place, row, winners])


class _Group:
    """The instances of one image and category where detections have a choice, those that count first."""

    def __init__(self, truth: Instances, instances: Array, aside: Array) -> None:
        self._order = np.argsort(aside[instances], kind="stable")
        chosen = instances[self._order]
        self._skip: List[bool] = aside[chosen].tolist()
        self._crowd: List[bool] = truth.crowd[chosen].tolist()
        self._lost: List[bool] = truth.lost[chosen].tolist()

    def match(self, ious: Array, detections: Array, right: Array, ignored: Array) -> None:
        """The original's loop: each detection takes the best instance left."""
        table = ious[:, self._order].tolist()
        for row, threshold in enumerate(REACHED.tolist()):
            taken = [False] * len(self._skip)
            for detection, overlaps in zip(detections.tolist(), table):
                best = self._best(overlaps, threshold, taken)
                if best >= 0:
                    taken[best] = True
                    right[row, detection] = not self._lost[best]
                    ignored[row, detection] = self._skip[best] or (self._lost[best] and ignored[row, detection])

    def _best(self, overlaps: List[float], reach: float, taken: List[bool]) -> int:
        best = -1
        for column, iou in enumerate(overlaps):
            if taken[column] and not self._crowd[column]:
                continue
            if best > -1 and not self._skip[best] and self._skip[column]:
                break
            if iou >= reach:
                best, reach = column, iou
        return best


def averages(curves_: Curves, caps: Sequence[int]) -> Dict[str, Any]:
    """The twelve statistics; None where there is nothing to average."""
    last = len(caps) - 1
    values: Dict[str, Any] = {
        "AP": _mean(curves_.precision[:, :, :, 0, last]),
        "AP50": _mean(curves_.precision[0, :, :, 0, last]),
        "AP75": _mean(curves_.precision[5, :, :, 0, last]),
    }
    names = list(AREAS)
    for place, name in enumerate(names[1:], 1):
        values[f"AP{name}"] = _mean(curves_.precision[:, :, :, place, last])
    for place, cap in enumerate(caps):
        values[f"AR@{cap}"] = _mean(curves_.recall[:, :, 0, place])
    for place, name in enumerate(names[1:], 1):
        values[f"AR{name}"] = _mean(curves_.recall[:, :, place, last])
    return values


def by_category(curves_: Curves, caps: Sequence[int], category: int) -> Dict[str, Any]:
    """AP, AP50, AP75 and AR of one category."""
    last = len(caps) - 1
    precision, recall = curves_.precision[:, :, category, 0, last], curves_.recall[:, category, 0, last]
    return {"AP": _mean(precision), "AP50": _mean(precision[0]), "AP75": _mean(precision[5]), "AR": _mean(recall)}


def _mean(values: Array) -> Any:
    there = values[values > -1]
    return float(np.mean(there)) if len(there) else None
