"""The server's database, SQLite or PostgreSQL: its outages, connections, transactions, and every query.

An outage, such as an unreachable or locked database or a full disk, ends by itself and is not a defect.
"""

import errno
import logging
import os
import secrets
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from sqlalchemy import (
    ColumnElement,
    Connection,
    Engine,
    SQLColumnExpression,
    create_engine,
    delete,
    event,
    func,
    inspect,
    literal,
    select,
)
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, InterfaceError, OperationalError, PendingRollbackError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.orm import InstrumentedAttribute, Session

from segjudge.evaluation_script.files.packed import DISK_FULL
from segjudge.evaluation_script.files.problems import HostError
from segjudge.system.extras import make_error

from .models import Base, ChallengePhase, ChallengePhaseSplit, LeaderboardData, LogLine, Setting, Submission, Team
from .wire import JsonObject, Refusal, format_moment

_Answer = TypeVar("_Answer")
Model = TypeVar("Model", bound=Base)

# ── outages ─────────────────────────────────────────────────────────────────

#: The server's own lines on stderr; a full stream raises no error here.
_LOG = logging.getLogger("segjudge.server")
#: Error numbers of temporary shortages on this machine, other than a full disk.
_SHORT = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN, errno.EROFS, errno.EIO})
#: PostgreSQL's states: for a full disk; classes for a lost connection, too few resources, an operator's intervention, a
#: system error; for a read-only server.
_PG_FULL, _PG_CLASSES, _PG_READ_ONLY = "53100", ("08", "53", "57", "58"), "25006"
#: PostgreSQL's state if a lock was not free in time.
_PG_LOCKED = "55P03"
#: SQLite's primary results: busy and locked; full; read-only, failing disk, cannot open.
_SQLITE_LOCKED, _SQLITE_FULL, _SQLITE_AWAY = (5, 6), 13, (8, 10, 14)
#: The seconds for which a repeated line is not logged.
_QUIET_SECONDS = 5.0


class BusyError(Exception):
    """Raised when other writers of this process held the database for too long."""


@dataclass(frozen=True)
class _Outage:
    """An outage: a sentence for everybody, and the reason for the operator."""

    status: int
    #: The seconds after which to try again.
    retry_after: int
    sentence: str
    reason: str


#: The message to everybody while the database is unreachable.
NO_ANSWER = "The rehearsal's database does not respond."
_LOCKED = "The rehearsal's database is locked by another writer."
_DISK = "The disk of this rehearsal is full."
_MACHINE = "The rehearsal's machine cannot do this now."


def outage_of(error: BaseException) -> _Outage | None:
    """Return the outage that caused an exception; None for a defect or a caller's fault."""
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
    # Without a state, there was no answer: no server, or an interrupted connection.
    nobody = error.connection_invalidated or (not state and isinstance(error, (OperationalError, InterfaceError)))
    if nobody or state.startswith(_PG_CLASSES) or state == _PG_READ_ONLY:
        return _outage(NO_ANSWER, cause)
    return None


def _outage(sentence: str, cause: BaseException | None, status: int = 503) -> _Outage:
    lines = str(cause).strip().splitlines() or [type(cause).__name__]
    return _Outage(status, 30 if status == 507 else 5, sentence, lines[0])


def unless_away(action: Callable[[], _Answer]) -> _Answer | None:
    """Return the result of a read of the store; None during an outage."""
    try:
        return action()
    except Exception as error:
        if outage_of(error) is None:
            raise
        return None


_last_lines: dict[str, float] = {}
_lock = threading.Lock()


def write_line(text: str) -> None:
    """Write a line to stderr with the time; repeated lines are skipped for some seconds."""
    moment = time.monotonic()
    with _lock:
        if moment - _last_lines.get(text, -_QUIET_SECONDS) < _QUIET_SECONDS:
            return
        if len(_last_lines) > 100:
            _last_lines.clear()
        _last_lines[text] = moment
    _LOG.warning("%s %s", format_moment(time.time()), text)


# ── connections ────────────────────────────────────────────────────────────────

#: The embedded database, in the server's folder.
DATABASE = "rehearsal.sqlite3"
#: The option of a connection that writes.
_WRITES = "segjudge_writes"
#: The statements that make a transaction the only writer. The number is arbitrary, but no other program locks it.
_EXCLUSIVE = {
    "sqlite": ("BEGIN IMMEDIATE",),
    "postgresql": ("SET LOCAL lock_timeout = '{seconds}s'", "SELECT pg_advisory_xact_lock(99188078)"),
}
#: The seconds until a writer learns that another one holds the database, and until anybody learns that no server
#: answers.
_WAIT_SECONDS, _ANSWER_SECONDS = 20, 10


def _is_ours(connection: Connection) -> bool:
    """Return whether a database holds tables of this server, of this version or another."""
    if not inspect(connection).has_table(Setting.__tablename__):
        return False
    columns = {column["name"] for column in inspect(connection).get_columns(Setting.__tablename__)}
    query = select(Setting.key).where(Setting.key == "secret")
    return columns == {"key", "value"} and connection.scalar(query) is not None


def drop_tables(database: str) -> None:
    """Drop the server's tables from a database, and no others."""
    url = _database_url("", database)
    engine = _new_engine(url)
    try:
        with engine.begin() as connection:
            if _is_ours(connection):
                Base.metadata.drop_all(connection)
    except DBAPIError as error:
        raise HostError(f"{url.render_as_string()}: cannot be emptied ({str(error.orig).strip()})") from None
    finally:
        engine.dispose()


def _database_url(folder: str, database: str) -> URL:
    """Return the URL of a database, or of the one that is embedded in a folder."""
    if not database:
        return URL.create("sqlite", database=os.path.join(folder, DATABASE))
    try:
        url = make_url(database)
    except ArgumentError:
        raise HostError("--database: is not a URL such as postgresql://user:password@host/name") from None
    if url.get_backend_name() not in _EXCLUSIVE:
        raise HostError(f"--database {url.render_as_string()}: is neither PostgreSQL nor SQLite")
    return url.set(drivername="postgresql+psycopg") if url.drivername == "postgresql" else url


def _new_engine(url: URL) -> Engine:
    """Return an engine; connections with the option `_WRITES` begin exclusive write transactions."""
    sqlite = url.get_backend_name() == "sqlite"
    limits = {"connect_timeout": _ANSWER_SECONDS, "tcp_user_timeout": 1000 * _WAIT_SECONDS}
    if sqlite:
        limits = {"timeout": _WAIT_SECONDS}
    try:
        # A page's request has a thread of its own, and each thread has at most one connection at a time.
        engine = create_engine(
            url,
            pool_size=8,
            max_overflow=64,
            pool_timeout=_WAIT_SECONDS,
            connect_args={key: value for key, value in limits.items() if key not in url.query},
            pool_pre_ping=not sqlite,
        )
    except ImportError:
        driver = url.get_driver_name()
        if driver == "psycopg":
            raise make_error("postgres", f"--database {url.get_backend_name()}://…", driver) from None
        fault = f"--database: {driver}, the driver of {url.drivername}, is not installed"
        raise HostError(f"{fault}; install it, or write postgresql:// to use psycopg") from None
    exclusive = [statement.format(seconds=_WAIT_SECONDS) for statement in _EXCLUSIVE[url.get_backend_name()]]

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        if connection.get_execution_options().get(_WRITES):
            for statement in exclusive:
                connection.exec_driver_sql(statement)

    if sqlite:

        @event.listens_for(engine, "connect")
        def connect(connection: sqlite3.Connection, _record: object) -> None:
            connection.isolation_level = None  # `begin` starts transactions, not the driver
            for pragma in ("journal_mode = WAL", "synchronous = NORMAL", "foreign_keys = ON"):
                connection.execute(f"PRAGMA {pragma}")

    return engine


# ── the store ──────────────────────────────────────────────────────────────────

#: The version of the tables; raise it with every change of a table.
SCHEMA = 2
#: The number of log lines that are kept, and of those that hosts read.
_LOG_LINES, _LOG_LINES_READ = 5000, 1000


class BoardEntry(NamedTuple):
    """A candidate for a leaderboard: scores with their submission and its team."""

    id: int
    result: JsonObject
    error: JsonObject | None
    submission: int
    team_id: int
    team_name: str
    method_name: str
    is_baseline: bool
    submitted_at: float

    def error_bar(self, label: str) -> object:
        """Return half the width of a score's error bar; None where it has none."""
        return (self.error or {}).get(f"error_{label}")


@dataclass(frozen=True)
class _Deferred:
    """An action that waits for the end of a transaction."""

    run: Callable[[], None]
    #: Whether to run after a commit; otherwise after a rollback.
    committed: bool
    #: Runs in the next transaction instead, if the outcome of this one is unknown.
    check: Callable[[], None]


class Store:
    """The database. Writes are exclusive and atomic."""

    def __init__(self, folder: str, database: str = "") -> None:
        """Open the database at a URL of SQLAlchemy's form, or else SQLite's file in the folder."""
        self.folder = folder
        self._local = threading.local()
        self._lock = threading.Lock()
        #: Checks of transactions whose connection was lost while they committed.
        self._checks: list[Callable[[], None]] = []
        os.makedirs(folder, mode=0o700, exist_ok=True)
        url = _database_url(folder, database)
        self.name = url.database if url.get_backend_name() == "sqlite" and url.database else url.render_as_string()
        engine = _new_engine(url)
        self._writing = engine.execution_options(**{_WRITES: True})
        # SQLite's driver is already in autocommit: a read begins no transaction.
        autocommit = url.get_backend_name() != "sqlite"
        self._reading = engine.execution_options(isolation_level="AUTOCOMMIT") if autocommit else engine
        try:
            self.secret = self._open_tables(os.path.realpath(folder) if database else "")
        except BaseException as error:
            self.close()
            if not isinstance(error, DBAPIError):
                raise
            raise HostError(f"{self.name}: cannot be used as a database ({str(error.orig).strip()})") from None

    def _open_tables(self, folder: str) -> bytes:
        """Create the tables, or check those that exist; return the secret with which addresses are signed."""
        with self.write() as session:
            tables = set(inspect(session.connection()).get_table_names())
            if not tables:
                Base.metadata.create_all(session.connection())
                session.add(Setting(key="schema", value=str(SCHEMA)))
                session.add(Setting(key="folder", value=folder))
                session.add(Setting(key="secret", value=secrets.token_hex(32)))
            elif not _is_ours(session.connection()):
                raise HostError(f"{self.name}: holds something other than a rehearsal. Name an empty database")
            settings = {setting.key: setting.value for setting in session.scalars(select(Setting))}
        version = int(settings.get("schema", 1))
        if version != SCHEMA:
            age, remedy = ("an older", "use") if version < SCHEMA else ("a newer", "update segjudge to")
            raise HostError(
                f"{self.name}: was made by {age} version of the rehearsal (schema {version}, this one has {SCHEMA}). "
                f"Start over with --reset, which deletes what is stored, or {remedy} the version that made it"
            )
        if folder != settings["folder"]:
            raise HostError(
                f"{self.name}: belongs to the rehearsal in {settings['folder']}. Name that folder with --data, "
                "or start over with --reset"
            )
        return bytes.fromhex(settings["secret"])

    def close(self) -> None:
        self._writing.dispose()

    # ── writing ──────────────────────────────────────────────────────────────

    @contextmanager
    def write(self) -> Iterator[Session]:
        """Run an exclusive write transaction, or join the one that this thread has open."""
        opened: Session | None = getattr(self._local, "session", None)
        if opened is not None:
            yield opened
            return
        if not self._lock.acquire(timeout=_WAIT_SECONDS):
            raise BusyError(f"other threads write for {_WAIT_SECONDS} seconds")
        try:
            with Session(self._writing, expire_on_commit=False) as session:
                yield from self._open_transaction(session)
        finally:
            self._lock.release()

    def _open_transaction(self, session: Session) -> Iterator[Session]:
        """Yield a session and commit it; after the commit or rollback, run the deferred actions."""
        session.connection()  # begins here, so that no row is read before the lock
        actions: list[_Deferred] = []
        self._local.session, self._local.actions = session, actions
        committing = committed = False
        try:
            while self._checks:  # the holder of the lock sees the last transaction's outcome
                self._checks[-1]()
                self._checks.pop()
            yield session
            session.flush()
            committing = True
            session.commit()
            committed = True
        except DBAPIError as error:
            if committing and error.connection_invalidated:
                # Its outcome is unknown: the next transaction checks it, or the next start.
                self._checks += [action.check for action in actions]
                actions.clear()
            raise
        finally:
            self._local.session = None
            reader: Session | None = getattr(self._local, "reader", None)
            if reader is not None:
                reader.expunge_all()  # earlier reads are repeated
            if not committed:
                with suppress(DBAPIError):
                    session.rollback()
            for action in actions:
                if action.committed is committed:
                    action.run()

    def run_after(self, run: Callable[[], None], *, committed: bool, check: Callable[[], None]) -> None:
        """Defer an action outside the database until the open transaction is committed or rolled back.

        If the connection is lost while it commits, `check` runs in the next transaction instead.
        """
        self._local.actions.append(_Deferred(run, committed, check))

    def change(self, model: type[Base], key: object, **values: object) -> None:
        with self.write() as session:
            row = session.get_one(model, key)
            for name, value in values.items():
                setattr(row, name, value)

    def remove(self, model: type[Base], *conditions: ColumnElement[bool]) -> None:
        with self.write() as session:
            session.execute(delete(model).where(*conditions))

    # ── reading ──────────────────────────────────────────────────────────────

    @contextmanager
    def share_reads(self) -> Iterator[None]:
        """Share one session among this thread's reads; it reads each row by its key once."""
        with Session(self._reading, expire_on_commit=False, autoflush=False) as session:
            self._local.reader, self._local.rows = session, []
            try:
                yield
            finally:
                self._local.reader, self._local.rows = None, []

    @contextmanager
    def _read(self) -> Iterator[Session]:
        """Yield the open transaction's session, else the shared session, else one for a single query."""
        local = self._local
        opened: Session | None = getattr(local, "session", None) or getattr(local, "reader", None)
        if opened is not None:
            yield opened
            return
        with Session(self._reading, expire_on_commit=False) as session:
            yield session

    def get(self, model: type[Model], key: object) -> Model | None:
        with self._read() as session:
            row = session.get(model, key)
        if row is not None and getattr(self._local, "reader", None) is not None:
            self._local.rows.append(row)  # a session forgets unreferenced objects
        return row

    def require(self, model: type[Model], key: object, refusal: Refusal | None = None) -> Model:
        """Return the row with a primary key; raises a refusal in EvalAI's or given words without one."""
        row = self.get(model, key)
        if row is None:
            raise refusal or Refusal(404, {"detail": f"{model.__name__} {key} does not exist"})
        return row

    def find_first(self, model: type[Model], *conditions: ColumnElement[bool]) -> Model | None:
        rows = self.find(model, *conditions, limit=1)
        return rows[0] if rows else None

    def find(
        self,
        model: type[Model],
        *conditions: ColumnElement[bool],
        order: SQLColumnExpression[object] | None = None,
        limit: int | None = None,
    ) -> list[Model]:
        by = inspect(model).primary_key if order is None else (order,)
        with self._read() as session:
            return list(session.scalars(select(model).where(*conditions).order_by(*by).limit(limit)))

    def exists(self, *conditions: ColumnElement[bool]) -> bool:
        with self._read() as session:
            return session.scalar(select(literal(1)).where(*conditions).limit(1)) is not None

    def count(self, model: type[Base], *conditions: ColumnElement[bool]) -> int:
        with self._read() as session:
            return session.scalar(select(func.count()).select_from(model).where(*conditions)) or 0

    def count_by(self, column: InstrumentedAttribute[str], *conditions: ColumnElement[bool]) -> dict[str, int]:
        """Return how many rows that meet all conditions have each value of a column, the newest value first."""
        newest = func.max(inspect(column.class_).primary_key[0])
        query = select(column, func.count()).where(*conditions).group_by(column).order_by(newest.desc())
        with self._read() as session:
            return {row[0]: row[1] for row in session.execute(query)}

    def phases(self, challenge: int) -> list[ChallengePhase]:
        """Return the phases of a challenge, in the order of the YAML's numbers."""
        return self.find(ChallengePhase, ChallengePhase.challenge_id == challenge, order=ChallengePhase.config_id)

    def splits_of(self, phase: int) -> list[ChallengePhaseSplit]:
        return self.find(ChallengePhaseSplit, ChallengePhaseSplit.phase_id == phase)

    def board_entries(self, phase_split: int, statuses: tuple[str, ...]) -> list[BoardEntry]:
        """Return the scores on a phase split of public, unflagged submissions with one of the statuses."""
        data = LeaderboardData
        query = (
            select(
                data.id, data.result, data.error, Submission.id, Submission.team_id, Team.team_name,
                Submission.method_name, Submission.is_baseline, Submission.submitted_at,
            )
            .join(Submission, Submission.id == data.submission_id)
            .join(Team, Team.id == Submission.team_id)
            .where(data.phase_split_id == phase_split, data.disabled.is_(False), Submission.status.in_(statuses))
            .where(Submission.is_public.is_(True), Submission.is_flagged.is_(False))
            .order_by(data.id)
        )  # fmt: skip
        with self._read() as session:
            return [BoardEntry(*row) for row in session.execute(query)]

    # ── the server's own notes ───────────────────────────────────────────────

    def note_folder(self, folder: str) -> None:
        """Record a worker's folder, so that the next start can remove the files of a killed worker."""
        with self.write() as session:
            session.merge(Setting(key=f"worker {folder}", value=folder))

    def worker_folders(self) -> list[str]:
        return [setting.value for setting in self.find(Setting, Setting.key.startswith("worker "))]

    def forget_folder(self, folder: str) -> None:
        self.remove(Setting, Setting.key == f"worker {folder}")

    def log(self, challenge: int, line: str) -> None:
        """Write to the worker's log, which hosts can read."""
        with self.write() as session:
            entry = LogLine(challenge_id=challenge, written_at=time.time(), line=line)
            session.add(entry)
            session.flush()
            session.execute(delete(LogLine).where(LogLine.id <= entry.id - _LOG_LINES))

    def log_lines(self, challenge: int) -> list[str]:
        lines = self.find(LogLine, LogLine.challenge_id == challenge, order=LogLine.id.desc(), limit=_LOG_LINES_READ)
        return [f"[{format_moment(line.written_at)}] {line.line}" for line in reversed(lines)]
