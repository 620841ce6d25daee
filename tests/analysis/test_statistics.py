"""Ranks, tests, rankings, intervals and tables of scores, computed by hand or by a second short formula."""

from __future__ import annotations

import csv
import itertools
import json
import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from scipy.special import stdtrit

import segjudge
from segjudge.analysis import METHODS, rankings, score_tables, statistics
from segjudge.analysis.rankings import (
    Rule,
    TaskScores,
    _Adjustment,
    _count_ranks,
    _measure_stability,
    _pairwise_p,
    _rank_task,
    _redraw_cases,
    average_ranks,
)
from segjudge.analysis.statistics import (
    Difference,
    Sums,
    Ties,
    _cases_needed,
    _flip_signs,
    _jackknife_error,
    compare_pairs,
    estimate_means,
    holm,
    kendall,
    ranks_of,
    wilcoxon,
)
from segjudge.evaluation_script.families import PROTOCOLS
from segjudge.evaluation_script.families.base.reports import Report, deal_groups, interval, standard_errors
from segjudge.system.errors import UsageError
from tests.builders import label_zip
from tests.data import ROOT
from tests.families.choices import WITH_UNSEEN
from tests.scoring.shares import TRUTH, write_sequences

NONE = math.nan
#: C has no value in the last case.
VALUES = np.array([[0.9, 0.8, 0.1], [0.6, 0.7, 0.6], [0.5, 0.9, NONE]])
TASK = TaskScores("t", ("A", "B", "C"), ("x", "y", "z"), VALUES)


def task_of(values: Any, *, smaller: bool = False) -> TaskScores:
    table = np.array(values, float)
    names = tuple("ABCDEFGH"[: len(table)])
    return TaskScores("t", names, tuple(f"c{k}" for k in range(table.shape[1])), table, smaller)


# ── ranks ───────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("values", "smallest", "averaged"),
    [
        ([0.9, 0.7, 0.9, NONE, 0.5, NONE], [1, 3, 1, 5, 4, 5], [1.5, 3, 1.5, 5.5, 4, 5.5]),
        ([0.9, 0.5, 0.5, NONE], [1, 2, 2, 3], [1, 2.5, 2.5, 3.5]),
        ([NONE, NONE, NONE], [1, 1, 1], [2, 2, 2]),
        ([-1, 0, 1, 1, 1], [5, 4, 1, 1, 1], [5, 4, 2, 2, 2]),
    ],
)
def test_equal_values_share_a_rank_and_missing_ones_come_last(
    values: list[float], smallest: list[float], averaged: list[float]
) -> None:
    item = np.array(values)
    assert ranks_of(item).tolist() == smallest
    assert ranks_of(item, ties="average").tolist() == averaged
    assert ranks_of(-item, smaller=True).tolist() == smallest
    assert ranks_of(np.stack([item, item]), ties="average").tolist() == [averaged] * 2


def test_rows_are_ranked_each_for_itself() -> None:
    rows = np.array([[3.0, 2, 1], [1, 1, NONE], [NONE, 5, NONE]])
    assert ranks_of(rows).tolist() == [[1, 2, 3], [1, 1, 2], [2, 1, 2]]
    assert ranks_of(rows, ties="average").tolist() == [[1, 2, 3], [1.5, 1.5, 2.5], [2.5, 1, 2.5]]


def test_kendalls_tau_counts_pairs_and_takes_ties_out_of_the_denominator() -> None:
    first = np.array([[1.0, 2, 3, 4], [1, 2, 2, 4], [1, 1, 1, 1], [1, 2, 3, 4]])
    second = np.array([[1.0, 2, 4, 3], [1, 2, 3, 4], [1, 2, 3, 4], [4, 3, 2, 1]])
    assert kendall(first, second) == pytest.approx([4 / 6, 5 / math.sqrt(5 * 6), NONE, -1], nan_ok=True)


# ── the signed-rank test ────────────────────────────────────────────────────


def signed_rank_of(values: Any) -> tuple[float, float]:
    """Return the textbook's rank sum, with the normal approximation, ties and the continuity correction."""
    sizes = [abs(value) for value in values if value > 0 or value < 0]
    count, positive = len(sizes), [value for value in values if value > 0]
    ranks = [sum(size < item for size in sizes) + (sizes.count(item) + 1) / 2 for item in positive]
    center = sum(ranks) - count * (count + 1) / 4
    ties = sum(sizes.count(size) ** 3 - sizes.count(size) for size in set(sizes))
    spread = math.sqrt(count * (count + 1) * (2 * count + 1) / 24 - ties / 48)
    return math.erfc((center - 0.5) / spread / math.sqrt(2)) / 2, math.erfc(-(center + 0.5) / spread / math.sqrt(2)) / 2


def test_four_cases_that_agree_are_never_significant() -> None:
    greater, less = wilcoxon(np.array([0.1, 0.2, 0.3, 0.4]), np.ones((1, 4)))
    assert greater[0] == pytest.approx(math.erfc(4.5 / math.sqrt(7.5) / math.sqrt(2)) / 2, rel=1e-12)
    assert greater[0] == pytest.approx(0.05017, abs=5e-6)
    assert less[0] == pytest.approx(math.erfc(-5.5 / math.sqrt(7.5) / math.sqrt(2)) / 2, rel=1e-12)


@pytest.mark.parametrize("cells", [1, 12, 1 << 17])
def test_a_case_that_counts_twice_is_two_cases(cells: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statistics, "_CELLS", cells)
    values = np.array([3.0, -1, NONE, 2, 0, 2, -2, 5, 0.5])
    weights = np.array([[1, 1, 1, 1, 1, 1, 1, 1, 1], [2, 0, 3, 1, 4, 0, 2, 0, 0], [0, 3, 0, 0, 1, 0, 1, 2, 3.0]])
    expected = [signed_rank_of(np.repeat(values, row.astype(int)).tolist()) for row in weights]
    assert np.stack(wilcoxon(values, weights), axis=1) == pytest.approx(np.array(expected), rel=1e-12)


def test_equal_algorithms_are_not_better_either_way() -> None:
    for values in ([0.0, 0.0, 0.0], [NONE, 0.0, NONE]):
        assert np.concatenate(wilcoxon(np.array(values), np.ones((2, 3)))).tolist() == [1] * 4
    half = wilcoxon(np.array([1.0, -1.0]), np.ones((1, 2)))
    assert half[0] == half[1]


# ── sign flips ──────────────────────────────────────────────────────────────


def share_of_flips(values: list[float]) -> float:
    exact = [Fraction(str(value)) for value in values if value]
    patterns = itertools.product((1, -1), repeat=len(exact))
    sums = [abs(sum((sign * item for sign, item in zip(signs, exact, strict=True)), Fraction())) for signs in patterns]
    return sum(item >= abs(sum(exact, Fraction())) for item in sums) / len(sums)


@pytest.mark.parametrize(
    ("values", "share"),
    [
        ([3.0, -1.0, 2.0], 4 / 8), ([1.0] * 6, 2 / 64), ([-1.0] * 6, 2 / 64), ([0.0, 2.0, 0.0], 1), ([0.0, 0.0, 0.0], 1),
        ([0.1, 0.2, -0.3], 1), ([0.1, 0.2, 0.3, -0.4, 0.7], None), ([0.1, 0.2, 0.3, 0.4, -0.7, 1.1], None),
        ([304055.221, 496348.07, -800403.291, 459592.852], 7 / 8), ([0.05, 0.15, 0, -0.35, 0.45, 0.3, 0.25], None),
    ],
)  # fmt: skip
def test_all_patterns_of_signs_are_tried(values: list[float], share: float | None) -> None:
    expected = share_of_flips(values)
    assert share in {None, expected}
    assert _flip_signs(np.array([values])).tolist() == [expected]


def test_cases_without_a_difference_are_none() -> None:
    rows = np.array([[1.0, 0, 1, 1, 0], [0, 0, 0, 0, 0], [1, 1, 1, 1, 1], [0, 1, 0, -3, 1]])
    assert _flip_signs(rows).tolist() == [2 / 8, 1, 2 / 32, share_of_flips([1, -3, 1])]


def test_beyond_sixteen_cases_signs_are_drawn() -> None:
    assert _flip_signs(np.ones((1, 16))).tolist() == [2 / 2**16]
    assert _flip_signs(np.ones((1, 60))).tolist() == [1 / 10_000]
    wins = np.where(np.arange(20) < 14, 1.0, -1.0)
    exact = 2 * sum(math.comb(20, k) for k in range(14, 21)) / 2**20
    drawn = _flip_signs(np.stack([wins, -wins, wins * 0.3, np.append(np.ones(10), -np.ones(10))]))
    assert drawn[0] == pytest.approx(exact, abs=4 * math.sqrt(exact * (1 - exact) / 9_999))
    assert drawn[0] * 10_000 == pytest.approx(round(drawn[0] * 10_000), abs=1e-9)
    assert drawn.tolist() == [drawn[0], drawn[0], drawn[0], 1]
    many = _flip_signs(np.where(np.arange(200) < 110, 1.0, -1.0)[None])
    tail = 2 * sum(math.comb(200, k) for k in range(110, 201)) / 2**200
    assert many[0] == pytest.approx(tail, abs=4 * math.sqrt(tail / 9_999))


# ── adjustment, jackknife, how many cases ───────────────────────────────────


def test_holm_multiplies_the_smallest_p_most() -> None:
    rows = np.array([[0.04, NONE, 0.01, 0.03], [0.5, 0.6, 0.7, 0.4], [0.01, 0.02, 0.02, 0.001]])
    expected = [[0.06, NONE, 0.03, 0.06], [1, 1, 1, 1], [0.03, 0.04, 0.04, 0.004]]
    assert holm(rows) == pytest.approx(np.array(expected), rel=1e-12, nan_ok=True)
    assert holm(np.array([0.02, 0.9])).tolist() == [0.04, 0.9]


def test_the_jackknife_leaves_out_a_case_with_all_its_objects() -> None:
    sums, counts = np.array([1.0, 2, 6, 4]), np.array([1.0, 3, 2, 4])
    without = [Fraction(12, 9), Fraction(11, 7), Fraction(7, 8), Fraction(9, 6)]
    center = sum(without) / 4
    variance = Fraction(3, 4) * sum((item - center) ** 2 for item in without)
    assert _jackknife_error(sums, counts) == pytest.approx(math.sqrt(variance), rel=1e-12)
    assert _jackknife_error(np.array([1.0, 2, 3, 4]), np.ones(4)) == pytest.approx(math.sqrt(5 / 3 / 4), rel=1e-12)
    assert _jackknife_error(np.array([1.0, 3]), np.ones(2)) == pytest.approx(1)
    assert math.isnan(_jackknife_error(np.array([1.0]), np.ones(1)))


@pytest.mark.parametrize(("algorithms", "fewest"), [(2, 6), (3, 7), (5, 9), (10, 11), (20, 13)])
def test_a_large_difference_still_takes_cases_enough_to_be_significant(algorithms: int, fewest: int) -> None:
    assert _cases_needed(0.9, 0.01, 10, algorithms) == fewest


def test_a_small_difference_takes_many_cases() -> None:
    deviation = 0.128
    expected = math.ceil((2.8 * deviation / 0.036) ** 2)
    assert expected == 100
    for cases in (14, 50):
        for difference in (0.036, -0.036):
            assert _cases_needed(difference, deviation / math.sqrt(cases), cases, 2) == expected
    assert [_cases_needed(*given, 14, 2) for given in ((0.0, 0.1), (0.1, 0.0), (0.1, NONE))] == [None] * 3


# ── intervals ───────────────────────────────────────────────────────────────


def test_errors_are_known_of_metrics_that_are_known_without_each_case() -> None:
    without = {"two": [1, 3], "four": [4, 3, 2, 3], "one": [1], "gap": [1, NONE, 2]}
    errors = standard_errors({name: np.array(values, float) for name, values in without.items()})
    assert errors == {"two": pytest.approx(1), "four": pytest.approx(math.sqrt(3 / 4 * 2))}


def test_pseudo_values_of_a_mean_are_its_values() -> None:
    protocol = next(iter(PROTOCOLS.values()))
    metric = protocol.metrics[0]
    for value, without, expected in ((3.0, [4.0, 3.5, 1.5], [1, 2, 6]), (0.5, [0.4, 0.6, 0.8], [0.9, 0.5, 0.1])):
        left_out = {metric: np.array(without)}
        values = {**dict.fromkeys(protocol.metrics), metric: value}
        report = Report("val", protocol, values, {}, [], leave_out=lambda _, left_out=left_out: left_out)  # type: ignore[misc]
        assert report.sums([metric])[metric][0] == pytest.approx(expected)


@pytest.mark.parametrize("level", [0.5, 0.95, 0.99])
def test_quantiles_of_students_t(level: float) -> None:
    for freedom in (1, 2, 3, 4, 5, 9, 10, 19, 30, 99, 500, 9_999):
        expected = float(stdtrit(freedom, (1 + level) / 2))
        assert interval(0, 1, freedom + 1, level)[1] == pytest.approx(expected, rel=1e-10), freedom
    assert interval(0, 1, 2, level)[1] == pytest.approx(math.tan(math.pi / 2 * level), rel=1e-12)
    assert interval(0, 1, 3, level)[1] == pytest.approx(level * math.sqrt(2 / (1 - level**2)), rel=1e-12)


def test_an_interval_has_one_degree_of_freedom_less_than_cases() -> None:
    assert interval(0.5, 0.1, 2) == pytest.approx((0.5 - 1.2706204736, 0.5 + 1.2706204736))
    assert interval(0.5, 0.1, 10) == pytest.approx((0.5 - 0.22621571628, 0.5 + 0.22621571628))
    assert interval(0.0, 1.0, 3, 0.5) == pytest.approx((-0.8164965809, 0.8164965809))
    assert interval(0.0, 1.0, 501, 1 - 2**-53)[1] > 6, "however near to 1"
    for level, cases in ((95, 5), (1, 5), (0, 5), (-1, 5), (math.nan, 5), (0.95, 1)):
        with pytest.raises(ValueError, match="there is no interval of level"):
            interval(0.5, 0.1, cases, level)


def test_cases_are_dealt_evenly_and_always_alike() -> None:
    for count, groups in ((1, 1), (5, 5), (19, 19), (20, 20), (21, 20), (45, 20)):
        sizes = np.bincount(deal_groups(count))
        assert (len(sizes), sizes.sum(), sizes.max() - sizes.min() <= 1) == (groups, count, True)
    assert deal_groups(0).tolist() == []
    for count in (1, 2, 3, 4, 45, 64, 65, 1000, 5003):
        generator = np.random.Generator(np.random.PCG64(0))
        assert deal_groups(count).tolist() == [place % min(20, count) for place in generator.permutation(count)]


# ── rankings ────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("rule", "values", "ranks"),
    [
        (Rule(), [0.6, 1.9 / 3, 0.7], [3, 2, 1]),
        (Rule("median-then-rank"), [0.8, 0.6, 0.7], [1, 3, 2]),
        (Rule("rank-then-mean"), [5 / 3, 2, 7 / 3], [1, 2, 3]),
        (Rule("rank-then-mean", remove=True), [5 / 3, 2, 2], [1, 2, 2]),
        (Rule("rank-then-mean", ties="average", remove=True), [5 / 3, 2, 2], [1, 2.5, 2.5]),
        (Rule("rank-then-median"), [2, 2, 3], [1, 1, 3]),
        (Rule("rank-then-median", remove=True), [2, 2, 2], [1, 1, 1]),
    ],
)
def test_each_method_ranks_a_small_table(rule: Rule, values: list[float], ranks: list[float]) -> None:
    for task in (TASK, replace(TASK, values=-VALUES, smaller=True)):
        ranking = _rank_task(task, rule)
        assert np.abs(ranking.values) == pytest.approx(np.array([values]))
        assert ranking.ranks.tolist() == [ranks]
    assert _rank_task(TASK.fill(0.0), Rule()).ranks.tolist() == [[2, 1, 3]]
    assert TASK.fill(0.25).values[2].tolist() == [0.5, 0.9, 0.25]


#: In eight cases A is better than B and C, and B is better than C; in five cases p is 0.0295, which Holm's correction
#: for six tests makes 0.18.
LADDER = np.array([[3.0], [2.0], [1.0]]) * np.arange(1, 9)


def test_a_method_ranks_by_the_share_of_others_that_it_beats() -> None:
    rule = Rule("test-then-rank")
    assert _rank_task(task_of(LADDER), rule).values.tolist() == [[1, 0.5, 0]]
    ranking = _rank_task(task_of(LADDER, smaller=True), rule)
    assert (ranking.values.tolist(), ranking.ranks.tolist()) == ([[0, 0.5, 1]], [[3, 2, 1]])
    five = task_of(LADDER[:, :5])
    assert _rank_task(five, rule).ranks.tolist() == [[1, 2, 3]]
    assert _rank_task(five, replace(rule, adjustment="holm")).ranks.tolist() == [[1, 1, 1]]
    p = float(_pairwise_p(five)[0, 0, 1])
    assert p == pytest.approx(0.0295, abs=5e-5)
    shares = [_rank_task(five, replace(rule, alpha=alpha)).values[0, 0] for alpha in (p, np.nextafter(p, 0))]
    assert shares == [1, 0], "a p that is alpha decides"
    alone = _rank_task(task_of([[1.0, 2.0]]), rule)
    assert (alone.values.tolist(), alone.ranks.tolist()) == ([[0]], [[1]])


def test_each_ordered_pair_is_tested_and_adjusted_for_all() -> None:
    values = np.random.Generator(np.random.PCG64(3)).integers(0, 9, (3, 12)) / 8
    values[1, 4] = NONE
    for smaller in (False, True):
        results = _pairwise_p(task_of(values, smaller=smaller))[0]
        for first, second in itertools.permutations(range(3), 2):
            between = (values[second] - values[first]) if smaller else (values[first] - values[second])
            assert results[first, second] == pytest.approx(signed_rank_of(between.tolist())[0], rel=1e-12)
        assert np.isnan(np.diag(results)).all()
        adjusted = _pairwise_p(task_of(values, smaller=smaller), adjustment="holm")[0]
        away = ~np.eye(3, dtype=bool)
        assert adjusted[away] == pytest.approx(holm(results[away]))
        assert np.nanmin(adjusted) == pytest.approx(min(1, 6 * np.nanmin(results)))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("ties", get_args(Ties))
@pytest.mark.parametrize("block", [1, 3, 250])
def test_redrawn_cases_rank_as_a_table_in_which_they_stand_repeated(
    method: Any, ties: Any, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rankings, "_BLOCK", block)
    values = np.random.Generator(np.random.PCG64(7)).integers(0, 6, (4, 9)) / 5
    values[0, 2] = values[3, 5] = values[3, 6] = NONE
    weights = _redraw_cases(9, 7)
    for adjustment, remove in itertools.product(get_args(_Adjustment), (False, True)):
        rule = Rule(method, ties, remove, adjustment, alpha=0.3)
        ranking = _rank_task(task_of(values), rule, weights)
        assert ranking.ranks.shape == (7, 4)
        for row, counts in enumerate(weights.astype(int)):
            item = _rank_task(task_of(np.repeat(values, counts, axis=1)), rule)
            assert ranking.values[row] == pytest.approx(item.values[0], rel=1e-12)
            assert ranking.ranks[row].tolist() == item.ranks[0].tolist()


@pytest.mark.parametrize("method", ["mean-then-rank", "median-then-rank"])
def test_who_has_none_of_the_drawn_cases_is_last(method: Any) -> None:
    ranking = _rank_task(TASK, Rule(method), np.array([[0, 0, 3.0]]))
    assert ranking.values[0] == pytest.approx([0.1, 0.6, NONE], nan_ok=True)
    assert ranking.ranks.tolist() == [[2, 1, 3]]
    nothing = _rank_task(task_of([[NONE, NONE], [0.0, 0.0]]), Rule(method))
    assert nothing.values[0] == pytest.approx([NONE, 0], nan_ok=True)
    assert nothing.ranks.tolist() == [[2, 1]]


@pytest.mark.parametrize("scale", [1.0, 1e-6, 3e5])
def test_equal_means_are_equal_to_the_last_bit(scale: float) -> None:
    """The order of the sum does not change the mean."""
    generator = np.random.Generator(np.random.PCG64(1))
    item = generator.random(41) * scale
    rows = np.stack([generator.permutation(item) for _ in range(8)])
    ranking = _rank_task(task_of(rows), Rule())
    assert ranking.values.tolist() == [[math.fsum(item) / 41] * 8]
    assert ranking.ranks.tolist() == [[1] * 8]


def test_a_heatmap_counts_the_ranks_within_cases() -> None:
    assert _count_ranks(TASK).tolist() == [[1, 2, 0], [1, 1, 1], [1, 0, 1]]
    assert _count_ranks(replace(TASK, smaller=True)).tolist() == [[1, 1, 1], [1, 2, 0], [1, 0, 1]]
    assert _count_ranks(task_of([[1, 0], [1, 2]])).tolist() == [[1, 1], [2, 0]]


def test_cases_are_redrawn_with_replacement_and_always_alike() -> None:
    weights = _redraw_cases(10, 4_000)
    assert weights.shape == (4_000, 10)
    assert (weights.sum(axis=1) == 10).all()
    assert weights.mean(axis=0) == pytest.approx(np.ones(10), abs=4 * math.sqrt(0.9 / 4_000))
    assert weights.var() == pytest.approx(0.9, abs=0.03)
    generator = np.random.Generator(np.random.PCG64(0))
    assert _redraw_cases(3, 5).tolist() == generator.multinomial(3, [1 / 3] * 3, 5).tolist()


def test_stability_is_how_the_ranks_of_redrawn_cases_spread() -> None:
    """A is first in the first case, B in the second. A draw with both cases is a tie, in which tau is undefined."""
    task = task_of([[1, 0], [0, 0.5]])
    stability = _measure_stability(task, Rule(), np.array([[2, 0], [0, 2], [1, 1], [1, 1], [1, 2.0]]))
    assert stability.frequency == pytest.approx(np.array([[0.8, 0.2], [0.4, 0.6]]))
    assert stability.median.tolist() == [1, 2]
    assert stability.low == pytest.approx([1, 1])
    assert stability.high == pytest.approx([1.9, 2])
    assert stability.tau.tolist() == [1, -1, 1, 1]


def test_stability_looks_at_block_after_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rankings, "_BLOCK", 2)
    stability = _measure_stability(
        task_of([[1, 0], [0, 0.5]]), Rule(), np.array([[0, 2], [1, 1], [1, 1], [0, 2], [2, 0.0]])
    )
    assert stability.tau.tolist() == [-1, 1, 1, -1, 1]
    assert stability.low == pytest.approx([1, 1])
    assert stability.high == pytest.approx([2, 2])


def test_a_consensus_is_the_mean_of_ranks_and_who_lacks_is_last() -> None:
    ranks = average_ranks({"easy": {"C": 3.0, "A": 1.0, "B": 1.0}, "hard": {"B": 1.0, "C": 2.0}})
    assert list(ranks.items()) == [("B", 1.25), ("A", 2.25), ("C", 2.5)]
    assert list(average_ranks({"x": {"b": 1.0, "a": 2.0}, "y": {"b": 2.0, "a": 1.0}}).items()) == [
        ("a", 1.5),
        ("b", 1.5),
    ]


# ── what can be told apart ──────────────────────────────────────────────────


def test_pairs_differ_by_the_mean_over_objects() -> None:
    sums = np.array([[1.8, 0.5, 2.4, 0.6, 1.5, 0.9], [1.0, 0.2, 2.1, 0.1, 1.2, 0.3], [0.9, 0.4, 2.0, 0.3, 1.4, 0.1]])
    table = Sums(("A", "B", "C"), sums, np.array([2.0, 1, 3, 1, 2, 1]))
    pairs = compare_pairs(table)
    assert [(pair.name, pair.rival) for pair in pairs] == [("A", "B"), ("A", "C"), ("B", "C")]
    raw = [2 / 64, 2 / 64, share_of_flips([0.1, -0.2, 0.1, -0.2, -0.2, 0.2])]
    assert [pair.p for pair in pairs] == raw
    assert [pair.adjusted for pair in pairs] == pytest.approx([6 / 64, 6 / 64, raw[2]])
    assert [pair.difference for pair in pairs] == pytest.approx([2.8 / 10, 2.6 / 10, -0.2 / 10])
    for pair, (item, second) in zip(pairs, itertools.combinations(range(3), 2), strict=True):
        error = _jackknife_error(sums[item] - sums[second], table.counts)
        assert pair.error == pytest.approx(error, rel=1e-12)
        reach = float(stdtrit(5, 0.975)) * error
        assert (pair.low, pair.high) == pytest.approx((pair.difference - reach, pair.difference + reach))
    first = estimate_means(table, pairs)[0]
    error = _jackknife_error(sums[0], table.counts)
    assert (first.value, first.error, first.high) == pytest.approx(
        (0.77, error, 0.77 + float(stdtrit(5, 0.975)) * error)
    )
    assert [(mean.place_from, mean.place_to) for mean in estimate_means(table, pairs)] == [(1, 3)] * 3


def test_places_are_between_who_is_better_and_who_is_worse() -> None:
    base = np.array([0.5, 0.4, 0.6, 0.5, 0.3, 0.6, 0.5, 0.4, 0.6, 0.2])
    wobble = np.tile([0.01, -0.01], 5)
    for smaller in (False, True):
        table = Sums(
            ("A", "B", "C", "D"), np.stack([base, base + 0.3, base + wobble, base - 0.1]), np.ones(10), smaller
        )
        pairs = compare_pairs(table)
        assert {(pair.name, pair.rival) for pair in pairs if not pair.apart} == {("A", "C")}
        places = {mean.name: (mean.place_from, mean.place_to) for mean in estimate_means(table, pairs)}
        expected = {"A": (2, 3), "B": (1, 1), "C": (2, 3), "D": (4, 4)}
        assert places == (
            {name: (5 - last, 5 - first) for name, (first, last) in expected.items()} if smaller else expected
        )


def test_of_a_pair_the_better_one_is_named_first() -> None:
    def ordered(difference: float, *, smaller: bool) -> tuple[str, str]:
        pair = Difference("A", "B", difference, 0.1, None, None, 0.01, 0.05)
        table = Sums(("A", "B"), np.ones((2, 2)), np.ones(2), smaller)
        assert table.better_pairs([pair]) == {table.sort_pair(pair)}
        assert table.better_pairs([replace(pair, adjusted=0.0501)]) == set()
        return table.sort_pair(pair)

    assert [ordered(value, smaller=False) for value in (0.1, -0.1, 0.0)] == [("A", "B"), ("B", "A"), ("A", "B")]
    assert [ordered(value, smaller=True) for value in (0.1, -0.1, 0.0)] == [("B", "A"), ("A", "B"), ("A", "B")]


def test_a_single_case_has_no_interval_and_two_have_a_wide_one() -> None:
    table = Sums(("A", "B"), np.array([[0.5], [0.75]]), np.ones(1))
    (pair,) = compare_pairs(table)
    assert (pair.difference, pair.low, pair.high, pair.p, math.isnan(pair.error)) == (-0.25, None, None, 1, True)
    assert [(mean.value, mean.low, mean.high) for mean in estimate_means(table, [pair])] == [
        (0.5, None, None),
        (0.75, None, None),
    ]
    table = Sums(("A", "B"), np.array([[0.5, 0.7], [0.5, 0.5]]), np.ones(2))
    (pair,) = compare_pairs(table)
    assert (pair.low, pair.high) == pytest.approx((0.1 - 1.2706204736, 0.1 + 1.2706204736))
    wide = estimate_means(table, [pair])
    assert [(item.low, item.high) for item in wide] == [(0, 1), (0.5, 0.5)]
    assert estimate_means(table, [pair], bounds=(-1, 2))[0].high == pytest.approx(0.6 + 1.2706204736)
    assert compare_pairs(Sums(("A",), np.ones((1, 3)), np.ones(3))) == []


# ── tables of scores ────────────────────────────────────────────────────────


def written(path: Path, rows: list[list[str]]) -> str:
    with open(path, "w", newline="", encoding="utf-8-sig") as file:
        csv.writer(file).writerows(rows)
    return str(path)


def test_a_table_is_read_by_task_with_gaps(tmp_path: Path) -> None:
    rows = [["value", "task", "algorithm", "case"], ["0.5", "easy", "B", "x"], [" 1e100", "easy", "A", "y"],
            ["NA", "easy", "B", "y"], ["-2", "hard", "B", "x"], ["", "hard", "A", "x"]]  # fmt: skip
    easy, hard = score_tables.read_table(written(tmp_path / "scores.csv", rows), smaller=True)
    assert (easy.name, easy.algorithms, easy.cases, easy.smaller) == ("easy", ("A", "B"), ("x", "y"), True)
    assert easy.values == pytest.approx(np.array([[NONE, 1e100], [0.5, NONE]]), nan_ok=True)
    assert (hard.name, hard.cases) == ("hard", ("x",))
    assert hard.values == pytest.approx(np.array([[NONE], [-2]]), nan_ok=True)
    plain = written(tmp_path / "plain.csv", [["algorithm", "case", "value"], ["A", "x", "1"]])
    assert [(item.name, item.smaller) for item in score_tables.read_table(plain, smaller=False)] == [("", False)]


def test_a_table_has_its_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    header = ["algorithm", "case", "value"]
    three = written(tmp_path / "three.csv", [header, *([name, "x", "1"] for name in "ABC")])
    monkeypatch.setattr(score_tables, "_MOST_ALGORITHMS", 3)
    monkeypatch.setattr(score_tables, "_MOST_ROWS", 3)
    assert score_tables.read_table(three, smaller=False)[0].algorithms == ("A", "B", "C")
    for limit, sentence in (("_MOST_ROWS", "more than 2 rows"), ("_MOST_ALGORITHMS", "at most 2 algorithms")):
        with monkeypatch.context() as lower, pytest.raises(UsageError, match=sentence):
            lower.setattr(score_tables, limit, 2)
            score_tables.read_table(three, smaller=False)
    for odd in ("-1.1e100", "nice", "inf"):
        with pytest.raises(UsageError, match=f"line 2: {odd} is not a valid score"):
            score_tables.read_table(written(tmp_path / "odd.csv", [header, ["A", "x", odd]]), smaller=False)
    both = written(tmp_path / "both.csv", [[*header, "task", "task"], ["A", "x", "1", "t", "t"]])
    with pytest.raises(UsageError, match="several columns task"):
        score_tables.read_table(both, smaller=False)


def document(values: dict[str, list[float | None]], mean: float | None, **changes: Any) -> dict[str, Any]:
    rows = [
        {"split": "dev", "sequence": sequence, "object": str(number), "J-Decay": value}
        for sequence, entries in values.items()
        for number, value in enumerate(entries)
    ]
    return {"protocol": "davis2017", "result": [{"dev": {"J-Decay": mean}}], "objects": rows, **changes}


DOGS_AND_CATS: dict[str, list[float | None]] = {"dog": [0.25, 0.75, None], "cat": [0.5], "owl": [None]}


def test_a_metric_is_summed_over_the_objects_of_each_sequence() -> None:
    scores = [score_tables._read_document(name, document(DOGS_AND_CATS, 0.5)) for name in "AB"]
    table, names = score_tables.sum_objects(scores, "J-Decay")
    assert (names, table.algorithms, table.smaller) == (["dog", "cat", "owl"], ("A", "B"), True)
    assert table.sums.tolist() == [[1, 0.5, 0]] * 2
    assert table.counts.tolist() == [2, 1, 0]
    (task,) = score_tables.tasks_of(scores, "J-Decay")
    assert (task.name, task.cases, task.smaller) == ("J-Decay", ("dog", "cat", "owl"), True)
    assert task.values == pytest.approx(np.array([[0.5, 0.5, NONE]] * 2), nan_ok=True)


@pytest.mark.parametrize(
    ("values", "mean", "sentence"),
    [
        (DOGS_AND_CATS, 0.5 + 5e-10, None),
        (DOGS_AND_CATS, 0.5 + 2e-9, "is not a mean over objects"),
        (DOGS_AND_CATS, None, "^J-Decay of B has no value, so it is not compared$"),
        ({**DOGS_AND_CATS, "dog": [None], "cat": [None]}, 0.0, "is not a mean over objects"),
        ({**DOGS_AND_CATS, "dog": [0.5]}, 0.5, "not scored on the same objects of dog;"),
        ({**DOGS_AND_CATS, "fox": [0.5]}, 0.5, "not scored on the same objects of fox;"),
    ],
)
def test_scores_of_other_objects_or_kinds_are_not_compared(
    values: dict[str, list[float | None]], mean: float | None, sentence: str | None
) -> None:
    scores = [score_tables._read_document("A", document(DOGS_AND_CATS, 0.5)),
              score_tables._read_document("B", document(values, mean))]  # fmt: skip
    if sentence is None:
        assert score_tables.sum_objects(scores, "J-Decay")[0].algorithms == ("A", "B")
        return
    with pytest.raises(UsageError, match=sentence):
        score_tables.sum_objects(scores, "J-Decay")


def test_a_document_with_several_splits_needs_one_named() -> None:
    both = document(DOGS_AND_CATS, 0.5, result=[{"dev": {"J-Decay": 0.5}}, {"test": {"J-Decay": 1e100}}])
    assert len(score_tables._read_document("A", both, "dev").objects) == 5
    results = score_tables._read_document("A", both, "test")
    assert (results.objects, results.values) == ([], {"J-Decay": 1e100})
    with pytest.raises(UsageError, match="has the splits dev, test"):
        score_tables._read_document("A", both)
    with pytest.raises(UsageError, match="has no split 'val'"):
        score_tables._read_document("A", both, "val")
    with pytest.raises(TypeError):
        score_tables._read_document("A", document({}, -1.1e100))
    without = {key: value for key, value in both.items() if key != "objects"}
    with pytest.raises(UsageError, match="no values per object"):
        score_tables._read_document("A", without, "dev")


def test_files_are_named_by_what_stands_before_them_or_by_themselves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("one.dev.json", "x=two.json"):
        Path(name).write_text(json.dumps(document(DOGS_AND_CATS, 0.5)))
    given = ["one.dev.json", "x=two.json", "B=one.dev.json", "a=b=one.dev.json"]
    assert [score.name for score in score_tables.read_scores(given)] == ["one", "x=two", "B", "a=b"]
    with pytest.raises(UsageError, match="two have the name one"):
        score_tables.read_scores(["one.dev.json", "one=one.dev.json"])
    with pytest.raises(UsageError, match="none.json: cannot be read"):
        score_tables.read_scores(["C=none.json"])


def test_saved_scores_rank_as_the_written_ones(tmp_path: Path) -> None:
    scores = segjudge.score(
        ROOT / "examples/sequences-dev/strong.zip", ROOT / "annotations/sequences-dev.zip", "davis2017"
    )
    scores.save(tmp_path / "run.segjudge")
    (score,) = score_tables.read_scores([str(tmp_path / "run.segjudge")])
    assert (score.name, score.protocol) == ("run", "davis2017")
    assert score.values["J&F-Mean"] == pytest.approx(scores["J&F-Mean"])
    table, names = score_tables.sum_objects([score], "J&F-Mean")
    assert len(names) == 3
    assert table.sums.sum() / table.counts.sum() == pytest.approx(scores["J&F-Mean"])


def test_groups_are_compared_on_the_same_truth_by_the_same_protocol() -> None:
    files = ROOT / "examples/instances-dev/sharp.json", ROOT / "annotations/instances-dev.zip"
    places, coco = (segjudge.score(*files, protocol).reports[0] for protocol in ("places2017", "coco"))
    table = score_tables.pseudo_values_by_group({"A": places, "B": places}, "AP")
    assert table.sums.mean(axis=1) == pytest.approx([places.values["AP"]] * 2, abs=1e-12)
    assert (table.counts == 1).all()
    with pytest.raises(UsageError, match="B was scored as coco, A as places2017"):
        score_tables.pseudo_values_by_group({"A": places, "B": coco}, "AP")
    with pytest.raises(UsageError, match="has no metric PQ"):
        score_tables.pseudo_values_by_group({"A": places}, "PQ")


def test_means_of_seen_and_unseen_ones_are_compared_video_by_video(tmp_path: Path) -> None:
    """Scores and their documents give the same comparison, even if all objects are correct."""
    files = write_sequences(tmp_path)
    (tmp_path / "unseen.txt").write_text("b\nd\n")
    (tmp_path / "right.zip").write_bytes(label_zip(TRUTH))
    scores = {
        name: segjudge.score(tmp_path / path, tmp_path / "truth.zip", WITH_UNSEEN, unseen=str(tmp_path / "unseen.txt"))
        for name, path in (("shifted", files.results), ("right", "right.zip"))
    }
    compared = segjudge.compare(scores)
    means = {name: row.mean() for name, row in zip(compared.sums.algorithms, compared.sums.sums, strict=True)}
    assert means == pytest.approx({name: score["J&F-Mean"] for name, score in scores.items()}, abs=1e-12)
    assert (compared.sums.counts == 1).all()
    (task,) = segjudge.rank(scores, metric="J&F-Mean", draws=2).document()["tasks"]
    assert task["values"] == pytest.approx([score["J&F-Mean"] for score in scores.values()], abs=1e-12)
