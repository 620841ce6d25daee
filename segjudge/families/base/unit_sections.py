"""What a report shows of the tracks that count by unit: which units, categories and kinds of mistakes cost most."""

from __future__ import annotations

from typing import TYPE_CHECKING

from segjudge.evaluation_script.families.base.reports import Report
from segjudge.evaluation_script.families.base.units import UnitAccumulator
from segjudge.evaluation_script.families.panoptic.protocols import PanopticProtocol
from segjudge.evaluation_script.families.semantic.protocols import SemanticProtocol
from segjudge.families.base.unit_losses import UNIT_LOSSES, UnitLosses
from segjudge.report.overview import first_metric, kinds_section, listed, tables
from segjudge.report.page import PageOptions, Sections

if TYPE_CHECKING:
    from segjudge.scoring.requests import PreparedScoring

FIRST = "Those that cost most first."


def unit_sections(_job: PreparedScoring, report: Report, _options: PageOptions) -> Sections:
    """Return the sections of a split that was counted by unit."""
    counted = report.counts
    if not isinstance(counted, UnitAccumulator):
        raise TypeError(f"{report.split} was not counted by unit")
    losses = UNIT_LOSSES[report.protocol.track](counted)
    metric, noun = _names(report)
    about = (
        f"By kind of mistake. What all {noun} cost sums to what {metric} lacks to 1, and what all categories cost too."
    )
    totals = losses.totals()
    kinds = [{"kind": name, "about": what, "cost": totals[name]} for name, what in losses.kinds.items()]
    return [
        kinds_section(f"Where {metric} is lost", kinds, about),
        listed(noun.capitalize(), losses.rows(counted.names, losses.by_unit), FIRST),
        listed("Categories", _categories(report, losses), FIRST),
        tables(report),
    ], {}


def _names(report: Report) -> tuple[str, str]:
    """Return what is lost, and what units are called."""
    protocol = report.protocol
    if isinstance(protocol, PanopticProtocol):
        return ("VPQ", "videos") if protocol.video else ("PQ", "images")
    return ("mIoU", "videos") if isinstance(protocol, SemanticProtocol) else ("DetA and AssA", "sequences")


def _categories(report: Report, losses: UnitLosses) -> list[dict[str, object]]:
    """Return a row for each category: its name and first metric, and what it costs."""
    rows = report.rows()["categories"]
    metric = first_metric(rows)
    names, values = [str(row["name"]) for row in rows], {str(row["name"]): row[metric] for row in rows}
    found = losses.rows(names, losses.by_category)
    return [{"name": row["name"], metric: values[str(row["name"])], **row} for row in found]
