"""Suspicions about records that seem to follow another convention."""

from __future__ import annotations

from typing import Any, List, Optional

import numpy as np

from ...files import quantity
from ...masks.stack import Array
from ..base.suspicions import ScoreRange, is_better, judge_matches
from .records import Category, KnownImages, RecordColumns

#: The minimum number of boxes, points or detections for recognising their notation.
_FEWEST = 10
#: The distance in pixels from which a coordinate lies outside its image, and the maximum of normalized coordinates.
_SLACK, _NORMALIZED = 2.0, 1.5
#: Orders in which boxes and points may be written.
_BOX_ORDERS = ("[x1, y1, x2, y2]", "[center x, center y, width, height]", "[y, x, height, width]")
_POINT_ORDERS = ("y and x",)
#: The share that counts as nearly all, and the share from which boxes beyond their images are too many.
_NEARLY_ALL, _TOO_MANY = 0.99, 0.05


class RecordForm:
    """The form of a submission's records, counted or not."""

    def __init__(self) -> None:
        #: The numbers of boxes or points: all, those outside their images, those whose coordinates may be shares, and
        #: those that each other order would put inside.
        self._counts = np.zeros(3 + len(_BOX_ORDERS), np.int64)

    def add(self, columns: RecordColumns, images: KnownImages) -> None:
        """Count signs of mistakes in records."""
        if columns.points is not None:
            self._add_points(columns.points, images.sizes[columns.image])
        elif columns.boxes.any():
            self._add_boxes(columns.boxes, images.sizes[columns.image])

    def _add_boxes(self, boxes: Array, sizes: Array) -> None:
        # Columns, since numpy is slow for rows of two.
        (x, y, width, height), (tall, wide) = boxes.T, (sizes + _SLACK).T
        x_end, y_end = x + width, y + height
        outside = (x_end > wide) | (y_end > tall) | (x < -_SLACK) | (y < -_SLACK)
        normalized = (x <= _NORMALIZED) & (y <= _NORMALIZED) & (width <= _NORMALIZED) & (height <= _NORMALIZED)
        as_corners = (width >= x) & (height >= y) & (width <= wide) & (height <= tall)
        half_width, half_height = width / 2, height / 2
        as_centers = (x - half_width >= -_SLACK) & (y - half_height >= -_SLACK)
        as_centers &= (x + half_width <= wide) & (y + half_height <= tall)
        as_exchanged = (x_end <= tall) & (y_end <= wide)
        self._note(outside, normalized, as_corners, as_centers, as_exchanged)

    def _add_points(self, points: Array, sizes: Array) -> None:
        x, y = (np.ascontiguousarray(points[:, axis::2]) for axis in range(2))
        tall, wide = (sizes[:, axis, None] + _SLACK for axis in range(2))
        chosen = (x != 0) | (y != 0)
        outside = (x > wide) | (y > tall) | (x < -_SLACK) | (y < -_SLACK)
        normalized = (x <= _NORMALIZED) & (y <= _NORMALIZED) & chosen
        as_exchanged = (x <= tall) & (y <= wide) & chosen
        self._note(outside & chosen, normalized, as_exchanged, count=int(np.count_nonzero(chosen)))

    def _note(self, outside: Any, *flags: Any, count: Optional[int] = None) -> None:
        counts = [outside.size if count is None else count, *map(np.count_nonzero, (outside, *flags))]
        self._counts[: len(counts)] += np.array(counts, np.int64)

    def join(self, form: RecordForm) -> None:
        """Add the counts of another form."""
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


#: Common numberings of categories, by their names.
_CODINGS = (
    "1 was added to each",
    "1 was subtracted from each",
    "they were numbered from 0",
    "they were numbered from 1",
)


def _judge_categories(truth: Array, detections: Array, categories: List[Category]) -> List[str]:
    """Return a warning if the categories of detections seem to be numbered differently from the truth's."""
    ids = np.array([category.id for category in categories], np.int64)
    total = len(detections)
    if total < _FEWEST or (detections["category"] == detections["category"][0]).all():
        return []
    count = len(ids)
    true = (truth["image"].astype(np.int64) * count + truth["category"])[truth["counted"][:, 0] > 0]
    image, category = detections["image"].astype(np.int64) * count, detections["category"].astype(np.int64)

    def count_present(coding: Array) -> int:
        """Count the detections whose image has a true instance of the category that a coding gives for theirs."""
        coded = coding[category]
        return int(np.count_nonzero(np.isin((image + coded)[coded >= 0], true)))

    right = count_present(np.arange(count))
    if not is_better(right, total, total):  # no other coding could be better
        return []
    codings = _places(ids, ids - 1), _places(ids, ids + 1), _within(ids, count), _within(ids - 1, count)
    for name, coding in zip(_CODINGS, codings):
        present = count_present(coding)
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
    return [*scores.judge(), *(_judge_categories(truth, detections, categories) or missed)]
