"""The process of an environment: its settings, what it serves, and its reports, without a network."""

from __future__ import annotations

import itertools
import json
import math
import signal
import socket
from collections.abc import Callable, Iterator
from dataclasses import astuple
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest

from segjudge.code_upload_challenge_evaluation.environment import __main__ as door
from segjudge.code_upload_challenge_evaluation.environment import service
from segjudge.code_upload_challenge_evaluation.environment.service import EvaluationOutcome
from segjudge.evaluation_script.files.problems import HostError, SubmissionError
from segjudge.platforms.evalai.client import ApiError
from tests.interactive.scene import Clock
from tests.outcomes import outcome_of

BODY = json.dumps({"challenge_pk": 1, "phase_pk": "2", "submission_pk": 3, "x": 1})
EVALAI = {"AUTH_TOKEN": "t", "BODY": BODY}
LOCAL = {"LOCAL_EVALUATION": "1"}
TARGET = door._Target("https://eval.ai", 1, 2, 3, "t")
#: The settings without options, as EvalAI starts an environment.
USUAL = {
    "environment": "E", "options": {}, "episodes": 1, "seed": 0, "target": TARGET, "result": "result.json",
    "bind": "127.0.0.1", "port": 8085, "message": 16 << 20, "limits": service.TimeLimits(86400.0, 600.0, 900.0, 60.0, 5.0),
}  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "variables", "changes"),
    [
        ("", EVALAI, {}),
        ('--option a=1 --option b=x --option c={"d":2} --port 0 --max-message 2', LOCAL,
         {"options": {"a": 1, "b": "x", "c": {"d": 2}}, "port": 0, "message": 2 << 20, "target": None}),
        ("--step-seconds 5 --begin-seconds 7 --idle-seconds 1 --gone-seconds 2 --episodes 3 --seed 4", EVALAI,
         {"episodes": 3, "seed": 4, "limits": service.TimeLimits(86400.0, 5.0, 7.0, 1.0, 2.0)}),
        ("", {**EVALAI, "SUBMISSION_TIME_LIMIT": "60", "SEGJUDGE_BIND": "unix:/x", "EVALAI_API_SERVER": "http://127.0.0.1:1/"},
         {"bind": "unix:/x", "limits": service.TimeLimits(60.0, 60.0, 60.0, 60.0, 5.0),
          "target": door._Target("http://127.0.0.1:1", 1, 2, 3, "t")}),
        ("", {**EVALAI, "SUBMISSION_TIME_LIMIT": "2147483647"},
         {"limits": service.TimeLimits(2147483647.0, 600.0, 900.0, 60.0, 5.0)}),
    ],
)  # fmt: skip
def test_settings_come_from_arguments_and_variables(
    arguments: str, variables: dict[str, str], changes: dict[str, Any]
) -> None:
    settings = door.read_settings(["--env", "E", *arguments.split()], variables)
    assert settings == door._EnvironmentSettings(**{**USUAL, **changes})
    assert "AUTH_TOKEN" not in repr(settings)
    assert "token" not in repr(settings)


EVALAI_SETS = "EvalAI sets these variables; to evaluate without EvalAI, set LOCAL_EVALUATION=1"
NO_MESSAGE = "BODY is not a message of EvalAI's queue "


@pytest.mark.parametrize(
    ("option", "variables", "sentence"),
    [
        ("", {}, f"AUTH_TOKEN and BODY not set. {EVALAI_SETS}"),
        ("", {"BODY": BODY}, f"AUTH_TOKEN not set. {EVALAI_SETS}"),
        ("", {**EVALAI, "BODY": "{"},
         f"{NO_MESSAGE}(JSONDecodeError: Expecting property name enclosed in double quotes: line 1 column 2 (char 1))"),
        ("", {**EVALAI, "BODY": "{}"}, f"{NO_MESSAGE}(KeyError: 'challenge_pk')"),
        ("", {**EVALAI, "BODY": "[]"}, f"{NO_MESSAGE}(TypeError: list indices must be integers or slices, not str)"),
        ("", {**EVALAI, "EVALAI_API_SERVER": "http://else"},
         "EVALAI_API_SERVER is http://else: tokens are sent only over https or to this machine"),
        ("a", EVALAI, "--option a: is not NAME=VALUE"),
        ("1a=2", EVALAI, "--option 1a=2: is not NAME=VALUE"),
        ("=2", EVALAI, "--option =2: is not NAME=VALUE"),
        ("", {**EVALAI, "SUBMISSION_TIME_LIMIT": "x"}, "SUBMISSION_TIME_LIMIT is 'x', which is not a number of seconds"),
        *(("", {**EVALAI, "SUBMISSION_TIME_LIMIT": limit},
           f"SUBMISSION_TIME_LIMIT is {limit}, which is not between 0 and 2^31 seconds")
          for limit in ("0", "-1", "nan", "inf", "2147483648")),
    ],
)  # fmt: skip
def test_settings_that_cannot_be_read(option: str, variables: dict[str, str], sentence: str) -> None:
    arguments = ["--env", "E", *(["--option", option] if option else [])]
    assert outcome_of(lambda: door.read_settings(arguments, variables)) == f"HostError: {sentence}"


GOOD = EvaluationOutcome([{"test": {"J": 0.5}}, {"secret": {"J": 0.25}}], frozenset({"secret"}), "", [1.0, 2.0, 6.0])
BAD = EvaluationOutcome(failure="It ended.", timings=[0.12345])
GOOD_TIMES = {"steps": 3, "seconds_per_step": {"median": 2.0, "most": 6.0, "all": 9.0}}
BAD_TIMES = {"steps": 1, "seconds_per_step": {"median": 0.1235, "most": 0.1235, "all": 0.1235}}


def failed(sentence: str, facts: dict[str, Any]) -> dict[str, Any]:
    """Return the report of a failure, without the numbers of submission and phase."""
    return {"submission_status": "FAILED", "stderr": sentence, "metadata": json.dumps(facts)}


def rejected(sentence: str) -> EvaluationOutcome:
    return EvaluationOutcome(failure=sentence, timings=GOOD.timings)


FINISHED = {
    "submission_status": "FINISHED",
    "result": json.dumps([
        {"split": "test", "show_to_participant": True, "accuracies": {"J": 0.5}},
        {"split": "secret", "show_to_participant": False, "accuracies": {"J": 0.25}},
    ]),
    "stdout": f"3 steps; seconds for each: {json.dumps(GOOD_TIMES['seconds_per_step'])}\n",
    "metadata": json.dumps(GOOD_TIMES),
}  # fmt: skip
FAILED = failed("It ended.", BAD_TIMES)
NO_LABEL = "EvalAI rejected the result (no label). Tell the organisers."
NOT_JSON = "The result cannot be sent (Out of range float values are not JSON compliant). Tell the organisers."
NOT_FINITE = EvaluationOutcome([{"test": {"J": math.nan}}])
#: Outcomes, one for each try, the errors of the server, the reports that it gets, the outcome that stays, and the waits.
REPORTS: dict[str, tuple[list[EvaluationOutcome], list[ApiError], list[dict[str, Any]], EvaluationOutcome, list[float]]] = {
    "taken": ([GOOD], [], [FINISHED], GOOD, []),
    "failed": ([BAD], [], [FAILED], BAD, []),
    "away": ([GOOD], [ApiError(503, "away"), ApiError(0, "away", wait=40.0)], [FINISHED] * 3, GOOD, [0.5, 40.0]),
    "rejected": ([GOOD], [ApiError(400, "no label", {"error": "x"})],
                 [FINISHED, failed(NO_LABEL, GOOD_TIMES)], rejected(NO_LABEL), []),
    "a proxy": ([GOOD], [ApiError(400, "odd"), ApiError(403, "no")], [FINISHED] * 3, GOOD, [0.5, 1.0]),
    "lost meanwhile": ([GOOD, BAD], [ApiError(503, "away")], [FINISHED, FAILED], BAD, [0.5]),
    "finished after all": ([GOOD], [ApiError(502, "finished")], [FINISHED], GOOD, []),
    "not finite": ([NOT_FINITE], [], [failed(NOT_JSON, {"steps": 0, "seconds_per_step": {}})],
                   EvaluationOutcome(failure=NOT_JSON), []),
    "away for long": ([BAD], [ApiError(500, "away")] * 11, [FAILED] * 12, BAD,
                      [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, *[30.0] * 5]),
}  # fmt: skip


def _drop_value(sentence: str) -> str:
    """Return a sentence without the value that newer Pythons name."""
    return sentence.replace("compliant: nan", "compliant")


@pytest.mark.parametrize("about", REPORTS)
def test_a_report_is_repeated_until_a_server_takes_it(about: str) -> None:
    outcomes, errors, reports, kept, waits = REPORTS[about]
    sent, waited, troubles = list[Any](), list[float](), [*errors]

    def call(method: str, route: str, values: Any, **options: Any) -> Any:
        if method == "GET":
            return {"status": "finished" if about == "finished after all" else "running"}
        assert (method, values) == ("PUT", {"challenge": 1})
        assert route == "/api/jobs/challenge/{challenge:int}/update_submission/"
        report = options["json"]
        sent.append({**report, "stderr": _drop_value(report["stderr"])} if "stderr" in report else report)
        if troubles:
            raise troubles.pop(0)
        return {"success": 1}

    coming = itertools.chain(outcomes, itertools.repeat(outcomes[-1]))
    with (
        mock.patch.object(door, "Client", return_value=SimpleNamespace(call=call)),
        mock.patch.multiple(door, log=mock.Mock()),
        mock.patch("random.uniform", return_value=1.0),
    ):
        output = door._report_to_evalai(door._Target("http://x", 1, 2, 3, "token"), lambda: next(coming), waited.append)
    assert sent == [{"submission": 3, "challenge_phase": 2, **report} for report in reports]
    assert (output.result, output.hidden, _drop_value(output.failure), output.timings) == astuple(kept)
    assert waited == pytest.approx(waits)


class Ended:
    """An event that runs the next action at each wait, and is over when one of them sets it."""

    def __init__(self, actions: Iterator[Callable[[], object]]) -> None:
        self._actions, self.is_over = actions, False

    def wait(self, _seconds: float) -> bool:
        next(self._actions, lambda: None)()
        return self.is_over

    def is_set(self) -> bool:
        return self.is_over

    def set(self) -> None:
        self.is_over = True


class Process:
    """The process of an environment with a simulated server: `run` returns its exit code, `log` its events."""

    def __init__(self, folder: Path, made: Any = None) -> None:
        self.log: list[Any] = []
        self.reported: list[EvaluationOutcome] = []
        self.result = folder / "result.json"
        self._made = made or SimpleNamespace(close=lambda: self.log.append("the task is closed"))
        self._handlers: dict[int, Any] = {}

    def run(self, variables: dict[str, str], arguments: str = "", *events: str) -> int:
        """Run; each event happens at a look at the clocks: `finish`, `stop` or `gone`."""
        logged = {kind: lambda text, *words: self.log.append(text % words) for kind in ("info", "error", "exception")}
        with (
            mock.patch.multiple(
                door, make_task=self._make, Service=lambda *words: self._begin(events, *words), log=SimpleNamespace(**logged),
                _start_server=lambda _, settings: (SimpleNamespace(stop=self._stop), settings.port or 4711),
                _report_to_evalai=self._report, count_connections=lambda port: port, logging=mock.Mock(INFO=20),
            ),
            mock.patch.object(door.signal, "signal", self._handlers.__setitem__),
            mock.patch.dict("os.environ", variables),
        ):  # fmt: skip
            return door.main(["--env", "E", "--result", str(self.result), *arguments.split()])

    def _make(self, *arguments: Any) -> Any:
        self.log.append(arguments)
        if isinstance(self._made, Exception):
            raise self._made
        return self._made

    def _begin(self, events: tuple[str, ...], task: Any, limits: Any) -> Any:
        running: Any = service.Service(task, limits, Clock())

        def finish() -> None:
            running.outcome.result = [{"test": {"J": 0.5}}]
            running._waiting.add(mock.Mock())
            running.ended.set()

        actions = {
            "look": lambda: None,
            "finish": finish,
            "stop": lambda: self._handlers[signal.SIGTERM](15, None),
            "gone": lambda: self._handlers[signal.SIGUSR1](10, None),
        }
        running.ended = Ended(iter([actions[event] for event in events]))
        running.watch = lambda count: self.log.append(f"watches {count}")
        return running

    def _stop(self, seconds: float) -> Any:
        return SimpleNamespace(wait=lambda most: self.log.append(f"stops within {seconds:g} s, waits {most:g} s"))

    def _report(self, target: Any, outcome: Callable[[], Any], sleep: Any) -> Any:
        assert (target, sleep) == (TARGET, door.time.sleep)
        self.reported.append(outcome())
        return outcome()


@pytest.fixture(autouse=True)
def no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*EVALAI, *LOCAL, "SUBMISSION_TIME_LIMIT", "SEGJUDGE_BIND", "EVALAI_API_SERVER"):
        monkeypatch.delenv(name, raising=False)


AT_ONCE, AT_END = "stops within 0.5 s, waits 5 s", ["stops within 5 s, waits 5 s", "the task is closed"]
GONE = "The agent ended before the evaluation did, at its start, before it called reset."
STOPPED = "The environment was stopped before the agent had finished."
RESULT = [{"test": {"J": 0.5}}]


@pytest.mark.parametrize(
    ("arguments", "bind", "events", "made", "address", "watched", "printed"),
    [
        ("--port 7", "", ("look", "finish"), ("E", {}, 1, 0), "127.0.0.1:7", ["watches 7"], ""),
        ("--port 0 --option a=1 --episodes 2 --seed 5", "", ("finish",), ("E", {"a": 1}, 2, 5), "127.0.0.1:4711", [], "4711\n"),
        ("--port 0", "unix:/s", ("look", "gone"), ("E", {}, 1, 0), "unix:/s", ["watches None", AT_ONCE], "unix:/s\n"),
    ],
)  # fmt: skip
def test_a_result_is_printed_where_no_server_waits_for_it(
    arguments: str, bind: str, events: tuple[str, ...], made: Any, address: str, watched: list[str], printed: str,
    tmp_path: Path, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    process = Process(tmp_path)
    is_finished = events[-1] == "finish"
    assert process.run({**LOCAL, "SEGJUDGE_BIND": bind}, arguments, *events) == (0 if is_finished else 1)
    ending = "finished" if is_finished else f"failed: {GONE}"
    assert process.log == [made, f"serving E at {address}", *watched, *AT_END, ending]
    status = {
        "status": ending.partition(":")[0],
        "result": RESULT if is_finished else None,
        "message": "" if is_finished else GONE,
    }
    report = json.dumps({**status, "metadata": {"steps": 0, "seconds_per_step": {}}}, indent=2)
    assert capsys.readouterr().out == f"{printed}{report}\n"


def test_a_result_or_an_end_is_reported_to_a_server(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    process = Process(tmp_path)
    assert process.run({**EVALAI, "SEGJUDGE_BIND": "0.0.0.0"}, "", "finish") == 0
    assert process.log == [("E", {}, 1, 0), "serving E at 0.0.0.0:8085", *AT_END, "finished"]
    process = Process(tmp_path)
    process.reported.clear()
    assert process.run(EVALAI, "", "look", "look", "stop") == 1
    looks = ["watches 8085"] * 2
    assert process.log[1:] == ["serving E at 127.0.0.1:8085", *looks, AT_ONCE, *AT_END, f"failed: {STOPPED}"]
    assert process.reported == [EvaluationOutcome(failure=STOPPED)]
    assert capsys.readouterr().out == ""


DEFECT = "the environment cannot be created"


@pytest.mark.parametrize(
    ("error", "logged", "reason"),
    [
        (HostError("no truth"), "no truth", "no truth"),
        (SubmissionError("no masks"), "no masks", "no masks"),
        (ValueError("no number"), "no number", "no number"),
        (OSError(2, "no file"), "[Errno 2] no file", "no file"),
        (OSError("no number"), "no number", "OSError"),
        (PermissionError(13, "Permission denied", "/home/host/truth.zip"),
         "[Errno 13] Permission denied: '/home/host/truth.zip'", "Permission denied"),
        (KeyError("x"), DEFECT, "KeyError"),
    ],
    ids=repr,
)  # fmt: skip
def test_an_environment_that_cannot_start_tells_participants_no_path(
    error: Exception, logged: str, reason: str, tmp_path: Path
) -> None:
    process = Process(tmp_path, error)
    assert process.run(EVALAI) == 3
    assert process.log == [("E", {}, 1, 0), logged]
    failure = f"The environment cannot start; your agent is not the cause. Tell the organisers: {reason}"
    assert process.reported == [EvaluationOutcome(failure=failure)]


def test_without_variables_nothing_is_reported(tmp_path: Path) -> None:
    process = Process(tmp_path)
    assert process.run({}) == 3
    assert (process.log, process.reported) == ([f"AUTH_TOKEN and BODY not set. {EVALAI_SETS}"], [])


def test_a_port_in_use_is_named() -> None:
    with socket.socket() as used:
        used.bind(("127.0.0.1", 0))
        used.listen()
        port = used.getsockname()[1]
        settings = door.read_settings(["--env", "E", "--port", str(port)], LOCAL)
        outcome = outcome_of(lambda: door._start_server(mock.Mock(), settings))
    sentence = f"port {port} of 127.0.0.1 is in use or not available; choose another with --port"
    assert outcome == f"HostError: {sentence}"
