"""Suspicions about all detections, from their scores and matches alone: the doctor tries the other slips."""

from __future__ import annotations

from typing import List

import numpy as np

from ...masks.stack import Array
from ..base.suspicions import ScoreRange
from .protocols import InstanceProtocol

#: The minimum number of detections, or of images with instances, that tell.
_FEWEST = 10
#: The share of matched detections with a twin from which all seem to be sent twice, the minimum share of different
#: scores (rounded ones often coincide), and the share of keys that even numbers of detections have.
_TWICE, _DIFFERENT, _EVEN = 0.5, 0.25, 0.95
#: The share of images with instances but no detection above which results look incomplete.
_WITHOUT = 1 / 3


def judge_detections(truth: Array, detections: Array, categories: int, protocol: InstanceProtocol) -> List[str]:
    """Return warnings about all detections: their scores, repeated ones, and images without any."""
    truth, detections = (table[table["category"] < categories] for table in (truth, detections))
    if not len(detections):
        return []
    scores = ScoreRange()
    scores.add(detections["score"])
    matched = detections["matched"] & ~detections["ignored"] & np.uint64(1)  # at any size and the lowest threshold
    return [
        *scores.judge(),
        *_judge_duplicates(detections, matched),
        *_judge_one_score(detections, int(np.count_nonzero(matched))),
        *_judge_missing(truth[truth["counted"][:, 0] > 0], detections, protocol),
    ]


def _judge_duplicates(detections: Array, matched: Array) -> List[str]:
    """Return a warning if detections, by image, category and rank, seem to be repeated."""
    keys = ("image", "category", "score")
    repeats = np.logical_and.reduce([detections[key][1:] == detections[key][:-1] for key in keys])
    hits, total = int(np.count_nonzero(matched)), len(detections)
    twins = int(np.count_nonzero(repeats & ((matched[1:] > 0) != (matched[:-1] > 0))))
    sizes = np.diff(np.flatnonzero(np.concatenate(([True], ~repeats, [True]))))
    are_pairs = len(sizes) >= _FEWEST and np.count_nonzero(sizes % 2 == 0) >= _EVEN * len(sizes)
    are_twins = hits >= _FEWEST and twins >= _TWICE * hits
    if not (are_pairs or are_twins):
        return []
    scores = np.sort(detections["score"])  # np.unique would import numpy.ma
    if np.count_nonzero(scores[1:] != scores[:-1]) + 1 < _DIFFERENT * total:
        return []
    count = int(np.count_nonzero(repeats))
    return [f"{count:,} of {total:,} detections have the image, category and score of another: send each once"]


def _judge_one_score(detections: Array, hits: int) -> List[str]:
    """Return a warning if no score ranks detections, some of which are wrong but not all."""
    scores, total = detections["score"], len(detections)
    if total < _FEWEST or not 0 < hits < total or (scores != scores[0]).any():
        return []
    return [f"all {total:,} detections have the score {scores[0]:g}, which ranks none: write the confidence of each"]


def _judge_missing(counted: Array, detections: Array, protocol: InstanceProtocol) -> List[str]:
    """Return a warning if many images or videos with instances lack detections."""
    images = np.flatnonzero(np.bincount(counted["image"]))
    missing = int(np.count_nonzero(~np.isin(images, detections["image"])))
    if len(images) < _FEWEST or missing < _WITHOUT * len(images):
        return []
    scope = f"{missing:,} of {len(images):,} {'videos' if protocol.tubes else 'images'} with instances"
    return [f"{scope} have no detection: check that the results are of the whole split"]
