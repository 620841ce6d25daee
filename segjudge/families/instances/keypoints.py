"""The cost of each keypoint: the distances of detected points from the person's."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from segjudge.evaluation_script.families.base.reports import Row
from segjudge.evaluation_script.families.instances.keypoints import TrueKeypoints, point_similarities
from segjudge.evaluation_script.masks.detections import TrueSets
from segjudge.evaluation_script.masks.stack import Array
from segjudge.families.instances.diagnosis import InstanceDiagnosis

#: The minimum OKS of a detection that shows a person, even inexactly.
LEAST_OKS = 0.1
#: The similarity of points as good as another annotator's, and of near points.
_EXACT, _NEAR = 0.85, 0.5
#: The cost below which a point costs nothing.
_LEAST_COST = 1e-6


def list_keypoints(diagnosis: InstanceDiagnosis) -> list[Row]:
    """Return a row per point, most costly first; empty if no detection shows a person."""
    keypoints = diagnosis.judged.truth.keypoints
    if keypoints is None or not diagnosis.protocol.keypoints:
        return []
    found_people = _find_people(diagnosis)
    if not len(found_people.record):
        return []
    places = _place_points(diagnosis, keypoints, found_people)
    marked = keypoints.marked[found_people.annotation]
    lost = np.where(marked, 1 - places.similarity, 0) / np.maximum(marked.sum(axis=1, keepdims=True), 1)
    costs = lost.sum(axis=0) / max(len(marked), 1)
    rows = []
    for point in np.argsort(-costs, kind="stable").tolist():
        count = max(int(marked[:, point].sum()), 1)
        row: Row = {"point": keypoints.names[point], "costs": float(costs[point])}
        row["marked"] = int(marked[:, point].sum())
        row["similarity"] = float(places.similarity[marked[:, point], point].sum() / count)
        for name, flags in places.kinds().items():
            row[name] = float((flags & marked)[:, point].sum() / count)
        rows.append(row)
    return rows


@dataclass(frozen=True)
class KeypointFault:
    """The faults of the points of detected people."""

    #: The numbers of detected people, of those with an inexact point, and of detections that show nobody.
    people: int
    inexact: int
    surplus: int
    #: The sum of 1 - OKS of these people.
    lost: float
    #: Pairs of exchanged points with the number of people, most frequent first.
    exchanged: list[tuple[tuple[str, str], int]]
    #: Points with their costs, most costly first.
    points: list[tuple[str, float]]


def list_faults(diagnosis: InstanceDiagnosis) -> KeypointFault:
    """Return the faults of points: exchanged pairs, and the cost of each point."""
    keypoints = diagnosis.judged.truth.keypoints
    people = _find_people(diagnosis)
    surplus = int(diagnosis.selection.sum()) - len(people.record)
    if keypoints is None or not len(people.record):
        return KeypointFault(0, 0, surplus, 0.0, [], [])
    rows = list_keypoints(diagnosis)
    places = _place_points(diagnosis, keypoints, people)
    swapped = places.kinds()["swapped"] & keypoints.marked[people.annotation]
    pairs: dict[tuple[str, str], int] = {}
    for person, point in np.argwhere(swapped).tolist():
        partner = int(places.other_point[person, point])
        if point < partner and swapped[person, partner] and places.other_point[person, partner] == point:
            pair = keypoints.names[point], keypoints.names[partner]
            pairs[pair] = pairs.get(pair, 0) + 1
    lost = sum(row["costs"] for row in rows) * len(people.record)
    points = [(row["point"], row["costs"]) for row in rows if row["costs"] >= _LEAST_COST]
    exchanged = sorted(pairs.items(), key=lambda item: -item[1])
    inexact = (keypoints.marked[people.annotation] & (places.similarity < 1 - _LEAST_COST)).any(axis=1)
    return KeypointFault(len(people.record), int(inexact.sum()), surplus, float(lost), exchanged, points)


@dataclass(frozen=True)
class _People:
    """Detections that are kept, and the people that they show: indices of records and annotations."""

    record: Array
    annotation: Array


def _find_people(diagnosis: InstanceDiagnosis) -> _People:
    """Return each detection's matched person, or the closest unmatched one."""
    judged = diagnosis.judged
    pairs = judged.pairs.select(judged.pairs.iou >= LEAST_OKS)
    pairs = pairs.select(diagnosis.selection[pairs.prediction] & ~judged.crowd[pairs.truth])
    pairs = pairs.select(judged.category[pairs.prediction] == judged.instance_category[pairs.truth])
    right = judged.partner[pairs.prediction] == pairs.truth
    inexact = (judged.partner[pairs.prediction] < 0) & ~judged.hits[pairs.truth]
    shown = pairs.select(right | inexact)
    _, rows = np.unique(shown.prediction, return_index=True)  # the closest one comes first
    rows = rows[np.argsort(-shown.iou[rows], kind="stable")]
    rows = np.sort(rows[np.unique(shown.truth[rows], return_index=True)[1]])  # a person is shown once
    return _People(judged.record[shown.prediction[rows]], judged.annotation[shown.truth[rows]])


@dataclass(frozen=True)
class _KeypointErrors:
    """The errors of detections' points (people, points)."""

    #: The similarity to the corresponding point of the matched person.
    similarity: Array
    #: The closest other point of that person.
    other_point: Array
    #: The highest similarity to another point of that person, and to the same point of another person in the image.
    to_other_point: Array
    to_other_person: Array

    def kinds(self) -> dict[str, Array]:
        """Return the first matching kind of each point."""
        exact, near = self.similarity >= _EXACT, self.similarity >= _NEAR
        swapped = ~near & (self.to_other_point >= np.maximum(self.to_other_person, _NEAR))
        foreign = ~near & ~swapped & (self.to_other_person >= _NEAR)
        return {
            "exact": exact,
            "near": near & ~exact,
            "swapped": swapped,
            "foreign": foreign,
            "far": ~(near | swapped | foreign),
        }


def _place_points(diagnosis: InstanceDiagnosis, keypoints: TrueKeypoints, people: _People) -> _KeypointErrors:
    truth, predicted = diagnosis.judged.truth, diagnosis.judged.records.points[people.record]
    sets = TrueSets(keypoints.points, keypoints.marked, keypoints.sigmas[truth.category], truth.area, truth.boxes)
    similarity = point_similarities(predicted, sets, people.annotation)
    to_other_point, other_point = np.zeros_like(similarity), np.zeros(similarity.shape, np.int64)
    count = similarity.shape[1]
    for step in range(1, count):  # each point of the detection with the person's next points, cyclically
        turned = np.roll(np.arange(count), -step)
        turned_sets = sets._replace(points=sets.points[:, turned], sigmas=sets.sigmas[:, turned])
        alike = point_similarities(predicted, turned_sets, people.annotation)
        marked = keypoints.marked[people.annotation][:, turned]
        alike = np.where(marked, alike, 0)
        other_point = np.where(alike > to_other_point, turned, other_point)
        to_other_point = np.maximum(to_other_point, alike)
    to_other_person = np.zeros_like(similarity)
    image = truth.image[people.annotation]
    by_image = np.argsort(truth.image, kind="stable")
    bounds = np.searchsorted(truth.image[by_image], [image, image + 1])
    for row, (start, stop) in enumerate(bounds.T.tolist()):
        neighbours = by_image[start:stop]
        neighbours = neighbours[neighbours != people.annotation[row]]
        if len(neighbours):
            alike = point_similarities(np.repeat(predicted[row : row + 1], len(neighbours), axis=0), sets, neighbours)
            to_other_person[row] = np.where(keypoints.marked[neighbours], alike, 0).max(axis=0)
    return _KeypointErrors(similarity, other_point, to_other_point, to_other_person)
