"""Remote workers as processes, with a rehearsal."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from segjudge.server.models import StoredMessage

from .builders import ROOT
from .journeys.fleet import remote_bundle
from .rehearsals import Rehearsal

STRONG = ROOT / "examples/sequences-dev/strong.zip"
OPTIONS = ("--workers", "0", "--visibility", "1", "--requests-per-minute", "100000")


def remote_server(folder: Path) -> Iterator[Rehearsal]:
    """Yield a rehearsal of a challenge that remote workers score; for a fixture."""
    running = Rehearsal(folder / "data", (*OPTIONS, str(remote_bundle(folder)))).start()
    yield running
    running.stop()
    assert "Traceback" not in running.errors()


class Operator:
    """Runs the worker of a server's first challenge, with its state in a folder."""

    def __init__(self, server: Rehearsal, folder: Path) -> None:
        self.folder = folder
        self.queue = str(server.get("/api/challenges/challenge/1/").json()["queue"])
        self.environment = {
            **{key: value for key, value in os.environ.items() if not key.startswith(("SEGJUDGE_", "AWS_"))},
            "AUTH_TOKEN": server.people["host"]["token"], "API_SERVER": server.address, "QUEUE_NAME": self.queue,
            "CHALLENGE_PK": "1", "SAVE_DIR": str(folder / "machine"), "ANNOTATIONS": str(ROOT / "annotations"),
            "POLL_SECONDS": "0.2", "REQUESTS_PER_MINUTE": "100000", "SWEEP_SECONDS": "1000",
        }  # fmt: skip

    def run(self, *arguments: str, expected: int = 0, **environment: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "segjudge.remote_challenge_evaluation", *arguments],
            cwd=environment.pop("cwd", str(ROOT)), env={**self.environment, **environment}, capture_output=True,
            text=True, timeout=90, check=False,
        )  # fmt: skip
        assert done.returncode == expected, done.stdout + done.stderr
        return done.stdout + done.stderr

    def start(self, **environment: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "segjudge.remote_challenge_evaluation"],
            cwd=ROOT,
            env={**self.environment, **environment},
            stderr=subprocess.PIPE,
            text=True,
        )

    def jobs(self) -> list[dict[str, Any]]:
        with closing(sqlite3.connect(self.folder / "machine/journal.sqlite3")) as db, db:
            db.row_factory = sqlite3.Row
            return [dict(row) for row in db.execute("SELECT * FROM jobs ORDER BY submission")]

    def journal(self, sql: str, *values: Any) -> None:
        with closing(sqlite3.connect(self.folder / "machine/journal.sqlite3")) as db, db:
            db.execute(sql, values)


def operator_of(server: Rehearsal, folder: Path) -> Operator:
    """Return an operator whose queue is empty."""
    server.services.store.remove(StoredMessage)
    return Operator(server, folder)


def status(server: Rehearsal, number: int) -> str:
    return str(server.get(f"/api/jobs/submission/{number}", "host").json()["status"])


def submitted(server: Rehearsal, file: Any = STRONG, **data: Any) -> int:
    return int(server.submit("aurora", file, **data).json()["id"])
