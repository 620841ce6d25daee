"""A local HTTP server with the part of Codabench's API that a push uses."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

TOKEN = "0123456789abcdef"


class CodabenchServer:
    """Accounts, uploads and competitions; `refusal` is the unpacker's message, `looks` the number of polls until it."""

    def __init__(self) -> None:
        self.refusal = ""
        self.looks = 1
        self.data_sets: dict[str, dict[str, Any]] = {}
        self.uploads: list[str] = []
        self.competitions: set[int] = set()
        self.calls: list[tuple[str, str, str]] = []
        self.storage_status = 200
        self.address = ""
        self._left: dict[int, int] = {}
        self._results: dict[int, int] = {}

    def answer(self, method: str, path: str, token: str, body: bytes) -> tuple[int, Any]:
        """Return the status and JSON of a call."""
        self.calls.append((method, path, token))
        if path.startswith("/storage/"):
            self.data_sets[path.split("/")[2]]["bytes"] = body
            return self.storage_status, None
        arguments = token.split()
        if arguments and arguments[0].lower() == "token":  # checked before the view, even if the view needs no user
            if len(arguments) == 1:
                return 401, {"detail": "Invalid token header. No credentials provided."}
            if len(arguments) > 2:
                return 401, {"detail": "Invalid token header. Token string should not contain spaces."}
            if arguments[1] != TOKEN:
                return 401, {"detail": "Invalid token."}
        document = json.loads(body) if body else {}
        if path == "/api/api-token-auth/":
            right = document == {"username": "host", "password": "secret"}
            wrong = {"non_field_errors": ["Unable to log in with provided credentials."]}
            return (200, {"token": TOKEN}) if right else (400, wrong)
        if not arguments:
            return 401, {"detail": "Authentication credentials were not provided."}
        return self._of_user(method, path, document)

    def _of_user(self, method: str, path: str, document: dict[str, Any]) -> tuple[int, Any]:
        if (method, path) == ("POST", "/api/datasets/"):
            if not document.get("file_size"):
                return 400, {"file_size": "This field is required."}
            key = f"00000000-0000-0000-0000-{len(self.data_sets):012}"
            self.data_sets[key] = document
            return 201, {"key": key, "sassy_url": f"{self.address}/storage/{key}?signature=x"}
        completed = re.fullmatch(r"/api/datasets/completed/([0-9a-f-]+)/", path)
        if completed and method == "PUT":
            self.uploads.append(completed[1])
            status = len(self.uploads)
            self._left[status] = self.looks
            return 200, {"status_id": status}
        status_of = re.fullmatch(r"/api/competitions/(\d+)/creation_status/", path)
        if status_of:
            return 200, self._status(int(status_of[1]))
        competition = re.fullmatch(r"/api/competitions/(\d+)/", path)
        if competition and int(competition[1]) in self.competitions:
            return 200, {"id": int(competition[1])}
        return 404, {"detail": "Not found."}

    def _status(self, number: int) -> dict[str, Any]:
        self._left[number] -= 1
        if self._left[number] >= 0:
            return {"status": "Starting", "details": None, "resulting_competition": None}
        if self.refusal:
            return {"status": "Failed", "details": self.refusal, "resulting_competition": None}
        self._results.setdefault(number, 100 + number)
        self.competitions.add(self._results[number])
        return {"status": "Finished", "details": None, "resulting_competition": self._results[number]}


@contextmanager
def codabench_server() -> Iterator[CodabenchServer]:
    """Yield a server that listens on this machine."""
    played = CodabenchServer()

    class Handler(BaseHTTPRequestHandler):
        def _handle(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            path = self.path.partition("?")[0]
            status, document = played.answer(self.command, path, self.headers.get("Authorization", ""), body)
            data = b"" if document is None else json.dumps(document).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_PUT = _handle  # noqa: N815 - the names of the base class

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    played.address = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield played
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
