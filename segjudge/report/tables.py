"""Tables for a terminal."""

import json
import os
from collections.abc import Mapping, Sequence
from typing import TypedDict

from segjudge.evaluation_script.errors import printable
from segjudge.evaluation_script.reports import Report
from segjudge.evaluation_script.sequence_protocols import BESIDE

PUBLISHED = os.path.join(os.path.dirname(__file__), "published.json")

#: Longer lists of sequences are shown by their lowest rows.
ROWS = 40


class PublishedNumbers(TypedDict):
    """What a method reached, as its authors published it."""

    protocol: str
    dataset: str
    method: str
    values: dict[str, float]


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return columns as wide as they must be: names to the left, numbers to the right."""
    lines = [[printable(cell) for cell in row] for row in (header, *rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]

    def line(cells: Sequence[str]) -> str:
        rest = (cell.rjust(width) for cell, width in zip(cells[1:], widths[1:], strict=True))
        return "  ".join([cells[0].ljust(widths[0]), *rest]).rstrip()

    return "\n".join(line(row) for row in lines)


def number(value: float | None, digits: int = 3) -> str:
    """Return a number as text, or a dash where there is nothing to average."""
    return "–" if value is None else f"{value:.{digits}f}"


def of_report(report: Report, *, compare: bool) -> str:
    """Return a split's sequences and means; `compare` sets the field's published numbers below."""
    kind, rows = next(iter(report.rows().items()))
    key = "sequence" if kind == "sequences" else "name"
    metrics = [name for name in rows[0] if name not in (*BESIDE, "split", "id", key)] if rows else []
    note = ""
    if len(rows) > ROWS:
        note = f"(the {ROWS} lowest of {len(rows)} {kind}; --json holds all)\n"
        rows = sorted(rows, key=lambda row: row[metrics[0]] if row[metrics[0]] is not None else 2.0)[:ROWS]
    body = [[row[key], *(number(row[metric]) for metric in metrics)] for row in rows]
    head = table([report.split, *metrics], body)
    return f"{head}\n{note}\n{means(report, compare=compare)}"


def means(report: Report, *, compare: bool) -> str:
    """Return the protocol's metrics, their intervals, what others reached, and the statistics beside the protocol."""
    names = list(report.protocol.metrics)
    rows = [["this submission", *(number(report.values[name]) for name in names)]]
    found = report.intervals()
    if found:
        ends = {name: f"{number(low)}–{number(high)}" for name, (low, high) in found.items()}
        rows.append(["95 % interval", *(ends.get(name, "–") for name in names)])
    others = published(report.protocol.name, report.split) if compare else []
    for entry in others:
        values = entry["values"]
        label = f"{entry['method']}, {entry['dataset']}"
        rows.append([label, *(number(values[name]) if name in values else "" for name in names)])
    lines = [table([f"{report.split}, all", *names], rows)]
    if others:
        lines.append("(published numbers, on the data named beside them; sources in segjudge/report/published.json)")
    beside = ", ".join(f"{name} {number(report.values[name])}" for name in BESIDE if name in report.values)
    return "\n".join([*lines, f"\nBeside the protocol: {beside}"] if beside else lines)


def published(protocol: str, split: str) -> list[PublishedNumbers]:
    """Return the field's numbers for a protocol: those for this subset, else all."""
    with open(PUBLISHED, encoding="utf-8") as file:
        everything: list[PublishedNumbers] = json.load(file)
    entries = [entry for entry in everything if entry["protocol"] == protocol]
    return [entry for entry in entries if entry["dataset"].endswith(f" {split}")] or entries


def leaderboard(
    title: str, rows: Mapping[str, Mapping[str, object]], labels: Sequence[str], order: str, *, descending: bool
) -> str:
    """Return submissions by their value of one label, best first; what is no number counts as 0, as on EvalAI."""
    ranked = sorted(rows.items(), key=lambda row: _sort_value(row[1].get(order)), reverse=descending)
    body = [
        [f"{rank}. {name}", *(_score(values.get(label)) for label in labels)]
        for rank, (name, values) in enumerate(ranked, 1)
    ]
    return table([title, *labels], body)


def _sort_value(value: object) -> float:
    return float(value) if isinstance(value, (int, float)) else 0.0


def _score(value: object) -> str:
    return number(value, 4) if value is None or isinstance(value, (int, float)) else str(value)
