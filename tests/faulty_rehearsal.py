"""A rehearsal whose network and queue are faulty: `python -m tests.faulty_rehearsal SEED:RATE rehearse …`.

The share RATE of the API's calls meets a fault, and SQS delivers the same share of its messages twice.
"""

from __future__ import annotations

import asyncio
import random
import sys
import time
from functools import partial
from unittest.mock import patch

from starlette.responses import HTMLResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from segjudge.cli import main
from segjudge.server import server, services
from segjudge.server.store import Store
from segjudge.server.submissions import MessageQueues, ReceivedMessage

#: Kinds of faults: three in the place of a request, and three after one that was carried out.
_KINDS = ("error", "portal", "delay", "done", "half", "reset")
_LONGEST_DELAY = 3.0
#: The time until the server notices that a connection is closed, and does not report a missing answer.
_NOTICED = 0.05
_ERROR = "<html><body><h1>Server Error (500)</h1></body></html>"
_PORTAL = "<html><body>Please accept the terms of this network.</body></html>"


class Faults:
    """A seeded stream of faults; `rate` is the share of calls that meet one."""

    def __init__(self, seed: int, rate: float) -> None:
        self.rate, self.random = rate, random.Random(seed)

    def strikes(self) -> bool:
        """Draw whether a call meets a fault."""
        return self.random.random() < self.rate


class FaultyApp:
    """The API of a rehearsal, with faults."""

    def __init__(self, app: ASGIApp, faults: Faults) -> None:
        self._app, self._faults = app, faults

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not scope["path"].startswith("/api/") or not self._faults.strikes():
            await self._app(scope, receive, send)
            return
        kind = self._faults.random.choice(_KINDS)
        if kind == "error":
            await HTMLResponse(_ERROR, 500)(scope, receive, send)
        elif kind == "portal":
            await HTMLResponse(_PORTAL, 200)(scope, receive, send)
        elif kind == "delay":
            await asyncio.sleep(self._faults.random.uniform(0.1, _LONGEST_DELAY))
            await self._app(scope, receive, send)
        else:
            await self._spoil_answer(kind, scope, receive, send)

    async def _spoil_answer(self, kind: str, scope: Scope, receive: Receive, send: Send) -> None:
        """Carry out the request, and damage its answer."""
        messages: list[Message] = []

        async def collect(message: Message) -> None:
            messages.append(message)

        await self._app(scope, receive, collect)
        if kind == "done":
            await HTMLResponse(_ERROR, 502)(scope, receive, send)
            return
        body = b"".join(message.get("body", b"") for message in messages)
        if kind == "half":
            await send(messages[0])
            await send({"type": "http.response.body", "body": body[: len(body) // 2], "more_body": True})
        # ASGI cannot reset a connection, so this asks uvicorn's object behind `send`.
        transport = getattr(getattr(send, "__self__", None), "transport", None)
        if transport is not None:
            transport.abort()
            await asyncio.sleep(_NOTICED)


class RepeatingQueues(MessageQueues):
    """Queues in which a received message may stay visible, as in SQS."""

    def __init__(self, faults: Faults, store: Store, visibility: float) -> None:
        super().__init__(store, visibility)
        self._faults = faults

    def receive(self, queue: str, *, hosted: bool | None = None) -> ReceivedMessage | None:
        message = super().receive(queue, hosted=hosted)
        if message and self._faults.strikes():
            with self._store.write():
                stored = self._of_handle(queue, message.handle)
                if stored is not None:
                    stored.visible_at = time.time()
        return message


def rehearse(faults: Faults, arguments: list[str]) -> int:
    create_app = server.create_app
    with (
        patch.object(server, "create_app", lambda *given: FaultyApp(create_app(*given), faults)),
        patch.object(services, "MessageQueues", partial(RepeatingQueues, faults)),
    ):
        return main(arguments)


if __name__ == "__main__":
    SEED, RATE = sys.argv[1].split(":")
    sys.exit(rehearse(Faults(int(SEED), float(RATE)), sys.argv[2:]))
