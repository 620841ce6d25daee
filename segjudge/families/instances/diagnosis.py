"""The diagnosis of instance masks: detections judged at one IoU, what their scores are worth, what errors cost.

Errors are of the kinds that TIDE tells apart.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

import numpy as np

from segjudge.evaluation_script.families.base.reports import Report, Row
from segjudge.evaluation_script.families.instances.cityscapes import RANGES as STREET_RANGES
from segjudge.evaluation_script.families.instances.matching import ClosePairs, cut_into_blocks, find_close_pairs
from segjudge.evaluation_script.families.instances.metrics import RECALLS
from segjudge.evaluation_script.families.instances.protocols import THRESHOLDS, InstanceProtocol
from segjudge.evaluation_script.families.instances.submission import InstanceRecords
from segjudge.evaluation_script.families.instances.truth import InstanceTruth
from segjudge.evaluation_script.masks.detections import OverlappingPairs
from segjudge.evaluation_script.masks.stack import Array
from segjudge.evaluation_script.values import dataclass
from segjudge.families.base.tools import ScoringInputs
from segjudge.system.errors import UsageError

from .published import read_predictions

#: A detection is right from this IoU on, and below the other it lies on the background.
_FOREGROUND, _BACKGROUND = 0.5, 0.1


@dataclass(frozen=True)
class _JudgedDetections:
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
    #: Which of these excuse one detection alone: people without keypoints.
    excuses_one: Array
    #: Pairs of one image from _BACKGROUND on: by detection, then the closest first, then as annotated.
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
        """Which detections with this score and more count for or against."""
        return ~self.ignored & (self.score >= least)

    def at(self, foreground: float) -> _JudgedDetections:
        own = self.category[self.pairs.prediction] == self.instance_category[self.pairs.truth]
        crowd, iou = self.crowd[self.pairs.truth], self.pairs.iou
        partner = _assign_partners(self.pairs.of(own & ~crowd & (iou >= foreground)), len(self.record))
        ignored = self.excused.copy()
        excuses_one = self.excuses_one[self.pairs.truth]
        ignored[self.pairs.prediction[own & crowd & ~excuses_one & (iou > foreground)]] = True
        free = partner[self.pairs.prediction] < 0
        ignored |= _assign_partners(self.pairs.of(own & excuses_one & (iou >= foreground) & free), len(ignored)) >= 0
        return replace(self, foreground=foreground, partner=partner, ignored=ignored & (partner < 0))


def _judge_detections(
    records: InstanceRecords, truth: InstanceTruth, protocol: InstanceProtocol, foreground: float = _FOREGROUND
) -> _JudgedDetections:
    """Judge the records within the protocol's cap: by falling score each takes the closest instance that is free."""
    if not protocol.crowds:
        truth = replace(truth, crowd=np.zeros_like(truth.crowd))
    blocks = cut_into_blocks(records, truth, protocol, np.arange(len(truth.images.ids)), 1)
    uncounted = np.zeros_like(truth.crowd)
    if protocol.keypoints and truth.keypoints is not None:
        uncounted = (truth.keypoints.count == 0) & ~truth.crowd
    close = _join_pairs([find_close_pairs(block, _BACKGROUND) for block in blocks])
    pairs = close.pairs.of(np.lexsort((close.annotations[close.pairs.truth], -close.pairs.iou, close.pairs.prediction)))
    nobody, nothing = np.full(len(close.records), -1), np.zeros(len(close.records), bool)
    detections = _JudgedDetections(
        truth, records,
        close.records, records.score[close.records], records.category[close.records], records.image[close.records],
        close.annotations, truth.category[close.annotations], truth.image[close.annotations],
        truth.crowd[close.annotations] | uncounted[close.annotations], uncounted[close.annotations],
        pairs, close.excused, protocol.id_zero_quirk, 0.0, nobody, nothing,
    )  # fmt: skip
    return detections.at(foreground)


def _join_pairs(blocks: list[ClosePairs]) -> ClosePairs:
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
    """The instance that each detection takes: the first of its candidates that is free."""
    partner = [-1] * count
    assigned: set[int] = set()
    for detection, instance in zip(candidates.prediction.tolist(), candidates.truth.tolist(), strict=True):
        if partner[detection] < 0 and instance not in assigned:
            partner[detection] = instance
            assigned.add(instance)
    return np.array(partner, np.int64)


def count_confusions(judged: _JudgedDetections, least: float = -np.inf) -> Array:
    """Return how many instances (rows) were detected as which category (columns), from a score on; the last is nothing.

    By falling score each detection takes the free instance of its image that overlaps most, of equals one of its
    own category first. What lies in a crowd does not count.
    """
    nothing = len(judged.truth.categories)
    selection = judged.score >= least
    pairs = judged.pairs
    pairs = pairs.of((pairs.iou >= judged.foreground) & selection[pairs.prediction] & ~judged.crowd[pairs.truth])
    foreign = judged.category[pairs.prediction] != judged.instance_category[pairs.truth]
    pairs = pairs.of(np.lexsort((foreign, -pairs.iou, pairs.prediction)))
    partner = _assign_partners(pairs, len(selection))
    table = np.zeros((nothing + 1, nothing + 1), np.int64)
    assigned, free = partner >= 0, np.ones(len(judged.annotation), bool)
    free[partner[assigned]] = False
    surplus, missed = selection & ~assigned & ~judged.ignored, free & ~judged.crowd
    np.add.at(table, (judged.instance_category[partner[assigned]], judged.category[assigned]), 1)
    table[nothing, :-1] = np.bincount(judged.category[surplus], minlength=nothing)
    table[:-1, nothing] = np.bincount(judged.instance_category[missed], minlength=nothing)
    return table


# ── precision by recall ─────────────────────────────────────────────────────


#: At which recalls TIDE looks at precision: some of COCO's differ in the last bit, and so may AP.
_TIDE_RECALLS = np.arange(101) / 100


@dataclass(frozen=True)
class _CurvePoints:
    """What curves are made of: detections, of equal scores in this order, and how many instances categories have."""

    category: Array
    score: Array
    right: Array
    instances: Array
    recalls: Array

    def of(self, chosen: Array) -> _CurvePoints:
        category, score, right = (column[chosen] for column in (self.category, self.score, self.right))
        return replace(self, category=category, score=score, right=right)

    def without(self, categories: Array) -> _CurvePoints:
        """The same where an instance of each of these categories does not exist."""
        return replace(self, instances=self.instances - np.bincount(categories, minlength=len(self.instances)))

    def curves(self) -> Array:
        """The precision of each category at each recall; not a number where it has nothing at all."""
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
        """The AP of each category: its mean precision over the recalls."""
        means: Array = self.curves().mean(axis=1)
        return means


def _list_curve_points(judged: _JudgedDetections) -> _CurvePoints:
    """All detections, those that are ignored too, as points; of equal scores the first image's is first."""
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


def measure_calibration(judged: _JudgedDetections, least: float = -np.inf) -> _Calibration:
    """Those that are ignored do not count."""
    selection = judged.select(least)
    return _bin_scores(judged.score[selection], judged.right[selection].astype(float), _BINS)


def measure_localisation_error(judged: _JudgedDetections, least: float = -np.inf) -> float | None:
    """LaECE: the mean over categories of the gap between score and IoU, which is 0 where nothing is right."""
    selection = judged.select(least)
    quality = np.zeros(len(selection))
    matched = judged.partner[judged.pairs.prediction] == judged.pairs.truth
    quality[judged.pairs.prediction[matched]] = judged.pairs.iou[matched]
    quality[~judged.right] = 0
    errors = [
        _bin_scores(judged.score[of_category], quality[of_category], _LOCATED_BINS).error
        for number in np.unique(judged.category[selection])
        for of_category in [selection & (judged.category == number)]
    ]
    return float(np.mean(errors)) if errors else None


def _bin_scores(score: Array, value: Array, bins: int) -> _Calibration:
    """Scores beyond 0 and 1 are in the outermost bins."""
    bin_of = np.clip((score * bins).astype(int), 0, bins - 1)
    counts, weights = np.bincount(bin_of, minlength=bins), np.maximum(np.bincount(bin_of, minlength=bins), 1)
    return _Calibration(counts, np.bincount(bin_of, score, bins) / weights, np.bincount(bin_of, value, bins) / weights)


@dataclass(frozen=True)
class _BestThreshold:
    """The score from which on detections have the largest F1; chosen on the same data, it is a little too good."""

    score: float
    f1: float
    precision: float
    recall: float


def _find_best_threshold(judged: _JudgedDetections, category: int | None = None) -> _BestThreshold | None:
    """Find the best threshold of a category, or of all together; None where nothing is right."""
    selection = ~judged.ignored & (True if category is None else judged.category == category)
    instances = judged.instances.sum() if category is None else judged.instances[category]
    order = np.argsort(-judged.score[selection], kind="stable")
    score, right = judged.score[selection][order], judged.right[selection][order]
    if not right.any():
        return None
    is_last_of_score = np.append(score[1:] != score[:-1], True)  # of equal scores all are kept, or none
    true, counts = np.cumsum(right)[is_last_of_score], np.flatnonzero(is_last_of_score) + 1
    f1 = 2 * true / (counts + instances)
    best = int(f1.argmax())
    return _BestThreshold(
        float(score[is_last_of_score][best]),
        float(f1[best]),
        float(true[best] / counts[best]),
        float(true[best] / instances),
    )


@dataclass(frozen=True)
class _ImageCounts:
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
        """How many images have no mistake, false alarms alone, misses alone, or both."""
        false, missed = self.wrong > 0, self.missed > 0
        names = ("perfect", "false alarms", "misses", "mixed")
        return dict(zip(names, np.bincount(false + 2 * missed, minlength=4).tolist(), strict=True))


def _count_by_image(judged: _JudgedDetections, least: float) -> _ImageCounts:
    images = len(judged.truth.images.ids)
    selection = judged.select(least)
    right = np.bincount(judged.image[selection & judged.right], minlength=images)
    wrong = np.bincount(judged.image[selection & ~judged.right], minlength=images)
    instances = np.bincount(judged.instance_image[~judged.crowd], minlength=images)
    return _ImageCounts(right, wrong, instances - right)


# ── kinds of error ──────────────────────────────────────────────────────────


#: The kinds of a detection that is not right, then that of an instance that none of them shows, and what they mean.
KINDS = {
    "Cls": "right place, wrong category",
    "Loc": "right category, inexact place",
    "Both": "wrong category and inexact place",
    "Dupe": "shown before by another detection",
    "Bkg": "nothing is there",
    "Miss": "not detected at all",
}
_CLS, _LOC, _BOTH, _DUPE, _BKG, _MISS = range(len(KINDS))
RIGHT = -1
#: What all false detections cost together, and all instances that were not matched.
_TOTALS = ("FalsePos", "FalseNeg")


@dataclass(frozen=True)
class _DetectionErrors:
    """What is wrong with each detection, and what it costs."""

    #: An index in KINDS, or RIGHT.
    kind: Array
    #: The instance that a detection of the kinds Cls and Loc is about, else -1.
    target: Array
    #: Which instances no detection shows, not even badly.
    missed: Array
    #: Which categories count: those with instances, or as TIDE has it all.
    counted: Array
    #: AP of each category; not a number where there is neither a detection nor an instance.
    precision: Array
    #: The same once a kind of KINDS or of _TOTALS is repaired.
    repaired: dict[str, Array]

    def average(self, precision: Array) -> float:
        selection = self.counted & ~np.isnan(precision)
        return float(precision[selection].mean()) if selection.any() else 0.0

    def costs(self) -> dict[str, float]:
        """How much mean AP each kind costs; kinds overlap, so that they do not sum to what is lost."""
        before = self.average(self.precision)
        gains = {name: self.average(after) - before for name, after in self.repaired.items()}
        return {name: gain if name in _TOTALS else max(0.0, gain) for name, gain in gains.items()}


def _find_errors(judged: _JudgedDetections, *, as_tide: bool = False) -> _DetectionErrors:
    """Find the kind of every error, and what repairing each kind would gain."""
    kind, target = _classify_detections(judged)
    free = ~judged.hits & ~judged.crowd
    missed = free.copy()
    missed[target[target >= 0]] = False
    points = replace(_list_curve_points(judged), recalls=_TIDE_RECALLS) if as_tide else _list_curve_points(judged)
    before = points.of(~judged.ignored).precision()
    wrong_first = np.argsort(judged.right, kind="stable")  # as TIDE has them once it repaired any
    points, counted = points.of(wrong_first), ~judged.ignored[wrong_first]
    is_best = _flag_best(judged, target, free)[wrong_first]
    moved = points.category.copy()
    moved[is_best] = judged.instance_category[target[wrong_first][is_best]]
    repaired = {}
    for number, name in enumerate(KINDS):
        of_kind = kind[wrong_first] == number
        fixed = replace(
            points, category=np.where(of_kind, moved, points.category), right=points.right | (of_kind & is_best)
        )
        repaired[name] = fixed.of(
            np.where(of_kind, is_best, counted)
        ).precision()  # the best counts though it was ignored
    points = points.of(counted)
    repaired["Miss"] = points.without(judged.instance_category[missed]).precision()
    repaired["FalsePos"] = replace(points, score=points.right.astype(float)).precision()
    repaired["FalseNeg"] = points.without(judged.instance_category[free]).precision()
    return _DetectionErrors(kind, target, missed, (judged.instances > 0) | as_tide, before, repaired)


def _classify_detections(judged: _JudgedDetections) -> tuple[Array, Array]:
    """Find the kind of each detection, the first that holds, and the instance that it is about."""
    pairs, foreground, count = judged.pairs, judged.foreground, len(judged.record)
    pairs = pairs.of(~judged.crowd[pairs.truth])
    own = judged.category[pairs.prediction] == judged.instance_category[pairs.truth]
    near, instance = _find_closest(pairs.of(own), count)
    foreign, neighbour = _find_closest(pairs.of(~own), count)
    repeated, _ = _find_closest(pairs.of(own & judged.hits[pairs.truth]), count)
    conditions = [
        judged.right,
        (near >= _BACKGROUND) & (near <= foreground),
        foreign >= foreground,
        repeated >= foreground,
        np.maximum(near, foreign) <= _BACKGROUND,
    ]
    kind = np.select(conditions, [RIGHT, _LOC, _CLS, _DUPE, _BKG], _BOTH)
    return kind, np.select([kind == _LOC, kind == _CLS], [instance, neighbour], -1)


def _find_closest(pairs: OverlappingPairs, count: int) -> tuple[Array, Array]:
    """Find the largest IoU of each detection and whose it is: 0 and -1 where there is no pair."""
    iou, instances = np.zeros(count), np.full(count, -1)
    detections, indices = np.unique(pairs.prediction, return_index=True)  # pairs begin with the closest
    iou[detections], instances[detections] = pairs.iou[indices], pairs.truth[indices]
    return iou, instances


def _flag_best(judged: _JudgedDetections, target: Array, free: Array) -> Array:
    """Flag the detections with the highest score of those about the same free instance."""
    about = np.flatnonzero(target >= 0)
    about = about[free[target[about]]]
    order = about[np.lexsort((-judged.score[about], target[about]))]
    flags = np.zeros(len(target), bool)
    flags[order[np.unique(target[order], return_index=True)[1]]] = True
    return flags


# ── all tables of a split ───────────────────────────────────────────────────


#: So many suspected errors of the truth are listed.
_MOST_SUSPECTS = 50


@dataclass(frozen=True)
class InstanceDiagnosis:
    """The diagnosis of a split's detections, at an IoU of one half where nothing else is said."""

    judged: _JudgedDetections
    protocol: InstanceProtocol

    @cached_property
    def errors(self) -> _DetectionErrors:
        return _find_errors(self.judged)

    @cached_property
    def best(self) -> _BestThreshold | None:
        """The threshold of scores with the largest F1 over all categories."""
        return _find_best_threshold(self.judged)

    @cached_property
    def least(self) -> float:
        """The score from which on detections are kept: the best threshold, or all where nothing is right."""
        return self.best.score if self.best else -np.inf

    @cached_property
    def counts(self) -> _ImageCounts:
        """What is right and wrong in each image, of the detections that are kept."""
        return _count_by_image(self.judged, self.least)

    @cached_property
    def selection(self) -> Array:
        """Which detections are kept, and count for or against."""
        return self.judged.select(self.least)

    @cached_property
    def misses(self) -> Array:
        """Which instances none of the detections that are kept is right about."""
        flags = ~self.judged.crowd
        flags[self.judged.partner[self.selection & self.judged.right]] = False
        return flags

    @cached_property
    def names(self) -> list[str]:
        return [category.name for category in self.judged.truth.categories]

    def sum_kinds(self) -> dict[str, float]:
        """How much mean AP each kind costs, without those that sum up others."""
        costs = self.errors.costs()
        return {kind: costs[kind] for kind in KINDS}

    def list_kinds(self) -> list[Row]:
        """A row for each kind of error: how often it is, and how much AP it costs at an IoU of one half."""
        counts = np.bincount(self.errors.kind[self.errors.kind >= 0], minlength=len(KINDS))
        counts[_MISS] = self.errors.missed.sum()
        costs = self.errors.costs()
        return [
            {"kind": name, "about": about, "count": int(count), "cost": costs[name]}
            for (name, about), count in zip(KINDS.items(), counts, strict=True)
        ]

    def list_categories(self) -> list[Row]:
        """A row for each category with instances: what each kind costs there, and its best threshold."""
        gains = {name: np.maximum(self.errors.repaired[name] - self.errors.precision, 0) for name in KINDS}
        rows = []
        for index in np.flatnonzero(self.judged.instances).tolist():
            costs = {name: float(np.nan_to_num(gain[index])) for name, gain in gains.items()}
            best = _find_best_threshold(self.judged, index)
            rows.append(
                {
                    "name": self.names[index],
                    "instances": int(self.judged.instances[index]),
                    "detections": int((self.judged.category == index).sum()),
                    "AP50": float(self.errors.precision[index]),
                    **costs,
                    "threshold": best and best.score,
                    "F1": best.f1 if best else 0.0,
                }
            )
        return rows

    def average_curves(self) -> dict[float, Array]:
        """The precision at 101 recalls, as a mean over categories, for each IoU that AP looks at."""
        curves_by_iou = {}
        for threshold in THRESHOLDS:
            judged = self.judged.at(threshold)
            curves = _list_curve_points(judged).of(~judged.ignored).curves()[judged.instances > 0]
            curves_by_iou[round(threshold, 2)] = curves.mean(axis=0) if len(curves) else np.zeros(curves.shape[1])
        return curves_by_iou

    def trace_curve(self, category: int) -> tuple[Array, Array, Array]:
        """Recall, precision and score of a category after each of its detections, by falling score."""
        judged = self.judged
        detections = np.flatnonzero((judged.category == category) & ~judged.ignored)
        detections = detections[np.argsort(-judged.score[detections], kind="stable")]
        true = np.cumsum(judged.right[detections])
        return true / judged.instances[category], true / np.arange(1, len(detections) + 1), judged.score[detections]

    def list_images(self) -> list[Row]:
        """A row for each image, those with most mistakes first."""
        counts = self.counts
        columns = {"right": counts.right, "wrong": counts.wrong, "missed": counts.missed, "F1": counts.f1}
        return [
            {"image": self.name_image(index), **{name: column[index].item() for name, column in columns.items()}}
            for index in self.rank_images(len(counts.right))
        ]

    def name_image(self, index: int) -> str:
        number = int(self.judged.truth.images.ids[index])
        return self.judged.truth.names.get(number, str(number))

    def rank_images(self, count: int) -> list[int]:
        """The indices of so many images, those with most mistakes first."""
        order = np.argsort(-(self.counts.wrong + self.counts.missed), kind="stable")
        return [int(index) for index in order[:count]]

    def find_worst_of_categories(self) -> list[int]:
        """The image with most mistakes of each category that has any, categories with the lowest AP first."""
        judged, wrong = self.judged, self.selection & ~self.judged.right
        images = np.concatenate((judged.image[wrong], judged.instance_image[self.misses]))
        categories = np.concatenate((judged.category[wrong], judged.instance_category[self.misses]))
        worst_images = []
        for index in np.argsort(self.errors.precision, kind="stable"):
            mistaken_images = images[categories == index]
            if len(mistaken_images) and judged.instances[index]:
                worst_images.append(int(np.bincount(mistaken_images).argmax()))
        return worst_images

    def list_suspects(self) -> list[Row]:
        """Confident detections that the truth contradicts, where rather the truth may be wrong."""
        judged, kind, target = self.judged, self.errors.kind, self.errors.target
        wrong = np.flatnonzero(((kind == _BKG) | (kind == _CLS)) & self.selection)
        wrong = wrong[np.argsort(-judged.score[wrong], kind="stable")][:_MOST_SUSPECTS]
        return [
            {
                "image": self.name_image(judged.image[index]),
                "detected": self.names[judged.category[index]],
                "score": float(judged.score[index]),
                "truth": "nothing" if target[index] < 0 else self.names[judged.instance_category[target[index]]],
            }
            for index in wrong.tolist()
        ]


def diagnose(inputs: ScoringInputs, report: Report) -> InstanceDiagnosis:
    """Raises SubmissionError where a submission cannot be read."""
    scorer, protocol = inputs.scorers[report.split], report.protocol
    truth = scorer.truth
    if not isinstance(truth, InstanceTruth) or not isinstance(protocol, InstanceProtocol):
        raise UsageError(f"failures of {protocol.name} have no kinds")
    records = read_predictions(inputs.results, truth, protocol, scorer.rules.limits)
    if protocol.streets:
        truth = replace(truth, crowd=truth.crowd | (truth.pixels < STREET_RANGES[0][1]))
    return InstanceDiagnosis(_judge_detections(records, truth, protocol), protocol)
