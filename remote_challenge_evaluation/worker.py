"""One worker: take up what lies in the journal, then what is lost, then the queue; each job to its end.

The order of deeds is the design: claim durably, say RUNNING, delete the
message, score, note the result, look, report.  Wherever a process dies, the
journal tells the next one where to go on.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from linejudge.evalai.client import ApiError
from linejudge.evalai.jobs import CANCELLED, PLACEHOLDER, RUNNING, SETTLED, WAITING, Jobs, Message
from linejudge.evalai.patience import patiently
from linejudge.evalai.shapes import ShapeError, judged

from .download import GoneError, TooLargeError, download, head
from .evaluation import Outcome, evaluated
from .journal import BEGUN, CLAIMED, SCORED, Job, Journal
from .log import Log
from .queues import Queue
from .settings import Settings

NAME = "linejudge-"
#: Faults of ours after which a submission is given back to its team.
FAILURES = 2
#: Deaths of workers under one submission after which it is thought to cause them.
LIVES = 12
#: Between a fault and the next try.
_PAUSE = 5.0
_MARGIN = 60.0
#: Of a phase that this machine does not know.
_LONGEST = 6 * 3600.0

OURS = "Scoring failed, and it is not your fault. Tell the organisers the incident number {}."
BROKEN = "Your upload broke off, so that its file never came. Send it again."
TOO_LARGE = "Your file is larger than the {:,} bytes that this challenge takes. Send a smaller one."


class RightsError(Exception):
    """The server no longer lets us: nothing can be done before a person mends it."""


@dataclass
class Tools:
    """What a worker works with."""

    settings: Settings
    journal: Journal
    jobs: Jobs
    queue: Queue
    log: Log
    alert: Callable[[str], None]
    #: The server's time.
    now: Callable[[], float]
    stop: threading.Event


class Worker:
    """Answers one thing at a time."""

    def __init__(self, tools: Tools, phases: dict[str, Any]) -> None:
        self._tools, self._local = tools, phases
        self._journal, self._jobs, self._log = tools.journal, tools.jobs, tools.log
        #: The server's phases by number; `phase_pk` is not the codename that scorers know.
        self._phases: dict[int, dict[str, Any]] = {}
        self._hurry = threading.Event()
        self.name = f"{NAME}{tools.journal.worker}"

    def turn(self) -> bool:
        """One job, wherever it comes from; whether there was any."""
        job = self._journal.due()
        if job is not None:
            self._carry(job)
            return True
        if self._tools.stop.is_set() or not self._tools.queue.due():
            return False
        message = self._tools.queue.receive()
        if message is None:
            self._journal.add("empty_answers")
            return False
        self._journal.set("empty_answers", 0)
        self._meet(message)
        return True

    def seconds_of(self, phase: int) -> float:
        """How long a submission to a phase may take."""
        try:
            local = self._local.get(self._phase(phase)["codename"], {})
        except ApiError:
            local = {}
        return float(local.get("seconds", _LONGEST))

    def is_placeholder(self, row: dict[str, Any], look: bool) -> bool:  # noqa: FBT001 - whether it is worth a request
        """Whether a submission's file is not there yet."""
        if not look or row.get("submission_input_file"):
            return False
        try:
            return head(self._address_of(row), len(PLACEHOLDER) + 1) == PLACEHOLDER
        except OSError:
            return True  # who knows: it is asked again at the next sweep

    # ── a message ───────────────────────────────────────────────────────────

    def _meet(self, message: Message) -> None:
        """Find out what a message is about; each kind has its end."""
        if not message.submission:
            self._log("message dropped", why="it names no submission", body=str(message.body)[:200])
            self._forget(message)
            return
        try:
            row = self._jobs.submission(message.submission)
        except ApiError as error:
            if error.status != 404:
                raise
            self._log("message dropped", submission=message.submission, why="the server has no such submission")
            self._forget(message)
            return
        job = self.claimed(row) if row.get("status") in WAITING else None
        if job is None:
            # In hand, settled, or another machine's, whose journal or our sweep brings it home.
            self._log("message recognised", submission=message.submission, status=row.get("status"))
            self._forget(message)
            return
        with self._tools.queue.held(message):
            self._guarded(job, lambda: self._begin(job, row, message))
        self._tools.queue.delete_last(message)

    def _forget(self, message: Message) -> None:
        self._tools.queue.delete(message)
        self._tools.queue.delete_last(message)

    def claimed(self, row: dict[str, Any]) -> Job | None:
        """A submission made ours by the journal."""
        return self._journal.claim(int(row["id"]), str(row.get("rerun_resumed_at") or ""), int(row["challenge_phase"]))

    def take(self, row: dict[str, Any]) -> None:
        """One that the sweep found."""
        job = self.claimed(row)
        if job is not None:
            self._log("taken up", submission=job.submission, status=row.get("status"))
            self._guarded(job, lambda: self._begin(job, row, None))

    def _carry(self, job: Job) -> None:
        """Go on with a job from where it stands."""
        self._log("goes on", submission=job.submission, state=job.state)
        if job.lives > LIVES:
            self._guarded(job, lambda: self._given_up(job, f"{job.lives} workers died with it"))
        elif job.state == SCORED:
            self._guarded(job, lambda: self._report(job))
        else:
            self._guarded(job, lambda: self._begin(job, self._jobs.submission(job.submission), None))

    def _guarded(self, job: Job, work: Callable[[], None]) -> None:
        """Whatever goes wrong with one job, it is let go for a later try, and the next one is met."""
        try:
            work()
        except ApiError as error:
            if error.rights:
                self._journal.release(job, 0)
                raise RightsError(str(error)) from None
            self._log("put off", submission=job.submission, why=str(error))
            self._journal.release(job, error.wait or _PAUSE)
        except OSError as error:
            self._log("put off", submission=job.submission, why=str(error))
            self._journal.release(job, _PAUSE)

    # ── from the claim to the result ────────────────────────────────────────

    def _begin(self, job: Job, row: dict[str, Any], message: Message | None) -> None:
        if self._over(job, row):
            if message:
                self._tools.queue.delete(message)
            return
        if job.state == CLAIMED or row.get("status") != RUNNING:
            self._jobs.begin(job.submission, self.name)
            job = self._journal.change(job, state=BEGUN)
        if message:
            self._tools.queue.delete(message)
        self._score(job, row)

    def _over(self, job: Job, row: dict[str, Any]) -> bool:
        """Whether the server wants nothing of it any more: settled, cancelled, or resumed since as new work."""
        status = row.get("status")
        resumed = str(row.get("rerun_resumed_at") or "")
        if status not in SETTLED and resumed == job.resumed:
            return False
        self._journal.done(job, "cancelled" if status == CANCELLED else "settled elsewhere")
        self._log("left alone", submission=job.submission, status=status)
        return True

    def _score(self, job: Job, row: dict[str, Any]) -> None:
        folder = os.path.join(self._tools.settings.save_dir, "submissions", f"{job.submission}-{self._journal.worker}")
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder, mode=0o700)
        try:
            self._scored_in(folder, job, row)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _scored_in(self, folder: str, job: Job, row: dict[str, Any]) -> None:
        phase = self._phase(job.phase)
        local = self._local.get(phase["codename"])
        if local is None:
            known = ", ".join(self._local)
            self._fault(job, f"no phase {phase['codename']!r} in phases.py ({known})")
            return
        path = os.path.join(folder, "submission")
        try:
            with self._timed("download"):
                most = self._tools.settings.max_submission_bytes
                download(self._addresses(job, row), path, most, self._tools.stop.wait)
        except TooLargeError:
            self._settle(job, {"refused": TOO_LARGE.format(self._tools.settings.max_submission_bytes)})
            return
        except GoneError as error:
            self._fault(job, str(error))
            return
        if _is_placeholder(path):
            self._settle(job, {"refused": BROKEN})
            return
        job = self._journal.change(job, evaluations_more=1)
        request = {
            "submission": path,
            "codename": phase["codename"],
            "annotation": os.path.join(self._tools.settings.annotations, local["annotation"]),
            "submission_metadata": {**row, "status": RUNNING},
            "memory": self._tools.settings.memory_bytes,
        }
        with self._timed("scoring"):
            limit = local["seconds"] + _MARGIN
            outcome = evaluated(request, folder, limit, self._journal.lock, self._hurry.is_set)
        self._judge(job, outcome, local, silent=bool(phase.get("disable_logs")))

    @contextmanager
    def _timed(self, stage: str) -> Iterator[None]:
        """Add to what monitoring reads."""
        started = time.monotonic()
        try:
            yield
        finally:
            self._journal.add(f"seconds_{stage}", time.monotonic() - started)

    def _judge(self, job: Job, outcome: Outcome, local: dict[str, Any], *, silent: bool) -> None:
        """From what the scorer said to what is reported; noted before it is sent."""
        for line in outcome.log.strip().splitlines():
            self._log("scorer says", submission=job.submission, line=line)
        if outcome.handed_back:
            self._log("handed back", submission=job.submission)
            self._journal.release(job, 0)
            return
        texts = {"stdout": "" if silent else outcome.stdout, "stderr": "" if silent else outcome.stderr}
        if outcome.refused:
            self._settle(job, {"refused": outcome.refused, **texts})
            return
        try:
            if outcome.incident:
                raise ShapeError(outcome.incident)
            accuracies = judged(outcome.accuracies, local["labels"])
        except ShapeError as error:
            self._fault(job, str(error))
            return
        self._settle(job, {"accuracies": accuracies, "submission_result": outcome.submission_result, **texts})

    def _phase(self, number: int) -> dict[str, Any]:
        if number not in self._phases:
            self._phases = {int(row["id"]): row for row in self._jobs.phases()}
        if number not in self._phases:
            raise ApiError(0, f"the challenge has no phase {number}")
        return self._phases[number]

    def _addresses(self, job: Job, row: dict[str, Any]) -> Callable[[], str]:
        """The one that we know, then a fresh one for each try: links expire."""
        known = [row]

        def address() -> str:
            return self._address_of(known.pop() if known else self._jobs.submission(job.submission))

        return address

    def _address_of(self, row: dict[str, Any]) -> str:
        told = row.get("submission_input_file") or row.get("input_file") or ""
        return f"{self._tools.settings.api_server}{told}" if str(told).startswith("/") else str(told)

    # ── reporting ───────────────────────────────────────────────────────────

    def _fault(self, job: Job, why: str) -> None:
        """Ours: once is an accident, twice is given back with a sentence."""
        incident = secrets.token_hex(4)
        job = self._journal.change(job, failures_more=1)
        self._log("fault of ours", submission=job.submission, incident=incident, failure=job.failures, why=why)
        if job.failures < FAILURES:
            self._journal.release(job, _PAUSE)
            return
        self._tools.alert(f"submission {job.submission}: incident {incident}: {why}")
        self._settle(job, {"refused": OURS.format(incident), "ours": True})

    def _given_up(self, job: Job, why: str) -> None:
        self._journal.change(job, failures=FAILURES)
        self._fault(job, why)

    def _settle(self, job: Job, report: dict[str, Any]) -> None:
        """The result is in the journal before anybody hears of it: an outage costs no second evaluation."""
        self._report(self._journal.change(job, state=SCORED, report=report))

    def _report(self, job: Job) -> None:
        """Look once more, then say it; what the server already knows is not said again."""
        if self._over(job, self._jobs.submission(job.submission)):
            return
        report = job.report or {}
        job = self._journal.change(job, reports_more=1)
        try:
            with self._timed("reporting"):
                self._say(job, report)
        except ApiError as error:
            if error.status != 400:
                raise
            # A 400 leaves the submission running: the team must hear of it.
            self._log("result refused", submission=job.submission, why=str(error))
            self._tools.alert(f"submission {job.submission}: EvalAI did not take its result: {error}")
            words = f"EvalAI did not take the result of your submission: {error}\nTell the organisers."
            patiently(lambda: self._jobs.fail(job.submission, job.phase, stderr=words), self._tools.stop.wait)
            self._journal.done(job, "refused")
            return
        outcome = (
            "finished" if "accuracies" in report else "failed for a fault of ours" if report.get("ours") else "failed"
        )
        self._journal.done(job, outcome)
        self._log("reported", submission=job.submission, outcome=outcome)
        self._tools.queue.keep_artifacts(job.submission, report)

    def _say(self, job: Job, report: dict[str, Any]) -> None:
        texts = {"stdout": report.get("stdout", ""), "stderr": report.get("stderr", "")}
        if "accuracies" in report:
            metadata = _metadata(report.get("submission_result"))
            self._jobs.finish(job.submission, job.phase, report["accuracies"], metadata=metadata, **texts)
        else:
            words = "\n".join(part for part in (texts["stderr"].strip(), report["refused"]) if part)
            self._jobs.fail(job.submission, job.phase, stdout=texts["stdout"], stderr=words)

    def hurry(self) -> None:
        """Hand back what is in hand."""
        self._hurry.set()


def _metadata(told: Any) -> str:
    return json.dumps(told, default=str) if told is not None else ""


def _is_placeholder(path: str) -> bool:
    with open(path, "rb") as file:
        return file.read(len(PLACEHOLDER) + 1) == PLACEHOLDER
