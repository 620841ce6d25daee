"""Metrics of objects in video and means over them, compared with values computed by hand."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

from segjudge.evaluation_script.families.sequences import metrics as sequence_metrics
from segjudge.evaluation_script.families.sequences.metrics import ObjectScore, _ScoreTable
from segjudge.evaluation_script.families.sequences.protocols import BESIDE, SEQUENCE_PROTOCOLS
from segjudge.evaluation_script.masks.similarity import Counts, fractional_disk
from tests.families.unit_counts import close

pytestmark = pytest.mark.usefixtures("without_kernel")


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 8, 10, 11, 99, 256, 700])
def test_decay_compares_the_first_and_the_last_of_four_parts(count: int) -> None:
    values = np.random.default_rng(count).random(count)
    early = math.floor(1 + (count - 1) / 4 + 0.5 + 1e-9)
    late = math.floor(1 + (count - 1) * 3 / 4 + 0.5 + 1e-9)
    expected = values[:early].mean() - values[late - 1 :].mean()
    assert sequence_metrics._decay(values) == close(expected)


def test_a_series_of_nothing_has_no_value() -> None:
    nothing = np.zeros(0)
    for of in ("mean", "recall", "_decay", "consistency"):
        assert getattr(sequence_metrics, of)(nothing) is None
    assert sequence_metrics.mean(np.array([np.nan])) is None
    assert sequence_metrics.mean(np.array([np.nan, 1, 0.5])) == 0.75
    assert sequence_metrics.average([None, 0.5, 1.0]) == 0.75
    assert sequence_metrics.average([None]) is None
    assert sequence_metrics.recall(np.array([0.5, 0.6, np.nan, 0.4])) == 0.25
    assert sequence_metrics.consistency(np.array([0.1, 0.4, 0.4])) == math.sqrt(0.02)


def counts_of(*frames: tuple[int, ...]) -> Counts:
    return Counts(*np.array(frames).reshape(-1, 7).T)


def test_spans_agree_in_frames_where_both_sides_have_a_pixel() -> None:
    counts = counts_of(*((truth, sent, *[0] * 5) for truth, sent in ((1, 1), (1, 0), (0, 1), (3, 2), (0, 0))))
    similarity = sequence_metrics._span_similarity
    assert similarity(counts, np.array([0.5, 0.1, 0.1, 0.25, 1])) == {"tIoU-Mean": 2 / 4, "vIoU-Mean": 0.75 / 4}
    assert similarity(counts.select(np.array([4])), np.ones(1)) == {"tIoU-Mean": 1, "vIoU-Mean": 1}


def test_our_own_statistics_can_be_worked_out_by_hand() -> None:
    counts = counts_of((4, 2, 2, 4, 4, 2, 4), (6, 8, 4, 6, 4, 2, 0), (0, 3, 0, 0, 4, 0, 0), (0, 0, 0, 0, 0, 0, 0))
    precision, recall = 4 / 12, 4 / 10
    assert sequence_metrics._own_statistics(counts, np.array([0.5, 0.4, 0, 1]), np.array([0.6, 0.2, 0, 1])) == {
        "J-Volume": 6 / 17, "F-Volume": close(2 * precision * recall / (precision + recall)),
        "J-Visible": close(0.45), "F-Visible": close(0.4), "False-Alarm": 0.5,
    }  # fmt: skip
    always = sequence_metrics._own_statistics(counts.select(np.array([0])), np.ones(1), np.ones(1))
    assert (always["False-Alarm"], always["J-Visible"]) == (None, 1)
    nowhere = sequence_metrics._own_statistics(counts.select(np.zeros(0, int)), np.zeros(0), np.zeros(0))
    assert set(nowhere.values()) == {None}


def test_each_protocol_names_its_metrics_of_an_object() -> None:
    j, f = np.array([0.9, 0.7, 0.4, 0.2, 0.8]), np.array([0.5, 0.6, 0.6, 0.2, 0.1])
    seen = counts_of(*[(4, 2, 2, 4, 4, 2, 4)] * 5)
    davis = sequence_metrics.summary(seen, j, f, SEQUENCE_PROTOCOLS["davis2017"])
    expected = [0.5, 0.6, 0.6, 0.3, 0.4, 0.4, 0.4]
    assert list(davis.items()) == list(zip(SEQUENCE_PROTOCOLS["davis2017"].metrics, [close(item) for item in expected]))
    vost = sequence_metrics.summary(seen, j, f, SEQUENCE_PROTOCOLS["vost"])
    assert [vost[f"J_last-{kind}"] for kind in ("Mean", "Recall", "Decay")] == [close(0.5), 0.5, close(-0.6)]
    spread = np.round(np.var((j + f) / 2), 4) ** 0.5
    for name in ("lvos", "lvos-unsupervised-single"):
        assert sequence_metrics.summary(seen, j, f, SEQUENCE_PROTOCOLS[name])["V-Mean"] == spread


def test_an_expression_without_a_target_is_right_when_nothing_is_predicted() -> None:
    item, protocol = np.ones(2), SEQUENCE_PROTOCOLS["mevis-v2"]
    for truth, prediction, right in ((0, 0, 1), (0, 3, 0), (3, 3, 1), (3, 0, 0)):
        counts = counts_of((0,) * 7, (truth, prediction, 0, 0, 0, 0, 0))
        results = sequence_metrics.summary(counts, item, item * 0, protocol)
        named = ("T-acc", "N-acc") if truth else ("N-acc", "T-acc")
        assert [results[name] for name in named] == [right, None]


def test_one_pixel_is_added_in_mosev2_and_two_empty_masks_agree() -> None:
    counts = counts_of((4, 3, 2, 0, 0, 0, 0), (0, 4, 0, 0, 0, 0, 0), (0, 0, 0, 0, 0, 0, 0))
    assert sequence_metrics._smooth_similarity(counts).tolist() == [3 / 6, 1 / 5, 1]


@pytest.mark.parametrize("radius", [0.3, 1.5, 2.2, 7.837, 7.2, 3.0])
def test_a_disk_of_a_broken_radius_has_the_points_of_its_grid(radius: float) -> None:
    grid = [k - radius for k in range(math.ceil(2 * radius + 1))]
    centre = len(grid) // 2
    points = {
        (i - centre, k - centre)
        for (i, x), (k, y) in itertools.product(enumerate(grid), repeat=2)
        if x * x + y * y <= radius * radius
    } or {(-centre, -centre)}
    results = fractional_disk(radius)
    assert {(dx, dy) for dx, low, high in results for dy in range(low, high + 1)} == points


def scored(sequence: str, unseen: bool, **values: Any) -> ObjectScore:
    named = {name.replace("_", "-"): value for name, value in values.items()}
    return ObjectScore(sequence, "1", named, [], np.zeros(0), np.zeros(0), unseen)


def test_means_without_each_sequence_are_those_of_the_others() -> None:
    scores = [
        scored("a", False, J_Mean=0.2, F_Mean=0.4), scored("a", True, J_Mean=0.6, F_Mean=0.5),
        scored("b", False, J_Mean=0.9, F_Mean=None), scored("c", True, J_Mean=0.1, F_Mean=0.7),
    ]  # fmt: skip
    protocol = SEQUENCE_PROTOCOLS["youtube-vos"]
    table = _ScoreTable(scores, protocol)
    means, without = table.means(), table.means_without_each()
    assert list(means) == [*protocol.metrics, *BESIDE]
    expected = {
        "J-seen-Mean": 0.55, "J-unseen-Mean": 0.35, "J-Mean": 0.45, "F-seen-Mean": 0.4, "F-unseen-Mean": 0.6,
        "F-Mean": 0.5, "J&F-Mean": 0.475, "J-Volume": None,
    }  # fmt: skip
    assert {name: means[name] for name in expected} == {
        name: None if value is None else close(value) for name, value in expected.items()
    }
    for place, name in enumerate("abc"):
        rest = _ScoreTable([score for score in scores if score.sequence != name], protocol).means()
        for metric, value in rest.items():
            assert without[metric][place] == (pytest.approx(math.nan, nan_ok=True) if value is None else close(value))
    sums, counts = table.sums("F-Mean")
    assert (sums.tolist(), counts.tolist()) == ([close(0.9), 0, 0.7], [2, 0, 1])
    assert [table.count_cases(name) for name in ("J-seen-Mean", "J-unseen-Mean", "J-Mean", "J-Volume")] == [2, 2, 2, 3]
    for unseen in (False, True):
        alone = _ScoreTable([scored(name, unseen, J_Mean=0.5) for name in "xyz"], protocol)
        assert [alone.count_cases(name) for name in ("J-Mean", "J-seen-Mean")] == [3, 0 if unseen else 3]
    assert _ScoreTable(scores[:2], protocol).means_without_each() == {}


def test_the_final_value_of_mevis_is_the_mean_of_three_means() -> None:
    targets = [
        ObjectScore("a", "1", {"J-Mean": 0.5, "F-Mean": 0.7, "T-acc": 1.0}, [], np.zeros(0), np.zeros(0)),
        ObjectScore("a", "2", {"J-Mean": 0.3, "F-Mean": 0.1, "T-acc": 0.0}, [], np.zeros(0), np.zeros(0)),
        ObjectScore("b", "3", {"J-Mean": 1.0, "F-Mean": 1.0, "N-acc": 1.0}, [], np.zeros(0), np.zeros(0)),
    ]
    protocol = SEQUENCE_PROTOCOLS["mevis-v2"]
    assert _ScoreTable(targets, protocol).means()["Final"] == close((0.6 + 1 + 0.5) / 3)
    assert _ScoreTable(targets[:2], protocol).means()["Final"] == close((0.4 + 0.5) / 2)


def test_rounds_of_a_video_are_one_case() -> None:
    scores = [scored(f"anno_{k}/a", False, J_Mean=k / 4) for k in range(3)] + [scored("anno_0/b", False, J_Mean=1.0)]
    table = _ScoreTable(scores, SEQUENCE_PROTOCOLS["ref-davis17"])
    assert table.count_cases("J-Mean") == 2
    assert table.means_without_each()["J-Mean"].tolist() == [1, 0.25]
    rows = sequence_metrics._by_sequence([*scores, scored("anno_0/b", False, J_Mean=0.5)], ["J-Mean"])
    assert list(rows) == ["anno_0/a", "anno_1/a", "anno_2/a", "anno_0/b"]
    assert rows["anno_0/b"] == {"J-Mean": 0.75}


@pytest.mark.parametrize(
    ("visible", "absent", "back"),
    [("1100", [(2, 4)], []), ("0110", [(3, 4)], [(1, 3)]), ("1010", [(1, 2), (3, 4)], [(2, 3)]), ("1111", [], [])],
)
def test_absences_and_returns_are_scored_over_their_own_frames(visible: str, absent: Any, back: Any) -> None:
    flags, j, f_new = np.array([item == "1" for item in visible]), np.arange(1.0, 5), np.arange(4.0, 0, -1)
    results = sequence_metrics.reappearance(j, f_new, j / 2, flags)
    assert (results["J-Mean"], results["F_new-Mean"], results["F-Mean"]) == (2.5, 2.5, 1.25)
    for name, parts in (("disappear", absent), ("reappear", back)):
        for metric, series in (("J", j), ("F_new", f_new)):
            means = [series[start:stop].mean() for start, stop in parts]
            assert results[f"{name}_{metric}-Mean"] == (np.mean(means) if means else None)
