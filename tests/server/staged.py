"""A rehearsal inside the test's process, whose clock and random numbers the test controls, so that answers repeat."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from unittest.mock import patch
from urllib.parse import unquote, urlsplit

import pytest
import requests

from segjudge.platforms.evalai import client
from segjudge.server.first_run import HOST_NAME, create_challenge, create_people
from segjudge.server.server import create_app
from segjudge.server.services import Services

HOST = "127.0.0.1:8899"
#: Noon in UTC on 1 May 2030; seconds until a message is visible again, and until people log in anew.
_BEGINNING, _VISIBILITY, _DAY = 1_903_867_200.0, 3600.0, 86400.0


class Stage:
    """A server with one request after the other; time passes only if `now` is set."""

    def __init__(self, folder: Path, bundle: Path, *hosts: str) -> None:
        """Start the server; `hosts` may push beside `host`."""
        self.address = f"http://{HOST}"
        self.now = _BEGINNING
        self._drawn = 0
        self._folder, self._bundle, self._hosts = folder, bundle, [HOST_NAME, *hosts]
        self._cookies: dict[str, tuple[str, str, float]] = {}

    def __enter__(self) -> Self:
        with ExitStack() as opened:
            self._enter(opened)
            self._open = opened.pop_all()
        return self

    def _enter(self, opened: ExitStack) -> None:
        for name, replacement in (
            ("time.time", lambda: self.now),
            ("secrets.token_hex", lambda size: self._draw()[: 2 * size]),
            ("secrets.token_urlsafe", lambda size: self._draw()[:size]),
            ("secrets.randbelow", lambda most: int(self._draw()[:12], 16) % most),
            # Nobody else is to be answered meanwhile, and threads take most of the time.
            ("segjudge.server.services.run_in_threadpool", _run_at_once),
            ("segjudge.server.api.run_in_threadpool", _run_at_once),
        ):
            opened.enter_context(patch(name, replacement))
        opened.enter_context(patch.dict("segjudge.server.accounts._SCRYPT", {"n": 2}))  # hashing is slow on purpose
        self._loop = opened.enter_context(asyncio.Runner())
        self.services = Services(str(self._folder / "data"), _VISIBILITY, hosts=self._hosts, clock=lambda: self.now)
        opened.callback(self.services.store.close)
        self._app = create_app(self.services, 10**6)
        self.people = {
            person.username: {"password": person.password, "team": str(person.team_id), "token": person.token}
            for person in create_people(self.services, self._hosts)
        }
        create_challenge(self.services, str(self._bundle), str(self._bundle.name), str(self._folder))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.close()

    def _draw(self) -> str:
        self._drawn += 1
        return hashlib.sha256(str(self._drawn).encode()).hexdigest()

    # ── asking ───────────────────────────────────────────────────────────────

    def call(self, method: str, path: str, who: str = "", **options: Any) -> requests.Response:
        """Call the API with a user's token."""
        headers = {**options.pop("headers", {})}
        if who:
            headers["Authorization"] = f"Bearer {self.people[who]['token'] if who in self.people else who}"
        return self._ask(method, path, headers, **options)

    def get(self, path: str, who: str = "", **options: Any) -> requests.Response:
        return self.call("GET", path, who, **options)

    def browse(self, method: str, path: str, who: str = "", **options: Any) -> requests.Response:
        """Request a page, or send its form, like a logged-in user's browser."""
        headers = {"Origin": self.address, **options.pop("headers", {})}
        if who:
            if who not in self._cookies or self.now - self._cookies[who][2] > _DAY:
                self._log_in(who)
            cookie, token, _ = self._cookies[who]
            headers.setdefault("Cookie", cookie)
            if method == "POST":
                options["data"] = {"form_token": token, **options.get("data", {})}
        return self._ask(method, path, headers, **options)

    def _log_in(self, who: str) -> None:
        form = {"username": who, "password": self.people[who]["password"], "next": "/"}
        answer = self._ask("POST", "/login", {"Origin": self.address}, data=form)
        cookie = answer.headers["Set-Cookie"].partition(";")[0]
        page = self._ask("GET", "/nothing", {"Cookie": cookie}).text
        token = re.search(r'name="form_token" value="([^"]+)"', page)
        assert token
        self._cookies[who] = cookie, token[1], self.now

    def _ask(self, method: str, path: str, headers: dict[str, str], **options: Any) -> requests.Response:
        request = requests.Request(method, self.address + path, headers, **options).prepare()
        return self._loop.run(_answer(self._app, request))


def answer_clients(stage: Stage, patched: pytest.MonkeyPatch) -> None:
    """Let clients of EvalAI's API in this process ask this server."""

    def request(self: client.Client, _session: object, method: str, url: str, options: Any) -> Any:
        del options["timeout"]
        answer = stage.call(method, url.removeprefix(stage.address), self._token, **options)
        return client._Answer(answer.status_code, answer.headers, answer.content)

    patched.setattr(client.Client, "_request", request)
    host = stage.people["host"]
    for name, value in (("TOKEN", host["token"]), ("HOST_TEAM", host["team"]), ("HOST", stage.address)):
        patched.setenv(f"EVALAI_{name}", value)


async def _run_at_once(action: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    return action(*arguments, **options)


async def _answer(app: Any, request: requests.PreparedRequest) -> requests.Response:
    """Hand a request to an application as a web server would."""
    url = urlsplit(str(request.url))
    body = request.body.encode() if isinstance(request.body, str) else request.body or b""
    waiting = [{"type": "http.request", "body": body}]
    messages: list[dict[str, Any]] = []
    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": request.method, "scheme": "http",
        "path": unquote(url.path), "raw_path": url.path.encode(), "query_string": url.query.encode(), "root_path": "",
        "headers": [*(
            (name.lower().encode(), value.encode() if isinstance(value, str) else value)
            for name, value in {"Host": HOST, **request.headers}.items()
        )],
        "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 8899),
    }  # fmt: skip

    async def receive() -> dict[str, Any]:
        if not waiting:
            await asyncio.Event().wait()  # nobody hangs up
        return waiting.pop()

    async def send(message: dict[str, Any]) -> None:
        messages.append(message)

    try:
        await app(scope, receive, send)
    except Exception:
        if not messages:  # a defect is answered, and then raised for the log
            raise
    answer = requests.Response()
    answer.status_code = messages[0]["status"]
    for name, value in messages[0]["headers"]:
        answer.headers[name.decode("latin-1")] = value.decode("latin-1")
    answer._content = b"".join(message.get("body", b"") for message in messages[1:])
    answer.encoding, answer.url = "utf-8", str(request.url)
    return answer
