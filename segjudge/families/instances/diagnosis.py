"""The diagnosis of instance masks: the kinds of error that TIDE tells apart, what each costs, all tables of a split."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from segjudge.evaluation_script.families.base.reports import Report, Row
from segjudge.evaluation_script.families.instances.protocols import THRESHOLDS, InstanceProtocol
from segjudge.evaluation_script.families.instances.submission import read_records
from segjudge.evaluation_script.families.instances.truth import InstanceTruth
from segjudge.evaluation_script.masks.detections import OverlappingPairs
from segjudge.evaluation_script.masks.stack import Array
from segjudge.families.base.tools import ScoringInputs
from segjudge.families.instances.judging import (
    BACKGROUND,
    TIDE_RECALLS,
    BestThreshold,
    ImageCounts,
    JudgedDetections,
    count_by_image,
    count_confusions,
    curve_points,
    find_best_threshold,
    judge_detections,
)
from segjudge.system.errors import UsageError

#: The kinds of a detection that is not right, then that of an instance that none of them shows, and what they mean.
KINDS = {
    "Cls": "right place, wrong category",
    "Loc": "right category, inexact place",
    "Both": "wrong category and inexact place",
    "Dupe": "shown before by another detection",
    "Bkg": "nothing is there",
    "Miss": "not detected at all",
}
CLS, LOC, BOTH, DUPE, BKG, MISS = range(len(KINDS))
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
        """Return the mean over the categories."""
        chosen = self.counted & ~np.isnan(precision)
        return float(precision[chosen].mean()) if chosen.any() else 0.0

    def costs(self) -> dict[str, float]:
        """Return how much mean AP each kind costs; kinds overlap, so that they do not sum to what is lost."""
        before = self.average(self.precision)
        gains = {name: self.average(after) - before for name, after in self.repaired.items()}
        return {name: gain if name in _TOTALS else max(0.0, gain) for name, gain in gains.items()}


def find_errors(judged: JudgedDetections, *, as_tide: bool = False) -> _DetectionErrors:
    """Return the kind of every error, and what repairing each kind would gain."""
    kind, target = _kinds(judged)
    free = ~judged.hits & ~judged.crowd
    missed = free.copy()
    missed[target[target >= 0]] = False
    points = replace(curve_points(judged), recalls=TIDE_RECALLS) if as_tide else curve_points(judged)
    before = points.of(~judged.ignored).precision()
    wrong_first = np.argsort(judged.right, kind="stable")  # as TIDE has them once it repaired any
    points, counted = points.of(wrong_first), ~judged.ignored[wrong_first]
    best = _best(judged, target, free)[wrong_first]
    moved = points.category.copy()
    moved[best] = judged.instance_category[target[wrong_first][best]]
    repaired = {}
    for number, name in enumerate(KINDS):
        mine = kind[wrong_first] == number
        fixed = replace(points, category=np.where(mine, moved, points.category), right=points.right | (mine & best))
        repaired[name] = fixed.of(np.where(mine, best, counted)).precision()  # the best counts though it was ignored
    points = points.of(counted)
    repaired["Miss"] = points.without(judged.instance_category[missed]).precision()
    repaired["FalsePos"] = replace(points, score=points.right.astype(float)).precision()
    repaired["FalseNeg"] = points.without(judged.instance_category[free]).precision()
    return _DetectionErrors(kind, target, missed, (judged.instances > 0) | as_tide, before, repaired)


def _kinds(judged: JudgedDetections) -> tuple[Array, Array]:
    """Return the kind of each detection, the first that holds, and the instance that it is about."""
    pairs, foreground, count = judged.pairs, judged.foreground, len(judged.record)
    pairs = pairs.of(~judged.crowd[pairs.truth])
    own = judged.category[pairs.prediction] == judged.instance_category[pairs.truth]
    near, instance = _closest(pairs.of(own), count)
    foreign, neighbour = _closest(pairs.of(~own), count)
    repeated, _ = _closest(pairs.of(own & judged.hits[pairs.truth]), count)
    conditions = [
        judged.right,
        (near >= BACKGROUND) & (near <= foreground),
        foreign >= foreground,
        repeated >= foreground,
        np.maximum(near, foreign) <= BACKGROUND,
    ]
    kind = np.select(conditions, [RIGHT, LOC, CLS, DUPE, BKG], BOTH)
    return kind, np.select([kind == LOC, kind == CLS], [instance, neighbour], -1)


def _closest(pairs: OverlappingPairs, count: int) -> tuple[Array, Array]:
    """Return the largest IoU of each detection and whose it is: 0 and -1 where there is no pair."""
    iou, instances = np.zeros(count), np.full(count, -1)
    detections, indices = np.unique(pairs.prediction, return_index=True)  # pairs begin with the closest
    iou[detections], instances[detections] = pairs.iou[indices], pairs.truth[indices]
    return iou, instances


def _best(judged: JudgedDetections, target: Array, free: Array) -> Array:
    """Return which detections have the highest score of those about the same free instance."""
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

    judged: JudgedDetections
    protocol: InstanceProtocol

    @cached_property
    def errors(self) -> _DetectionErrors:
        """What is wrong with each detection, and what it costs."""
        return find_errors(self.judged)

    @cached_property
    def best(self) -> BestThreshold | None:
        """The threshold of scores with the largest F1 over all categories."""
        return find_best_threshold(self.judged)

    @cached_property
    def least(self) -> float:
        """The score from which on detections are kept: the best threshold, or all where nothing is right."""
        return self.best.score if self.best else -np.inf

    @cached_property
    def counts(self) -> ImageCounts:
        """What is right and wrong in each image, of the detections that are kept."""
        return count_by_image(self.judged, self.least)

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
        """The names of the categories."""
        return [category.name for category in self.judged.truth.categories]

    def kinds(self) -> list[Row]:
        """Return a row for each kind of error: how often it is, and how much AP it costs at an IoU of one half."""
        counts = np.bincount(self.errors.kind[self.errors.kind >= 0], minlength=len(KINDS))
        counts[MISS] = self.errors.missed.sum()
        costs = self.errors.costs()
        return [
            {"kind": name, "about": about, "count": int(count), "cost": costs[name]}
            for (name, about), count in zip(KINDS.items(), counts, strict=True)
        ]

    def categories(self) -> list[Row]:
        """Return a row for each category with instances: what each kind costs there, and its best threshold."""
        gains = {name: np.maximum(self.errors.repaired[name] - self.errors.precision, 0) for name in KINDS}
        rows = []
        for index in np.flatnonzero(self.judged.instances).tolist():
            costs = {name: float(np.nan_to_num(gain[index])) for name, gain in gains.items()}
            best = find_best_threshold(self.judged, index)
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

    def curves(self) -> dict[float, Array]:
        """Return the precision at 101 recalls, as a mean over categories, for each IoU that AP looks at."""
        curves_by_iou = {}
        for threshold in THRESHOLDS:
            judged = self.judged.at(threshold)
            curves = curve_points(judged).of(~judged.ignored).curves()[judged.instances > 0]
            curves_by_iou[round(threshold, 2)] = curves.mean(axis=0) if len(curves) else np.zeros(curves.shape[1])
        return curves_by_iou

    def steps(self, category: int) -> tuple[Array, Array, Array]:
        """Return recall, precision and score of a category after each of its detections, by falling score."""
        judged = self.judged
        mine = np.flatnonzero((judged.category == category) & ~judged.ignored)
        mine = mine[np.argsort(-judged.score[mine], kind="stable")]
        true = np.cumsum(judged.right[mine])
        return true / judged.instances[category], true / np.arange(1, len(mine) + 1), judged.score[mine]

    def confusions(self) -> list[Row]:
        """Return which categories were taken for which others, the most frequent first, of the detections kept."""
        table = count_confusions(self.judged, self.least)[:-1, :-1]
        np.fill_diagonal(table, 0)
        rows, columns = np.nonzero(table)
        order = np.argsort(-table[rows, columns], kind="stable")
        return [
            {
                "truth": self.names[row],
                "detected as": self.names[column],
                "count": int(table[row, column]),
                "share": float(table[row, column] / self.judged.instances[row]),
            }
            for row, column in zip(rows[order].tolist(), columns[order].tolist(), strict=True)
        ]

    def images(self) -> list[Row]:
        """Return a row for each image, those with most mistakes first."""
        counts = self.counts
        columns = {"right": counts.right, "wrong": counts.wrong, "missed": counts.missed, "F1": counts.f1}
        return [
            {"image": self.image_name(index), **{name: column[index].item() for name, column in columns.items()}}
            for index in self.worst_images(len(counts.right))
        ]

    def image_name(self, index: int) -> str:
        """Return the name of an image, or its number."""
        number = int(self.judged.truth.images.ids[index])
        return self.judged.truth.names.get(number, str(number))

    def worst_images(self, count: int) -> list[int]:
        """Return the indices of so many images, those with most mistakes first."""
        order = np.argsort(-(self.counts.wrong + self.counts.missed), kind="stable")
        return [int(index) for index in order[:count]]

    def worst_of_categories(self) -> list[int]:
        """Return the image with most mistakes of each category that has any, categories with the lowest AP first."""
        judged, wrong = self.judged, self.selection & ~self.judged.right
        images = np.concatenate((judged.image[wrong], judged.instance_image[self.misses]))
        categories = np.concatenate((judged.category[wrong], judged.instance_category[self.misses]))
        chosen = []
        for index in np.argsort(self.errors.precision, kind="stable"):
            mine = images[categories == index]
            if len(mine) and judged.instances[index]:
                chosen.append(int(np.bincount(mine).argmax()))
        return chosen

    def suspects(self) -> list[Row]:
        """Return confident detections that the truth contradicts, where rather the truth may be wrong."""
        judged, kind, target = self.judged, self.errors.kind, self.errors.target
        wrong = np.flatnonzero(((kind == BKG) | (kind == CLS)) & self.selection)
        wrong = wrong[np.argsort(-judged.score[wrong], kind="stable")][:_MOST_SUSPECTS]
        return [
            {
                "image": self.image_name(judged.image[index]),
                "detected": self.names[judged.category[index]],
                "score": float(judged.score[index]),
                "truth": "nothing" if target[index] < 0 else self.names[judged.instance_category[target[index]]],
            }
            for index in wrong.tolist()
        ]


def diagnose(inputs: ScoringInputs, report: Report) -> InstanceDiagnosis:
    """Return the diagnosis of a submission; raises SubmissionError where it cannot be read."""
    scorer, protocol = inputs.scorers[report.split], report.protocol
    truth = scorer.truth
    if not isinstance(truth, InstanceTruth) or not isinstance(protocol, InstanceProtocol):
        raise UsageError(f"failures of {protocol.name} have no kinds")
    records = read_records(inputs.results, truth.images, protocol, scorer.rules.limits)
    return InstanceDiagnosis(judge_detections(records, truth, protocol), protocol)
