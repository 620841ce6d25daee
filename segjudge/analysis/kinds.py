"""What each kind of failure costs, as one table for any track."""

from __future__ import annotations

from segjudge.evaluation_script.families.base.reports import Report, Row
from segjudge.evaluation_script.families.base.units import UnitAccumulator
from segjudge.evaluation_script.families.sequences.metrics import SequenceReport
from segjudge.families.base.unit_losses import UNIT_LOSSES
from segjudge.families.instances.diagnosis import diagnosed
from segjudge.families.instances.error_kinds import KINDS
from segjudge.families.sequences.failures import failures
from segjudge.scoring.requests import PreparedScoring, ScoreRequest, prepare
from segjudge.system.errors import UsageError


def kinds_of(request: ScoreRequest | None, reports: list[Report]) -> list[Row]:
    """Return a row for each object, category with instances, or unit; counts of units need no request."""
    rows: list[Row] = []
    for report in reports:
        counted = report.counts
        if isinstance(counted, UnitAccumulator):
            losses = UNIT_LOSSES[report.protocol.track](counted)
            for name, costs in zip(counted.names, losses.by_unit.tolist(), strict=True):
                rows.append({"split": report.split, "name": name, **dict(zip(losses.kinds, costs, strict=True))})
        elif request is None:
            raise UsageError("kinds of failure need what `score` has read from files")
        elif isinstance(report, SequenceReport):
            for score, costs in zip(report.scores, failures(request, [report]), strict=True):
                rows.append({"split": report.split, "sequence": score.sequence, "object": score.name, **costs})
        else:
            for row in diagnosed(prepare(request), report).categories():
                costs = {name: row[name] for name in KINDS}
                rows.append({"split": report.split, "category": row["name"], **costs})
    return rows


def costs_of(job: PreparedScoring, report: Report) -> dict[str, float]:
    """Return what each kind costs a split altogether: AP50 of instances, the metrics of units."""
    if isinstance(report.counts, UnitAccumulator):
        return UNIT_LOSSES[report.protocol.track](report.counts).totals()
    costs = diagnosed(job, report).errors.costs()
    return {name: costs[name] for name in KINDS}
