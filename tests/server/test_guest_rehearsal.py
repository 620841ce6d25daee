"""Other hosts' challenges in the rehearsal and in the commands."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests import guests
from tests.rehearsals import Rehearsal


def rehearsed(folder: Path, data: Path) -> Rehearsal:
    options = ("--requests-per-minute", "100000", "--seed-demo", "--python", sys.executable)
    return Rehearsal(data, options, root=folder).start()


@pytest.mark.long
def test_a_rehearsal_opens_and_scores_a_host_challenge(tmp_path: Path) -> None:
    server = rehearsed(guests.with_samples(guests.starter(tmp_path / "bundle")), tmp_path / "data")
    try:
        assert "Sent 3 sample submissions." in server.output
        rows = [server.settled(number) for number in (1, 2, 3)]
        assert [row["status"] for row in rows] == ["finished"] * 3
        assert server.text(rows[0]["stdout_file"]) == "Starting Evaluation.....\n"
        again = server.submit("aurora", b"no json").json()["id"]
        assert "JSONDecodeError" in server.text(server.settled(again)["stderr_file"])
    finally:
        server.stop()
    assert "Traceback" not in server.errors()
