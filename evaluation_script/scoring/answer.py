"""The conversion of scores to EvalAI's answer: finite floats, tables, error bars, timings."""

from __future__ import annotations

import re
import sys
import time
from contextlib import closing
from typing import Any, Dict, List, Optional, Tuple

import numpy as np

from ..families import engine_of
from ..families.base.family import Values
from ..families.base.reports import FEWEST_CASES, FEWEST_SHOWN, Report, Row
from ..files import HostError, name_hint
from . import VERSION
from .phase import DETAILS, Phase, PhaseSplit
from .scorer import Scorer

#: The maximum number of shown lines of warnings; more are counted.
_WARNING_LINES = 20
#: Decimals of the fractions in files that participants read.
DECIMALS = 3
#: The columns that name the rows of tables.
_NAMES = ("split", "sequence", "id", "name")
#: The first frame of a problem. With an object's number, it would reveal which objects the truth shows when.
_FIRST_FRAME = r" \(first in frame [^()]*\)(?= is not in the truth)"


def limit_warnings(lines: List[str]) -> List[str]:
    """Return at most twenty lines; the last one counts the omitted ones."""
    if len(lines) <= _WARNING_LINES:
        return lines
    return [*lines[: _WARNING_LINES - 1], f"... and {len(lines) - _WARNING_LINES + 1} more warnings"]


def build_answer(phase: Phase, reports: List[Report], timings: Dict[str, float]) -> Dict[str, Any]:
    """Return the dict that `evaluate()` returns."""
    scored = list(zip(phase.splits, reports))
    answer: Dict[str, Any] = {
        "result": [{split.codename: _leaderboard(phase, split, report.values)} for split, report in scored],
        "submission_result": public_result(phase, reports),
        "submission_metadata": {
            "phase": phase.codename,
            # Whole seconds, since time depends on the truth.
            "seconds": {name: round(spent) for name, spent in timings.items() if name not in phase.hidden},
            "versions": versions(),
            # With these the hosts' leaderboard shows which submissions differ.
            "sums": {split.codename: _list_sums(phase, split, report) for split, report in scored},
        },
    }
    undefined = {
        split.codename: [name for name in split.metrics if report.values[name] is None] for split, report in scored
    }
    if any(undefined.values()):  # which the leaderboard shows as 0
        answer["submission_metadata"]["undefined"] = undefined
    error_bars = [_error_bars(phase, split, report) for split, report in scored]
    if all(error_bars):
        answer["error"] = error_bars
    shown = [{split.codename: _round_intervals(phase, split, report)} for split, report in scored]
    answer["interval"] = [split_intervals for split_intervals in shown if any(split_intervals.values())]
    return answer


def _intervals(phase: Phase, split: PhaseSplit, report: Report) -> Dict[str, Tuple[float, float]]:
    """Return the intervals of leaderboard metrics with enough cases that participants may see."""
    intervals, least = report.intervals(metrics=split.metrics), _fewest_cases(phase)
    return {
        metric: intervals[metric]
        for metric in split.metrics
        if metric in intervals and report.count_cases(metric) >= least
    }


def _round_intervals(phase: Phase, split: PhaseSplit, report: Report) -> Dict[str, List[float]]:
    """Return the rounded intervals of the leaderboard's labels, for a page."""
    decimals, intervals = DECIMALS - 2 * phase.percent, _intervals(phase, split, report)
    return {
        metric: [round(_number(phase, bound), decimals) for bound in bounds] for metric, bounds in intervals.items()
    }


def _limit_intervals(phase: Phase, split: PhaseSplit, report: Report) -> Dict[str, Tuple[float, float]]:
    """Return the leaderboard metrics' intervals that participants may read, as fractions."""
    intervals = _intervals(phase, split, report)
    if phase.detail == DETAILS[2]:
        return intervals
    return {metric: (round(low, DECIMALS), round(high, DECIMALS)) for metric, (low, high) in intervals.items()}


def _list_sums(phase: Phase, split: PhaseSplit, report: Report) -> Dict[str, List[List[float]]]:
    """Return sums and counts of comparable leaderboard metrics that participants may see."""
    return {
        metric: [sums.tolist(), counts.tolist()]
        for metric, (sums, counts) in report.sums(split.metrics).items()
        if report.count_cases(metric) >= _fewest_cases(phase)
    }


def _fewest_cases(phase: Phase) -> int:
    """Return the least number of cases for an interval or rank that participants may see."""
    return FEWEST_CASES if phase.detail == DETAILS[2] else FEWEST_SHOWN


def public_result(phase: Phase, reports: List[Report]) -> Dict[str, Any]:
    """Return the result for participants: rounded leaderboard means, without hidden splits.

    Participants know their own masks, so any number that depends on few frames would reveal the truth. More is reported
    only if the phase allows it.
    """
    visible = [(split, report) for split, report in zip(phase.splits, reports) if not split.hidden]
    if phase.detail == DETAILS[2]:
        return tables([report for _, report in visible])
    warnings = [line for _, report in visible for line in report.warnings]
    return {
        "protocol": _protocol([report for _, report in visible]),
        "result": [
            {split.codename: _round_values({metric: report.values.get(metric) for metric in split.metrics}, DECIMALS)}
            for split, report in visible
        ],
        "scored": [split.codename for split in phase.splits],
        **(_coarse_rows(visible) if phase.detail == DETAILS[1] else {}),
        "warnings": limit_warnings([re.sub(_FIRST_FRAME, "", line) for line in warnings]),
        "versions": versions(),
    }


def _coarse_rows(visible: List[Tuple[PhaseSplit, Report]]) -> Dict[str, List[Row]]:
    """Return leaderboard metrics per sequence or category, rounded so that they reveal no single frame."""
    tables: Dict[str, List[Row]] = {}
    for split, report in visible:
        name, rows = next(iter(report.rows().items()))
        for row in rows:
            coarse = _round_values({metric: row[metric] for metric in split.metrics if metric in row}, 2)
            tables.setdefault(name, []).append({**{key: row[key] for key in _NAMES if key in row}, **coarse})
    return tables


def _round_values(values: Values, decimals: int) -> Values:
    return {metric: None if value is None else round(float(value), decimals) for metric, value in values.items()}


def _protocol(reports: List[Report]) -> str:
    names = {report.protocol.name for report in reports}
    return names.pop() if len(names) == 1 else "several" if names else ""


def tables(reports: List[Report]) -> Dict[str, Any]:
    """Return all scores with full precision, for a file on one's own machine."""
    return {
        "protocol": _protocol(reports),
        "result": [{report.split: report.values} for report in reports],
        **join_rows(reports),
        "warnings": limit_warnings([line for report in reports for line in report.warnings]),
        "versions": versions(),
    }


def join_rows(reports: List[Report]) -> Dict[str, List[Row]]:
    """Return the tables of several splits joined by name."""
    joined: Dict[str, List[Row]] = {}
    for report in reports:
        for name, rows in report.rows().items():
            joined.setdefault(name, []).extend(rows)
    return joined


def versions() -> Dict[str, str]:
    """Return the versions of Segjudge and of the libraries that scored."""
    import PIL  # few commands need it

    return {
        "segjudge": VERSION,
        "python": sys.version.partition(" ")[0],  # the module `platform` would take 2 ms
        "numpy": np.__version__,
        "pillow": PIL.__version__,
    }


def _leaderboard(phase: Phase, split: PhaseSplit, values: Values) -> Dict[str, float]:
    unknown = [metric for metric in split.metrics if metric not in values]
    if unknown:
        raise HostError(
            f"phases.py: {split.protocol} has no metric {', '.join(unknown)}{name_hint(unknown[0], values)}"
        )
    return {metric: _number(phase, values[metric]) for metric in split.metrics}


def _number(phase: Phase, value: Optional[float]) -> float:
    """Return a finite float; empty means become 0, since EvalAI knows no null."""
    number = float(value) if value is not None and np.isfinite(value) else 0.0
    return number * 100 if phase.percent else number


def _error_bars(phase: Phase, split: PhaseSplit, report: Report) -> Optional[Dict[str, Dict[str, float]]]:
    """Return a standard error for every label, or None, because EvalAI's page breaks on partial ones."""
    errors = report.errors(split.metrics)
    if not set(split.metrics) <= set(errors):
        return None
    return {split.codename: {f"error_{metric}": _number(phase, errors[metric]) for metric in split.metrics}}


#: A split of a phase, its scorer, and its scores.
_ScoredSplit = Tuple[PhaseSplit, Scorer, Report]
#: The approximate maximum bytes of a submission's page, its bytes without masks, and the bytes of a table row.
_PAGE, _FIXED, _ROW = 3_000_000, 250_000, 2_000
#: The share of the remaining time that the page may take.
_TIME = 0.8


def add_page_data(
    answer: Dict[str, Any], phase: Phase, splits: List[_ScoredSplit], submission: str, deadline: float
) -> str:
    """Add the data of a submission's page to an answer; return an error for the log.

    If everybody may see it, the page includes the losses. A process within the phase's limits reads the submission
    again for them; its failure never affects the scores.
    """
    shown = answer["submission_result"]
    visible = [entry for entry in splits if not entry[0].hidden]
    shown["intervals"] = [{split.codename: _limit_intervals(phase, split, report)} for split, _, report in visible]
    if phase.detail == DETAILS[0]:
        return ""
    whole = phase.detail == DETAILS[2]
    if whole:
        shown["errors"] = [{split.codename: report.errors(split.metrics)} for split, _, report in visible]
    from ..runner.guard import run_guarded  # loaded only if phases are scored; others only print its warnings

    seconds = _TIME * max(deadline - time.monotonic(), 1.0)
    try:
        shown["losses"] = run_guarded(
            lambda _: _losses(visible, submission, whole=whole),
            memory=phase.memory,
            seconds=seconds,
            say=lambda _: None,
        )
    except Exception as error:  # noqa: BLE001 - the scores stay, whatever a page lacks
        return f"{phase.codename}: the page of a submission lacks the causes of loss ({type(error).__name__}: {error})"
    return ""


def _losses(splits: List[_ScoredSplit], submission: str, *, whole: bool) -> Dict[str, Any]:
    """Return the losses of each split, if its family shows them; rounded shares if incomplete."""
    readers = [
        (split.codename, engine.load_losses(), scorer, report)
        for split, scorer, report in splits
        for engine in [engine_of(report.protocol.family)]
        if engine.load_losses is not None
    ]
    rows = sum(len(scores) for *_, report in readers for scores in report.rows().values())
    room = (_PAGE - _FIXED - _ROW * rows) // max(len(readers), 1) if whole else 0
    losses: Dict[str, Any] = {}
    for codename, read_losses, scorer, report in readers:
        with closing(scorer.open(submission)) as opened:
            losses[codename] = read_losses(opened, report, room, scorer.rules.jobs)
        if not whole:
            losses[codename]["shares"] = [round(share, DECIMALS) for share in losses[codename]["shares"]]
    return losses
