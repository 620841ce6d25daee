"""The losses of units and categories: sums that equal the loss, and report sections of every family."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

from segjudge.cli import main
from segjudge.evaluation_script.families import PROTOCOLS
from segjudge.evaluation_script.families.base.reports import Report
from segjudge.evaluation_script.families.base.units import UnitAccumulator
from segjudge.families import tools_of
from segjudge.families.base.unit_tools import UnitLosses, UnitTools
from segjudge.families.truths import TruthSource
from segjudge.scoring.request import ScoreRequest, prepare
from tests.builders import zipped
from tests.data import TRACKS_DATA
from tests.families.contract import merge_rows
from tests.families.losses import losses_of, score_shared
from tests.published import published
from tests.shared import needs_shared

#: Protocol → truth, submission, losses.
SAMPLES: dict[str, tuple[str | Path, str | Path, str]] = merge_rows("SHARED_LOSSES")


def _sum_lost(report: Report, metrics: str) -> float:
    """Sum the differences to 1 of metrics joined by `and`."""
    values = [report.values[metric] for metric in metrics.split(" and ")]
    return sum(1 - value for value in values if value is not None)


def test_a_family_that_does_not_say_what_costs_its_metrics_is_told_at_once() -> None:
    class Tools(UnitTools):
        def name_losses(self, protocol: Any) -> tuple[str, str]:
            return "mIoU", "images"

    with pytest.raises(TypeError, match="measure_losses"):
        Tools()  # type: ignore[abstract] # what is tested


@needs_shared
@pytest.mark.parametrize("protocol", SAMPLES)
def test_what_units_and_categories_cost_sums_to_the_loss(protocol: str) -> None:
    report, losses = score_shared(protocol)
    lost = _sum_lost(report, SAMPLES[protocol][2])
    assert sum(losses.totals().values()) == pytest.approx(lost, abs=1e-12)
    assert losses.by_category.sum(axis=0) == pytest.approx(losses.by_unit.sum(axis=0), abs=1e-12)
    assert (losses.by_unit >= 0).all()
    assert (losses.by_category >= 0).all()


@pytest.mark.parametrize(("protocol", "metric"), merge_rows("LOSSES").items())
def test_what_units_of_made_data_cost_sums_to_the_loss(protocol: str, metric: str, tmp_path: Path) -> None:
    source = TruthSource(str(published(protocol, tmp_path)), "", "", "", "")
    sample = tmp_path / "sample.zip"
    (scorer,) = prepare(ScoreRequest(str(sample), source, PROTOCOLS[protocol])).scorers.values()
    tools = tools_of(PROTOCOLS[protocol].family)
    sample.write_bytes(zipped(dict(tools.make_sample([scorer.truth], PROTOCOLS[protocol], 0.05))))
    report = scorer.score(str(sample))
    kinds, lost = losses_of(PROTOCOLS[protocol].family, report.counts).totals(), _sum_lost(report, metric)
    assert sum(kinds.values()) == pytest.approx(lost, abs=1e-12)
    assert sum(tools.sum_failures(Mock(), report).values()) == pytest.approx(
        lost / len(metric.split(" and ")), abs=1e-12
    )
    assert any(cost > 0 for cost in kinds.values()), "the sample is not perfect"


@needs_shared
@pytest.mark.parametrize("protocol", SAMPLES)
def test_the_report_says_what_costs_most(protocol: str, tmp_path: Path) -> None:
    truth, submission, metric = SAMPLES[protocol]
    out = tmp_path / "report.html"
    files = [str(TRACKS_DATA / submission), "--truth", str(TRACKS_DATA / truth), "--protocol", protocol]
    assert main(["report", *files, "--out", str(out)]) == 0
    report, losses = score_shared(protocol)
    text = out.read_text(encoding="utf-8")
    assert f"Where {metric}" in text
    assert isinstance(report.counts, UnitAccumulator)
    first = losses.rows(report.counts.names, losses.by_unit)[0]["name"]
    listed = re.findall(r'<th scope="row">(?:<a [^>]*>)?([^<]*)<', text[text.index("Largest loss first.") :])
    assert listed[0] == first
    assert set(listed) >= set(report.counts.names)


def test_rows_of_losses_begin_with_what_costs_most() -> None:
    losses_by_unit = np.array([[0.1, 0.1], [0.3, 0.0], [0.1, 0.1]])
    rows = UnitLosses({"a": "", "b": ""}, losses_by_unit, losses_by_unit).rows(["x", "y", "z"], losses_by_unit)
    assert [(row["name"], row["a"], row["b"]) for row in rows] == [("y", 0.3, 0), ("x", 0.1, 0.1), ("z", 0.1, 0.1)]
    assert [row["costs"] for row in rows] == pytest.approx([0.3, 0.2, 0.2])
