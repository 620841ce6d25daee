"""What each kind of failure takes of the objects of mask sequences, for tables and programs."""

from collections.abc import Iterator
from contextlib import closing

from segjudge.evaluation_script.families.sequences.engine import OpenedSequences
from segjudge.evaluation_script.families.sequences.losses import (
    KINDS,
    ScoredSequence,
    has_kinds,
    scored_sequences,
    view_sequence,
)
from segjudge.evaluation_script.families.sequences.metrics import SequenceReport
from segjudge.evaluation_script.families.sequences.protocols import SequenceProtocol
from segjudge.scoring.requests import PreparedScoring, ScoreRequest, prepare
from segjudge.system.errors import UsageError


def failures(request: ScoreRequest, reports: list[SequenceReport]) -> list[dict[str, float]]:
    """Return of each scored object, in the order of the reports, how much of 1 - J&F each kind takes."""
    job, losses = prepare(request), []
    for report in reports:
        check_kinds(report.protocol)
        for opened in sequences_of(job, report):
            objects = view_sequence(opened, report.protocol, "", 0).losses.objects
            losses += [dict(zip(KINDS, one.shares, strict=True)) for one in objects]
    return losses


def check_kinds(protocol: SequenceProtocol) -> None:
    """Raise UsageError where the kinds do not sum to what a protocol's mean loses."""
    if not has_kinds(protocol):
        raise UsageError(f"failures of {protocol.name} have no kinds: J&F is not the mean over its frames")


def sequences_of(job: PreparedScoring, report: SequenceReport) -> Iterator[ScoredSequence]:
    """Yield the sequences of a split that was scored."""
    with closing(job.scorers[report.split].open(job.results)) as opened:
        if not isinstance(opened, OpenedSequences):
            raise UsageError(f"failures of {report.protocol.name} have no kinds")
        yield from scored_sequences(opened, report)
