"""The diagnosis of instances: detections judged at one IoU, calibration of scores, costs of errors.

The kinds of errors are TIDE's.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from segjudge.evaluation_script.families.base.reports import Report, Row
from segjudge.evaluation_script.families.instances.cityscapes import RANGES as STREET_RANGES
from segjudge.evaluation_script.families.instances.cityscapes import average_precision
from segjudge.evaluation_script.families.instances.matching import ClosePairs, cut_into_blocks, find_close_pairs
from segjudge.evaluation_script.families.instances.metrics import RECALLS
from segjudge.evaluation_script.families.instances.protocols import THRESHOLDS, InstanceProtocol
from segjudge.evaluation_script.families.instances.submission import InstanceRecords
from segjudge.evaluation_script.families.instances.truth import InstanceTruth
from segjudge.evaluation_script.masks.detections import OverlappingPairs
from segjudge.evaluation_script.masks.stack import Array
from segjudge.families.base.tools import ScoringInputs
from segjudge.system.errors import UsageError

from .published import read_predictions

#: The minimum IoU of a correct detection, and the IoU below which a detection lies on the background.
_FOREGROUND, _BACKGROUND = 0.5, 0.1


@dataclass(frozen=True)
class _JudgedDetections:
    """The detections within the cap by image and falling score, and the instances including crowds."""

    truth: InstanceTruth
    records: InstanceRecords
    #: For each detection: the record, its score, and the indices of its category and image.
    record: Array
    score: Array
    category: Array
    image: Array
    #: For each instance: the annotation, its category and image, and whether it is a crowd, which is ignored.
    annotation: Array
    instance_category: Array
    instance_image: Array
    crowd: Array
    #: The instances that let only one detection be ignored: people without keypoints.
    excuses_one: Array
    #: Pairs in an image from _BACKGROUND on: by detection, then the closest first, then in annotated order.
    pairs: OverlappingPairs
    #: The detections that are ignored unless they are correct.
    excused: Array
    #: Whether the annotation with the id 0 matches a detection, which is then wrong.
    id_zero_quirk: bool
    #: Whether an IoU must exceed its threshold, and AP is the area below curves without smoothing, as in Cityscapes.
    streets: bool
    foreground: float
    #: The instance that each detection matches, or -1.
    partner: Array
    #: The detections that are ignored.
    ignored: Array

    @cached_property
    def right(self) -> Array:
        """Return flags of the correct detections."""
        flags = self.partner >= 0
        if self.id_zero_quirk:
            flags[flags] = self.truth.ids[self.annotation[self.partner[flags]]] != 0
        return flags

    @cached_property
    def hits(self) -> Array:
        """Return flags of the matched instances."""
        flags = np.zeros(len(self.annotation), bool)
        flags[self.partner[self.partner >= 0]] = True
        return flags

    @cached_property
    def instance_counts(self) -> Array:
        """Return the number of counted instances per category."""
        return np.bincount(self.instance_category[~self.crowd], minlength=len(self.truth.categories))

    def select(self, least: float) -> Array:
        """Return flags of counted detections with at least this score."""
        return ~self.ignored & (self.score >= least)

    def match_at(self, foreground: float) -> _JudgedDetections:
        same_category = self.category[self.pairs.prediction] == self.instance_category[self.pairs.truth]
        crowd, iou = self.crowd[self.pairs.truth], self.pairs.iou
        close = iou > foreground if self.streets else iou >= foreground
        partner = _assign_partners(self.pairs.select(same_category & ~crowd & close), len(self.record))
        ignored = self.excused.copy()
        excuses_one = self.excuses_one[self.pairs.truth]
        ignored[self.pairs.prediction[same_category & crowd & ~excuses_one & (iou > foreground)]] = True
        free = partner[self.pairs.prediction] < 0
        ignored |= _assign_partners(self.pairs.select(same_category & excuses_one & close & free), len(ignored)) >= 0
        return replace(self, foreground=foreground, partner=partner, ignored=ignored & (partner < 0))


def _judge_detections(
    records: InstanceRecords, truth: InstanceTruth, protocol: InstanceProtocol, foreground: float = _FOREGROUND
) -> _JudgedDetections:
    """Match the records within the cap: by falling score, each gets the closest free instance."""
    if not protocol.crowds:
        truth = replace(truth, crowd=np.zeros_like(truth.crowd))
    blocks = cut_into_blocks(records, truth, protocol, np.arange(len(truth.images.ids)), 1)
    uncounted = np.zeros_like(truth.crowd)
    if protocol.keypoints and truth.keypoints is not None:
        uncounted = (truth.keypoints.count == 0) & ~truth.crowd
    close = _join_pairs([find_close_pairs(block, _BACKGROUND) for block in blocks])
    pairs = close.pairs.select(
        np.lexsort((close.annotations[close.pairs.truth], -close.pairs.iou, close.pairs.prediction))
    )
    nobody, nothing = np.full(len(close.records), -1), np.zeros(len(close.records), bool)
    detections = _JudgedDetections(
        truth=truth, records=records,
        record=close.records, score=records.score[close.records], category=records.category[close.records],
        image=records.image[close.records],
        annotation=close.annotations, instance_category=truth.category[close.annotations],
        instance_image=truth.image[close.annotations],
        crowd=truth.crowd[close.annotations] | uncounted[close.annotations], excuses_one=uncounted[close.annotations],
        pairs=pairs, excused=close.excused, id_zero_quirk=protocol.id_zero_quirk, streets=protocol.streets,
        foreground=0.0, partner=nobody, ignored=nothing,
    )  # fmt: skip
    return detections.match_at(foreground)


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
    """Return the instance that each detection takes: the first free candidate."""
    partner = [-1] * count
    assigned: set[int] = set()
    for detection, instance in zip(candidates.prediction.tolist(), candidates.truth.tolist(), strict=True):
        if partner[detection] < 0 and instance not in assigned:
            partner[detection] = instance
            assigned.add(instance)
    return np.array(partner, np.int64)


def count_confusions(judged: _JudgedDetections, least: float = -np.inf) -> Array:
    """Return the confusion of instances (rows) and detected categories (columns) above a score; the last is none.

    In decreasing order of score, each detection takes the unmatched instance of its image that overlaps most; ties
    prefer its own category. Detections in crowds are ignored.
    """
    nothing = len(judged.truth.categories)
    selection = judged.score >= least
    pairs = judged.pairs
    pairs = pairs.select((pairs.iou >= judged.foreground) & selection[pairs.prediction] & ~judged.crowd[pairs.truth])
    foreign = judged.category[pairs.prediction] != judged.instance_category[pairs.truth]
    pairs = pairs.select(np.lexsort((foreign, -pairs.iou, pairs.prediction)))
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


#: The recalls at which TIDE samples precision; some of COCO's differ in the last bit, and so may AP.
_TIDE_RECALLS = np.arange(101) / 100


@dataclass(frozen=True)
class _CurvePoints:
    """The points of curves: ordered detections, and the numbers of instances per category."""

    category: Array
    score: Array
    right: Array
    instance_counts: Array
    recalls: Array
    streets: bool = False

    def select(self, chosen: Array) -> _CurvePoints:
        category, score, right = (column[chosen] for column in (self.category, self.score, self.right))
        return replace(self, category=category, score=score, right=right)

    def without(self, categories: Array) -> _CurvePoints:
        """Return the points without one instance of each of these categories."""
        return replace(
            self, instance_counts=self.instance_counts - np.bincount(categories, minlength=len(self.instance_counts))
        )

    def curves(self) -> Array:
        """Return the precision of each category at each recall; NaN for empty categories."""
        order = np.lexsort((-self.score, self.category))
        bounds = np.searchsorted(self.category[order], np.arange(len(self.instance_counts) + 1))
        curves = np.full((len(self.instance_counts), len(self.recalls)), np.nan)
        for number, count in enumerate(self.instance_counts.tolist()):
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
        """Return the AP of each category: its mean precision over the recalls, or the area that Cityscapes measures."""
        means: Array = self.curves().mean(axis=1)
        for number in np.flatnonzero(self.instance_counts).tolist() if self.streets else ():
            detections = np.flatnonzero(self.category == number)
            detections = detections[np.argsort(self.score[detections], kind="stable")]
            count = int(self.instance_counts[number])
            means[number] = average_precision(self.score[detections], self.right[detections], count)
        return means


def _list_curve_points(judged: _JudgedDetections) -> _CurvePoints:
    """Return all detections, ignored ones included, as points; ties follow the order of images."""
    return _CurvePoints(judged.category, judged.score, judged.right, judged.instance_counts, RECALLS, judged.streets)


# ── the calibration of scores ───────────────────────────────────────────────


_BINS = 10
#: The bins of the calibration error that also weighs IoU (LaECE).
_LOCATED_BINS = 25


@dataclass(frozen=True)
class _Calibration:
    """The calibration of detections in bins by score: number, mean score, and fraction correct."""

    counts: Array
    scores: Array
    shares: Array

    @property
    def error(self) -> float:
        """Return the mean gap of score and precision, weighted by detections (D-ECE)."""
        weight = self.counts / max(int(self.counts.sum()), 1)
        return float((weight * np.abs(self.scores - self.shares)).sum())

    @property
    def largest_gap(self) -> float:
        """Return the largest gap of a bin (MCE)."""
        return float(np.abs(self.scores - self.shares).max(initial=0.0))


def measure_calibration(judged: _JudgedDetections, least: float = -np.inf) -> _Calibration:
    """Return the calibration of the detections, without ignored ones."""
    selection = judged.select(least)
    return _bin_scores(judged.score[selection], judged.right[selection].astype(float), _BINS)


def measure_localisation_error(judged: _JudgedDetections, least: float = -np.inf) -> float | None:
    """Return LaECE: the mean gap of score and IoU over categories, where wrong detections have IoU 0."""
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
    """Return the bin of each score; scores beyond 0 and 1 fall into the outermost bins."""
    bin_of = np.clip((score * bins).astype(int), 0, bins - 1)
    counts, weights = np.bincount(bin_of, minlength=bins), np.maximum(np.bincount(bin_of, minlength=bins), 1)
    return _Calibration(counts, np.bincount(bin_of, score, bins) / weights, np.bincount(bin_of, value, bins) / weights)


@dataclass(frozen=True)
class _BestThreshold:
    """The score threshold with the largest F1; chosen on the same data, it is slightly optimistic."""

    score: float
    f1: float
    precision: float
    recall: float


def _find_best_threshold(judged: _JudgedDetections, category: int | None = None) -> _BestThreshold | None:
    """Return the best threshold of a category, or of all together; None without correct ones."""
    selection = ~judged.ignored & (True if category is None else judged.category == category)
    instances = judged.instance_counts.sum() if category is None else judged.instance_counts[category]
    order = np.argsort(-judged.score[selection], kind="stable")
    score, right = judged.score[selection][order], judged.right[selection][order]
    if not right.any():
        return None
    is_last_of_score = np.append(score[1:] != score[:-1], True)  # all detections of equal scores are kept, or none
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
    """The numbers of correct, wrong and missed in each image, above a score."""

    right: Array
    wrong: Array
    missed: Array

    @property
    def f1(self) -> Array:
        """Return the F1 of each image; 1 for empty images."""
        everything = 2 * self.right + self.wrong + self.missed
        quotient: Array = 2 * self.right / np.maximum(everything, 1)
        return np.where(everything == 0, 1.0, quotient)

    def profiles(self) -> dict[str, int]:
        """Return the numbers of images without mistakes, with only false alarms, only misses, or both."""
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


#: The kinds of wrong detections, then of instances without any detection, with their meanings.
KINDS = {
    "Cls": "right location, wrong category",
    "Loc": "right category, inexact location",
    "Both": "wrong category and inexact location",
    "Dupe": "already matched by another detection",
    "Bkg": "no object there",
    "Miss": "not detected at all",
}
_CLS, _LOC, _BOTH, _DUPE, _BKG, _MISS = range(len(KINDS))
RIGHT = -1
#: The total cost of all false detections, and of all unmatched instances.
_TOTALS = ("FalsePos", "FalseNeg")


@dataclass(frozen=True)
class _DetectionErrors:
    """The errors of detections and their costs."""

    #: An index in KINDS, or RIGHT.
    kind: Array
    #: The instance that a detection of the kinds Cls and Loc concerns, else -1.
    target: Array
    #: The instances without any detection, even an inexact one.
    missed: Array
    #: The counted categories: those with instances, or by TIDE's rule all.
    counted: Array
    #: The AP of each category; NaN without detections and instances.
    precision: Array
    #: The AP of each category once a kind of KINDS or of _TOTALS is repaired.
    repaired: dict[str, Array]

    def average(self, precision: Array) -> float:
        selection = self.counted & ~np.isnan(precision)
        return float(precision[selection].mean()) if selection.any() else 0.0

    def costs(self) -> dict[str, float]:
        """Return the cost of each kind in mean AP; kinds overlap, so they do not sum to the loss."""
        before = self.average(self.precision)
        gains = {name: self.average(after) - before for name, after in self.repaired.items()}
        return {name: gain if name in _TOTALS else max(0.0, gain) for name, gain in gains.items()}


def _find_errors(judged: _JudgedDetections, *, as_tide: bool = False) -> _DetectionErrors:
    """Return the kind of every error, and the gain of repairing each kind."""
    kind, target = _classify_detections(judged)
    free = ~judged.hits & ~judged.crowd
    missed = free.copy()
    missed[target[target >= 0]] = False
    points = replace(_list_curve_points(judged), recalls=_TIDE_RECALLS) if as_tide else _list_curve_points(judged)
    before = points.select(~judged.ignored).precision()
    wrong_first = np.argsort(judged.right, kind="stable")  # as TIDE does after any repair
    points, counted = points.select(wrong_first), ~judged.ignored[wrong_first]
    is_best = _flag_best(judged, target, free)[wrong_first]
    moved = points.category.copy()
    moved[is_best] = judged.instance_category[target[wrong_first][is_best]]
    repaired = {}
    for number, name in enumerate(KINDS):
        of_kind = kind[wrong_first] == number
        fixed = replace(
            points, category=np.where(of_kind, moved, points.category), right=points.right | (of_kind & is_best)
        )
        repaired[name] = fixed.select(
            np.where(of_kind, is_best, counted)
        ).precision()  # the best detection counts even if ignored
    points = points.select(counted)
    repaired["Miss"] = points.without(judged.instance_category[missed]).precision()
    repaired["FalsePos"] = replace(points, score=points.right.astype(float)).precision()
    repaired["FalseNeg"] = points.without(judged.instance_category[free]).precision()
    return _DetectionErrors(kind, target, missed, (judged.instance_counts > 0) | as_tide, before, repaired)


def _classify_detections(judged: _JudgedDetections) -> tuple[Array, Array]:
    """Return the first matching kind of each detection, and the instance concerned."""
    pairs, foreground, count = judged.pairs, judged.foreground, len(judged.record)
    pairs = pairs.select(~judged.crowd[pairs.truth])
    same_category = judged.category[pairs.prediction] == judged.instance_category[pairs.truth]
    near, instance = _find_closest(pairs.select(same_category), count)
    foreign, neighbour = _find_closest(pairs.select(~same_category), count)
    repeated, _ = _find_closest(pairs.select(same_category & judged.hits[pairs.truth]), count)
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
    """Return the largest IoU of each detection and its instance; 0 and -1 without a pair."""
    iou, instances = np.zeros(count), np.full(count, -1)
    detections, indices = np.unique(pairs.prediction, return_index=True)  # pairs begin with the closest
    iou[detections], instances[detections] = pairs.iou[indices], pairs.truth[indices]
    return iou, instances


def _flag_best(judged: _JudgedDetections, target: Array, is_unmatched: Array) -> Array:
    """Return flags of the highest-scoring detection of each unmatched instance."""
    about = np.flatnonzero(target >= 0)
    about = about[is_unmatched[target[about]]]
    order = about[np.lexsort((-judged.score[about], target[about]))]
    flags = np.zeros(len(target), bool)
    flags[order[np.unique(target[order], return_index=True)[1]]] = True
    return flags


# ── all tables of a split ───────────────────────────────────────────────────


#: The maximum number of listed suspected errors of the truth.
_MOST_SUSPECTS = 50


@dataclass(frozen=True)
class InstanceDiagnosis:
    """The diagnosis of a split's detections, at an IoU of 0.5 by default."""

    judged: _JudgedDetections
    protocol: InstanceProtocol

    @cached_property
    def errors(self) -> _DetectionErrors:
        return _find_errors(self.judged)

    @cached_property
    def best_threshold(self) -> _BestThreshold | None:
        """Return the score threshold with the largest F1 over all categories."""
        return _find_best_threshold(self.judged)

    @cached_property
    def least(self) -> float:
        """Return the score of kept detections: the best threshold, or all if none is correct."""
        return self.best_threshold.score if self.best_threshold else -np.inf

    @cached_property
    def counts(self) -> _ImageCounts:
        """Return the correct and wrong detections of each image, among kept ones."""
        return _count_by_image(self.judged, self.least)

    @cached_property
    def selection(self) -> Array:
        """Return flags of the kept, counted detections."""
        return self.judged.select(self.least)

    @cached_property
    def misses(self) -> Array:
        """Return flags of the instances that no kept detection matches."""
        flags = ~self.judged.crowd
        flags[self.judged.partner[self.selection & self.judged.right]] = False
        return flags

    @cached_property
    def names(self) -> list[str]:
        return [category.name for category in self.judged.truth.categories]

    def sum_kinds(self) -> dict[str, float]:
        """Return the cost of each kind in mean AP, without the summary kinds."""
        costs = self.errors.costs()
        return {kind: costs[kind] for kind in KINDS}

    def list_kinds(self) -> list[Row]:
        """Return a row per kind of error: its frequency, and its cost in AP at an IoU of 0.5."""
        counts = np.bincount(self.errors.kind[self.errors.kind >= 0], minlength=len(KINDS))
        counts[_MISS] = self.errors.missed.sum()
        costs = self.errors.costs()
        return [
            {"kind": name, "about": about, "count": int(count), "cost": costs[name]}
            for (name, about), count in zip(KINDS.items(), counts, strict=True)
        ]

    def list_categories(self) -> list[Row]:
        """Return a row per category with instances: costs by kind, and the best threshold."""
        gains = {name: np.maximum(self.errors.repaired[name] - self.errors.precision, 0) for name in KINDS}
        rows = []
        for index in np.flatnonzero(self.judged.instance_counts).tolist():
            costs = {name: float(np.nan_to_num(gain[index])) for name, gain in gains.items()}
            best = _find_best_threshold(self.judged, index)
            rows.append(
                {
                    "name": self.names[index],
                    "instances": int(self.judged.instance_counts[index]),
                    "detections": int((self.judged.category == index).sum()),
                    "AP50": float(self.errors.precision[index]),
                    **costs,
                    "threshold": best and best.score,
                    "F1": best.f1 if best else 0.0,
                }
            )
        return rows

    def average_curves(self) -> dict[float, Array]:
        """Return the mean precision over categories at 101 recalls, for each IoU of AP."""
        curves_by_iou = {}
        for threshold, judged in self._judged_at.items():
            curves = _list_curve_points(judged).select(~judged.ignored).curves()[judged.instance_counts > 0]
            curves_by_iou[round(threshold, 2)] = curves.mean(axis=0) if len(curves) else np.zeros(curves.shape[1])
        return curves_by_iou

    def average_precision(self, iou: float) -> float:
        """Return the mean AP over categories at an IoU of AP."""
        judged = self._judged_at[min(self._judged_at, key=lambda threshold: abs(threshold - iou))]
        precision = _list_curve_points(judged).select(~judged.ignored).precision()[judged.instance_counts > 0]
        return float(precision.mean()) if len(precision) else 0.0

    def trace_curve(self, category: int) -> tuple[Array, Array, Array]:
        """Return recall, precision and score of a category after each detection, by falling score."""
        judged = self.judged
        detections = np.flatnonzero((judged.category == category) & ~judged.ignored)
        detections = detections[np.argsort(-judged.score[detections], kind="stable")]
        true = np.cumsum(judged.right[detections])
        return (
            true / judged.instance_counts[category],
            true / np.arange(1, len(detections) + 1),
            judged.score[detections],
        )

    @cached_property
    def _judged_at(self) -> dict[float, _JudgedDetections]:
        return {threshold: self.judged.match_at(threshold) for threshold in THRESHOLDS}

    @cached_property
    def image_costs(self) -> Array:
        """Return the number of mistakes of each image, plus a fraction: its mistakes at all IoUs of AP, relative to the
        maximum.

        An image whose detections all match, but not exactly, has a cost below 1.
        """
        counts = [_count_by_image(judged, self.least) for judged in self._judged_at.values()]
        at_all = np.sum([count.wrong + count.missed for count in counts], axis=0)
        costs: Array = self.counts.wrong + self.counts.missed + at_all / (at_all.max(initial=0) + 1)
        return costs

    def list_images(self) -> list[Row]:
        """Return a row per image, most mistakes first."""
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
        """Return the indices of the images with the most mistakes."""
        order = np.argsort(-self.image_costs, kind="stable")
        return [int(index) for index in order[:count]]

    def find_worst_of_categories(self) -> list[int]:
        """Return the worst image of each category with mistakes, lowest AP first."""
        judged, wrong = self.judged, self.selection & ~self.judged.right
        images = np.concatenate((judged.image[wrong], judged.instance_image[self.misses]))
        categories = np.concatenate((judged.category[wrong], judged.instance_category[self.misses]))
        worst_images = []
        for index in np.argsort(self.errors.precision, kind="stable"):
            mistaken_images = images[categories == index]
            if len(mistaken_images) and judged.instance_counts[index]:
                worst_images.append(int(np.bincount(mistaken_images).argmax()))
        return worst_images

    def list_suspects(self) -> list[Row]:
        """Return confident detections that contradict the truth, which may be wrong there."""
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
    """Return the diagnosis; raises SubmissionError for an unreadable submission."""
    scorer, protocol = inputs.scorers[report.split], report.protocol
    truth = scorer.truth
    if not isinstance(truth, InstanceTruth) or not isinstance(protocol, InstanceProtocol):
        raise UsageError(f"failures of {protocol.name} have no kinds")
    records = read_predictions(inputs.results, truth, protocol, scorer.rules.limits)
    if protocol.streets:
        truth = replace(truth, crowd=truth.crowd | (truth.pixels < STREET_RANGES[0][1]))
    return InstanceDiagnosis(_judge_detections(records, truth, protocol), protocol)
