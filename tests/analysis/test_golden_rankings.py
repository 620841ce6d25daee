"""Ranks, tests, rankings and their stability equal R's and the reference tool's."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from segjudge.analysis.rankings import (
    Rule,
    TaskScores,
    _count_ranks,
    _measure_stability,
    _pairwise_p,
    _rank_task,
    _redraw_cases,
    average_ranks,
)
from segjudge.analysis.statistics import Sums, _jackknife_error, compare_pairs, estimate_means, holm, kendall, wilcoxon
from segjudge.evaluation_script.families.base.reports import interval
from tests.data import SEQUENCES
from tests.shared import needs_shared

pytestmark = needs_shared
FOLDER = SEQUENCES.parent / "reports/ranking"
EXACT = {"rel": 1e-9, "abs": 1e-9, "nan_ok": True}


def document(name: str) -> Any:
    return json.loads((FOLDER / name).read_text())


def numbers(values: Any) -> Any:
    return np.array([np.nan if value is None else value for value in values], float)


def matrix(rows: Any) -> Any:
    return np.array([numbers(row) for row in rows])


def tasks_of(name: str) -> dict[str, TaskScores]:
    """Read the table before the colon of a name; the part after it says how missing values are treated."""
    file, _, missing = name.partition(":")
    with open(FOLDER / f"{file}.csv", newline="") as lines:
        rows = list(csv.DictReader(lines))
    results = {}
    for task in dict.fromkeys(row["task"] for row in rows):
        mine = [row for row in rows if row["task"] == task]
        algorithms = sorted({row["algorithm"] for row in mine})
        cases = sorted({row["case"] for row in mine})
        values = np.full((len(algorithms), len(cases)), np.nan)
        for row in mine:
            if row["value"] != "NA":
                values[algorithms.index(row["algorithm"]), cases.index(row["case"])] = float(row["value"])
        results[task] = TaskScores(task, tuple(algorithms), tuple(cases), values, smaller=file == "distances")
    if missing == "zero" or (name == "missing" and not missing):
        results = {task: item.fill(0.0) for task, item in results.items()}
    return results


GOLDEN = document("golden_ranking.json") if FOLDER.is_dir() else {"rankings": {}, "redrawn": {}, "wilcox": {}}
RULES = {
    "mean-then-rank": Rule("mean-then-rank"),
    "median-then-rank": Rule("median-then-rank"),
    "mean-then-rank-average-ties": Rule("mean-then-rank", ties="average"),
    "rank-then-mean": Rule("rank-then-mean"),
    "rank-then-median": Rule("rank-then-median"),
    "rank-then-mean-average-ties": Rule("rank-then-mean", ties="average"),
    "test-then-rank": Rule("test-then-rank"),
    "test-then-rank-holm": Rule("test-then-rank", adjustment="holm"),
}


@pytest.mark.parametrize("name", GOLDEN["wilcox"])
def test_the_signed_rank_test_is_that_of_r(name: str) -> None:
    pair, golden = document("numbers.json")["pairs"][name], GOLDEN["wilcox"][name]
    between = numbers(pair["x"]) - numbers(pair["y"])
    results = np.concatenate(wilcoxon(between, np.ones((1, len(between)))))
    assert results == pytest.approx(numbers([golden["normal"][key] for key in ("greater", "less")]), **EXACT)


def test_p_values_are_adjusted_as_r_does() -> None:
    for name, values in document("numbers.json")["pvalues"].items():
        assert holm(numbers(values)) == pytest.approx(numbers(GOLDEN["adjusted"][name]["holm"]), **EXACT), name


def test_rankings_agree_as_r_says() -> None:
    for name, (first, second) in document("numbers.json")["ranks"].items():
        golden = GOLDEN["tau"][name]
        tau = numbers([golden["kendall"]])[0]
        assert float(kendall(numbers(first), numbers(second))) == pytest.approx(tau, **EXACT), name


def places_of(task: TaskScores, algorithms: list[str]) -> list[int]:
    return [task.algorithms.index(algorithm) for algorithm in algorithms]


@pytest.mark.parametrize("name", GOLDEN["rankings"])
def test_each_method_ranks_as_the_reference_tool(name: str) -> None:
    for task, values in tasks_of(name).items():
        for method in GOLDEN["rankings"][name].keys() & RULES.keys():
            golden = GOLDEN["rankings"][name][method][task]
            ranking = _rank_task(values, replace(RULES[method], remove=name.endswith("removed")))
            places = places_of(values, golden["algorithm"])
            assert ranking.values[0, places] == pytest.approx(numbers(golden["value"]), **EXACT), (task, method)
            assert ranking.ranks[0, places].tolist() == golden["rank"], (task, method)


@pytest.mark.parametrize("name", [name for name, golden in GOLDEN["rankings"].items() if "pairs" in golden])
def test_pairs_are_decided_as_the_reference_tool_does(name: str) -> None:
    golden = GOLDEN["rankings"][name]
    for task, values in tasks_of(name).items():
        p_values, adjusted = _pairwise_p(values), _pairwise_p(values, None, "holm")
        places = np.ix_([0], *[places_of(values, golden["pairs"][task]["algorithm"])] * 2)
        assert p_values[places][0] == pytest.approx(matrix(golden["pairs"][task]["p"]), **EXACT)
        assert adjusted[places][0] == pytest.approx(matrix(golden["pairs"][task]["holm"]), **EXACT)
        places = np.ix_([0], *[places_of(values, golden["decision"][task]["algorithm"])] * 2)
        assert (adjusted[places][0] <= 0.05).tolist() == matrix(golden["decision"][task]["row_beats_column"]).tolist()
        rows = places_of(values, golden["heatmap"][task]["algorithm"])
        ranks = [rank - 1 for rank in golden["heatmap"][task]["rank"]]
        assert _count_ranks(values)[rows][:, ranks].tolist() == golden["heatmap"][task]["count"]


@pytest.mark.parametrize("name", GOLDEN["redrawn"])
def test_redrawn_cases_rank_as_if_each_copy_were_a_case(name: str) -> None:
    values = tasks_of(name)["t"]
    draws = np.array(document("numbers.json")["draws"][name]) - 1
    weights = np.stack([np.bincount(draw, minlength=len(values.cases)) for draw in draws]).astype(float)
    for method, both in GOLDEN["redrawn"][name].items():
        golden, ranking = both["copies_renamed"], _rank_task(values, RULES[method], weights)
        places = places_of(values, golden["algorithm"])
        assert ranking.values[:, places] == pytest.approx(matrix(golden["value"]), **EXACT), method
        assert ranking.ranks[:, places].tolist() == golden["rank"], method
        spread = _measure_stability(values, RULES[method], weights)
        intervals = np.stack([spread.low, spread.median, spread.high], axis=1)[places]
        assert intervals == pytest.approx(matrix(golden["interval"]), **EXACT), method
        tau = numbers(golden["tau"])
        assert spread.tau == pytest.approx(tau[~np.isnan(tau)], **EXACT), method


@pytest.mark.parametrize("name", ["plain", "ties", "many"])
def test_a_bootstrap_spreads_as_the_reference_tools(name: str) -> None:
    golden = document("golden_bootstrap.json")["bootstrap"][name]["mean-then-rank"]
    values = tasks_of(name)["t"]
    spread = _measure_stability(values, RULES["mean-then-rank"], _redraw_cases(len(values.cases), 2000))
    rows = places_of(values, golden["algorithm"])
    assert spread.frequency[rows] == pytest.approx(matrix(golden["frequency"]), abs=0.06)


def test_tasks_have_a_consensus() -> None:
    for method, golden in GOLDEN["consensus"].items():
        if method == "with_a_gap":
            continue
        score = dict(zip(golden["algorithm"], golden["score"]))
        ranks = {
            task: _rank_task(values, replace(RULES[method], ties="average"))
            for task, values in tasks_of("tasks").items()
            if task in golden["ranks"]
        }
        rows = {
            task: dict(zip(tasks_of("tasks")[task].algorithms, rank.ranks[0].tolist())) for task, rank in ranks.items()
        }
        assert average_ranks(rows) == pytest.approx(score), method
    gap = average_ranks({"easy": {"A": 1.0, "B": 2.0}, "hard": {"B": 1.0, "C": 2.0}})
    assert gap == {"B": 1.5, "A": 2.0, "C": 2.5}


@pytest.mark.parametrize("name", ["plain", "ties", "zeros", "few", "many"])
def test_intervals_tests_and_places_are_those_of_plain_r(name: str) -> None:
    golden, values = document("golden_ours.json")["tables"][name], tasks_of(name)["t"]
    cases = golden["cases"]
    table = Sums(values.algorithms, values.values[:, :cases], np.ones(cases))
    pairs = compare_pairs(table)
    expected = golden["pairs"]
    assert [(pair.name, pair.rival) for pair in pairs] == list(zip(expected["one"], expected["other"]))
    for name_, attribute in (
        ("difference",) * 2,
        ("error",) * 2,
        ("low",) * 2,
        ("high",) * 2,
        ("p",) * 2,
        ("holm", "adjusted"),
    ):
        assert numbers([getattr(pair, attribute) for pair in pairs]) == pytest.approx(numbers(expected[name_]), **EXACT)
    means = estimate_means(table, pairs)
    assert [item.name for item in means] == golden["algorithm"]
    for name_, attribute in (
        ("mean", "value"),
        ("error",) * 2,
        ("low",) * 2,
        ("high",) * 2,
        ("place_from",) * 2,
        ("place_to",) * 2,
    ):
        assert numbers([getattr(item, attribute) for item in means]) == pytest.approx(numbers(golden[name_]), **EXACT)


def test_objects_are_clustered_in_their_sequences() -> None:
    golden = document("golden_ours.json")["clusters"]
    sums, counts = numbers(golden["sums"]), numbers(golden["objects"])
    assert sums.sum() / counts.sum() == pytest.approx(golden["mean"], **EXACT)
    assert float(_jackknife_error(sums, counts)) == pytest.approx(golden["error"], **EXACT)


def test_quantiles_are_students() -> None:
    golden = document("golden_ours.json")["student"]
    for freedom, high, higher in zip(golden["df"], golden["q975"], golden["q995"]):
        quantiles = (interval(0, 1, freedom + 1, level)[1] for level in (0.95, 0.99))
        assert tuple(quantiles) == pytest.approx((high, higher), rel=1e-9)
