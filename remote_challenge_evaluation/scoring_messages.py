"""What a worker and its scoring processes send each other, as JSON."""

from __future__ import annotations

from typing import NotRequired, TypedDict

from segjudge.evalai.result_shapes import SubmissionRow


class ScoredPhase(TypedDict):
    """A phase that this machine can score."""

    #: The file's name in the folder of annotations.
    annotation: str
    #: Split → labels of its leaderboard.
    labels: dict[str, list[str]]
    #: Within which a submission is scored.
    seconds: float


class AnnotationReport(TypedDict):
    """What an annotation file holds, or its problem."""

    facts: NotRequired[str]
    problem: NotRequired[str]


class ScoringRequest(TypedDict):
    """A submission to score."""

    submission: str
    codename: str
    annotation: str
    submission_metadata: SubmissionRow
    #: Bytes that the process may use.
    memory: int


class ScoringAnswer(TypedDict):
    """A result, or a sentence for the participant (`refused`), or a fault of ours (`incident`)."""

    accuracies: NotRequired[object]
    submission_result: NotRequired[object]
    refused: NotRequired[str]
    incident: NotRequired[str]
