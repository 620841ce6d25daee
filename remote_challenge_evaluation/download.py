"""A submission's file onto this disk: bounded in size and time, continued where it broke off, and verified."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urljoin, urlsplit

import requests

from segjudge.evalai.http_exchange import Watch, WireError, exchange, within

_BLOCK = 1 << 18
_TIMEOUT = (10.0, 60.0)
_TRIES, _REDIRECTS = 8, 5
#: A refusal of the file's server, or an address that is not one, is believed when it came so often.
_LOOKS = 3
#: A file may take so long, and a second more for each so many bytes that have come.
_SECONDS, _BYTES_PER_SECOND = 120.0, 64 << 10
_QUESTION_SECONDS = 30.0
#: So many bytes are fetched twice: the page of a network in between is not a submission.
_START = 1 << 18
#: A size beyond the limit is believed when it was said so often, one time after the other.
_SAID = 3
#: So many answers have to agree with what came; and so many where it is empty or of a size that nobody told, which is
#: also what an answer looks like that broke off in its head.
_AGREEING, _AGREEING_IN_DOUBT = 1, 4
#: Refusals that may pass.
_PASSING = (408, 425, 429)
_RANGE = re.compile(r"bytes (?:(\d{1,18})-\d{1,18}|\*)/(\d{1,18})")


class TooLargeError(Exception):
    """The file is larger than this challenge takes."""


class DiskError(Exception):
    """The disk of this machine takes no more; the text says why."""


class GoneError(Exception):
    """It could not be had; the text says why, and `lasting` whether the file's server refuses it."""

    def __init__(self, why: str, *, lasting: bool) -> None:
        super().__init__(f"the submission's file could not be fetched ({why})")
        self.lasting = lasting


class _RefusedError(WireError):
    """The file's server answers, and will answer the same."""


class _NoAddressError(_RefusedError):
    """What the API gives as the file's address is not one."""


def download(
    address: Callable[[], str],
    path: str,
    limit: int,
    sleep: Callable[[float], object],
    watch: Watch = lambda: None,
) -> None:
    """Write the file; `address` is asked anew for each try, since links expire.

    The token is for the API alone: files are fetched without it.
    """
    file, why, refusals, lasting = _File(path, limit), "it broke off", 0, False
    for attempt in range(_TRIES):
        if attempt:
            sleep(min(30.0, 0.5 * 2**attempt))
        watch()
        where = address()
        try:
            if file.fetch(where, watch):
                return
        except WireError as error:
            why, refusals = str(error), refusals + isinstance(error, _RefusedError)
            lasting = isinstance(error, _RefusedError) and refusals >= _LOOKS
            if file.is_late() or (isinstance(error, _NoAddressError) and lasting):
                break
    raise GoneError(why, lasting=lasting)


def head(address: str, size: int, watch: Watch = lambda: None) -> bytes:
    """The first bytes of a file; WireError where it cannot be had."""

    def work(session: requests.Session) -> bytes:
        with _opened(session, address, {"Range": f"bytes=0-{size - 1}"}) as answer:
            _expect(answer, 200, 206)
            return bytes(answer.raw.read(size, decode_content=False))

    return exchange(work, within(_QUESTION_SECONDS, watch))


class _File:
    """What has come so far, and what the servers said of the whole."""

    def __init__(self, path: str, limit: int) -> None:
        self._path, self._limit = path, limit
        self._have, self._whole = 0, False
        #: The size and the tag that the first answer gave; another answer continues it only when it agrees.
        self._size: int | None = None
        self._tag = ""
        self._too_large = self._agreed = 0
        self._began = time.monotonic()

    def is_late(self) -> bool:
        """Whether it comes too slowly: a server that drips must not keep a worker."""
        return time.monotonic() - self._began > _SECONDS + self._have / _BYTES_PER_SECOND

    def fetch(self, where: str, watch: Watch) -> bool:
        """Whether the whole file is there; other answers have to agree about its size and its beginning."""

        def look() -> None:
            watch()
            if self.is_late():
                raise WireError(f"it comes too slowly: {self._have:,} bytes in {time.monotonic() - self._began:.0f} s")

        if not self._whole:
            exchange(lambda session: self._continue(session, where), look)
        if not self._whole:
            raise WireError(f"it broke off after {self._have:,} bytes")
        size, start = exchange(lambda session: _asked_again(session, where), within(_QUESTION_SECONDS, look))
        have, ours = self._have, self._start()
        if size not in (None, have) or not ours.startswith(start):
            self._forget()
            raise WireError(f"two answers differ: {have:,} bytes came, and then it had {size} or began otherwise")
        if len(start) < len(ours):
            raise WireError("a second look at it broke off")
        self._agreed += 1
        if self._agreed < (_AGREEING if have and size is not None else _AGREEING_IN_DOUBT):
            raise WireError("it is empty, or its size is not known")
        return True

    def _start(self) -> bytes:
        with _disk(self._path), open(self._path, "rb") as file:
            return file.read(_START)

    def _forget(self) -> None:
        self._have, self._whole, self._size, self._tag, self._agreed = 0, False, None, "", 0

    def _continue(self, session: requests.Session, where: str) -> None:
        resumes = self._have and self._size is not None
        headers = {"Range": f"bytes={self._have}-"} if resumes else {}
        with _opened(session, where, headers) as answer:
            if answer.status_code == 416:
                self._forget()
                raise WireError("the file has changed on its server")
            _expect(answer, 200, 206)
            self._place(answer)
            self._write(answer)

    def _place(self, answer: requests.Response) -> None:
        """Where this answer's bytes belong, and how many there will be."""
        length, tag = _number(answer.headers.get("Content-Length", "")), answer.headers.get("ETag", "")
        if answer.status_code == 200:
            self._forget()
            self._size, self._tag = length, tag
        else:
            told = _RANGE.fullmatch(answer.headers.get("Content-Range", ""))
            start, size = (int(told[1] or -1), int(told[2])) if told else (self._have, self._have + (length or 0))
            if not self._have or start != self._have or size != self._size or (tag and self._tag and tag != self._tag):
                self._forget()
                raise WireError("the server continued another file")
        if self._size is not None and self._size > self._limit:
            self._refuse_size()
        self._too_large = 0

    def _refuse_size(self) -> None:
        self._too_large += 1
        self._forget()
        if self._too_large >= _SAID:
            raise TooLargeError
        raise WireError("it is larger than this challenge takes")

    def _write(self, answer: requests.Response) -> None:
        # Else what came before it broke off would be thrown away; whether all came is looked at below.
        answer.raw.enforce_content_length = False
        with _writing(self._path, self._have) as write:
            for piece in answer.raw.stream(_BLOCK, decode_content=False):
                write(piece)
                self._have += len(piece)
                if self._have > self._limit:
                    self._refuse_size()
        if self._size is not None and self._have > self._size:
            self._forget()
            raise WireError("more came than was announced")
        self._whole = self._size is None or self._have == self._size


@contextmanager
def _writing(path: str, start: int) -> Iterator[Callable[[bytes], None]]:
    """A file's end to write to; DiskError where it takes no more."""
    with _disk(path):
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, 0o600)

    def write(piece: bytes) -> None:
        left = memoryview(piece)
        with _disk(path):
            while left:
                left = left[os.write(descriptor, left) :]

    try:
        with _disk(path):
            os.ftruncate(descriptor, start)
            os.lseek(descriptor, start, os.SEEK_SET)
        yield write
    finally:
        os.close(descriptor)


@contextmanager
def _disk(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise DiskError(f"{path}: {error.strerror}") from None


def _asked_again(session: requests.Session, where: str) -> tuple[int | None, bytes]:
    """A file's size, None where its server does not say, and its first bytes."""
    with _opened(session, where, {"Range": f"bytes=0-{_START - 1}"}) as answer:
        _expect(answer, 200, 206, 416)
        told = _RANGE.fullmatch(answer.headers.get("Content-Range", ""))
        size = int(told[2]) if told else None
        if answer.status_code == 416:
            return size, b""
        if answer.status_code == 200:
            size = _number(answer.headers.get("Content-Length", ""))
        answer.raw.enforce_content_length = False
        return size, bytes(answer.raw.read(_START, decode_content=False))


@contextmanager
def _opened(session: requests.Session, where: str, headers: dict[str, str]) -> Iterator[Any]:
    """An answer, after the redirects of storage; the bodies of redirects are not read."""
    if not _is_http(where):
        raise _NoAddressError("the server gives no address for it")
    for _ in range(_REDIRECTS):
        if not _is_http(where):
            raise WireError("its address leads to something that is not http")
        told = {"Accept-Encoding": "identity", **headers}
        with session.get(where, headers=told, stream=True, timeout=_TIMEOUT, allow_redirects=False) as answer:
            if answer.status_code not in (301, 302, 303, 307, 308):
                yield answer
                return
            where = urljoin(where, answer.headers.get("Location", ""))
    raise WireError("its address leads in circles")


def _is_http(where: str) -> bool:
    try:
        parts = urlsplit(where)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _expect(answer: requests.Response, *statuses: int) -> None:
    status = answer.status_code
    if status in statuses:
        return
    kind = _RefusedError if status in range(400, 500) and status not in _PASSING else WireError
    raise kind(f"the server answers {status}")


def _number(told: str) -> int | None:
    return int(told) if told.isascii() and told.isdecimal() and len(told) < 19 else None
