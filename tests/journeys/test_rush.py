"""The rush of `benchmarks/rehearsal.py`, small."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.builders import ROOT
from tests.rehearsals import Rehearsal

from .rush import rush

pytestmark = pytest.mark.long


def test_nothing_is_lost_in_a_rush_while_processes_die(tmp_path: Path) -> None:
    options = ("--workers", "2", "--visibility", "2", "--requests-per-minute", "100000")
    server = Rehearsal(tmp_path / "data", options).start()
    try:
        files = sorted((ROOT / "examples/sequences-dev").iterdir())
        came = rush(server, 30, 6, files, kill_every=1.0, kills=4)
    finally:
        server.stop()
    assert came.sent == 30
    assert came.failures == []
    assert came.statuses == {"finished": 30}
    assert came.kills >= 1
    assert set(came.rows_of_teams.values()) == {1}
    assert len(came.rows_of_teams) == 6
    assert set(came.rows_of_submissions.values()) == {1}
    assert len(came.rows_of_submissions) == 30
    assert came.megabytes < 300
    assert "Traceback" not in server.errors()
