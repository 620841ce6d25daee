"""The bad day of `benchmarks/fleet.py`, small: the guarantee of the remote worker."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.rehearsals import Rehearsal

from .fleet import QUICK, Fleet, bad_day, remote_bundle

pytestmark = pytest.mark.long


@pytest.mark.parametrize(
    "machines", [pytest.param({"one": 3}, id="one-machine"), pytest.param({"one": 2, "two": 1}, id="two-machines")]
)
def test_nothing_is_lost_or_doubled_while_workers_die_and_the_api_errs(
    machines: dict[str, int], tmp_path: Path
) -> None:
    bundle = remote_bundle(tmp_path)
    options = ("--workers", "0", "--visibility", "3", "--requests-per-minute", "6000")
    server = Rehearsal(tmp_path / "data", (*options, str(bundle)), faults="5:0.05").start()
    fleet = Fleet(server, tmp_path, machines, **QUICK)
    try:
        day = bad_day(server, fleet, 15, kill_every=1.5, kills=30, limit=400)
    finally:
        fleet.stop()
        server.stop()
    assert day.failures == []
    assert day.statuses == {"finished": day.sent}, fleet.logs()[-3000:]
    assert day.sent >= 15, "one whose answer was lost was sent again"
    assert day.kills >= 1
    assert day.wrong == []
    assert set(day.rows.values()) == {1}
    assert len(day.rows) == day.sent
    if len(machines) == 1:
        assert day.reports == 0, "what the server knows is not said again"
