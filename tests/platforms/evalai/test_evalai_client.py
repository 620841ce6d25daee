"""For the official `evalai` client, the real one, the rehearsal is a whole EvalAI."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.builders import ROOT
from tests.rehearsals import Rehearsal, bundle_with, waited
from tests.shared import IN_CI

PYTHON = os.environ.get("SEGJUDGE_EVALAI_CLIENT", "")
pytestmark = pytest.mark.skipif(not PYTHON and not IN_CI, reason="EVALAI CLIENT ABSENT: use ./run.sh test")
STRONG = ROOT / "examples/sequences-dev/strong.zip"
Client = Callable[..., str]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rehearsal]:
    running = Rehearsal(tmp_path_factory.mktemp("client") / "data", ("--requests-per-minute", "10000")).start()
    yield running
    running.stop()
    assert "Traceback" not in running.errors()


def client_of(server: Rehearsal, home: Path, who: str) -> Client:
    """Return the client as a user has it: a home of their own, host and token set once."""

    def evalai(*arguments: str, answer: str = "") -> str:
        environment = {
            "HOME": str(home),
            "PATH": os.environ["PATH"],
            "NO_PROXY": "127.0.0.1",
            "LC_ALL": "C.UTF-8",
            "LANG": "C.UTF-8",
        }
        done = subprocess.run(
            [PYTHON, str(ROOT / "tests/evalai_client.py"), *arguments], env=environment, cwd=home, input=answer,
            capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        assert "Traceback" not in done.stderr, done.stderr
        return done.stdout + done.stderr

    assert f"{server.address} is set as the host url" in evalai("host", "-sh", server.address)
    assert "Success" in evalai("set_token", server.people[who]["token"])
    return evalai


@pytest.fixture(scope="module")
def aurora(server: Rehearsal, tmp_path_factory: pytest.TempPathFactory) -> Client:
    return client_of(server, tmp_path_factory.mktemp("home"), "aurora")


@pytest.mark.long
def test_it_lists_what_there_is(aurora: Client) -> None:
    assert "Segjudge demo challenge" in aurora("challenges")
    assert "Segjudge demo challenge" in aurora("challenges", "ongoing")
    assert "no" in aurora("challenges", "past").lower()
    assert "Segjudge demo challenge" in aurora("challenges", "--participant")
    assert "This challenge has" in aurora("challenge", "1")
    phases = aurora("challenge", "1", "phases")
    assert "Sequences, development" in phases
    phase = aurora("challenge", "1", "phase", "1")
    assert "Sequences, development" in phase
    assert "sequences-dev" in aurora("challenge", "1", "phase", "1", "--json")
    assert "Development" in aurora("challenge", "1", "phase", "1", "splits")


@pytest.mark.long
def test_it_makes_a_team_and_takes_part(server: Rehearsal, aurora: Client, tmp_path: Path) -> None:
    assert "Aurora" in aurora("teams", "--participant")
    made = aurora("teams", "create", "participant", answer="Client team\ny\nn\n")
    assert "Client team" in made
    team = server.people["aurora"]["team"]
    output = aurora("challenge", "1", "participate", team, answer="y\n")
    assert f"Your team id {team} is now participating in this challenge." in output
    page = re.search(r"(http://\S+/web/challenges/challenge-page/1/evaluation)", output)
    assert page
    assert "How it is scored" in server.text(page.group(1))


def submitted(output: str) -> str:
    match = re.search(r"with the id (\d+) is success|evalai submission (\d+)", output)
    assert match, output
    return next(group for group in match.groups() if group)


@pytest.mark.long
def test_it_submits_polls_and_reads_result_and_leaderboard(aurora: Client) -> None:
    number = submitted(
        aurora("challenge", "1", "phase", "1", "submit", "--file", str(STRONG), "--public", answer="n\n")
    )
    waited(lambda: "finished" in aurora("submission", number).lower(), 60)
    assert "davis2017" in aurora("submission", number, "result")
    assert number in aurora("challenge", "1", "phase", "1", "submissions")
    board = aurora("challenge", "1", "leaderboard", "1")
    assert "Aurora" in board
    assert "J&F-Mean" in board
    assert "0.93" in board


@pytest.mark.long
def test_it_submits_large_files_in_parts(aurora: Client) -> None:
    output = aurora(
        "challenge", "1", "phase", "1", "submit", "--file", str(STRONG), "--large", "--private", answer="n\n"
    )
    number = submitted(output)
    waited(lambda: "finished" in aurora("submission", number).lower(), 60)


@pytest.mark.long
def test_a_bad_submission_fails_in_its_sight(aurora: Client, tmp_path: Path) -> None:
    (tmp_path / "bad.zip").write_bytes(b"PK\x03\x04")
    number = submitted(
        aurora("challenge", "1", "phase", "1", "submit", "--file", str(tmp_path / "bad.zip"), answer="n\n")
    )
    waited(lambda: "failed" in aurora("submission", number).lower(), 60)


@pytest.mark.long
def test_refusals_reach_the_person(server: Rehearsal, aurora: Client, tmp_path: Path) -> None:
    assert "Error: Challenge phase 99 does not exist for challenge 1" in aurora("challenge", "1", "phase", "99")
    assert "404 Client Error" in aurora("challenge", "99")
    home = tmp_path / "home"
    home.mkdir()
    outsider = client_of(server, home, "borealis")
    outsider("set_token", "nonsense")
    assert "401 Client Error" in outsider("challenges", "--participant")


@pytest.mark.long
def test_a_host_uploads_an_annotation(server: Rehearsal, tmp_path: Path) -> None:
    server.push(bundle_with(tmp_path, lambda config: config.update(title="Annotated")), repository="me/annotated")
    listed = server.get("/api/challenges/challenge/all/all/all").json()["results"]
    challenge = next(item["id"] for item in listed if item["title"] == "Annotated")
    phase = server.get(f"/api/challenges/{challenge}/phases/", "host").json()[0]["id"]
    truth = tmp_path / "truth.zip"
    shutil.copy(ROOT / "annotations/sequences-test.zip", truth)
    home = tmp_path / "home"
    home.mkdir()
    host = client_of(server, home, "host")
    host("challenge", str(challenge), "phase", str(phase), "submit", "--file", str(truth), "--annotation", answer="n\n")
    answer = server.get(f"/api/challenges/{challenge}/phases/", "host").json()[0]
    assert answer["annotations_uploaded_using_cli"] is True
    assert answer["test_annotation"]


@pytest.mark.long
def test_logging_in_gives_a_token(server: Rehearsal, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    evalai = client_of(server, home, "aurora")
    evalai("set_token", "nonsense")
    output = evalai("login", answer=f"aurora\n{server.people['aurora']['password']}\n")
    assert "Aurora" in evalai("teams", "--participant"), output
