"""The worker's memory: one SQLite file on each machine, shared by its processes.

A job is a submission together with the time of its last resumption, so a
resumed one is new work.  Who owns a job is told by `owners.py`.
"""

from __future__ import annotations

import json
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from .journal_file import NAME, BusyError, explained, opened
from .owners import Owners

#: What a job has behind it, in this order.
CLAIMED, BEGUN, SCORED, DONE = "claimed", "begun", "scored", "done"
_WINDOW = 60.0
#: The share of the budget that polling may use, so that reports never wait for it.
_POLLING = 0.6
#: Another process has the journal locked for milliseconds; another program perhaps for longer.
_BUSY_SECONDS, _BUSY_LOOK = 60.0, 0.2
#: A job whose report the server took and did not carry out is made so often again.
_AGAIN = 5
#: A clock that was set back by more than this is noticed.
_CLOCK = 5.0


@dataclass(frozen=True)
class Job:
    """One submission in hand."""

    submission: int
    resumed: str
    phase: int
    state: str
    failures: int
    lives: int
    #: How often it was put off for what others did.
    delays: int
    report: dict[str, Any] | None


class Journal:
    """One process's hold on the machine's journal."""

    def __init__(
        self, folder: str, watch: Callable[[], None] = lambda: None, say: Callable[[str], None] = lambda _text: None
    ) -> None:
        self._folder, self._watch, self._say = folder, watch, say
        self.owners = Owners(folder)
        self.worker = self.owners.name
        #: The jobs that this process works on; one that it had to leave is free again.
        self._hands: set[tuple[int, str]] = set()
        self._turn = threading.RLock()
        try:
            self._db = opened(folder, say)
        except BaseException:
            self.owners.close()
            raise
        self._file = self._number()

    @property
    def lock(self) -> int:
        """The lock's descriptor, for those who work for us."""
        return self.owners.lock

    def close(self) -> None:
        """Let go of everything."""
        self._db.close()
        self.owners.close()

    def reopen(self) -> None:
        """Open the file anew: it is damaged, or another took its place."""
        with self._turn:
            self._db.close()
            self._db = opened(self._folder, self._say)
            self._file = self._number()

    def keep_up(self) -> None:
        """Follow when the file was replaced under us: set aside by another worker, or restored by a person."""
        if self._number() != self._file:
            self._say(f"{os.path.join(self._folder, NAME)} was replaced; the new one is used")
            self.reopen()

    def _number(self) -> int:
        with suppress(OSError):
            return os.stat(os.path.join(self._folder, NAME)).st_ino
        return 0

    @contextmanager
    def _read(self) -> Iterator[sqlite3.Connection]:
        with self._turn, explained(self._folder):
            yield self._db

    @contextmanager
    def _write(self) -> Iterator[sqlite3.Connection]:
        with self._turn:
            self._begin()
            with explained(self._folder):
                try:
                    yield self._db
                    self._db.execute("COMMIT")
                except BaseException:
                    with suppress(sqlite3.Error):
                        self._db.execute("ROLLBACK")
                    raise

    def _begin(self) -> None:
        """Take SQLite's lock; the watch is asked meanwhile."""
        until = time.monotonic() + _BUSY_SECONDS
        while True:
            try:
                with explained(self._folder):
                    self._db.execute("BEGIN IMMEDIATE")
            except BusyError:
                self._watch()
                if time.monotonic() > until:
                    raise
                time.sleep(_BUSY_LOOK)
            else:
                return

    # ── jobs ────────────────────────────────────────────────────────────────

    def claim(self, submission: int, resumed: str, phase: int, *, again: bool = False) -> Job | None:
        """Take a submission durably; None when somebody here has it in hand, or had it done and not `again`."""
        with self._write() as db:
            row = db.execute(
                "SELECT * FROM jobs WHERE submission = ? AND resumed = ?", (submission, resumed)
            ).fetchone()
            if row is not None and (self._held(row) or (row["state"] == DONE and not (again and _may_again(row)))):
                return None
            db.execute(
                "INSERT INTO jobs (submission, resumed, phase, state, owner, changed_at) VALUES (?, ?, ?, ?, ?, ?) "
                "ON CONFLICT DO UPDATE SET owner = excluded.owner, lives = lives + 1, "
                "changed_at = excluded.changed_at, outcome = NULL, "
                "state = CASE state WHEN ? THEN ? ELSE state END",
                (submission, resumed, phase, CLAIMED, self.worker, time.time(), DONE, BEGUN),
            )
        self._hands.add((submission, resumed))
        return self.job(submission, resumed)

    def known(self, submission: int, resumed: str) -> str:
        """The state of a job here; nothing for one that never was."""
        query = "SELECT state FROM jobs WHERE submission = ? AND resumed = ?"
        with self._read() as db:
            row = db.execute(query, (submission, resumed)).fetchone()
        return row["state"] if row else ""

    def job(self, submission: int, resumed: str) -> Job:
        """One that is there."""
        query = "SELECT * FROM jobs WHERE submission = ? AND resumed = ?"
        with self._read() as db:
            row = db.execute(query, (submission, resumed)).fetchone()
        if row is None:
            raise JobGoneError(f"submission {submission} is no longer in the journal")
        report = _report_of(row["report"])
        # A result that cannot be read any more is made again.
        state = BEGUN if row["state"] == SCORED and report is None else row["state"]
        return Job(submission, resumed, row["phase"], state, row["failures"], row["lives"], row["delays"], report)

    def due(self) -> Job | None:
        """A job that is not done and that nobody alive has in hand; ours from now on."""
        # One that was put off by a clock that has been set back since is due too.
        now = time.time()
        due, values = "state != ? AND (next_at <= ? OR changed_at > ?)", (DONE, now, now + _CLOCK)
        with self._read() as db:
            if not db.execute(f"SELECT 1 FROM jobs WHERE {due}", values).fetchone():  # noqa: S608 - our words
                return None  # without taking the lock: most looks find nothing
        with self._write() as db:
            rows = db.execute(
                f"SELECT * FROM jobs WHERE {due} ORDER BY state = ? DESC, changed_at LIMIT 50",  # noqa: S608
                (*values, SCORED),
            ).fetchall()
            free = next((row for row in rows if not self._held(row)), None)
            if free is None:
                return None
            db.execute(
                "UPDATE jobs SET owner = ?, lives = lives + (owner IS NOT NULL AND owner != ?), changed_at = ? "
                "WHERE submission = ? AND resumed = ?",
                (self.worker, self.worker, now, free["submission"], free["resumed"]),
            )
        self._hands.add((free["submission"], free["resumed"]))
        return self.job(free["submission"], free["resumed"])

    def waits(self) -> float | None:
        """Seconds until the next job that nobody has in hand is due; None where there is none."""
        with self._read() as db:
            rows = db.execute("SELECT * FROM jobs WHERE state != ?", (DONE,)).fetchall()
        left = [row["next_at"] - time.time() for row in rows if not self._held(row)]
        return max(0.0, min(left)) if left else None

    def change(self, job: Job, **values: Any) -> Job:
        """Note what has come of a job; a column ending in `+` counts one up."""
        sets = [f"{name} = ?" for name in values if not name.endswith("_more")]
        sets += [
            f"{name.removesuffix('_more')} = {name.removesuffix('_more')} + 1"
            for name in values
            if name.endswith("_more")
        ]
        told = [
            json.dumps(value) if name == "report" else value
            for name, value in values.items()
            if not name.endswith("_more")
        ]
        with self._write() as db:
            db.execute(
                f"UPDATE jobs SET {', '.join(sets)}, changed_at = ? WHERE submission = ? AND resumed = ?",  # noqa: S608 - our names
                (*told, time.time(), job.submission, job.resumed),
            )
        return self.job(job.submission, job.resumed)

    def done(self, job: Job, outcome: str) -> None:
        """It is at its end; its report is no longer needed."""
        self.change(job, state=DONE, outcome=outcome, owner=None, report=None)

    def release(self, job: Job, wait: float) -> None:
        """Let somebody take it up again, after a while."""
        self.change(job, owner=None, next_at=time.time() + wait)

    def drop(self, job: Job) -> None:
        """Note in memory that nobody here works on it any more, whether or not that could be written down."""
        self._hands.discard((job.submission, job.resumed))

    def _held(self, row: Any) -> bool:
        """Whether somebody alive works on a job."""
        if row["owner"] == self.worker:
            return (row["submission"], row["resumed"]) in self._hands
        return row["owner"] is not None and self.owners.is_alive(row["owner"])

    # ── the budget ──────────────────────────────────────────────────────────

    def request(self, limit: int, *, urgent: bool, polling: float = _POLLING) -> float:
        """Take one request of the machine's budget; seconds to wait where there is none left."""
        now, allowed = time.time(), limit if urgent else max(1, int(limit * polling))
        with self._write() as db:
            # Those of the future are of a clock that has been set back since.
            db.execute("DELETE FROM requests WHERE at <= ? OR at > ?", (now - _WINDOW, now + _CLOCK))
            count, oldest = db.execute("SELECT count(*), min(at) FROM requests").fetchone()
            if count >= allowed:
                return max(0.1, float(oldest) + _WINDOW - now)
            db.execute("INSERT INTO requests VALUES (?)", (now,))
            db.execute("INSERT INTO numbers VALUES ('requests', 1) ON CONFLICT DO UPDATE SET value = value + 1")
        return 0.0

    def turn(self, key: str, seconds: float) -> bool:
        """Whether something that the machine does now and then is due; then it is ours this time."""
        now = time.time()
        if now < self.number(key) <= now + seconds + _CLOCK:
            return False  # without taking the lock
        with self._write() as db:
            row = db.execute("SELECT value FROM numbers WHERE key = ?", (key,)).fetchone()
            if row is not None and now < row["value"] <= now + seconds + _CLOCK:
                return False
            db.execute("INSERT OR REPLACE INTO numbers VALUES (?, ?)", (key, now + seconds))
        return True

    def number(self, key: str) -> float:
        """A number that the machine's workers share."""
        with self._read() as db:
            row = db.execute("SELECT value FROM numbers WHERE key = ?", (key,)).fetchone()
        return float(row["value"]) if row else 0.0

    def set(self, key: str, value: float) -> None:
        """Share a number."""
        with self._write() as db:
            db.execute("INSERT OR REPLACE INTO numbers VALUES (?, ?)", (key, value))

    def add(self, key: str, value: float = 1.0) -> None:
        """Count something."""
        with self._write() as db:
            db.execute(
                "INSERT INTO numbers VALUES (?, ?) ON CONFLICT DO UPDATE SET value = value + excluded.value",
                (key, value),
            )

    def numbers(self) -> dict[str, float]:
        """All of them."""
        with self._read() as db:
            return {row["key"]: row["value"] for row in db.execute("SELECT * FROM numbers ORDER BY key")}

    def counts(self) -> dict[str, int]:
        """Jobs by outcome, or by state while they have none."""
        query = "SELECT coalesce(outcome, state) AS what, count(*) AS n FROM jobs GROUP BY what"
        with self._read() as db:
            return {row["what"]: row["n"] for row in db.execute(query)}


def _may_again(row: Any) -> bool:
    """Whether a job that is done may be made again; one whose result no server took may not."""
    return bool(row["outcome"] != "given up" and row["lives"] < _AGAIN)


class JobGoneError(Exception):
    """Its row is not there any more: the journal was replaced under the worker."""


def _report_of(text: str | None) -> dict[str, Any] | None:
    with suppress(ValueError, TypeError, RecursionError):
        found = json.loads(text or "null")
        return found if isinstance(found, dict) else None
    return None
