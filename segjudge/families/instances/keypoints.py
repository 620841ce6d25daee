"""What each keypoint costs: how far the points of detections lie from those of the people that they show."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from segjudge.evaluation_script.families.base.reports import Row
from segjudge.evaluation_script.families.instances.keypoints import TrueKeypoints, TrueSets, point_similarities
from segjudge.evaluation_script.masks.stack import Array
from segjudge.evaluation_script.values import dataclass
from segjudge.families.instances.diagnosis import InstanceDiagnosis

#: From this OKS on a detection shows a person, if inexactly.
LEAST_OKS = 0.1
#: How similar points are that are as good as those of another annotator, and that are still near.
_EXACT, _NEAR = 0.85, 0.5


def list_keypoints(diagnosis: InstanceDiagnosis) -> list[Row]:
    """A row for each point, those that cost most first; none where no detection shows a person."""
    keypoints = diagnosis.judged.truth.keypoints
    if keypoints is None:
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
class _People:
    """Detections that are kept, and the people that they show: indices of records and annotations."""

    record: Array
    annotation: Array


def _find_people(diagnosis: InstanceDiagnosis) -> _People:
    """The person that each detection is right about, or the closest one of those that no detection is right about."""
    judged = diagnosis.judged
    pairs = judged.pairs.of(judged.pairs.iou >= LEAST_OKS)
    pairs = pairs.of(diagnosis.selection[pairs.prediction] & ~judged.crowd[pairs.truth])
    pairs = pairs.of(judged.category[pairs.prediction] == judged.instance_category[pairs.truth])
    right = judged.partner[pairs.prediction] == pairs.truth
    inexact = (judged.partner[pairs.prediction] < 0) & ~judged.hits[pairs.truth]
    shown = pairs.of(right | inexact)
    _, rows = np.unique(shown.prediction, return_index=True)  # the closest one comes first
    return _People(judged.record[shown.prediction[rows]], judged.annotation[shown.truth[rows]])


@dataclass(frozen=True)
class _Places:
    """Where the points of detections lie (people, points)."""

    #: To the point of the person that is meant.
    similarity: Array
    #: The largest to another point of that person, and to the same point of another person of the image.
    to_other_point: Array
    to_other_person: Array

    def kinds(self) -> dict[str, Array]:
        """Flag the kind of each point, the first that holds."""
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


def _place_points(diagnosis: InstanceDiagnosis, keypoints: TrueKeypoints, people: _People) -> _Places:
    truth, predicted = diagnosis.judged.truth, diagnosis.judged.records.points[people.record]
    sets = TrueSets(keypoints.points, keypoints.marked, keypoints.sigmas[truth.category], truth.area, truth.boxes)
    similarity = point_similarities(predicted, sets, people.annotation)
    to_other_point = np.zeros_like(similarity)
    count = similarity.shape[1]
    for step in range(1, count):  # each point of the detection with the next points of the person, round and round
        turned = np.roll(np.arange(count), -step)
        turned_sets = replace(sets, points=sets.points[:, turned], sigmas=sets.sigmas[:, turned])
        alike = point_similarities(predicted, turned_sets, people.annotation)
        marked = keypoints.marked[people.annotation][:, turned]
        to_other_point = np.maximum(to_other_point, np.where(marked, alike, 0))
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
    return _Places(similarity, to_other_point, to_other_person)
