"""The losses of segments and categories: sums that equal the loss of panoptic quality."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from segjudge.evaluation_script.families.base.units import UnitAccumulator, UnitCounts
from segjudge.evaluation_script.families.panoptic.counting import IOU, MATCHED, MISSED, SURPLUS, UNASSOCIATED
from segjudge.evaluation_script.families.panoptic.engine import ENGINE
from segjudge.evaluation_script.families.panoptic.protocols import PANOPTIC_PROTOCOLS
from segjudge.scoring.arrays import score_arrays
from tests.families.losses import count_tables, losses_of


def quality(windows: list[list[tuple[float, int, int, int]]]) -> dict[str, Any]:
    table = np.zeros((len(windows), len(windows[0]), 4))
    for place, rows in enumerate(windows):
        for category, (iou, matched, surplus, missed) in enumerate(rows):
            table[place, category, [IOU, MATCHED, SURPLUS, MISSED]] = iou, matched, surplus, missed
    return {"quality": table}


def test_units_lose_their_share_of_panoptic_quality() -> None:
    first = quality([[(1.5, 2, 1, 0), (0, 0, 0, 0), (0, 0, 0, 0)]])
    second = quality([[(0.5, 1, 1, 2), (0, 0, 0, 1), (0, 0, 0, 0)]])
    losses = losses_of("panoptic", count_tables(PANOPTIC_PROTOCOLS["coco-panoptic"], [first, second]))
    # Category 0: IoU 2 of 3 + 2/2 + 2/2 = 5; category 1: half a segment, missed; category 2 is nowhere.
    assert losses.by_unit == pytest.approx(np.array([[0.5 / 5, 0.5 / 5, 0], [0.5 / 5, 0.5 / 5, 1 / 5 + 1]]) / 2)
    assert losses.by_category == pytest.approx(np.array([[1 / 5, 1 / 5, 1 / 5], [0, 0, 1], [0, 0, 0]]) / 2)
    assert losses.totals() == pytest.approx({"inexact": 0.1, "surplus": 0.1, "missed": 0.6})
    assert sum(losses.totals().values()) == pytest.approx(1 - (2 / 5 + 0) / 2)


def test_windows_of_panoptic_quality_count_the_same() -> None:
    video = quality([[(1, 2, 0, 0), (0, 0, 1, 0)], [(1, 1, 2, 0), (0, 0, 0, 0)]])
    losses = losses_of("panoptic", count_tables(PANOPTIC_PROTOCOLS["vipseg"], [video]))
    # First window: means over two categories, 1/2 inexact, 1 surplus; second over one, 1 of 2 surplus.
    assert losses.totals() == pytest.approx({"inexact": 1 / 8, "surplus": 1 / 4 + 1 / 4, "missed": 0})


CAR, PERSON, ROAD, VOID = 13, 11, 0, 255


def _score_tracks(sides: list[list[list[Any]]], protocol: str = "kitti-step") -> Any:
    """Score sequences of frames, each the classes and the numbers of truth and prediction."""
    truth = {f"s{index}": [frame[0] for frame in frames] for index, frames in enumerate(sides)}
    sent = {f"s{index}": [frame[1] for frame in frames] for index, frames in enumerate(sides)}
    (report,) = score_arrays(sent, truth, protocol).reports
    return report


def _paint(numbers: list[int], kind: int = CAR) -> Any:
    """Return the classes and numbers of a row of pixels; 0 is road."""
    labels = np.array([numbers])
    return np.where(labels > 0, kind, ROAD), labels


@pytest.mark.parametrize("protocol", ["kitti-step", "kitti-step-official"])
@pytest.mark.parametrize("seed", range(4))
def test_kinds_sum_to_what_sequences_lack_of_association_and_iou(seed: int, protocol: str) -> None:
    random = np.random.default_rng(seed)

    def draw() -> Any:
        classes = random.choice([CAR, PERSON, ROAD, VOID], (6, 9), p=[0.4, 0.3, 0.2, 0.1])
        return classes, np.where(np.isin(classes, (CAR, PERSON)), random.integers(0, 4, (6, 9)), 0)

    sides = []
    for _ in range(3):
        frames = [(truth, truth if random.random() < 0.5 else draw()) for truth in (draw() for _ in range(5))]
        sides.append(frames)
    report = _score_tracks(sides, protocol)
    losses = losses_of("panoptic", report.counts)
    lacking = 2 - report.values["AQ"] - report.values["IoU"]
    assert sum(losses.totals().values()) == pytest.approx(lacking, abs=1e-9)
    assert losses.by_category.sum(axis=0) == pytest.approx(losses.by_unit.sum(axis=0), abs=1e-12)
    assert losses.by_unit.min() >= 0
    associated = sum(video.tables["unassociated"] for video in report.counts.complete_counts())
    tubes = sum(video.tables["association"][1] for video in report.counts.complete_counts())
    assert associated.sum() / tubes == pytest.approx(1 - report.values["AQ"], abs=1e-9)


@pytest.mark.parametrize(
    ("truth", "sent", "expected"),
    [
        pytest.param([[1] * 4 + [0] * 4] * 2, [[1] * 4 + [0] * 4, [0] * 8], {"missing": 3 / 4}, id="missing"),
        pytest.param([[1] * 4 + [0] * 4] * 2, [[1] * 4 + [0] * 4, [1] * 8], {"surplus": 1 / 3}, id="surplus"),
        pytest.param([[1, 2]] * 4, [[1, 2]] * 2 + [[2, 1]] * 2, {"swapped": 2 / 3}, id="exchanged"),
        pytest.param([[1]] * 4, [[1], [1], [2], [2]], {"swapped": 1 / 2}, id="changed"),
        pytest.param([[1] * 4] * 2, [[1, 1, 2, 2]] * 2, {"split": 1 / 2}, id="split"),
        pytest.param([[1, 1, 2, 2]] * 2, [[1] * 4] * 2, {"merged": 1 / 2}, id="merged"),
        # One pixel in twenty has the neighbour's track: no identity is exchanged.
        pytest.param(
            [[1] * 20 + [2] * 20] * 3, [[1] * 21 + [2] * 19] * 3,
            {"split": (1 / 20 * 19 / 40 + 19 / 20 * 1 / 20) / 2, "merged": (1 / 21 + 1 / 20 * 20 / 40) / 2}, id="edge",
        ),
    ],
)  # fmt: skip
def test_association_is_lost_to_the_fault_of_the_tracks(
    truth: list[list[int]], sent: list[list[int]], expected: dict[str, float]
) -> None:
    report = _score_tracks([[(_paint(row), _paint(other)) for row, other in zip(truth, sent, strict=True)]])
    (video,) = report.counts.complete_counts()
    lost = dict(zip(UNASSOCIATED, video.tables["unassociated"][CAR] / video.tables["association"][1], strict=True))
    assert lost == pytest.approx(dict.fromkeys(UNASSOCIATED, 0.0) | expected, abs=1e-12)
    assert sum(lost.values()) == pytest.approx(1 - report.values["AQ"], abs=1e-12)


def test_association_has_no_kind_without_objects_and_in_counts_of_earlier_versions() -> None:
    road = _paint([0] * 4)
    report = _score_tracks([[(road, road)]])
    assert losses_of("panoptic", report.counts).totals() == pytest.approx(
        dict.fromkeys(UNASSOCIATED, 0.0) | {"unexplained": 1}
    )
    report = _score_tracks([[(_paint([1, 1]), _paint([1, 2]))], [(_paint([1]), _paint([1]))]])
    first, second = report.counts.complete_counts()
    earlier = UnitAccumulator(report.protocol, report.counts.facts, report.counts.names)
    stored = {key: table for key, table in first.tables.items() if key != "unassociated"}
    earlier.update(UnitCounts(first.name, stored))
    earlier.update(second)
    ENGINE.check(earlier)
    totals = losses_of("panoptic", earlier).totals()
    assert totals.pop("unexplained") == pytest.approx(1 - report.values["AQ"])
    assert not any(totals.values())
