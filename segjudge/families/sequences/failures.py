"""What each kind of failure takes of the objects of mask sequences, for tables and programs."""

from collections.abc import Iterator
from contextlib import closing

from segjudge.evaluation_script.families.base.reports import Report, Row
from segjudge.evaluation_script.families.sequences.engine import OpenedSequences
from segjudge.evaluation_script.families.sequences.losses import (
    KINDS,
    ScoredSequence,
    has_kinds,
    pair_with_scores,
    view_sequence,
)
from segjudge.evaluation_script.families.sequences.metrics import SequenceReport
from segjudge.evaluation_script.families.sequences.protocols import SequenceProtocol
from segjudge.families.base.tools import ScoringInputs
from segjudge.system.errors import UsageError


def list_failures(inputs: ScoringInputs, report: Report) -> list[Row]:
    """Return of each scored object, in the order of the report, how much of 1 - J&F each kind takes."""
    if not isinstance(report, SequenceReport):
        raise TypeError(f"{report.split} holds no mask sequences")
    check_kinds(report.protocol)
    objects = [
        lost
        for opened in sequences_of(inputs, report)
        for lost in view_sequence(opened, report.protocol, "", 0).losses.objects
    ]
    return [
        {"sequence": score.sequence, "object": score.name, **dict(zip(KINDS, lost.shares, strict=True))}
        for score, lost in zip(report.scores, objects, strict=True)
    ]


def check_kinds(protocol: SequenceProtocol) -> None:
    """Raise UsageError where the kinds do not sum to what a protocol's mean loses."""
    if not has_kinds(protocol):
        raise UsageError(f"failures of {protocol.name} have no kinds: J&F is not the mean over its frames")


def sequences_of(inputs: ScoringInputs, report: SequenceReport) -> Iterator[ScoredSequence]:
    """Yield the sequences of a split that was scored."""
    with closing(inputs.scorers[report.split].open(inputs.results)) as opened:
        if not isinstance(opened, OpenedSequences):
            raise UsageError(f"failures of {report.protocol.name} have no kinds")
        yield from pair_with_scores(opened.pairs, report)
