"""The stored result of `evaluate()` or `score --json`, read and checked as untrusted input."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NoReturn

from segjudge.evaluation_script.families import PROTOCOLS
from segjudge.evaluation_script.families.base.family import Values
from segjudge.evaluation_script.families.base.reports import Report, Row
from segjudge.evaluation_script.files.limits import check_memory, size_text
from segjudge.evaluation_script.files.problems import Flaw
from segjudge.system.errors import UsageError

#: The maximum bytes of a stored result's file, and of its memory.
_MOST_BYTES, _MOST_MEMORY = 256 << 20, 1 << 31
#: The keys of a stored result that are not tables.
_BESIDE_TABLES = frozenset({"result", "scored", "hidden", "warnings", "errors", "intervals"})
_Intervals = dict[str, tuple[float, float]]


# ── the shapes of its parts ─────────────────────────────────────────────────


def refuse(fault: str) -> NoReturn:
    """Raise UsageError for anything but a stored result."""
    raise UsageError(f"this is not a stored result: it {fault}")


def as_mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else refuse("has a value that is not a mapping")


def as_list(value: object) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else refuse("has a value that is not a list")


def as_text(value: object) -> str:
    return value if isinstance(value, str) else refuse("has a value that is not text")


def as_number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        refuse("has a value that is not a number")
    return float(value)


def as_whole_numbers(value: object, lowest: int, highest: int) -> list[int]:
    numbers = as_list(value)
    if not all(type(number) is int and lowest <= number <= highest for number in numbers):
        refuse(f"has a value that is not a list of numbers from {lowest} to {highest}")
    return numbers


def _value_of(value: object) -> float | None:
    return None if value is None else as_number(value)


def _interval_of(value: object) -> tuple[float, float]:
    bounds = [as_number(bound) for bound in as_list(value)]
    return (bounds[0], bounds[1]) if len(bounds) == 2 else refuse("has an interval without two ends")


def _rows_of(name: str, value: list[object]) -> list[Row]:
    """Return the rows of a table, all of the same columns; each names its split."""
    rows = [as_mapping(row) for row in value]
    for row in rows:
        if not isinstance(row.get("split"), str) or row.keys() != rows[0].keys():
            refuse(f"has rows of {name} without a split, or of different columns")
        for cell in row.values():
            if not isinstance(cell, str):
                _value_of(cell)
    return [dict(row) for row in rows]


# ── its splits ──────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class _StoredProtocol:
    """A protocol as described by a stored result, with the stored metrics."""

    family: ClassVar[str] = ""
    name: str
    about: str
    metrics: tuple[str, ...]
    revision: int = 0
    form: str = ""


class _StoredReport(Report):
    """A split of a stored result; errors and intervals are those that were stored."""

    def __init__(
        self,
        split: str,
        protocol: _StoredProtocol,
        values: Values,
        rows: dict[str, list[Row]],
        errors: Values,
        intervals: _Intervals,
    ) -> None:
        super().__init__(split, protocol, values, rows, [])
        self._errors, self._intervals = errors, intervals

    def errors(self, metrics: object = ()) -> Values:
        del metrics
        return self._errors

    def intervals(self, level: float = 0.95, metrics: object = ()) -> _Intervals:
        del level, metrics
        return self._intervals


def read_result(path: str) -> Mapping[str, object]:
    """Read the JSON of a stored result; raises UsageError for anything else."""
    try:
        if os.path.getsize(path) > _MOST_BYTES:
            refuse(f"is larger than {size_text(_MOST_BYTES)}")
        with open(path, "rb") as file:
            data = file.read()
        check_memory(data, _MOST_MEMORY, "")
        return as_mapping(json.loads(data))
    except OSError as error:
        raise UsageError(f"{path}: cannot be read ({error.strerror})") from None
    except (Flaw, ValueError, RecursionError):
        raise UsageError(f"{path}: is not JSON that can be read") from None


def read_reports(result: Mapping[str, object]) -> list[Report]:
    """Read the splits of a stored result; raises UsageError for anything else."""
    values, errors, intervals = (_read_by_split(result, key) for key in ("result", "errors", "intervals"))
    if "result" not in result:
        refuse("has no result")
    tables = {
        name: _rows_of(name, rows)
        for name, rows in result.items()
        if name not in _BESIDE_TABLES and isinstance(rows, list)
    }
    reports: list[Report] = []
    for split, metrics in values.items():
        scores = {metric: _value_of(value) for metric, value in metrics.items()}
        if not scores:
            refuse("has a split without metrics")
        rows = {
            name: [{key: cell for key, cell in row.items() if key != "split"} for row in table if row["split"] == split]
            for name, table in tables.items()
        }
        reports.append(
            _StoredReport(
                split,
                _protocol_of(result, split, scores),
                scores,
                {name: table for name, table in rows.items() if table},
                {metric: _value_of(value) for metric, value in errors.get(split, {}).items()},
                {metric: _interval_of(bounds) for metric, bounds in intervals.get(split, {}).items()},
            )
        )
    return reports


def _read_by_split(result: Mapping[str, object], key: str) -> dict[str, Mapping[str, Any]]:
    """Read `[{SPLIT: {NAME: …}}, …]`."""
    return {
        split: as_mapping(values)
        for entry in as_list(result.get(key, []))
        for split, values in as_mapping(entry).items()
    }


def _protocol_of(result: Mapping[str, object], split: str, values: Values) -> _StoredProtocol:
    """Return the known facts of a split's protocol; metrics are in its order if the protocol is ours."""
    provenance = as_mapping(result.get("provenance", {}))
    stored = as_mapping(as_mapping(provenance.get("protocols", {})).get(split, {}))
    name = str(stored.get("name", result.get("protocol", "")))
    protocol = PROTOCOLS.get(name)
    if protocol is None or stored.get("changed"):
        return _StoredProtocol(name, "", tuple(values))
    metrics = [metric for metric in protocol.metrics if metric in values]
    return _StoredProtocol(name, protocol.about, tuple(metrics or values))
