"""The JSON messages between a worker and its scoring processes."""

from __future__ import annotations

from typing import NotRequired, TypedDict

from segjudge.platforms.evalai.rows import SubmissionRow


class ScorerChoice(TypedDict):
    """The settings that decide whose `evaluate()` scores."""

    #: The bundle's folder; empty for the installed phases.
    bundle: str
    #: The file with a host's own `evaluate()`, and the interpreter for it.
    evaluate: str
    scorer_python: str
    #: The folder of annotations.
    annotations: str
    #: Within which a host's own `evaluate()` has to answer.
    scoring_seconds: float


class ScoredPhase(TypedDict):
    """A phase that this machine can score."""

    #: The file's name in the folder of annotations; empty where a host's `evaluate()` finds its own.
    annotation: str
    #: Split → labels of its leaderboard.
    labels: dict[str, list[str]]
    #: Within which a submission is scored.
    seconds: float
    #: Of a host's own `evaluate()`: what runs it, the splits that hosts alone see, and whether it is given the file.
    command: NotRequired[list[str]]
    hidden: NotRequired[list[str]]
    needs_annotation: NotRequired[bool]


class AnnotationReport(TypedDict):
    """What the annotation files hold, a line each, and the problems of those that cannot be used."""

    facts: list[str]
    problems: list[str]


class ScoringRequest(TypedDict):
    """A submission to score."""

    submission: str
    codename: str
    annotation: str
    submission_metadata: SubmissionRow
    #: Bytes that the process may use.
    memory: int
    bundle: str
    #: Of a host's own `evaluate()`: what runs it, and the splits that hosts alone see.
    command: list[str]
    hidden: list[str]


class ScoringAnswer(TypedDict):
    """A result, or a sentence for the participant (`refused`), or a fault of ours (`incident`)."""

    accuracies: NotRequired[object]
    #: What `evaluate()` left beside the scores, which hosts read.
    metadata: NotRequired[object]
    refused: NotRequired[str]
    incident: NotRequired[str]
