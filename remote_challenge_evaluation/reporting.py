"""How a job ends: a result or a sentence, noted in the journal before anybody hears of it, then reported once."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from segjudge.evalai.client import ApiError
from segjudge.evalai.jobs import CANCELLED, SETTLED, Jobs
from segjudge.evalai.result_shapes import SubmissionRow
from segjudge.evalai.retries import with_retries

from .journal import BEGUN, SCORED, Job, Journal
from .operator_log import Log
from .queues import WorkQueue
from .settings import WorkerSettings
from .stopping import Stop

NAME = "segjudge-"
#: Faults of ours after which a submission is given back to its team.
FAILURES = 2
#: Between a fault and the next try.
PAUSE = 5.0
#: A refusal of a result is believed when it was said so often: it fails a submission.
_SAID, _SAID_PAUSE = 3, 1.0
#: Statuses of refusals that may pass, or that are about us.
_PASSING = (0, 401, 403, 404, 405, 408, 425, 429)

OURS = "Scoring failed, and it is not your fault. Tell the organisers the incident number {}."


class DelayError(Exception):
    """A job cannot go on now, for what neither its team nor this machine did."""


class RightsError(Exception):
    """The server no longer accepts the token: nothing can be done before a person changes it."""


@dataclass
class Tools:
    """What a worker works with."""

    settings: WorkerSettings
    journal: Journal
    jobs: Jobs
    queue: WorkQueue
    log: Log
    alert: Callable[[str], None]
    #: The server's time.
    now: Callable[[], float]
    stop: Stop
    #: Tells monitoring that something goes on.
    beat: Callable[[], None]
    #: Whether the worker ends when nothing waits any more.
    once: bool = False

    @property
    def name(self) -> str:
        """What a submission shows as its `job_name`."""
        return f"{NAME}{self.journal.worker}"


class SubmissionReporting:
    """The end of jobs."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._journal, self._jobs, self._log = tools.journal, tools.jobs, tools.log

    def may_work(self) -> bool:
        """Whether the server still accepts our token, when it refused one thing."""
        try:
            self._jobs.challenge()
        except ApiError as error:
            return not is_refusal(error)
        return True

    def over(self, job: Job, row: SubmissionRow) -> bool:
        """Whether the server wants nothing of it any more: settled, cancelled, or resumed since as new work."""
        status = row["status"]
        if status not in SETTLED and (row.get("rerun_resumed_at", job.resumed) or "") == job.resumed:
            return False
        self._journal.done(job, "cancelled" if status == CANCELLED else "settled elsewhere")
        self._log("left alone", submission=job.submission, status=status)
        return True

    def fault(self, job: Job, why: str) -> None:
        """Ours: once is an accident, twice is given back with a sentence."""
        incident = secrets.token_hex(4)
        job = self._journal.change(job, failures_more=1)
        self._log("fault of ours", submission=job.submission, incident=incident, failure=job.failures, why=why)
        if job.failures < FAILURES:
            self._journal.release(job, PAUSE)
            return
        self._tools.alert(f"submission {job.submission}: incident {incident}: {why}")
        self.settle(job, {"refused": OURS.format(incident), "ours": True})

    def give_up(self, job: Job, why: str) -> None:
        """It was tried often enough."""
        self.fault(self._journal.change(job, failures=FAILURES), why)

    def settle(self, job: Job, report: dict[str, Any]) -> None:
        """The result is in the journal before anybody hears of it: an outage costs no second evaluation."""
        self.report(self._journal.change(job, state=SCORED, report=report))

    def report(self, job: Job) -> None:
        """Look once more, then say it; what the server already knows is not said again."""
        row = self._jobs.submission(job.submission)
        if self.over(job, row):
            return
        if row["challenge_phase"] != job.phase:
            # One of the two answers was wrong; a score goes to a phase that was named twice.
            self._journal.change(job, state=BEGUN, phase=row["challenge_phase"], report=None)
            raise DelayError(f"it is of phase {row['challenge_phase']} now, and was of {job.phase}")
        report = job.report or {}
        job = self._journal.change(job, reports_more=1)
        started = time.monotonic()
        refusal = self._said(job, report)
        self._journal.add("seconds_reporting", time.monotonic() - started)
        if refusal is not None:
            self._refused(job, refusal)
            return
        outcome = (
            "finished" if "accuracies" in report else "failed for a fault of ours" if report.get("ours") else "failed"
        )
        self._journal.done(job, outcome)
        self._log("reported", submission=job.submission, outcome=outcome)
        self._tools.queue.keep_artifacts(job.submission, report)

    def _said(self, job: Job, report: dict[str, Any]) -> ApiError | None:
        """The server's refusal, if it refuses again and again."""
        for left in reversed(range(_SAID)):
            try:
                self._say(job, report)
            except ApiError as error:
                if error.transient or error.status in _PASSING or error.body is None:
                    raise
                if not left:
                    return error
                if self._tools.stop.wait_over(_SAID_PAUSE):
                    raise
            else:
                return None
        return None

    def _refused(self, job: Job, error: ApiError) -> None:
        """A 400 leaves the submission running: the team must hear of it."""
        self._log("result refused", submission=job.submission, why=str(error))
        self._tools.alert(f"submission {job.submission}: EvalAI did not take its result: {error}")
        words = f"EvalAI did not take the result of your submission: {error}\nTell the organisers."
        with_retries(lambda: self._jobs.fail(job.submission, job.phase, stderr=words), self._tools.stop.wait)
        self._journal.done(job, "refused")

    def _say(self, job: Job, report: dict[str, Any]) -> None:
        texts = {"stdout": report.get("stdout", ""), "stderr": report.get("stderr", "")}
        if "accuracies" in report:
            metadata = _metadata(report.get("submission_result"))
            self._jobs.finish(job.submission, job.phase, report["accuracies"], metadata=metadata, **texts)
        else:
            words = "\n".join(part for part in (texts["stderr"].strip(), report["refused"]) if part)
            self._jobs.fail(job.submission, job.phase, stdout=texts["stdout"], stderr=words)


def is_refusal(error: ApiError) -> bool:
    """Whether EvalAI itself refuses the token: a page of somebody between us and it is not its word."""
    return error.denied and isinstance(error.body, dict) and bool(error.body.keys() & {"detail", "error"})


def _metadata(told: Any) -> str:
    return json.dumps(told, default=str) if told is not None else ""
