"""What crosses the REST API: rows that the server sends, and results that it takes."""

from __future__ import annotations

import datetime
import math
from collections.abc import Collection
from typing import Any

#: The three shapes: `[{split: {metric: value}}]`, and what the API wants of it.
Accuracies = list[dict[str, Any]]


#: No database has as many rows; SQLite and Postgres end at 2^63.
_NO_KEY = 1 << 62
_LONGEST_MOMENT = 64


class ShapeError(Exception):
    """The server would refuse a result."""


def for_rest(result: list[dict[str, dict[str, float]]], hidden: Collection[str] = ()) -> Accuracies:
    """`evaluate()`'s result as the REST API's list; participants read the accuracies of splits that are not hidden."""
    return [
        {"split": split, "show_to_participant": split not in hidden, "accuracies": dict(values)}
        for entry in result
        for split, values in entry.items()
    ]


def number_of(told: Any) -> int:
    """A key of the server's database, which comes as a number or as a text; 0 for everything else."""
    if isinstance(told, str) and told.isascii() and told.isdecimal() and len(told) < 20:
        told = int(told)
    if isinstance(told, bool) or not isinstance(told, int):
        return 0
    return told if 0 < told < _NO_KEY else 0


def submission_of(row: Any, number: int = 0) -> dict[str, Any] | None:
    """A row that can be a submission, and this one where a number is given, with its keys as numbers."""
    if not isinstance(row, dict):
        return None
    known, phase, resumed = (row.get(name) for name in ("id", "challenge_phase", "rerun_resumed_at"))
    if not number_of(known) or not number_of(phase) or (number and number_of(known) != number):
        return None
    if not isinstance(row.get("status"), str) or not (resumed is None or _is_moment(resumed)):
        return None
    return {**row, "id": number_of(known), "challenge_phase": number_of(phase)}


def _is_moment(told: Any) -> bool:
    try:
        return isinstance(told, str) and len(told) <= _LONGEST_MOMENT and bool(datetime.datetime.fromisoformat(told))
    except ValueError:
        return False


def phase_of(row: Any) -> dict[str, Any] | None:
    """A row that can be a phase."""
    if not isinstance(row, dict) or not number_of(row.get("id")) or not isinstance(row.get("codename"), str):
        return None
    return {**row, "id": number_of(row["id"])}


def labels_of(split: dict[str, Any]) -> list[str] | None:
    """The labels of a phase split's leaderboard; None where the server does not send them."""
    schema = split.get("leaderboard_schema")
    labels = schema.get("labels") if isinstance(schema, dict) else None
    return [str(label) for label in labels] if isinstance(labels, list) else None


def judged(accuracies: Any, labels: dict[str, list[str]]) -> Accuracies:
    """The list, when the server would take it: known splits and labels, and finite plain numbers."""
    if not isinstance(accuracies, list):
        raise ShapeError("the result is not a list of splits")
    for entry in accuracies:
        split = entry.get("split") if isinstance(entry, dict) else None
        if not isinstance(split, str) or split not in labels or not isinstance(entry.get("accuracies"), dict):
            raise ShapeError(f"the result names the split {split!r}; the phase has {', '.join(labels)}")
        for name, value in entry["accuracies"].items():
            if name not in labels[split]:
                raise ShapeError(f"{split}: {name!r} is not a label of its leaderboard")
            if not _is_number(value):
                raise ShapeError(f"{split}: {name} is {repr(value)[:40]}, which is not a finite number")
    return accuracies


def _is_number(value: Any) -> bool:
    try:
        return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    except OverflowError:  # an integer beyond every float
        return False
