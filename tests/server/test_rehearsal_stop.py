"""A rehearsal that is stopped in order loses nothing and fails nothing, no less than one that is killed."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from segjudge.server.models import LeaderboardData, StoredMessage, Submission
from tests.rehearsals import Rehearsal, bundle_with, waited

#: Scores what a submission says, and takes its time.
SCRIPT = b"""
import sys, time

def evaluate(truth, submission, phase, **kwargs):
    value, seconds = open(submission).read().split()
    until = time.monotonic() + float(seconds)
    while time.monotonic() < until:
        time.sleep(0.01)
    return {"result": [{"dev": {"J&F-Mean": float(value)}}]}
"""


def slow_bundle(folder: Path, script: bytes = SCRIPT) -> Path:
    def change(config: Any) -> None:
        for phase in config["challenge_phases"]:
            phase.update(max_submissions_per_day=1000, max_concurrent_submissions_allowed=1000)

    return bundle_with(folder, change, {"__init__.py": script})


def rehearsal(tmp_path: Path, *options: str, **more: Any) -> Rehearsal:
    wide = ("--requests-per-minute", "100000", *options)
    return Rehearsal(tmp_path / "data", wide, bundle=slow_bundle(tmp_path), grouped=True, **more)


def send(server: Rehearsal, count: int, seconds: float) -> dict[int, float]:
    """Send submissions; return them with the score that each must get."""
    wanted = {}
    for k in range(count):
        sent = server.submit("aurora", f"{k / 100} {seconds}".encode())
        assert sent.status_code == 201, sent.text
        wanted[sent.json()["id"]] = k / 100
    return wanted


def status(server: Rehearsal, number: int) -> str:
    return str(server.get(f"/api/jobs/submission/{number}", "host").json()["status"])


def running(server: Rehearsal, numbers: dict[int, float]) -> bool:
    return any(status(server, number) == "running" for number in numbers)


def scored(server: Rehearsal, wanted: dict[int, float]) -> None:
    for number in wanted:
        done = server.settled(number)
        assert done["status"] == "finished", server.text(done["stderr_file"])
    with server.store() as store:
        rows = store.find(LeaderboardData, LeaderboardData.disabled.is_(False))
        left = store.count(StoredMessage)
    values = {row.submission_id: row.result["J&F-Mean"] for row in rows}
    assert {number: values[number] for number in wanted} == wanted
    assert left == 0


def once(number: int) -> Callable[[Rehearsal], None]:
    return lambda server: server.process.send_signal(number)


def ctrl_c(times: int) -> Callable[[Rehearsal], None]:
    def pressed(server: Rehearsal) -> None:
        for _ in range(times):
            os.killpg(server.process.pid, signal.SIGINT)
            time.sleep(0.05)

    return pressed


STOPS = [
    pytest.param(once(signal.SIGTERM), id="SIGTERM"),
    pytest.param(once(signal.SIGHUP), id="SIGHUP"),
    pytest.param(ctrl_c(8), id="ctrl-c-again-and-again"),
]


def stopped(server: Rehearsal, stop: Callable[[Rehearsal], None]) -> None:
    stop(server)
    assert server.process.wait(120) == 0, server.errors()
    server.process.stdout.close()
    server.log.close()
    assert "Traceback" not in server.errors()


@pytest.mark.long
@pytest.mark.parametrize("stop", STOPS)
def test_what_is_scored_at_a_stop_is_scored_at_the_next_start(tmp_path: Path, stop: Any) -> None:
    server = rehearsal(tmp_path, "--workers", "2").start()
    wanted = send(server, 4, 0.7)
    waited(lambda: running(server, wanted))
    stopped(server, stop)
    with server.store() as store:
        statuses = {row.status for row in store.find(Submission)}
        hidden = store.count(StoredMessage, StoredMessage.visible_at > time.time())
    assert statuses <= {"submitted", "finished"}
    assert hidden == 0, "the next start finds them at once, not after thirty seconds"
    server.start()
    scored(server, wanted)
    stopped(server, once(signal.SIGTERM))


@pytest.mark.long
def test_a_stop_leaves_no_process_and_no_folder(tmp_path: Path) -> None:
    (tmp_path / "tmp").mkdir()
    server = rehearsal(tmp_path, "--workers", "2", environment={"TMPDIR": str(tmp_path / "tmp")}).start()
    wanted = send(server, 2, 30)
    waited(lambda: all(status(server, number) == "running" for number in wanted))
    stopped(server, once(signal.SIGTERM))
    assert list((tmp_path / "tmp").iterdir()) == []
    server.start()
    waited(lambda: running(server, wanted))
    left = waited(lambda: list((tmp_path / "tmp").glob("segjudge-worker-*")))
    server.stop(signal.SIGKILL)
    assert left
    server.start("--workers", "0")
    assert not [item for item in left if item.exists()], "what a killed one left goes at the next start"
    stopped(server, once(signal.SIGTERM))


@pytest.mark.long
def test_state_survives_a_restart(tmp_path: Path) -> None:
    server = Rehearsal(tmp_path / "data", ("--seed-demo",)).start()
    try:
        board = "/api/jobs/challenge_phase_split/1/leaderboard/"
        waited(lambda: len(server.get(board).json().get("results", ())) == 3)  # who asks too often gets no results
        server.stop()
        assert "shown only this once" in server.output
        assert re.search("The bundle was built with(out)? kernel", server.output.splitlines()[-1])
        server.start()
        assert "shown only this once" not in server.output
        assert "Sent" not in server.output, "samples are not sent twice"
        assert len(server.get("/api/jobs/challenge_phase_split/1/leaderboard/").json()["results"]) == 3
        assert server.get("/api/participants/participant_team", "aurora").status_code == 200, "tokens too"
    finally:
        server.stop()
    server.start("--reset")
    assert "shown only this once" in server.output
    server.stop(signal.SIGKILL)
