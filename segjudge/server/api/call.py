"""A call of the API: its user, its fields and files, how often it comes, and its answer in the server's words."""

import json
import math
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.formparsers import MultiPartException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response

from segjudge.server.middleware import announced_length, check_text, limit_body, too_large
from segjudge.server.models import User
from segjudge.server.services import Services, services_of
from segjudge.server.wire import JsonObject, Refusal

_WINDOW = 60.0
_ANONYMOUS = 100
_NOT_VALID = {
    "detail": "Given token not valid for any token type",
    "code": "token_not_valid",
    "messages": [{"token_class": "RefreshToken", "token_type": "refresh", "message": "Token is invalid or expired"}],
}


@dataclass
class Call:
    """A request whose body was read; `user` is None where nobody logged in."""

    services: Services
    base: str
    user: User | None
    path: dict[str, Any]
    query: dict[str, str]
    data: JsonObject = field(default_factory=dict)
    files: dict[str, UploadFile] = field(default_factory=dict)

    def require_user(self) -> User:
        """Return the user; refuses where there is none."""
        if self.user is None:
            raise Refusal(401, {"detail": "Authentication credentials were not provided."})
        return self.user

    def submission(self, number: int, *, host: bool = False) -> JsonObject:
        """Return a submission as it stands now."""
        return self.services.json.submission(self.services.submissions.get(number), self.base, host=host)


Handler = Callable[[Call], object]


@dataclass(frozen=True)
class CallLimits:
    """What a call takes: asked before its body is read."""

    #: Bytes of the body, and of a text in a form.
    bytes: int = 1 << 20
    text: int = 256 << 10
    files: int = 0
    #: Refuses, by the token and the path alone, who may not send it.
    first: Callable[[Call], object] = Call.require_user


#: Path, without its last slash → method → who answers, and what the call takes.
CALLS: dict[str, dict[str, tuple[Handler, CallLimits]]] = {}


def answers(method: str, route: str, **limits: Any) -> Callable[[Handler], Handler]:
    """Register the handler of a call; without limits it takes a small form or JSON from a user with a token."""

    def noted(handler: Handler) -> Handler:
        CALLS.setdefault(route.rstrip("/"), {})[method] = handler, CallLimits(**limits)
        return handler

    return noted


@dataclass(frozen=True)
class Answer:
    """An answer that is not a plain 200."""

    status: int
    body: object


class Throttle:
    """A limit of requests in a minute for each user, over all paths."""

    def __init__(self, limit: int) -> None:
        self._limit, self._lock = limit, threading.Lock()
        self._seen: dict[str, deque[float]] = {}

    def wait(self, who: str, *, anonymous: bool) -> float:
        """Return seconds to wait; 0 lets the request pass."""
        now, limit = time.monotonic(), max(self._limit, _ANONYMOUS) if anonymous else self._limit
        with self._lock:
            seen = self._seen.setdefault(who, deque())
            while seen and seen[0] <= now - _WINDOW:
                seen.popleft()
            if len(seen) >= limit:
                return _WINDOW - (now - seen[0])
            seen.append(now)
            return 0.0


async def respond(request: Request, calls: dict[str, tuple[Handler, CallLimits]]) -> Response:
    """Read a request, and let the handler for its method answer in a thread."""
    services, throttle = services_of(request), request.app.state.throttle
    try:
        user = await run_in_threadpool(_user, services, request.headers.get("authorization", ""))
        address = request.client.host if request.client else ""
        wait = throttle.wait(f"user {user.id}" if user else f"at {address}", anonymous=user is None)
        if wait:
            return _throttled(wait)
        call = Call(services, str(request.base_url).rstrip("/"), user, request.path_params, dict(request.query_params))
        check_text([call.path, call.query])
        handler, limits = calls["GET" if request.method == "HEAD" else request.method]
        if request.method not in ("GET", "HEAD"):
            await run_in_threadpool(limits.first, call)
            await _read(request, call, limits)
        return await run_in_threadpool(_answered, handler, call)
    except Refusal as refusal:
        return _refused(refusal)


def _answered(handler: Handler, call: Call) -> Response:
    """Return the answer, in JSON; a value that cannot be computed with or shown is the caller's fault."""
    try:
        with call.services.store.share_reads():
            body = handler(call)
        return JSONResponse(body.body, body.status) if isinstance(body, Answer) else JSONResponse(body)
    except (OverflowError, RecursionError, UnicodeError) as error:
        words = f"The request holds a value that nothing can be done with ({error})"
        raise Refusal(400, words.encode("ascii", "backslashreplace").decode()[:300]) from None


def _refused(refusal: Refusal) -> Response:
    try:
        return JSONResponse(refusal.body, refusal.status)
    except (ValueError, RecursionError):
        # Half a character, or NaN, in what is repeated.
        return JSONResponse({"error": repr(refusal.body).encode("ascii", "backslashreplace").decode()}, refusal.status)


def _throttled(wait: float) -> Response:
    seconds = math.ceil(wait)
    words = f"Request was throttled. Expected available in {seconds} second{'s' if seconds != 1 else ''}."
    return JSONResponse({"detail": words}, 429, {"Retry-After": str(seconds)})


def _user(services: Services, header: str) -> User | None:
    """Return whose token the header has; refuses in the words of each kind of token."""
    kind, _, token = header.partition(" ")
    if not header:
        return None
    user = services.accounts.user_of_token(token.strip())
    if user is None:
        raise Refusal(401, {"detail": "Invalid token"} if kind.lower() == "token" else dict(_NOT_VALID))
    return user


async def _read(request: Request, call: Call, limits: CallLimits) -> None:
    kind = request.headers.get("content-type", "").split(";")[0].strip().lower()
    if announced_length(request.scope) > limits.bytes:
        raise too_large(limits.bytes)
    bounded = Request(request.scope, limit_body(request.receive, limits.bytes))
    try:
        if kind in ("multipart/form-data", "application/x-www-form-urlencoded"):
            form = await bounded.form(max_files=limits.files, max_fields=30, max_part_size=limits.text)
            for key, value in form.multi_items():
                if isinstance(value, UploadFile):
                    call.files[key] = value
                else:
                    call.data[key] = value
        elif kind == "application/json":
            call.data = _json(await bounded.body())
    except (HTTPException, MultiPartException, LookupError, UnicodeError) as error:
        words = getattr(error, "detail", str(error))
        raise Refusal(getattr(error, "status_code", 400), {"detail": f"Multipart form parse error - {words}"}) from None
    except ClientDisconnect:
        raise Refusal(400, {"detail": "The upload broke off."}) from None
    check_text(call.data)


def _json(body: bytes) -> JsonObject:
    try:
        data = json.loads(body) if body.strip() else {}
    except (ValueError, RecursionError) as error:
        raise Refusal(400, {"detail": f"JSON parse error - {error}"}) from None
    if not isinstance(data, dict):
        raise Refusal(400, {"detail": "JSON parse error - an object is expected"})
    return data
