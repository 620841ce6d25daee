"""The remote worker behind a hostile network: it survives, and every submission ends correctly."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator
from pathlib import Path

import pytest

from segjudge.platforms.evalai import routes
from segjudge.platforms.evalai.client import ApiError, Client
from tests.hostile_network import FAULTS, Network
from tests.journeys.fleet import remote_bundle
from tests.journeys.hostile import Weather, storm
from tests.platforms.evalai.servers import Server, says
from tests.rehearsals import Rehearsal
from tests.remote_workers import remote_server


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


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rehearsal]:
    yield from remote_server(tmp_path_factory.mktemp("network"))


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::ResourceWarning")  # urllib3 drops the socket of a head that contradicts itself
@pytest.mark.parametrize("kind", sorted(FAULTS))
def test_each_fault_leaves_a_call_with_an_answer_or_one_error(kind: str) -> None:
    server = Server().answer(says([{"id": 1}]))
    for seed in range(2):
        bad = Network(server.address, seed, 1.0, 0.3, 1 << 20, (kind,))
        client = Client(bad.address, "token")
        for _ in range(4):
            with contextlib.suppress(ApiError):
                client.call("GET", routes.PHASES_OF_HOST, {"challenge": 1})
        bad.close()
    server.close()
    gc.collect()
