"""What each kind of failure costs, as one table for any track."""

from __future__ import annotations

from segjudge.diagnosis.error_kinds import KINDS
from segjudge.diagnosis.instances import diagnosed
from segjudge.diagnosis.units import UNIT_LOSSES
from segjudge.errors import UsageError
from segjudge.evaluation_script.instance_protocols import InstanceProtocol
from segjudge.evaluation_script.instance_truth import InstanceTruth
from segjudge.evaluation_script.reports import Report, Row, SequenceReport
from segjudge.evaluation_script.unit_counts import UnitAccumulator
from segjudge.failures import failures
from segjudge.prepared import PreparedScoring, ScoreRequest, prepared


def kinds_of(request: ScoreRequest | None, reports: list[Report]) -> list[Row]:
    """Return a row for each object, category with instances, or unit; counts of units need no request."""
    rows: list[Row] = []
    for report in reports:
        counted = report.counted
        if isinstance(counted, UnitAccumulator):
            losses = UNIT_LOSSES[report.protocol.track](counted)
            found = [dict(zip(losses.kinds, one, strict=True)) for one in losses.by_unit.tolist()]
            rows += [
                {"split": report.split, "name": name, **one} for name, one in zip(counted.names, found, strict=True)
            ]
        elif request is None:
            raise UsageError("kinds of failure need what `score` has read from files")
        elif isinstance(report, SequenceReport):
            rows += _of_objects(request, report)
        else:
            rows += _of_categories(request, report)
    return rows


def costs_of(job: PreparedScoring, report: Report) -> dict[str, float]:
    """Return what each kind costs a split altogether: AP50 of instances, the metrics of units."""
    truth, protocol, counted = job.splits[report.split], report.protocol, report.counted
    if isinstance(counted, UnitAccumulator):
        return UNIT_LOSSES[protocol.track](counted).totals()
    if not isinstance(truth, InstanceTruth) or not isinstance(protocol, InstanceProtocol):
        raise UsageError(f"failures of {protocol.name} have no kinds here")
    costs = diagnosed(job.path, truth, protocol, job.rules.limits).errors.costs()
    return {name: costs[name] for name in KINDS}


def _of_objects(request: ScoreRequest, report: SequenceReport) -> list[Row]:
    losses = failures(request, [report])
    return [
        {"split": report.split, "sequence": score.sequence, "object": score.name, **loss}
        for score, loss in zip(report.scores, losses, strict=True)
    ]


def _of_categories(request: ScoreRequest, report: Report) -> list[Row]:
    job, protocol = prepared(request), report.protocol
    truth = job.splits[report.split]
    if not isinstance(truth, InstanceTruth) or not isinstance(protocol, InstanceProtocol):
        raise UsageError(f"failures of {protocol.name} have no kinds")
    rows = diagnosed(job.path, truth, protocol, job.rules.limits).categories()
    return [{"split": report.split, "category": row["name"], **{name: row[name] for name in KINDS}} for row in rows]
