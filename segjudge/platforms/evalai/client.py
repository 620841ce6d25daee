"""Calls of EvalAI's REST API, with a time limit each, the meaning of its refusals, and when to call again."""

from __future__ import annotations

import email.utils
import itertools
import json
import random
import statistics
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import IO, Any, TypedDict, TypeVar, Unpack
from urllib.parse import urlsplit

import requests

from segjudge.system.files import without_secrets

from . import routes
from .http_exchange import StoppedError, WireError, blocks_of, exchange, within

#: Seconds to connect, and between two bytes of an answer.
TIMEOUT = (10.0, 60.0)
_LOCAL_HOSTS = ("127.0.0.1", "localhost", "::1")
#: The most characters of a refusal that are shown.
_MESSAGE_LENGTH = 2_000
#: Larger than every answer of EvalAI's; a list of submissions has some kilobytes for each.
_ANSWER_BYTES, _ANSWER_SECONDS, _PAGES = 256 << 20, 120.0, 1000
#: The most bytes of a refusal that are read; what follows says nothing that could be shown.
_REFUSAL_BYTES = 1 << 20
#: EvalAI's rows have some 60 bytes for each value.  Denser JSON would take many times its size in memory.
_BYTES_PER_VALUE, _SMALL = 16, 1 << 20
#: The most seconds that a server can ask us to wait.
_LONGEST_WAIT = 120.0
#: The server's clock is the median of so many answers: one that is wrong changes nothing.
_CLOCKS = 5
#: Seconds of the first and of the longest pause between tries.
FIRST, LONGEST = 0.5, 30.0
Result = TypeVar("Result")


class CallOptions(TypedDict, total=False):
    """Options of a call, as `requests` takes them."""

    params: dict[str, int] | None
    data: Mapping[str, object]
    json: Mapping[str, object]
    files: Mapping[str, tuple[str, IO[bytes], str]]
    timeout: tuple[float, float]


class ApiError(Exception):
    """Raised when EvalAI refuses, or does not answer as EvalAI does; `status` is 0 if there is no answer."""

    def __init__(self, status: int, message: str, body: object = None, wait: float | None = None) -> None:
        message = without_secrets(message)
        super().__init__(message)
        self.status, self.message, self.body = status, message, body
        #: Seconds that the server asks us to wait.
        self.wait = wait

    @property
    def transient(self) -> bool:
        """Whether the same call may succeed later."""
        return self.status in (0, 408, 429) or self.status >= 500 or (self.body is None and self.status < 400)

    @property
    def denied(self) -> bool:
        """Whether the server does not accept our token, or not for this."""
        return self.status in (401, 403)


class Client:
    """Calls of one user.

    `before` is called before each call and `watch` during it, with whether the call is urgent; they raise to end it.
    """

    #: What answers, and the word before the token in a request's header.
    SERVER, SCHEME = "an EvalAI server", "Bearer"

    def __init__(
        self,
        host: str,
        token: str,
        before: Callable[[bool], None] = lambda _urgent: None,
        watch: Callable[[bool], None] = lambda _urgent: None,
    ) -> None:
        self.host, self._before, self._watch = host.rstrip("/"), before, watch
        #: Seconds by which the server's clock is ahead of ours, by its last answers.
        self._clock_offsets: deque[float] = deque(maxlen=_CLOCKS)
        self._token = token
        #: When the server answered last, by our clock; 0 before.
        self.answered_at = 0.0

    def now(self) -> float:
        """Return the server's time, by its last answers."""
        return time.time() + (statistics.median(self._clock_offsets) if self._clock_offsets else 0.0)

    def call(
        self,
        method: str,
        route: str,
        values: Mapping[str, int | str] | None = None,
        *,
        urgent: bool = True,
        **options: Unpack[CallOptions],
    ) -> Any:
        """Return the answer's JSON, a list or an object; raise `ApiError` for everything else."""
        self._before(urgent)
        url = self.host + routes.path(route, **(values or {}))
        timeout = options.setdefault("timeout", TIMEOUT)
        watch = within(sum(timeout) + _ANSWER_SECONDS, lambda: self._watch(urgent))
        try:
            answer = exchange(lambda session: self._request(session, method, url, options), watch)
        except WireError as error:
            raise ApiError(0, self._clean_text(f"{self.host} does not answer ({error})")) from None
        except StoppedError:
            raise ApiError(0, "asked to stop") from None
        body = self._parse(answer.body)
        if answer.status in range(200, 300) and body is not None:
            self.answered_at = time.time()
            self._note_time(answer.headers.get("Date", ""))
            return body
        raise ApiError(answer.status, self._clean_text(_message(answer, body, self.SERVER)), body, _wait(answer))

    def _request(self, session: requests.Session, method: str, url: str, options: CallOptions) -> _Answer:
        def authorize(request: requests.PreparedRequest) -> requests.PreparedRequest:
            if self._token:  # a header without one is refused even where none is needed, as for a login
                request.headers["Authorization"] = f"{self.SCHEME} {self._token}"
            return request

        session.auth = authorize  # not a header alone: an entry in ~/.netrc would take its place
        with session.request(method, url, allow_redirects=False, stream=True, **options) as answer:
            return _Answer(answer.status_code, answer.headers, _read(answer))

    def _parse(self, text: bytes) -> object:
        """Return the JSON, or None if it is neither an object nor a list, which EvalAI never answers."""
        if len(text) > _SMALL and sum(map(text.count, (b"[", b"{", b","))) * _BYTES_PER_VALUE > len(text):
            return None
        try:
            body = self._clean(json.loads(text))
        except (ValueError, RecursionError, MemoryError):
            return None
        return body if isinstance(body, (dict, list)) else None

    def _clean(self, value: object) -> object:
        """Return JSON without our token and without control characters in its texts."""
        if isinstance(value, str):
            return self._clean_text(value)
        if isinstance(value, list):
            return [self._clean(item) for item in value]
        if isinstance(value, dict):
            return {self._clean_text(key): self._clean(item) for key, item in value.items()}
        return value

    def _clean_text(self, text: str) -> str:
        text = text.replace(self._token, "…") if self._token else text
        return "".join(character if character.isprintable() or character == "\n" else " " for character in text)

    def _note_time(self, date: str) -> None:
        with suppress(TypeError, ValueError, OverflowError, IndexError):
            self._clock_offsets.append(email.utils.parsedate_to_datetime(date).timestamp() - time.time())

    def all_of(self, route: str, values: Mapping[str, int | str] | None = None) -> list[dict[str, Any]]:
        """Return the rows of every page of a list."""
        found: list[dict[str, Any]] = []
        for page in range(1, _PAGES):
            answer = self.call("GET", route, values, params={"page": page} if page > 1 else None)
            rows = answer if isinstance(answer, list) else answer.get("results")
            if not isinstance(rows, list):
                raise ApiError(0, f"{self.host} answers with something other than a list")
            found += [row for row in rows if isinstance(row, dict)]
            if not (isinstance(answer, dict) and answer.get("next") and rows):
                break
        return found


@dataclass(frozen=True)
class _Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes


def _read(answer: requests.Response) -> bytes:
    """Return the body, within limits that a server of EvalAI's never meets."""
    body = bytearray()
    for block in blocks_of(answer):
        body += block
        if answer.status_code >= 300 and len(body) > _REFUSAL_BYTES:
            break
        if len(body) > _ANSWER_BYTES:
            raise WireError("its answer does not end")
    return bytes(body)


def _wait(answer: _Answer) -> float | None:
    seconds = answer.headers.get("Retry-After", "")
    is_number = seconds.isascii() and seconds.isdecimal() and len(seconds) < 9
    return min(_LONGEST_WAIT, float(seconds)) if is_number else None


def _message(answer: _Answer, body: object, server: str) -> str:
    """Return what the server says, whichever key it says it under."""
    if answer.status in range(300, 400):
        return f"redirects ({answer.headers.get('Location', '')[:300]}); is the address right?"
    if body is not None:
        words = (body.get("error") or body.get("detail")) if isinstance(body, dict) else None
        return str(words or body)[:_MESSAGE_LENGTH]
    if answer.status >= 500:
        return f"answers {answer.status}: the server is in trouble"
    kind = answer.headers.get("Content-Type", "nothing").split(";")[0]
    return f"answers {answer.status} with {kind} instead of JSON; is that {server}?"


def is_safe_for_token(address: str) -> bool:
    """Return whether a token may go there: over https, or to this machine; never past a user name before an @."""
    try:
        parts = urlsplit(address)
        name = parts.hostname
    except ValueError:
        return False
    if not name or "@" in parts.netloc:
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and name in _LOCAL_HOSTS)


def is_plain_token(token: str) -> bool:
    """Return whether a token has only characters that EvalAI's tokens have."""
    return token.isascii() and token.isprintable() and " " not in token


def growing_pauses(first: float = 2.0, longest: float = 60.0) -> Iterator[float]:
    """Yield the seconds to wait after each failure, without end."""
    while True:
        yield first
        first = min(longest, 2 * first)


def waits(tries: int) -> Iterator[float]:
    """Yield the seconds to wait after each try but the last, with jitter, so that many do not come back together."""
    for pause in itertools.islice(growing_pauses(FIRST, LONGEST), tries - 1):
        yield pause * random.uniform(0.5, 1.5)


def with_retries(call: Callable[[], Result], sleep: Callable[[float], object], tries: int = 5) -> Result:
    """Return what a call returns; raise its error after so many tries, or at once if it is not transient.

    A sleep that returns True was interrupted by the end of the process: nothing is tried after it.
    """
    for wait in waits(tries):
        try:
            return call()
        except ApiError as error:
            if not error.transient or sleep(max(wait, error.wait or 0.0)) is True:
                raise
    return call()
