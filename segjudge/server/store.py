"""The server's database, SQLite: its outages, connections, transactions, and every query.

An outage, such as a locked database or a full disk, ends by itself and is not a defect.
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
from sqlalchemy.engine import URL
from sqlalchemy.exc import DBAPIError, PendingRollbackError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.orm import InstrumentedAttribute, Session

from segjudge.evaluation_script.files.packed import DISK_FULL
from segjudge.evaluation_script.files.problems import HostError

from .models import Base, ChallengePhase, ChallengePhaseSplit, LeaderboardData, LogLine, Setting, Submission, Team
from .wire import JsonObject, Refusal, format_moment

_Answer = TypeVar("_Answer")
Model = TypeVar("Model", bound=Base)

# ── outages ─────────────────────────────────────────────────────────────────

#: The server's own lines on stderr; a full stream raises no error here.
_LOG = logging.getLogger("segjudge.server")
#: Error numbers of temporary shortages on this machine, other than a full disk.
_SHORT = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN, errno.EROFS, errno.EIO})
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


NO_ANSWER = "The rehearsal's database does not respond."
_LOCKED = "The rehearsal's database is locked by another writer."
_DISK = "The disk of this rehearsal is full."
_MACHINE = "The rehearsal's machine cannot do this now."
#: SQLite's primary results: busy and locked; full; read-only, failing disk, cannot open.
_SQLITE_RESULTS = {5: _LOCKED, 6: _LOCKED, 13: _DISK, 8: NO_ANSWER, 10: NO_ANSWER, 14: NO_ANSWER}


def outage_of(error: BaseException) -> _Outage | None:
    """Return the outage that caused an exception; None for a defect or a caller's fault."""
    sentence = _sentence_of(error)
    if not sentence:
        return None
    cause = error.orig if isinstance(error, DBAPIError) else error
    lines = str(cause).strip().splitlines() or [type(cause).__name__]
    status, retry_after = (507, 30) if sentence == _DISK else (503, 5)
    return _Outage(status, retry_after, sentence, lines[0])


def _sentence_of(error: BaseException) -> str:
    if isinstance(error, BusyError):
        return _LOCKED
    if isinstance(error, (PoolTimeout, PendingRollbackError)):
        return NO_ANSWER
    if isinstance(error, DBAPIError):
        return _SQLITE_RESULTS.get(getattr(error.orig, "sqlite_errorcode", 0) & 0xFF, "")
    number = error.errno if isinstance(error, OSError) else None
    if number in DISK_FULL:
        return _DISK
    return _MACHINE if number in _SHORT or isinstance(error, MemoryError) else ""


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
#: The seconds until a writer learns that another one holds the database.
_WAIT_SECONDS = 20


def _new_engine(path: str) -> Engine:
    """Return an engine; connections with the option `_WRITES` begin exclusive write transactions."""
    # A page's request has a thread of its own, and each thread has at most one connection at a time.
    engine = create_engine(
        URL.create("sqlite", database=path),
        pool_size=8,
        max_overflow=64,
        pool_timeout=_WAIT_SECONDS,
        connect_args={"timeout": _WAIT_SECONDS},
    )

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        if connection.get_execution_options().get(_WRITES):
            connection.exec_driver_sql("BEGIN IMMEDIATE")

    @event.listens_for(engine, "connect")
    def connect(connection: sqlite3.Connection, _record: object) -> None:
        connection.isolation_level = None  # `begin` starts transactions, not the driver
        for pragma in ("journal_mode = WAL", "synchronous = NORMAL", "foreign_keys = ON"):
            connection.execute(f"PRAGMA {pragma}")

    return engine


# ── the store ──────────────────────────────────────────────────────────────────

#: The version of the tables; raise it with every change of a table.
SCHEMA = 2
#: The number of a split's newest rows that a leaderboard looks at, as on EvalAI.
_BOARD_ROWS = 10_000
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


class Store:
    """The database. Writes are exclusive and atomic."""

    def __init__(self, folder: str) -> None:
        """Open the database in a folder, and create it if there is none."""
        self.folder = folder
        self._local = threading.local()
        self._lock = threading.Lock()
        os.makedirs(folder, mode=0o700, exist_ok=True)
        self.name = os.path.join(folder, DATABASE)
        self._reading = _new_engine(self.name)
        self._writing = self._reading.execution_options(**{_WRITES: True})
        try:
            self.secret = self._open_tables()
        except BaseException as error:
            self.close()
            if not isinstance(error, DBAPIError):
                raise
            raise HostError(f"{self.name}: cannot be used as a database ({str(error.orig).strip()})") from None

    def _open_tables(self) -> bytes:
        """Create the tables, or check those that exist; return the secret with which addresses are signed."""
        with self.write() as session:
            tables = set(inspect(session.connection()).get_table_names())
            if not tables:
                Base.metadata.create_all(session.connection())
                session.add(Setting(key="schema", value=str(SCHEMA)))
                session.add(Setting(key="secret", value=secrets.token_hex(32)))
            has_settings = not tables or Setting.__tablename__ in tables
            rows = session.scalars(select(Setting)) if has_settings else ()
            settings = {setting.key: setting.value for setting in rows}
        if "secret" not in settings:
            raise HostError(f"{self.name}: holds something other than a rehearsal. Name an empty folder with --data")
        version = int(settings.get("schema", 1))
        if version != SCHEMA:
            age, remedy = ("an older", "use") if version < SCHEMA else ("a newer", "update segjudge to")
            raise HostError(
                f"{self.name}: was made by {age} version of the rehearsal (schema {version}, this one has {SCHEMA}). "
                f"Start over with --reset, which deletes what is stored, or {remedy} the version that made it"
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
        committed = False
        try:
            yield session
            session.commit()
            committed = True
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

    def run_after(self, run: Callable[[], None], *, committed: bool) -> None:
        """Defer an action outside the database until the open transaction is committed or rolled back."""
        self._local.actions.append(_Deferred(run, committed))

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

    def board_entries(self, phase_split: int, statuses: tuple[str, ...], *, private: bool = False) -> list[BoardEntry]:
        """Return the scores on a phase split of unflagged submissions with one of the statuses, oldest first.

        Private ones are included only on request. As on EvalAI, only the newest rows count.
        """
        data = LeaderboardData
        public = [] if private else [Submission.is_public.is_(True)]
        query = (
            select(
                data.id, data.result, data.error, Submission.id, Submission.team_id, Team.team_name,
                Submission.method_name, Submission.is_baseline, Submission.submitted_at,
            )
            .join(Submission, Submission.id == data.submission_id)
            .join(Team, Team.id == Submission.team_id)
            .where(data.phase_split_id == phase_split, data.disabled.is_(False), Submission.status.in_(statuses))
            .where(Submission.is_flagged.is_(False), *public)
            .order_by(data.id.desc())
            .limit(_BOARD_ROWS)
        )  # fmt: skip
        with self._read() as session:
            return [BoardEntry(*row) for row in session.execute(query)][::-1]

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
