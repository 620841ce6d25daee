"""Calls of EvalAI's REST API, with a time limit each, and what its refusals mean."""

from __future__ import annotations

import email.utils
import json
import statistics
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import requests

from . import routes
from .http_exchange import StoppedError, WireError, exchange, within

#: Seconds to connect, and between two bytes of an answer.
TIMEOUT = (10.0, 60.0)
_LOCAL = ("127.0.0.1", "localhost", "::1")
_SHOWN = 2_000
#: No answer of EvalAI's is as large; a list of submissions has some kilobytes for each.
_ANSWER_BYTES, _ANSWER_SECONDS, _PAGES = 256 << 20, 120.0, 1000
#: Of a refusal so much is read; what follows says nothing that could be shown.
_REFUSAL_BYTES = 1 << 20
#: EvalAI's rows have some 60 bytes for each value.  Denser JSON would take many times its size in memory.
_BYTES_PER_VALUE, _SMALL = 16, 1 << 20
#: A server cannot ask for more patience than that.
_LONGEST_WAIT = 120.0
#: The server's clock is the middle one of so many answers: one that lies moves nothing.
_CLOCKS = 5


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
    """Calls as one user.

    `before` is called before each call and `watch` during it, with whether the call is urgent; what they raise ends it.
    """

    def __init__(
        self,
        host: str,
        token: str,
        before: Callable[[bool], None] = lambda _urgent: None,
        watch: Callable[[bool], None] = lambda _urgent: None,
    ) -> None:
        self.host, self._before, self._watch = host.rstrip("/"), before, watch
        self._ahead: deque[float] = deque(maxlen=_CLOCKS)
        self._token = token

    def now(self) -> float:
        """The server's time, by its last answers."""
        return time.time() + (statistics.median(self._ahead) if self._ahead else 0.0)

    def call(
        self, method: str, route: str, values: dict[str, Any] | None = None, *, urgent: bool = True, **options: Any
    ) -> Any:
        """The answer's JSON; raises `ApiError` for everything else."""
        self._before(urgent)
        url = self.host + routes.path(route, **(values or {}))
        options.setdefault("timeout", TIMEOUT)
        watch = within(sum(options["timeout"]) + _ANSWER_SECONDS, lambda: self._watch(urgent))
        try:
            answer = exchange(lambda session: self._asked(session, method, url, options), watch)
        except WireError as error:
            raise ApiError(0, self._plain(f"{self.host} does not answer ({error})")) from None
        except StoppedError:
            raise ApiError(0, "asked to stop") from None
        body = self._body(answer.text)
        if answer.status in range(200, 300) and body is not None:
            self._note_time(answer.headers.get("Date", ""))
            return body
        raise ApiError(answer.status, self._plain(_message(answer, body)), body, _wait(answer))

    def _asked(self, session: requests.Session, method: str, url: str, options: dict[str, Any]) -> _Answer:
        # Not a header alone: an entry in ~/.netrc would take its place.
        session.auth = _Bearer(self._token)
        with session.request(method, url, allow_redirects=False, stream=True, **options) as answer:
            return _Answer(answer.status_code, answer.headers, _read(answer))

    def _body(self, text: bytes) -> Any:
        """The answer's JSON, or None: EvalAI answers with neither a text nor a number alone."""
        if len(text) > _SMALL and sum(map(text.count, (b"[", b"{", b","))) * _BYTES_PER_VALUE > len(text):
            return None
        try:
            body = self._plain(json.loads(text))
        except (ValueError, RecursionError, MemoryError):
            return None
        return body if isinstance(body, (dict, list)) else None

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
            self._ahead.append(email.utils.parsedate_to_datetime(told).timestamp() - time.time())
        except (TypeError, ValueError, OverflowError, IndexError):
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


@dataclass(frozen=True)
class _Answer:
    status: int
    headers: Mapping[str, str]
    text: bytes


def _read(answer: requests.Response) -> bytes:
    """The body, within limits that a server of EvalAI's never meets."""
    body = bytearray()
    for piece in answer.iter_content(1 << 16):
        body += piece
        if answer.status_code >= 300 and len(body) > _REFUSAL_BYTES:
            break
        if len(body) > _ANSWER_BYTES:
            raise WireError("its answer does not end")
    return bytes(body)


def _wait(answer: _Answer) -> float | None:
    told = answer.headers.get("Retry-After", "")
    return min(_LONGEST_WAIT, float(told)) if told.isascii() and told.isdecimal() and len(told) < 9 else None


def _message(answer: _Answer, body: Any) -> str:
    """What the server says, whichever key it says it under."""
    if answer.status in range(300, 400):
        return f"sends elsewhere ({answer.headers.get('Location', '')[:300]}); is the address right?"
    if isinstance(body, dict):
        for key in ("error", "detail"):
            if body.get(key):
                return str(body[key])[:_SHOWN]
    if body is not None:
        return str(body)[:_SHOWN]
    if answer.status >= 500:
        return f"answers {answer.status}: the server is in trouble"
    kind = answer.headers.get("Content-Type", "nothing").split(";")[0]
    return f"answers {answer.status} with {kind} instead of JSON; is that an EvalAI server?"


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
