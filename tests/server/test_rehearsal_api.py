"""The rehearsal answers as EvalAI's API does: paths, statuses, texts."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import requests

from segjudge.platforms.evalai import routes
from segjudge.server.accounts import Accounts
from segjudge.server.store import Store
from tests.builders import ROOT
from tests.demo_challenge import CODENAMES, CONFIG
from tests.rehearsals import Rehearsal, bundle_with, waited

STRONG = ROOT / "examples/sequences-dev/strong.zip"
UPDATE = "/api/jobs/challenge/{}/update_submission/"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rehearsal]:
    options = ("--requests-per-minute", "100000", "--visibility", "1", "--hosts", "borealis")
    with Rehearsal(tmp_path_factory.mktemp("api") / "data", options).start() as running:
        yield running


@pytest.fixture(scope="module")
def remote(server: Rehearsal, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return a challenge that a host's worker scores."""

    def change(config: Any) -> None:
        config.update(remote_evaluation=True, allow_resuming_submissions=True, title="Remote")
        for phase in config["challenge_phases"]:
            del phase["test_annotation_file"]
            phase["max_concurrent_submissions_allowed"] = 100
            phase["max_submissions_per_day"] = 1000

    answer = server.push(bundle_with(tmp_path_factory.mktemp("remote"), change), repository="me/remote")
    assert answer.status_code == 201, answer.text
    listed = server.get(f"/api/challenges/challenge_host_team/{server.people['host']['team']}/challenge", "host").json()
    row = next(item for item in listed["results"] if item["github_repository"] == "me/remote")
    for name in ("aurora", "borealis"):
        path = f"/api/challenges/challenge/{row['id']}/participant_team/{server.people[name]['team']}"
        assert server.call("POST", path, name).status_code == 201
    row["phases"] = server.get(f"/api/challenges/{row['id']}/phases/", "host").json()
    return dict(row)


# ── who calls ───────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("header", "detail"),
    [
        pytest.param({}, "Authentication credentials were not provided.", id="none"),
        pytest.param({"Authorization": "Bearer x"}, "Given token not valid for any token type", id="bearer"),
        pytest.param({"Authorization": "Token x"}, "Invalid token", id="token"),
        pytest.param({"Authorization": "Bearer"}, "Given token not valid for any token type", id="empty"),
    ],
)
def test_without_a_good_token_the_answer_is_401(server: Rehearsal, header: Any, detail: str) -> None:
    answer = server.get("/api/participants/participant_team", headers=header)
    assert (answer.status_code, answer.json()["detail"]) == (401, detail)


def test_a_login_mints_a_token(server: Rehearsal) -> None:
    who = {"username": "aurora", "password": server.people["aurora"]["password"]}
    token = server.call("POST", routes.LOGIN, data=who).json()["token"]
    answer = server.get(routes.AUTH_TOKEN, headers={"Authorization": f"Token {token}"}).json()
    assert set(answer) == {"token", "expires_at"}
    assert server.get(routes.PARTICIPANT_TEAMS, answer["token"]).json()["results"][0]["team_name"] == "Aurora"
    assert server.call("POST", routes.LOGIN, data={**who, "password": "no"}).status_code == 400


def test_a_token_serves_as_a_word_on_a_command_line(tmp_path: Path) -> None:
    # `evalai set_token TOKEN` takes one that begins with "-" for an option, and says nothing.
    with closing(Store(str(tmp_path))) as store:
        accounts = Accounts(store)
        user = accounts.create("aurora", "password")
        assert all(accounts.mint_token(user, "profile")[0].isalnum() for _ in range(100))


def test_a_team_is_made_and_its_name_is_taken(server: Rehearsal) -> None:
    answer = server.call("POST", "/api/participants/participant_team", "aurora", json={"team_name": "New team"})
    assert (answer.status_code, answer.json()["team_name"]) == (201, "New team")
    again = server.call("POST", "/api/participants/participant_team", "borealis", json={"team_name": "New team"})
    assert (again.status_code, list(again.json())) == (400, ["team_name"])
    for name, reason in {
        None: "This field may not be null.",
        True: "Not a valid string.",
        ("a",): "Not a valid string.",
        " ": "This field may not be blank.",
    }.items():
        refused = server.call("POST", "/api/participants/participant_team", "aurora", json={"team_name": name})
        assert (refused.status_code, refused.json()) == (400, {"team_name": [reason]})


# ── looking ─────────────────────────────────────────────────────────────────


def test_a_challenge_and_its_phases_are_as_in_the_yaml(server: Rehearsal) -> None:
    challenge = server.get("/api/challenges/challenge/1/").json()
    assert challenge["title"] == "Segjudge demo challenge"
    assert challenge["start_date"] == "2026-01-01T00:00:00Z"
    assert challenge["is_active"] is True
    assert "<p>" in challenge["description"]
    phases = server.get("/api/challenges/challenge/1/challenge_phase").json()
    codenames = [phase["codename"] for phase in sorted(CONFIG["challenge_phases"], key=lambda phase: phase["id"])]
    assert codenames != CODENAMES
    assert [phase["codename"] for phase in phases["results"]] == codenames, "in the order of their ids"
    assert (phases["count"], phases["next"], phases["previous"]) == (len(codenames), None, None)


def test_lists_by_time(server: Rehearsal) -> None:
    def count(period: str) -> int:
        return int(server.get(f"/api/challenges/challenge/{period}/approved/public").json()["count"])

    assert (count("past"), count("future")) == (0, 0)
    assert count("present") >= 1
    assert server.get("/api/challenges/challenge/all/all/all").json()["results"][0]["id"] == 1


def test_truth_is_shown_to_hosts_alone(server: Rehearsal) -> None:
    path = "/api/challenges/challenge/1/challenge_phase/1"
    assert "test_annotation" not in server.get(path).json()
    assert "test_annotation" not in server.get(path, "aurora").json()
    url = server.get(path, "host").json()["test_annotation"]
    assert requests.get(url, timeout=60).content == (ROOT / "annotations/sequences-dev.zip").read_bytes()
    assert server.get("/api/challenges/1/phases/", "aurora").status_code == 401


@pytest.mark.parametrize(
    ("path", "status", "body"),
    [
        pytest.param("/api/challenges/challenge/99/", 404, {"detail": "Challenge 99 does not exist"}, id="challenge"),
        pytest.param("/api/challenges/challenge/99/challenge_phase/1", 406, {"error": "Challenge does not exist"}, id="phase"),
        pytest.param("/api/challenges/challenge/1/challenge_phase/99", 406, {"error": "Challenge phase 99 does not exist for challenge 1"}, id="of"),
        pytest.param("/api/challenges/challenge/phase/99/", 404, {"detail": "ChallengePhase 99 does not exist"}, id="alone"),
        pytest.param("/api/jobs/submission/999", 404, {"error": "Submission 999 does not exist"}, id="submission"),
        pytest.param("/api/jobs/challenge_phase_split/99/leaderboard/", 404, {"detail": "ChallengePhaseSplit 99 does not exist"}, id="board"),
        pytest.param("/api/jobs/challenge/queues/none/", 400, {"error": "Challenge with queue name none does not exist"}, id="queue"),
        pytest.param("/api/nothing", 404, {"detail": "Not found."}, id="nothing"),
    ],
)  # fmt: skip
def test_what_is_not_there_is_said_in_the_servers_words(server: Rehearsal, path: str, status: int, body: Any) -> None:
    answer = server.get(path, "host")
    assert (answer.status_code, answer.json()) == (status, body)


def test_a_phase_is_found_by_its_slug(server: Rehearsal) -> None:
    slug = server.get("/api/challenges/challenge/phase/1/").json()["slug"]
    assert slug == "segjudge-sequences-dev-1"
    assert server.get(f"/api/challenges/phase/{slug}/").json()["id"] == 1


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


@pytest.mark.parametrize(
    ("phase", "who", "status", "message"),
    [
        pytest.param(99, "aurora", 400, "Challenge Phase does not exist", id="no-phase"),
        pytest.param(1, "", 401, "credentials were not provided", id="nobody"),
    ],
)
def test_refusals_of_a_submission(server: Rehearsal, phase: int, who: str, status: int, message: str) -> None:
    answer = server.submit(who, STRONG, phase)
    assert answer.status_code == status
    assert message in answer.text


def test_no_file_an_empty_file_and_an_address_are_refused(server: Rehearsal) -> None:
    path = "/api/jobs/challenge/1/challenge_phase/1/submission/"
    assert server.call("POST", path, "aurora", data={"status": "submitting"}).json() == {
        "input_file": ["No file was submitted."]
    }
    assert server.submit("aurora", b"").json() == {"input_file": ["The submitted file is empty."]}
    answer = server.call("POST", path, "aurora", data={"file_url": "http://127.0.0.1/secret"})
    assert answer.status_code == 400
    assert "downloads no files" in answer.json()["error"]


def test_limits_hold_in_the_servers_words(server: Rehearsal, tmp_path: Path) -> None:
    def change(config: Any) -> None:
        config["title"] = "Limits"
        config["remote_evaluation"] = True
        for phase in config["challenge_phases"]:
            del phase["test_annotation_file"]
        first, second, third = config["challenge_phases"]
        first.update(max_submissions_per_day=5, max_concurrent_submissions_allowed=2)
        second.update(max_submissions_per_day=2, max_concurrent_submissions_allowed=9, is_public=False)
        third.update(max_submissions_per_day=1, max_submissions_per_month=1, max_submissions=1)

    server.push(bundle_with(tmp_path, change), repository="me/limits")
    listed = server.get("/api/challenges/challenge/all/all/all").json()["results"]
    challenge = next(item["id"] for item in listed if item["title"] == "Limits")
    phases = [phase["id"] for phase in server.get(f"/api/challenges/{challenge}/phases/", "host").json()]
    refused = server.submit("aurora", STRONG, phases[0], challenge)
    assert (refused.status_code, refused.json()["error"]) == (403, "You haven't participated in the challenge")
    server.call(
        "POST", f"/api/challenges/challenge/{challenge}/participant_team/{server.people['aurora']['team']}", "aurora"
    )

    assert [server.submit("aurora", STRONG, phases[0], challenge).status_code for _ in range(2)] == [201, 201]
    refused = server.submit("aurora", STRONG, phases[0], challenge)
    assert refused.status_code == 406
    assert refused.json()["error"].startswith("You have 2 submissions that are being processed.")

    refused = server.submit("aurora", STRONG, phases[1], challenge)
    assert "challenge phase is not public" in refused.json()["error"]
    assert server.submit("host", STRONG, phases[1], challenge).status_code == 201, "hosts may"

    first = server.submit("aurora", STRONG, phases[2], challenge).json()["id"]
    server.call(
        "PUT",
        UPDATE.format(challenge),
        "host",
        json={"submission": first, "challenge_phase": phases[2], "submission_status": "CANCELLED"},
    )
    second = server.submit("aurora", STRONG, phases[2], challenge).json()["id"]
    server.call(
        "PUT",
        UPDATE.format(challenge),
        "host",
        json={"submission": second, "challenge_phase": phases[2], "submission_status": "FINISHED", "result": "[]"},
    )
    refused = server.submit("aurora", STRONG, phases[2], challenge)
    assert (refused.status_code, refused.json()["error"]) == (403, "The maximum number of submissions has been reached")


def test_a_team_sees_its_own_submissions_alone(server: Rehearsal) -> None:
    number = server.submit("aurora", STRONG, 3).json()["id"]
    server.settled(number)
    assert server.get(f"/api/jobs/submission/{number}", "borealis").status_code == 401
    assert server.get(f"/api/jobs/submission/{number}").status_code == 401
    path = "/api/jobs/challenge/1/challenge_phase/3/submission/"
    assert number in [item["id"] for item in server.get(path, "aurora").json()["results"]]
    assert server.get(path, "borealis").json()["count"] == 0
    assert server.get("/api/jobs/challenge/1/submission/", "aurora").status_code == 403


def test_hosts_list_by_status_and_time(server: Rehearsal) -> None:
    path = "/api/jobs/challenge/1/submission/"
    rows = server.get(path, "host", params={"status": "failed"}).json()
    assert {row["status"] for row in rows} == {"failed"}
    assert server.get(path, "host", params={"submitted_before": "2020-01-01T00:00:00Z"}).json() == []
    refused = server.get(path, "host", params={"status": "lost"})
    assert (refused.status_code, refused.json()) == (400, {"error": "Invalid submission status lost"})


def test_a_large_upload_comes_in_parts(server: Rehearsal) -> None:
    data = STRONG.read_bytes()
    fields = {"status": "submitting", "file_name": "strong.zip", "num_file_chunks": 2, "is_public": "true"}
    begun = server.call("POST", "/api/jobs/phases/1/get_submission_file_presigned_url/", "borealis", data=fields)
    assert begun.status_code == 201
    number, upload = begun.json()["submission_pk"], begun.json()["upload_id"]
    assert server.text(server.get(f"/api/jobs/submission/{number}", "borealis").json()["input_file"]) == "file_content"
    parts, files = [], server.data / "files"
    before = set(os.listdir(files))
    for part, chunk in zip(begun.json()["presigned_urls"], (data[:1000], data[1000:])):
        answer = requests.put(part["url"], data=chunk, timeout=60)
        parts.append({"ETag": answer.headers["ETag"], "PartNumber": part["partNumber"]})
    finish = f"/api/jobs/phases/1/finish_submission_file_upload/{number}/"
    kept = set(os.listdir(files)) - before
    assert len(kept) == 2
    early = server.call("POST", finish, "aurora", data={"parts": json.dumps(parts), "upload_id": upload})
    assert early.status_code == 403, "another's"
    wrong = server.call("POST", finish, "borealis", data={"parts": json.dumps(parts[:1]), "upload_id": upload})
    assert wrong.status_code == 400
    done = server.call("POST", finish, "borealis", data={"parts": json.dumps(parts), "upload_id": upload})
    assert done.json() == {"upload_id": upload, "submission_pk": number}
    assert not kept & set(os.listdir(files)), "the parts are gone"
    assert len(set(os.listdir(files)) - before) == len(before - set(os.listdir(files))) == 1, "for the placeholder"
    assert server.call("POST", f"/api/jobs/phases/1/send_submission_message/{number}/", "borealis").json() == {}
    assert server.settled(number, "borealis")["status"] == "finished"


def test_a_broken_large_upload_is_the_placeholder(server: Rehearsal) -> None:
    fields = {"status": "submitting", "file_name": "strong.zip", "num_file_chunks": 1}
    begun = server.call("POST", "/api/jobs/phases/1/get_submission_file_presigned_url/", "borealis", data=fields).json()
    server.call("POST", f"/api/jobs/phases/1/send_submission_message/{begun['submission_pk']}/", "borealis")
    assert server.settled(begun["submission_pk"])["status"] == "failed"


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


# ── remote workers ──────────────────────────────────────────────────────────


def test_a_message_hides_and_comes_back_with_another_handle(server: Rehearsal, remote: Any) -> None:
    number = server.submit("aurora", STRONG, remote["phases"][0]["id"], remote["id"]).json()["id"]
    queue = f"/api/jobs/challenge/queues/{remote['queue']}/"
    asked = time.monotonic()
    first = server.get(queue, "host").json()
    assert int(first["body"]["submission_pk"]) == number
    again = server.get(queue, "host").json()
    if time.monotonic() - asked < 1:  # as long as it is hidden
        assert again == {"body": None, "receipt_handle": None}
    again = (
        again if again["body"] else waited(lambda: (results := server.get(queue, "host").json())["body"] and results)
    )
    assert again["body"] == first["body"]
    assert again["receipt_handle"] != first["receipt_handle"]
    answer = server.call(
        "POST", f"/api/jobs/queues/{remote['queue']}/", "host", data={"receipt_handle": first["receipt_handle"]}
    )
    assert answer.json() == {"success": f"Message deleted successfully from the queue: {remote['queue']}"}
    time.sleep(1.2)
    assert server.get(queue, "host").json()["body"] is None
    refused = server.call("POST", f"/api/jobs/queues/{remote['queue']}/", "host", data={"receipt_handle": ""})
    assert refused.json() == {"error": "Please add message receipt handle in the body"}
    assert server.get(queue, "aurora").status_code == 401


@pytest.fixture
def waiting(server: Rehearsal, remote: Any) -> dict[str, Any]:
    return dict(server.submit("aurora", STRONG, remote["phases"][0]["id"], remote["id"], is_public="true").json())


def put(server: Rehearsal, remote: Any, row: Any, **more: Any) -> requests.Response:
    body = {"challenge_phase": row["challenge_phase"], "submission": row["id"], "submission_status": "FINISHED", **more}
    return server.call("PUT", UPDATE.format(remote["id"]), "host", json=body)


def results(**values: Any) -> str:
    return json.dumps([{"split": "dev", "show_to_participant": True, "accuracies": {"J&F-Mean": 0.5, **values}}])


def test_a_remote_worker_reports(server: Rehearsal, remote: Any, waiting: Any) -> None:
    running = server.call(
        "PATCH",
        UPDATE.format(remote["id"]),
        "host",
        data={"submission": waiting["id"], "submission_status": "RUNNING", "job_name": "worker-1"},
    ).json()
    assert (running["status"], running["job_name"]) == ("running", ["worker-1"])
    assert running["started_at"]
    for value in (0.5, 0.75):
        done = put(server, remote, waiting, result=results(**{"J&F-Mean": value}), stdout="out", metadata="meta")
        assert done.json() == {"success": "Submission result has been successfully updated"}
    content = server.get(f"/api/jobs/submission/{waiting['id']}", "aurora").json()
    assert content["status"] == "finished"
    assert server.text(content["stdout_file"]) == "out"
    assert server.text(content["submission_result_file"]) == "[{'J&F-Mean': 0.75}]"
    split = server.get(f"/api/challenges/{remote['id']}/challenge_phase_split").json()[0]["id"]
    rows = server.get(f"/api/jobs/challenge_phase_split/{split}/leaderboard/").json()["results"]
    mine = [row for row in rows if row["submission__id"] == waiting["id"]]
    assert [row["result"][0] for row in mine] == [0.75], "the second report overwrote the first"
    assert mine[0]["result"][1] == "#"


@pytest.mark.parametrize(
    ("more", "body"),
    [
        pytest.param({"submission_status": "DONE"}, {"error": "Sorry, submission status is invalid"}, id="status"),
        pytest.param({"result": "no"}, {"error": "`result` key contains invalid data with error Expecting value: line 1 column 1 (char 0).Please try again with correct format."}, id="no-json"),
        pytest.param({"result": [1]}, {"error": "`result` key contains invalid data with error the JSON object must be str, bytes or bytearray, not list.Please try again with correct format."}, id="list"),
        pytest.param({"result": '[{"split": "x", "accuracies": {}}]'}, {"error": "Challenge Phase Split does not exist with phase_id: PHASE andsplit codename: x"}, id="split"),
        pytest.param({"result": results(X=1)}, {"error": "Following metrics are missing in theleaderboard data: ['X']"}, id="metric"),
        pytest.param({"result": results(**{"J-Mean": "a"})}, {"error": "Values for following metrics are not offloat/int: [('J-Mean', <class 'str'>)]"}, id="text"),
        pytest.param({"result": results(**{"J-Mean": float("nan")})}, {"result": ["Value must be valid JSON."]}, id="nan"),
    ],
)  # fmt: skip
def test_a_report_that_is_wrong_changes_nothing(
    server: Rehearsal, remote: Any, waiting: Any, more: Any, body: Any
) -> None:
    answer = put(server, remote, waiting, **more)
    assert answer.status_code == 400
    assert answer.json() == json.loads(json.dumps(body).replace("PHASE", str(waiting["challenge_phase"])))
    assert server.get(f"/api/jobs/submission/{waiting['id']}", "host").json()["status"] == "submitted"


def test_only_hosts_report(server: Rehearsal, remote: Any, waiting: Any) -> None:
    body = {"challenge_phase": waiting["challenge_phase"], "submission": waiting["id"], "submission_status": "FINISHED"}
    answer = server.call("PUT", UPDATE.format(remote["id"]), "aurora", json={**body, "result": results()})
    assert (answer.status_code, answer.json()["error"]) == (400, "Sorry, you are not authorized to make this request!")


def test_partial_results_are_merged(server: Rehearsal, remote: Any, waiting: Any) -> None:
    path = f"/api/jobs/challenges/{remote['id']}/update_partially_evaluated_submission/"
    body = {"challenge_phase": waiting["challenge_phase"], "submission": waiting["id"]}
    early = server.call("PATCH", path, "host", json={**body, "submission_status": "FINISHED", "result": results()})
    assert early.json()["error"].startswith("Leaderboard Data does not exist with phase_id:")
    server.call("PUT", path, "host", json={**body, "submission_status": "PARTIALLY_EVALUATED", "result": results()})
    more = results(**{"J-Mean": 0.25})
    done = server.call("PATCH", path, "host", json={**body, "submission_status": "FINISHED", "result": more}).json()
    assert done["status"] == "finished"


def test_rerun_and_resume(server: Rehearsal, remote: Any, waiting: Any) -> None:
    refused = server.call("POST", f"/api/jobs/submissions/{waiting['id']}/resume/", "host")
    assert (refused.status_code, refused.json()["error"]) == (400, "Only failed submissions can be resumed")
    put(server, remote, waiting, submission_status="FAILED", stderr="ours")
    done = server.call("POST", f"/api/jobs/submissions/{waiting['id']}/resume/", "host").json()
    assert done == {"success": "Submission is successfully resumed"}
    row = server.get(f"/api/jobs/submission/{waiting['id']}", "host").json()
    assert row["status"] == "resuming"
    assert row["rerun_resumed_at"]
    assert server.call("POST", f"/api/jobs/submissions/{waiting['id']}/re-run/", "aurora").status_code == 403
    server.call("POST", f"/api/jobs/submissions/{waiting['id']}/re-run/", "host")
    assert server.get(f"/api/jobs/submission/{waiting['id']}", "host").json()["status"] == "cancelled"
    newest = server.get(f"/api/jobs/challenge/{remote['id']}/submission/", "host").json()[0]
    assert newest["id"] > waiting["id"]
    assert newest["status"] == "submitted"


def test_a_submission_is_cancelled_by_its_status(server: Rehearsal, remote: Any, waiting: Any) -> None:
    path = f"/api/jobs/challenges/{remote['id']}/submissions/{waiting['id']}/update_submission_meta/"
    assert server.call("PATCH", path, "borealis", json={"status": "cancelled"}).status_code == 403
    assert server.call("PATCH", path, "aurora", json={"status": "finished"}).status_code == 400
    assert server.call("PATCH", path, "aurora", json={"is_baseline": True}).status_code == 403
    assert server.call("PATCH", path, "aurora", json={"status": "cancelled"}).json()["status"] == "cancelled"


def test_a_leaderboard_row_is_edited_by_hosts(server: Rehearsal) -> None:
    row = server.get("/api/jobs/challenge_phase_split/1/leaderboard/").json()["results"][0]
    labels = row["leaderboard__schema"]["labels"]
    path, values = f"/api/jobs/leaderboard_data/{row['id']}/", dict(zip(labels, row["result"]))
    assert server.call("PATCH", path, "aurora", json={"leaderboard_data": json.dumps(values)}).status_code == 403
    assert server.call("PATCH", path, "host", json={"leaderboard_data": "{}"}).status_code == 400
    assert server.call("PATCH", path, "host", json={"leaderboard_data": json.dumps(values)}).status_code == 200


# ── pushing ─────────────────────────────────────────────────────────────────


def test_a_bundle_that_breaks_rules_is_refused_in_the_servers_words(server: Rehearsal, tmp_path: Path) -> None:
    def change(config: Any) -> None:
        del config["title"]
        config["tags"] = list("abcde")

    answer = server.push(bundle_with(tmp_path, change), verb="validate_challenge_config")
    assert answer.status_code == 400
    assert answer.json()["error"].split("\n") == [
        "Please add the challenge title",
        "ERROR: Tags are limited to 4. Please remove extra tags then try again!",
    ]


def test_hosts_push_and_others_do_not(server: Rehearsal, tmp_path: Path) -> None:
    bundle = bundle_with(tmp_path)
    assert server.push(bundle, "aurora").json() == {"error": "Sorry, you do not belong to this Host Team!"}
    path = "/api/challenges/challenge/challenge_host_team/999/validate_challenge_config/"
    answer = server.call("POST", path, "host", files={"zip_configuration": bundle.read_bytes()})
    assert (answer.status_code, answer.json()) == (406, {"error": "ChallengeHostTeam does not exist"})
    team = server.people["host"]["team"]
    answer = server.call("POST", path.replace("999", team), "host")
    assert answer.json() == {"error": {"zip_configuration": ["No file was submitted."]}}


def test_an_update_that_deletes_a_phase_is_refused(server: Rehearsal, tmp_path: Path) -> None:
    assert server.push(bundle_with(tmp_path), repository="me/update").status_code == 201

    def change(config: Any) -> None:
        config["challenge_phases"].pop()
        config["challenge_phase_splits"].pop()

    answer = server.push(bundle_with(tmp_path, change), repository="me/update")
    assert answer.status_code == 400
    assert "Challenge phase 3 not found in config." in answer.json()["error"]
    again = server.push(bundle_with(tmp_path, lambda c: c.update(title="Newer")), repository="me/update")
    assert again.json() == {"Success": "The challenge Newer has been updated successfully"}


def test_sponsors_make_the_second_push_fail_as_they_do_on_evalai(server: Rehearsal, tmp_path: Path) -> None:
    def change(config: Any) -> None:
        config["sponsors"] = [{"name": "x", "website": "https://x.example"}]

    assert server.push(bundle_with(tmp_path, change), repository="me/sponsors").status_code == 201
    answer = server.push(bundle_with(tmp_path, change), repository="me/sponsors")
    assert "Error in creating challenge: None. Please check the yaml configuration!" in answer.json()["error"]


def test_approval_needs_a_finished_submission_in_each_phase(server: Rehearsal, remote: Any) -> None:
    answer = server.get(f"/api/challenges/{remote['id']}/request_approval", "host")
    assert answer.status_code == 406
    assert answer.json()["error"].startswith("The following challenge phases do not have finished submissions:")


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

ODD = [
    pytest.param("PUT", UPDATE.format(1), {"json": [1]}, 400, id="list"),
    pytest.param("PUT", UPDATE.format(1), {"data": b"{", "headers": {"Content-Type": "application/json"}}, 400, id="half"),
    pytest.param("PUT", UPDATE.format(1), {"data": b"[" * 100_000, "headers": {"Content-Type": "application/json"}}, 400, id="deep"),
    pytest.param("PUT", UPDATE.format(1), {"json": {"submission": "1e99", "submission_status": "FAILED"}}, 404, id="number"),
    pytest.param("PUT", UPDATE.format(1), {"json": {"submission": 10**30, "submission_status": "FAILED"}}, 404, id="huge-number"),
    pytest.param("PUT", UPDATE.format(1), {"json": {"submission": {}, "submission_status": "FAILED"}}, 404, id="mapping"),
    pytest.param("PUT", UPDATE.format(999), {"json": {}}, 404, id="no-challenge"),
    pytest.param("PATCH", UPDATE.format(1), {"json": {"submission_status": ["RUNNING"]}}, 400, id="status-list"),
    pytest.param("POST", "/api/jobs/challenge/1/challenge_phase/1/submission/", {"data": b"x", "headers": {"Content-Type": "multipart/form-data; boundary=b"}}, 400, id="no-parts"),
    pytest.param("POST", "/api/jobs/challenge/1/challenge_phase/1/submission/", {"data": b"x", "headers": {"Content-Type": "multipart/form-data"}}, 400, id="no-boundary"),
    pytest.param("POST", "/api/jobs/challenge/1/challenge_phase/99999999999999999999/submission/", {}, 404, id="beyond-64-bits"),
    pytest.param("GET", "/api/jobs/submission/99999999999999999999", {}, 404, id="beyond-64-bits-get"),
    pytest.param("DELETE", "/api/jobs/submission/1", {}, 405, id="delete"),
    pytest.param("GET", "/api/challenges/challenge/queues/%00/", {}, 400, id="null-byte"),
]  # fmt: skip


@pytest.mark.parametrize(("method", "path", "options", "status"), ODD)
def test_odd_requests_get_a_sentence(server: Rehearsal, method: str, path: str, options: Any, status: int) -> None:
    answer = server.call(method, path, "host", **options)
    assert answer.status_code == status, answer.text
    assert answer.json()


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


@pytest.mark.parametrize(
    "metadata",
    [
        pytest.param(json.dumps([{"name": "x", "value": "a" * 70_000}]), id="long"),
        pytest.param('[{"name": "x", "value": "\\ud800"}]', id="half-a-character"),
        pytest.param("[" * 100_000, id="deep"),
        pytest.param("[NaN]", id="nan"),
    ],
)
def test_answers_that_cannot_be_shown_again_are_refused(server: Rehearsal, metadata: str) -> None:
    answer = server.submit("aurora", STRONG, 3, submission_metadata=metadata)
    assert (answer.status_code, list(answer.json())) in ((406, ["submission_metadata"]), (400, ["error"]))
    assert server.get("/api/jobs/challenge/1/submission/", "host").status_code == 200


@pytest.mark.parametrize("name", ["a." + "€" * 100, "x.z\0ip", "../../x", "." * 200])
def test_a_strange_file_name_is_scored_like_any_other(server: Rehearsal, name: str) -> None:
    path = "/api/jobs/challenge/1/challenge_phase/1/submission/"
    answer = server.call("POST", path, "borealis", files={"input_file": (name, STRONG.read_bytes())})
    assert server.settled(answer.json()["id"])["status"] == "finished"


def test_limits_are_not_given_back_for_what_is_finished(server: Rehearsal) -> None:
    number = server.submit("aurora", STRONG, 3).json()["id"]
    server.settled(number)
    path = f"/api/jobs/challenges/1/submissions/{number}/update_submission_meta/"
    assert server.call("PATCH", path, "aurora", json={"status": "cancelled"}).status_code == 403
    assert server.call("PATCH", path, "aurora", json={"is_public": None}).status_code == 400
    assert server.call("PATCH", path, "aurora", json={"method_name": "true"}).json()["method_name"] == "true"


def test_a_large_upload_is_sent_once(server: Rehearsal, remote: Any) -> None:
    phase = remote["phases"][0]["id"]
    begun = server.call(
        "POST", f"/api/jobs/phases/{phase}/get_submission_file_presigned_url/", "aurora", data={"num_file_chunks": 1}
    ).json()
    url = begun["presigned_urls"][0]["url"]
    tag = requests.put(url, data=b"x", timeout=60).headers["ETag"]
    finish = f"/api/jobs/phases/{phase}/finish_submission_file_upload/{begun['submission_pk']}/"
    parts = json.dumps([{"ETag": tag, "PartNumber": 1}])
    server.call("POST", finish, "aurora", data={"upload_id": begun["upload_id"], "parts": parts})
    assert requests.put(url, data=b"more", timeout=60).status_code == 404, "nothing is kept that nobody asked for"
    send = f"/api/jobs/phases/{phase}/send_submission_message/{begun['submission_pk']}/"
    assert [server.call("POST", send, "aurora").status_code for _ in range(2)] == [200, 400]


def test_of_two_results_for_one_split_one_row_stays(server: Rehearsal, remote: Any, waiting: Any) -> None:
    twice = json.dumps(
        [{"split": "dev", "show_to_participant": True, "accuracies": {"J&F-Mean": v}} for v in (0.9, 0.1)]
    )
    assert put(server, remote, waiting, result=twice).status_code == 200
    split = server.get(f"/api/challenges/{remote['id']}/challenge_phase_split").json()[0]["id"]
    rows = server.get(f"/api/jobs/challenge_phase_split/{split}/leaderboard/").json()["results"]
    assert [row["result"][0] for row in rows if row["submission__id"] == waiting["id"]] in ([0.1], [])


def test_strangers_bytes_are_not_taken_in(server: Rehearsal) -> None:
    large = {f"field{k}": "x" * (200 << 10) for k in range(20)}
    answer = server.call("POST", routes.LOGIN, files={key: (None, value) for key, value in large.items()})
    assert answer.status_code == 413
    answer = server.call(
        "POST", "/api/jobs/challenge/1/challenge_phase/1/submission/", files={"input_file": b"x" * (1 << 20)}
    )
    assert answer.status_code == 401


@pytest.mark.parametrize("page", ["/challenges/1", "/challenges/1/leaderboard/1", "/login", "/nothing"])
def test_a_look_at_the_head_alone_is_answered(server: Rehearsal, page: str) -> None:
    assert server.call("HEAD", page).status_code in (200, 404)


@pytest.mark.long
def test_faults_are_real_and_change_nothing(tmp_path: Path) -> None:
    options = ("--workers", "0", "--requests-per-minute", "100000")
    server = Rehearsal(tmp_path / "data", options, faults="3:1.0").start()
    seen: dict[str, int] = {}
    try:
        for _ in range(60):
            try:
                answer = requests.get(f"{server.address}/api/challenges/challenge/1/", timeout=60)
                kind = "fine" if answer.headers["Content-Type"] == "application/json" else str(answer.status_code)
            except requests.ConnectionError as error:
                kind = "reset" if "reset" in str(error).lower() or "aborted" in str(error).lower() else "half"
            except requests.exceptions.ChunkedEncodingError:
                kind = "half"
            seen[kind] = seen.get(kind, 0) + 1
    finally:
        server.stop()
    assert {"fine", "200", "500", "502", "reset", "half"} <= set(seen), seen
    assert "Traceback" not in server.errors()
