"""The settings and output of hosts, and the waiting of an arena: parts of `calls`."""

from __future__ import annotations

import itertools
import json
import math
import os
import signal
import socket
import stat
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np

from segjudge import static
from segjudge.code_upload import arena
from segjudge.code_upload_challenge_evaluation.environment import __main__ as door
from segjudge.code_upload_challenge_evaluation.environment import service
from segjudge.evaluation_script.files.problems import HostError
from segjudge.platforms.evalai.client import ApiError
from tests.interactive.tale import Tale, settle


def settings_and_reports(tale: Tale) -> None:
    body = json.dumps({"challenge_pk": 1, "phase_pk": "2", "submission_pk": 3, "x": 1})
    right = {"AUTH_TOKEN": "t", "BODY": body}
    arguments = ["--env", "E"]
    for more, variables in (
        ([], right), (["--option", "a=1", "--option", "b=x", "--option", 'c={"d": 2}', "--port", "0", "--max-message", "2"], {"LOCAL_EVALUATION": "1"}),
        (["--step-seconds", "5", "--begin-seconds", "7", "--idle-seconds", "1", "--gone-seconds", "2", "--episodes", "3", "--seed", "4"], right),
        ([], {**right, "SUBMISSION_TIME_LIMIT": "60", "SEGJUDGE_BIND": "unix:/x", "EVALAI_API_SERVER": "http://127.0.0.1:1/"}),
        ([], {}), ([], {"BODY": body}), ([], {**right, "BODY": "{"}), ([], {**right, "BODY": "{}"}), ([], {**right, "BODY": "[]"}),
        ([], {**right, "EVALAI_API_SERVER": "http://else"}), (["--option", "a"], right), (["--option", "1a=2"], right), (["--option", "=2"], right),
        *(([], {**right, "SUBMISSION_TIME_LIMIT": text}) for text in ("x", "0", "-1", "nan", "inf", "2147483648", "2147483647")),
    ):  # fmt: skip
        tale.try_out(
            f"{more} {variables}",
            lambda more=more, variables=variables: door.read_settings([*arguments, *more], variables),
        )  # type: ignore[misc]
    good = service.EvaluationOutcome(
        [{"test": {"J": 0.5}}, {"secret": {"J": 0.25}}], frozenset({"secret"}), timings=[1.0, 2.0, 6.0]
    )
    bad = service.EvaluationOutcome(failure="It ended.", timings=[0.12345])
    for item in (good, bad, service.EvaluationOutcome()):
        tale.say(door._write_report(str(tale.folder / "r.json"), item))
    target = door._Target("http://x", 1, 2, 3, "token")
    for about, outcomes, errors in (
        ("taken", [good], []), ("failed", [bad], []), ("away", [good], [ApiError(503, "away"), ApiError(0, "away", wait=40.0)]),
        ("refused", [good], [ApiError(400, "no label", {"error": "x"})]), ("a proxy", [good], [ApiError(400, "odd"), ApiError(403, "no")]),
        ("lost meanwhile", [good, bad], [ApiError(503, "away")]), ("finished after all", [good], [ApiError(502, "finished")]),
        ("not finite", [service.EvaluationOutcome([{"test": {"J": math.nan}}])], []), ("away for long", [bad], [ApiError(500, "away")] * 11),
    ):  # fmt: skip
        tale.say("──", about)

        def call(method: str, route: str, values: Any, *, errors: list[Any] = errors, **options: Any) -> Any:
            if method == "GET":
                return {"status": "finished" if about == "finished after all" else "running"}  # noqa: B023
            tale.say("  ", method, route, values, str(options).replace("compliant: nan", "compliant"))
            if errors:
                raise errors.pop(0)
            return {"success": 1}

        waits: list[float] = []
        coming = itertools.chain(outcomes, itertools.repeat(outcomes[-1]))
        with mock.patch.object(door, "Client", return_value=SimpleNamespace(call=call)):
            output = door._report_to_evalai(target, lambda coming=coming: next(coming), waits.append)  # type: ignore[misc]
        tale.say("  reported:", str(output).replace("compliant: nan", "compliant"), settle(waits))
    with mock.patch.object(
        door, "_report_to_evalai", lambda target, outcome, _: tale.say("cannot:", target, outcome())
    ):
        door._cannot_serve(right, "a reason")
        door._cannot_serve({}, "a reason")
        refused = PermissionError(13, "Permission denied", "/home/host/truth.zip")
        for error in (refused, OSError("no number"), HostError("the truth is damaged"), KeyError("a defect")):
            failing = mock.patch.object(door, "make_task", side_effect=error)
            with failing, mock.patch.dict(os.environ, right):
                tale.say("cannot be made:", door.main(["--env", "Any-v0"]))


class Side:
    """A process that ends after a number of polls."""

    def __init__(self, tale: Tale, name: str, looks: int, code: int | None) -> None:
        self._tale, self._name, self._looks, self._code = tale, name, looks, code

    def poll(self) -> Any:
        self._looks -= 1
        return None if self._looks >= 0 else self._code and Code(self._code)

    def wait(self, seconds: float) -> Any:
        self._tale.clock.now += seconds
        return self.poll()

    def signal(self, number: int) -> None:
        self._tale.say(f"  {signal.Signals(number).name} to {self._name} at {self._tale.clock.now % 1000:.2f}")


class Code(int):
    """An exit code with its text."""

    @property
    def sentence(self) -> str:
        return f"exited with {int(self)}"


def an_arena_without_processes(tale: Tale) -> None:
    (tale.folder / "a.py").touch()
    agent = arena.find_agent([str(tale.folder / "a.py"), "--fast"])
    tale.say(agent.command[1:], agent.folder, agent.command[0] == arena.sys.executable)  # type: ignore[attr-defined]
    tale.say(
        arena.find_agent(["cat", "x"]).command,
        arena.find_agent(["python3", "-c", "1"]).command[1:],
        arena.replace_python(["x", "python"]),
    )
    for arguments in (["nowhere.py"], ["no-such-command"]):
        tale.try_out(arguments[0], lambda words=arguments: arena.find_agent(words))  # type: ignore[misc]
    tale.say(arena._truths(["--option", 'truth="/a b"', "frames=/c", "x=1", "truth"]))
    good, link, pipe = (tale.folder / name for name in ("submission.json", "link", "pipe"))
    good.write_bytes(b"x" * 3000)
    link.symlink_to(good)
    os.mkfifo(pipe)
    for path in (good, link, pipe, tale.root, tale.folder / "none"):
        tale.try_out(path.name, lambda path=path: arena._copy(str(path), str(tale.folder / "copy")))  # type: ignore[misc]
    tale.say(stat.filemode((tale.folder / "copy").stat().st_mode)[0], (tale.folder / "copy").stat().st_size)
    for limit in (3000, 2999):
        with mock.patch.object(arena, "_FILE_BYTES", limit):
            tale.try_out(f"at most {limit}", lambda: arena._copy(str(good), str(tale.folder / "copy")))
    for line in (b"4711\nmore\n", b"unix:/x\n", b"\n", b""):
        reader, writer = os.pipe()
        os.write(writer, line)
        os.close(writer)
        with os.fdopen(reader, "rb") as output, mock.patch.object(arena, "Tail"):
            ends = mock.Mock()
            tale.try_out(repr(line), lambda: arena._read_address(SimpleNamespace(output=output, end=ends)))  # type: ignore[arg-type]  # noqa: B023
            tale.say(ends.call_count)
    for first, second in (((3, 7), (99, 0)), ((99, 0), (2, 1)), ((999, 0), (999, 0)), ((25, 1), (1, 1))):
        tale.say(f"environment {first}, agent {second}")
        began = tale.clock.now
        code = arena._wait_for_both(Side(tale, "environment", *first), Side(tale, "agent", *second), 20.0)  # type: ignore[arg-type]
        tale.say(f"  {code} after {tale.clock.now - began:.2f} s")
        began = tale.clock.now
        arguments = arena._watch(Side(tale, "environment", *first), Side(tale, "agent", *second), 9.0, lambda: False)  # type: ignore[arg-type]
        tale.say(f"  {arguments!r} after {tale.clock.now - began:.2f} s")
    looks = iter((False, False, True))
    tale.say(repr(arena._watch(Side(tale, "environment", 9, 0), Side(tale, "agent", 9, 0), 9.0, lambda: next(looks))))  # type: ignore[arg-type]
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        tale.say(arena._listens(port), arena._is_up(Side(tale, "environment", 9, 1), port))  # type: ignore[arg-type]
    tale.say(
        arena._listens(port),
        arena._is_up(Side(tale, "environment", 2, 1), port),
        arena._is_up(Side(tale, "environment", 99999, 1), port),
    )  # type: ignore[arg-type]
    (tale.folder / "utils").mkdir()
    (tale.folder / "starter").mkdir()
    with mock.patch.object(arena, "IMPORT_ROOT", "ROOT"), mock.patch.dict(os.environ, {"PYTHONPATH": "MORE"}):
        tale.say(
            arena._search_path(str(tale.folder / "starter")),
            arena._search_path("/nowhere/x"),
            arena._plain_environment()["PYTHONPATH"],
        )
    tale.say(arena.HostEnvironment([], "").port)


def a_static_submission(tale: Tale) -> None:
    masks = [np.array([[0, 1]], np.uint8), np.array([[0, 0]], np.uint8), np.array([[2, 1]], np.uint8)]
    tale.say(static.sequence_of(masks), static.sequence_of(masks[1:2]), static.sequence_of([]))
    with mock.patch.dict(os.environ, {"SUBMISSION_PATH": str(tale.folder), "SEGJUDGE_DATASET": "there"}):
        began = tale.clock.now
        tale.say(static.write_submission({"a": [1]}), tale.clock.now - began, static.dataset())
        began = tale.clock.now
        tale.say(static.write_submission([], 10.0), round(tale.clock.now - began, 2))
        (tale.folder / static.TAKEN_FILE).touch()
        tale.say(static.write_submission({"a": [None, 1]}), (tale.folder / "submission.json").read_text())
    tale.say(static.dataset())
