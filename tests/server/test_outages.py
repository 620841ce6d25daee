"""Errors of databases, disks and machines as answers, and work beside the server that waits for them."""

from __future__ import annotations

import errno
import json
import logging
import math
import re
import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pytest
from sqlalchemy.exc import OperationalError, PendingRollbackError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from segjudge.server import background, server, store
from segjudge.server.background import Background
from segjudge.server.store import BusyError, outage_of, unless_away
from segjudge.server.wire import Refusal
from tests.calls import outcome

from .scenario import bundle_of, config_of
from .staged import Stage

NOW = "2030-05-01T12:00:00.000000Z"


def make_sqlite(code: int) -> OperationalError:
    cause = sqlite3.OperationalError("words of SQLite")
    cause.sqlite_errorcode = code
    return OperationalError("SELECT 1", {}, cause)


def fail(error: BaseException) -> Callable[..., Any]:
    def call(*_: object) -> Any:
        raise error

    return call


BUSY, DEFECT, FULL_DATABASE = BusyError("others"), ValueError("x"), make_sqlite(13)
LOCKED, SILENT = "The rehearsal's database is locked by another writer.", "The rehearsal's database does not respond."
FULL, MACHINE = "The disk of this rehearsal is full.", "The rehearsal's machine cannot do this now."
WORDS = "words of SQLite"


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    folder = tmp_path_factory.mktemp("outages")
    (folder / "lakes.zip").write_bytes(bundle_of(config_of("Lakes")))
    with Stage(folder, folder / "lakes.zip") as made:
        yield made


@pytest.mark.parametrize(
    ("error", "sentence", "reason"),
    [
        (BUSY, LOCKED, "others"),
        *((make_sqlite(code), LOCKED, WORDS) for code in (5, 6, 0x105)),
        (PoolTimeout("x"), SILENT, "x"),
        (PendingRollbackError("x"), SILENT, "x"),
        *((make_sqlite(code), SILENT, WORDS) for code in (8, 10, 14)),
        (FULL_DATABASE, FULL, WORDS),
        (OSError(errno.ENOSPC, "No space left on device"), FULL, "[Errno 28] No space left on device"),
        (OSError(errno.EDQUOT, "Quota exceeded"), FULL, "[Errno 122] Quota exceeded"),
        (OSError(errno.EMFILE, "Too many open files"), MACHINE, "[Errno 24] Too many open files"),
        (MemoryError(), MACHINE, "MemoryError"),
        (make_sqlite(1), None, ""),
        (OSError(errno.ENOENT, "x"), None, ""),
        (DEFECT, None, ""),
    ],
    ids=lambda value: " ".join(str(value).split()[:6]),
)
def test_an_error_of_the_machine_is_an_outage(error: BaseException, sentence: str | None, reason: str) -> None:
    made = outage_of(error)
    if sentence is None:
        assert made is None
        return
    status, retry = (507, 30) if sentence == FULL else (503, 5)
    assert made is not None
    assert (made.sentence, made.status, made.retry_after, made.reason) == (sentence, status, retry, reason)


class Lines(logging.Handler):
    """The lines that the server writes."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


@pytest.fixture
def written(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[list[str], Any]]:
    """Yield the lines that the server writes, and the clock that limits their number."""
    handler, log, clock = Lines(), logging.getLogger("segjudge.server"), SimpleNamespace(now=1000.0)
    monkeypatch.setattr(store, "time", SimpleNamespace(monotonic=lambda: clock.now, time=lambda: stage.now))
    monkeypatch.setattr(store, "_last_lines", {})
    log.addHandler(handler)
    yield handler.lines, clock
    log.removeHandler(handler)


def ask(stage: Stage, path: str, error: BaseException) -> str:
    """Return the status, the wait and the text of an answer where the database fails."""
    services = stage.services
    with (
        patch.object(services.store, "get", side_effect=error),
        patch.object(services.files, "is_signed", lambda *_: True),
    ):
        answer = (stage.call if path.startswith(("/api", "/media")) else stage.browse)("GET", path)
    is_json = "json" in answer.headers["Content-Type"]
    shown = answer.text if is_json else " ".join(re.findall(r"(?<=>)[^<>]+(?=</(?:h1|p)>)", answer.text))
    return f"{answer.status_code} {answer.headers.get('Retry-After', '')} {shown}".replace("&#39;", "'")


OURS = "This is a defect in the rehearsal; its terminal shows the details."


@pytest.mark.parametrize(
    ("error", "status", "seconds", "title", "sentence", "line"),
    [
        (BUSY, 503, 5, "Temporarily unavailable", LOCKED, f"{LOCKED} (others)"),
        (FULL_DATABASE, 507, 30, "Temporarily unavailable", FULL, f"{FULL} ({WORDS})"),
        (MemoryError(), 503, 5, "Temporarily unavailable", MACHINE, f"{MACHINE} (MemoryError)"),
        (OSError(errno.ENOENT, "x"), 500, None, "Something went wrong", OURS, ""),
        (DEFECT, 500, None, "Something went wrong", OURS, ""),
    ],
    ids=["busy", "full", "memory", "missing", "defect"],
)
def test_an_outage_is_an_answer_and_one_line(
    error: BaseException,
    status: int,
    seconds: int | None,
    title: str,
    sentence: str,
    line: str,
    stage: Stage,
    written: Any,
) -> None:
    lines, clock = written
    text = f"{sentence} Try again in {seconds} seconds." if seconds else sentence
    for path, shown in (
        ("/api/challenges/challenge/1/", json.dumps({"error": text}, separators=(",", ":"))),
        ("/challenges/1", f"{title} {text}"),
        ("/media/x/y", json.dumps({"error": text}, separators=(",", ":"))),
    ):
        clock.now += 1.0
        assert ask(stage, path, error) == f"{status} {seconds or ''} {shown}"
    assert lines == ([f"{NOW} answers {status}: {line}"] if line else [])


def test_only_outages_are_none(stage: Stage) -> None:
    assert unless_away(lambda: 3) == 3
    assert unless_away(fail(BusyError("x"))) is None
    assert outcome(lambda: unless_away(fail(DEFECT))) == "ValueError: x"
    for error, shown in ((Refusal(400, {"detail": math.nan}), "{'detail': nan}"), (Refusal(409, {"detail": "\ud800ä"}), r"{'detail': '\\ud800\\xe4'}")):  # fmt: skip
        assert ask(stage, "/api/challenges/challenge/1/", error) == f'{error.status}  {{"error":"{shown}"}}'


# ── what works beside the server ────────────────────────────────────────────


def health(stage: Stage) -> tuple[int, Any]:
    """Return the status of the page of health, and what waits."""
    answer = stage.call("GET", "/healthz")
    page = json.loads(answer.text)
    if "loops" not in page:
        return answer.status_code, page
    assert page["since"] == NOW
    assert [(loop["name"], loop["last_turn"]) for loop in page["loops"]] == [("the loop", NOW)] * len(page["loops"])
    return answer.status_code, [page["status"], page["database"], *(loop["waits"] for loop in page["loops"])]


def test_a_loop_continues_after_outages_and_defects(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    lines: list[str] = []
    seen: list[Any] = []
    turns: list[Any] = [True, False, *[BUSY] * 8, True, FULL_DATABASE, BUSY, DEFECT, True]
    beside = Background(stage.services.store, "beside")

    def turn() -> bool:
        if not turns:
            beside.give_up()
            return True
        made = turns.pop(0)
        if isinstance(made, BaseException):
            raise made
        seen.append(health(stage))
        return bool(made)

    close = fail(ValueError("closing"))
    beside._add(turn, close, "the loop")
    stop: Any = SimpleNamespace(is_set=beside._stop.is_set, set=beside._stop.set, wait=pauses.append)
    background_: Any = SimpleNamespace(loops=beside.loops, alive=True)
    stage.services.background = [background_]
    monkeypatch.setattr(background, "write_line", lines.append)
    monkeypatch.setattr(beside, "_stop", stop)
    loop = beside.loops[0]
    beside._run(loop, turn, close)
    fine = (200, ["ok", "answers", ""])
    assert seen == [
        fine,
        fine,
        (503, ["waits", "answers", LOCKED]),
        (503, ["waits", "answers", "the loop failed: ValueError('x')"]),
    ]
    assert pauses == [0.3, 0.3, 0.6, 1.2, 2.4, 4.8, 9.6, 15.0, 15.0, 0.3, 0.6, 1.2]
    waits, continues = f"the loop waits: {LOCKED} (others)", "the loop continues."
    assert lines == [waits, continues, f"the loop waits: {FULL} ({WORDS})", waits, continues]
    assert loop.trouble == "the loop failed: ValueError('closing')"
    failed = [f"[{NOW}] the loop failed: ValueError({word!r})" for word in ("x", "closing")]
    assert stage.services.store.log_lines(0) == failed
    pauses.clear()
    tries = [BUSY, BUSY, None]
    beside._stop = SimpleNamespace(is_set=lambda: False, wait=pauses.append)  # type: ignore[assignment]
    beside._retry_during_outages(lambda: (made := tries.pop(0)) and fail(made)())
    assert (pauses, tries) == ([0.3, 0.6], [])
    for stopped, error in ((True, BUSY), (False, DEFECT)):
        beside._stop = SimpleNamespace(is_set=lambda stopped=stopped: stopped, wait=pauses.append)  # type: ignore[assignment]
        with pytest.raises(type(error)):
            beside._retry_during_outages(fail(error))


def test_the_page_of_health_says_what_waits(stage: Stage) -> None:
    loop = Background(stage.services.store, "beside")
    loop._add(lambda: True, lambda: None, "the loop")
    loop.loops[0].trouble = LOCKED
    for loops, alive, waits in ((loop.loops, True, [LOCKED]), ([], False, [])):
        background_: Any = SimpleNamespace(loops=loops, alive=alive)
        stage.services.background = [background_]
        assert health(stage) == (503, ["waits", "answers", *waits])
    stage.services.background = []
    with patch.object(stage.services.store, "count", side_effect=BUSY):
        assert health(stage) == (503, ["waits", LOCKED])
    hang = patch.object(stage.services.store, "count", side_effect=lambda *_: time.sleep(0.5))
    with hang, patch.object(server, "_LOOK_SECONDS", 0.05):
        assert health(stage) == (503, ["waits", SILENT])
    with patch.object(stage.services.store, "count", side_effect=DEFECT):
        assert health(stage) == (500, {"error": OURS})


# ── transactions ────────────────────────────────────────────────────────────


def test_actions_follow_a_transaction_however_it_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = store.Store(str(tmp_path / "transactions"))
    done: list[str] = []

    def change(name: str, error: Exception | None = None, commits: Exception | None = None) -> None:
        with monkeypatch.context() as patched, kept.write() as session:
            if commits:
                patched.setattr(store.Session, "commit", fail(commits))
            session.add(store.Setting(key=name, value=""))
            for end, committed in (("kept", True), ("undone", False)):
                kept.run_after(lambda end=end: done.append(end), committed=committed)  # type: ignore[misc]
            if error:
                raise error

    for name, options, raised, effects, is_stored in (
        ("good", {}, None, ["kept"], True),
        ("a defect", {"error": ValueError("x")}, "ValueError", ["undone"], False),
        ("refused", {"commits": make_sqlite(1)}, "OperationalError", ["undone"], False),
        ("later", {}, None, ["kept"], True),
    ):
        made = outcome(lambda name=name, options=options: change(name, **options))  # type: ignore[arg-type]
        assert (made and made.partition(":")[0], done) == (raised, effects)
        assert (name in [row.key for row in kept.find(store.Setting)]) is is_stored
        done.clear()
    monkeypatch.setattr(store, "_WAIT_SECONDS", 0.01)
    with kept._lock:
        assert outcome(lambda: change("x")) == "BusyError: other threads write for 0.01 seconds"
    kept.close()
