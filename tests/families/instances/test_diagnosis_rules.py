"""Rules of the diagnosis of detections, one by one, with values computed by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from segjudge.evaluation_script.families.instances.protocols import INSTANCE_PROTOCOLS
from segjudge.evaluation_script.masks.detections import OverlappingPairs
from segjudge.families.instances.diagnosis import KINDS, InstanceDiagnosis, _assign_partners, _find_errors
from tests.families.instances.test_error_kinds import made_up

# ── detections ──────────────────────────────────────────────────────────────

BOX, FAR = [0, 0, 20, 20], [60, 60, 20, 20]
#: Parts of BOX by their IoU with it.
HALF, TENTH, THIRD, MOST = [0, 0, 20, 10], [0, 0, 20, 2], [0, 0, 20, 6], [0, 0, 20, 18]


def kinds_found(instances: list[list[Any]], detections: list[list[Any]], folder: Path) -> list[str]:
    kind = _find_errors(made_up(instances, detections, folder)).kind.tolist()
    return ["right" if item < 0 else [*KINDS][item] for item in kind]


@pytest.mark.parametrize(
    ("instances", "detections", "kinds"),
    [
        ([[1, 1, BOX, 0]], [[1, 1, HALF, 0.9]], "right"),
        (
            [[1, 1, BOX, 0]],
            [[1, 1, BOX, 0.9], [1, 1, HALF, 0.8]],
            "right Loc",
        ),  # up to a half it does not count as a double
        ([[1, 1, BOX, 0]], [[1, 1, BOX, 0.9], [1, 1, MOST, 0.8]], "right Dupe"),
        ([[1, 1, BOX, 0]], [[1, 1, TENTH, 0.9]], "Loc"),
        ([[1, 2, BOX, 0]], [[1, 1, TENTH, 0.9]], "Bkg"),
        ([[1, 2, BOX, 0]], [[1, 1, THIRD, 0.9]], "Both"),
        ([[1, 2, BOX, 0]], [[1, 1, HALF, 0.9]], "Cls"),
        ([[1, 1, BOX, 0], [1, 2, MOST, 0]], [[1, 1, THIRD, 0.9]], "Loc"),  # its own category takes precedence
        ([[1, 1, BOX, 0], [1, 2, BOX, 0]], [[1, 1, BOX, 0.9], [1, 1, MOST, 0.8]], "right Cls"),
        ([[1, 1, BOX, 1], [1, 2, FAR, 0]], [[1, 2, BOX, 0.9]], "Bkg"),  # a crowd cannot be what it is confused with
        ([[1, 1, [40, 0, 20, 20], 0], [1, 2, BOX, 0]], [[1, 1, [0, 0, 41, 20], 0.9]], "Both"),
    ],
)
def test_each_error_has_the_first_kind_that_holds(
    instances: list[list[Any]], detections: list[list[Any]], kinds: str, tmp_path: Path
) -> None:
    assert kinds_found(instances, detections, tmp_path) == kinds.split()


def test_an_instance_is_taken_once() -> None:
    pairs = OverlappingPairs(np.array([0, 0, 1, 1, 3]), np.array([1, 0, 1, 2, 2]), np.ones(5))
    assert _assign_partners(pairs, 5).tolist() == [1, 2, -1, -1, -1]


# ── what scores are worth ───────────────────────────────────────────────────


PROTOCOL = INSTANCE_PROTOCOLS["coco-box"]

# ── all tables of detections ────────────────────────────────────────────────


def diagnosis(folder: Path) -> InstanceDiagnosis:
    """Return two dogs and three cats; the best threshold is .5, above a false alarm."""
    instances = [
        [1, 1, BOX, 0], [2, 1, BOX, 0], [1, 2, FAR, 0], [3, 2, FAR, 0], [2, 2, FAR, 0], [3, 1, [20, 0, 20, 20], 1],
    ]  # fmt: skip
    detections = [
        [1, 1, BOX, 0.9], [1, 1, FAR, 0.8], [2, 1, BOX, 0.7], [2, 2, FAR, 0.6], [2, 2, [0, 40, 9, 9], 0.5],
        [3, 2, FAR, 0.5], [3, 2, [0, 40, 9, 9], 0.4], [3, 1, [20, 0, 20, 20], 0.95],
    ]  # fmt: skip
    return InstanceDiagnosis(made_up(instances, detections, folder), PROTOCOL)


def test_images_with_most_mistakes_are_first(tmp_path: Path) -> None:
    results = diagnosis(tmp_path)
    assert results.least == 0.5
    assert results.misses.tolist() == [
        item == 1 for item in results.judged.instance_category - (results.judged.instance_image > 0)
    ]
    rows = [tuple(row[key] for key in ("right", "wrong", "missed")) for row in results.list_images()]
    assert rows == [(1, 1, 1), (2, 1, 0), (1, 0, 0)]
    assert [row["image"] for row in results.list_images()] == ["1", "2", "3"]
    assert [row["F1"] for row in results.list_images()] == pytest.approx([1 / 2, 4 / 5, 1])
    assert results.rank_images(2) == [0, 1]
    assert results.find_worst_of_categories() == [
        0,
        0,
    ]  # both categories have one mistake in the first image, so it is listed first
    named = replace(results.judged, truth=replace(results.judged.truth, names={2: "b.jpg"}))
    assert replace(results, judged=named).name_image(1) == "b.jpg"


def test_suspected_errors_of_the_truth_are_confident(tmp_path: Path) -> None:
    rows = diagnosis(tmp_path).list_suspects()
    assert rows == [
        {"image": "1", "detected": "dog", "score": 0.8, "truth": "cat"},
        {"image": "2", "detected": "cat", "score": 0.5, "truth": "nothing"},
    ]
    many = [[1, 1, BOX, 0.9], *([1 + k % 3, 2, [30, 30 + k, 5, 5], 0.9 + k / 1000] for k in range(55))]
    results = InstanceDiagnosis(made_up([[1, 1, BOX, 0]], many, tmp_path), PROTOCOL)
    scores_listed = [row["score"] for row in results.list_suspects()]
    assert len(scores_listed) == 50
    assert scores_listed == sorted(scores_listed, reverse=True)
