"""How a job ends: a result or a sentence, noted in the journal before it is sent, then reported once."""

from __future__ import annotations

import json
import secrets
import time

from segjudge.platforms.evalai.client import ApiError, with_retries
from segjudge.platforms.evalai.rows import CANCELLED, SETTLED, SubmissionRow

from .buckets import keep_report
from .journal import BEGUN, SCORED, Job, JobReport
from .services import JobBlockedError, WorkerServices

#: Faults of ours after which a submission is given back to its team.
FAILURES = 2
#: Seconds between a fault and the next attempt.
PAUSE = 5.0
#: A result is refused only if the server says so as often, since a refusal fails the submission.
_REFUSALS, _REFUSAL_PAUSE = 3, 1.0
#: Statuses of refusals that may pass, or that are about us.
_PASSING = (0, 401, 403, 404, 405, 408, 425, 429)

_OUR_FAULT = "Scoring failed, and it is not your fault. Tell the organisers the incident number {}."


class SubmissionReporting:
    """Ends jobs."""

    def __init__(self, services: WorkerServices) -> None:
        self._services = services
        self._journal, self._jobs, self._log = services.journal, services.jobs, services.log

    def is_over(self, job: Job, row: SubmissionRow) -> bool:
        """Finish a job that the server has settled, cancelled, or resumed since as new work; return whether it is."""
        status = row["status"]
        if status not in SETTLED and (row.get("rerun_resumed_at", job.resumed) or "") == job.resumed:
            return False
        self._journal.finish(job, "cancelled" if status == CANCELLED else "settled elsewhere")
        self._log("left alone", submission=job.submission, status=status)
        return True

    def fault(self, job: Job, why: str) -> None:
        """Record a fault of ours: once is an accident, twice gives the submission back with a sentence."""
        incident = secrets.token_hex(4)
        job = self._journal.change(job, "failures")
        self._log("fault of ours", submission=job.submission, incident=incident, failure=job.failures, why=why)
        if job.failures < FAILURES:
            self._journal.release(job, PAUSE)
            return
        self._services.alert(f"submission {job.submission}: incident {incident}: {why}")
        self.settle(job, {"refused": _OUR_FAULT.format(incident), "ours": True})

    def settle(self, job: Job, report: JobReport) -> None:
        """Note a result and report it; once it is noted, an outage costs no second evaluation."""
        self.report(self._journal.change(job, state=SCORED, report=report))

    def report(self, job: Job) -> None:
        """Report what was noted, unless the server knows it already."""
        row = self._jobs.submission(job.submission)
        if self.is_over(job, row):
            return
        if row["challenge_phase"] != job.phase:
            # One of the two answers was wrong; a score goes to a phase that was named twice.
            self._journal.change(job, state=BEGUN, phase=row["challenge_phase"], report=None)
            raise JobBlockedError(f"it is of phase {row['challenge_phase']} now, and was of {job.phase}")
        report = job.report or {}
        job = self._journal.change(job, "reports")
        started = time.monotonic()
        refusal = self._send_until_believed(job, report)
        self._journal.add("seconds_reporting", time.monotonic() - started)
        if refusal is not None:
            self._report_refusal(job, refusal)
            return
        outcome = (
            "finished" if "accuracies" in report else "failed for a fault of ours" if report.get("ours") else "failed"
        )
        self._journal.finish(job, outcome)
        self._log("reported", submission=job.submission, outcome=outcome)
        keep_report(self._services.settings.artifacts, job.submission, report, self._log)

    def _send_until_believed(self, job: Job, report: JobReport) -> ApiError | None:
        """Send a report; return the server's refusal if it refuses again and again."""
        for left in reversed(range(_REFUSALS)):
            try:
                self._send(job, report)
            except ApiError as error:
                if error.transient or error.status in _PASSING or error.body is None:
                    raise
                if not left:
                    return error
                if self._services.stop.wait_over(_REFUSAL_PAUSE):
                    raise
            else:
                return None
        return None

    def _report_refusal(self, job: Job, error: ApiError) -> None:
        """Fail a submission whose result was refused, which the server leaves running."""
        self._log("result refused", submission=job.submission, why=str(error))
        self._services.alert(f"submission {job.submission}: EvalAI did not take its result: {error}")
        message = f"EvalAI did not take the result of your submission: {error}\nTell the organisers."
        with_retries(lambda: self._jobs.fail(job.submission, job.phase, stderr=message), self._services.stop.wait)
        self._journal.finish(job, "refused")

    def _send(self, job: Job, report: JobReport) -> None:
        stdout, stderr = report.get("stdout", ""), report.get("stderr", "")
        if "accuracies" in report:
            metadata = json.dumps(report["metadata"], default=str) if report.get("metadata") else ""
            accuracies = report["accuracies"]
            self._jobs.finish(job.submission, job.phase, accuracies, metadata=metadata, stdout=stdout, stderr=stderr)
        else:
            stderr = "\n".join(text for text in (stderr.strip(), report["refused"]) if text)
            self._jobs.fail(job.submission, job.phase, stdout=stdout, stderr=stderr)
