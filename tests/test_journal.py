"""The worker's journal: who has what in hand, whatever dies, and how many requests are left."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from remote_challenge_evaluation.journal import BEGUN, CLAIMED, DONE, SCORED, Journal

from .builders import ROOT

#: Claims a submission in a process of its own, says so, and lives until its input ends.
OTHER = """
import os, sys
sys.path.insert(0, sys.argv[1])
from remote_challenge_evaluation.journal import Journal
journal = Journal(sys.argv[2])
job = journal.claim(1, "", 7)
if len(sys.argv) > 3:
    os.set_inheritable(journal.lock, True)
    import subprocess
    child = subprocess.Popen(["sleep", "1000"], close_fds=False)
    print(child.pid, flush=True)
print("claimed" if job else "refused", flush=True)
sys.stdin.read()
"""


Open = Callable[[], Journal]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Open]:
    """Journals of one machine, each as a process has it."""
    made: list[Journal] = []

    def another() -> Journal:
        made.append(Journal(str(tmp_path)))
        return made[-1]

    yield another
    for one in made:
        one.close()


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


def test_a_submission_is_claimed_once(journal: Journal) -> None:
    job = journal.claim(1, "", 7)
    assert job is not None
    assert (job.submission, job.phase, job.state) == (1, 7, CLAIMED)
    assert journal.claim(1, "", 7) is None
    assert journal.claim(1, "2026-01-01", 7) is not None, "resumed, it is new work"


def test_another_process_has_it_in_hand_until_it_dies(journal: Journal, tmp_path: Path) -> None:
    with other(tmp_path) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "claimed\n"
        assert journal.claim(1, "", 7) is None
        assert journal.due() is None
        process.kill()
        process.wait()
        job = journal.due()
    assert job is not None
    assert (job.submission, job.lives) == (1, 1)


def test_a_scorer_that_outlives_its_worker_still_has_it_in_hand(journal: Journal, tmp_path: Path) -> None:
    import os
    import signal

    with other(tmp_path, "with a child") as process:
        assert process.stdout is not None
        child = int(process.stdout.readline())
        assert process.stdout.readline() == "claimed\n"
        process.kill()
        process.wait()
        assert journal.claim(1, "", 7) is None, "its child holds the lock"
        os.kill(child, signal.SIGKILL)
    until = time.monotonic() + 10
    while time.monotonic() < until and journal.due() is None:
        time.sleep(0.05)
    assert time.monotonic() < until


def test_what_is_done_is_not_taken_again(journal: Journal) -> None:
    job = journal.claim(1, "", 7)
    assert job is not None
    journal.done(job, "finished")
    assert journal.claim(1, "", 7) is None
    assert journal.due() is None
    assert journal.known(1, "") == DONE
    assert journal.counts() == {"finished": 1}


def test_a_result_is_sent_before_anything_else_is_begun(journal: Journal) -> None:
    first, second = journal.claim(1, "", 7), journal.claim(2, "", 7)
    assert first
    assert second
    journal.release(journal.change(first, state=BEGUN), 0)
    journal.release(journal.change(second, state=SCORED, report={"accuracies": []}), 0)
    job = journal.due()
    assert job is not None
    assert (job.submission, job.report) == (2, {"accuracies": []})


def test_what_is_put_off_waits(journal: Journal) -> None:
    job = journal.claim(1, "", 7)
    assert job is not None
    journal.release(job, 60)
    assert journal.due() is None
    assert journal.claim(1, "", 7) is not None, "but a message of it may be taken"


def test_a_journal_survives_its_process(tmp_path: Path, opened: Open) -> None:
    first = Journal(str(tmp_path))
    job = first.claim(1, "", 7)
    assert job is not None
    first.change(job, state=SCORED, report={"accuracies": [1]})
    first.close()
    again = opened().due()
    assert again is not None
    assert again.report == {"accuracies": [1]}


def test_looking_stops_before_reporting_does(journal: Journal) -> None:
    assert [journal.request(10, urgent=False) for _ in range(6)] == [0.0] * 6
    assert journal.request(10, urgent=False) > 50
    assert [journal.request(10, urgent=True) for _ in range(4)] == [0.0] * 4
    assert journal.request(10, urgent=True) > 50
    assert journal.number("requests") == 10


def test_the_budget_is_the_machines(opened: Open) -> None:
    first, second = opened(), opened()
    taken = [one.request(4, urgent=True) == 0 for one in (first, second, first, second, first, second)]
    assert taken == [True] * 4 + [False] * 2


def test_one_process_looks_for_all(opened: Open) -> None:
    first, second = opened(), opened()
    assert first.turn("poll_at", 60)
    assert not second.turn("poll_at", 60)
    second.set("poll_at", 0)
    assert second.turn("poll_at", 60)
