"""The web server: API, files and pages on this machine; answers during outages; limits of request bodies."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

from sqlalchemy.exc import SQLAlchemyError
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Match, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn import Config

from segjudge.platforms.evalai.bundle.opened_bundle import UPLOAD_BYTES

from . import api, page_endpoints, pages
from .models import Setting
from .services import Services, content_length, services_of
from .store import NO_ANSWER, BusyError, outage_of, unless_away, write_line
from .wire import Refusal, format_moment

LOOPBACK = "127.0.0.1"
#: The seconds after which idle connections close, above the interval of any polling client.
_IDLE_SECONDS = 620
#: The maximum seconds for a working database to answer.
_LOOK_SECONDS = 3.0
_NOTHING = "Nothing here"
#: The address that monitoring requests.
_HEALTH = "/healthz"


def create_app(services: Services, requests_per_minute: int, stopping: Callable[[], bool] = lambda: False) -> ASGIApp:
    """Return the application that serves the API, the files and the pages; `stopping` says if it is about to end."""
    # Otherwise, another site's page could reach us under a name of its own that points here.
    middleware = [
        Middleware(TrustedHostMiddleware, allowed_hosts=["127.0.0.1", "localhost", "[::1]"], www_redirect=False),
        Middleware(_BoundedApp, stopping=stopping),
    ]
    routes = [*api.ROUTES, *pages.ROUTES, Route(_HEALTH, _describe_health, methods=["GET"])]
    outages = dict.fromkeys((SQLAlchemyError, BusyError, OSError, MemoryError), _report_outage)
    handlers: Any = {Refusal: _refuse, 404: _answer_unrouted, 405: _answer_unrouted, 500: _report_defect, **outages}
    application = Starlette(routes=routes, middleware=middleware, exception_handlers=handlers)
    application.router.redirect_slashes = False
    application.state.services, application.state.throttle = services, api.Throttle(requests_per_minute)
    return application


def make_server_config(application: ASGIApp) -> Config:
    """Return uvicorn's configuration: quiet, and without waiting for slow clients."""
    logging.getLogger("python_multipart").setLevel(logging.CRITICAL)  # a sender's mistakes are not logged
    return Config(
        application,
        ws="none",
        log_level="warning",
        access_log=False,
        lifespan="off",
        server_header=False,
        timeout_graceful_shutdown=3,
        # Otherwise, polling clients would sometimes send into a connection that is being closed.
        timeout_keep_alive=_IDLE_SECONDS,
    )


# Refusals and outages are answered without a thread: all of them may be waiting for a database.


def _is_page(request: Request) -> bool:
    return not request.url.path.startswith(("/api/", "/media/", "/upload/", _HEALTH))


async def _refuse(request: Request, refusal: Refusal) -> Response:
    """Answer with a refusal: in JSON, or on a page, which asks for a missing login first."""
    if not _is_page(request):
        try:
            return JSONResponse(refusal.body, refusal.status, refusal.headers)
        except (ValueError, RecursionError):
            # A lone surrogate or NaN in repeated input.
            message = repr(refusal.body).encode("ascii", "backslashreplace").decode()
            return JSONResponse({"error": message}, refusal.status)
    if refusal.status == 401:
        return page_endpoints.ask_for_login(request)
    reason = refusal.body.get("error") or refusal.body.get("detail") or refusal.body
    status = refusal.status if refusal.status in (403, 404, 413) else 400
    title = {403: "Refused", 404: _NOTHING}.get(status, "Not done")
    return page_endpoints.render(request, "message.html", status, title=title, text=str(reason))


def _answer_unrouted(request: Request, error: HTTPException) -> Response:
    """Redirect to an address with another final slash; like EvalAI's server, only add one to addresses of the API."""
    is_api = request.url.path.startswith("/api/")
    url = request.url.replace(path=f"{request.url.path}/" if is_api else request.url.path.rstrip("/"))
    # Also 405 if a handler does not know an address that other methods have.
    status = 405 if Match.PARTIAL in _match_routes(request, request.url.path) else error.status_code
    if status == 404 and _match_routes(request, url.path) != {Match.NONE}:
        return RedirectResponse(url, 301)
    if is_api:
        message = "Not found." if status == 404 else f'Method "{request.method}" not allowed.'
        return JSONResponse({"detail": message}, status)
    request.scope["user"] = unless_away(partial(page_endpoints.find_user, request))
    return page_endpoints.render(request, "message.html", 404, title=_NOTHING, text="There is no such page.")


def _match_routes(request: Request, path: str) -> set[Match]:
    scope = {**request.scope, "path": path}
    return {route.matches(scope)[0] for route in request.app.routes}


async def _report_outage(request: Request, error: Exception) -> Response:
    """Answer and log an outage; re-raises other exceptions."""
    outage = outage_of(error)
    if outage is None:
        raise error
    write_line(f"answers {outage.status}: {outage.sentence} ({outage.reason})")
    message = f"{outage.sentence} Try again in {outage.retry_after} seconds."
    headers = {"Retry-After": str(outage.retry_after)}
    if not _is_page(request):
        return JSONResponse({"error": message}, outage.status, headers)
    page = page_endpoints.render(request, "message.html", outage.status, title="Temporarily unavailable", text=message)
    page.headers.update(headers)
    return page


async def _report_defect(request: Request, _error: Exception) -> Response:
    message = "This is a defect in the rehearsal; its terminal shows the details."
    if not _is_page(request):
        return JSONResponse({"error": message}, 500)
    return page_endpoints.render(request, "message.html", 500, title="Something went wrong", text=message)


async def _describe_health(request: Request) -> Response:
    """Return the state of the database and of the background loops, for monitoring."""
    services, trouble = services_of(request), ""
    try:
        # Not in the threads of requests, which may all wait for the database.
        await asyncio.wait_for(asyncio.to_thread(services.store.count, Setting), _LOOK_SECONDS)
    except TimeoutError:
        trouble = NO_ANSWER
    except Exception as error:
        outage = outage_of(error)
        if outage is None:
            raise
        trouble = outage.sentence
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


# ── limits of bodies and of connections ────────────────────────────────────────

#: The maximum bytes and seconds of a body that are still read after an early answer, so that the sender reads the
#: answer.
_LINGER_BYTES, _LINGER_SECONDS = 1 << 18, 1.0

_TOO_LARGE = JSONResponse(
    {"error": "The upload is larger than 200 MB; use `evalai … submit --large`."}, 413, {"Connection": "close"}
)
_STOPPED = JSONResponse(
    {"error": "The rehearsal is stopping. Check whether this request was carried out before you repeat it."},
    503,
    {"Connection": "close", "Retry-After": "5"},
)


class _BoundedApp:
    """Rejects bodies that EvalAI's web front would reject, before and while they arrive."""

    def __init__(self, app: ASGIApp, stopping: Callable[[], bool]) -> None:
        self._app, self._stopping = app, stopping

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        exchange = _Exchange(scope, receive, send)
        app = _TOO_LARGE if content_length(scope) > UPLOAD_BYTES else self._app
        try:
            await app(scope, exchange.receive, exchange.send)
        except asyncio.CancelledError:
            # At a stop, uvicorn cancels the requests that outlast its patience, and logs each as a defect.
            if not self._stopping() or exchange.started:
                raise
            await _STOPPED(scope, receive, send)


class _Exchange:
    """A request's body while it arrives, and its answer, which closes the connection if it does not wait for the body.

    Otherwise the server would read the body as the next request.
    """

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = dict(scope["headers"])
        self._receive, self._send, self._received, self._is_early = receive, send, 0, False
        self._is_complete = headers.get(b"content-length", b"0") == b"0" and b"transfer-encoding" not in headers
        #: Whether the sender waits for an answer before sending the body.
        self._expects_answer = b"expect" in headers
        self.started = False

    async def receive(self) -> Message:
        """Return the next message; a sender that sends too much counts as disconnected."""
        self._expects_answer = False
        message = await self._receive()
        self._received += len(message.get("body", b""))
        self._is_complete = self._is_complete or not message.get("more_body", False)
        return message if self._received <= UPLOAD_BYTES else {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        self.started = True
        if message["type"] == "http.response.start" and not self._is_complete:
            self._is_early = True
            headers = [pair for pair in message["headers"] if pair[0].lower() != b"connection"]
            message = {**message, "headers": [*headers, (b"connection", b"close")]}
        if message["type"] != "http.response.body" or not self._is_early or message.get("more_body", False):
            await self._send(message)
            return
        # The answer is sent; closing the connection on incoming bytes would discard it.
        await self._send({**message, "more_body": True})
        if not self._expects_answer:
            with suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._drain(), _LINGER_SECONDS)
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _drain(self) -> None:
        """Read and discard a little of the remaining body."""
        most = self._received + _LINGER_BYTES
        while self._received < most and not self._is_complete:
            await self.receive()
