"""Days of the remote worker: its steps with each submission, to the second, and what it keeps of them."""

from __future__ import annotations

import contextlib
import errno
import threading
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import pytest
import requests

from segjudge.remote_challenge_evaluation import journal, monitoring, services
from segjudge.remote_challenge_evaluation.scorer_process import ScoringOutcome
from segjudge.system.download import GoneError, TooLargeError
from segjudge.system.network import WireError

from .days import GOOD, Aws, Day, start_day

SCORED, DONE = "runs, message deleted, downloads, scores", "is finished, reported finished"
TWICE, GONE = "downloads again (2 times)", "the submission's file could not be fetched"
LEFT = ["annotations/dev.zip", "machine/journal.sqlite3", "machine/locks/opening"]
LATE = "its submissions wait for a worker that knows it. Update the bundle and restart the worker (and to the hook)"


@pytest.fixture
def day() -> Iterator[Day]:
    with start_day() as begun:
        yield begun


def test_a_day_with_submissions_of_every_outcome(day: Day) -> None:
    server, refused = day.server, ScoringOutcome(refused="Send masks.", stdout="out", stderr="err\n")
    day.outcomes = {
        1: [ScoringOutcome(GOOD, {"frames": 3}, stdout="three\n", stderr="a warning", log="a line\nand one")],
        2: [refused], 3: [ScoringOutcome(is_late=True)],
        4: [ScoringOutcome(incident="the scorer died", stdout="half")],
        5: [ScoringOutcome(incident="an accident"), ScoringOutcome([{"split": "all", "accuracies": {"AP": 1}}], {"at": {1}}, stdout="no")],
        9: [refused], 10: [ScoringOutcome([{"split": "test", "accuracies": {"Other": 1}}])],
        12: [ZeroDivisionError("a defect")], 13: [OSError(errno.ENOSPC, "No space left on device"), ScoringOutcome(GOOD)],
        15: [ScoringOutcome(is_handed_back=True), ScoringOutcome(GOOD)],
        16: [WireError("a line that broke"), ScoringOutcome(GOOD)],
    }  # fmt: skip
    day.files = {
        6: [b"file_content"], 7: [TooLargeError("x")], 8: [GoneError("404", lasting=True)],
        9: [b"first", b"first", b"other", b"first"],
        11: [GoneError("away", lasting=False)] * 3 + [b"at last"],
        17: [b"one", GoneError("not again", lasting=False), b"one", b"one"],
    }  # fmt: skip
    day.outcomes[17] = [refused]
    sent = {number: (2 if number == 5 else 1) for number in range(1, 18)}
    for number, phase in sent.items():
        day.at(f"8:{number:02}", lambda number=number, phase=phase: server.send(number, phase))
    day.at("8:20", lambda: server.send(20, submission_input_file="http://storage/20", input_file="/media/1"))
    day.at("8:21", lambda: server.send(21, status="cancelled"))
    day.at("8:22", lambda: server.send(22, status="submitting"))
    day.at("8:22:59", server.messages.clear)
    day.at("8:23", lambda: server.put({"submission_pk": "1"}))
    day.at("8:23:30", lambda: server.put({"submission_pk": 99}))
    day.at("8:24", lambda: server.put({"submission_pk": -1}))
    day.at("8:24:50", lambda: server.put(["x" * 300]))
    day.at("8:25", lambda: server.rows[2].update(status="resuming", rerun_resumed_at="2026-01-05T08:25:00Z"))
    day.at("8:25", lambda: server.put({"submission_pk": 2}))
    day.at("8:26", lambda: server.send(26, 9))
    day.at("8:28", lambda: server.phases.append({"id": 9, "codename": "late"}))
    day.at("8:30", server.messages.clear)
    day.at("8:30", lambda: server.rows.pop(26))
    day.at("8:31", lambda: server.send(31))
    day.at("8:31", lambda: server.send(32))
    day.at("8:31:20", lambda: server.rows[32].update(status="cancelled"))
    day.stop_at("8:33")
    day.work()
    steps, events = day.take()
    assert steps == {
        1: (
            f"{SCORED}, scorer says 08:01:07: a line, scorer says 08:01:07: and one, "
            'sends for phase 1: [{"split": "test", "show_to_participant": true, "accuracies": {"J": 0.5, "F": 0.25}}], '
            "submission_status 'FINISHED', "
            "metadata '{\"frames\": 3}', stdout 'three\\n', stderr 'a warning', reported finished 08:01:08, message recognised status finished 08:23:01"
        ),
        2: (
            f"{SCORED}, {TWICE}, "
            f"fails: err\\nSend masks. (stdout: out), reported failed 08:02:22, runs, downloads, scores, {TWICE}, "
            "fails: err\\nSend masks. (stdout: out), reported failed 08:25:17"
        ),
        3: (
            f"{SCORED}, {TWICE}, "
            "fails: Scoring took longer than this challenge allows and was stopped. Send a smaller submission., reported failed 08:03:16"
        ),
        4: (
            f"{SCORED}, fault of ours 08:04:13: the scorer died (incident a2, failure 1), "
            "continues begun 08:04:18, downloads, scores, fault of ours 08:04:25: the scorer died (incident a3, failure 2), ALERT of a3, "
            "fails: a3, reported failed for a fault of ours 08:04:26"
        ),
        5: (
            f"{SCORED} by its script, fault of ours 08:05:13: an accident (incident a4, failure 1), "
            "continues begun 08:05:18, downloads, scores by its script, "
            "defect 08:05:25: Traceback … TypeError: Object of type set is not JSON serializable, "
            "fault of ours 08:05:25: TypeError: Object of type set is not JSON serializable (incident a5, failure 2), ALERT of a5, fails: a5, "
            "reported failed for a fault of ours 08:05:26"
        ),
        6: (
            f"runs, message deleted, downloads, {TWICE}, "
            "fails: Your upload was interrupted, and its file did not arrive. Submit it again., reported failed 08:06:15"
        ),
        7: (
            "runs, message deleted, downloads, "
            "fails: Your file is larger than the 1,000 bytes that this challenge accepts. Send a smaller file., reported failed 08:07:08"
        ),
        8: (
            "runs, message deleted, downloads, "
            f"fault of ours 08:08:10: {GONE} (404) (incident a6, failure 1), "
            "continues begun 08:08:15, downloads, "
            f"fault of ours 08:08:17: {GONE} (404) (incident a7, failure 2), ALERT of a7, fails: a7, "
            "reported failed for a fault of ours 08:08:18"
        ),
        9: (
            f"{SCORED}, {TWICE}, "
            "postponed 08:09:13: the scored file had changed when it was fetched again, "
            f"continues begun 08:09:18, downloads, scores, {TWICE}, "
            "fails: err\\nSend masks. (stdout: out), reported failed 08:09:32"
        ),
        10: (
            f"{SCORED}, "
            "fault of ours 08:10:09: test: 'Other' is not a label of its leaderboard (incident a8, failure 1), "
            "continues begun 08:10:14, downloads, scores, "
            "fault of ours 08:10:21: test: 'Other' is not a label of its leaderboard (incident a9, failure 2), ALERT of a9, fails: a9, "
            "reported failed for a fault of ours 08:10:22"
        ),
        11: (
            f"runs, message deleted, downloads, postponed 08:11:04: {GONE} (away), "
            f"continues begun 08:11:09, downloads, postponed 08:11:11: {GONE} (away), "
            f"continues begun 08:11:21, downloads, postponed 08:11:23: {GONE} (away), "
            f"continues begun 08:11:43, downloads, scores, {DONE} 08:11:51"
        ),
        12: (
            f"{SCORED}, defect 08:12:08: Traceback … ZeroDivisionError: a defect, "
            "fault of ours 08:12:08: ZeroDivisionError: a defect (incident aa, failure 1), continues begun 08:12:13, downloads, scores, "
            "defect 08:12:20: Traceback … ZeroDivisionError: a defect, "
            "fault of ours 08:12:20: ZeroDivisionError: a defect (incident ab, failure 2), ALERT of ab, fails: ab, "
            "reported failed for a fault of ours 08:12:21"
        ),
        13: (
            f"{SCORED}, postponed 08:13:08: [Errno 28] No space left on device, "
            f"continues begun 08:13:13, downloads, scores, {DONE} 08:13:21"
        ),
        14: f"{SCORED}, {DONE} 08:14:09",
        15: (f"{SCORED}, handed back 08:15:16, continues begun 08:15:16, downloads, scores, {DONE} 08:15:24"),
        16: (
            f"{SCORED}, postponed 08:16:11: a line that broke, "
            f"continues begun 08:16:16, downloads, scores, {DONE} 08:16:24"
        ),
        17: (
            f"{SCORED}, downloads again, "
            f"postponed 08:17:14: the scored file could not be fetched again: {GONE} (not again), "
            f"continues begun 08:17:19, downloads, scores, {TWICE}, "
            "fails: err\\nSend masks. (stdout: out), reported failed 08:17:33"
        ),
        20: f"runs, message deleted, scores, {DONE} 08:20:11",
        21: "message recognised status cancelled 08:21:01, message deleted",
        22: "message recognised status submitting 08:22:01, message deleted",
        26: (
            "message left 08:26:07: the challenge has no phase 9, message left 08:26:37: the challenge has no phase 9, "
            "message left 08:27:07: the challenge has no phase 9"
        ),
        31: f"{SCORED}, {DONE} 08:31:15",
        32: f"{SCORED}, skipped status cancelled 08:31:22",
        99: "message dropped 08:23:33: it is not a submission of this challenge: Submission 99 does not exist",
    }
    assert events == [
        "08:00:00 start: as usual",
        "downloads http://storage/20, at most 1000 bytes, as FOLDER/machine/submissions/20-a1/submission",
        '→ message deleted: {"submission_pk": "1"}',
        '→ message deleted: {"submission_pk": 99}',
        "08:24:03 message left: it names no submission (body {'submission_pk': -1})",
        "08:24:33 message dropped: it names no submission (body {'submission_pk': -1})",
        '→ message deleted: {"submission_pk": -1}',
        f"08:24:53 message left: it names no submission (body ['{'x' * 198})",
        '→ message deleted: {"submission_pk": 2}',
        f"08:25:27 message dropped: it names no submission (body ['{'x' * 198})",
        f'→ message deleted: ["{"x" * 300}"]',
        f"08:26:37 ALERT: phase 9 appeared after the start of this worker: the challenge has no phase 9; {LATE}",
        "08:33:00 stopped",
    ]
    assert day.read_jobs() == {
        "finished": [1, 14, 20, 31], "failed": [2, 2, 3],
        "failed for a fault of ours, 2 failures, 2 evaluations": [4, 5, 10, 12], "failed, 0 evaluations": [6, 7],
        "failed for a fault of ours, 2 failures, 0 evaluations": [8], "failed, 2 evaluations, 1 delays": [9, 17],
        "finished, 3 delays": [11], "finished, 2 evaluations": [13, 15, 16], "cancelled, 0 reports": [32],
    }  # fmt: skip
    assert day.list_files() == LEFT


def test_a_day_with_a_server_in_trouble(day: Day) -> None:
    server = day.server
    day.at("8:01", lambda: server.fail("/queues/", 3, 500))
    day.at("8:02", lambda: server.fail("/queues/", 1, 429, "slower", {"detail": "slower"}, 90))
    day.at("8:04", lambda: server.fail("submission/4 ", 6, 0, "does not answer"))
    day.at("8:04", lambda: server.send(4))
    day.at("8:06", lambda: server.fail("PUT", 2, 503))
    day.at("8:06", lambda: server.send(6))
    day.at("8:08", lambda: server.fail("PUT", 3, 400, "no such label", {"error": "no such label"}))
    day.at("8:08", lambda: server.send(8))
    day.at("8:10", lambda: server.fail("PUT", 1, 400, "perhaps", {"error": "perhaps"}))
    day.at("8:10", lambda: server.send(10))
    day.at("8:12", lambda: server.fail("PUT", 1, 404, "not here", {"error": "not here"}))
    day.at("8:12", lambda: server.send(12))
    day.at("8:14", lambda: server.fail("submission/14 ", 3, 403, "not yours", {"detail": "not yours"}))
    day.at("8:14", lambda: server.send(14))
    day.at("8:16", lambda: server.fail("PATCH", 1, 403, "not now", {"detail": "not now"}))
    day.at("8:16", lambda: server.send(16))
    day.at("8:18", lambda: server.send(18, lies=True))
    day.at("8:20", lambda: server.fail("POST", 9, 500))
    day.at("8:20", lambda: server.send(20))
    day.at("8:23", lambda: server.fail("GET /api/challenges/challenge/queues/queue/", 1, 502))
    day.at("8:23", lambda: server.fail("/api/jobs/challenge/queues/", 1, 401, "who?", {"detail": "who?"}))
    day.at("8:25", lambda: server.troubles.append(("/queues/", 1, ZeroDivisionError("of ours"))))
    day.at("8:26", lambda: server.send(26))
    day.at("8:26:03", lambda: server.rows[26].update(challenge_phase=2))
    day.at("8:28", lambda: server.send(28))
    day.at("8:28:10", day.stop)
    scored = ScoringOutcome([{"split": "all", "accuracies": {"AP": 1}}], stdout="of a phase", stderr="without logs")
    day.outcomes = {26: [ScoringOutcome(GOOD), scored]}
    day.work(grace_seconds=2.0)
    steps, events = day.take()
    assert steps == {
        4: f"{SCORED}, {DONE} 08:04:48",
        6: (
            f"{SCORED}, postponed 08:06:15: answers 503, continues scored 08:06:20, "
            f"postponed 08:06:20: answers 503, continues scored 08:06:25, {DONE} 08:06:26"
        ),
        8: (
            f"{SCORED}, result refused 08:08:15: no such label, "
            "ALERT EvalAI rejected its result: no such label (and to the hook), "
            "fails: EvalAI rejected the result of your submission: no such label\\nTell the organisers."
        ),
        10: f"{SCORED}, {DONE} 08:10:15",
        12: (f"{SCORED}, postponed 08:12:12: not here, continues scored 08:12:17, {DONE} 08:12:18"),
        14: "message dropped 08:14:04: it is not a submission of this challenge: not yours, message deleted",
        16: (
            "postponed 08:16:04: not now, continues claimed 08:16:09, "
            f"runs, downloads, scores, {DONE} 08:16:17, message recognised status finished 08:16:37, message deleted"
        ),
        18: (f"{SCORED}, {DONE} 08:18:15, recovered status running 08:20:00, downloads, scores, {DONE} 08:20:08"),
        20: f"runs, downloads, scores, {DONE} 08:20:23, message recognised status finished 08:20:43, message deleted",
        26: (
            f"{SCORED}, postponed 08:26:08: it now belongs to phase 2; before, it belonged to 1, "
            "continues begun 08:26:13, downloads, scores by its script, "
            'sends for phase 2: [{"split": "all", "accuracies": {"AP": 1}}], submission_status \'FINISHED\', reported finished 08:26:21'
        ),
        28: f"{SCORED}, {DONE} 08:28:09",
    }
    assert events == [
        "08:00:00 start: as usual",
        "08:01:00 server unavailable: answers 500 (again in 2 s)",
        "08:01:10 server unavailable: answers 500 (again in 2 s)",
        "08:01:20 server unavailable: answers 500 (again in 2 s)",
        "08:02:00 server unavailable: slower (again in 90 s)",
        "08:04:07 server unavailable: does not answer (again in 2 s)",
        "08:23:03 refused: who? (again in 2 s)",
        "08:25:01 defect: Traceback … ZeroDivisionError: of ours",
        "08:25:01 defect: ZeroDivisionError: of ours (again in 2 s)",
        "08:28:10 stopped",
    ]
    # it goes on the next morning
    day.at("8:30", lambda: server.fail("", 99, 401, "Invalid token", {"detail": "Invalid token"}))
    day.work()
    steps, events = day.take()
    assert not steps
    assert events == [
        "08:28:10 start: as usual",
        "08:30:08 ALERT: EvalAI no longer accepts AUTH_TOKEN: Invalid token (and to the hook)",
        "TokenRefusedError: Invalid token",
    ]
    assert day.read_jobs() == {
        "finished": [4, 10, 20, 28], "finished, 3 reports": [6], "refused": [8],
        "finished, 2 reports, 1 delays": [12], "finished, 1 delays": [16],
        "finished, 1 lives, 2 evaluations, 2 reports": [18], "finished, 2 evaluations, 1 delays": [26],
    }  # fmt: skip
    assert day.list_files() == LEFT


def test_a_day_on_which_things_got_lost(day: Day) -> None:
    server, clock = day.server, day.clock
    server.send(1, silent=True, submitted_at="2026-01-05T07:40:00Z")  # its message is lost
    server.send(2, silent=True, submitted_at="2026-01-05T07:50:00")  # not yet for long enough
    server.send(3, silent=True, submitted_at="2026-01-05T06:30:00Z")  # an upload that may still come
    server.send(4, silent=True, submitted_at="2026-01-05T05:30:00Z")  # and one that does not
    server.send(5, silent=True, status="running", started_at="2026-01-05T07:30:00Z")  # another machine's
    server.send(6, silent=True, status="running", started_at="2026-01-05T07:55:00Z")
    server.send(7, silent=True, status="archived", submitted_at="2026-01-04T07:40:00Z")
    server.send(8, 7, silent=True, submitted_at="2026-01-04T07:40:00Z")  # of a phase that is not scored here
    server.send(9, silent=True, submitted_at="nonsense")
    server.send(10, silent=True, submission_input_file="http://storage/10", submitted_at="2026-01-05T07:00:00Z")
    server.send(12, silent=True, submitted_at="2026-01-05T07:00:00Z")  # whose file cannot be looked at
    day.files = {
        3: [b"file_content"],
        4: [b"file_content"],
        1: [b"a file"],
        12: [WireError("a line that broke"), b"a file"],
    }
    server.send(11, silent=True, lies=True, submitted_at="2026-01-05T07:00:00Z")  # whose result is not taken
    day.at("8:12", lambda: day.stop_at("8:20"))
    day.work(sweep_seconds=120)
    clock.now += 3600
    day.stop_at("9:40")
    day.work(sweep_seconds=300)
    steps, events = day.take()
    assert steps == {
        1: f"looked at, recovered status submitted 08:02:00, runs, downloads, scores, {DONE} 08:02:08",
        2: f"looked at, recovered status submitted 08:06:00, runs, downloads, scores, {DONE} 08:06:08",
        3: (
            f"looked at (9 times), recovered status submitted 09:20:00, runs, downloads, {TWICE}, "
            "fails: Your upload was interrupted, and its file did not arrive. Submit it again., reported failed 09:20:09"
        ),
        4: (
            f"recovered status submitted 08:02:08, runs, downloads, {TWICE}, "
            "fails: Your upload was interrupted, and its file did not arrive. Submit it again., reported failed 08:02:17"
        ),
        5: f"recovered status running 08:00:00, runs, downloads, scores, {DONE} 08:00:08",
        6: f"recovered status running 08:16:00, runs, downloads, scores, {DONE} 08:16:08",
        10: f"recovered status submitted 08:02:17, runs, scores, {DONE} 08:02:25",
        11: (
            f"looked at, recovered status submitted 08:02:25, runs, downloads, scores, {DONE} 08:02:33, "
            f"recovered status running 08:04:00, downloads, scores, {DONE} 08:04:08"
        ),
        12: (
            "looked at (9 times), recovered status submitted 09:20:09, runs, downloads, postponed 09:20:11: a line that broke, "
            f"continues begun 09:20:16, downloads, scores, {DONE} 09:20:24"
        ),
    }
    assert events == [
        "08:00:00 start: as usual",
        "downloads http://storage/10, at most 1000 bytes, as FOLDER/machine/submissions/10-a1/submission",
        "08:20:00 stopped",
        "09:20:00 start: as usual",
        "09:40:00 stopped",
    ]
    assert day.read_jobs() == {
        "finished": [1, 2, 5, 6, 10, 12],
        "failed, 0 evaluations": [3, 4],
        "finished, 1 lives, 2 evaluations, 2 reports": [11],
    }
    assert day.list_files() == LEFT


def test_a_day_with_a_queue_and_buckets_of_the_hosts_own(day: Day) -> None:
    aws = Aws(day)

    def message(number: int, body: str) -> dict[str, Any]:
        return {"Messages": [{"Body": body, "ReceiptHandle": f"handle {number}"}]}

    def refuse(*_: object, **_named: object) -> Any:
        raise ZeroDivisionError("x" * 400)

    for number in (1, 2):
        day.server.send(number, silent=True)
    day.outcomes[2] = [ScoringOutcome(incident="an accident")]
    aws.answers = [message(1, '{"submission_pk": 1}'), message(2, '{"submission_pk": 2}'), message(3, "not JSON"),
                   ZeroDivisionError("x" * 400), message(4, "not JSON"), {"Messages": []}]  # fmt: skip
    terms = {
        "sqs_queue_url": "https://queue",
        "artifacts": "s3://kept/of/",
        "annotations": "s3://truths/a",
        "webhook": "",
    }
    with mock.patch.object(services, "_aws_client", return_value=aws):
        day.stop_at("8:01")
        day.work(**terms)
        steps, events = day.take()
        assert steps == {
            1: f"runs, downloads, scores by the fetched truth, {DONE} 08:00:08",
            2: (
                "runs, downloads, scores by the fetched truth, fault of ours 08:00:15: an accident (incident a2, failure 1), "
                "continues begun 08:00:20, downloads, scores by the fetched truth, fault of ours 08:00:27: an accident (incident a3, failure 2), "
                "ALERT incident a3: an accident, fails: a3, reported failed for a fault of ours 08:00:28"
            ),
        }
        assert events == [
            "head_object: truths a/dev.zip",
            "download_file: truths a/dev.zip FOLDER/machine/annotations/dev.zip-a1.partial",
            "08:00:00 start: with the fetched truth",
            "receive_message: https://queue 1 20 60",
            (
                'put_object: kept of/submission_1.json {"accuracies": [{"split": "test","show_to_participant": true,"accuracies": {"J": 0.5,"F": 0.25}}],'
                '"metadata": null,"stdout": "","stderr": ""} application/json'
            ),
            "delete_message: https://queue handle 1",
            "receive_message: https://queue 1 20 60",
            "delete_message: https://queue handle 2",
            "receive_message: https://queue 1 20 60",
            "08:00:15 message left: it names no submission (body not JSON)",
            "receive_message: https://queue 1 20 60",
            f"08:00:15 server unavailable: https://queue: {'x' * 300} (again in 2 s)",
            "receive_message: https://queue 1 20 60",
            "08:00:17 message dropped: it names no submission (body not JSON)",
            "delete_message: https://queue handle 4",
            "receive_message: https://queue 1 20 60 (3 times)",
            (
                'put_object: kept of/submission_2.json {"refused": "Scoring failed; your submission is not the cause. '
                'Tell the organisers the incident number a3.","ours": true} application/json'
            ),
            "receive_message: https://queue 1 20 60 (32 times)",
            "08:01:00 stopped",
        ]
        # and again, with another truth
        aws.tags = {"truths/a/dev.zip": '"2"'}
        day.work(**terms, once=True)
        steps, events = day.take()
        assert not steps
        assert events == [
            "head_object: truths a/dev.zip",
            "download_file: truths a/dev.zip FOLDER/machine/annotations/dev.zip-a4.partial",
            "08:01:00 start: with the fetched truth",
            "receive_message: https://queue 1 2 60",
            "08:01:00 stopped",
        ]
        assert day.read_jobs() == {"finished": [1], "failed for a fault of ours, 2 failures, 2 evaluations": [2]}
        assert day.list_files() == [
            "annotations/dev.zip",
            "machine/annotations/dev.zip",
            "machine/annotations/dev.zip.etag",
            "machine/journal.sqlite3",
            "machine/locks/opening",
        ]

    with mock.patch.object(services, "_aws_client", refuse), contextlib.redirect_stderr(day.log):
        day.work(annotations="s3://truths")
        day.work(sqs_queue_url="https://queue")
        services.upload_report("s3://kept", 1, {"refused": "x"}, monitoring.Log("pretty"))
    steps, events = day.take()
    assert steps == {1: f"copy not kept 08:01:00: {'x' * 300} (where s3://kept)"}
    assert events == [
        f"StartError: ANNOTATIONS s3://truths: {'x' * 400}",
        "08:01:00 start: as usual",
        f"StartError: SQS_QUEUE_URL: {'x' * 400}",
    ]


# ── the pages of its health ─────────────────────────────────────────────────

#: The numbers with their kinds, descriptions and values after two submissions.
METRICS = (
    ("waiting", "gauge", "Submissions waiting on the server at the last sweep.", 0),
    ("oldest_waiting_seconds", "gauge", "Age of the oldest waiting submission.", 0),
    ("download_seconds_total", "counter", "Seconds spent downloading submissions.", 6),
    ("scoring_seconds_total", "counter", "Seconds spent scoring.", 15),
    ("reporting_seconds_total", "counter", "Seconds spent reporting results.", 2),
    ("requests_total", "counter", "Calls of the API.", 35),
    ("faults_total", "counter", "Alerts that the worker raised.", 1),
    ("jobs", "gauge", "Jobs in the journal, by outcome or state.", None),
)


@contextlib.contextmanager
def serve_pages(*readers: Callable[[], Any]) -> Iterator[Callable[[str], tuple[int, str]]]:
    """Yield a function that returns the status and the text of a page of health."""
    before = {*threading.enumerate()}
    server = monitoring.serve_health(0, *readers)
    assert all(thread.daemon for thread in {*threading.enumerate()} - before), "it ends with the process"

    def fetch(path: str) -> tuple[int, str]:
        answer = requests.get(f"http://127.0.0.1:{server.server_address[1]}/{path}", timeout=60)
        assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
        return answer.status_code, answer.text.replace("2026-01-05T", "")

    yield fetch
    server.shutdown()
    server.server_close()


def test_pages_of_health_tell_of_its_turns_and_jobs(day: Day) -> None:
    refused = ScoringOutcome(incident="an accident")
    day.outcomes[2] = [refused]
    for number in (1, 2):
        day.at(f"8:0{number}", lambda number=number: day.server.send(number))
    day.stop_at("8:03")
    day.work()
    items: list[Any] = [journal.Journal(str(day.folder / "machine"))]
    answered, turned_at = "EvalAI last answered at 08:02:58Z, 2 s ago", [0.0]

    def read_journal() -> Any:
        if items:
            return items[0]
        raise journal.JournalError("locked")

    ends = ('{outcome="failed for a fault of ours"} 1', '{outcome="finished"} 1')
    lines = [
        line
        for name, kind, about, value in METRICS
        for line in (
            f"# HELP segjudge_worker_{name} {about}",
            f"# TYPE segjudge_worker_{name} {kind}",
            *(f"segjudge_worker_{name}{end}" for end in (ends if value is None else [f" {value}"])),
        )
    ]
    with serve_pages(read_journal, lambda: turned_at[0], lambda: day.server.answered_at) as fetch:
        for seconds, status, turn in (
            (0, 200, "running since 08:03:00Z; last turn at 08:03:00Z, 0 s ago"),
            (299, 200, "running since 08:03:00Z; last turn at 07:58:01Z, 299 s ago"),
            (300, 503, "stalled since 07:58:00Z, 300 s ago; started at 08:03:00Z"),
        ):
            turned_at[0] = day.clock.monotonic() - seconds
            assert fetch("healthz") == (status, f"{turn}\n{answered}\n")
        assert fetch("metrics") == (200, "".join(f"{line}\n" for line in lines))
        assert fetch("else") == (404, "/healthz and /metrics\n")
        items.pop().close()
        assert fetch("metrics") == (503, "locked\n")
