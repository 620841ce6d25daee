"""The rehearsal's web server: API, files and pages, on this machine alone."""

from collections.abc import Callable
from dataclasses import dataclass

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp
from uvicorn import Config

from segjudge.rehearsal.api.call import Throttle

from . import api, file_routes, pages
from .faults import Faults, FaultyApp
from .pages.frame import alone
from .request_bodies import BoundedApp, PromptProtocol
from .services import Services

LOOPBACK = "127.0.0.1"
#: EvalAI's limit for each user.
REQUESTS_PER_MINUTE = 60


@dataclass(frozen=True)
class ServerOptions:
    """Limits and faults of the server, and when it is about to end."""

    requests_per_minute: int = REQUESTS_PER_MINUTE
    faults: Faults | None = None
    #: Whether the server is about to end.
    stopping: Callable[[], bool] = lambda: False


def app(services: Services, options: ServerOptions) -> ASGIApp:
    """Return the application that serves the API, the files and the pages."""
    # A page of another site could otherwise reach us under a name of its own that points here.
    middleware = [
        Middleware(TrustedHostMiddleware, allowed_hosts=["127.0.0.1", "localhost", "[::1]"], www_redirect=False),
        Middleware(BoundedApp, stopping=options.stopping),
    ]
    routes = [*api.ROUTES, *file_routes.ROUTES, *pages.ROUTES]
    handlers = {404: _missing, 405: _missing, 500: _broken}
    served = Starlette(routes=routes, middleware=middleware, exception_handlers=handlers)
    served.state.services, served.state.throttle = services, Throttle(options.requests_per_minute)
    return FaultyApp(served, options.faults) if options.faults else served


def server_config(application: ASGIApp) -> Config:
    """Return how uvicorn serves the application: quietly, and without waiting for what does not come."""
    return Config(
        application,
        http=PromptProtocol,
        ws="none",
        log_level="warning",
        access_log=False,
        lifespan="off",
        server_header=False,
        timeout_graceful_shutdown=3,
    )


async def _missing(request: Request, error: Exception) -> Response:
    status = getattr(error, "status_code", 404)
    if request.url.path.startswith("/api/"):
        words = "Not found." if status == 404 else f'Method "{request.method}" not allowed.'
        return JSONResponse({"detail": words}, status)
    return alone(request, "message.html", 404, title="Nothing here", text="There is no such page.")


async def _broken(request: Request, _error: Exception) -> Response:
    if request.url.path.startswith("/api/"):
        return JSONResponse({"error": "This is a defect of the rehearsal; its terminal tells more."}, 500)
    text = "This is a defect of the rehearsal. Its terminal tells more."
    return alone(request, "message.html", 500, title="That went wrong", text=text)
