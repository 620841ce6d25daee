"""The kinds of error that TIDE tells apart, and how much AP each one costs."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from segjudge.evaluation_script.masks.detections import OverlappingPairs
from segjudge.evaluation_script.masks.stack import Array
from segjudge.families.instances.curves import TIDE_RECALLS, points_of
from segjudge.families.instances.judged import BACKGROUND, JudgedDetections

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
TOTALS = ("FalsePos", "FalseNeg")


@dataclass(frozen=True)
class DetectionErrors:
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
    #: The same once a kind of KINDS or of TOTALS is repaired.
    repaired: dict[str, Array]

    def average(self, precision: Array) -> float:
        """Return the mean over the categories."""
        known = self.counted & ~np.isnan(precision)
        return float(precision[known].mean()) if known.any() else 0.0

    def costs(self) -> dict[str, float]:
        """Return how much mean AP each kind costs; kinds overlap, so that they do not sum to what is lost."""
        before = self.average(self.precision)
        gains = {name: self.average(after) - before for name, after in self.repaired.items()}
        return {name: gain if name in TOTALS else max(0.0, gain) for name, gain in gains.items()}


def errors_of(judged: JudgedDetections, *, as_tide: bool = False) -> DetectionErrors:
    """Return the kind of every error, and what repairing each kind would gain."""
    kind, target = _kinds(judged)
    free = ~judged.used & ~judged.crowd
    missed = free.copy()
    missed[target[target >= 0]] = False
    points = replace(points_of(judged), recalls=TIDE_RECALLS) if as_tide else points_of(judged)
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
    return DetectionErrors(kind, target, missed, (judged.instances > 0) | as_tide, before, repaired)


def _kinds(judged: JudgedDetections) -> tuple[Array, Array]:
    """Return the kind of each detection, the first that holds, and the instance that it is about."""
    pairs, foreground, count = judged.pairs, judged.foreground, len(judged.record)
    pairs = pairs.of(~judged.crowd[pairs.truth])
    own = judged.category[pairs.prediction] == judged.instance_category[pairs.truth]
    near, instance = _closest(pairs.of(own), count)
    other, neighbour = _closest(pairs.of(~own), count)
    taken, _ = _closest(pairs.of(own & judged.used[pairs.truth]), count)
    conditions = [
        judged.right,
        (near >= BACKGROUND) & (near <= foreground),
        other >= foreground,
        taken >= foreground,
        np.maximum(near, other) <= BACKGROUND,
    ]
    kind = np.select(conditions, [RIGHT, LOC, CLS, DUPE, BKG], BOTH)
    return kind, np.select([kind == LOC, kind == CLS], [instance, neighbour], -1)


def _closest(pairs: OverlappingPairs, count: int) -> tuple[Array, Array]:
    """Return the largest IoU of each detection and whose it is: 0 and -1 where there is no pair."""
    iou, real = np.zeros(count), np.full(count, -1)
    sent, first = np.unique(pairs.prediction, return_index=True)  # pairs begin with the closest
    iou[sent], real[sent] = pairs.iou[first], pairs.truth[first]
    return iou, real


def _best(judged: JudgedDetections, target: Array, free: Array) -> Array:
    """Return which detections have the highest score of those about the same free instance."""
    about = np.flatnonzero(target >= 0)
    about = about[free[target[about]]]
    order = about[np.lexsort((-judged.score[about], target[about]))]
    flags = np.zeros(len(target), bool)
    flags[order[np.unique(target[order], return_index=True)[1]]] = True
    return flags
