"""An arena's duels and static submissions, step by step, with simulated processes and a simulated clock."""

from __future__ import annotations

import contextlib
import itertools
import os
import runpy
import shutil
import signal
import socket
import stat
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np
import pytest
from PIL import Image

from segjudge import static
from segjudge.code_upload import arena
from tests.interactive.scene import Clock
from tests.outcomes import outcome_of

from .agents import agent as sample

AGENT = arena.Agent(["play", "--fast"], "/agents/mine", {"MINE": "1"})
LIMITS = arena.ProcessLimits(seconds=20.4, memory=7 << 20, processes=3)
#: The number of a poll → what happens then.
Events = Mapping[int, Callable[[], object]]


class Code(int):
    """An exit code with its text."""

    @property
    def sentence(self) -> str:
        return f"exited with {int(self)}"


class Process:
    """A simulated process that notes its start and ends after so many polls."""

    def __init__(
        self, stage: Stage, name: str, polls: int = 999, code: int = 0, events: Events | None = None, line: bytes = b"4711\n"
    ) -> None:  # fmt: skip
        self._stage, self._name, self._left, self._code = stage, name, polls, code
        self._events, self._polls = events or {}, 0
        self.output = SimpleNamespace(readline=lambda most: line if most == 10_000 else b"")

    def start(self, command: list[str], streams: Any, *, environment: dict[str, str], folder: str | None) -> Process:
        assert (streams.input, streams.output, streams.passed) == (-3, -1, ())
        arguments = [str(word).replace(sys.executable, "PYTHON") for word in command]
        self._stage.note(f"{self._name} starts")
        self._stage.starts[self._name] = arguments, folder, environment
        return self

    def poll(self) -> Any:
        self._polls += 1
        self._events.get(self._polls, lambda: None)()
        self._left -= 1
        return None if self._left >= 0 else self._code and Code(self._code)

    def wait(self, seconds: float) -> Any:
        if seconds != 0.05:
            self._stage.note(f"{self._name} is given {seconds:g} s")
        self._stage.clock.now += seconds
        return self.poll()

    def signal(self, number: int) -> None:
        self._stage.note(f"{signal.Signals(number).name} to {self._name} at {self._stage.seconds:.2f}")

    def __getattr__(self, name: str) -> Any:
        return lambda: self._stage.note(f"{self._name}: {name}")


class Stage:
    """An arena's surroundings: a clock, a folder, what starts and in which order things happen."""

    def __init__(self, folder: Path) -> None:
        self.clock, self.folder, self.events = Clock(), folder / "arena", list[str]()
        #: Name of a process → its command, folder and variables.
        self.starts: dict[str, Any] = {}
        self.bounds, self.left, self.alarms = list[Any](), list[str](), list[str]()
        self._began = self.clock.now

    @property
    def seconds(self) -> float:
        return round(self.clock.now - self._began, 2)

    def note(self, event: str) -> None:
        self.events.append(event)

    def run(self, work: Callable[[], object], box: str | None, *processes: Process) -> Any:
        """Return the outcome of this work, which starts these processes in turn, with such a sandbox."""
        coming = iter(processes)

        @contextlib.contextmanager
        def make_folder(prefix: str) -> Iterator[str]:
            assert prefix in {"segjudge-arena-", "segjudge-static-"}
            self.folder.mkdir()
            try:
                yield str(self.folder)
            finally:
                self.left = sorted(str(path.relative_to(self.folder)) for path in self.folder.rglob("*"))
                shutil.rmtree(self.folder)

        def bound(_child: Any, bounds: Any) -> Any:
            self.bounds.append(bounds)
            return SimpleNamespace(sentence="it ate all" if box == "greedy" else "")

        def wrap(program: str | None, arguments: list[str], *more: Any) -> list[Any]:
            return [*filter(None, [program]), *arguments, *more]

        def find_sandbox(*, required: bool) -> str | None:
            assert required == bool(box)
            return box

        boxes = SimpleNamespace(
            find_sandbox=find_sandbox, agent_command=wrap, with_network=lambda words: ["net", *words], AGENT_TMPFS=("/shm",)
        )  # fmt: skip
        group = SimpleNamespace(wrap=lambda words: ["group", *words], close=lambda: self.note("group: close"))
        wait = SimpleNamespace(
            monotonic=self.clock, sleep=lambda seconds: setattr(self.clock, "now", self.clock.now + seconds)
        )
        with (
            mock.patch.multiple(
                arena, temporary_folder=make_folder, TreeWatch=bound, ResourceGroup=mock.Mock(return_value=group), sandbox=boxes,
                Tail=lambda _stream, size, *, beginning=False: SimpleNamespace(text=lambda: f"log of {size}, {beginning} \n"),
                Child=lambda *words, **more: next(coming).start(*words, **more), IMPORT_ROOT="ROOT", time=wait,
            ),
            mock.patch.dict(os.environ, {"PATH": "P", "HOME": "H", "OTHER": "O"}, clear=True),
        ):  # fmt: skip
            outcome = outcome_of(work)
            group_bounds = arena.ResourceGroup.call_args  # type: ignore[attr-defined]
            assert group_bounds in (None, mock.call(processes=3, memory=7 << 20))
        assert not arena._running
        return outcome


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


def bounds(**more: Any) -> arena.TreeBounds:  # type: ignore[name-defined]
    usual = {"memory": 7 << 20, "processes": 3, "tmpfs": (), "folders": (), "disk": 0, "pause": 0.1}
    return arena.TreeBounds(**{**usual, **more})  # type: ignore[attr-defined]


#: The variables of every process, and the last steps of an arena.
PLAIN = {"PATH": "P", "HOME": "H", "PYTHONPATH": "ROOT", "PYTHONUNBUFFERED": "1"}
BOTH_START = ["environment starts", "agent starts"]
AGENT_CLOSES = ["agent: close_streams", "group: close"]
ENVIRONMENT_CLOSES = ["environment: end", "environment: close_streams"]
LOG, GREEDY_LOG = "log of 5000, True \n", "log of 5000, True\nThe agent was killed: it ate all."
OPTIONS = ["--env", "E", "--option", 'truth="/a b"']
MODULE = "segjudge.code_upload_challenge_evaluation.environment"


def _agent_of(*words: str, places: Any, hidden: list[str], sandbox: bool, **variables: str) -> Any:
    """Return how the agent starts."""
    limits = replace(LIMITS, sandbox=sandbox)
    return ["group", *words, "play", "--fast", "/agents/mine", str(places), str(hidden), str(limits)], "/agents/mine", {
        **PLAIN, "MINE": "1", **variables,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("box", "first", "second", "more", "events", "outcome"),
    [
        pytest.param(
            None, {"polls": 3, "finishes": 2}, {}, {},
            [*BOTH_START, "agent is given 5 s", "agent: end", "agent: end", *AGENT_CLOSES, *ENVIRONMENT_CLOSES],
            ({"status": "finished"}, 0, LOG), id="the environment ends",
        ),
        pytest.param(
            "bwrap", {"polls": 2, "code": 1, "line": b"unix:/s\n"}, {"polls": 99}, {"variables": {"AUTH_TOKEN": "t"}, "hidden": ["/h"]},
            [*BOTH_START, "agent is given 0.5 s", "agent: end", "agent: end", *AGENT_CLOSES, *ENVIRONMENT_CLOSES],
            (None, 1, LOG), id="it fails, in a sandbox, and reports to a server",
        ),
        pytest.param(
            "greedy", {"polls": 60, "code": 1}, {"polls": 2, "code": 9}, {},
            [*BOTH_START, "SIGUSR1 to environment at 1.15", "agent is given 0.5 s", "agent: end", "agent: end", *AGENT_CLOSES, *ENVIRONMENT_CLOSES],
            (None, 1, GREEDY_LOG), id="the agent ends",
        ),
        pytest.param(
            None, {"polls": 4, "code": 1, "ends_all": 3}, {}, {},
            [*BOTH_START, "environment: end", "agent: end", "agent is given 0.5 s", "agent: end", "agent: end", *AGENT_CLOSES, *ENVIRONMENT_CLOSES],
            (None, 1, LOG), id="all are ended",
        ),
        pytest.param(
            None, {"line": b""}, {}, {}, ["environment starts", *ENVIRONMENT_CLOSES],
            "HostError: the environment did not start; its output is above", id="nothing starts",
        ),
    ],
)  # fmt: skip
def test_a_duel(
    box: str | None, first: dict[str, Any], second: dict[str, Any], more: Any, events: list[str], outcome: Any, stage: Stage
) -> None:  # fmt: skip
    script, first = first, dict(first)

    def finish() -> None:
        (stage.folder / "result.json").write_text('{"status": "finished"}')

    actions = {first.pop("finishes", 0): finish, first.pop("ends_all", -1): arena.end_all}
    sides = Process(stage, "environment", events=actions, **first), Process(stage, "agent", **second)
    with mock.patch.object(arena.threading, "Timer") as timer:
        ran = stage.run(lambda: arena.duel(AGENT, OPTIONS, replace(LIMITS, sandbox=bool(box)), **more), box, *sides)
    assert (timer.call_args[0][0], [call[0] for call in timer.mock_calls[1:]]) == (120.0, ["().start", "().cancel"])
    assert stage.events == events
    assert stage.left == (["result.json"] if "finishes" in script else [])
    command, folder, variables = stage.starts["environment"]
    assert command == ["PYTHON", "-P", "-m", MODULE, *OPTIONS, "--port", "0", "--result", f"{stage.folder}/result.json"]
    reports = more.get("variables", {"LOCAL_EVALUATION": "1"})
    bind = {"SEGJUDGE_BIND": f"unix:{stage.folder}/socket"} if box else {}
    assert (folder, variables) == (None, {**PLAIN, **reports, "SUBMISSION_TIME_LIMIT": "20", **bind})
    if isinstance(outcome, str):
        assert ran == outcome
        return
    assert (ran.result, ran.code, ran.log) == outcome
    address = "unix:/s" if "line" in first else "127.0.0.1:4711"
    hidden = [*more.get("hidden", []), "/a b"]
    options = [] if box is None else [box]
    assert stage.starts["agent"] == _agent_of(
        *options,
        places=[(f"{stage.folder}/socket", True)],
        hidden=hidden,
        sandbox=bool(box),
        SEGJUDGE_ENVIRONMENT=address,
    )
    assert stage.bounds == [bounds(tmpfs=("/shm",) if box else ())]


@pytest.mark.parametrize(
    ("about", "box", "every", "taken", "early", "seconds"),
    [
        ("a file at once", None, 30.0, 0.1, False, 5.1),
        ("a file later", "bwrap", 1.0, 1.2, False, 6.2),
        ("two files", None, 1.0, 0.1, False, 5.1),
        ("a link", None, 1.0, None, False, 0.1),
        ("nothing, and an end", None, 1.0, None, True, 0.2),
        ("a file, and an end", "greedy", 30.0, 0.2, True, 5.2),
        ("nothing for long", None, 30.0, None, False, 20.5),
        ("the mark of a file is a link", None, 1.0, 0.1, False, 5.1),
    ],
)
def test_a_static_submission(
    about: str, box: str | None, every: float, taken: float | None, early: bool, seconds: float, stage: Stage
) -> None:
    shared, outside = stage.folder / "submission", stage.folder.parent / "outside"
    csv, json = static.SUBMISSION_NAMES[0], static.SUBMISSION_NAMES[-1]

    def write(*names: str) -> None:
        for name in names:
            (shared / name).write_text("masks")

    def link_mark() -> None:
        write(csv)
        (shared / static.TAKEN_FILE).symlink_to(outside)

    has_ended = {"polls": 2, "code": 3}
    scripts: dict[str, dict[str, Any]] = {
        "a file at once": {"events": {1: lambda: write(json)}},
        "a file later": {"events": {4: lambda: write(json)}},
        "two files": {"events": {1: lambda: write(csv, json)}},
        "a link": {"events": {1: lambda: (shared / json).symlink_to("/etc/passwd")}},
        "nothing, and an end": has_ended,
        "a file, and an end": {**has_ended, "events": {3: lambda: write(json)}},
        "the mark of a file is a link": {"events": {1: link_mark}},
    }
    takes = list[Any]()

    def take(path: str) -> None:
        takes.append((path, stage.seconds, Path(path).read_text()))

    limits = replace(LIMITS, sandbox=bool(box))
    ran = stage.run(
        lambda: arena.run_static(AGENT, "/data/x/../frames", limits, every, take, ["/h"]),
        box, Process(stage, "agent", **scripts.get(about, {})),
    )  # fmt: skip
    name = csv if about in {"two files", "the mark of a file is a link"} else json
    assert takes == ([(f"{stage.folder}/{name}", taken, "masks")] if taken else [])
    if about == "a link":
        assert ran == "SubmissionFileError: submission.json is not a plain file (Too many levels of symbolic links)"
    else:
        log = GREEDY_LOG if box == "greedy" else LOG
        code = 3 if early else 0
        assert (ran.result, ran.code, ran.log) == ({"taken": name if taken else None, "early": early}, code, log)
    ends = ["agent is given 5 s"] if taken else []
    ends += ["agent: end"] * (1 if about == "a link" else 2)
    assert stage.events == ["agent starts", *ends, *AGENT_CLOSES]
    assert stage.starts["agent"] == _agent_of(
        *([box] if box else []), places=[(str(shared), True), ("/data/frames", False)], hidden=["/h"], sandbox=bool(box),
        SUBMISSION_PATH=str(shared), SEGJUDGE_DATASET="/data/frames",
    )  # fmt: skip
    assert stage.bounds == [bounds(tmpfs=("/shm",) if box else (), folders=[str(shared)], disk=2 << 30)]
    written = {json} if about == "a link" else {name, *({json} if about == "two files" else ())} if taken else set()
    copies = {name} if taken else set()
    mark = {static.TAKEN_FILE} if taken else set()
    assert {*stage.left} == {"submission", *copies, *(f"submission/{each}" for each in written | mark)}
    assert (stage.seconds, outside.exists()) == (seconds, False)


LISTENS = "The environment did not listen at port 8085."
DUEL = [*BOTH_START, "agent: end", "environment: end", "agent: end", *AGENT_CLOSES, *ENVIRONMENT_CLOSES]


@pytest.mark.parametrize(
    ("listens", "first", "second", "box", "ends_after", "is_starter", "events", "outcome", "seconds"),
    [
        pytest.param((True,), {}, {}, None, 0, False, [],
                     "HostError: port 8085 is in use, and the environment needs it", 0, id="the port is taken"),
        pytest.param((False,), {}, {}, None, 0, False, ["environment starts", "environment: end", *ENVIRONMENT_CLOSES],
                     ("", LISTENS), 99.9, id="nobody listens"),
        pytest.param((False,), {"polls": 1}, {}, None, 0, False, ["environment starts", "environment: end", *ENVIRONMENT_CLOSES],
                     ("", LISTENS), 0.1, id="it ends at once"),
        pytest.param((False, False, True), {}, {}, None, 3, False, DUEL, (LOG, ""), 0.3, id="it is done"),
        pytest.param((False, True), {}, {"polls": 2, "code": 4}, "greedy", 99999, True, DUEL,
                     (GREEDY_LOG, "The agent exited with 4 before a result was reported."), 1.3, id="the agent ends"),
        pytest.param((False, True), {}, {}, "bwrap", 99999, True, DUEL,
                     (LOG, "There was no result within 20 seconds."), 20.5, id="nothing comes"),
    ],
)  # fmt: skip
def test_a_duel_with_a_hosts_environment(
    listens: tuple[bool, ...], first: Any, second: Any, box: str | None, ends_after: int, is_starter: bool,
    events: list[str], outcome: Any, seconds: float, stage: Stage,
) -> None:  # fmt: skip
    starter = stage.folder.parent / "starter"
    for name in ("environment", "agent", "utils"):
        (starter / name).mkdir(parents=True)
    host = arena.HostEnvironment(["serve"], str(starter / "environment"), 8085)
    agent = arena.Agent(["play"], str(starter / "agent")) if is_starter else AGENT
    answers, polls = itertools.chain(listens, itertools.repeat(listens[-1])), itertools.count(1 - ends_after)
    limits = replace(LIMITS, sandbox=bool(box))
    with mock.patch.object(arena, "_listens", side_effect=answers):
        ran = stage.run(
            lambda: arena.duel_with_host(agent, host, limits, {"AUTH_TOKEN": "t"}, ["/h"], lambda: next(polls) >= 0),
            box, Process(stage, "environment", **first), Process(stage, "agent", **second),
        )  # fmt: skip
    assert (stage.events, stage.seconds) == (events, pytest.approx(seconds))
    if isinstance(outcome, str):
        assert ran == outcome
        return
    assert (ran.agent, ran.environment, ran.sentence) == (outcome[0], LOG, outcome[1])
    folder = str(starter / "environment")
    paths = f"{folder}:{starter}/utils:ROOT"
    variables = {**PLAIN, "PYTHONPATH": paths, "AUTH_TOKEN": "t", "SUBMISSION_TIME_LIMIT": "20"}
    assert stage.starts["environment"] == (["serve"], folder, variables)
    if "agent starts" not in events:
        return
    assert stage.bounds == [bounds(tmpfs=("/shm",) if box else ())]
    options, places = ["net", *([box] if box else [])], [(f"{starter}/utils", False)] if is_starter else []
    command, folder, variables = _agent_of(
        *options, places=places, hidden=["/h", str(starter / "environment")], sandbox=bool(box), SEGJUDGE_ENVIRONMENT="localhost:8085"
    )  # fmt: skip
    if is_starter:
        command = [str(starter / "agent") if word == "/agents/mine" else word for word in command if word != "--fast"]
        paths = f"{starter}/agent:{starter}/utils:ROOT"
        folder, variables = str(starter / "agent"), {key: value for key, value in variables.items() if key != "MINE"}
        variables["PYTHONPATH"] = paths
    assert stage.starts["agent"] == (command, folder, variables)


@pytest.mark.parametrize(
    ("environment", "agent", "code", "signalled", "seconds", "sentence", "watched"),
    [
        ((3, 7), (99, 0), 7, None, 0.2, "The environment exited with 7 before a result was reported.", 1.4),
        ((99, 0), (2, 1), 0, 1.15, 5.0, "The agent exited with 1 before a result was reported.", 1.3),
        ((999, 0), (999, 0), -1, None, 20.0, "There was no result within 9 seconds.", 9.1),
        ((25, 1), (1, 1), 1, 1.1, 1.3, "The agent exited with 1 before a result was reported.", 1.2),
    ],
)
def test_an_arena_waits_for_both_processes(
    environment: tuple[int, int], agent: tuple[int, int], code: int, signalled: float | None, seconds: float, sentence: str,
    watched: float, stage: Stage,
) -> None:  # fmt: skip
    def wait() -> int:
        return arena._wait_for_both(Process(stage, "environment", *environment), Process(stage, "agent", *agent), 20.0)  # type: ignore[arg-type]

    def watch() -> str:
        return arena._watch(
            Process(stage, "environment", *environment), Process(stage, "agent", *agent), 9.0, lambda: False
        )  # type: ignore[arg-type]

    assert (stage.run(wait, None), stage.seconds) == (code, pytest.approx(seconds))
    assert stage.events == ([f"SIGUSR1 to environment at {signalled:.2f}"] if signalled else [])
    began = stage.seconds
    assert stage.run(watch, None) == sentence
    assert stage.seconds - began == pytest.approx(watched)


def test_a_watch_ends_with_the_result(stage: Stage) -> None:
    ended = iter((False, False, True))
    sides: Any = Process(stage, "environment", 9), Process(stage, "agent", 9)
    assert stage.run(lambda: arena._watch(*sides, 9.0, lambda: next(ended)), None) == ""


def test_an_environment_is_up_when_it_listens(stage: Stage) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        side: Any = Process(stage, "environment", 9, 1)
        assert (arena._listens(port), arena._is_up(side, port)) == (True, True)
    for polls in (2, 99999):
        side = Process(stage, "environment", polls, 1)
        assert stage.run(lambda side=side: (arena._listens(port), arena._is_up(side, port)), None) == (False, False)  # type: ignore[misc]
    assert arena.HostEnvironment([], "").port == 8085


@pytest.mark.parametrize(
    ("line", "address"),
    [
        (b"4711\nmore\n", "127.0.0.1:4711"),
        (b"unix:/x\n", "unix:/x"),
        (b"\n", "HostError: the environment did not start; its output is above"),
        (b"", "HostError: the environment did not start; its output is above"),
    ],
)
def test_the_address_of_an_environment_is_its_first_line(line: bytes, address: str) -> None:
    reader, writer = os.pipe()
    os.write(writer, line)
    os.close(writer)
    with os.fdopen(reader, "rb") as output, mock.patch.object(arena, "Tail"):
        child: Any = SimpleNamespace(output=output, end=mock.Mock())
        assert outcome_of(lambda: arena._read_address(child)) == address
    child.end.assert_not_called()


def test_agents_and_what_they_may_import_are_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.py").touch()
    agent = arena.find_agent([str(tmp_path / "a.py"), "--fast"])
    assert (agent.command, agent.folder) == ([sys.executable, str(tmp_path / "a.py"), "--fast"], str(tmp_path))
    assert arena.find_agent(["cat", "x"]).command == ["cat", "x"]
    assert arena.find_agent(["python3", "-c", "1"]).command[1:] == ["-c", "1"]
    assert arena.replace_python(["x", "python"]) == ["x", "python"]
    for name, sentence in (
        ("nowhere.py", "nowhere.py: there is no such agent; correct the path"),
        ("no-such-command", "no-such-command: is neither a Python file nor a command; name one of them"),
    ):
        assert outcome_of(lambda name=name: arena.find_agent([name])) == f"UsageError: {sentence}"  # type: ignore[misc]
    assert arena._truths(["--option", 'truth="/a b"', "frames=/c", "x=1", "truth"]) == ["/a b", "/c"]
    for name in ("utils", "starter"):
        (tmp_path / name).mkdir()
    monkeypatch.setattr(arena, "IMPORT_ROOT", "ROOT")
    monkeypatch.setenv("PYTHONPATH", "MORE")
    assert arena._search_path(str(tmp_path / "starter")) == f"{tmp_path}/starter:{tmp_path}/utils:ROOT:MORE"
    assert arena._search_path("/nowhere/x") == arena._plain_environment()["PYTHONPATH"] == "ROOT:MORE"


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("submission.json", ""),
        ("link", "link is not a plain file (Too many levels of symbolic links)"),
        ("pipe", "pipe is not a plain file"),
        ("folder", "folder is not a plain file"),
        ("none", "none is not a plain file (No such file or directory)"),
        ("large", "large has more than 0 MB"),
    ],
)
def test_only_a_plain_and_small_file_is_copied(
    name: str, sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arena, "_FILE_BYTES", 3000)
    (tmp_path / "submission.json").write_bytes(b"x" * 3000)
    (tmp_path / "large").write_bytes(b"x" * 3001)
    (tmp_path / "link").symlink_to(tmp_path / "submission.json")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    outcome = outcome_of(lambda: arena._copy(str(tmp_path / name), str(tmp_path / "copy")))
    assert outcome == (f"SubmissionFileError: {sentence}" if sentence else None)
    if not sentence:
        copied = (tmp_path / "copy").stat()
        assert (stat.S_ISREG(copied.st_mode), copied.st_size) == (True, 3000)


def test_the_starters_static_submission_repeats_the_first_mask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = tmp_path / "data"
    for name, frames, mask in (("b", 2, [[3, 0]]), ("a", 3, [[0, 1, 2]])):
        (data / name).mkdir(parents=True)
        Image.fromarray(np.array(mask, np.uint8)).save(data / name / "first.png")
        for frame in range(frames):
            Image.fromarray(np.zeros((1, len(mask[0]), 3), np.uint8)).save(data / name / f"{frame:05d}.jpg")
    (data / "list.txt").touch()
    (tmp_path / static.TAKEN_FILE).touch()
    monkeypatch.setenv("SUBMISSION_PATH", str(tmp_path))
    monkeypatch.setenv("SEGJUDGE_DATASET", str(data))
    runpy.run_module("segjudge.code_upload_challenge_evaluation.static.main", run_name="__main__")

    def mask_of(width: int, counts: str) -> str:
        return f'{{"size":[1,{width}],"counts":"{counts}"}}'

    one, two, three = mask_of(3, "111"), mask_of(3, "21"), mask_of(2, "011")
    sequences = f'"a":{{"1":[{",".join([one] * 3)}],"2":[{",".join([two] * 3)}]}},"b":{{"3":[{",".join([three] * 2)}]}}'
    assert (tmp_path / "submission.json").read_text() == f"{{{sequences}}}"


def test_the_starters_agent_repeats_masks_and_adds_new_objects() -> None:
    nothing, first, later = (np.array([mask], np.uint8) for mask in ([0, 0], [1, 0], [0, 2]))
    coming = [(first, 1), (nothing, 0), (later, 0), (first * 3, 1), (nothing, 0)]
    shown = [{"frame": nothing, "first_mask": mask.copy(), "new_sequence": new} for mask, new in coming]
    environment = mock.MagicMock(done=False)
    environment.__enter__.return_value = environment
    actions = list[Any]()

    def act(mask: Any) -> Any:
        actions.append(mask.tolist())
        environment.done = not shown
        return shown.pop(0) if shown else {}

    environment.reset.side_effect, environment.act.side_effect = lambda: shown.pop(0), act
    with mock.patch.object(sample, "Environment", return_value=environment):
        sample.run(sample.Method)
    assert actions == [[[1, 0]], [[1, 0]], [[1, 2]], [[3, 0]], [[3, 0]]]
    assert environment.__exit__.call_count == 1
