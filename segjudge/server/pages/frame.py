"""What all pages share: the request and its user, the template, and the protection of forms."""

import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar
from urllib.parse import urlsplit

import nh3
from itsdangerous import Signer
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData
from starlette.exceptions import HTTPException
from starlette.formparsers import MultiPartException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from segjudge.server.middleware import check_text, limit_body
from segjudge.server.models import User
from segjudge.server.services import Services, services_of
from segjudge.server.submissions import OPEN
from segjudge.server.wire import JsonObject, Refusal, format_moment

_HERE = os.path.dirname(__file__)
STATIC = os.path.join(_HERE, "static")
COOKIE = "segjudge_session"
T = TypeVar("T")
#: Policies of every page.
HEADERS = {
    "Content-Security-Policy": "default-src 'self'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; "
    "form-action 'self'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
}


@lru_cache(maxsize=256)
def safe_html(text: str | None) -> Markup:
    """Return a host's HTML without anything that could run."""
    return Markup(nh3.clean(text or ""))  # noqa: S704 - just cleaned


def _moment(seconds: float | None) -> str:
    return (format_moment(seconds) or "")[:19].replace("T", " ")


_TEMPLATES = Environment(
    loader=FileSystemLoader(os.path.join(_HERE, "templates")),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_TEMPLATES.filters.update(moment=_moment, safe_html=safe_html)
_TEMPLATES.globals["OPEN"] = OPEN


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

    def require_user(self) -> User:
        """Return the user; a page that needs one redirects others to the login."""
        if self.user is None:
            raise Refusal(401, "log in")
        return self.user

    def form_token(self) -> str:
        """Return what a form of this session carries, and no other site can know."""
        return self._form_signer().get_signature(self.session).decode()

    def is_form_token(self, token: str) -> bool:
        """Return whether a form's token is that of this session."""
        return self._form_signer().verify_signature(self.session, token)

    def _form_signer(self) -> Signer:
        return Signer(self.services.store.secret, salt="form", digest_method=hashlib.sha256)


#: A page takes its request and the numbers of its address; a form's action takes its request and the form's fields.
View = Callable[..., Response]
Action = Callable[[PageRequest, JsonObject], Response]
Check = Callable[[PageRequest], object]
ROUTES: list[Route] = []


def show_at(path: str) -> Callable[[View], View]:
    """Register a function as the view of an address."""

    def routed(view: View) -> View:
        def served(http: Request) -> Response:
            return _answered(http, lambda request: view(request, **http.path_params))

        ROUTES.append(Route(path, served, methods=["GET"]))
        return view

    return routed


def receive_at(path: str, first: Check, files: int = 0) -> Callable[[Action], Action]:
    """Register a function as the handler of a form; `first` is called before the form is read."""

    def routed(act: Action) -> Action:
        async def served(http: Request) -> Response:
            if not _same_origin(http):
                return render(http, "message.html", 403, title="Refused", text="Another site sent this form.")
            refused = await run_in_threadpool(_answered, http, first)
            if isinstance(refused, Response):
                return refused
            try:
                read = await _form(http, files)
            except (ClientDisconnect, HTTPException, MultiPartException, LookupError, UnicodeError) as error:
                text = f"The form could not be read ({getattr(error, 'detail', error)})."
                return render(http, "message.html", 400, title="Not done", text=text)
            except Refusal as refusal:
                text = str(refusal.body.get("detail", refusal.body))
                return render(http, "message.html", refusal.status, title="Not done", text=text)
            form: JsonObject = dict(read)
            # Answers to a phase's questions may be several.
            form |= {key: read.getlist(key) for key in read if key.startswith("attribute-")}
            return await run_in_threadpool(_answered, http, lambda request: _guarded(request, form, act, first))

        ROUTES.append(Route(path, served, methods=["POST"]))
        return act

    return routed


def _answered(http: Request, answer: Callable[[PageRequest], T]) -> T | Response:
    """Return an answer to the request's user, or the page that says why there is none."""
    services, session = services_of(http), http.cookies.get(COOKIE, "")
    with services.store.share_reads():
        user = services.accounts.user_of_token(session) if session else None
        try:
            return answer(PageRequest(services, http, user, session))
        except Refusal as refusal:
            if refusal.status == 401:
                return RedirectResponse(f"/login?next={http.url.path}", 303)
            words = refusal.body.get("error") or refusal.body.get("detail") or refusal.body
            status = refusal.status if refusal.status in (403, 404) else 400
            return render(http, "message.html", status, title="Not done", text=str(words), user=user)


def render(request: Request, template: str, code: int = 200, **values: object) -> Response:
    """Return a page that has no challenge's head."""
    values.setdefault("user", None)
    values.setdefault("form_token", "")
    return HTMLResponse(_TEMPLATES.get_template(template).render(path=request.url.path, **values), code, HEADERS)


def render_page(request: PageRequest, template: str, **values: object) -> Response:
    """Return a page as its user sees it."""
    return render(request.http, template, 200, user=request.user, form_token=request.form_token(), **values)


def allow_anybody(_request: PageRequest) -> None:
    """Refuse nobody, as the form of the login needs."""


#: Bytes of a form without a file.
_FORM = 1 << 20


async def _form(request: Request, files: int) -> FormData:
    """Return the fields of a form; without files it is small."""
    if files:
        return await request.form(max_files=files, max_fields=60)
    return await Request(request.scope, limit_body(request.receive, _FORM)).form(max_files=0, max_fields=60)


def _guarded(request: PageRequest, form: JsonObject, act: Action, first: Check) -> Response:
    check_text(list(form) + [value for value in form.values() if isinstance(value, (str, list))])
    if first is not allow_anybody:
        request.require_user()
        if not request.is_form_token(str(form.get("form_token", ""))):
            raise Refusal(403, "This form is from another session: load the page again.")
    return act(request, form)


def _same_origin(request: Request) -> bool:
    """Return whether a form came from this server; browsers say where it came from."""
    origin = request.headers.get("origin") or request.headers.get("referer", "")
    return bool(origin) and urlsplit(origin).netloc == request.headers.get("host", "")
