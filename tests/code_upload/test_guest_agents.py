"""`rehearse --agents` with a host's own environment, in the form of EvalAI's starter."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from segjudge.platforms.evalai.bundle.build import build
from segjudge.platforms.evalai.bundle.check import check
from tests import guests
from tests.rehearsals import Rehearsal, waited

pytest.importorskip("grpc")

FOLDER = "bundle/code_upload_challenge_evaluation"
TABLE = """
seconds = 60
[images."aurora/right:1"]
command = ["python", "agent.py", "right", "right", "left", "right"]
folder = "FOLDER/agent"
[images."aurora/short:1"]
command = ["python", "agent.py", "right"]
folder = "FOLDER/agent"
[environments.dev]
command = ["python", "environment.py"]
folder = "FOLDER/environment"
port = PORT
[environments.test]
command = ["python", "-c", "print('no GPU here')"]
folder = "FOLDER/environment"
port = PORT
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rehearsal]:
    home = tmp_path_factory.mktemp("agents")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    folder = guests.code_upload(home / "bundle", port)
    (home / "agents.toml").write_text(TABLE.replace("FOLDER", FOLDER).replace("PORT", str(port)))
    options = ("--requests-per-minute", "100000", "--agents", str(home / "agents.toml"))
    running = Rehearsal(home / "data", options, root=folder).start()
    yield running
    running.stop()
    assert "Traceback" not in running.errors()


def ended(server: Rehearsal, image: str, phase: int = 1) -> dict[str, Any]:
    answer = server.submit("aurora", json.dumps({"submitted_image_uri": image}).encode(), phase)
    assert answer.status_code == 201, answer.text
    row: dict[str, Any] = server.settled(answer.json()["id"])
    return row


def log_of(server: Rehearsal, row: dict[str, Any]) -> str:
    """Return the environment's output, which is kept for a while after the submission has ended."""
    return server.text(
        waited(lambda: server.get(f"/api/jobs/submission/{row['id']}", "host").json()["environment_log_file"])
    )


def test_the_bundle_of_code_uploads_is_accepted(tmp_path: Path) -> None:
    assert check(build(str(guests.code_upload(tmp_path, 8085))).path) == []


def test_an_agent_plays_against_the_hosts_environment(server: Rehearsal) -> None:
    done = ended(server, "aurora/right:1")
    assert done["status"] == "finished", server.text(done["stderr_file"])
    assert server.text(done["submission_result_file"]) == "[{'Accuracy': 0.75, 'Coverage': 1.0}]"
    assert "listening for 60 seconds" in log_of(server, done)


@pytest.mark.long
def test_an_agent_that_leaves_early_fails_with_its_log(server: Rehearsal) -> None:
    done = ended(server, "aurora/short:1")
    assert done["status"] == "failed"
    text = server.text(done["stderr_file"])
    assert "The agent ended with exit code 0 before a result was reported." in text
    assert "['left', 'right']" in text


@pytest.mark.long
def test_an_environment_that_does_not_listen_is_told(server: Rehearsal) -> None:
    done = ended(server, "aurora/right:1", phase=2)
    assert done["status"] == "failed"
    assert "The environment did not listen at port" in server.text(done["stderr_file"])
    assert "no GPU here" in log_of(server, done)
