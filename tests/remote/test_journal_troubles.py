"""A journal that is replaced, damaged, locked or of another version, and the locks of its owners."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import stat
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest

from segjudge.remote_challenge_evaluation import journal
from tests.calls import outcome


class Machine:
    """A folder with a journal, a clock that nobody waits for, and what the journal says."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.path = folder, folder / journal.NAME
        self.said: list[str] = []
        self.now = 0.0

    def open(self) -> Any:
        return journal.Journal(str(self.folder), lambda: self.said.append("looks"), self.said.append)

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    made, mask = Machine(tmp_path / "machine"), os.umask(0o077)
    clock = SimpleNamespace(
        monotonic=lambda: made.now, sleep=made.sleep, strftime=lambda form: form.replace("%", ""), time=lambda: 1000.0
    )
    monkeypatch.setattr(journal, "time", clock)
    monkeypatch.setattr(journal.os, "getpid", lambda: 7)
    yield made
    os.umask(mask)


def test_a_journal_that_was_replaced_is_opened_anew(machine: Machine) -> None:
    assert not journal.Journal.problem_in(str(machine.folder))
    item = machine.open()
    assert not journal.Journal.problem_in(str(machine.folder))
    modes = {path.name: stat.filemode(path.stat().st_mode) for path in machine.folder.iterdir()}
    files = ("journal.sqlite3", "journal.sqlite3-shm", "journal.sqlite3-wal")
    assert modes == {**dict.fromkeys(files, "-rw-------"), "locks": "drwx------"}
    machine.path.rename(machine.folder / "away")
    item.file.follow_replacement()
    item.file.follow_replacement()
    assert machine.said == [f"{machine.path} was replaced; the worker now uses the new one"]
    assert machine.path.exists()
    item.close()


def test_a_damaged_journal_is_renamed(machine: Machine) -> None:
    machine.open().close()
    machine.path.write_bytes(b"no journal" * 500)
    damaged, renamed = f"{machine.path} is damaged (file is not a database)", f"{machine.path}.damaged-Ymd-HMS-7"
    assert str(journal.Journal.problem_in(str(machine.folder))) == damaged
    item = machine.open()
    assert machine.said == [f"{damaged}; it was renamed to {renamed}. The sweep recovers unfinished submissions"]
    assert Path(renamed).read_bytes()[:10] == b"no journal"
    item.close()
    page: Any = SimpleNamespace(
        execute=lambda query: SimpleNamespace(
            fetchone=lambda: [journal.VERSION if "version" in query else "row 3 is missing"]
        )
    )
    assert outcome(lambda: journal._check(page, "f")) == "DamagedError: f/journal.sqlite3 is damaged (row 3 is missing)"


def test_a_journal_of_another_version_is_left_to_it(machine: Machine) -> None:
    machine.open().close()
    with contextlib.closing(sqlite3.connect(machine.path)) as db:
        db.execute("PRAGMA user_version = 99")
    error = (
        f"{machine.path} was written by another version of this worker (journal 99, this one reads {journal.VERSION}). "
        "Run that version until no submission waits, or set another SAVE_DIR"
    )
    assert outcome(machine.open) == f"UnusableError: {error}"
    assert str(journal.Journal.problem_in(str(machine.folder))) == error


def test_a_locked_journal_is_waited_for(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "_LONG_BUSY_SECONDS", 0.5)
    item = machine.open()
    with contextlib.closing(sqlite3.connect(machine.path, isolation_level=None)) as db:
        db.execute("BEGIN EXCLUSIVE")
        error = f"JournalError: {machine.path} is locked by another program (database is locked)"
        assert outcome(lambda: item.set("key", 1.0)) == error
        assert (round(machine.now, 1), machine.said) == (0.6, ["looks"] * 3)
        db.execute("ROLLBACK")
    item.set("key", 1.5)
    assert (item.numbers(), item.counts(), item.progress()) == ({"key": 1.5}, {}, 0)
    item.close()


WRITTEN = "JournalError: f/journal.sqlite3 cannot be written or read (it went wrong). Is the disk full, or read-only?"


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (None, WRITTEN),
        (sqlite3.SQLITE_FULL, WRITTEN),
        (sqlite3.SQLITE_CORRUPT, "DamagedError: f/journal.sqlite3 is damaged (it went wrong)"),
        (sqlite3.SQLITE_NOTADB | 256, "DamagedError: f/journal.sqlite3 is damaged (it went wrong)"),
        (sqlite3.SQLITE_BUSY | 512, "JournalError: f/journal.sqlite3 is locked by another program (it went wrong)"),
        (sqlite3.SQLITE_LOCKED, "JournalError: f/journal.sqlite3 is locked by another program (it went wrong)"),
    ],
)
def test_errors_of_the_database_are_sentences(code: int | None, expected: str) -> None:
    def fail() -> None:
        with journal._journal_errors("f"):
            error = sqlite3.OperationalError("it went wrong")
            if code is not None:
                error.sqlite_errorcode = code
            raise error

    assert outcome(fail) == expected


def test_files_of_dead_workers_are_removed(machine: Machine) -> None:
    item = machine.open()
    locks, folders = machine.folder / "locks", [machine.folder / name for name in (journal.DOWNLOADS, journal.FETCHED)]
    for number, each in enumerate(folders):
        each.mkdir()
        for name in (f"a-{item.worker}", "b-0123abcd", "c-0123abcd.partial", "d-0123abcde", "e"):
            (each / name).mkdir() if number else (each / name).touch()
    (folders[1] / "b-0123abcd/file").touch()
    for name in ("0123abcd", "zz"):
        (locks / name).touch()
    owners = [item.worker, "fedcba98", "../x", "0123abcd"]
    assert [item.owners.is_alive(owner) for owner in owners] == [True, False, False, False]
    (locks / "0123abcd").touch()
    removed = [str(folder / name) for folder in folders for name in ("b-0123abcd", "c-0123abcd.partial")]
    assert item.owners.remove_abandoned() == removed
    paths = {
        path.relative_to(machine.folder).as_posix()
        for path in machine.folder.rglob("*")
        if path.parent != machine.folder
    }
    kept = {f"{folder.name}/{name}" for folder in folders for name in (f"a-{item.worker}", "d-0123abcde", "e")}
    assert paths == {*kept, f"locks/{item.worker}", "locks/opening", "locks/zz"}
    item.close()
    assert sorted(path.name for path in locks.iterdir()) == ["opening", "zz"]


def test_a_lock_that_another_removes_is_taken_again(machine: Machine) -> None:
    item, locks = machine.open(), machine.folder / "locks"
    with mock.patch.object(journal.os.path, "samestat", side_effect=[False, True]):
        name, lock = item.owners._take_lock()
    assert len([*locks.iterdir()]) == 4
    assert name != item.worker
    os.close(lock)
    with mock.patch.object(item, "number", return_value=0.0):  # as it was read before another took the turn
        assert (item.take_turn("turn_at", 60), item.take_turn("turn_at", 60)) == (True, False)
    item.close()
