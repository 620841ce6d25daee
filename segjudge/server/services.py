"""The arguments of request handlers: the services, created once, and a request with its user and fields."""

import json
import math
import time
from collections.abc import AsyncGenerator, Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData, UploadFile
from starlette.exceptions import HTTPException
from starlette.formparsers import MultiPartException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Match, Route
from starlette.types import Scope

from .accounts import Accounts
from .background import Background
from .evalai_json import EvalAIJson
from .leaderboards import Comparisons
from .models import User
from .report_pages import ReportPages
from .store import Store
from .stored_files import FileStore
from .submissions import VISIBILITY, MessageQueues, Submissions
from .wire import JsonObject, Refusal

#: The end of the numbers in addresses, which the database can hold.
_NUMBERS_END = 10**18


class Services:
    """The services of one server."""

    def __init__(
        self,
        folder: str,
        visibility: float = VISIBILITY,
        hosts: Collection[str] = (),
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`clock` returns the current moment, which decides whether challenges and phases are open."""
        self.store = Store(folder)
        self.files = FileStore(self.store)
        self.accounts = Accounts(self.store, hosts)
        self.clock = clock
        self.json = EvalAIJson(self.store, self.files, clock)
        self.queue = MessageQueues(self.store, visibility)
        self.comparisons = Comparisons(self.store, self.files)
        self.report_pages = ReportPages(self.store, self.files)
        self.submissions = Submissions(self.store, self.files, self.queue)
        #: The activity of each worker, as it reports it.
        self.workers: dict[int, str] = {}
        #: The background threads, set by whoever starts them, and the time at which they started.
        self.background: Sequence[Background] = ()
        self.began_at = time.time()


def services_of(request: Request) -> Services:
    services: Services = request.app.state.services
    return services


class NumberedRoute(Route):
    """A route whose numbers are those that the database can hold."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        try:
            match, child_scope = super().matches(scope)
        except ValueError:  # more digits than Python reads
            return Match.NONE, {}
        numbers = [value for value in child_scope.get("path_params", {}).values() if isinstance(value, int)]
        return (match, child_scope) if max(numbers, default=0) < _NUMBERS_END else (Match.NONE, {})


# ── requests ────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class BodyLimits:
    """The limits of a request's body: bytes in all and in each text, files, and fields of a form."""

    bytes: int = 1 << 20
    text: int = 256 << 10
    files: int = 0
    fields: int = 30


def content_length(scope: Scope) -> float:
    """Return the declared length of a request's body; infinity if it is missing or invalid."""
    length = dict(scope["headers"]).get(b"content-length", b"0")
    return int(length) if length.isdigit() and len(length) < 19 else math.inf


class UserRequest(Request):
    """A request with its user, and with the fields and files of its body once that was read."""

    def __init__(self, request: Request, limits: BodyLimits) -> None:
        super().__init__(request.scope, request.receive)
        self._limits = limits
        self.form_data = FormData()
        #: The last value of each field, of a form or of JSON.
        self.fields: JsonObject = {}
        self.files: dict[str, UploadFile] = {}

    @property
    def services(self) -> Services:
        return services_of(self)

    @property
    def base(self) -> str:
        return str(self.base_url).rstrip("/")

    @property
    def user(self) -> User | None:
        user: User | None = self.scope["user"]
        return user

    def require_user(self) -> User:
        if self.user is None:
            raise Refusal(401, {"detail": "Authentication credentials were not provided."})
        return self.user

    async def read(self) -> None:
        """Read a form or JSON body; raises a refusal if it is broken or exceeds the limits."""
        limits, kind = self._limits, self.headers.get("content-type", "").split(";")[0].strip().lower()
        if content_length(self.scope) > limits.bytes:
            raise self._size_refusal()
        try:
            if kind in ("multipart/form-data", "application/x-www-form-urlencoded"):
                self.form_data = await self.form(
                    max_files=limits.files, max_fields=limits.fields, max_part_size=limits.text
                )
                for key, value in self.form_data.multi_items():
                    if isinstance(value, UploadFile):
                        self.files[key] = value
                    else:
                        self.fields[key] = value
            elif kind == "application/json":
                self.fields = _parse_json(await self.body())
        except (HTTPException, MultiPartException, LookupError, UnicodeError) as error:
            detail = getattr(error, "detail", error)
            is_api = self.url.path.startswith("/api/")
            text = f"Multipart form parse error - {detail}" if is_api else f"The form could not be read ({detail})."
            raise Refusal(getattr(error, "status_code", 400), {"detail": text}) from None
        except ClientDisconnect:
            raise Refusal(400, {"detail": "The upload was interrupted."}) from None
        _check_text([self.fields, [value for _, value in self.form_data.multi_items()]])

    async def stream(self) -> AsyncGenerator[bytes, None]:
        """Yield the body; raises a refusal if it exceeds its limit."""
        received = 0
        async for block in super().stream():
            received += len(block)
            if received > self._limits.bytes:
                raise self._size_refusal()
            yield block

    def _size_refusal(self) -> Refusal:
        message = f"The body is larger than {self._limits.bytes >> 10} kB, the limit of this request."
        return Refusal(413, {"detail": message})


def _parse_json(body: bytes) -> JsonObject:
    """Return the object of a body that claims to be JSON; an empty body has none of its fields."""
    try:
        data = json.loads(body) if body.strip() else {}
    except (ValueError, RecursionError) as error:
        raise Refusal(400, {"detail": f"JSON parse error - {error}"}) from None
    if not isinstance(data, dict):
        raise Refusal(400, {"detail": "JSON parse error - an object is expected"})
    return data


def _check_text(value: object) -> None:
    """Reject unpaired surrogates anywhere, since neither databases nor answers can encode them."""
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            waiting += [*item, *item.values()]
        elif isinstance(item, list):
            waiting += item
        elif isinstance(item, str):
            try:
                item.encode("utf-8")
            except UnicodeEncodeError:
                raise Refusal(400, {"detail": f"Text contains an incomplete character: {ascii(item)[:100]}"}) from None


# ── endpoints ───────────────────────────────────────────────────────────────

#: Handles a request, given the values in its address.
Handler = Callable[..., Any]


def require_user(request: UserRequest, **_address: object) -> None:
    """Reject visitors who are not logged in."""
    request.require_user()


class Endpoint:
    """Answers one method of a route, in threads; rejects users before their bodies are read."""

    def __init__(self, handler: Handler, check: Handler, limits: BodyLimits) -> None:
        """Join a handler to the `check` that rejects requests by user and address before the body is read."""
        self._handler, self.check, self._limits = handler, check, limits

    async def answer(self, request: Request) -> Response:
        """Return the answer to a request; refusals are answered by the application's handler."""
        opened = UserRequest(request, self._limits)
        try:
            if request.method not in ("GET", "HEAD"):
                await run_in_threadpool(self._admit, opened)
                await opened.read()
            return await run_in_threadpool(self._respond, opened)
        finally:
            await opened.close()  # files of a form

    def _admit(self, request: UserRequest) -> None:
        with request.services.store.share_reads():
            self._open(request)
            self.check(request, **request.path_params)

    def _open(self, request: UserRequest) -> None:
        request.scope["user"] = self.identify(request)
        _check_text([request.path_params, dict(request.query_params)])

    def _respond(self, request: UserRequest) -> Response:
        with request.services.store.share_reads():
            if "user" not in request.scope:
                self._open(request)
            return self.respond(request, self._handler)

    def identify(self, request: UserRequest) -> User | None:
        """Return the user of a request; rejects users who may not ask."""
        raise NotImplementedError

    def respond(self, request: UserRequest, handler: Handler) -> Response:
        raise NotImplementedError
