"""The worker: it completes jobs from the journal, then from the queue.

The order of steps matters: claim durably, report RUNNING, delete the message, score, record the result, ask the server
again, report. If a process dies, the journal tells the next one where to continue. The sweep finds work that neither a
message nor the journal completes.
"""

from __future__ import annotations

import datetime
import time
import traceback
from collections import deque
from collections.abc import Callable

from segjudge.platforms.evalai.client import ApiError, QueueMessage
from segjudge.platforms.evalai.rows import RUNNING, STATUSES, WAITING, SubmissionRow
from segjudge.system.download import DiskError
from segjudge.system.network import StoppedError, WireError
from segjudge.system.python310 import read_moment

from .journal import BEGUN, CLAIMED, DONE, SCORED, Job, JobGoneError, JournalError
from .scoring import FAILURES, PAUSE, SubmissionReporting, SubmissionScoring
from .services import JobBlockedError, TokenRefusedError, WorkerServices
from .settings import ScoredPhase

#: The number of workers that died while scoring a submission, after which it counts as the cause.
_ATTEMPTS = 12
#: The maximum number of delays of a submission for reasons outside this machine (a server without its file, an unknown
#: phase), with growing pauses in seconds, some hours in total.
_DELAYS, _FIRST_DELAY, _LONGEST_DELAY = 60, 5.0, 300.0
#: The number of answers after which a submission is not ours, since one 404 may come from a proxy.
_LOOKUPS, _LOOKUP_PAUSE = 3, 1.0
#: The number of checks of another worker's submission, and the seconds until it is checked again.
_LOOKS, _LOOK_SECONDS = 3, 600.0
#: The number of such submissions to remember.
_MOST_REMEMBERED = 10_000


class Worker:
    """A worker that handles one submission at a time."""

    def __init__(self, services: WorkerServices, phases: dict[str, ScoredPhase]) -> None:
        self._services = services
        self._journal, self._jobs, self._log = services.journal, services.jobs, services.log
        self._reporting = SubmissionReporting(services)
        self.scoring = SubmissionScoring(services, self._reporting, phases)
        #: Messages without a submission that were left in the queue once.
        self._left_messages: deque[str] = deque(maxlen=100)
        #: Other workers' submissions: the number of checks, and the last time.
        self._others: dict[int, tuple[int, float]] = {}
        #: The number of repeated messages of such submissions in a row.
        self._repetitions = 0
        #: The phases that this machine lacks, about which the operator was told.
        self._lacking: set[int] = set()

    def take_turn(self) -> bool:
        """Process one job from journal, queue or sweep; return whether there was one."""
        job = self._journal.take_due()
        if job is not None:
            self._continue(job)
            return True
        queue = self._services.queue
        if self._services.stop.is_set() or not queue.is_due():
            return False
        message = queue.receive()
        is_repetition = message is not None and message.submission in self._others
        # Our work may follow messages left to others; once all of those have returned, there is none.
        self._repetitions = self._repetitions + 1 if is_repetition else 0
        if message is None or self._repetitions > len(self._others):
            self._repetitions = 0
            self._journal.add("empty_answers")
            return False
        queue.expect_more()
        if is_repetition:
            if not self._services.once:
                self._handle(message)
            return True
        self._journal.set("empty_answers", 0)
        if message.submission:
            self._handle(message)
        else:
            self._drop_or_leave(message)
        return True

    # ── a message ───────────────────────────────────────────────────────────

    def _drop_or_leave(self, message: QueueMessage) -> None:
        """Drop a repeated message without a submission; the first may be damaged in transit."""
        text, why = str(message.body)[:200], "it names no submission"
        if text not in self._left_messages and not self._services.once:
            self._left_messages.append(text)
            self._log("message left", why=why, body=text)
            return
        self._log("message dropped", why=why, body=text)
        self._acknowledge(message)

    def _handle(self, message: QueueMessage) -> None:
        """Process the submission of a message, if it is this worker's and waiting."""
        looks, looked_at = self._others.get(message.submission, (0, 0.0))
        if looks >= _LOOKS and time.monotonic() < looked_at + _LOOK_SECONDS:
            return
        row = self._look_up(message)
        if row is None:
            self._others.pop(message.submission, None)
            self._acknowledge(message)
            return
        if row["status"] in (*WAITING, RUNNING) and self._is_of_others(row, looks):
            return
        self._others.pop(message.submission, None)
        if row["status"] not in STATUSES:
            # The message returns, and then the server may answer with a status that we know.
            self._log("message left", submission=message.submission, status=row["status"])
            return
        job = self._claim(row) if row["status"] in WAITING else None
        if job is None:
            # In hand, settled, or another machine's, to be finished by its journal or our sweep.
            self._log("message recognised", submission=message.submission, status=row["status"])
            self._acknowledge(message)
            return
        with self._services.queue.keep_hidden(message):
            self._guard(job, lambda: self._begin(job, row, message))
        self._services.queue.acknowledge_end(message)

    def _is_of_others(self, row: SubmissionRow, looks: int) -> bool:
        """Return whether this machine cannot score a message's submission; then leave the message to others."""
        phase = row["challenge_phase"]
        problem = self.scoring.problem_of(phase)
        if not problem:
            return False
        if len(self._others) >= _MOST_REMEMBERED:
            self._others.clear()
        self._others[row["id"]] = looks + 1, time.monotonic()
        self._log("message left", submission=row["id"], why=problem)
        if phase not in self._lacking and (looks or self._services.once):  # a single answer may have been wrong
            self._lacking.add(phase)
            remedy = "its submissions wait for a worker that knows it. Update the bundle and restart the worker"
            self._services.alert(f"phase {phase} appeared after the start of this worker: {problem}; {remedy}")
        return True

    def _look_up(self, message: QueueMessage) -> SubmissionRow | None:
        """Return the submission of a message; None if the server repeatedly denies it."""
        for remaining in reversed(range(_LOOKUPS)):
            try:
                return self._jobs.fetch_submission(message.submission)
            except ApiError as error:
                if error.status != 404 and not (error.denied and self._jobs.accepts_token()):
                    raise
                why = str(error)
            if remaining and self._services.stop.wait(_LOOKUP_PAUSE):
                raise ApiError(0, "asked to stop")
        why = f"it is not a submission of this challenge: {why}"
        self._log("message dropped", submission=message.submission, why=why)
        return None

    def _acknowledge(self, message: QueueMessage) -> None:
        self._services.queue.acknowledge_claim(message)
        self._services.queue.acknowledge_end(message)

    def _claim(self, row: SubmissionRow, *, again: bool = False) -> Job | None:
        resumed = row.get("rerun_resumed_at") or ""
        return self._journal.claim(row["id"], resumed, row["challenge_phase"], again=again)

    # ── a job ───────────────────────────────────────────────────────────────

    def take_lost(self, row: SubmissionRow) -> None:
        """Process a submission found by the sweep, after asking the server again."""
        row = self._jobs.fetch_submission(row["id"])
        if row["status"] not in (RUNNING, *WAITING) or self.scoring.problem_of(row["challenge_phase"]):
            return
        job = self._claim(row, again=True)
        if job is not None:
            self._log("recovered", submission=job.submission, status=row["status"])
            self._guard(job, lambda: self._begin(job, row, None))

    def _continue(self, job: Job) -> None:
        self._log("continues", submission=job.submission, state=job.state)
        if job.attempts > _ATTEMPTS and job.state != SCORED:
            why = f"{job.attempts} workers died while scoring it"
            self._guard(job, lambda: self._give_up(job, why))
        elif job.state == SCORED:
            self._guard(job, lambda: self._reporting.report(job))
        else:
            self._guard(job, lambda: self._begin(job, self._jobs.fetch_submission(job.submission), None))

    def _begin(self, job: Job, row: SubmissionRow, message: QueueMessage | None) -> None:
        is_over = self._reporting.is_over(job, row)
        if not is_over and (job.state == CLAIMED or row["status"] != RUNNING):
            self._jobs.begin(job.submission, f"segjudge-{self._journal.worker}")
            job = self._journal.change(job, state=BEGUN)
        if message:
            self._services.queue.acknowledge_claim(message)
        if is_over:
            return
        if row["challenge_phase"] != job.phase:  # one of the two answers was wrong
            job = self._journal.change(job, phase=row["challenge_phase"])
        self.scoring.score(job, row)

    # ── failures ────────────────────────────────────────────────────────────

    def _guard(self, job: Job, work: Callable[[], None]) -> None:
        """Process a job; on any failure the job becomes free for a later attempt."""
        try:
            self._attempt(job, work)
        except JobGoneError as error:
            self._log("skipped", submission=job.submission, why=str(error))
        finally:
            self._journal.drop(job)

    def _attempt(self, job: Job, work: Callable[[], None]) -> None:
        try:
            work()
        except ApiError as error:
            self._on_api_error(job, error)
        except StoppedError:
            self._release(job, "asked to stop", 0)
        except (JournalError, JobGoneError):
            raise  # the journal cannot be written; the job is free as soon as it can
        except (OSError, DiskError, WireError) as error:
            self._release(job, str(error), PAUSE)
        except JobBlockedError as error:
            self._delay(job, str(error))
        except Exception as error:  # noqa: BLE001 - a defect of ours, or an answer that nobody thought of
            self._log("defect", submission=job.submission, why=traceback.format_exc())
            self._fault(job, f"{type(error).__name__}: {error}")

    def _fault(self, job: Job, why: str) -> None:
        try:
            self._reporting.fault(job, why)
        except ApiError as error:
            self._on_api_error(job, error)

    def _give_up(self, job: Job, why: str) -> None:
        self._fault(self._journal.change(job, failures=FAILURES), why)

    def _on_api_error(self, job: Job, error: ApiError) -> None:
        if error.denied and not self._jobs.accepts_token():
            self._journal.release(job, PAUSE)
            raise TokenRefusedError(str(error)) from None
        if error.is_transient:
            self._release(job, str(error), error.wait or PAUSE)
        else:
            self._delay(job, str(error))

    def _release(self, job: Job, why: str, wait: float) -> None:
        self._log("postponed", submission=job.submission, why=why)
        self._journal.release(job, wait)

    def _delay(self, job: Job, why: str) -> None:
        """Postpone a job, longer each time, and finally give up."""
        job = self._journal.change(job, "delays")
        if job.delays == _DELAYS and job.state != SCORED:
            self._give_up(job, why)
        elif job.delays > 2 * _DELAYS:
            given_up = "the worker gave up reporting its result"
            self._services.alert(f"submission {job.submission}: {given_up}: {why}")
            self._journal.finish(job, "given up")
        else:
            self._release(job, why, min(_LONGEST_DELAY, _FIRST_DELAY * 2 ** (job.delays - 1)))


#: Seconds after which a waiting submission counts as lost if the queue is empty.
_WAITED = 15 * 60.0
#: Seconds that a large upload may take before its file must exist.
_UPLOADING = 2 * 3600.0
#: Seconds beyond the phase's limit, since another machine may have started late.
_MARGIN = 10 * 60.0
#: The number of empty answers after which a queue counts as empty.
_EMPTY_ANSWERS = 3


class Sweep:
    """The periodic search for lost submissions, in one process of the machine at a time."""

    def __init__(self, services: WorkerServices, worker: Worker) -> None:
        self._services, self._worker = services, worker
        self._journal = services.journal

    def run_if_due(self) -> None:
        if not self._journal.take_turn("sweep_at", self._services.settings.sweep_seconds):
            return
        removed = self._journal.owners.remove_abandoned()
        if removed:
            self._services.log("removed", text="files of dead workers", paths=", ".join(removed))
        rows = self._services.jobs.all_submissions()
        waiting = [row for row in rows if row["status"] in WAITING]
        self._journal.set("waiting", len(waiting))
        oldest = max((self._age(_waiting_since(row)) for row in waiting), default=0.0)
        self._journal.set("oldest_waiting_seconds", oldest)
        lost = [row for row in rows if self._is_lost(row)]
        for row in sorted(lost, key=lambda row: row["id"]):
            if self._services.stop.is_set():
                break
            self._worker.take_lost(row)

    def _is_lost(self, row: SubmissionRow) -> bool:
        scoring = self._worker.scoring
        if row["status"] not in (RUNNING, *WAITING) or scoring.problem_of(row["challenge_phase"]):
            return False
        state = self._journal.state_of(row["id"], row.get("rerun_resumed_at") or "")
        if state and state != DONE:
            return False  # the journal completes it
        if row["status"] == RUNNING and state:
            return True  # the server confirmed our report but did not store it
        if row["status"] == RUNNING:
            limit = scoring.seconds_of(row["challenge_phase"]) + _MARGIN
            return self._age(row.get("started_at") or _waiting_since(row)) > limit
        is_empty = self._journal.number("empty_answers") >= _EMPTY_ANSWERS
        age = self._age(_waiting_since(row))
        if not is_empty or age <= _WAITED:
            return False
        return age > _UPLOADING or not scoring.files.is_awaited(row)

    def _age(self, time: str | None) -> float:
        try:
            moment = read_moment(str(time))
            if moment.tzinfo is None:
                moment = moment.replace(tzinfo=datetime.timezone.utc)
            return max(0.0, self._services.server_time() - moment.timestamp())
        except (ValueError, OverflowError):
            return 0.0


def _waiting_since(row: SubmissionRow) -> str | None:
    return row.get("rerun_resumed_at") or row.get("submitted_at")
