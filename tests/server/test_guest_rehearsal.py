"""Other hosts' challenges in the rehearsal and in the commands."""

from __future__ import annotations

import re
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


@pytest.mark.long
def test_a_rehearsal_of_a_challenge_that_is_over_says_that_it_takes_nothing(tmp_path: Path) -> None:
    folder = guests.with_samples(guests.starter(tmp_path / "bundle"))
    config = folder / "challenge_config.yaml"
    config.write_text(re.sub(r"end_date: .*", "end_date: 2020-02-02 00:00:00", config.read_text()))
    config.write_text(re.sub(r"start_date: .*", "start_date: 2020-01-01 00:00:00", config.read_text()))
    server = rehearsed(folder, tmp_path / "data")
    try:
        assert "accepts no submissions: Challenge is not active (start_date, end_date)" in server.output
        assert "Sent" not in server.output
        match = re.search(r"with --now (\S+) it would", server.output)
        assert match
        server.stop()
        server.start("--now", match.group(1))
        assert "Sent 3 sample submissions." in server.output
        assert "accepts no submissions" not in server.output
        assert [server.settled(number)["status"] for number in (1, 2, 3)] == ["finished"] * 3
        assert server.get("/api/challenges/challenge/present/approved/public").json()["count"] == 1
    finally:
        server.stop()
    assert "Traceback" not in server.errors()
