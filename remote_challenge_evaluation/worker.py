"""One worker: take up what lies in the journal, then what is lost, then the queue; each job to its end.

The order of steps is the design: claim durably, say RUNNING, delete the
message, score, note the result, look, report.  Wherever a process dies, the
journal tells the next one where to go on.
"""

from __future__ import annotations

import os
import shutil
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from segjudge.evalai.client import ApiError
from segjudge.evalai.http_exchange import StoppedError, WireError
from segjudge.evalai.jobs import RUNNING, STATUSES, WAITING, QueueMessage
from segjudge.evalai.result_shapes import PhaseRow, ShapeError, SubmissionRow, accepted_accuracies

from .download import DiskError, GoneError, TooLargeError
from .evaluation import ScoringOutcome, run_scorer
from .journal import BEGUN, CLAIMED, SCORED, Job, JobGoneError
from .journal_file import JournalError
from .owners import DOWNLOADS
from .reporting import FAILURES, PAUSE, DelayError, RightsError, SubmissionReporting, Tools
from .scoring_messages import ScoredPhase, ScoringRequest
from .submission_files import SubmissionFiles, is_placeholder

#: Deaths of workers under one submission after which it is thought to cause them.
ATTEMPTS = 12
#: A submission is put off so often for what others do (a server without its file, a phase that is not there), with
#: growing pauses: hours in all.
DELAYS, _FIRST_DELAY, _LONGEST_DELAY = 60, 5.0, 300.0
_MARGIN = 60.0
#: Of a phase that this machine does not know.
_LONGEST = 6 * 3600.0
#: One 404 may be a mistake of somebody between us and the server.
_LOOKS, _LOOK_PAUSE = 3, 1.0

BROKEN = "Your upload broke off, so that its file never came. Send it again."
TOO_LARGE = "Your file is larger than the {:,} bytes that this challenge takes. Send a smaller one."


class Worker:
    """Answers one thing at a time."""

    def __init__(self, tools: Tools, phases: dict[str, ScoredPhase]) -> None:
        self._tools, self._local = tools, phases
        self._journal, self._jobs, self._log = tools.journal, tools.jobs, tools.log
        #: The server's phases by number; `phase_pk` is not the codename that scorers know.
        self._phases: dict[int, PhaseRow] = {}
        self._reporting = SubmissionReporting(tools)
        self._nonsense: deque[str] = deque(maxlen=100)
        self.files = SubmissionFiles(tools)

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
            return self._local[self._phase(phase)["codename"]]["seconds"]
        except (ApiError, DelayError, KeyError):
            return _LONGEST

    # ── a message ───────────────────────────────────────────────────────────

    def _meet(self, message: QueueMessage) -> None:
        """Find out what a message is about; each kind has its end."""
        if not message.submission:
            # Only what comes a second time was sent so; a single one may have been spoilt on its way.
            text = str(message.body)[:200]
            if text not in self._nonsense and not self._tools.once:
                self._nonsense.append(text)
                self._log("message left", why="it names no submission", body=text)
                return
            self._log("message dropped", why="it names no submission", body=text)
            self._forget(message)
            return
        row = self._looked_up(message)
        if row is None:
            self._forget(message)
            return
        if row["status"] not in STATUSES:
            # It comes back, and then the server may say something that we know.
            self._log("message left", submission=message.submission, status=row["status"])
            return
        job = self.claimed(row) if row["status"] in WAITING else None
        if job is None:
            # In hand, settled, or another machine's, whose journal or our sweep brings it home.
            self._log("message recognised", submission=message.submission, status=row.get("status"))
            self._forget(message)
            return
        with self._tools.queue.held(message):
            self._guarded(job, lambda: self._begin(job, row, message))
        self._tools.queue.delete_last(message)

    def _looked_up(self, message: QueueMessage) -> SubmissionRow | None:
        """The submission of a message; None where the server says again and again that it is none of ours."""
        for left in reversed(range(_LOOKS)):
            try:
                return self._jobs.submission(message.submission)
            except ApiError as error:
                ours = error.status != 404 and not (error.denied and self._reporting.may_work())
                if ours:
                    raise
                why = str(error)
            if left and self._tools.stop.wait(_LOOK_PAUSE):
                raise ApiError(0, "asked to stop")
        self._log("message dropped", submission=message.submission, why=f"it is no submission of ours: {why}")
        return None

    def _forget(self, message: QueueMessage) -> None:
        self._tools.queue.delete(message)
        self._tools.queue.delete_last(message)

    def claimed(self, row: SubmissionRow, *, again: bool = False) -> Job | None:
        """A submission made ours by the journal; again where its report was not carried out."""
        return self._journal.claim(row["id"], row.get("rerun_resumed_at") or "", row["challenge_phase"], again=again)

    def take(self, row: SubmissionRow) -> None:
        """One that the sweep found; a list may be old, so the server is asked once more."""
        row = self._jobs.submission(row["id"])
        job = self.claimed(row, again=True) if row["status"] in (RUNNING, *WAITING) else None
        if job is not None:
            self._log("taken up", submission=job.submission, status=row.get("status"))
            self._guarded(job, lambda: self._begin(job, row, None))

    def _carry(self, job: Job) -> None:
        """Go on with a job from where it stands."""
        self._log("goes on", submission=job.submission, state=job.state)
        if job.lives > ATTEMPTS and job.state != SCORED:
            why = f"{job.lives} workers died with it"
            self._guarded(job, lambda: self._reporting.give_up(job, why))
        elif job.state == SCORED:
            self._guarded(job, lambda: self._reporting.report(job))
        else:
            self._guarded(job, lambda: self._begin(job, self._jobs.submission(job.submission), None))

    def _guarded(self, job: Job, work: Callable[[], None]) -> None:
        """Whatever goes wrong with one job, it is let go for a later try, and the next one is met."""
        try:
            self._tried(job, work)
        except JobGoneError as error:
            self._log("left alone", submission=job.submission, why=str(error))
        finally:
            self._journal.drop(job)

    def _tried(self, job: Job, work: Callable[[], None]) -> None:
        try:
            work()
        except ApiError as error:
            self._refused(job, error)
        except StoppedError:
            self._let_go(job, "asked to stop", 0)
        except JournalError:
            raise  # nothing can be written down; the job is free as soon as the journal is
        except (OSError, DiskError, WireError) as error:
            self._let_go(job, str(error), PAUSE)
        except DelayError as error:
            self._put_off(job, str(error))
        except Exception as error:  # noqa: BLE001 - a defect of ours, or an answer that nobody thought of
            self._log("defect", submission=job.submission, why=traceback.format_exc())
            self._fault(job, f"{type(error).__name__}: {error}")

    def _fault(self, job: Job, why: str) -> None:
        try:
            self._reporting.fault(job, why)
        except ApiError as error:
            self._refused(job, error)

    def _refused(self, job: Job, error: ApiError) -> None:
        """The server did not do what a job needed."""
        if error.denied and not self._reporting.may_work():
            self._journal.release(job, PAUSE)
            raise RightsError(str(error)) from None
        if error.transient:
            self._let_go(job, str(error), error.wait or PAUSE)
        else:
            self._put_off(job, str(error))

    def _let_go(self, job: Job, why: str, wait: float) -> None:
        self._log("put off", submission=job.submission, why=why)
        self._journal.release(job, wait)

    def _put_off(self, job: Job, why: str) -> None:
        """Later, and later each time; at the end it is given up."""
        job = self._journal.change(job, delays_more=1)
        wait = min(_LONGEST_DELAY, _FIRST_DELAY * 2 ** min(job.delays - 1, 10))
        if job.delays == DELAYS and job.state != SCORED:
            self._fault(self._journal.change(job, failures=FAILURES), why)
        elif job.delays > 2 * DELAYS:
            self._tools.alert(f"submission {job.submission}: its result could not be reported and is given up: {why}")
            self._journal.done(job, "given up")
        else:
            self._let_go(job, why, wait)

    # ── from the claim to the result ────────────────────────────────────────

    def _begin(self, job: Job, row: SubmissionRow, message: QueueMessage | None) -> None:
        if self._reporting.over(job, row):
            if message:
                self._tools.queue.delete(message)
            return
        if job.state == CLAIMED or row.get("status") != RUNNING:
            self._jobs.begin(job.submission, self._tools.name)
            job = self._journal.change(job, state=BEGUN)
        if message:
            self._tools.queue.delete(message)
        if row["challenge_phase"] != job.phase:  # what was said once may have been wrong
            job = self._journal.change(job, phase=row["challenge_phase"])
        self._score(job, row)

    def _score(self, job: Job, row: SubmissionRow) -> None:
        folder = os.path.join(self._tools.settings.save_dir, DOWNLOADS, f"{job.submission}-{self._journal.worker}")
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder, mode=0o700)
        try:
            self._scored_in(folder, job, row)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _scored_in(self, folder: str, job: Job, row: SubmissionRow) -> None:
        phase = self._phase(job.phase)
        local = self._local.get(phase["codename"])
        if local is None:
            raise DelayError(f"no phase {phase['codename']!r} in phases.py ({', '.join(self._local)})")
        path = os.path.join(folder, "submission")
        if not self._fetched(job, row, path):
            return
        self._tools.stop.check()  # asked to stop before anything is scored
        job = self._journal.change(job, evaluations_more=1)
        request: ScoringRequest = {
            "submission": path,
            "codename": phase["codename"],
            "annotation": os.path.join(self._tools.settings.annotations, local["annotation"]),
            "submission_metadata": {**row, "status": RUNNING},
            "memory": self._tools.settings.memory_bytes,
        }
        with self._timed("scoring"):
            limit = local["seconds"] + _MARGIN
            outcome = run_scorer(request, folder, limit, self._journal.lock, self._watch)
        if outcome.refused:
            self.files.confirm(row, path)
        self._judge(job, outcome, local, silent=bool(phase.get("disable_logs")))

    def _watch(self) -> None:
        self._tools.beat()
        self._tools.stop.check_over()

    def _fetched(self, job: Job, row: SubmissionRow, path: str) -> bool:
        """Whether there is a file to score; where there is none, the job has been brought to an end."""
        try:
            with self._timed("download"):
                self.files.fetch(row, path)
        except TooLargeError:
            most = self._tools.settings.max_submission_bytes
            self._reporting.settle(job, {"refused": TOO_LARGE.format(most)})
        except GoneError as error:
            if not error.lasting:
                raise DelayError(str(error)) from None
            self._reporting.fault(job, str(error))
        else:
            if not is_placeholder(path):
                return True
            self.files.confirm(row, path)
            self._reporting.settle(job, {"refused": BROKEN})
        return False

    @contextmanager
    def _timed(self, stage: str) -> Iterator[None]:
        """Add to what monitoring reads."""
        started = time.monotonic()
        try:
            yield
        finally:
            self._journal.add(f"seconds_{stage}", time.monotonic() - started)

    def _judge(self, job: Job, outcome: ScoringOutcome, local: ScoredPhase, *, silent: bool) -> None:
        """From what the scorer said to what is reported; noted before it is sent."""
        for line in outcome.log.strip().splitlines():
            self._log("scorer says", submission=job.submission, line=line)
        if outcome.handed_back:
            self._log("handed back", submission=job.submission)
            self._journal.release(job, 0)
            return
        texts = {"stdout": "" if silent else outcome.stdout, "stderr": "" if silent else outcome.stderr}
        if outcome.refused:
            self._reporting.settle(job, {"refused": outcome.refused, **texts})
            return
        try:
            if outcome.incident:
                raise ShapeError(outcome.incident)
            accuracies = accepted_accuracies(outcome.accuracies, local["labels"])
        except ShapeError as error:
            self._reporting.fault(job, str(error))
            return
        self._reporting.settle(job, {"accuracies": accuracies, "submission_result": outcome.submission_result, **texts})

    def _phase(self, number: int) -> PhaseRow:
        if number not in self._phases:
            self._phases = {row["id"]: row for row in self._jobs.phases()}
        if number not in self._phases:
            raise DelayError(f"the challenge has no phase {number}")
        return self._phases[number]
