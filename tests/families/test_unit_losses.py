"""What units and categories cost: sums that are the loss, and sections of the report of every family."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import segjudge
from segjudge.cli import main
from segjudge.evaluation_script.families import PROTOCOLS
from segjudge.evaluation_script.families.base.reports import Report
from segjudge.evaluation_script.families.base.units import UnitAccumulator, UnitCounts
from segjudge.evaluation_script.families.tracking.counting import ALPHAS, HOTA_FIELDS
from segjudge.evaluation_script.families.tracking.protocols import TRACKS_PROTOCOLS
from segjudge.families import tools_of
from segjudge.families.base.tools import UnitLosses, UnitTools
from segjudge.families.truths import TruthSource
from segjudge.scoring.scores import ScoreRequest, prepare
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
