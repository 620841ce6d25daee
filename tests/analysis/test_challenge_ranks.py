"""Rankings by the challenges' own rules: ranks within cases of BraTS, mean ranks of KiTS."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from segjudge.analysis.challenge_ranks import find_rule, rank_means, rank_within_cases
from segjudge.analysis.score_tables import AlgorithmScores
from segjudge.evaluation_script.families import PROTOCOLS
from segjudge.families import ranking_rule_of
from segjudge.system.errors import UsageError
from tests.families.volumes.volumes import read_golden

REGIONS = ("kidney", "mass", "tumor")


def score_team(name: str, numbers: list[float]) -> AlgorithmScores:
    """Return the scores of a team with KiTS' six numbers."""
    sides = {"Dice": numbers[:3], "NSD": numbers[3:]}
    values = {measure: sum(side) / 3 for measure, side in sides.items()}
    groups = {measure: [value] * 2 for measure, value in values.items()}
    for measure, side in sides.items():
        values |= {f"{measure}_{region}": value for region, value in zip(REGIONS, side)}
    cases = [{"name": "a", "region": region, "Dice": 0.5, "NSD": 0.5} for region in REGIONS]
    return AlgorithmScores(name, "kits23", values, [], groups, {}, cases)


@pytest.mark.parametrize("name", read_golden("kits").get("ranking", {}))
def test_places_are_those_of_kits(name: str) -> None:
    golden = read_golden("kits")["ranking"][name]
    scores = [score_team(f"team{number}", numbers) for number, numbers in enumerate(golden["teams"])]
    tasks, places = rank_means(scores, "Dice_tumor")
    assert [task.name for task in tasks] == ["Dice", "NSD"]
    official = [line.split(",") for line in golden["official"][1:]]
    rows = [
        [row["algorithm"], str(row["place"]), *(f"{row[key]:.4f}" for key in ("mean rank", "Dice_tumor"))]
        for row in places
    ]
    assert rows == [[team, place, mean, f"{float(tumor):.4f}"] for team, place, mean, _, _, tumor in official]


#: A protocol whose challenge ranks within cases, regions and metrics.
BY_CASE = next(name for name in PROTOCOLS if getattr(ranking_rule_of(name), "within_cases", False))


def make_scores(draw: np.random.Generator, missing: bool) -> list[AlgorithmScores]:
    values: dict[str, float | None] = {"LesionDice": 0.5, "LesionHD95": 9.0}
    teams = []
    for team in "ABCD":
        cases: list[dict[str, Any]] = [
            {"name": case, "region": region, "LesionDice": draw.integers(4) / 4, "LesionHD95": float(draw.integers(4))}
            for case in "abcde"
            for region in ("WT", "TC", "ET")
            if not (missing and (team, case) == ("B", "c"))
        ]
        teams.append(AlgorithmScores(team, BY_CASE, values, [], {}, {}, cases))
    return teams


@pytest.mark.parametrize("seed", range(5))
def test_ranks_of_brats_are_averaged_over_cases_regions_and_metrics(seed: int) -> None:
    scores = make_scores(np.random.default_rng(seed), missing=True)
    task = rank_within_cases(scores, "min")
    totals = dict.fromkeys("ABCD", 0.0)
    for case in "abcde":
        for region in ("WT", "TC", "ET"):
            for measure, worst in (("LesionDice", -1.0), ("LesionHD95", 99.0)):
                numbers = {
                    method.name: next(
                        (row[measure] for row in method.cases if (row["name"], row["region"]) == (case, region)), worst
                    )
                    for method in scores
                }
                for team, value in numbers.items():
                    better = [other < value if measure == "LesionHD95" else other > value for other in numbers.values()]
                    totals[team] += 1 + sum(better)
    assert task.smaller
    assert task.values.mean(axis=1) == pytest.approx([totals[team] / 30 for team in "ABCD"])


def test_scores_of_different_protocols_are_not_ranked_together() -> None:
    first, second, *_ = make_scores(np.random.default_rng(0), missing=False)
    with pytest.raises(UsageError, match=f"^B was scored as kits23, A as {first.protocol}$"):
        find_rule([first, replace(second, protocol="kits23")])


def test_scores_without_values_per_case_are_not_ranked_by_a_challenge() -> None:
    first, second, *_ = make_scores(np.random.default_rng(0), missing=False)
    assert find_rule([first, second]) == ranking_rule_of(first.protocol)
    without = "has no values per case; score it again with this version of segjudge"
    with pytest.raises(UsageError, match=f"^B {without}$"):
        find_rule([first, replace(second, cases=[])])
    undefined = [{**row, "LesionDice": None, "LesionHD95": None} for row in first.cases]
    with pytest.raises(UsageError, match="^A has no values per case to rank$"):
        rank_within_cases([replace(first, cases=undefined)], "min")
