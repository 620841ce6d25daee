"""The remote worker behind a hostile network: it lives, and every submission ends as it should."""

from __future__ import annotations

from pathlib import Path

import pytest

from .journeys.fleet import remote_bundle
from .journeys.hostile import Weather, storm
from .rehearsals import Rehearsal


@pytest.mark.long
def test_no_network_ends_a_worker_or_a_submission_wrongly(tmp_path: Path) -> None:
    options = ("--workers", "0", "--visibility", "2", "--requests-per-minute", "100000")
    server = Rehearsal(tmp_path / "data", (*options, str(remote_bundle(tmp_path)))).start()
    try:
        came = storm(server, tmp_path, Weather())
    finally:
        server.stop()
    assert came.ended == [], came.log[-3000:]
    assert came.wrong == [], came.log[-6000:]
    assert len(came.struck) >= 8, "kinds of faults, so that the test has tested something"
    assert "Traceback" not in came.log
    assert "defect" not in came.log
