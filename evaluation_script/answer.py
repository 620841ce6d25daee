"""Scores → what EvalAI stores: plain finite floats, tables, error bars, timings."""

from __future__ import annotations

import abc
import platform
import re
from typing import Any, Dict, List, Optional, Union

import numpy as np
import PIL

from .errors import HostError
from .instance_protocols import InstanceProtocol
from .instances import InstanceScore
from .phase import Phase, PhaseSplit
from .sequence_averages import averaged, by_sequence, standard_errors
from .sequence_metrics import ObjectScore, Values
from .sequence_protocols import BESIDE, SequenceProtocol
from .version import VERSION

Protocol = Union[SequenceProtocol, InstanceProtocol]

#: More lines of warnings than this are counted, not shown.
WARNING_LINES = 20
#: Of fractions in files that participants read.
DECIMALS = 3
#: With an object's number this would tell when the truth has which objects.
_FIRST_FRAME = re.compile(r" \(first in frame [^()]*\)(?= is not in the truth)")


class Report(abc.ABC):
    """One split's scores as rows for people and programs; nothing that is not a number becomes null."""

    #: The protocol's own metrics and those beside it.
    values: Values
    warnings: List[str]

    def __init__(self, split: str, protocol: Protocol) -> None:
        self.split, self.protocol = split, protocol

    def _warn(self, lines: List[str]) -> None:
        self.warnings = [f"{self.split}: {line}" for line in lines]
        empty = [metric for metric in self.protocol.metrics if self.values[metric] is None]
        if empty:
            self.warnings.append(f"{self.split}: nothing to average for {', '.join(empty)}")

    @abc.abstractmethod
    def errors(self) -> Values:
        """Standard errors, of the metrics that have one."""

    @abc.abstractmethod
    def rows(self) -> Dict[str, List[Dict[str, Any]]]:
        """Tables of the parts that were averaged, by name."""


class SequenceReport(Report):
    """Scores of mask sequences."""

    protocol: SequenceProtocol

    def __init__(self, split: str, protocol: SequenceProtocol, scores: List[ObjectScore], warnings: List[str]) -> None:
        super().__init__(split, protocol)
        self.scores = scores
        self.values = averaged(scores, protocol)
        self._warn(warnings)

    @property
    def metrics(self) -> List[str]:
        """The metrics that sequences and objects have."""
        held = {metric for one in self.scores for metric in one.values}
        return [metric for metric in (*self.protocol.metrics, *BESIDE) if metric in held]

    def errors(self) -> Values:
        return standard_errors(self.scores, self.protocol)

    def rows(self) -> Dict[str, List[Dict[str, Any]]]:
        return {"sequences": self.sequences(), "objects": self.objects()}

    def sequences(self) -> List[Dict[str, Any]]:
        """A row for each sequence."""
        rows = by_sequence(self.scores, self.metrics)
        return [{"split": self.split, "sequence": name, **values} for name, values in rows.items()]

    def objects(self) -> List[Dict[str, Any]]:
        """A row for each object."""
        return [
            {"split": self.split, "sequence": one.sequence, "object": one.name, **one.values} for one in self.scores
        ]


class InstanceReport(Report):
    """Scores of instance masks."""

    protocol: InstanceProtocol

    def __init__(self, split: str, protocol: InstanceProtocol, score: InstanceScore) -> None:
        super().__init__(split, protocol)
        self.values, self._score = score.values, score
        self._warn(score.warnings)

    def errors(self) -> Values:
        return self._score.errors

    def rows(self) -> Dict[str, List[Dict[str, Any]]]:
        return {"categories": [{"split": self.split, **row} for row in self._score.categories]}


def public_warnings(lines: List[str]) -> List[str]:
    """At most twenty lines."""
    if len(lines) <= WARNING_LINES:
        return lines
    return [*lines[: WARNING_LINES - 1], f"… and {len(lines) - WARNING_LINES + 1} more warnings"]


def build_answer(phase: Phase, reports: List[Report], timings: Dict[str, float]) -> Dict[str, Any]:
    """The dict that `evaluate()` returns."""
    answer: Dict[str, Any] = {
        "result": [
            {shown.codename: _leaderboard(phase, shown, report.values)} for shown, report in zip(phase.splits, reports)
        ],
        "submission_result": public(phase, reports),
        "submission_metadata": {
            "phase": phase.codename,
            # Whole seconds, since time depends on the truth.
            "seconds": {name: round(spent) for name, spent in timings.items() if name not in phase.hidden},
            "versions": versions(),
        },
    }
    bars = [_error_bars(phase, shown, report) for shown, report in zip(phase.splits, reports)]
    if all(bar is not None for bar in bars):
        answer["error"] = bars
    return answer


def public(phase: Phase, reports: List[Report]) -> Dict[str, Any]:
    """What a participant may read in a file: rounded means of what the leaderboard shows, and of hidden splits nothing.

    Whoever knows each mask that was sent learns the truth from any number that depends on few frames.
    """
    parts = [(shown, report) for shown, report in zip(phase.splits, reports) if not shown.hidden]
    lines = [line for _, report in parts for line in report.warnings]
    return {
        "protocol": _protocol([report for _, report in parts]),
        "result": [{shown.codename: _rounded(shown, report.values)} for shown, report in parts],
        "scored": [shown.codename for shown in phase.splits],
        "warnings": public_warnings([_FIRST_FRAME.sub("", line) for line in lines]),
        "versions": versions(),
    }


def _rounded(shown: PhaseSplit, values: Values) -> Values:
    rounded: Values = {}
    for metric in shown.metrics:
        value = values.get(metric)
        rounded[metric] = None if value is None else round(float(value), DECIMALS)
    return rounded


def _protocol(reports: List[Report]) -> str:
    names = {report.protocol.name for report in reports}
    return names.pop() if len(names) == 1 else "several" if names else ""


def tables(reports: List[Report]) -> Dict[str, Any]:
    """Everything there is to know about the scores, for a file on one's own machine."""
    return {
        "protocol": _protocol(reports),
        "result": [{report.split: report.values} for report in reports],
        **_joined_rows(reports),
        "warnings": public_warnings([line for report in reports for line in report.warnings]),
        "versions": versions(),
    }


def _joined_rows(reports: List[Report]) -> Dict[str, List[Dict[str, Any]]]:
    tables: Dict[str, List[Dict[str, Any]]] = {}
    for report in reports:
        for name, rows in report.rows().items():
            tables.setdefault(name, []).extend(rows)
    return tables


def versions() -> Dict[str, str]:
    """What scored."""
    return {
        "segjudge": VERSION,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "pillow": PIL.__version__,
    }


def _leaderboard(phase: Phase, shown: PhaseSplit, values: Values) -> Dict[str, float]:
    unknown = [metric for metric in shown.metrics if metric not in values]
    if unknown:
        raise HostError(f"phases.py: {shown.protocol} has no metric {', '.join(unknown)}")
    return {metric: _number(phase, values[metric]) for metric in shown.metrics}


def _number(phase: Phase, value: Optional[float]) -> float:
    """A plain finite float: EvalAI knows no null, so nothing to average is 0."""
    number = float(value) if value is not None and np.isfinite(value) else 0.0
    return number * 100 if phase.percent else number


def _error_bars(phase: Phase, shown: PhaseSplit, report: Report) -> Optional[Dict[str, Dict[str, float]]]:
    """A standard error for every label, or None: EvalAI's page breaks on a partial one."""
    errors = report.errors()
    if not set(shown.metrics) <= set(errors):
        return None
    return {shown.codename: {f"error_{metric}": _number(phase, errors[metric]) for metric in shown.metrics}}
