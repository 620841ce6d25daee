"""The remote worker as a process with a real server: stopped at every step, killed, and on a bad disk."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from segjudge.evaluation_script.runner.supervisor import descendants
from tests.builders import ROOT
from tests.hostile_network import Network
from tests.rehearsals import Rehearsal, waited
from tests.remote_workers import STRONG, Operator, operator_of, remote_server, status, submitted


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rehearsal]:
    yield from remote_server(tmp_path_factory.mktemp("life"))


@pytest.fixture
def operator(server: Rehearsal, tmp_path: Path) -> Operator:
    return operator_of(server, tmp_path)


@contextlib.contextmanager
def network(
    server: Rehearsal, *kinds: str, only: bytes = b"", rate: float = 1.0, most: int = 10**9
) -> Iterator[Network]:
    made = Network(server.address, rate=rate, patience=120.0, kinds=kinds, only=only, most=most)
    yield made
    made.close()


# ── a submission ────────────────────────────────────────────────────────────


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


# ── the end, at every step ──────────────────────────────────────────────────

#: What the worker does when it is asked: faults of the network, where they strike, and what is waited for.
STEPS: dict[str, Any] = {
    "poll": (("silence",), b"/queues/", "silence"),
    "headers": (("continue_for_ever",), b"/queues/", "continue_for_ever"),
    "download": (("drip",), b"/media/", "drip"),
    "running": (("silence",), b"update_submission", "silence"),
    "backing-off": (("refusal",), b"/queues/", "refusal"),
}


@pytest.mark.long
@pytest.mark.parametrize(
    ("step", "number"),
    [
        *((step, signal.SIGTERM) for step in ("headers", "download", "running")),
        ("backing-off", signal.SIGINT),
        ("poll", signal.SIGHUP),
    ],
)
def test_a_stop_is_obeyed_at_every_step(server: Rehearsal, operator: Operator, step: str, number: int) -> None:
    kinds, only, struck = STEPS[step]
    sent = submitted(server)
    with network(server, *kinds, only=only) as bad:
        process = operator.start(API_SERVER=bad.address)
        try:
            waited(lambda: bad.struck[struck or kinds[0]], 60)
            time.sleep(0.3)
            process.send_signal(number)
            _, output = process.communicate(timeout=60)  # without an end to its call it would be minutes
        finally:
            process.kill()
    assert process.returncode == 0, output
    assert "Traceback" not in output
    assert status(server, sent) in ("submitted", "running")
    operator.run("--once")
    assert status(server, sent) == "finished"


@pytest.mark.long
def test_a_stop_while_it_scores_hands_back(server: Rehearsal, operator: Operator) -> None:
    sent = submitted(server)
    process = operator.start(GRACE_SECONDS="0.1")
    try:
        waited(
            lambda: any("remote_challenge_evaluation.evaluate" in _command(pid) for pid in descendants(process.pid)), 60
        )
        below = list(descendants(process.pid))
        process.terminate()
        process.communicate(timeout=120)
    finally:
        process.kill()
    assert process.returncode == 0
    assert not [pid for pid in below if _command(pid)]
    operator.run("--once")
    assert status(server, sent) == "finished"


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""


@pytest.mark.long
def test_workers_of_a_killed_parent_end(server: Rehearsal, operator: Operator) -> None:
    command = [sys.executable, "-m", "segjudge.remote_challenge_evaluation", "--jobs", "2"]
    parent = subprocess.Popen(command, cwd=ROOT, env=operator.environment, stderr=subprocess.DEVNULL)
    try:
        locks = operator.folder / "machine/locks"
        waited(lambda: locks.exists() and len([path for path in locks.iterdir() if path.name != "opening"]) == 2, 60)
        below = list(descendants(parent.pid))
        assert len(below) >= 2
        parent.kill()
        parent.wait()
        waited(lambda: not [pid for pid in below if "remote_challenge" in _command(pid)], 30)
    finally:
        parent.kill()


# ── looking after it ────────────────────────────────────────────────────────


@pytest.mark.long
def test_a_check_opens_the_annotations_and_touches_nothing(
    server: Rehearsal, operator: Operator, tmp_path: Path
) -> None:
    number = submitted(server)
    output = operator.run("--check")
    for name in ("token: accepted", "queue: ", "remote evaluation", "phase 1: sequences-dev", "test, test-hard"):
        assert name in output
    assert status(server, number) == "submitted"
    assert server.people["host"]["token"] not in output
    assert re.search(r"annotations of sequences-dev: dev \d+ sequences of \d+ frames", output)
    assert re.search(r"annotations of instances-dev: dev \d+ images", output)
    broken = tmp_path / "annotations"
    shutil.copytree(ROOT / "annotations", broken)
    (broken / "sequences-dev.zip").write_bytes(b"PK garbage")
    shutil.copy(ROOT / "annotations/sequences-dev.zip", broken / "sequences-test.zip")
    shutil.copy(ROOT / "annotations/sequences-dev.zip", broken / "instances-dev.zip")
    output = operator.run("--check", expected=3, ANNOTATIONS=str(broken))
    assert "sequences-dev.zip" in output
    assert "Traceback" not in output
    assert "has no split 'test'" in output
    assert "holds sequences, which the protocol places2017 does not score" in output
