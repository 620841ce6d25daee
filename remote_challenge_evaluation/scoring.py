"""From a job that has begun to its result: fetch the file, score it, and judge what the scorer answers."""

from __future__ import annotations

import filecmp
import itertools
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager

from segjudge.platforms.evalai.client import WireError
from segjudge.platforms.evalai.rows import PLACEHOLDER, RUNNING, PhaseRow, ShapeError, SubmissionRow, check_accuracies

from .download import GoneError, TooLargeError, download, head
from .evaluation import ScoringOutcome, run_scorer
from .journal import Job, JobReport
from .owners import DOWNLOADS
from .reporting import SubmissionReporting
from .scoring_messages import ScoredPhase, ScoringRequest
from .services import JobBlockedError, WorkerServices
from .startup_check import annotation_path

#: Seconds that a scorer of ours, which ends itself in time, may take beyond its phase's limit.
_MARGIN = 60.0
#: Seconds after which the server is asked again for its phases, where one is looked for that this machine cannot score.
_PHASE_SECONDS = 10.0

#: A file that fails a submission is fetched so often again, after a pause in seconds.
_CONFIRMATIONS, _PAUSE = 2, 1.0

_BROKEN_OFF = "Your upload broke off, so that its file never came. Send it again."
_TOO_LARGE = "Your file is larger than the {:,} bytes that this challenge takes. Send a smaller one."


class SubmissionScoring:
    """Scores the submissions of the phases that this machine knows."""

    def __init__(
        self, services: WorkerServices, reporting: SubmissionReporting, phases: dict[str, ScoredPhase]
    ) -> None:
        self._services, self._reporting, self._scored_phases = services, reporting, phases
        self._journal, self._log = services.journal, services.log
        #: The server's phases by number, since a message's `phase_pk` is not the codename that scorers know.
        self._phases: dict[int, PhaseRow] = {}
        self._phases_at = -_PHASE_SECONDS
        self.files = SubmissionFiles(services)

    def seconds_of(self, phase: int) -> float:
        """Return how long a submission to a phase that this machine can score may take."""
        return self._scored_phases[self._phase(phase)["codename"]]["seconds"]

    def problem_of(self, phase: int) -> str:
        """Return why this machine cannot score submissions to a phase; nothing if it can."""
        try:
            codename = self._phase(phase)["codename"]
        except JobBlockedError as error:
            return str(error)
        known = ", ".join(self._scored_phases)
        return "" if codename in self._scored_phases else f"no phase {codename!r} in the bundle ({known})"

    def score(self, job: Job, row: SubmissionRow) -> None:
        """Score a submission in a folder of its own, and report the result."""
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
        self._services.stop.check()  # asked to stop before anything is scored
        job = self._journal.change(job, "evaluations")
        request: ScoringRequest = {
            "submission": path,
            "codename": phase["codename"],
            "annotation": annotation_path(settings, scored_phase),
            "submission_metadata": {**row, "status": RUNNING},
            "memory": settings.memory_bytes,
            "bundle": settings.bundle,
            "command": scored_phase.get("command", []),
            "hidden": scored_phase.get("hidden", []),
        }
        with self._timed("scoring"):
            limit = scored_phase["seconds"] + (0.0 if scored_phase.get("command") else _MARGIN)
            outcome = run_scorer(request, folder, limit, self._journal.owners.lock, self._services.stop.check_over)
        if outcome.refused:
            self.files.confirm(row, path)
        self._settle(job, outcome, scored_phase, is_silent=bool(phase.get("disable_logs")))

    def _has_file(self, job: Job, row: SubmissionRow, path: str) -> bool:
        """Fetch a submission's file; return False if the job is settled because there is none."""
        try:
            with self._timed("download"):
                self.files.fetch(row, path)
        except TooLargeError:
            limit = self._services.settings.max_submission_bytes
            self._reporting.settle(job, {"refused": _TOO_LARGE.format(limit)})
        except GoneError as error:
            if not error.lasting:
                raise JobBlockedError(str(error)) from None
            self._reporting.fault(job, str(error))
        else:
            if not is_placeholder(path):
                return True
            self.files.confirm(row, path)
            self._reporting.settle(job, {"refused": _BROKEN_OFF})
        return False

    @contextmanager
    def _timed(self, stage: str) -> Iterator[None]:
        """Add the time that a stage takes to what monitoring reads."""
        started = time.monotonic()
        try:
            yield
        finally:
            self._journal.add(f"seconds_{stage}", time.monotonic() - started)

    def _settle(self, job: Job, outcome: ScoringOutcome, phase: ScoredPhase, *, is_silent: bool) -> None:
        """Report what came of the scoring, or free the job for another worker."""
        for line in outcome.log.strip().splitlines():
            self._log("scorer says", submission=job.submission, text=line)
        if outcome.handed_back:
            self._log("handed back", submission=job.submission)
            self._journal.release(job, 0)
            return
        stdout, stderr = ("", "") if is_silent else (outcome.stdout, outcome.stderr)
        report: JobReport = {"stdout": stdout, "stderr": stderr}
        if outcome.refused:
            self._reporting.settle(job, {"refused": outcome.refused, **report})
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
        phase, now = self._phases.get(number), time.monotonic()
        if (phase is None or phase["codename"] not in self._scored_phases) and now > self._phases_at + _PHASE_SECONDS:
            self._phases = {row["id"]: row for row in self._services.jobs.phases()}
            self._phases_at = now
        if number not in self._phases:
            raise JobBlockedError(f"the challenge has no phase {number}")
        return self._phases[number]


class SubmissionFiles:
    """The files of submissions, as the server's rows name them."""

    def __init__(self, services: WorkerServices) -> None:
        self._services = services

    def fetch(self, row: SubmissionRow, path: str) -> None:
        """Write the file; raise what `download` raises."""
        limit = self._services.settings.max_submission_bytes
        stop = self._services.stop
        # The known row's address, then a new one at each call, since links expire.
        rows = itertools.chain([row], (self._services.jobs.submission(row["id"]) for _ in itertools.count()))
        download(lambda: self._address_of(next(rows)), path, limit, stop.wait, stop.check)

    def confirm(self, row: SubmissionRow, path: str) -> None:
        """Fetch a file again before its team hears of a mistake; raise JobBlockedError if it is not the same."""
        copy, current_row = f"{path}-again", self._services.jobs.submission(row["id"])
        for _ in range(_CONFIRMATIONS):
            self._services.stop.wait(_PAUSE)
            try:
                self.fetch(current_row, copy)
            except (GoneError, TooLargeError) as error:
                raise JobBlockedError(f"the file that was scored did not come a second time: {error}") from None
            is_same = filecmp.cmp(path, copy, shallow=False)
            os.remove(copy)
            if not is_same:
                raise JobBlockedError("the file that was scored was different when it was fetched again")

    def is_awaited(self, row: SubmissionRow) -> bool:
        """Return whether the file of a large upload is not there yet."""
        if row.get("submission_input_file"):
            return False
        try:
            return head(self._address_of(row), len(PLACEHOLDER) + 1, self._services.stop.check) == PLACEHOLDER
        except WireError:
            return True  # not known: it is asked again at the next sweep

    def _address_of(self, row: SubmissionRow) -> str:
        address = row.get("submission_input_file") or row.get("input_file")
        if not isinstance(address, str):
            return ""
        return f"{self._services.settings.api_server}{address}" if address.startswith("/") else address


def is_placeholder(path: str) -> bool:
    """Return whether a file is what the server keeps in the place of an incomplete upload."""
    with open(path, "rb") as file:
        return file.read(len(PLACEHOLDER) + 1) == PLACEHOLDER
