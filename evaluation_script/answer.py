"""Scores → what EvalAI stores: plain finite floats, tables, error bars, timings."""

from __future__ import annotations

import platform
import re
from typing import Any, Collection, Dict, List, Optional, Tuple

import numpy as np
import PIL

from .accumulator import Accumulator
from .errors import HostError
from .instance_accumulator import InstanceAccumulator
from .instance_errors import GROUPS
from .instance_protocols import InstanceProtocol
from .intervals import FEWEST_CASES, FEWEST_SHOWN, interval
from .phase import DETAILS, Phase, PhaseSplit, TrackProtocol
from .sequence_averages import averaged, by_sequence, cases, standard_errors
from .sequence_metrics import ObjectScore, Values
from .sequence_protocols import BESIDE, SequenceProtocol
from .version import VERSION

#: A row of a table: names and values that JSON can hold.
Row = Dict[str, Any]

#: More lines of warnings than this are counted, not shown.
WARNING_LINES = 20
#: Decimals of the fractions in files that participants read.
DECIMALS = 3
#: What rows of tables are called by.
_NAMES = ("split", "sequence", "id", "name")
#: With an object's number this would show when the truth has which objects.
_FIRST_FRAME = re.compile(r" \(first in frame [^()]*\)(?= is not in the truth)")


class Report:
    """One split's scores as rows for people and programs; what has no value is None."""

    #: What the scores were made of.
    counted: Accumulator[Any, Any]

    def __init__(
        self, split: str, protocol: TrackProtocol, values: Values, tables: Dict[str, List[Row]], warnings: List[str]
    ) -> None:
        self.split, self.protocol, self._tables = split, protocol, tables
        #: The protocol's own metrics and those beside it.
        self.values = values
        self.warnings = [f"{split}: {line}" for line in warnings]
        empty = [metric for metric in protocol.metrics if values[metric] is None]
        if empty:
            self.warnings.append(f"{split}: nothing to average for {', '.join(empty)}")

    def errors(self, metrics: Collection[str] = ()) -> Values:
        """Return the standard errors of these metrics, or of all, where they have one."""
        del metrics
        return {}

    def cases(self, metric: str) -> int:
        """Return how many sequences, or groups of images, a metric's standard error is known from."""
        del metric
        return 0

    def intervals(self, level: float = 0.95, metrics: Collection[str] = ()) -> Dict[str, Tuple[float, float]]:
        """Return Student's t interval of each of these metrics, or of all, that has an error from cases enough."""
        found = {}
        for metric, error in self.errors(metrics).items():
            value, cases = self.values[metric], self.cases(metric)
            if value is not None and error is not None and cases >= FEWEST_CASES:
                low, high = interval(value, error, cases, level)
                found[metric] = max(low, -1.0 if metric.endswith("-Decay") else 0.0), min(high, 1.0)
        return found

    def rows(self) -> Dict[str, List[Row]]:
        """Return the tables of what was averaged, by name."""
        return {name: [{"split": self.split, **row} for row in rows] for name, rows in self._tables.items()}


class SequenceReport(Report):
    """Scores of mask sequences."""

    protocol: SequenceProtocol

    def __init__(self, split: str, protocol: SequenceProtocol, scores: List[ObjectScore], warnings: List[str]) -> None:
        super().__init__(split, protocol, averaged(scores, protocol), {}, warnings)
        self.scores = scores

    @property
    def metrics(self) -> List[str]:
        """The metrics that sequences and objects have."""
        known = {metric for score in self.scores for metric in score.values}
        return [metric for metric in (*self.protocol.metrics, *BESIDE) if metric in known]

    def errors(self, metrics: Collection[str] = ()) -> Values:
        del metrics  # they cost nothing
        return standard_errors(self.scores, self.protocol)

    def cases(self, metric: str) -> int:
        return cases(self.scores, self.protocol, metric)

    def rows(self) -> Dict[str, List[Row]]:
        means = by_sequence(self.scores, self.metrics)
        return {
            "sequences": [{"split": self.split, "sequence": name, **values} for name, values in means.items()],
            "objects": [
                {"split": self.split, "sequence": score.sequence, "object": score.name, **score.values}
                for score in self.scores
            ],
        }


class InstanceReport(Report):
    """Scores of instance masks."""

    protocol: InstanceProtocol

    def __init__(self, split: str, accumulator: InstanceAccumulator) -> None:
        score = accumulator.compute()
        super().__init__(split, accumulator.protocol, score.values, {"categories": score.categories}, score.warnings)
        self._accumulator = accumulator
        self._errors: Dict[Tuple[str, ...], Values] = {}

    def errors(self, metrics: Collection[str] = ()) -> Values:
        wanted = tuple(metrics)
        if wanted not in self._errors:
            self._errors[wanted] = self._accumulator.standard_errors(wanted)
        return self._errors[wanted]

    def cases(self, metric: str) -> int:
        del metric
        return min(GROUPS, len(self._accumulator.images))


def public_warnings(lines: List[str]) -> List[str]:
    """Return at most twenty lines, the last of which counts those left out."""
    if len(lines) <= WARNING_LINES:
        return lines
    return [*lines[: WARNING_LINES - 1], f"… and {len(lines) - WARNING_LINES + 1} more warnings"]


def build_answer(phase: Phase, reports: List[Report], timings: Dict[str, float]) -> Dict[str, Any]:
    """Return the dict that `evaluate()` returns."""
    answer: Dict[str, Any] = {
        "result": [
            {split.codename: _leaderboard(phase, split, report.values)} for split, report in zip(phase.splits, reports)
        ],
        "submission_result": public(phase, reports),
        "submission_metadata": {
            "phase": phase.codename,
            # Whole seconds, since time depends on the truth.
            "seconds": {name: round(spent) for name, spent in timings.items() if name not in phase.hidden},
            "versions": versions(),
        },
    }
    error_bars = [_error_bars(phase, split, report) for split, report in zip(phase.splits, reports)]
    if all(error_bars):
        answer["error"] = error_bars
    shown = [{split.codename: _ends(phase, split, report)} for split, report in zip(phase.splits, reports)]
    answer["interval"] = [ends for ends in shown if any(ends.values())]
    return answer


def _ends(phase: Phase, split: PhaseSplit, report: Report) -> Dict[str, List[float]]:
    """Return the intervals of the leaderboard's labels as a page may show them, rounded and of enough cases."""
    least, decimals = FEWEST_CASES if phase.detail == DETAILS[2] else FEWEST_SHOWN, DECIMALS - 2 * phase.percent
    return {
        metric: [round(_number(phase, end), decimals) for end in ends]
        for metric, ends in report.intervals(metrics=split.metrics).items()
        if metric in split.metrics and report.cases(metric) >= least
    }


def shown_intervals(phase: Phase, split: PhaseSplit, report: Report) -> Dict[str, Tuple[float, float]]:
    """Return the intervals that a participant may read beside the leaderboard's metrics, as fractions."""
    found = report.intervals(metrics=split.metrics)
    if phase.detail == DETAILS[2]:
        return {metric: found[metric] for metric in split.metrics if metric in found}
    return {
        metric: (round(found[metric][0], DECIMALS), round(found[metric][1], DECIMALS))
        for metric in split.metrics
        if metric in found and report.cases(metric) >= FEWEST_SHOWN
    }


def public(phase: Phase, reports: List[Report]) -> Dict[str, Any]:
    """Return what a participant may read: rounded means of what the leaderboard shows, and nothing of hidden splits.

    Whoever knows each mask that was sent learns the truth from any number that depends on few frames; so more than
    that is there only where the phase says so.
    """
    visible = [(split, report) for split, report in zip(phase.splits, reports) if not split.hidden]
    if phase.detail == DETAILS[2]:
        return tables([report for _, report in visible])
    warnings = [line for _, report in visible for line in report.warnings]
    return {
        "protocol": _protocol([report for _, report in visible]),
        "result": [{split.codename: _rounded(split, report.values)} for split, report in visible],
        "scored": [split.codename for split in phase.splits],
        **(_coarse_rows(visible) if phase.detail == DETAILS[1] else {}),
        "warnings": public_warnings([_FIRST_FRAME.sub("", line) for line in warnings]),
        "versions": versions(),
    }


def _coarse_rows(visible: List[Tuple[PhaseSplit, Report]]) -> Dict[str, List[Row]]:
    """Return the leaderboard's metrics of each sequence or category, too coarse to tell of single frames."""
    tables: Dict[str, List[Row]] = {}
    for split, report in visible:
        name, rows = next(iter(report.rows().items()))
        for row in rows:
            values = {metric: row[metric] for metric in split.metrics if metric in row}
            coarse = {metric: None if value is None else round(float(value), 2) for metric, value in values.items()}
            tables.setdefault(name, []).append({**{key: row[key] for key in _NAMES if key in row}, **coarse})
    return tables


def _rounded(split: PhaseSplit, values: Values) -> Values:
    rounded: Values = {}
    for metric in split.metrics:
        value = values.get(metric)
        rounded[metric] = None if value is None else round(float(value), DECIMALS)
    return rounded


def _protocol(reports: List[Report]) -> str:
    names = {report.protocol.name for report in reports}
    return names.pop() if len(names) == 1 else "several" if names else ""


def tables(reports: List[Report]) -> Dict[str, Any]:
    """Return all scores with full precision, for a file on one's own machine."""
    return {
        "protocol": _protocol(reports),
        "result": [{report.split: report.values} for report in reports],
        **joined_rows(reports),
        "warnings": public_warnings([line for report in reports for line in report.warnings]),
        "versions": versions(),
    }


def joined_rows(reports: List[Report]) -> Dict[str, List[Row]]:
    """Return the tables of several splits as one each."""
    joined: Dict[str, List[Row]] = {}
    for report in reports:
        for name, rows in report.rows().items():
            joined.setdefault(name, []).extend(rows)
    return joined


def versions() -> Dict[str, str]:
    """Return the versions of what scored."""
    return {
        "segjudge": VERSION,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "pillow": PIL.__version__,
    }


def _leaderboard(phase: Phase, split: PhaseSplit, values: Values) -> Dict[str, float]:
    unknown = [metric for metric in split.metrics if metric not in values]
    if unknown:
        raise HostError(f"phases.py: {split.protocol} has no metric {', '.join(unknown)}")
    return {metric: _number(phase, values[metric]) for metric in split.metrics}


def _number(phase: Phase, value: Optional[float]) -> float:
    """Return a finite float: EvalAI knows no null, so nothing to average is 0."""
    number = float(value) if value is not None and np.isfinite(value) else 0.0
    return number * 100 if phase.percent else number


def _error_bars(phase: Phase, split: PhaseSplit, report: Report) -> Optional[Dict[str, Dict[str, float]]]:
    """Return a standard error for every label, or None: EvalAI's page breaks on a partial one."""
    errors = report.errors(split.metrics)
    if not set(split.metrics) <= set(errors):
        return None
    return {split.codename: {f"error_{metric}": _number(phase, errors[metric]) for metric in split.metrics}}
