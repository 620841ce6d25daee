"""What scores are worth: how often they say that detections are right, and from which one on to keep them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from segjudge.evaluation_script.masks.stack import Array
from segjudge.families.instances.judged import JudgedDetections

BINS = 10
#: Of the error that counts how well a detection lies too (LaECE).
LOCATED_BINS = 25


@dataclass(frozen=True)
class Calibration:
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


def calibration(judged: JudgedDetections, least: float = -np.inf) -> Calibration:
    """Return the calibration of the detections from a score on; those that are ignored do not count."""
    kept = judged.kept(least)
    return _binned(judged.score[kept], judged.right[kept].astype(float), BINS)


def located_error(judged: JudgedDetections, least: float = -np.inf) -> float | None:
    """Return LaECE: the mean over categories of the gap between score and IoU, which is 0 where nothing is right."""
    kept = judged.kept(least)
    quality = np.zeros(len(kept))
    matched = judged.partner[judged.pairs.prediction] == judged.pairs.truth
    quality[judged.pairs.prediction[matched]] = judged.pairs.iou[matched]
    quality[~judged.right] = 0
    errors = [
        _binned(judged.score[mine], quality[mine], LOCATED_BINS).error
        for number in np.unique(judged.category[kept])
        for mine in [kept & (judged.category == number)]
    ]
    return float(np.mean(errors)) if errors else None


def _binned(score: Array, value: Array, bins: int) -> Calibration:
    """Return scores and values by bin; scores beyond 0 and 1 are in the outermost."""
    place = np.clip((score * bins).astype(int), 0, bins - 1)
    counts, most = np.bincount(place, minlength=bins), np.maximum(np.bincount(place, minlength=bins), 1)
    return Calibration(counts, np.bincount(place, score, bins) / most, np.bincount(place, value, bins) / most)


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
    kept = judged.kept(least)
    right = np.bincount(judged.image[kept & judged.right], minlength=images)
    wrong = np.bincount(judged.image[kept & ~judged.right], minlength=images)
    instances = np.bincount(judged.instance_image[~judged.crowd], minlength=images)
    return ImageCounts(right, wrong, instances - right)
