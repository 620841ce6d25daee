"""Before any submission is touched: token, rights, queue, phases, labels and annotations."""

from __future__ import annotations

import os
from typing import Any

from linejudge.evalai.client import ApiError
from linejudge.evalai.jobs import Jobs

from .settings import Settings


class StartError(Exception):
    """The challenge cannot be scored here; the text says what to mend."""


def checked(jobs: Jobs, told: Settings, phases: dict[str, Any]) -> list[str]:
    """Lines about what is in place; raises `StartError` where something is not, and `ApiError` where nobody answers."""
    challenge = _challenge(jobs, told)
    lines = [f"token: accepted by {told.api_server}", f"queue: {told.queue_name} is of challenge {told.challenge_pk}"]
    lines.append(f"challenge: {challenge.get('title', '')}, remote evaluation, and the token is a host's")
    held = {str(row.get("codename")): row for row in jobs.phases()}
    wrong = [f"phases.py has no phase {name}: its submissions would fail" for name in held.keys() - phases.keys()]
    for name in sorted(held.keys() & phases.keys()):
        path = os.path.join(told.annotations, phases[name]["annotation"])
        if not os.path.isfile(path):
            wrong.append(f"{path}: there is no annotation file for {name}; set ANNOTATIONS")
        else:
            lines.append(f"phase {held[name]['id']}: {name}, {path}, {', '.join(phases[name]['labels'])}")
    shown: dict[Any, int] = {}
    for split in jobs.splits():
        shown[split.get("challenge_phase")] = shown.get(split.get("challenge_phase"), 0) + 1
    for name in sorted(held.keys() & phases.keys()):
        count, scored = shown.get(held[name]["id"], 0), len(phases[name]["labels"])
        if count != scored:
            wrong.append(f"{name}: EvalAI shows {count} splits, phases.py scores {scored}; push the challenge again")
    if wrong:
        raise StartError("\n".join(wrong))
    return lines


def _challenge(jobs: Jobs, told: Settings) -> dict[str, Any]:
    try:
        challenge = jobs.challenge()
    except ApiError as error:
        if error.status == 400:
            raise StartError(f"QUEUE_NAME: {error}") from None
        raise
    if int(challenge.get("id", 0)) != told.challenge_pk:
        found = f"CHALLENGE_PK is {told.challenge_pk}, but the queue is of challenge {challenge.get('id')}"
        raise StartError(found)
    if challenge.get("is_docker_based"):
        raise StartError("This challenge runs code that participants upload: another worker scores it, not this one.")
    if not challenge.get("remote_evaluation"):
        raise StartError(
            "This challenge has remote_evaluation: False, so EvalAI's own worker scores it, and both would report. "
            "Push it with --variant remote."
        )
    return challenge
