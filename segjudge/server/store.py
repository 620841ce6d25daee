"""The server's database: the transactions and every query."""

import os
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple, TypeVar

from sqlalchemy import ColumnElement, SQLColumnExpression, delete, func, inspect, literal, select
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import InstrumentedAttribute, Session

from segjudge.evaluation_script.files.problems import HostError

from .database import WAIT_SECONDS, WRITES, BusyError, database_url, is_ours, new_engine
from .models import Base, ChallengePhase, ChallengePhaseSplit, LeaderboardData, LogLine, Setting, Submission, Team
from .wire import JsonObject, Refusal, format_moment

#: The version of the tables. Whoever changes a table raises it.
SCHEMA = 2
#: Lines of the log that are kept, and those of them that hosts read.
_LOG_LINES, _LOG_LINES_READ = 5000, 1000
Model = TypeVar("Model", bound=Base)


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

    def bar(self, label: str) -> object:
        """Return half the width of a score's error bar; None where it has none."""
        return (self.error or {}).get(f"error_{label}")


class Store:
    """The database. A write holds it alone, and is all or nothing."""

    def __init__(self, folder: str, database: str = "") -> None:
        """`database` is a URL as SQLAlchemy reads it; without one SQLite keeps a file in the folder."""
        self.folder = folder
        self._local = threading.local()
        self._lock = threading.Lock()
        os.makedirs(folder, mode=0o700, exist_ok=True)
        url = database_url(folder, database)
        self.name = url.database if url.get_backend_name() == "sqlite" and url.database else url.render_as_string()
        engine = new_engine(url)
        self._writing = engine.execution_options(**{WRITES: True})
        # SQLite's driver is in autocommit already: nothing here begins a transaction for a read.
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
            elif not is_ours(session.connection()):
                raise HostError(f"{self.name}: holds something else than a rehearsal. Name an empty database")
            settings = {setting.key: setting.value for setting in session.scalars(select(Setting))}
        version = int(settings.get("schema", 1))
        if version != SCHEMA:
            age, remedy = ("an older", "use") if version < SCHEMA else ("a newer", "update segjudge to")
            raise HostError(
                f"{self.name}: was made by {age} version of the rehearsal (schema {version}, this one has {SCHEMA}). "
                f"Begin anew with --reset, which forgets what was, or {remedy} the version that made it"
            )
        if folder != settings["folder"]:
            raise HostError(
                f"{self.name}: belongs to the rehearsal in {settings['folder']}. Name that folder with --data, "
                "or begin anew with --reset"
            )
        return bytes.fromhex(settings["secret"])

    def close(self) -> None:
        """Close all connections."""
        self._writing.dispose()

    # ── writing ──────────────────────────────────────────────────────────────

    @contextmanager
    def write(self) -> Iterator[Session]:
        """Run a transaction beside which no other one writes, or take part in the one that this thread has open."""
        opened: Session | None = getattr(self._local, "session", None)
        if opened is not None:
            yield opened
            return
        if not self._lock.acquire(timeout=WAIT_SECONDS):
            raise BusyError(f"other threads write for {WAIT_SECONDS} seconds")
        try:
            with Session(self._writing, expire_on_commit=False) as session:
                yield from self._transaction(session)
        finally:
            self._lock.release()

    def _transaction(self, session: Session) -> Iterator[Session]:
        """Give a session, and commit it; then, or once it is rolled back, do what is left for afterwards."""
        session.connection()  # begins here, so that nothing is read before the lock is held
        actions: list[tuple[bool, Callable[[], None]]] = []
        self._local.session, self._local.actions = session, actions
        committing = committed = False
        try:
            yield session
            session.flush()
            committing = True
            session.commit()
            committed = True
        except DBAPIError as error:
            if committing and error.connection_invalidated:
                # Nobody knows what came of it: a file without a row goes at the next start, a row needs its file.
                actions.clear()
            raise
        finally:
            self._local.session = None
            reader: Session | None = getattr(self._local, "reader", None)
            if reader is not None:
                reader.expunge_all()  # what was read before is read anew
            if not committed:
                with suppress(DBAPIError):
                    session.rollback()
            for when, action in actions:
                if when is committed:
                    action()

    def run_after(self, action: Callable[[], None], *, committed: bool) -> None:
        """Do something outside the database once the open transaction is committed, or once it is rolled back."""
        self._local.actions.append((committed, action))

    def change(self, model: type[Base], key: object, **values: object) -> None:
        """Set columns of the row with a primary key."""
        with self.write() as session:
            row = session.get_one(model, key)
            for name, value in values.items():
                setattr(row, name, value)

    def remove(self, model: type[Base], *conditions: ColumnElement[bool]) -> None:
        """Delete the rows that meet all conditions."""
        with self.write() as session:
            session.execute(delete(model).where(*conditions))

    # ── reading ──────────────────────────────────────────────────────────────

    @contextmanager
    def share_reads(self) -> Iterator[None]:
        """Let the reads of this thread share a session, in which a row that was read by its key is read once."""
        with Session(self._reading, expire_on_commit=False, autoflush=False) as session:
            self._local.reader, self._local.rows = session, []
            try:
                yield
            finally:
                self._local.reader, self._local.rows = None, []

    @contextmanager
    def _read(self) -> Iterator[Session]:
        """Give the open transaction, so that it sees its own changes, or the shared session, or one for one query."""
        local = self._local
        opened: Session | None = getattr(local, "session", None) or getattr(local, "reader", None)
        if opened is not None:
            yield opened
            return
        with Session(self._reading, expire_on_commit=False) as session:
            yield session

    def get(self, model: type[Model], key: object) -> Model | None:
        """Return the row with a primary key; None where there is none."""
        with self._read() as session:
            row = session.get(model, key)
        if row is not None and getattr(self._local, "reader", None) is not None:
            self._local.rows.append(row)  # a session forgets what nobody refers to
        return row

    def require(self, model: type[Model], key: object, refusal: Refusal | None = None) -> Model:
        """Return the row with a primary key; refuses where there is none, in words of its own or in EvalAI's."""
        row = self.get(model, key)
        if row is None:
            raise refusal or Refusal(404, {"detail": f"{model.__name__} {key} does not exist"})
        return row

    def find_first(self, model: type[Model], *conditions: ColumnElement[bool]) -> Model | None:
        """Return the first row that meets all conditions; None where none does."""
        rows = self.find(model, *conditions, limit=1)
        return rows[0] if rows else None

    def find(
        self,
        model: type[Model],
        *conditions: ColumnElement[bool],
        order: SQLColumnExpression[object] | None = None,
        limit: int | None = None,
    ) -> list[Model]:
        """Return the rows that meet all conditions, by primary key or by another order."""
        by = inspect(model).primary_key if order is None else (order,)
        with self._read() as session:
            return list(session.scalars(select(model).where(*conditions).order_by(*by).limit(limit)))

    def exists(self, *conditions: ColumnElement[bool]) -> bool:
        """Return whether rows of the tables that the conditions name meet all of them."""
        with self._read() as session:
            return session.scalar(select(literal(1)).where(*conditions).limit(1)) is not None

    def count(self, model: type[Base], *conditions: ColumnElement[bool]) -> int:
        """Return how many rows meet all conditions."""
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
        """Return the phase splits of a phase."""
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

    # ── what the server notes for itself ─────────────────────────────────────

    def note_folder(self, folder: str) -> None:
        """Remember a worker's folder elsewhere, so that the next start finds what a killed one left."""
        with self.write() as session:
            session.merge(Setting(key=f"worker {folder}", value=folder))

    def worker_folders(self) -> list[str]:
        """Return the folders that were remembered."""
        return [setting.value for setting in self.find(Setting, Setting.key.startswith("worker "))]

    def forget_folder(self, folder: str) -> None:
        """Forget a folder that is gone."""
        self.remove(Setting, Setting.key == f"worker {folder}")

    def log(self, challenge: int, line: str) -> None:
        """Write into the worker's log, which hosts read."""
        with self.write() as session:
            entry = LogLine(challenge_id=challenge, at=time.time(), line=line)
            session.add(entry)
            session.flush()
            session.execute(delete(LogLine).where(LogLine.id <= entry.id - _LOG_LINES))

    def log_lines(self, challenge: int) -> list[str]:
        """Return the hosted worker's log."""
        lines = self.find(LogLine, LogLine.challenge_id == challenge, order=LogLine.id.desc(), limit=_LOG_LINES_READ)
        return [f"[{format_moment(line.at)}] {line.line}" for line in reversed(lines)]
