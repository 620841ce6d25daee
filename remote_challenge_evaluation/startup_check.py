"""The check of token, rights, queue, phases, labels and annotations before any submission is touched."""

from __future__ import annotations

import os

from segjudge.platforms.evalai.client import ApiError, Jobs
from segjudge.platforms.evalai.rows import ChallengeRow, board_labels, parse_key

from .scoring_messages import ScoredPhase
from .settings import WorkerSettings


class StartError(Exception):
    """Raised when the challenge cannot be scored here; the text says what to fix."""


def folder_problem(folder: str) -> str:
    """Return why a state folder cannot be made or written; nothing if it can."""
    existing = folder
    while not os.path.lexists(existing):
        existing = os.path.dirname(existing)
    if not os.path.isdir(existing):
        return f"SAVE_DIR {folder}: {existing} is not a folder"
    return "" if os.access(existing, os.W_OK | os.X_OK) else f"SAVE_DIR {folder}: {existing} cannot be written"


def check_challenge(jobs: Jobs, settings: WorkerSettings, phases: dict[str, ScoredPhase]) -> list[str]:
    """Return lines about what is in place; raise StartError if something is not, ApiError if no server answers."""
    challenge = _challenge(jobs, settings)
    lines = [
        f"token: accepted by {settings.api_server}",
        f"queue: {settings.queue_name} is of challenge {settings.challenge_pk}",
        f"challenge: {challenge.get('title', '')}, remote evaluation, and the token is a host's",
    ]
    rows = {row["codename"]: row for row in jobs.phases()}
    table = "challenge_config.yaml" if any("command" in phase for phase in phases.values()) else "phases.py"
    problems = [f"{table} has no phase {name}: its submissions would fail" for name in sorted(rows.keys() - phases)]
    splits = jobs.splits()
    for name in sorted(rows.keys() & phases.keys()):
        number, labels = rows[name]["id"], phases[name]["labels"]
        path = annotation_path(settings, phases[name])
        if os.path.isfile(path) or not phases[name].get("needs_annotation", True):
            lines.append(f"phase {number}: {name}, {path or 'its own truth'}, {', '.join(labels)}")
        else:
            problems.append(f"{path or settings.annotations}: there is no annotation file for {name}; set ANNOTATIONS")
        phase_splits = [split for split in splits if parse_key(split.get("challenge_phase")) == number]
        problems += _label_problems(name, phase_splits, labels, table)
    if problems:
        raise StartError("\n".join(problems))
    return lines


def annotation_path(settings: WorkerSettings, phase: ScoredPhase) -> str:
    """Return the path of a phase's annotation file; empty where its scorer finds its own."""
    return os.path.join(settings.annotations, phase["annotation"]) if phase["annotation"] else ""


def _label_problems(phase: str, splits: list[dict[str, object]], scored: dict[str, list[str]], table: str) -> list[str]:
    """Return the splits and labels of a phase that the server does not have as we do."""
    if len(splits) != len(scored):
        return [f"{phase}: EvalAI shows {len(splits)} splits, {table} has {len(scored)}; push the challenge again"]
    boards = [labels for labels in map(board_labels, splits) if labels is not None]
    if len(boards) != len(splits):
        return []  # a server that does not send them
    problems = []
    for split, labels in scored.items():
        board = next((board for board in boards if set(board) == set(labels)), None)
        if board is not None:
            boards.remove(board)
            continue
        others = "; ".join(", ".join(board) for board in boards)
        problems.append(
            f"{phase}: {table} scores {split} as {', '.join(labels)}, but EvalAI's leaderboard has {others}. "
            f"Labels cannot change once a challenge is there: change {table}"
        )
    return problems


def _challenge(jobs: Jobs, settings: WorkerSettings) -> ChallengeRow:
    try:
        challenge = jobs.challenge()
    except ApiError as error:
        if error.status == 400:
            raise StartError(f"QUEUE_NAME: {error}") from None
        raise
    if challenge["id"] != settings.challenge_pk:
        raise StartError(f"CHALLENGE_PK is {settings.challenge_pk}, but the queue is of challenge {challenge['id']}")
    if challenge.get("is_docker_based"):
        raise StartError("This challenge runs code that participants upload: another worker scores it, not this one.")
    if not challenge.get("remote_evaluation"):
        raise StartError(
            "This challenge has remote_evaluation: False, so EvalAI's own worker scores it, and both would report. "
            "Push it with --variant remote."
        )
    return challenge
