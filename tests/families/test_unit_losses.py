"""What units and categories cost: sums that are the loss, and sections of the report of every family."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import segjudge
from segjudge.cli import main
from segjudge.evaluation_script.families import PROTOCOLS
from segjudge.evaluation_script.families.base.reports import Report
from segjudge.evaluation_script.families.base.units import UnitAccumulator, UnitCounts
from segjudge.evaluation_script.families.instances.protocols import INSTANCE_PROTOCOLS
from segjudge.evaluation_script.families.panoptic.counting import IOU, MATCHED, MISSED, SURPLUS
from segjudge.evaluation_script.families.panoptic.protocols import PANOPTIC_PROTOCOLS
from segjudge.evaluation_script.families.semantic.protocols import SEMANTIC_PROTOCOLS
from segjudge.evaluation_script.families.tracking.counting import ALPHAS, HOTA_FIELDS
from segjudge.evaluation_script.families.tracking.protocols import TRACKS_PROTOCOLS
from segjudge.evaluation_script.masks.overlaps import SHIFT
from segjudge.families import tools_of
from segjudge.families.base.tools import UnitLosses, UnitTools
from segjudge.families.truths import TruthSource
from segjudge.scoring.scores import ScoreRequest, Scores, prepare
from segjudge.system.errors import UsageError
from tests.builders import zipped
from tests.data import FAMILIES_DATA, TRACKS_DATA
from tests.published import published
from tests.shared import needs_shared

STEP = FAMILIES_DATA / "step/kitti-step"
#: Protocol → truth, submission, what is lost.
SAMPLES: dict[str, tuple[str | Path, str | Path, str]] = {
    "vipseg": ("vps/truth.json", "vps/submission", "VPQ"),
    "kitti-step": (STEP / "truth", STEP / "ordinary", "IoU"),
    "kitti-step-official": (STEP / "truth", STEP / "void-predicted", "IoU"),
    "vspw": ("vspw/truth", "vspw/submission", "mIoU"),
    "mots": ("mots/gt", "mots/trackers/ours/data", "DetA"),
    "burst": ("burst/truth.json", "burst/class-guided.json", "DetA"),
}


def losses_of(family: str, accumulator: Any) -> UnitLosses:
    tools = tools_of(family)
    assert isinstance(tools, UnitTools)
    return tools.measure_losses(accumulator)


def test_a_family_that_does_not_say_what_costs_its_metrics_is_told_at_once() -> None:
    class Tools(UnitTools):
        def name_losses(self, protocol: Any) -> tuple[str, str]:
            return "mIoU", "images"

    with pytest.raises(TypeError, match="measure_losses"):
        Tools()  # type: ignore[abstract] # what is tested


def scored(protocol: str) -> tuple[Report, UnitLosses]:
    truth, submission, _ = SAMPLES[protocol]
    report = segjudge.score(TRACKS_DATA / submission, TRACKS_DATA / truth, protocol).reports[0]
    assert isinstance(report.counts, UnitAccumulator)
    return report, losses_of(report.protocol.family, report.counts)


@needs_shared
@pytest.mark.parametrize("protocol", SAMPLES)
def test_what_units_and_categories_cost_sums_to_the_loss(protocol: str) -> None:
    report, losses = scored(protocol)
    value = report.values[SAMPLES[protocol][2]]
    assert value is not None
    kinds = losses.totals()
    kinds.pop("swapped", None)  # of another metric
    assert sum(kinds.values()) == pytest.approx(1 - value, abs=1e-12)
    assert losses.by_category.sum(axis=0) == pytest.approx(losses.by_unit.sum(axis=0), abs=1e-12)
    assert (losses.by_unit >= 0).all()
    assert (losses.by_category >= 0).all()


@pytest.mark.parametrize(
    ("protocol", "metric"),
    [("coco-panoptic", "PQ"), ("vipseg", "VPQ"), ("vspw", "mIoU"), ("mots", "DetA"), ("burst", "DetA")],
)
def test_what_units_of_made_data_cost_sums_to_the_loss(protocol: str, metric: str, tmp_path: Path) -> None:
    source = TruthSource(str(published(protocol, tmp_path)), "", "", "", "")
    sample = tmp_path / "sample.zip"
    (scorer,) = prepare(ScoreRequest(str(sample), source, PROTOCOLS[protocol])).scorers.values()
    tools = tools_of(PROTOCOLS[protocol].family)
    sample.write_bytes(zipped(dict(tools.make_sample([scorer.truth], PROTOCOLS[protocol], 0.05))))
    report = scorer.score(str(sample))
    kinds = losses_of(PROTOCOLS[protocol].family, report.counts).totals()
    kinds.pop("swapped", None)  # of another metric
    value = report.values[metric]
    assert value is not None
    assert sum(kinds.values()) == pytest.approx(1 - value, abs=1e-12)
    assert sum(cost > 0 for cost in kinds.values()) > 1, "the sample fails in several ways"


@needs_shared
def test_kinds_of_a_result_are_what_units_cost() -> None:
    truth, submission, _ = SAMPLES["vspw"]
    scores = segjudge.score(TRACKS_DATA / submission, TRACKS_DATA / truth, "vspw")
    assert scores["mIoU"] == pytest.approx(1 - scores.kinds[["missed", "surplus"]].sum().sum())


@needs_shared
def test_mixed_up_tracks_cost_what_association_lacks() -> None:
    report, losses = scored("mots")
    value = report.values["AssA"]
    assert value is not None
    assert losses.totals()["swapped"] == pytest.approx(1 - value, abs=1e-12)


def test_a_sequence_costs_what_it_lacks() -> None:
    protocol = TRACKS_PROTOCOLS["mots"]
    accumulator = UnitAccumulator(protocol, {}, ["good", "bad", "empty"])
    for name, matched, missed in (("good", 6, 0), ("bad", 2, 2)):
        hota = np.zeros((1, len(HOTA_FIELDS), len(ALPHAS)))
        hota[:, [HOTA_FIELDS.index(field) for field in ("matched", "AssA")]] = matched
        hota[:, HOTA_FIELDS.index("missed")] = missed
        accumulator.update(UnitCounts(name, {"classes": np.zeros(1, np.int64), "hota": hota}))
    nothing = np.zeros((0, len(HOTA_FIELDS), len(ALPHAS)))
    accumulator.update(UnitCounts("empty", {"classes": np.zeros(0, np.int64), "hota": nothing}))
    losses = losses_of("tracks", accumulator)
    rows = losses.rows(accumulator.names, losses.by_unit)
    assert [row["name"] for row in rows] == ["bad", "good", "empty"]
    assert rows[0] == pytest.approx({"costs": 0.2, "missed": 0.2, "surplus": 0, "swapped": 0} | {"name": "bad"})
    assert rows[1]["costs"] == rows[2]["costs"] == 0


@needs_shared
@pytest.mark.parametrize("protocol", SAMPLES)
def test_the_report_says_what_costs_most(protocol: str, tmp_path: Path) -> None:
    truth, submission, metric = SAMPLES[protocol]
    out = tmp_path / "report.html"
    files = [str(TRACKS_DATA / submission), "--truth", str(TRACKS_DATA / truth), "--protocol", protocol]
    assert main(["report", *files, "--out", str(out)]) == 0
    report, losses = scored(protocol)
    text = out.read_text(encoding="utf-8")
    assert f"Where {metric}" in text
    assert isinstance(report.counts, UnitAccumulator)
    first = losses.rows(report.counts.names, losses.by_unit)[0]["name"]
    listed = re.findall(r'<th scope="row">(?:<a [^>]*>)?([^<]*)<', text[text.index("Those that cost most first.") :])
    assert listed[0] == first
    assert set(listed) >= set(report.counts.names)


# ── losses by unit ──────────────────────────────────────────────────────────


def counted(protocol: Any, tables: list[dict[str, Any]], facts: Any = None) -> UnitAccumulator[Any]:
    names = [f"unit {number}" for number in range(len(tables))]
    found: UnitAccumulator[Any] = UnitAccumulator(protocol, facts or {}, names)
    for name, one in zip(names, tables, strict=True):
        found.update(UnitCounts(name, {key: np.asarray(table) for key, table in one.items()}))
    return found


def quality(windows: list[list[tuple[float, int, int, int]]]) -> dict[str, Any]:
    table = np.zeros((len(windows), len(windows[0]), 4))
    for place, rows in enumerate(windows):
        for category, (iou, matched, surplus, missed) in enumerate(rows):
            table[place, category, [IOU, MATCHED, SURPLUS, MISSED]] = iou, matched, surplus, missed
    return {"quality": table}


def test_units_lose_their_share_of_panoptic_quality() -> None:
    first = quality([[(1.5, 2, 1, 0), (0, 0, 0, 0), (0, 0, 0, 0)]])
    second = quality([[(0.5, 1, 1, 2), (0, 0, 0, 1), (0, 0, 0, 0)]])
    found = losses_of("panoptic", counted(PANOPTIC_PROTOCOLS["coco-panoptic"], [first, second]))
    # Category 0: IoU 2 of 3 + 2/2 + 2/2 = 5; category 1: half a segment, missed; category 2 is nowhere.
    assert found.by_unit == pytest.approx(np.array([[0.5 / 5, 0.5 / 5, 0], [0.5 / 5, 0.5 / 5, 1 / 5 + 1]]) / 2)
    assert found.by_category == pytest.approx(np.array([[1 / 5, 1 / 5, 1 / 5], [0, 0, 1], [0, 0, 0]]) / 2)
    assert found.totals() == pytest.approx({"inexact": 0.1, "surplus": 0.1, "missed": 0.6})
    assert sum(found.totals().values()) == pytest.approx(1 - (2 / 5 + 0) / 2)


def test_windows_of_panoptic_quality_count_the_same() -> None:
    video = quality([[(1, 2, 0, 0), (0, 0, 1, 0)], [(1, 1, 2, 0), (0, 0, 0, 0)]])
    found = losses_of("panoptic", counted(PANOPTIC_PROTOCOLS["vipseg"], [video]))
    # First window: means over two categories, 1/2 inexact, 1 surplus; second over one, 1 of 2 surplus.
    assert found.totals() == pytest.approx({"inexact": 1 / 8, "surplus": 1 / 4 + 1 / 4, "missed": 0})


def test_units_lose_their_share_of_mean_iou() -> None:
    def cells(*rows: tuple[int, int, int]) -> dict[str, Any]:
        return {"cells": np.array([[real << SHIFT | sent for real, sent, _ in rows], [pixels for *_, pixels in rows]])}

    protocol = replace(SEMANTIC_PROTOCOLS["semantic"], classes=4)
    found = losses_of(
        "semantic", counted(protocol, [cells((0, 0, 5), (0, 1, 3)), cells((1, 1, 4), (1, 0, 2), (1, 2, 1))])
    )
    # Unions: 10 of class 0, 10 of class 1, 1 of class 2, which the truth lacks, as class 3.
    assert found.by_unit == pytest.approx(np.array([[3 / 10, 3 / 10], [3 / 10, 2 / 10]]) / 2)
    assert found.by_category == pytest.approx(np.array([[3 / 10, 2 / 10], [3 / 10, 3 / 10], [0, 0]]) / 2)
    assert sum(found.totals().values()) == pytest.approx(1 - (5 / 10 + 4 / 10) / 2)
    assert found.by_category.shape == (3, 2)


def test_sequences_lose_their_share_of_detection_and_association() -> None:
    def tables(classes: list[int], **fields: list[list[float]]) -> dict[str, Any]:
        hota = np.zeros((len(classes), len(HOTA_FIELDS), len(ALPHAS)))
        for name, rows in fields.items():
            for place, (first, rest) in enumerate(rows):
                hota[place, HOTA_FIELDS.index(name), 0], hota[place, HOTA_FIELDS.index(name), 1:] = first, rest
        return {"classes": np.array(classes, np.int64), "hota": hota}

    some = tables(
        [0, 1], matched=[[8, 8], [1, 1]], missed=[[2, 2], [0, 0]], surplus=[[0, 0], [3, 3]], AssA=[[6, 6], [1, 1]]
    )
    more = tables([1], matched=[[4, 4]], missed=[[2, 2]], surplus=[[0, 0]], AssA=[[1, 1]])
    for protocol, facts in (("kitti-mots", {}), ("burst", {"classes": [["a", 1], ["b", 2]]})):
        found = losses_of("tracks", counted(TRACKS_PROTOCOLS[protocol], [some, more], facts))
        # Class 0: 10 in all, class 1: 10 in all; of matches 8 and 5.
        assert found.by_unit == pytest.approx(np.array([[2 / 10, 3 / 10, 2 / 8], [2 / 10, 0, 3 / 5]]) / 2)
        assert found.by_category == pytest.approx(np.array([[2 / 10, 0, 2 / 8], [2 / 10, 3 / 10, 3 / 5]]) / 2)
    share = len(ALPHAS)
    uneven = tables([0], matched=[[1, 0]], missed=[[0, 1]], AssA=[[1, 0]])
    one = losses_of("tracks", counted(TRACKS_PROTOCOLS["mots"], [uneven]))
    assert one.totals() == pytest.approx({"missed": (share - 1) / share, "surplus": 0, "swapped": 0})
    none = losses_of("tracks", counted(TRACKS_PROTOCOLS["mots"], []))
    assert none.totals() == {"missed": 0, "surplus": 0, "swapped": 0}


def test_rows_of_losses_begin_with_what_costs_most() -> None:
    losses_by_unit = np.array([[0.1, 0.1], [0.3, 0.0], [0.1, 0.1]])
    rows = UnitLosses({"a": "", "b": ""}, losses_by_unit, losses_by_unit).rows(["x", "y", "z"], losses_by_unit)
    assert [(row["name"], row["a"], row["b"]) for row in rows] == [("y", 0.3, 0), ("x", 0.1, 0.1), ("z", 0.1, 0.1)]
    assert [row["costs"] for row in rows] == pytest.approx([0.3, 0.2, 0.2])


class ReportOfUnits:
    """What tables of kinds need of a report."""

    def __init__(self, held: Any, protocol: Any) -> None:
        self.counts, self.protocol, self.split = held, protocol, "val"


def test_kinds_of_units_need_their_counts_alone() -> None:
    protocol = PANOPTIC_PROTOCOLS["coco-panoptic"]
    report: Any = ReportOfUnits(counted(protocol, [quality([[(0.5, 1, 1, 2)]]), quality([[(0, 0, 0, 0)]])]), protocol)
    lost = {"inexact": 0.5 / 2.5, "surplus": 0.5 / 2.5, "missed": 1 / 2.5}
    first, second = Scores([report]).kinds.to_dict("records")
    assert first == pytest.approx({"split": "val", "name": "unit 0", **lost})
    assert second == {"split": "val", "name": "unit 1", "inexact": 0, "surplus": 0, "missed": 0}
    assert tools_of("panoptic").sum_failures(report, report) == pytest.approx(lost)
    other: Any = ReportOfUnits(None, INSTANCE_PROTOCOLS["coco"])
    with pytest.raises(UsageError, match="read from files"):
        _ = Scores([other]).kinds


def test_one_pixel_and_one_match_are_the_whole() -> None:
    cells = {"cells": np.array([[3 << SHIFT], [1]])}
    lone = losses_of("semantic", counted(replace(SEMANTIC_PROTOCOLS["semantic"], classes=4), [cells]))
    assert lone.totals() == {"missed": 1, "surplus": 0}
    hota = np.zeros((1, len(HOTA_FIELDS), len(ALPHAS)))
    hota[:, HOTA_FIELDS.index("matched")] = 1
    swapped = losses_of("tracks", counted(TRACKS_PROTOCOLS["mots"], [{"classes": np.zeros(1, np.int64), "hota": hota}]))
    assert swapped.totals() == pytest.approx({"missed": 0, "surplus": 0, "swapped": 1})
