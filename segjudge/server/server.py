"""The web server: API, files and pages, on this machine alone; what it answers in trouble; limits of requests' bodies,
and on request faults of a network, by a seed.
"""

from __future__ import annotations

import asyncio
import logging
import random
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import anyio
import anyio.to_thread
import h11
from sqlalchemy.exc import SQLAlchemyError
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn import Config
from uvicorn.protocols.http.h11_impl import H11Protocol

from segjudge.platforms.evalai.bundle.opened_bundle import UPLOAD_BYTES

from . import api, pages
from .models import Setting
from .services import Services, content_length, services_of
from .store import NO_ANSWER, BusyError, outage_of, unless_away, write_line
from .wire import Refusal, format_moment

LOOPBACK = "127.0.0.1"
#: Longer than the rhythm of any client that polls.
_IDLE_SECONDS = 620
#: Seconds in which a database that answers has answered.
_LOOK_SECONDS = 3.0
#: EvalAI's limit for each user.
REQUESTS_PER_MINUTE = 60
_NOTHING = "Nothing here"


@dataclass(frozen=True)
class ServerOptions:
    """Limits and faults of the server, and when it is about to end."""

    requests_per_minute: int = REQUESTS_PER_MINUTE
    faults: Faults | None = None
    #: Whether the server is about to end.
    stopping: Callable[[], bool] = lambda: False


def create_app(services: Services, options: ServerOptions) -> ASGIApp:
    """Return the application that serves the API, the files and the pages."""
    # A page of another site could otherwise reach us under a name of its own that points here.
    middleware = [
        Middleware(TrustedHostMiddleware, allowed_hosts=["127.0.0.1", "localhost", "[::1]"], www_redirect=False),
        Middleware(_BoundedApp, stopping=options.stopping),
    ]
    routes = [*api.ROUTES, *pages.ROUTES, Route("/healthz", _check_health, methods=["GET"])]
    outages = dict.fromkeys((SQLAlchemyError, BusyError, OSError, MemoryError), _report_outage)
    handlers: Any = {Refusal: _refuse, 404: _miss, 405: _miss, 500: _report_defect, **outages}
    application = Starlette(routes=routes, middleware=middleware, exception_handlers=handlers)
    application.state.services, application.state.throttle = services, api.Throttle(options.requests_per_minute)
    return _FaultyApp(application, options.faults) if options.faults else application


def make_server_config(application: ASGIApp) -> Config:
    """Return how uvicorn serves the application: quietly, and without waiting for what does not come."""
    logging.getLogger("python_multipart").setLevel(logging.CRITICAL)  # a sender's mistakes are no news here
    return Config(
        application,
        http=_PromptProtocol,
        ws="none",
        log_level="warning",
        access_log=False,
        lifespan="off",
        server_header=False,
        timeout_graceful_shutdown=3,
        # A client that polls would now and then send into a connection that is just being closed.
        timeout_keep_alive=_IDLE_SECONDS,
    )


# Refusals and outages are answered without a thread: all of them may be waiting for a database.


def _is_page(request: Request) -> bool:
    return not request.url.path.startswith(("/api/", "/media/", "/upload/"))


async def _refuse(request: Request, refusal: Refusal) -> Response:
    """Answer in the words of a refusal: in JSON, or on a page, which asks for the login first where that is missing."""
    if not _is_page(request):
        try:
            return JSONResponse(refusal.body, refusal.status, refusal.headers)
        except (ValueError, RecursionError):
            # Half a character, or NaN, in what is repeated.
            words = repr(refusal.body).encode("ascii", "backslashreplace").decode()
            return JSONResponse({"error": words}, refusal.status)
    if refusal.status == 401:
        return pages.ask_for_login(request)
    reason = refusal.body.get("error") or refusal.body.get("detail") or refusal.body
    status = refusal.status if refusal.status in (403, 404, 413) else 400
    title = {403: "Refused", 404: _NOTHING}.get(status, "Not done")
    return pages.render(request, "message.html", status, title=title, text=str(reason))


def _miss(request: Request, error: HTTPException) -> Response:
    if request.url.path.startswith("/api/"):
        words = "Not found." if error.status_code == 404 else f'Method "{request.method}" not allowed.'
        return JSONResponse({"detail": words}, error.status_code)
    request.scope["user"] = unless_away(partial(pages.find_user, request))
    return pages.render(request, "message.html", 404, title=_NOTHING, text="There is no such page.")


async def _report_outage(request: Request, error: Exception) -> Response:
    """Answer that something is away for a while, and log it; raises what is no outage."""
    outage = outage_of(error)
    if outage is None:
        raise error
    write_line(f"answers {outage.status}: {outage.sentence} ({outage.reason})")
    words = f"{outage.sentence} Try again in {outage.retry_after} seconds."
    headers = {"Retry-After": str(outage.retry_after)}
    if not _is_page(request):
        return JSONResponse({"error": words}, outage.status, headers)
    page = pages.render(request, "message.html", outage.status, title="Not at the moment", text=words)
    page.headers.update(headers)
    return page


async def _report_defect(request: Request, _error: Exception) -> Response:
    words = "This is a defect of the rehearsal; its terminal tells more."
    if not _is_page(request):
        return JSONResponse({"error": words}, 500)
    return pages.render(request, "message.html", 500, title="That went wrong", text=words)


async def _check_health(request: Request) -> Response:
    """Tell monitoring whether the database answers and everything in the background turns, and since when."""
    services = services_of(request)

    def database() -> str:
        try:
            services.store.count(Setting)
        except Exception as error:
            outage = outage_of(error)
            if outage is None:
                raise
            return outage.sentence
        return ""

    trouble = NO_ANSWER
    with anyio.move_on_after(_LOOK_SECONDS):
        trouble = await anyio.to_thread.run_sync(database, abandon_on_cancel=True, limiter=_look_limiter())
    loops = [
        {
            "name": loop.name,
            "last_turn": format_moment(loop.turned_at),
            "seconds_ago": round(loop.age),
            "waits": loop.trouble,
        }
        for group in services.background
        for loop in group.loops
    ]
    healthy = (
        not trouble and all(group.alive for group in services.background) and not any(row["waits"] for row in loops)
    )
    state = {
        "status": "ok" if healthy else "waits",
        "since": format_moment(services.began_at),
        "database": trouble or "answers",
    }
    return JSONResponse({**state, "loops": loops}, 200 if healthy else 503, {"Cache-Control": "no-store"})


@lru_cache(maxsize=1)
def _look_limiter() -> anyio.CapacityLimiter:
    """Return what lets two looks at the database wait at a time, beside the threads of all requests."""
    return anyio.CapacityLimiter(2)


# ── limits of bodies and of connections ────────────────────────────────────────

#: Seconds between two checks of whether the server ends.
_TICK = 0.5
#: The longest silence in seconds; and after how many seconds a body must keep a pace, in bytes a second.
_SILENCE_SECONDS, _PACED_AFTER, _PACE = 60.0, 60.0, 1 << 10
#: Bytes and seconds for which a body is still read after an answer that did not wait for it, so that the sender
#: reads the answer.
_LINGER_BYTES, _LINGER_SECONDS = 1 << 18, 1.0
#: Seconds in which the head of a request must have come.
_HEAD_SECONDS = 20.0

_TOO_LARGE = JSONResponse(
    {"error": "The upload is larger than 200 MB; use `evalai … submit --large`."}, 413, {"Connection": "close"}
)


class _BoundedApp:
    """Refuses a body that EvalAI's web front would refuse, before and while it arrives."""

    def __init__(self, app: ASGIApp, stopping: Callable[[], bool]) -> None:
        self._app, self._stopping = app, stopping

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        body = _Body(scope, receive, self._stopping)
        app = _TOO_LARGE if content_length(scope) > UPLOAD_BYTES else self._app
        await app(scope, body.receive, _Closing(body, send))


class _Body:
    """The body of a request, as it is received."""

    def __init__(self, scope: Scope, receive: Receive, stopping: Callable[[], bool]) -> None:
        headers = dict(scope["headers"])
        self._receive, self._stopping = receive, stopping
        self._began, self._received = time.monotonic(), 0
        self.complete = headers.get(b"content-length", b"0") == b"0" and b"transfer-encoding" not in headers
        #: Whether the sender waits for an answer before it sends the body.
        self.expects_answer = b"expect" in headers

    async def receive(self) -> Message:
        """Return the next message; a sender that is too slow, or that sends too much, counts as disconnected."""
        if self.complete:
            return await self._receive()
        self.expects_answer = False
        message = await self._next()
        self._received += len(message.get("body", b""))
        self.complete = message["type"] == "http.request" and not message.get("more_body", False)
        return message if self._received <= UPLOAD_BYTES else {"type": "http.disconnect"}

    async def _next(self) -> Message:
        since = time.monotonic()
        while not self._stopping():
            try:
                message = await asyncio.wait_for(self._receive(), _TICK)
            except TimeoutError:
                if time.monotonic() - since > _SILENCE_SECONDS:
                    break
                continue
            lasted = time.monotonic() - self._began
            if lasted > _PACED_AFTER and self._received < lasted * _PACE:
                break
            return message
        return {"type": "http.disconnect"}

    async def drain(self) -> None:
        """Read and drop a little of what still comes."""
        deadline, budget = time.monotonic() + _LINGER_SECONDS, _LINGER_BYTES
        while budget > 0 and time.monotonic() < deadline and not self.complete:
            try:
                message = await asyncio.wait_for(self._receive(), max(0.01, deadline - time.monotonic()))
            except TimeoutError:
                return
            if message["type"] != "http.request":
                return
            budget -= len(message.get("body", b""))
            self.complete = not message.get("more_body", False)


class _Closing:
    """Ends the connection after an answer that did not wait for the body, or all of it would be read."""

    def __init__(self, body: _Body, send: Send) -> None:
        self._body, self._send, self._early = body, send, False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start" and not self._body.complete:
            self._early = True
            headers = [pair for pair in message["headers"] if pair[0].lower() != b"connection"]
            message = {**message, "headers": [*headers, (b"connection", b"close")]}
        if message["type"] != "http.response.body" or not self._early or message.get("more_body", False):
            await self._send(message)
            return
        # The answer is out; a connection that is closed on what still comes would take it back.
        await self._send({**message, "more_body": True})
        if not self._body.expects_answer:
            await self._body.drain()
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})


class _PromptProtocol(H11Protocol):
    """Closes a connection on which no request begins; uvicorn waits for ever."""

    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        self._unwatch()
        super().connection_lost(exc)

    def _watch(self) -> None:
        if self.conn.their_state is not h11.IDLE:
            self._unwatch()
        elif self._timer is None:
            self._timer = self.loop.call_later(_HEAD_SECONDS, self._close)

    def _unwatch(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _close(self) -> None:
        self._timer = None
        if self.conn.their_state is h11.IDLE and not self.transport.is_closing():
            self.transport.close()


# ── faults of a network ────────────────────────────────────────────────────────

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
    def parse(cls, text: str) -> Faults:
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


class _FaultyApp:
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
            await self._spoil_answer(kind, scope, receive, send)

    async def _spoil_answer(self, kind: str, scope: Scope, receive: Receive, send: Send) -> None:
        """Carry out the request, and spoil its answer."""
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
