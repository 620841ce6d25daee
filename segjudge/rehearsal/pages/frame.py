"""What every page shares: who looks, the challenge around it, and protection of its forms."""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

import nh3
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.formparsers import MultiPartException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from segjudge.rehearsal.accounts import User
from segjudge.rehearsal.request_bodies import plain, within
from segjudge.rehearsal.services import Services
from segjudge.rehearsal.submissions import OPEN, Refusal
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
    made = Environment(
        loader=FileSystemLoader(os.path.join(_HERE, "templates")),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["moment"] = _moment
    made.filters["safe_html"] = safe_html
    made.globals["OPEN"] = OPEN
    return made


@lru_cache(maxsize=256)
def safe_html(text: str | None) -> Markup:
    """A host's template without anything that could run."""
    return Markup(nh3.clean(text or ""))  # noqa: S704 - just cleaned


def _moment(seconds: float | None) -> str:
    return (written(seconds) or "")[:19].replace("T", " ")


_TEMPLATES = _environment()


@dataclass
class PageRequest:
    """One look at a page."""

    services: Services
    request: Request
    user: User | None
    session: str

    @property
    def base(self) -> str:
        """The address of this server."""
        return str(self.request.base_url).rstrip("/")

    def known(self) -> User:
        """The user; a page that needs one sends others to the login."""
        if self.user is None:
            raise Refusal(401, "log in")
        return self.user

    def form_token(self) -> str:
        """What a form of this session carries, and no other site can know."""
        return hmac.new(self.services.store.secret, f"form {self.session}".encode(), hashlib.sha256).hexdigest()


View = Callable[..., Any]


class Frame:
    """Makes routes of functions that take a `Look`."""

    def __init__(self, services: Services) -> None:
        self._services = services

    def page(self, path: str, view: View) -> Route:
        """A page; its function runs in a thread."""

        async def served(request: Request) -> Response:
            return await run_in_threadpool(self._answered, request, view) or HTMLResponse("", 204)

        return Route(path, served, methods=["GET"])

    def deed(
        self,
        path: str,
        act: Callable[[PageRequest, dict[str, Any]], Response],
        first: Callable[[PageRequest], object],
        files: int = 0,
    ) -> Route:
        """What a form does, when it was one of our own pages that sent it; `first` is asked before it is read."""

        async def served(request: Request) -> Response:
            if not _same_origin(request):
                return self.alone(request, "message.html", 403, title="Refused", text="Another site sent this form.")
            refused = await run_in_threadpool(self._answered, request, lambda look: first(look) and None)
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
            form: dict[str, Any] = dict(read)
            # Answers to a phase's questions may be several.
            form |= {key: read.getlist(key) for key in read if key.startswith("attribute-")}
            done = await run_in_threadpool(self._answered, request, lambda look: _guarded(look, form, act, first))
            return done or HTMLResponse("", 204)

        return Route(path, served, methods=["POST"])

    def _answered(self, request: Request, view: View) -> Response | None:
        session = request.cookies.get(COOKIE, "")
        look = PageRequest(
            self._services, request, self._services.accounts.of_token(session) if session else None, session
        )
        try:
            read = request.method in ("GET", "HEAD")
            answer: Response | None = view(look, **request.path_params) if read else view(look)
            return answer
        except Refusal as refusal:
            if refusal.status == 401:
                return RedirectResponse(f"/login?next={request.url.path}", 303)
            words = refusal.body.get("error") or refusal.body.get("detail") or refusal.body
            status = refusal.status if refusal.status in (403, 404) else 400
            return self.alone(request, "message.html", status, title="Not done", text=str(words), user=look.user)

    @staticmethod
    def alone(request: Request, template: str, code: int = 200, **values: Any) -> Response:
        """A page without a challenge around it."""
        values.setdefault("user", None)
        values.setdefault("form_token", "")
        return HTMLResponse(_TEMPLATES.get_template(template).render(path=request.url.path, **values), code, _HEADERS)


def shown(look: PageRequest, template: str, **values: Any) -> Response:
    """A page as this user sees it."""
    return Frame.alone(look.request, template, user=look.user, form_token=look.form_token(), **values)


def in_session(look: PageRequest) -> None:
    """Most forms are for those who have logged in."""
    look.known()


def by_anybody(_look: PageRequest) -> None:
    """The login's is not."""


#: Bytes of a form without a file.
_FORM = 1 << 20


async def _form(request: Request, files: int) -> Any:
    """What a form holds; without files it is small."""
    if files:
        return await request.form(max_files=files, max_fields=60)
    return await Request(request.scope, within(request.receive, _FORM)).form(max_files=0, max_fields=60)


def _guarded(
    look: PageRequest,
    form: dict[str, Any],
    act: Callable[[PageRequest, dict[str, Any]], Response],
    first: Callable[[PageRequest], object],
) -> Response:
    plain(list(form) + [one for one in form.values() if isinstance(one, (str, list))])
    if first is not by_anybody:
        look.known()
        if not hmac.compare_digest(str(form.get("form_token", "")).encode(), look.form_token().encode()):
            raise Refusal(403, "This form is from another session: load the page again.")
    return act(look, form)


def _same_origin(request: Request) -> bool:
    """Browsers tell where a form came from; without a word of it nothing is done."""
    told = request.headers.get("origin") or request.headers.get("referer", "")
    return bool(told) and urlsplit(told).netloc == request.headers.get("host", "")


__all__ = [
    "COOKIE",
    "STATIC",
    "Frame",
    "HTMLResponse",
    "PageRequest",
    "RedirectResponse",
    "Response",
    "by_anybody",
    "in_session",
    "shown",
]
