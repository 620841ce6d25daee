"""A submission's file is downloaded over a bad line."""

from __future__ import annotations

import contextlib
import hashlib
import re
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from segjudge.system import download as downloads
from segjudge.system.download import GoneError, TooLargeError, download, fetch_head
from segjudge.system.network import StoppedError, exchange
from tests.builders import ROOT

DATA = bytes(range(256)) * 4096
TAG = f'"{hashlib.md5(DATA).hexdigest()}"'


class Raw:
    """Answers each connection by the next of its scripts, repeating the last one."""

    def __init__(self, *scripts: Callable[[socket.socket], None]) -> None:
        self.scripts, self.asked = list(scripts), 0
        self.requests: list[bytes] = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}/x"
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        self.listener.close()

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            script = self.scripts[min(self.asked, len(self.scripts) - 1)]
            self.asked += 1
            threading.Thread(target=self._answer, args=(client, script), daemon=True).start()

    def _answer(self, client: socket.socket, script: Callable[[socket.socket], None]) -> None:
        with contextlib.suppress(OSError), client:
            request = client.recv(1 << 16)
            self.requests.append(request)
            start = int(request.split(b"bytes=")[1].split(b"-")[0]) if b"Range:" in request else 0
            client.settimeout(20)
            script(client) if script is not honest else honest(client, start)  # type: ignore[call-arg]


Serve = Callable[..., Raw]


@pytest.fixture
def serve() -> Iterator[Serve]:
    with contextlib.ExitStack() as ends:

        def start(*scripts: Callable[[socket.socket], None]) -> Raw:
            return ends.enter_context(contextlib.closing(Raw(*scripts)))

        yield start


def answered(body: bytes, status: str = "200 OK", *headers: str, length: int | None = None) -> bytes:
    length = len(body) if length is None else length
    return "\r\n".join([f"HTTP/1.1 {status}", *headers, f"Content-Length: {length}", "", ""]).encode() + body


def honest(client: socket.socket, start: int = 0) -> None:
    headers = [f"Content-Range: bytes {start}-{len(DATA) - 1}/{len(DATA)}"] if start else []
    client.sendall(answered(DATA[start:], "206 X" if start else "200 OK", *headers))


def sends(data: bytes) -> Callable[[socket.socket], None]:
    return lambda client: client.sendall(data)


def cut(*headers: str) -> Callable[[socket.socket], None]:
    """Send the beginning of the file."""
    return sends(answered(DATA[:1000], "200 OK", *headers, length=len(DATA)))


def drips(client: socket.socket) -> None:
    client.sendall(answered(b"", length=len(DATA)))
    for number in range(1000):
        client.sendall(DATA[number : number + 1])
        time.sleep(0.05)


def halts(client: socket.socket) -> None:
    client.sendall(b"HTTP/1.1 ")
    time.sleep(60)


def resets(client: socket.socket) -> None:
    client.sendall(answered(DATA[:5000], length=len(DATA)))
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def fetched(server: Raw, path: Path, limit: int = 1 << 30) -> bytes:
    download(lambda: server.url, str(path), limit, lambda _seconds: None)
    return path.read_bytes()


def test_a_file_comes_whole_and_without_the_token(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(DATA + b"of an earlier, longer file")
    raw = serve(honest)
    assert fetched(raw, tmp_path / "x") == DATA
    assert b"Authorization" not in raw.requests[0]
    assert b"Accept-Encoding: identity" in raw.requests[0]


def test_what_broke_off_is_taken_up_where_it_was(serve: Serve, tmp_path: Path) -> None:
    tag, where = f"ETag: {TAG}", f"Content-Range: bytes 1000-{len(DATA) - 1}/{len(DATA)}"
    second = answered(DATA[1000:6000], "206 X", where, tag, length=len(DATA) - 1000)
    raw = serve(cut(tag), sends(second), honest)
    assert fetched(raw, tmp_path / "x") == DATA
    assert [re.findall(rb"Range: (\S+)", asked) for asked in raw.requests] == [
        [], *([b"bytes=%d-" % start, TAG.encode()] for start in (1000, 6000))
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("headers", "again"),
    [((), False), (('ETag: W/"1"',), False), ((f"ETag: {TAG}",), True)],
    ids=["no", "weak", "whole"],
)
def test_what_broke_off_begins_anew_where_nothing_says_that_the_file_is_the_same(
    serve: Serve, tmp_path: Path, headers: tuple[str, ...], again: bool
) -> None:
    raw = serve(cut(*headers), sends(answered(DATA)))
    assert fetched(raw, tmp_path / "x") == DATA
    assert [b"Range: " in asked for asked in raw.requests] == [False, again]


def test_a_date_says_that_the_file_is_the_same(serve: Serve, tmp_path: Path) -> None:
    date = "Last-Modified: Sun, 01 Nov 2026 10:00:00 GMT"
    raw = serve(cut(date), honest)
    assert fetched(raw, tmp_path / "x") == DATA
    assert b"Range: bytes=1000-" in raw.requests[1]


@pytest.mark.parametrize("headers", [(), ("x-amz-server-side-encryption: AES256",)])
def test_bytes_that_do_not_have_the_md5_of_their_storage_come_again(
    serve: Serve, headers: tuple[str, ...], tmp_path: Path
) -> None:
    raw = serve(sends(answered(FLIPPED, "200 OK", f"ETag: {TAG}", "x-amz-request-id: 1", *headers)), honest)
    assert fetched(raw, tmp_path / "x") == DATA
    assert raw.asked == 2


@pytest.mark.parametrize(
    "headers",
    [
        (),
        ("x-amz-request-id: 1", "x-amz-server-side-encryption: aws:kms"),
        ("x-amz-request-id: 1", "x-amz-server-side-encryption-customer: key"),
    ],
)
def test_a_tag_that_is_no_md5_is_not_taken_for_one(serve: Serve, headers: tuple[str, ...], tmp_path: Path) -> None:
    tag = f'ETag: "{"0" * 32}"'
    raw = serve(sends(answered(DATA, "200 OK", tag, *headers)))
    assert fetched(raw, tmp_path / "x") == DATA
    assert raw.asked == 1


@pytest.mark.parametrize(("start", "more", "tag"), [(1000, 0, "2"), (1000, 1, "1"), (999, 0, "1")])
def test_a_continuation_of_another_file_is_not_joined(
    serve: Serve, start: int, more: int, tag: str, tmp_path: Path
) -> None:
    content_range = f"Content-Range: bytes {start}-{len(DATA) - 1}/{len(DATA) + more}"
    other = sends(answered(FLIPPED[1000:], "206 X", content_range, f'ETag: "{tag}"'))
    raw = serve(cut('ETag: "1"'), other, honest)
    assert fetched(raw, tmp_path / "x") == DATA
    assert raw.asked == 3


def test_a_link_that_has_ended_is_asked_for_anew(serve: Serve, tmp_path: Path) -> None:
    raw, asked = serve(sends(answered(b"", "403 X")), honest), []
    download(lambda: asked.append(1) or raw.url, str(tmp_path / "x"), 1 << 30, lambda _seconds: None)  # type: ignore[func-returns-value]
    assert len(asked) == 2
    assert (tmp_path / "x").read_bytes() == DATA


@pytest.mark.parametrize(
    ("statuses", "asked", "lasting"),
    [([404] * 3, 3, True), *(([status] * 8, 8, False) for status in (408, 425, 429, 399, 500))],
)
def test_a_server_that_has_no_time_is_asked_longer_than_one_that_refuses(
    serve: Serve, statuses: list[int], asked: int, lasting: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("random.uniform", lambda _low, _high: 1.0)
    raw, pauses = serve(*(sends(answered(b"", f"{status} X")) for status in statuses)), list[float]()
    with pytest.raises(GoneError, match=f"the server answers {statuses[-1]}") as raised:
        download(lambda: raw.url, str(tmp_path / "x"), 1 << 30, pauses.append)
    assert (raw.asked, raised.value.lasting) == (asked, lasting)
    assert pauses == [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0][: asked - 1]


def test_a_redirection_of_the_storage_is_followed(serve: Serve, tmp_path: Path) -> None:
    there = f"Location: {serve(honest).url}"
    moved = sends(answered(b"", "302 X", "Location: /y")), sends(answered(b"", "307 X", there))
    raw = serve(*moved)
    assert fetched(raw, tmp_path / "x") == DATA
    assert raw.requests[1].startswith(b"GET /y ")


@pytest.mark.parametrize("address", ["", "/media/x", "file:///etc/passwd", "ftp://x/y"])
def test_only_http_is_fetched(tmp_path: Path, address: str) -> None:
    with pytest.raises(GoneError, match=r"^the submission's file .* \(the server gives no URL for it\)$"):
        download(lambda: address, str(tmp_path / "x"), 1 << 30, lambda _seconds: None)
    assert not (tmp_path / "x").exists()


def test_a_file_that_is_too_large_is_not_taken(serve: Serve, tmp_path: Path) -> None:
    with pytest.raises(TooLargeError):
        fetched(serve(honest), tmp_path / "x", limit=1000)
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize("chunked", [False, True])
def test_the_limit_is_the_largest_size(serve: Serve, chunked: bool, tmp_path: Path) -> None:
    chunks = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n14\r\n" + DATA[:20] + b"\r\n0\r\n\r\n"
    raw = serve(sends(chunks if chunked else answered(DATA[:20])))
    assert fetched(raw, tmp_path / "x", limit=20) == DATA[:20]
    with pytest.raises(TooLargeError, match="it is larger than this challenge accepts"):
        fetched(raw, tmp_path / "x", limit=19)
    assert raw.asked == 4


def test_the_beginning_alone(serve: Serve) -> None:
    raw = serve(honest)
    assert fetch_head(raw.url, 13) == DATA[:13]
    assert b"Range: bytes=0-12\r\n" in raw.requests[0]


# ── a line that lies ────────────────────────────────────────────────────────

FLIPPED = DATA[:99_999] + bytes([DATA[99_999] ^ 1]) + DATA[100_000:]

LIES = {
    "empty": sends(answered(b"")), "headless": sends(b"HTTP/1.1 200 OK\r\nContent-Type: application/zip\r\n"),
    "length-cut": sends(b"HTTP/1.1 200 OK\r\nContent-Length: 1"), "flipped": sends(answered(FLIPPED)),
    "html": sends(answered(b"<html>please log in</html>")),
    "html-cut": sends(answered(b"<html>please log in</html>", length=len(DATA))),
    "shorter": sends(answered(DATA[:1000])), "longer": sends(answered(DATA, length=len(DATA) + 100)),
    "no-length": sends(b"HTTP/1.1 200 OK\r\n\r\n" + DATA[:7777]),
    "huge-length": sends(answered(DATA, length=10**15)), "absurd-length": sends(answered(DATA, length=10**40)),
    "negative-length": sends(answered(DATA, length=-5)),
    "chunk": sends(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n10\r\n" + DATA[:16] + b"\r\nzz\r\n"),
    "chunk-cut": sends(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffff\r\n" + DATA[:99]),
    "chunk-below-nothing": sends(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\n" + DATA[:99]),
    "reset": resets, "nothing": sends(b""), "not-http": sends(b"SSH-2.0-OpenSSH\r\n"),
    "header-bomb": sends(b"HTTP/1.1 200 OK\r\n" + b"".join(b"X-%d: 1\r\n" % n for n in range(1000)) + b"\r\n"),
    "long-header": sends(b"HTTP/1.1 200 OK\r\nX: " + b"x" * 200_000 + b"\r\n\r\n"),
    "file-redirect": sends(answered(b"", "302 X", "Location: file:///etc/passwd")),
    "odd-redirect": sends(answered(b"", "302 X", "Location: http://[::1/x")),
    "redirect-loop": sends(answered(b"", "302 X", "Location: /x")),
    "another-range": sends(answered(DATA[:10], "206 X", f"Content-Range: bytes 500-509/{len(DATA)}")),
    "endless-416": sends(answered(b"", "416 X")),
}  # fmt: skip


#: Reasons that a line is left for ever; those of Python's client are its own.
REASONS = {
    "absurd-length": "the server does not give its size",
    "negative-length": "the server does not give its size",
    "no-length": "the server does not give its size",
    "another-range": "the server resumed with a different file",
    "endless-416": "the server resumed with a different file",
    "file-redirect": "its URL redirects to one that is neither http nor https",
    "odd-redirect": "its URL redirects to one that is neither http nor https",
    "redirect-loop": "its URL redirects endlessly",
    "html-cut": "the download ended after 26 bytes",
    "length-cut": "the download ended after 0 bytes",
}

#: Complete answers, which nothing tells from the file; and a size that is believed when it comes again and again.
COMPLETE, BELIEVED = ("empty", "flipped", "html", "shorter"), ("huge-length",)
OVERSIZED = ("huge-length", "longer")


@pytest.mark.parametrize(
    ("name", "times"),
    [
        (name, times)
        for name in LIES
        for times in (1, 3)
        if name not in (COMPLETE if times == 1 else COMPLETE + BELIEVED)
    ],
)
def test_a_line_that_lies_costs_tries_and_no_byte(serve: Serve, name: str, times: int, tmp_path: Path) -> None:
    raw = serve(*[LIES[name]] * times, honest)
    assert fetched(raw, tmp_path / "x") == DATA


@pytest.mark.parametrize("name", sorted(LIES))
def test_a_line_that_lies_for_ever_is_left_with_one_error(serve: Serve, name: str, tmp_path: Path) -> None:
    raw = serve(LIES[name])
    sentence = f"the submission's file could not be fetched ({REASONS.get(name, '')})"
    try:
        fetched(raw, tmp_path / "x", 1 << 20)  # nobody can tell a page that always comes from the file
        assert name in COMPLETE
    except TooLargeError as error:
        assert (name, str(error)) in [(large, "it is larger than this challenge accepts") for large in OVERSIZED]
    except GoneError as error:
        assert str(error) == sentence or name not in REASONS
    assert raw.asked < 60


def test_a_size_beyond_the_limit_that_is_contradicted_is_not_believed(serve: Serve, tmp_path: Path) -> None:
    huge, cut = LIES["huge-length"], sends(answered(DATA[:10], length=len(DATA)))
    raw = serve(huge, huge, cut, huge, huge, honest)
    assert fetched(raw, tmp_path / "x") == DATA


def test_one_refusal_at_the_end_is_not_a_lasting_one(serve: Serve, tmp_path: Path) -> None:
    raw = serve(*[resets] * 2, *[sends(answered(b"", "503 X"))] * 5, sends(answered(b"", "404 X")))
    with pytest.raises(GoneError) as raised:
        fetched(raw, tmp_path / "x")
    assert not raised.value.lasting


def test_a_file_that_drips_ends_by_its_own_time(serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(downloads, "_SECONDS", 1.0)
    raw = serve(drips)
    with pytest.raises(GoneError, match="the download is too slow") as raised:
        fetched(raw, tmp_path / "x")
    assert raw.asked == 1
    assert not raised.value.lasting


@pytest.mark.parametrize("script", [drips, lambda _client: time.sleep(60), halts], ids=["body", "silence", "head"])
def test_a_stop_ends_a_download_at_once(serve: Serve, script: Any, tmp_path: Path) -> None:
    raw, asked = serve(script), time.monotonic() + 0.5

    def watch() -> None:
        if time.monotonic() > asked:
            raise StoppedError("asked to stop")

    with pytest.raises(StoppedError):
        download(lambda: raw.url, str(tmp_path / "x"), 1 << 30, lambda _seconds: None, watch)
    assert time.monotonic() - asked < 40


@pytest.mark.parametrize(
    "address",
    ["http://[::1/x", "http://", "http://x:0/", "http://x:99999/", "http:///x", "javascript:1", "\ud800", "x" * 10**6],
)
def test_an_address_that_is_none_is_a_lasting_refusal(address: str, tmp_path: Path) -> None:
    with pytest.raises(GoneError) as raised:
        download(lambda: address, str(tmp_path / "x"), 1 << 30, lambda _seconds: None)
    assert raised.value.lasting


@pytest.mark.parametrize("defect", [KeyError("x"), TypeError("x"), AttributeError("x"), ValueError("x")], ids=repr)
def test_a_defect_of_ours_is_not_called_a_fault_of_the_network(defect: Exception) -> None:
    def work(_session: Any) -> None:
        raise defect

    with pytest.raises(type(defect)):
        exchange(work, lambda: None)


def test_a_file_that_cannot_be_written_is_a_fault_of_the_disk(serve: Serve, tmp_path: Path) -> None:
    with pytest.raises(downloads.DiskError, match="Is a directory"):
        fetched(serve(honest), tmp_path)


def test_a_disk_that_is_full_is_said(serve: Serve, tmp_path: Path) -> None:
    code = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000));"
        "from segjudge.system.download import DiskError, download\n"
        "try: download(lambda: sys.argv[1], sys.argv[2], 1 << 30, lambda s: None)\n"
        "except DiskError as error: print('said:', error)"
    )
    raw = serve(honest)
    command = [sys.executable, "-c", code, raw.url, str(tmp_path / "x")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert "said:" in done.stdout
    assert "File too large" in done.stdout


def test_a_machine_that_is_not_allowed_gets_no_request(serve: Serve, tmp_path: Path) -> None:
    raw = serve(honest)
    with pytest.raises(GoneError, match="leads into a private network") as caught:
        download(
            lambda: raw.url, str(tmp_path / "x"), 10**9, lambda _seconds: None, allows=lambda peer: peer != "127.0.0.1"
        )
    assert caught.value.lasting
    assert [asked for asked in raw.requests if asked] == []
