"""Calls of EvalAI's REST API, with a time limit each, and what its refusals mean."""

from __future__ import annotations

import email.utils
import json
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import requests

from . import routes

#: Seconds to connect, and between two bytes of an answer.
TIMEOUT = (10.0, 120.0)
_LOCAL = ("127.0.0.1", "localhost", "::1")
_SHOWN = 2_000
#: No answer of EvalAI's is as large; a list of submissions has some kilobytes for each.
_ANSWER_BYTES, _ANSWER_SECONDS, _PAGES = 256 << 20, 300.0, 1000


class ApiError(Exception):
    """EvalAI refused, or did not answer as EvalAI does; `status` is 0 when it did not answer at all."""

    def __init__(self, status: int, message: str, body: Any = None, wait: float | None = None) -> None:
        super().__init__(message)
        self.status, self.message, self.body = status, message, body
        #: Seconds that the server asks us to wait.
        self.wait = wait

    @property
    def transient(self) -> bool:
        """Whether the same call may well succeed later."""
        return self.status in (0, 408, 429) or self.status >= 500 or (self.body is None and self.status < 400)

    @property
    def rights(self) -> bool:
        """Whether it is about who we are."""
        return self.status in (401, 403)


class Client:
    """A session as one user; `before` is called before each call, with whether it can wait."""

    def __init__(self, host: str, token: str, before: Callable[[bool], None] = lambda _urgent: None) -> None:
        self.host, self._before = host.rstrip("/"), before
        self._ahead = 0.0
        self._session, self._token = requests.Session(), token
        # Not a header alone: an entry in ~/.netrc would take its place.
        self._session.auth = _Bearer(token)

    def now(self) -> float:
        """The server's time, by the last answer of it."""
        return time.time() + self._ahead

    def call(
        self, method: str, route: str, values: dict[str, Any] | None = None, *, urgent: bool = True, **options: Any
    ) -> Any:
        """The answer's JSON; raises `ApiError` for everything else."""
        self._before(urgent)
        url = self.host + routes.path(route, **(values or {}))
        options.setdefault("timeout", TIMEOUT)
        try:
            with self._session.request(method, url, allow_redirects=False, stream=True, **options) as answer:
                text = _read(answer)
        except requests.RequestException as error:
            raise ApiError(0, f"{self.host} does not answer ({_reason(error)})") from None
        self._note_time(answer.headers.get("Date", ""))
        try:
            body = self._plain(json.loads(text))
        except (ValueError, RecursionError):
            body = None
        if not isinstance(body, (dict, list)):
            body = None  # EvalAI answers with neither a text nor a number alone
        if answer.status_code in range(200, 300) and body is not None:
            return body
        raise ApiError(answer.status_code, self._plain(_message(answer, body)), body, _wait(answer))

    def _plain(self, told: Any) -> Any:
        """What a server says, without our token and without what moves a terminal's cursor."""
        if isinstance(told, str):
            text = told.replace(self._token, "…") if self._token else told
            return "".join(one if one.isprintable() or one == "\n" else " " for one in text)
        if isinstance(told, list):
            return [self._plain(one) for one in told]
        if isinstance(told, dict):
            return {self._plain(key): self._plain(value) for key, value in told.items()}
        return told

    def _note_time(self, told: str) -> None:
        try:
            self._ahead = email.utils.parsedate_to_datetime(told).timestamp() - time.time()
        except (TypeError, ValueError):
            return

    def all_of(self, route: str, values: dict[str, Any] | None = None) -> list[dict[str, Any]]:
        """Every page of a list."""
        found: list[dict[str, Any]] = []
        for page in range(1, _PAGES):
            answer = self.call("GET", route, values, params={"page": page} if page > 1 else None)
            rows = answer if isinstance(answer, list) else answer.get("results")
            if not isinstance(rows, list):
                raise ApiError(0, f"{self.host} answers with something else than a list")
            found += [row for row in rows if isinstance(row, dict)]
            if not (isinstance(answer, dict) and answer.get("next") and rows):
                break
        return found


class _Bearer(requests.auth.AuthBase):
    """Our token, and nobody else's."""

    def __init__(self, token: str) -> None:
        self._token = token

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        request.headers["Authorization"] = f"Bearer {self._token}"
        return request


def _read(answer: requests.Response) -> bytes:
    """The body, within limits that a server of EvalAI's never meets."""
    body, until = bytearray(), time.monotonic() + _ANSWER_SECONDS
    for piece in answer.iter_content(1 << 16):
        body += piece
        if len(body) > _ANSWER_BYTES or time.monotonic() > until:
            raise requests.RequestException("its answer does not end")
    return bytes(body)


def _wait(answer: requests.Response) -> float | None:
    told = answer.headers.get("Retry-After", "")
    return float(told) if told.isdecimal() and len(told) < 6 else None


def _message(answer: requests.Response, body: Any) -> str:
    """What the server says, whichever key it says it under."""
    if answer.status_code in range(300, 400):
        return f"sends elsewhere ({answer.headers.get('Location', '')}); is the address right?"
    if isinstance(body, dict):
        for key in ("error", "detail"):
            if body.get(key):
                return str(body[key])[:_SHOWN]
    if body is not None:
        return str(body)[:_SHOWN]
    if answer.status_code >= 500:
        return f"answers {answer.status_code}: the server is in trouble"
    kind = answer.headers.get("Content-Type", "nothing").split(";")[0]
    return f"answers {answer.status_code} with {kind} instead of JSON; is that an EvalAI server?"


def _reason(error: Exception) -> str:
    """The innermost cause, which alone tells something."""
    cause: Any = error
    while getattr(cause, "__context__", None) or getattr(cause, "reason", None):
        inner = getattr(cause, "reason", None) or cause.__context__
        if not isinstance(inner, BaseException):
            break
        cause = inner
    return str(cause).rpartition(": ")[2] or type(cause).__name__


def is_safe(address: str) -> bool:
    """Whether a token may go there: over https, or to this machine; never past somebody's name before an @."""
    try:
        parts = urlsplit(address)
        name = parts.hostname
    except ValueError:
        return False
    if not name or "@" in parts.netloc:
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and name in _LOCAL)
