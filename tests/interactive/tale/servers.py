"""Sessions on a server."""

from __future__ import annotations

import asyncio
import json
import re
from types import SimpleNamespace
from typing import Any
from unittest import mock

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
from tests.interactive.scene import answer

from . import ANN, BOB, Tale, play


class Wire:
    """The server's application, called without a network; it also replaces `requests.Session`."""

    def __init__(self, tale: Tale, host: session_host.SessionHost) -> None:
        self._tale, self._app, self._runner = tale, build_app(host), asyncio.Runner()
        self.keys: dict[str, str] = {}

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
        shown = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
        return SimpleNamespace(
            status_code=sent[0]["status"], headers=shown, json=lambda: json.loads(body), text=body.decode()
        )

    def say(self, method: str, path: str, body: Any = b"", **headers: str) -> Any:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        query = dict([path.partition("?")[2].split("=")]) if "?" in path else {}
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        got = self.request(
            method, f"http://x/{path.partition('?')[0]}", {**self.keys, **named}, data=data, params=query
        )
        more = {name: value for name, value in got.headers.items() if name not in ("content-length", "content-type")}
        text = re.sub(r"\d+\.\d{5,}", lambda number: str(round(float(number[0]), 5)), got.text)
        self._tale.say(
            f"{method} {path} → {got.status_code}{f' {more}' if more else ''} {text[:300]}{'…' if len(text) > 300 else ''}"
        )
        return got


def host(tale: Tale, name: str, limits: Any = None, **terms: Any) -> session_host.SessionHost:
    users = {session_host._checksum(key.encode()): user for key, user in ((ANN, "ann"), (BOB, "bob"))}
    made = session.SessionTerms(**{"max_nb_interactions": 2, "subset": "mine", **terms})
    limits = session_host.SessionLimits(**(limits or {}))
    return session_host.SessionHost(tale.folder / name, dataset.Davis(str(tale.root)), made, users, limits, tale.clock)


def a_session_over_the_wire(tale: Tale) -> None:  # noqa: PLR0915
    wire = Wire(tale, host(tale, "kept", max_time=100.0))
    wire.say("GET", wire_format.HEALTH)
    wire.say("GET", "api/nothing")
    wire.say("GET", wire_format.NEXT)
    wire.say("POST", wire_format.SESSION)
    wire.keys = {wire_format.USER_KEY: ANN}
    wire.say("POST", wire_format.NEXT)
    key = wire.say("POST", wire_format.SESSION, Request_Key="r1").json()["session_key"]
    wire.say("POST", wire_format.SESSION, Request_Key="r1")
    wire.keys[wire_format.SESSION_KEY] = key
    wire.say("POST", wire_format.NEXT, User_Key=BOB)
    wire.say("GET", wire_format.SCRIBBLES)
    wire.say("POST", wire_format.INTERACTION, {})
    wire.say("POST", wire_format.FINISH)
    wire.say("POST", wire_format.NEXT)
    with (
        mock.patch.object(session_host.HostedSession, "answer_scribbles", side_effect=KeyError("x")),
        mock.patch.object(server, "_log") as log,
    ):
        wire.say("GET", wire_format.SCRIBBLES)
        wire.say("POST", wire_format.INTERACTION, [])
        tale.say("logged:", log.error.call_args_list)
    tale.clock.now += 10
    wire.say("GET", wire_format.SCRIBBLES)
    tale.clock.now += 3
    wire.say("GET", f"{wire_format.SCRIBBLES}?only_last=1")
    wire.say("POST", wire_format.NEXT)
    wire.say("GET", wire_format.REPORT)
    good = masks.encode_frames(answer("box", 3, 1))
    due = {"sequence": "box", "scribble_idx": 1, "interaction": 1}
    both = [{**good["frames"][0][0], "object_id": number} for number in (1, 2)]
    for change in ({"interaction": 2}, {"pred_masks": {**good, "frames": [both, [], []]}}):
        wire.say("POST", wire_format.INTERACTION, {**due, "pred_masks": good, **change})
    first = {**due, "pred_masks": good, "next_scribble_frame_candidates": [2, 9]}
    tale.clock.now += 2
    wire.say("POST", wire_format.INTERACTION, first)
    wire.say("POST", wire_format.INTERACTION, first)
    wire.say("GET", wire_format.SCRIBBLES)
    wire.say("POST", wire_format.NEXT)
    wire.say("GET", wire_format.REPORT)
    wire.say("GET", f"{wire_format.SCRIBBLES}?only_last=true")
    tale.clock.now += 200
    late = {**due, "interaction": 2, "pred_masks": "not read"}
    wire.say("POST", wire_format.INTERACTION, late)
    wire.say("POST", wire_format.INTERACTION, late)
    wire.close()
    tale.say("── after a restart")
    wire, keys = Wire(tale, host(tale, "kept", max_time=100.0)), wire.keys
    wire.keys = keys
    wire.say("POST", wire_format.INTERACTION, late)
    wire.say("POST", wire_format.NEXT)
    for interaction in (1, 2):
        wire.say("GET", wire_format.SCRIBBLES)
        tale.clock.now += 5
        body = {**due, "scribble_idx": 2, "interaction": interaction, "pred_masks": good}
        wire.say("POST", wire_format.INTERACTION, body)
        wire.say("POST", wire_format.NEXT)
    wire.say("POST", wire_format.FINISH)
    wire.say("GET", wire_format.REPORT)
    wire.say("GET", wire_format.SCRIBBLES)
    wire.close()
    wire, keys = Wire(tale, host(tale, "kept", max_time=100.0)), wire.keys
    wire.keys = keys
    wire.say("POST", wire_format.NEXT)
    wire.say("POST", wire_format.FINISH)
    wire.say("GET", wire_format.REPORT)
    wire.close()
    wire, keys = Wire(tale, host(tale, "kept", subset="val")), wire.keys
    wire.keys = keys
    wire.say("POST", wire_format.NEXT)
    wire.close()
    modes = {
        path.relative_to(tale.folder).as_posix(): f"{path.stat().st_mode & 0o777:o}"
        for path in sorted((tale.folder / "kept").rglob("*"))
    }
    tale.say(re.sub("[0-9a-f]{64}", "…", str(modes)))


def a_program_that_plays_on_a_server(tale: Tale) -> None:
    wire = Wire(tale, host(tale, "hosted", subset="val"))
    with mock.patch.object(remote_session.requests, "Session", return_value=wire):  # type: ignore[attr-defined]
        play(tale, DavisInteractiveSession("http://x", ANN, report_save_dir=tale.folder / "far"), most=2)
        play(tale, DavisInteractiveSession("http://x/", ANN, report_save_dir=tale.folder / "far", resume=True))
        session = DavisInteractiveSession("http://x", ANN, report_save_dir=tale.folder / "far")
        tale.try_out(
            "nothing to resume",
            DavisInteractiveSession("http://x", BOB, report_save_dir=tale.folder / "far", resume=True).__enter__,
        )
        with session:
            tale.try_out("early", lambda: session.submit_masks(0))
            session.next()
            session.get_scribbles()
            tale.try_out("flat", lambda: session.submit_masks([[1]]))
            tale.try_out("small", lambda: session.submit_masks([[[1]]]))
            tale.try_out("nothing", lambda: session.submit_masks(None))  # type: ignore[arg-type]
        session.session_key = "another"
        tale.try_out("another key", session.next)
        tale.try_out("no key", lambda: remote_session.RemoteConnector("", "s", "http://x"))
        tale.try_out("no address", lambda: remote_session.RemoteConnector("u", "s", "ftp://x"))
        for about, status, body in (("elsewhere", 302, "[]"), ("broken", 502, "{}"), ("a list", 200, "[]"), ("no JSON", 200, "<"),
                                    ("refused", 400, '{"error": "OSError", "message": "m"}'), ("odd", 400, "[]")):  # fmt: skip
            got = SimpleNamespace(status_code=status, headers={}, json=lambda body=body: json.loads(body))  # type: ignore[misc]
            calls: list[str] = []
            with mock.patch.object(wire, "request", lambda method, url, **_: (calls.append(url), got)[1]):  # noqa: B023
                tale.try_out(f"{about}, at first", lambda: remote_session.RemoteConnector("u", "s", "http://x"))
                tale.try_out(f"  - later, after {len(calls)} calls", session.next)
            tale.say("  -", len(calls), "calls")
        with mock.patch.object(wire, "request", side_effect=remote_session.requests.ConnectionError("refused")) as call:  # type: ignore[attr-defined]
            tale.try_out("nobody", session.next)
            tale.say("  -", call.call_count, "calls")
        fabric = remote_session.ServerConnectionFabric
        tale.say(*(type(fabric.get_connector(address, "u", "s")).__name__ for address in ("localhost", "http://x")))
    wire.close()


def what_a_server_allows(tale: Tale) -> None:
    held = host(tale, "limited", {"sessions": 2, "sessions_per_sequence": 3, "open_sessions": 1, "idle": 100.0})
    tale.try_out("a stranger", lambda: held.find_user("x"))
    tale.say(held.find_user(BOB), held.most_marks)
    keys = []
    for number in range(3):
        begun = tale.try_out(f"session {number}", lambda: held.begin("ann", "")[0])
        keys.append(begun)
    tale.say(
        "in memory:", [number for number, key in enumerate(keys) if key and session_host._name_of(key) in held._open]
    )
    tale.try_out("bob", lambda: held.begin("bob", "same")[0] == held.begin("bob", "same")[0])
    with held.use("ann", keys[0]) as item:
        tale.say(item.answer_next(), item.answer_terms())
    tale.clock.now += 60
    tale.try_out("of ann, by bob", lambda: held.check_session("bob", keys[0]))
    with held.use("ann", keys[0]) as item:
        item.answer_scribbles(only_last=False)
        due = wire_format.MaskSubmission(["box", 1, 1], masks.encode_frames(answer("box", 3, 1)))
        tale.say(
            item.take_masks(due, 10**6, "sum", tale.clock.now), item.answer_repeat("sum"), item.answer_repeat("other")
        )
        tale.try_out("again", lambda: item.take_masks(due, 10**6, "sum", tale.clock.now))
    tale.clock.now += 41
    tale.try_out("idle", lambda: held.check_session("ann", keys[1]))
    tale.try_out("not idle", lambda: held.check_session("ann", keys[0]))
    with held.use("ann", keys[0]):
        pass
    tale.try_out("closed", lambda: held.check_session("ann", keys[1]))
    for number in (3, 4):
        tale.try_out(f"session {number}", lambda: len(held.begin("ann", "")[0]))
    tale.clock.now += 101
    for number in (5, 6, 7):
        tale.try_out(f"session {number}", lambda: len(held.begin("ann", "")[0]))
    again = host(tale, "limited", {"sessions": 2, "sessions_per_sequence": 3})
    tale.try_out("after a restart", lambda: again.begin("ann", ""))
    tale.say("ledger:", [len(again._ledger.sessions(user, "box")) for user in ("ann", "bob")])
    for number in (1, 2):
        scribbles = tale.root / f"Scribbles/box/{number:03d}.json"
        whole = scribbles.read_text()
        scribbles.write_text("{}")
        tale.try_out(f"scribbles {number} are broken", lambda: host(tale, "broken"))
        scribbles.write_text(whole)
    tale.try_out("too many pixels", lambda: host(tale, "pixels", {"pixels": 3 * 40 * 60 - 1}))
    tale.try_out("enough", lambda: host(tale, "pixels", {"pixels": 3 * 40 * 60}).most_marks)
    for number, text in enumerate(
        ("[]", "{", '{"user": 1, "sequences": {"box": "s"}}', '{"user": 1, "sequences": {"box": [1]}}')
    ):
        (tale.folder / f"ledger{number}/ledger").mkdir(parents=True)
        (tale.folder / f"ledger{number}/ledger/a.json").write_text(text)
        tale.try_out(text, lambda: host(tale, f"ledger{number}").folder.name)  # noqa: B023
    for text in (
        f"ann {ANN} # her key\n\nbob {BOB}",
        "ann short",
        "ann 0123456789abcde",
        "ann 0123456789abcdef",
        f"ann {ANN} x",
        f"ann {ANN}\nbob {ANN}",
        "# none",
        "\xff",
    ):
        (tale.folder / "users").write_bytes(text.encode("latin-1"))
        tale.try_out(repr(text), lambda: sorted(session_host.read_users(str(tale.folder / "users")).values()))
    for text in (
        "12.5",
        '{"clock": 99.5, "interaction_start_time": 100.25}',
        '{"clock": 50, "interaction_start_time": null}',
        "[]",
        "x",
    ):
        folder = tale.folder / "times" / "s"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "result_1.state.json").write_text(text)
        tale.say(text, "→", [*session_host._read_times(tale.folder / "times")])
    for error in (KeyError("k"), ValueError("v"), BlockingIOError("b"), BlockingIOError(11, "os"), LookupError("l")):
        body, status = wire_format.describe_error(error)
        again_error = wire_format.error_of(body, status)
        tale.say(repr(error), "→", body, status, repr(again_error))


def a_server_in_trouble(tale: Tale) -> None:
    """A server meets too many calls, interrupted ones, and defects at the start of work or in measuring masks."""
    held = host(tale, "small", {"runs": 40, "body": 700, "sessions": 9})
    wire = Wire(tale, held)
    wire.keys = {wire_format.USER_KEY: ANN}
    with mock.patch.object(session_host.HostedSession, "begin", side_effect=OSError(28, "no space")):
        wire.say("POST", wire_format.SESSION)
    tale.say("left:", sorted(path.name for path in held.folder.iterdir()))
    wire.keys[wire_format.SESSION_KEY] = wire.say("POST", wire_format.SESSION).json()["session_key"]
    wire.say("POST", wire_format.NEXT)
    wire.say("GET", wire_format.SCRIBBLES)
    good = masks.encode_frames(answer("box", 3, 1))
    few = {**good, "frames": [[{"object_id": 1, "counts": "0P[2"}], [], []]}
    due = {"sequence": "box", "scribble_idx": 1, "interaction": 1, "pred_masks": few}
    tale.say("characters:", sum(len(each["counts"]) for frame in good["frames"] for each in frame))
    for about, name, value in (
        ("on their way", "_UPLOADS", 0), ("too slow", "_receive", mock.Mock(side_effect=TimeoutError)),
        ("broken off", "_receive", mock.Mock(side_effect=server.ClientDisconnect)),
    ):  # fmt: skip
        tale.say("──", about)
        with mock.patch.object(server if name == "_UPLOADS" else server._Handlers, name, value):
            wire.say("POST", wire_format.INTERACTION, due)
    wire.say("POST", wire_format.INTERACTION, {**due, "pred_masks": good})
    wire.say("POST", wire_format.INTERACTION, {**due, "more": "x" * 700})
    wire.say("POST", wire_format.INTERACTION, {**due, "more": "x" * 700}, Content_Length="9")
    with mock.patch.object(session.Session, "submit", side_effect=OSError(28, "no space")):
        wire.say("POST", wire_format.INTERACTION, due)
    wire.say("POST", wire_format.INTERACTION, due)
    wire.say("POST", wire_format.INTERACTION, due)
    tale.say("in use:", dict(held._users))
    wire.close()


def the_clock_of_a_server(tale: Tale) -> None:
    """The clock of a server runs only while the server does, and continues after restarts."""
    folder, limits = tale.folder / "clock", session_host.SessionLimits()
    terms = session.SessionTerms(max_nb_interactions=2, subset="mine")
    with (
        mock.patch.object(session_host, "time", SimpleNamespace(monotonic=tale.clock)),
        mock.patch.object(session_host.threading, "Thread") as thread,
    ):
        for number in range(2):
            opened = dataset.Davis(str(tale.root))
            with session_host.hold_sessions(folder, opened, terms, {}, limits) as held:
                clock: Any = held.clock
                tale.say(number, "begins at", clock(), thread.call_args[1]["daemon"])
                tale.try_out("a second server", session_host.hold_sessions(folder, opened, terms, {}, limits).__enter__)
                tale.clock.now += 5
                waits = []
                clock._ended = SimpleNamespace(
                    wait=lambda seconds, waits=waits: waits.append(seconds) or len(waits) > 1,
                    set=lambda: tale.say("  - is to end"),
                )
                thread.call_args[1]["target"].__func__(clock)
                tale.say("  - notes", (folder / "uptime").read_text(), "after", waits)
                tale.clock.now += 2
                with mock.patch.object(session_host.files, "replace", side_effect=OSError(28, "no space")):
                    waits.clear()
                    clock._note()
                tale.say("  - is at", clock())
                clock.begin()
                tale.say("  - is at", clock())
                tale.clock.now += 4
            tale.say(
                "ended:",
                (folder / "uptime").read_text(),
                thread.return_value.join.call_count,
                f"{folder.stat().st_mode & 0o777:o}",
            )
