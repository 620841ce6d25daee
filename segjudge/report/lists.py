"""Sections of any track: a table with a sentence above it, and kinds of mistakes with what they cost."""

from __future__ import annotations

from segjudge.evaluation_script.reports import Row

from .page import Section

#: A list has so many rows at most, the first ones.
MOST_ROWS = 1000


def listed(title: str, rows: list[Row], about: str) -> Section:
    """Return a table with a sentence above it."""
    columns = list(rows[0]) if rows else []
    if len(rows) > MOST_ROWS:
        about += f" The first {MOST_ROWS:,} of {len(rows):,}."
    body = [list(row.values()) for row in rows[:MOST_ROWS]]
    return Section("listed", title, {"about": about, "columns": columns, "rows": body})


def kinds_section(title: str, rows: list[Row], about: str, note: str = "") -> Section:
    """Return kinds of mistakes (kind, about, cost, and maybe count), each with a bar."""
    values = {
        "about": about,
        "caption": "What each kind costs",
        "counted": any("count" in row for row in rows),
        "rows": rows,
        "largest": max([row["cost"] for row in rows] + [1e-9]),
        "note": note,
    }
    return Section("kinds", title, values)
