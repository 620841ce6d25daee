"""A network between a worker and its server that resets, drips and lies: real sockets, faults by a seed."""

from __future__ import annotations

import gzip
import json
import random
import re
import socket
import struct
import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

#: Replacements for a value.
WEIRD: tuple[Any, ...] = (
    None, True, False, 0, -1, 1.5, 10**30, 1e308, "", "x", "1", "\ud800", "x" * 100_000, [], [1], {}, {"id": 1}, [[[]]],
)  # fmt: skip
#: Bodies that are JSON but not a valid answer.
GARBAGE = (
    b"null", b"5", b'"x"', b"[]", b"{}", b"[1]", b"[null]", b'{"id": null}', b"[" * 200_000, b'{"a": NaN',
    b"\xff\xfe",
)  # fmt: skip
HTML = b"<html><body>Please accept the terms of this network.</body></html>"
_BLOCK = 1 << 16


@dataclass
class Exchange:
    """A request, the server's answer, and the connection for its damaged form."""

    client: socket.socket
    request: bytes
    chosen: random.Random
    forward: Callable[[], bytes]
    #: The same request once more.
    again: Callable[[], bytes]
    #: Seconds that a stall takes, and bytes of a large body.
    patience: float
    large: int
    over: threading.Event
    #: Earlier answers to requests of the same form, about any subject.
    past: list[bytes]

    def send(self, data: bytes) -> None:
        self.client.sendall(data)

    def reset(self) -> None:
        """Reset the connection, which is no end of file."""
        self.client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.client.close()

    def drip(self, data: bytes) -> None:
        """Send a byte from time to time."""
        until = time.monotonic() + self.patience
        for number in range(len(data)):
            if self.over.wait(0.1) or time.monotonic() > until:
                return
            self.send(data[number : number + 1])

    def answer(self, status: str, body: bytes, *headers: str) -> None:
        head = [f"HTTP/1.1 {status}", *headers, f"Content-Length: {len(body)}", "Connection: close", "", ""]
        self.send("\r\n".join(head).encode() + body)


def split(answer: bytes) -> tuple[bytes, bytes]:
    head, _, body = answer.partition(b"\r\n\r\n")
    return head, body


def without_length(head: bytes) -> list[bytes]:
    return [line for line in head.split(b"\r\n") if not line.lower().startswith(b"content-length")]


def _reset_before(exchange: Exchange) -> None:
    exchange.reset()


def _reset_after(exchange: Exchange) -> None:
    exchange.forward()
    exchange.reset()


def _reset_in_body(exchange: Exchange) -> None:
    answer = exchange.forward()
    head, body = split(answer)
    exchange.send(head + b"\r\n\r\n" + body[: exchange.chosen.randrange(len(body) + 1)])
    exchange.reset()


def _cut(exchange: Exchange) -> None:
    answer = exchange.forward()
    exchange.send(answer[: exchange.chosen.randrange(len(answer))])


def _stall(exchange: Exchange) -> None:
    answer = exchange.forward()
    exchange.send(answer[: exchange.chosen.randrange(len(answer))])
    exchange.over.wait(exchange.patience)


def _silence(exchange: Exchange) -> None:
    exchange.over.wait(exchange.patience)


def _drip(exchange: Exchange) -> None:
    exchange.drip(exchange.forward())


def _continue_for_ever(exchange: Exchange) -> None:
    exchange.drip(b"HTTP/1.1 100 Continue\r\n\r\n" * 10_000)


def _broken_chunks(exchange: Exchange) -> None:
    head, body = split(exchange.forward())
    kept = without_length(head)
    size = exchange.chosen.choice([b"zz", b"-5", b"%x" % (len(body) + 99), b"f" * 40, b""])
    exchange.send(b"\r\n".join([*kept, b"Transfer-Encoding: chunked", b"", size]) + b"\r\n" + body)


def _truncated_gzip(exchange: Exchange) -> None:
    head, body = split(exchange.forward())
    kept = without_length(head)
    packed = gzip.compress(body)[: -exchange.chosen.randrange(1, 12)]
    encoding = [b"Content-Encoding: gzip", b"Content-Length: %d" % len(packed)]
    exchange.send(b"\r\n".join([*kept, *encoding, b"", b""]) + packed)


def _bomb(exchange: Exchange) -> None:
    packed = gzip.compress(b" " * exchange.large)
    exchange.answer("200 OK", packed, "Content-Type: application/json", "Content-Encoding: gzip")


def _wrong_length(exchange: Exchange) -> None:
    head, body = split(exchange.forward())
    kept = without_length(head)
    length = exchange.chosen.choice([0, len(body) // 2, len(body) + 7, 10**15, -1])
    exchange.send(b"\r\n".join([*kept, b"Content-Length: %d" % length, b"", b""]) + body)


def _redirect(exchange: Exchange) -> None:
    line = exchange.request.split(b" ", 2)[1].decode("latin-1")
    where = exchange.chosen.choice(
        [line, "file:///etc/passwd", "ftp://x/", "http://[::1/x", "//", "", "http://127.0.0.1:1/"]
    )
    exchange.answer(exchange.chosen.choice(["301 X", "302 X", "307 X"]), b"x" * 100, f"Location: {where}")


def _html(exchange: Exchange) -> None:
    exchange.answer("200 OK", HTML, "Content-Type: text/html")


def _garbage(exchange: Exchange) -> None:
    exchange.answer("200 OK", exchange.chosen.choice(GARBAGE), "Content-Type: application/json")


def _refusal(exchange: Exchange) -> None:
    status = exchange.chosen.choice(
        ["400", "401", "403", "404", "408", "413", "429", "500", "502", "503", "504", "599", "700"]
    )
    body = exchange.chosen.choice([HTML, b"", b"x" * exchange.large])
    exchange.answer(f"{status} No", body, "Content-Type: text/html", "Retry-After: 1")


def _unauthorised(exchange: Exchange) -> None:
    body = json.dumps({"error": "Sorry, you are not authorized to access this resource"}).encode()
    exchange.answer("401 Unauthorized", body, "Content-Type: application/json")


def _header_bomb(exchange: Exchange) -> None:
    exchange.send(b"HTTP/1.1 200 OK\r\n")
    if exchange.chosen.random() < 0.5:
        exchange.send(b"X: " + b"x" * 300_000 + b"\r\n\r\n")
    else:
        exchange.send(b"".join(b"X-%d: y\r\n" % number for number in range(5000)) + b"\r\n")


def _not_http(exchange: Exchange) -> None:
    exchange.send(
        exchange.chosen.choice(
            [b"SSH-2.0-x\r\n", b"\0" * 1000, b"HTTP/1.1\r\n\r\n", b"HTTP/9.9 abc def\r\n\r\n", b"\n"]
        )
    )


def _mutated(exchange: Exchange) -> None:
    """Send the true answer with one value missing or of another type."""
    head, body = split(exchange.forward())
    kept = without_length(head)
    try:
        answer = json.loads(body)
    except ValueError:
        answer = None
    rows = answer if isinstance(answer, list) else [answer]
    for row in exchange.chosen.sample(rows, min(2, len(rows))):
        if isinstance(row, dict) and row:
            key = exchange.chosen.choice(sorted(row))
            value = exchange.chosen.choice((*WEIRD, KeyError))
            if value is KeyError:
                del row[key]
            else:
                row[key] = value
    body = body if answer is None else json.dumps(answer).encode()
    exchange.send(b"\r\n".join([*kept, b"Content-Length: %d" % len(body), b"", b""]) + body)


def _empty(exchange: Exchange) -> None:
    """Send an empty, well-formed answer."""
    exchange.forward()
    exchange.answer("200 OK", b"", "Content-Type: application/zip")


def _whole_half(exchange: Exchange) -> None:
    """Send the beginning of the answer as if it were complete."""
    _, body = split(exchange.forward())
    exchange.answer("200 OK", body[: len(body) // 2], "Content-Type: application/json")


def _flipped(exchange: Exchange) -> None:
    """Send the answer with one changed byte."""
    head, body = split(exchange.forward())
    place = exchange.chosen.randrange(len(body)) if body else 0
    exchange.send(
        head + b"\r\n\r\n" + body[:place] + bytes(255 - byte for byte in body[place : place + 1]) + body[place + 1 :]
    )


def _replayed(exchange: Exchange) -> None:
    """Send an earlier answer, of another submission or moment, without asking the server."""
    exchange.send(exchange.chosen.choice(exchange.past) if exchange.past else exchange.forward())


def _answered_and_not_done(exchange: Exchange) -> None:
    """Confirm a report or a delete without carrying it out."""
    if exchange.request.startswith(b"GET"):
        exchange.send(exchange.forward())
    else:
        exchange.answer("200 OK", b'{"success": "Submission result has been successfully updated"}')


def _done_twice(exchange: Exchange) -> None:
    exchange.forward()
    exchange.send(exchange.again())


def _late(exchange: Exchange) -> None:
    """Send the true answer much later than expected."""
    answer = exchange.forward()
    exchange.over.wait(exchange.patience)
    exchange.send(answer)


def _throttled(exchange: Exchange) -> None:
    """Send EvalAI's answer to too many requests, with an invalid wait."""
    wait = exchange.chosen.choice(["0", "-1", "1e9", "1", "soon", "9" * 400, "Sun, 06 Nov 1994 08:49:37 GMT"])
    body = b'{"detail": "Request was throttled. Expected available in 12 seconds."}'
    exchange.answer("429 Too Many Requests", body, "Content-Type: application/json", f"Retry-After: {wait}")


def _no_content(exchange: Exchange) -> None:
    exchange.forward()
    exchange.send(exchange.chosen.choice([b"HTTP/1.1 204 No Content\r\n\r\n", b"HTTP/1.1 304 Not Modified\r\n\r\n"]))


def _unasked_range(exchange: Exchange) -> None:
    """Send a part that nobody requested, or of another file."""
    _, body = split(exchange.forward())
    start = exchange.chosen.choice([0, 1, len(body) // 2, 10**15])
    size = exchange.chosen.choice([f"{len(body)}", f"{len(body) + 5}", "*", "x"])
    last = start + max(len(body) - 1, 0)
    exchange.answer(
        "206 Partial Content", body[start % (len(body) + 1) :], f"Content-Range: bytes {start}-{last}/{size}"
    )


def _other_clock(exchange: Exchange) -> None:
    """Send a date of another century, or none."""
    head, body = split(exchange.forward())
    lines = [line for line in head.split(b"\r\n") if not line.lower().startswith(b"date:")]
    date = exchange.chosen.choice([b"Thu, 01 Jan 1970 00:00:00 GMT", b"Fri, 31 Dec 9999 23:59:59 -2359", b"now", b""])
    exchange.send(b"\r\n".join([*lines, b"Date: " + date, b"", b""]) + body)


def _other_encoding(exchange: Exchange) -> None:
    """Send bytes that contradict the head: a byte order mark, another encoding, an unknown compression."""
    head, body = split(exchange.forward())
    kept = without_length(head)
    if exchange.chosen.random() < 0.5:
        body = b"\xef\xbb\xbf" + body
    encoding = exchange.chosen.choice(
        [b"Content-Encoding: br", b"Content-Encoding: gzip", b"Content-Type: x; charset=\xff"]
    )
    exchange.send(b"\r\n".join([*kept, encoding, b"Content-Length: %d" % len(body), b"", b""]) + body)


FAULTS: dict[str, Callable[[Exchange], None]] = {
    name.strip("_"): fault
    for name, fault in list(globals().items())
    if name.startswith("_") and callable(fault) and "Exchange" in getattr(fault, "__annotations__", {}).values()
}


@dataclass
class Network:
    """Listens, forwards to a server, and damages a share of the requests."""

    server: str
    seed: int = 1
    rate: float = 0.5
    patience: float = 3.0
    large: int = 4 << 20
    #: Only these faults, and only for requests whose first line holds this.
    kinds: tuple[str, ...] = tuple(sorted(FAULTS))
    only: bytes = b""
    #: The maximum number of faults.
    most: int = 10**9
    #: The number of first requests without faults.
    spared: int = 0
    #: The number of earlier answers that are kept of each form of request.
    kept: int = 8
    #: The faults that struck, and the number of all requests.
    struck: Counter[str] = field(default_factory=Counter)
    requests: int = 0

    def __post_init__(self) -> None:
        host, _, port = self.server.removeprefix("http://").partition(":")
        self._target = (host, int(port))
        self._over = threading.Event()
        self._past: dict[bytes, deque[bytes]] = {}
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.address = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        self._over.set()
        self._listener.close()

    def _serve(self) -> None:
        while not self._over.is_set():
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self.requests += 1
            chosen = random.Random(f"{self.seed}:{self.requests}")
            threading.Thread(target=self._pass, args=(client, chosen, self.requests), daemon=True).start()

    def _pass(self, client: socket.socket, chosen: random.Random, number: int) -> None:
        with suppress(OSError), client:
            client.settimeout(60)
            request = _whole(client)
            if not request:
                return
            answered: list[bytes] = []
            past = self._past.setdefault(re.sub(rb"[0-9]+", b"0", request.split(b"\r\n")[0]), deque(maxlen=self.kept))
            before = list(past)

            def again() -> bytes:
                answer = self._asked(request)
                past.append(answer)
                return answer

            def forward() -> bytes:
                if not answered:
                    answered.append(again())
                return answered[0]

            spared = self.only not in request.split(b"\r\n")[0] or self.struck.total() >= self.most
            if chosen.random() >= self.rate or spared or number <= self.spared:
                client.sendall(forward())
                return
            kind = chosen.choice(self.kinds)
            self.struck[kind] += 1
            FAULTS[kind](
                Exchange(client, request, chosen, forward, again, self.patience, self.large, self._over, before)
            )

    def _asked(self, request: bytes) -> bytes:
        """Return the server's whole answer; it is asked to close, so that its end is known."""
        head, body = split(request)
        lines = [line for line in head.split(b"\r\n") if not line.lower().startswith(b"connection:")]
        with socket.create_connection(self._target, 60) as server:
            server.sendall(b"\r\n".join([*lines, b"Connection: close", b"", b""]) + body)
            answer = b""
            while block := server.recv(_BLOCK):
                answer += block
        return answer


def _whole(client: socket.socket) -> bytes:
    """Return a request and its body."""
    data = b""
    while b"\r\n\r\n" not in data:
        block = client.recv(_BLOCK)
        if not block:
            return b""
        data += block
    head, body = split(data)
    length = 0
    for line in head.split(b"\r\n"):
        if line.lower().startswith(b"content-length:"):
            length = int(line.split(b":")[1])
    while len(body) < length:
        block = client.recv(_BLOCK)
        if not block:
            return b""
        body += block
    return head + b"\r\n\r\n" + body
