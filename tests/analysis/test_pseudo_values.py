"""Metrics that are not means over objects, compared by groups of cases."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import segjudge
from segjudge.analysis.comparison import Comparison
from segjudge.analysis.rankings import Rule, TaskScores, rank_by_every_rule
from segjudge.analysis.score_tables import pseudo_values_by_group
from segjudge.analysis.statistics import GROUPS, SEQUENCES, Sums, compare_pairs, describe_pair, estimate_means
from segjudge.evaluation_script.families import PROTOCOLS, report_of
from segjudge.evaluation_script.families.base.reports import FEWEST_CASES, Report, bounds_of
from segjudge.evaluation_script.families.base.units import UnitAccumulator
from segjudge.system.errors import UsageError
from tests.data import TRACKS_DATA
from tests.families.contract import merge_rows
from tests.report.known_faults import FAULTS
from tests.report.known_scenes import make_world
from tests.report.test_known_faults import score_worlds
from tests.report.test_report_instances import RESULTS, TRUTH, records_of
from tests.shared import needs_shared

#: Protocol → truth, submission and the metric of the loss, of the shared data of tracks.
TRACKS: dict[str, tuple[str, str, str]] = {
    protocol: row for protocol, row in merge_rows("SHARED_LOSSES").items() if not Path(row[0]).is_absolute()
}


def test_means_and_errors_are_those_of_the_scores(tmp_path: Path) -> None:
    worse = tmp_path / "worse.json"
    worse.write_text(json.dumps(records_of(RESULTS)[::3]))
    reports = {name: segjudge.score(path, TRUTH, "places2017").reports[0] for name, path in
               (("all", RESULTS), ("third", worse))}  # fmt: skip
    table = pseudo_values_by_group(reports, "AP50")
    (pair,) = compare_pairs(table)
    for mean in estimate_means(table, [pair]):
        report = reports[mean.name]
        assert mean.value == pytest.approx(report.values["AP50"], abs=1e-12)
        assert mean.error == pytest.approx(report.errors()["AP50"], abs=1e-12)
    assert table.sums.shape == (2, 20)
    assert pair.apart
    assert pair.difference > 0


def of_track(name: str, protocol: str = "") -> Report:
    truth, submission, _ = TRACKS[name]
    return segjudge.score(TRACKS_DATA / submission, TRACKS_DATA / truth, protocol or name).reports[0]


@needs_shared
@pytest.mark.parametrize("protocol", TRACKS)
def test_metrics_of_videos_have_errors_from_leaving_each_out(protocol: str) -> None:
    report = of_track(protocol)
    counted: UnitAccumulator[Any] = report.counts  # type: ignore[assignment]  # of any track
    count = len(counted.names)
    without = []
    for name in counted.names:
        part = UnitAccumulator(counted.protocol, counted.facts, [entry for entry in counted.names if entry != name])
        for item in counted.all_counts():
            if item.name != name:
                part.update(item)
        without.append(report_of("val", part).values)
    errors = report.errors()
    assert errors.keys() == {name for name in report.values if all(entry[name] is not None for entry in without)}
    assert len(errors) > 3
    for name, error in errors.items():
        values = np.array([entry[name] for entry in without], float)
        assert error == pytest.approx(np.sqrt((count - 1) / count * ((values - values.mean()) ** 2).sum()), abs=1e-12)
    assert report.intervals().keys() == (errors.keys() if count >= FEWEST_CASES else set())


@needs_shared
def test_what_cannot_be_compared_says_why() -> None:
    mine = next(name for name in TRACKS if f"{name}-official" in PROTOCOLS)
    report, (metric, *_) = of_track(mine), PROTOCOLS[mine].metrics
    official = of_track(mine, f"{mine}-official")
    with pytest.raises(UsageError, match=f"B was scored as {mine}-official, A as {mine}"):
        pseudo_values_by_group({"A": report, "B": official}, metric)
    with pytest.raises(UsageError, match=f"{mine} has no metric AP, only {metric}"):
        pseudo_values_by_group({"A": report}, "AP")
    assert np.isfinite(pseudo_values_by_group({"A": report}, metric).sums).all()


def test_of_some_metrics_small_values_are_good() -> None:
    """A has fewer identity switches in every case."""
    table = Sums(("A", "B"), np.array([[1.0 + k for k in range(8)], [3.0 + k for k in range(8)]]), np.ones(8), True)
    (pair,) = compare_pairs(table)
    text = describe_pair(pair, table)
    assert text.startswith("A − B: -2.000, 95 % -2.000 to -2.000; p 0.00781")
    assert text.endswith("8 won, 0 lost, 0 tied: A is better.")
    comparison = Comparison("IDSW", table, [], bounds_of("IDSW"))
    assert [comparison.sign(*names) for names in (("A", "B"), ("B", "A"))] == ["+", "−"]
    rows = comparison.means
    assert [(row.name, row.place_from, row.place_to, row.value) for row in rows] == [("A", 1, 1, 4.5), ("B", 2, 2, 6.5)]
    assert rows[1].high is not None
    assert rows[1].high > 1, "not cut as a share is"


def test_cases_that_differ_by_rounding_alone_are_ties() -> None:
    table = Sums(("A", "B"), np.array([[0.3, 0.5, 0.9], [0.1 + 0.2, 0.5 + 1e-16, 0.7]]), np.ones(3))
    (pair,) = compare_pairs(table)
    assert "1 won, 0 lost, 2 tied" in describe_pair(pair, table)


@pytest.mark.parametrize(
    ("pseudo", "p", "counted"), [(True, 1.0, "1 won, 0 lost, 9 tied"), (False, 2 / 1024, "10 won")]
)
def test_cases_that_pseudo_values_alone_tell_apart_are_ties(pseudo: bool, p: float, counted: str) -> None:
    sums = np.array([np.full(10, 0.9), np.where(np.arange(10) == 3, 0.4, 0.89)])
    table = Sums(("A", "B"), sums, np.ones(10), pseudo=pseudo)
    (pair,) = compare_pairs(table)
    assert (pair.p, pair.difference) == (pytest.approx(p), pytest.approx(0.059))
    assert counted in describe_pair(pair, table, GROUPS)
    task = TaskScores("AP", table.algorithms, tuple("abcdefghij"), sums, pseudo=pseudo)
    assert rank_by_every_rule(task, Rule(), 5).sign(0, 1) == ("=" if pseudo else "+")


def test_a_method_is_not_significantly_better_for_one_image_of_sixteen(tmp_path: Path) -> None:
    world, random = make_world(np.random.default_rng(5), 16, 1, 3), np.random.default_rng(6)
    spoilt = [video.copy() for video in world]
    FAULTS["missed"].spoil(spoilt[1], 0, random)
    methods = {}
    for name, predicted in (("whole", [video.copy() for video in world]), ("part", spoilt)):
        (tmp_path / name).mkdir()
        methods[name] = score_worlds("coco", world, predicted, tmp_path / name)
    assert segjudge.compare(methods).verdict.startswith("whole − part: +0.023")
    assert "p 1, adjusted 1; 1 won, 0 lost, 15 tied" in segjudge.compare(methods).verdict
    assert "does not differ significantly from part" in segjudge.rank(methods).verdict


def test_an_estimate_of_cases_ends_at_a_hundred_times_the_existing_ones() -> None:
    table = Sums(("A", "B"), np.array([[0.5, 0.7, 0.6, 0.8], [0.7, 0.5, 0.8, 0.599]]), np.ones(4), pseudo=True)
    (pair,) = compare_pairs(table)
    for cases_are in (GROUPS, SEQUENCES):
        assert "compare more than 100 times as many." in describe_pair(pair, table, cases_are)
