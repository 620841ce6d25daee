"""The scoring of a job: fetch the file, score it, interpret the answer, and report once.

The journal records a result before it is reported.
"""

from __future__ import annotations

import filecmp
import itertools
import json
import os
import secrets
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager

from segjudge.platforms.evalai.client import ApiError, with_retries
from segjudge.platforms.evalai.rows import (
    CANCELLED,
    PLACEHOLDER,
    RUNNING,
    SETTLED,
    PhaseRow,
    ShapeError,
    SubmissionRow,
    check_accuracies,
)
from segjudge.system.download import GoneError, TooLargeError, download, fetch_head
from segjudge.system.network import WireError

from .journal import BEGUN, DOWNLOADS, SCORED, Job, JobReport
from .scorer_process import ScoringOutcome, ScoringRequest, run_scorer
from .services import JobBlockedError, WorkerServices, upload_report
from .settings import ScoredPhase

# ── a team's messages ───────────────────────────────────────────────────────

_OUR_FAULT = "Scoring failed; your submission is not the cause. Tell the organisers the incident number {}."
_BROKEN_OFF = "Your upload was interrupted, and its file did not arrive. Submit it again."
_TOO_LONG = "Scoring took longer than this challenge allows and was stopped. Send a smaller submission."
_TOO_LARGE = "Your file is larger than the {:,} bytes that this challenge accepts. Send a smaller file."
_NOT_TAKEN = "EvalAI rejected the result of your submission: {}\nTell the organisers."

# ── how often, and after which pause, something is tried again ───────────────

#: The number of internal faults after which a submission is returned to its team.
FAILURES = 2
#: Seconds between a fault and the next attempt.
PAUSE = 5.0
#: The number of rejections by the server after which a result counts as rejected, since that fails the submission.
_REFUSALS, _REFUSAL_PAUSE = 3, 1.0
#: Statuses of temporary refusals, or of refusals about this worker.
_PASSING = (0, 401, 403, 404, 405, 408, 425, 429)
#: Seconds beyond the phase's limit for our scorer, which stops by itself in time.
_MARGIN = 60.0
#: Seconds before the server is asked again for its phases, if this machine lacks one.
_PHASE_SECONDS = 10.0
#: The number of further downloads of a file that fails a submission, and the pause before each in seconds.
_CONFIRMATIONS, _PAUSE = 2, 1.0


class SubmissionReporting:
    """The reporting of finished jobs."""

    def __init__(self, services: WorkerServices) -> None:
        self._services = services
        self._journal, self._jobs, self._log = services.journal, services.jobs, services.log

    def is_over(self, job: Job, row: SubmissionRow) -> bool:
        """Finish a job that the server has settled, cancelled or resumed; return whether it did."""
        status = row["status"]
        if status not in SETTLED and (row.get("rerun_resumed_at", job.resumed) or "") == job.resumed:
            return False
        self._journal.finish(job, "cancelled" if status == CANCELLED else "settled elsewhere")
        self._log("skipped", submission=job.submission, status=status)
        return True

    def fault(self, job: Job, why: str) -> None:
        """Record an internal fault; the second one returns the submission with a sentence."""
        incident = secrets.token_hex(4)
        job = self._journal.change(job, "failures")
        self._log("fault of ours", submission=job.submission, incident=incident, failure=job.failures, why=why)
        if job.failures < FAILURES:
            self._journal.release(job, PAUSE)
            return
        self._services.alert(f"submission {job.submission}: incident {incident}: {why}")
        self.settle(job, {"refused": _OUR_FAULT.format(incident), "ours": True})

    def settle(self, job: Job, report: JobReport) -> None:
        """Record a result and report it, so that an outage costs no second evaluation."""
        self.report(self._journal.change(job, state=SCORED, report=report))

    def report(self, job: Job) -> None:
        """Report the recorded result, unless the server already has it."""
        row = self._jobs.fetch_submission(job.submission)
        if self.is_over(job, row):
            return
        if row["challenge_phase"] != job.phase:
            # One of the two answers was wrong; a score goes to a phase that two answers name.
            self._journal.change(job, state=BEGUN, phase=row["challenge_phase"], report=None)
            raise JobBlockedError(
                f"it now belongs to phase {row['challenge_phase']}; before, it belonged to {job.phase}"
            )
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
        upload_report(self._services.settings.artifacts, job.submission, report, self._log)

    def _send_until_believed(self, job: Job, report: JobReport) -> ApiError | None:
        """Send a report; return the server's rejection if it persists."""
        for remaining in reversed(range(_REFUSALS)):
            try:
                self._send(job, report)
            except ApiError as error:
                if error.is_transient or error.status in _PASSING or error.body is None:
                    raise
                if not remaining:
                    return error
                if self._services.stop.wait_over(_REFUSAL_PAUSE):
                    raise
            else:
                return None
        return None

    def _report_refusal(self, job: Job, error: ApiError) -> None:
        """Fail a submission whose result the server rejected; the server would leave it running."""
        self._log("result refused", submission=job.submission, why=str(error))
        self._services.alert(f"submission {job.submission}: EvalAI rejected its result: {error}")
        text = _NOT_TAKEN.format(error)
        with_retries(lambda: self._jobs.fail(job.submission, job.phase, stderr=text), self._services.stop.wait)
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


class SubmissionScoring:
    """The scoring of submissions to the phases that this machine knows."""

    def __init__(
        self, services: WorkerServices, reporting: SubmissionReporting, phases: dict[str, ScoredPhase]
    ) -> None:
        self._services, self._reporting, self._scored_phases = services, reporting, phases
        self._journal, self._log = services.journal, services.log
        #: The server's phases by number, since a message's `phase_pk` is not the codename that scorers know.
        self._phases: dict[int, PhaseRow] = {}
        self._phases_at = -_PHASE_SECONDS
        self.files = _SubmissionFiles(services)

    def seconds_of(self, phase: int) -> float:
        return self._scored_phases[self._phase(phase)["codename"]]["seconds"]

    def problem_of(self, phase: int) -> str:
        """Return why this machine cannot score a phase; "" if it can."""
        try:
            codename = self._phase(phase)["codename"]
        except JobBlockedError as error:
            return str(error)
        names = ", ".join(self._scored_phases)
        return "" if codename in self._scored_phases else f"no phase {codename!r} in the bundle ({names})"

    def score(self, job: Job, row: SubmissionRow) -> None:
        name = f"{job.submission}-{self._journal.worker}"
        folder = os.path.join(self._services.settings.save_dir, DOWNLOADS, name)
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder, mode=0o700)
        try:
            self._score_in(folder, job, row)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _score_in(self, folder: str, job: Job, row: SubmissionRow) -> None:
        phase, settings = self._phase(job.phase), self._services.settings
        problem = self.problem_of(job.phase)
        if problem:
            raise JobBlockedError(problem)
        scored_phase = self._scored_phases[phase["codename"]]
        path = os.path.join(folder, "submission")
        if not self._has_file(job, row, path):
            return
        self._services.stop.check()  # asked to stop before scoring
        job = self._journal.change(job, "evaluations")
        request = ScoringRequest(
            submission=path,
            codename=phase["codename"],
            annotation=settings.annotation_path(scored_phase),
            metadata={**row, "status": RUNNING},
            memory=settings.memory_bytes,
            bundle=settings.bundle,
            script=scored_phase.get("script"),
            hidden=tuple(scored_phase.get("hidden", ())),
        )
        with self._time_stage("scoring"):
            limit = scored_phase["seconds"] + (0.0 if request.script else _MARGIN)
            outcome = run_scorer(request, folder, limit, self._journal.owners.lock, self._services.stop.is_over)
        if outcome.refused or outcome.is_late:
            self.files.confirm(row, path)
        self._settle(job, outcome, scored_phase, is_silent=bool(phase.get("disable_logs")))

    def _has_file(self, job: Job, row: SubmissionRow, path: str) -> bool:
        """Fetch a submission's file; return False if the job ends without one."""
        try:
            with self._time_stage("download"):
                self.files.fetch(row, path)
        except TooLargeError:
            limit = self._services.settings.max_submission_bytes
            self._reporting.settle(job, {"refused": _TOO_LARGE.format(limit)})
        except GoneError as error:
            if not error.lasting:
                raise JobBlockedError(str(error)) from None
            self._reporting.fault(job, str(error))
        else:
            if not _is_placeholder(path):
                return True
            self.files.confirm(row, path)
            self._reporting.settle(job, {"refused": _BROKEN_OFF})
        return False

    @contextmanager
    def _time_stage(self, stage: str) -> Iterator[None]:
        started = time.monotonic()
        try:
            yield
        finally:
            self._journal.add(f"seconds_{stage}", time.monotonic() - started)

    def _settle(self, job: Job, outcome: ScoringOutcome, phase: ScoredPhase, *, is_silent: bool) -> None:
        """Report the outcome of scoring, or release the job to another worker."""
        for line in outcome.log.strip().splitlines():
            self._log("scorer says", submission=job.submission, text=line)
        if outcome.is_handed_back:
            self._log("handed back", submission=job.submission)
            self._journal.release(job, 0)
            return
        stdout, stderr = ("", "") if is_silent else (outcome.stdout, outcome.stderr)
        report: JobReport = {"stdout": stdout, "stderr": stderr}
        if outcome.refused or outcome.is_late:
            self._reporting.settle(job, {"refused": outcome.refused or _TOO_LONG, **report})
            return
        try:
            if outcome.incident:
                raise ShapeError(outcome.incident)
            accuracies = check_accuracies(outcome.accuracies, phase["labels"])
        except ShapeError as error:
            self._reporting.fault(job, str(error))
            return
        self._reporting.settle(job, {"accuracies": accuracies, "metadata": outcome.metadata, **report})

    def _phase(self, number: int) -> PhaseRow:
        phase, moment = self._phases.get(number), time.monotonic()
        if (
            phase is None or phase["codename"] not in self._scored_phases
        ) and moment > self._phases_at + _PHASE_SECONDS:
            self._phases = {row["id"]: row for row in self._services.jobs.phases()}
            self._phases_at = moment
        if number not in self._phases:
            raise JobBlockedError(f"the challenge has no phase {number}")
        return self._phases[number]


class _SubmissionFiles:
    """The files of submissions, as the server names them."""

    def __init__(self, services: WorkerServices) -> None:
        self._services = services

    def fetch(self, row: SubmissionRow, path: str) -> None:
        limit = self._services.settings.max_submission_bytes
        stop = self._services.stop
        # The known row's address, then a new one at each call, since links expire.
        rows = itertools.chain([row], (self._services.jobs.fetch_submission(row["id"]) for _ in itertools.count()))
        download(lambda: self._address_of(next(rows)), path, limit, stop.wait, stop.check)

    def confirm(self, row: SubmissionRow, path: str) -> None:
        """Fetch a file again before reporting a mistake; raises JobBlockedError if it differs."""
        copy, current_row = f"{path}-again", self._services.jobs.fetch_submission(row["id"])
        for _ in range(_CONFIRMATIONS):
            self._services.stop.wait(_PAUSE)
            try:
                self.fetch(current_row, copy)
            except (GoneError, TooLargeError) as error:
                raise JobBlockedError(f"the scored file could not be fetched again: {error}") from None
            is_same = filecmp.cmp(path, copy, shallow=False)
            os.remove(copy)
            if not is_same:
                raise JobBlockedError("the scored file had changed when it was fetched again")

    def is_awaited(self, row: SubmissionRow) -> bool:
        """Return whether the file of a large upload is still missing."""
        if row.get("submission_input_file"):
            return False
        try:
            return fetch_head(self._address_of(row), len(PLACEHOLDER) + 1, self._services.stop.check) == PLACEHOLDER
        except WireError:
            return True  # unknown: the next sweep asks again

    def _address_of(self, row: SubmissionRow) -> str:
        address = row.get("submission_input_file") or row.get("input_file")
        if not isinstance(address, str):
            return ""
        return f"{self._services.settings.api_server}{address}" if address.startswith("/") else address


def _is_placeholder(path: str) -> bool:
    """Return whether a file is the server's placeholder of an incomplete upload."""
    with open(path, "rb") as file:
        return file.read(len(PLACEHOLDER) + 1) == PLACEHOLDER
