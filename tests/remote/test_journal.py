"""The worker's journal: the owners of jobs, survivors of any death, and the remaining requests."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from segjudge.remote_challenge_evaluation.journal import (
    BEGUN,
    SCORED,
    Journal,
    JournalError,
    UnusableError,
    _journal_errors,
)
from tests.builders import ROOT
from tests.calls import outcome
from tests.rehearsals import waited

#: Claims a submission in a process of its own, says so, and lives until its input ends.
OTHER = """
import os, sys
sys.path.insert(0, sys.argv[1])
from segjudge.remote_challenge_evaluation.journal import Journal
journal = Journal(sys.argv[2])
job = journal.claim(1, "", 7)
if len(sys.argv) > 3:
    os.set_inheritable(journal.owners.lock, True)
    import subprocess
    child = subprocess.Popen(["sleep", "1000"], close_fds=False)
    print(child.pid, flush=True)
print("claimed" if job else "refused", flush=True)
sys.stdin.read()
"""

Open = Callable[[], Journal]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Open]:
    """Open the journals of several processes of one machine."""
    made: list[Journal] = []

    def another() -> Journal:
        made.append(Journal(str(tmp_path)))
        return made[-1]

    yield another
    for item in made:
        item.close()


@pytest.fixture
def journal(opened: Open) -> Journal:
    return opened()


def other(folder: Path, *more: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", OTHER, str(ROOT), str(folder), *more],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def test_another_process_has_it_in_hand_until_it_dies(journal: Journal, tmp_path: Path) -> None:
    with other(tmp_path) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "claimed\n"
        assert journal.claim(1, "", 7) is None
        assert journal.take_due() is None
        process.kill()
        process.wait()
        job = journal.take_due()
    assert job is not None
    assert (job.submission, job.attempts) == (1, 1)


def test_a_scorer_that_outlives_its_worker_still_has_it_in_hand(journal: Journal, tmp_path: Path) -> None:
    import signal

    with other(tmp_path, "with a child") as process:
        assert process.stdout is not None
        child = int(process.stdout.readline())
        assert process.stdout.readline() == "claimed\n"
        process.kill()
        process.wait()
        assert journal.claim(1, "", 7) is None, "its child holds the lock"
        os.kill(child, signal.SIGKILL)
    assert waited(lambda: journal.take_due() is not None)


def test_a_result_that_was_given_up_is_not_scored_again(journal: Journal) -> None:
    for number, end in enumerate(("finished", "given up")):
        job = journal.claim(number, "", 7)
        journal.finish(job, end)
        journal.drop(job)
    assert [bool(journal.claim(number, "", 7, again=True)) for number in (0, 1)] == [True, False]


# ── a bad disk, a bad clock, a bad neighbour ────────────────────────────────


def test_nobody_else_can_read_it(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    code = (
        "import os, sys; os.umask(0o077); from segjudge.remote_challenge_evaluation.journal import Journal\n"
        "journal = Journal(sys.argv[1]); journal.claim(1, '', 7); sys.stdin.read()"
    )
    with subprocess.Popen([sys.executable, "-c", code, str(folder)], cwd=ROOT, stdin=subprocess.PIPE) as process:
        waited((folder / "journal.sqlite3-wal").exists)
        results = {path.name: path.stat().st_mode & 0o777 for path in (folder, *folder.rglob("*"))}
        process.kill()
    assert {name: mode for name, mode in results.items() if mode & 0o077} == {}
    assert results["journal.sqlite3"] == 0o600


@pytest.mark.parametrize("version", [1, 99])
def test_a_journal_of_another_version_is_left_alone(tmp_path: Path, version: int) -> None:
    with closing(sqlite3.connect(tmp_path / "journal.sqlite3")) as db:
        db.execute(f"PRAGMA user_version = {version}")
    before = (tmp_path / "journal.sqlite3").read_bytes()
    with pytest.raises(UnusableError, match="written by another version") as raised:
        Journal(str(tmp_path))
    assert Journal.problem_in(str(tmp_path)) == str(raised.value)
    assert (tmp_path / "journal.sqlite3").read_bytes() == before
    assert os.listdir(tmp_path / "locks") == ["opening"], "and nobody holds a place"


GARBAGE = {
    "text": lambda data: b"this is no journal" * 100,
    "half": lambda data: data[: len(data) // 2],
    "middle": lambda data: data[:4096] + os.urandom(len(data) - 8192) + data[-4096:],
}


@pytest.mark.parametrize("name", GARBAGE)
def test_a_damaged_journal_is_set_aside_and_kept(name: str, tmp_path: Path) -> None:
    first = Journal(str(tmp_path))
    for number in range(1, 50):
        job = first.claim(number, "", 7)
        assert job
        first.finish(job, "x" * 1000)
    first.close()
    path = tmp_path / "journal.sqlite3"
    damaged = GARBAGE[name](path.read_bytes())
    path.write_bytes(damaged)
    output: list[str] = []
    assert "is damaged" in Journal.problem_in(str(tmp_path))
    journal = Journal(str(tmp_path), say=output.append)
    assert journal.claim(1, "", 7) is not None
    journal.close()
    assert "is damaged" in output[0]
    (kept,) = [path for path in tmp_path.glob("journal.sqlite3.damaged-*") if not path.name.endswith(("-wal", "-shm"))]
    assert kept.read_bytes() == damaged


def test_one_that_is_damaged_under_a_worker_is_opened_anew(journal: Journal, tmp_path: Path) -> None:
    journal.claim(1, "", 7)
    journal.file._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    journal.file._db.execute("PRAGMA shrink_memory")
    path = tmp_path / "journal.sqlite3"
    with open(path, "r+b") as file:
        file.write(b"\xff" * path.stat().st_size)
    with pytest.raises(JournalError):
        for number in range(2, 50):
            journal.claim(number, "", 7)
    journal.file.reopen()
    assert journal.claim(1, "", 7) is not None


def test_one_that_was_replaced_is_followed(tmp_path: Path) -> None:
    output: list[str] = []
    journal = Journal(str(tmp_path), say=output.append)
    journal.claim(1, "", 7)
    for path in tmp_path.glob("journal.sqlite3*"):
        path.unlink()
    for _ in range(2):
        journal.file.follow_replacement()
    assert output == [f"{tmp_path}/journal.sqlite3 was replaced; the worker now uses the new one"]
    assert journal.state_of(1, "") == ""
    assert journal.claim(1, "", 7) is not None
    journal.close()


WRITTEN = "JournalError: f/journal.sqlite3 cannot be written or read (it went wrong). Is the disk full, or read-only?"


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (None, WRITTEN),
        (sqlite3.SQLITE_FULL, WRITTEN),
        (sqlite3.SQLITE_NOTADB | 256, "DamagedError: f/journal.sqlite3 is damaged (it went wrong)"),
        (sqlite3.SQLITE_BUSY | 512, "JournalError: f/journal.sqlite3 is locked by another program (it went wrong)"),
    ],
)
def test_errors_of_the_database_are_sentences(code: int | None, expected: str) -> None:
    def fail() -> None:
        with _journal_errors("f"):
            error = sqlite3.OperationalError("it went wrong")
            if code is not None:
                error.sqlite_errorcode = code
            raise error

    assert outcome(fail) == expected


def test_a_lock_of_another_program_is_waited_for_and_the_watch_is_asked(journal: Journal, tmp_path: Path) -> None:
    class EnoughError(Exception):
        pass

    asked: list[int] = []

    def watch() -> None:
        asked.append(1)
        if len(asked) > 2:
            raise EnoughError

    journal.file._watch = watch
    with closing(sqlite3.connect(tmp_path / "journal.sqlite3", isolation_level=None)) as db:
        db.execute("BEGIN EXCLUSIVE")
        with pytest.raises(EnoughError):
            journal.claim(1, "", 7)
        db.execute("ROLLBACK")
    assert journal.claim(1, "", 7) is not None


def test_a_full_disk_is_one_error_and_nothing_is_lost(tmp_path: Path) -> None:
    code = """
import resource, sys
from segjudge.remote_challenge_evaluation.journal import Journal
from segjudge.remote_challenge_evaluation.journal import JournalError
journal = Journal(sys.argv[1])
job = journal.claim(1, "", 7)
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, resource.RLIM_INFINITY))
try:
    for number in range(2, 10_000):
        journal.claim(number, "x" * 5000, 7)
except JournalError as error:
    print("said:", error)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
journal.drop(job)
print("then:", journal.take_due().submission)
"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "said:" in done.stdout
    assert "Is the disk full" in done.stdout
    assert "then: 1" in done.stdout


@pytest.mark.parametrize("jump", [86_400 * 365, -86_400 * 365], ids=["forward-and-back", "back"])
def test_a_clock_that_jumps_stops_nothing(journal: Journal, jump: float, monkeypatch: pytest.MonkeyPatch) -> None:
    real = time.time
    ahead = [max(jump, 0.0)]
    monkeypatch.setattr(time, "time", lambda: real() + ahead[0])
    job = journal.claim(1, "", 7)
    assert job
    journal.release(job, 5)
    journal.drop(job)
    assert journal.take_turn("poll_at", 6)
    waits = [journal.take_request(3, urgent=urgent) > 0 for urgent in (False, False, True, True)]
    assert waits == [False, True, False, False], "polling leaves requests to reports"
    ahead[0] = min(jump, 0.0)
    assert journal.take_due() is not None
    assert journal.take_turn("poll_at", 6)
    assert journal.take_request(3, urgent=True) == 0.0


def test_a_report_that_cannot_be_read_is_made_again(journal: Journal) -> None:
    job = journal.claim(1, "", 7)
    assert job
    journal.change(job, state=SCORED, report={"a": 1})
    for text in ("{", "[]", "5", "", "[" * 100_000):
        journal.file._db.execute("UPDATE jobs SET report = ?", (text,))
        assert journal.job(1, "").state == BEGUN


# ── what dead workers leave ─────────────────────────────────────────────────


def test_what_a_dead_worker_left_goes_and_what_a_living_one_has_stays(tmp_path: Path, opened: Open) -> None:
    mine = opened()
    with other(tmp_path) as process:
        assert process.stdout is not None
        process.stdout.readline()
        (theirs,) = {path.name for path in (tmp_path / "locks").iterdir()} - {mine.worker, "opening"}
        places = [tmp_path / f"submissions/5-{owner}" for owner in (mine.worker, theirs, "deadbeef")]
        for place in places:
            place.mkdir(parents=True)
            (place / "submission").write_bytes(b"x" * 1000)
        partial = tmp_path / "annotations/dev.zip-deadbeef.partial"
        partial.parent.mkdir()
        partial.touch()
        (tmp_path / "annotations/dev.zip").touch()
        (tmp_path / "submissions/notes-of-a-person").mkdir()
        opened().owners.remove_abandoned()
        assert [place.exists() for place in places] == [True, True, False]
        assert not partial.exists()
        assert (tmp_path / "annotations/dev.zip").exists()
        assert (tmp_path / "submissions/notes-of-a-person").exists()
        process.kill()
    removed = mine.owners.remove_abandoned()
    assert removed == [str(places[1])]
    assert not (tmp_path / "locks" / theirs).exists()


def test_a_link_that_is_named_like_a_download_is_not_followed(tmp_path: Path, journal: Journal) -> None:
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious/file").touch()
    (tmp_path / "submissions").mkdir()
    (tmp_path / "submissions/5-deadbeef").symlink_to(tmp_path / "precious")
    journal.owners.remove_abandoned()
    assert (tmp_path / "precious/file").exists()
    assert not (tmp_path / "submissions/5-deadbeef").is_symlink()
