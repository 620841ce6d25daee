"""The remote worker, as a process with a real server: every kind of message is handled."""

from __future__ import annotations

import datetime
import json
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import requests

from segjudge.platforms.evalai import routes
from segjudge.remote_challenge_evaluation.settings import (
    SettingsError,
    WorkerSettings,
)
from segjudge.server.models import ChallengePhase, StoredMessage
from tests.builders import ROOT
from tests.demo_challenge import CODENAMES
from tests.hostile_network import Network
from tests.journeys.fleet import remote_bundle
from tests.rehearsals import FINAL, Rehearsal, bundle_with, steady_port, waited
from tests.remote_workers import OPTIONS, STRONG, Operator, lines_until, operator_of, remote_server, status, submitted


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rehearsal]:
    yield from remote_server(tmp_path_factory.mktemp("remote"))


@pytest.fixture
def operator(server: Rehearsal, tmp_path: Path) -> Operator:
    return operator_of(server, tmp_path)


def send(server: Rehearsal, operator: Operator, body: Any) -> None:
    """Put a message into the queue, as anybody with its keys could."""
    server.services.queue.send(operator.queue, body)


# ── the start ───────────────────────────────────────────────────────────────


def test_annotations_are_the_bundles_unless_said_otherwise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bundle, target = tmp_path / "bundle", tmp_path / "here"
    (bundle / "annotations").mkdir(parents=True)
    target.mkdir()
    monkeypatch.chdir(target)

    def annotations(**options: str) -> str:
        return str(Path(WorkerSettings("token", "server", "queue", 1, **options).with_absolute_paths().annotations))  # type: ignore[arg-type]

    assert annotations() == annotations(bundle=str(tmp_path)) == str(target / "annotations")
    assert annotations(bundle="../bundle") == str(bundle / "annotations")
    assert annotations(bundle=str(bundle / "challenge_config.yaml")) == str(bundle / "annotations")
    assert annotations(bundle=str(bundle), annotations="truths") == str(target / "truths")
    assert annotations(bundle=str(bundle), annotations="s3://bucket/truths") == "s3:/bucket/truths"


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
        pytest.param(
            {"CHALLENGE_PK": "7"}, 3, "CHALLENGE_PK is 7, but the queue belongs to challenge 1", id="challenge"
        ),
        pytest.param({"ANNOTATIONS": "/nowhere"}, 3, "there is no annotation file for", id="annotations"),
        pytest.param({"API_SERVER": "http://127.0.0.1:9"}, 3, "does not answer", id="nobody"),
    ],
)
def test_what_is_missing_is_said_before_anything_is_touched(
    operator: Operator, environment: dict[str, str], code: int, message: str
) -> None:
    output = operator.run("--check", expected=code, **environment)
    assert message in output
    assert "Traceback" not in output


def test_settings_that_are_missing_or_wrong_are_said_all_at_once() -> None:
    wrong = {"CHALLENGE_PK": "one", "API_SERVER": "http://eval.example", "HEALTH_PORT": "70000", "SWEEP_SECONDS": "0"}
    with pytest.raises(SettingsError) as raised:
        WorkerSettings.read(wrong)
    lines = str(raised.value).splitlines()
    assert lines == [
        "AUTH_TOKEN is not set: copy it from your profile page on EvalAI",
        "QUEUE_NAME is not set: copy it from the output of `segjudge push`, or from the Manage tab",
        "CHALLENGE_PK is 'one', which is not a number",
        "API_SERVER is http://eval.example: tokens are sent only over https or to this machine",
        "SWEEP_SECONDS must be above 0",
        "HEALTH_PORT must be a port, at most 65535",
    ]


def test_a_participants_token_is_not_enough(server: Rehearsal, operator: Operator) -> None:
    assert "no longer accepts" in operator.run("--check", expected=4, AUTH_TOKEN=server.people["aurora"]["token"])


@pytest.mark.long
@pytest.mark.parametrize(
    ("change", "message"),
    [
        pytest.param({"remote_evaluation": False}, "EvalAI's own worker scores it", id="hosted"),
        pytest.param({"is_docker_based": True}, "another worker scores it", id="docker"),
    ],
)
def test_a_challenge_that_another_worker_scores_is_left_alone(
    server: Rehearsal, operator: Operator, change: Any, message: str, tmp_path: Path
) -> None:
    name = next(iter(change))
    bundle = bundle_with(tmp_path, lambda c: c.update(change, title=name))
    assert server.push(bundle, repository=f"me/{name}").status_code == 201
    listed = server.get("/api/challenges/challenge/all/all/all").json()["results"]
    row = next(item for item in listed if item["title"] == name)
    output = operator.run("--once", expected=3, QUEUE_NAME=row["queue"], CHALLENGE_PK=str(row["id"]))
    assert message in output


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


@pytest.mark.long
def test_a_mistake_and_an_upload_that_broke_off_read_as_sentences(server: Rehearsal, operator: Operator) -> None:
    numbers = [submitted(server, b"PK\x03\x04"), submitted(server, b"file_content")]
    operator.run("--once")
    rows = [server.get(f"/api/jobs/submission/{number}", "host").json() for number in numbers]
    assert [row["status"] for row in rows] == ["failed", "failed"]
    mistake, placeholder = (server.text(row["stderr_file"]) for row in rows)
    assert "is a zip that was cut off" in mistake.splitlines()[-1]
    assert "Your upload was interrupted" in placeholder


MEANINGLESS = (
    {}, [], None, "text", {"submission_pk": None}, {"submission_pk": "x"}, {"submission_pk": -1}, {"submission_pk": 1e300},
    {"submission_pk": True}, {"submission_pk": 10**40}, {"submission_pk": 999999, "phase_pk": 1, "challenge_pk": 1},
)  # fmt: skip


@pytest.mark.long
def test_a_message_that_makes_no_sense_is_dropped(server: Rehearsal, operator: Operator) -> None:
    for body in MEANINGLESS:
        send(server, operator, body)
    number = submitted(server)
    output = operator.run("--once")
    assert output.count("message dropped") == len(MEANINGLESS)
    assert status(server, number) == "finished", "and the next one is met"
    time.sleep(1.1)
    assert server.get(f"/api/jobs/challenge/queues/{operator.queue}/", "host").json()["body"] is None


@pytest.mark.long
def test_a_message_that_comes_twice_is_recognised(server: Rehearsal, operator: Operator) -> None:
    number = submitted(server)
    for kind in (str, int):
        send(server, operator, {"submission_pk": kind(number), "phase_pk": kind(1), "challenge_pk": kind(1)})
    output = operator.run("--once")
    assert output.count("reported") == 1
    assert output.count("message recognised") == 2
    assert operator.jobs()[0]["evaluations"] == 1


@pytest.mark.long
def test_what_is_settled_is_left_alone(server: Rehearsal, operator: Operator) -> None:
    numbers = {final: submitted(server) for final in ("cancelled", "finished", "failed", "archived")}
    for final, number in numbers.items():
        path = routes.path(routes.SUBMISSION_META, challenge=1, submission=number)
        server.call("PATCH", path, "host", json={"status": final})
    operator.run("--once")
    assert {final: status(server, number) for final, number in numbers.items()} == {final: final for final in numbers}
    assert operator.jobs() == []


@pytest.mark.long
def test_a_cancel_before_the_last_look_wins(server: Rehearsal, operator: Operator) -> None:
    number = submitted(server)
    operator.run("--once")
    # Back to where it was scored and not yet reported.
    report = json.dumps({"accuracies": [], "stdout": "", "stderr": ""})
    operator.journal("UPDATE jobs SET state = 'scored', owner = NULL, outcome = NULL, report = ?", report)
    server.call(
        "PATCH",
        routes.path(routes.SUBMISSION_META, challenge=1, submission=number),
        "host",
        json={"status": "cancelled"},
    )
    operator.run("--once")
    assert status(server, number) == "cancelled"
    assert operator.jobs()[0]["outcome"] == "cancelled"


@pytest.mark.long
def test_a_resumed_submission_is_new_work(server: Rehearsal, operator: Operator) -> None:
    number = submitted(server, b"PK\x03\x04")
    operator.run("--once")
    assert status(server, number) == "failed"
    services = server.services
    services.submissions.update(
        number,
        status="resuming",
        rerun_resumed_at=time.time(),
        input_file=services.files.keep(STRONG.read_bytes(), "x.zip", "input_file"),
    )
    services.submissions.enqueue(number)
    operator.run("--once")
    assert status(server, number) == "finished"
    assert [job["outcome"] for job in operator.jobs()] == ["failed", "finished"]


@pytest.mark.long
def test_a_file_that_is_too_large_is_said(server: Rehearsal, operator: Operator) -> None:
    number = submitted(server)
    operator.run("--once", MAX_SUBMISSION_BYTES="1000")
    row = server.get(f"/api/jobs/submission/{number}", "host").json()
    assert "larger than the 1,000 bytes" in server.text(row["stderr_file"])


@pytest.mark.long
def test_logs_are_not_sent_where_the_phase_says_so(server: Rehearsal, operator: Operator) -> None:
    services = server.services
    config = services.store.require(ChallengePhase, 1).config
    services.store.change(ChallengePhase, 1, config={**config, "disable_logs": True})
    try:
        number = submitted(server)
        operator.run("--once")
    finally:
        services.store.change(ChallengePhase, 1, config=config)
    row = server.get(f"/api/jobs/submission/{number}", "host").json()
    assert server.text(row["stdout_file"]) == ""


# ── what is not ours ────────────────────────────────────────────────────────


@pytest.mark.long
def test_a_phase_that_appeared_after_the_start_is_said_and_left_to_others(
    server: Rehearsal, operator: Operator
) -> None:
    services = server.services
    for row in server.get("/api/jobs/challenge/1/submission/", "host").json():
        if row["status"] not in FINAL:  # the first sweep would ask for the phases on their account
            services.submissions.update(row["id"], status="cancelled")
    config = services.store.require(ChallengePhase, 2).config
    process = operator.start(POLL_SECONDS="0.05")
    try:
        lines_until(process, "start ")
        waited(lambda: operator.worker_number("empty_answers") > 0)
        services.store.change(ChallengePhase, 2, codename="new", config={**config, "codename": "new"})
        new = [submitted(server, phase=2) for _ in range(3)]
        output = "".join(lines_until(process, "ALERT"))
        ours = submitted(server)
        waited(lambda: status(server, ours) == "finished")
    finally:
        services.store.change(ChallengePhase, 2, codename=config["codename"], config=config)
        process.terminate()
        _, rest = process.communicate(timeout=60)
    assert f"no phase 'new' in the bundle ({', '.join(CODENAMES)})" in output
    assert "appeared after the start of this worker" in output
    assert (output + rest).count("ALERT") == 1
    assert [status(server, number) for number in new] == ["submitted"] * 3
    assert [job["submission"] for job in operator.jobs()] == [ours]

    def scored_elsewhere() -> bool:
        operator.run("--once")  # it ends where the queue shows nothing yet
        return [status(server, number) for number in new] == ["failed"] * 3

    waited(scored_elsewhere)


@pytest.mark.long
def test_a_single_run_ends_beside_messages_that_others_have_to_score(
    server: Rehearsal, operator: Operator, tmp_path: Path
) -> None:
    bundle = bundle_with(tmp_path, lambda config: config.update(title="others", remote_evaluation=True))
    assert server.push(bundle, repository="me/others").status_code == 201
    listed = server.get("/api/challenges/challenge/all/all/all").json()["results"]
    second = next(item["id"] for item in listed if item["title"] == "others")
    phase = server.get(f"/api/challenges/challenge/{second}/challenge_phase").json()["results"][0]["id"]
    ours = submitted(server)
    others = [server.submit("host", STRONG, phase=phase, challenge=second).json()["id"] for _ in range(3)]
    for number in others:
        send(server, operator, {"submission_pk": number, "phase_pk": phase, "challenge_pk": second})
    output = operator.run("--once")
    assert output.count("message left") == 3, "each once"
    assert output.count("ALERT") == 1
    assert f"the challenge has no phase {phase}" in output
    assert status(server, ours) == "finished"
    assert {status(server, number) for number in others} == {"submitted"}
    assert [job["submission"] for job in operator.jobs()] == [ours]


@pytest.mark.long
def test_a_single_run_ends_beside_work_that_never_comes_forward(server: Rehearsal, operator: Operator) -> None:
    """Jobs whose files never arrive are due in turn, so that one of them always is."""
    numbers = [submitted(server) for _ in range(3)]
    code = (
        "import runpy, sys\n"
        "from segjudge.remote_challenge_evaluation import download, worker, worker_loop\n"
        "download._TRIES, worker._FIRST_DELAY, worker._LONGEST_DELAY, worker_loop._ONCE_STALLED = 1, 0.5, 0.5, 5\n"
        "sys.argv = ['worker', '--once']\n"
        "runpy.run_module('segjudge.remote_challenge_evaluation', run_name='__main__')"
    )
    bad = Network(server.address, rate=1.0, kinds=("refusal",), only=b"/media/", large=10)
    try:
        done = subprocess.run(
            [sys.executable, "-c", code],
            cwd=ROOT,
            env={**operator.environment, "API_SERVER": bad.address},
            capture_output=True,
            text=True,
            timeout=90,
            check=False,
        )
    finally:
        bad.close()
    assert done.returncode == 0, done.stderr
    assert "start the worker again" in done.stderr
    operator.journal("UPDATE jobs SET next_at = 0")
    operator.run("--once")
    assert {status(server, number) for number in numbers} == {"finished"}


# ── faults of ours ──────────────────────────────────────────────────────────


@pytest.mark.long
def test_a_fault_of_ours_is_tried_twice_then_given_back_with_a_number(
    server: Rehearsal, operator: Operator, tmp_path: Path
) -> None:
    broken = tmp_path / "annotations"
    shutil.copytree(ROOT / "annotations", broken)
    (broken / "sequences-dev.zip").write_bytes(b"PK broken")
    number = submitted(server)
    output = operator.run("--once", ANNOTATIONS=str(broken))
    row = server.get(f"/api/jobs/submission/{number}", "host").json()
    assert row["status"] == "failed"
    text = server.text(row["stderr_file"])
    assert "your submission is not the cause. Tell the organisers the incident number" in text
    assert "sequences-dev.zip" not in text, "where the truth lies is nobody's business"
    assert "sequences-dev.zip" in output
    assert "ALERT" in output


@pytest.mark.long
def test_a_result_that_the_server_refuses_ends_as_failed(server: Rehearsal, operator: Operator) -> None:
    number = submitted(server)
    operator.run("--once")
    server.services.submissions.update(number, status="running")
    # A label that the leaderboard does not have: the start compares them, so that only a change after it leads here.
    labels = ("J&F-Mean", "J-Mean", "J-Recall", "J-Decay", "F-Mean", "F-Recall", "F-Decay", "Other")
    entry = {"split": "dev", "show_to_participant": True, "accuracies": dict.fromkeys(labels, 0.5)}
    report = json.dumps({"accuracies": [entry], "metadata": None, "stdout": "", "stderr": ""})
    operator.journal("UPDATE jobs SET state = 'scored', owner = NULL, outcome = NULL, report = ?", report)
    operator.run("--once")
    row = server.get(f"/api/jobs/submission/{number}", "host").json()
    assert row["status"] == "failed"
    assert "Following metrics are missing in theleaderboard data: ['Other']" in server.text(row["stderr_file"])


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


@pytest.mark.long
def test_what_is_scored_knows_no_token(server: Rehearsal, operator: Operator) -> None:
    process = operator.start()
    seen: list[str] = []
    try:
        number = submitted(server)
        until = time.monotonic() + 120
        while time.monotonic() < until and status(server, number) != "finished":
            for child in Path("/proc").glob("[0-9]*"):
                try:
                    if "remote_challenge_evaluation.evaluate" in (child / "cmdline").read_text():
                        seen.append((child / "environ").read_text())
                except OSError:
                    continue
    finally:
        process.terminate()
        process.communicate(timeout=120)
    assert seen
    assert not [text for text in seen if operator.environment["AUTH_TOKEN"] in text or "AUTH_TOKEN" in text]


@pytest.mark.long
def test_an_operator_sees_health_and_numbers(server: Rehearsal, operator: Operator) -> None:
    process = operator.start(HEALTH_PORT=str(port := steady_port()), LOG_FORMAT="json")
    try:
        number = submitted(server)
        waited(lambda: status(server, number) == "finished")
        healthy = waited(lambda: _fetched(f"http://127.0.0.1:{port}/healthz"))
        known = 'segjudge_worker_jobs{outcome="finished"} 1'
        numbers = waited(lambda: known in (text := _fetched(f"http://127.0.0.1:{port}/metrics").text) and text)
    finally:
        process.terminate()
        _, output = process.communicate(timeout=120)
    assert healthy.status_code == 200
    assert re.search(r"running since \d{4}-\d\d-\d\dT[\d:]{8}Z; last turn at .*Z, \d+ s ago\n", healthy.text)
    assert re.search(r"EvalAI last answered at .*Z, \d+ s ago\n", healthy.text)
    counters = re.findall(r"^# TYPE (\S+) counter$", numbers, re.MULTILINE)
    assert counters
    assert all(name.endswith("_total") for name in counters)
    assert known in numbers
    for stage in ("download", "scoring", "reporting"):
        match = re.search(rf"^segjudge_worker_{stage}_seconds_total (\S+)$", numbers, re.MULTILINE)
        assert match
        assert float(match.group(1)) > 0
    events = [json.loads(line) for line in output.splitlines()]
    assert "reported" in {event["event"] for event in events}
    assert {event["worker"] for event in events}
    assert {event["level"] for event in events} <= {"info", "warning", "error"}
    assert all(datetime.datetime.fromisoformat(event["time"]).tzinfo for event in events)


def _fetched(url: str) -> Any:
    try:
        return requests.get(url, timeout=60)
    except requests.ConnectionError:
        return None


@pytest.mark.long
def test_several_processes_share_the_work(server: Rehearsal, operator: Operator) -> None:
    numbers = [submitted(server) for _ in range(6)]
    output = operator.run("--once", "--jobs", "3")
    assert all(status(server, number) == "finished" for number in numbers)
    assert len({line.split("worker")[-1] for line in output.splitlines() if "reported" in line}) >= 1
    assert {job["evaluations"] for job in operator.jobs()} == {1}


# ── what got lost ───────────────────────────────────────────────────────────


def lost(server: Rehearsal, number: int, **values: Any) -> None:
    """Create a submission of this age whose message is lost."""
    services = server.services
    services.submissions.update(number, **values)
    services.store.remove(StoredMessage)


def swept(operator: Operator, **environment: str) -> str:
    output = operator.run("--once", SWEEP_SECONDS="0.01", **environment)
    operator.journal("UPDATE numbers SET value = 5 WHERE key = 'empty_answers'")
    return output + operator.run("--once", SWEEP_SECONDS="0.01", **environment)


@pytest.mark.long
def test_the_sweep_brings_home_what_waits_too_long(server: Rehearsal, operator: Operator) -> None:
    old, young = submitted(server), submitted(server)
    lost(server, old, submitted_at=time.time() - 16 * 60)
    lost(server, young, submitted_at=time.time() - 14 * 60)
    swept(operator)
    assert status(server, old) == "finished"
    assert status(server, young) == "submitted"
    lost(server, young, status="cancelled")


@pytest.mark.long
def test_the_sweep_takes_over_what_another_machine_lost(server: Rehearsal, operator: Operator) -> None:
    dead, alive = submitted(server), submitted(server)
    limit = 3600 + 600
    lost(server, dead, status="running", started_at=time.time() - limit - 60)
    lost(server, alive, status="running", started_at=time.time() - limit + 300)
    swept(operator)
    assert status(server, dead) == "finished"
    assert status(server, alive) == "running"
    lost(server, alive, status="cancelled")


@pytest.mark.long
def test_the_sweep_leaves_a_large_upload_its_two_hours(server: Rehearsal, operator: Operator) -> None:
    sending, broken = submitted(server, b"file_content"), submitted(server, b"file_content")
    lost(server, sending, submitted_at=time.time() - 100 * 60)
    lost(server, broken, submitted_at=time.time() - 130 * 60)
    swept(operator)
    assert status(server, sending) == "submitted"
    row = server.get(f"/api/jobs/submission/{broken}", "host").json()
    assert "Your upload was interrupted" in server.text(row["stderr_file"])
    lost(server, sending, status="cancelled")


@pytest.mark.long
def test_the_sweep_leaves_other_statuses_alone(server: Rehearsal, operator: Operator) -> None:
    numbers = {name: submitted(server) for name in ("archived", "partially_evaluated", "submitting")}
    for name, number in numbers.items():
        lost(server, number, status=name, submitted_at=time.time() - 10**6)
    swept(operator)
    for name, number in numbers.items():
        assert status(server, number) == name
        lost(server, number, status="cancelled")
