"""The rehearsal answers as EvalAI's API does: paths, statuses, texts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import requests

from segjudge.server.accounts import Accounts
from segjudge.server.store import Store
from tests.builders import ROOT
from tests.rehearsals import Rehearsal, bundle_with, waited

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


# ── submitting ──────────────────────────────────────────────────────────────


def test_a_submission_goes_from_file_to_leaderboard(server: Rehearsal) -> None:
    answer = server.submit("aurora", STRONG, method_name="mine", is_public="true")
    assert answer.status_code == 201
    assert answer.json()["status"] == "submitted"

    done = server.settled(answer.json()["id"], "aurora")

    assert done["status"] == "finished"
    assert "scored" in server.text(done["stdout_file"])
    assert done["stderr_file"] is None, "kept only of a failed one"
    assert json.loads(server.text(done["submission_result_file"]))["protocol"] == "davis2017"
    (row,) = server.get("/api/jobs/challenge_phase_split/1/leaderboard/").json()["results"]
    assert row["submission__participant_team__team_name"] == "Aurora"
    assert row["leaderboard__schema"]["labels"][0] == "J&F-Mean"
    assert round(row["result"][0], 3) == 0.933
    assert row["error"][0] > 0


def test_a_bad_file_fails_with_its_sentence_last(server: Rehearsal) -> None:
    done = server.settled(server.submit("aurora", b"PK\x03\x04 no zip at all").json()["id"])
    assert done["status"] == "failed"
    assert "is a zip that was cut off" in server.text(done["stderr_file"]).strip().splitlines()[-1]


def test_an_annotation_comes_in_parts_and_stays(server: Rehearsal, tmp_path: Path) -> None:
    server.push(bundle_with(tmp_path, lambda config: config.update(title="Annotated")), repository="me/annotated")
    listed = server.get("/api/challenges/challenge/all/all/all").json()["results"]
    challenge = next(item["id"] for item in listed if item["title"] == "Annotated")
    phase = server.get(f"/api/challenges/{challenge}/phases/", "host").json()[0]["id"]
    urls = f"/api/challenges/phases/{phase}/get_annotation_file_presigned_url/"
    assert server.call("POST", urls, "aurora", data={"num_file_chunks": 1}).status_code == 403
    begun = server.call("POST", urls, "host", data={"num_file_chunks": 1, "file_name": "new.zip"}).json()
    tag = requests.put(begun["presigned_urls"][0]["url"], data=b"new truth", timeout=60).headers["ETag"]
    parts = json.dumps([{"ETag": tag, "PartNumber": 1}])
    finish = f"/api/challenges/phases/{phase}/finish_annotation_file_upload/"
    assert (
        server.call("POST", finish, "host", data={"upload_id": begun["upload_id"], "parts": parts}).status_code == 201
    )
    server.push(bundle_with(tmp_path, lambda config: config.update(title="Annotated")), repository="me/annotated")
    row = server.get(f"/api/challenges/{challenge}/phases/", "host").json()[0]
    assert server.text(row["test_annotation"]) == "new truth", "a push no longer changes it"


# ── pushing ─────────────────────────────────────────────────────────────────


def test_static_code_upload_is_scored_in_its_second_stage(server: Rehearsal, tmp_path: Path) -> None:
    def change(config: Any) -> None:
        config.update(is_docker_based=True, is_static_dataset_code_upload=True, title="Static")

    assert server.push(bundle_with(tmp_path, change), repository="me/static").status_code == 201
    listed = server.get("/api/challenges/challenge/all/all/all").json()["results"]
    content = next(item for item in listed if item["title"] == "Static")
    phase = server.get(f"/api/challenges/{content['id']}/phases/", "host").json()[0]["id"]
    server.call(
        "POST",
        f"/api/challenges/challenge/{content['id']}/participant_team/{server.people['aurora']['team']}",
        "aurora",
    )
    refused = server.submit("aurora", b"no json", phase, content["id"])
    assert "in submitted_image_uri from submission file" in refused.json()["error"]
    sent = server.submit("aurora", b'{"submitted_image_uri": "registry.example/me:1"}', phase, content["id"]).json()
    queue = f"/api/jobs/challenge/queues/{content['queue']}/"
    message = waited(lambda: server.get(queue, "host").json()["body"])
    assert message["is_static_dataset_code_upload_submission"] is True
    assert message["submitted_image_uri"] == "registry.example/me:1"
    product = (ROOT / "examples/sequences-dev/first-mask.json").read_bytes()
    server.call(
        "PATCH",
        UPDATE.format(content["id"]),
        "host",
        data={"submission": sent["id"]},
        files={"submission_input_file": ("submission.json", product)},
    )
    done = server.settled(sent["id"])
    assert done["status"] == "finished"
    split = server.get(f"/api/challenges/{content['id']}/challenge_phase_split").json()[0]["id"]
    (row,) = server.get(f"/api/jobs/challenge_phase_split/{split}/leaderboard/").json()["results"]
    assert round(row["result"][0], 4) == 0.2366


# ── what nobody should send ─────────────────────────────────────────────────


@pytest.mark.long
def test_sixty_requests_a_minute_and_no_more(tmp_path: Path) -> None:
    with Rehearsal(tmp_path / "data", ("--workers", "0")).start() as server:
        answers = [server.get("/api/challenges/challenge/1/", "aurora") for _ in range(61)]
        assert [answer.status_code for answer in answers] == [200] * 60 + [429]
        wait = int(answers[-1].headers["Retry-After"])
        assert 1 <= wait <= 60
        assert answers[-1].json() == {"detail": f"Request was throttled. Expected available in {wait} seconds."}
        assert server.get("/api/challenges/challenge/1/", "host").status_code == 200, "another user"


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
