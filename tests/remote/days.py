"""Days of a remote worker with an EvalAI in memory, whose clock advances when somebody waits, as one text."""

from __future__ import annotations

import contextlib
import datetime
import errno
import io
import itertools
import json
import os
import re
import signal
import sqlite3
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import requests

from segjudge.platforms.evalai import routes
from segjudge.platforms.evalai.client import ApiError
from segjudge.remote_challenge_evaluation import journal, monitoring, scoring, services, worker, worker_loop
from segjudge.remote_challenge_evaluation.download import GoneError, TooLargeError
from segjudge.remote_challenge_evaluation.scorer_process import ScoringOutcome, ScoringRequest
from segjudge.remote_challenge_evaluation.settings import ScoredPhase, WorkerSettings
from segjudge.system.network import StoppedError, WireError
from tests.answers import count_repeats

from .days_in_trouble import DAYS as IN_TROUBLE
from .days_in_trouble import GOOD

FILE = Path(__file__).parent.parent / "golden/worker_days.txt"
#: Eight o'clock.
_START = 1767600000.0
PHASES: dict[str, ScoredPhase] = {
    "dev": {"annotation": "dev.zip", "labels": {"test": ["J", "F"]}, "seconds": 600.0},
    "own": {
        "annotation": "", "labels": {"all": ["AP"], "secret": ["AP"]}, "seconds": 60.0, "hidden": ["secret"],
        "script": {"python": "python", "file": "evaluate.py", "root": "."}, "needs_annotation": False,
    },
}  # fmt: skip


class Clock:
    """Time that advances by waiting, and events meanwhile."""

    def __init__(self) -> None:
        self.now = _START
        self._events: list[tuple[float, int, Callable[[], object]]] = []
        self._numbers = itertools.count()

    def at(self, time: str, event: Callable[[], object]) -> None:
        hours, minutes, seconds = (int(part) for part in f"{time}:00".split(":")[:3])
        self._events.append((_START + (hours - 8) * 3600 + minutes * 60 + seconds, next(self._numbers), event))
        self._events.sort()

    def wait(self, seconds: float) -> None:
        until = self.now + seconds
        while self._events and self._events[0][0] <= until:
            moment, _, event = self._events.pop(0)
            self.now = max(self.now, moment)
            event()
        self.now = max(self.now, until)

    def monotonic(self) -> float:
        return self.now - _START + 5000.0

    @property
    def text(self) -> str:
        return datetime.datetime.fromtimestamp(self.now, datetime.UTC).isoformat().partition("+")[0]


class Server:
    """EvalAI: submissions, a queue whose messages return after 30 seconds, and faults of its answers."""

    def __init__(self, clock: Clock, say: Callable[[str], object]) -> None:
        self._clock, self._say = clock, say
        self.rows: dict[int, dict[str, Any]] = {}
        self.messages: list[dict[str, Any]] = []
        self.phases = [{"id": 1, "codename": "dev"}, {"id": 2, "codename": "own", "disable_logs": True}]
        self.splits: list[dict[str, Any]] = [
            {"challenge_phase": 1, "leaderboard_schema": {"labels": ["J", "F"]}},
            {"challenge_phase": 2, "leaderboard_schema": {"labels": ["AP"]}},
            {"challenge_phase": 2, "leaderboard_schema": {"labels": ["AP"]}},
        ]
        self.challenge: dict[str, Any] = {"id": 1, "title": "Things", "remote_evaluation": True}
        #: Words of a call, how often it goes wrong, and how.
        self.troubles: list[tuple[str, int, Exception]] = []
        self.calls: Counter[str] = Counter()
        self.answered_at = 0.0
        self._handles = itertools.count(1)

    def send(self, number: int, phase: int = 1, *, silent: bool = False, **fields: Any) -> None:
        row = {"id": number, "challenge_phase": phase, "status": "submitted", "input_file": f"/media/{number}"}
        self.rows[number] = {**row, "submitted_at": f"{self._clock.text}Z", **fields}
        if not silent:
            self.put({"submission_pk": number, "phase_pk": phase, "challenge_pk": 1})

    def put(self, body: object) -> None:
        self.messages.append({"body": body, "handle": f"handle {next(self._handles)}", "hidden_until": 0.0})

    def fail(
        self, requests: str, times: int, status: int, message: str = "", body: object = None, wait: float = 0
    ) -> None:
        self.troubles.append((requests, times, ApiError(status, message or f"answers {status}", body, wait or None)))

    def answer(self, method: str, route: str, values: dict[str, Any], options: dict[str, Any]) -> Any:
        path = routes.path(route, **values)
        what = f"{method} {re.sub('[0-9]+', 'N', path)}"
        self.calls[what] += 1
        body = options.get("json") or options.get("data") or {}
        call = f"{method} {path} {body}"
        for index, (message, times, error) in enumerate(self.troubles):
            if message in call:
                self.troubles[index : index + 1] = [(message, times - 1, error)] if times > 1 else []
                raise error
        self.answered_at = self._clock.now
        return getattr(self, f"_{method.lower()}")(route, values, body)

    def _get(self, route: str, values: dict[str, Any], _body: object) -> Any:
        if route == routes.QUEUE:
            for message in self.messages:
                if message["hidden_until"] <= self._clock.now:
                    message["hidden_until"] = self._clock.now + 30
                    return {"body": message["body"], "receipt_handle": message["handle"]}
            return {"body": None, "receipt_handle": None}
        if route == routes.SUBMISSION:
            if values["submission"] not in self.rows:
                raise ApiError(404, f"Submission {values['submission']} does not exist", {"error": "none"})
            return dict(self.rows[values["submission"]])
        return {
            routes.SUBMISSIONS_OF_CHALLENGE: [dict(row) for row in self.rows.values()],
            routes.PHASES_OF_HOST: self.phases,
            routes.PHASE_SPLITS: self.splits,
            routes.CHALLENGE_OF_QUEUE: self.challenge,
        }[route]

    def _patch(self, _route: str, _values: object, body: dict[str, Any]) -> Any:
        row = self.rows[body["submission"]]
        row.update(status="running", started_at=f"{self._clock.text}Z")
        self._say(f"      → {body['submission']} is {body['submission_status']}, by {body['job_name']}")
        return dict(row)

    def _put(self, _route: str, _values: object, body: dict[str, Any]) -> Any:
        self._clock.wait(1)
        number = body["submission"]
        texts = {name: value for name, value in body.items() if name not in ("submission", "challenge_phase")}
        self._say(f"      → {number} of phase {body['challenge_phase']}: {json.dumps(texts, ensure_ascii=False)}")
        if not self.rows[number].pop("lies", False):
            self.rows[number]["status"] = body["submission_status"].lower()
        return {"success": "taken"}

    def _post(self, _route: str, _values: object, body: dict[str, Any]) -> Any:
        (message,) = [each for each in self.messages if each["handle"] == body["receipt_handle"]] or [None]
        if message:
            self.messages.remove(message)
            self._say(f"      → message deleted: {json.dumps(message['body'])}")
        return {"success": "gone"}


class Day:
    """A server, a machine with its files, and the workers that run on it one after another."""

    def __init__(self, folder: Path, log: io.StringIO) -> None:
        self.clock, self.log, self.folder = Clock(), log, folder
        self.server = Server(self.clock, self.say)
        #: What comes of a file, or of its scoring, try after try; the last one stays.
        self.files: dict[int, list[Any]] = {}
        self.outcomes: dict[int, list[Any]] = {}
        (folder / "annotations").mkdir(exist_ok=True)
        (folder / "annotations/dev.zip").touch()
        self.settings = WorkerSettings(
            "token", "http://127.0.0.1:1", "queue", 1, save_dir=str(folder / "machine"),
            annotations=str(folder / "annotations"), poll_seconds=10, requests_per_minute=1000, webhook="http://hook",
            max_submission_bytes=1000,
        )  # fmt: skip
        self.loop: Any = None
        self.text = ""

    def say(self, text: str) -> None:
        self.log.write(text + "\n")

    def at(self, time: str, event: Callable[[], object]) -> None:
        self.clock.at(time, event)

    def stop_at(self, time: str) -> None:
        self.clock.at(time, self.stop)

    def stop(self) -> None:
        self.loop._stop.ask()

    def work(self, *, once: bool = False, **settings: Any) -> None:
        """Run a worker to its end, by whatever cause."""
        self.loop = worker_loop.WorkerLoop(replace(self.settings, **settings), once=once)
        try:
            self.loop.run()
        except Exception as error:  # noqa: BLE001 - what the process says at its end
            self.say(f"{type(error).__name__}: {error}")

    def check(self, **settings: Any) -> None:
        self.loop = worker_loop.WorkerLoop(replace(self.settings, **settings))
        try:
            self.say("\n".join(self.loop.check()))
        except Exception as error:  # noqa: BLE001
            self.say(f"{type(error).__name__}: {error}")

    def tell(self) -> None:
        """Note the journal, the day's calls, and the monitoring."""
        with contextlib.closing(sqlite3.connect(self.folder / "machine" / journal.NAME)) as db:
            names = "submission, resumed, phase, state, owner, failures, lives, evaluations, reports, report, outcome, delays"
            rows = [*db.execute(f"SELECT {names}, next_at, changed_at FROM jobs ORDER BY submission, resumed")]
            numbers = [*db.execute("SELECT key, value FROM numbers ORDER BY key")]
        self.say(f"journal: {names}, due, changed")
        usual = ("done", None, 0, 0, 1, 1, "null", "finished", 0)
        if finished := [str(row[0]) for row in rows if row[3:-2] == usual]:
            self.say(f"  usual, finished: {', '.join(finished)}")
        for row in rows:
            if row[3:-2] == usual:
                continue
            due, changed = (round(value - _START, 1) if value else value for value in row[-2:])
            self.say(f"  {', '.join(str(value) for value in (*row[:-2], due, changed))}")
        self.say(
            f"numbers: {', '.join(f'{key} {value - (_START if value > 1e9 else 0):.1f}' for key, value in numbers)}"
        )
        self.say(f"calls: {', '.join(f'{count} {call}' for call, count in sorted(self.server.calls.items()))}")
        left = [path.relative_to(self.folder).as_posix() for path in sorted(self.folder.rglob("*")) if path.is_file()]
        self.say(f"files: {', '.join(left)}")
        self.server.calls.clear()

    def look(self) -> None:
        """Note the content of the pages on loopback."""
        known = journal.Journal(str(self.folder / "machine"))
        for seconds in (0, 299, 300):
            began = self.clock.monotonic() - seconds
            before = {*threading.enumerate()}
            server = monitoring.serve_health(0, lambda: known, lambda: began, lambda: self.server.answered_at)  # noqa: B023
            self.say(f"ends with the process: {[each.daemon for each in {*threading.enumerate()} - before]}")
            for path in ("healthz", "metrics", "else")[: 3 if not seconds else 1]:
                answer = requests.get(f"http://127.0.0.1:{server.server_address[1]}/{path}", timeout=60)
                self.say(f"{path}: {answer.status_code} {answer.headers['Content-Type']}\n{answer.text}")
            server.shutdown()
            server.server_close()
        known.close()
        server = monitoring.serve_health(0, _locked, lambda: 0.0, lambda: 0.0)
        answer = requests.get(f"http://127.0.0.1:{server.server_address[1]}/metrics", timeout=60)
        self.say(f"metrics: {answer.status_code} {answer.text}")
        server.shutdown()
        server.server_close()

    # ── what stands in the place of the network and of scorers ──────────────

    def make_client(self, host: str, token: str, before: Any, watch: Any) -> Any:
        assert (host, token) == ("http://127.0.0.1:1", "token")

        def call(method: str, route: str, values: Any = None, *, urgent: bool = True, **options: Any) -> Any:
            before(urgent)
            try:
                watch(urgent)
            except StoppedError:
                raise ApiError(0, "asked to stop") from None
            return self.server.answer(method, route, values or {}, options)

        return _Client(call, self)

    def download(self, address: Callable[[], str], path: str, limit: int, sleep: Any, watch: Any) -> None:
        watch()
        url = address()
        if not url:
            raise GoneError("no address", lasting=True)
        number = int(url.rpartition("/")[2])
        self.say(f"      downloads {url}, at most {limit} bytes, as {self._shorten(path)}")
        sleep(2)
        tries = self.files.get(number, [b"a file"])
        content = tries.pop(0) if len(tries) > 1 else tries[0]
        if isinstance(content, Exception):
            raise content
        with open(path, "xb") as file:
            file.write(content)

    def fetch_head(self, url: str, size: int, watch: Any) -> bytes:
        watch()
        content = self.files.get(int(url.rpartition("/")[2]), [b"a file"])[0]
        self.say(f"      looks at {size} bytes of {url}")
        if isinstance(content, Exception):
            raise content
        return bytes(content[:size])

    def score(self, request: ScoringRequest, folder: str, seconds: float, lock: int, is_over: Any) -> ScoringOutcome:
        assert os.fstat(lock).st_size == 0
        number = request.metadata["id"]
        facts = {
            **vars(request),
            "submission": self._shorten(request.submission),
            "metadata": request.metadata["status"],
        }
        facts["annotation"] = request.annotation.replace(str(self.folder), "FOLDER")
        message = ", ".join(f"{name} {value}" for name, value in facts.items() if value not in ("", None, ()))
        self.say(f"      scores {number} in {self._shorten(folder)} within {seconds:g} s: {message}")
        tries = self.outcomes.get(number, [ScoringOutcome(GOOD)])
        outcome = tries.pop(0) if len(tries) > 1 else tries[0]
        for _ in range(10):
            self.clock.wait(0.5)
            if is_over():
                return ScoringOutcome(is_handed_back=True)
        if isinstance(outcome, BaseException):
            raise outcome
        assert isinstance(outcome, ScoringOutcome)
        return outcome

    def _shorten(self, path: str) -> str:
        return path.replace(str(self.folder), "FOLDER")

    def post(self, address: str, text: str, _log: object, watch: Callable[[], None]) -> None:
        watch()
        self.say(f"      → {address}: {text}")


class _Client:
    def __init__(self, call: Callable[..., Any], day: Day) -> None:
        self.call, self._day = call, day

    def now(self) -> float:
        return self._day.clock.now

    @property
    def answered_at(self) -> float:
        return self._day.server.answered_at

    def fetch_rows(self) -> None:
        raise AssertionError


class _Refusing:
    def __getattr__(self, name: str) -> Any:
        raise ZeroDivisionError(name * 20)


def _locked() -> Any:
    raise journal.JournalError("locked")


@contextlib.contextmanager
def start_day() -> Iterator[Day]:
    """Yield a day with its own clock, tokens and waits."""
    log, tokens = io.StringIO(), itertools.count(0xA0000001)
    handlers = {number: signal.getsignal(number) for number in services._SIGNALS}
    memory = "/dev/shm" if os.path.isdir("/dev/shm") else None  # a journal waits for its disk
    with tempfile.TemporaryDirectory(prefix="segjudge-", dir=memory) as folder, contextlib.ExitStack() as ends:
        day = Day(Path(folder), log)
        ends.enter_context(contextlib.chdir(folder))
        clock = SimpleNamespace(
            time=lambda: day.clock.now, monotonic=day.clock.monotonic, sleep=day.clock.wait, strftime=lambda _: "NOW"
        )
        secrets = SimpleNamespace(token_hex=lambda size: f"a{next(tokens) % 0xA0000000:0{2 * size - 1}x}")

        class Today(datetime.datetime):
            @classmethod
            def now(cls, tz: Any = None) -> Any:
                return cls.fromtimestamp(day.clock.now, tz)

        for module in (journal, monitoring, scoring, services, worker, worker_loop):
            ends.enter_context(mock.patch.object(module, "time", clock))
        for module in (journal, scoring):
            ends.enter_context(mock.patch.object(module, "secrets", secrets))
        replaced: dict[tuple[Any, str], Any] = {
            (monitoring, "datetime"): SimpleNamespace(datetime=Today, UTC=datetime.UTC),
            (services, "select"): SimpleNamespace(select=lambda _r, _w, _x, seconds: day.clock.wait(seconds)),
            (scoring, "download"): day.download, (scoring, "fetch_head"): day.fetch_head,
            (scoring, "run_scorer"): day.score, (worker_loop, "Client"): day.make_client,
            (worker_loop, "read_phases"): lambda *_: PHASES,
            (worker_loop, "read_annotations"): lambda *_: ["annotations of dev: read"],
            (worker_loop, "forbid_inspection"): lambda: None, (worker_loop, "send_to_webhook"): day.post,
            (worker_loop, "_has_process_limit"): lambda: True,
        }  # fmt: skip
        for (module, name), value in replaced.items():
            ends.enter_context(mock.patch.object(module, name, value))
        ends.enter_context(mock.patch("random.uniform", return_value=1.0))
        ends.enter_context(contextlib.redirect_stderr(log))
        mask = os.umask(0o077)
        try:
            yield day
        finally:
            os.umask(mask)
            for number, handler in handlers.items():
                signal.signal(number, handler)
            text = log.getvalue().replace(folder, "FOLDER").replace("2026-01-05T", "")
            text = re.sub(r"( when serializing \w+ item '\w+')+", "", text)  # Python 3.13 and newer say where
            day.text = re.sub(r"Traceback .*?(\w+Error: )", r"Traceback … \1", text)


# ── the days ────────────────────────────────────────────────────────────────


def a_day_with_submissions_of_every_outcome(day: Day) -> None:
    server, refused = day.server, ScoringOutcome(refused="Send masks.", stdout="out", stderr="err\n")
    day.outcomes = {
        1: [ScoringOutcome(GOOD, {"frames": 3}, stdout="three\n", stderr="a warning", log="a line\nand one")],
        2: [refused], 3: [ScoringOutcome(is_late=True)],
        4: [ScoringOutcome(incident="the scorer died", stdout="half")],
        5: [ScoringOutcome(incident="an accident"), ScoringOutcome([{"split": "all", "accuracies": {"AP": 1}}], {"at": {1}}, stdout="no")],
        9: [refused], 10: [ScoringOutcome([{"split": "test", "accuracies": {"Other": 1}}])],
        12: [ZeroDivisionError("a defect")], 13: [OSError(errno.ENOSPC, "No space left on device"), ScoringOutcome(GOOD)],
        15: [ScoringOutcome(is_handed_back=True), ScoringOutcome(GOOD)],
        16: [WireError("a line that broke"), ScoringOutcome(GOOD)],
    }  # fmt: skip
    day.files = {
        6: [b"file_content"], 7: [TooLargeError("x")], 8: [GoneError("404", lasting=True)],
        9: [b"first", b"first", b"other", b"first"],
        11: [GoneError("away", lasting=False)] * 3 + [b"at last"],
        17: [b"one", GoneError("not again", lasting=False), b"one", b"one"],
    }  # fmt: skip
    day.outcomes[17] = [refused]
    sent = {number: (2 if number == 5 else 1) for number in range(1, 18)}
    for number, phase in sent.items():
        day.at(f"8:{number:02}", lambda number=number, phase=phase: server.send(number, phase))  # type: ignore[misc]
    day.at("8:20", lambda: server.send(20, submission_input_file="http://storage/20", input_file="/media/1"))
    day.at("8:21", lambda: server.send(21, status="cancelled"))
    day.at("8:22", lambda: server.send(22, status="submitting"))
    day.at("8:22:59", server.messages.clear)
    day.at("8:23", lambda: server.put({"submission_pk": "1"}))
    day.at("8:23:30", lambda: server.put({"submission_pk": 99}))
    day.at("8:24", lambda: server.put({"submission_pk": -1}))
    day.at("8:24:50", lambda: server.put(["x" * 300]))
    day.at("8:25", lambda: server.rows[2].update(status="resuming", rerun_resumed_at="2026-01-05T08:25:00Z"))
    day.at("8:25", lambda: server.put({"submission_pk": 2}))
    day.at("8:26", lambda: server.send(26, 9))
    day.at("8:28", lambda: server.phases.append({"id": 9, "codename": "late"}))
    day.at("8:30", server.messages.clear)
    day.at("8:30", lambda: server.rows.pop(26))
    day.at("8:31", lambda: server.send(31))
    day.at("8:31", lambda: server.send(32))
    day.at("8:31:20", lambda: server.rows[32].update(status="cancelled"))
    day.stop_at("8:33")
    day.work()
    day.tell()
    day.look()


def a_day_with_a_server_in_trouble(day: Day) -> None:
    server = day.server
    day.at("8:01", lambda: server.fail("/queues/", 3, 500))
    day.at("8:02", lambda: server.fail("/queues/", 1, 429, "slower", {"detail": "slower"}, 90))
    day.at("8:04", lambda: server.fail("submission/4 ", 6, 0, "does not answer"))
    day.at("8:04", lambda: server.send(4))
    day.at("8:06", lambda: server.fail("PUT", 2, 503))
    day.at("8:06", lambda: server.send(6))
    day.at("8:08", lambda: server.fail("PUT", 3, 400, "no such label", {"error": "no such label"}))
    day.at("8:08", lambda: server.send(8))
    day.at("8:10", lambda: server.fail("PUT", 1, 400, "perhaps", {"error": "perhaps"}))
    day.at("8:10", lambda: server.send(10))
    day.at("8:12", lambda: server.fail("PUT", 1, 404, "not here", {"error": "not here"}))
    day.at("8:12", lambda: server.send(12))
    day.at("8:14", lambda: server.fail("submission/14 ", 3, 403, "not yours", {"detail": "not yours"}))
    day.at("8:14", lambda: server.send(14))
    day.at("8:16", lambda: server.fail("PATCH", 1, 403, "not now", {"detail": "not now"}))
    day.at("8:16", lambda: server.send(16))
    day.at("8:18", lambda: server.send(18, lies=True))
    day.at("8:20", lambda: server.fail("POST", 9, 500))
    day.at("8:20", lambda: server.send(20))
    day.at("8:23", lambda: server.fail("GET /api/challenges/challenge/queues/queue/", 1, 502))
    day.at("8:23", lambda: server.fail("/api/jobs/challenge/queues/", 1, 401, "who?", {"detail": "who?"}))
    day.at("8:25", lambda: server.troubles.append(("/queues/", 1, ZeroDivisionError("of ours"))))
    day.at("8:26", lambda: server.send(26))
    day.at("8:26:03", lambda: server.rows[26].update(challenge_phase=2))
    day.at("8:28", lambda: server.send(28))
    day.at("8:28:10", day.stop)
    day.outcomes = {26: [ScoringOutcome(GOOD), ScoringOutcome([{"split": "all", "accuracies": {"AP": 1}}])]}
    day.work(grace_seconds=2.0)
    day.say("── it goes on the next morning")
    day.at("8:30", lambda: server.fail("", 99, 401, "Invalid token", {"detail": "Invalid token"}))
    day.work()
    day.tell()


def a_day_on_which_things_got_lost(day: Day) -> None:
    server, clock = day.server, day.clock
    server.send(1, silent=True, submitted_at="2026-01-05T07:40:00Z")  # its message is lost
    server.send(2, silent=True, submitted_at="2026-01-05T07:50:00")  # not yet for long enough
    server.send(3, silent=True, submitted_at="2026-01-05T06:30:00Z")  # an upload that may still come
    server.send(4, silent=True, submitted_at="2026-01-05T05:30:00Z")  # and one that does not
    server.send(5, silent=True, status="running", started_at="2026-01-05T07:30:00Z")  # another machine's
    server.send(6, silent=True, status="running", started_at="2026-01-05T07:55:00Z")
    server.send(7, silent=True, status="archived", submitted_at="2026-01-04T07:40:00Z")
    server.send(8, 7, silent=True, submitted_at="2026-01-04T07:40:00Z")  # of a phase that is not scored here
    server.send(9, silent=True, submitted_at="nonsense")
    server.send(10, silent=True, submission_input_file="http://storage/10", submitted_at="2026-01-05T07:00:00Z")
    server.send(12, silent=True, submitted_at="2026-01-05T07:00:00Z")  # whose file cannot be looked at
    day.files = {
        3: [b"file_content"],
        4: [b"file_content"],
        1: [b"a file"],
        12: [WireError("a line that broke"), b"a file"],
    }
    server.send(11, silent=True, lies=True, submitted_at="2026-01-05T07:00:00Z")  # whose result is not taken
    day.at("8:12", lambda: day.stop_at("8:20"))
    day.work(sweep_seconds=120)
    clock.now += 3600
    day.stop_at("9:40")
    day.work(sweep_seconds=300)
    day.tell()


class Aws:
    """A queue and buckets."""

    def __init__(self, day: Day) -> None:
        self._day, self.answers, self.tags = day, list[Any](), {"truths/a/dev.zip": '"1"'}

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def call(*arguments: Any, **fields: Any) -> Any:
            shown = {key: value.decode() if isinstance(value, bytes) else value for key, value in fields.items()}
            self._day.say(f"      → {name} {[self._day._shorten(str(word)) for word in arguments]} {shown}")
            if name == "head_object":
                return {"ETag": self.tags[f"{fields['Bucket']}/{fields['Key']}"]}
            if name == "download_file":
                Path(arguments[2]).write_text("a truth")
            if name != "receive_message":
                return {}
            answer = self.answers.pop(0) if self.answers else {}
            if isinstance(answer, Exception):
                raise answer
            return answer

        return call


def a_day_with_a_queue_and_buckets_of_the_hosts_own(day: Day) -> None:
    aws = Aws(day)

    def message(number: int, body: str) -> dict[str, Any]:
        return {"Messages": [{"Body": body, "ReceiptHandle": f"handle {number}"}]}

    for number in (1, 2):
        day.server.send(number, silent=True)
    day.outcomes[2] = [ScoringOutcome(incident="an accident")]
    aws.answers = [message(1, '{"submission_pk": 1}'), message(2, '{"submission_pk": 2}'), message(3, "not JSON"),
                   ZeroDivisionError("x" * 400), message(4, "not JSON"), {"Messages": []}]  # fmt: skip
    terms = {
        "sqs_queue_url": "https://queue",
        "artifacts": "s3://kept/of/",
        "annotations": "s3://truths/a",
        "webhook": "",
    }
    with mock.patch.object(services, "_aws_client", return_value=aws):
        day.stop_at("8:01")
        day.work(**terms)
        day.say("── and again, with another truth")
        aws.tags = {"truths/a/dev.zip": '"2"'}
        day.work(**terms, once=True)
        day.tell()
        day.say("── with the same truth, and asked to stop while the queue is")
        aws.answers = [StoppedError("asked to stop"), *[{}] * 3]
        day.at("8:04", day.stop)
        day.work(**terms)
        queue = services.HostQueue(day.settings, monitoring.Log("pretty"), lambda: None)
        message, forms = services.QueueMessage({}, "handle 5"), (aws, _Refusing())
        for queue._sqs in forms:
            waits = iter((False, False, True))
            queue._send_heartbeats(message, SimpleNamespace(wait=lambda _, waits=waits: next(waits)))  # type: ignore[arg-type]
            queue.acknowledge_end(message)

    def refuse(_service: str) -> Any:
        raise ZeroDivisionError("no access")

    with mock.patch.object(services, "_aws_client", refuse):
        day.work(annotations="s3://truths")
        day.work(sqs_queue_url="https://queue")
        services.upload_report("s3://kept", 1, {"refused": "x"}, monitoring.Log("pretty"))
        services.upload_report("", 1, {"refused": "x"}, monitoring.Log("pretty"))


def a_single_run(day: Day) -> None:
    server = day.server
    for number in (1, 2, 3):
        server.send(number)
    server.send(4, 8)
    server.send(5)
    day.files = {5: [GoneError("away", lasting=False)]}
    day.work(once=True, requests_per_minute=12)
    day.say("── and again")
    day.files = {}
    server.put({"submission_pk": "nothing"})
    day.work(once=True)
    day.tell()


def a_machine_on_which_workers_died(day: Day) -> None:
    server = day.server
    for number in range(1, 11):
        server.send(number, silent=True, status="running")
    server.rows[8]["status"], server.rows[9]["challenge_phase"], server.rows[10]["challenge_phase"] = "cancelled", 2, 3
    day.at("8:00", lambda: server.phases.append({"id": 3, "codename": "late"}))
    left = journal.Journal(str(day.folder / "machine"))
    for number in range(1, 11):
        left.claim(number, "", 3 if number == 10 else 1)
    left.close()
    changes = {
        1: "state = 'begun', lives = 12", 2: "state = 'begun', lives = 11", 3: "state = 'scored', lives = 40, report = ?",
        4: "delays = 59, lives = 1", 5: "state = 'scored', delays = 120, report = ?", 6: "state = 'scored', report = '[]'",
        7: "next_at = 1767600300, delays = 6",
    }  # fmt: skip
    with contextlib.closing(sqlite3.connect(day.folder / "machine" / journal.NAME)) as db, db:
        for number, change in changes.items():
            values = ('{"refused": "as it was"}',) if "?" in change else ()
            db.execute(f"UPDATE jobs SET {change} WHERE submission = {number}", values)
    server.fail("submission/5 ", 9, 404, "not there", {"error": "not there"})
    server.fail("submission/4 ", 1, 404, "not there", {"error": "not there"})
    day.files = {7: [GoneError("away", lasting=False)]}
    (day.folder / "machine/submissions/9-a00000ff").mkdir(parents=True)
    day.stop_at("8:20")
    day.work(sweep_seconds=1e6)
    day.tell()


def starts_that_fail(day: Day) -> None:
    server = day.server
    day.check()
    day.check(annotations="/nowhere")
    day.check(save_dir=str(day.folder / "annotations/dev.zip/machine"))
    right = dict(server.challenge)
    for change in ({"id": 7}, {"is_docker_based": True}, {"remote_evaluation": False}):
        server.challenge = {**right, **change}
        day.check()
    server.challenge = right
    server.fail("/queues/", 1, 400, "there is no queue", {"error": "there is no queue"})
    day.check()
    server.fail("/queues/", 1, 401, "Invalid token", {"detail": "Invalid token"})
    day.check()
    server.fail("phases", 9, 404, "no phases", {"error": "no phases"})
    day.check()
    server.troubles.clear()
    server.phases.append({"id": 3, "codename": "more"})
    server.splits = server.splits[:2]
    day.check()
    server.splits[0]["leaderboard_schema"] = {"labels": ["J", "Other"]}
    server.splits[1:] = [{"challenge_phase": 2}, {"challenge_phase": "2"}]
    server.phases.pop()
    day.check()
    day.work()
    day.say("── refusals of a proxy, and of EvalAI")
    server.splits[0]["leaderboard_schema"] = {"labels": ["F", "J"]}
    server.fail("/queues/", 2, 403, "no entry")
    day.stop_at("8:01")
    day.work()
    server.fail("/queues/", 3, 401, "Invalid token", {"detail": "Invalid token"})
    server.fail("/queues/", 1, 403, "no entry")
    server.fail("/queues/", 4, 401, "Invalid token", {"detail": "Invalid token"})
    day.work()
    server.troubles.clear()
    day.say("── a stop while a request has to wait")
    day.stop_at("8:01:40")
    day.work(requests_per_minute=2)
    day.say("── a server that is away for a minute")
    server.splits[0]["leaderboard_schema"] = {"labels": ["F", "J"]}
    server.fail("/queues/", 25, 502)
    day.stop_at("9:30")
    day.clock.now = _START + 5340
    with mock.patch.object(worker_loop, "_has_process_limit", return_value=False):
        day.work(log_format="json")


DAYS = (
    a_day_with_submissions_of_every_outcome, a_day_with_a_server_in_trouble, a_day_on_which_things_got_lost,
    a_day_with_a_queue_and_buckets_of_the_hosts_own, *IN_TROUBLE, a_single_run, a_machine_on_which_workers_died, starts_that_fail,
)  # fmt: skip


def write_day(live: Callable[[Day], None]) -> str:
    with start_day() as day:
        live(day)
    return f"═══ {live.__name__.replace('_', ' ')}\n{count_repeats(_tell_steps(_fold_starts(day.text)))}"


#: The lines of a usual start, and the usual steps with submission №: others are noted whole.
_STARTS = (
    "token: accepted by http://127.0.0.1:1", "queue: queue belongs to challenge 1",
    "challenge: Things, remote evaluation; the token belongs to a host", "phase 1: dev, FOLDER/annotations/dev.zip, test",
    "phase 2: own, its own truth, all, secret",
)  # fmt: skip
_FILE = "FOLDER/machine/submissions/№-a0/submission"
_STEPS = {
    "→ № is RUNNING, by segjudge-a0": "runs",
    '→ message deleted: {"submission_pk": №, "phase_pk": 1, "challenge_pk": 1}': "message deleted",
    '→ message deleted: {"submission_pk": №, "phase_pk": 2, "challenge_pk": 1}': "message deleted",
    f"downloads http://127.0.0.1:1/media/№, at most 1000 bytes, as {_FILE}": "downloads",
    f"downloads http://127.0.0.1:1/media/№, at most 1000 bytes, as {_FILE}-again": "downloads again",
    f"scores № in {_FILE[:-11]} within 660 s: submission {_FILE}, codename dev, annotation FOLDER/annotations/dev.zip, "
    "metadata running, memory 4294967296": "scores",
    f"scores № in {_FILE[:-11]} within 60 s: submission {_FILE}, codename own, metadata running, memory 4294967296, "
    "script {'python': 'python', 'file': 'evaluate.py', 'root': '.'}, hidden ('secret',)": "scores by its script",
    f'→ № of phase 1: {{"submission_status": "FINISHED", "result": {json.dumps(json.dumps(GOOD))}, "metadata": "", '
    '"stdout": "", "stderr": ""}': "is finished",
}  # fmt: skip
_FAILED = re.compile(r'→ (\d+) of phase \d: \{"submission_status": "FAILED", "stdout": "(.*)", "stderr": "(.*)"\}')
_INCIDENT = re.compile(
    r"Scoring failed; your submission is not the cause. Tell the organisers the incident number (a\w+)."
)
_LOG = re.compile(
    r"(\S+)\.\d+Z  (\w.*?)  +(?:(.*) \(submission (\d+)(?:, (.*))?\)|submission (\d+)(?:, (?:state |outcome )?(.*))?)"
)
_HOOK = re.compile(r"(?m)^(\S+  ALERT +(.*))\n      → http://hook: segjudge worker: \2$")


def _fold_starts(text: str) -> str:
    """Return a day's text with each usual start in one line, and each alert that also went to the hook."""
    lines = "".join(rf"\1  start {{18}}{re.escape(line)}\n" for line in _STARTS)[len(r"\1") :]
    text = re.sub(rf"(?m)^(\S+Z){lines}", r"\1  start                  as usual\n", text)
    looks = re.compile(r"(?m)^( {6}looks at 13 bytes of \S+)\n {6}looks at 13 bytes of http://127.0.0.1:1/media/(\d+)$")
    while looks.search(text):
        text = looks.sub(r"\1,\2", text)
    return _HOOK.sub(r"\1 (and to the hook)", text)


def _tell_steps(text: str) -> str:
    """Return a day's text with the usual steps of each try of a submission, and what ends it, in one line."""
    lines, number = list[str](), ""
    for line in text.splitlines():
        now, step = _read_step(line, number)
        if not step:
            lines.append(line)
        elif now == number and lines[-1].startswith(f"      {now}: ") and not step.startswith("continues"):
            lines[-1] += f", {step}"
        else:
            lines.append(f"      {now}: {step}")
        number = now
    return "".join(f"{line}\n" for line in lines)


def _read_step(line: str, number: str) -> tuple[str, str]:
    """Return the submission of a line, and its usual step or its words of the log; or neither."""
    if log := _LOG.fullmatch(line):
        time, event, why, of, more, alone, state = log.groups()
        words = (
            f"{event} {state or ''} {time}" if alone else f"{event} {time}: {why.strip()}{f' ({more})' if more else ''}"
        )
        return (of or alone), words.replace("  ", " ")
    if alert := re.match(r"\S+  ALERT +submission (\d+): incident (a\w+).* \(and to the hook\)", line):
        return alert[1], f"ALERT of {alert[2]}"
    if failed := _FAILED.fullmatch(line.strip()):
        why = _INCIDENT.sub(r"\1", failed[3])
        return failed[1], f"fails: {why}{f' (stdout: {failed[2]})' if failed[2] else ''}"
    for now in re.findall(r"(?<=→ )\d+|(?<=scores )\d+|(?<=/media/)\d+|(?<=_pk\": )\d+", line)[:1]:
        usual = {step.replace("№", now): word for step, word in _STEPS.items()}
        if word := usual.get(re.sub(r"\ba[0-9a-f]{7}\b", "a0", line.strip())):
            return now, word
    return number, ""


if __name__ == "__main__":
    FILE.write_text("".join(map(write_day, DAYS)), encoding="utf-8")
