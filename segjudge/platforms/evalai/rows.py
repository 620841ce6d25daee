"""The data of EvalAI's REST API: rows, statuses, and results."""

import math
from collections.abc import Collection, Mapping
from typing import Any, TypedDict, cast

from segjudge.system.python310 import NotRequired, read_moment

FINISHED, FAILED, CANCELLED, RUNNING = "finished", "failed", "cancelled", "running"
#: Statuses of submissions that need no worker.
SETTLED = (FINISHED, FAILED, CANCELLED, "archived")
#: Statuses of submissions that no worker has started.
WAITING = ("submitted", "resuming", "queued")
#: All statuses that a submission can have.
STATUSES = (*WAITING, RUNNING, *SETTLED, "submitting", "partially_evaluated")
#: The content of a large upload's file on the server until the upload is complete.
PLACEHOLDER = b"file_content"
#: The maximum of a number in a path, above every key in a database: SQLite's and Postgres's end at 2^63.
_KEY_LIMIT = 1 << 62
#: The maximum characters of a time.
_TIME_LENGTH = 64


class SubmissionRow(TypedDict):
    """A submission as the API shows it; other keys pass through."""

    id: int
    challenge_phase: int
    status: str
    rerun_resumed_at: NotRequired[str | None]
    submitted_at: NotRequired[str]
    started_at: NotRequired[str | None]
    input_file: NotRequired[str]
    submission_input_file: NotRequired[str | None]


class PhaseRow(TypedDict):
    """A phase as the API shows it to hosts; other keys pass through."""

    id: int
    codename: str
    disable_logs: NotRequired[bool]


class ChallengeRow(TypedDict):
    """A challenge as the API shows it; other keys pass through."""

    id: int
    title: NotRequired[str]
    remote_evaluation: NotRequired[bool]
    is_docker_based: NotRequired[bool]


class SplitAccuracies(TypedDict):
    """The numbers of one split, as the API takes them."""

    split: str
    show_to_participant: bool
    accuracies: dict[str, float]


class ShapeError(Exception):
    """Raised if the server would reject a result."""


def for_rest(result: list[dict[str, dict[str, float]]], hidden: Collection[str] = ()) -> list[SplitAccuracies]:
    """Return `evaluate()`'s result as the REST API's list, hiding hidden splits' numbers."""
    return [
        {"split": split, "show_to_participant": split not in hidden, "accuracies": dict(values)}
        for entry in result
        for split, values in entry.items()
    ]


def parse_key(value: object) -> int:
    """Return a database key that the server sends as a number or a string; 0 for anything else."""
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) < 20:
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        return 0
    return value if 0 < value < _KEY_LIMIT else 0


def _parse_keys(row: object, *keys: str) -> dict[str, object] | None:
    """Convert a row's database keys to numbers; None if it is not a row or lacks one."""
    if not isinstance(row, dict):
        return None
    numbers = {key: parse_key(row.get(key)) for key in keys}
    return {**row, **numbers} if all(numbers.values()) else None


def parse_submission(row: object, number: int = 0) -> SubmissionRow | None:
    """Return a submission row; None if invalid, or not the given number."""
    fields = _parse_keys(row, "id", "challenge_phase")
    if fields is None or (number and fields["id"] != number) or not isinstance(fields.get("status"), str):
        return None
    resumed = fields.get("rerun_resumed_at")
    return cast("SubmissionRow", fields) if resumed is None or _is_time(resumed) else None


def _is_time(value: object) -> bool:
    try:
        return isinstance(value, str) and len(value) <= _TIME_LENGTH and bool(read_moment(value))
    except ValueError:
        return False


def parse_phase(row: object) -> PhaseRow | None:
    """Return a phase row; None if invalid."""
    fields = _parse_keys(row, "id")
    return cast("PhaseRow", fields) if fields and isinstance(fields.get("codename"), str) else None


def parse_challenge(row: object) -> ChallengeRow | None:
    """Return a challenge row; None if invalid."""
    return cast("ChallengeRow | None", _parse_keys(row, "id"))


def board_labels(split: dict[str, object]) -> list[str] | None:
    """Return the labels of a phase split's leaderboard; None if the server does not send them."""
    schema = split.get("leaderboard_schema")
    labels = schema.get("labels") if isinstance(schema, dict) else None
    return [str(label) for label in labels] if isinstance(labels, list) else None


def is_descending(schema: Mapping[str, Any], label: str, row: object) -> bool:
    """Return True if a leaderboard shows a label's largest value first; `row` is its phase split's flag."""
    metadata = schema.get("metadata")
    entry = metadata.get(label) if isinstance(metadata, Mapping) else None
    # An entry of the metadata decides, even without a direction.
    return entry.get("sort_ascending") is False if isinstance(entry, dict) else bool(row)


def check_accuracies(accuracies: object, labels: dict[str, list[str]]) -> list[SplitAccuracies]:
    """Raise ShapeError if the server would reject a result: unknown splits or labels, or infinite numbers."""
    if not isinstance(accuracies, list):
        raise ShapeError("the result is not a list of splits")
    for entry in accuracies:
        split = entry.get("split") if isinstance(entry, dict) else None
        if not isinstance(split, str) or split not in labels or not isinstance(entry.get("accuracies"), dict):
            raise ShapeError(f"the result names the split {split!r}; the phase has {', '.join(labels)}")
        for name, value in entry["accuracies"].items():
            if name not in labels[split]:
                raise ShapeError(f"{split}: {name!r} is not a label of its leaderboard")
            if not is_number(value):
                raise ShapeError(f"{split}: {name} is {repr(value)[:40]}, which is not a finite number")
    return accuracies


def is_number(value: object) -> bool:
    """Return whether a value is a finite plain number, as the server requires."""
    try:
        return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    except OverflowError:  # an integer above every float
        return False


def list_file_types(text: object) -> list[str]:
    """Return the endings in a phase's `allowed_submission_file_types`; none if every file is accepted."""
    types = str(text or "").lower()
    return [] if "*" in types else [f".{word.strip(' .')}" for word in types.split(",") if word.strip(" .")]
