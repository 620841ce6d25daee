"""Tables for a terminal."""

import csv
import functools
import json
import os
from collections.abc import Mapping, Sequence
from typing import TypedDict

from segjudge.evaluation_script.families.base.reports import Report
from segjudge.evaluation_script.families.sequences.protocols import BESIDE
from segjudge.evaluation_script.files.problems import printable

PUBLISHED = os.path.join(os.path.dirname(__file__), "published.json")
#: The sequences of DAVIS, and the sets that they are in.
_SEQUENCES = os.path.join(os.path.dirname(os.path.dirname(__file__)), "interactive", "davis_sequences.csv")

#: Longer lists of sequences are shown by their lowest rows.
ROWS = 40


class PublishedNumbers(TypedDict):
    """What a method reached, as its authors published it."""

    protocol: str
    dataset: str
    method: str
    values: dict[str, float]
    #: A citation.
    source: str


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
    others = published(report) if compare else []
    for entry in others:
        values = entry["values"]
        label = f"{entry['method']}, {entry['dataset']}"
        rows.append([label, *(number(values[name]) if name in values else "" for name in names)])
    lines = [table([f"{report.split}, all", *names], rows)]
    if others:
        lines.append(f"Published: {citations(others)}")
    beside = ", ".join(f"{name} {number(report.values[name])}" for name in BESIDE if name in report.values)
    return "\n".join([*lines, f"\nBeside the protocol: {beside}"] if beside else lines)


def published(report: Report) -> list[PublishedNumbers]:
    """Return the field's numbers for a protocol, where the scored sequences are those of the published set.

    So they stand beside sets whose sequences are known here: those of DAVIS.
    """
    names = {str(row["sequence"]) for row in report.rows().get("sequences", []) if "sequence" in row}
    datasets = [dataset for dataset, members in _members().items() if members == names]
    with open(PUBLISHED, encoding="utf-8") as file:
        everything: list[PublishedNumbers] = json.load(file)
    return [one for one in everything if one["protocol"] == report.protocol.name and one["dataset"] in datasets]


@functools.cache
def _members() -> dict[str, set[str]]:
    """Return the sequences of published sets, by their names in the published numbers."""
    with open(_SEQUENCES, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    sets = {name: {row["sequence"] for row in rows if row["set"] == name} for name in ("val", "test-dev")}
    return {
        "DAVIS 2016 val": {row["sequence"] for row in rows if row["set"] == "val" and row["year"] == "2016"},
        "DAVIS 2017 val": sets["val"],
        "DAVIS 2017 unsupervised val": sets["val"],
        "DAVIS 2017 test-dev": sets["test-dev"],
    }


def citations(entries: Sequence[PublishedNumbers]) -> str:
    """Return where published numbers stand, once for each place: mostly files of GitHub repositories at a commit."""
    methods: dict[str, list[str]] = {}
    for entry in entries:
        methods.setdefault(entry["source"], []).append(entry["method"])
    return "; ".join(f"{', '.join(names)}: {source}" for source, names in methods.items())


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
