"""The remote worker, as a process with a real server: every kind of message is handled."""

from __future__ import annotations

import json
import signal
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from segjudge.platforms.evalai import routes
from tests.builders import ROOT
from tests.journeys.fleet import remote_bundle
from tests.rehearsals import Rehearsal, steady_port, waited
from tests.remote_workers import OPTIONS, STRONG, Operator, operator_of, remote_server, status, submitted


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rehearsal]:
    yield from remote_server(tmp_path_factory.mktemp("remote"))


@pytest.fixture
def operator(server: Rehearsal, tmp_path: Path) -> Operator:
    return operator_of(server, tmp_path)


# ── the start ───────────────────────────────────────────────────────────────


@pytest.mark.long
def test_a_check_proves_everything_and_touches_nothing(server: Rehearsal, operator: Operator) -> None:
    number = submitted(server)
    output = operator.run("--check")
    for name in ("token: accepted", "queue: ", "remote evaluation", "phase 1: sequences-dev", "test, test-hard"):
        assert name in output
    assert status(server, number) == "submitted"
    assert server.people["host"]["token"] not in output


@pytest.mark.long
@pytest.mark.parametrize(
    ("environment", "code", "message"),
    [
        pytest.param({"AUTH_TOKEN": "", "QUEUE_NAME": ""}, 2, "AUTH_TOKEN is not set: copy it", id="settings"),
        pytest.param({"AUTH_TOKEN": "wrong"}, 4, "EvalAI no longer accepts", id="401"),
        pytest.param({"QUEUE_NAME": "another"}, 3, "QUEUE_NAME: Challenge with queue name another", id="queue"),
    ],
)
def test_what_is_missing_is_said_before_anything_is_touched(
    operator: Operator, environment: dict[str, str], code: int, message: str
) -> None:
    output = operator.run("--check", expected=code, **environment)
    assert message in output
    assert "Traceback" not in output


# ── messages ────────────────────────────────────────────────────────────────


@pytest.mark.long
def test_a_submission_is_scored_and_the_journal_knows(server: Rehearsal, operator: Operator) -> None:
    from segjudge.evaluation_script import evaluate

    number = submitted(server, is_public="true")
    operator.run("--once")
    row = server.get(f"/api/jobs/submission/{number}", "host").json()
    assert row["status"] == "finished"
    assert row["job_name"][0].startswith("segjudge-")
    local_scores = evaluate(str(ROOT / "annotations/sequences-dev.zip"), str(STRONG), "sequences-dev")["result"][0][
        "dev"
    ]
    board = server.get("/api/jobs/challenge_phase_split/1/leaderboard/").json()["results"]
    assert [item["result"] for item in board if item["submission__id"] == number] == [list(local_scores.values())]
    assert "3 of 3 scored" in server.text(row["stdout_file"])
    for_hosts = json.loads(server.text(row["submission_metadata_file"]))
    assert for_hosts["submission_result"]["scored"] == ["dev"]
    assert for_hosts["submission_metadata"]["provenance"]["truth"].startswith("zip:")
    (job,) = operator.jobs()
    assert (job["outcome"], job["evaluations"], job["reports"]) == ("finished", 1, 1)
    assert not list((operator.folder / "machine/submissions").iterdir())


@pytest.mark.long
def test_a_submission_costs_six_requests(server: Rehearsal, operator: Operator) -> None:
    def used() -> float:
        with closing(sqlite3.connect(operator.folder / "machine/journal.sqlite3")) as db, db:
            return float(db.execute("SELECT value FROM numbers WHERE key = 'requests'").fetchone()[0])

    operator.run("--once")
    before = used()
    operator.run("--once")
    start = used() - before
    submitted(server)
    before = used()
    operator.run("--once")
    phases, empty_look = 1, 1
    assert used() - before - start == 6 + phases, f"beside the start's {start} with its {empty_look} empty look"


# ── faults of ours ──────────────────────────────────────────────────────────


@pytest.mark.long
def test_a_token_that_ends_stops_the_worker_and_loses_nothing(server: Rehearsal, operator: Operator) -> None:
    number = submitted(server)
    operator.run("--once")
    report = json.dumps({"refused": "kept", "stdout": "", "stderr": ""})
    operator.journal("UPDATE jobs SET state = 'scored', owner = NULL, outcome = NULL, report = ?", report)
    server.services.submissions.update(number, status="running")
    login = {"username": "host", "password": server.people["host"]["password"]}
    token = server.call("POST", routes.LOGIN, data=login).json()["token"]
    process = operator.start(AUTH_TOKEN=token, POLL_SECONDS="0.1")
    try:
        waited(lambda: operator.jobs()[0]["state"] == "done", 30)
        operator.journal(
            "UPDATE jobs SET state = 'scored', owner = NULL, outcome = NULL, next_at = ?, report = ?",
            time.time() + 4,
            report,
        )
        server.services.submissions.update(number, status="running")
        server.services.accounts.forget_token(token)
        _, output = process.communicate(timeout=120)
    finally:
        process.kill()
    assert process.returncode == 4
    assert "no longer accepts" in output
    assert operator.jobs()[0]["report"] == report
    operator.journal("UPDATE jobs SET next_at = 0")
    operator.run("--once")
    assert status(server, number) == "failed"


# ── the end of a process ────────────────────────────────────────────────────


@pytest.mark.long
def test_killed_at_any_point_another_goes_on(server: Rehearsal, operator: Operator) -> None:
    numbers = [submitted(server) for _ in range(4)]
    for wait in (0.6, 0.9, 1.2, 1.5):
        process = operator.start()
        time.sleep(wait)
        process.kill()
        process.communicate()
    operator.run("--once")
    waited(lambda: operator.run("--once") and all(status(server, number) == "finished" for number in numbers), 30)


@pytest.mark.long
def test_an_outage_costs_no_second_evaluation(tmp_path: Path) -> None:
    port = str(steady_port())
    away = Rehearsal(tmp_path / "data", (*OPTIONS, str(remote_bundle(tmp_path)))).start("--port", port)
    operator = Operator(away, tmp_path)
    operator.run("--once")
    number = submitted(away)
    process = operator.start()
    try:
        waited(lambda: [job["evaluations"] for job in operator.jobs()] == [1])
        away.stop(signal.SIGKILL)
        waited(lambda: [job["state"] for job in operator.jobs()] == ["scored"], 30)
        time.sleep(1)
        away.start("--port", port)
        waited(lambda: status(away, number) == "finished", 60)
    finally:
        process.terminate()
        process.communicate(timeout=120)
        away.stop()
    assert operator.jobs()[0]["evaluations"] == 1
