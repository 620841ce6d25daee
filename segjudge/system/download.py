"""The download of a submission's file: bounded in size and time, and resumed after interruptions.

A file is complete when it has the length that its server states, and the MD5 if S3 gives one as the ETag.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from urllib.parse import urljoin, urlsplit

import requests
from requests.structures import CaseInsensitiveDict

from segjudge.system.files import digest_of_file
from segjudge.system.network import Watch, WireError, call_in_thread, exchange, pauses, read_blocks, with_deadline

_BLOCK = 1 << 18
#: Timeouts in seconds: to connect, and between two bytes.
_TIMEOUT = (10.0, 60.0)
_TRIES, _REDIRECTS = 8, 5
#: The equal consecutive answers after which a server is believed by default; a proxy's answers differ.
_ANSWERS = 3
#: The seconds for a file, and the number of bytes that adds one second.
_SECONDS, _BYTES_PER_SECOND = 120.0, 64 << 10
#: The seconds until the first bytes.
_START_SECONDS = 30.0
#: Statuses of temporary refusals.
_PASSING = (408, 425, 429)
_LENGTH = re.compile(r"[0-9]{1,18}")
_RANGE = re.compile(r"bytes (\d{1,18})-\d{1,18}/(\d{1,18})")
#: ETags that are an MD5 in S3, unless the host's key encrypts the file.
_MD5 = re.compile(r'"([0-9a-f]{32})"')
_S3, _ENCRYPTION = "x-amz-request-id", "x-amz-server-side-encryption"


class TooLargeError(Exception):
    """Raised if the file exceeds this challenge's limit."""


class DiskError(Exception):
    """Raised if this machine's disk cannot be written; the text says why."""


class GoneError(Exception):
    """Raised if the file cannot be fetched; `lasting` says whether its server rejects it, `status` by which answer."""

    def __init__(self, why: str, *, lasting: bool, status: int = 0) -> None:
        super().__init__(f"the submission's file could not be fetched ({why})")
        self.why, self.lasting, self.status = why, lasting, status


class _RefusedError(WireError):
    """Raised if the file's server rejects it or may not be asked, or the API gives no address."""

    def __init__(self, why: str, status: int = 0) -> None:
        super().__init__(why)
        self.status = status


class _OversizedError(WireError):
    """Raised when an answer is larger than the limit."""


def download(  # noqa: PLR0913, PLR0917 - each is one thing that callers decide
    address: Callable[[], str],
    path: str,
    limit: int,
    sleep: Callable[[float], object],
    watch: Watch = lambda: None,
    allows: Callable[[str], bool] = lambda _peer: True,
    answers_needed: int = _ANSWERS,
) -> None:
    """Download the file; `address` is called for each try, since links expire.

    Files are fetched without the token, which is only for the API. A machine whose IP address `allows` rejects gets no
    request, whatever name or redirect leads to it. A server is believed after some equal consecutive answers.
    """
    transfer, answers = _Transfer(path, limit, watch, allows), list[type[WireError]]()
    for pause in (*pauses(_TRIES), None):
        watch()
        try:
            transfer.fetch(address())
        except WireError as error:
            answers = [*answers, type(error)][-answers_needed:]
            is_final = len(answers) == answers_needed and len(set(answers)) == 1
            if is_final and isinstance(error, _OversizedError):
                raise TooLargeError(str(error)) from None
            if is_final and isinstance(error, _RefusedError):
                raise GoneError(str(error), lasting=True, status=error.status) from None
            if pause is None or transfer.is_late():
                raise GoneError(str(error), lasting=False) from None
            sleep(pause)
        else:
            return


def fetch_head(url: str, size: int, watch: Watch = lambda: None) -> bytes:
    """Return the first bytes of a file; raises WireError if it cannot be fetched."""

    def work(session: requests.Session) -> bytes:
        data = b""
        with _open_url(session, url, {"Range": f"bytes=0-{size - 1}"}, 200, 206) as response:
            for block in read_blocks(response, size, decode=False):
                data += block
                if len(data) >= size:
                    break
        return data[:size]

    return exchange(work, with_deadline(_START_SECONDS, watch))


class _Transfer:
    """A file being downloaded: its bytes so far, and the headers of its first answer."""

    def __init__(self, path: str, limit: int, watch: Watch, allows: Callable[[str], bool]) -> None:
        self._path, self._limit, self._watch, self._allows = path, limit, watch, allows
        self._began = time.monotonic()
        self._restart({})

    def _restart(self, headers: Mapping[str, str]) -> None:
        self._received, self._headers = 0, CaseInsensitiveDict(headers)
        length = self._headers.get("Content-Length", "")
        self._size = int(length) if _LENGTH.fullmatch(length) else None

    def is_late(self) -> bool:
        """Return whether the transfer is too slow to continue."""
        return time.monotonic() - self._began > _SECONDS + self._received / _BYTES_PER_SECOND

    def _check_time(self) -> None:
        self._watch()
        if self.is_late():
            seconds = time.monotonic() - self._began
            raise WireError(f"the download is too slow: {self._received:,} bytes in {seconds:.0f} s")

    def _check_peer(self, peer: str) -> None:
        if not self._allows(peer):
            raise _RefusedError("its URL leads into a private network")

    def fetch(self, url: str) -> None:
        """Fetch the missing bytes; raises WireError if the file is still incomplete."""
        exchange(lambda session: self._continue(session, url), self._check_time, self._check_peer)
        call_in_thread(self._check_complete, self._check_time)  # a checksum takes seconds

    def _continue(self, session: requests.Session, url: str) -> None:
        tag = self._headers.get("ETag", "")
        validator = tag if tag.startswith('"') else self._headers.get("Last-Modified", "")
        # Without a validator, a second answer may be of another file.
        resumes = self._received and self._size is not None and validator
        headers = {"Range": f"bytes={self._received}-", "If-Range": validator} if resumes else {}
        with _open_url(session, url, headers, 200, 206, 416) as response:
            if response.status_code == 200:
                self._restart(response.headers)
            elif not (resumes and response.status_code == 206 and self._is_continued_by(response.headers)):
                self._restart({})
                raise WireError("the server resumed with a different file")
            self._check_size(self._size or 0)
            # Otherwise the bytes before an interruption would be lost; their number is checked afterwards.
            response.raw.enforce_content_length = False
            self._write(read_blocks(response, _BLOCK, decode=False))

    def _write(self, blocks: Iterator[bytes]) -> None:
        with _disk_errors(self._path):  # a scorer's folder: its leftovers must not lead elsewhere
            descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        try:
            with _disk_errors(self._path):
                os.ftruncate(descriptor, self._received)
            for block in blocks:
                remaining = memoryview(block)
                while remaining:
                    with _disk_errors(self._path):
                        count = os.pwrite(descriptor, remaining, self._received)
                    self._received, remaining = self._received + count, remaining[count:]
                self._check_size(self._received)
        finally:
            os.close(descriptor)

    def _is_continued_by(self, answer: Mapping[str, str]) -> bool:
        numbers = _RANGE.fullmatch(answer.get("Content-Range", ""))
        is_same_tag = answer.get("ETag", self._headers.get("ETag")) == self._headers.get("ETag")
        return numbers is not None and is_same_tag and tuple(map(int, numbers.groups())) == (self._received, self._size)

    def _check_size(self, size: int) -> None:
        if size > self._limit:
            self._restart({})
            raise _OversizedError("it is larger than this challenge accepts")

    def _check_complete(self) -> None:
        headers = self._headers
        if self._size is None and headers.get("Transfer-Encoding", "").lower() != "chunked":
            raise WireError("the server does not give its size")
        if self._size is not None and self._received < self._size:
            raise WireError(f"the download ended after {self._received:,} bytes")
        is_wrong = self._size is not None and self._received > self._size
        tag = _MD5.fullmatch(headers.get("ETag", ""))
        is_encrypted = any(
            name.lower().startswith(_ENCRYPTION) and value != "AES256" for name, value in headers.items()
        )
        if tag and _S3 in headers and not is_encrypted:
            with _disk_errors(self._path), open(self._path, "rb") as file:
                is_wrong |= digest_of_file(file, "md5") != tag[1]
        if is_wrong:
            self._restart({})
            raise WireError("its bytes do not match the size or checksum that the server gave")


@contextmanager
def _disk_errors(path: str) -> Iterator[None]:
    """Convert disk errors into DiskError."""
    try:
        yield
    except OSError as error:
        raise DiskError(f"{path}: {error.strerror}") from None


@contextmanager
def _open_url(
    session: requests.Session, url: str, headers: dict[str, str], *statuses: int
) -> Iterator[requests.Response]:
    """Yield the response with an accepted status, after following storage redirects."""
    if not _is_http(url):
        raise _RefusedError("the server gives no URL for it")
    headers = {"Accept-Encoding": "identity", **headers}
    session.auth = lambda request: request  # nor anything of ~/.netrc
    for _ in range(_REDIRECTS):
        if not _is_http(url):
            raise WireError("its URL redirects to one that is neither http nor https")
        with session.get(url, headers=headers, stream=True, timeout=_TIMEOUT, allow_redirects=False) as response:
            status = response.status_code
            if status in statuses:
                yield response
                return
            if status not in (301, 302, 303, 307, 308):
                if status in range(400, 500) and status not in _PASSING:
                    raise _RefusedError(f"the server answers {status}", status)
                raise WireError(f"the server answers {status}")
            try:
                url = urljoin(url, response.headers.get("Location", ""))
            except ValueError:
                url = ""
    raise WireError("its URL redirects endlessly")


def _is_http(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
