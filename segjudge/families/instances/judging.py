"""Detections judged at one IoU: what is right, wrong or ignored, precision by recall, and what scores are worth."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from segjudge.evaluation_script.families.instances.matching import ClosePairs, cut_into_blocks, find_close_pairs
from segjudge.evaluation_script.families.instances.metrics import RECALLS
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
    def hits(self) -> Array:
        """Which instances were taken."""
        flags = np.zeros(len(self.annotation), bool)
        flags[self.partner[self.partner >= 0]] = True
        return flags

    @cached_property
    def instances(self) -> Array:
        """How many instances count in each category."""
        return np.bincount(self.instance_category[~self.crowd], minlength=len(self.truth.categories))

    def select(self, least: float) -> Array:
        """Return which detections with this score and more count for or against."""
        return ~self.ignored & (self.score >= least)

    def at(self, foreground: float) -> JudgedDetections:
        """Return the same detections judged at another threshold."""
        own = self.category[self.pairs.prediction] == self.instance_category[self.pairs.truth]
        crowd, iou = self.crowd[self.pairs.truth], self.pairs.iou
        partner = _assign_partners(self.pairs.of(own & ~crowd & (iou >= foreground)), len(self.record))
        ignored = self.excused.copy()
        ignored[self.pairs.prediction[own & crowd & (iou > foreground)]] = True
        return replace(self, foreground=foreground, partner=partner, ignored=ignored & (partner < 0))


def judge_detections(
    records: InstanceRecords, truth: InstanceTruth, protocol: InstanceProtocol, foreground: float = FOREGROUND
) -> JudgedDetections:
    """Judge the records within the protocol's cap: by falling score each takes the closest instance that is free."""
    if not protocol.crowds:
        truth = replace(truth, crowd=np.zeros_like(truth.crowd))
    blocks = cut_into_blocks(records, truth, protocol, np.arange(len(truth.images.ids)), 1)
    close = _join_pairs([find_close_pairs(block, BACKGROUND) for block in blocks])
    pairs = close.pairs.of(np.lexsort((close.annotations[close.pairs.truth], -close.pairs.iou, close.pairs.prediction)))
    nobody, nothing = np.full(len(close.records), -1), np.zeros(len(close.records), bool)
    detections = JudgedDetections(
        truth, records,
        close.records, records.score[close.records], records.category[close.records], records.image[close.records],
        close.annotations, truth.category[close.annotations], truth.image[close.annotations],
        truth.crowd[close.annotations],
        pairs, close.excused, protocol.id_zero_quirk, 0.0, nobody, nothing,
    )  # fmt: skip
    return detections.at(foreground)


def _join_pairs(blocks: list[ClosePairs]) -> ClosePairs:
    """Return the pairs of several blocks as one."""
    starts = np.cumsum(
        [(0, 0), *((len(block.records), len(block.annotations)) for block in blocks[:-1])], axis=0
    ).tolist()
    pairs = OverlappingPairs(
        np.concatenate([block.pairs.prediction + start for block, (start, _) in zip(blocks, starts, strict=True)]),
        np.concatenate([block.pairs.truth + start for block, (_, start) in zip(blocks, starts, strict=True)]),
        np.concatenate([block.pairs.iou for block in blocks]),
    )
    records, annotations, excused = map(
        np.concatenate, zip(*((block.records, block.annotations, block.excused) for block in blocks), strict=True)
    )
    return ClosePairs(records, annotations, pairs, excused)


def _assign_partners(candidates: OverlappingPairs, count: int) -> Array:
    """Return the instance that each detection takes: the first of its candidates that is free."""
    partner = [-1] * count
    assigned: set[int] = set()
    for detection, instance in zip(candidates.prediction.tolist(), candidates.truth.tolist(), strict=True):
        if partner[detection] < 0 and instance not in assigned:
            partner[detection] = instance
            assigned.add(instance)
    return np.array(partner, np.int64)


def count_confusions(judged: JudgedDetections, least: float = -np.inf) -> Array:
    """Return how many instances (rows) were detected as which category (columns), from a score on; the last is nothing.

    By falling score each detection takes the free instance of its image that overlaps most, of equals one of its
    own category first. What lies in a crowd does not count.
    """
    nothing = len(judged.truth.categories)
    chosen = judged.score >= least
    pairs = judged.pairs
    pairs = pairs.of((pairs.iou >= judged.foreground) & chosen[pairs.prediction] & ~judged.crowd[pairs.truth])
    foreign = judged.category[pairs.prediction] != judged.instance_category[pairs.truth]
    pairs = pairs.of(np.lexsort((foreign, -pairs.iou, pairs.prediction)))
    partner = _assign_partners(pairs, len(chosen))
    table = np.zeros((nothing + 1, nothing + 1), np.int64)
    shown, free = partner >= 0, np.ones(len(judged.annotation), bool)
    free[partner[shown]] = False
    surplus, missed = chosen & ~shown & ~judged.ignored, free & ~judged.crowd
    np.add.at(table, (judged.instance_category[partner[shown]], judged.category[shown]), 1)
    table[nothing, :-1] = np.bincount(judged.category[surplus], minlength=nothing)
    table[:-1, nothing] = np.bincount(judged.instance_category[missed], minlength=nothing)
    return table


# ── precision by recall ─────────────────────────────────────────────────────


#: At which recalls TIDE looks at precision: some of COCO's differ in the last bit, and so may AP.
TIDE_RECALLS = np.arange(101) / 100


@dataclass(frozen=True)
class _CurvePoints:
    """What curves are made of: detections, of equal scores in this order, and how many instances categories have."""

    category: Array
    score: Array
    right: Array
    instances: Array
    recalls: Array

    def of(self, chosen: Array) -> _CurvePoints:
        """Return some of the detections."""
        category, score, right = (column[chosen] for column in (self.category, self.score, self.right))
        return replace(self, category=category, score=score, right=right)

    def without(self, categories: Array) -> _CurvePoints:
        """Return the same where an instance of each of these categories does not exist."""
        return replace(self, instances=self.instances - np.bincount(categories, minlength=len(self.instances)))

    def curves(self) -> Array:
        """Return the precision of each category at each recall; not a number where it has nothing at all."""
        order = np.lexsort((-self.score, self.category))
        bounds = np.searchsorted(self.category[order], np.arange(len(self.instances) + 1))
        curves = np.full((len(self.instances), len(self.recalls)), np.nan)
        for number, count in enumerate(self.instances.tolist()):
            right = self.right[order[bounds[number] : bounds[number + 1]]]
            if not count or not right.any():
                curves[number] = 0.0 if count or len(right) else np.nan
                continue
            true = np.cumsum(right)
            precision = true / np.arange(1, len(right) + 1)
            envelope = np.append(np.maximum.accumulate(precision[::-1])[::-1], 0.0)
            curves[number] = envelope[np.searchsorted(true / count, self.recalls)]
        return curves

    def precision(self) -> Array:
        """Return the AP of each category: its mean precision over the recalls."""
        means: Array = self.curves().mean(axis=1)
        return means


def curve_points(judged: JudgedDetections) -> _CurvePoints:
    """Return all detections, those that are ignored too, as points; of equal scores the first image's is first."""
    return _CurvePoints(judged.category, judged.score, judged.right, judged.instances, RECALLS)


# ── what scores are worth ───────────────────────────────────────────────────


_BINS = 10
#: Of the error that counts how well a detection lies too (LaECE).
_LOCATED_BINS = 25


@dataclass(frozen=True)
class _Calibration:
    """Detections in bins by score: how many, their mean score, and the share that is right."""

    counts: Array
    scores: Array
    shares: Array

    @property
    def error(self) -> float:
        """The mean gap between score and share, detections weighing the same (D-ECE)."""
        weight = self.counts / max(int(self.counts.sum()), 1)
        return float((weight * np.abs(self.scores - self.shares)).sum())

    @property
    def largest(self) -> float:
        """The largest gap of a bin (MCE)."""
        return float(np.abs(self.scores - self.shares).max(initial=0.0))


def measure_calibration(judged: JudgedDetections, least: float = -np.inf) -> _Calibration:
    """Return the calibration of the detections from a score on; those that are ignored do not count."""
    chosen = judged.select(least)
    return _bin_scores(judged.score[chosen], judged.right[chosen].astype(float), _BINS)


def measure_localisation_error(judged: JudgedDetections, least: float = -np.inf) -> float | None:
    """Return LaECE: the mean over categories of the gap between score and IoU, which is 0 where nothing is right."""
    chosen = judged.select(least)
    quality = np.zeros(len(chosen))
    matched = judged.partner[judged.pairs.prediction] == judged.pairs.truth
    quality[judged.pairs.prediction[matched]] = judged.pairs.iou[matched]
    quality[~judged.right] = 0
    errors = [
        _bin_scores(judged.score[mine], quality[mine], _LOCATED_BINS).error
        for number in np.unique(judged.category[chosen])
        for mine in [chosen & (judged.category == number)]
    ]
    return float(np.mean(errors)) if errors else None


def _bin_scores(score: Array, value: Array, bins: int) -> _Calibration:
    """Return scores and values by bin; scores beyond 0 and 1 are in the outermost."""
    bin_of = np.clip((score * bins).astype(int), 0, bins - 1)
    counts, weights = np.bincount(bin_of, minlength=bins), np.maximum(np.bincount(bin_of, minlength=bins), 1)
    return _Calibration(counts, np.bincount(bin_of, score, bins) / weights, np.bincount(bin_of, value, bins) / weights)


@dataclass(frozen=True)
class BestThreshold:
    """The score from which on detections have the largest F1; chosen on the same data, it is a little too good."""

    score: float
    f1: float
    precision: float
    recall: float


def find_best_threshold(judged: JudgedDetections, category: int | None = None) -> BestThreshold | None:
    """Return the best threshold of a category, or of all together; None where nothing is right."""
    chosen = ~judged.ignored & (True if category is None else judged.category == category)
    instances = judged.instances.sum() if category is None else judged.instances[category]
    order = np.argsort(-judged.score[chosen], kind="stable")
    score, right = judged.score[chosen][order], judged.right[chosen][order]
    if not right.any():
        return None
    last = np.append(score[1:] != score[:-1], True)  # of equal scores all are kept, or none
    true, counts = np.cumsum(right)[last], np.flatnonzero(last) + 1
    f1 = 2 * true / (counts + instances)
    best = int(f1.argmax())
    return BestThreshold(
        float(score[last][best]), float(f1[best]), float(true[best] / counts[best]), float(true[best] / instances)
    )


@dataclass(frozen=True)
class ImageCounts:
    """How many detections from a score on are right and wrong, and how many instances are missed, in each image."""

    right: Array
    wrong: Array
    missed: Array

    @property
    def f1(self) -> Array:
        """F1 of each image; 1 where there is nothing."""
        everything = 2 * self.right + self.wrong + self.missed
        quotient: Array = 2 * self.right / np.maximum(everything, 1)
        return np.where(everything == 0, 1.0, quotient)

    def profiles(self) -> dict[str, int]:
        """Return how many images have no mistake, false alarms alone, misses alone, or both."""
        false, missed = self.wrong > 0, self.missed > 0
        names = ("perfect", "false alarms", "misses", "mixed")
        return dict(zip(names, np.bincount(false + 2 * missed, minlength=4).tolist(), strict=True))


def count_by_image(judged: JudgedDetections, least: float) -> ImageCounts:
    """Return what is right and wrong in each image among the detections from a score on."""
    images = len(judged.truth.images.ids)
    chosen = judged.select(least)
    right = np.bincount(judged.image[chosen & judged.right], minlength=images)
    wrong = np.bincount(judged.image[chosen & ~judged.right], minlength=images)
    instances = np.bincount(judged.instance_image[~judged.crowd], minlength=images)
    return ImageCounts(right, wrong, instances - right)
