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
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import requests
import uvicorn
from PIL import Image

from segjudge.interactive import DavisInteractiveSession, session_host, wire_format
from segjudge.interactive.dataset import Davis, SessionInputError
from segjudge.interactive.masks import encode_batch_masks, encode_frames
from segjudge.interactive.remote_session import RemoteConnector
from segjudge.interactive.server import build_app
from segjudge.interactive.session import SessionTerms
from segjudge.interactive.session_host import HostedSession, SessionHost, SessionLimits, Uptime, read_users
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


def test_a_repeat_changes_nothing_and_another_body_is_refused(root: Path) -> None:
    with served(hosting(root)) as address:
        wired = Wire(address).begun().handed()
        answers = [wired.post(wire_format.INTERACTION, wired.masks()) for _ in range(3)]
        assert [(answer.status_code, wire_format.LATE in answer.headers) for answer in answers] == [(204, False)] * 3
        other_answer = wired.post(wire_format.INTERACTION, wired.masks(np.zeros(SHAPE, int)))
        assert (other_answer.status_code, other_answer.json()["error"]) == (409, "RuntimeError")
        assert "the masks for ['box', 1, 2] are due" in other_answer.json()["message"]
        assert wired.post(wire_format.NEXT).json()["interaction"] == 2
        assert len(wired.get(wire_format.REPORT).json()["interaction"]) == 1


def test_nobody_sees_anothers_session(root: Path) -> None:
    with served(hosting(root)) as address:
        ann, bob = Wire(address).begun().handed(), Wire(address, BOB).begun()
        ann.post(wire_format.INTERACTION, ann.masks())
        assert bob.get(wire_format.REPORT).json()["interaction"] == []
        bob.headers[wire_format.SESSION_KEY] = ann.headers[wire_format.SESSION_KEY]
        for path in (wire_format.NEXT, wire_format.INTERACTION, wire_format.FINISH):
            assert bob.post(path, bob.masks()).status_code == 404
        assert bob.get(wire_format.REPORT).json() == {
            "error": "LookupError",
            "message": "You have no such session.",
        }
        for key in ("", "nobody", ANN[:-1], "ä".encode().decode("latin-1")):
            bob.headers[wire_format.USER_KEY] = key
            assert bob.post(wire_format.SESSION).status_code == 401
        ann.headers[wire_format.SESSION_KEY] = "../" + ann.headers[wire_format.SESSION_KEY]
        assert ann.post(wire_format.NEXT).status_code == 404


#: More opening brackets than any submission has.
NESTED = b'{"pred_masks":' + b"[" * 200_000
BOMB = {"object_id": 1, "counts": "0" * 5000}


def deep_size() -> bytes:
    due = '{"sequence": "box", "scribble_idx": 1, "interaction": 1, "pred_masks": {"frames": [], "size": '
    return f"{due}{'[' * 900}{']' * 900}}}}}".encode()


SIZE, ROW = {"size": [1, 2, 2]}, 'is not a list of {"object_id": 1 to 255, "counts": "…"}'
MASK = {"object_id": 1, "counts": "04"}
FORM = 'pred_masks is not {"size": [frames, height, width], "frames": […]}'
#: A body, and the sentence about it.
BODIES: dict[str, tuple[bytes, str]] = {
    "no JSON": (b"{", "The body is not JSON in UTF-8."),
    "no UTF-8": (b'"\xff"', "The body is not JSON in UTF-8."),
    "a list": (b"[]", "The body is not a JSON object."),
    "many lists": (b"[" * 100, "The body holds too many lists and objects for the masks of a sequence."),
    "a frame in words": (b'{"next_scribble_frame_candidates": ["a"]}', "next_scribble_frame_candidates is not a list of whole numbers."),
    "no masks": (b"{}", FORM),
    "masks without frames": (json.dumps({"pred_masks": SIZE}).encode(), FORM),
    "no size": (b'{"pred_masks": {"frames": []}}', "y_true and y_pred must have the same shape. (1, 2, 2) != None"),
    "two frames": (json.dumps({"pred_masks": {**SIZE, "frames": [[], []]}}).encode(), "pred_masks has 2 frames, but its size says 1"),
    "no rows": (json.dumps({"pred_masks": {**SIZE, "frames": [{}]}}).encode(), f"pred_masks, frame 0: {ROW}"),
    "object 256": (json.dumps({"pred_masks": {**SIZE, "frames": [[{**MASK, "object_id": 256}]]}}).encode(), f"pred_masks, frame 0: {ROW}"),
    "an object twice": (json.dumps({"pred_masks": {**SIZE, "frames": [[MASK, MASK]]}}).encode(), "pred_masks, frame 0: names an object twice"),
    "overlapping objects": (json.dumps({"pred_masks": {**SIZE, "frames": [[MASK, {**MASK, "object_id": 2}]]}}).encode(), "pred_masks, frame 0: has masks that overlap. Give each pixel at most one object."),
    "many run lengths": (json.dumps({"pred_masks": {**SIZE, "frames": [[{**MASK, "counts": "0" * 9}]]}}).encode(), "pred_masks has more than 8 characters of run lengths"),
}  # fmt: skip


@pytest.mark.parametrize("name", BODIES)
def test_a_refused_body_is_answered_by_one_sentence(name: str) -> None:
    data, sentence = BODIES[name]
    with wire_format.Body() as body:
        body.write(data)
        with pytest.raises((ValueError, TypeError, OverflowError)) as caught:
            wire_format.MaskSubmission.read(body, 99).decode((1, 2, 2), 8)
    assert str(caught.value) == sentence


@pytest.mark.long
@pytest.mark.parametrize(
    ("body", "message"),
    [
        pytest.param(b"", "is not JSON", id="empty"),
        pytest.param(b"\x80\x04K\x01.", "is not JSON", id="pickle"),
        pytest.param(b"[1]", "not a JSON object", id="list"),
        pytest.param(b"[" * 4000, "is not JSON", id="deep"),
        pytest.param(NESTED, "too many lists and objects", id="nested"),
        pytest.param(b'{"interaction": 1' + b"0" * 5000 + b"}", "is not JSON", id="long number"),
        pytest.param({"sequence": "../box"}, "are due", id="sequence"),
        pytest.param({"interaction": True}, r"for \['box', 1, True\]; the masks", id="true for one"),
        pytest.param({"interaction": "1"}, "are due", id="types"),
        pytest.param({"pred_masks": None}, "pred_masks is not", id="no masks"),
        pytest.param({"pred_masks": {"size": [10**9] * 3, "frames": []}}, r"must have the same shape", id="size"),
        pytest.param({"pred_masks": {"size": [4, 40, 60], "frames": []}}, "has 0 frames, but its size says 4$", id="no frames"),
        pytest.param({"pred_masks": {"size": [4, 40, 60], "frames": [[1]] * 4}}, "frame 0: is not a list", id="no object"),
        pytest.param(
            {"pred_masks": {"size": [4, 40, 60], "frames": [[{"object_id": 0, "counts": ""}]] * 4}}, "1 to 255", id="id"
        ),
        pytest.param({"pred_masks": {"size": [4, 40, 60], "frames": [[BOMB]] * 4}}, "more than 2400 pixels", id="runs"),
        pytest.param(
            {"pred_masks": {"size": [4, 40, 60], "frames": [[{"object_id": 1, "counts": "0PjZ2"}]] * 4}},
            "frame 0: has counts", id="counts"
        ),
        pytest.param(
            {"pred_masks": {"size": [4, 40, 60], "frames": [[{"object_id": 1, "counts": "T[2"}] * 2] * 4}},
            "names an object twice", id="twice"
        ),
        pytest.param(
            {"pred_masks": {"size": [4, 40, 60],
                            "frames": [[{"object_id": k, "counts": "0P[2"} for k in range(1, 200)]] * 4}},
            "masks that overlap", id="overlap"
        ),
        pytest.param({"interaction": []}, "a value of the type list", id="a list for a number"),
        pytest.param({"pred_masks": {"frames": 1}}, "pred_masks is not", id="no size"),
        pytest.param({"pred_masks": {"size": [4, 40], "frames": []}}, r"\(4, 40, 60\) != \(4, 40\)", id="flat size"),
        pytest.param({"pred_masks": {"size": 4, "frames": []}}, r"\(4, 40, 60\) != 4$", id="a number for a size"),
        pytest.param({"pred_masks": {"size": [4, 40, 61, 1, 1], "frames": []}}, r"!= \(4, 40, 61, 1\)$", id="long size"),
        *(pytest.param({"pred_masks": {"size": [4, 40, 60], "frames": [frame] * 4}}, "frame 0: is not a list", id=f"frame {frame}")
          for frame in (1, [{}], [{"object_id": 256, "counts": ""}], [{"object_id": True, "counts": ""}], [{"object_id": 1, "counts": 1}])),
        pytest.param({"pred_masks": {"size": [4, 40, 60], "frames": [[{"object_id": 1, "counts": "0"}]] * 4}},
                     "counts that add up to 0, not to the 2400 pixels", id="no counts"),
        pytest.param({"next_scribble_frame_candidates": [1.0]}, "not a list of whole numbers", id="fraction"),
        pytest.param({"next_scribble_frame_candidates": 3}, "not a list of whole numbers", id="candidates"),
        pytest.param({"next_scribble_frame_candidates": "34"}, "not a list of whole numbers", id="text"),
        pytest.param({"next_scribble_frame_candidates": ["a"]}, "not a list of whole numbers", id="words"),
        pytest.param(b'{"next_scribble_frame_candidates": [Infinity]}', "not a list of whole numbers", id="infinity"),
        pytest.param({"sequence": "\ud800" * 10**6}, "are due", id="surrogates"),
        pytest.param({"interaction": 10**4000}, "a value of the type int", id="large number"),
        pytest.param({"interaction": 10**18}, "a value of the type int", id="the smallest large number"),
        pytest.param({"interaction": 10**18 - 1}, "999999999999999999", id="the largest small number"),
        pytest.param({"sequence": {"a": ["b"] * 50}}, "a value of the type dict", id="an object for a name"),
        pytest.param(b'{"sequence": ' + b"[" * 900 + b"]" * 900 + b"}", "a value of the type list|not JSON", id="deep name"),
        pytest.param(deep_size(), "y_true and y_pred must have the same shape|not JSON", id="deep size"),
        pytest.param({"pred_masks": {"size": ["\ud800" * 10**5] * 3, "frames": []}}, "same shape", id="surrogate size"),
        pytest.param({"pred_masks": {"size": [4, 40, 60], "frames": [[{"object_id": 1, "counts": "\ud800"}]] * 4}},
                     "invalid characters", id="surrogate counts"),
        pytest.param({"pred_masks": {"size": [4, 40, 60], "frames": [[{"object_id": 1, "counts": "Ā" * 9}]] * 4}},
                     "invalid characters", id="beyond latin-1"),
        pytest.param({"pred_masks": {"size": [4, 40, 60], "frames": [[{"object_id": 1.0, "counts": "0"}]] * 4}},
                     "1 to 255", id="fractional id"),
        pytest.param({"pred_masks": {"size": [4, 40, 60], "frames": [[{"object_id": 1, "counts": [2400]}]] * 4}},
                     "1 to 255", id="counts in a list"),
        pytest.param({"pred_masks": {"size": [4.5, 40, 60], "frames": [[]] * 4}}, "same shape", id="fractional size"),
        pytest.param({"pred_masks": "frames"}, "pred_masks is not", id="text for masks"),
        pytest.param({"next_scribble_frame_candidates": [True]}, "not a list of whole numbers", id="true"),
        pytest.param('{"sequence": "box"}'.encode("utf-16"), "not JSON in UTF-8", id="utf-16"),
    ],
)  # fmt: skip
def test_hostile_masks_are_refused_and_may_be_fixed(root: Path, body: Any, message: str) -> None:
    with served(hosting(root)) as address:
        wired = Wire(address).begun().handed()
        output = wired.post(wire_format.INTERACTION, body if isinstance(body, bytes) else wired.masks() | body)
        assert output.status_code in (400, 409, 413, 422), output.text
        assert len(output.text) < 1000
        assert re.search(message, output.json()["message"]), output.text
        assert output.json()["error"] in ("ValueError", "TypeError", "RuntimeError", "OverflowError")
        assert wired.get(wire_format.REPORT).json()["interaction"] == []
        assert wired.post(wire_format.INTERACTION, wired.masks()).status_code == 204


@pytest.mark.parametrize(
    "defect",
    [
        KeyError("x"),
        IndexError(0),
        RecursionError(),
        PermissionError(13, "Permission denied"),
        SessionInputError("x.png"),
    ],
    ids=repr,
)
def test_a_defect_of_ours_is_not_taken_for_a_refusal(
    root: Path, monkeypatch: pytest.MonkeyPatch, defect: Exception
) -> None:
    def fail(_session: HostedSession) -> None:
        raise defect

    monkeypatch.setattr(HostedSession, "answer_next", fail)
    with served(hosting(root)) as address:
        output = Wire(address).begun().post(wire_format.NEXT)
    assert (output.status_code, output.json()["error"]) == (500, "RuntimeError")
    assert "defect of the server" in output.json()["message"]


def test_limits(root: Path) -> None:
    clock = Clock()
    host = hosting(root, clock, SessionLimits(body=20_000, runs=100, sessions=2, idle=60))
    with served(host) as address:
        wired = Wire(address).begun().handed()
        for body in (b"x" * 20_001, (b"x" * 10_000 for _ in range(3))):
            output = requests.post(f"{address}/{wire_format.INTERACTION}", data=body, headers=wired.headers, timeout=60)
            assert (output.status_code, output.json()["error"]) == (413, "OverflowError")
        noise = np.random.default_rng(1).integers(0, 2, SHAPE)
        output = wired.post(wire_format.INTERACTION, wired.masks(noise))
        assert (output.status_code, output.json()["message"][:28]) == (413, "pred_masks has more than 100")
        Wire(address).begun()
        third = Wire(address).post(wire_format.SESSION)
        assert (third.status_code, third.json()["error"]) == (429, "BlockingIOError")
        assert "unfinished sessions, the limit" in third.json()["message"]
        clock.now += 61
        Wire(address).begun()
        assert wired.post(wire_format.NEXT).json()["message"].startswith("This session was closed")
    with pytest.raises(ValueError, match="box: has more than 100 pixels"):
        hosting(root, limits=SessionLimits(pixels=100))


def test_a_body_of_brackets_is_refused_before_it_is_read(root: Path) -> None:
    with served(hosting(root)) as address:
        wired = Wire(address).begun().handed()
        output = wired.post(wire_format.INTERACTION, b'{"a":[' + b"[]," * 100_000 + b"[]]}")
        assert (output.status_code, output.json()["error"]) == (413, "OverflowError")


def submitted(session: HostedSession, sequence: str, interaction: int, checksum: str, host: SessionHost) -> None:
    empty = encode_frames(np.zeros(SHAPE, np.uint8))
    session.take_masks(
        wire_format.MaskSubmission([sequence, 1, interaction], empty), host.limits.runs, checksum, host.clock()
    )


def test_scribbles_that_were_sent_again_do_not_grow(root: Path) -> None:
    host = hosting(root)
    _, session = host.begin("ann", "")
    session.answer_next()
    session.answer_scribbles(only_last=False)
    again = session.answer_scribbles(only_last=False)
    before = json.dumps(again)
    submitted(session, "box", 1, "x", host)
    assert json.dumps(again) == before


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


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda place: (place / "Scribbles/box/001.json").unlink(), "box: has no scribbles"),
        (lambda place: (place / "Scribbles/box/001.json").write_text("{"), "001.json: is not JSON"),
        (lambda place: (place / "Scribbles/box/001.json").write_text('{"sequence": "box", "scribbles": [[]]}'),
         "has scribbles for 1 frame, and box has 4"),
        (lambda place: (place / "ImageSets/2017/val.txt").write_text(""), "val.txt: names no sequence"),
        (lambda place: (place / "ImageSets/2017/val.txt").write_text("box\nbox\n"), "val.txt: names box twice"),
        (lambda place: Image.new("L", (9, 9)).save(place / "Annotations/480p/box/00002.png"),
         "00002.png: differs in size"),
        (lambda place: Image.new("RGB", (60, 40)).save(place / "Annotations/480p/box/00002.png"), "is a colour picture"),
        (lambda place: (place / "Annotations/480p/box/00002.png").write_bytes(b"x"), "00002.png: cannot be read"),
        (lambda place: [Image.new("L", (60, 40)).save(place / f"Annotations/480p/box/0000{k}.png") for k in range(4)],
         "box: its masks in .* show no object"),
    ],
    ids=["no scribbles", "broken", "short", "empty list", "twice", "sizes", "colour", "no image", "no object"],
)  # fmt: skip
def test_a_dataset_that_cannot_serve_is_refused_at_the_start(root: Path, spoil: Any, message: str) -> None:
    spoil(root)
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        hosting(root)


def test_a_lost_answer_opens_no_second_session(root: Path) -> None:
    with served(hosting(root)) as address:
        wired = Wire(address)
        wired.headers[wire_format.REQUEST_KEY] = "the same"
        assert wired.post(wire_format.SESSION).json() == wired.post(wire_format.SESSION).json()


@pytest.mark.parametrize("path", [wire_format.FINISH, wire_format.SCRIBBLES, wire_format.INTERACTION], ids=str)
def test_out_of_order(root: Path, path: str) -> None:
    with served(hosting(root)) as address:
        wired = Wire(address).begun()
        output = wired.get(path) if path == wire_format.SCRIBBLES else wired.post(path, wired.masks())
        assert (output.status_code, output.json()["error"]) == (409, "RuntimeError")
        missing = wired.get("api/dataset/samples")
        assert (missing.status_code, missing.json()["error"]) == (404, "LookupError")


def test_masks_after_the_time_do_not_count(root: Path) -> None:
    clock = Clock()
    with served(hosting(root, clock, max_time=10)) as address, client(address, root) as session:
        session.next()
        session.get_scribbles()
        clock.now += 11
        with pytest.warns(UserWarning, match="The time for box is over"):
            session.submit_masks(answer(0))
        assert not session.next()
        assert session.get_global_summary()["auc"] == 0.0


@pytest.mark.parametrize(
    ("masks", "error", "message"),
    [
        (np.zeros((3, 40, 60)), ValueError, r"must have the same shape. \(4, 40, 60\) != \(3, 40, 60\)"),
        (np.zeros((40, 60)), ValueError, "y_pred array must have 3 dimensions."),
        (None, TypeError, "not 'NoneType'"),
        (np.full(SHAPE, np.nan), ValueError, "not finite numbers"),
    ],
    ids=["frames", "2-d", "none", "nan"],
)
def test_a_clients_mistakes_are_reported_as_here(root: Path, masks: Any, error: Any, message: str) -> None:
    with served(hosting(root)) as address, client(address, root) as session:
        with pytest.raises(RuntimeError, match="call next"):
            session.get_scribbles()
        session.next()
        with pytest.raises(RuntimeError, match="You must have called"):
            session.submit_masks(answer(0))
        session.get_scribbles()
        with pytest.raises(RuntimeError, match="twice without"):
            session.get_scribbles()
        with pytest.raises(error, match=message):
            session.submit_masks(masks)
        session.submit_masks(answer(0))
        assert len(session.get_report()) == 1


def test_no_name_that_a_server_sends_becomes_code() -> None:
    output = wire_format.error_of({"error": "__import__('os').system('true')", "message": "x"}, 400)
    assert type(output) is RuntimeError
    assert type(wire_format.error_of("<html>", 502)) is RuntimeError
    assert type(wire_format.error_of({"error": "KeyboardInterrupt", "message": "x"}, 400)) is RuntimeError


def test_a_client_needs_a_key_and_a_server(root: Path) -> None:
    with pytest.raises(ValueError, match="user_key and session_key must be specified"):
        DavisInteractiveSession("http://127.0.0.1:9", report_save_dir=root)
    with pytest.raises(ValueError, match="neither 'localhost' nor an address"):
        DavisInteractiveSession("example", ANN, report_save_dir=root)
    with pytest.raises(ConnectionError, match="cannot be reached"):
        DavisInteractiveSession("http://127.0.0.1:9", ANN, report_save_dir=root)
    with served(hosting(root)) as address, pytest.raises(NameError, match="not found"):
        DavisInteractiveSession(f"{address}/elsewhere", ANN, report_save_dir=root)
    with served(hosting(root)) as address, pytest.raises(PermissionError), client(address, root, "who"):
        pass


def test_an_answer_that_breaks_off_is_asked_for_again() -> None:
    broken, whole = (b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n{}" % size for size in (99, 2))
    port = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        for text in (broken, whole):
            connection, _ = port.accept()
            with connection:
                connection.recv(1 << 16)
                connection.sendall(text)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    RemoteConnector(ANN, "key", f"http://127.0.0.1:{port.getsockname()[1]}")
    thread.join(10)
    port.close()
    assert not thread.is_alive()


def test_a_client_goes_on_where_the_server_stands(root: Path) -> None:
    host = hosting(root, max_nb_interactions=3)
    with served(host) as address:
        with client(address, root) as first:
            first.next()
            first.get_scribbles()
            first.submit_masks(answer(0))
            first.next()
            first.get_scribbles()
        with pytest.raises(ValueError, match="no unfinished session of this server"), client(
            address, root, BOB, resume=True
        ):  # fmt: skip
            pass
        with client(address, root, resume=True) as again:
            assert isinstance(again.connector, RemoteConnector)
            seen = []
            for _, _, new in again.scribbles_iterator():
                seen.append((again.interaction_nb, new))
                again.submit_masks(answer(1))
            assert again.session_key == first.session_key
            assert seen == [(1, True), (2, False)], "a program that goes on has nothing of the sample yet"
        assert sorted(path.suffix for path in (root.parent / "mine").iterdir()) == [".csv"]


@pytest.mark.parametrize(
    ("text", "message"),
    [("ann", ":1: is not `name key`"), ("# none\n", "holds no user"), (f"ann {ANN}\nbob {ANN}\n", "bob occurs twice"),
     ("ann short\n", "16 characters")],
    ids=["one word", "none", "twice", "short"],
)  # fmt: skip
def test_a_file_of_users_that_is_wrong(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "users").write_text(text)
    with pytest.raises(ValueError, match=message):
        read_users(str(tmp_path / "users"))


def test_time_while_the_server_is_down_counts_for_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(session_host, "time", SimpleNamespace(monotonic=clock))
    first = Uptime(tmp_path)
    clock.now += 40
    first.stop()
    clock.now += 500
    second = Uptime(tmp_path)
    assert second() == 40
    clock.now += 2
    assert second() == 42
    second.stop()


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
