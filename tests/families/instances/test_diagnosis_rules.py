"""Rules of the diagnosis of detections, one by one, with values computed by hand."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from segjudge.evaluation_script.families.instances.protocols import INSTANCE_PROTOCOLS
from segjudge.evaluation_script.masks.detections import OverlappingPairs
from segjudge.families.instances import keypoints
from segjudge.families.instances.diagnosis import (
    _TIDE_RECALLS,
    KINDS,
    InstanceDiagnosis,
    _assign_partners,
    _count_by_image,
    _CurvePoints,
    _DetectionErrors,
    _find_best_threshold,
    _find_errors,
    _ImageCounts,
    count_confusions,
    diagnose,
    measure_calibration,
    measure_localisation_error,
)
from segjudge.families.instances.report import make_ap_bar
from segjudge.report.page import list_pairs
from segjudge.system.errors import UsageError
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


def test_an_instance_is_missed_unless_an_error_is_about_it(tmp_path: Path) -> None:
    instances = [[1, 1, BOX, 0], [1, 2, FAR, 0], [2, 1, BOX, 0], [2, 1, FAR, 1], [3, 2, BOX, 0]]
    diagnosis = made_up(instances, [[1, 1, THIRD, 0.9], [1, 1, FAR, 0.8], [3, 2, BOX, 0.7]], tmp_path)
    errors = _find_errors(diagnosis)
    assert errors.target.tolist() == [0, 1, -1]
    assert errors.missed.tolist() == [False, False, True, False, False]


def half_up_to(recalls: int, precision: float = 1.0) -> float:
    """AP of a precision up to a recall in hundredths, and nothing beyond."""
    return precision * (recalls + 1) / 101


def test_each_kind_costs_what_repairing_it_gains(tmp_path: Path) -> None:
    # Dogs: two instances, a Loc above the one that is right. Cats: two instances; one is detected as a dog, one is missed.
    instances = [[1, 1, BOX, 0], [2, 1, BOX, 0], [1, 2, FAR, 0], [3, 2, FAR, 0]]
    detections = [[1, 1, THIRD, 0.9], [1, 1, FAR, 0.6], [2, 1, BOX, 0.8], [2, 2, FAR, 0.5], [3, 1, BOX, 0.4]]
    errors = _find_errors(made_up(instances, detections, tmp_path))
    before = (half_up_to(50, 1 / 2) + 0) / 2
    assert errors.precision == pytest.approx([half_up_to(50, 1 / 2), 0])
    after = {
        "Cls": (half_up_to(50, 1 / 2) + half_up_to(50)) / 2,
        "Loc": (1 + 0) / 2,
        "Both": before,
        "Dupe": before,
        "Bkg": before,
        "Miss": before,
        "FalsePos": (half_up_to(50) + 0) / 2,
        "FalseNeg": (1 / 2 + 0) / 2,  # a category with false alarms alone still counts
    }
    costs = errors.costs()
    assert costs == pytest.approx({kind: value - before for kind, value in after.items()})


def test_false_alarms_cost_what_dropping_them_gains(tmp_path: Path) -> None:
    instances = [[1, 1, BOX, 0], [2, 1, BOX, 0]]
    detections = [[3, 1, FAR, 0.9], [1, 1, BOX, 0.8], [1, 1, MOST, 0.7], [2, 1, BOX, 0.6]]
    costs = _find_errors(made_up(instances, detections, tmp_path)).costs()
    before = (51 * 1 / 2 + 50 * 1 / 2) / 101  # the envelope is 2/4 throughout
    assert costs["Bkg"] == pytest.approx((51 + 50 * 2 / 3) / 101 - before)
    assert costs["Dupe"] == pytest.approx((101 * 2 / 3) / 101 - before)
    assert costs["FalsePos"] == pytest.approx(1 - before)


def test_the_best_of_equals_is_the_first_and_takes_the_place(tmp_path: Path) -> None:
    # Both are about one dog: the cat above it is moved there, the dog below it is dropped.
    instances = [[1, 1, BOX, 0], [2, 1, BOX, 0]]
    detections = [[1, 2, BOX, 0.9], [1, 1, THIRD, 0.7], [2, 1, BOX, 0.8]]
    costs = _find_errors(made_up(instances, detections, tmp_path)).costs()
    before = half_up_to(50)
    assert costs["Cls"] == pytest.approx(1 - before)
    assert costs["Loc"] == 0


def test_tide_counts_categories_that_the_truth_lacks(tmp_path: Path) -> None:
    diagnosis = made_up([[1, 1, BOX, 0]], [[1, 1, BOX, 0.9], [1, 2, FAR, 0.8]], tmp_path)
    for as_tide, average, gain in ((False, 1, 0), (True, 0.5, 0.5)):
        errors = _find_errors(diagnosis, as_tide=as_tide)
        assert errors.average(errors.precision) == average
        assert errors.costs()["Bkg"] == pytest.approx(gain)
    assert _TIDE_RECALLS.tolist() == [hundredth / 100 for hundredth in range(101)]


def test_a_cost_below_zero_is_none_but_for_the_totals() -> None:
    item, nothing = np.ones(1), np.zeros(1)
    errors = _DetectionErrors(nothing, nothing, nothing, item > 0, item, {"Miss": item / 2, "FalseNeg": item / 2})
    assert errors.costs() == {"Miss": 0, "FalseNeg": -0.5}
    assert _DetectionErrors(nothing, nothing, nothing, item < 0, item, {}).average(item) == 0


def test_precision_is_the_best_from_a_recall_on() -> None:
    category, score = np.array([1, 0, 0, 0, 0, 1]), np.array([0.5, 0.9, 0.2, 0.8, 0.7, 0.6])
    right = np.array([True, True, True, False, True, False])
    points = _CurvePoints(category, score, right, np.array([4, 1, 0, 1, 0]), np.array([0.25, 0.3, 0.5, 0.75, 1.0]))
    points = replace(points, category=np.append(category, 4), score=np.append(score, 1), right=np.append(right, False))
    curves = points.curves()
    assert curves[0] == pytest.approx([1, 3 / 4, 3 / 4, 3 / 4, 0])
    assert curves[1] == pytest.approx([1 / 2] * 5)
    assert np.isnan(curves[2]).all()
    assert curves[3].tolist() == curves[4].tolist() == [0] * 5
    fewer = points.without(np.array([0]))
    assert fewer.instance_counts.tolist() == [3, 1, 0, 1, 0]
    assert fewer.curves()[0] == pytest.approx([1, 1, 3 / 4, 3 / 4, 3 / 4])
    assert points.select(points.category == 1).score.tolist() == [0.5, 0.6]
    assert np.isnan(points.select(points.category == 1).precision()[4])
    assert points.precision()[0] == pytest.approx(3.25 / 5)


def test_a_crowd_takes_what_lies_in_it_by_more_than_half(tmp_path: Path) -> None:
    crowd, half, more = [0, 0, 40, 40], [30, 0, 20, 20], [29, 0, 20, 20]
    diagnosis = made_up([[1, 1, crowd, 1]], [[1, 1, half, 0.9], [1, 1, more, 0.8], [1, 2, more, 0.7]], tmp_path)
    assert diagnosis.ignored.tolist() == [False, True, False]
    assert diagnosis.select(0.8).tolist() == [True, False, False]
    assert diagnosis.select(0.95).tolist() == [False] * 3
    assert diagnosis.match_at(0.55).ignored.tolist() == [False, False, False]
    crowded = made_up([[1, 1, crowd, 1], [1, 1, more, 0]], [[1, 1, more, 0.8]], tmp_path)
    assert (crowded.ignored.tolist(), crowded.right.tolist(), crowded.hits.tolist()) == ([False], [True], [False, True])
    assert crowded.instance_counts.tolist() == [1, 0]


def test_detections_are_judged_again_at_another_threshold(tmp_path: Path) -> None:
    diagnosis = made_up(
        [[1, 1, BOX, 0], [2, 1, BOX, 0]], [[1, 1, HALF, 0.9], [1, 1, MOST, 0.8], [2, 1, BOX, 0.7]], tmp_path
    )
    assert diagnosis.foreground == 0.5
    assert diagnosis.partner.tolist() == [0, -1, 1]
    assert diagnosis.match_at(0.9).partner.tolist() == [-1, 0, 1]
    assert diagnosis.match_at(0.95).partner.tolist() == [-1, -1, 1]
    quirk = replace(diagnosis, id_zero_quirk=True, truth=replace(diagnosis.truth, ids=diagnosis.truth.ids - 1))
    assert (quirk.right.tolist(), quirk.hits.tolist()) == ([False, False, True], [True, True])


def test_an_instance_is_taken_once() -> None:
    pairs = OverlappingPairs(np.array([0, 0, 1, 1, 3]), np.array([1, 0, 1, 2, 2]), np.ones(5))
    assert _assign_partners(pairs, 5).tolist() == [1, 2, -1, -1, -1]


def test_of_equals_confusion_takes_the_own_category(tmp_path: Path) -> None:
    both = [[1, 1, BOX, 0], [1, 2, BOX, 0]]
    assert count_confusions(made_up(both, [[1, 2, BOX, 0.9]], tmp_path)).tolist() == [[0, 0, 1], [0, 1, 0], [0, 0, 0]]
    closer = [[1, 1, MOST, 0], [1, 2, BOX, 0]]
    assert count_confusions(made_up(closer, [[1, 2, MOST, 0.9]], tmp_path)).tolist() == [
        [0, 1, 0],
        [0, 0, 1],
        [0, 0, 0],
    ]
    assert count_confusions(made_up(both[:1], [[1, 2, HALF, 0.9]], tmp_path)).tolist() == [
        [0, 1, 0],
        [0, 0, 0],
        [0, 0, 0],
    ]
    assert count_confusions(made_up(both[:1], [[1, 2, THIRD, 0.9]], tmp_path)).tolist() == [
        [0, 0, 1],
        [0, 0, 0],
        [0, 1, 0],
    ]
    assert count_confusions(made_up(both[:1], [[1, 1, BOX, 0.5]], tmp_path), 0.5).tolist() == [
        [1, 0, 0],
        [0, 0, 0],
        [0, 0, 0],
    ]


# ── what scores are worth ───────────────────────────────────────────────────


def test_calibration_is_the_gap_between_score_and_what_is_right(tmp_path: Path) -> None:
    instances = [[1, 1, BOX, 0], [2, 1, BOX, 0], [3, 2, [0, 0, 90, 90], 1]]
    detections = [[1, 1, BOX, 1.0], [1, 1, FAR, 0.92], [2, 1, MOST, 0.3], [3, 2, FAR, 0.31], [2, 2, FAR, 0.05]]
    diagnosis = made_up(instances, detections, tmp_path)
    bins = measure_calibration(diagnosis)
    assert bins.counts.tolist() == [1, 0, 0, 1, 0, 0, 0, 0, 0, 2]
    assert bins.scores[[0, 3, 9]] == pytest.approx([0.05, 0.3, 0.96])
    assert bins.shares[[0, 3, 9]] == pytest.approx([0, 1, 0.5])
    assert bins.error == pytest.approx((0.05 + 0.7 + 2 * 0.46) / 4)
    assert bins.largest_gap == pytest.approx(0.7)
    assert measure_calibration(diagnosis, 0.3).counts.sum() == 3
    # Dogs: 25 bins part 1 and .92 from .3, which lies at .9; cats: .05 for a missing detection.
    assert measure_localisation_error(diagnosis) == pytest.approx(((2 * abs(0.96 - 0.5) + 0.6) / 3 + 0.05) / 2)
    assert measure_localisation_error(diagnosis, 0.2) == pytest.approx((2 * 0.46 + 0.6) / 3)


def test_bins_of_located_errors_are_a_twenty_fifth_wide(tmp_path: Path) -> None:
    instances = [[1, 1, BOX, 0], [2, 1, BOX, 0]]
    together = made_up(instances, [[1, 1, BOX, 0.85], [2, 1, FAR, 0.87]], tmp_path)
    assert measure_localisation_error(together) == pytest.approx(abs(0.86 - 0.5))
    apart = made_up(instances, [[1, 1, BOX, 0.87], [2, 1, FAR, 0.89]], tmp_path)  # .88 is the border
    assert measure_localisation_error(apart) == pytest.approx((0.13 + 0.89) / 2)
    of_zero = replace(apart, id_zero_quirk=True, truth=replace(apart.truth, ids=apart.truth.ids - 1))
    assert measure_localisation_error(of_zero) == pytest.approx((0.87 + 0.89) / 2)


def test_of_equal_f1_the_highest_score_is_the_threshold(tmp_path: Path) -> None:
    instances = [[1, 1, BOX, 0], [2, 1, BOX, 0], [3, 1, BOX, 0], [3, 1, [0, 0, 90, 90], 1]]
    detections = [[1, 1, BOX, 0.9], [1, 1, FAR, 0.5], [2, 1, FAR, 0.45], [2, 1, BOX, 0.4], [3, 1, FAR, 0.95]]
    diagnosis = made_up(instances, detections, tmp_path)
    for category in (None, 0):  # 2/4 from .9 on, 4/7 from .4 on
        best = _find_best_threshold(diagnosis, category)
        assert best is not None
        assert (best.score, best.f1, best.precision, best.recall) == pytest.approx((0.4, 4 / 7, 1 / 2, 2 / 3))
    assert _find_best_threshold(diagnosis, 1) is None
    equal = _find_best_threshold(made_up(instances[:2], [*detections[:3], [3, 1, FAR, 0.42], detections[3]], tmp_path))
    assert equal is not None  # 2/3 from .9 on, 4/7 from .4 on
    assert (equal.score, equal.f1, equal.precision, equal.recall) == pytest.approx((0.9, 2 / 3, 1, 1 / 2))


@pytest.mark.parametrize("right_first", [True, False])
@pytest.mark.parametrize("category", [None, 0])
def test_equal_scores_are_kept_together(right_first: bool, category: int | None, tmp_path: Path) -> None:
    instances = [[1, 1, BOX, 0], [2, 1, BOX, 0]]
    for first, second in ((1, 2), (2, 1), (1, 1)):
        equal = [[first, 1, BOX, 0.5], [second, 1, FAR, 0.5]]
        diagnosis = made_up(instances, equal if right_first else equal[::-1], tmp_path)
        best = _find_best_threshold(diagnosis, category)
        assert best is not None  # 2/3 if the right one of both could be kept alone
        assert (best.score, best.f1, best.precision, best.recall) == pytest.approx((0.5, 1 / 2, 1 / 2, 1 / 2))


def test_images_are_counted_by_their_mistakes(tmp_path: Path) -> None:
    diagnosis = made_up(
        [[1, 1, BOX, 0], [1, 1, FAR, 0], [2, 1, BOX, 0], [2, 1, FAR, 1]],
        [[1, 1, BOX, 0.9], [1, 2, FAR, 0.8], [2, 1, BOX, 0.7], [3, 1, BOX, 0.6]], tmp_path,
    )  # fmt: skip
    counts = _count_by_image(diagnosis, 0.0)
    assert [item.tolist() for item in (counts.right, counts.wrong, counts.missed)] == [[1, 1, 0], [1, 0, 1], [1, 0, 0]]
    assert counts.f1.tolist() == [2 / 4, 1, 0]
    assert counts.profiles() == {"perfect": 1, "false alarms": 1, "misses": 0, "mixed": 1}
    zero, three = np.zeros(1, int), np.full(1, 3)
    assert _ImageCounts(zero, zero, zero).f1.tolist() == [1]
    assert _ImageCounts(zero, zero, three).profiles()["misses"] == 1


PROTOCOL = INSTANCE_PROTOCOLS["coco-box"]

# ── all tables of detections ────────────────────────────────────────────────


def diagnosis(folder: Path) -> InstanceDiagnosis:
    """Return two dogs and three cats; the best threshold is .5, above a false alarm."""
    instances = [
        [1, 1, BOX, 0],
        [2, 1, BOX, 0],
        [1, 2, FAR, 0],
        [3, 2, FAR, 0],
        [2, 2, FAR, 0],
        [3, 1, [20, 0, 20, 20], 1],
    ]
    detections = [
        [1, 1, BOX, 0.9], [1, 1, FAR, 0.8], [2, 1, BOX, 0.7], [2, 2, FAR, 0.6], [2, 2, [0, 40, 9, 9], 0.5],
        [3, 2, FAR, 0.5], [3, 2, [0, 40, 9, 9], 0.4], [3, 1, [20, 0, 20, 20], 0.95],
    ]  # fmt: skip
    return InstanceDiagnosis(made_up(instances, detections, folder), PROTOCOL)


def test_kinds_are_counted_beside_what_they_cost(tmp_path: Path) -> None:
    results = diagnosis(tmp_path)
    rows = {row["kind"]: (row["count"], row["cost"]) for row in results.list_kinds()}
    assert {kind: count for kind, (count, _) in rows.items()} == {
        "Cls": 1, "Loc": 0, "Both": 0, "Dupe": 0, "Bkg": 3, "Miss": 0
    }  # fmt: skip
    # A cat that is detected as a dog lies between the two dogs; the cats have 2 of 3, a false alarm below the first.
    dogs, cats = (51 + 50 * 2 / 3) / 101, (34 + 33 * 2 / 3) / 101
    assert results.errors.precision == pytest.approx([dogs, cats])
    assert rows["Bkg"][1] == pytest.approx(67 / 101 / 2 - cats / 2)
    fixed = (67 + 34 * 3 / 4) / 101  # cats: right, right, wrong, right
    assert rows["Cls"][1] == pytest.approx((1 + fixed - dogs - cats) / 2)
    (dog, cat) = results.list_categories()
    assert (dog["name"], dog["instances"], dog["detections"], dog["threshold"]) == ("dog", 2, 4, 0.7)
    assert (dog["AP50"], dog["F1"], dog["Bkg"], dog["Cls"]) == pytest.approx((dogs, 4 / 5, 0, 1 - dogs))
    assert (cat["name"], cat["instances"], cat["detections"], cat["threshold"]) == ("cat", 3, 4, 0.5)
    assert (cat["AP50"], cat["F1"], cat["Bkg"]) == pytest.approx((cats, 4 / 6, 67 / 101 - cats))


def test_a_category_without_anything_right_has_no_threshold(tmp_path: Path) -> None:
    diagnosis = InstanceDiagnosis(made_up([[1, 2, BOX, 0]], [[1, 1, BOX, 0.9]], tmp_path), PROTOCOL)
    (cat,) = diagnosis.list_categories()
    assert (cat["threshold"], cat["F1"], cat["detections"]) == (None, 0, 0)
    assert (diagnosis.least, diagnosis.selection.tolist()) == (-np.inf, [True])


def test_steps_are_precision_and_recall_after_each_detection(tmp_path: Path) -> None:
    recall, precision, score = diagnosis(tmp_path).trace_curve(0)
    assert recall.tolist() == [1 / 2, 1 / 2, 1]
    assert precision.tolist() == pytest.approx([1, 1 / 2, 2 / 3])
    assert score.tolist() == [0.9, 0.8, 0.7]  # without what lies in the crowd


def test_curves_are_means_over_the_categories_of_the_truth(tmp_path: Path) -> None:
    protocol = PROTOCOL
    item = InstanceDiagnosis(
        made_up([[1, 1, BOX, 0]], [[1, 1, [0, 0, 20, 15], 0.9], [1, 2, FAR, 0.9]], tmp_path), protocol
    )
    curves = {iou: curve.tolist() for iou, curve in item.average_curves().items()}
    assert list(curves) == pytest.approx([0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95])
    assert [set(curve) for curve in curves.values()] == [{1}] * 6 + [{0}] * 4
    none = InstanceDiagnosis(made_up([], [[1, 1, BOX, 0.9]], tmp_path), protocol)
    assert none.average_curves()[0.5].tolist() == [0] * 101
    average = diagnosis(tmp_path)
    assert average.average_curves()[0.5].mean() == pytest.approx(average.errors.precision.mean())


def test_confusions_are_those_of_two_categories_most_frequent_first(tmp_path: Path) -> None:
    instances = [[1, 1, BOX, 0], [1, 2, FAR, 0], [2, 2, BOX, 0], [3, 2, BOX, 0], [3, 1, FAR, 0]]
    detections = [[1, 2, BOX, 0.9], [1, 1, FAR, 0.8], [2, 1, BOX, 0.7], [3, 1, FAR, 0.6], [3, 2, [0, 50, 9, 9], 0.5]]
    diagnosis = InstanceDiagnosis(made_up(instances, detections, tmp_path), PROTOCOL)
    assert diagnosis.least == 0.6
    table = count_confusions(diagnosis.judged, diagnosis.least)
    categories = [
        row for row in list_pairs([*diagnosis.names, "nothing"], table, "count") if row["taken for"] != "nothing"
    ]
    assert [row for row in categories if row["truth"] != "nothing"] == [
        {"truth": "cat", "taken for": "dog", "count": 2, "share": pytest.approx(2 / 3)},
        {"truth": "dog", "taken for": "cat", "count": 1, "share": 1 / 2},
    ]


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


def test_the_worst_images_of_categories_begin_with_the_lowest_precision(tmp_path: Path) -> None:
    instances = [[1, 1, BOX, 0], [3, 1, FAR, 0], [1, 2, BOX, 0], [2, 2, FAR, 0], [2, 2, BOX, 0]]
    detections = [[1, 1, BOX, 0.9], [3, 1, BOX, 0.8], [3, 1, FAR, 0.7]]
    diagnosis = InstanceDiagnosis(made_up(instances, detections, tmp_path), PROTOCOL)
    assert diagnosis.find_worst_of_categories() == [1, 2]
    perfect = InstanceDiagnosis(made_up(instances[:1], detections[:1], tmp_path), PROTOCOL)
    assert perfect.find_worst_of_categories() == []


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


def test_right_detections_below_the_threshold_leave_their_instances_missed(tmp_path: Path) -> None:
    detections = [[1, 1, BOX, 0.9], *([1, 1, FAR, 0.5 - k / 100] for k in range(3)), [2, 1, BOX, 0.4]]
    diagnosis = InstanceDiagnosis(made_up([[1, 1, BOX, 0], [2, 1, BOX, 0]], detections, tmp_path), PROTOCOL)
    assert (diagnosis.least, diagnosis.misses.tolist()) == (0.9, [False, True])
    assert diagnosis.selection.tolist() == [True, False, False, False, False]
    assert [(row["image"], row["missed"]) for row in diagnosis.list_images()] == [("2", 1), ("1", 0), ("3", 0)]
    # A category that the truth lacks has no worst image, whatever is wrong in it.
    more = [[1, 1, BOX, 0.9], [1, 2, FAR, 0.95]]
    assert InstanceDiagnosis(made_up([[1, 1, BOX, 0]], more, tmp_path), PROTOCOL).find_worst_of_categories() == []


def test_other_families_have_no_diagnosis_of_detections() -> None:
    job: Any = SimpleNamespace(scorers={"val": SimpleNamespace(truth=None)})
    report: Any = SimpleNamespace(counts=None, protocol=PROTOCOL, split="val")
    with pytest.raises(UsageError, match="no kinds"):
        diagnose(job, report)


@pytest.mark.parametrize(
    ("shifts", "changed", "expected"),
    [
        pytest.param([(9, 2), (-4, 3)], 0, [(-4, 3, 1)], id="the nearest"),
        pytest.param([(9, 2), (-4, 3)], 2, [(9, 2, 0)], id="the nearest with the same pose"),
        pytest.param([(20, 1), (0, 21)], 0, [], id="too far"),
    ],
)
def test_the_offset_of_a_person_is_that_of_the_same_pose(
    shifts: list[tuple[int, int]], changed: int, expected: list[tuple[int, int, int]]
) -> None:
    pose = np.array([(3.0, 4.0), (7.0, 4.0), (5.0, 9.0), (0.0, 0.0)])
    points = np.array([pose + shift for shift in shifts])
    points[1, 0] += changed
    people = SimpleNamespace(points=pose[None], marked=np.array([[True, True, True, False]]))
    judged = SimpleNamespace(
        truth=SimpleNamespace(area=np.array([100.0])), records=SimpleNamespace(points=points.reshape(2, -1))
    )
    diagnosis: Any = SimpleNamespace(judged=judged)
    moves = keypoints._measure_moves(diagnosis, people, np.array([0]), np.array([0, 1]))  # type: ignore[arg-type]
    assert moves.tolist() == [list(move) for move in expected]


@dataclass(frozen=True)
class _Points:
    points: Any


def shift_of(offsets: list[tuple[float, float]]) -> Any:
    """Return the shift of people whose detections are moved by these offsets, and the offsets that remain."""
    pose, count = np.array([(3.0, 4.0), (7.0, 4.0), (5.0, 9.0)]), len(offsets)
    true = np.array([pose + np.array((100 * number, 0)) for number in range(count)])
    people = SimpleNamespace(points=true, marked=np.ones((count, 3), bool))
    none = np.zeros(0, np.int64)
    judged = SimpleNamespace(
        truth=SimpleNamespace(keypoints=people, area=np.full(count, 100.0)),
        records=_Points((true + np.array(offsets)[:, None]).reshape(count, -1)),
        pairs=OverlappingPairs(none, none, np.zeros(0)), crowd=np.zeros(count, bool), hits=np.zeros(count, bool),
        partner=np.full(count, -1), category=np.zeros(count, int), instance_category=np.zeros(count, int),
        annotation=np.arange(count), record=np.arange(count), image=np.zeros(count, int), instance_image=np.zeros(count, int),
    )  # fmt: skip
    diagnosis: Any = SimpleNamespace(judged=judged, selection=np.ones(count, bool), judge_again=lambda records: records)
    shift = keypoints.find_shift(diagnosis)
    if shift is None:
        return None
    remaining = shift.righted.points.reshape(count, 3, 2) - true  # type: ignore[attr-defined]
    return shift.found_people, shift.missed_people, shift.distance, shift.vector, remaining[:, 0].tolist()


def test_people_are_shifted_together_if_most_offsets_are_within_a_quarter() -> None:
    assert shift_of([(4, 0), (4, 0), (5, 0), (0, -4)]) == (0, 3, 4, (4, 0), [[0, 0], [0, 0], [0, 0], [0, -4]])
    assert shift_of([(4, 0), (-4, 0), (0, 4), (0, -4)]) == (0, 4, 4, None, [[0, 0]] * 4)
    assert shift_of([(4, 0), (0, 0), (0, 0), (0, 0)]) is None
    assert shift_of([(4, 0)] * 3 + [(-4, 0)] * 2) == (0, 5, 4, None, [[0, 0]] * 5)
    assert shift_of([(4, 0)] * 2 + [(0, 0)] * 4) == (0, 2, 4, (4, 0), [[0, 0]] * 6)
    assert shift_of([(4, 0)] * 2 + [(0, 0)] * 5) is None, "fewer than three of ten"
    assert shift_of([(0.5, 0), (0.5, 0), (0.25, 0), (0, 0)]) == (
        0,
        2,
        0.5,
        (0.5, 0),
        [[0, 0], [0, 0], [0.25, 0], [0, 0]],
    )


@pytest.mark.parametrize(
    ("average", "at_half", "parts"),
    [
        (0.25, 0.75, [("kept", 0.25, "kept"), ("inexact", 0.5, "inexact"), ("lost at .50", 0.25, "lost")]),
        (0.25, None, [("kept", 0.25, "kept"), ("inexact", 0.125, "inexact"), ("lost at .50", 0.625, "lost")]),
        (0.5, 0.5, [("kept", 0.5, "kept"), ("inexact", 0.0, "inexact"), ("lost at .50", 0.5, "lost")]),
        (0.5, 0.25, []),
        (None, 0.5, []),
    ],
)
def test_a_bar_parts_ap_its_loss_above_one_half_and_the_rest(
    average: float | None, at_half: float | None, parts: list[tuple[str, float, str]]
) -> None:
    report: Any = SimpleNamespace(protocol=PROTOCOL, values={"AP": average, "AP50": at_half})
    errors = SimpleNamespace(precision="precision", average={"precision": 0.375}.__getitem__)
    assert make_ap_bar(SimpleNamespace(errors=errors), report) == parts  # type: ignore[arg-type]
