"""Failures of networks and of children, as sentences, and the pauses between tries."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from segjudge.system import network, processes
from tests.calls import outcome


def fail(error: Exception) -> Callable[..., Any]:
    def call(*_: object, **_options: object) -> Any:
        raise error

    return call


@pytest.mark.parametrize(
    ("options", "asked"), [({}, (65536, True)), ({"size": 7, "decode": False}, (7, False))]
)  # fmt: skip
@pytest.mark.parametrize(
    ("last", "expected"),
    [
        (b"b", [b"a", b"", b"b"]),
        (ValueError("invalid literal"), "WireError: a chunk of the answer has no valid length"),
        (ConnectionError("reset"), "ConnectionError: reset"),
    ],
)
def test_a_body_is_read_in_blocks(options: dict[str, Any], asked: tuple[int, bool], last: Any, expected: Any) -> None:
    def read(size: int, *, decode_content: bool) -> Iterator[bytes]:
        assert (size, decode_content) == asked
        yield from (b"a", b"")
        if isinstance(last, Exception):
            raise last
        yield last

    answer: Any = SimpleNamespace(raw=SimpleNamespace(stream=read))
    assert outcome(lambda: [*network.read_blocks(answer, **options)]) == expected


def test_a_watched_call_raises_its_error_or_that_of_its_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = fail(OSError(5, "broken"))
    assert outcome(lambda: network.call_in_thread(broken, lambda: None)) == "OSError: [Errno 5] broken"
    monkeypatch.setattr(network.threading, "Thread", fail(RuntimeError("can't start new thread")))
    error = "BlockingIOError: [Errno 11] can't start new thread"
    assert outcome(lambda: network.call_in_thread(lambda: 1, lambda: None)) == error


def test_a_deadline_ends_a_watch(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, looks = SimpleNamespace(now=10.0), list[str]()
    monkeypatch.setattr(network, "time", SimpleNamespace(monotonic=lambda: clock.now))
    watch = network.with_deadline(2.5, lambda: looks.append("looks"))
    for clock.now in (10.0, 12.5):
        watch()
    clock.now = 12.6
    assert outcome(watch) == "WireError: no complete answer within 2.5 s"
    assert len(looks) == 3


def test_the_reason_of_an_error_is_its_innermost_message() -> None:
    named = OSError(113, "No route to host")
    wrapped = network.requests.ConnectionError(network.urllib3.exceptions.ProtocolError("aborted", named))
    wrapped.__context__ = named
    for error, reason in (
        (named, "[Errno 113] No route to host"), (wrapped, "[Errno 113] No route to host"), (ValueError("x: y: z"), "z"),
        (ValueError(""), "ValueError"), (OSError("x" * 400), "x" * 300),
    ):  # fmt: skip
        assert network.reason_of(error) == reason


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (b"Transfer-Encoding: chunked\r\n\r\nzz\r\nabc\r\n", "a chunk of the answer has no valid length"),
        (b"Transfer-Encoding: chunked\r\n\r\n-5\r\nabc\r\n", "a chunk of the answer has no valid length"),
        (b"Transfer-Encoding: chunked\r\n\r\n5\r\nab", "the answer ended early"),
        (b"Transfer-Encoding: chunked\r\n\r\n", "Response ended prematurely"),
        (b"Content-Length: 50\r\n\r\nab", "the answer ended early"),
        (
            b"Content-Encoding: gzip\r\nContent-Length: 5\r\n\r\nabcde",
            "the answer is not compressed as its header says",
        ),
        (None, "the server closed the connection without an answer"),
        (b"HELO", "the server does not answer in HTTP"),
    ],
)
def test_an_answer_that_is_not_http_is_a_sentence(answer: bytes | None, reason: str) -> None:
    start = b"" if answer in (None, b"HELO") else b"HTTP/1.1 200 OK\r\n"
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            client, _ = server.accept()
            with client:
                client.recv(1 << 16)
                client.sendall(start + (answer or b""))

        thread = threading.Thread(target=serve)
        thread.start()
        url = f"http://127.0.0.1:{server.getsockname()[1]}/"

        def read(session: network.requests.Session) -> bytes:
            return b"".join(network.read_blocks(session.get(url, stream=True, timeout=10)))

        assert outcome(lambda: network.exchange(read, lambda: None)) == f"WireError: {reason}"
        thread.join()


def test_pauses_double_up_to_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network.random, "uniform", lambda low, high: low + high)
    for tries, pauses in ((1, []), (2, [1.0]), (9, [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0])):
        assert [*network.pauses(tries)] == pauses
    for growing, pauses in (
        (network.growing_pauses(), [2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0]),
        (network.growing_pauses(0.5, 3), [0.5, 1.0, 2.0, 3, 3, 3, 3]),
    ):
        assert [next(growing) for _ in pauses] == pauses


# ── children ────────────────────────────────────────────────────────────────


def test_a_stream_is_a_pipe_only_if_it_was_asked_for() -> None:
    child = processes.Child(["true"])
    for name in ("input", "output", "errors"):
        error = "ValueError: the stream was not opened as a pipe"
        assert outcome(lambda name=name: getattr(child, name)) == error
    child.end()
