"""The search for lost submissions: those that neither a message nor a journal brings to their end."""

from __future__ import annotations

import datetime

from segjudge.platforms.evalai.rows import RUNNING, WAITING, SubmissionRow

from .journal import DONE
from .services import WorkerServices
from .worker import Worker

#: Seconds after which a submission that waits, while the queue is empty, has lost its message.
_WAITED = 15 * 60.0
#: Seconds for which a large upload waits without its file while it is still being sent.
_UPLOADING = 2 * 3600.0
#: Seconds after the phase's own limit; another machine may have begun late.
_MARGIN = 10 * 60.0
#: A queue is empty if it answers so as often.
_EMPTY_ANSWERS = 3


class Sweep:
    """Searches now and then, in one process of the machine at a time."""

    def __init__(self, services: WorkerServices, worker: Worker) -> None:
        self._services, self._worker = services, worker
        self._journal = services.journal

    def run_if_due(self) -> None:
        """Take up what is lost."""
        if not self._journal.take_turn("sweep_at", self._services.settings.sweep_seconds):
            return
        removed = self._journal.owners.remove_abandoned()
        if removed:
            self._services.log("removed", text="what dead workers left", paths=", ".join(removed))
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
            return False  # the journal brings it to its end
        if row["status"] == RUNNING and state:
            return True  # the server said that it took our report, and did not
        if row["status"] == RUNNING:
            limit = scoring.seconds_of(row["challenge_phase"]) + _MARGIN
            return self._age(row.get("started_at") or _waiting_since(row)) > limit
        is_empty = self._journal.number("empty_answers") >= _EMPTY_ANSWERS
        age = self._age(_waiting_since(row))
        if not is_empty or age <= _WAITED:
            return False
        return age > _UPLOADING or not scoring.files.is_awaited(row)

    def _age(self, time: str | None) -> float:
        """Return the seconds since a time of the server's, by the server's clock."""
        try:
            moment = datetime.datetime.fromisoformat(str(time))
            if moment.tzinfo is None:
                moment = moment.replace(tzinfo=datetime.UTC)
            return max(0.0, self._services.now() - moment.timestamp())
        except (ValueError, OverflowError):
            return 0.0


def _waiting_since(row: SubmissionRow) -> str | None:
    return row.get("rerun_resumed_at") or row.get("submitted_at")
