"""Days of a remote worker on a machine in trouble, and interrupted days: some of `days`."""

from __future__ import annotations

import contextlib
import errno
import sqlite3
from typing import TYPE_CHECKING, Any
from unittest import mock

from segjudge.remote_challenge_evaluation import journal, worker, worker_loop
from segjudge.remote_challenge_evaluation.scorer_process import ScoringOutcome

if TYPE_CHECKING:
    from .days import Day

GOOD = [{"split": "test", "show_to_participant": True, "accuracies": {"J": 0.5, "F": 0.25}}]


def a_day_with_a_machine_in_trouble(day: Day) -> None:
    server, path = day.server, day.folder / "machine" / journal.NAME

    def forget(number: int) -> None:
        with contextlib.closing(sqlite3.connect(path)) as db, db:
            db.execute("DELETE FROM jobs WHERE submission = ?", (number,))

    def trouble(*errors: Exception) -> None:
        server.troubles += [("/queues/", 1, error) for error in errors]

    def reopen() -> None:
        raise OSError(errno.EIO, "it cannot be read")

    made: list[Any] = [journal.JournalError("locked"), OSError(errno.ENOSPC, "full"), OSError(errno.EIO, "broken")]
    real = journal.Journal

    def open_journal(*arguments: Any) -> Any:
        if made:
            raise made.pop(0)
        return real(*arguments)

    incident = ScoringOutcome(incident="an accident")
    day.outcomes = {
        3: [incident],
        4: [ScoringOutcome(GOOD)],
        5: [journal.JournalError("locked"), ScoringOutcome(GOOD)],
        8: [incident],
    }
    day.at("8:01", lambda: server.send(1, status="unheard of"))
    day.at("8:01:30", server.messages.clear)
    day.at("8:02", lambda: server.send(2, input_file=None))
    day.at("8:03", lambda: server.send(3))
    day.at("8:03:12", lambda: server.fail("PUT", 1, 503))
    day.at("8:04", lambda: server.send(4))
    day.at("8:04:15", lambda: forget(4))
    day.at("8:05", lambda: server.send(5))
    day.at("8:06", lambda: trouble(journal.JournalError("locked"), journal.DamagedError("no journal any more")))
    day.at("8:06:30", lambda: setattr(day.loop._journal.file, "reopen", reopen))
    day.at("8:07", lambda: trouble(journal.DamagedError("no journal any more"), OSError(errno.EIO, "broken")))
    for number in (60, 61, 62):
        day.at("8:08", lambda number=number: server.send(number, 40 + number))  # type: ignore[misc]
    day.at("8:09", server.messages.clear)
    day.at("8:08:10", lambda: (day.folder / "machine/submissions/9-a00000ff").mkdir(parents=True))
    day.at("8:10", lambda: server.put({"submission_pk": 99}))
    day.at("8:10:04", day.stop)
    with mock.patch.object(worker_loop, "Journal", open_journal), mock.patch.object(worker, "_MOST_REMEMBERED", 2), mock.patch.object(worker_loop, "_has_process_limit", return_value=False):  # fmt: skip
        trouble(journal.JournalError("locked"), OSError(errno.EIO, "broken"))
        day.work(sweep_seconds=240)
    day.tell()


def days_that_end_in_the_middle(day: Day) -> None:
    server = day.server
    day.say("── stopped while a file is fetched")
    day.at("8:12", lambda: server.send(12))
    day.at("8:12:01", day.stop)
    day.work(grace_seconds=60)
    day.say("── stopped while a refusal is thought over")
    day.at("8:14", lambda: server.fail("PUT", 3, 400, "no such label", {"error": "no such label"}))
    day.at("8:14", lambda: server.send(14))
    day.at("8:14:08", day.stop)
    day.work(grace_seconds=1.5)
    day.say("── stopped while lost submissions are found")
    server.troubles.clear()
    for number in (15, 16):
        fields = {"submitted_at": "2026-01-05T07:40:00Z", "submission_input_file": f"/media/{number}"}
        day.at("8:15", lambda number=number, fields=fields: server.send(number, silent=True, **fields))  # type: ignore[misc]
    day.at("8:15:04", day.stop)
    day.work(grace_seconds=60, sweep_seconds=1)
    day.say("── a token that ends while something is scored")
    day.at("8:18", lambda: server.send(18))
    day.at("8:18:12", lambda: server.fail("", 99, 401, "Invalid token", {"detail": "Invalid token"}))
    day.work()
    day.tell()


def starts_and_what_ends_them(day: Day) -> None:
    server = day.server
    day.say("── another version in the place of the journal")
    day.at("8:30", lambda: server.troubles.append(("/queues/", 1, journal.UnusableError("of another version"))))
    day.work()
    for error in (journal.UnusableError("of another version"), OSError(errno.EACCES, "Permission denied")):
        with mock.patch.object(worker_loop, "Journal", side_effect=error):
            day.work()
    day.say("── the page of its health, and a challenge of ours alone")
    with mock.patch.object(worker_loop, "serve_health", lambda port, *looks: day.say(f"serves {port} {len(looks)}")):
        day.stop_at("8:40")
        day.work(health_port=8000)
    with mock.patch.object(worker_loop, "serve_health", side_effect=OSError(98, "Address already in use")):
        day.work(health_port=8000)
    with mock.patch.object(worker_loop, "read_phases", lambda *_, read=worker_loop.read_phases: {"dev": read()["dev"]}):
        server.phases.pop()
        server.splits = server.splits[:1]
        day.check()
    day.tell()


DAYS = (a_day_with_a_machine_in_trouble, days_that_end_in_the_middle, starts_and_what_ends_them)
