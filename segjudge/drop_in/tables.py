"""Measures beside pycocotools': F-measures along the curves, and confused categories."""

from collections.abc import Iterable
from itertools import groupby
from operator import itemgetter
from typing import Any

import numpy as np

from segjudge.evaluation_script.families.instances.matching import ImageBlock, find_close_pairs

_Array = np.ndarray[Any, Any]


def trace_f_measures(precision: _Array, recalls: _Array, beta: float) -> _Array:
    """Return the F-measure at each recall (thresholds, recalls, categories), -1 without truth."""
    recall, weight = np.asarray(recalls)[:, None], beta**2
    both = np.maximum(weight * precision + recall, np.finfo(float).tiny)
    return np.where(precision > -1, (1 + weight) * precision * recall / both, -1.0)


def average_present(values: _Array) -> float:
    """Return the mean of the values that exist; -1 if none does."""
    present = values[values > -1]
    return float(np.mean(present)) if len(present) else -1.0


def confuse(blocks: Iterable[ImageBlock], threshold: float, least: float, categories: int) -> _Array:
    """Return how often each category (rows) was detected as each (columns); the last of both is the background.

    By falling score, a detection takes the instance with the highest IoU that is neither taken nor a crowd. Detections
    below the least score do not count.
    """
    matrix = np.zeros((categories + 1, categories + 1), np.int64)
    for block in blocks:
        close = find_close_pairs(block, threshold)
        sent = block.records.score[close.records] >= least
        free = ~block.truth.crowd[close.annotations]
        detected = np.append(block.records.category[close.records], categories)
        annotated = np.append(block.truth.category[close.annotations], categories)
        missed, matched = free.copy(), np.full(len(sent), -1)
        pairs = zip(*(column.tolist() for column in close.pairs), strict=True)
        for prediction, group in groupby(pairs, key=itemgetter(0)):
            candidates = [(iou, -truth) for _, truth, iou in group if missed[truth]]
            if candidates and sent[prediction]:
                matched[prediction] = -max(candidates)[1]
                missed[matched[prediction]] = False
        np.add.at(matrix, (annotated[matched[sent]], detected[:-1][sent]), 1)
        np.add.at(matrix[:, -1], annotated[:-1][missed], 1)
    return matrix
