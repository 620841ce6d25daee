"""Families that count by unit, such as an image: what each unit costs, and the sections of a report on that."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from segjudge.evaluation_script.families.base.reports import Report, Row
from segjudge.evaluation_script.masks.stack import Array
from segjudge.report.overview import first_metric, kinds_section, listed, tables
from segjudge.report.page import Section

_ORDER = "Those that cost most first."


@dataclass(frozen=True)
class UnitLosses:
    """What metrics lack to 1, as shares of units (or categories) by kind."""

    #: The kinds by name, and what they mean.
    kinds: dict[str, str]
    #: Rows are units in the truth's order, and categories in that of the scores; columns are kinds.
    by_unit: Array
    by_category: Array

    def totals(self) -> dict[str, float]:
        """Return what each kind costs altogether."""
        return dict(zip(self.kinds, self.by_unit.sum(axis=0).tolist(), strict=True))

    def rows(self, names: list[str], losses: Array) -> list[Row]:
        """Return a row for each name, those that cost most first."""
        order = np.argsort(-losses.sum(axis=1), kind="stable").tolist()
        return [
            {"name": names[one], "costs": float(losses[one].sum()), **dict(zip(self.kinds, losses[one].tolist()))}
            for one in order
        ]


def unit_sections(report: Report, names: list[str], losses: UnitLosses, metric: str, noun: str) -> list[Section]:
    """Return what kinds of mistakes, units and categories cost a metric; `noun` is what units are called."""
    about = (
        f"By kind of mistake. What all {noun} cost sums to what {metric} lacks to 1, and what all categories cost too."
    )
    totals = losses.totals()
    kinds = [{"kind": name, "about": what, "cost": totals[name]} for name, what in losses.kinds.items()]
    return [
        kinds_section(f"Where {metric} is lost", kinds, about),
        listed(noun.capitalize(), losses.rows(names, losses.by_unit), _ORDER),
        listed("Categories", _categories(report, losses), _ORDER),
        tables(report),
    ]


def _categories(report: Report, losses: UnitLosses) -> list[dict[str, object]]:
    """Return a row for each category: its name and first metric, and what it costs."""
    rows = report.rows()["categories"]
    metric = first_metric(rows)
    names, values = [str(row["name"]) for row in rows], {str(row["name"]): row[metric] for row in rows}
    found = losses.rows(names, losses.by_category)
    return [{"name": row["name"], metric: values[str(row["name"])], **row} for row in found]
