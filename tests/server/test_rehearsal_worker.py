"""The rehearsal's worker acts like EvalAI's, and ends submissions that would hang there."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.rehearsals import Rehearsal, bundle_with, waited

#: What a submission says is what the script does.
SCRIPT = b"""
import os, sys, time

CALLS = []

def evaluate(truth, submission, phase, **kwargs):
    word = open(submission).read().strip()
    CALLS.append(word)
    print("called", len(CALLS), os.path.basename(submission).count("-"), kwargs["submission_metadata"]["status"])
    print("to stderr", file=sys.stderr)
    good = {"result": [{"dev": {"J&F-Mean": float(len(CALLS))}}]}
    if word == "exit":
        sys.exit(3)
    if word == "fork":
        os.fork()
    if word == "orphan":
        if os.fork() == 0:
            os.setsid()
            time.sleep(20)
            os._exit(0)
        os.kill(os.getpid(), 6)
    if word == "hang":
        time.sleep(1000)
    if word == "raise":
        raise ValueError("what went wrong")
    if word == "memory":
        bytearray(2 << 30)
    return {
        "none": None,
        "nan": {"result": [{"dev": {"J&F-Mean": float("nan")}}]},
        "split": {"result": [{"nowhere": {"J&F-Mean": 1.0}}]},
    }.get(word, good)
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rehearsal]:
    options = ("--requests-per-minute", "100000", "--visibility", "2", "--seconds", "6")
    with Rehearsal(tmp_path_factory.mktemp("worker") / "data", options).start() as running:
        yield running


@pytest.fixture(scope="module")
def challenge(server: Rehearsal, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    def change(config: Any) -> None:
        config["title"] = "Script"
        config["challenge_phases"][0].update(max_submissions_per_day=1000, max_concurrent_submissions_allowed=100)

    script = {"__init__.py": b"from .main import evaluate\n", "main.py": SCRIPT}
    assert (
        server.push(bundle_with(tmp_path_factory.mktemp("script"), change, script), repository="me/script").status_code
        == 201
    )
    return entered(server, "Script")


def entered(server: Rehearsal, title: str) -> dict[str, Any]:
    listed = server.get("/api/challenges/challenge/all/all/all").json()["results"]
    row: dict[str, Any] = next(item for item in listed if item["title"] == title)
    server.call(
        "POST", f"/api/challenges/challenge/{row['id']}/participant_team/{server.people['aurora']['team']}", "aurora"
    )
    row["phase"] = server.get(f"/api/challenges/{row['id']}/phases/", "host").json()[0]["id"]
    return row


def ended(server: Rehearsal, challenge: dict[str, Any], word: str) -> dict[str, Any]:
    sent = server.submit("aurora", word.encode(), challenge["phase"], challenge["id"])
    assert sent.status_code == 201, sent.text
    return server.settled(sent.json()["id"])


@pytest.mark.long
@pytest.mark.parametrize(
    ("word", "message"),
    [
        pytest.param("exit", "its process ended with exit code 3, again and again", id="sys.exit"),
        pytest.param("orphan", "its process was killed by SIGABRT, again and again", id="orphan-holds-the-pipe"),
        pytest.param("hang", "it did not answer for 6 seconds, and EvalAI waits forever", id="hang"),
    ],
)
def test_what_hangs_on_evalai_is_ended_and_said(server: Rehearsal, challenge: Any, word: str, message: str) -> None:
    done = ended(server, challenge, word)
    assert done["status"] == "failed"
    output = server.text(done["stderr_file"])
    assert output.startswith("On EvalAI this would hang: ")
    assert message in output
    assert ended(server, challenge, "fine")["status"] == "finished", "the next one is scored"


@pytest.mark.parametrize(
    ("word", "last"),
    [
        pytest.param("raise", "ValueError: what went wrong", id="raise"),
        pytest.param("none", "TypeError: argument of type 'NoneType' is not iterable", id="none"),
        pytest.param("nan", "ValueError: Out of range float values are not JSON compliant", id="nan"),
        pytest.param("split", "no split 'nowhere' is mapped to this phase", id="split"),
        pytest.param("memory", "MemoryError", id="memory"),
    ],
)
def test_what_fails_on_evalai_fails_here(server: Rehearsal, challenge: Any, word: str, last: str) -> None:
    done = ended(server, challenge, word)
    assert done["status"] == "failed"
    text = server.text(done["stderr_file"]).strip()
    assert last in text.splitlines()[-1]
    assert text.startswith("to stderr")
    assert done["submission_result_file"] is None


def test_a_script_that_forks_gives_nobody_anothers_score(server: Rehearsal, challenge: Any) -> None:
    assert ended(server, challenge, "fork")["status"] == "finished"
    texts = [server.text(ended(server, challenge, "fine")["stdout_file"]).split() for _ in range(3)]
    assert [int(text[1]) for text in texts] == list(range(int(texts[0][1]), int(texts[0][1]) + 3))


def children(server: Rehearsal) -> list[int]:
    path = Path(f"/proc/{server.process.pid}/task")
    return [int(pid) for task in path.iterdir() for pid in (task / "children").read_text().split()]


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
