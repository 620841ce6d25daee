"""Matching and AP as in Cityscapes: ignored pixels, and a precision curve without smoothing.

A detection matches an instance if their IoU exceeds the threshold. Instances share no pixels, so a detection matches at
most one; of the detections that match an instance, the most confident is right. Detections that match an ignored
instance are ignored. Unmatched detections are ignored if enough of their pixels lie on unlabelled pixels, groups, or
instances that are too small or too far away.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from ...masks.stack import Array
from ...values.arithmetic import add, mean
from .protocols import STREET_METRICS

#: The thresholds that an IoU must exceed. The script adds .05 repeatedly, so they have its rounding.
_OVERLAPS = np.arange(0.5, 1.0, 0.05)
#: The suffixes of metrics for instances at all distances and for near ones, with the minimum number of pixels and the
#: maximum distance in metres.
RANGES = (("", 100, np.inf), ("100m", 1000, 100.0), ("50m", 1000, 50.0))
#: The minimum share of an instance's pixels with a measured distance.
_LEAST_DENSITY = 0.5
#: The number of ranges in tables of counts, one more than the protocols use.
_TABLE_RANGES = 4


@dataclass(frozen=True)
class StreetInstances:
    """Instances of the truth, as Cityscapes sorts them."""

    pixels: Array
    group: Array
    #: The distance in metres, and the share of pixels with a measured distance; None if the truth has no distances.
    distances: Optional[Array]

    def flag_outside(self) -> Array:
        """Flag for each range the instances that are too small or too far away."""
        flags = np.ones((_TABLE_RANGES, len(self.pixels)), bool)
        for number, (_, least, farthest) in enumerate(RANGES):
            flags[number] = self.pixels < least
            if number and self.distances is not None:
                near = (self.distances[:, 0] <= farthest) & (self.distances[:, 1] >= _LEAST_DENSITY)
                flags[number] |= ~near
        return flags

    def flag_ignored(self) -> Array:
        """Flag for each range the instances that are ignored; ranges of distance ignore those without a distance."""
        flags = self.flag_outside() | self.group
        if self.distances is None:
            flags[1:] = True
        return flags


class SharedPixels(NamedTuple):
    """Pairs of a detection and an instance of one image and category, by index, with their shared pixels."""

    detection: Array
    instance: Array
    pixels: Array


def judge(
    shared: SharedPixels,
    instances: StreetInstances,
    detections: Tuple[Array, Array, Array],
    *,
    counts_groups_twice: bool,
) -> Tuple[Array, Array]:
    """Return words of bits per detection, as COCO's matching does: whether it is correct, or ignored.

    The arguments are the detections' pixels, how many of them are unlabelled, and scores. With
    `counts_groups_twice`, pixels of a group that is too small or too far away count twice.
    """
    pixels, void, score = detections
    right_words, ignored_words = np.zeros(len(pixels), np.uint64), np.zeros(len(pixels), np.uint64)
    union = pixels[shared.detection] + instances.pixels[shared.instance] - shared.pixels
    iou = shared.pixels / np.maximum(union, 1)
    outside, uncounted = instances.flag_outside(), instances.flag_ignored()
    # For each instance, the most confident comes first.
    order = np.lexsort((shared.detection, -score[shared.detection], shared.instance))
    for number in range(len(RANGES)):
        times = (
            (instances.group + outside[number].astype(np.int64))
            if counts_groups_twice
            else outside[number] | instances.group
        )
        excused = void + np.bincount(shared.detection, times[shared.instance] * shared.pixels, len(pixels))
        share = excused / np.maximum(pixels, 1)
        for step, overlap in enumerate(_OVERLAPS.tolist()):
            matches = order[iou[order] > overlap]
            detection, instance = shared.detection[matches], shared.instance[matches]
            is_free, counts, right = (np.ones(len(pixels), bool), *np.zeros((2, len(pixels)), bool))
            is_free[detection] = False
            counted = ~uncounted[number][instance]
            detection, instance = detection[counted], instance[counted]
            counts[detection] = True
            right[detection[np.append(True, instance[1:] != instance[:-1])[: len(instance)]]] = True
            ignored = np.where(is_free, share > overlap, ~counts) | (pixels == 0)
            bit = np.uint64(1 << (number * len(_OVERLAPS) + step))
            right_words |= np.where(right, bit, np.uint64(0))
            ignored_words |= np.where(ignored, bit, np.uint64(0))
    return right_words, ignored_words


class StreetCurves:
    """The judged detections of all images by category and rising score, and the number of instances."""

    def __init__(self, truth: Array, detections: Array, categories: int, images: int) -> None:
        rows = detections[np.lexsort((detections["score"], detections["category"]))]
        bounds = np.searchsorted(rows["category"], np.arange(categories + 1))
        self._rows = [rows[start:stop] for start, stop in zip(bounds[:-1], bounds[1:])]
        self._instances = np.zeros((categories, len(RANGES), images), np.int64)
        self._instances[truth["category"], :, truth["image"]] = truth["counted"][:, : len(RANGES)]

    def precisions(self, images: Optional[Array] = None) -> Array:
        """Return the AP (ranges, categories, overlaps), over all images or the flagged ones."""
        table = np.full((len(RANGES), len(self._rows), len(_OVERLAPS)), np.nan)
        for category, rows in enumerate(self._rows):
            per_image = self._instances[category]
            counts = per_image.sum(axis=1) if images is None else per_image[:, images].sum(axis=1)
            chosen = rows if images is None else rows[images[rows["image"]]]
            for number in np.flatnonzero(counts).tolist():
                for step in range(len(_OVERLAPS)):
                    bit = np.uint64(1 << (number * len(_OVERLAPS) + step))
                    judged_rows = chosen[chosen["ignored"] & bit == 0]
                    right = judged_rows["matched"] & bit != 0
                    table[number, category, step] = average_precision(judged_rows["score"], right, int(counts[number]))
        return table


def average_precision(score: Array, right: Array, instances: int) -> float:
    """Return the area under the precision-recall curve of rising scores, which has a point at every score."""
    if not len(score):
        return 0.0
    starts = np.flatnonzero(np.append(True, score[1:] != score[:-1]))
    true = int(right.sum()) - np.append(0, np.cumsum(right))[starts]
    precision = np.append(true / (len(score) - starts), 1.0)
    recall = np.append(true / instances, 0.0)
    recalls = np.concatenate((recall[:1], recall, [0.0]))
    return add(precision * (0.5 * (recalls[:-2] - recalls[2:])))


def sum_up(precisions: Array) -> Dict[str, Optional[float]]:
    """Return the metrics of some categories from their AP (ranges, categories, overlaps)."""
    values = {f"AP{name}": precisions[number] for number, (name, _, _) in enumerate(RANGES)}
    values.update({"AP50%": precisions[0, :, :1], "AP50%50m": precisions[2, :, :1]})
    present = {name: table[~np.isnan(table)] for name, table in values.items()}
    return {name: mean(present[name]) if len(present[name]) else None for name in STREET_METRICS}


def list_categories(precisions: Array, named: Sequence[Tuple[int, str]]) -> List[Dict[str, Any]]:
    """Return a row for each category, given by id and name."""
    return [
        {"id": number, "name": name, **sum_up(precisions[:, index : index + 1])}
        for index, (number, name) in enumerate(named)
    ]
