"""The journal: one SQLite file per machine, shared by its worker processes, with their liveness.

A job is a submission with the time of its last resumption, so a resumed submission is new work. Only the owner can read
the file; a damaged file is set aside.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import secrets
import shutil
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from typing import TypedDict, TypeVar, cast
from urllib.parse import quote

from segjudge.platforms.evalai.rows import SplitAccuracies

_OWNER_NAME = re.compile(r"[0-9a-f]{8}")
#: The end of names that belong to one worker: downloads, and unfinished files.
_OWNED_PATH = re.compile(r".*-([0-9a-f]{8})(?:\.partial)?")
#: The folders with files of workers.
DOWNLOADS, FETCHED = "submissions", "annotations"


class _Owners:
    """The workers of a state folder, and this process as one of them."""

    def __init__(self, folder: str) -> None:
        self._folder, self._locks = folder, os.path.join(folder, "locks")  # opening the journal created it
        #: The name and the descriptor of our lock, which processes that work for us inherit.
        self.name, self.lock = self._take_lock()

    def _take_lock(self) -> tuple[str, int]:
        while True:
            name = secrets.token_hex(4)
            path = os.path.join(self._locks, name)
            lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            fcntl.flock(lock, fcntl.LOCK_EX)
            # Between the two calls, another process may have removed the file as a dead worker's.
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(lock), os.stat(path)):
                    return name, lock
            os.close(lock)

    def is_alive(self, owner: str) -> bool:
        """Return whether a worker or its evaluation still runs."""
        if owner == self.name:
            return True
        if not _OWNER_NAME.fullmatch(owner):
            return False
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

    def remove_abandoned(self) -> list[str]:
        removed = []
        for folder in (os.path.join(self._folder, name) for name in (DOWNLOADS, FETCHED)):
            for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
                owner = _OWNED_PATH.fullmatch(name)
                if owner and not self.is_alive(owner[1]):
                    removed.append(os.path.join(folder, name))
                    _remove(removed[-1])
        for name in os.listdir(self._locks):
            if _OWNER_NAME.fullmatch(name):
                self.is_alive(name)
        return removed

    def close(self) -> None:
        with suppress(OSError):
            os.unlink(os.path.join(self._locks, self.name))
        os.close(self.lock)


def _remove(path: str) -> None:
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            os.unlink(path)


Result = TypeVar("Result")

NAME = "journal.sqlite3"
#: The version of the tables; journals of other versions are not touched.
VERSION = 2
_TABLES = """
CREATE TABLE IF NOT EXISTS jobs (
  submission INTEGER NOT NULL, resumed TEXT NOT NULL, phase INTEGER NOT NULL, state TEXT NOT NULL, owner TEXT,
  failures INTEGER NOT NULL DEFAULT 0, lives INTEGER NOT NULL DEFAULT 0, evaluations INTEGER NOT NULL DEFAULT 0,
  reports INTEGER NOT NULL DEFAULT 0, report TEXT, outcome TEXT, next_at REAL NOT NULL DEFAULT 0,
  changed_at REAL NOT NULL, delays INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (submission, resumed));
CREATE INDEX IF NOT EXISTS jobs_open ON jobs (state, next_at);
CREATE TABLE IF NOT EXISTS requests (at REAL NOT NULL);
CREATE INDEX IF NOT EXISTS requests_at ON requests (at);
CREATE TABLE IF NOT EXISTS numbers (key TEXT PRIMARY KEY, value REAL NOT NULL);
"""
#: The maximum seconds that SQLite itself waits for another process, since it handles no signals meanwhile.
_BUSY_SECONDS = 0.2
#: Seconds to wait while another process opens the journal, and while another program locks it; other locks last
#: milliseconds.
_OPENING_SECONDS, _LONG_BUSY_SECONDS = 10.0, 60.0
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


class JournalError(Exception):
    """Raised if the journal is temporarily unusable; the text says why.  Nothing in it is lost."""


class DamagedError(JournalError):
    """Raised if the file is not a journal; it is set aside."""


class UnusableError(JournalError):
    """Raised if no worker of this version can use the journal."""


class _JournalFile:
    """A connection to the journal of a state folder, created if missing."""

    def __init__(self, folder: str, watch: Callable[[], None], say: Callable[[str], None]) -> None:
        self._folder, self._watch, self._say = folder, watch, say
        self._thread_lock = threading.RLock()
        self._open()

    def _open(self) -> None:
        with _lock_opening(self._folder):
            try:
                self._db = _open_database(self._folder)
            except DamagedError as error:
                new_path = _set_aside(self._folder)
                self._say(f"{error}; it was renamed to {new_path}. The sweep recovers unfinished submissions")
                self._db = _open_database(self._folder)
        self._inode = self._current_inode()

    def close(self) -> None:
        self._db.close()

    def reopen(self) -> None:
        """Reopen the file, since it is damaged or replaced."""
        with self._thread_lock:
            self._db.close()
            self._open()

    def follow_replacement(self) -> None:
        """Reopen the file if another worker or a person replaced it."""
        if self._current_inode() != self._inode:
            self._say(f"{os.path.join(self._folder, NAME)} was replaced; the worker now uses the new one")
            self.reopen()

    def _current_inode(self) -> int:
        with suppress(OSError):
            return os.stat(os.path.join(self._folder, NAME)).st_ino
        return 0

    @contextmanager
    def read(self) -> Iterator[sqlite3.Connection]:
        """Yield the connection for reading; raises JournalError for failures."""
        with self._thread_lock, _journal_errors(self._folder):
            yield self._db

    @contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """Yield the connection in a transaction; raises JournalError for failures."""
        with self._thread_lock, _journal_errors(self._folder):
            _retry_while_busy(lambda: self._db.execute("BEGIN IMMEDIATE"), _LONG_BUSY_SECONDS, self._watch)
            with self._db:
                yield self._db


@contextmanager
def _journal_errors(folder: str) -> Iterator[None]:
    """Convert SQLite's errors into JournalError."""
    path = os.path.join(folder, NAME)
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code in _DAMAGED:
            raise DamagedError(f"{path} is damaged ({error})") from None
        if code in _BUSY:
            raise JournalError(f"{path} is locked by another program ({error})") from None
        raise JournalError(f"{path} cannot be written or read ({error}). Is the disk full, or read-only?") from None


@contextmanager
def _lock_opening(folder: str) -> Iterator[None]:
    """Lock the journal against opening by other workers."""
    os.makedirs(os.path.join(folder, "locks"), mode=0o700, exist_ok=True)
    lock = os.open(os.path.join(folder, "locks", "opening"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def _connection(folder: str, options: str) -> sqlite3.Connection:
    address = f"file:{quote(os.path.join(os.path.abspath(folder), NAME))}?{options}"
    db = sqlite3.connect(address, uri=True, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    db.row_factory = sqlite3.Row
    return db


def _open_database(folder: str) -> sqlite3.Connection:
    with _journal_errors(folder):
        db = _connection(folder, "mode=rwc")
        try:
            _check(db, folder)
            _retry_while_busy(lambda: _make_tables(db))
        except BaseException:
            db.close()
            raise
    for name in (NAME, f"{NAME}-wal", f"{NAME}-shm"):
        with suppress(OSError):
            os.chmod(os.path.join(folder, name), 0o600)
    return db


def _check(db: sqlite3.Connection, folder: str) -> None:
    """Raise if the file is damaged or has another version."""
    version = _retry_while_busy(lambda: db.execute("PRAGMA user_version").fetchone()[0])
    if version not in (0, VERSION):  # 0: new
        path = os.path.join(folder, NAME)
        raise UnusableError(
            f"{path} was written by another version of this worker (journal {version}, this one reads {VERSION}). "
            "Run that version until no submission waits, or set another SAVE_DIR"
        )
    result = _retry_while_busy(lambda: db.execute("PRAGMA quick_check(1)").fetchone()[0])
    if result != "ok":
        raise DamagedError(f"{os.path.join(folder, NAME)} is damaged ({result})")


def _make_tables(db: sqlite3.Connection) -> None:
    db.execute("PRAGMA journal_mode = WAL")
    # A claim must survive a power cut too, since the message is deleted because of it.
    db.execute("PRAGMA synchronous = FULL")
    if db.execute("PRAGMA user_version").fetchone()[0] == VERSION:
        return
    db.execute("BEGIN IMMEDIATE")
    with db:
        for statement in _TABLES.split(";"):
            db.execute(statement)
        db.execute(f"PRAGMA user_version = {VERSION}")


def _retry_while_busy(
    work: Callable[[], Result], seconds: float = _OPENING_SECONDS, watch: Callable[[], None] = lambda: None
) -> Result:
    """Retry while another process locks the file, up to a time, calling the watch between tries."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            return work()
        except sqlite3.OperationalError as error:
            if getattr(error, "sqlite_errorcode", 0) & 0xFF not in _BUSY or time.monotonic() > deadline:
                raise
        watch()
        time.sleep(_BUSY_SECONDS)


def _set_aside(folder: str) -> str:
    """Rename the damaged journal and its side files; return the new path."""
    new_path = os.path.join(folder, f"{NAME}.damaged-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}")
    for suffix in ("", "-wal", "-shm"):
        with suppress(FileNotFoundError):
            os.replace(os.path.join(folder, NAME + suffix), new_path + suffix)
    return new_path


#: The states of a job, in this order.
CLAIMED, BEGUN, SCORED, DONE = "claimed", "begun", "scored", "done"
#: Seconds for which a request counts.
_WINDOW = 60.0
#: The share of the requests that polling may use, so that reports never wait for them.
_POLLING_SHARE = 0.6
#: The maximum attempts at a job whose report the server accepted but did not store.
_REPEATED_ATTEMPTS = 5
#: The minimum number of seconds for noticing that a clock was set back.
_CLOCK_SECONDS = 5.0
_THIS_JOB = "submission = ? AND resumed = ?"


class JobReport(TypedDict, total=False):
    """The report of a submission: accuracies, or the reason of its rejection."""

    accuracies: list[SplitAccuracies]
    #: The metadata of `evaluate()`'s result.
    metadata: object
    refused: str
    #: Whether a defect of ours caused the rejection.
    ours: bool
    stdout: str
    stderr: str


class JobGoneError(Exception):
    """Raised if a job's row is gone because the journal was replaced."""


@dataclass(frozen=True)
class Job:
    """A submission in progress."""

    submission: int
    resumed: str
    phase: int
    state: str
    failures: int
    #: The number of workers that died while scoring it.
    attempts: int
    #: The number of delays for reasons outside this machine.
    delays: int
    report: JobReport | None


class Journal:
    """One process's connection to the machine's journal."""

    def __init__(
        self, folder: str, watch: Callable[[], None] = lambda: None, say: Callable[[str], None] = lambda _text: None
    ) -> None:
        self.file = _JournalFile(folder, watch, say)
        self._read, self._write = self.file.read, self.file.write
        self.owners = _Owners(folder)
        self.worker = self.owners.name
        #: The jobs that this process works on; an abandoned job becomes free again.
        self._in_hand: set[tuple[int, str]] = set()

    def close(self) -> None:
        self.file.close()
        self.owners.close()

    # ── jobs ────────────────────────────────────────────────────────────────

    def claim(self, submission: int, resumed: str, phase: int, *, again: bool = False) -> Job | None:
        """Claim a submission durably; return None if a worker has it, or finished it and not `again`."""
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
        return self._take(submission, resumed)

    def _take(self, submission: int, resumed: str) -> Job:
        self._in_hand.add((submission, resumed))
        return self.job(submission, resumed)

    def state_of(self, submission: int, resumed: str) -> str:
        """Return the state of a job; "" if this machine never had it."""
        with self._read() as db:
            row = _row(db, submission, resumed)
        return row["state"] if row else ""

    def job(self, submission: int, resumed: str) -> Job:
        with self._read() as db:
            row = _row(db, submission, resumed)
        if row is None:
            raise JobGoneError(f"submission {submission} is no longer in the journal")
        report = _report_of(row["report"])
        # A result that has become unreadable is computed again.
        state = BEGUN if row["state"] == SCORED and report is None else row["state"]
        return Job(submission, resumed, row["phase"], state, row["failures"], row["lives"], row["delays"], report)

    def take_due(self) -> Job | None:
        """Claim an unfinished job that no living worker has; None without one."""
        # A job is also due if the clock was set back after it was delayed.
        moment = time.time()
        due, values = "state != ? AND (next_at <= ? OR changed_at > ?)", (DONE, moment, moment + _CLOCK_SECONDS)
        with self._read() as db:
            if not db.execute(f"SELECT 1 FROM jobs WHERE {due}", values).fetchone():  # noqa: S608 - our words
                return None  # without taking the lock: usually there is none
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
            db.execute(query + _THIS_JOB, (self.worker, self.worker, moment, free["submission"], free["resumed"]))
        return self._take(free["submission"], free["resumed"])

    def seconds_until_due(self) -> float | None:
        """Return the seconds until the next free job; None without one."""
        with self._read() as db:
            rows = db.execute("SELECT * FROM jobs WHERE state != ?", (DONE,)).fetchall()
        waits = [row["next_at"] - time.time() for row in rows if not self._is_held(row)]
        return max(0.0, min(waits)) if waits else None

    def change(self, job: Job, *counted: str, **values: object) -> Job:
        """Increment columns of a job, set others, and return the updated job."""
        columns = [*(f"{name} = {name} + 1" for name in counted), *(f"{name} = ?" for name in values), "changed_at = ?"]
        stored = [json.dumps(value) if name == "report" else value for name, value in values.items()]
        with self._write() as db:
            db.execute(
                f"UPDATE jobs SET {', '.join(columns)} WHERE {_THIS_JOB}",  # noqa: S608 - our names
                (*stored, time.time(), job.submission, job.resumed),
            )
        return self.job(job.submission, job.resumed)

    def finish(self, job: Job, outcome: str) -> None:
        """Record that a job is done, and drop its report."""
        self.change(job, state=DONE, outcome=outcome, owner=None, report=None)

    def release(self, job: Job, wait: float) -> None:
        self.change(job, owner=None, next_at=time.time() + wait)

    def drop(self, job: Job) -> None:
        """Record in memory that this process has left a job, even if it could not be written."""
        self._in_hand.discard((job.submission, job.resumed))

    def _is_held(self, row: sqlite3.Row) -> bool:
        """Return whether a living worker has a job."""
        if row["owner"] == self.worker:
            return (row["submission"], row["resumed"]) in self._in_hand
        return row["owner"] is not None and self.owners.is_alive(row["owner"])

    # ── the limit of requests, and numbers that workers share ───────────────

    def take_request(self, limit: int, *, urgent: bool) -> float:
        """Use one of the machine's requests of this minute; return the seconds to wait if none is left."""
        moment, allowed = time.time(), limit if urgent else max(1, int(limit * _POLLING_SHARE))
        with self._write() as db:
            # Requests with a future time were recorded before the clock was set back.
            db.execute("DELETE FROM requests WHERE at <= ? OR at > ?", (moment - _WINDOW, moment + _CLOCK_SECONDS))
            count, oldest = db.execute("SELECT count(*), min(at) FROM requests").fetchone()
            if count >= allowed:
                return max(0.1, float(oldest) + _WINDOW - moment)
            db.execute("INSERT INTO requests VALUES (?)", (moment,))
            _add(db, "requests", 1)
        return 0.0

    def take_turn(self, key: str, seconds: float) -> bool:
        """Return whether a periodic task of the machine is due, and claim it."""
        moment = time.time()
        if moment < self.number(key) <= moment + seconds + _CLOCK_SECONDS:
            return False  # without taking the lock
        with self._write() as db:
            if moment < _number(db, key) <= moment + seconds + _CLOCK_SECONDS:
                return False
            db.execute("INSERT OR REPLACE INTO numbers VALUES (?, ?)", (key, moment + seconds))
        return True

    def number(self, key: str) -> float:
        with self._read() as db:
            return _number(db, key)

    def set(self, key: str, value: float) -> None:
        with self._write() as db:
            db.execute("INSERT OR REPLACE INTO numbers VALUES (?, ?)", (key, value))

    def add(self, key: str, value: float = 1.0) -> None:
        with self._write() as db:
            _add(db, key, value)

    def numbers(self) -> dict[str, float]:
        with self._read() as db:
            return {row["key"]: row["value"] for row in db.execute("SELECT * FROM numbers ORDER BY key")}

    def progress(self) -> int:
        """Return a number that rises when a job is claimed, first evaluated, or finished."""
        query = "SELECT count(*) + coalesce(sum(min(evaluations, 2) + (state = ?)), 0) AS n FROM jobs"
        with self._read() as db:
            return int(db.execute(query, (DONE,)).fetchone()["n"])

    def counts(self) -> dict[str, int]:
        """Return the number of jobs by outcome, or by state for unfinished ones."""
        query = "SELECT coalesce(outcome, state) AS what, count(*) AS n FROM jobs GROUP BY what"
        with self._read() as db:
            return {row["what"]: row["n"] for row in db.execute(query)}

    @staticmethod
    def problem_in(folder: str) -> str:
        """Return the problem of a journal, without changing it; "" if it is usable."""
        if not os.path.exists(os.path.join(folder, NAME)):
            return ""
        try:
            with _journal_errors(folder), closing(_connection(folder, "mode=ro")) as db:
                _check(db, folder)
        except JournalError as error:
            return str(error)
        return ""


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
    """Return whether a finished job may be repeated; unaccepted results may not."""
    return bool(row["outcome"] != "given up" and row["lives"] < _REPEATED_ATTEMPTS)


def _report_of(text: str | None) -> JobReport | None:
    with suppress(ValueError, TypeError, RecursionError):
        report = json.loads(text or "null")
        return cast("JobReport", report) if isinstance(report, dict) else None
    return None
