"""Ranks, tests, rankings, intervals and tables of scores, computed by hand or by a second short formula."""

from __future__ import annotations

import csv
import itertools
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import segjudge
from segjudge.analysis import score_tables
from segjudge.analysis.statistics import Sums, _cases_needed, _flip_signs, compare_pairs, estimate_means
from segjudge.evaluation_script.families.base.reports import interval
from segjudge.system.errors import UsageError
from tests.builders import label_zip
from tests.families.choices import WITH_UNSEEN
from tests.scoring.shares import TRUTH, write_sequences

NONE = math.nan


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


@pytest.mark.parametrize(("algorithms", "fewest"), [(2, 6), (3, 7), (5, 9), (10, 11), (20, 13)])
def test_a_large_difference_still_takes_cases_enough_to_be_significant(algorithms: int, fewest: int) -> None:
    assert _cases_needed(0.9, 0.01, 10, algorithms) == fewest


# ── adjustment, jackknife, how many cases ───────────────────────────────────


def test_a_small_difference_takes_many_cases() -> None:
    deviation = 0.128
    expected = math.ceil((2.8 * deviation / 0.036) ** 2)
    assert expected == 100
    for cases in (14, 50):
        for difference in (0.036, -0.036):
            assert _cases_needed(difference, deviation / math.sqrt(cases), cases, 2) == expected
    assert [_cases_needed(*given, 14, 2) for given in ((0.0, 0.1), (0.1, 0.0), (0.1, NONE))] == [None] * 3


# ── intervals ───────────────────────────────────────────────────────────────


def test_an_interval_has_one_degree_of_freedom_less_than_cases() -> None:
    assert interval(0.5, 0.1, 2) == pytest.approx((0.5 - 1.2706204736, 0.5 + 1.2706204736))
    assert interval(0.5, 0.1, 10) == pytest.approx((0.5 - 0.22621571628, 0.5 + 0.22621571628))
    assert interval(0.0, 1.0, 3, 0.5) == pytest.approx((-0.8164965809, 0.8164965809))
    assert interval(0.0, 1.0, 501, 1 - 2**-53)[1] > 6, "however near to 1"
    for level, cases in ((95, 5), (1, 5), (0, 5), (-1, 5), (math.nan, 5), (0.95, 1)):
        with pytest.raises(ValueError, match="there is no interval of level"):
            interval(0.5, 0.1, cases, level)


# ── what can be told apart ──────────────────────────────────────────────────


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
