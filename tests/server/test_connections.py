"""Bodies within a limit of size, and too many requests; the test has the clock."""

from __future__ import annotations

import asyncio
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

from segjudge.server import api, server
from segjudge.server.wire import Refusal


def block(body: bytes, *, more: bool = False) -> dict[str, Any]:
    return {"type": "http.request", "body": body, "more_body": more}


LENGTH, CHUNKED = {"content-length": "5"}, {"transfer-encoding": "chunked"}
WAITS, LONG = {**LENGTH, "expect": "100-continue"}, {"content-length": "9"}
KEPT = "sends 200 {'connection': 'keep-alive', 'x': 'y'}; sends b'answer'"
CLOSED = "sends 200 {'x': 'y', 'connection': 'close'}; sends b'answer' +; sends b''"
TOO_LARGE = (
    "sends 413 {'content-length': '78', 'content-type': 'application/json', 'connection': 'close'}; "
    "sends b'{\"error\":\"The upload is larger than 200 MB; use `evalai \\xe2\\x80\\xa6 submit --large`.\"}' +; sends b''"
)
GONE = "reads http.disconnect"
ONE, TWO, THREE, ALL = block(b"1", more=True), block(b"12", more=True), block(b"3"), block(b"12345")
#: Title → headers, messages, what else differs (messages that the application reads), and the conversation.
BODIES: dict[str, tuple[dict[str, str], list[Any], dict[str, Any], str]] = {
    "nothing": ({}, [], {"reads": 1}, f"{GONE}; {KEPT}"),
    "a length of nothing": ({"content-length": "0"}, [block(b"")], {}, f"reads b''; {KEPT}"),
    "a body": (LENGTH, [ALL], {}, f"reads b'12345'; {KEPT}"),
    "two parts": (CHUNKED, [block(b"123", more=True), block(b"45")], {}, f"reads b'123'+; reads b'45'; {KEPT}"),
    "a length beyond the limit": ({"content-length": "11"}, [ONE], {}, TOO_LARGE),
    "a length that is none": ({"content-length": "1e3"}, [ONE], {}, TOO_LARGE),
    "parts up to the limit": (CHUNKED, [block(b"x" * 6, more=True), block(b"x" * 4)], {}, f"reads b'xxxxxx'+; reads b'xxxx'; {KEPT}"),
    "parts beyond the limit": (CHUNKED, [block(b"x" * 6, more=True), block(b"x" * 5)], {}, f"reads b'xxxxxx'+; {GONE}; {KEPT}"),
    "an answer before the body": (LENGTH, [TWO, block(b"345")], {"reads": 0}, CLOSED),
    "an answer before a long body": (LONG, [block(b"x" * 3, more=True)] * 9, {"reads": 0}, f"{CLOSED}; leaves 6"),
    "an answer before a silent body": (LONG, [None], {"reads": 0}, CLOSED),
    "an answer before who leaves": (LONG, [{"type": "http.disconnect"}, block(b"x")], {"reads": 0}, f"{CLOSED}; leaves 1"),
    "an answer in the middle": ({**LENGTH, "connection": "x"}, [TWO, THREE], {"reads": 1}, f"reads b'12'+; {CLOSED}"),
    "an answer in parts before the body": (
        LENGTH, [ALL], {"reads": 0, "parts": 2}, CLOSED.replace("b'answer' +", "b'answer' +; sends b'answer' +"),
    ),
    "who waits for an answer": (WAITS, [ALL], {"reads": 0}, f"{CLOSED}; leaves 1"),
    "who waited for an answer": (WAITS, [TWO, THREE], {"reads": 1}, f"reads b'12'+; {CLOSED}"),
    "no request": ({"content-length": "99"}, [ALL], {"kind": "lifespan"}, f"reads b'12345'; {KEPT}"),
}  # fmt: skip


@pytest.mark.parametrize("title", BODIES)
def test_a_body_has_a_limit_of_size(title: str, monkeypatch: pytest.MonkeyPatch) -> None:
    headers, messages, options, conversation = BODIES[title]
    monkeypatch.setattr(server, "UPLOAD_BYTES", 10)
    monkeypatch.setattr(server, "_LINGER_BYTES", 8)  # that are read after an answer
    monkeypatch.setattr(server, "_LINGER_SECONDS", 0.05)
    assert "; ".join(asyncio.run(converse(headers, [*messages], **options))) == conversation


async def converse(
    headers: dict[str, str], waiting: list[Any], *, reads: int = 9, parts: int = 1, kind: str = "http"
) -> list[str]:
    lines: list[str] = []

    async def receive() -> Any:
        message = waiting.pop(0) if waiting else {"type": "http.disconnect"}
        if message is None:
            await asyncio.sleep(9)
        return message

    async def send(message: Any) -> None:
        headers = {name.decode(): value.decode() for name, value in message.get("headers", ())}
        words = [message["status"], headers] if headers else [message["body"], "+" * message["more_body"]]
        lines.append(" ".join(map(str, ["sends", *words])).strip())

    async def app(_scope: Any, receive: Any, send: Any) -> None:
        for _ in range(reads):
            message = await receive()
            lines.append(f"reads {message.get('body', message['type'])}{'+' * message.get('more_body', False)}")
            if not message.get("more_body"):
                break
        await send(
            {"type": "http.response.start", "status": 200, "headers": [(b"connection", b"keep-alive"), (b"x", b"y")]}
        )
        for number in range(parts):
            await send({"type": "http.response.body", "body": b"answer", "more_body": number + 1 < parts})

    pairs = [(name.encode(), value.encode()) for name, value in headers.items()]
    await server._BoundedApp(app, lambda: False)({"type": kind, "headers": pairs}, receive, send)
    return [*lines, *([f"leaves {len(waiting)}"] if waiting else [])]


@pytest.mark.parametrize("started", [False, True])
@pytest.mark.parametrize("stopping", [False, True])
def test_a_request_that_a_stop_cancels_is_answered_once(started: bool, stopping: bool) -> None:
    sent = list[Any]()

    async def app(_scope: Any, _receive: Any, send: Any) -> None:
        if started:
            await send({"type": "http.response.start", "status": 200, "headers": []})
        raise asyncio.CancelledError

    async def send(message: Any) -> None:
        sent.append(message)

    async def ask() -> None:
        with pytest.raises(asyncio.CancelledError) if started or not stopping else nullcontext():
            await server._BoundedApp(app, lambda: stopping)({"type": "http", "headers": []}, None, send)  # type: ignore[arg-type]

    asyncio.run(ask())
    answered = [(message["status"], dict(message["headers"]).get(b"retry-after")) for message in sent[:1]]
    assert answered == ([(200, None)] if started else [(503, b"5")] if stopping else [])


@pytest.mark.parametrize(
    ("limit", "user", "waits"),
    [
        (2, 1, ["2 at 1.5: 59 seconds", "2 at 2.0: 58 seconds", "2 at 58.6: 2 seconds", "2 at 59.5: 1 second", "3 at 60.5: 1 second", "4 at 61.0: 59 seconds"]),
        (2, None, ["100 at 2.0: 58 seconds", "100 at 58.6: 2 seconds", "100 at 59.5: 1 second", "101 at 60.5: 1 second", "102 at 61.0: 1 second"]),
        (101, None, ["101 at 2.0: 58 seconds", "101 at 58.6: 2 seconds", "101 at 59.5: 1 second", "102 at 60.5: 1 second", "103 at 61.0: 1 second"]),
    ],
)  # fmt: skip
def test_too_many_requests_wait(
    limit: int, user: int | None, waits: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, who = SimpleNamespace(now=0.0), user and SimpleNamespace(id=user)
    monkeypatch.setattr(api, "time", SimpleNamespace(monotonic=lambda: clock.now))
    throttle, taken, noted = api.Throttle(limit), 0, list[str]()
    for clock.now in (0.0, 1.0, 1.5, *[2.0] * 120, 58.6, 59.5, 60.0, 60.5, 61.0, 61.0):
        try:
            throttle.check(who, "here")  # type: ignore[arg-type]
            taken += 1
        except Refusal as refusal:
            seconds = int((refusal.headers or {})["Retry-After"])
            wait = f"{seconds} second{'s' if seconds > 1 else ''}"
            assert refusal.status == 429
            assert refusal.body == {"detail": f"Request was throttled. Expected available in {wait}."}
            noted.append(f"{taken} at {clock.now}: {wait}")
    assert [*dict.fromkeys(noted)] == waits
    throttle.check(SimpleNamespace(id=2), "here")  # type: ignore[arg-type]  # another
