"""Sessions over the wire, with a real server."""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import requests
import uvicorn

from segjudge.interactive import DavisInteractiveSession, wire_format
from segjudge.interactive.dataset import Davis
from segjudge.interactive.masks import encode_batch_masks, encode_frames
from segjudge.interactive.server import build_app
from segjudge.interactive.session import SessionTerms
from segjudge.interactive.session_host import HostedSession, SessionHost, SessionLimits
from tests.interactive.scene import Clock
from tests.rehearsals import steady_port

ANN, BOB = "ann-key-0123456789", "bob-key-0123456789"
USERS = {hashlib.sha256(key.encode()).hexdigest(): name for key, name in ((ANN, "ann"), (BOB, "bob"))}
SHAPE = (4, 40, 60)


@contextmanager
def served(host: SessionHost) -> Iterator[str]:
    """Yield the server in a thread of the test, which controls its clock."""
    port = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(build_app(host), log_level="error", lifespan="off"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [port]}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{port.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
        port.close()


def hosting(root: Path, clock: Any = None, limits: SessionLimits | None = None, **terms: Any) -> SessionHost:
    made = SessionTerms(**{"max_nb_interactions": 2, **terms})
    return SessionHost(root.parent / "kept", Davis(str(root)), made, USERS, limits or SessionLimits(), clock or Clock())


def client(address: str, root: Path, key: str = ANN, **more: Any) -> DavisInteractiveSession:
    return DavisInteractiveSession(address, key, report_save_dir=root.parent / "mine", **more)


def answer(interaction: int) -> Any:
    masks = np.zeros(SHAPE, int)
    masks[:, 10:30, 10 : 20 + 5 * interaction] = 1
    masks[0, :5, :5] = 7
    masks[1, :5, :5] = -1
    return masks


def means_of(report: pd.DataFrame) -> pd.DataFrame:
    """Return the server's data: a row for each object of each interaction."""
    keys = ["session_id", "sequence", "scribble_idx", "interaction", "object_id"]
    return report.groupby(keys, sort=False, as_index=False)[["jaccard", "contour", "j_and_f", "timing"]].mean()


class Wire:
    """A client that sends anything."""

    def __init__(self, address: str, key: str = ANN) -> None:
        self.address, self.headers = address, {wire_format.USER_KEY: key}

    def begun(self) -> Wire:
        self.headers[wire_format.SESSION_KEY] = self.post(wire_format.SESSION).json()["session_key"]
        return self

    def post(self, path: str, body: Any = None) -> requests.Response:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        return requests.post(f"{self.address}/{path}", data=data, headers=self.headers, timeout=60)

    def get(self, path: str) -> requests.Response:
        return requests.get(f"{self.address}/{path}", headers=self.headers, timeout=60)

    def handed(self) -> Wire:
        """Start a session and receive its scribbles."""
        self.post(wire_format.NEXT)
        self.get(wire_format.SCRIBBLES)
        return self

    def masks(self, masks: Any = None, **more: Any) -> dict[str, Any]:
        batch_masks = encode_batch_masks(answer(0) % 255 if masks is None else masks)
        return {"sequence": "box", "scribble_idx": 1, "interaction": 1, "pred_masks": batch_masks, **more}


def test_a_session_over_the_wire_is_the_session_here(root: Path) -> None:
    def run(session: DavisInteractiveSession) -> tuple[pd.DataFrame, dict[str, Any], list[Any]]:
        seen = []
        with session:
            for sequence, scribbles, new in session.scribbles_iterator():
                lines = [[line["path"] for line in lines] for lines in scribbles["scribbles"]]
                seen.append((sequence, lines, new))
                session.submit_masks(answer(session.interaction_nb or 0), [1, 3])
            return session.get_report(), session.get_global_summary(), seen

    local = DavisInteractiveSession(
        davis_root=str(root), max_nb_interactions=2, report_save_dir=root.parent / "here", clock=Clock()
    )
    with served(hosting(root)) as address:
        report, summary, seen = run(client(address, root))
    wanted, output, drawn = run(local)
    assert seen == drawn
    pd.testing.assert_frame_equal(
        report.drop(columns="session_id"), wire_format.round_report(means_of(wanted)).drop(columns="session_id")
    )
    assert summary.pop("session_key") == report["session_id"][0]
    assert summary == wire_format.round_summary(output)
    (kept,) = (root.parent / "mine").iterdir()
    pd.testing.assert_frame_equal(pd.read_csv(kept, index_col=0), report)


def test_time_runs_from_the_first_scribbles_to_the_last_byte(root: Path) -> None:
    clock = Clock()
    with served(hosting(root, clock)) as address:
        wired = Wire(address).begun()
        output = [wired.post(wire_format.NEXT).json() for _ in range(2)]
        assert output[0] == output[1] == {
            "sequence": "box", "scribble_idx": 1, "interaction": 1, "new_sequence": True, "finished": False
        }  # fmt: skip
        clock.now += 100
        first = wired.get(wire_format.SCRIBBLES).json()
        clock.now += 3
        assert wired.get(wire_format.SCRIBBLES).json() == first
        assert wired.post(wire_format.NEXT).json() == output[0]
        host, port = address.removeprefix("http://").split(":")
        body = json.dumps(wired.masks()).encode()
        with socket.create_connection((host, int(port))) as slow:
            head = f"POST /{wire_format.INTERACTION} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n"
            keys = "".join(f"{name}: {value}\r\n" for name, value in wired.headers.items())
            slow.sendall(f"{head}{keys}\r\n".encode() + body[:-1])
            time.sleep(0.3)
            clock.now += 40
            slow.sendall(body[-1:])
            assert slow.recv(100).startswith(b"HTTP/1.1 204")
        report = wired.get(wire_format.REPORT).json()
    assert report["timing"] == [43.0]


SIZE, ROW = {"size": [1, 2, 2]}, 'is not a list of {"object_id": 1 to 255, "counts": "…"}'


def submitted(session: HostedSession, sequence: str, interaction: int, checksum: str, host: SessionHost) -> None:
    empty = encode_frames(np.zeros(SHAPE, np.uint8))
    session.take_masks(
        wire_format.MaskSubmission([sequence, 1, interaction], empty), host.limits.runs, checksum, host.clock()
    )


def frames_of(*objects: Any) -> dict[str, Any]:
    return {"pred_masks": {"size": [*SHAPE], "frames": [[*objects]] * SHAPE[0]}}


#: What a body has in place of good masks, or the whole body, and the beginning of the sentence about it.
FOR, CANDIDATES = "These masks are for [", "next_scribble_frame_candidates is not a list of whole numbers."
HOSTILE: dict[str, tuple[Any, str]] = {
    "pickle": (b"\x80\x04K\x01.", "The body is not JSON in UTF-8."),
    "deep": (b"[" * 4000, "The body is not JSON in UTF-8."),
    "nested": (b'{"pred_masks":' + b"[" * 200_000, "The body holds too many lists and objects"),
    "long number": (b'{"interaction": 1' + b"0" * 5000 + b"}", "The body is not JSON in UTF-8."),
    "utf-16": ('{"sequence": "box"}'.encode("utf-16"), "The body is not JSON in UTF-8."),
    "another sequence": ({"sequence": "../box"}, f"{FOR}'../box', 1, 1]; the masks for ['box', 1, 1] are due."),
    "true for one": ({"interaction": True}, f"{FOR}'box', 1, True]"),
    "text for one": ({"interaction": "1"}, f"{FOR}'box', 1, '1']"),
    "a list for a number": ({"interaction": []}, f"{FOR}'box', 1, a value of the type list]"),
    "large number": ({"interaction": 10**18}, f"{FOR}'box', 1, a value of the type int]"),
    "the largest small number": ({"interaction": 10**18 - 1}, f"{FOR}'box', 1, 999999999999999999]"),
    "surrogates": ({"sequence": "\ud800" * 10**6}, f"{FOR}'\\ud800"),
    "an object for a name": ({"sequence": {"a": ["b"] * 50}}, f"{FOR}a value of the type dict, 1, 1]"),
    "huge size": ({"pred_masks": {"size": [10**9] * 3, "frames": []}}, "y_true and y_pred must have the same shape."),
    "no frames": ({"pred_masks": {"size": [*SHAPE]}}, 'pred_masks is not {"size": [frames, height, width], "frames": […]}'),
    "two frames": ({"pred_masks": {"size": [*SHAPE], "frames": [[], []]}}, "pred_masks has 2 frames, but its size says 4"),
    "object 256": (frames_of({"object_id": 256, "counts": "0P[2"}), "pred_masks, frame 0: is not a list"),
    "an object twice": (frames_of(*[{"object_id": 1, "counts": "0P[2"}] * 2), "pred_masks, frame 0: names an object twice"),
    "flat size": ({"pred_masks": {"size": [4, 40], "frames": []}}, "y_true and y_pred must have the same shape. (4, 40, 60) != (4, 40)"),
    "long size": ({"pred_masks": {"size": [4, 40, 61, 1, 1], "frames": []}}, "y_true and y_pred must have the same shape. (4, 40, 60) != (4, 40, 61, 1)"),
    "surrogate size": ({"pred_masks": {"size": ["\ud800" * 10**5] * 3, "frames": []}}, "y_true and y_pred must have the same shape."),
    "true for an id": (frames_of({"object_id": True, "counts": ""}), "pred_masks, frame 0: is not a list"),
    "fractional id": (frames_of({"object_id": 1.0, "counts": "0"}), "pred_masks, frame 0: is not a list"),
    "counts in a list": (frames_of({"object_id": 1, "counts": [2400]}), "pred_masks, frame 0: is not a list"),
    "many counts": (frames_of({"object_id": 1, "counts": "0" * 5000}), "pred_masks, frame 0: has counts"),
    "counts beyond": (frames_of({"object_id": 1, "counts": "0PjZ2"}), "pred_masks, frame 0: has counts"),
    "no counts": (frames_of({"object_id": 1, "counts": "0"}), "pred_masks, frame 0: has counts that add up to 0, not to the 2400 pixels"),
    "beyond latin-1": (frames_of({"object_id": 1, "counts": "Ā" * 9}), "pred_masks, frame 0: has counts with invalid characters"),
    "overlap": (frames_of(*({"object_id": k, "counts": "0P[2"} for k in range(1, 200))), "pred_masks, frame 0: has masks that overlap."),
    "fraction": ({"next_scribble_frame_candidates": [1.0]}, CANDIDATES),
    "true": ({"next_scribble_frame_candidates": [True]}, CANDIDATES),
    "text": ({"next_scribble_frame_candidates": "34"}, CANDIDATES),
    "infinity": (b'{"next_scribble_frame_candidates": [Infinity]}', CANDIDATES),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_masks_are_refused_shortly_and_may_be_fixed(root: Path, name: str) -> None:
    host, (changes, beginning) = hosting(root), HOSTILE[name]
    _, session = host.begin("ann", "")
    session.answer_next()
    session.answer_scribbles(only_last=False)
    good = {"sequence": "box", "scribble_idx": 1, "interaction": 1, "pred_masks": encode_batch_masks(answer(0) % 255)}

    def send(data: bytes) -> bool:
        with wire_format.Body() as body:
            body.write(data)
            submission = wire_format.MaskSubmission.read(body, host.most_marks)
        return session.take_masks(submission, host.limits.runs, "x", host.clock())

    with pytest.raises((ValueError, TypeError, RuntimeError, OverflowError)) as caught:
        send(changes if isinstance(changes, bytes) else json.dumps({**good, **changes}).encode())
    assert str(caught.value).startswith(beginning)
    assert len(str(caught.value)) < 1000
    assert not len(host.read_report(session))
    assert send(json.dumps(good).encode())


def test_a_killed_server_keeps_rows_of_sequences_with_numbers_for_names(root: Path) -> None:
    for kind in ("Annotations/480p", "Scribbles"):
        (root / kind / "box").rename(root / kind / "001")
    (root / "ImageSets/2017/val.txt").write_text("001\n")
    path = root / "Scribbles/001/001.json"
    path.write_text(path.read_text().replace('"box"', '"001"'))
    for _ in range(2):
        host = hosting(root, max_nb_interactions=2)
        _, session = host.begin("ann", "one")
        number = len(host.read_report(session)) + 1
        session.answer_next()
        session.answer_scribbles(only_last=False)
        submitted(session, "001", number, str(number), host)
    assert host.read_report(session)["interaction"].tolist() == [1, 2]
    assert session.answer_next() == {"finished": True}
    (done,) = session.folder.glob("result_*.csv")
    (done.parent / f"{done.stem}.tmp.csv").write_text("cut off")
    assert host.read_report(session)["sequence"].tolist() == ["001", "001"]


def test_no_name_that_a_server_sends_becomes_code() -> None:
    output = wire_format.error_of({"error": "__import__('os').system('true')", "message": "x"}, 400)
    assert type(output) is RuntimeError
    assert type(wire_format.error_of("<html>", 502)) is RuntimeError
    assert type(wire_format.error_of({"error": "KeyboardInterrupt", "message": "x"}, 400)) is RuntimeError


class Served:
    """The command, in a process of its own."""

    def __init__(self, root: Path, *more: str) -> None:
        (root.parent / "users").write_text(f"ann {ANN}  # the first\nbob {BOB}\n")

        self._root, self._more, self.port = root, more, steady_port()
        self.start()

    def start(self) -> None:
        command = ["interactive", "serve", "--root", str(self._root), "--users", str(self._root.parent / "users"),
                   "--data", str(self._root.parent / "kept"), "--port", str(self.port), "--max-nb-interactions", "3",
                   *self._more]  # fmt: skip
        self.process = subprocess.Popen(
            [sys.executable, "-m", "segjudge", *command], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        assert self.process.stdout
        self.address = re.search(r"http://\S+", self.process.stdout.readline())[0]  # type: ignore[index]

    def kill(self, number: int = signal.SIGKILL) -> int:
        os.kill(self.process.pid, number)
        code = self.process.wait(timeout=120)
        self.process.stdout.close()  # type: ignore[union-attr]
        return code


@pytest.mark.long
def test_the_server_is_killed_and_nothing_is_lost(root: Path) -> None:
    second = json.loads((root / "Scribbles/box/001.json").read_text())
    (root / "Scribbles/box/002.json").write_text(json.dumps(second))
    server = Served(root)
    try:
        with client(server.address, root) as session:
            assert session.samples == [("box", 1), ("box", 2)]
            for number, (_, _, _) in enumerate(session.scribbles_iterator()):
                if number % 2 == 0:
                    server.kill()
                    threading.Thread(target=server.start).start()  # the client finds no server at first
                session.submit_masks(answer(session.interaction_nb or 0))
                if number % 3 == 1:
                    server.kill()
                    server.start()
            report, summary = session.get_report(), session.get_global_summary()
        assert len(report) == 6
        with DavisInteractiveSession(
            davis_root=str(root), max_nb_interactions=3, report_save_dir=root.parent / "here"
        ) as local:
            for _ in local.scribbles_iterator():
                local.submit_masks(answer(local.interaction_nb or 0))
        wanted = wire_format.round_report(means_of(local.get_report()))
        pd.testing.assert_frame_equal(
            report.drop(columns=["session_id", "timing"]), wanted.drop(columns=["session_id", "timing"])
        )
        assert summary["curve"]["J_AND_F"] == wire_format.round_summary(local.get_global_summary())["curve"]["J_AND_F"]
        server.kill()
        server.start()
        wired = Wire(server.address)
        wired.headers[wire_format.SESSION_KEY] = session.session_key
        assert wired.post(wire_format.NEXT).json() == {"finished": True}
        assert wired.post(wire_format.FINISH).json() == summary
        assert server.kill(signal.SIGTERM) in (0, -signal.SIGTERM)
    finally:
        server.process.kill()
