"""Precision by recall of detections that were judged, category by category."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from segjudge.evaluation_script.families.instances.metrics import RECALLS
from segjudge.evaluation_script.masks.stack import Array
from segjudge.families.instances.judged import JudgedDetections

#: At which recalls TIDE looks at precision: some of COCO's differ in the last bit, and so may AP.
TIDE_RECALLS = np.arange(101) / 100


@dataclass(frozen=True)
class CurvePoints:
    """What curves are made of: detections, of equal scores in this order, and how many instances categories have."""

    category: Array
    score: Array
    right: Array
    instances: Array
    recalls: Array

    def of(self, chosen: Array) -> CurvePoints:
        """Return some of the detections."""
        category, score, right = (column[chosen] for column in (self.category, self.score, self.right))
        return replace(self, category=category, score=score, right=right)

    def without(self, categories: Array) -> CurvePoints:
        """Return the same where an instance of each of these categories does not exist."""
        return replace(self, instances=self.instances - np.bincount(categories, minlength=len(self.instances)))

    def curves(self) -> Array:
        """Return the precision of each category at each recall; not a number where it has nothing at all."""
        order = np.lexsort((-self.score, self.category))
        bounds = np.searchsorted(self.category[order], np.arange(len(self.instances) + 1))
        found = np.full((len(self.instances), len(self.recalls)), np.nan)
        for number, count in enumerate(self.instances.tolist()):
            right = self.right[order[bounds[number] : bounds[number + 1]]]
            if not count or not right.any():
                found[number] = 0.0 if count or len(right) else np.nan
                continue
            true = np.cumsum(right)
            precision = true / np.arange(1, len(right) + 1)
            envelope = np.append(np.maximum.accumulate(precision[::-1])[::-1], 0.0)
            found[number] = envelope[np.searchsorted(true / count, self.recalls)]
        return found

    def precision(self) -> Array:
        """Return the AP of each category: its mean precision over the recalls."""
        means: Array = self.curves().mean(axis=1)
        return means


def points_of(judged: JudgedDetections) -> CurvePoints:
    """Return all detections, those that are ignored too, as points; of equal scores the first image's is first."""
    return CurvePoints(judged.category, judged.score, judged.right, judged.instances, RECALLS)
