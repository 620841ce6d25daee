"""Rankings as a protocol's challenge makes them: ranks within cases, or mean ranks of several metrics."""

from __future__ import annotations

from typing import Any

import numpy as np

from segjudge.evaluation_script.files.problems import printable
from segjudge.families import prefers_smaller, ranking_rule_of
from segjudge.system.errors import UsageError

from .rankings import TaskScores
from .score_tables import AlgorithmScores, check_comparable, tasks_of
from .statistics import Floats, Ties, ranks_of


def find_rule(scores: list[AlgorithmScores]) -> Any:
    """Return the ranking rule of the common protocol; raises UsageError without one, or for unrankable scores."""
    base = scores[0]
    rule = ranking_rule_of(base.protocol)
    if rule is None:
        raise UsageError(
            f"{printable(base.protocol)} does not define the ranking of its own challenge; choose another method"
        )
    for method in scores:
        check_comparable(base, method)
        if not method.cases:
            raise UsageError(f"{method.name} has no values per case; score it again with this version of segjudge")
    return rule


def rank_within_cases(scores: list[AlgorithmScores], ties: Ties) -> TaskScores:
    """Return the mean rank of each algorithm in each case, over regions and measures; a missing value is the worst."""
    measures = _list_measures(scores[0])
    places = list(dict.fromkeys((row["name"], row["region"]) for method in scores for row in method.cases))
    rows = [{(row["name"], row["region"]): row for row in method.cases} for method in scores]
    indices = {case: index for index, case in enumerate(dict.fromkeys(case for case, _ in places))}
    sums, counts = np.zeros((len(indices), len(scores))), np.zeros(len(indices))
    for case, region in places:
        for measure in measures:
            values = np.array([_read_value(row.get((case, region), {}), measure) for row in rows])
            if not np.isnan(values).all():
                smaller = prefers_smaller(measure, scores[0].protocol)
                values[np.isnan(values)] = np.inf if smaller else -np.inf
                ranks = ranks_of(values, smaller=smaller, ties=ties)
                sums[indices[case]] += ranks
                counts[indices[case]] += 1
    if not counts.any():
        raise UsageError(f"{scores[0].name} has no values per case to rank")
    is_ranked = counts > 0
    means = (sums[is_ranked] / counts[is_ranked, None]).T
    names = tuple(case for case, index in indices.items() if is_ranked[index])
    title = f"mean rank of {', '.join(measures)}"
    return TaskScores(title, tuple(method.name for method in scores), names, means, smaller=True)


def rank_means(scores: list[AlgorithmScores], tie_breaker: str) -> tuple[list[TaskScores], list[dict[str, Any]]]:
    """Return a task for each measure, and a row of the final place of each algorithm, the best first.

    The place is the rank of an algorithm's mean rank. Ties are broken by a metric, and share a place if it is equal
    too.
    """
    measures = _list_measures(scores[0])
    tasks = [task for measure in measures for task in tasks_of(scores, measure)]
    ranks = np.array([_rank_values(scores, _average_regions(scores, measure), measure) for measure in measures])
    means = ranks.mean(axis=0)
    by_metric = _rank_values(scores, [_read_value(method.values, tie_breaker) for method in scores], tie_breaker)
    keys = list(zip(means.tolist(), by_metric.tolist(), strict=True))
    rows = [
        {
            "place": 1 + sum(better_key < key for better_key in keys),
            "algorithm": method.name,
            "mean rank": key[0],
            **{measure: method.values.get(measure) for measure in (*measures, tie_breaker)},
        }
        for method, key in zip(scores, keys, strict=True)
    ]
    return tasks, sorted(rows, key=lambda row: (row["place"], row["algorithm"]))


def _list_measures(scores: AlgorithmScores) -> list[str]:
    """Return the metrics that do not belong to a region."""
    return [metric for metric in scores.values if metric in scores.cases[0]]


def _average_regions(scores: list[AlgorithmScores], measure: str) -> list[float]:
    """Return the mean of a measure over regions, added in their order as challenges do."""
    means = []
    for method in scores:
        numbers = [_read_value(method.values, name) for name in method.values if name.startswith(f"{measure}_")]
        means.append(float(np.mean(numbers)) if numbers else _read_value(method.values, measure))
    return means


def _rank_values(scores: list[AlgorithmScores], values: list[float], metric: str) -> Floats:
    return ranks_of(np.array(values), smaller=prefers_smaller(metric, scores[0].protocol))


def _read_value(row: Any, name: str) -> float:
    """Return a value as a number; NaN if it is missing."""
    value = row.get(name)
    return float("nan") if value is None else float(value)
