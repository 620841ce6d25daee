"""A server of sessions, called without a network: its answers one after the other, its limits, and its clock."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest

from segjudge.interactive import (
    DavisInteractiveSession,
    dataset,
    masks,
    remote_session,
    server,
    session,
    session_host,
    wire_format,
)
from segjudge.interactive.server import build_app
from segjudge.interactive.wire_format import FINISH, HEALTH, INTERACTION, NEXT, REPORT, SCRIBBLES, SESSION
from tests.outcomes import outcome_of

from .plays import Play, means_of, rounded, summary_of
from .scene import Clock, answer

ANN, BOB = "ann-key-0123456789", "bob-key-0123456789"
USERS = {session_host._checksum(key.encode()): user for key, user in ((ANN, "ann"), (BOB, "bob"))}


class Wire:
    """The server's application, called without a network; it also replaces `requests.Session`."""

    def __init__(self, host: session_host.SessionHost, **keys: str) -> None:
        self._app, self._runner = build_app(host), asyncio.Runner()
        self.keys = {name.replace("_", "-"): value for name, value in keys.items()}

    def close(self) -> None:
        self._runner.close()

    def request(self, method: str, url: str, headers: Any = None, timeout: Any = None, data: bytes = b"", params: Any = None,
                allow_redirects: bool = False) -> Any:  # fmt: skip
        del timeout, allow_redirects
        path = "/" + url.partition("://")[2].partition("/")[2]
        query = "&".join(f"{name}={value}" for name, value in (params or {}).items())
        return self._runner.run(self._send(method, path, query, headers or {}, data))

    async def _send(self, method: str, path: str, query: str, headers: dict[str, str], data: bytes) -> Any:
        scope = {
            "type": "http", "method": method, "path": path, "raw_path": path.encode(), "query_string": query.encode(),
            "headers": [(name.lower().encode(), value.encode()) for name, value in headers.items()], "http_version": "1.1",
        }  # fmt: skip
        parts = [
            {"type": "http.request", "body": data[:99], "more_body": True},
            {"type": "http.request", "body": data[99:]},
        ]
        sent: list[Any] = []

        async def receive() -> Any:
            return parts.pop(0) if parts else {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            sent.append(message)

        await self._app(scope, receive, send)
        body = b"".join(message.get("body", b"") for message in sent)
        named = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
        return SimpleNamespace(
            status_code=sent[0]["status"], headers=named, json=lambda: json.loads(body), text=body.decode()
        )

    def ask(self, method: str, path: str, body: Any = b"", **headers: str) -> tuple[int, Any]:
        """Return the status and the answer: an error as `Name: sentence`, too late masks as `late`."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        address, _, query = path.partition("?")
        named = {**self.keys, **{name.replace("_", "-"): value for name, value in headers.items()}}
        params = dict([query.split("=")]) if query else {}
        reply = self.request(method, f"http://x/{address}", named, data=data, params=params)
        document = json.loads(reply.text) if reply.text else "late" if "too-late" in reply.headers else None
        is_error = isinstance(document, dict) and "error" in document
        assert ("connection" in reply.headers) == (reply.status_code == 413)
        return reply.status_code, f"{document['error']}: {document['message']}" if is_error else document

    def get(self, path: str) -> tuple[int, Any]:
        return self.ask("GET", path)

    def post(self, path: str, body: Any = b"", **headers: str) -> tuple[int, Any]:
        return self.ask("POST", path, body, **headers)

    def lines(self, query: str = "") -> list[list[tuple[int, int]]]:
        """Return the object and the number of points of each line, frame by frame."""
        status, document = self.get(SCRIBBLES + query)
        assert (status, document["scribbles"]["sequence"]) == (200, "box")
        return [
            [(line["object_id"], len(line["path"])) for line in lines] for lines in document["scribbles"]["scribbles"]
        ]


@pytest.fixture
def host(davis: Path, clock: Clock) -> Iterator[Callable[..., session_host.SessionHost]]:
    """How a server begins: its folder, limits and terms; its files are its own, as the command has it."""

    def make(name: str, limits: Any = None, **terms: Any) -> session_host.SessionHost:
        made = session.SessionTerms(**{"max_nb_interactions": 2, "subset": "mine", **terms})
        known = session_host.SessionLimits(**(limits or {}))
        return session_host.SessionHost(davis.parent / name, dataset.Davis(str(davis)), made, USERS, known, clock)

    mask = os.umask(0o077)
    yield make
    os.umask(mask)


@pytest.fixture
def wires() -> Iterator[Callable[..., Wire]]:
    opened: list[Wire] = []

    def open_wire(host: session_host.SessionHost, **keys: str) -> Wire:
        opened.append(Wire(host, **keys))
        return opened[-1]

    yield open_wire
    for wire in opened:
        wire.close()


NO_SESSION = (404, "LookupError: You have no such session.")
NOTHING_DUE = (
    409,
    "RuntimeError: There is nothing to segment: call next() first, and continue only while it returns True.",
)
DEFECT = (500, "RuntimeError: This is a defect of the server; its log has details.")
GOOD = masks.encode_frames(answer("box", 3, 1))
DUE = {"sequence": "box", "scribble_idx": 1, "interaction": 1}


def step_of(scribble_idx: int, interaction: int) -> tuple[int, Any]:
    new = interaction == 1
    return 200, {
        **DUE, "scribble_idx": scribble_idx, "interaction": interaction, "new_sequence": new, "finished": False,
    }  # fmt: skip


def mistaken(sent: list[Any], due: list[Any]) -> tuple[int, str]:
    return 409, f"RuntimeError: These masks are for {sent}; the masks for {due} are due."


def test_a_server_rejects_what_is_not_due(host: Any, wires: Any) -> None:
    wire = wires(host("kept", max_time=100.0))
    terms = {"subset": "mine", "max_time": 100.0, "max_nb_interactions": 2}
    assert wire.get(HEALTH) == (200, {"health": "ok", "name": "segjudge interactive", "evaluation_parameters": terms})
    for path in ("api/nothing", NEXT):
        assert wire.get(path) == (404, f"LookupError: There is no GET /{path} here.")
    assert wire.post(SESSION) == (401, "PermissionError: The server does not know this User-Key.")
    wire.keys = {wire_format.USER_KEY: ANN}
    assert wire.post(NEXT) == NO_SESSION
    status, begun = wire.post(SESSION, Request_Key="r1")
    assert wire.post(SESSION, Request_Key="r1") == (200, begun), "a repeated request opens no second session"
    key = begun.pop("session_key")
    samples = [["box", 1], ["box", 2]]
    assert (status, begun) == (200, {"samples": samples, "max_time": 100.0, "max_nb_interactions": 2})
    wire.keys[wire_format.SESSION_KEY] = key
    assert wire.post(NEXT, User_Key=BOB) == NO_SESSION
    assert wire.get(SCRIBBLES) == NOTHING_DUE
    assert wire.post(INTERACTION, {}) == (409, "RuntimeError: There is no interaction to answer; request 'next' first.")
    unfinished = "RuntimeError: The session is not over: request the next interaction until it is finished."
    assert wire.post(FINISH) == (409, unfinished)
    assert wire.post(NEXT) == step_of(1, 1)
    error = KeyError("x")
    failing = mock.patch.object(session_host.HostedSession, "answer_scribbles", side_effect=error)
    with failing, mock.patch.object(server, "_log") as log:
        assert wire.get(SCRIBBLES) == DEFECT
    log.error.assert_called_once_with("a defect", exc_info=error)
    assert wire.post(INTERACTION, []) == (400, "ValueError: The body is not a JSON object.")


def test_a_server_answers_in_turn_and_continues_after_a_restart(
    host: Any, wires: Any, clock: Clock, davis: Path
) -> None:
    wire = wires(host("kept", max_time=100.0), **{wire_format.USER_KEY: ANN})
    key = wire.post(SESSION)[1]["session_key"]
    wire.keys[wire_format.SESSION_KEY] = key
    assert wire.post(NEXT) == step_of(1, 1)
    clock.now += 10
    assert wire.lines() == [[(1, 2)], [], []]
    clock.now += 3
    assert wire.lines("?only_last=1") == [[(1, 2)], [], []]
    assert wire.post(NEXT) == step_of(1, 1)
    columns = (
        "session_id", "sequence", "scribble_idx", "interaction", "object_id", "jaccard", "contour", "j_and_f",
        "timing",
    )  # fmt: skip
    assert wire.get(REPORT) == (200, {column: [] for column in columns})
    assert wire.post(INTERACTION, {**DUE, "pred_masks": GOOD, "interaction": 2}) == mistaken(
        ["box", 1, 2], ["box", 1, 1]
    )
    both = [{**GOOD["frames"][0][0], "object_id": number} for number in (1, 2)]
    empty = {**GOOD, "frames": [both, [], []]}
    assert wire.post(INTERACTION, {**DUE, "pred_masks": empty}) == (204, None), "objects overlap: the last one counts"
    answered = {**DUE, "pred_masks": GOOD, "next_scribble_frame_candidates": [2, 9]}
    clock.now += 2
    for _ in range(2):
        assert wire.post(INTERACTION, answered) == mistaken(["box", 1, 1], ["box", 1, 2])
    assert wire.lines() == [[(1, 2), (0, 1000), (1, 1000)], [], []]
    assert wire.post(NEXT) == step_of(1, 2)
    report = {**DUE, "session_id": key, "object_id": 1, "jaccard": 0.0, "contour": 0.0, "j_and_f": 0.0, "timing": 3.0}
    assert wire.get(REPORT) == (200, {column: [report[column]] for column in columns})
    assert wire.lines("?only_last=true") == [[(0, 1000), (1, 1000)], [], []]
    clock.now += 200
    late = {**DUE, "interaction": 2, "pred_masks": "not read"}
    assert wire.post(INTERACTION, late) == wire.post(INTERACTION, late) == (204, "late")

    wire = wires(host("kept", max_time=100.0), **wire.keys)
    assert wire.post(INTERACTION, late) == (204, "late")
    assert wire.post(NEXT) == step_of(2, 1)
    for interaction, lines in ((1, [(1, 2)]), (2, [(1, 2), (0, 1000), (1, 1000)])):
        assert wire.lines() == [[], [], lines]
        clock.now += 5
        body = {**DUE, "scribble_idx": 2, "interaction": interaction, "pred_masks": GOOD}
        assert wire.post(INTERACTION, body) == (204, None)
        assert wire.post(NEXT) == (step_of(2, 2) if interaction == 1 else (200, {"finished": True}))
    summary = {**summary_of("J_AND_F", 0.237, 0.2418, [4, 6.5, 100], [0.2418] * 3), "session_key": key}
    assert wire.get(SCRIBBLES) == NOTHING_DUE

    again = wires(host("kept", max_time=100.0), **wire.keys)
    for running in (wire, again):
        assert running.post(FINISH) == (200, summary)
        rows = running.get(REPORT)[1]
        assert (rows["sequence"], rows["scribble_idx"], rows["interaction"]) == (["box"] * 3, [1, 2, 2], [1, 1, 2])
        assert running.post(NEXT) == (200, {"finished": True})
    assert wires(host("kept", subset="val"), **wire.keys).post(NEXT) == (200, {"finished": True})
    kept = davis.parent / "kept"
    modes = {path.suffix or path.name.partition("-")[0]: path.stat().st_mode & 0o777 for path in kept.rglob("*")}
    assert modes == {"ledger": 0o700, "session": 0o700, "secret": 0o600, ".json": 0o600, ".csv": 0o600}


PLAYED = means_of(("box 1.1", 9), ("box 1.2", 18))
RESUMED = {**PLAYED, **means_of(("box 2.1", 9), ("box 2.2", 18), ("duo 1.1", 27), ("duo 1.2", 36))}


@pytest.fixture
def hosted(host: Any, wires: Any, monkeypatch: pytest.MonkeyPatch) -> Wire:
    """A server that programs reach at http://x, where they wait for nothing."""
    wire: Wire = wires(host("hosted", subset="val"))
    monkeypatch.setattr(remote_session.requests, "Session", lambda: wire)  # type: ignore[attr-defined]
    monkeypatch.setattr(remote_session.time, "sleep", lambda _: None)  # type: ignore[attr-defined]
    return wire


@pytest.mark.usefixtures("hosted")
def test_a_program_plays_on_a_server_and_resumes(clock: Clock, tmp_path: Path) -> None:
    def begin(address: str = "http://x", key: str = ANN, **more: Any) -> DavisInteractiveSession:
        return DavisInteractiveSession(address, key, report_save_dir=tmp_path / "far", **more)

    play = Play(begin(), clock, most=2)
    assert (play.steps, play.means) == (["box 1.1 new {0: 1}", "box 1.2 {0: 1, 2: 2}"], PLAYED)
    assert (play.is_running, play.files, play.summary) == (True, [".state.json", ".tmp.csv"], {})
    play = Play(begin("http://x/", resume=True), clock)
    assert play.steps == ["box 2.1 new {2: 1}", "box 2.2 {2: 3}", "duo 1.1 new {1: 1}", "duo 1.2 {0: 5, 1: 1}"]
    assert (play.is_running, play.files, play.means) == (False, [".csv"], RESUMED)
    del play.summary["session_key"]
    assert rounded(play.summary) == summary_of("J_AND_F", 0.4093, 0.5076, [15, 39, 72], [0.3399, 0.5076, 0.5076])
    unknown = f"SessionInputError: resume: {tmp_path}/far has no unfinished session of this server"
    assert outcome_of(begin(key=BOB, resume=True).__enter__) == unknown
    with begin() as running:
        early = "RuntimeError: You must have called .get_scribbles before submiting the masks"
        assert outcome_of(lambda: running.submit_masks(0)) == early
        assert running.next()
        running.get_scribbles()
        for guess, sentence in (
            ([[1]], "ValueError: y_pred array must have 3 dimensions."),
            ([[[1]]], "ValueError: y_true and y_pred must have the same shape. (3, 40, 60) != (1, 1, 1)"),
            (None, "TypeError: int() argument must be a string, a bytes-like object or a number, not 'NoneType'"),
        ):
            assert outcome_of(lambda guess=guess: running.submit_masks(guess)) == sentence  # type: ignore[misc]
    running.session_key = "another"
    assert outcome_of(running.next) == "UnknownSessionError: You have no such session."


NOT_FOUND = "NoServerError: Server http://x not found"
UNKNOWN = "RuntimeError: The server answered with status {} and an unknown error."
NO_OBJECT = "RuntimeError: http://x/{} did not answer with a JSON object"


@pytest.mark.parametrize(
    ("status", "body", "at_first", "later", "calls"),
    [
        (302, "[]", NOT_FOUND, UNKNOWN.format(302), (1, 1)),
        (502, "{}", NOT_FOUND, UNKNOWN.format(502), (2, 10)),
        (200, "[]", NO_OBJECT.format(HEALTH), NO_OBJECT.format(NEXT), (1, 1)),
        (200, "<", NO_OBJECT.format(HEALTH), NO_OBJECT.format(NEXT), (1, 1)),
        (400, '{"error": "OSError", "message": "m"}', NOT_FOUND, "RuntimeError: m", (1, 1)),
        (400, "[]", NOT_FOUND, UNKNOWN.format(400), (1, 1)),
    ],
    ids=["elsewhere", "broken", "a list", "no JSON", "rejected", "an odd rejection"],
)
def test_a_server_that_answers_oddly(
    status: int, body: str, at_first: str, later: str, calls: tuple[int, int], hosted: Wire, tmp_path: Path
) -> None:
    reply = SimpleNamespace(status_code=status, headers={}, json=lambda: json.loads(body))
    with DavisInteractiveSession("http://x", ANN, report_save_dir=tmp_path / "far") as running:
        with mock.patch.object(hosted, "request", return_value=reply) as request:
            assert outcome_of(lambda: remote_session.RemoteConnector("u", "s", "http://x")) == at_first
            counts = [request.call_count]
            assert outcome_of(running.next) == later
            counts.append(request.call_count - counts[0])
        assert tuple(counts) == calls
        refused = remote_session.requests.ConnectionError("refused")  # type: ignore[attr-defined]
        with mock.patch.object(hosted, "request", side_effect=refused) as request:
            assert outcome_of(running.next) == "ConnectionError: http://x cannot be reached (refused)"
            assert request.call_count == 10


@pytest.mark.usefixtures("hosted")
def test_a_connector_needs_keys_and_an_address() -> None:
    keys = outcome_of(lambda: remote_session.RemoteConnector("", "s", "http://x"))
    assert keys == "ValueError: user_key and session_key must be specified"
    address = outcome_of(lambda: remote_session.RemoteConnector("u", "s", "ftp://x"))
    begins = "is neither 'localhost' nor an address that begins with http:// or https://"
    assert address == f"SessionInputError: host: 'ftp://x' {begins}"
    make = remote_session.ServerConnectionFabric.get_connector
    names = [type(make(address, "u", "s")).__name__ for address in ("localhost", "http://x")]
    assert names == ["LocalConnector", "RemoteConnector"]


def test_a_dataset_must_fit_a_server(host: Any, davis: Path) -> None:
    scribbles = davis / "Scribbles/box/002.json"
    whole = scribbles.read_text()
    scribbles.write_text("{}")
    sentence = f'_WrongFile: {scribbles}: is not {{"scribbles": [[…], …], "sequence": …}}'
    assert outcome_of(lambda: host("broken")) == sentence
    scribbles.write_text(whole)
    large = outcome_of(lambda: host("pixels", {"pixels": 3 * 40 * 60 - 1}))
    assert large == "SessionInputError: box: has more than 7,199 pixels in all of its frames"
    assert host("pixels", {"pixels": 3 * 40 * 60}).most_marks == 4072


@pytest.mark.parametrize(
    ("text", "is_ledger"),
    [
        ("[]", False),
        ("{", False),
        ('{"user": 1, "sequences": {"box": [1]}}', False),
        ('{"user": 1, "sequences": {"box": "s"}}', True),
    ],
)
def test_a_file_that_is_no_ledger_is_not_replaced(text: str, is_ledger: bool, host: Any, davis: Path) -> None:
    ledger = davis.parent / "noted/ledger/a.json"
    ledger.parent.mkdir(parents=True)
    ledger.write_text(text)
    mending = "restore it from a copy, or remove it, which deletes the record of a user"
    outcome = outcome_of(lambda: host("noted").folder.name)
    assert outcome == ("noted" if is_ledger else f"SessionInputError: {ledger}: is not a ledger of sessions; {mending}")


SHORT = "SessionInputError: USERS:1: is not `name key` with a key of 16 characters or more"


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        (f"ann {ANN} # her key\n\nbob {BOB}", ["ann", "bob"]),
        ("ann 0123456789abcdef", ["ann"]),
        ("ann short", SHORT),
        ("ann 0123456789abcde", SHORT),
        (f"ann {ANN} x", SHORT),
        (f"ann {ANN}\nbob {ANN}", "SessionInputError: USERS:2: the key of bob occurs twice"),
        ("# none", "SessionInputError: USERS: holds no user; write lines of `name key`"),
        ("\xff", "SessionInputError: USERS: is not UTF-8 ('utf-8' codec can't decode byte 0xff in position 0: invalid start byte)"),
    ],
)  # fmt: skip
def test_users_are_read_from_a_file(text: str, outcome: Any, tmp_path: Path) -> None:
    (tmp_path / "users").write_bytes(text.encode("latin-1"))
    users = outcome_of(lambda: sorted(session_host.read_users(str(tmp_path / "users")).values()))
    assert (users.replace(str(tmp_path / "users"), "USERS") if isinstance(users, str) else users) == outcome


def test_a_server_in_trouble_loses_no_session(host: Any, wires: Any) -> None:
    running = host("small", {"runs": 40, "body": 700, "sessions": 9})
    wire = wires(running, **{wire_format.USER_KEY: ANN})
    full = OSError(28, "no space")
    with mock.patch.object(session_host.HostedSession, "begin", side_effect=full), mock.patch.object(server, "_log"):
        assert wire.post(SESSION) == DEFECT
    assert sorted(path.name for path in running.folder.iterdir()) == ["ledger", "secret"]
    wire.keys[wire_format.SESSION_KEY] = wire.post(SESSION)[1]["session_key"]
    assert wire.post(NEXT) == step_of(1, 1)
    assert wire.lines() == [[(1, 2)], [], []]
    few = {**GOOD, "frames": [[{"object_id": 1, "counts": "0P[2"}], [], []]}
    due = {**DUE, "pred_masks": few}
    handlers = server._Handlers
    for patch, answer_of in (
        (mock.patch.object(server, "_UPLOADS", 0),
         (429, "BlockingIOError: Masks of this session are already being received.")),
        (mock.patch.object(handlers, "_receive", side_effect=TimeoutError),
         (409, "RuntimeError: The masks did not arrive within 600 seconds.")),
        (mock.patch.object(handlers, "_receive", side_effect=server.ClientDisconnect), (400, None)),
        (mock.patch.object(session.Session, "submit", side_effect=full), DEFECT),
    ):  # fmt: skip
        with patch, mock.patch.object(server, "_log"):
            assert wire.post(INTERACTION, due) == answer_of
    many = (413, "OverflowError: pred_masks has more than 40 characters of run lengths")
    assert wire.post(INTERACTION, {**due, "pred_masks": GOOD}) == many
    large = (413, "OverflowError: A submission may have at most 700 bytes.")
    assert wire.post(INTERACTION, {**due, "more": "x" * 700}) == large
    assert wire.post(INTERACTION, {**due, "more": "x" * 700}, Content_Length="9") == large
    assert wire.post(INTERACTION, due) == wire.post(INTERACTION, due) == (204, None)
    assert dict(running._users) == {}


def test_the_clock_of_a_server_goes_on_after_a_crash(davis: Path) -> None:
    folder, limits = davis.parent / "clock", session_host.SessionLimits()
    terms, opened, mask = session.SessionTerms(subset="mine"), dataset.Davis(str(davis)), os.umask(0o077)
    states = (("12.5", 12.5), ("x", 0.0))
    folder.mkdir()
    for text, began in states:
        (folder / "uptime").write_text(text)
        with session_host.hold_sessions(folder, opened, terms, {}, limits) as running:
            assert began <= running.clock() < began + 10
            second = outcome_of(session_host.hold_sessions(folder, opened, terms, {}, limits).__enter__)
            mending = "stop it, or name another with --data"
            assert second == f"HostError: {folder}: another server of sessions uses this folder; {mending}"
    os.umask(mask)
