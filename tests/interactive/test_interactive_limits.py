"""What a user can learn and take from a session server, across restarts and kills."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import requests

from segjudge.interactive import server as http_server
from segjudge.interactive import wire_format
from segjudge.interactive.session_host import SessionLimits
from segjudge.system.files import hold_folder
from tests.interactive.scene import Clock
from tests.interactive.test_interactive_wire import ANN, BOB, SHAPE, Served, Wire, answer, hosting, served

SMALL_BODY = http_server.SMALL_BODY
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


@pytest.mark.long
def test_unfinished_sessions_are_limited_over_a_restart(root: Path) -> None:
    limits = SessionLimits(sessions=2, sessions_per_sequence=99)
    with served(hosting(root, limits=limits)) as address:
        first = Wire(address).begun()
        Wire(address).begun()
    for _ in range(2):
        with served(hosting(root, limits=limits)) as address:
            refusal = Wire(address).post(wire_format.SESSION)
            assert refusal.status_code == 429
            assert "ann has 2 unfinished sessions" in refusal.json()["message"]
            Wire(address, BOB).begun()
    with served(hosting(root, limits=limits)) as address:
        first.address = address
        ended(first)
        Wire(address).begun()
        assert Wire(address).post(wire_format.SESSION).status_code == 429


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


def test_the_time_and_the_number_of_interactions_go_on_over_a_restart(root: Path) -> None:
    clock = Clock()
    with served(hosting(root, clock, max_time=10, max_nb_interactions=3)) as address:
        wired = Wire(address).begun()
        assert measured(wired).status_code == 204
        clock.now += 6
    with served(hosting(root, clock, max_time=10, max_nb_interactions=3)) as address:
        wired.address = address
        assert measured(wired, 2).status_code == 204
        wired.handed()
        clock.now += 5
    with served(hosting(root, clock, max_time=10, max_nb_interactions=3)) as address:
        wired.address = address
        late = wired.post(wire_format.INTERACTION, wired.masks(interaction=3))
        assert late.headers[wire_format.LATE] == "1", "eleven seconds after the first scribbles"
        assert wired.post(wire_format.NEXT).json() == {"finished": True}


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


def test_late_and_refused_masks_do_not_count_as_measured(root: Path) -> None:
    clock = Clock()
    host = hosting(root, clock, SessionLimits(sessions=99, sessions_per_sequence=1), max_time=10)
    with served(host) as address:
        wired = Wire(address).begun().handed()
        assert wired.post(wire_format.INTERACTION, b"{").status_code == 400
        clock.now += 11
        assert wired.post(wire_format.INTERACTION, wired.masks()).headers[wire_format.LATE] == "1"
        assert wired.post(wire_format.NEXT).json() == {"finished": True}
        Wire(address).begun()
    assert not list((root.parent / "kept/ledger").iterdir())


@pytest.mark.long
def test_what_counts_is_on_the_disk_before_anything_is_told(root: Path) -> None:
    """A server that is killed during a submission has counted it."""
    server = Served(root, "--sessions-per-sequence", "1")
    try:
        wired = Wire(server.address).begun()
        for number in (1, 2, 3):
            measured(wired, number)
            server.kill()
            server.start()
            wired.address = server.address
            assert len(wired.get(wire_format.REPORT).json()["interaction"]) == number
            assert Wire(server.address).post(wire_format.SESSION).status_code == 429
        assert wired.post(wire_format.NEXT).json() == {"finished": True}
        assert Wire(server.address).post(wire_format.SESSION).status_code == 429
        Wire(server.address, BOB).begun()
    finally:
        server.kill()


def test_a_ledger_that_cannot_be_read_is_not_taken_for_an_empty_one(root: Path) -> None:
    with served(hosting(root, limits=NEW)) as address:
        ended(Wire(address).begun())
    (path,) = (root.parent / "kept/ledger").iterdir()
    for text in ("", "[]", '{"user": "ann", "sequences": {"box": [1]}}', path.read_text()[:-3]):
        path.write_text(text)
        with pytest.raises(ValueError, match="is not a ledger"):
            hosting(root)


@pytest.mark.long
def test_two_servers_cannot_share_a_folder(root: Path) -> None:
    server = Served(root)
    try:
        command = [sys.executable, "-m", "segjudge", "interactive", "serve", "--root", str(root), "--users",
                   str(root.parent / "users"), "--data", str(root.parent / "kept"), "--port", "0"]  # fmt: skip
        second = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        assert second.returncode == 3
        assert "another server of sessions uses this folder" in second.stderr
        Wire(server.address).begun()
    finally:
        server.kill(signal.SIGKILL)
    hold_folder(str(root.parent / "kept"), "test").close()


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


def test_one_pixel_does_not_show_in_a_sequence_of_usual_size() -> None:
    """The statement of docs/interactive-protocol.md about four decimals, with its numbers."""
    frames, area = 70, 10_000
    item = 1 / area / frames  # the mean J over all frames for a mask of one pixel
    assert round(item, wire_format.DECIMALS) == 0
    # A frame's J shows from half a step of the mean on.
    assert 0.5 * 10**-wire_format.DECIMALS * frames == pytest.approx(0.0035)


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


@pytest.mark.long
def test_few_sessions_stay_in_memory_and_all_go_on(root: Path) -> None:
    host = hosting(root, limits=SessionLimits(sessions=99, sessions_per_sequence=99, open_sessions=3))
    with served(host) as address:
        all_of_them = [Wire(address).begun() for _ in range(8)]
        for number in (1, 2):
            for wired in all_of_them:
                assert measured(wired, number).status_code == 204
                assert len(host._open) <= 3
        for wired in all_of_them:
            report = wired.get(wire_format.REPORT).json()
            assert report["interaction"] == [1, 2] or len(set(report["interaction"])) == 2
            assert wired.post(wire_format.NEXT).json() == {"finished": True}


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


def high_water(process: int) -> int:
    """Return the peak memory of a process in MB."""
    (line,) = [line for line in Path(f"/proc/{process}/status").read_text().splitlines() if "VmHWM" in line]
    return int(line.split()[1]) >> 10


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="no /proc")
@pytest.mark.long
def test_large_submissions_of_two_sessions_take_turns_in_memory(root: Path) -> None:
    """Four submissions of 40 MB at once took 800 MB; one takes 160 to 240: its bytes, its text and its strings."""
    megabytes = 40
    server = Served(root)
    try:
        both = [Wire(server.address, key).begun().handed() for key in (ANN, BOB)]
        before = high_water(server.process.pid)
        counts = "1" * (megabytes << 18)
        body = json.dumps(
            both[0].masks()
            | {"pred_masks": {"size": [4, 40, 60], "frames": [[{"object_id": 1, "counts": counts}]] * 4}}
        ).encode()
        assert len(body) > SMALL_BODY
        for _ in range(2):
            codes: list[int] = []

            def send(wired: Wire, codes: list[int] = codes) -> None:
                codes.append(wired.post(wire_format.INTERACTION, body).status_code)

            threads = [threading.Thread(target=send, args=(wired,)) for wired in both * 2]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert set(codes) <= {400, 413, 429}
        assert high_water(server.process.pid) - before < 8 * megabytes
        assert not [path for path in (root.parent / "kept").iterdir() if path.name.startswith("tmp")]
        assert both[0].post(wire_format.INTERACTION, both[0].masks()).status_code == 204
    finally:
        server.kill()


def test_a_submission_that_was_refused_is_not_kept(root: Path) -> None:
    """An error refers to the frames on its path, and these to the submission."""
    import gc

    with served(hosting(root)) as address:
        wired = Wire(address).begun().handed()
        gc.collect()
        gc.disable()
        try:
            text = "x" * (SMALL_BODY // 2)
            for _ in range(3):
                assert (
                    wired.post(
                        wire_format.INTERACTION, wired.masks() | {"pred_masks": {"size": [1], "x": text}}
                    ).status_code
                    == 400
                )
            del text
            kept = [
                item
                for item in gc.get_objects()
                if isinstance(item, dict) and isinstance(item.get("x"), str) and len(item["x"]) > SMALL_BODY // 4
            ]
        finally:
            gc.enable()
    assert not kept


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


def test_answers_do_not_depend_on_how_a_key_is_wrong(root: Path) -> None:
    with served(hosting(root)) as address:
        wired = Wire(address).begun()
        mine = wired.headers[wire_format.SESSION_KEY]
        for key in (
            "",
            "x",
            mine[:-1],
            mine.upper(),
            folder_of(mine),
            folder_of(mine).removeprefix("session-"),
            "../" + mine,
            "ä".encode().decode("latin-1"),
        ):
            wired.headers[wire_format.SESSION_KEY] = key
            output = wired.post(wire_format.NEXT)
            assert (output.status_code, output.json()["message"]) == (404, "You have no such session."), key
    assert answer(0).shape == SHAPE
