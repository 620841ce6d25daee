"""A submission's file comes over a bad line."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from remote_challenge_evaluation.download import GoneError, TooLargeError, download, head

DATA = bytes(range(256)) * 4096


class Line:
    """Sends what it is told of a file, then breaks off."""

    def __init__(self) -> None:
        self.pieces: list[int] = []
        self.ranges = True
        self.statuses: list[int] = []
        self.asked: list[dict[str, str]] = []
        line = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                line.asked.append(dict(self.headers))
                if line.statuses and (status := line.statuses.pop(0)) != 200:
                    self.send_response(status)
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                    return
                told = self.headers.get("Range", "")
                start = int(told.removeprefix("bytes=").split("-")[0]) if told and line.ranges else 0
                body = DATA[start:]
                self.send_response(206 if start else 200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                most = line.pieces.pop(0) if line.pieces else len(body)
                self.wfile.write(body[:most])
                self.close_connection = True

            def log_message(self, *_args: Any) -> None: ...

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/file.zip"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture
def line() -> Iterator[Line]:
    made = Line()
    yield made
    made.server.shutdown()
    made.server.server_close()


def fetched(line: Line, path: Path, limit: int = 1 << 30) -> bytes:
    download(lambda: line.url, str(path), limit, lambda _seconds: None)
    return path.read_bytes()


def test_a_file_comes_whole_and_without_the_token(line: Line, tmp_path: Path) -> None:
    assert fetched(line, tmp_path / "x") == DATA
    assert "Authorization" not in line.asked[0]


def test_what_broke_off_is_taken_up_where_it_was(line: Line, tmp_path: Path) -> None:
    line.pieces = [1000, 5000]
    assert fetched(line, tmp_path / "x") == DATA
    assert [one.get("Range") for one in line.asked] == [None, "bytes=1000-", "bytes=6000-"]


def test_a_server_that_cannot_go_on_begins_anew(line: Line, tmp_path: Path) -> None:
    line.pieces, line.ranges = [1000], False
    assert fetched(line, tmp_path / "x") == DATA


@pytest.mark.parametrize("status", [403, 404, 500, 503])
def test_a_link_that_has_ended_is_asked_for_anew(line: Line, tmp_path: Path, status: int) -> None:
    line.statuses = [status]
    asked = []
    download(lambda: asked.append(1) or line.url, str(tmp_path / "x"), 1 << 30, lambda _seconds: None)  # type: ignore[func-returns-value]
    assert len(asked) == 2
    assert (tmp_path / "x").read_bytes() == DATA


def test_a_file_that_never_comes_is_given_up(line: Line, tmp_path: Path) -> None:
    line.statuses = [404] * 100
    with pytest.raises(GoneError, match="could not be fetched"):
        fetched(line, tmp_path / "x")
    assert len(line.asked) < 20


@pytest.mark.parametrize("address", ["", "/media/x", "file:///etc/passwd", "ftp://x/y"])
def test_only_http_is_fetched(tmp_path: Path, address: str) -> None:
    with pytest.raises(GoneError):
        download(lambda: address, str(tmp_path / "x"), 1 << 30, lambda _seconds: None)
    assert not (tmp_path / "x").exists()


def test_a_file_that_is_too_large_is_not_taken(line: Line, tmp_path: Path) -> None:
    with pytest.raises(TooLargeError):
        fetched(line, tmp_path / "x", limit=1000)
    assert not (tmp_path / "x").exists()


def test_the_beginning_alone(line: Line) -> None:
    assert head(line.url, 13) == DATA[:13]
