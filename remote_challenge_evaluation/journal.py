"""The worker's memory: one SQLite file on each machine, shared by its processes.

A job is a submission together with the time of its last resumption, so a
resumed one is new work.  Who owns a job is told by a file lock, which the
kernel lets go when the process dies, however it dies; the evaluation inherits
it, so that a job is free only when nobody works on it any more.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

#: What a job has behind it, in this order.
CLAIMED, BEGUN, SCORED, DONE = "claimed", "begun", "scored", "done"
_WINDOW = 60.0
#: The share of the budget that polling may use, so that reports never wait for it.
_POLLING = 0.6
_TABLES = """
CREATE TABLE IF NOT EXISTS jobs (
  submission INTEGER NOT NULL, resumed TEXT NOT NULL, phase INTEGER NOT NULL, state TEXT NOT NULL, owner TEXT,
  failures INTEGER NOT NULL DEFAULT 0, lives INTEGER NOT NULL DEFAULT 0, evaluations INTEGER NOT NULL DEFAULT 0,
  reports INTEGER NOT NULL DEFAULT 0, report TEXT, outcome TEXT, next_at REAL NOT NULL DEFAULT 0,
  changed_at REAL NOT NULL, PRIMARY KEY (submission, resumed));
CREATE INDEX IF NOT EXISTS jobs_open ON jobs (state, next_at);
CREATE TABLE IF NOT EXISTS requests (at REAL NOT NULL);
CREATE INDEX IF NOT EXISTS requests_at ON requests (at);
CREATE TABLE IF NOT EXISTS numbers (key TEXT PRIMARY KEY, value REAL NOT NULL);
"""


@dataclass(frozen=True)
class Job:
    """One submission in hand."""

    submission: int
    resumed: str
    phase: int
    state: str
    failures: int
    lives: int
    report: dict[str, Any] | None


class Journal:
    """One process's hold on the machine's journal."""

    def __init__(self, folder: str) -> None:
        self._locks = os.path.join(folder, "locks")
        os.makedirs(self._locks, mode=0o700, exist_ok=True)
        self.worker = secrets.token_hex(4)
        self._lock = open(os.path.join(self._locks, self.worker), "w", encoding="ascii")  # noqa: SIM115 - held for life
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        self._db = sqlite3.connect(
            os.path.join(folder, "journal.sqlite3"), timeout=60, isolation_level=None, check_same_thread=False
        )
        self._db.row_factory = sqlite3.Row
        self._db.execute("PRAGMA journal_mode = WAL")
        # A claim must outlive a power cut too: the message is deleted on its word.
        self._db.execute("PRAGMA synchronous = FULL")
        self._db.executescript(_TABLES)

    @property
    def lock(self) -> int:
        """The lock's descriptor, for those who work for us."""
        return self._lock.fileno()

    def close(self) -> None:
        """Let go of everything."""
        self._db.close()
        self._lock.close()
        os.unlink(os.path.join(self._locks, self.worker))

    @contextmanager
    def _write(self) -> Iterator[sqlite3.Connection]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield self._db
        except BaseException:
            self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")

    # ── jobs ────────────────────────────────────────────────────────────────

    def claim(self, submission: int, resumed: str, phase: int) -> Job | None:
        """Take a submission durably; None when somebody here has it in hand, or had it done."""
        with self._write() as db:
            row = db.execute(
                "SELECT * FROM jobs WHERE submission = ? AND resumed = ?", (submission, resumed)
            ).fetchone()
            if row is not None and (row["state"] == DONE or self._alive(row["owner"])):
                return None
            db.execute(
                "INSERT INTO jobs (submission, resumed, phase, state, owner, changed_at) VALUES (?, ?, ?, ?, ?, ?) "
                "ON CONFLICT DO UPDATE SET owner = excluded.owner, lives = lives + 1, changed_at = excluded.changed_at",
                (submission, resumed, phase, CLAIMED, self.worker, time.time()),
            )
        return self.job(submission, resumed)

    def known(self, submission: int, resumed: str) -> str:
        """The state of a job here; nothing for one that never was."""
        row = self._db.execute(
            "SELECT state FROM jobs WHERE submission = ? AND resumed = ?", (submission, resumed)
        ).fetchone()
        return row["state"] if row else ""

    def job(self, submission: int, resumed: str) -> Job:
        """One that is there."""
        row = self._db.execute(
            "SELECT * FROM jobs WHERE submission = ? AND resumed = ?", (submission, resumed)
        ).fetchone()
        report = json.loads(row["report"]) if row["report"] else None
        return Job(submission, resumed, row["phase"], row["state"], row["failures"], row["lives"], report)

    def due(self) -> Job | None:
        """A job that is not done and that nobody alive has in hand; ours from now on."""
        if not self._db.execute("SELECT 1 FROM jobs WHERE state != ? AND next_at <= ?", (DONE, time.time())).fetchone():
            return None  # without taking the lock: most looks find nothing
        with self._write() as db:
            rows = db.execute(
                "SELECT * FROM jobs WHERE state != ? AND next_at <= ? ORDER BY state = ? DESC, changed_at LIMIT 50",
                (DONE, time.time(), SCORED),
            ).fetchall()
            free = next((row for row in rows if not self._alive(row["owner"])), None)
            if free is None:
                return None
            db.execute(
                "UPDATE jobs SET owner = ?, lives = lives + (owner IS NOT NULL), changed_at = ? "
                "WHERE submission = ? AND resumed = ?",
                (self.worker, time.time(), free["submission"], free["resumed"]),
            )
        return self.job(free["submission"], free["resumed"])

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

    def _alive(self, owner: str | None) -> bool:
        """Whether a worker, or an evaluation of its, still runs."""
        if owner is None:
            return False
        if owner == self.worker:
            return True
        path = os.path.join(self._locks, owner)
        try:
            with open(path, "rb") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.unlink(path)
        except FileNotFoundError:
            return False
        except OSError:
            return True
        return False

    # ── the budget ──────────────────────────────────────────────────────────

    def request(self, limit: int, *, urgent: bool) -> float:
        """Take one request of the machine's budget; seconds to wait where there is none left."""
        now, allowed = time.time(), limit if urgent else max(1, int(limit * _POLLING))
        with self._write() as db:
            db.execute("DELETE FROM requests WHERE at <= ?", (now - _WINDOW,))
            count, oldest = db.execute("SELECT count(*), min(at) FROM requests").fetchone()
            if count >= allowed:
                return max(0.1, float(oldest) + _WINDOW - now)
            db.execute("INSERT INTO requests VALUES (?)", (now,))
            db.execute("INSERT INTO numbers VALUES ('requests', 1) ON CONFLICT DO UPDATE SET value = value + 1")
        return 0.0

    def turn(self, key: str, seconds: float) -> bool:
        """Whether something that the machine does now and then is due; then it is ours this time."""
        now = time.time()
        if self.number(key) > now:
            return False  # without taking the lock
        with self._write() as db:
            row = db.execute("SELECT value FROM numbers WHERE key = ?", (key,)).fetchone()
            if row is not None and row["value"] > now:
                return False
            db.execute("INSERT OR REPLACE INTO numbers VALUES (?, ?)", (key, now + seconds))
        return True

    def number(self, key: str) -> float:
        """A number that the machine's workers share."""
        row = self._db.execute("SELECT value FROM numbers WHERE key = ?", (key,)).fetchone()
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
        return {row["key"]: row["value"] for row in self._db.execute("SELECT * FROM numbers ORDER BY key")}

    def counts(self) -> dict[str, int]:
        """Jobs by outcome, or by state while they have none."""
        rows = self._db.execute("SELECT coalesce(outcome, state) AS what, count(*) AS n FROM jobs GROUP BY what")
        return {row["what"]: row["n"] for row in rows}

    def open_jobs(self) -> list[dict[str, Any]]:
        """What is not done, for those who look."""
        rows = self._db.execute("SELECT submission, state, owner, changed_at FROM jobs WHERE state != ?", (DONE,))
        return [dict(row) for row in rows]
