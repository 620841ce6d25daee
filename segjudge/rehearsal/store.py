"""The rehearsal's memory: one SQLite file and a folder of files with names of our own.

No name that came in a request is ever a path: a file lies under its random id.
"""

from __future__ import annotations

import os
import secrets
import shutil
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO, Any

_TABLES = """
CREATE TABLE IF NOT EXISTS settings (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS users (
  id INTEGER PRIMARY KEY, username TEXT UNIQUE NOT NULL, email TEXT NOT NULL, password TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS tokens (
  hash TEXT PRIMARY KEY, user_id INTEGER NOT NULL REFERENCES users, kind TEXT NOT NULL, expires_at REAL NOT NULL);
CREATE TABLE IF NOT EXISTS teams (
  id INTEGER PRIMARY KEY, kind TEXT NOT NULL, team_name TEXT NOT NULL, team_url TEXT NOT NULL DEFAULT '',
  created_by INTEGER NOT NULL REFERENCES users, UNIQUE (kind, team_name));
CREATE TABLE IF NOT EXISTS members (
  team_id INTEGER NOT NULL REFERENCES teams, user_id INTEGER NOT NULL REFERENCES users, PRIMARY KEY (team_id, user_id));
CREATE TABLE IF NOT EXISTS challenges (
  id INTEGER PRIMARY KEY, host_team INTEGER NOT NULL REFERENCES teams, repository TEXT UNIQUE NOT NULL,
  queue TEXT NOT NULL, config TEXT NOT NULL, image TEXT, script TEXT NOT NULL, version INTEGER NOT NULL DEFAULT 1);
CREATE TABLE IF NOT EXISTS phases (
  id INTEGER PRIMARY KEY, challenge_id INTEGER NOT NULL REFERENCES challenges, config_id INTEGER NOT NULL,
  codename TEXT NOT NULL, slug TEXT NOT NULL, config TEXT NOT NULL, annotation TEXT,
  by_client INTEGER NOT NULL DEFAULT 0, UNIQUE (challenge_id, config_id));
CREATE TABLE IF NOT EXISTS leaderboards (
  id INTEGER PRIMARY KEY, challenge_id INTEGER NOT NULL REFERENCES challenges, config_id INTEGER NOT NULL,
  schema TEXT NOT NULL, UNIQUE (challenge_id, config_id));
CREATE TABLE IF NOT EXISTS splits (
  id INTEGER PRIMARY KEY, challenge_id INTEGER NOT NULL REFERENCES challenges, config_id INTEGER NOT NULL,
  name TEXT NOT NULL, codename TEXT NOT NULL, UNIQUE (challenge_id, config_id));
CREATE TABLE IF NOT EXISTS phase_splits (
  id INTEGER PRIMARY KEY, phase_id INTEGER NOT NULL REFERENCES phases, leaderboard_id INTEGER NOT NULL,
  split_id INTEGER NOT NULL REFERENCES splits, visibility INTEGER NOT NULL, decimals INTEGER NOT NULL,
  descending INTEGER NOT NULL, UNIQUE (phase_id, leaderboard_id, split_id));
CREATE TABLE IF NOT EXISTS participants (
  challenge_id INTEGER NOT NULL REFERENCES challenges, team_id INTEGER NOT NULL REFERENCES teams,
  PRIMARY KEY (challenge_id, team_id));
CREATE TABLE IF NOT EXISTS submissions (
  id INTEGER PRIMARY KEY, phase_id INTEGER NOT NULL REFERENCES phases, team_id INTEGER NOT NULL REFERENCES teams,
  created_by INTEGER NOT NULL REFERENCES users, status TEXT NOT NULL, input_file TEXT, submission_input_file TEXT,
  stdout_file TEXT, stderr_file TEXT, environment_log_file TEXT, submission_result_file TEXT, metadata_file TEXT,
  method_name TEXT NOT NULL DEFAULT '', method_description TEXT NOT NULL DEFAULT '',
  project_url TEXT NOT NULL DEFAULT '', publication_url TEXT NOT NULL DEFAULT '', attributes TEXT,
  is_public INTEGER NOT NULL DEFAULT 0, is_flagged INTEGER NOT NULL DEFAULT 0, is_baseline INTEGER NOT NULL DEFAULT 0,
  submitted_at REAL NOT NULL, started_at REAL, completed_at REAL, rerun_resumed_at REAL,
  job_name TEXT NOT NULL DEFAULT '[]', deaths INTEGER NOT NULL DEFAULT 0);
CREATE INDEX IF NOT EXISTS submissions_of_phase ON submissions (phase_id, team_id, status);
CREATE TABLE IF NOT EXISTS results (
  id INTEGER PRIMARY KEY, submission_id INTEGER NOT NULL REFERENCES submissions,
  phase_split_id INTEGER NOT NULL REFERENCES phase_splits, result TEXT NOT NULL, error TEXT, disabled INTEGER NOT NULL);
CREATE INDEX IF NOT EXISTS results_of_split ON results (phase_split_id, disabled);
CREATE INDEX IF NOT EXISTS results_of_submission ON results (submission_id);
CREATE TABLE IF NOT EXISTS files (id TEXT PRIMARY KEY, name TEXT NOT NULL, size INTEGER NOT NULL, kind TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS messages (
  id INTEGER PRIMARY KEY, queue TEXT NOT NULL, body TEXT NOT NULL, visible_at REAL NOT NULL, sent_at REAL NOT NULL,
  received INTEGER NOT NULL DEFAULT 0);
CREATE INDEX IF NOT EXISTS messages_of_queue ON messages (queue, visible_at);
CREATE TABLE IF NOT EXISTS receipts (handle TEXT PRIMARY KEY, message_id INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS uploads (
  id TEXT PRIMARY KEY, phase_id INTEGER NOT NULL, submission_id INTEGER, user_id INTEGER NOT NULL, name TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS parts (
  upload_id TEXT NOT NULL, number INTEGER NOT NULL, file TEXT, etag TEXT, PRIMARY KEY (upload_id, number));
CREATE TABLE IF NOT EXISTS log (id INTEGER PRIMARY KEY, challenge_id INTEGER, at REAL, line TEXT NOT NULL);
"""
_BLOCK = 1 << 18
#: How much of a file is shown on a page.
SHOWN = 64 << 10


class Store:
    """One connection a thread; a write holds the database alone, and is all or nothing."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self._files = os.path.join(folder, "files")
        os.makedirs(self._files, mode=0o700, exist_ok=True)
        self._local = threading.local()
        self._lock = threading.Lock()
        with self._lock:
            self._db().executescript(_TABLES)
        self.secret = self._secret()

    def _db(self) -> sqlite3.Connection:
        held: sqlite3.Connection | None = getattr(self._local, "db", None)
        if held is None:
            path = os.path.join(self.folder, "rehearsal.sqlite3")
            held = sqlite3.connect(path, timeout=30, isolation_level=None)
            held.row_factory = sqlite3.Row
            held.execute("PRAGMA journal_mode = WAL")
            held.execute("PRAGMA synchronous = NORMAL")
            held.execute("PRAGMA foreign_keys = ON")
            self._local.db = held
        return held

    def _secret(self) -> bytes:
        with self.write() as db:
            db.execute("INSERT OR IGNORE INTO settings VALUES ('secret', ?)", (secrets.token_hex(32),))
            return bytes.fromhex(db.execute("SELECT value FROM settings WHERE key = 'secret'").fetchone()[0])

    @contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """A transaction; no other write happens meanwhile."""
        db = self._db()
        if db.in_transaction:
            yield db  # part of the one that is open
            return
        # Files that are gone, and those that came, once it is certain whether the transaction is.
        self._local.dropped, self._local.kept = [], []
        with self._lock:
            db.execute("BEGIN IMMEDIATE")
            try:
                yield db
            except BaseException:
                db.execute("ROLLBACK")
                self._remove(self._local.kept)
                raise
            db.execute("COMMIT")
        self._remove(self._local.dropped)

    def _remove(self, numbers: list[str]) -> None:
        for number in numbers:
            with suppress(OSError):
                os.remove(os.path.join(self._files, number))

    def rows(self, sql: str, *values: Any) -> list[sqlite3.Row]:
        """What a query finds."""
        return self._db().execute(sql, values).fetchall()

    def row(self, sql: str, *values: Any) -> sqlite3.Row | None:
        """The first thing that a query finds."""
        found: sqlite3.Row | None = self._db().execute(sql, values).fetchone()
        return found

    def value(self, sql: str, *values: Any) -> Any:
        """The first value of the first row."""
        found = self.row(sql, *values)
        return found[0] if found is not None else None

    def keep(self, source: IO[bytes] | bytes, name: str, kind: str) -> str:
        """Store a file, streamed; its id."""
        number = secrets.token_hex(16)
        path = os.path.join(self._files, number)
        with open(path, "xb") as target:
            if isinstance(source, bytes):
                target.write(source)
            else:
                shutil.copyfileobj(source, target, _BLOCK)
            size = target.tell()
        with self.write() as db:
            self._local.kept.append(number)
            db.execute("INSERT INTO files VALUES (?, ?, ?, ?)", (number, os.path.basename(name)[:200], size, kind))
        return number

    def joined(self, numbers: list[str], name: str) -> str:
        """Several files as one; they are gone then."""
        first = self.keep(b"", name, "input_file")
        with open(self.path(first), "ab") as target:
            for number in numbers:
                with open(self.path(number), "rb") as source:
                    shutil.copyfileobj(source, target, _BLOCK)
            size = target.tell()
        with self.write() as db:
            db.execute("UPDATE files SET size = ? WHERE id = ?", (size, first))
        for number in numbers:
            self.drop(number)
        return first

    def path(self, number: str) -> str:
        """Where a file of the table lies; raises KeyError for any other name."""
        if not self.row("SELECT 1 FROM files WHERE id = ?", number):
            raise KeyError(number)
        return os.path.join(self._files, number)

    def text(self, number: str | None) -> str:
        """The beginning of a file, for people."""
        if not number:
            return ""
        with open(self.path(number), "rb") as file:
            return file.read(SHOWN).decode("utf-8", "replace")

    def drop(self, number: str | None) -> None:
        """Forget a file."""
        if number:
            with self.write() as db:
                self._local.dropped.append(number)
                db.execute("DELETE FROM files WHERE id = ?", (number,))

    def note_folder(self, who: str, folder: str) -> None:
        """Remember a folder elsewhere, so that the next start finds what a killed one left."""
        with self.write() as db:
            db.execute("INSERT OR IGNORE INTO settings VALUES (?, ?)", (f"{who} {folder}", folder))

    def noted(self, who: str) -> list[str]:
        """The folders that were remembered."""
        return [row["value"] for row in self.rows("SELECT value FROM settings WHERE key LIKE ?", f"{who} %")]

    def unnote(self, who: str, folder: str) -> None:
        """A folder is gone."""
        with self.write() as db:
            db.execute("DELETE FROM settings WHERE key = ?", (f"{who} {folder}",))

    def note(self, challenge: int, line: str) -> None:
        """Write into the worker's log, which hosts read."""
        with self.write() as db:
            db.execute("INSERT INTO log (challenge_id, at, line) VALUES (?, ?, ?)", (challenge, time.time(), line))
            db.execute("DELETE FROM log WHERE id <= (SELECT max(id) FROM log) - 5000")
