"""Suspicions about records that seem to follow another convention."""

from __future__ import annotations

from typing import Any, List

import numpy as np

from ...files import quantity
from ...masks.stack import Array
from ..base.suspicions import ScoreRange, is_better, judge_matches
from .records import Category, KnownImages, RecordColumns

#: So many boxes, points or detections tell how they were written.
_FEWEST = 10
#: What lies outside of its picture by more pixels; coordinates up to here may be shares of it.
_SLACK, _NORMALIZED = 2.0, 1.5
#: What boxes and points may have been written as.
_BOX_ORDERS = ("[x1, y1, x2, y2]", "[center x, center y, width, height]", "[y, x, height, width]")
_POINT_ORDERS = ("y and x",)
#: Nearly all; and those that reach beyond their images are too many from this share on.
_NEARLY_ALL, _TOO_MANY = 0.99, 0.05


class RecordForm:
    """The form of a submission's records, counted or not."""

    def __init__(self) -> None:
        #: Boxes or points: all, those that lie outside of their pictures, those with coordinates that may be shares,
        #: and those that would lie inside by each other order.
        self._counts = np.zeros(3 + len(_BOX_ORDERS), np.int64)

    def add(self, columns: RecordColumns, images: KnownImages) -> None:
        """Count signs of mistakes in records."""
        if columns.points is not None:
            self._add_points(columns.points, images.sizes[columns.image])
        elif columns.boxes.any():
            self._add_boxes(columns.boxes, images.sizes[columns.image])

    def _add_boxes(self, boxes: Array, sizes: Array) -> None:
        starts, sides, bounds = boxes[:, :2], boxes[:, 2:], sizes[:, ::-1] + _SLACK
        outside: Array = (starts + sides > bounds) | (starts < -_SLACK)
        normalized: Array = boxes <= _NORMALIZED
        as_corners: Array = (sides >= starts) & (sides <= bounds)
        as_centers: Array = (starts - sides / 2 >= -_SLACK) & (starts + sides / 2 <= bounds)
        as_exchanged: Array = starts + sides <= bounds[:, ::-1]
        orders = [flags.all(axis=1) for flags in (as_corners, as_centers, as_exchanged)]
        self._note(outside.any(axis=1), normalized.all(axis=1), *orders)

    def _add_points(self, points: Array, sizes: Array) -> None:
        pairs = points.reshape(len(points), -1, 2)
        chosen = pairs.any(axis=2)
        bounds = (sizes[:, ::-1] + _SLACK)[:, None].repeat(pairs.shape[1], axis=1)[chosen]
        places = pairs[chosen]
        outside: Array = (places > bounds) | (places < -_SLACK)
        exchanged: Array = places <= bounds[:, ::-1]
        normalized: Array = places <= _NORMALIZED
        self._note(outside.any(axis=1), normalized.all(axis=1), exchanged.all(axis=1))

    def _note(self, outside: Any, *flags: Any) -> None:
        counts = [len(outside), *map(np.count_nonzero, (outside, *flags))]
        self._counts[: len(counts)] += np.array(counts, np.int64)

    def join(self, form: RecordForm) -> None:
        """Add the notes of another one."""
        self._counts += form._counts

    def judge(self, *, points: bool) -> List[str]:
        """Return warnings about the form of the records."""
        count, outside, normalized, *otherwise = self._counts.tolist()
        noun = "keypoint" if points else "box"
        nouns = "keypoints" if points else "boxes"
        due = "x, y and a flag for each point" if points else "[x, y, width, height]"
        if count < _FEWEST:
            return []
        if normalized == count:
            reach = (
                f"no {noun} reaches beyond {_NORMALIZED:g} pixels, as if coordinates were fractions of the image size"
            )
            return [f"{reach}: write {due} in pixels"]
        if outside < _TOO_MANY * count:
            return []
        leave = f"{outside:,} of {count:,} {nouns} reach beyond their images"
        for order, inside in zip(_POINT_ORDERS if points else _BOX_ORDERS, otherwise):
            if inside >= _NEARLY_ALL * count:
                return [f"{leave}, and read as {order} {inside:,} lie inside: write {due}"]
        return []


#: Numberings of categories that are common, by what they are called.
_CODINGS = (
    "1 was added to each",
    "1 was subtracted from each",
    "they were numbered from 0",
    "they were numbered from 1",
)


def judge_categories(truth: Array, detections: Array, categories: List[Category]) -> List[str]:
    """Return a warning if the categories of detections seem to be numbered differently from the truth's."""
    ids = np.array([category.id for category in categories], np.int64)
    total = len(detections)
    if total < _FEWEST or (detections["category"] == detections["category"][0]).all():
        return []
    count = len(ids)
    places = truth["image"].astype(np.int64) * count + truth["category"]
    true = places[truth["counted"][:, 0] > 0]

    def count_present(category: Array) -> int:
        has_place = category >= 0
        return int(np.isin(detections["image"][has_place].astype(np.int64) * count + category[has_place], true).sum())

    right = count_present(detections["category"].astype(np.int64))
    numbers = ids[detections["category"]]
    for name, category in zip(
        _CODINGS,
        (_places(ids, numbers - 1), _places(ids, numbers + 1), _within(numbers, count), _within(numbers - 1, count)),
    ):
        present = count_present(category)
        if is_better(right, present, total):
            share = f"{quantity(present, 'detection', total)} would have a category of their image instead of {right:,}"
            return [f"categories look as if {name}: with the truth's ids {share}. Write the ids of the truth"]
    return []


def _places(ids: Array, wanted: Array) -> Array:
    places = np.minimum(np.searchsorted(ids, wanted), len(ids) - 1)
    return np.where(ids[places] == wanted, places, -1)


def _within(places: Array, count: int) -> Array:
    return np.where((places >= 0) & (places < count), places, -1)


def judge_detections(truth: Array, detections: Array, categories: List[Category]) -> List[str]:
    """Return warnings about all detections: their scores, categories and matches."""
    truth, detections = (table[table["category"] < len(categories)] for table in (truth, detections))
    if not len(detections):
        return []
    scores = ScoreRange()
    scores.add(detections["score"])
    matched = detections["matched"] & ~detections["ignored"] & np.uint64(1)  # of any size, at the lowest threshold
    hits = int(np.count_nonzero(matched))
    missed = judge_matches("detection", int(truth["counted"][:, 0].sum()), 1, hits)
    return [*scores.judge(), *(judge_categories(truth, detections, categories) or missed)]
