"""Days of a remote worker with an EvalAI in memory, whose clock advances when somebody waits."""

from __future__ import annotations

import contextlib
import datetime
import io
import itertools
import json
import os
import re
import signal
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

from segjudge.platforms.evalai import routes
from segjudge.platforms.evalai.client import ApiError
from segjudge.remote_challenge_evaluation import journal, monitoring, scoring, services, worker, worker_loop
from segjudge.remote_challenge_evaluation.scorer_process import ScoringOutcome, ScoringRequest
from segjudge.remote_challenge_evaluation.settings import ScoredPhase, WorkerSettings
from segjudge.system.download import GoneError
from segjudge.system.network import StoppedError
from tests.answers import count_repeats

GOOD = [{"split": "test", "show_to_participant": True, "accuracies": {"J": 0.5, "F": 0.25}}]
#: The time at which days begin.
EIGHT = 1767600000.0
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
        self.now = EIGHT
        self._events: list[tuple[float, int, Callable[[], object]]] = []
        self._numbers = itertools.count()

    def at(self, time: str, event: Callable[[], object]) -> None:
        hours, minutes, seconds = (int(part) for part in f"{time}:00".split(":")[:3])
        self._events.append((EIGHT + (hours - 8) * 3600 + minutes * 60 + seconds, next(self._numbers), event))
        self._events.sort()

    def wait(self, seconds: float) -> None:
        until = self.now + seconds
        while self._events and self._events[0][0] <= until:
            moment, _, event = self._events.pop(0)
            self.now = max(self.now, moment)
            event()
        self.now = max(self.now, until)

    def monotonic(self) -> float:
        return self.now - EIGHT + 5000.0

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
        texts = {name: value for name, value in body.items() if value and name not in ("submission", "challenge_phase")}
        results = json.loads(texts.pop("result", "null"))
        sent = [*([json.dumps(results)] if results else []), *(f"{name} {value!r}" for name, value in texts.items())]
        self._say(f"      → {number} of phase {body['challenge_phase']}: {', '.join(sent)}")
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
            with contextlib.redirect_stderr(self.log):
                self.loop.run()
        except Exception as error:  # noqa: BLE001 - what the process says at its end
            self.say(f"{type(error).__name__}: {error}")

    def check(self, **settings: Any) -> None:
        self.loop = worker_loop.WorkerLoop(replace(self.settings, **settings))
        try:
            self.say("\n".join(self.loop.check()))
        except Exception as error:  # noqa: BLE001
            self.say(f"{type(error).__name__}: {error}")

    def take(self) -> tuple[dict[int, str], list[str]]:
        """Return the steps of each submission and the other events since the last time."""
        text = self.log.getvalue().replace(str(self.folder), "FOLDER").replace("2026-01-05T", "")
        self.log.seek(0)
        self.log.truncate()
        text = re.sub(r"( when serializing \w+ item '\w+')+", "", text)  # Python 3.13 and newer say where
        text = re.sub(r"Traceback .*?(\w+Error: )", r"Traceback … \1", text)
        text = re.sub(r"\ba0{1,6}([0-9a-f]{1,6})\b", r"a\1", text)
        text = _START.sub(
            lambda start: f"{start[1]}  start  {'with the fetched truth' if start[2] else 'as usual'}", text
        )
        return _read_story(_HOOK.sub(r"\1 (and to the hook)", text))

    def read_jobs(self) -> dict[str, list[int]]:
        """Return the submissions of the journal by what it says of them; a usual one has one evaluation and one report."""
        usual = {
            "failures": 0, "lives": 0, "evaluations": 1, "reports": 1, "delays": 0, "owner": None, "report": "null",
        }  # fmt: skip
        jobs: dict[str, list[int]] = {}
        with contextlib.closing(sqlite3.connect(self.folder / "machine" / journal.NAME)) as db:
            db.row_factory = sqlite3.Row
            for row in map(dict, db.execute("SELECT * FROM jobs ORDER BY submission, resumed")):
                end = row["outcome"] or row["state"]
                changed = [f"{row[name]} {name}" for name, value in usual.items() if row[name] != value]
                jobs.setdefault(", ".join([end, *changed]), []).append(row["submission"])
        return jobs

    def list_files(self) -> list[str]:
        return [path.relative_to(self.folder).as_posix() for path in sorted(self.folder.rglob("*")) if path.is_file()]

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
            (monitoring, "datetime"): SimpleNamespace(datetime=Today, timezone=datetime.timezone),
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
        mask = os.umask(0o077)
        try:
            yield day
        finally:
            os.umask(mask)
            for number, handler in handlers.items():
                signal.signal(number, handler)


class Aws:
    """A queue and buckets."""

    def __init__(self, day: Day) -> None:
        self._day, self.answers, self.tags = day, list[Any](), {"truths/a/dev.zip": '"1"'}

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def call(*arguments: Any, **fields: Any) -> Any:
            facts = [
                value.decode() if isinstance(value, bytes) else str(value) for value in (*arguments, *fields.values())
            ]
            self._day.say(f"      {name}: {re.sub(chr(10) + ' *', '', ' '.join(facts))}")
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


# ── what it says ────────────────────────────────────────────────────────────

#: The lines of a usual start, and the usual steps with submission №: others are shown whole.
STARTS = (
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
    "looks at 13 bytes of http://127.0.0.1:1/media/№": "looked at",
    f"scores № in {_FILE[:-11]} within 660 s: submission {_FILE}, codename dev, annotation FOLDER/annotations/dev.zip, "
    "metadata running, memory 4294967296": "scores",
    f"scores № in {_FILE[:-11]} within 660 s: submission {_FILE}, codename dev, annotation FOLDER/machine/annotations/dev.zip, "
    "metadata running, memory 4294967296": "scores by the fetched truth",
    f"scores № in {_FILE[:-11]} within 60 s: submission {_FILE}, codename own, metadata running, memory 4294967296, "
    "script {'python': 'python', 'file': 'evaluate.py', 'root': '.'}, hidden ('secret',)": "scores by its script",
    f"→ № of phase 1: {json.dumps(GOOD)}, submission_status 'FINISHED'": "is finished",
}  # fmt: skip
_START = re.compile(
    r"(?m)^(\S+Z)  start {18}"
    + r"\n\S+Z  start {18}".join(map(re.escape, STARTS)).replace("FOLDER/", "FOLDER/(machine/)?")
    + "$"
)
_FAILED = re.compile(r"→ (\d+) of phase \d: submission_status 'FAILED'(?:, stdout '(.*)')?, stderr ['\"](.*)['\"]")
_INCIDENT = re.compile(
    r"Scoring failed; your submission is not the cause. Tell the organisers the incident number (a\w+)."
)
_LOG = re.compile(
    r"(\S+)\.\d+Z  (\w.*?)  +(?:(.*) \(submission (\d+)(?:, (.*))?\)|submission (\d+)(?:, (?:state |outcome )?(.*))?)"
)
_EVENT = re.compile(r"(\S+)\.\d+Z  (\S+(?: \S+)*)(?: {2,}(.*))?")
_HOOK = re.compile(r"(?m)^(\S+  ALERT +(.*))\n      → http://hook: segjudge worker: \2$")


def _read_story(text: str) -> tuple[dict[int, str], list[str]]:
    """Return the steps of each submission, joined by commas, and the lines about none, repeated ones counted."""
    steps: dict[int, list[str]] = {}
    events = list[str]()
    for line in text.splitlines():
        number, step = _read_step(line)
        if step:
            steps.setdefault(int(number), []).append(step)
        else:
            event = _EVENT.fullmatch(line)
            events.append(f"{event[1]} {event[2]}: {event[3] or ''}".removesuffix(": ") if event else line.strip())
    counted = {number: count_repeats("".join(f"{step}\n" for step in each)) for number, each in steps.items()}
    return (
        {number: ", ".join(each.splitlines()) for number, each in counted.items()},
        count_repeats("".join(f"{event}\n" for event in events)).splitlines(),
    )


def _read_step(line: str) -> tuple[str, str]:
    """Return the submission of a line, and its usual step or its words of the log; or neither."""
    if log := _LOG.fullmatch(line):
        time, event, why, of, more, alone, state = log.groups()
        events = (
            f"{event} {state or ''} {time}" if alone else f"{event} {time}: {why.strip()}{f' ({more})' if more else ''}"
        )
        return (of or alone), events.replace("  ", " ")
    if alert := re.match(r"\S+  ALERT +submission (\d+): (incident (a\w+))?(.*)", line):
        return alert[1], f"ALERT of {alert[3]}" if alert[
            3
        ] and "to the hook" in line else f"ALERT {alert[2] or ''}{alert[4]}"
    if failed := _FAILED.fullmatch(line.strip()):
        why = _INCIDENT.sub(r"\1", failed[3])
        return failed[1], f"fails: {why}{f' (stdout: {failed[2]})' if failed[2] else ''}"
    for number in re.findall(r"(?<=→ )\d+|(?<=scores )\d+|(?<=/media/)\d+|(?<=_pk\": )\d+", line)[:1]:
        usual = {step.replace("№", number): word for step, word in _STEPS.items()}
        if word := usual.get(re.sub(r"(?<=-)a[0-9a-f]+\b", "a0", line.strip())):
            return number, word
        if sent := re.match(rf" +→ {number} of (phase \d: .*)", line):
            return number, f"sends for {sent[1]}"
    return "", ""
