"""Keypoints in another order, or measured from the corner of a crop, are named; poor ones are not."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from segjudge import score
from segjudge.evaluation_script.families.instances.point_suspicions import judge_points
from segjudge.evaluation_script.families.instances.records import Examples
from segjudge.evaluation_script.masks.stack import Array

_SIDED = ("eye", "ear", "shoulder", "elbow", "wrist", "hip", "knee", "ankle")
_NAMES = ["nose", *(f"{side}_{part}" for part in _SIDED for side in ("left", "right"))]
_OTHERS = [0, *(point + 1 if point % 2 else point - 1 for point in range(1, len(_NAMES)))]
#: Where the points of somebody who stands are, in heights of the body.
_STANDING = np.array([
    (0, 0), (0.02, -0.02), (-0.02, -0.02), (0.04, 0), (-0.04, 0), (0.1, 0.15), (-0.1, 0.15), (0.15, 0.3), (-0.15, 0.3),
    (0.17, 0.45), (-0.17, 0.45), (0.07, 0.5), (-0.07, 0.5), (0.08, 0.75), (-0.08, 0.75), (0.09, 0.98), (-0.09, 0.98),
])  # fmt: skip
IMAGES, SIZE = 12, (480, 640)


def make_people(random: np.random.Generator) -> list[tuple[int, Array]]:
    """Return the image and the points of one to three people of each image."""
    people = []
    for image in range(IMAGES):
        for _ in range(int(random.integers(1, 4))):
            height, facing = random.uniform(60, 220), random.choice([-1, 1])
            body = _STANDING + random.normal(0, 0.04, _STANDING.shape)
            people.append((image, body * [facing * height, height] + random.uniform((60, 20), (580, 240))))
    return people


def say(people: list[tuple[int, Array]], predicted: list[tuple[int, Array]], marked: Array | None = None) -> list[str]:
    images = np.array([image for image, _ in people])
    points = np.array([points for _, points in people])
    starts, ends = points.min(axis=1), points.max(axis=1)
    margin = 0.1 * (ends - starts)
    boxes = np.concatenate((starts - margin, ends - starts + 2 * margin), axis=1)
    visible = np.ones(points.shape[:2], bool) if marked is None else marked
    examples = Examples(images, boxes, points, visible, np.array(_OTHERS), names=tuple(_NAMES))
    records = np.array([points.reshape(-1) for _, points in predicted])
    return judge_points(examples, np.array([image for image, _ in predicted]), records)


def crop(points: Array) -> Array:
    corner, end = points.min(axis=0) - 8, points.max(axis=0) + 8
    return (points - corner) * np.array([192, 256]) / (end - corner)


#: OpenPose puts the right side first, limb by limb.
_LIMBS = np.array([0, 6, 8, 10, 5, 7, 9, 12, 14, 16, 11, 13, 15, 2, 1, 4, 3])
CHANGES: dict[str, tuple[Callable[[Array], Array], str]] = {
    "sides": (lambda points: points[_OTHERS], "look as if left and right were exchanged: corrected, the points of"),
    "limbs": (lambda points: points[_LIMBS], r"look written in another order, in which \w+ holds \w+, .*in the order of the truth"),
    "one place on": (lambda points: np.roll(points, 1, axis=0), "look written in another order, in which left_eye holds nose"),
    "moved": (lambda points: points + np.array([6, -5]), "look moved by about 6 pixels along x and -5 along y: corrected, the points of"),
    "from boxes": (lambda points: points - points.min(axis=0) + 5, "look measured from the corner of each person's box or crop"),
    "in crops": (crop, "look measured from the corner of each person's box or crop, in .* tried. Write pixels of the whole image"),
}  # fmt: skip


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("slip", CHANGES)
def test_a_slip_of_points_is_named(slip: str, seed: int) -> None:
    random = np.random.default_rng(seed)
    people, (change, message) = make_people(random), CHANGES[slip]
    noisy = [(image, change(points + random.normal(0, 2, points.shape))) for image, points in people]
    (line,) = say(people, noisy)
    assert re.search(message, line)
    assert line.isascii()


@pytest.mark.parametrize("error", [0.0, 0.02, 0.05, 0.1, 0.2, 0.4, 1.0])
def test_poor_points_are_not_suspected(error: float) -> None:
    """Many points are hidden, a part of the people is missed, turned or seen twice, and others are invented."""
    for seed in range(30):
        random = np.random.default_rng([int(100 * error), seed])
        people, predicted = make_people(random), []
        for image, points in people:
            places = points + random.normal(0, error * np.ptp(points), points.shape)
            if random.random() < 0.3:
                places = places[_OTHERS]
            predicted += [(image, places)] * int(random.choice([0, 1, 1, 1, 2]))
            if random.random() < 0.3:
                predicted.append((image, random.uniform(0, SIZE[::-1], points.shape)))
        marked = random.random((len(people), len(_NAMES))) < random.uniform(0.2, 1)
        assert say(people, predicted, marked) == [], (error, seed)


def test_invented_people_in_the_corner_are_no_crops() -> None:
    people = make_people(np.random.default_rng(5))
    assert say(people, [*people, *((image, crop(points)) for image, points in people)]) == []


def test_a_suspicion_of_points_replaces_the_advice_to_check_classes(tmp_path: Path) -> None:
    people = make_people(np.random.default_rng(4))
    written = [(image, np.insert(points, 2, 2, axis=1).reshape(-1).tolist()) for image, points in people]
    annotations = [
        {"id": number, "image_id": image, "category_id": 1, "keypoints": points, "num_keypoints": len(_NAMES),
         "bbox": [20, 20, 100, 160], "area": 8000, "iscrowd": 0}
        for number, (image, points) in enumerate(written, 1)
    ]  # fmt: skip
    images = [{"id": image, "width": SIZE[1], "height": SIZE[0]} for image in range(IMAGES)]
    document = {
        "images": images,
        "annotations": annotations,
        "categories": [{"id": 1, "name": "a", "keypoints": _NAMES}],
    }
    (tmp_path / "truth.json").write_text(json.dumps(document))
    rolled = [
        {"image_id": image, "category_id": 1, "score": 0.9 - number / 1000, "keypoints": [*points[3:], *points[:3]]}
        for number, (image, points) in enumerate(written)
    ]
    (tmp_path / "results.json").write_text(json.dumps(rolled))
    warnings = score(tmp_path / "results.json", tmp_path / "truth.json", "coco-keypoints").warnings
    (line,) = [line for line in warnings if "nothing to average" not in line]
    assert "look written in another order" in line
