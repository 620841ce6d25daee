"""Workers behind a network that resets, drips and lies, and the outcome of the submissions."""

from __future__ import annotations

import contextlib
import io
import json
import sqlite3
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from segjudge.evaluation_script import evaluate
from tests.builders import ROOT
from tests.hostile_network import Network
from tests.rehearsals import FINAL, Rehearsal

from .fleet import QUICK, Fleet
from .rush import enrol

SAMPLES = ROOT / "examples/sequences-dev"
BROKEN = b"PK\x03\x04"
#: What its team has to read.
SENTENCE = "is a zip that was cut off"


@dataclass
class Weather:
    """How bad the network is and for how long, and how long to wait for the rest afterwards."""

    seconds: float = 25.0
    submissions: int = 6
    seed: int = 1
    rate: float = 0.5
    patience: float = 2.0
    large: int = 4 << 20
    rest: float = 150.0


@dataclass
class Storm:
    """The outcome of a storm."""

    sent: dict[int, str] = field(default_factory=dict)
    #: Submissions that are not where they should be, and how.
    wrong: list[str] = field(default_factory=list)
    #: Exit codes of workers that ended.
    ended: list[int] = field(default_factory=list)
    struck: dict[str, int] = field(default_factory=dict)
    requests: int = 0
    seconds: float = 0.0
    log: str = ""


def storm(server: Rehearsal, folder: Path, weather: Weather, machines: dict[str, int] | None = None) -> Storm:
    """Send submissions while the network is bad, good ones and broken ones; examine the state of each."""
    came, started = Storm(), time.monotonic()
    network = Network(server.address, weather.seed, weather.rate, weather.patience, weather.large)
    fleet = Fleet(server, folder, machines or {"one": 1}, **QUICK, API_SERVER=network.address)
    try:
        _send(server, came, weather)
        while time.monotonic() - started < weather.seconds:
            time.sleep(0.5)
        came.ended = fleet.ended()
        network.rate = 0.0
        _await(server, came, weather.rest)
        came.ended += fleet.ended()
    finally:
        fleet.stop()
        network.close()
    came.seconds, came.log = time.monotonic() - started, fleet.logs()
    came.struck, came.requests = dict(network.struck), network.requests
    _judge(server, came)
    return came


def _send(server: Rehearsal, came: Storm, weather: Weather) -> None:
    """Send submissions during two thirds of the bad time; every fourth is broken."""
    tokens, names = enrol(server.data, 5), sorted(path.name for path in SAMPLES.iterdir())
    for number in range(weather.submissions):
        name = "broken" if number % 4 == 3 else names[number % len(names)]
        file: Any = BROKEN if name == "broken" else SAMPLES / name
        sent = server.submit(tokens[number % len(tokens)], file, is_public="true", method_name=name)
        came.sent[int(sent.json()["id"])] = name
        time.sleep(weather.seconds * 2 / 3 / weather.submissions)


def _rows(server: Rehearsal, query: str) -> list[Any]:
    with contextlib.closing(sqlite3.connect(server.data / "rehearsal.sqlite3")) as db, db:
        db.row_factory = sqlite3.Row
        return db.execute(query).fetchall()


def _await(server: Rehearsal, came: Storm, seconds: float) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        statuses = {row["id"]: row["status"] for row in _rows(server, "SELECT id, status FROM submissions")}
        if all(statuses[number] in FINAL for number in came.sent):
            return
        time.sleep(0.5)


def _judge(server: Rehearsal, came: Storm) -> None:
    truth = str(ROOT / "annotations/sequences-dev.zip")
    with contextlib.redirect_stdout(io.StringIO()):
        right = {
            name: evaluate(truth, str(SAMPLES / name), "sequences-dev")["result"][0]["dev"]
            for name in set(came.sent.values()) - {"broken"}
        }
    states = {row["id"]: row for row in _rows(server, "SELECT * FROM submissions")}
    shown: dict[int, list[Any]] = {}
    for row in _rows(server, "SELECT * FROM results WHERE disabled = 0"):
        shown.setdefault(row["submission_id"], []).append(json.loads(row["result"]))
    for number, name in came.sent.items():
        row = states[number]
        path = server.data / "files" / str(row["stderr_file"])
        output = path.read_text() if row["stderr_file"] and path.exists() else ""
        good = row["status"] == "failed" and SENTENCE in output and number not in shown
        if name != "broken":
            good = row["status"] == "finished" and shown.get(number) == [right[name]]
        if not good:
            came.wrong.append(f"{number} ({name}): {row['status']}, {len(shown.get(number, []))} rows: {output[-300:]}")
