"""Tables for a terminal."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

from evaluation_script.answer import Report
from evaluation_script.sequence_protocols import BESIDE

PUBLISHED = os.path.join(os.path.dirname(__file__), "published.json")

#: Longer lists of sequences are shown by their lowest rows.
ROWS = 40


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns as wide as they must be: names to the left, numbers to the right."""
    widths = [max(len(row[column]) for row in [header, *rows]) for column in range(len(header))]

    def line(cells: Sequence[str]) -> str:
        rest = (cell.rjust(width) for cell, width in zip(cells[1:], widths[1:], strict=True))
        return "  ".join([cells[0].ljust(widths[0]), *rest]).rstrip()

    return "\n".join(line(row) for row in [header, *rows])


def number(value: float | None, digits: int = 3) -> str:
    """A number, or a dash where there is nothing to average."""
    return "–" if value is None else f"{value:.{digits}f}"


def of_report(report: Report) -> str:
    """A split's sequences and means, with the field's published numbers below."""
    metrics = [metric for metric in report.metrics if metric not in BESIDE]
    rows = report.sequences()
    note = ""
    if len(rows) > ROWS:
        rows = sorted(rows, key=lambda row: row[metrics[0]] if row[metrics[0]] is not None else 2.0)[:ROWS]
        note = f"(the {ROWS} lowest of {len(report.sequences())} sequences; --json and --csv hold all)\n"
    body = [[row["sequence"], *(number(row[metric]) for metric in metrics)] for row in rows]
    head = table([report.split, *metrics], body)
    return f"{head}\n{note}\n{means(report)}"


def means(report: Report) -> str:
    """The protocol's metrics, those beside it, and what others reached."""
    names = list(report.protocol.metrics)
    rows = [["this submission", *(number(report.values[name]) for name in names)]]
    rows += [
        [entry["method"], *(number(entry["values"][name]) if name in entry["values"] else "" for name in names)]
        for entry in published(report.protocol.name)
    ]
    beside = ", ".join(f"{name} {number(report.values[name])}" for name in BESIDE)
    lines = [table([f"{report.split}, all objects", *names], rows), f"beside the protocol: {beside}"]
    sources = {entry["dataset"] for entry in published(report.protocol.name)}
    if sources:
        lines.append(
            f"published numbers are for {', '.join(sorted(sources))}; sources in linejudge/report/published.json"
        )
    return "\n".join(lines)


def published(protocol: str) -> list[dict[str, Any]]:
    """The field's numbers for a protocol."""
    with open(PUBLISHED, encoding="utf-8") as file:
        return [entry for entry in json.load(file) if entry["protocol"] == protocol]


def leaderboard(title: str, rows: Mapping[str, Mapping[str, float]], order: str, digits: int = 4) -> str:
    """Submissions by their value of one label, best first."""
    ranked = sorted(rows.items(), key=lambda row: -row[1][order])
    labels = list(ranked[0][1])
    body = [
        [f"{place}. {name}", *(f"{values[label]:.{digits}f}" for label in labels)]
        for place, (name, values) in enumerate(ranked, 1)
    ]
    return table([title, *labels], body)
