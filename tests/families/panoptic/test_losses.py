"""What segments and categories cost: sums that are the loss of panoptic quality."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from segjudge.evaluation_script.families.instances.protocols import INSTANCE_PROTOCOLS
from segjudge.evaluation_script.families.panoptic.counting import IOU, MATCHED, MISSED, SURPLUS
from segjudge.evaluation_script.families.panoptic.protocols import PANOPTIC_PROTOCOLS
from segjudge.families import tools_of
from segjudge.scoring.scores import Scores
from segjudge.system.errors import UsageError
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


class ReportOfUnits:
    """What tables of kinds need of a report."""

    def __init__(self, held: Any, protocol: Any) -> None:
        self.counts, self.protocol, self.split = held, protocol, "val"


def test_kinds_of_units_need_their_counts_alone() -> None:
    protocol = PANOPTIC_PROTOCOLS["coco-panoptic"]
    report: Any = ReportOfUnits(
        count_tables(protocol, [quality([[(0.5, 1, 1, 2)]]), quality([[(0, 0, 0, 0)]])]), protocol
    )
    lost = {"inexact": 0.5 / 2.5, "surplus": 0.5 / 2.5, "missed": 1 / 2.5}
    first, second = Scores([report]).kinds.to_dict("records")
    assert first == pytest.approx({"split": "val", "name": "unit 0", **lost})
    assert second == {"split": "val", "name": "unit 1", "inexact": 0, "surplus": 0, "missed": 0}
    assert tools_of("panoptic").sum_failures(report, report) == pytest.approx(lost)
    units: Any = ReportOfUnits(None, INSTANCE_PROTOCOLS["coco"])
    with pytest.raises(UsageError, match="read from files"):
        _ = Scores([units]).kinds
