"""Days of the remote worker on a machine in trouble, interrupted days, and starts that fail."""

from __future__ import annotations

import contextlib
import errno
import json
import sqlite3
from collections.abc import Iterator
from typing import Any
from unittest import mock

import pytest

from segjudge.remote_challenge_evaluation import journal, worker, worker_loop
from segjudge.remote_challenge_evaluation.scorer_process import ScoringOutcome
from segjudge.system.download import GoneError

from .days import GOOD, Day, start_day

SCORED, DONE = "runs, message deleted, downloads, scores", "is finished, reported finished"
GONE = "the submission's file could not be fetched"
LEFT = ["annotations/dev.zip", "machine/journal.sqlite3", "machine/locks/opening"]
LATE = "its submissions wait for a worker that knows it. Update the bundle and restart the worker (and to the hook)"
LABELS = (
    "dev: challenge_config.yaml scores test as J, F, but EvalAI's leaderboard has J, Other. "
    "Labels of an existing challenge cannot change: change challenge_config.yaml"
)


@pytest.fixture
def day() -> Iterator[Day]:
    with start_day() as begun:
        yield begun


def test_a_single_run(day: Day) -> None:
    server = day.server
    for number in (1, 2, 3):
        server.send(number)
    server.send(4, 8)
    server.send(5)
    day.files = {5: [GoneError("away", lasting=False)]}
    day.work(once=True, requests_per_minute=12)
    steps, events = day.take()
    assert steps == {
        1: f"{SCORED}, {DONE} 08:00:08",
        2: f"{SCORED}, {DONE} 08:01:08",
        3: f"{SCORED}, {DONE} 08:01:16",
        4: "message left 08:02:00: the challenge has no phase 8",
        5: (
            f"runs, message deleted, downloads, postponed 08:02:10: {GONE} (away), "
            f"continues begun 08:02:16, downloads, postponed 08:02:18: {GONE} (away), "
            f"continues begun 08:02:29, downloads, postponed 08:02:31: {GONE} (away), "
            f"continues begun 08:02:52, downloads, postponed 08:03:02: {GONE} (away), "
            f"continues begun 08:03:43, downloads, postponed 08:03:45: {GONE} (away)"
        ),
    }
    assert events == [
        "08:00:00 start: as usual",
        "08:00:08 waits: 52 s for the limit of 12 requests a minute",
        "08:01:16 waits: 44 s for the limit of 12 requests a minute",
        f"08:02:00 ALERT: phase 8 appeared after the start of this worker: the challenge has no phase 8; {LATE}",
        "08:02:00 waits: 7 s for the limit of 12 requests a minute",
        "08:02:10 waits: 5 s for a postponed submission",
        "08:02:18 waits: 10 s for a postponed submission",
        "08:02:31 waits: 20 s for a postponed submission",
        "08:02:52 waits: 8 s for the limit of 12 requests a minute",
        "08:03:02 waits: 40 s for a postponed submission",
        "08:03:45 unfinished: some submissions are postponed, the next for 80 s; start the worker again",
        "08:03:45 stopped",
    ]
    # and again
    day.files = {}
    server.put({"submission_pk": "nothing"})
    day.work(once=True)
    steps, events = day.take()
    assert not steps
    assert events == [
        "08:03:45 start: as usual",
        "08:03:45 message dropped: it names no submission (body {'submission_pk': 'nothing'})",
        '→ message deleted: {"submission_pk": "nothing"}',
        "08:03:45 unfinished: some submissions are postponed, the next for 80 s; start the worker again",
        "08:03:45 stopped",
    ]
    assert day.read_jobs() == {"finished": [1, 2, 3], "begun, 0 evaluations, 0 reports, 5 delays, None report": [5]}
    assert day.list_files() == LEFT


def test_a_machine_on_which_workers_died(day: Day) -> None:
    server = day.server
    for number in range(1, 11):
        server.send(number, silent=True, status="running")
    server.rows[8]["status"], server.rows[9]["challenge_phase"], server.rows[10]["challenge_phase"] = "cancelled", 2, 3
    day.at("8:00", lambda: server.phases.append({"id": 3, "codename": "late"}))
    left = journal.Journal(str(day.folder / "machine"))
    for number in range(1, 11):
        left.claim(number, "", 3 if number == 10 else 1)
    left.close()
    changes = {
        1: "state = 'begun', lives = 12", 2: "state = 'begun', lives = 11", 3: "state = 'scored', lives = 40, report = ?",
        4: "delays = 59, lives = 1", 5: "state = 'scored', delays = 120, report = ?", 6: "state = 'scored', report = '[]'",
        7: "next_at = 1767600300, delays = 6",
    }  # fmt: skip
    with contextlib.closing(sqlite3.connect(day.folder / "machine" / journal.NAME)) as db, db:
        for number, change in changes.items():
            values = ('{"refused": "as it was"}',) if "?" in change else ()
            db.execute(f"UPDATE jobs SET {change} WHERE submission = {number}", values)
    server.fail("submission/5 ", 9, 404, "not there", {"error": "not there"})
    server.fail("submission/4 ", 1, 404, "not there", {"error": "not there"})
    day.files = {7: [GoneError("away", lasting=False)]}
    (day.folder / "machine/submissions/9-a00000ff").mkdir(parents=True)
    day.stop_at("8:20")
    day.work(sweep_seconds=1e6)
    steps, events = day.take()
    assert steps == {
        1: (
            "continues begun 08:00:09, fault of ours 08:00:09: 13 workers died while scoring it (incident a3, failure 3), ALERT of a3, "
            "fails: a3, reported failed for a fault of ours 08:00:10"
        ),
        2: f"continues begun 08:00:10, downloads, scores, {DONE} 08:00:18",
        3: "continues scored 08:00:00, fails: as it was, reported failed 08:00:01",
        4: (
            "continues claimed 08:00:18, fault of ours 08:00:18: not there (incident a4, failure 3), ALERT of a4, fails: a4, "
            "reported failed for a fault of ours 08:00:19"
        ),
        5: "continues scored 08:00:01, ALERT the worker gave up reporting its result: not there (and to the hook)",
        6: f"continues begun 08:00:01, downloads, scores, {DONE} 08:00:09",
        7: (
            f"continues claimed 08:05:00, runs, downloads, postponed 08:05:02: {GONE} (away), "
            f"continues begun 08:10:02, downloads, postponed 08:10:04: {GONE} (away), "
            f"continues begun 08:15:04, downloads, postponed 08:15:06: {GONE} (away)"
        ),
        8: "continues claimed 08:00:19, skipped status cancelled 08:00:19",
        9: (
            "continues claimed 08:00:19, runs, downloads, scores by its script, "
            "fault of ours 08:00:26: the result names the split 'test'; the phase has all, secret (incident a5, failure 1), "
            "continues begun 08:00:31, downloads, scores by its script, "
            "fault of ours 08:00:38: the result names the split 'test'; the phase has all, secret (incident a6, failure 2), ALERT of a6, "
            "fails: a6, reported failed for a fault of ours 08:00:39"
        ),
        10: (
            "continues claimed 08:00:26, runs, postponed 08:00:26: no phase 'late' in the bundle (dev, own), continues begun 08:00:39, "
            "postponed 08:00:39: no phase 'late' in the bundle (dev, own), continues begun 08:00:49, "
            "postponed 08:00:49: no phase 'late' in the bundle (dev, own), continues begun 08:01:09, "
            "postponed 08:01:09: no phase 'late' in the bundle (dev, own), continues begun 08:01:49, "
            "postponed 08:01:49: no phase 'late' in the bundle (dev, own), continues begun 08:03:09, "
            "postponed 08:03:09: no phase 'late' in the bundle (dev, own), continues begun 08:05:49, "
            "postponed 08:05:49: no phase 'late' in the bundle (dev, own), continues begun 08:10:49, "
            "postponed 08:10:49: no phase 'late' in the bundle (dev, own), continues begun 08:15:49, "
            "postponed 08:15:49: no phase 'late' in the bundle (dev, own)"
        ),
    }
    assert events == [
        "08:00:00 removed: files of dead workers (paths FOLDER/machine/submissions/9-aff)",
        "08:00:00 start: as usual",
        "08:20:00 stopped",
    ]
    assert day.read_jobs() == {
        "failed for a fault of ours, 3 failures, 13 lives, 0 evaluations": [1],
        "finished, 12 lives": [2],
        "failed, 41 lives, 0 evaluations": [3],
        "failed for a fault of ours, 3 failures, 2 lives, 0 evaluations, 60 delays": [4],
        "given up, 1 lives, 0 evaluations, 0 reports, 121 delays": [5],
        "finished, 1 lives": [6],
        "begun, 1 lives, 0 evaluations, 0 reports, 9 delays, None report": [7, 10],
        "cancelled, 1 lives, 0 evaluations, 0 reports": [8],
        "failed for a fault of ours, 2 failures, 1 lives, 2 evaluations": [9],
    }
    assert day.list_files() == LEFT


def test_starts_that_fail(day: Day) -> None:
    server = day.server
    day.check()
    day.check(annotations="/nowhere")
    day.check(save_dir=str(day.folder / "annotations/dev.zip/machine"))
    right = dict(server.challenge)
    for change in ({"id": 7}, {"is_docker_based": True}, {"remote_evaluation": False}):
        server.challenge = {**right, **change}
        day.check()
    server.challenge = right
    server.fail("/queues/", 1, 400, "there is no queue", {"error": "there is no queue"})
    day.check()
    server.fail("/queues/", 1, 401, "Invalid token", {"detail": "Invalid token"})
    day.check()
    server.fail("phases", 9, 404, "no phases", {"error": "no phases"})
    day.check()
    server.troubles.clear()
    server.phases.append({"id": 3, "codename": "more"})
    server.splits = server.splits[:2]
    day.check()
    server.splits[0]["leaderboard_schema"] = {"labels": ["J", "Other"]}
    server.splits[1:] = [{"challenge_phase": 2}, {"challenge_phase": "2"}]
    server.phases.pop()
    day.check()
    day.work()
    steps, events = day.take()
    assert not steps
    assert events == [
        "token: accepted by http://127.0.0.1:1", "queue: queue belongs to challenge 1",
        "challenge: Things, remote evaluation; the token belongs to a host",
        "phase 1: dev, FOLDER/annotations/dev.zip, test", "phase 2: own, its own truth, all, secret",
        "StartError: /nowhere/dev.zip: there is no annotation file for dev; set ANNOTATIONS",
        "StartError: SAVE_DIR FOLDER/annotations/dev.zip/machine: FOLDER/annotations/dev.zip is not a folder",
        "StartError: CHALLENGE_PK is 1, but the queue belongs to challenge 7",
        "StartError: This challenge runs code that participants upload, so another worker scores it, not this one.",
        "StartError: This challenge has remote_evaluation: False, so EvalAI's own worker scores it too, and both would report. Push it with --variant remote.",
        "StartError: QUEUE_NAME: there is no queue", "TokenRefusedError: Invalid token",
        "StartError: http://127.0.0.1:1: no phases",
        "StartError: challenge_config.yaml has no phase more: its submissions would fail",
        "own: EvalAI and challenge_config.yaml differ in the number of splits, 1 and 2; push the challenge again",
        f"StartError: {LABELS}", f"08:00:00 not ready: {LABELS} (again in 2 s)",
        f"08:00:02 not ready: {LABELS} (again in 2 s)", f"08:00:04 not ready: {LABELS} (again in 2 s)",
        f"StartError: {LABELS}",
    ]  # fmt: skip


def test_a_day_with_a_machine_in_trouble(day: Day) -> None:
    server, path = day.server, day.folder / "machine" / journal.NAME

    def forget(number: int) -> None:
        with contextlib.closing(sqlite3.connect(path)) as db, db:
            db.execute("DELETE FROM jobs WHERE submission = ?", (number,))

    def trouble(*errors: Exception) -> None:
        server.troubles += [("/queues/", 1, error) for error in errors]

    def reopen() -> None:
        raise OSError(errno.EIO, "it cannot be read")

    made: list[Any] = [journal.JournalError("locked"), OSError(errno.ENOSPC, "full"), OSError(errno.EIO, "broken")]
    real = journal.Journal

    def open_journal(*arguments: Any) -> Any:
        if made:
            raise made.pop(0)
        return real(*arguments)

    incident = ScoringOutcome(incident="an accident")
    day.outcomes = {
        3: [incident],
        4: [ScoringOutcome(GOOD)],
        5: [journal.JournalError("locked"), ScoringOutcome(GOOD)],
        8: [incident],
    }
    day.at("8:01", lambda: server.send(1, status="unheard of"))
    day.at("8:01:30", server.messages.clear)
    day.at("8:02", lambda: server.send(2, input_file=None))
    day.at("8:03", lambda: server.send(3))
    day.at("8:03:12", lambda: server.fail("PUT", 1, 503))
    day.at("8:04", lambda: server.send(4))
    day.at("8:04:15", lambda: forget(4))
    day.at("8:05", lambda: server.send(5))
    day.at("8:06", lambda: trouble(journal.JournalError("locked"), journal.DamagedError("no journal any more")))
    day.at("8:06:30", lambda: setattr(day.loop._journal.file, "reopen", reopen))
    day.at("8:07", lambda: trouble(journal.DamagedError("no journal any more"), OSError(errno.EIO, "broken")))
    for number in (60, 61, 62):
        day.at("8:08", lambda number=number: server.send(number, 40 + number))
    day.at("8:09", server.messages.clear)
    day.at("8:08:10", lambda: (day.folder / "machine/submissions/9-a00000ff").mkdir(parents=True))
    day.at("8:10", lambda: server.put({"submission_pk": 99}))
    day.at("8:10:04", day.stop)
    with (
        mock.patch.object(worker_loop, "Journal", open_journal), mock.patch.object(worker, "_MOST_REMEMBERED", 2),
        mock.patch.object(worker_loop, "_has_process_limit", return_value=False),
    ):  # fmt: skip
        trouble(journal.JournalError("locked"), OSError(errno.EIO, "broken"))
        day.work(sweep_seconds=240)
    steps, events = day.take()
    assert steps == {
        1: "message left status unheard of 08:01:00",
        2: (
            f"runs, message deleted, fault of ours 08:02:00: {GONE} (no address) (incident a2, failure 1), "
            "continues begun 08:02:05, "
            f"fault of ours 08:02:05: {GONE} (no address) (incident a3, failure 2), ALERT of a3, "
            "fails: a3, reported failed for a fault of ours 08:02:06"
        ),
        3: (
            f"{SCORED}, fault of ours 08:03:07: an accident (incident a4, failure 1), "
            "continues begun 08:03:12, downloads, scores, fault of ours 08:03:19: an accident (incident a5, failure 2), ALERT of a5, "
            "postponed 08:03:19: answers 503, continues scored 08:03:24, fails: a5, reported failed for a fault of ours 08:03:25"
        ),
        4: f"{SCORED}, skipped 08:04:16: submission 4 is no longer in the journal",
        5: f"{SCORED}, continues begun 08:05:15, downloads, scores, {DONE} 08:05:23",
        60: "message left 08:08:03: the challenge has no phase 100, message left 08:08:33: the challenge has no phase 100",
        61: "message left 08:08:03: the challenge has no phase 101, message left 08:08:33: the challenge has no phase 101",
        62: "message left 08:08:03: the challenge has no phase 102, message left 08:08:33: the challenge has no phase 102",
    }
    assert events == [
        "08:00:00 journal unavailable: locked (again in 2 s)",
        "08:00:02 journal unavailable: SAVE_DIR FOLDER/machine: cannot be used (full) (again in 4 s)",
        "08:00:06 journal unavailable: SAVE_DIR FOLDER/machine: cannot be used (broken) (again in 8 s)",
        "08:00:14 journal unavailable: locked (again in 2 s)",
        "08:00:16 journal unavailable: [Errno 5] broken (again in 4 s)",
        "08:00:20 start: as usual",
        "08:00:20 not limited: the processes and CPU time of scorers are unlimited; set a limit in the unit or the container",
        "08:05:13 journal unavailable: locked (again in 2 s)",
        "08:06:03 journal unavailable: locked (again in 2 s)",
        "08:06:13 journal unavailable: no journal any more (again in 2 s)",
        "08:07:03 journal unavailable: no journal any more (again in 2 s)",
        "08:07:05 journal unavailable: [Errno 5] it cannot be read",
        "08:07:13 journal unavailable: [Errno 5] broken (again in 2 s)",
        "08:08:20 removed: files of dead workers (paths FOLDER/machine/submissions/9-aff)",
        "08:10:04 stopped",
    ]
    assert day.read_jobs() == {
        "failed for a fault of ours, 2 failures, 0 evaluations": [2],
        "failed for a fault of ours, 2 failures, 2 evaluations, 2 reports": [3],
        "finished, 2 evaluations": [5],
    }
    assert day.list_files() == LEFT


def test_days_that_end_in_the_middle(day: Day) -> None:
    server = day.server

    # stopped while a file is fetched
    day.at("8:12", lambda: server.send(12))
    day.at("8:12:01", day.stop)
    day.work(grace_seconds=60)
    steps, events = day.take()
    assert steps == {12: "runs, message deleted, downloads, postponed 08:12:02: asked to stop"}
    assert events == ["08:00:00 start: as usual", "08:12:02 stopped"]
    # stopped while a refusal is thought over
    day.at("8:14", lambda: server.fail("PUT", 3, 400, "no such label", {"error": "no such label"}))
    day.at("8:14", lambda: server.send(14))
    day.at("8:14:08", day.stop)
    day.work(grace_seconds=1.5)
    steps, events = day.take()
    assert steps == {
        12: f"continues begun 08:12:02, downloads, scores, {DONE} 08:12:10",
        14: (
            f"{SCORED}, result refused 08:14:09: no such label, "
            "ALERT EvalAI rejected its result: no such label (and to the hook), "
            "fails: EvalAI rejected the result of your submission: no such label\\nTell the organisers."
        ),
    }
    assert events == ["08:12:02 start: as usual", "08:14:10 stopped"]
    # stopped while lost submissions are found
    server.troubles.clear()
    for number in (15, 16):
        fields = {"submitted_at": "2026-01-05T07:40:00Z", "submission_input_file": f"/media/{number}"}
        day.at("8:15", lambda number=number, fields=fields: server.send(number, silent=True, **fields))
    day.at("8:15:04", day.stop)
    day.work(grace_seconds=60, sweep_seconds=1)
    steps, events = day.take()
    assert steps == {15: f"recovered status submitted 08:15:00, runs, downloads, scores, {DONE} 08:15:08"}
    assert events == ["08:14:10 start: as usual", "08:15:08 stopped"]
    # a token that ends while something is scored
    day.at("8:18", lambda: server.send(18))
    day.at("8:18:12", lambda: server.fail("", 99, 401, "Invalid token", {"detail": "Invalid token"}))
    day.work()
    steps, events = day.take()
    assert steps == {16: f"recovered status submitted 08:15:08, runs, downloads, scores, {DONE} 08:15:16", 18: SCORED}
    assert events == [
        "08:15:08 start: as usual",
        "08:18:21 ALERT: EvalAI no longer accepts AUTH_TOKEN: Invalid token (and to the hook)",
        "TokenRefusedError: Invalid token",
    ]
    report = json.dumps({"accuracies": GOOD, "metadata": None, "stdout": "", "stderr": ""})
    assert day.read_jobs() == {"finished": [12, 15, 16], "refused": [14], f"scored, 0 reports, {report} report": [18]}
    assert day.list_files() == LEFT


def test_starts_and_what_ends_them(day: Day) -> None:
    server = day.server

    # another version in the place of the journal
    day.at("8:30", lambda: server.troubles.append(("/queues/", 1, journal.UnusableError("of another version"))))
    day.work()
    for error in (journal.UnusableError("of another version"), OSError(errno.EACCES, "Permission denied")):
        with mock.patch.object(worker_loop, "Journal", side_effect=error):
            day.work()
    steps, events = day.take()
    assert not steps
    assert events == [
        "08:00:00 start: as usual",
        "StartError: of another version (2 times)",
        "SettingsError: SAVE_DIR FOLDER/machine: cannot be used (Permission denied). Name a folder of the worker's own",
    ]
    # the page of its health, and a challenge of ours alone
    with mock.patch.object(worker_loop, "serve_health", lambda port, *looks: day.say(f"serves {port} {len(looks)}")):
        day.stop_at("8:40")
        day.work(health_port=8000)
    with mock.patch.object(worker_loop, "serve_health", side_effect=OSError(98, "Address already in use")):
        day.work(health_port=8000)
    with mock.patch.object(worker_loop, "read_phases", lambda *_, read=worker_loop.read_phases: {"dev": read()["dev"]}):
        server.phases.pop()
        server.splits = server.splits[:1]
        day.check()
    steps, events = day.take()
    assert not steps
    assert events == [
        "08:30:00 start: as usual", "serves 8000 3", "08:40:00 stopped", "08:40:00 start: as usual",
        "SettingsError: HEALTH_PORT 8000: cannot be used (Address already in use)",
        "token: accepted by http://127.0.0.1:1", "queue: queue belongs to challenge 1",
        "challenge: Things, remote evaluation; the token belongs to a host",
        "phase 1: dev, FOLDER/annotations/dev.zip, test", "annotations of dev: read",
    ]  # fmt: skip
    assert not day.read_jobs()
    assert day.list_files() == LEFT
