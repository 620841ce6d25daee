"""The journal as a file: readable by its owner alone, brought up to date, set aside if it is damaged."""

from __future__ import annotations

import fcntl
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from typing import TypeVar
from urllib.parse import quote

Result = TypeVar("Result")

NAME = "journal.sqlite3"
#: The version of the tables; a journal of a later version is left alone.
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
#: SQLite itself waits no longer for another process: while it waits no signal is handled.
_BUSY_SECONDS = 0.2
#: Another process has the journal locked for milliseconds, or while it is opened; another program perhaps for so long.
_OPENING_SECONDS, _LONG_BUSY_SECONDS = 10.0, 60.0
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


class JournalError(Exception):
    """Raised when the journal cannot be used now; the text says why.  Nothing in it is lost."""


class DamagedError(JournalError):
    """Raised when the content is not a journal's; the file is set aside."""


class UnusableError(JournalError):
    """Raised when no worker of this version can use the journal, now or later."""


class JournalFile:
    """A connection to the journal of a state folder, which is made if there is none."""

    def __init__(self, folder: str, watch: Callable[[], None], say: Callable[[str], None]) -> None:
        self._folder, self._watch, self._say = folder, watch, say
        self._thread_lock = threading.RLock()
        self._open()

    def _open(self) -> None:
        with _alone(self._folder):
            try:
                self._db = _prepared(self._folder)
            except DamagedError as error:
                new_path = _set_aside(self._folder)
                self._say(f"{error}; it is kept as {new_path}. The sweep brings home what was in hand")
                self._db = _prepared(self._folder)
        self._inode = self._current_inode()

    def close(self) -> None:
        """Close the connection."""
        self._db.close()

    def reopen(self) -> None:
        """Open the file again: it is damaged, or another one took its place."""
        with self._thread_lock:
            self._db.close()
            self._open()

    def follow_replacement(self) -> None:
        """Open the file again if it was replaced: set aside by another worker, or restored by a person."""
        if self._current_inode() != self._inode:
            self._say(f"{os.path.join(self._folder, NAME)} was replaced; the new one is used")
            self.reopen()

    def _current_inode(self) -> int:
        with suppress(OSError):
            return os.stat(os.path.join(self._folder, NAME)).st_ino
        return 0

    @contextmanager
    def read(self) -> Iterator[sqlite3.Connection]:
        """Yield the connection, to read; raise JournalError for what goes wrong."""
        with self._thread_lock, _explained(self._folder):
            yield self._db

    @contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """Yield the connection in a transaction; raise JournalError for what goes wrong."""
        with self._thread_lock, _explained(self._folder):
            _patiently(lambda: self._db.execute("BEGIN IMMEDIATE"), _LONG_BUSY_SECONDS, self._watch)
            with self._db:
                yield self._db


@contextmanager
def _explained(folder: str) -> Iterator[None]:
    """Turn SQLite's errors into JournalError, with a sentence."""
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


def examined(folder: str) -> str:
    """Return the problem of a journal, without changing it; nothing if it can be used."""
    if not os.path.exists(os.path.join(folder, NAME)):
        return ""
    try:
        with _explained(folder), closing(_connection(folder, "mode=ro")) as db:
            _check(db, folder)
    except JournalError as error:
        return str(error)
    return ""


def open_jobs_in(folder: str) -> int:
    """Return how many jobs of a journal are not done; 0 if it cannot be read."""
    with suppress(sqlite3.Error), closing(_connection(folder, "mode=ro")) as db:
        return int(db.execute("SELECT count(*) FROM jobs WHERE state != 'done'").fetchone()[0])
    return 0


@contextmanager
def _alone(folder: str) -> Iterator[None]:
    """Keep other workers of this folder from opening the journal meanwhile."""
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


def _prepared(folder: str) -> sqlite3.Connection:
    with _explained(folder):
        db = _connection(folder, "mode=rwc")
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
    """Raise if the file is damaged, or of a later version."""
    version = _patiently(lambda: db.execute("PRAGMA user_version").fetchone()[0])
    if version > VERSION:
        path = os.path.join(folder, NAME)
        raise UnusableError(
            f"{path} was written by a later version of this worker (journal {version}, this one knows {VERSION}). "
            "Run that version, or name another SAVE_DIR"
        )
    result = _patiently(lambda: db.execute("PRAGMA quick_check(1)").fetchone()[0])
    if result != "ok":
        raise DamagedError(f"{os.path.join(folder, NAME)} is damaged ({result})")


def _prepare(db: sqlite3.Connection) -> None:
    db.execute("PRAGMA journal_mode = WAL")
    # A claim must outlive a power cut too: the message is deleted on its word.
    db.execute("PRAGMA synchronous = FULL")
    if db.execute("PRAGMA user_version").fetchone()[0] == VERSION:
        return
    db.execute("BEGIN IMMEDIATE")
    with db:
        columns = [row["name"] for row in db.execute("PRAGMA table_info(jobs)")]
        for statement in _TABLES.split(";"):
            db.execute(statement)
        if columns and "delays" not in columns:
            db.execute("ALTER TABLE jobs ADD COLUMN delays INTEGER NOT NULL DEFAULT 0")
        db.execute(f"PRAGMA user_version = {VERSION}")


def _patiently(
    work: Callable[[], Result], seconds: float = _OPENING_SECONDS, watch: Callable[[], None] = lambda: None
) -> Result:
    """Repeat while another process has the file locked, for so many seconds; the watch is called in between."""
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
    """Rename the damaged journal and what belongs to it; return its new path."""
    new_path = os.path.join(folder, f"{NAME}.damaged-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}")
    for suffix in ("", "-wal", "-shm"):
        with suppress(FileNotFoundError):
            os.replace(os.path.join(folder, NAME + suffix), new_path + suffix)
    return new_path
