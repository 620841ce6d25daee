"""Connections to the server's database, SQLite or PostgreSQL, and its outages.

An outage, as a database that is away or locked or a full disk, passes by itself and is nobody's defect.
"""

import errno
import logging
import os
import sqlite3
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from sqlalchemy import Connection, Engine, create_engine, event, inspect, select
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, InterfaceError, OperationalError, PendingRollbackError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from segjudge.evaluation_script.files.packed import DISK_FULL
from segjudge.evaluation_script.files.problems import HostError
from segjudge.system.errors import install_line

from .models import Base, Setting
from .wire import format_moment

T = TypeVar("T")
#: The server's own lines on stderr; a stream that takes no more bytes raises nothing here.
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
class _Outage:
    """What is away, as everybody may read it and as the operator reads it."""

    status: int
    #: Seconds after which to try again.
    retry_after: int
    sentence: str
    reason: str


#: What everybody reads while the database is away.
NO_ANSWER = "The rehearsal's database does not answer at the moment."
_LOCKED = "The rehearsal's database is held by another writer at the moment."
_DISK = "The disk of this rehearsal is full."
_MACHINE = "The rehearsal's machine cannot do this at the moment."


def outage_of(error: BaseException) -> _Outage | None:
    """Return the outage that an exception comes from; None for any other, which is a defect or a caller's fault."""
    if isinstance(error, BusyError):
        return _outage(_LOCKED, error)
    if isinstance(error, (PoolTimeout, PendingRollbackError)):
        return _outage(NO_ANSWER, error)
    if isinstance(error, DBAPIError):
        return _outage_of_database(error)
    if isinstance(error, OSError) and error.errno in DISK_FULL:
        return _outage(_DISK, error, 507)
    if (isinstance(error, OSError) and error.errno in _SHORT) or isinstance(error, MemoryError):
        return _outage(_MACHINE, error)
    return None


def _outage_of_database(error: DBAPIError) -> _Outage | None:
    cause = error.orig
    if isinstance(cause, sqlite3.Error):
        code = getattr(cause, "sqlite_errorcode", 0) & 0xFF
        if code == _SQLITE_FULL:
            return _outage(_DISK, cause, 507)
        if code in _SQLITE_LOCKED:
            return _outage(_LOCKED, cause)
        return _outage(NO_ANSWER, cause) if code in _SQLITE_AWAY else None
    state = getattr(cause, "sqlstate", None) or ""
    if state == _PG_FULL:
        return _outage(_DISK, cause, 507)
    if state == _PG_LOCKED:
        return _outage(_LOCKED, cause)
    # Without a state nobody answered: no server, a connection that broke off.
    nobody = error.connection_invalidated or (not state and isinstance(error, (OperationalError, InterfaceError)))
    if nobody or state.startswith(_PG_CLASSES) or state == _PG_READ_ONLY:
        return _outage(NO_ANSWER, cause)
    return None


def _outage(sentence: str, cause: BaseException | None, status: int = 503) -> _Outage:
    lines = str(cause).strip().splitlines() or [type(cause).__name__]
    return _Outage(status, 30 if status == 507 else 5, sentence, lines[0])


def unless_away(action: Callable[[], T]) -> T | None:
    """Return what a look into the store gives; None while the store is away."""
    try:
        return action()
    except Exception as error:
        if outage_of(error) is None:
            raise
        return None


_last_lines: dict[str, float] = {}
_lock = threading.Lock()


def write_line(text: str) -> None:
    """Write a line to stderr with the time; the same line not twice within some seconds."""
    moment = time.monotonic()
    with _lock:
        if moment - _last_lines.get(text, -_QUIET_SECONDS) < _QUIET_SECONDS:
            return
        if len(_last_lines) > 100:
            _last_lines.clear()
        _last_lines[text] = moment
    _LOG.warning("%s %s", format_moment(time.time()), text)


#: The embedded database, in the server's folder.
DATABASE = "rehearsal.sqlite3"
#: The option of a connection that writes.
WRITES = "segjudge_writes"
#: What makes a transaction the only one that writes. The number is any that no other program's lock has.
_EXCLUSIVE = {
    "sqlite": ("BEGIN IMMEDIATE",),
    "postgresql": ("SET LOCAL lock_timeout = '{seconds}s'", "SELECT pg_advisory_xact_lock(99188078)"),
}
#: Seconds until a writer hears that another one holds the database, and anybody that no server answers.
WAIT_SECONDS, _ANSWER_SECONDS = 20, 10


def is_ours(connection: Connection) -> bool:
    """Return whether a database holds tables of this server, of this version or another."""
    if not inspect(connection).has_table(Setting.__tablename__):
        return False
    columns = {column["name"] for column in inspect(connection).get_columns(Setting.__tablename__)}
    query = select(Setting.key).where(Setting.key == "secret")
    return columns == {"key", "value"} and connection.scalar(query) is not None


def drop_tables(database: str) -> None:
    """Drop the server's tables from a database, and no others."""
    url = database_url("", database)
    engine = new_engine(url)
    try:
        with engine.begin() as connection:
            if is_ours(connection):
                Base.metadata.drop_all(connection)
    except DBAPIError as error:
        raise HostError(f"{url.render_as_string()}: cannot be emptied ({str(error.orig).strip()})") from None
    finally:
        engine.dispose()


def database_url(folder: str, database: str) -> URL:
    """Return the URL of a database, or of the one that is embedded in a folder."""
    if not database:
        return URL.create("sqlite", database=os.path.join(folder, DATABASE))
    try:
        url = make_url(database)
    except ArgumentError:
        raise HostError("--database: is not a URL as postgresql://user:password@host/name") from None
    if url.get_backend_name() not in _EXCLUSIVE:
        raise HostError(f"--database {url.render_as_string()}: is neither PostgreSQL nor SQLite")
    return url.set(drivername="postgresql+psycopg") if url.drivername == "postgresql" else url


def new_engine(url: URL) -> Engine:
    """Return an engine; a connection with the option `WRITES` begins its transactions as the only one that writes."""
    sqlite = url.get_backend_name() == "sqlite"
    limits = {"connect_timeout": _ANSWER_SECONDS, "tcp_user_timeout": 1000 * WAIT_SECONDS}
    if sqlite:
        limits = {"timeout": WAIT_SECONDS}
    try:
        # A page's request has a thread of its own, and each thread has at most one connection at a time.
        engine = create_engine(
            url,
            pool_size=8,
            max_overflow=64,
            pool_timeout=WAIT_SECONDS,
            connect_args={key: value for key, value in limits.items() if key not in url.query},
            pool_pre_ping=not sqlite,
        )
    except ImportError:
        raise HostError(f"--database: {url.drivername} is not installed; {install_line('postgres')}") from None
    exclusive = [words.format(seconds=WAIT_SECONDS) for words in _EXCLUSIVE[url.get_backend_name()]]

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        if connection.get_execution_options().get(WRITES):
            for words in exclusive:
                connection.exec_driver_sql(words)

    if sqlite:

        @event.listens_for(engine, "connect")
        def connect(connection: sqlite3.Connection, _record: object) -> None:
            connection.isolation_level = None  # transactions are begun by `begin`, not by the driver
            for pragma in ("journal_mode = WAL", "synchronous = NORMAL", "foreign_keys = ON"):
                connection.execute(f"PRAGMA {pragma}")

    return engine
