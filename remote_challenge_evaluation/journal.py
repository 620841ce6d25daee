"""The worker's memory: one SQLite file on each machine, shared by its processes.

A job is a submission together with the time of its last resumption, so that a
resumed submission is new work.  `owners.py` tells which of its owners are alive.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TypedDict, cast

from segjudge.platforms.evalai.rows import SplitAccuracies

from .journal_file import JournalFile
from .owners import Owners

#: The states of a job, in this order.
CLAIMED, BEGUN, SCORED, DONE = "claimed", "begun", "scored", "done"
#: Seconds for which a request counts.
_WINDOW = 60.0
#: The share of the requests that polling may use, so that reports never wait for them.
_POLLING_SHARE = 0.6
#: The most attempts at a job whose report the server took and did not carry out.
_REPEATED_ATTEMPTS = 5
#: A clock that was set back by more seconds than this is noticed.
_CLOCK_SECONDS = 5.0
_THIS_JOB = "submission = ? AND resumed = ?"


class JobReport(TypedDict, total=False):
    """What is reported of a submission: accuracies, or why it was refused."""

    accuracies: list[SplitAccuracies]
    #: What `evaluate()` left beside them.
    metadata: object
    refused: str
    #: Whether it was refused for a fault of ours.
    ours: bool
    stdout: str
    stderr: str


class JobGoneError(Exception):
    """Raised when a job's row is not there any more: the journal was replaced under the worker."""


@dataclass(frozen=True)
class Job:
    """A submission in progress."""

    submission: int
    resumed: str
    phase: int
    state: str
    failures: int
    #: How many workers died with it.
    attempts: int
    #: How often it was put off for reasons outside this machine.
    delays: int
    report: JobReport | None


class Journal:
    """One process's connection to the machine's journal."""

    def __init__(
        self, folder: str, watch: Callable[[], None] = lambda: None, say: Callable[[str], None] = lambda _text: None
    ) -> None:
        self.file = JournalFile(folder, watch, say)
        self._read, self._write = self.file.read, self.file.write
        self.owners = Owners(folder)
        self.worker = self.owners.name
        #: The jobs that this process works on; a job that it had to leave is free again.
        self._in_hand: set[tuple[int, str]] = set()

    def close(self) -> None:
        """Close the journal and give up this worker's lock."""
        self.file.close()
        self.owners.close()

    # ── jobs ────────────────────────────────────────────────────────────────

    def claim(self, submission: int, resumed: str, phase: int, *, again: bool = False) -> Job | None:
        """Take a submission durably; return None if a worker here has it in hand, or had it done and not `again`."""
        with self._write() as db:
            row = _row(db, submission, resumed)
            if row and (self._is_held(row) or (row["state"] == DONE and not (again and _may_repeat(row)))):
                return None
            db.execute(
                "INSERT INTO jobs (submission, resumed, phase, state, owner, changed_at) VALUES (?, ?, ?, ?, ?, ?) "
                "ON CONFLICT DO UPDATE SET owner = excluded.owner, lives = lives + 1, "
                "changed_at = excluded.changed_at, outcome = NULL, "
                "state = CASE state WHEN ? THEN ? ELSE state END",
                (submission, resumed, phase, CLAIMED, self.worker, time.time(), DONE, BEGUN),
            )
        return self._taken(submission, resumed)

    def _taken(self, submission: int, resumed: str) -> Job:
        self._in_hand.add((submission, resumed))
        return self.job(submission, resumed)

    def state_of(self, submission: int, resumed: str) -> str:
        """Return the state of a job; nothing if this machine never had it."""
        with self._read() as db:
            row = _row(db, submission, resumed)
        return row["state"] if row else ""

    def job(self, submission: int, resumed: str) -> Job:
        """Return a job that is there; raise JobGoneError if it is not."""
        with self._read() as db:
            row = _row(db, submission, resumed)
        if row is None:
            raise JobGoneError(f"submission {submission} is no longer in the journal")
        report = _report_of(row["report"])
        # A result that cannot be read any more is made again.
        state = BEGUN if row["state"] == SCORED and report is None else row["state"]
        return Job(submission, resumed, row["phase"], state, row["failures"], row["lives"], row["delays"], report)

    def take_due(self) -> Job | None:
        """Take a job that is not done and that no living worker has in hand; return None if there is none."""
        # A job that was put off by a clock that has been set back since is due too.
        now = time.time()
        due, values = "state != ? AND (next_at <= ? OR changed_at > ?)", (DONE, now, now + _CLOCK_SECONDS)
        with self._read() as db:
            if not db.execute(f"SELECT 1 FROM jobs WHERE {due}", values).fetchone():  # noqa: S608 - our words
                return None  # without taking the lock: mostly there is none
        with self._write() as db:
            rows = db.execute(
                f"SELECT * FROM jobs WHERE {due} ORDER BY state = ? DESC, changed_at LIMIT 50",  # noqa: S608
                (*values, SCORED),
            ).fetchall()
            free = next((row for row in rows if not self._is_held(row)), None)
            if free is None:
                return None
            query = (
                "UPDATE jobs SET owner = ?, lives = lives + (owner IS NOT NULL AND owner != ?), changed_at = ? WHERE "
            )
            db.execute(query + _THIS_JOB, (self.worker, self.worker, now, free["submission"], free["resumed"]))
        return self._taken(free["submission"], free["resumed"])

    def seconds_until_due(self) -> float | None:
        """Return the seconds until the next job that no worker has in hand is due; None if there is none."""
        with self._read() as db:
            rows = db.execute("SELECT * FROM jobs WHERE state != ?", (DONE,)).fetchall()
        left = [row["next_at"] - time.time() for row in rows if not self._is_held(row)]
        return max(0.0, min(left)) if left else None

    def change(self, job: Job, *counted: str, **values: object) -> Job:
        """Count columns of a job up by one, set values of others, and return the job as it is now."""
        columns = [*(f"{name} = {name} + 1" for name in counted), *(f"{name} = ?" for name in values), "changed_at = ?"]
        stored = [json.dumps(value) if name == "report" else value for name, value in values.items()]
        with self._write() as db:
            db.execute(
                f"UPDATE jobs SET {', '.join(columns)} WHERE {_THIS_JOB}",  # noqa: S608 - our names
                (*stored, time.time(), job.submission, job.resumed),
            )
        return self.job(job.submission, job.resumed)

    def finish(self, job: Job, outcome: str) -> None:
        """Record that a job is done; its report is no longer needed."""
        self.change(job, state=DONE, outcome=outcome, owner=None, report=None)

    def release(self, job: Job, wait: float) -> None:
        """Let any worker take a job again, after so many seconds."""
        self.change(job, owner=None, next_at=time.time() + wait)

    def drop(self, job: Job) -> None:
        """Note in memory that this process works on a job no more, whether or not that could be written down."""
        self._in_hand.discard((job.submission, job.resumed))

    def _is_held(self, row: sqlite3.Row) -> bool:
        """Return whether a living worker works on a job."""
        if row["owner"] == self.worker:
            return (row["submission"], row["resumed"]) in self._in_hand
        return row["owner"] is not None and self.owners.is_alive(row["owner"])

    # ── the limit of requests, and numbers that workers share ───────────────

    def take_request(self, limit: int, *, urgent: bool) -> float:
        """Take one of the machine's requests of this minute; return the seconds to wait if none is left."""
        now, allowed = time.time(), limit if urgent else max(1, int(limit * _POLLING_SHARE))
        with self._write() as db:
            # Requests of the future are of a clock that has been set back since.
            db.execute("DELETE FROM requests WHERE at <= ? OR at > ?", (now - _WINDOW, now + _CLOCK_SECONDS))
            count, oldest = db.execute("SELECT count(*), min(at) FROM requests").fetchone()
            if count >= allowed:
                return max(0.1, float(oldest) + _WINDOW - now)
            db.execute("INSERT INTO requests VALUES (?)", (now,))
            _add(db, "requests", 1)
        return 0.0

    def take_turn(self, key: str, seconds: float) -> bool:
        """Return whether something that one process of the machine does every so many seconds is due, and take it."""
        now = time.time()
        if now < self.number(key) <= now + seconds + _CLOCK_SECONDS:
            return False  # without taking the lock
        with self._write() as db:
            if now < _number(db, key) <= now + seconds + _CLOCK_SECONDS:
                return False
            db.execute("INSERT OR REPLACE INTO numbers VALUES (?, ?)", (key, now + seconds))
        return True

    def number(self, key: str) -> float:
        """Return a number that the machine's workers share; 0 if it was never set."""
        with self._read() as db:
            return _number(db, key)

    def set(self, key: str, value: float) -> None:
        """Set a shared number."""
        with self._write() as db:
            db.execute("INSERT OR REPLACE INTO numbers VALUES (?, ?)", (key, value))

    def add(self, key: str, value: float = 1.0) -> None:
        """Add to a shared number."""
        with self._write() as db:
            _add(db, key, value)

    def numbers(self) -> dict[str, float]:
        """Return all shared numbers."""
        with self._read() as db:
            return {row["key"]: row["value"] for row in db.execute("SELECT * FROM numbers ORDER BY key")}

    def progress(self) -> int:
        """Return a number that rises when a job is taken up, evaluated for the first times, or done."""
        query = "SELECT count(*) + coalesce(sum(min(evaluations, 2) + (state = ?)), 0) AS n FROM jobs"
        with self._read() as db:
            return int(db.execute(query, (DONE,)).fetchone()["n"])

    def counts(self) -> dict[str, int]:
        """Return how many jobs have each outcome, or each state while they have none."""
        query = "SELECT coalesce(outcome, state) AS what, count(*) AS n FROM jobs GROUP BY what"
        with self._read() as db:
            return {row["what"]: row["n"] for row in db.execute(query)}


def _row(db: sqlite3.Connection, submission: int, resumed: str) -> sqlite3.Row | None:
    query = f"SELECT * FROM jobs WHERE {_THIS_JOB}"  # noqa: S608 - our words
    return cast("sqlite3.Row | None", db.execute(query, (submission, resumed)).fetchone())


def _number(db: sqlite3.Connection, key: str) -> float:
    row = db.execute("SELECT value FROM numbers WHERE key = ?", (key,)).fetchone()
    return float(row["value"]) if row else 0.0


def _add(db: sqlite3.Connection, key: str, value: float) -> None:
    query = "INSERT INTO numbers VALUES (?, ?) ON CONFLICT DO UPDATE SET value = value + excluded.value"
    db.execute(query, (key, value))


def _may_repeat(row: sqlite3.Row) -> bool:
    """Return whether a job that is done may be done again; one whose result no server took may not."""
    return bool(row["outcome"] != "given up" and row["lives"] < _REPEATED_ATTEMPTS)


def _report_of(text: str | None) -> JobReport | None:
    with suppress(ValueError, TypeError, RecursionError):
        report = json.loads(text or "null")
        return cast("JobReport", report) if isinstance(report, dict) else None
    return None
