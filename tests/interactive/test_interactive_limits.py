"""What a user can learn and take from a session server, across restarts and kills."""

from __future__ import annotations

import hashlib
import os
import stat
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import requests

from segjudge.interactive import wire_format
from segjudge.interactive.session_host import SessionLimits
from tests.interactive.scene import Clock
from tests.interactive.test_interactive_wire import ANN, BOB, SHAPE, Served, Wire, hosting, served

NEW = SessionLimits(sessions=99, sessions_per_sequence=2)


def folder_of(key: str) -> str:
    return f"session-{hashlib.sha256(key.encode()).hexdigest()}"


def measured(wired: Wire, interaction: int = 1) -> requests.Response:
    wired.handed()
    return wired.post(wire_format.INTERACTION, wired.masks(interaction=interaction))


def ended(wired: Wire, interactions: int = 2) -> Wire:
    for number in range(interactions):
        assert measured(wired, number + 1).status_code == 204
    assert wired.post(wire_format.NEXT).json() == {"finished": True}
    return wired


@pytest.mark.long
def test_a_user_measures_a_sequence_in_so_many_sessions(root: Path) -> None:
    with served(hosting(root, limits=NEW)) as address:
        for _ in range(2):
            ended(Wire(address).begun())
        output = Wire(address).post(wire_format.SESSION)
        assert (output.status_code, output.json()["error"]) == (429, "BlockingIOError")
        assert "ann has submitted masks of box in 2 sessions" in output.json()["message"]
        ended(Wire(address, BOB).begun())
    with served(hosting(root, limits=NEW)) as address:
        assert Wire(address).post(wire_format.SESSION).status_code == 429, "a restart forgets nothing"
        Wire(address, BOB).begun()


def test_an_idle_session_is_closed_over_a_restart_and_stays_closed(root: Path) -> None:
    clock, limits = Clock(), SessionLimits(sessions=1, sessions_per_sequence=99, idle=60)
    with served(hosting(root, clock, limits)) as address:
        first = Wire(address).begun()
        clock.now += 59
    with served(hosting(root, clock, limits)) as address:
        clock.now += 59
        assert Wire(address).post(wire_format.SESSION).status_code == 429, "idle counts from the restart on"
        clock.now += 2
        Wire(address).begun()
    with served(hosting(root, clock, limits)) as address:
        first.address = address
        answer_of_first = first.post(wire_format.NEXT)
        assert answer_of_first.status_code == 404
        assert "This session was closed" in answer_of_first.json()["message"]


def test_sessions_that_are_begun_count_before_they_measure(root: Path) -> None:
    """Otherwise many would be opened at once, and each used."""
    clock = Clock()
    with served(hosting(root, clock, SessionLimits(sessions=99, sessions_per_sequence=2, idle=60))) as address:
        first, _ = Wire(address).begun().handed(), Wire(address).begun()
        assert Wire(address).post(wire_format.SESSION).status_code == 429
        assert measured(first).status_code == 204
        assert Wire(address).post(wire_format.SESSION).status_code == 429
        clock.now += 61
        Wire(address).begun()
        assert Wire(address).post(wire_format.SESSION).status_code == 429, "one has measured, and one may"


def test_many_sessions_at_once_are_no_more_than_one_after_another(root: Path) -> None:
    with served(hosting(root, limits=NEW)) as address:
        codes: list[int] = []

        def ask() -> None:
            codes.append(Wire(address).post(wire_format.SESSION).status_code)

        threads = [threading.Thread(target=ask) for _ in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(codes) == [200] * 2 + [429] * 10


# ── what leaves the server ──────────────────────────────────────────────────


def decimals(output: Any) -> int:
    return max((len(repr(item).partition(".")[2]) for item in output), default=0)


def test_nothing_but_times_leaves_with_more_than_four_decimals(root: Path) -> None:
    host = hosting(root)
    rng = np.random.default_rng(1)
    with served(host) as address:
        wired = Wire(address).begun()
        for number in (1, 2):
            wired.handed()
            masks = rng.integers(0, 2, SHAPE)
            assert wired.post(wire_format.INTERACTION, wired.masks(masks, interaction=number)).status_code == 204
        report = wired.get(wire_format.REPORT).json()
        wired.post(wire_format.NEXT)
        summary, after = wired.post(wire_format.FINISH).json(), wired.get(wire_format.REPORT).json()
    assert report == after, "before the end and after it"
    for name in ("jaccard", "contour", "j_and_f"):
        assert 0 < decimals(report[name]) <= 4
    assert report["j_and_f"] == [round((j + f) / 2, 4) for j, f in zip(report["jaccard"], report["contour"])]
    assert decimals([summary["auc"], *summary["curve"]["J_AND_F"], summary["metric_at_threshold"]["J_AND_F"]]) <= 4
    (kept,) = (root.parent / "kept").glob("session-*/result_*.csv")
    exact = [line.split(",")[7] for line in kept.read_text().splitlines()[1:]]
    assert max(map(len, exact)) > 10, "the host keeps all of it"


@pytest.mark.parametrize("most", [None, 0])
def test_a_server_without_a_limit_of_interactions_has_one(root: Path, most: int | None) -> None:
    with served(hosting(root, max_nb_interactions=most, max_time=100)) as address:
        wired = Wire(address)
        assert wired.post(wire_format.SESSION).json()["max_nb_interactions"] == 16


# ── who may read it ─────────────────────────────────────────────────────────


@pytest.mark.long
def test_the_state_is_the_servers_alone_and_holds_no_key(root: Path) -> None:
    before = os.umask(0)
    try:
        server = Served(root)
    finally:
        os.umask(before)
    try:
        wired = Wire(server.address).begun()
        assert measured(wired).status_code == 204
        kept = root.parent / "kept"
        for path in (kept, *kept.rglob("*")):
            wanted = 0o700 if path.is_dir() else 0o600
            assert stat.S_IMODE(path.stat().st_mode) == wanted, path
        key = wired.headers[wire_format.SESSION_KEY]
        assert (kept / folder_of(key)).is_dir()
        for path in (path for path in kept.rglob("*") if path.is_file()):
            assert key.encode() not in path.read_bytes(), path
            assert key not in path.name
            assert ANN.encode() not in path.read_bytes(), path
        assert wired.get(wire_format.REPORT).json()["session_id"] == [key]
    finally:
        server.kill()


# ── what it takes of the server ─────────────────────────────────────────────


def test_a_session_in_use_is_never_opened_a_second_time(root: Path) -> None:
    host = hosting(root, limits=SessionLimits(sessions=99, sessions_per_sequence=99, open_sessions=1))
    key, _ = host.begin("ann", "")
    with host.use("ann", key) as first:
        for _ in range(3):
            host.begin("ann", "")
        with host.use("ann", key) as second:
            assert first is second
    host.begin("ann", "")
    assert len(host._open) == 1


@pytest.mark.parametrize("length", ["1" * 30, "1" * 5000, "-1", "²", "1e3", "٣"])
def test_a_length_that_cannot_be_is_refused(root: Path, length: str) -> None:
    import socket

    with served(hosting(root)) as address:
        wired = Wire(address).begun().handed()
        host, port = address.removeprefix("http://").split(":")
        keys = "".join(f"{name}: {value}\r\n" for name, value in wired.headers.items())
        with socket.create_connection((host, int(port)), timeout=20) as raw:
            raw.sendall(
                f"POST /{wire_format.INTERACTION} HTTP/1.1\r\nHost: x\r\n{keys}Content-Length: {length}\r\n\r\n{{}}".encode()
            )
            assert raw.recv(200).split(b" ")[1] in (b"400", b"413")
        assert wired.post(wire_format.INTERACTION, wired.masks()).status_code == 204
