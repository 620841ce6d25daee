"""Scores in a notebook: one small table for each split, in the notebook's own colours."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

from segjudge.evaluation_script.answer import Report

from .tables import number

_CELL = '<td style="text-align:right">{}</td>'
#: Warnings that are shown.
WARNINGS = 5


def html_of(reports: list[Report], warnings: list[str], provenance: Mapping[str, Any]) -> str:
    """Return the metrics of each split with their intervals, the first warnings, and what scored."""
    lines = [_table(report) for report in reports]
    lines += [f"<div>⚠ {escape(line[:300])}</div>" for line in warnings[:WARNINGS]]
    if len(warnings) > WARNINGS:
        lines.append(f"<div>… and {len(warnings) - WARNINGS} more warnings</div>")
    scored = f"segjudge {provenance['version']}, {provenance['counted_by']}" if provenance else ""
    return "\n".join([*lines, f"<small>{escape(scored)}</small>"])


def _table(report: Report) -> str:
    found, errors = report.intervals(), report.errors()
    rows = []
    for metric, value in report.values.items():
        low, high = (number(end) for end in found.get(metric, (None, None)))
        cells = [number(value), number(errors.get(metric)), f"{low} to {high}" if metric in found else "–"]
        rows.append(f"<tr><th>{escape(metric)}</th>{''.join(map(_CELL.format, cells))}</tr>")
    head = "".join(f"<th>{name}</th>" for name in ("", "value", "standard error", "95 %"))
    title = f"{escape(report.split)}, {escape(report.protocol.name)} (revision {report.protocol.revision})"
    return f"<table><caption>{title}</caption><tr>{head}</tr>{''.join(rows)}</table>"
