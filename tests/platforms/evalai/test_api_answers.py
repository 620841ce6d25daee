"""Every answer of an API instead of a row is either a valid row or one kind of error."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from segjudge.platforms.evalai.client import ApiError, Client, Jobs, QueueMessage
from segjudge.platforms.evalai.rows import board_labels, parse_key, parse_submission
from tests.hostile_network import GARBAGE, WEIRD
from tests.platforms.evalai.servers import TOKEN, Server, says

SUBMISSION = {
    "id": 7, "challenge_phase": 3, "status": "submitted", "rerun_resumed_at": None, "started_at": None,
    "submitted_at": "2026-01-01T00:00:00.000000Z", "input_file": "https://files.example/x", "submission_input_file": None,
    "method_name": "m", "submission_metadata": [], "job_name": [],
}  # fmt: skip
PHASE = {"id": 3, "codename": "dev", "disable_logs": False, "config_id": 1}
SPLIT = {"id": 1, "challenge_phase": 3, "dataset_split": 1, "leaderboard_schema": {"labels": ["J"]}}
CHALLENGE = {"id": 1, "title": "T", "remote_evaluation": True, "is_docker_based": False}
MESSAGE = {"body": {"submission_pk": "7", "phase_pk": "3", "challenge_pk": "1"}, "receipt_handle": "h"}
SAID = {"success": "yes"}

#: A call, its true answer, and what has to hold for whatever it returns.
CALLS: dict[str, tuple[Callable[[Jobs], Any], Any, Callable[[Any], bool]]] = {
    "receive": (
        lambda jobs: jobs.receive(),
        MESSAGE,
        lambda found: found is None or (isinstance(found.handle, str) and 0 <= found.submission < 1 << 62),
    ),
    "submission": (lambda jobs: jobs.fetch_submission(7), SUBMISSION, lambda row: is_sound(row) and row["id"] == 7),
    "begin": (lambda jobs: jobs.begin(7, "name"), SUBMISSION, lambda _none: True),
    "finish": (lambda jobs: jobs.finish(7, 3, []), SAID, lambda _none: True),
    "fail": (lambda jobs: jobs.fail(7, 3, stderr="x"), SAID, lambda _none: True),
    "delete": (lambda jobs: jobs.delete(QueueMessage(None, "h")), SAID, lambda _none: True),
    "all": (lambda jobs: jobs.all_submissions(), [SUBMISSION, SUBMISSION], lambda rows: all(map(is_sound, rows))),
    "phases": (
        lambda jobs: jobs.phases(),
        [PHASE, PHASE],
        lambda rows: all(0 < row["id"] < 1 << 62 and isinstance(row["codename"], str) for row in rows),
    ),
    "splits": (
        lambda jobs: jobs.splits(),
        [SPLIT, SPLIT],
        lambda rows: all(isinstance(board_labels(row), (list, type(None))) for row in rows),
    ),
    "challenge": (lambda jobs: jobs.fetch_challenge(), CHALLENGE, lambda row: 0 < row["id"] < 1 << 62),
}


def is_sound(row: dict[str, Any]) -> bool:
    numbers = all(isinstance(row[key], int) and 0 < row[key] < 1 << 62 for key in ("id", "challenge_phase"))
    return numbers and isinstance(row["status"], str) and isinstance(row.get("rerun_resumed_at"), (str, type(None)))


def mutations(answer: Any) -> Iterator[bytes]:
    """Yield the answer with each of its values missing or of another kind, and completely invalid answers."""
    yield from GARBAGE
    for value in WEIRD:
        yield json.dumps(value).encode()
        yield json.dumps([value]).encode()
    row = answer[0] if isinstance(answer, list) else answer
    for path in paths(row):
        for value in (*WEIRD, KeyError):
            changed = copy.deepcopy(answer)
            inner = changed[0] if isinstance(changed, list) else changed
            for key in path[:-1]:
                inner = inner[key]
            if value is KeyError:
                del inner[path[-1]]
            else:
                inner[path[-1]] = value
            yield json.dumps(changed).encode()


def paths(row: Any, before: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if isinstance(row, dict):
        for key, value in row.items():
            yield (*before, key)
            yield from paths(value, (*before, key))


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    made = Server()
    yield made
    made.close()


@pytest.mark.long
@pytest.mark.parametrize("name", CALLS)
def test_an_answer_is_sound_or_an_error_that_may_pass(server: Server, name: str) -> None:
    call, answer, holds = CALLS[name]
    jobs = Jobs(Client(server.address, TOKEN), 1, "queue", lambda _seconds: True)  # a sleep that is over: one try each
    taken = refused = 0
    for body in mutations(answer):
        server.answer(says(body))
        try:
            results = call(jobs)
        except ApiError as error:
            assert error.is_transient, f"{error}: {body[:200]!r}"
            refused += 1
        else:
            assert holds(results), body[:200]
            taken += 1
    assert refused > 10
    server.answer(says(answer))
    assert holds(call(jobs)), "and the true answer is taken"


@pytest.mark.parametrize(
    ("value", "number"),
    [(7, 7), ("7", 7), (0, 0), (-1, 0), ("-1", 0), (True, 0), (7.0, 0), (10**30, 0), ("9" * 30, 0), ("1_0", 0), (" 7", 0), ("७", 0), (1 << 62, 0), ((1 << 62) - 1, (1 << 62) - 1), (None, 0), ({}, 0), ("", 0)],
    ids=repr,
)  # fmt: skip
def test_a_key_is_a_number_that_a_database_has(value: Any, number: int) -> None:
    assert parse_key(value) == number


@pytest.mark.parametrize("resumed", ["x", "", "2026", 5, {}, "9999-99-99T00:00:00Z", "2" * 10**6])
def test_a_moment_that_is_none_is_not_the_beginning_of_new_work(resumed: Any) -> None:
    assert parse_submission({**SUBMISSION, "rerun_resumed_at": resumed}) is None
