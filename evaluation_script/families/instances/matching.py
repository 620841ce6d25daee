"""Detections matched with instances as the COCO API matches them, for many images at once.

The kernel runs the greedy loop of the original.  Without it: a detection rarely overlaps more than one instance by
half, so almost all of the matching is that the first detection that reaches a threshold gets the instance; only where
a detection could choose, or crowds are about, the loop runs in Python.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Callable, Dict, List, Optional, Tuple

import numpy as np

from ...masks import kernel, kernel_matches
from ...masks.kernel_matches import Overlapping
from ...masks.kernel_runs import Pairs
from ...masks.stack import Array
from .protocols import AREAS, THRESHOLDS

#: What a detection must reach: never quite 1, as in the original.
REACHED = np.minimum(np.array(THRESHOLDS), 1 - 1e-10)

RANGES = np.array(list(AREAS.values()), float)
#: Against rounding, where sizes bound the IoU; this need not be exact.
SLACK = 1e-3


@dataclass(frozen=True)
class Instances:
    """The truth by image and category, one entry for each instance: both as indices, and what matching needs."""

    image: Array
    category: Array
    #: As the annotation says: it decides between small, medium and large.
    area: Array
    #: As it is compared: pixels of the mask, or of the box.
    extent: Array
    crowd: Array
    #: It cannot be matched (the original's trouble with id 0).
    unmatchable: Array
    #: Both ends included.
    ranges: Array = field(default_factory=lambda: RANGES)

    def ignored(self) -> Array:
        """Return for each range of areas which instances do not count."""
        return np.array([self.crowd | (self.area < low) | (self.area > high) for low, high in self.ranges])


@dataclass(frozen=True)
class Detections:
    """The detections of a submission, by image, category and falling score."""

    image: Array
    category: Array
    #: The place among the detections of the same image and category.
    rank: Array
    #: It decides between small, medium and large; nothing (not a number) is in every range.
    area: Array
    #: As it is compared: pixels of the mask, or of the box.
    extent: Array
    #: Which count neither for nor against unless they are matched.
    excused: Optional[Array] = None


#: The IoU of each pair.
Overlap = Callable[[Pairs], Array]


def match(truth: Instances, detections: Detections, overlap: Overlap) -> Tuple[Array, Array]:
    """Return words for each detection, with a bit for each range of areas and threshold.

    The first have those bits where it was matched with an instance, the second those where it counts neither for nor
    against.
    """
    pairs = similar_pairs(truth, detections, float(REACHED[0]))
    ious = overlap(pairs)
    enough = ious >= REACHED[0]
    close = Overlapping(pairs.sent[enough], pairs.real[enough], ious[enough])
    outside = np.array([(detections.area < low) | (detections.area > high) for low, high in truth.ranges])
    if detections.excused is not None:
        outside |= detections.excused
    library = kernel.library()
    if library is None:
        return _by_numpy(close, truth, outside, np.cumsum(detections.rank == 0))
    kinds = np.zeros(len(truth.image), np.uint8)
    for bit, flags in enumerate((*truth.ignored(), truth.crowd, truth.unmatchable)):
        kinds |= flags.astype(np.uint8) << np.uint8(bit)
    every = (1 << len(REACHED)) - 1
    words = np.array([every << len(REACHED) * area for area in range(len(truth.ranges))], np.uint64)
    ignored = np.bitwise_or.reduce(np.where(outside, words[:, None], np.uint64(0)))
    return kernel_matches.match(close, kinds, REACHED, len(truth.ranges), ignored, library)


def similar_pairs(truth: Instances, detections: Detections, least: float) -> Pairs:
    """Return the pairs of one image and category whose IoU may reach a number, group by group."""
    categories = int(max(truth.category.max(initial=0), detections.category.max(initial=0))) + 1
    keys = truth.image * categories + truth.category
    starts = np.flatnonzero(detections.rank == 0)
    wanted = detections.image[starts] * categories + detections.category[starts]
    low, high = (np.searchsorted(keys, wanted, side=side) for side in ("left", "right"))
    sizes = np.diff(np.append(starts, len(detections.rank)))
    instances = np.repeat(high - low, sizes)
    sent = np.repeat(np.arange(len(instances)), instances)
    real = np.arange(len(sent)) + np.repeat(np.repeat(low, sizes) - (np.cumsum(instances) - instances), instances)
    mine, other = detections.extent[sent], truth.extent[real]
    # The ratio of their sizes bounds the IoU; with a crowd it is another fraction.
    similar = (np.minimum(mine, other) + SLACK >= least * np.maximum(mine, other)) | truth.crowd[real]
    sent, real = sent[similar], real[similar]
    return Pairs(sent, real, np.searchsorted(sent, np.append(starts, len(instances))))


def _by_numpy(close: Overlapping, truth: Instances, outside: Array, group: Array) -> Tuple[Array, Array]:
    """Return the words of `match`; `group` is the same for detections of the same image and category."""
    ignored = np.repeat(outside[:, None], len(REACHED), axis=1)
    matched = np.zeros_like(ignored)
    choices = np.bincount(close.sent, minlength=len(group))
    special = np.zeros(len(group) + 1, bool)
    special[group[close.sent[(choices[close.sent] > 1) | truth.crowd[close.real]]]] = True
    chosen = special[group[close.sent]]
    _match_in_order(close.of(~chosen), truth, matched, ignored)
    _match_with_choice(close.of(chosen), truth, matched, ignored)
    return _packed_bits(matched), _packed_bits(ignored)


def _match_in_order(close: Overlapping, truth: Instances, matched: Array, ignored: Array) -> None:
    """Give each instance, at each threshold, to the first detection that reaches it; none has a choice."""
    for row, threshold in enumerate(REACHED):
        reached = close.iou >= threshold
        taken, first = np.unique(close.real[reached], return_index=True)
        winners = close.sent[reached][first]
        matched[:, row, winners] = ~truth.unmatchable[taken]
        for index, ignored_here in enumerate(truth.ignored()):
            # Matched with an instance that does not count: ignored; else it counts whatever its own area.
            unmatchable = truth.unmatchable[taken] & ignored[index, row, winners]
            ignored[index, row, winners] = ignored_here[taken] | unmatchable


def _match_with_choice(close: Overlapping, truth: Instances, matched: Array, ignored: Array) -> None:
    """Run the original's loop: each detection takes the best instance left, of those that count first."""
    candidates: Dict[int, List[Tuple[int, float]]] = {}
    for detection, instance, iou in zip(close.sent.tolist(), close.real.tolist(), close.iou.tolist()):
        candidates.setdefault(detection, []).append((instance, iou))
    crowd, unmatchable = truth.crowd.tolist(), truth.unmatchable.tolist()
    for area, kinds in enumerate(truth.ignored().tolist()):
        for row, threshold in enumerate(REACHED.tolist()):
            taken: Dict[int, bool] = {}
            for detection, near in candidates.items():
                left = [one for one in near if crowd[one[0]] or one[0] not in taken]
                best = _best([one for one in left if not kinds[one[0]]], threshold)
                best = _best([one for one in left if kinds[one[0]]], threshold) if best < 0 else best
                if best >= 0:
                    taken[best] = True
                    matched[area, row, detection] = not unmatchable[best]
                    stays = unmatchable[best] and ignored[area, row, detection]
                    ignored[area, row, detection] = kinds[best] or stays


def _best(near: List[Tuple[int, float]], reached: float) -> int:
    """Return the last of the instances that overlap most, or -1."""
    best = -1
    for instance, iou in near:
        if iou >= reached:
            best, reached = instance, iou
    return best


def _packed_bits(flags: Array) -> Array:
    """Return flags (ranges of areas, thresholds, detections) as a word for each detection."""
    rows = flags.reshape(flags.shape[0] * flags.shape[1], flags.shape[2])
    octets = np.zeros((rows.shape[1], 8), np.uint8)
    bits = np.packbits(rows, axis=0, bitorder="little").T
    octets[:, : bits.shape[1]] = bits
    words: Array = octets.view("<u8").reshape(-1)
    return words


def rank_in_group(*keys: Array) -> Array:
    """Return the position of each entry in its group: neighbours with the same keys."""
    indices = np.arange(len(keys[0]))
    first = np.ones(len(indices), bool)
    first[1:] = np.any([key[1:] != key[:-1] for key in keys], axis=0)
    ranks: Array = indices - np.maximum.accumulate(np.where(first, indices, 0))
    return ranks
