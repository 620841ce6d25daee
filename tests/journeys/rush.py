"""A rush at a deadline: many teams submit at once, and evaluation processes die while they score."""

from __future__ import annotations

import os
import random
import re
import signal
import sqlite3
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import requests

from segjudge.server.accounts import PARTICIPANT
from segjudge.server.actions import submitting
from segjudge.server.services import Services
from tests.rehearsals import FINAL, Rehearsal


@dataclass
class Rush:
    """The outcome of a rush."""

    statuses: Counter[str] = field(default_factory=Counter)
    #: (team, split) → rows on the leaderboard, and of one submission and split in the database.
    rows_of_teams: Counter[Any] = field(default_factory=Counter)
    rows_of_submissions: Counter[Any] = field(default_factory=Counter)
    kills: int = 0
    seconds: float = 0.0
    megabytes: float = 0.0
    sent: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)


def enrol(data: Path, teams: int) -> list[str]:
    """Create this many teams with tokens in the server's database, as its first start does."""
    services = Services(str(data))
    tokens = []
    for number in range(teams):
        user = services.accounts.create(f"team{number}", f"secret{number}")
        team = services.accounts.create_team(user, PARTICIPANT, f"Team {number}")
        submitting.record_participation(services, 1, team)
        tokens.append(services.accounts.mint_token(user, "profile")[0])
    return tokens


def rush(
    server: Rehearsal, submissions: int, teams: int, files: list[Path], kill_every: float, kills: int = 10**9
) -> Rush:
    """Send all of them, kill a process from time to time, wait until each has ended."""
    came, chosen, done = Rush(), random.Random(7), threading.Event()
    tokens = enrol(server.data, teams)
    started = time.monotonic()
    killer = threading.Thread(target=_kill, args=(server, came, chosen, (kill_every, kills), done))
    killer.start()

    def send(number: int) -> int:
        while True:
            answer = server.submit(tokens[number % teams], files[number % len(files)], is_public="true")
            if answer.status_code == 201:
                return int(answer.json()["id"])
            came.refused[answer.json().get("error", answer.text)[:40]] += 1
            time.sleep(0.5)  # too many at once for this team: as its owner would, try again

    try:
        with ThreadPoolExecutor(max(8, teams)) as pool:
            numbers = list(pool.map(send, range(submissions)))
        came.sent = len(set(numbers))
        _await(server, came)
    finally:
        done.set()
        killer.join()
    came.seconds = time.monotonic() - started
    came.megabytes = _peak(server)
    _count(server, came)
    return came


def _kill(server: Rehearsal, came: Rush, chosen: random.Random, plan: tuple[float, int], done: threading.Event) -> None:
    while came.kills < plan[1] and not done.wait(plan[0]):
        alive = _children(server)
        if alive:
            try:
                os.kill(chosen.choice(alive), signal.SIGKILL)
                came.kills += 1
            except ProcessLookupError:
                pass


def _children(server: Rehearsal) -> list[int]:
    results = []
    for task in Path(f"/proc/{server.process.pid}/task").iterdir():
        try:
            results += [int(pid) for pid in (task / "children").read_text().split()]
        except OSError:
            continue
    return results


def _await(server: Rehearsal, came: Rush, seconds: float = 600) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        rows = server.get("/api/jobs/challenge/1/submission/", "host").json()
        came.statuses = Counter(row["status"] for row in rows)
        came.failures = [server.text(row["stderr_file"]) for row in rows if row["status"] == "failed"]
        if all(row["status"] in FINAL for row in rows):
            return
        time.sleep(0.5)


def _peak(server: Rehearsal) -> float:
    text = Path(f"/proc/{server.process.pid}/status").read_text()
    match = re.search(r"VmHWM:\s+(\d+)", text)
    return int(match.group(1)) / 1024 if match else 0.0


def _count(server: Rehearsal, came: Rush) -> None:
    splits = server.get("/api/challenges/1/challenge_phase_split").json()
    for split in splits:
        url = f"{server.address}/api/jobs/challenge_phase_split/{split['id']}/leaderboard/"
        for row in requests.get(url, timeout=60).json()["results"]:
            came.rows_of_teams[row["submission__participant_team__team_name"], split["id"]] += 1
    with closing(sqlite3.connect(server.data / "rehearsal.sqlite3")) as db, db:
        for submission, split in db.execute("SELECT submission_id, phase_split_id FROM results WHERE disabled = 0"):
            came.rows_of_submissions[submission, split] += 1
