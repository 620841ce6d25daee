"""The connections to the rehearsal's database: SQLite, embedded, or PostgreSQL."""

import os
import sqlite3

from sqlalchemy import Connection, Engine, create_engine, event, inspect, select
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError

from segjudge.evaluation_script.files.problems import HostError
from segjudge.system.errors import install_line

from .column_types import Base
from .models import Setting

#: The embedded database, in the rehearsal's folder.
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


def is_rehearsal(connection: Connection) -> bool:
    """Return whether a database holds a rehearsal, of this version or another."""
    if not inspect(connection).has_table(Setting.__tablename__):
        return False
    columns = {column["name"] for column in inspect(connection).get_columns(Setting.__tablename__)}
    query = select(Setting.key).where(Setting.key == "secret")
    return columns == {"key", "value"} and connection.scalar(query) is not None


def forget(database: str) -> None:
    """Drop the rehearsal's tables from a database, and no others."""
    url = database_url("", database)
    engine = new_engine(url)
    try:
        with engine.begin() as connection:
            if is_rehearsal(connection):
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
