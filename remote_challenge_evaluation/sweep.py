"""What got lost: submissions that no message and no journal brings home any more."""

from __future__ import annotations

import datetime
from typing import Any

from segjudge.evalai.jobs import RUNNING, WAITING
from segjudge.evalai.result_shapes import SubmissionRow

from .journal import DONE
from .reporting import Tools
from .worker import Worker

#: A submission that waits longer than this, while the queue is empty, has lost its message.
WAITED = 15 * 60.0
#: A large upload sits there without its file while it is still being sent.
UPLOADING = 2 * 3600.0
#: After the phase's own limit; another machine may have begun late.
MARGIN = 10 * 60.0
#: One empty answer of the queue proves nothing.
EMPTY_ANSWERS = 3


class Sweep:
    """Looks now and then, one process of the machine at a time."""

    def __init__(self, tools: Tools, worker: Worker) -> None:
        self._tools, self._worker = tools, worker

    def look(self) -> int:
        """Take up what is lost; how many there were."""
        if not self._tools.journal.turn("sweep_at", self._tools.settings.sweep_seconds):
            return 0
        removed = self._tools.journal.owners.clean()
        if removed:
            self._tools.log("removed", what="what dead workers left", paths=", ".join(removed))
        rows = self._tools.jobs.all_submissions()
        waiting = [row for row in rows if row.get("status") in WAITING]
        self._tools.journal.set("waiting", len(waiting))
        oldest = max((self._age(_since(row)) for row in waiting), default=0.0)
        self._tools.journal.set("oldest_waiting_seconds", oldest)
        lost = [row for row in rows if self._is_lost(row)]
        for row in sorted(lost, key=lambda row: row["id"]):
            if self._tools.stop.is_set():
                break
            self._worker.take(row)
        return len(lost)

    def _is_lost(self, row: SubmissionRow) -> bool:
        known = self._tools.journal.known(row["id"], row.get("rerun_resumed_at") or "")
        if known and known != DONE:
            return False  # the journal brings it home
        if row.get("status") == RUNNING and known:
            return True  # the server said that it took our report, and did not
        if row.get("status") == RUNNING:
            limit = self._worker.seconds_of(row["challenge_phase"]) + MARGIN
            return self._age(row.get("started_at") or _since(row)) > limit
        if row.get("status") not in WAITING:
            return False
        empty = self._tools.journal.number("empty_answers") >= EMPTY_ANSWERS
        age = self._age(_since(row))
        if not empty or age <= WAITED:
            return False
        return age > UPLOADING or not self._worker.files.is_awaited(row)

    def _age(self, told: Any) -> float:
        """Seconds since a moment of the server's, by the server's clock."""
        try:
            moment = datetime.datetime.fromisoformat(str(told))
            if moment.tzinfo is None:
                moment = moment.replace(tzinfo=datetime.UTC)
            return max(0.0, self._tools.now() - moment.timestamp())
        except (ValueError, OverflowError):
            return 0.0


def _since(row: SubmissionRow) -> Any:
    return row.get("rerun_resumed_at") or row.get("submitted_at")
