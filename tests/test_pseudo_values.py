"""Metrics that are no means over objects, compared by groups of images or videos."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import segjudge
from segjudge.errors import UsageError
from segjudge.evaluation_script.answer import Report
from segjudge.statistics.pseudo_values import grouped_sums
from segjudge.statistics.rankings import differences, means

from .data import TRACKS_DATA
from .shared import needs_shared
from .test_report_instances import RESULTS, TRUTH, records_of


def test_means_and_errors_are_those_of_the_scores(tmp_path: Path) -> None:
    worse = tmp_path / "worse.json"
    worse.write_text(json.dumps(records_of(RESULTS)[::3]))
    reports = {name: segjudge.score(path, TRUTH, "places2017").reports[0] for name, path in
               (("all", RESULTS), ("third", worse))}  # fmt: skip
    table = grouped_sums(reports, "AP50")
    (pair,) = differences(table)
    for one in means(table, [pair]):
        report = reports[one.name]
        assert one.value == pytest.approx(report.values["AP50"], abs=1e-12)
        assert one.error == pytest.approx(report.errors()["AP50"], abs=1e-12)
    assert table.sums.shape == (2, 20)
    assert pair.apart
    assert pair.difference > 0


def of_track(submission: str, truth: str, protocol: str) -> Report:
    return segjudge.score(TRACKS_DATA / submission, TRACKS_DATA / truth, protocol).reports[0]


@needs_shared
def test_metrics_of_videos_are_left_out_one_by_one() -> None:
    report = of_track("vps/submission", "vps/truth.json", "vipseg")
    table = grouped_sums({"one": report, "same": report}, "VPQ")
    assert table.sums.shape == (2, 5)
    assert table.sums.mean(axis=1) == pytest.approx([report.values["VPQ"]] * 2, abs=1e-12)
    (pair,) = differences(table)
    assert (pair.difference, pair.error, pair.p) == (0, 0, 1)


@needs_shared
def test_what_cannot_be_compared_says_why() -> None:
    vspw = of_track("vspw/submission", "vspw/truth", "vspw")
    official = of_track("vspw/submission", "vspw/truth", "vspw-official")
    with pytest.raises(UsageError, match="B was scored as vspw-official, A as vspw"):
        grouped_sums({"A": vspw, "B": official}, "mIoU")
    with pytest.raises(UsageError, match="vspw has no metric AP, only mIoU"):
        grouped_sums({"A": vspw}, "AP")
    assert np.isfinite(grouped_sums({"A": vspw}, "mIoU").sums).all()
