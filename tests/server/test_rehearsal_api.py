"""The rehearsal answers as EvalAI's API does: paths, statuses, texts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from segjudge.server.accounts import Accounts
from segjudge.server.store import Store
from tests.builders import ROOT
from tests.rehearsals import Rehearsal, bundle_with

STRONG = ROOT / "examples/sequences-dev/strong.zip"
UPDATE = "/api/jobs/challenge/{}/update_submission/"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rehearsal]:
    options = ("--requests-per-minute", "100000", "--visibility", "1", "--hosts", "borealis")
    with Rehearsal(tmp_path_factory.mktemp("api") / "data", options).start() as running:
        yield running


# ── who calls ───────────────────────────────────────────────────────────────


def test_a_token_serves_as_a_word_on_a_command_line(tmp_path: Path) -> None:
    # `evalai set_token TOKEN` takes one that begins with "-" for an option, and says nothing.
    with closing(Store(str(tmp_path))) as store:
        accounts = Accounts(store)
        user = accounts.create("aurora", "password")
        assert all(accounts.mint_token(user, "profile")[0].isalnum() for _ in range(100))


# ── pushing ─────────────────────────────────────────────────────────────────


# ── what was found by attacking it ──────────────────────────────────────────


def test_a_host_of_another_challenge_reaches_no_submission_of_this_one(server: Rehearsal, tmp_path: Path) -> None:
    number = server.submit("aurora", ROOT / "examples/instances-dev/sharp.json", 3).json()["id"]
    made = server.call("POST", "/api/hosts/create_challenge_host_team", "borealis", json={"team_name": "Rivals"}).json()
    path = f"/api/challenges/challenge/challenge_host_team/{made['id']}/create_or_update_github_challenge/"
    files = {"zip_configuration": bundle_with(tmp_path).read_bytes()}
    assert server.call("POST", path, "borealis", data={"GITHUB_REPOSITORY": "rivals/x"}, files=files).status_code == 201
    listed = server.get("/api/challenges/challenge/all/all/all").json()["results"]
    theirs = max(item["id"] for item in listed)
    body = {"submission": number, "challenge_phase": 3, "submission_status": "RUNNING", "result": "[]"}
    for method, status in (("PATCH", "RUNNING"), ("PUT", "FINISHED"), ("PUT", "CANCELLED")):
        answer = server.call(method, UPDATE.format(theirs), "borealis", json={**body, "submission_status": status})
        assert (answer.status_code, list(answer.json())) == (400, ["error"])
    assert server.settled(number)["status"] == "finished"


@pytest.mark.parametrize("name", ["a." + "€" * 100, "x.z\0ip", "../../x", "." * 200])
def test_a_strange_file_name_is_scored_like_any_other(server: Rehearsal, name: str) -> None:
    path = "/api/jobs/challenge/1/challenge_phase/1/submission/"
    answer = server.call("POST", path, "borealis", files={"input_file": (name, STRONG.read_bytes())})
    assert server.settled(answer.json()["id"])["status"] == "finished"


@pytest.mark.parametrize("page", ["/challenges/1", "/challenges/1/leaderboard/1", "/login", "/nothing"])
def test_a_look_at_the_head_alone_is_answered(server: Rehearsal, page: str) -> None:
    assert server.call("HEAD", page).status_code in (200, 404)
