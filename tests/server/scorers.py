"""The outcome of submissions with hosted workers and with those that run agents, as one text.

The processes, which other tests start, are played here: each submission holds the word for what becomes of its process.
"""

from __future__ import annotations

import errno
import json
import re
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import requests

from segjudge.code_upload import arena
from segjudge.evaluation_script.files.problems import HostError
from segjudge.platforms.evalai.hosted_worker.process import DiedError, HungError, UnloadableError, UnwantedError
from segjudge.server import code_uploads, workers
from segjudge.server.background import Background
from segjudge.server.code_uploads import AgentTable, CodeUploads, read_table
from segjudge.server.models import Challenge, ChallengePhase, LogLine, StoredMessage, Submission
from segjudge.server.store import BusyError
from segjudge.server.workers import JobScorer, Workers
from segjudge.system.sandbox import PROCESSES
from tests.answers import fold

from .scenario import bundle_of, config_of
from .staged import Stage

FILE = Path(__file__).with_name("scorers.txt")
_Turn = Callable[[], bool]


class _Play:
    """A server, and its notes."""

    def __init__(self, stage: Stage, folder: Path) -> None:
        self.stage, self.services, self.folder = stage, stage.services, folder
        self.lines: list[str] = []
        #: What is done while a process is asked.
        self.meanwhile: Callable[[], object] = lambda: None
        self._logged = 0
        #: Descriptions that were noted, without the number of the submission.
        self._described = set[str]()

    def describe(self, step: str, detail: str) -> None:
        """Note a step, and its detail once."""
        shape = re.sub(
            r'(submission(?:s submission)?[ _]|submission_pk"?: )\d+', r"\1", self._settle(f"{step} {detail}")
        )
        self.note(f"  {step}" if shape in self._described else f"  {step} ({detail})")
        self._described.add(shape)

    def write(self) -> str:
        """Return the notes, with each outcome in one line behind the steps to it."""
        lines: list[str] = []
        for line in self.lines:
            is_open = lines and lines[-1].startswith("  ") and not re.search(r"(?:^  |; )\w+, deaths", lines[-1])
            if (line.startswith("  ") and is_open) or line.startswith(("  queued", "  log of")):
                lines[-1] += f"; {line.strip()}"
            else:
                lines.append(line)
        return "\n".join(lines) + "\n"

    def note(self, text: object) -> None:
        self.lines.append(self._settle(str(text)))

    def _settle(self, text: str) -> str:
        """Return the text in one line, without random values."""
        worker = rf"{re.escape(tempfile.gettempdir())}/segjudge-worker-[0-9a-f]{{32}}"
        text = re.sub(worker, "WORKER", text.replace(str(self.folder), "FOLDER"))
        return re.sub(r"\b[0-9a-f]{32,64}\b", "ID", text.replace("\n", " ⏎ "))

    def send(self, challenge: int, phase: int, word: str, name: str = "a.json", who: str = "aurora") -> int:
        path = f"/api/jobs/challenge/{challenge}/challenge_phase/{phase}/submission/"
        answer = self.stage.call("POST", path, who, files={"input_file": (name, word.encode())})
        return int(answer.json()["id"])

    def show(self, number: int) -> None:
        """Note the outcome of a submission, the queues and the log."""
        row = self.services.store.require(Submission, number)
        files = ("stdout_file", "stderr_file", "submission_result_file", "metadata_file", "environment_log_file")
        texts = {name: self.services.files.text(getattr(row, name)) for name in files if getattr(row, name)}
        scores = self.services.submissions.scores(number)
        self.note(f"  {row.status}, deaths {row.deaths}, {texts}, scores {scores}")
        for message in self.services.store.find(StoredMessage):
            body = {
                key: value for key, value in message.body.items() if value != (number if "submission" in key else None)
            }
            self.note(f"  queued {[*body.values()]}, visible in {message.visible_at - self.stage.now:.0f} s")
        for line in self.services.store.find(LogLine)[self._logged :]:
            self._logged += 1
            self.note(f"  log of {line.challenge_id}: {line.line}")

    def clear(self) -> None:
        self.services.store.remove(StoredMessage)


def write_scorers(folder: Path) -> str:
    (folder / "hosted.zip").write_bytes(bundle_of(_config("Hosted"), "truth"))
    turns: list[tuple[str, _Turn, Callable[[], None]]] = []

    def add(self: Background, turn: _Turn, close: Callable[[], None] = lambda: None, name: str = "") -> None:
        turns.append((name or self._name, turn, close))

    with Stage(folder, folder / "hosted.zip", "dora") as stage, patch.object(Background, "_add", add):
        play = _Play(stage, folder)
        _play_workers(play, turns)
        turns.clear()
        _play_agents(play, turns)
    return fold(play.write())


def _config(title: str, **changes: Any) -> dict[str, Any]:
    config = config_of(title, **{"remote_evaluation": False, **changes})
    for phase in config["challenge_phases"]:
        phase |= {"test_annotation_file": "truth.json", "max_submissions_per_day": 99, "max_submissions_per_month": 99}
        phase |= {"max_submissions": 99, "max_concurrent_submissions_allowed": 99}
    config["challenge_phases"][1] |= {"disable_logs": True}
    return config


# ── hosted workers ──────────────────────────────────────────────────────────


class _Process:
    """A worker's process, which obeys the submission's text."""

    play: _Play
    stop: threading.Event

    def __init__(self, python: object, folder: Any, challenge: int, terms: Any) -> None:
        self.alive, self._challenge, self._folder = True, challenge, folder
        files = [path.relative_to(folder.root) for path in Path(folder.root).rglob("*") if path.is_file()]
        truths = sorted(str(path.parent) for path in files if "phase_data" in path.parts)
        scripts = sorted(str(path) for path in files if "phase_data" not in path.parts)
        shown = f"{python}, {scripts}, truths in {truths[:2]} and {len(truths) - 2} more, {[*vars(terms).values()][:3]}"
        self.play.describe(f"starts for challenge {challenge}", shown)

    def ask(self, request: dict[str, Any], seconds: float, unwanted: Callable[[], bool]) -> dict[str, Any]:
        if request == {"ready": True}:
            self.play.describe("asks whether it is ready", f"for {seconds} s, unwanted {unwanted()}")
            if self.play.services.store.require(Challenge, self._challenge).config["title"] == "Unloadable":
                raise UnloadableError("no module named x", "what it wrote")
            if self.play.services.store.require(Challenge, self._challenge).config["title"] == "Dying":
                raise DiedError("its process ended with exit code 3", killed=False)
            return {}
        word = Path(request["submission"]).read_text()
        metadata = request.pop("metadata")
        shown = {key: re.sub(r"[0-9a-f-]{36}", "RANDOM", str(value)) for key, value in request.items()}
        truth, pool = Path(request["annotation"]).read_text(), self.play.services.workers
        self.play.describe(
            f"asks for {request['phase']}", f"{shown}, status {metadata['status']}, truth {truth}, workers {pool}"
        )
        self.play.meanwhile()
        return self._answer(word, unwanted)

    def _answer(self, word: str, unwanted: Callable[[], bool]) -> dict[str, Any]:
        scores = {"Score": 0.5}
        finished = {
            "status": "finished",
            "stdout": "out",
            "stderr": "err",
            "result": [{"lakes": scores, "ponds": {}}, {"ponds": scores}],
        }
        faults: dict[str, Exception] = {
            "die": DiedError("its process was killed by SIGSEGV"), "exit": DiedError("its process ended with 3", killed=False),
            "hang": HungError("evaluate() did not answer within 6 s"), "away": BusyError("others write"), "stumble": ValueError("odd"), "unwanted": UnwantedError("gone"),
        }  # fmt: skip
        if word in faults:
            self.alive = word not in ("die", "exit")
            self.play.note(f"  unwanted {unwanted()}")
            raise faults[word]
        return {
            "raise": {"status": "failed", "stdout": "out", "stderr": "Traceback\nValueError: x"},
            "split": {**finished, "result": [{"nowhere": scores}]},
            "rows": {**finished, "result": []},
            "keys": {**finished, "result": [{"lakes": scores, "ponds": {"Score": 0.9}}, {}]},
            "files": {
                **finished,
                "submission_result": "[1]",
                "submission_metadata": '{"a": 1}',
                "error": [{"lakes": {"error_Score": 0.1}}],
            },
        }.get(word, finished)

    def log(self) -> str:
        return "loading…\nlast words\n"

    def kill(self) -> None:
        self.play.note(f"  ends the process of challenge {self._challenge}")


@contextmanager
def _played(play: _Play) -> Iterator[None]:
    _Process.play = play
    with ExitStack() as stack:
        for name, value in (
            ("WorkerProcess", _Process), ("install_requirements", lambda python, *_: f"{python} with requirements"),
            ("ResourceGroup", lambda **asked: SimpleNamespace(asked=asked, holds_bound=lambda kind: kind == "cpu", close=lambda: play.note("closes its group"))),
        ):  # fmt: skip
            stack.enter_context(patch.object(workers, name, value))
        yield


def _play_workers(play: _Play, turns: list[tuple[str, _Turn, Callable[[], None]]]) -> None:
    python: Any = "python3.9"
    left = play.folder / "segjudge-worker-abc"
    left.mkdir()
    second = play.folder / "other"
    second.mkdir()
    for folder in (left, second, play.folder / "gone"):
        play.services.store.note_folder(str(folder))
    with _played(play):
        pool = Workers(play.services, JobScorer(python, 6.0, "box"), 2)
        play.note(
            f"folders left: {left.exists()} {play.services.store.worker_folders()}, {pool._group.asked}, {pool.is_limited}"
        )  # type: ignore[attr-defined]
        name, turn, close = turns[0]
        play.note(f"{[turn[0] for turn in turns]}: {play.services.workers}, idle turn {turn()}")
        for word in ("good", "files", "raise", "split", "rows", "keys", "stumble", "exit", "hang", "die"):
            number = play.send(1, 1, word)
            play.note(f"{name} on {word!r}")
            for _ in range(4 if word == "die" else 1):
                play.note(f"  turn {turn()}")
                play.show(number)
                play.stage.now += 3601
            play.clear()
        number = play.send(1, 1, "away")
        play.note(f"{name} while the database is away")
        try:
            turn()
        except BusyError as error:
            play.note(f"  raises {error}")
        play.show(number)
        play.clear()
        _play_others(play, turn)
        _play_stops(play, turn, close, pool)


def _play_others(play: _Play, turn: _Turn) -> None:
    """Send unusual submissions."""
    play.note("logs are disabled")
    for word in ("good", "raise"):
        number = play.send(1, 2, word)
        turn()
        play.show(number)
    play.note("cancelled before it begins")
    number = play.send(1, 1, "good")
    play.services.submissions.update(number, status="cancelled")
    turn()
    play.show(number)
    play.note("cancelled meanwhile")
    for word in ("good", "unwanted"):
        number = play.send(1, 1, word)
        play.meanwhile = lambda number=number: play.services.submissions.update(number, status="cancelled")
        turn()
        play.meanwhile = lambda: None
        play.show(number)
    play.note("of no submission, and of another challenge")
    queue = play.services.store.require(Challenge, 1).queue
    play.services.queue.send(queue, {"submission_pk": "999"})
    turn()
    play.show(number)
    play.note("the truth is missing")
    truth = play.services.store.require(ChallengePhase, 3).annotation
    play.services.store.change(ChallengePhase, 3, annotation=None)
    number = play.send(1, 3, "good", who="host")
    turn()
    play.show(number)
    play.services.store.change(ChallengePhase, 3, annotation=truth)
    for title in ("Unloadable", "Dying", "Remote"):
        play.note(f"a challenge that is called {title}")
        challenge = _push(play, title, remote_evaluation=title == "Remote")
        number = play.send(challenge, _phase(play, challenge), "good", who="host")
        for _ in range(3):
            play.note(f"  turn {turn()}")
        play.show(number)
        play.services.queue.send(queue, {"submission_pk": number, "phase_pk": "1"})
        turn()
        play.show(number)
        play.clear()
    play.note("a new version of the challenge is loaded anew")
    play.services.store.change(Challenge, 1, version=7)
    number = play.send(1, 1, "good")
    turn()
    play.show(number)
    play.note("none waits for ever behind a busy challenge")
    second = _push(play, "Second")
    for place in ((1, 1), (1, 1), (1, 1), (second, _phase(play, second))):
        play.send(*place, "good", who="host")
    for _ in range(5):
        play.note(f"  turn {turn()}")


def _play_stops(play: _Play, turn: _Turn, close: Callable[[], None], pool: Workers) -> None:
    """Stop the server during scoring."""
    for word in ("good", "die", "stumble", "unwanted"):
        play.note(f"stopped during {word!r}")
        number = play.send(1, 1, word)
        play.meanwhile = pool._stop.set
        turn()
        play.meanwhile = lambda: None
        pool._stop.clear()
        play.show(number)
        play.clear()
    close()
    close()
    play.note(f"closed: {play.services.store.worker_folders()}")
    pool.stop()


def _push(play: _Play, title: str, **changes: Any) -> int:
    path = "/api/challenges/challenge/challenge_host_team/1/create_or_update_github_challenge/"
    bundle = bundle_of(_config(title, **changes), "truth")
    files, fields = {"zip_configuration": ("c.zip", bundle)}, {"GITHUB_REPOSITORY": f"me/{title}"}
    answer = play.stage.call("POST", path, "host", data=fields, files=files)
    assert answer.status_code == 201, answer.text
    number = max(row.id for row in play.services.store.find(Challenge))
    for team in ("2", "3"):
        who = {"2": "aurora", "3": "borealis"}[team]
        play.stage.call("POST", f"/api/challenges/challenge/{number}/participant_team/{team}", who)
    team = play.services.accounts.teams(play.services.accounts.find_user("host"), "participant")[0].id  # type: ignore[arg-type]
    play.stage.call("POST", f"/api/challenges/challenge/{number}/participant_team/{team}", "host")
    return number


def _phase(play: _Play, challenge: int, index: int = 0) -> int:
    return play.services.store.phases(challenge)[index].id


# ── agents ──────────────────────────────────────────────────────────────────

_TABLES = (
    "", "nothing = 1", "seconds = 'x'", "images = 3", "[images.a]", "[images.a]\ncommand = []", "[images.a]\ncommand = ['x', 3]",
    "[images.a]\ncommand = ['x']\nfolder = 'none'", "[environments]\na = 3", "[environments]\na = ['x', 3]",
    "[environments.a]\ncommand = ['x']\nport = 0", "[environments.a]\ncommand = ['x']\nport = 65536", "[environments.a]\ncommand = ['x']\nport = 1", "[environments.a]\ncommand = ['x']\nport = '80'", "[environments.a]\nport = 3",
    (
    "sandbox = true\nseconds = 5\nmemory_mb = 3\nprocesses = 2\nlook_every = 0.5\ndata = 'data'\nhidden = ['a', '/b']\n"
    "[images.a]\ncommand = ['x', '-u']\nfolder = 'agents'\n[environments]\none = ['--env', 'truth=t.zip', 'frames=f', 'size=3', 'truth']\n"
    "[environments.two]\ncommand = ['y']\nfolder = 'agents'\n[environments.three]\ncommand = ['y']\nport = 65535\n"
    ),
)  # fmt: skip


def _play_agents(play: _Play, turns: list[tuple[str, _Turn, Callable[[], None]]]) -> None:
    play.clear()
    (play.folder / "agents").mkdir()
    path = play.folder / "agents.toml"
    play.note("tables of agents")
    for text in (*_TABLES, None):
        path.write_text(text) if text is not None else path.unlink()
        try:
            play.note(f"{text!r}: {_table_text(read_table(str(path)))}")
        except HostError as error:
            play.note(f"{text!r}: {error}")
    path.write_text("")
    play.note(f"with a sandbox: {read_table(str(path), sandbox=True).limits.sandbox}")
    agent = arena.Agent(["agent"], "/agent")
    environments = {"practice": ["--env", "x"], "secret": arena.HostEnvironment(["host"], "/host", 99)}
    table = AgentTable({"known": agent, "other": agent}, environments, "/data", hidden=("/hidden",))
    host = play.services.accounts.find_user("host")
    assert host is not None
    uploads = CodeUploads(play.services, table, "http://address", host)
    name, turn, _ = turns[0]
    play.note(f"{name}: {uploads._hidden}, idle turn {turn()}")
    challenge, static = _push(play, "Docker", is_docker_based=True), 0
    for index, image, ending in (
        (0, "unknown", ""), (0, "known", ""), (0, "known", "reported"), (0, "known", "odd file"), (0, "known", "host"), (0, "known", "defect"),
        (0, "known", "away"), (0, "known", "stop"), (0, "known", "stopped defect"), (1, "known", ""), (2, "known", ""), (2, "other", "stop"),
    ):  # fmt: skip
        _run_agent(play, uploads, turn, (challenge, index), image, ending)
    static = _push(play, "Static", is_docker_based=True, is_static_dataset_code_upload=True)
    for ending in ("produced", "early", "late", "unreachable", "stop"):
        _run_agent(play, uploads, turn, (static, 0), "known", ending)
    play.note("without data, without a submission, and cancelled")
    without = CodeUploads(play.services, AgentTable({"known": agent}, {}), "http://address", host)
    number = play.send(static, _phase(play, static), '{"submitted_image_uri": "known"}', who="host")
    without._turn()
    play.show(number)
    play.services.queue.send(
        play.services.store.require(Challenge, static).queue, {"submission_pk": 999, "submitted_image_uri": ""}
    )
    without._turn()
    play.show(number)
    for cancel_at in ("received", "begun"):
        number = play.send(challenge, _phase(play, challenge), '{"submitted_image_uri": "known"}', who="host")
        if cancel_at == "received":
            play.services.submissions.update(number, status="cancelled")
        with patch.object(type(play.services.submissions), "begin", lambda *_: False):
            turn()
        play.show(number)
    with patch.object(arena, "end_all", lambda: play.note("ends all")):
        uploads._interrupt()


def _table_text(table: AgentTable) -> str:
    return str(table).replace(f"processes={PROCESSES}", "processes=PROCESSES")


def _run_agent(
    play: _Play, uploads: CodeUploads, turn: _Turn, place: tuple[int, int], image: str, ending: str
) -> None:  # fmt: skip
    challenge, index = place
    number = play.send(
        challenge, _phase(play, challenge, index), json.dumps({"submitted_image_uri": image}), who="host"
    )
    play.note(f"{name_of(play, challenge, index)}: image {image}, {ending or 'ends'}")
    faults: dict[str, Exception] = {
        "odd file": arena.SubmissionFileError("x is a link"), "host": HostError("no sandbox"), "defect": KeyError("x"),
        "unreachable": requests.ConnectionError("nobody"), "away": OSError(errno.ENOSPC, "No space left on device"), "stopped defect": KeyError("x"),
    }  # fmt: skip

    def happen() -> None:
        play.note(f"  it is {play.services.submissions.get(number).status}")
        if ending == "reported":
            play.services.submissions.end(number, "finished")
        if ending in ("stop", "stopped defect"):
            uploads._stop.set()
        if ending in faults:
            raise faults[ending]

    def duel(agent: object, words: object, limits: object, variables: dict[str, str], hidden: object) -> Any:
        play.describe("duel", f"{agent}, {words}, {variables}, {hidden}")
        happen()
        return SimpleNamespace(log="" if ending == "reported" else "the log")

    def duel_with_host(
        agent: object, environment: object, limits: object, variables: object, hidden: object, ended: Any
    ) -> Any:
        play.describe("duel with the host", f"{agent}, {environment}, {variables}, {hidden}, ended {ended()}")
        happen()
        play.note(f"  ended {ended()}")
        return SimpleNamespace(
            agent="" if image == "other" else "agent", environment="environment", sentence="It ended."
        )

    def run_static(agent: object, data: object, limits: object, look: object, take: Any, hidden: object) -> Any:
        play.describe("runs", f"{agent} on {data}, looks every {look} s, {hidden}")
        happen()
        if ending == "produced":
            product = play.folder / "submission.json"
            product.write_text("produced")
            take(str(product))
        taken = "submission.json" if ending == "produced" else None
        return SimpleNamespace(result={"taken": taken, "early": ending == "early"}, code=4, log="its log")

    def send(url: str, **options: Any) -> Any:
        path = url.removeprefix("http://address")
        answer = play.stage.call(
            "PATCH", path, data=options["data"], files=options["files"], headers=options["headers"]
        )
        play.note(f"  sent to {path}: {options['data']}, {answer.status_code}")
        return SimpleNamespace(raise_for_status=lambda: play.note("  checks the answer"))

    with ExitStack() as stack:
        for owner, what, value in (
            (arena, "duel", duel), (arena, "duel_with_host", duel_with_host), (arena, "run_static", run_static),
            (code_uploads.requests, "patch", send),
        ):  # fmt: skip
            stack.enter_context(patch.object(owner, what, value))
        try:
            play.note(f"  turn {turn()}")
        except (KeyError, OSError) as error:
            play.note(f"  {error!r}")
    uploads._stop.clear()
    play.show(number)
    play.clear()


def name_of(play: _Play, challenge: int, index: int) -> str:
    return f"{play.services.store.require(Challenge, challenge).config['title']}, phase {index + 1}"


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="segjudge-") as scratch:
        FILE.write_text(write_scorers(Path(scratch)), encoding="utf-8")
