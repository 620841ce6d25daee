"""What every page shares: its request with its user, its template, and the protection of its forms."""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import urlsplit

import nh3
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData
from starlette.exceptions import HTTPException
from starlette.formparsers import MultiPartException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from segjudge.rehearsal.column_types import JsonObject
from segjudge.rehearsal.models import User
from segjudge.rehearsal.refusal import Refusal
from segjudge.rehearsal.request_bodies import check_text, within
from segjudge.rehearsal.services import Services
from segjudge.rehearsal.submissions import OPEN
from segjudge.rehearsal.timestamps import written

_HERE = os.path.dirname(__file__)
STATIC = os.path.join(_HERE, "static")
COOKIE = "segjudge_session"
_HEADERS = {
    "Content-Security-Policy": "default-src 'self'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; "
    "form-action 'self'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
}


def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(os.path.join(_HERE, "templates")),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["moment"] = _moment
    environment.filters["safe_html"] = safe_html
    environment.globals["OPEN"] = OPEN
    return environment


@lru_cache(maxsize=256)
def safe_html(text: str | None) -> Markup:
    """Return a host's HTML without anything that could run."""
    return Markup(nh3.clean(text or ""))  # noqa: S704 - just cleaned


def _moment(seconds: float | None) -> str:
    return (written(seconds) or "")[:19].replace("T", " ")


_TEMPLATES = _environment()


@dataclass
class PageRequest:
    """The HTTP request of a page, with its user."""

    services: Services
    http: Request
    user: User | None
    session: str

    @property
    def base(self) -> str:
        """The address of this server."""
        return str(self.http.base_url).rstrip("/")

    @property
    def path(self) -> dict[str, int]:
        """The numbers in the address."""
        return self.http.path_params

    def query(self, key: str) -> str:
        """Return a field of the address; nothing where there is none."""
        return self.http.query_params.get(key, "")

    def known(self) -> User:
        """Return the user; a page that needs one redirects others to the login."""
        if self.user is None:
            raise Refusal(401, "log in")
        return self.user

    def form_token(self) -> str:
        """Return what a form of this session carries, and no other site can know."""
        return hmac.new(self.services.store.secret, f"form {self.session}".encode(), hashlib.sha256).hexdigest()


#: A page takes its request and the numbers of its address; a form's action takes its request and the form's fields.
View = Callable[..., Response | None]
Action = Callable[[PageRequest, JsonObject], Response]
Check = Callable[[PageRequest], object]


class Frame:
    """Makes routes of functions that take a `PageRequest`."""

    def __init__(self, services: Services) -> None:
        self._services = services

    def page(self, path: str, view: View) -> Route:
        """Return the route of a page; its function runs in a thread."""

        async def served(request: Request) -> Response:
            return await run_in_threadpool(self._answered, request, view) or HTMLResponse("", 204)

        return Route(path, served, methods=["GET"])

    def action(self, path: str, act: Action, first: Check, files: int = 0) -> Route:
        """Return the route of a form that a page of this server sent; `first` is asked before it is read."""

        async def served(request: Request) -> Response:
            if not _same_origin(request):
                return self.alone(request, "message.html", 403, title="Refused", text="Another site sent this form.")
            refused = await run_in_threadpool(self._answered, request, lambda page: _checked(page, first))
            if refused is not None:
                return refused
            try:
                read = await _form(request, files)
            except (ClientDisconnect, HTTPException, MultiPartException, LookupError, UnicodeError) as error:
                text = f"The form could not be read ({getattr(error, 'detail', error)})."
                return self.alone(request, "message.html", 400, title="Not done", text=text)
            except Refusal as refusal:
                text = str(refusal.body.get("detail", refusal.body))
                return self.alone(request, "message.html", refusal.status, title="Not done", text=text)
            form: JsonObject = dict(read)
            # Answers to a phase's questions may be several.
            form |= {key: read.getlist(key) for key in read if key.startswith("attribute-")}
            done = await run_in_threadpool(self._answered, request, lambda page: _guarded(page, form, act, first))
            return done or HTMLResponse("", 204)

        return Route(path, served, methods=["POST"])

    def _answered(self, http: Request, view: View) -> Response | None:
        with self._services.store.reading():
            return self._page(http, view)

    def _page(self, http: Request, view: View) -> Response | None:
        session = http.cookies.get(COOKIE, "")
        user = self._services.accounts.of_token(session) if session else None
        request = PageRequest(self._services, http, user, session)
        try:
            return view(request, **http.path_params) if http.method in ("GET", "HEAD") else view(request)
        except Refusal as refusal:
            if refusal.status == 401:
                return RedirectResponse(f"/login?next={http.url.path}", 303)
            words = refusal.body.get("error") or refusal.body.get("detail") or refusal.body
            status = refusal.status if refusal.status in (403, 404) else 400
            return self.alone(http, "message.html", status, title="Not done", text=str(words), user=user)

    @staticmethod
    def alone(request: Request, template: str, code: int = 200, **values: object) -> Response:
        """Return a page that has no challenge's head."""
        values.setdefault("user", None)
        values.setdefault("form_token", "")
        return HTMLResponse(_TEMPLATES.get_template(template).render(path=request.url.path, **values), code, _HEADERS)


def page(request: PageRequest, template: str, **values: object) -> Response:
    """Return a page as its user sees it."""
    return Frame.alone(request.http, template, 200, user=request.user, form_token=request.form_token(), **values)


def in_session(request: PageRequest) -> None:
    """Refuse who has not logged in."""
    request.known()


def by_anybody(_request: PageRequest) -> None:
    """Refuse nobody: the login's form."""


def _checked(request: PageRequest, check: Check) -> None:
    check(request)


#: Bytes of a form without a file.
_FORM = 1 << 20


async def _form(request: Request, files: int) -> FormData:
    """Return the fields of a form; without files it is small."""
    if files:
        return await request.form(max_files=files, max_fields=60)
    return await Request(request.scope, within(request.receive, _FORM)).form(max_files=0, max_fields=60)


def _guarded(request: PageRequest, form: JsonObject, act: Action, first: Check) -> Response:
    check_text(list(form) + [value for value in form.values() if isinstance(value, (str, list))])
    if first is not by_anybody:
        request.known()
        if not hmac.compare_digest(str(form.get("form_token", "")).encode(), request.form_token().encode()):
            raise Refusal(403, "This form is from another session: load the page again.")
    return act(request, form)


def _same_origin(request: Request) -> bool:
    """Return whether a form came from this server; browsers say where it came from."""
    origin = request.headers.get("origin") or request.headers.get("referer", "")
    return bool(origin) and urlsplit(origin).netloc == request.headers.get("host", "")
