"""Before any submission is touched: token, rights, queue, phases, labels and annotations."""

from __future__ import annotations

import os
from typing import Any

from segjudge.evalai.client import ApiError
from segjudge.evalai.jobs import Jobs
from segjudge.evalai.result_shapes import ChallengeRow, labels_of, number_of

from .scoring_messages import AnnotationReport, ScoredPhase
from .settings import WorkerSettings


class StartError(Exception):
    """The challenge cannot be scored here; the text says what to fix."""


def checked(jobs: Jobs, told: WorkerSettings, phases: dict[str, ScoredPhase]) -> list[str]:
    """Lines about what is in place; raises `StartError` where something is not, and `ApiError` where nobody answers."""
    challenge = _challenge(jobs, told)
    lines = [f"token: accepted by {told.api_server}", f"queue: {told.queue_name} is of challenge {told.challenge_pk}"]
    lines.append(f"challenge: {challenge.get('title', '')}, remote evaluation, and the token is a host's")
    held = {row["codename"]: row for row in jobs.phases()}
    wrong = [f"phases.py has no phase {name}: its submissions would fail" for name in sorted(held.keys() - phases)]
    shown = jobs.splits()
    for name in sorted(held.keys() & phases.keys()):
        path = os.path.join(told.annotations, phases[name]["annotation"])
        if not os.path.isfile(path):
            wrong.append(f"{path}: there is no annotation file for {name}; set ANNOTATIONS")
        else:
            lines.append(f"phase {held[name]['id']}: {name}, {path}, {', '.join(phases[name]['labels'])}")
        ours = [one for one in shown if number_of(one.get("challenge_phase")) == held[name]["id"]]
        wrong += _compared(name, ours, phases[name]["labels"])
    if wrong:
        raise StartError("\n".join(wrong))
    return lines


def checked_annotations(found: dict[str, AnnotationReport], phases: dict[str, ScoredPhase]) -> list[str]:
    """A line for each annotation file that was read; raises `StartError` where one cannot be scored with."""
    wrong = [report["problem"] for name, report in found.items() if name in phases and "problem" in report]
    if wrong:
        raise StartError("\n".join(wrong))
    return [f"annotations of {name}: {entry['facts']}" for name, entry in sorted(found.items()) if name in phases]


def _compared(name: str, shown: list[dict[str, Any]], scored: dict[str, list[str]]) -> list[str]:
    """What of a phase's splits and labels the server has otherwise."""
    if len(shown) != len(scored):
        return [f"{name}: EvalAI shows {len(shown)} splits, phases.py scores {len(scored)}; push the challenge again"]
    theirs = [labels for labels in map(labels_of, shown) if labels is not None]
    if len(theirs) != len(shown):
        return []  # a server that does not send them
    wrong = []
    for split, labels in scored.items():
        same = next((one for one in theirs if set(one) == set(labels)), None)
        if same is not None:
            theirs.remove(same)
            continue
        others = "; ".join(", ".join(one) for one in theirs)
        wrong.append(
            f"{name}: phases.py scores {split} as {', '.join(labels)}, but EvalAI's leaderboard has {others}. "
            "Labels cannot change once a challenge is there: change phases.py"
        )
    return wrong


def _challenge(jobs: Jobs, told: WorkerSettings) -> ChallengeRow:
    try:
        challenge = jobs.challenge()
    except ApiError as error:
        if error.status == 400:
            raise StartError(f"QUEUE_NAME: {error}") from None
        raise
    if challenge["id"] != told.challenge_pk:
        raise StartError(f"CHALLENGE_PK is {told.challenge_pk}, but the queue is of challenge {challenge['id']}")
    if challenge.get("is_docker_based"):
        raise StartError("This challenge runs code that participants upload: another worker scores it, not this one.")
    if not challenge.get("remote_evaluation"):
        raise StartError(
            "This challenge has remote_evaluation: False, so EvalAI's own worker scores it, and both would report. "
            "Push it with --variant remote."
        )
    return challenge
