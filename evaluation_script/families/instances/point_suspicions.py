"""Suspicions about keypoints in another order or measured from boxes, and records all moved or stretched alike."""

from __future__ import annotations

from typing import TYPE_CHECKING, List, Optional, Tuple

import numpy as np

from ...files import name_list, quantity
from ...masks.overlaps import best_assignment
from ...masks.stack import Array
from ...values.arithmetic import add, add_rows, mean
from .records import Examples

if TYPE_CHECKING:
    from ...masks.stretches import Stretch

#: The minimum number of people that tell, the share of them that must fit better in another order, and the maximum
#: ratio of the distances.
_FEWEST, _EXCHANGED, _NEARER = 10, 0.8, 0.5
#: The maximum distance between the middles of a person and of its record, in sizes of the person.
_SAME_PLACE = 0.5
#: Points are measured from a corner if those of a person fit the true ones, moved and stretched, up to this share of
#: their spread, place the corner of its box at most so far from 0, both in sizes of the record, and lie at least so far
#: from their own places, in sizes of the person.
_FITS, _AT_CORNER, _ELSEWHERE = 0.1, 0.25, 0.75

#: The number of pixels along an axis below which the points of several people may be moved alike by chance.
_FARTHEST_CHANCE = 2.0


def find_other_sides(names: List[str]) -> Array:
    """Return for each point the one whose name has left instead of right or the reverse; itself without any."""
    other_sides = list(range(len(names)))
    for point, name in enumerate(map(str, names)):
        opposite = name.replace("left", "right")
        if opposite != name and opposite in names:
            other_sides[point] = names.index(opposite)
            other_sides[other_sides[point]] = point
    return np.array(other_sides, np.int64)


def judge_points(examples: Examples, image: Array, points: Array) -> List[str]:
    """Return a warning if the points of nearly all instances lie where others are due, or as if in crops."""
    if not examples.points.size or points.shape[1] != 2 * examples.points.shape[1]:
        return []
    people = points.reshape(len(points), -1, 2)
    nearest = [_find_nearest(examples, index, people[image == holder]) for index, holder in enumerate(examples.image)]
    return (
        _judge_order(examples, nearest)
        or _judge_corners(examples, image, people)
        or _judge_offset(examples, nearest, "keypoints", "points")
    )


def judge_moved_boxes(examples: Examples, image: Array, boxes: Array, nouns: str) -> List[str]:
    """Return a warning if the boxes (x, y, width, height) of nearly all instances are moved by the same pixels."""
    true, corners = (np.stack([sides[:, :2], sides[:, :2] + sides[:, 2:]], axis=1) for sides in (examples.boxes, boxes))
    cornered = examples._replace(points=true, marked=np.ones(true.shape[:2], bool))
    nearest = [_find_nearest(cornered, index, corners[image == holder]) for index, holder in enumerate(examples.image)]
    return _judge_offset(cornered, nearest, nouns, "corners")


#: The maximum number of records of an image that are stretched, the minimum IoU at an instance, the share of instances
#: that must have one then, and what remains of what their IoU lacks at most.
_MOST_STRETCHED, _REACHED, _WOULD_REACH, _REMAINS = 128, 0.5, 0.6, 0.5


def judge_stretched_boxes(
    examples: Examples, true_boxes: Array, records: Tuple[Array, Array, Array, Array], nouns: str
) -> List[str]:
    """Return a warning if records would reach many more instances if all were stretched alike.

    They are given by image, box, score and the size (height, width) of the image.
    """
    from ...masks.stretches import UNSTRETCHED, find_stretch  # few submissions need it, or what follows
    from ..base.displacement import UNDO_STRETCH, describe_ratios

    image, boxes, scores, sizes = records
    ranked = np.argsort(-scores, kind="stable")
    pairs = [ranked[image[ranked] == holder][:_MOST_STRETCHED] for holder in examples.image]
    counts = np.array([len(rows) for rows in pairs])
    rows = np.concatenate(pairs)
    if not len(rows):
        return []
    starts, index = np.cumsum(counts) - counts, np.repeat(np.arange(len(counts)), counts)
    true, frames = true_boxes[index], sizes[rows, ::-1]

    def measure(stretch: Stretch) -> Array:
        """Return the best IoU of each example's box with the boxes at their true places."""
        ratios, anchors = np.array(stretch)[::-1].T
        corners = (boxes[rows, :2] - (1 - ratios) * anchors * frames) / ratios
        sides = boxes[rows, 2:] / ratios
        ends = np.minimum(corners + sides, true[:, :2] + true[:, 2:])
        both = np.maximum(ends - np.maximum(corners, true[:, :2]), 0)
        shared = both[:, 0] * both[:, 1]
        union = sides[:, 0] * sides[:, 1] + true[:, 2] * true[:, 3] - shared
        ious = shared / np.where(union > 0, union, 1)
        best = np.zeros(len(counts))
        best[counts > 0] = np.maximum.reduceat(ious, starts[counts > 0])
        return best

    stretch = find_stretch(lambda stretches: np.array([mean(measure(stretch)) for stretch in stretches]))
    if stretch is None:
        return []
    as_sent, otherwise = measure(UNSTRETCHED), measure(stretch)
    before, after = (int(np.count_nonzero(ious >= _REACHED)) for ious in (as_sent, otherwise))
    if after < max(_FEWEST, _WOULD_REACH * len(counts)) or 1 - mean(otherwise) > _REMAINS * (1 - mean(as_sent)):
        return []
    (down, _), (across, _) = stretch
    gain = f"corrected, {quantity(after, 'instance', len(counts))} tried would be found instead of {before:,}"
    return [f"{nouns} look {describe_ratios(across, down)}: {gain}. {UNDO_STRETCH}"]


def _judge_order(examples: Examples, nearest: List[Optional[Array]]) -> List[str]:
    order = _find_order(examples, nearest)
    moved = order != np.arange(len(order))
    tried = exchanged = 0
    for true, marked, person in zip(examples.points, examples.marked, nearest):
        chosen = marked & moved
        if person is None or not chosen.any():
            continue
        as_meant, otherwise = (add(_measure(places - true)[chosen]) for places in (person, person[order]))
        tried += 1
        exchanged += otherwise < _NEARER * as_meant
    if tried < _FEWEST or exchanged < _EXCHANGED * tried:
        return []
    slip = "keypoints look written in another order"
    if (order == np.where(moved, examples.other_sides, order)).all():
        slip = "keypoints look as if left and right were exchanged"
    elif examples.names:
        pairs = [f"{examples.names[order[due]]} holds {examples.names[due]}" for due in np.flatnonzero(moved).tolist()]
        slip = f"{slip}, in which {name_list(pairs)}"
    scope = f"the points of {quantity(exchanged, 'instance', tried)} tried"
    nearer = f"{scope} would lie at most half as far from the truth's"
    return [f"{slip}: corrected, {nearer}. Write the points in the order of the truth"]


def _find_nearest(examples: Examples, index: int, people: Array) -> Optional[Array]:
    """Return the points of the record at the place of an instance, whatever their order; None without any."""
    marked = examples.marked[index]
    if not len(people) or np.count_nonzero(marked) < 2:
        return None
    true = examples.points[index][marked]
    middle, middles = (_find_middles(points) for points in (true[None], people))
    distances = _measure(middles - middle)
    nearest = int(np.argmin(distances))
    return people[nearest] if distances[nearest] <= _SAME_PLACE * float(np.ptp(true, axis=0).max()) else None


def _find_middles(people: Array) -> Array:
    """Return the means of the points of each person."""
    middles: Array = add_rows(people.transpose(0, 2, 1)) / people.shape[1]
    return middles


def _find_order(examples: Examples, nearest: List[Optional[Array]]) -> Array:
    """Return for each point which of the predicted ones lies nearest on average, each once; itself without evidence."""
    count = examples.points.shape[1]
    distances, seen = np.zeros((count, count)), np.zeros(count, np.int64)
    for true, marked, person in zip(examples.points, examples.marked, nearest):
        if person is not None:
            size = float(np.ptp(true[marked], axis=0).max())
            distances[marked] += _measure(person - true[marked][:, None]) / max(size, 1.0)
            seen += marked
    order = np.arange(count)
    rows = np.flatnonzero(seen >= 2)
    if len(rows) > 1:
        averages = distances[rows] / seen[rows, None]
        chosen, columns = best_assignment(averages.max() - averages)
        order[rows[chosen]] = columns
    return order


def _measure(differences: Array) -> Array:
    """Return the lengths of vectors (..., 2)."""
    x, y = differences[..., 0], differences[..., 1]
    lengths: Array = np.sqrt(x * x + y * y)
    return lengths


def _judge_offset(examples: Examples, nearest: List[Optional[Array]], nouns: str, places: str) -> List[str]:
    """Return a warning if the points of nearly all instances are moved by the same pixels."""
    differences = [
        person[marked] - true[marked]
        for true, marked, person in zip(examples.points, examples.marked, nearest)
        if person is not None
    ]
    if len(differences) < _FEWEST:
        return []
    x, y = (sorted(mean(moves[:, axis]) for moves in differences)[len(differences) // 2] for axis in range(2))
    if max(abs(x), abs(y)) < _FARTHEST_CHANCE:
        return []
    nearer = sum(add(_measure(moves - np.array([x, y]))) < _NEARER * add(_measure(moves)) for moves in differences)
    if nearer < _EXCHANGED * len(differences):
        return []
    slip = f"{nouns} look moved by about {x:.0f} pixels along x and {y:.0f} along y"
    scope = f"the {places} of {quantity(nearer, 'instance', len(differences))} tried"
    return [
        f"{slip}: corrected, {scope} would lie at most half as far from the truth's. Write pixels of the whole image"
    ]


def _judge_corners(examples: Examples, image: Array, people: Array) -> List[str]:
    tried = moved = 0
    for holder, box, true, marked in zip(examples.image, examples.boxes, examples.points, examples.marked):
        within = people[image == holder]
        if len(within) and np.count_nonzero(marked) > 2:
            tried += 1
            places = within[:, marked]
            size = float(np.ptp(true[marked], axis=0).max())
            is_found = any(mean(_measure(person - true[marked])) < _ELSEWHERE * size for person in places)
            moved += not is_found and any(_is_cropped(person, true[marked], box) for person in places)
    if tried < _FEWEST or moved < _EXCHANGED * tried:
        return []
    slip = "keypoints look measured from the corner of each person's box or crop"
    return [f"{slip}, in {quantity(moved, 'instance', tried)} tried. Write pixels of the whole image"]


def _is_cropped(person: Array, true: Array, box: Array) -> bool:
    """Return whether points fit the true ones only after they are moved from the corner of a box, and stretched."""
    size = float(np.ptp(person, axis=0).max())
    if not size:
        return False
    return all(_fits_line(person[:, axis], true[:, axis], float(box[axis]), size) for axis in range(2))


def _fits_line(predicted: Array, true: Array, corner: float, size: float) -> bool:
    """Return whether coordinates are a rising line of the true ones that is about 0 at a corner."""
    middle, true_middle = mean(predicted), mean(true)
    spread = add(np.square(true - true_middle))
    slope = add((true - true_middle) * (predicted - middle)) / spread if spread else 0.0
    residues = predicted - middle - slope * (true - true_middle)
    is_line = slope > 0 and add(np.abs(residues)) <= _FITS * size * len(residues)
    return is_line and abs(middle + slope * (corner - true_middle)) <= _AT_CORNER * size
