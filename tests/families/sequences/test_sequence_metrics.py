"""Metrics of objects in video and means over them, compared with values computed by hand."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from segjudge.evaluation_script.families.sequences import metrics as sequence_metrics
from segjudge.evaluation_script.families.sequences.metrics import ObjectScore, _ScoreTable
from segjudge.evaluation_script.families.sequences.protocols import BESIDE, SEQUENCE_PROTOCOLS
from tests.families.unit_counts import close

pytestmark = pytest.mark.usefixtures("without_kernel")


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
