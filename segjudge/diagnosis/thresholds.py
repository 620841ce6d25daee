"""From which score on detections are worth keeping, and what then is right and wrong, image by image."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from segjudge.diagnosis.judged import JudgedDetections
from segjudge.evaluation_script.masks import Array


@dataclass(frozen=True)
class BestThreshold:
    """The score from which on detections have the largest F1; chosen on the same data, it is a little too good."""

    score: float
    f1: float
    precision: float
    recall: float


def best_threshold(judged: JudgedDetections, category: int | None = None) -> BestThreshold | None:
    """Return the best threshold of a category, or of all together; None where nothing is right."""
    chosen = ~judged.ignored & (True if category is None else judged.category == category)
    instances = judged.instances.sum() if category is None else judged.instances[category]
    order = np.argsort(-judged.score[chosen], kind="stable")
    score, right = judged.score[chosen][order], judged.right[chosen][order]
    if not right.any():
        return None
    last = np.append(score[1:] != score[:-1], True)  # of equal scores all are kept, or none
    true, kept = np.cumsum(right)[last], np.flatnonzero(last) + 1
    f1 = 2 * true / (kept + instances)
    best = int(f1.argmax())
    return BestThreshold(
        float(score[last][best]), float(f1[best]), float(true[best] / kept[best]), float(true[best] / instances)
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


def by_image(judged: JudgedDetections, least: float) -> ImageCounts:
    """Return what is right and wrong in each image among the detections from a score on."""
    images = len(judged.truth.images.ids)
    kept = ~judged.ignored & (judged.score >= least)
    right = np.bincount(judged.image[kept & judged.right], minlength=images)
    wrong = np.bincount(judged.image[kept & ~judged.right], minlength=images)
    instances = np.bincount(judged.instance_image[~judged.crowd], minlength=images)
    return ImageCounts(right, wrong, instances - right)
