"""The base of all web pages: templates, sessions, forms, and routes.

Each function that `answer` registers answers one method of a route: it takes the request and the values of the address.
"""

import hashlib
import os
import re
from collections.abc import Callable
from functools import lru_cache
from urllib.parse import SplitResult, quote, urlsplit

import nh3
from itsdangerous import Signer
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from segjudge.report.page import keep_percents, read_styles

from .models import Challenge, User
from .services import BodyLimits, Endpoint, Handler, NumberedRoute, UserRequest, services_of
from .submissions import OPEN
from .wire import Refusal, format_moment

_HERE = os.path.dirname(__file__)
_STATIC = os.path.join(_HERE, "static")
#: Policies of every page.
HEADERS = {
    "Content-Security-Policy": "default-src 'self'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; "
    "form-action 'self'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
}


@lru_cache(maxsize=256)
def _safe_html(text: str | None) -> Markup:
    """Return a host's HTML without anything that could run."""
    return Markup(nh3.clean(text or ""))  # noqa: S704 - just cleaned


def _moment(seconds: float | None) -> str:
    return (format_moment(seconds) or "")[:19].replace("T", " ")


TEMPLATES = Environment(
    loader=FileSystemLoader(os.path.join(_HERE, "templates")),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
TEMPLATES.filters.update(moment=_moment, safe_html=_safe_html, unbroken=keep_percents)
TEMPLATES.globals["OPEN"] = OPEN


def render(request: Request, template: str, code: int = 200, /, **values: object) -> Response:
    """Return a page for the request's user, or for an anonymous visitor if the user was not looked up."""
    user: User | None = request.scope.get("user")
    token = _form_signer(request).get_signature(session_of(request)).decode() if user else ""
    text = TEMPLATES.get_template(template).render(path=request.url.path, user=user, form_token=token, **values)
    return HTMLResponse(text, code, HEADERS)


def cookie_of(request: Request) -> str:
    """Return the name of the session's cookie: browsers send a cookie to every port of this machine."""
    return "segjudge_session_" + re.sub(r"[^0-9]", "", request.headers.get("host", "").rpartition(":")[2])


def session_of(request: Request) -> str:
    return request.cookies.get(cookie_of(request), "")


def find_user(request: Request) -> User | None:
    session = session_of(request)
    return services_of(request).accounts.user_of_token(session) if session else None


def ask_for_login(request: Request) -> Response:
    """Redirect to the login, and from there to the requested page or the form's page."""
    page = str(request.url) if request.method in ("GET", "HEAD") else request.headers.get("referer", "")
    path = local_path(_parse_address(page)._replace(scheme="", netloc="", fragment="").geturl())
    return RedirectResponse(f"/login?next={quote(path)}", 303)


def _parse_address(text: str) -> SplitResult:
    try:
        return urlsplit(text)
    except ValueError:
        return urlsplit("")


def _form_signer(request: Request) -> Signer:
    """Return the function that derives a session's secret form token."""
    return Signer(services_of(request).store.secret, salt="form", digest_method=hashlib.sha256)


class _PageEndpoint(Endpoint):
    """An endpoint that identifies its user by a cookie, and accepts only forms of its own pages."""

    def identify(self, request: UserRequest) -> User | None:
        if request.method == "POST" and not _has_own_origin(request):
            raise Refusal(403, "Another site sent this form.")
        return find_user(request)

    def respond(self, request: UserRequest, handler: Handler) -> Response:
        if request.method == "POST" and self.check is not allow_anybody:
            request.require_user()
            token = str(request.fields.get("form_token", ""))
            if not _form_signer(request).verify_signature(session_of(request), token):
                raise Refusal(403, "This form belongs to another session: reload the page.")
        response: Response = handler(request, **request.path_params)
        return response


def _has_own_origin(request: Request) -> bool:
    """Return whether a form came from this server; browsers say where it came from."""
    origin = request.headers.get("origin") or request.headers.get("referer", "")
    return bool(origin) and _parse_address(origin).netloc == request.headers.get("host", "")


def allow_anybody(_request: UserRequest, **_address: int) -> None:
    """Accept everybody, as the login form needs."""


_FORM = BodyLimits(text=1 << 20, fields=60)
#: The routes of static files, of the pages, and of the actions of their forms.
ROUTES: list[BaseRoute] = [
    Route("/static/report.css", lambda _request: Response(read_styles(()), media_type="text/css")),
    Mount("/static", StaticFiles(directory=_STATIC), name="static"),
]


def answer(
    method: str, path: str, check: Handler = allow_anybody, limits: BodyLimits = _FORM
) -> Callable[[Handler], Handler]:
    """Register the handler of an address's method; `check` rejects before a form is read."""

    def register(handler: Handler) -> Handler:
        ROUTES.append(NumberedRoute(path, _PageEndpoint(handler, check, limits).answer, methods=[method]))
        return handler

    return register


def local_path(path: str) -> str:
    """Return a path on this server for a requested URL."""
    return path if path.startswith("/") and not path.startswith(("//", "/\\")) else "/"


def challenge_page(request: UserRequest, challenge: int, template: str, **values: object) -> Response:
    accounts = request.services.accounts
    return render(
        request,
        template,
        200,
        challenge=request.services.json.challenge(find_challenge(request, challenge), request.base),
        host=accounts.is_host(request.user, challenge),
        team=accounts.team_of(request.user, challenge),
        **values,
    )


def find_challenge(request: UserRequest, number: int) -> Challenge:
    return request.services.store.require(Challenge, number, Refusal(404, "There is no such challenge."))
