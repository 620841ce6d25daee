"""Calls of EvalAI's API meet servers that are none, or hostile."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from segjudge.platforms.evalai import routes
from segjudge.platforms.evalai.bundle.push import ChallengePush, RejectedError
from segjudge.platforms.evalai.client import Client, EvalAISettings

TOKEN = "tok-0123456789"


class Odd:
    """A server with given answers, which records its requests."""

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


def test_a_netrc_does_not_take_the_tokens_place(odd: Odd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "netrc").write_text("default login me password secret\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    Client(odd.address, TOKEN).call("GET", routes.PARTICIPANT_TEAMS)
    assert odd.asked[0]["Authorization"] == f"Bearer {TOKEN}"


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
