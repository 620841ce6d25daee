"""The server's answers in trouble, its reading of bodies, and spoiled answers, as one text."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import functools
import io
import logging
import math
import re
import sqlite3
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import uvicorn
from sqlalchemy.exc import IntegrityError, OperationalError, PendingRollbackError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from uvicorn.server import ServerState

from segjudge.server import api, background, first_run, leaderboards, server, store
from segjudge.server.actions import hosting, submitting
from segjudge.server.background import Background
from segjudge.server.models import Setting, StoredFile, StoredMessage
from segjudge.server.store import BusyError, outage_of, unless_away
from segjudge.server.wire import Refusal
from tests.answers import fold

from .scenario import bundle_of, config_of
from .staged import Stage, _answer

FILE = Path(__file__).with_name("troubles.txt")


def write_troubles(folder: Path) -> str:
    lines: list[str] = []
    for play in (_play_bodies, _play_throttle, _play_connections):
        play(lines)
    config = config_of("Lakes")
    practice, final, *_ = config["challenge_phases"]
    del practice["max_submissions_per_month"], final["max_submissions"]
    (folder / "lakes.zip").write_bytes(bundle_of(config))
    with Stage(folder, folder / "lakes.zip", "dora") as stage:
        for play_on in (_play_outages, _play_loops, _play_requests, _play_numbers, _play_files):
            play_on(lines, stage)
    _play_databases(lines, folder)
    _play_transactions(lines, folder)
    text = re.sub(r"0x[0-9a-f]+", "0x…", "\n".join(lines)).replace(str(folder), "FOLDER")
    return fold(re.sub(r"\b[0-9a-f]{24,64}\b", "ID", text) + "\n")


# ── bodies ──────────────────────────────────────────────────────────────────


def _part(body: bytes, *, more: bool = False) -> dict[str, Any]:
    return {"type": "http.request", "body": body, "more_body": more}


#: Title → headers, what comes, what the application does, seconds that pass with each message, and others.
_BODIES: dict[str, dict[str, Any]] = {
    "nothing": {"headers": {}, "reads": 1},
    "a length of nothing": {"headers": {"content-length": "0"}, "comes": [_part(b"")]},
    "a body": {"headers": {"content-length": "5"}, "comes": [_part(b"12345")]},
    "two parts": {"headers": {"transfer-encoding": "chunked"}, "comes": [_part(b"123", more=True), _part(b"45")]},
    "a length beyond the limit": {"headers": {"content-length": "11"}, "comes": [_part(b"1")]},
    "a length that is none": {"headers": {"content-length": "1e3"}, "comes": [_part(b"1")]},
    "parts up to the limit": {"headers": {"transfer-encoding": "chunked"}, "comes": [_part(b"x" * 6, more=True), _part(b"x" * 4)]},
    "parts beyond the limit": {"headers": {"transfer-encoding": "chunked"}, "comes": [_part(b"x" * 6, more=True), _part(b"x" * 5)]},
    "silence": {"headers": {"content-length": "5"}, "comes": [_part(b"1", more=True), *[TimeoutError()] * 5], "passes": 20.0},
    "short silences": {"headers": {"content-length": "5"}, "comes": [TimeoutError(), _part(b"1", more=True), TimeoutError(), _part(b"2")], "passes": 9.0},
    "too slow": {"headers": {"content-length": "5"}, "comes": [_part(b"1", more=True)] * 4, "passes": 20.5},
    "slow, but not for long": {"headers": {"content-length": "5"}, "comes": [_part(b"1", more=True), _part(b"1", more=True), _part(b"2")], "passes": 20.0},
    "the server ends": {"headers": {"content-length": "5"}, "comes": [_part(b"12345")], "stopping": True},
    "an answer before the body": {"headers": {"content-length": "5"}, "comes": [_part(b"12", more=True), _part(b"345")], "reads": 0},
    "an answer before a long body": {"headers": {"content-length": "9"}, "comes": [_part(b"x" * 3, more=True)] * 9, "reads": 0},
    "an answer before a slow body": {"headers": {"content-length": "9"}, "comes": [_part(b"x", more=True)] * 9, "reads": 0, "passes": 0.6},
    "an answer before a silent body": {"headers": {"content-length": "9"}, "comes": [TimeoutError()], "reads": 0},
    "an answer before who leaves": {"headers": {"content-length": "9"}, "comes": [{"type": "http.disconnect"}, _part(b"x")], "reads": 0},
    "an answer in the middle": {"headers": {"content-length": "5", "connection": "x"}, "comes": [_part(b"12", more=True), _part(b"3")], "reads": 1},
    "an answer in parts before the body": {"headers": {"content-length": "5"}, "comes": [_part(b"12345")], "reads": 0, "parts": 2},
    "who waits for an answer": {"headers": {"content-length": "5", "expect": "100-continue"}, "comes": [_part(b"12345")], "reads": 0},
    "who waited for an answer": {"headers": {"content-length": "5", "expect": "100-continue"}, "comes": [_part(b"12", more=True), _part(b"3")], "reads": 1},
    "no request": {"headers": {"content-length": "99"}, "comes": [_part(b"12345")], "kind": "lifespan"},
}  # fmt: skip


def _play_bodies(lines: list[str]) -> None:
    lines.append("# Bodies, where 10 bytes are the limit, and 8 are read after an answer\n")
    for title, case in _BODIES.items():
        lines.append(f"{title}: {'; '.join(asyncio.run(_converse(**case)))}")


async def _converse(
    headers: dict[str, str],
    comes: tuple[Any, ...] = (),
    reads: int = 9,
    passes: float = 0.0,
    parts: int = 1,
    kind: str = "http",
    *,
    stopping: bool = False,
) -> list[str]:
    lines, waiting, clock = [], list(comes), SimpleNamespace(now=0.0)

    async def receive() -> Any:
        clock.now += passes
        message = waiting.pop(0) if waiting else {"type": "http.disconnect"}
        if isinstance(message, Exception):
            raise message
        return message

    async def send(message: Any) -> None:
        headers = {name.decode(): value.decode() for name, value in message.get("headers", ())}
        words = [message["status"], headers] if headers else [message["body"], "+" * message["more_body"]]
        lines.append(" ".join(map(str, ["sends", *words])).strip())

    async def app(_scope: Any, receive: Any, send: Any) -> None:
        for _ in range(reads):
            message = await receive()
            lines.append(f"reads {message.get('body', message['type'])}{'+' * message.get('more_body', False)}")
            if not message.get("more_body"):
                break
        await send(
            {"type": "http.response.start", "status": 200, "headers": [(b"connection", b"keep-alive"), (b"x", b"y")]}
        )
        for number in range(parts):
            await send({"type": "http.response.body", "body": b"answer", "more_body": number + 1 < parts})

    pairs = [(name.encode(), value.encode()) for name, value in headers.items()]
    with (
        patch.object(server, "UPLOAD_BYTES", 10), patch.object(server, "_LINGER_BYTES", 8),
        patch.object(server, "time", SimpleNamespace(monotonic=lambda: clock.now)),
    ):  # fmt: skip
        bounded = server._BoundedApp(app, lambda: stopping)
        await bounded({"type": kind, "headers": pairs}, receive, send)
    return [*lines, *([f"leaves {len(waiting)}"] if waiting else [])]


def _play_throttle(lines: list[str]) -> None:
    lines.append("\n# Too many requests\n")
    clock = SimpleNamespace(now=0.0)
    user: Any = SimpleNamespace(id=1)
    with patch.object(api, "time", SimpleNamespace(monotonic=lambda: clock.now)):
        for limit, who in ((2, user), (2, None), (101, None)):
            throttle, taken, waits = api.Throttle(limit), 0, list[str]()
            for moment in (0.0, 1.0, 1.5, *[2.0] * 120, 58.6, 59.5, 60.0, 60.5, 61.0, 61.0):
                clock.now = moment
                try:
                    throttle.check(who, "here")
                    taken += 1
                except Refusal as refusal:
                    seconds = int(refusal.headers["Retry-After"])
                    wait = f"{seconds} second{'s' if seconds > 1 else ''}"
                    assert refusal.status == 429
                    assert refusal.body == {"detail": f"Request was throttled. Expected available in {wait}."}
                    waits.append(f"after {taken} at {moment}: {wait}")
            lines.append(
                f"{limit} of {'a user' if who else 'nobody'}: {'; '.join(dict.fromkeys(waits))}; {taken} taken"
            )
            throttle.check(SimpleNamespace(id=2), "here")  # type: ignore[arg-type]  # another


def _play_connections(lines: list[str]) -> None:
    """Open connections on which requests begin, continue, end or never come; the test controls the clock."""
    lines.append("\n# Connections on which nothing comes\n")
    head = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
    for title, parts in {
        "nothing": (), "a part of a head": (head[:9],), "a head in parts": (head[:9], head[9:]), "a request": (head,), "two requests": (head, None, head),
        "an answer, and nothing more": (head, None), "no request": (b"\0\r\n\r\n",), "who leaves": (None, b""), "who leaves in the middle": (head[:9], b""),
    }.items():  # fmt: skip
        lines.append(f"{title}: {'; '.join(asyncio.run(_connect(parts)))}")


async def _connect(parts: tuple[bytes | None, ...]) -> list[str]:
    """Send parts; None lets the server write an answer."""
    lines: list[str] = []
    timers: list[Any] = []

    async def app(_scope: Any, _receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    class Loop:
        def __getattr__(self, name: str) -> Any:
            return getattr(asyncio.get_running_loop(), name)

        def call_later(self, seconds: float, action: Callable[..., Any], *_words: Any) -> Any:
            if action != protocol._close:  # of uvicorn's own
                return SimpleNamespace(cancel=lambda: None)
            lines.append(f"is to be closed in {seconds} s")
            timers.append(SimpleNamespace(cancel=lambda: lines.append("is not to be closed")))
            return timers[-1]

    class Transport(asyncio.Transport):
        closing = False

        def get_extra_info(self, name: str, default: Any = None) -> Any:
            return {"peername": ("127.0.0.1", 1), "sockname": ("127.0.0.1", 2)}.get(name, default)

        def write(self, data: bytes | bytearray | memoryview) -> None:
            lines.append(f"answers {bytes(data)[9:12].decode()}") if data.startswith(b"HTTP") else None

        def close(self) -> None:
            self.closing = True
            lines.append("closes")

        def is_closing(self) -> bool:
            return self.closing

    with patch.object(uvicorn.Config, "configure_logging"):
        config = server.make_server_config(app)
    config.load()
    protocol = server._PromptProtocol(config, ServerState(), {}, Loop())  # type: ignore[arg-type]
    protocol.connection_made(transport := Transport())
    for part in parts:
        if part == b"":
            protocol.connection_lost(None)
            return lines
        if part is None:
            for _ in range(4):
                await asyncio.sleep(0)
        else:
            protocol.data_received(part)
    for _ in range(4):
        await asyncio.sleep(0)
    if timers:
        protocol._close()  # it comes although it was cancelled just now
    if not transport.closing:
        protocol.connection_lost(None)
    return lines


# ── outages ─────────────────────────────────────────────────────────────────


def _sqlite(code: int, message: str) -> OperationalError:
    cause = sqlite3.OperationalError(message)
    cause.sqlite_errorcode = code
    return OperationalError("SELECT 1", {}, cause)


def _postgres(state: str, *, gone: bool = False, kind: type[Any] = OperationalError) -> Exception:
    cause = Exception(f"state {state}\nmore")
    cause.sqlstate = state  # type: ignore[attr-defined]
    error: Exception = kind("SELECT 1", {}, cause, connection_invalidated=gone)
    return error


_ERRORS: dict[str, BaseException] = {
    "busy": BusyError("others"), "no connection": PoolTimeout("x"), "rolled back": PendingRollbackError("x"),
    **{f"SQLite {code}": _sqlite(code, "words of SQLite") for code in (5, 6, 8, 10, 13, 14, 1, 0x105)},
    **{f"PostgreSQL {state}": _postgres(state) for state in ("53100", "55P03", "08006", "53300", "57P01", "58030", "25006", "42P01", "")},
    "PostgreSQL, integrity": _postgres("", kind=IntegrityError), "PostgreSQL, a connection gone": _postgres("42P01", gone=True),
    "disk": OSError(errno.ENOSPC, "No space left on device"), "quota": OSError(errno.EDQUOT, "Quota exceeded"),
    "files": OSError(errno.EMFILE, "Too many open files"), "memory": MemoryError(), "missing": OSError(errno.ENOENT, "x"),
    "defect": ValueError("x"),
}  # fmt: skip


def _play_outages(lines: list[str], stage: Stage) -> None:
    lines.append("\n# Outages\n")
    outages = {name: outage_of(error) for name, error in _ERRORS.items()}
    alike: dict[str, list[str]] = {}
    for name, outage in outages.items():
        alike.setdefault(str(outage and replace(outage, reason="")), []).append(name)
    lines += [f"{outage}: {', '.join(names)}" for outage, names in alike.items()]
    lines.append(f"reasons: {[*dict.fromkeys(outage.reason for outage in outages.values() if outage)]}")
    written: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: written.append(record.getMessage())  # type: ignore[method-assign]
    log = logging.getLogger("segjudge.server")
    log.addHandler(handler)
    clock = SimpleNamespace(now=1000.0)
    try:
        with (
            patch.object(store, "time", SimpleNamespace(monotonic=lambda: clock.now, time=lambda: stage.now)),
            patch.object(store, "_last_lines", {}),
        ):
            for name in ("busy", "SQLite 13", "memory", "missing", "defect"):
                answers: dict[str, list[str]] = {}
                for path in ("/api/challenges/challenge/1", "/challenges/1", "/media/x/y"):
                    clock.now += 1.0
                    answers.setdefault(_ask_in_trouble(stage, path, _ERRORS[name]), []).append(path)
                lines += [f"{name}, {' '.join(paths)}: {answer}" for answer, paths in answers.items()]
                lines += [f"{name} on stderr: {line}" for line in written]
                written.clear()
            for passed in (0.0, 4.9, 0.2, 5.0):
                clock.now += passed
                store.write_line("once in a while")
            lines.append(f"on stderr: {written}")
    finally:
        log.removeHandler(handler)
    lines.append(f"unless away: {unless_away(lambda: 3)} {unless_away(lambda: _raise(BusyError('x')))}")
    lines.append(f"unless a defect: {_outcome(lambda: unless_away(lambda: _raise(ValueError('x'))))}")


def _raise(error: BaseException) -> None:
    raise error


def _ask_in_trouble(stage: Stage, path: str, error: BaseException) -> str:
    with (
        patch.object(stage.services.store, "get", side_effect=error),
        patch.object(stage.services.files, "is_signed", lambda *_: True),
    ):
        try:
            answer = (stage.call if path.startswith(("/api", "/media")) else stage.browse)("GET", path)
        except (OSError, ValueError) as raised:
            return f"raises {raised!r}"
    shown = (
        answer.text
        if "json" in answer.headers["Content-Type"]
        else " ".join(re.findall(r"(?<=>)[^<>]+(?=</(?:h1|p)>)", answer.text))
    )
    return f"{answer.status_code} {answer.headers.get('Retry-After', '')} {shown}"


def _play_loops(lines: list[str], stage: Stage) -> None:
    """Run the background work turn by turn, without a thread."""
    lines.append("\n# What works beside the server\n")
    pauses: list[float] = []
    turns: list[Any] = [
        True,
        False,
        *[_ERRORS["busy"]] * 8,
        True,
        _ERRORS["SQLite 13"],
        _ERRORS["busy"],
        _ERRORS["defect"],
        True,
    ]
    beside = Background(stage.services.store, "beside")

    def turn() -> bool:
        if not turns:
            beside.give_up()
            return True
        outcome = turns.pop(0)
        if isinstance(outcome, BaseException):
            raise outcome
        lines.append(f"health: {_health(stage)}")
        return bool(outcome)

    beside._add(turn, lambda: _raise(ValueError("closing")), "the loop")
    output: list[str] = []
    stop = SimpleNamespace(is_set=beside._stop.is_set, set=beside._stop.set, wait=pauses.append)
    stage.services.note_background([SimpleNamespace(loops=beside.loops, alive=True)])  # type: ignore[list-item]
    with patch.object(background, "write_line", output.append), patch.object(beside, "_stop", stop):
        loop = beside.loops[0]
        beside._run(loop, turn, lambda: _raise(ValueError("closing")))
        lines += [
            f"pauses {pauses}",
            f"says {output}",
            f"trouble {loop.trouble!r}",
            f"log {stage.services.store.log_lines(0)}",
        ]
        pauses.clear()
        tries = [_ERRORS["busy"], _ERRORS["busy"], None]
        beside._stop = SimpleNamespace(is_set=lambda: False, wait=pauses.append)  # type: ignore[assignment]
        beside._carry_through(lambda: _try(tries))
        lines.append(f"carried through after {pauses}, {tries}")
        for stopped, error in ((True, _ERRORS["busy"]), (False, _ERRORS["defect"])):
            beside._stop = SimpleNamespace(is_set=lambda stopped=stopped: stopped, wait=pauses.append)  # type: ignore[assignment]
            lines.append(
                f"carried through, stopped {stopped}: {_outcome(lambda error=error: beside._carry_through(lambda: _raise(error)))}"
            )
    lines.append(f"health in trouble: {_health(stage)}")
    stage.services.note_background([SimpleNamespace(loops=[], alive=False)])  # type: ignore[list-item]
    lines.append(f"health of what has ended: {_health(stage)}")
    stage.services.note_background([])
    with patch.object(stage.services.store, "count", side_effect=_ERRORS["busy"]):
        lines.append(f"health without a database: {_health(stage)}")


# ── requests, files and databases ───────────────────────────────────────────


def _play_requests(lines: list[str], stage: Stage) -> None:
    lines.append("\n# Requests that cannot be answered\n")
    json_of, form = ({"Content-Type": f"application/{kind}"} for kind in ("json", "x-www-form-urlencoded"))
    login, teams = "/api/auth/login", "/api/participants/participant_team"
    parts = [b"x" * 9000, b"x" * 9000]
    asked: dict[str, tuple[str, str, str, dict[str, Any]]] = {
        "a number beyond all": ("GET", f"/api/challenges/challenge/{10**30}", "", {}),
        "a submission beyond all": ("PUT", "/api/jobs/challenge/1/update_submission/", "host", {"json": {"submission": 10**30, "submission_status": "FAILED", "challenge_phase": 1}}),
        "a form as large as may be": ("POST", login, "", {"data": {"username": "x" * (4 << 10)}}),
        "a field too large": ("POST", login, "", {"data": {"username": "x" * (5 << 10)}}),
        "a body too large": ("POST", login, "", {"data": {"username": "x" * (17 << 10)}}),
        "a body too large that does not say so": ("POST", login, "", {"data": iter(parts), "headers": form}),
        "half a character": ("POST", teams, "aurora", {"data": b'{"team_name": ["a", {"b": "\\ud800"}]}', "headers": json_of}),
        "half a character in a key": ("POST", teams, "aurora", {"data": b'{"\\ud800": 1}', "headers": json_of}),
        "a list": ("POST", teams, "aurora", {"data": b"[1]", "headers": json_of}),
        "an empty body": ("POST", teams, "aurora", {"data": b" ", "headers": json_of}),
        "answers too long": ("POST", "/api/jobs/challenge/1/challenge_phase/1/submission/", "aurora", {
            "data": {"submission_metadata": f'["{"x" * ((1 << 16) - 3)}"]'}, "files": {"input_file": ("a.json", b"{}")},
        }),
        "answers that are none": ("POST", "/api/jobs/challenge/1/challenge_phase/1/submission/", "aurora", {
            "data": {"submission_metadata": "[NaN]"}, "files": {"input_file": ("a.json", b"{}")},
        }),
    }  # fmt: skip
    for title, (method, path, who, options) in asked.items():
        with patch("tests.server.staged._answer", _answer_in_parts if "not say" in title else _answer):
            answer = stage.call(method, path, who, **options)
        lines.append(f"{title}: {answer.status_code} {answer.text[:300]}")
    with patch.object(stage.services.store, "exists", return_value=True):
        answer = stage.get("/api/challenges/1/request_approval", "host")
    lines.append(f"approval: {answer.status_code} {answer.text[:300]}")


def _play_numbers(lines: list[str], stage: Stage) -> None:
    lines.append("\n# Numbers that nobody gave\n")
    for phase in stage.services.store.phases(1)[:3]:
        limits = [phase.config.get(f"max_submissions{ending}") for ending in ("", "_per_month", "_per_day")]
        lines.append(f"submissions of {phase.codename}: {limits}")
    for value in (0.5, 3, True, math.nan, math.inf, -math.inf, "0.5", None):
        entry = store.BoardEntry(1, {"a": value}, {"error_a": value}, 1, 1, "t", "m", False, 0.0)
        keys = [[leaderboards._sort_key(entry, key, descending=order) for key in "ab"] for order in (True, False)]
        lines.append(f"{value}: {keys}")
    for descending in (True, False):
        board: Any = SimpleNamespace(descending=descending)
        for dots in ([], [(1.0, 2.0)], [(1.0, 2.0), (3.0, 2.0), (4.0, 1.0), (5.0, 3.0)]):
            lines.append(f"{dots}: {leaderboards._best_score_path(dots, board)!r}")  # noqa: PERF401
    for error in (Refusal(400, {"detail": math.nan}), Refusal(409, {"detail": "\ud800ä"})):
        lines.append(_ask_in_trouble(stage, "/api/challenges/challenge/1", error))  # noqa: PERF401
    with patch.object(stage.services.store, "count", side_effect=ValueError("x")):
        lines.append(f"health with a defect: {_outcome(lambda: _health(stage))}")


async def _answer_in_parts(app: Any, request: Any) -> Any:
    """Hand over a body without its length."""
    request.body = b"".join(request.body)
    return await _answer(app, request)


def _play_files(lines: list[str], stage: Stage) -> None:
    lines.append("\n# Files that come too late\n")
    services = stage.services
    file = services.files.keep(b"part", "part 1", "part")
    submitting.keep_part(services, ("gone", 1), file, "tag")
    lines.append(f"a part of an upload that is over: {services.files.row(file)} {_outcome(lambda: services.files.path(file))}".replace(file, "FILE"))  # fmt: skip
    answer = stage.call("POST", "/api/jobs/challenge/1/challenge_phase/1/submission/", "aurora", files={"input_file": ("a.json", b"{}")})  # fmt: skip
    number = int(answer.json()["id"])
    for status in ("cancelled", "running"):
        services.submissions.update(number, status=status)
        hosting.take_product(services, {"submission": number}, io.BytesIO(b"x"), "product.json")
        row = services.submissions.get(number)
        queued = [message.body["submission_pk"] for message in services.store.find(StoredMessage)]
        kept = [each.name for each in services.store.find(StoredFile, StoredFile.kind == "submission_input_file")]
        lines.append(f"a product of what is {status}: {row.status} {bool(row.submission_input_file)} {queued} {kept}")
    for name in ("n" * 201, "", "pod"):
        hosting.start_scoring(services, {"submission": number, "submission_status": "RUNNING", "job_name": name})
        lines.append(f"jobs: {[(job[:3], len(job)) for job in services.submissions.get(number).job_name]}")


def _play_databases(lines: list[str], folder: Path) -> None:
    lines.append("\n# Databases\n")
    made: list[Any] = []

    def create(url: Any, **options: Any) -> Any:
        made.append([url.render_as_string(), options])
        raise ImportError("no driver") if "psycopg" in url.drivername else LookupError("made")

    for url in ("", "nonsense", "mysql://host/name", "postgresql://me:secret@host/name", "postgresql+psycopg2://host/name", "sqlite:///x.db",
                "postgresql://host/name?connect_timeout=3", "sqlite:///x.db?timeout=1"):  # fmt: skip
        line = patch("segjudge.system.extras.install_line", "the line for {}{}".format)
        with patch.object(store, "create_engine", create), line:
            lines.append(
                f"{url!r}: {_outcome(lambda url=url: store._new_engine(store._database_url('folder', url)))} {made}"
            )
        made.clear()
    first_database, second_database, where = folder / "own.db", folder / "other.db", folder / "data"
    with contextlib.closing(sqlite3.connect(second_database)) as db:
        db.execute("CREATE TABLE kept (x)")
    store.Store(str(where), f"sqlite:///{first_database}").close()
    lines.append(f"again: {_outcome(lambda: store.Store(str(where), f'sqlite:///{first_database}').close())}")
    for title, data, path in (
        ("of another folder", "elsewhere", first_database),
        ("of others", "data", second_database),
        ("nowhere", "data", folder / "no/x.db"),
    ):
        lines.append(
            f"{title}: {_outcome(lambda data=data, path=path: store.Store(str(folder / data), f'sqlite:///{path}'))}"
        )
    for version in (1, 3):
        with contextlib.closing(sqlite3.connect(first_database)) as db, db:
            db.execute("UPDATE settings SET value = ? WHERE key = 'schema'", (version,))
        lines.append(f"version {version}: {_outcome(lambda: store.Store(str(where), f'sqlite:///{first_database}'))}")
    lines += [
        f"{path.name} is emptied: {_outcome(lambda path=path: store.drop_tables(f'sqlite:///{path}'))}"
        for path in (first_database, second_database, folder / "no/x.db")
    ]
    for path in (first_database, second_database):
        with contextlib.closing(sqlite3.connect(path)) as db:
            lines.append(f"{path.name} has {[row[0] for row in db.execute('SELECT name FROM sqlite_master')]}")
    for title, names in (
        ("of others", ["letter"]),
        ("of a server", [".segjudge-rehearsal", "letter"]),
        ("of a lock", ["lock"]),
    ):
        data = folder / title
        data.mkdir()
        for name in names:
            (data / name).touch()
        with patch.object(first_run, "drop_tables", lambda url: lines.append(f"drops {url}")):
            lines.append(
                f"a folder {title}: {_outcome(lambda data=data: first_run.reset(str(data), 'URL'))} {data.exists()}"
            )
    data.mkdir()
    (data / ".segjudge-rehearsal").touch()
    with patch.object(first_run.shutil, "rmtree"):
        lines.append(f"a folder that stays: {_outcome(lambda: first_run.reset(str(data)))}")


def _play_transactions(lines: list[str], folder: Path) -> None:
    """Note the actions after a transaction, however it ends."""
    lines.append("\n# Transactions\n")
    kept = store.Store(str(folder / "transactions"))
    done: list[str] = []

    def change(name: str, error: Exception | None = None, commits: Exception | None = None) -> None:
        with (
            patch.object(store.Session, "commit", side_effect=commits) if commits else contextlib.nullcontext(),
            kept.write() as session,
        ):
            session.add(Setting(key=name, value=""))
            for outcome, committed in (("kept", True), ("undone", False)):
                check = functools.partial(done.append, f"checks what is {outcome}")
                kept.run_after(functools.partial(done.append, outcome), committed=committed, check=check)
            if error:
                raise error

    for name, options in {
        "good": {}, "a defect": {"error": ValueError("x")}, "refused": {"commits": _postgres("42P01")}, "again": {"error": _postgres("", gone=True)},
        "a connection gone": {"commits": _postgres("", gone=True)}, "later": {},
    }.items():  # fmt: skip
        outcome = _outcome(lambda name=name, options=options: change(name, **options)).partition("(")[0]
        lines.append(f"{name}: {outcome}, {done}, stored {sorted(row.key for row in kept.find(Setting))[:3]}")
        done.clear()
    with patch.object(store, "_WAIT_SECONDS", 0.01), kept._lock:
        lines.append(f"while another writes: {_outcome(lambda: change('x'))}")
    kept.close()
    with (
        patch.object(store, "_last_lines", dict.fromkeys(map(str, range(100)), 0.0)) as last,
        patch.object(store, "_LOG"),
    ):
        for number in range(2):
            store.write_line(f"line {number}")
            lines.append(f"lines that are remembered: {len(last)}")


def _try(tries: list[Any]) -> None:
    outcome = tries.pop(0)
    if outcome is not None:
        raise outcome


def _outcome(action: Callable[[], object]) -> str:
    try:
        return repr(action())
    except Exception as error:  # noqa: BLE001 - whatever it is
        return f"raises {error!r}"


def _health(stage: Stage) -> str:
    answer = stage.call("GET", "/healthz")
    return f"{answer.status_code} {re.sub(r'.seconds_ago.: *[0-9]+, *', '', answer.text)}"


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="segjudge-") as scratch:
        FILE.write_text(write_troubles(Path(scratch)), encoding="utf-8")
