"""A call of the API: who it is, what was sent, how often, and the answer as the server words it."""

from __future__ import annotations

import json
import math
import re
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.formparsers import MultiPartException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response

from linejudge.evalai.routes import LOGIN
from linejudge.rehearsal.accounts import User
from linejudge.rehearsal.desk import Desk
from linejudge.rehearsal.submissions import Refusal

#: What a form's texts may hold, and how much of it for those who report results.
_FORM = {"max_files": 3, "max_fields": 30, "max_part_size": 256 << 10}
_REPORT = {"max_files": 3, "max_fields": 30, "max_part_size": 16 << 20}
_JSON_BYTES, _REPORT_BYTES = 1 << 20, 32 << 20
#: Calls with large texts, and the one that nobody needs a token for.
_LARGE = re.compile(r"/update_(partially_evaluated_)?submission/?$")
_OPEN = LOGIN
_WINDOW = 60.0
_ANONYMOUS = 100
_NOT_VALID = {
    "detail": "Given token not valid for any token type",
    "code": "token_not_valid",
    "messages": [
        {"token_class": "RefreshToken", "token_type": "refresh", "message": "Token is invalid or expired"},
    ],
}


@dataclass
class Call:
    """One request, read; `user` is None where nobody logged in."""

    desk: Desk
    base: str
    user: User | None
    path: dict[str, Any]
    query: dict[str, str]
    data: dict[str, Any] = field(default_factory=dict)
    files: dict[str, UploadFile] = field(default_factory=dict)

    def known(self) -> User:
        """The user; refuses where there is none."""
        if self.user is None:
            raise Refusal(401, {"detail": "Authentication credentials were not provided."})
        return self.user


Handler = Callable[[Call], Any]


@dataclass(frozen=True)
class Answer:
    """An answer that is not a plain 200."""

    status: int
    body: Any


class Throttle:
    """So many requests in a minute for each user, over all paths."""

    def __init__(self, limit: int) -> None:
        self._limit, self._lock = limit, threading.Lock()
        self._seen: dict[str, deque[float]] = {}

    def wait(self, who: str, *, anonymous: bool) -> float:
        """Seconds to wait; 0 lets the request pass."""
        now, limit = time.monotonic(), max(self._limit, _ANONYMOUS) if anonymous else self._limit
        with self._lock:
            seen = self._seen.setdefault(who, deque())
            while seen and seen[0] <= now - _WINDOW:
                seen.popleft()
            if len(seen) >= limit:
                return _WINDOW - (now - seen[0])
            seen.append(now)
            return 0.0


def endpoint(desk: Desk, throttle: Throttle, handlers: dict[str, Handler]) -> Callable[[Request], Awaitable[Response]]:
    """Reads the request, lets the handler for its method answer in a thread of its own."""

    async def served(request: Request) -> Response:
        try:
            user = await run_in_threadpool(_user, desk, request.headers.get("authorization", ""))
            address = request.client.host if request.client else ""
            wait = throttle.wait(f"user {user.id}" if user else f"at {address}", anonymous=user is None)
            if wait:
                return _throttled(wait)
            call = Call(desk, str(request.base_url).rstrip("/"), user, request.path_params, dict(request.query_params))
            if request.method not in ("GET", "HEAD"):
                if user is None and request.url.path.rstrip("/") != _OPEN:
                    call.known()  # before a stranger's bytes are taken in
                await _read(request, call)
            body = await run_in_threadpool(handlers["GET" if request.method == "HEAD" else request.method], call)
            return JSONResponse(body.body, body.status) if isinstance(body, Answer) else JSONResponse(body)
        except Refusal as refusal:
            return JSONResponse(refusal.body, refusal.status)
        except (OverflowError, RecursionError, UnicodeError) as error:
            return JSONResponse(
                {"error": f"The request holds a value that nothing can be done with ({error})"[:300]}, 400
            )

    return served


def _throttled(wait: float) -> Response:
    whole = math.ceil(wait)
    words = f"Request was throttled. Expected available in {whole} second{'s' if whole != 1 else ''}."
    return JSONResponse({"detail": words}, 429, {"Retry-After": str(whole)})


def _user(desk: Desk, header: str) -> User | None:
    """Whose token the header has; refuses in the words of each kind of token."""
    kind, _, token = header.partition(" ")
    if not header:
        return None
    user = desk.accounts.of_token(token.strip())
    if user is None:
        raise Refusal(401, {"detail": "Invalid token"} if kind.lower() == "token" else dict(_NOT_VALID))
    return user


async def _read(request: Request, call: Call) -> None:
    kind = request.headers.get("content-type", "").split(";")[0].strip().lower()
    try:
        if kind in ("multipart/form-data", "application/x-www-form-urlencoded"):
            form = await request.form(**(_REPORT if _LARGE.search(request.url.path) else _FORM))
            for key, value in form.multi_items():
                if isinstance(value, UploadFile):
                    call.files[key] = value
                else:
                    call.data[key] = value
        elif kind == "application/json":
            call.data = _json(await _bounded(request))
    except (HTTPException, MultiPartException, LookupError) as error:
        words = getattr(error, "detail", str(error))
        raise Refusal(getattr(error, "status_code", 400), {"detail": f"Multipart form parse error - {words}"}) from None
    except ClientDisconnect:
        raise Refusal(400, {"detail": "The upload broke off."}) from None


async def _bounded(request: Request) -> bytes:
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > (_REPORT_BYTES if _LARGE.search(request.url.path) else _JSON_BYTES):
            raise Refusal(413, {"detail": "The JSON is too large."})
    return bytes(body)


def _json(body: bytes) -> dict[str, Any]:
    try:
        data = json.loads(body) if body.strip() else {}
    except (ValueError, RecursionError) as error:
        raise Refusal(400, {"detail": f"JSON parse error - {error}"}) from None
    if not isinstance(data, dict):
        raise Refusal(400, {"detail": "JSON parse error - an object is expected"})
    return data
