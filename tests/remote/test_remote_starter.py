"""A worker in the form of EvalAI's starter repository runs with our `evaluate.py` instead of its own."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from segjudge.evaluation_script import evaluate as hosted
from tests.builders import ROOT
from tests.rehearsals import Rehearsal
from tests.remote_workers import STRONG, Operator, remote_server, submitted

#: What such a worker does with one message: look, say RUNNING, fetch, call `evaluate` with two values, send
#: `json.dumps(results["result"])` as form data, and the text of any exception as the reason of a failure.
WORKER = """
import json, os, sys
import requests
from evaluate import evaluate

server, token, queue, challenge = (os.environ[name] for name in ("API_SERVER", "AUTH_TOKEN", "QUEUE_NAME", "CHALLENGE_PK"))

def api(method, path, data=None):
    answer = requests.request(method, server + path, data=data, headers={"Authorization": "Bearer " + token}, timeout=60)
    answer.raise_for_status()
    return answer.json()

update = "/api/jobs/challenge/%s/update_submission/" % challenge
while True:
    message = api("GET", "/api/jobs/challenge/queues/%s/" % queue)
    if not message["body"]:
        break
    number, phase = message["body"]["submission_pk"], message["body"]["phase_pk"]
    submission = api("GET", "/api/jobs/submission/%s" % number)
    codename = api("GET", "/api/challenges/challenge/phase/%s/" % phase)["codename"]
    api("PATCH", update, {"submission": number, "submission_status": "RUNNING"})
    with open("submission", "wb") as file:
        file.write(requests.get(submission["input_file"], timeout=60).content)
    sent = {"challenge_phase": phase, "submission": number, "stdout": "", "metadata": ""}
    try:
        results = evaluate("submission", codename)
        sent.update(submission_status="FINISHED", stderr="", result=json.dumps(results["result"]))
        api("PUT", update, sent)
    except Exception as error:
        sent.pop("result", None)
        sent.update(submission_status="FAILED", stderr=str(error))
        api("PUT", update, sent)
    api("POST", "/api/jobs/queues/%s/" % queue, {"receipt_handle": message["receipt_handle"]})
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rehearsal]:
    yield from remote_server(tmp_path_factory.mktemp("starter"))


def run(server: Rehearsal, folder: Path, **environment: str) -> str:
    """Return the worker, in a folder with its program and our `evaluate.py`."""
    (folder / "main.py").write_text(WORKER)
    shutil.copy(ROOT / "remote_challenge_evaluation/evaluate.py", folder / "evaluate.py")
    variables = {**Operator(server, folder).environment, **environment}
    done = subprocess.run(
        [sys.executable, "main.py"], cwd=folder, env=variables, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stderr


@pytest.mark.long
def test_its_submissions_are_scored(server: Rehearsal, tmp_path: Path) -> None:
    number = submitted(server, is_public="true")
    run(server, tmp_path)
    row = server.get(f"/api/jobs/submission/{number}", "host").json()
    assert row["status"] == "finished", server.text(row["stderr_file"])
    local_scores = hosted(str(ROOT / "annotations/sequences-dev.zip"), str(STRONG), "sequences-dev")["result"][0]["dev"]
    board = server.get("/api/jobs/challenge_phase_split/1/leaderboard/").json()["results"]
    assert [item["result"] for item in board if item["submission__id"] == number] == [list(local_scores.values())]


@pytest.mark.long
def test_a_fault_of_ours_shows_a_participant_no_path(server: Rehearsal, tmp_path: Path) -> None:
    number = submitted(server)
    secret = tmp_path / "secret-truth"
    secret.mkdir()
    output = run(server, tmp_path, ANNOTATIONS=str(secret))
    row = server.get(f"/api/jobs/submission/{number}", "host").json()
    assert row["status"] == "failed"
    assert "no annotation file for sequences-dev" in server.text(row["stderr_file"])
    assert "secret-truth" not in server.text(row["stderr_file"])
    assert "secret-truth" in output, "the operator's log has it"
