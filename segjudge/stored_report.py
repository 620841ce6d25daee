"""The page of a stored result, without truth and submission: what `evaluate()` or `segjudge score --json` left."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from segjudge.errors import UsageError
from segjudge.evaluation_script.answer import Report, Row
from segjudge.evaluation_script.phase import PROTOCOLS
from segjudge.evaluation_script.sequence_metrics import Values
from segjudge.report.lists import listed
from segjudge.report.overview import origins, summary, tables
from segjudge.report.page import ReportPage, Section, rendered

#: What a stored result holds beside its tables.
_BESIDE_TABLES = frozenset({"result", "scored", "warnings", "errors", "intervals"})


def stored_page(result: Mapping[str, object], title: str) -> str:
    """Return the page of a `submission_result`, of any track and level; raises UsageError for anything else."""
    sections = []
    reports = _reports(result)
    for report in reports:
        found = [summary(report), *([tables(report)] if report.rows() else [])]
        sections += [one.of_split(report.split) for one in found] if len(reports) > 1 else found
    if not reports:
        sections.append(listed("Summary", [], "The scores of this phase are not shown."))
    provenance = result.get("provenance") or result.get("versions") or {}
    return rendered(ReportPage(title, [*sections, _origins(result, _mapping(provenance))]))


@dataclass(frozen=True)
class StoredProtocol:
    """What a stored result tells of a protocol; its metrics are those that were stored."""

    track: ClassVar[str] = ""
    name: str
    about: str
    metrics: tuple[str, ...]
    revision: int = 0
    form: str = ""


class StoredReport(Report):
    """A split of a stored result."""

    def __init__(self, split: str, values: Values, protocol: StoredProtocol, rows: dict[str, list[Row]]) -> None:
        super().__init__(split, protocol, values, rows, [])
        self.found_errors: Values = {}
        self.found_intervals: dict[str, tuple[float, float]] = {}

    def errors(self, metrics: object = ()) -> Values:
        del metrics
        return self.found_errors

    def intervals(self, level: float = 0.95, metrics: object = ()) -> dict[str, tuple[float, float]]:
        del level, metrics
        return self.found_intervals


def _reports(result: Mapping[str, object]) -> list[StoredReport]:
    """Return the splits of a stored result."""
    values, errors, intervals = (_by_split(result, key) for key in ("result", "errors", "intervals"))
    if "result" not in result:
        raise _wrong("has no result")
    every = {name: _rows(name, rows) for name, rows in result.items() if _is_table(name, rows)}
    reports = []
    for split, found in values.items():
        scores = {metric: _number(value) for metric, value in found.items()}
        if not scores:
            raise _wrong("has a split without metrics")
        rows = {
            name: [{key: cell for key, cell in row.items() if key != "split"} for row in table if row["split"] == split]
            for name, table in every.items()
        }
        protocol = _protocol(result, split, scores)
        report = StoredReport(split, scores, protocol, {name: table for name, table in rows.items() if table})
        report.found_errors = {metric: _number(value) for metric, value in errors.get(split, {}).items()}
        report.found_intervals = {metric: _interval(ends) for metric, ends in intervals.get(split, {}).items()}
        reports.append(report)
    return reports


def _protocol(result: Mapping[str, object], split: str, values: Values) -> StoredProtocol:
    """Return what is known of a split's protocol; metrics in its order, if it is one of ours."""
    named = _mapping(_mapping(_mapping(result.get("provenance", {})).get("protocols", {})).get(split, {}))
    name = str(named.get("name", result.get("protocol", "")))
    ours = PROTOCOLS.get(name)
    if ours is None or named.get("changed"):
        return StoredProtocol(name, "", tuple(values))
    metrics = [metric for metric in ours.metrics if metric in values]
    return StoredProtocol(name, ours.about, tuple(metrics or values))


def _origins(result: Mapping[str, object], provenance: Mapping[str, object]) -> Section:
    warnings = result.get("warnings", [])
    if not isinstance(warnings, list):
        raise _wrong("has warnings that are no list")
    return origins([str(line) for line in warnings], provenance)


# ── shapes ──────────────────────────────────────────────────────────────────


def _wrong(found: str) -> UsageError:
    return UsageError(f"this is no result that was stored: it {found}")


def _mapping(value: object) -> Mapping[str, object]:
    if not isinstance(value, dict):
        raise _wrong("has a list or a value where names belong")
    return value


def _by_split(result: Mapping[str, object], key: str) -> dict[str, Mapping[str, object]]:
    """Return what `[{SPLIT: {METRIC: …}}, …]` holds."""
    entries = result.get(key, [])
    if not isinstance(entries, list):
        raise _wrong(f"has a {key} that is no list of splits")
    return {split: _mapping(found) for entry in entries for split, found in _mapping(entry).items()}


def _number(value: object) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise _wrong("has something else where a number belongs")
    return float(value)


def _interval(ends: object) -> tuple[float, float]:
    if not isinstance(ends, (list, tuple)) or len(ends) != 2:
        raise _wrong("has an interval without two ends")
    low, high = (_number(end) for end in ends)
    if low is None or high is None:
        raise _wrong("has an interval without two ends")
    return low, high


def _is_table(name: str, rows: object) -> bool:
    return name not in _BESIDE_TABLES and isinstance(rows, list)


def _rows(name: str, rows: object) -> list[Row]:
    """Return the rows of a table, all of the same columns; each names its split."""
    found = [_mapping(row) for row in rows] if isinstance(rows, list) else []
    for row in found:
        if not isinstance(row.get("split"), str) or row.keys() != found[0].keys():
            raise _wrong(f"has rows of {name} without a split, or of different columns")
        for cell in row.values():
            if not isinstance(cell, str):
                _number(cell)
    return [dict(row) for row in found]
