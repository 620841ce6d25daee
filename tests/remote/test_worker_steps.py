"""The remote worker's steps: what it does with a message, a job of its journal, a failure, and a lost submission."""

from __future__ import annotations

import contextlib
import time
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest

from segjudge.platforms.evalai.client import ApiError
from segjudge.remote_challenge_evaluation import journal, services, worker
from segjudge.system.network import StoppedError, WireError
from tests.calls import outcome

# ── a message of the queue ──────────────────────────────────────────────────


def worker_of(noted: list[str], *, once: bool = False, problem: str = "", answers: list[Any] | None = None) -> Any:
    """Return a worker whose server gives these answers about submissions, and that notes what it does."""

    def fetch(_number: int) -> Any:
        answer = (answers or []).pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    made = worker.Worker.__new__(worker.Worker)
    queue = SimpleNamespace(
        acknowledge_claim=lambda _message: noted.append("claimed"),
        acknowledge_end=lambda _message: noted.append("ended"),
        keep_hidden=lambda _message: contextlib.nullcontext(),
        expect_more=lambda: noted.append("more"),
        is_due=lambda: True,
        receive=lambda: (answers or []).pop(0),
    )
    made._services = SimpleNamespace(  # type: ignore[assignment]
        queue=queue,
        once=once,
        alert=noted.append,
        stop=SimpleNamespace(is_set=lambda: False, wait=lambda _seconds: False),
    )
    made._jobs = SimpleNamespace(fetch_submission=fetch, accepts_token=lambda: True)  # type: ignore[assignment]
    made._log = lambda event, **fields: noted.append(f"{event}: {fields.get('why') or fields.get('status')}")
    made.scoring = SimpleNamespace(problem_of=lambda _phase: problem)  # type: ignore[assignment]
    made._journal = SimpleNamespace(  # type: ignore[assignment]
        claim=lambda number, *_rest, again: SimpleNamespace(submission=number) if number == 4 and not again else None,
        add=lambda name: noted.append(f"one more of {name}"), set=lambda name, value: noted.append(f"{name} {value}"),
        drop=lambda _job: noted.append("dropped"), take_due=lambda: None,
    )  # fmt: skip
    made._begin = lambda _job, _row, _message: noted.append("begins")  # type: ignore[method-assign]
    made._left_messages, made._others, made._lacking, made._repetitions = worker.deque(maxlen=100), {}, set(), 0
    return made


def message_of(submission: int, body: Any = "x") -> Any:
    return SimpleNamespace(submission=submission, body=body)


@pytest.mark.parametrize(
    ("number", "status", "steps"),
    [
        (4, "submitted", ["begins", "dropped", "ended"]),
        (4, "queued", ["begins", "dropped", "ended"]),
        (5, "resuming", ["message recognised: resuming", "claimed", "ended"]),
        (4, "running", ["message recognised: running", "claimed", "ended"]),
        (4, "finished", ["message recognised: finished", "claimed", "ended"]),
        (4, "unheard", ["message left: unheard"]),
    ],
)
def test_a_message_is_for_a_waiting_submission(number: int, status: str, steps: list[str]) -> None:
    noted: list[str] = []
    made = worker_of(noted, answers=[{"id": number, "status": status, "challenge_phase": 2}])
    made._handle(message_of(number))
    assert noted == steps


def test_a_submission_that_the_server_denies_is_looked_up_again() -> None:
    denied, noted = ApiError(404, "no such submission", {}), list[str]()
    made = worker_of(noted, answers=[denied] * 3)
    made._handle(message_of(4))
    assert noted == [
        "message dropped: it is not a submission of this challenge: no such submission",
        "claimed",
        "ended",
    ]
    row = {"id": 4, "status": "submitted", "challenge_phase": 2}
    noted.clear()
    worker_of(noted, answers=[*[denied] * (2), row])._handle(message_of(4))
    assert noted == ["begins", "dropped", "ended"]
    assert outcome(lambda: worker_of([], answers=[ApiError(500, "x", {})])._handle(message_of(4))) == "ApiError: x"


def test_messages_of_other_workers_return_to_the_queue() -> None:
    noted: list[str] = []
    row = {"id": 4, "status": "submitted", "challenge_phase": 2}
    made = worker_of(noted, problem="no truth", answers=[dict(row) for _ in range(9)])
    alert = "phase 2 appeared after the start of this worker: no truth; its submissions wait for a worker that knows it. Update the bundle and restart the worker"
    for _ in range(4):
        made._handle(message_of(4))
    assert noted == [
        "message left: no truth",
        "message left: no truth",
        alert,
        *["message left: no truth"] * 1,
    ]
    assert made._others[4][0] == 3
    made._others[4] = 3, made._others[4][1] - 600.0
    noted.clear()
    made._handle(message_of(4))
    assert noted == ["message left: no truth"]
    once = worker_of(noted, once=True, problem="no truth", answers=[row])
    noted.clear()
    once._handle(message_of(4))
    assert noted == ["message left: no truth", alert], "nobody comes later"
    made._others = dict.fromkeys(range(10_000), (1, 0.0))
    assert made._is_of_others(row, 0)
    assert list(made._others) == [4]


def test_a_message_without_a_submission_is_left_once() -> None:
    noted: list[str] = []
    made = worker_of(noted)
    left, dropped = "message left: it names no submission", "message dropped: it names no submission"
    for body in ("x", "y", "x"):
        made._drop_or_leave(message_of(0, body))
    assert noted == [left, left, dropped, "claimed", "ended"]
    noted.clear()
    worker_of(noted, once=True)._drop_or_leave(message_of(0))
    assert noted == [dropped, "claimed", "ended"]


@pytest.mark.parametrize(
    ("state", "status", "phase", "more", "steps"),
    [
        ("claimed", "submitted", 2, {}, "begins 4 as segjudge-a, now state begun, scores"),
        ("claimed", "running", 2, {}, "begins 4 as segjudge-a, now state begun, scores"),
        ("begun", "queued", 2, {}, "begins 4 as segjudge-a, now state begun, scores"),
        ("begun", "running", 2, {}, "scores"),
        ("begun", "running", 3, {}, "now phase 3, scores"),
        ("begun", "running", 2, {"message": message_of(4)}, "claimed, scores"),
        ("claimed", "finished", 3, {"message": message_of(4), "is_over": True}, "claimed"),
        ("claimed", "finished", 3, {"is_over": True}, ""),
    ],
)
def test_a_job_begins_unless_it_is_over(state: str, status: str, phase: int, more: dict[str, Any], steps: str) -> None:
    noted: list[str] = []
    made = worker_of(noted)
    job: Any = SimpleNamespace(submission=4, state=state, phase=2)

    def change(_job: Any, **values: Any) -> Any:
        noted.extend(f"now {name} {value}" for name, value in values.items())
        return job

    made._reporting = SimpleNamespace(is_over=lambda *_: more.get("is_over", False))
    made._jobs.begin = lambda number, name: noted.append(f"begins {number} as {name}")
    made._journal.worker, made._journal.change = "a", change
    made.scoring.score = lambda _job, _row: noted.append("scores")
    row: Any = {"status": status, "challenge_phase": phase}
    worker.Worker._begin(made, job, row, more.get("message"))
    assert ", ".join(noted) == steps


@pytest.mark.parametrize(
    ("error", "steps"),
    [
        (None, ["worked"]),
        (ApiError(500, "x", {}), ["api x"]),
        (StoppedError("x"), ["waits 0 asked to stop"]),
        (OSError("no disk"), ["waits 5.0 no disk"]),
        (WireError("no line"), ["waits 5.0 no line"]),
        (services.JobBlockedError("no truth"), ["delays no truth"]),
        (KeyError("x"), ["defect", "faults KeyError: 'x'"]),
    ],
)
def test_each_failure_of_a_job_has_its_consequence(error: Exception | None, steps: list[str]) -> None:
    noted: list[str] = []
    made = worker_of(noted)
    made._log = lambda event, **_fields: noted.append(event)
    made._on_api_error = lambda _job, raised: noted.append(f"api {raised}")
    made._release = lambda _job, why, wait: noted.append(f"waits {wait} {why}")
    made._delay = lambda _job, why: noted.append(f"delays {why}")
    made._fault = lambda _job, why: noted.append(f"faults {why}")

    def work() -> None:
        if error:
            raise error
        noted.append("worked")

    made._guard(SimpleNamespace(submission=4), work)
    assert noted == [*steps, "dropped"]
    gone: Any = mock.Mock(side_effect=journal.JobGoneError("taken"))
    made._guard(SimpleNamespace(submission=4), gone)
    assert noted[-2:] == ["skipped", "dropped"]
    broken: Any = mock.Mock(side_effect=journal.JournalError("full"))
    assert outcome(lambda: made._guard(SimpleNamespace(submission=4), broken)) == "JournalError: full"


def test_an_empty_queue_is_counted_and_the_messages_of_others_are_none() -> None:
    noted: list[str] = []
    row = {"id": 4, "status": "finished", "challenge_phase": 2}
    made = worker_of(noted, answers=[None, message_of(4), row, message_of(0)])
    assert made.take_turn() is False
    assert noted == ["one more of empty_answers"]
    assert made.take_turn() is True
    assert noted[1:] == ["more", "empty_answers 0", "message recognised: finished", "claimed", "ended"]
    assert made.take_turn() is True
    assert noted[6:] == ["more", "empty_answers 0", "message left: it names no submission"]
    noted.clear()
    made = worker_of(noted, problem="no truth", answers=[message_of(4), message_of(4), message_of(4)])
    made._others = {4: (3, time.monotonic())}
    assert [made.take_turn() for _ in range(3)] == [True, False, True]
    assert noted == ["more", "one more of empty_answers", "more"]
    made._services.queue.is_due = lambda: False
    assert made.take_turn() is False
    made._journal.take_due = lambda: SimpleNamespace(submission=4)
    made._continue = lambda job: noted.append(f"continues {job.submission}")
    assert made.take_turn() is True
    assert noted[-1] == "continues 4"


# ── a job of the journal ────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("attempts", "state", "steps"),
    [
        (12, "begun", "asks, begins"),
        (13, "begun", "gives up: 13 workers died while scoring it"),
        (13, "claimed", "gives up: 13 workers died while scoring it"),
        (13, "scored", "reports"),
        (1, "scored", "reports"),
    ],
)
def test_a_job_is_continued_until_twelve_workers_died_for_it(attempts: int, state: str, steps: str) -> None:
    noted: list[str] = []
    played: Any = SimpleNamespace(
        _log=lambda event, submission, state: noted.append(f"{event} {submission} {state}"),
        _guard=lambda _job, work: work(),
        _give_up=lambda _job, why: noted.append(f"gives up: {why}"),
        _reporting=SimpleNamespace(report=lambda _job: noted.append("reports")),
        _jobs=SimpleNamespace(fetch_submission=lambda _number: noted.append("asks")),
        _begin=lambda _job, _row, message: noted.append("begins" if message is None else "begins a message"),
    )
    job: Any = SimpleNamespace(submission=4, attempts=attempts, state=state)
    worker.Worker._continue(played, job)
    assert noted == [f"continues 4 {state}", *steps.split(", ")]


@pytest.mark.parametrize(
    ("delays", "state", "step"),
    [
        (1, "begun", "waits 5.0"),
        (2, "begun", "waits 10.0"),
        (6, "begun", "waits 160.0"),
        (7, "begun", "waits 300.0"),
        (59, "begun", "waits 300.0"),
        (60, "begun", "gives up"),
        (60, "scored", "waits 300.0"),
        (61, "begun", "waits 300.0"),
        (120, "begun", "waits 300.0"),
        (121, "scored", "alert: submission 4: the worker gave up reporting its result: no file, given up"),
    ],
)
def test_a_job_waits_longer_each_time_and_is_given_up(delays: int, state: str, step: str) -> None:
    noted: list[str] = []
    job: Any = SimpleNamespace(submission=4, delays=delays, state=state)
    played: Any = SimpleNamespace(
        _journal=SimpleNamespace(
            change=lambda _job, counter: job if counter == "delays" else None,
            finish=lambda _job, state: noted.append(state),
        ),
        _give_up=lambda _job, why: noted.append("gives up" if why == "no file" else why),
        _services=SimpleNamespace(alert=lambda line: noted.append(f"alert: {line}")),
        _release=lambda _job, why, wait: noted.append(f"waits {wait}" if why == "no file" else why),
    )
    worker.Worker._delay(played, job, "no file")
    assert ", ".join(noted) == step


@pytest.mark.parametrize(
    ("status", "wait", "accepts", "step"),
    [
        (500, 0.0, True, f"waits {worker.PAUSE}"),
        (429, 7.0, True, "waits 7.0"),
        (0, 0.0, True, f"waits {worker.PAUSE}"),
        (404, 0.0, True, "delays"),
        (403, 0.0, True, "delays"),
        (401, 0.0, False, f"frees for {worker.PAUSE}, TokenRefusedError"),
    ],
)
def test_an_error_of_the_api_postpones_a_job(status: int, wait: float, accepts: bool, step: str) -> None:
    noted: list[str] = []
    played: Any = SimpleNamespace(
        _jobs=SimpleNamespace(accepts_token=lambda: accepts),
        _journal=SimpleNamespace(release=lambda _job, wait: noted.append(f"frees for {wait}")),
        _release=lambda _job, _why, wait: noted.append(f"waits {wait}"),
        _delay=lambda _job, _why: noted.append("delays"),
    )
    error = ApiError(status, "x", wait=wait)
    try:
        worker.Worker._on_api_error(played, SimpleNamespace(), error)  # type: ignore[arg-type]
    except services.TokenRefusedError as raised:
        noted.append(type(raised).__name__)
    assert ", ".join(noted) == step


@pytest.mark.parametrize(
    ("status", "age", "state", "more", "is_lost"),
    [
        ("running", 700.0, "", {}, False),
        ("running", 701.0, "", {}, True),
        ("running", 1.0, "done", {}, True),
        ("running", 999.0, "begun", {}, False),
        ("submitted", 900.0, "", {}, False),
        ("submitted", 901.0, "", {}, True),
        ("submitted", 901.0, "", {"empty": 2}, False),
        ("submitted", 901.0, "", {"awaited": True}, False),
        ("submitted", 7200.0, "", {"awaited": True}, False),
        ("submitted", 7201.0, "", {"awaited": True}, True),
        ("submitted", 7201.0, "", {"problem": "no truth"}, False),
        ("finished", 9999.0, "", {}, False),
        ("cancelled", 9999.0, "", {}, False),
    ],
)
def test_a_submission_is_lost_if_nobody_works_on_it(
    status: str, age: float, state: str, more: dict[str, Any], is_lost: bool
) -> None:
    scoring = SimpleNamespace(
        problem_of=lambda _phase: more.get("problem", ""),
        seconds_of=lambda _phase: 100.0,
        files=SimpleNamespace(is_awaited=lambda _row: more.get("awaited", False)),
    )
    played: Any = SimpleNamespace(
        _worker=SimpleNamespace(scoring=scoring),
        _journal=SimpleNamespace(state_of=lambda *_: state, number=lambda _name: more.get("empty", 3)),
        _age=lambda time: {"begin": age, "sent": 0.0 if status == "running" else age}[time],
    )
    row = {"id": 4, "status": status, "challenge_phase": 2, "submitted_at": "sent", "started_at": "begin"}
    assert worker.Sweep._is_lost(played, row) is is_lost


@pytest.mark.parametrize(
    ("time", "age"),
    [
        ("1970-01-01T00:16:00", 40.0),
        ("1970-01-01T00:16:00+00:00", 40.0),
        ("1970-01-01T01:16:00+01:00", 40.0),
        ("1970-01-01T00:17:00", 0.0),
        ("yesterday", 0.0),
        (None, 0.0),
    ],
)
def test_an_age_is_that_of_the_servers_time(time: str | None, age: float) -> None:
    played: Any = SimpleNamespace(_services=SimpleNamespace(server_time=lambda: 1000.0))
    assert worker.Sweep._age(played, time) == age
