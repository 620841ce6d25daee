"""Detections judged at one IoU threshold: right, wrong or ignored, and which instance of any category each overlaps."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from segjudge.evaluation_script.families.instances.matching import ClosePairs, cut_into_blocks, find_close_pairs
from segjudge.evaluation_script.families.instances.protocols import InstanceProtocol
from segjudge.evaluation_script.families.instances.submission import InstanceRecords
from segjudge.evaluation_script.families.instances.truth import InstanceTruth
from segjudge.evaluation_script.masks.detections import OverlappingPairs
from segjudge.evaluation_script.masks.stack import Array

#: A detection is right from this IoU on, and below the other it lies on the background.
FOREGROUND, BACKGROUND = 0.5, 0.1


@dataclass(frozen=True)
class JudgedDetections:
    """The detections within the cap, by image and falling score, and the instances, crowds among them."""

    truth: InstanceTruth
    records: InstanceRecords
    #: Of each detection: the record, its score, and the indices of its category and image.
    record: Array
    score: Array
    category: Array
    image: Array
    #: Of each instance: the annotation, its category and image, and whether it is a crowd, which does not count.
    annotation: Array
    instance_category: Array
    instance_image: Array
    crowd: Array
    #: Pairs of one image from BACKGROUND on: by detection, then the closest first, then as annotated.
    pairs: OverlappingPairs
    #: Which detections count neither for nor against unless they are right.
    excused: Array
    #: Whether the annotation with the id 0 takes a detection, which then is wrong.
    id_zero_quirk: bool
    foreground: float
    #: The instance that each detection takes, or -1.
    partner: Array
    #: Which detections count neither for nor against.
    ignored: Array

    @cached_property
    def right(self) -> Array:
        """Which detections are right."""
        flags = self.partner >= 0
        if self.id_zero_quirk:
            flags[flags] = self.truth.ids[self.annotation[self.partner[flags]]] != 0
        return flags

    @cached_property
    def used(self) -> Array:
        """Which instances were taken."""
        flags = np.zeros(len(self.annotation), bool)
        flags[self.partner[self.partner >= 0]] = True
        return flags

    @cached_property
    def instances(self) -> Array:
        """How many instances count in each category."""
        return np.bincount(self.instance_category[~self.crowd], minlength=len(self.truth.categories))

    def kept(self, least: float) -> Array:
        """Return which detections with this score and more count for or against."""
        return ~self.ignored & (self.score >= least)

    def at(self, foreground: float) -> JudgedDetections:
        """Return the same detections judged at another threshold."""
        own = self.category[self.pairs.prediction] == self.instance_category[self.pairs.truth]
        crowd, iou = self.crowd[self.pairs.truth], self.pairs.iou
        partner = partners(self.pairs.of(own & ~crowd & (iou >= foreground)), len(self.record))
        ignored = self.excused.copy()
        ignored[self.pairs.prediction[own & crowd & (iou > foreground)]] = True
        return replace(self, foreground=foreground, partner=partner, ignored=ignored & (partner < 0))


def judged(
    records: InstanceRecords, truth: InstanceTruth, protocol: InstanceProtocol, foreground: float = FOREGROUND
) -> JudgedDetections:
    """Judge the records within the protocol's cap: by falling score each takes the closest instance that is free."""
    if not protocol.crowds:
        truth = replace(truth, crowd=np.zeros_like(truth.crowd))
    blocks = cut_into_blocks(records, truth, protocol, np.arange(len(truth.images.ids)), 1)
    close = _joined([find_close_pairs(block, BACKGROUND) for block in blocks])
    pairs = close.pairs.of(np.lexsort((close.annotations[close.pairs.truth], -close.pairs.iou, close.pairs.prediction)))
    nobody, nothing = np.full(len(close.records), -1), np.zeros(len(close.records), bool)
    found = JudgedDetections(
        truth, records,
        close.records, records.score[close.records], records.category[close.records], records.image[close.records],
        close.annotations, truth.category[close.annotations], truth.image[close.annotations],
        truth.crowd[close.annotations],
        pairs, close.excused, protocol.id_zero_quirk, 0.0, nobody, nothing,
    )  # fmt: skip
    return found.at(foreground)


def _joined(blocks: list[ClosePairs]) -> ClosePairs:
    """Return the pairs of several blocks as one."""
    starts = np.cumsum([(0, 0), *((len(one.records), len(one.annotations)) for one in blocks[:-1])], axis=0).tolist()
    pairs = OverlappingPairs(
        np.concatenate([one.pairs.prediction + start for one, (start, _) in zip(blocks, starts, strict=True)]),
        np.concatenate([one.pairs.truth + start for one, (_, start) in zip(blocks, starts, strict=True)]),
        np.concatenate([one.pairs.iou for one in blocks]),
    )
    sent, real, excused = map(
        np.concatenate, zip(*((one.records, one.annotations, one.excused) for one in blocks), strict=True)
    )
    return ClosePairs(sent, real, pairs, excused)


def partners(candidates: OverlappingPairs, count: int) -> Array:
    """Return the instance that each detection takes: the first of its candidates that is free."""
    partner = [-1] * count
    taken: set[int] = set()
    for sent, real in zip(candidates.prediction.tolist(), candidates.truth.tolist(), strict=True):
        if partner[sent] < 0 and real not in taken:
            partner[sent] = real
            taken.add(real)
    return np.array(partner, np.int64)


def confusion(judged: JudgedDetections, least: float = -np.inf) -> Array:
    """Return how many instances (rows) were detected as which category (columns), from a score on; the last is nothing.

    By falling score each detection takes the free instance of its image that overlaps most, of equals one of its
    own category first. What lies in a crowd does not count.
    """
    nothing = len(judged.truth.categories)
    kept = judged.score >= least
    pairs = judged.pairs
    pairs = pairs.of((pairs.iou >= judged.foreground) & kept[pairs.prediction] & ~judged.crowd[pairs.truth])
    other = judged.category[pairs.prediction] != judged.instance_category[pairs.truth]
    pairs = pairs.of(np.lexsort((other, -pairs.iou, pairs.prediction)))
    partner = partners(pairs, len(kept))
    table = np.zeros((nothing + 1, nothing + 1), np.int64)
    shown, free = partner >= 0, np.ones(len(judged.annotation), bool)
    free[partner[shown]] = False
    surplus, missed = kept & ~shown & ~judged.ignored, free & ~judged.crowd
    np.add.at(table, (judged.instance_category[partner[shown]], judged.category[shown]), 1)
    table[nothing, :-1] = np.bincount(judged.category[surplus], minlength=nothing)
    table[:-1, nothing] = np.bincount(judged.instance_category[missed], minlength=nothing)
    return table
