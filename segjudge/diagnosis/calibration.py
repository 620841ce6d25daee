"""How far scores say how often detections are right."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from segjudge.diagnosis.judged import JudgedDetections
from segjudge.evaluation_script.masks import Array

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
    kept = ~judged.ignored & (judged.score >= least)
    return _binned(judged.score[kept], judged.right[kept].astype(float), BINS)


def located_error(judged: JudgedDetections, least: float = -np.inf) -> float | None:
    """Return LaECE: the mean over categories of the gap between score and IoU, which is 0 where nothing is right."""
    kept = ~judged.ignored & (judged.score >= least)
    quality = np.zeros(len(kept))
    matched = judged.partner[judged.pairs.sent] == judged.pairs.real
    quality[judged.pairs.sent[matched]] = judged.pairs.iou[matched]
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
