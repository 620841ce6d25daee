"""The download of a submission's file: bounded in size and time, continued where it broke off, and verified."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from urllib.parse import urljoin, urlsplit

import requests

from segjudge.platforms.evalai.client import Watch, WireError, exchange, read_blocks, with_deadline

_BLOCK = 1 << 18
#: Seconds to connect, and between two bytes.
_TIMEOUT = (10.0, 60.0)
_TRIES, _REDIRECTS = 8, 5
#: A refusal of the file's server, an address that is not one, or a size beyond the limit has to come so often.
_BELIEVED = 3
#: A file may take so many seconds, and one more for each so many bytes that have come.
_SECONDS, _BYTES_PER_SECOND = 120.0, 64 << 10
#: Seconds for the first bytes alone.
_START_SECONDS = 30.0
#: So many bytes are fetched twice: the page of a network in between is not a submission.
_START_BYTES = 1 << 18
#: So many answers have to agree with what came; and so many if it is empty or its size is not known, since an answer
#: that broke off in its head looks the same.
_AGREEING, _AGREEING_IN_DOUBT = 1, 4
#: Statuses of refusals that may pass.
_PASSING = (408, 425, 429)
_RANGE = re.compile(r"bytes (?:(\d{1,18})-\d{1,18}|\*)/(\d{1,18})")


class TooLargeError(Exception):
    """Raised when the file is larger than this challenge takes."""


class DiskError(Exception):
    """Raised when this machine's disk cannot be written; the text says why."""


class GoneError(Exception):
    """Raised when the file cannot be fetched; `lasting` is whether its server refuses it."""

    def __init__(self, why: str, *, lasting: bool) -> None:
        super().__init__(f"the submission's file could not be fetched ({why})")
        self.lasting = lasting


class _RefusedError(WireError):
    """Raised when the file's server answers, and will answer the same again."""


class _NoAddressError(_RefusedError):
    """Raised when what the API gives as the file's address is not one."""


def download(
    address: Callable[[], str], path: str, limit: int, sleep: Callable[[float], object], watch: Watch = lambda: None
) -> None:
    """Write the file; `address` is called for each try, since links expire.

    The token is for the API alone: files are fetched without it.
    """
    file, reason, refusals, is_refused = _File(path, limit), "it broke off", 0, False
    for attempt in range(_TRIES):
        if attempt:
            sleep(min(30.0, 0.5 * 2**attempt))
        watch()
        url = address()
        try:
            if file.fetch(url, watch):
                return
        except WireError as error:
            reason, refusals = str(error), refusals + isinstance(error, _RefusedError)
            is_refused = isinstance(error, _RefusedError) and refusals >= _BELIEVED
            if file.is_late() or (isinstance(error, _NoAddressError) and is_refused):
                break
    raise GoneError(reason, lasting=is_refused)


def head(url: str, size: int, watch: Watch = lambda: None) -> bytes:
    """Return the first bytes of a file; raise WireError if it cannot be fetched."""

    def work(session: requests.Session) -> bytes:
        with _opened(session, url, {"Range": f"bytes=0-{size - 1}"}, 200, 206) as response:
            return _first_bytes(response, size)

    return exchange(work, with_deadline(_START_SECONDS, watch))


class _File:
    """A file being downloaded: the bytes so far, and what the servers said of the complete file."""

    def __init__(self, path: str, limit: int) -> None:
        self._path, self._limit = path, limit
        self._began = time.monotonic()
        self._oversized = 0
        self._forget()

    def _forget(self) -> None:
        self._received, self._is_complete, self._agreed = 0, False, 0
        #: The size and the tag that the first answer gave; another answer continues it only if it agrees.
        self._size: int | None = None
        self._tag = ""

    def is_late(self) -> bool:
        """Return whether the file comes too slowly, so that a slow server does not keep a worker."""
        return time.monotonic() - self._began > _SECONDS + self._received / _BYTES_PER_SECOND

    def fetch(self, url: str, watch: Watch) -> bool:
        """Return whether the complete file is there; other answers have to agree about its size and its beginning."""

        def check() -> None:
            watch()
            if self.is_late():
                seconds = time.monotonic() - self._began
                raise WireError(f"it comes too slowly: {self._received:,} bytes in {seconds:.0f} s")

        if not self._is_complete:
            exchange(lambda session: self._continue(session, url), check)
        if not self._is_complete:
            raise WireError(f"it broke off after {self._received:,} bytes")
        size, start = exchange(lambda session: _size_and_start(session, url), with_deadline(_START_SECONDS, check))
        received, own_start = self._received, self._start()
        if size not in (None, received) or not own_start.startswith(start):
            self._forget()
            raise WireError(f"two answers differ: {received:,} bytes came, and then it had {size} or began differently")
        if len(start) < len(own_start):
            raise WireError("its beginning broke off when it was fetched again")
        self._agreed += 1
        if self._agreed < (_AGREEING if received and size is not None else _AGREEING_IN_DOUBT):
            raise WireError("it is empty, or its size is not known")
        return True

    def _start(self) -> bytes:
        with _disk_errors(self._path), open(self._path, "rb") as file:
            return file.read(_START_BYTES)

    def _continue(self, session: requests.Session, url: str) -> None:
        resumes = self._received and self._size is not None
        headers = {"Range": f"bytes={self._received}-"} if resumes else {}
        with _opened(session, url, headers, 200, 206, 416) as response:
            if response.status_code == 416:
                self._forget()
                raise WireError("the file has changed on its server")
            self._check_continuation(response)
            self._write(response)

    def _check_continuation(self, response: requests.Response) -> None:
        """Find out where this answer's bytes belong, and how many there will be."""
        length, tag = _number(response.headers.get("Content-Length", "")), response.headers.get("ETag", "")
        if response.status_code == 200:
            self._forget()
            self._size, self._tag = length, tag
        else:
            part = _RANGE.fullmatch(response.headers.get("Content-Range", ""))
            start, size = (
                (int(part[1] or -1), int(part[2])) if part else (self._received, self._received + (length or 0))
            )
            is_other = start != self._received or size != self._size or (tag and self._tag and tag != self._tag)
            if not self._received or is_other:
                self._forget()
                raise WireError("the server continued another file")
        if self._size is not None and self._size > self._limit:
            self._refuse_size()
        self._oversized = 0

    def _refuse_size(self) -> None:
        self._oversized += 1
        self._forget()
        if self._oversized >= _BELIEVED:
            raise TooLargeError
        raise WireError("it is larger than this challenge takes")

    def _write(self, response: requests.Response) -> None:
        # Else what came before it broke off would be thrown away; whether all came is checked below.
        response.raw.enforce_content_length = False
        with _writing(self._path, self._received) as write:
            for block in read_blocks(response, _BLOCK, decode=False):
                write(block)
                self._received += len(block)
                if self._received > self._limit:
                    self._refuse_size()
        if self._size is not None and self._received > self._size:
            self._forget()
            raise WireError("more came than was announced")
        self._is_complete = self._size is None or self._received == self._size


@contextmanager
def _writing(path: str, start: int) -> Iterator[Callable[[bytes], None]]:
    """Yield what writes to a file, from this place on; raise DiskError if the disk takes no more."""
    with _disk_errors(path):
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, 0o600)

    def write(block: bytes) -> None:
        left = memoryview(block)
        with _disk_errors(path):
            while left:
                left = left[os.write(descriptor, left) :]

    try:
        with _disk_errors(path):
            os.ftruncate(descriptor, start)
            os.lseek(descriptor, start, os.SEEK_SET)
        yield write
    finally:
        os.close(descriptor)


@contextmanager
def _disk_errors(path: str) -> Iterator[None]:
    """Turn an error of the disk into DiskError."""
    try:
        yield
    except OSError as error:
        raise DiskError(f"{path}: {error.strerror}") from None


def _size_and_start(session: requests.Session, url: str) -> tuple[int | None, bytes]:
    """Return a file's size, None if its server does not say it, and its first bytes."""
    with _opened(session, url, {"Range": f"bytes=0-{_START_BYTES - 1}"}, 200, 206, 416) as response:
        part = _RANGE.fullmatch(response.headers.get("Content-Range", ""))
        size = int(part[2]) if part else None
        if response.status_code == 416:
            return size, b""
        if response.status_code == 200:
            size = _number(response.headers.get("Content-Length", ""))
        response.raw.enforce_content_length = False
        return size, _first_bytes(response, _START_BYTES)


def _first_bytes(response: requests.Response, size: int) -> bytes:
    data = b""
    for block in read_blocks(response, size, decode=False):
        data += block
        if len(data) >= size:
            break
    return data[:size]


@contextmanager
def _opened(
    session: requests.Session, url: str, headers: dict[str, str], *statuses: int
) -> Iterator[requests.Response]:
    """Yield the response if it has one of the statuses, after the redirects of storage, whose bodies are not read."""
    if not _is_http(url):
        raise _NoAddressError("the server gives no address for it")
    for _ in range(_REDIRECTS):
        if not _is_http(url):
            raise WireError("its address leads to something that is not http")
        headers = {"Accept-Encoding": "identity", **headers}
        with session.get(url, headers=headers, stream=True, timeout=_TIMEOUT, allow_redirects=False) as response:
            status = response.status_code
            if status in statuses:
                yield response
                return
            if status not in (301, 302, 303, 307, 308):
                is_lasting = status in range(400, 500) and status not in _PASSING
                raise (_RefusedError if is_lasting else WireError)(f"the server answers {status}")
            url = _joined(url, response.headers.get("Location", ""))
    raise WireError("its address redirects without end")


def _joined(url: str, location: str) -> str:
    """Return where a redirect leads; "" if that is no address."""
    try:
        return urljoin(url, location)
    except ValueError:
        return ""


def _is_http(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 19 else None
