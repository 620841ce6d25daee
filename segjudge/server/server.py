"""The web server: API, files and pages, on this machine alone."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import anyio
import anyio.to_thread
from sqlalchemy.exc import SQLAlchemyError
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp
from uvicorn import Config

from . import api, pages
from .database import NO_ANSWER, BusyError, outage_of, unless_away, write_line
from .middleware import BoundedApp, Faults, FaultyApp, PromptProtocol
from .models import Setting
from .services import Services, services_of
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
        Middleware(BoundedApp, stopping=options.stopping),
    ]
    routes = [*api.ROUTES, *pages.ROUTES, Route("/healthz", _check_health, methods=["GET"])]
    outages = dict.fromkeys((SQLAlchemyError, BusyError, OSError, MemoryError), _report_outage)
    handlers: Any = {Refusal: _refuse, 404: _miss, 405: _miss, 500: _report_defect, **outages}
    application = Starlette(routes=routes, middleware=middleware, exception_handlers=handlers)
    application.state.services, application.state.throttle = services, api.Throttle(options.requests_per_minute)
    return FaultyApp(application, options.faults) if options.faults else application


def server_config(application: ASGIApp) -> Config:
    """Return how uvicorn serves the application: quietly, and without waiting for what does not come."""
    logging.getLogger("python_multipart").setLevel(logging.CRITICAL)  # a sender's mistakes are no news here
    return Config(
        application,
        http=PromptProtocol,
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
    """Answer that nothing is at an address, or nothing for this method."""
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
        trouble = await anyio.to_thread.run_sync(database, abandon_on_cancel=True, limiter=_looks())
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
def _looks() -> anyio.CapacityLimiter:
    """Return what lets two looks at the database wait at a time, beside the threads of all requests."""
    return anyio.CapacityLimiter(2)
