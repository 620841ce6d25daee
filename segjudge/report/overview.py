"""Sections of any track: its metrics, its tables, kinds of mistakes with what they cost, and what scores come from."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from segjudge.evaluation_script.families.base.reports import Report, Row
from segjudge.evaluation_script.families.sequences.protocols import BESIDE

from .page import Section, environment
from .tables import citations, published

#: What a row of a table is called by, before its metrics.
NAMES = ("sequence", "object", "name", "id")
#: Warnings that a notebook shows.
WARNINGS = 5
#: A list has so many rows at most, the first ones.
MOST_ROWS = 1000


def summary(report: Report) -> Section:
    """Return a split's metrics with their intervals, and the field's published numbers."""
    metrics, values = list(report.protocol.metrics), report.values
    entries = published(report)
    others = [[f"{one['method']}, {one['dataset']}", *(one["values"].get(name) for name in metrics)] for one in entries]
    return Section(
        "summary",
        "Summary",
        {
            "report": report,
            "first": metrics[0],
            "rest": [name for name in metrics[1:] if name in values],
            "beside": [name for name in BESIDE if name in values],
            "intervals": report.intervals(),
            "errors": report.errors(),
            "citations": citations(entries),
            "columns": ["method", *metrics],
            "rows": [["these results", *(values[name] for name in metrics)], *others] if others else [],
        },
    )


def notebook_table(reports: list[Report], warnings: list[str], provenance: Mapping[str, object]) -> str:
    """Return for a notebook the metrics with their intervals, the first warnings, and what scored."""
    template = environment().get_template("notebook.html")
    return template.render(reports=reports, warnings=warnings, most=WARNINGS, provenance=provenance)


def tables(report: Report) -> Section:
    """Return the tables of a split, as they are in the JSON of scores."""
    found = {}
    for name, rows in report.rows().items():
        columns = [key for key in (rows[0] if rows else {}) if key != "split"]
        columns.sort(key=lambda key: key not in NAMES)
        found[name] = columns, [[row[key] for key in columns] for row in rows]
    return Section("tables", "Tables", {"tables": found})


def first_metric(rows: list[Row]) -> str:
    """Return the first metric of a table of categories."""
    return next((key for key in (rows[0] if rows else {}) if key not in ("split", "id", "name")), "")


def first_rows(rows: list[Row]) -> dict[str, object]:
    """Return the columns of a table, and its first rows."""
    return {"columns": list(rows[0]) if rows else [], "rows": [list(row.values()) for row in rows[:MOST_ROWS]]}


def listed(title: str, rows: list[Row], about: str) -> Section:
    """Return a table with a sentence above it."""
    if len(rows) > MOST_ROWS:
        about += f" The first {MOST_ROWS:,} of {len(rows):,}."
    return Section("listed", title, {"about": about, **first_rows(rows)})


def kinds_section(title: str, rows: list[Row], about: str, note: str = "") -> Section:
    """Return kinds of mistakes (kind, about, cost, and maybe count), each with a bar."""
    values = {
        "about": about,
        "counted": any("count" in row for row in rows),
        "rows": rows,
        "largest": max([row["cost"] for row in rows] + [1e-9]),
        "note": note,
    }
    return Section("kinds", title, values)


def digests(*found: Mapping[str, object]) -> str:
    """Return what tells a truth and results from others, by where scores come from."""
    named = [("truth", found[0].get("truth", "")), *(("results", one.get("submission", "")) for one in found)]
    text = ", ".join(f"{name} {str(digest).rpartition(':')[2][:12]}" for name, digest in named if digest)
    return re.sub(r"[^\w, ]", "", text, flags=re.ASCII)


def origins(warnings: list[str], provenance: Mapping[str, object]) -> Section:
    """Return what the scores come from, and the warnings."""
    text = json.dumps(provenance, indent=1, ensure_ascii=False)
    return Section("origins", "What was scored", {"warnings": warnings, "provenance": text})
