"""Duels, static submissions and an environment, all without real processes: parts of `calls`."""

from __future__ import annotations

import contextlib
import io
import itertools
import os
import runpy
import shutil
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np
from grpc_health.v1 import health_pb2
from PIL import Image

from segjudge import static
from segjudge.code_upload import arena
from segjudge.code_upload_challenge_evaluation.environment import __main__ as door
from segjudge.code_upload_challenge_evaluation.environment import service
from segjudge.evaluation_script.files.problems import HostError, SubmissionError
from tests.interactive.tale import Tale

from .agents import agent as sample
from .calls_of_hosts import Side

#: The number of a look → the event at it.
Events = Mapping[int, Callable[[], object]]
AGENT = arena.Agent(["play", "--fast"], "/agents/mine", {"MINE": "1"})
LIMITS = arena.ProcessLimits(seconds=20.4, memory=7 << 20, processes=3)


class Process(Side):
    """A simulated process of an arena, which notes its start and follows a script."""

    def __init__(
        self, tale: Tale, name: str, looks: int = 999, code: int = 0, events: Events | None = None, line: bytes = b"4711\n"
    ) -> None:  # fmt: skip
        super().__init__(tale, name, looks, code)
        self._events, self._seen = events or {}, 0
        self.output = SimpleNamespace(readline=lambda most: line if most == 10_000 else b"")

    def start(self, command: list[str], streams: Any, *, environment: dict[str, str], folder: str | None) -> Process:
        arguments = [str(word).replace(sys.executable, "PYTHON") for word in command]
        self._tale.say(f"  {self._name} starts: {arguments} in {folder} with {environment}, {streams}")
        return self

    def poll(self) -> Any:
        self._seen += 1
        self._events.get(self._seen, lambda: None)()
        return super().poll()

    def wait(self, seconds: float) -> Any:
        if seconds != 0.05:
            self._tale.say(f"  {self._name} is given {seconds:g} s")
        return super().wait(seconds)

    def __getattr__(self, name: str) -> Any:
        return lambda: self._tale.say(f"  {self._name}: {name}")


@contextlib.contextmanager
def _watched(tale: Tale, box: str | None, *processes: Process) -> Iterator[Path]:
    """Let an arena start these processes in turn, in a noted folder, and yield the folder."""
    coming = iter(processes)
    folder = tale.folder / "arena"

    @contextlib.contextmanager
    def make_folder(prefix: str) -> Iterator[str]:
        tale.say(f"  a folder {prefix}")
        folder.mkdir()
        try:
            yield str(folder)
        finally:
            tale.say(f"  left there: {sorted(str(path.relative_to(folder)) for path in folder.rglob('*'))}")
            shutil.rmtree(folder)

    def bound(_child: Any, bounds: Any) -> Any:
        tale.say(f"  bounds {bounds}")
        return SimpleNamespace(sentence="it ate all" if box == "greedy" else "")

    def wrap(program: str | None, arguments: list[str], *more: Any) -> list[str]:
        return [*filter(None, [program]), *arguments, *map(str, more)]

    def make_group(**bounds: int) -> Any:
        return SimpleNamespace(enter=lambda words: [str(bounds), *words], close=lambda: tale.say("  group: close"))

    def keep_end(_stream: Any, size: int, *, beginning: bool = False) -> Any:
        return SimpleNamespace(text=lambda: f"log of {size}, {beginning} \n")

    def find_sandbox(*, required: bool) -> str | None:
        tale.say(f"  a sandbox is required: {required}")
        return box

    boxes = SimpleNamespace(
        find_sandbox=find_sandbox, agent_command=wrap, with_network=lambda words: ["net", *words], AGENT_TMPFS=("/shm",)
    )
    with (
        mock.patch.multiple(
            arena, temporary_folder=make_folder, TreeWatch=bound, ResourceGroup=make_group, Tail=keep_end, sandbox=boxes,
            Child=lambda *words, **more: next(coming).start(*words, **more), IMPORT_ROOT="ROOT",
        ),
        mock.patch.dict(os.environ, {"PATH": "P", "HOME": "H", "OTHER": "O"}, clear=True),
    ):  # fmt: skip
        yield folder
    tale.say(f"  run still: {len(arena._running)}")


def whole_duels(tale: Tale) -> None:
    def write() -> None:
        (tale.folder / "arena/result.json").write_text('{"status": "finished"}')

    arguments = ["--env", "E", "--option", 'truth="/a b"']
    for about, box, first, second, options in (
        ("the environment ends", None, {"looks": 3, "events": {2: write}}, {}, {}),
        ("it fails, in a sandbox, and reports to a server", "bwrap", {"looks": 2, "code": 1, "line": b"unix:/s\n"}, {"looks": 99},
         {"variables": {"AUTH_TOKEN": "t"}, "hidden": ["/h"]}),
        ("the agent ends", "greedy", {"looks": 60, "code": 1}, {"looks": 2, "code": 9}, {}),
        ("all are ended", None, {"looks": 4, "code": 1, "events": {3: arena.end_all}}, {}, {}),
        ("nothing starts", None, {"line": b""}, {}, {}),
    ):  # fmt: skip
        tale.say("──", about)
        sides = Process(tale, "environment", **first), Process(tale, "agent", **second)
        with _watched(tale, box, *sides), mock.patch.object(arena.threading, "Timer") as timer:
            tale.try_out(
                "  ended", partial(arena.duel, AGENT, arguments, replace(LIMITS, sandbox=bool(box)), **options)
            )
            tale.say("  alarm:", timer.call_args[0][0], [call[0] for call in timer.mock_calls[1:]])


def whole_static_submissions(tale: Tale) -> None:
    shared = tale.folder / "arena/submission"
    outside = tale.folder / "outside"

    def write(name: str = "submission.json") -> None:
        (shared / name).write_text("masks")

    def link() -> None:
        (shared / "submission.json").symlink_to("/etc/passwd")

    def write_where_it_is_said() -> None:
        write("submission.csv")
        (shared / static.TAKEN_FILE).symlink_to(outside)

    def take(path: str) -> None:
        tale.say(f"  takes {path} at {tale.clock.now - 1_000_000:.2f}: {Path(path).read_text()}")

    first, last = static.SUBMISSION_NAMES[0], static.SUBMISSION_NAMES[-1]
    for about, box, options, every in (
        ("a file at once", None, {"events": {1: write}}, 30.0), ("a file later", "bwrap", {"events": {4: write}}, 1.0),
        ("two files", None, {"events": {1: lambda: (write(last), write(first))}}, 1.0), ("a link", None, {"events": {1: link}}, 1.0),
        ("nothing, and an end", None, {"looks": 2, "code": 3}, 1.0), ("a file, and an end", "greedy", {"looks": 2, "code": 3, "events": {3: write}}, 30.0),
        ("nothing for long", None, {}, 30.0), ("the other file is a link", None, {"events": {1: write_where_it_is_said}}, 1.0),
    ):  # fmt: skip
        tale.say("──", about)
        tale.clock.now = 1_000_000
        with _watched(tale, box, Process(tale, "agent", **options)):
            run = partial(
                arena.run_static, AGENT, "/data/x/../frames", replace(LIMITS, sandbox=bool(box)), every, take, ["/h"]
            )
            tale.try_out("  ended", run)
        tale.say(f"  at {tale.clock.now - 1_000_000:.2f}, outside {outside.exists()}")


def duels_with_hosts(tale: Tale) -> None:
    starter = tale.folder / "starter"
    for name in ("environment", "agent", "utils"):
        (starter / name).mkdir(parents=True)
    own = arena.HostEnvironment(["serve"], str(starter / "environment"), 8085)
    agents = AGENT, arena.Agent(["play"], str(starter / "agent"))
    for about, listens, first, second, box, ends, agent in (
        ("the port is taken", (True,), {}, {}, None, 0, 0), ("nobody listens", (False,), {}, {}, None, 0, 0), ("it ends at once", (False,), {"looks": 1}, {}, None, 0, 0),
        ("it is done", (False, False, True), {}, {}, None, 3, 0), ("the agent ends", (False, True), {}, {"looks": 2, "code": 4}, "greedy", 99999, 1),
        ("nothing comes", (False, True), {}, {}, "bwrap", 99999, 1),
    ):  # fmt: skip
        tale.say("──", about)
        answers, left = itertools.chain(listens, itertools.repeat(listens[-1])), itertools.count(1 - ends)
        sides = Process(tale, "environment", **first), Process(tale, "agent", **second)
        began = tale.clock.now
        with (
            _watched(tale, box, *sides),
            mock.patch.object(arena, "_listens", lambda _, answers=answers: next(answers)),
        ):
            run = partial(
                arena.duel_with_host,
                agents[agent],
                own,
                replace(LIMITS, sandbox=bool(box)),
                {"AUTH_TOKEN": "t"},
                ["/h"],
                lambda left=left: next(left) >= 0,
            )
            tale.try_out("  ended", run)
        tale.say(f"  after {tale.clock.now - began:.2f} s")


class Ended:
    """An event that never waits, and runs an action at each poll."""

    def __init__(self, tale: Tale, events: Iterator[Callable[[], object]]) -> None:
        self._tale, self._events, self.is_over = tale, events, False

    def wait(self, seconds: float) -> bool:
        self._tale.clock.now += seconds
        next(self._events, lambda: None)()
        return self.is_over

    def is_set(self) -> bool:
        return self.is_over

    def set(self) -> None:
        self.is_over = True


def a_process_that_serves(tale: Tale) -> None:
    task: Any = SimpleNamespace(close=lambda: tale.say("  the task is closed"))
    right = {"AUTH_TOKEN": "t", "BODY": '{"challenge_pk": 1, "phase_pk": 2, "submission_pk": 3}'}
    local = {"LOCAL_EVALUATION": "1"}

    def stop(seconds: float) -> Any:
        tale.say(f"  stops within {seconds:g} s")
        return SimpleNamespace(wait=lambda more: tale.say(f"  which takes at most {more:g} s"))

    def play(about: str, variables: dict[str, str], arguments: list[str], events: list[str], made: Any = task) -> None:
        tale.say("──", about)
        handlers: dict[int, Any] = {}

        def make(*arguments: Any) -> Any:
            tale.say("  makes", arguments)
            if isinstance(made, Exception):
                raise made
            return made

        def begin(task: Any, limits: Any) -> Any:
            item = service.Service(task, limits, tale.clock)

            def finish() -> None:
                item.outcome.result = [{"test": {"J": 0.5}}]
                item._waiting.add(mock.Mock())
                item.ended.set()

            known = {
                "finish": finish,
                "term": lambda: handlers[signal.SIGTERM](15, None),
                "gone": lambda: handlers[signal.SIGUSR1](10, None),
            }
            item.ended = Ended(tale, iter([known.get(name, lambda: None) for name in events]))
            item.watch = lambda connections: tale.say(f"  watches {connections}")
            return item

        def report(target: Any, outcome: Callable[[], Any], sleep: Any) -> Any:
            tale.say("  reports", target, outcome(), sleep is door.time.sleep)
            return outcome()

        def start(_service: Any, settings: Any) -> tuple[Any, int]:
            return SimpleNamespace(stop=stop), settings.port or 4711

        log = SimpleNamespace(**{
            kind: lambda text, *arguments, kind=kind: tale.say(f"  {kind}: {text % arguments}") for kind in ("info", "error", "exception")
        })  # fmt: skip
        with (
            mock.patch.multiple(door, make_task=make, Service=begin, _start_server=start, _report_to_evalai=report, log=log,
                                count_connections=lambda port: f"the connections of {port}", logging=mock.Mock(INFO=20)),
            mock.patch.object(door.signal, "signal", handlers.__setitem__),
            mock.patch.dict(os.environ, variables), contextlib.redirect_stdout(io.StringIO()) as printed,
        ):  # fmt: skip
            result = ["--result", str(tale.folder / "result.json")]
            tale.say("  exit code", door.main(["--env", "E", *result, *arguments]))
        tale.say("  printed:", printed.getvalue())

    play("a result", local, ["--port", "7"], ["", "finish"])
    play(
        "a result, at any port", local, ["--port", "0", "--option", "a=1", "--episodes", "2", "--seed", "5"], ["finish"]
    )
    play("through a socket", {**local, "SEGJUDGE_BIND": "unix:/s"}, ["--port", "0"], ["", "gone"])
    play("at an address", {**right, "SEGJUDGE_BIND": "0.0.0.0"}, [], ["finish"])
    play("stopped", right, [], ["", "", "term"])
    for error in (
        HostError("no truth"),
        SubmissionError("no masks"),
        ValueError("no number"),
        OSError(2, "no file"),
        KeyError("x"),
    ):
        play(f"{type(error).__name__}", right, [], [], error)
    play("no variables", {}, [], [])


def a_server_of_calls(tale: Tale) -> None:
    output: list[Any] = []

    def make_server(pool: Any, *, options: Any, maximum_concurrent_rpcs: int) -> Any:
        tale.say("  server:", pool._max_workers, options, maximum_concurrent_rpcs)
        return SimpleNamespace(
            add_generic_rpc_handlers=output.extend, add_insecure_port=take, start=lambda: tale.say("  starts")
        )

    def take(address: str) -> int:
        tale.say("  takes", address)
        if address.endswith(":1"):
            raise RuntimeError("taken")
        return 4711

    calls = SimpleNamespace(get_action_space="space", reset="reset", act_on_environment="act")
    arguments = ["--env", "E", "--max-message", "2"]
    for bind, port in (("", "5"), ("unix:/s", "0"), ("0.0.0.0", "1")):
        settings = door.read_settings([*arguments, "--port", port], {"LOCAL_EVALUATION": "1", "SEGJUDGE_BIND": bind})
        thread = SimpleNamespace(name="")
        with (
            mock.patch.object(door.grpc, "server", make_server),
            mock.patch.object(door.threading, "current_thread", lambda thread=thread: thread),
            mock.patch.object(door.health_pb2_grpc, "add_HealthServicer_to_server") as healthy,
        ):
            tale.try_out(f"{bind} {port}", lambda settings=settings: door._start_server(calls, settings)[1])
        tale.say(" ", thread.name)
        for name in ("", door.SERVICE):
            tale.say(
                "  health of",
                repr(name),
                healthy.call_args[0][0].Check(health_pb2.HealthCheckRequest(service=name), None).status,
            )
    for name in ("get_action_space", "reset", "act_on_environment", "close"):
        results = output[0].service(SimpleNamespace(method=f"/{door.SERVICE}/{name}", invocation_metadata=()))
        tale.say(
            name,
            results and [results.unary_unary, results.request_deserializer(b"data")[1], results.response_serializer],
        )


def programs_to_begin_with(tale: Tale) -> None:
    """Run the starter's agent, which repeats masks, and its static submission."""
    data = tale.folder / "data"
    for name, frames in (("b", 2), ("a", 3)):
        (data / name).mkdir(parents=True)
        mask = np.array([[0, 1, 2]], np.uint8) if name == "a" else np.array([[3, 0]], np.uint8)
        Image.fromarray(mask).save(data / name / "first.png")
        for frame in range(frames):
            Image.fromarray(np.zeros((*mask.shape, 3), np.uint8)).save(data / name / f"{frame:05d}.jpg")
    (data / "list.txt").touch()
    (tale.folder / static.TAKEN_FILE).touch()
    with mock.patch.dict(os.environ, {"SUBMISSION_PATH": str(tale.folder), "SEGJUDGE_DATASET": str(data)}):
        runpy.run_module("segjudge.code_upload_challenge_evaluation.static.main", run_name="__main__")
    tale.say((tale.folder / "submission.json").read_text())
    nothing, first = np.zeros((1, 2), np.uint8), np.array([[1, 0]], np.uint8)
    later = np.array([[0, 2]], np.uint8)
    coming = [(first, 1), (nothing, 0), (later, 0), (first * 3, 1), (nothing, 0)]
    shown = [{"frame": nothing, "first_mask": mask.copy(), "new_sequence": new} for mask, new in coming]
    environment = mock.MagicMock(done=False)
    environment.__enter__.return_value = environment

    def act(mask: Any) -> Any:
        tale.say("  acts", mask)
        environment.done = not shown
        return shown.pop(0) if shown else {}

    environment.reset.side_effect, environment.act.side_effect = lambda: shown.pop(0), act
    with mock.patch.object(sample, "Environment", return_value=environment):
        sample.run(sample.Method)
    tale.say("  left:", environment.__exit__.call_count)


PARTS = (
    programs_to_begin_with,
    whole_duels,
    whole_static_submissions,
    duels_with_hosts,
    a_process_that_serves,
    a_server_of_calls,
)
