"""A played GitHub: its API over HTTP as far as a board uses it, attachments, and repositories on disk.

Where GitHub's documentation leaves a choice, it is the stricter side: calls need the token, lists have pages, an edit or a
comment moves `updated_at`, and only the workflow's own account is a bot.
"""

from __future__ import annotations

import datetime
import json
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import yaml

from segjudge.platforms.github.worker import BoardSettings, sweep
from tests.builders import ROOT

REPOSITORY, TOKEN = "owner/cats", "ghs_token"
BOT = {"login": "github-actions[bot]", "id": 41898282, "type": "Bot"}
#: What a fault does instead of an answer: a status with headers, or a connection that is cut before or after the call.
Fault = tuple[int, dict[str, str]] | str


class PlayedGitHub:
    """A server with one board, whose repositories are made from the folders of `new --board github`."""

    def __init__(self, folder: Path, challenge: Path) -> None:
        self.folder, self.public = folder, folder / "checkout"
        self.issues: dict[int, dict[str, Any]] = {}
        self.comments: dict[int, list[dict[str, Any]]] = {}
        self.files: dict[str, bytes | str] = {}
        self.faults: list[Fault] = []
        #: What goes wrong at the first call of each address.
        self.first_fault: Fault = ""
        self.calls: list[str] = []
        self._lock, self._comments = threading.Lock(), 100
        self._clock = datetime.datetime.now(datetime.UTC).replace(microsecond=0)
        for name in ("cats", "cats-private"):
            subprocess.run(["git", "init", "--quiet", "--bare", "-b", "main", folder / f"{name}.git"], check=True)
        shutil.copytree(challenge / "public", self.public)
        self.private = folder / "private"
        shutil.copytree(challenge / "private", self.private)
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), self._make_handler())
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        home = folder / "home"
        home.mkdir()
        (home / ".gitconfig").write_text(
            f'[url "{folder}/cats.git"]\n\tinsteadOf = {self.url}/{REPOSITORY}.git\n'
            f'[url "{folder}/cats-private.git"]\n\tinsteadOf = git@127.0.0.1:{REPOSITORY}-private.git\n'
            "[user]\n\tname = host\n\temail = host@a.test\n[safe]\n\tdirectory = *\n"
        )
        self.home = home
        self.git(self.private, "init", "--quiet", "-b", "main")
        self.push_private()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()

    # ── repositories ────────────────────────────────────────────────────────

    def git(self, folder: Path, *arguments: str) -> str:
        environment = {**os.environ, "HOME": str(self.home)}
        command = ["git", *arguments]
        return subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, check=True, errors="replace"
        ).stdout

    def push_private(self) -> None:
        self.git(self.private, "add", "-A")
        self.git(self.private, "commit", "--quiet", "--allow-empty", "-m", "challenge")
        self.git(self.private, "push", "--quiet", str(self.folder / "cats-private.git"), "main")

    def history(self) -> str:
        """Return all that the public repository ever held."""
        return self.git(self.folder / "cats.git", "log", "--all", "-p", "--format=%B")

    def list_commits(self) -> list[str]:
        return self.git(self.folder / "cats.git", "log", "--all", "--format=%s").splitlines()

    def count_commits(self, change: str, number: int) -> int:
        """Return how many commits have a change, such as "Result of", of a submission."""
        return sum(
            bool(re.match(rf"{change} submissions? ([\d, ]*\b)?{number}\b", each)) for each in self.list_commits()
        )

    def read(self, path: str) -> str:
        """Return a file of the ledger's branch."""
        return self.git(self.folder / "cats.git", "show", f"ledger:{path}")

    # ── people ──────────────────────────────────────────────────────────────

    def now(self) -> str:
        self._clock += datetime.timedelta(seconds=1)
        return self._clock.strftime("%Y-%m-%dT%H:%M:%SZ")

    def open_issue(self, body: str | None, user: str = "ann", **fields: Any) -> int:
        with self._lock:
            number = len(self.issues) + 1
            account = {"login": user, "id": sum(user.encode()), "type": "User"}
            moment = self.now()
            self.issues[number] = {
                "number": number, "title": "Submission", "body": body, "user": account, "state": "open",
                "created_at": moment, "updated_at": moment, **fields,
            }  # fmt: skip
            self.comments[number] = []
        return number

    def attach(self, data: bytes | str, name: str = "results.zip") -> str:
        """Upload an attachment, or (text) a redirect; return its address."""
        path = f"/user-attachments/files/{len(self.files) + 1}/{name}"
        self.files[path] = data
        return f"{self.url}{path}"

    def submit(self, data: bytes, user: str = "ann", phase: str = "val", method: str = "net") -> int:
        return self.open_issue(form(self.attach(data), phase=phase, method=method), user)

    def answers(self, number: int) -> list[str]:
        """Return the comments of the workflow."""
        return [comment["body"] for comment in self.comments[number] if comment["user"] == BOT]

    # ── the workflow ────────────────────────────────────────────────────────

    def variables(self, run: str = "1", inputs: dict[str, str] | None = None) -> dict[str, str]:
        """Return what GitHub sets for a run."""
        event = self.folder / f"event-{run}.json"
        event.write_text(json.dumps({"inputs": inputs} if inputs else {"action": "opened"}))
        return {
            "GITHUB_REPOSITORY": REPOSITORY, "GITHUB_API_URL": self.url, "GITHUB_SERVER_URL": self.url,
            "GITHUB_RUN_ID": run, "GITHUB_EVENT_PATH": str(event), "HOME": str(self.home),
            "GITHUB_TOKEN": TOKEN, "PRIVATE_KEY": "-----BEGIN KEY-----",
        }  # fmt: skip

    def sweep(self, run: str = "1", inputs: dict[str, str] | None = None) -> list[str]:
        """Do in this process what the workflow's step does."""
        values = BoardSettings.read(self.variables(run, inputs))
        return list(sweep(BoardSettings(**{**vars(values), "folder": str(self.public)})))

    def start_step(self, run: str = "1") -> subprocess.Popen[str]:
        """Start the step of the workflow with its shell and its environment only."""
        workflow = yaml.safe_load((self.public / ".github/workflows/board.yml").read_text())
        (step,) = [step for step in workflow["jobs"]["score"]["steps"] if "worker" in step.get("run", "")]
        variables, programs = self.variables(run), self.folder / "programs"
        values = {"${{ github.token }}": "GITHUB_TOKEN", "${{ secrets.PRIVATE_KEY }}": "PRIVATE_KEY"}
        assert {name: values[text] for name, text in step["env"].items()} == {name: name for name in step["env"]}
        programs.mkdir(exist_ok=True)
        (programs / "segjudge").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m segjudge "$@"\n')
        (programs / "segjudge").chmod(0o755)
        environment = {**variables, "PATH": f"{programs}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
        return subprocess.Popen(
            ["bash", "-e", "-c", step["run"]],
            cwd=self.public,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    # ── the API ─────────────────────────────────────────────────────────────

    def _make_handler(self) -> type[BaseHTTPRequestHandler]:
        github = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_: Any) -> None:
                pass

            def _serve(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                parts = urlsplit(self.path)
                if parts.path in github.files:
                    content = github.files[parts.path]
                    if isinstance(content, str):
                        self._send(302, b"", {"Location": content})
                    else:
                        self._send(200, content)
                    return
                with github._lock:
                    call = f"{self.command} {parts.path}"
                    fault = "" if call in github.calls else github.first_fault
                    fault = github.faults.pop(0) if github.faults else fault
                    github.calls.append(call)
                    if fault == "cut before":
                        self.close_connection = True
                        self.connection.close()
                        return
                    if isinstance(fault, tuple):
                        self._send(fault[0], b'{"message": "fault"}', fault[1])
                        return
                    status, answer = github._answer(
                        self.command, parts.path, parse_qs(parts.query), body, self.headers.get("Authorization", "")
                    )
                if fault == "cut after":
                    self.close_connection = True
                    self.connection.close()
                    return
                self._send(status, json.dumps(answer).encode())

            def _send(self, status: int, data: bytes, headers: dict[str, str] | None = None) -> None:
                self.send_response(status)
                for name, value in {"Content-Length": str(len(data)), **(headers or {})}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_POST = do_PATCH = _serve  # noqa: N815

        return Handler

    def _answer(self, method: str, path: str, query: dict[str, list[str]], body: bytes, token: str) -> tuple[int, Any]:
        if token != f"Bearer {TOKEN}":
            return 401, {"message": "Bad credentials"}
        if path == "/meta":
            return 200, {"ssh_keys": ["ssh-ed25519 AAAA"]}
        content = json.loads(body) if body else {}
        routes: list[tuple[str, str, Callable[..., tuple[int, Any]]]] = [
            ("GET", r"/issues", lambda: self._page(
                [row for row in self.issues.values() if row["state"] == query["state"][0]], query)),
            ("PATCH", r"/issues/(\d+)", lambda number: (200, self._touch(int(number), **content))),
            ("GET", r"/issues/(\d+)/comments", lambda number: self._page(self.comments[int(number)], query)),
            ("POST", r"/issues/(\d+)/comments", lambda number: (201, self.comment(int(number), content["body"], BOT))),
            ("PATCH", r"/issues/comments/(\d+)", lambda key: self._edit(int(key), content["body"])),
        ]  # fmt: skip
        for name, pattern, act in routes:
            match = re.fullmatch(f"/repos/{REPOSITORY}{pattern}", path)
            if match and name == method:
                return act(*match.groups())
        return 404, {"message": "Not Found"}

    def _page(self, rows: list[dict[str, Any]], query: dict[str, list[str]]) -> tuple[int, Any]:
        size, page = int(query["per_page"][0]), int(query["page"][0])
        return 200, rows[size * (page - 1) : size * page]

    def _touch(self, number: int, **fields: Any) -> dict[str, Any]:
        self.issues[number].update(fields, updated_at=self.now())
        return self.issues[number]

    def comment(self, number: int, body: str, user: dict[str, Any]) -> dict[str, Any]:
        self._comments += 1
        comment = {"id": self._comments, "body": body, "user": user}
        self.comments[number].append(comment)
        self._touch(number)
        return comment

    def _edit(self, key: int, body: str) -> tuple[int, Any]:
        for comments in self.comments.values():
            for comment in comments:
                if comment["id"] == key:
                    comment["body"] = body
                    return 200, comment
        return 404, {"message": "Not Found"}


def form(file: str, sha256: str = "_No response_", method: str = "net", phase: str = "val") -> str:
    """Return the body that GitHub writes from the form."""
    answers = {"Method": method, "Phase": phase, "File": file, "SHA-256": sha256}
    return "\n\n".join(f"### {question}\n\n{answer}" for question, answer in answers.items())
