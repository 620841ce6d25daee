"""An account on EvalAI and calls of its REST API: time limits, the meaning of rejections, and retries."""

from __future__ import annotations

import email.utils
import json
import os
import stat
import statistics
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import IO, Any, TypedDict, TypeVar
from urllib.parse import urlsplit

import requests

from segjudge.evaluation_script.files.problems import HostError, ascii_text
from segjudge.system.files import redact
from segjudge.system.network import StoppedError, WireError, exchange, pauses, read_blocks, with_deadline
from segjudge.system.python310 import Unpack

from . import routes
from .rows import (
    ChallengeRow,
    PhaseRow,
    SplitAccuracies,
    SubmissionRow,
    parse_challenge,
    parse_key,
    parse_phase,
    parse_submission,
)

_Result = TypeVar("_Result")
_Parsed = TypeVar("_Parsed")

#: The variables of an account, which the environment or a private file sets.
_KEYS = TOKEN, TEAM, _HOST = "EVALAI_TOKEN", "EVALAI_HOST_TEAM", "EVALAI_HOST"
DEFAULT_HOST = "https://eval.ai"
#: The file with KEY=VALUE lines, mode 0600.
_ACCOUNT_FILE = os.path.join("~", ".config", "segjudge", "evalai")
#: Seconds to connect, and between two bytes of an answer.
_TIMEOUT = (10.0, 60.0)
_LOCAL_HOSTS = ("127.0.0.1", "localhost", "::1")
#: The maximum number of shown characters of a rejection.
_MESSAGE_LENGTH = 2_000
#: Limits above every answer of EvalAI; a list of submissions has some kilobytes per entry.
_ANSWER_BYTES, _ANSWER_SECONDS, _PAGES = 256 << 20, 120.0, 1000
#: The maximum number of bytes read of a rejection.
_REFUSAL_BYTES = 1 << 20
#: The minimum bytes per JSON value, of which EvalAI's rows have some 60; denser JSON would take many times its size in
#: memory. Small answers are exempt.
_BYTES_PER_VALUE, _SMALL = 16, 1 << 20
#: The maximum seconds that a server can make us wait.
_LONGEST_WAIT = 120.0
#: The number of answers whose median is the server's clock, so that a single wrong one changes nothing.
_CLOCKS = 5
#: The number of attempts at a call whose error may be temporary.
_TRIES = 5
#: The maximum characters of a receipt handle; SQS gives at most 1,024.
_HANDLE_LENGTH = 4096


class _CallOptions(TypedDict, total=False):
    """Options of a call, as `requests` takes them."""

    params: Mapping[str, int | str] | None
    data: Mapping[str, object]
    json: Mapping[str, object]
    files: Mapping[str, tuple[str, IO[bytes], str]]
    timeout: tuple[float, float]


class ApiError(Exception):
    """Raised if EvalAI rejects a call or answers unexpectedly; `status` is 0 without an answer."""

    def __init__(self, status: int, message: str, body: object = None, wait: float | None = None) -> None:
        message = redact(message)
        super().__init__(message)
        self.status, self.message, self.body = status, message, body
        #: Seconds that the server asks us to wait.
        self.wait = wait

    @property
    def is_transient(self) -> bool:
        """Return whether the same call may succeed later."""
        return self.status in (0, 408, 429) or self.status >= 500 or (self.body is None and self.status < 400)

    @property
    def denied(self) -> bool:
        """Return whether the server rejects the token, or for this call."""
        return self.status in (401, 403)

    @property
    def refuses_token(self) -> bool:
        """Return whether EvalAI itself, not a proxy, rejects the token."""
        return self.denied and isinstance(self.body, dict) and bool(self.body.keys() & {"detail", "error"})


class Client:
    """The API calls of one user.

    `before` is called before each call, and `watch` during it with the urgency of the call; both raise an error to stop
    it.
    """

    #: The name of the server, and the word before the token in a request's header.
    SERVER, SCHEME = "an EvalAI server", "Bearer"

    def __init__(
        self,
        host: str,
        token: str,
        before: Callable[[bool], None] = lambda _urgent: None,
        watch: Callable[[bool], None] = lambda _urgent: None,
    ) -> None:
        self.host, self._before, self._watch = host.rstrip("/"), before, watch
        #: Seconds by which the server's clock was ahead of ours, by its last answers.
        self._clock_offsets: deque[float] = deque(maxlen=_CLOCKS)
        self._token = token
        #: When the server last answered, by our clock; 0 before.
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
        **options: Unpack[_CallOptions],
    ) -> Any:
        """Return the answer's JSON list or object; raises `ApiError` for everything else."""
        self._before(urgent)
        url = self.host + routes.path(route, **(values or {}))
        timeout = options.setdefault("timeout", _TIMEOUT)
        watch = with_deadline(sum(timeout) + _ANSWER_SECONDS, lambda: self._watch(urgent))
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

    def _request(self, session: requests.Session, method: str, url: str, options: _CallOptions) -> _Answer:
        def authorize(request: requests.PreparedRequest) -> requests.PreparedRequest:
            if self._token:  # a header without one is rejected even where none is needed, as for a login
                request.headers["Authorization"] = f"{self.SCHEME} {self._token}"
            return request

        session.auth = authorize  # not just a header, which an entry in ~/.netrc would replace
        with session.request(method, url, allow_redirects=False, stream=True, **options) as answer:
            return _Answer(answer.status_code, answer.headers, _read(answer))

    def _parse(self, text: bytes) -> object:
        """Return parsed JSON; None if it is neither object nor list."""
        if len(text) > _SMALL and sum(map(text.count, (b"[", b"{", b","))) * _BYTES_PER_VALUE > len(text):
            return None
        try:
            body = self._clean(json.loads(text))
        except (ValueError, RecursionError, MemoryError):
            return None
        return body if isinstance(body, (dict, list)) else None

    def _clean(self, value: object) -> object:
        """Remove our token and control characters from JSON's texts."""
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

    def fetch_rows(self, route: str, values: Mapping[str, int | str] | None = None) -> list[dict[str, Any]]:
        """Return the rows of every page of a list."""
        all_rows: list[dict[str, Any]] = []
        for page in range(1, _PAGES):
            answer = self.call("GET", route, values, params={"page": page} if page > 1 else None)
            rows = answer if isinstance(answer, list) else answer.get("results")
            if not isinstance(rows, list):
                raise ApiError(0, f"{self.host} does not answer with a list")
            all_rows += [row for row in rows if isinstance(row, dict)]
            if not (isinstance(answer, dict) and answer.get("next") and rows):
                break
        return all_rows


@dataclass(frozen=True)
class _Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes


def _read(answer: requests.Response) -> bytes:
    """Return an answer's body, within generous limits."""
    body = bytearray()
    for block in read_blocks(answer):
        body += block
        if answer.status_code >= 300 and len(body) > _REFUSAL_BYTES:
            break
        if len(body) > _ANSWER_BYTES:
            raise WireError("its answer is endless")
    return bytes(body)


def _wait(answer: _Answer) -> float | None:
    seconds = answer.headers.get("Retry-After", "")
    return min(_LONGEST_WAIT, float(seconds)) if seconds.isdecimal() and len(seconds) < 9 else None


def _message(answer: _Answer, body: object, server: str) -> str:
    """Return the server's message, under any key."""
    if answer.status in range(300, 400):
        return f"redirects ({answer.headers.get('Location', '')[:300]}); is the address right?"
    if body is not None:
        message = (body.get("error") or body.get("detail")) if isinstance(body, dict) else None
        return str(message or body)[:_MESSAGE_LENGTH]
    if answer.status >= 500:
        return f"answers {answer.status}: the server has a problem"
    kind = answer.headers.get("Content-Type", "nothing").split(";")[0]
    return f"answers {answer.status} with {kind} instead of JSON; is that {server}?"


def is_safe_for_token(address: str) -> bool:
    """Return whether a token may be sent to an address: https or this machine, without user info."""
    try:
        parts = urlsplit(address)
        name = parts.hostname
    except ValueError:
        return False
    if not name or "@" in parts.netloc:
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and name in _LOCAL_HOSTS)


def is_plain_token(token: str) -> bool:
    """Return whether a token has only the characters of EvalAI's tokens."""
    return token.isascii() and token.isprintable() and " " not in token


@dataclass(frozen=True)
class EvalAISettings:
    """One account on one server."""

    host: str
    token: str = field(repr=False)
    team: int = 0

    @classmethod
    def read(cls, environment: Mapping[str, str] = os.environ, file: str = _ACCOUNT_FILE) -> EvalAISettings:
        """Return the account, environment first; raises HostError for missing values, without the token."""
        values = account_values(_KEYS, environment, file)
        if "<" in values.get(_HOST, "") + values.get(TOKEN, "") + values.get(TEAM, ""):
            raise HostError(
                f"{TOKEN}, {TEAM} or {_HOST} is still a placeholder in angle brackets; set it to your own value"
            )
        host = read_address(values, _HOST, DEFAULT_HOST)
        if not is_safe_for_token(host):
            raise HostError(
                f"{_HOST} is {host}: tokens are sent only over https or to this machine; begin it with https://"
            )
        token = values.get(TOKEN, "").strip()
        if not token:
            raise HostError(
                f"{TOKEN} is not set: copy it from your profile page, into the environment or {_ACCOUNT_FILE} "
                "(mode 0600)"
            )
        if not is_plain_token(token):
            raise HostError(f"{TOKEN} is not a token: it holds spaces or other characters; copy it again")
        team = values.get(TEAM, "").strip()
        if team and not team.isdecimal():
            raise HostError(f"{TEAM} is {team!r}: it is the number of your host team, in the URL of its page")
        return cls(host, token, int(team or 0))


def server_address() -> str:
    """Return the server's address, which needs no account."""
    return read_address(account_values(_KEYS, os.environ, _ACCOUNT_FILE), _HOST, DEFAULT_HOST)


def read_address(values: Mapping[str, str], key: str, default: str) -> str:
    """Read a server's address; without a scheme, add https."""
    host = values.get(key, default).strip().rstrip("/")
    return host if "://" in host else f"https://{host}"


def account_values(keys: Sequence[str], environment: Mapping[str, str], file: str) -> dict[str, str]:
    """Return an account's values from file and environment, which wins."""
    return {
        **_read_account_file(os.path.expanduser(file)),
        **{key: environment[key] for key in keys if environment.get(key)},
    }


def _read_account_file(path: str) -> dict[str, str]:
    try:
        with open(path, encoding="utf-8") as file:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            if mode & 0o077:
                raise HostError(f"{path} can be read by others (mode {mode:o}): chmod 600 it, and renew the token")
            rows = [line.partition("=") for line in file.read().splitlines() if "=" in line and line[:1] != "#"]
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeError) as error:
        raise HostError(f"{path}: cannot be read ({error})") from None
    return {key.strip().removeprefix("export ").strip(): value.strip().strip("\"'") for key, _, value in rows}


def with_retries(call: Callable[[], _Result], sleep: Callable[[float], object]) -> _Result:
    """Repeat a call after errors that may pass; raises the last error after a few tries.

    If a sleep returns True, the process is ending: no further try.
    """
    for pause in pauses(_TRIES):
        try:
            return call()
        except ApiError as error:
            if not error.is_transient or sleep(max(pause, error.wait or 0.0)) is True:
                raise
    return call()


@dataclass(frozen=True)
class QueueMessage:
    """A message of the queue."""

    body: object
    handle: str

    @property
    def submission(self) -> int:
        """Return the number of the submission; 0 if the message names none."""
        return parse_key(self.body.get("submission_pk")) if isinstance(self.body, dict) else 0


class Jobs:
    """The queue and the submissions of one challenge."""

    def __init__(self, client: Client, challenge: int, queue: str, sleep: Callable[[float], object]) -> None:
        self._client, self._challenge, self._queue, self._sleep = client, challenge, queue, sleep

    def receive(self) -> QueueMessage | None:
        """Return the next message; None if the queue is empty. No retries, since polls repeat."""
        answer = self._client.call("GET", routes.QUEUE, {"queue": self._queue}, urgent=False)
        if not isinstance(answer, dict) or "receipt_handle" not in answer or "body" not in answer:
            raise ApiError(0, "the server's answer is not a message")
        handle = answer["receipt_handle"]
        if not handle:
            return None
        if not isinstance(handle, str) or len(handle) > _HANDLE_LENGTH:
            raise ApiError(0, "the server answers with a message that has no receipt handle")
        return QueueMessage(answer["body"], handle)

    def delete(self, message: QueueMessage) -> None:
        """Delete a message; if that fails, it returns and is recognised."""
        data = {"receipt_handle": message.handle}
        self._repeat("POST", routes.QUEUE_DELETE, {"queue": self._queue}, lambda answer: answer, data=data)

    def fetch_submission(self, number: int) -> SubmissionRow:
        return self._repeat(
            "GET", routes.SUBMISSION, {"submission": number}, lambda answer: parse_submission(answer, number)
        )

    def begin(self, number: int, name: str) -> None:
        """Report that a submission is running, as a job of this name."""
        data = {"submission": number, "submission_status": "RUNNING", "job_name": name}
        route = ("PATCH", routes.UPDATE_SUBMISSION, {"challenge": self._challenge})
        self._repeat(*route, lambda answer: parse_submission(answer, number), data=data)

    def finish(self, number: int, phase: int, result: list[SplitAccuracies], **texts: str) -> None:
        """Report a result; raise `ApiError` 400 if the server rejects it, which changes nothing."""
        body = {"submission_status": "FINISHED", "result": json.dumps(result, allow_nan=False), **texts}
        self._put(number, phase, body)

    def fail(self, number: int, phase: int, **texts: str) -> None:
        """Report that a submission failed, and why."""
        self._put(number, phase, {"submission_status": "FAILED", **texts})

    def _put(self, number: int, phase: int, fields: dict[str, str]) -> None:
        # Called once: whether the report arrived is looked up before the next attempt.
        texts = {key: ascii_text(text) for key, text in fields.items()}
        body = {"submission": number, "challenge_phase": phase, **texts}
        answer = self._client.call("PUT", routes.UPDATE_SUBMISSION, {"challenge": self._challenge}, json=body)
        if not isinstance(answer, dict) or "success" not in answer:
            raise ApiError(0, "the server does not say whether it accepted the result")

    def all_submissions(self) -> list[SubmissionRow]:
        """Return every submission, since the server's status filter is unreliable."""
        return self._list(routes.SUBMISSIONS_OF_CHALLENGE, parse_submission)

    def phases(self) -> list[PhaseRow]:
        """Return the phases as hosts see them."""
        return self._list(routes.PHASES_OF_HOST, parse_phase)

    def splits(self) -> list[dict[str, object]]:
        return self._list(routes.PHASE_SPLITS, lambda row: row if isinstance(row, dict) else None)

    def fetch_challenge(self) -> ChallengeRow:
        """Fetch the challenge of the queue."""
        return self._repeat("GET", routes.CHALLENGE_OF_QUEUE, {"queue": self._queue}, parse_challenge)

    def accepts_token(self) -> bool:
        """Ask the server, after a rejection, whether it still accepts our token."""
        try:
            self.fetch_challenge()
        except ApiError as error:
            return not error.refuses_token
        return True

    def _list(self, route: str, parse_row: Callable[[object], _Parsed | None]) -> list[_Parsed]:
        """Return the parsable rows of a list; raises if none of them is."""

        def parse(answer: object) -> list[_Parsed] | None:
            if not isinstance(answer, list):
                return None
            rows = [row for row in map(parse_row, answer) if row is not None]
            return rows if rows or not answer else None

        return self._repeat("GET", route, {"challenge": self._challenge}, parse)

    def _repeat(
        self,
        method: str,
        route: str,
        values: Mapping[str, int | str],
        parse: Callable[[object], _Parsed | None],
        **options: Unpack[_CallOptions],
    ) -> _Parsed:
        """Call until there is an answer that can be parsed, a few times."""

        def call() -> _Parsed:
            parsed = parse(self._client.call(method, route, values, **options))
            if parsed is None:
                raise ApiError(0, f"the server gives an unexpected answer to {method} {routes.path(route, **values)}")
            return parsed

        return with_retries(call, self._sleep)
