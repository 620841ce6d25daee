"""The loop of the remote worker: what it checks before its start, how it recovers, waits, and ends."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from segjudge.platforms.evalai.client import ApiError
from segjudge.remote_challenge_evaluation import services, worker_loop
from segjudge.remote_challenge_evaluation.journal import DamagedError, JournalError, UnusableError
from segjudge.remote_challenge_evaluation.settings import StartError
from segjudge.system.network import StoppedError
from tests.calls import outcome


def loop_of(noted: list[str], *, once: bool = False, stops: str = "", **journal: Any) -> Any:
    """Return a loop without a server, whose log, waiting and journal are noted; `stops` is asked or over."""
    made = worker_loop.WorkerLoop.__new__(worker_loop.WorkerLoop)
    made._once, made._progress, made._progress_at = once, -1, 0.0
    made._log = lambda event, **fields: noted.append(f"{event}: {', '.join(map(str, fields.values()))}")  # type: ignore[assignment]
    made._stop = SimpleNamespace(  # type: ignore[assignment]
        is_set=lambda: bool(stops), is_over=lambda: stops == "over", wait=lambda seconds: noted.append(f"waits {seconds}"),
        check=lambda: None, check_over=lambda: None,
    )  # fmt: skip
    made._settings = SimpleNamespace(requests_per_minute=9, webhook="", api_server="http://a", save_dir="S")  # type: ignore[assignment]
    made._journal = SimpleNamespace(add=lambda name: noted.append(f"one more of {name}"), **journal)  # type: ignore[assignment]
    made._jobs = SimpleNamespace(accepts_token=lambda: False)  # type: ignore[assignment]
    return made


DENIED = {"detail": "no"}


@pytest.mark.parametrize(
    ("error", "steps"),
    [
        (StoppedError("x"), []),
        (UnusableError("full"), ["StartError: full"]),
        (ApiError(500, "x"), ["server unavailable: x, 7 s", "waits 7.0"]),
        (ApiError(429, "x", wait=30.0), ["server unavailable: x, 30 s", "waits 30.0"]),
        (ApiError(429, "x", wait=3.0), ["server unavailable: x, 7 s", "waits 7.0"]),
        (ApiError(403, "x"), ["server unavailable: x, 7 s", "waits 7.0"]),
        (JournalError("x"), ["journal unavailable: x, 7 s", "waits 7.0"]),
        (OSError("x"), ["journal unavailable: x, 7 s", "waits 7.0"]),
        (DamagedError("x"), ["journal unavailable: x, 7 s", "waits 7.0", "opened again"]),
        (
            ApiError(401, "x", DENIED),
            [*["waits 2.0"] * 4, "ALERT: EvalAI no longer accepts AUTH_TOKEN: x", "one more of faults", "TokenRefusedError: x"],
        ),
    ],
)  # fmt: skip
def test_a_failure_is_logged_and_only_what_a_person_must_mend_ends_the_worker(
    error: Exception, steps: list[str]
) -> None:
    noted: list[str] = []
    made = loop_of(noted, file=SimpleNamespace(reopen=lambda: noted.append("opened again")))
    ended = outcome(lambda: made._recover(error, 7.0))
    assert [*noted, *([ended] if "Error" in str(ended) else [])] == steps
    if isinstance(error, ApiError) and error.refuses_token:
        noted.clear()
        made._jobs.accepts_token = lambda: True
        made._recover(error, 7.0)
        assert noted == ["waits 2.0", "refused: x, 7 s", "waits 7.0"]


def test_a_defect_of_ours_is_logged_with_its_traceback() -> None:
    noted: list[str] = []
    made = loop_of(noted)
    made._recover(KeyError("x"), 7.0)
    assert noted[0].startswith("defect: KeyError: 'x'")
    assert noted[1:] == ["defect: KeyError: 'x', 7 s", "waits 7.0"]
    asked: list[str] = []
    loop_of(asked, stops="asked")._recover(OSError("x"), 7.0)
    assert asked == [], "interruptions by a stop are not failures"


@pytest.mark.parametrize(
    ("is_busy", "due", "elapsed", "is_done", "steps"),
    [
        (False, None, 0.0, True, []),
        (True, None, 0.0, False, []),
        (True, 5.0, 120.0, False, []),
        (True, 5.0, 121.0, True, ["unfinished: some submissions are postponed, the next for 5 s; start the worker again"]),
        (False, 5.0, 120.0, False, ["waits: 5 s for a postponed submission", "waits 5.0"]),
        (False, 1.0, 0.0, False, []),
        (False, 60.0, 0.0, False, ["waits: 60 s for a postponed submission", "waits 60.0"]),
        (False, 61.0, 0.0, True, ["unfinished: some submissions are postponed, the next for 61 s; start the worker again"]),
    ],
)  # fmt: skip
def test_a_single_run_ends_without_work_that_comes_soon(
    is_busy: bool, due: float | None, elapsed: float, is_done: bool, steps: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    noted: list[str] = []
    made = loop_of(noted, progress=lambda: 3, seconds_until_due=lambda: due)
    monkeypatch.setattr(worker_loop, "time", SimpleNamespace(monotonic=lambda: 1000.0 + elapsed))
    made._progress, made._progress_at = 3, 1000.0
    assert made._is_done(is_busy=is_busy) is is_done
    assert noted == steps
    made._progress = 2
    made._is_done(is_busy=is_busy)
    assert (made._progress, made._progress_at) == (3, 1000.0 + elapsed)


@pytest.mark.parametrize(
    ("once", "urgent", "taken"),
    [(False, False, "9 False"), (False, True, "9 True"), (True, False, "9 True"), (True, True, "8 True")],
)
def test_a_request_waits_for_the_limit(once: bool, urgent: bool, taken: str) -> None:
    noted: list[str] = []
    pauses = [2.5, 0.5, 0.0]

    def take(limit: int, *, urgent: bool) -> float:
        noted.append(f"{limit} {urgent}")
        return pauses.pop(0)

    loop_of(noted, once=once, take_request=take)._wait_for_request(urgent)
    said = "waits: 2 s for the limit of 9 requests a minute"
    assert noted == [taken, said, "waits 1.0", taken, "waits 0.5", taken]
    for stops, is_urgent, ended in (("asked", False, True), ("asked", True, False), ("over", True, True)):
        pauses[:] = [1.0, 0.0]
        made = loop_of([], stops=stops, take_request=take)
        assert (
            outcome(lambda made=made, is_urgent=is_urgent: made._wait_for_request(is_urgent))
            == "ApiError: asked to stop"
        ) is ended


@pytest.mark.parametrize(
    ("errors", "ended", "pauses"),
    [
        ([], "", []),
        ([StartError("no phase")] * 4, "StartError: no phase", ["waits 2.0"] * 3),
        ([StartError("no phase")] * 3, "", ["waits 2.0"] * 3),
        ([ApiError(404, "gone", {})] * 4, "StartError: http://a: gone", ["waits 2.0"] * 3),
        ([ApiError(401, "no", DENIED)] * 4, "TokenRefusedError: no", ["waits 2.0"] * 3),
        ([*[StartError("x")] * 3, OSError("full"), ApiError(500, "x"), *[StartError("x")] * 3], "", None),
    ],
)
def test_a_start_waits_for_a_server_and_believes_a_fault_at_the_fourth_time(
    errors: list[Exception], ended: str, pauses: list[str] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    noted: list[str] = []
    answers = [*errors]

    def check(*_: Any) -> list[str]:
        if answers:
            raise answers.pop(0)
        return ["ready"]

    monkeypatch.setattr(worker_loop, "_check_challenge", check)
    made = loop_of(noted, owners=SimpleNamespace(remove_abandoned=lambda: ["a", "b"]))
    made._read_challenge = lambda folder: {folder: {}}
    result = outcome(lambda: str(made._wait_for_phases()))
    assert result == (ended or "{'S': {}}")
    assert noted[0] == "removed: files of dead workers, a, b"
    assert (noted[-1] == "start: ready") is not bool(ended)
    if pauses is not None:
        assert [line for line in noted if line.startswith("waits")] == pauses


@pytest.mark.parametrize(
    ("changes", "ended"),
    [
        ({}, ""),
        ({"id": 8}, "StartError: CHALLENGE_PK is 7, but the queue belongs to challenge 8"),
        ({"is_docker_based": True}, "StartError: This challenge runs code that participants upload, so another worker scores it, not this one."),
        ({"remote_evaluation": False}, "StartError: This challenge has remote_evaluation: False, so EvalAI's own worker scores it too, and both would report. Push it with --variant remote."),
    ],
)  # fmt: skip
def test_a_worker_serves_only_its_own_remote_challenge(changes: dict[str, Any], ended: str) -> None:
    row = {"id": 7, "title": "Lakes", "remote_evaluation": True, **changes}
    jobs: Any = SimpleNamespace(fetch_challenge=lambda: row)
    settings: Any = SimpleNamespace(challenge_pk=7)
    assert outcome(lambda: str(worker_loop._challenge(jobs, settings))) == (ended or str(row))


@pytest.mark.parametrize(("status", "ended"), [(400, "StartError: QUEUE_NAME: no queue"), (404, "ApiError: no queue")])
def test_a_wrong_queue_is_named(status: int, ended: str) -> None:
    def fetch() -> Any:
        raise ApiError(status, "no queue", {})

    jobs: Any = SimpleNamespace(fetch_challenge=fetch)
    assert outcome(lambda: worker_loop._challenge(jobs, SimpleNamespace(challenge_pk=7))) == ended  # type: ignore[arg-type]


def test_a_start_names_each_phase_and_what_it_lacks(tmp_path: Path) -> None:
    truth = tmp_path / "dev.zip"
    truth.touch()
    phases: Any = {
        "dev": {"labels": {"easy": ["J"], "hard": ["J", "F"]}, "file": str(truth)},
        "own": {"labels": {"all": ["AP"]}, "file": "", "needs_annotation": False},
    }
    rows = [{"codename": "dev", "id": 1}, {"codename": "own", "id": 2}]
    boards = [(1, ["F", "J"]), (1, ["J"]), (2, ["AP"])]
    splits = [
        {"challenge_phase": phase, "leaderboard_schema": {"labels": labels, "default_order_by": labels[0]}} for phase, labels in boards
    ]  # fmt: skip
    jobs: Any = SimpleNamespace(
        fetch_challenge=lambda: {"id": 7, "title": "Lakes", "remote_evaluation": True}, phases=lambda: rows, splits=lambda: splits
    )  # fmt: skip
    settings: Any = SimpleNamespace(
        challenge_pk=7, api_server="http://a", queue_name="q", annotations="A", annotation_path=lambda phase: phase["file"]
    )  # fmt: skip
    assert worker_loop._check_challenge(jobs, settings, phases) == [
        "token: accepted by http://a",
        "queue: q belongs to challenge 7",
        "challenge: Lakes, remote evaluation; the token belongs to a host",
        f"phase 1: dev, {truth}, easy, hard",
        "phase 2: own, its own truth, all",
    ]
    rows.append({"codename": "new", "id": 3})
    phases["own"]["needs_annotation"] = True
    splits.pop(0)
    faults = [
        "phases.py has no phase new: its submissions would fail",
        "dev: EvalAI and phases.py differ in the number of splits, 1 and 2; push the challenge again",
        "A: there is no annotation file for own; set ANNOTATIONS",
    ]
    assert outcome(lambda: worker_loop._check_challenge(jobs, settings, phases)) == "StartError: " + "\n".join(faults)


@pytest.mark.parametrize(("once", "seconds"), [(True, 2), (False, 20)])
def test_a_single_run_asks_the_hosts_queue_for_a_short_time(
    once: bool, seconds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = list[dict[str, Any]]()
    queue = SimpleNamespace(receive_message=lambda **limits: asked.append(limits) or {})
    monkeypatch.setattr(services, "_aws_client", lambda name: {"sqs": queue}[name])
    made = loop_of([], once=once)
    made._settings.sqs_queue_url, made._alert, made._client = "https://queue", None, SimpleNamespace(now=None)
    assert made._services().queue.receive() is None
    assert [limits["WaitTimeSeconds"] for limits in asked] == [seconds]
