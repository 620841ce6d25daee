"""Requests' bodies within bounds: how large, how slow, and what becomes of those that nobody wants."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable
from typing import Any

import h11
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from segjudge.bundle.opened_bundle import UPLOAD_BYTES

from .submissions import Refusal

#: Seconds between two looks at whether the server ends.
_TICK = 0.5
#: Seconds without a byte, and after how many a body must have come at so many bytes a second.
_SILENCE, _PATIENCE, _PACE = 60.0, 60.0, 1 << 10
#: What is still taken in after an answer that did not wait for the body, so that the sender reads it.
_LINGER, _LINGER_SECONDS = 1 << 18, 1.0
#: Seconds in which the head of a request has come.
_HEAD_SECONDS = 20.0

_TOO_LARGE = JSONResponse(
    {"error": "The upload is larger than 200 MB; use `evalai … submit --large`."}, 413, {"Connection": "close"}
)


class BoundedApp:
    """Refuses a body that EvalAI's web front would refuse, before and while it arrives."""

    def __init__(self, app: ASGIApp, stopping: Callable[[], bool]) -> None:
        self._app, self._stopping = app, stopping

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        body = _Body(scope, receive, self._stopping)
        app = _TOO_LARGE if told_length(scope) > UPLOAD_BYTES else self._app
        await app(scope, body.receive, _Closing(body, send))


def told_length(scope: Scope) -> float:
    """How long a request says that its body is; without end where it says nothing that makes sense."""
    told = dict(scope["headers"]).get(b"content-length", b"0")
    return int(told) if told.isdigit() and len(told) < 19 else math.inf


def too_much(limit: int) -> Refusal:
    """What is said of a body that is larger than its call takes."""
    return Refusal(413, {"detail": f"The body is larger than {limit >> 10} kB, which is more than this takes."})


def within(receive: Receive, limit: int) -> Receive:
    """Only so many bytes."""
    seen = 0

    async def bounded() -> Message:
        nonlocal seen
        message = await receive()
        seen += len(message.get("body", b""))
        if seen > limit:
            raise too_much(limit)
        return message

    return bounded


def plain(value: Any) -> None:
    """Refuse half characters wherever they stand: no database keeps them, and no answer could repeat them."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            waiting += [*one, *one.values()]
        elif isinstance(one, list):
            waiting += one
        elif isinstance(one, str):
            try:
                one.encode("utf-8")
            except UnicodeEncodeError:
                raise Refusal(400, {"detail": f"A text holds half a character: {ascii(one)[:100]}"}) from None


class _Body:
    """What comes of one request."""

    def __init__(self, scope: Scope, receive: Receive, stopping: Callable[[], bool]) -> None:
        headers = dict(scope["headers"])
        self._receive, self._stopping = receive, stopping
        self._began, self._seen = time.monotonic(), 0
        self.whole = headers.get(b"content-length", b"0") == b"0" and b"transfer-encoding" not in headers
        #: Whether the sender waits for a word of ours before it sends anything.
        self.asked = b"expect" in headers

    async def receive(self) -> Message:
        """The next piece; a sender that is too slow, or that sends too much, has gone."""
        if self.whole:
            return await self._receive()
        self.asked = False
        message = await self._next()
        self._seen += len(message.get("body", b""))
        self.whole = message["type"] == "http.request" and not message.get("more_body", False)
        return message if self._seen <= UPLOAD_BYTES else {"type": "http.disconnect"}

    async def _next(self) -> Message:
        since = time.monotonic()
        while not self._stopping():
            try:
                message = await asyncio.wait_for(self._receive(), _TICK)
            except TimeoutError:
                if time.monotonic() - since > _SILENCE:
                    break
                continue
            lasted = time.monotonic() - self._began
            if lasted > _PATIENCE and self._seen < lasted * _PACE:
                break
            return message
        return {"type": "http.disconnect"}

    async def drain(self) -> None:
        """Throw away a little of what still comes."""
        until, left = time.monotonic() + _LINGER_SECONDS, _LINGER
        while left > 0 and time.monotonic() < until and not self.whole:
            try:
                message = await asyncio.wait_for(self._receive(), max(0.01, until - time.monotonic()))
            except TimeoutError:
                return
            if message["type"] != "http.request":
                return
            left -= len(message.get("body", b""))
            self.whole = not message.get("more_body", False)


class _Closing:
    """Ends the connection after an answer that did not wait for the whole body, or all of it would be taken in."""

    def __init__(self, body: _Body, send: Send) -> None:
        self._body, self._send, self._early = body, send, False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start" and not self._body.whole:
            self._early = True
            kept = [pair for pair in message["headers"] if pair[0].lower() != b"connection"]
            message = {**message, "headers": [*kept, (b"connection", b"close")]}
        if message["type"] != "http.response.body" or not self._early or message.get("more_body", False):
            await self._send(message)
            return
        # The answer is out; a connection that is closed on what still comes would take it back.
        await self._send({**message, "more_body": True})
        if not self._body.asked:
            await self._body.drain()
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})


class PromptProtocol(H11Protocol):
    """Closes a connection on which no request begins; uvicorn waits for ever."""

    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Somebody connects."""
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        """Something comes."""
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """It is over."""
        self._unwatch()
        super().connection_lost(exc)

    def _watch(self) -> None:
        if self.conn.their_state is not h11.IDLE:
            self._unwatch()
        elif self._late is None:
            self._late = self.loop.call_later(_HEAD_SECONDS, self._close)

    def _unwatch(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None

    def _close(self) -> None:
        self._late = None
        if self.conn.their_state is h11.IDLE and not self.transport.is_closing():
            self.transport.close()
