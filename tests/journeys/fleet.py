"""A fleet of remote workers on a bad day: random kills, an API with errors, and repeated messages."""

from __future__ import annotations

import contextlib
import io
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import requests

from segjudge.evaluation_script import evaluate
from segjudge.platforms.evalai.bundle.build import build
from tests.builders import ROOT
from tests.rehearsals import FINAL, Rehearsal, bundle_with

from .rush import enrol

#: A worker that does not wait for people.
QUICK = {"REQUESTS_PER_MINUTE": "5000", "POLL_SECONDS": "0.5", "SWEEP_SECONDS": "3"}


@dataclass
class Day:
    """The outcome of a day."""

    sent: int = 0
    statuses: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    #: Submissions whose leaderboard row is not what one undisturbed run gives.
    wrong: list[Any] = field(default_factory=list)
    rows: Counter[Any] = field(default_factory=Counter)
    kills: int = 0
    #: Beyond one for each submission: evaluations and attempts to report, by machine, and reports that were carried out.
    evaluations: dict[str, int] = field(default_factory=dict)
    attempts: dict[str, int] = field(default_factory=dict)
    reports: int = 0
    seconds: float = 0.0


class Fleet:
    """Processes on machines; a machine is a folder with a journal."""

    def __init__(self, server: Rehearsal, folder: Path, machines: dict[str, int], **environment: str) -> None:
        self._server, self._folder = server, folder
        self._queue = server.get("/api/challenges/challenge/1/").json()["queue"]
        self._environment = environment
        self._alive: dict[tuple[str, int], subprocess.Popen[bytes]] = {}
        self._places = [(name, number) for name, count in machines.items() for number in range(count)]
        self.machines = list(machines)
        for place in self._places:
            self.start(place)

    def start(self, place: tuple[str, int]) -> None:
        """Start a worker, as its service manager restarts it."""
        environment = {
            **{key: value for key, value in os.environ.items() if not key.startswith("SEGJUDGE_")},
            "AUTH_TOKEN": self._server.people["host"]["token"], "API_SERVER": self._server.address,
            "QUEUE_NAME": self._queue, "CHALLENGE_PK": "1", "SAVE_DIR": str(self._folder / place[0]),
            "ANNOTATIONS": str(ROOT / "annotations"), **self._environment,
        }  # fmt: skip
        log = open(self._folder / f"{place[0]}-{place[1]}.log", "ab")  # noqa: SIM115 - the child's
        self._alive[place] = subprocess.Popen(
            [sys.executable, "-m", "segjudge.remote_challenge_evaluation"],
            cwd=ROOT,
            env=environment,
            stderr=log,
            stdout=log,
        )
        log.close()

    def processes(self) -> list[int]:
        """Return the process ids of the workers."""
        return [process.pid for process in self._alive.values()]

    def kill(self, chosen: random.Random) -> None:
        """Kill one of them, and restart it."""
        place = chosen.choice(self._places)
        self._alive[place].kill()
        self._alive[place].wait()
        self.start(place)

    def ended(self) -> list[int]:
        """Return the exit codes of processes that ended by themselves."""
        return [code for process in self._alive.values() if (code := process.poll()) is not None]

    def remedy(self) -> None:
        """Restart processes that ended by themselves."""
        for place, process in self._alive.items():
            if process.poll() is not None:
                self.start(place)

    def stop(self) -> None:
        """Terminate all workers, and wait for them."""
        for process in self._alive.values():
            process.send_signal(signal.SIGTERM)
        for process in self._alive.values():
            try:
                process.wait(40)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def beyond_one(self, column: str) -> dict[str, int]:
        """Return how often a machine repeated what should happen once."""
        results = {}
        for name in self.machines:
            with contextlib.closing(sqlite3.connect(self._folder / name / "journal.sqlite3")) as db, db:
                results[name] = int(
                    db.execute(f"SELECT coalesce(sum(max(0, {column} - 1)), 0) FROM jobs").fetchone()[0]
                )
        return results

    def logs(self) -> str:
        """Return the complete output of the workers."""
        return "".join(path.read_text() for path in sorted(self._folder.glob("*.log")))


def remote_bundle(folder: Path) -> Path:
    """Return the demo, scored by us, with limits that do not matter."""
    whole = build(str(ROOT), str(folder / "remote.zip"), "remote").path
    shutil.move(whole, folder / "made.zip")

    def change(config: Any) -> None:
        config["remote_evaluation"] = True
        for phase in config["challenge_phases"]:
            phase.pop("test_annotation_file", None)
            phase.update(max_submissions_per_day=10**5, max_submissions_per_month=10**5, max_submissions=10**5)
            phase["max_concurrent_submissions_allowed"] = 10**4

    return bundle_with(folder, change)


def bad_day(
    server: Rehearsal, fleet: Fleet, submissions: int, kill_every: float, *, limit: float, kills: int = 10**6
) -> Day:
    """Send submissions while workers are killed, so often at most; wait until each has ended; examine the outcome."""
    day, chosen, done = Day(), random.Random(11), threading.Event()
    files = sorted((ROOT / "examples/sequences-dev").iterdir())
    tokens = enrol(server.data, 5)
    started = time.monotonic()
    killer = threading.Thread(target=_kill, args=(fleet, day, chosen, kill_every, kills, done))
    killer.start()
    try:
        _send(server, submissions, tokens, files)
        _await(server, day, limit)
    finally:
        done.set()
        killer.join()
    day.seconds = time.monotonic() - started
    fleet.stop()
    day.evaluations, day.attempts = fleet.beyond_one("evaluations"), fleet.beyond_one("reports")
    _compare(server, day)
    return day


def _kill(fleet: Fleet, day: Day, chosen: random.Random, every: float, most: int, done: threading.Event) -> None:
    while day.kills < most and not done.wait(chosen.uniform(0.2, 2) * every):
        fleet.kill(chosen)
        fleet.remedy()
        day.kills += 1


def _send(server: Rehearsal, submissions: int, tokens: list[str], files: list[Path]) -> None:
    """Send as participants, whose calls fail too; a repeated request may create two submissions."""
    for number in range(submissions):
        file = files[number % len(files)]
        for _ in range(20):
            try:
                data = {"is_public": "true", "method_name": file.name}
                if server.submit(tokens[number % len(tokens)], file, **data).json().get("id"):
                    break
            except (requests.RequestException, ValueError, AttributeError):
                continue


def _await(server: Rehearsal, day: Day, limit: float) -> None:
    until = time.monotonic() + limit
    while time.monotonic() < until:
        with contextlib.closing(sqlite3.connect(server.data / "rehearsal.sqlite3")) as db, db:
            day.statuses = Counter(row[0] for row in db.execute("SELECT status FROM submissions"))
        if set(day.statuses) <= set(FINAL):
            return
        time.sleep(0.5)


def _compare(server: Rehearsal, day: Day) -> None:
    truth, samples = ROOT / "annotations/sequences-dev.zip", ROOT / "examples/sequences-dev"
    with contextlib.closing(sqlite3.connect(server.data / "rehearsal.sqlite3")) as db, db:
        db.row_factory = sqlite3.Row
        sent = {row["id"]: row["method_name"] for row in db.execute("SELECT id, method_name FROM submissions")}
        rows = db.execute("SELECT * FROM results WHERE disabled = 0").fetchall()
        day.reports = db.execute("SELECT count(*) FROM results WHERE disabled = 1").fetchone()[0]
        failed = db.execute("SELECT id, stderr_file FROM submissions WHERE status = 'failed'").fetchall()
    day.sent = len(sent)
    with contextlib.redirect_stdout(io.StringIO()):
        right = {name: evaluate(str(truth), str(samples / name), "sequences-dev") for name in set(sent.values())}
    for row in rows:
        day.rows[row["submission_id"], row["phase_split_id"]] += 1
        if json.loads(row["result"]) != right[sent[row["submission_id"]]]["result"][0]["dev"]:
            day.wrong.append(row["submission_id"])
    for row in failed:
        path = server.data / "files" / str(row["stderr_file"])
        day.failures.append(f"{row['id']}: {path.read_text() if path.exists() else ''}")
