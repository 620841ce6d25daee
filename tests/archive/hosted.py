"""A platform to leave: a rehearsal's application on a port of this process, with 210 submissions and recorded calls."""

from __future__ import annotations

import json
import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import uvicorn

from segjudge.archive.collecting import Collector
from segjudge.archive.evalai import export_evalai
from segjudge.archive.event import EventInfo, EventWriter, Exported
from segjudge.platforms.evalai.client import Client
from segjudge.server import first_run
from segjudge.server.accounts import PARTICIPANT
from segjudge.server.actions.submitting import record_participation
from segjudge.server.models import ChallengePhase, Submission
from segjudge.server.server import create_app, make_server_config
from segjudge.server.services import Services
from segjudge.server.submissions import SplitScores
from tests.rehearsals import bundle_with, edit_phases

#: Submissions to the phase with a hidden split, whose list has two pages, and to another one.
MANY, FEW = 204, 6
BEGUN = 1_780_000_000.0


class CutError(Exception):
    """Raised in the place of a kill."""


@dataclass
class Platform:
    """A served rehearsal: its users, its calls, and what happens before a call."""

    services: Services
    address: str
    token: str
    challenge: int
    calls: list[tuple[str, str]] = field(default_factory=list)
    #: The authorization of each request for a file.
    authorized: list[str] = field(default_factory=list)
    #: Called with the number of calls and the path; returns a status to answer with, or 0.
    disturb: Callable[[int, str], int] = lambda _count, _path: 0
    #: The submissions that their teams ignore, which only the workers' list has.
    ignored: frozenset[int] = frozenset()

    def client(self) -> Client:
        return Client(self.address, self.token)

    def phases(self) -> list[ChallengePhase]:
        return self.services.store.phases(self.challenge)

    def add_team(self, name: str) -> tuple[int, int]:
        """Return the numbers of a new team and its user."""
        user = self.services.accounts.create(name, "secret")
        team = self.services.accounts.create_team(user, PARTICIPANT, f"Team {name}")
        record_participation(self.services, self.challenge, team)
        return team, user.id

    def submit(self, phase: int, who: tuple[int, int], number: int, **values: Any) -> int:
        """Store a submission with scores on all splits of its phase."""
        store, files = self.services.store, self.services.files
        with store.write() as session:
            row = Submission(
                phase_id=phase,
                team_id=who[0],
                created_by=who[1],
                **{
                    "status": "finished",
                    "is_public": True,
                    "method_name": f"method {number}",
                    "submitted_at": BEGUN + number,
                    "started_at": BEGUN + number + 1,
                    "completed_at": BEGUN + number + 2.5,
                    "input_file": files.keep(f"PK masks {number}".encode(), f"masks {number}.zip", "input_file"),
                    "stdout_file": None
                    if number % 10
                    else files.keep(f"scored {number}\n".encode(), "stdout.txt", "stdout_file"),
                    **values,
                },
            )
            session.add(row)
            session.flush()
            scores = [
                SplitScores(
                    split.id, {label: (number * 37 % 101) / 101 + index for index, label in enumerate(split.labels)}
                )
                for split in store.splits_of(phase)
            ]
            if row.status == "finished":
                self.services.submissions.keep_scores(row.id, scores)
        return row.id

    def expire(self, submission: int) -> None:
        """Delete a submission's file from the storage, as its retention does."""
        row = self.services.submissions.get(submission)
        os.remove(self.services.files.path(str(row.input_file)))


class _Recorded:
    """Notes the calls of an application, and disturbs them."""

    def __init__(self, app: Any, platform: Platform) -> None:
        self._app, self._platform = app, platform

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        path = scope["path"]
        headers = {key.decode().lower(): value.decode() for key, value in scope["headers"]}
        if path.startswith("/media/"):
            self._platform.authorized.append(headers.get("authorization", ""))
        self._platform.calls.append((scope["method"], path))
        status = self._platform.disturb(len(self._platform.calls), path)
        if not status:
            lists = self._platform.ignored and path.endswith(("/submission/", "/submissions"))
            await (self._omit_ignored if lists else self._app)(scope, receive, send)
            return
        wait = [(b"retry-after", b"3")] if status == 429 else []
        answer = [(b"content-type", b"application/json"), *wait]
        await send({"type": "http.response.start", "status": status, "headers": answer})
        await send({"type": "http.response.body", "body": b'{"detail": "Request was throttled."}'})

    async def _omit_ignored(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer with a list as EvalAI does, where teams may ignore their submissions; a rehearsal has no such page."""
        messages: list[Any] = []

        async def keep(message: Any) -> None:
            messages.append(message)

        await self._app(scope, receive, keep)
        answer, ignored = json.loads(b"".join(each.get("body", b"") for each in messages)), self._platform.ignored
        if isinstance(answer, list):
            answer = [{**row, "ignore_submission": row["id"] in ignored} for row in answer]
        else:
            answer["results"] = [row for row in answer["results"] if row["id"] not in ignored]
        body = json.dumps(answer).encode()
        headers = [(name, value) for name, value in messages[0]["headers"] if name.lower() != b"content-length"]
        await send({**messages[0], "headers": [*headers, (b"content-length", str(len(body)).encode())]})
        await send({"type": "http.response.body", "body": body})


@contextmanager
def served(folder: Path, bundle: Path, origin: str = "leaving") -> Iterator[Platform]:
    """Yield a platform with a bundle's challenge."""
    services = Services(str(folder), hosts=[first_run.HOST_NAME], clock=lambda: BEGUN)
    first_run.create_people(services, [first_run.HOST_NAME])
    host = services.accounts.find_user(first_run.HOST_NAME)
    assert host is not None
    challenge, _ = first_run.create_challenge(services, str(bundle), origin, str(folder))
    port = socket.socket()
    port.bind(("127.0.0.1", 0))
    address = f"http://127.0.0.1:{port.getsockname()[1]}"
    platform = Platform(services, address, services.accounts.mint_token(host, "profile")[0], challenge)
    app = _Recorded(create_app(services, 10**9), platform)
    server = uvicorn.Server(make_server_config(app))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [port]}, daemon=True)
    thread.start()
    try:
        yield platform
    finally:
        server.should_exit = True
        thread.join()
        port.close()
        services.store.close()


def make_bundle(folder: Path) -> Path:
    """Return the demo's bundle, with a hidden split in its second phase, a prize, and teams that submit often."""
    made = bundle_with(folder, _change)
    edit_phases(made, ('"test-hard", "davis2017", LABELS', '"test-hard", "davis2017", LABELS, hidden=True'))
    return made


def _change(config: Any) -> None:
    config["challenge_phase_splits"][2]["visibility"] = 1
    for phase in config["challenge_phases"]:
        phase.update(max_submissions_per_day=1000, max_concurrent_submissions_allowed=1000)
    config["prizes"] = [{"rank": 1, "amount": "100.00USD", "description": "first"}]


def fill(platform: Platform) -> dict[str, int]:
    """Add 210 submissions of three teams; return the unusual ones by their names."""
    teams = [platform.add_team(name) for name in ("ada", "bob", "cy")]
    second, first = (phase.id for phase in platform.phases()[:2])
    result = json.dumps([{"x": 1}]).encode()
    files = platform.services.files
    for number in range(MANY - 5):
        platform.submit(first, teams[number % 3], number)
    unusual = {
        "private": platform.submit(first, teams[0], 990, is_public=False),
        "failed": platform.submit(
            first,
            teams[1],
            991,
            status="failed",
            stderr_file=files.keep(b"Traceback\nValueError: bad zip\n", "stderr.txt", "stderr_file"),
        ),
        "flagged": platform.submit(first, teams[1], 992, is_flagged=True),
        "expired": platform.submit(first, teams[2], 993),
        "placeholder": platform.submit(
            first,
            teams[2],
            994,
            status="cancelled",
            input_file=files.keep(b"file_content", "large.zip", "input_file"),
            submission_result_file=files.keep(result, "result.json", "submission_result_file"),
        ),
    }
    platform.expire(unusual["expired"])
    for number in range(FEW):
        platform.submit(second, teams[number % 2], number)
    return unusual


def export(
    platform: Platform, target: Path, sleep: Callable[[float], object] = lambda _seconds: None, **options: Any
) -> Exported:
    """Export a platform's challenge to a folder or zip."""
    writer = EventWriter(f"{target}.partial")
    collector = Collector(platform.client(), writer.folder, 10**9, sleep)
    exported = export_evalai(collector, writer, platform.challenge, lambda _text: None, **options)
    info = EventInfo("segjudge", "evalai", "https://eval.ai", platform.challenge, exported.title)
    writer.write_records(info, exported)
    writer.finish(str(target))
    return exported
