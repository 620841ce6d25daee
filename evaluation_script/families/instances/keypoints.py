"""Keypoints of instances and their similarity (OKS), as the COCO API computes it.

The similarity of two points is a Gaussian of their distance. Its width grows with the instance's size and with the
point's sigma, the spread among annotators.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from itertools import chain
from typing import Any, Dict, List, NamedTuple

import numpy as np

from ...files import Flaw, name_list, quantity
from ...masks.backend import backend
from ...masks.detections import TrueSets
from ...masks.overlaps import Pairs
from ...masks.stack import Array
from ...values.arithmetic import exp

#: COCO's constants for people: nose, eyes, ears, shoulders, elbows, wrists, hips, knees, ankles.
COCO_SIGMAS = (
    0.026, 0.025, 0.025, 0.035, 0.035, 0.079, 0.079, 0.072, 0.072, 0.062, 0.062, 0.107, 0.107, 0.087, 0.087, 0.089,
    0.089,
)  # fmt: skip
#: The number of pairs compared at once; they take a few MB.
_PAIRS_AT_ONCE = 1 << 14
#: No threshold is lower.
_LEAST_SIMILARITY = 0.5
#: The maximum coordinate of a point, up to which distances are exact.
_LARGEST_COORDINATE = 1 << 24


@dataclass(frozen=True)
class TrueKeypoints:
    """The keypoints of all annotations."""

    #: x and y (annotations, points, 2), and whether each point is marked (annotations, points).
    points: Array
    marked: Array
    #: The number of marked points according to the truth; instances with none are ignored.
    count: Array
    #: The constants by category (categories, points).
    sigmas: Array
    #: The names of the points, and their links as pairs of indices.
    names: List[str]
    skeleton: List[List[int]]
    notes: List[str]

    def find_miscounted(self, ids: Array) -> str:
        """Return the fault of annotations whose num_keypoints differs from their marked points; "" without any."""
        miscounted = ids[self.count != self.marked.sum(axis=1)].tolist()
        if not miscounted:
            return ""
        return (
            f"has annotations whose num_keypoints is not the number of their marked points: {name_list(miscounted)}. "
            "Correct them, or score by coco-keypoints-official, which uses num_keypoints"
        )


class PointColumns(NamedTuple):
    """The keypoints of annotations as columns."""

    ids: Any
    #: x, y and flag of each point (annotations, 3 * points).
    numbers: Array
    #: The number of marked points that each states, and whether it does.
    stated: Array
    states: Array
    has_box: Array


def read_true_keypoints(annotations: List[Dict[str, Any]], categories: List[Dict[str, Any]]) -> TrueKeypoints:
    """Return the keypoints of a truth; raises a Flaw, or the error of a malformed annotation."""
    lacking = [str(annotation.get("id")) for annotation in annotations if "keypoints" not in annotation]
    if lacking:
        raise Flaw(f"has annotations without keypoints: {name_list(lacking)}", "Use the keypoint annotation file")
    lengths = sorted({len(annotation["keypoints"]) for annotation in annotations})
    if len(lengths) > 1 or lengths[:1] == [0] or any(length % 3 for length in lengths):
        raise Flaw(
            f"has keypoints of {name_list(list(map(str, lengths)))} numbers; each needs x, y and a flag per point",
            "Mend them",
        )
    length = lengths[0] if lengths else 3 * _count_points(categories)
    columns = PointColumns(
        [annotation.get("id") for annotation in annotations],
        np.array([annotation["keypoints"] for annotation in annotations], float).reshape(-1, length),
        np.array([annotation.get("num_keypoints", -1) for annotation in annotations], np.int64),
        np.array(["num_keypoints" in annotation for annotation in annotations], bool),
        np.array(["bbox" in annotation for annotation in annotations], bool),
    )
    return join_true_keypoints(columns, categories)


def _count_points(categories: List[Dict[str, Any]]) -> int:
    """Return the number of keypoints according to the categories."""
    known_sigmas = next((category["sigmas"] for category in categories if category.get("sigmas")), COCO_SIGMAS)
    return len(_names_of(categories)) or len(known_sigmas)


def _names_of(categories: List[Dict[str, Any]]) -> List[Any]:
    names: List[Any] = next((category["keypoints"] for category in categories if category.get("keypoints")), [])
    return names


def join_true_keypoints(columns: PointColumns, categories: List[Dict[str, Any]]) -> TrueKeypoints:
    """Return the keypoints of annotations of these categories; raises a Flaw, or the error of a malformed category."""
    count, surplus = divmod(columns.numbers.shape[1], 3)
    if surplus or not count:
        raise ValueError
    rows = columns.numbers.reshape(-1, count, 3)
    if not (np.abs(rows) <= _LARGEST_COORDINATE).all():
        raise Flaw("has keypoints that are not finite, or far outside their image", "Mend them")
    marked = rows[..., 2] > 0
    uncounted = np.flatnonzero(~columns.states)
    unboxed = [str(columns.ids[index]) for index in np.flatnonzero(~marked.any(axis=1) & ~columns.has_box).tolist()]
    if unboxed:
        raise Flaw(
            f"has annotations with neither marked keypoints nor a bbox: {name_list(unboxed)}", "Write their bbox"
        )
    stated = np.where(columns.states, columns.stated, marked.sum(axis=1))
    notes, named = [], _names_of(categories)
    if len(uncounted):
        notes.append(
            f"{quantity(len(uncounted), 'annotation')} without num_keypoints: the number of marked points is used"
        )
    return TrueKeypoints(
        rows[..., :2],
        marked,
        stated,
        np.array([_sigmas_of(category, count) for category in categories], float).reshape(-1, count),
        [str(name) for name in named] if len(named) == count else list(map(str, range(1, count + 1))),
        _links_of(categories, count),
        notes,
    )


def _sigmas_of(category: Dict[str, Any], count: int) -> List[float]:
    sigmas = category.get("sigmas", COCO_SIGMAS if count == len(COCO_SIGMAS) else None)
    if sigmas is None:
        problem = f"has {count} keypoints, without sigmas; COCO's sigmas are for {len(COCO_SIGMAS)}"
        raise Flaw(problem, f'Write "sigmas": [{count} numbers] into each category')
    if len(sigmas) != count or not all(np.isfinite(sigmas)) or min(sigmas) <= 0:
        raise Flaw(f"has sigmas for category {category['id']} that are not {count} positive numbers", "Mend them")
    return list(map(float, sigmas))


def _links_of(categories: List[Dict[str, Any]], count: int) -> List[List[int]]:
    """Return the links that pictures draw, as indices from 0; scores do not need them."""
    links: List[Any] = next((category["skeleton"] for category in categories if category.get("skeleton")), [])
    return [[start - 1, stop - 1] for start, stop in links if 0 < start <= count and 0 < stop <= count]


def read_points(keypoints: List[Any], count: int) -> Array:
    """Read x and y (detections, 2 * points), and no flags; raises one of `UNUSUAL`."""
    if not set(map(type, keypoints)) <= {list} or not set(map(len, keypoints)) <= {3 * count}:
        raise ValueError
    if not set(map(type, chain.from_iterable(keypoints))) <= {float, int}:
        raise TypeError
    return extract_coordinates(np.array(keypoints, float).reshape(-1, 3 * count), count)


def extract_coordinates(numbers: Array, count: int) -> Array:
    """Return x and y of this many points in each row, which also has their flags; raises ValueError."""
    if numbers.shape[1] != 3 * count:
        raise ValueError
    table = numbers.reshape(-1, count, 3)
    if not (np.abs(table[..., :2]) <= _LARGEST_COORDINATE).all() or not np.isfinite(table[..., 2]).all():
        raise ValueError
    return np.ascontiguousarray(table[..., :2]).reshape(-1, 2 * count)


def check_points(keypoints: object, count: int) -> None:
    """Raise a Flaw for the first fault of a detection's keypoints."""
    remedy = f"Write {3 * count} numbers: x, y and a flag for each of the {count} points"
    if not isinstance(keypoints, list):
        raise Flaw("has keypoints that are not a list", remedy)
    if len(keypoints) != 3 * count:
        raise Flaw(f"has {quantity(len(keypoints), 'number')} in its keypoints, not {3 * count}", remedy)
    for index, number in enumerate(keypoints):
        which = f"(point {index // 3 + 1} of {count})"
        if type(number) not in (int, float):
            raise Flaw(f"has a keypoint that is not numbers {which}", remedy)
        bound = _LARGEST_COORDINATE if index % 3 < 2 else sys.float_info.max
        if not -bound <= number <= bound:
            problem = f"has a keypoint that is not finite, or far outside its image {which}"
            raise Flaw(problem, "Write x and y in pixels")


def extents_of(points: Array) -> Array:
    """Return the area of the box around each set of points."""
    columns = np.ascontiguousarray(points.T)  # by points: numpy is slow at many short rows
    width, height = (columns[axis::2].max(axis=0) - columns[axis::2].min(axis=0) for axis in range(2))
    area: Array = width * height
    return area


def similarities(pairs: Pairs, predicted: Array, truth: TrueSets, least: float = _LEAST_SIMILARITY) -> Array:
    """Return the OKS of each pair, 0 below a bound: the mean similarity of the marked points.

    For an annotation without marked points it is the mean over all points. Each is compared with the closest place in
    the annotation's box, doubled on each side.
    """
    compared = backend().compare_points(pairs, predicted, truth) if least >= _LEAST_SIMILARITY else None
    if compared is not None:
        return compared
    oks = np.zeros(len(pairs.prediction))
    counts = truth.marked.sum(axis=1)[pairs.truth]
    for count in np.unique(counts).tolist():  # equal numbers together: sums have the original's bits
        members = np.flatnonzero(counts == count)
        for start in range(0, len(members), _PAIRS_AT_ONCE):
            some = members[start : start + _PAIRS_AT_ONCE]
            points, annotation = predicted[pairs.prediction[some]], pairs.truth[some]
            if count:
                marked = truth.marked[annotation]
                alike = exp(_exponents(_offsets(points, truth, annotation), truth, annotation)[marked]).reshape(
                    -1, count
                )
            else:
                alike = _similarities_to_boxes(points, truth, annotation)
            oks[some] = alike.sum(axis=1) / alike.shape[1]
    return np.where(oks >= least, oks, 0.0)


def point_similarities(predicted: Array, truth: TrueSets, annotation: Array) -> Array:
    """Return the similarity of each point of detections and annotations, marked or not."""
    return exp(_exponents(_offsets(predicted, truth, annotation), truth, annotation))


def _similarities_to_boxes(predicted: Array, truth: TrueSets, annotation: Array) -> Array:
    corner, sides = truth.boxes[annotation, None, :2], truth.boxes[annotation, None, 2:]
    points = predicted.reshape(len(predicted), -1, 2)
    offsets = np.maximum(0, corner - sides - points) + np.maximum(0, points - (corner + sides * 2))
    return exp(_exponents(offsets, truth, annotation))


def _offsets(predicted: Array, truth: TrueSets, annotation: Array) -> Array:
    offsets: Array = predicted.reshape(len(predicted), -1, 2) - truth.points[annotation]
    return offsets


def _exponents(offsets: Array, truth: TrueSets, annotation: Array) -> Array:
    """Return the logarithm of the similarity of each point."""
    squares = np.square(offsets[..., 0]) + np.square(offsets[..., 1])
    widths = np.square(truth.sigmas[annotation] * 2)
    exponents: Array = -(squares / widths / (truth.area[annotation, None] + np.spacing(1)) / 2)
    return exponents
