"""Faults of a network and of a busy server, by a seed: for testing workers."""

from __future__ import annotations

import asyncio
import random
import re

from starlette.responses import HTMLResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

#: Kinds of faults: three in the place of a request, and three after one that was carried out.
_KINDS = ("error", "portal", "delay", "done", "half", "reset")
_LONGEST_DELAY = 3.0
#: Until the server has noticed that a connection is gone, and does not complain that nothing was answered.
_NOTICED = 0.05
_ERROR = "<html><body><h1>Server Error (500)</h1></body></html>"
_PORTAL = "<html><body>Please accept the terms of this network.</body></html>"


class Faults:
    """A seeded stream of faults; `rate` is the share of calls that meet one."""

    def __init__(self, seed: int, rate: float) -> None:
        self.rate, self.random = rate, random.Random(seed)

    @classmethod
    def parsed(cls, text: str) -> Faults:
        """Return the faults that SEED:RATE stands for; raises ValueError that says what is wrong with anything else."""
        seed, colon, rate = text.partition(":")
        if not colon:
            raise ValueError("the rate is missing")
        if not re.fullmatch(r"-?[0-9]{1,18}", seed):
            raise ValueError(f"the seed {seed!r} is not a whole number")
        if not re.fullmatch(r"[0-9]*\.?[0-9]+|[0-9]+\.", rate) or float(rate) > 1:
            raise ValueError(f"the rate {rate!r} is not a share from 0 to 1")
        return cls(int(seed), float(rate))

    def strikes(self) -> bool:
        """Draw whether a call meets a fault."""
        return self.random.random() < self.rate


class FaultyApp:
    """The API with faults."""

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
            await self._after(kind, scope, receive, send)

    async def _after(self, kind: str, scope: Scope, receive: Receive, send: Send) -> None:
        """Carry out the request, and spoil its answer."""
        kept: list[Message] = []

        async def keep(message: Message) -> None:
            kept.append(message)

        await self._app(scope, receive, keep)
        if kind == "done":
            await HTMLResponse(_ERROR, 502)(scope, receive, send)
            return
        body = b"".join(message.get("body", b"") for message in kept)
        if kind == "half":
            await send(kept[0])
            await send({"type": "http.response.body", "body": body[: len(body) // 2], "more_body": True})
        # ASGI cannot reset a connection, so this asks uvicorn's object behind `send`.
        transport = getattr(getattr(send, "__self__", None), "transport", None)
        if transport is not None:
            transport.abort()
            await asyncio.sleep(_NOTICED)
