"""The journal as a file: readable by its owner alone, brought up to date, set aside when it is damaged."""

from __future__ import annotations

import fcntl
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from typing import TypeVar
from urllib.parse import quote

Found = TypeVar("Found")

NAME = "journal.sqlite3"
#: Of the tables; a journal of a later one is left alone.
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
#: SQLite itself waits no longer for another process: a process that waits there hears no signal.
_BUSY_SECONDS = 0.2
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


class JournalError(Exception):
    """The journal cannot be used now; the text says why.  Nothing that it holds is lost."""


class DamagedError(JournalError):
    """Its content makes no sense; `opened` sets it aside."""


class BusyError(JournalError):
    """Another process has it locked."""


class UnusableError(JournalError):
    """No worker of this version can use it, now or later."""


@contextmanager
def explained(folder: str) -> Iterator[None]:
    """SQLite's errors as ours, with a sentence."""
    path = os.path.join(folder, NAME)
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code in _DAMAGED:
            raise DamagedError(f"{path} is damaged ({error})") from None
        if code in _BUSY:
            raise BusyError(f"{path} is locked by another program ({error})") from None
        raise JournalError(f"{path} cannot be written or read ({error}). Is the disk full, or read-only?") from None


def opened(folder: str, say: Callable[[str], None]) -> sqlite3.Connection:
    """The journal of a state folder, made where there is none."""
    with _alone(folder):
        try:
            return _connected(folder)
        except DamagedError as error:
            say(f"{error}; it is kept as {_set_aside(folder)}. The sweep brings home what was in hand")
            return _connected(folder)


def examined(folder: str) -> str:
    """What is wrong with a journal, without changing it; nothing where it can be used."""
    if not os.path.exists(os.path.join(folder, NAME)):
        return ""
    try:
        with explained(folder), closing(_plain(folder, "mode=ro")) as db:
            _check(db, folder)
    except JournalError as error:
        return str(error)
    return ""


def open_jobs_in(folder: str) -> int:
    """How many jobs of a journal are not done; 0 where it cannot be read."""
    with suppress(sqlite3.Error), closing(_plain(folder, "mode=ro")) as db:
        return int(db.execute("SELECT count(*) FROM jobs WHERE state != 'done'").fetchone()[0])
    return 0


@contextmanager
def _alone(folder: str) -> Iterator[None]:
    """No other worker of this folder opens the journal meanwhile."""
    os.makedirs(os.path.join(folder, "locks"), mode=0o700, exist_ok=True)
    lock = os.open(os.path.join(folder, "locks", "opening"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def _plain(folder: str, options: str) -> sqlite3.Connection:
    address = f"file:{quote(os.path.join(os.path.abspath(folder), NAME))}?{options}"
    db = sqlite3.connect(address, uri=True, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    db.row_factory = sqlite3.Row
    return db


def _connected(folder: str) -> sqlite3.Connection:
    with explained(folder):
        db = _plain(folder, "mode=rwc")
        try:
            _check(db, folder)
            _patiently(lambda: _prepare(db))
        except BaseException:
            db.close()
            raise
    for name in (NAME, f"{NAME}-wal", f"{NAME}-shm"):
        with suppress(OSError):
            os.chmod(os.path.join(folder, name), 0o600)
    return db


def _check(db: sqlite3.Connection, folder: str) -> None:
    """Raises where the file is damaged, or of a later version."""
    found = _patiently(lambda: db.execute("PRAGMA user_version").fetchone()[0])
    if found > VERSION:
        path = os.path.join(folder, NAME)
        raise UnusableError(
            f"{path} was written by a later version of this worker (journal {found}, this one knows {VERSION}). "
            "Run that version, or name another SAVE_DIR"
        )
    told = _patiently(lambda: db.execute("PRAGMA quick_check(1)").fetchone()[0])
    if told != "ok":
        raise DamagedError(f"{os.path.join(folder, NAME)} is damaged ({told})")


def _prepare(db: sqlite3.Connection) -> None:
    db.execute("PRAGMA journal_mode = WAL")
    # A claim must outlive a power cut too: the message is deleted on its word.
    db.execute("PRAGMA synchronous = FULL")
    if db.execute("PRAGMA user_version").fetchone()[0] == VERSION:
        return
    db.execute("BEGIN IMMEDIATE")
    try:
        columns = [row["name"] for row in db.execute("PRAGMA table_info(jobs)")]
        for statement in _TABLES.split(";"):
            db.execute(statement)
        if columns and "delays" not in columns:
            db.execute("ALTER TABLE jobs ADD COLUMN delays INTEGER NOT NULL DEFAULT 0")
        db.execute(f"PRAGMA user_version = {VERSION}")
        db.execute("COMMIT")
    except BaseException:
        with suppress(sqlite3.Error):
            db.execute("ROLLBACK")
        raise


def _patiently(work: Callable[[], Found], tries: int = 25) -> Found:
    """Another process may have it locked for a moment."""
    for _ in range(tries - 1):
        try:
            return work()
        except sqlite3.OperationalError as error:
            if getattr(error, "sqlite_errorcode", 0) & 0xFF not in _BUSY:
                raise
            time.sleep(_BUSY_SECONDS)
    return work()


def _set_aside(folder: str) -> str:
    """Rename the damaged journal and what belongs to it; its new path."""
    kept = os.path.join(folder, f"{NAME}.damaged-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}")
    for end in ("", "-wal", "-shm"):
        with suppress(FileNotFoundError):
            os.replace(os.path.join(folder, NAME + end), kept + end)
    return kept
