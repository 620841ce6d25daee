"""Bounded HTTP exchanges: a watch and a deadline each, and pauses between tries.

A process blocked on a socket notices neither signals nor time, and a server that sends one byte per second blocks it
for ever. So each exchange runs in its own thread while its caller watches; to end it, its sockets are closed. Each
exchange has its own connection: a reused one that died leaves it unclear whether a report arrived.
"""

from __future__ import annotations

import errno
import http.client
import itertools
import random
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import suppress
from typing import Any, TypeVar

import requests
import urllib3
from requests.adapters import HTTPAdapter

_Result = TypeVar("_Result")
#: Called during a wait; raises to end it.
Watch = Callable[[], None]
#: The seconds of the first and of the longest pause between attempts.
FIRST, LONGEST = 0.5, 30.0
#: Seconds between two calls of a watch.
_WATCH_PAUSE = 0.1
#: The exceptions about an address, a name, a connection, a certificate, a header or a body; a ValueError or TypeError
#: is a defect of ours.
_NETWORK = (requests.RequestException, urllib3.exceptions.HTTPError, http.client.HTTPException, OSError, MemoryError)
#: The fault of an answer that is sent in chunks.
_BAD_CHUNK = "a chunk of the answer has no valid length"


class WireError(Exception):
    """Raised if the network fails or a server violates HTTP; the text says how."""


class StoppedError(Exception):
    """Raised if the process was asked to stop before an operation ended."""


def exchange(
    work: Callable[[requests.Session], _Result], watch: Watch, check_peer: Callable[[str], None] = lambda _peer: None
) -> _Result:
    """Run `work`; raises WireError for every failure of network or server.

    `check_peer` gets the IP address of each new connection before anything is sent, and raises to close it.
    """
    connections = _Connections(check_peer)
    try:
        return call_in_thread(lambda: work(connections.session), watch)
    except _NETWORK as error:
        raise WireError(reason_of(error)) from None
    finally:
        connections.shut()


def read_blocks(response: requests.Response, size: int = 1 << 16, *, decode: bool = True) -> Iterator[bytes]:
    """Yield the body of a response in blocks of limited size."""
    blocks = response.raw.stream(size, decode_content=decode)
    while True:
        try:
            block = next(blocks, None)
        except ValueError:  # urllib3 raises it for a chunk of negative length
            raise WireError(_BAD_CHUNK) from None
        if block is None:
            return
        yield block


def call_in_thread(work: Callable[[], _Result], watch: Watch) -> _Result:
    """Run blocking work in a thread; if the watch raises, abandon the thread."""
    future: Future[_Result] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:  # noqa: BLE001 - raised again below
            future.set_exception(error)

    try:
        threading.Thread(target=run, daemon=True).start()
    except RuntimeError as error:
        raise OSError(errno.EAGAIN, str(error)) from None
    while not wait([future], _WATCH_PAUSE).done:
        watch()
    return future.result()


def with_deadline(seconds: float, watch: Watch = lambda: None) -> Watch:
    """Return a watch that also enforces a deadline."""
    deadline = time.monotonic() + seconds

    def check() -> None:
        watch()
        if time.monotonic() > deadline:
            raise WireError(f"no complete answer within {seconds:g} s")

    return check


class _Connections:
    """An HTTP session whose connections another thread can close."""

    def __init__(self, check_peer: Callable[[str], None]) -> None:
        self._lock, self._is_shut, self._check_peer = threading.Lock(), False, check_peer
        self._handles: list[socket.socket] = []
        self.session = _Session()
        adapter = _Adapter(self._note)
        for scheme in ("http://", "https://"):
            self.session.mount(scheme, adapter)

    def _note(self, connected: socket.socket) -> None:
        try:
            self._check_peer(str(connected.getpeername()[0]))
        except WireError:
            connected.close()
            raise
        # A second handle of the same connection, since TLS detaches the first one.
        handle = connected.dup()
        with self._lock:
            self._handles.append(handle)
            is_shut = self._is_shut
        if is_shut:
            self.shut()

    def shut(self) -> None:
        """Close every connection, even while a thread reads from it."""
        with self._lock:
            self._is_shut = True
            handles, self._handles = self._handles, []
        for handle in handles:
            with suppress(OSError):
                handle.shutdown(socket.SHUT_RDWR)
            handle.close()
        self.session.close()


class _Session(requests.Session):
    """An HTTP session that leaves redirects and their untrusted addresses to its caller."""

    def get_redirect_target(self, _response: requests.Response) -> None:
        """Return None, so that redirects are not followed."""


class _Adapter(HTTPAdapter):
    """An adapter that calls `note` with the socket of each new connection."""

    def __init__(self, note: Callable[[socket.socket], None]) -> None:
        self._note = note
        super().__init__(max_retries=0)

    def get_connection_with_tls_context(self, *args: Any, **kwargs: Any) -> Any:
        pool: Any = super().get_connection_with_tls_context(*args, **kwargs)
        note = self._note

        class Connection(pool.ConnectionCls):  # type: ignore[misc]
            @property
            def sock(self) -> socket.socket | None:
                connected: socket.socket | None = self.__dict__.get("sock")
                return connected

            @sock.setter
            def sock(self, connected: socket.socket | None) -> None:
                if connected is not None and self.sock is None:  # not once TLS wraps it
                    note(connected)
                self.__dict__["sock"] = connected

        pool.ConnectionCls = Connection
        return pool


def reason_of(error: BaseException) -> str:
    """Return how a server violated HTTP, or the text of the innermost cause, the only informative one."""
    for _ in range(10):
        if fault := _describe_violation(error):
            return fault
        context = None if error.__suppress_context__ else error.__context__
        cause = getattr(error, "reason", None) or error.__cause__ or context
        if not isinstance(cause, BaseException):
            break
        error = cause
    return str(error).rpartition(": ")[2][:300] or type(error).__name__


def _describe_violation(error: BaseException) -> str:
    """Return the sentence about an answer that is not HTTP; "" for other errors."""
    if isinstance(error, http.client.RemoteDisconnected):
        return "the server closed the connection without an answer"
    if isinstance(error, http.client.BadStatusLine):
        return "the server does not answer in HTTP"
    if isinstance(error, urllib3.exceptions.InvalidChunkLength) and error.length:
        return _BAD_CHUNK
    if isinstance(error, http.client.IncompleteRead):
        return "the answer ended early"
    if isinstance(error, urllib3.exceptions.DecodeError):
        return "the answer is not compressed as its header says"
    return ""


def growing_pauses(shortest: float = 2.0, longest: float = 60.0) -> Iterator[float]:
    """Yield the seconds to wait after each failure, without end."""
    while True:
        yield shortest
        shortest = min(longest, 2 * shortest)


def pauses(tries: int) -> Iterator[float]:
    """Yield the seconds to wait after each try but the last, with jitter, so that many clients do not retry at once."""
    for pause in itertools.islice(growing_pauses(FIRST, LONGEST), tries - 1):
        yield pause * random.uniform(0.5, 1.5)
