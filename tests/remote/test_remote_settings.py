"""What the remote worker says of its settings, its processes, its arguments and the challenges that it scores."""

from __future__ import annotations

import contextlib
import io
import itertools
import json
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest

from segjudge.platforms.evalai.bundle.build import build
from segjudge.remote_challenge_evaluation import __main__ as program
from segjudge.remote_challenge_evaluation import challenge, worker_loop
from segjudge.remote_challenge_evaluation.services import TokenRefusedError
from segjudge.remote_challenge_evaluation.settings import SettingsError, StartError, WorkerSettings
from segjudge.system.network import StoppedError
from tests import guests
from tests.builders import ROOT
from tests.calls import outcome

RIGHT = {"AUTH_TOKEN": "abc", "API_SERVER": "https://eval.ai/", "QUEUE_NAME": "queue", "CHALLENGE_PK": "7"}
DEFAULTS = vars(WorkerSettings("abc", "https://eval.ai", "queue", 7))
COPY_TOKEN = "AUTH_TOKEN is not set: copy it from your profile page on EvalAI"
BAD_TOKEN = "AUTH_TOKEN is not a token: it contains spaces or other invalid characters; copy it again"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Enter an empty folder without variables of workers."""
    monkeypatch.chdir(tmp_path)
    for name in (*RIGHT, "BUNDLE", "EVALUATE", "SCORER_PYTHON", "SEGJUDGE_BUNDLE", "GRACE_SECONDS"):
        monkeypatch.delenv(name, raising=False)
    mask = os.umask(0o077)
    with mock.patch.dict(os.environ):  # arguments become variables of the process
        yield tmp_path
    os.umask(mask)


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, {}),
        ({"SWEEP_SECONDS": "0.5", "MEMORY_BYTES": " 7 ", "LOG_FORMAT": "json"}, {"sweep_seconds": 0.5, "memory_bytes": 7, "log_format": "json"}),
        ({"AUTH_TOKEN": " "}, COPY_TOKEN),
        ({"AUTH_TOKEN": "a b"}, BAD_TOKEN),
        ({"AUTH_TOKEN": "é"}, BAD_TOKEN),
        ({"CHALLENGE_PK": "1.5"}, "CHALLENGE_PK is '1.5', which is not a number"),
        ({"CHALLENGE_PK": "x" * 60}, f"CHALLENGE_PK is '{'x' * 40}', which is not a number"),
        (
            {"GRACE_SECONDS": "nan", "POLL_SECONDS": "inf"},
            "POLL_SECONDS is 'inf', which is not a number\nGRACE_SECONDS is 'nan', which is not a number",
        ),
        ({"REQUESTS_PER_MINUTE": "1" + "0" * 5000}, f"REQUESTS_PER_MINUTE is '1{'0' * 39}', which is not a number"),
        ({"API_SERVER": "http://127.0.0.1:8899"}, {"api_server": "http://127.0.0.1:8899"}),
        ({"API_SERVER": "eval.ai"}, "API_SERVER is eval.ai: tokens are sent only over https or to this machine"),
        ({"QUEUE_NAME": "<queue>"}, "a setting is still a placeholder in angle brackets"),
        ({"GRACE_SECONDS": "0", "HEALTH_PORT": "65535"}, {"grace_seconds": 0.0, "health_port": 65535}),
        ({"GRACE_SECONDS": "-0.1", "HEALTH_PORT": "-1"}, "GRACE_SECONDS cannot be below 0\nHEALTH_PORT cannot be below 0"),
        ({"HEALTH_PORT": "65536"}, "HEALTH_PORT must be a port, at most 65535"),
        ({"SCORER_PYTHON": "<python>"}, {"scorer_python": "<python>"}),
        ({"LOG_FORMAT": "xml"}, "LOG_FORMAT must be pretty or json"),
        ({"LOG_FORMAT": "pretty"}, {}),
        ({"SCORING_SECONDS": "1"}, {"scoring_seconds": 1.0}),
        ({"REQUESTS_PER_MINUTE": "1"}, {"requests_per_minute": 1}),
        ({"POLL_SECONDS": "1"}, {"poll_seconds": 1.0}),
        ({"MEMORY_BYTES": "1"}, {"memory_bytes": 1}),
        ({"MAX_SUBMISSION_BYTES": "1"}, {"max_submission_bytes": 1}),
        *(
            ({name: "0"}, f"{name} must be above 0")
            for name in ("SCORING_SECONDS", "REQUESTS_PER_MINUTE", "POLL_SECONDS", "MEMORY_BYTES", "MAX_SUBMISSION_BYTES")
        ),
    ],
)  # fmt: skip
def test_variables_are_settings_or_errors(variables: dict[str, str], expected: Any) -> None:
    made = outcome(lambda: vars(WorkerSettings.read({**RIGHT, **variables})))
    if isinstance(expected, str):
        assert made == f"SettingsError: {expected}"
    else:
        assert made == {**DEFAULTS, **expected}


def test_each_missing_variable_says_where_it_stands() -> None:
    assert outcome(lambda: WorkerSettings.read({})) == "\n".join([
        f"SettingsError: {COPY_TOKEN}",
        "API_SERVER is not set: set it to https://eval.ai, or to http://127.0.0.1:8899 for a rehearsal",
        "QUEUE_NAME is not set: copy it from the output of `segjudge push`, or from the Manage tab",
        "CHALLENGE_PK is not set: copy the number from the challenge's URL",
    ])  # fmt: skip


def test_secrets_are_not_shown() -> None:
    assert repr(WorkerSettings("secret", "s", "q", 1, webhook="hidden")) == (
        "WorkerSettings(api_server='s', queue_name='q', challenge_pk=1, save_dir='.segjudge/worker', annotations='annotations/', "
        "requests_per_minute=50, poll_seconds=6.0, sweep_seconds=300.0, memory_bytes=4294967296, max_submission_bytes=8589934592, "
        "bundle='', evaluate='', scorer_python='', scoring_seconds=3600.0, grace_seconds=3.0, health_port=0, log_format='pretty', "
        "sqs_queue_url='', artifacts='')"
    )


CONFIG = "bundle/challenge_config.yaml"


@pytest.mark.parametrize("is_bundle", [False, True])
@pytest.mark.parametrize(
    ("options", "bundle", "evaluate", "python", "annotations"),
    [
        ({}, "HERE", "", "", "HERE/annotations"),
        ({"scorer_python": "python3", "evaluate": "e.py"}, "", "HERE/e.py", "python3", "HERE/annotations"),
        ({"scorer_python": "./python", "annotations": "s3://b/x"}, "HERE", "", "HERE/python", "s3://b/x"),
        ({"bundle": "bundle"}, "HERE/bundle", "", "", "HERE/bundle/annotations"),
        ({"bundle": CONFIG}, f"HERE/{CONFIG}", "", "", "HERE/bundle/annotations"),
        ({"bundle": "bundle", "annotations": "truths"}, "HERE/bundle", "", "", "HERE/truths"),
    ],
)
def test_paths_are_those_of_the_folder_or_of_the_bundle(
    options: dict[str, Any], bundle: str, evaluate: str, python: str, annotations: str, is_bundle: bool, folder: Path
) -> None:
    for name in ("bundle/annotations", "annotations", "truths"):
        Path(name).mkdir(parents=True)
    if is_bundle:
        Path("challenge_config.yml").touch()
    made = WorkerSettings("", "", "", 0, **options).with_absolute_paths()
    paths = [made.save_dir, made.bundle, made.evaluate, made.scorer_python, made.annotations]
    if bundle == "HERE" and not is_bundle:
        bundle = ""
    expected = ["HERE/.segjudge/worker", bundle, evaluate, python, annotations]
    assert [path.replace(str(folder), "HERE") for path in paths] == expected
    assert made.scorer_choice == {
        "bundle": made.bundle, "evaluate": made.evaluate, "scorer_python": made.scorer_python,
        "annotations": made.annotations, "scoring_seconds": 3600.0,
    }  # fmt: skip
    assert made.annotation_path({"annotation": "a.zip", "labels": {}, "seconds": 1}) == f"{made.annotations}/a.zip"
    assert made.annotation_path({"annotation": "", "labels": {}, "seconds": 1}) == ""


# ── several workers ─────────────────────────────────────────────────────────


class Worker:
    """A process that ends after this many polls."""

    def __init__(self, noted: list[str], number: int, looks: int, code: int) -> None:
        self._noted, self._number, self._looks, self._code = noted, number, looks, code

    def poll(self) -> int | None:
        self._looks -= 1
        return None if self._looks >= 0 else self._code

    def __getattr__(self, name: str) -> Any:
        return lambda *words: self._noted.append(
            " ".join(map(str, [name, self._number, *[round(word, 2) for word in words]]))
        )


@pytest.mark.parametrize(
    ("count", "once", "polls", "seconds", "noted", "code"),
    [
        (  # a worker ends and is started again
            2, [], ((3, 1), (99, 0), (99, 0)), 4.0,
            "1 at 0.0 8000, 2 at 0.0 0, end 1, 3 at 2.8 8000, signal 2 15, signal 3 15, wait 2 6.5, end 2, wait 3 6.5, end 3", 0,
        ),
        (  # a worker is refused
            3, [], ((99, 0), (2, 4), (99, 0)), 9.0,
            "1 at 0.0 8000, 2 at 0.0 0, 3 at 0.0 0, end 2, signal 1 15, signal 3 15, wait 1 6.5, end 1, wait 3 6.5, end 3", 4,
        ),
        # all are done; a worker died; none can be started again; a worker that was done starts again
        (2, ["--once"], ((2, 0), (4, 0)), 9.0, "1 at 0.0 8000, 2 at 0.0 0, end 1, end 2", 0),
        (2, ["--once"], ((2, 0), (4, 1), (3, 0)), 20.0, "1 at 0.0 8000, 2 at 0.0 0, end 1, end 2, 3 at 3.0 0, end 3", 0),
        (1, [], ((0, 0), None, (1, 3)), 20.0, "1 at 0.0 8000, end 1, 2 at 2.2 8000, 3 at 4.2 8000, end 3", 3),
        (1, [], ((1, 0), (99, 0)), 3.0, "1 at 0.0 8000, end 1, 2 at 2.4 8000, signal 2 15, wait 2 6.5, end 2", 0),
    ],
)  # fmt: skip
def test_workers_are_started_again_and_end_together(
    count: int, once: list[str], polls: Any, seconds: float, noted: str, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, coming, numbers, lines = [1000.0], iter(polls), itertools.count(1), list[str]()

    def wait(pause: float) -> bool:
        now[0] += pause
        return now[0] > 1000 + seconds

    def start(arguments: list[str], _streams: object, *, environment: dict[str, str]) -> Worker:
        number, poll = next(numbers), next(coming)
        assert arguments[1:] == ["-P", "-m", "segjudge.remote_challenge_evaluation", *once]
        lines.append(f"{number} at {now[0] - 1000:.1f} {environment['HEALTH_PORT']}")
        if poll is None:
            raise OSError
        return Worker(lines, number, *poll)

    stop = mock.Mock(wait=wait)
    made = mock.Mock(return_value=stop)
    monkeypatch.setattr(worker_loop, "Child", start)
    monkeypatch.setattr(worker_loop, "Stop", made)
    monkeypatch.setattr(worker_loop, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setenv("HEALTH_PORT", "8000")
    assert worker_loop.run_workers(count, once, (2, 3, 4), 1.5) == code
    assert ", ".join(lines) == noted
    assert (made.call_args, stop.method_calls[:1]) == (mock.call(1.5), [mock.call.listen()])


RENEW = (
    "EvalAI no longer accepts the token: Invalid token\nRenew AUTH_TOKEN; finished results are kept and will be sent.\n"
)
USUAL = ["queue", False, "", "", ""]


@pytest.mark.parametrize(
    ("arguments", "variables", "error", "loop", "code", "out", "errors"),
    [
        ([], {}, None, USUAL, 0, "", ""),
        (["--check"], {}, None, USUAL, 0, "one\ntwo\n", ""),
        (["--check", "--jobs", "3"], {}, None, USUAL, 0, "one\ntwo\n", ""),
        (["--once"], {}, StartError("not here"), ["queue", True, "", "", ""], 3, "", "not here\n"),
        (
            ["--bundle", "b", "--evaluate", "e", "--python", "p"], {}, TokenRefusedError("Invalid token"),
            ["queue", False, "b", "e", "p"], 4, "", RENEW,
        ),
        ([], {"AUTH_TOKEN": ""}, None, None, 2, "", f"{COPY_TOKEN}\n"),
        (["--jobs", "3", "--once"], {}, None, mock.call(3, ["--once"], (2, 3, 4), 3.0), 9, "", ""),
        (["--jobs", "2"], {"GRACE_SECONDS": "7"}, None, mock.call(2, [], (2, 3, 4), 7.0), 9, "", ""),
        ([], {}, StoppedError("asked"), USUAL, 0, "", ""),
        ([], {}, SettingsError("no port"), USUAL, 2, "", "no port\n"),
    ],
)  # fmt: skip
def test_arguments_start_one_worker_or_several(
    arguments: list[str], variables: dict[str, str], error: Exception | None, loop: Any, code: int, out: str, errors: str,
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    begun: list[Any] = []

    class Loop:
        def __init__(self, made: WorkerSettings, *, once: bool) -> None:
            begun.append([made.queue_name, once, made.bundle, made.evaluate, made.scorer_python])

        def check(self) -> list[str]:
            return ["one", "two"]

        def run(self) -> None:
            if error:
                raise error

    def run_workers(*given: Any) -> int:
        begun.append(mock.call(*given))
        return 9

    monkeypatch.setattr(program, "WorkerLoop", Loop)
    monkeypatch.setattr(program, "run_workers", run_workers)
    for name, value in {**RIGHT, **variables}.items():
        monkeypatch.setenv(name, value)
    assert (program.main(arguments), *capsys.readouterr()) == (code, out, errors)
    assert begun == ([loop] if loop else [])


# ── challenges ──────────────────────────────────────────────────────────────

METRICS = ["J&F-Mean", "J-Mean", "J-Recall", "J-Decay", "F-Mean", "F-Recall", "F-Decay"]
SCORES = ["Accuracy", "Coverage"]


def describe(folder: Path, **choice: str) -> Any:
    """Return the first two phases of a chosen challenge; a fork may have others of its own."""
    truths = str(folder / "truths")
    whole = {
        "bundle": "", "evaluate": "", "scorer_python": "", "annotations": truths, "scoring_seconds": 60.0, **choice,
    }  # fmt: skip
    out = io.StringIO()
    with contextlib.redirect_stdout(out), mock.patch.object(sys, "argv", ["challenge", "describe", json.dumps(whole)]):
        challenge.main()
    return dict([*json.loads(out.getvalue()).items()][:2])


@pytest.fixture
def bundles(folder: Path) -> dict[str, str]:
    """Write bundles of several forms; return their paths."""
    (folder / "truths").mkdir()
    for name in ("dev.json", "dev.zip", "test.zip"):
        (folder / "truths" / name).touch()
    foreign, remote = guests.starter(folder / "foreign"), guests.remote(folder / "remote")
    config = Path(foreign, "challenge_config.yaml").read_text()
    bare = guests.starter(folder / "bare", config=config.replace("test_annotation_file: annotations/", "other_file: "))
    shutil.rmtree(Path(bare, "evaluation_script"))
    (folder / "alone.py").touch()
    built = build(str(foreign), str(folder / "built.zip")).path
    return {
        "foreign": str(foreign),
        "remote": str(remote),
        "bare": str(bare),
        "alone": str(folder / "alone.py"),
        "built": built,
    }


@pytest.mark.parametrize(
    ("bundle", "evaluate", "truths", "script", "forms"),
    [
        ("foreign", "", ("dev.json", "test.json"), ("foreign/evaluation_script", "foreign"), ("hosted",)),
        ("remote", "", ("", "test.zip"), ("remote/remote_challenge_evaluation/evaluate.py", "remote"), ("remote",)),
        ("", "bare/challenge_config.yaml", ("", "test.zip"), ("bare/challenge_config.yaml", "bare"), ("hosted",)),
        ("bare", "alone.py", ("", "test.zip"), ("alone.py", "bare"), ("remote",)),
        ("built", "", ("dev.json", "test.json"), ("evaluation_script.zip", "built.zip"), ("hosted",)),
    ],
)  # fmt: skip
def test_a_challenge_of_others_is_scored_by_its_script(
    bundle: str, evaluate: str, truths: tuple[str, str], script: tuple[str, str], forms: Any, bundles: dict[str, str], folder: Path
) -> None:  # fmt: skip
    file, root = script
    path = file if bundle == "built" else str(folder / file)
    called = {"python": "py" if bundle == "remote" else sys.executable, "file": path, "root": str(folder / root)}
    choice = {"bundle": bundles.get(bundle, ""), "evaluate": evaluate and str(folder / evaluate)}
    with mock.patch.object(challenge, "read_form", side_effect=itertools.cycle(forms)) as form:
        phases = describe(folder, scorer_python="py" if bundle == "remote" else "", **choice)
    assert form.call_args_list == [mock.call(called)]
    usual = {"seconds": 60.0, "script": called, "needs_annotation": forms == ("hosted",)}
    assert phases == {
        "dev": {"annotation": truths[0], "labels": {"val": SCORES}, "hidden": [], **usual},
        "test": {
            "annotation": truths[1], "labels": {"val": SCORES, "test_split": SCORES}, "hidden": ["test_split"], **usual,
        },
    }  # fmt: skip


@pytest.mark.parametrize("bundle", ["", str(ROOT)])
def test_our_challenge_is_scored_by_its_phases(bundle: str, bundles: dict[str, str], folder: Path) -> None:
    assert describe(folder, bundle=bundle) == {
        "sequences-dev": {"annotation": "sequences-dev.zip", "labels": {"dev": METRICS}, "seconds": 3600},
        "sequences-test": {
            "annotation": "sequences-test.zip", "labels": {"test": METRICS, "test-hard": METRICS}, "seconds": 3600,
        },
    }  # fmt: skip


def test_a_challenge_that_cannot_be_scored_says_what_is_missing(bundles: dict[str, str], folder: Path) -> None:
    for choice, error in (
        (
            {"bundle": bundles["bare"]},
            "bare: has neither remote_challenge_evaluation/evaluate.py nor evaluation_script; name a file with --evaluate",
        ),
        ({"evaluate": bundles["alone"]}, "alone.py: is not in the folder of a bundle; name the bundle with --bundle"),
        ({"bundle": str(folder / "nowhere")}, "nowhere: there is no such file or folder"),
    ):
        with pytest.raises(SystemExit) as exits:
            describe(folder, **choice)
        assert str(exits.value) == f"{folder}/{error}"
