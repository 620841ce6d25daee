"""Calls of EvalAI's API meet servers that are none, or that mean no good."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from segjudge.evaluation_script.files.problems import HostError
from segjudge.platforms.evalai import client as clients
from segjudge.platforms.evalai import routes
from segjudge.platforms.evalai.bundle.push import ChallengePush, RejectedError
from segjudge.platforms.evalai.client import ApiError, Client, EvalAISettings, is_safe_for_token

TOKEN = "tok-0123456789"


class Odd:
    """A server that answers as it is set to, and remembers what it was asked."""

    def __init__(self) -> None:
        self.answer: tuple[int, str, bytes] = (200, "application/json", b"{}")
        self.headers: dict[str, str] = {}
        self.asked: list[dict[str, str]] = []
        odd = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def answer(self) -> None:
                length = int(self.headers.get("Content-Length", 0))
                self.rfile.read(length)
                odd.asked.append({"path": self.path, **dict(self.headers)})
                status, kind, body = odd.answer
                self.send_response(status)
                self.send_header("Content-Type", kind)
                for name, value in odd.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_GET = do_POST = do_PUT = do_PATCH = answer  # noqa: N815 - http.server's names

            def log_message(self, *_args: Any) -> None: ...

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def says(self, body: Any, status: int = 200, kind: str = "application/json") -> None:
        self.answer = (status, kind, body if isinstance(body, bytes) else json.dumps(body).encode())


@pytest.fixture
def odd() -> Iterator[Odd]:
    made = Odd()
    yield made
    made.server.shutdown()
    made.server.server_close()


@pytest.mark.parametrize(
    "host",
    [
        "http://127.0.0.1.evil.example",
        "http://localhost.evil.example",
        "http://localhost@evil.example",
        "http://127.0.0.1:80@evil.example",
        "https://eval.ai@evil.example",
        "http://eval.ai",
        "ftp://127.0.0.1",
        "http://",
        "http://[::1",
    ],
)
def test_a_token_goes_nowhere_but_over_https_or_to_this_machine(host: str) -> None:
    assert not is_safe_for_token(host)


@pytest.mark.parametrize(
    "host", ["https://eval.ai", "HTTPS://eval.ai", "http://127.0.0.1:8899", "http://localhost", "http://[::1]:8"]
)
def test_these_may_have_it(host: str) -> None:
    assert is_safe_for_token(host)


def test_a_netrc_does_not_take_the_tokens_place(odd: Odd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "netrc").write_text("default login me password secret\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    Client(odd.address, TOKEN).call("GET", routes.PARTICIPANT_TEAMS)
    assert odd.asked[0]["Authorization"] == f"Bearer {TOKEN}"


def test_a_redirect_is_not_followed(odd: Odd) -> None:
    odd.says({}, 302)
    odd.headers = {"Location": f"{odd.address}/elsewhere"}
    with pytest.raises(ApiError, match="redirects"):
        Client(odd.address, TOKEN).call("GET", routes.PARTICIPANT_TEAMS)
    assert len(odd.asked) == 1


@pytest.mark.parametrize(
    ("status", "body"),
    [
        pytest.param(400, {"error": f"your header was Bearer {TOKEN}\x1b[2J\r"}, id="error"),
        pytest.param(401, {"detail": TOKEN}, id="detail"),
        pytest.param(400, {TOKEN: [TOKEN]}, id="key"),
    ],
)
def test_what_a_server_says_has_no_token_and_moves_no_cursor(odd: Odd, status: int, body: Any) -> None:
    odd.says(body, status)
    with pytest.raises(ApiError) as raised:
        Client(odd.address, TOKEN).call("GET", routes.PARTICIPANT_TEAMS)
    message = str(raised.value) + str(raised.value.body)
    assert TOKEN not in message
    assert "\x1b" not in message


@pytest.mark.parametrize("body", [b"", b"no json", b'"text"', b"5", b"null", b"[" * 100_000, b"<html>"], ids=repr)
def test_what_is_no_answer_of_evalai_is_one_error(odd: Odd, body: bytes) -> None:
    odd.says(body)
    with pytest.raises(ApiError) as raised:
        Client(odd.address, TOKEN).call("GET", routes.PARTICIPANT_TEAMS)
    assert raised.value.transient


@pytest.mark.parametrize("body", [{"results": None}, {"results": 5}, {}], ids=str)
def test_a_list_that_is_none_is_said(odd: Odd, body: Any) -> None:
    odd.says(body)
    with pytest.raises(ApiError, match="something other than a list"):
        Client(odd.address, TOKEN).fetch_rows(routes.PARTICIPANT_TEAMS)


def test_a_list_without_an_end_is_left(odd: Odd, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clients, "_PAGES", 5)
    odd.says({"results": [{"id": 1}], "next": "more"})
    assert len(Client(odd.address, TOKEN).fetch_rows(routes.PARTICIPANT_TEAMS)) == 4


def test_an_answer_without_an_end_is_left(odd: Odd, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clients, "_ANSWER_BYTES", 1 << 20)
    odd.says(b" " * (3 << 20))
    with pytest.raises(ApiError, match="does not answer"):
        Client(odd.address, TOKEN).call("GET", routes.PARTICIPANT_TEAMS)


@pytest.mark.parametrize(
    ("status", "transient", "denied"),
    [(400, False, False), (401, False, True), (403, False, True), (404, False, False), (429, True, False), (500, True, False), (502, True, False)],
)  # fmt: skip
def test_what_may_pass_and_what_may_not(odd: Odd, status: int, transient: bool, denied: bool) -> None:
    odd.says({"error": "x"}, status)
    odd.headers = {"Retry-After": "7"}
    with pytest.raises(ApiError) as raised:
        Client(odd.address, TOKEN).call("GET", routes.PARTICIPANT_TEAMS)
    assert (raised.value.transient, raised.value.denied, raised.value.wait) == (transient, denied, 7.0)


@pytest.mark.parametrize(
    "body", [{"error": ["a", "b"]}, {"error": 5}, {"error": {"x": ["y"]}}, {}, {"error": ""}], ids=str
)
def test_a_refusal_always_has_a_sentence(odd: Odd, tmp_path: Path, body: Any) -> None:
    odd.says(body, 400)
    (tmp_path / "x.zip").touch()
    with pytest.raises(RejectedError) as raised:
        ChallengePush(EvalAISettings(odd.address, TOKEN, 1), "me/x").validate(str(tmp_path / "x.zip"))
    assert str(raised.value)


@pytest.mark.parametrize("row", [{}, {"id": None}, {"id": "x"}, {"id": [1]}], ids=str)
def test_a_challenge_without_a_number_is_none(odd: Odd, row: Any) -> None:
    odd.says({"results": [{"github_repository": "me/x", **row}]})
    assert ChallengePush(EvalAISettings(odd.address, TOKEN, 1), "me/x").fetch_challenge() is None


def test_a_server_in_trouble_is_not_called_a_stranger(odd: Odd) -> None:
    odd.says(b"<html>", 502, "text/html")
    with pytest.raises(HostError, match="answers 502: the server is in trouble"):
        ChallengePush(EvalAISettings(odd.address, TOKEN, 1), "me/x").fetch_challenge()
