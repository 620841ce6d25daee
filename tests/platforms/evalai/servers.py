"""A server of HTTP that gives the answers it is told, for tests of clients."""

from __future__ import annotations

import http.server
import json
import re
import threading
from typing import Any

TOKEN = "token-0123456789"
#: Status, body (bytes as they are, else JSON), and further headers.
Answer = tuple[int, Any, dict[str, str]]


def says(body: Any, status: int = 200, **headers: str) -> Answer:
    return status, body, headers


class Server:
    """Answers each request with the next of its answers, repeating the last one, and notes the requests."""

    def __init__(self) -> None:
        self.answers: list[Answer] = []
        self.asked: list[str] = []
        played = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                fields = re.findall(rb'name="(\w+)"(?:; filename="[^"]*"\r\n[^\r]*)?\r\n\r\n([^\r]{1,40})', body)
                output = (
                    body.decode("latin-1")
                    if not fields
                    else ", ".join(f"{k.decode()}={v[: 2 if v[:2] == b'PK' else 20]!r}" for k, v in fields)
                )
                who = self.headers.get("Authorization", "nobody").replace(TOKEN, "TOKEN")
                played.asked.append(f"{self.command} {self.path} {output} ({who})".replace("  ", " "))
                status, given, headers = played.answers.pop(0) if len(played.answers) > 1 else played.answers[0]
                data = given if isinstance(given, bytes) else json.dumps(given).encode()
                self.send_response_only(status)  # which says no date
                for name, value in {"Content_Type": "application/json", **headers}.items():
                    self.send_header(name.replace("_", "-"), value)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_POST = do_PUT = do_PATCH = answer  # noqa: N815 - http.server's names

            def log_message(self, *_args: Any) -> None: ...

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def answer(self, *answers: Answer) -> Server:
        """Begin again, with these answers."""
        self.answers, self.asked = [*answers], []
        return self

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
