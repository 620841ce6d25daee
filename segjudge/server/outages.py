"""Outages: a database that is away or locked, a full disk. They pass by themselves, and are nobody's defect."""

import errno
import logging
import sqlite3
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError, PendingRollbackError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from segjudge.evaluation_script.files.packed import DISK_FULL

from .timestamps import written

T = TypeVar("T")
#: The rehearsal's own lines on stderr; a stream that takes no more bytes raises nothing here.
_LOG = logging.getLogger("segjudge.server")
#: Error numbers of what this machine has too little of at the moment, beside a disk that is full.
_SHORT = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN, errno.EROFS, errno.EIO})
#: PostgreSQL's states of a statement: the first for a full disk; the classes for no connection, too few resources, an
#: operator who intervened, a system's error; a server that takes no writes.
_PG_FULL, _PG_CLASSES, _PG_READ_ONLY = "53100", ("08", "53", "57", "58"), "25006"
#: PostgreSQL's state where a lock was not free within its limit.
_PG_LOCKED = "55P03"
#: SQLite's primary results: busy and locked; full; read-only, a disk that fails, cannot be opened.
_SQLITE_LOCKED, _SQLITE_FULL, _SQLITE_AWAY = (5, 6), 13, (8, 10, 14)
#: Seconds for which the same words are not logged again.
_QUIET_SECONDS = 5.0


class BusyError(Exception):
    """Raised when other writers of this process held the database for too long."""


@dataclass(frozen=True)
class Outage:
    """What is away, as everybody may read it and as the operator reads it."""

    status: int
    #: Seconds after which to try again.
    retry_after: int
    sentence: str
    reason: str


_AWAY = "The rehearsal's database does not answer at the moment."
_LOCKED = "The rehearsal's database is held by another writer at the moment."
_DISK = "The disk of this rehearsal is full."
_MACHINE = "The rehearsal's machine cannot do this at the moment."


def outage_of(error: BaseException) -> Outage | None:
    """Return the outage that an exception comes from; None for any other, which is a defect or a caller's fault."""
    if isinstance(error, BusyError):
        return _outage(_LOCKED, error)
    if isinstance(error, (PoolTimeout, PendingRollbackError)):
        return _outage(_AWAY, error)
    if isinstance(error, DBAPIError):
        return _outage_of_database(error)
    if isinstance(error, OSError) and error.errno in DISK_FULL:
        return _outage(_DISK, error, 507)
    if (isinstance(error, OSError) and error.errno in _SHORT) or isinstance(error, MemoryError):
        return _outage(_MACHINE, error)
    return None


def _outage_of_database(error: DBAPIError) -> Outage | None:
    cause = error.orig
    if isinstance(cause, sqlite3.Error):
        code = getattr(cause, "sqlite_errorcode", 0) & 0xFF
        if code == _SQLITE_FULL:
            return _outage(_DISK, cause, 507)
        if code in _SQLITE_LOCKED:
            return _outage(_LOCKED, cause)
        return _outage(_AWAY, cause) if code in _SQLITE_AWAY else None
    state = getattr(cause, "sqlstate", None) or ""
    if state == _PG_FULL:
        return _outage(_DISK, cause, 507)
    if state == _PG_LOCKED:
        return _outage(_LOCKED, cause)
    # Without a state nobody answered: no server, a connection that broke off.
    nobody = error.connection_invalidated or (not state and isinstance(error, (OperationalError, InterfaceError)))
    if nobody or state.startswith(_PG_CLASSES) or state == _PG_READ_ONLY:
        return _outage(_AWAY, cause)
    return None


def _outage(sentence: str, cause: BaseException | None, status: int = 503) -> Outage:
    lines = str(cause).strip().splitlines() or [type(cause).__name__]
    return Outage(status, 30 if status == 507 else 5, sentence, lines[0])


def unless_away(look: Callable[[], T]) -> T | None:
    """Return what a look into the store gives; None while the store is away."""
    try:
        return look()
    except Exception as error:
        if outage_of(error) is None:
            raise
        return None


_last_lines: dict[str, float] = {}
_lock = threading.Lock()


def write_line(text: str) -> None:
    """Write a line to stderr with the time; the same line not twice within some seconds."""
    now = time.monotonic()
    with _lock:
        if now - _last_lines.get(text, -_QUIET_SECONDS) < _QUIET_SECONDS:
            return
        if len(_last_lines) > 100:
            _last_lines.clear()
        _last_lines[text] = now
    _LOG.warning("%s %s", written(time.time()), text)
