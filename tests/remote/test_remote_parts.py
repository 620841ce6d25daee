"""Parts of the remote worker: its machine, its log, its stop, its sweep, the ends of a scorer, and its scoring of a phase."""

from __future__ import annotations

import contextlib
import datetime
import io
import os
import select
import signal
import stat
import sys
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest

from segjudge.evaluation_script.files.problems import HostError
from segjudge.evaluation_script.scoring.phase import Phase, PhaseSplit
from segjudge.platforms.evalai.hosted_worker.process import DiedError, HungError, UnloadableError, UnwantedError
from segjudge.remote_challenge_evaluation import (
    evaluate,
    journal,
    monitoring,
    scorer_process,
    services,
    worker,
    worker_loop,
)
from segjudge.remote_challenge_evaluation.settings import WorkerSettings
from segjudge.system.network import StoppedError, WireError
from tests.calls import outcome

GROUP = "/proc/self/cgroup"


@pytest.mark.parametrize(
    ("files", "limited"),
    [
        ({}, False),
        ({GROUP: "0::/a\n", "/sys/fs/cgroup/a/pids.max": "100\n"}, True),
        ({GROUP: "0::/a\n", "/sys/fs/cgroup/a/pids.max": "max\n"}, False),
        ({GROUP: "3:cpu:/\n2:pids:/b:c\n", "/sys/fs/cgroup/pids/b:c/pids.max": "7"}, True),
        ({GROUP: "0::/z"}, False),
    ],
)
def test_cgroups_limit_processes(files: dict[str, str], limited: bool) -> None:
    def read(path: str, **_: str) -> io.StringIO:
        if path not in files:
            raise FileNotFoundError(path)
        return io.StringIO(files[path])

    with mock.patch("builtins.open", read):
        assert worker_loop._has_process_limit() is limited


def test_a_folder_of_the_worker_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    no_folder = f"{tmp_path}/file is not a folder"
    for name, problem in (("new/below", ""), ("file/below", no_folder), ("file", no_folder)):
        shown = problem and f"SAVE_DIR {tmp_path}/{name}: {problem}"
        assert worker_loop._folder_problem(str(tmp_path / name)) == shown
    with mock.patch.object(worker_loop.os, "access", return_value=False) as access:
        assert worker_loop._folder_problem(str(tmp_path)) == f"SAVE_DIR {tmp_path}: {tmp_path} cannot be written"
    assert access.call_args == mock.call(str(tmp_path), os.W_OK | os.X_OK)


def test_a_stop_is_asked_for_and_over_after_its_patience() -> None:
    stop = services.Stop(0.0)
    assert (stop.is_set(), stop.is_over(), select.select([stop._read], [], [], 0)[0]) == (False, False, [])
    stop.ask()
    assert (stop.is_set(), stop.is_over(), stop.wait(99), stop.wait_over(99)) == (True, True, True, True)
    assert len(select.select([stop._read], [], [], 0)[0]) == 1
    for check in (stop.check, stop.check_over):
        assert outcome(check) == "StoppedError: asked to stop"
    patient = services.Stop(99.0)
    patient.ask()
    assert (patient.is_set(), patient.is_over()) == (True, False)
    patient.ask()
    assert patient.is_over()


def test_files_of_the_worker_are_its_owners(tmp_path: Path) -> None:
    settings = WorkerSettings("t", "http://127.0.0.1:1", "q", 1, save_dir=str(tmp_path / "machine"))
    stop, mask = services.Stop(0.0), os.umask(0o022)
    handlers = {number: signal.getsignal(number) for number in services._SIGNALS}
    try:
        with (
            mock.patch.object(worker_loop, "forbid_inspection") as forbid,
            mock.patch.object(worker_loop, "Stop", return_value=stop),
        ):
            loop = worker_loop.WorkerLoop(settings)
            os.umask(0o022)
            loop._open_journal()
        loop._journal.close()
        assert (forbid.call_count, stat.filemode((tmp_path / "machine").stat().st_mode)) == (1, "drwx------")
        os.umask(0o022)
        item = journal.Journal(str(tmp_path / "journal"))
        modes = {path.name: stat.filemode(path.stat().st_mode) for path in sorted((tmp_path / "journal").rglob("*"))}
        item.close()
    finally:
        os.umask(mask)
        for number, handler in handlers.items():
            signal.signal(number, handler)
    assert {name if len(name) != 8 else "owner": mode for name, mode in modes.items()} == {
        "locks": "drwx------",
        **dict.fromkeys(("journal.sqlite3", "journal.sqlite3-shm", "journal.sqlite3-wal", "owner", "opening"), "-rw-------"),
    }  # fmt: skip


TIME = "2026-01-02T03:04:05.678Z"
PRETTY = f"""\
{TIME}  start                  a b  {"c" * 4000} (submission 1, some thing 0)
{TIME}  ALERT                  size {{1}}
{TIME}  refused                size {{1}}
{TIME}  waits                  size {{1}}
{TIME}  a long name of an event size {{1}}
{TIME}  signed                 https://s3/x
"""
FACTS = r'"text": "a\nb\u001b", "why": "c", "submission": 1, "state": "", "other": null, "some_thing": 0'
JSON = f"""\
{{"time": "{TIME}", "level": "info", "event": "start", "worker": "w", {FACTS}}}
{{"time": "{TIME}", "level": "error", "event": "ALERT", "worker": "w", "size": "{{1}}"}}
{{"time": "{TIME}", "level": "warning", "event": "refused", "worker": "w", "size": "{{1}}"}}
{{"time": "{TIME}", "level": "info", "event": "waits", "worker": "w", "size": "{{1}}"}}
{{"time": "{TIME}", "level": "info", "event": "a long name of an event", "worker": "w", "size": "{{1}}"}}
{{"time": "{TIME}", "level": "info", "event": "signed", "worker": "w", "text": "https://s3/x"}}
"""


@pytest.mark.parametrize(("form", "lines"), [("pretty", PRETTY), ("json", JSON)])
def test_events_are_lines_without_secrets(form: str, lines: str, capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    today = datetime.datetime(2026, 1, 2, 3, 4, 5, 678900, datetime.UTC)
    clock = SimpleNamespace(datetime=SimpleNamespace(now=lambda _: today), UTC=datetime.UTC)
    monkeypatch.setattr(monitoring, "datetime", clock)
    log = monitoring.Log(form, worker="w")
    why = "c" * 5000 if form == "pretty" else "c"
    log("start", text="a\nb\x1b", why=why, submission=1, state="", other=None, some_thing=0)
    for event in ("ALERT", "refused", "waits", "a long name of an event"):
        log(event, size={1})
    log("signed", text="https://s3/x?Signature=secret&a=1")
    assert capsys.readouterr().err == lines
    monkeypatch.setattr(monitoring, "exchange", mock.Mock(side_effect=WireError("nobody")))
    monitoring.send_to_webhook("http://x", "text", monitoring.Log("pretty"), lambda: None)
    assert capsys.readouterr().err == f"{TIME}  webhook unavailable    nobody\n"


def test_a_worker_cannot_be_inspected_and_waits_for_aws(monkeypatch: pytest.MonkeyPatch) -> None:
    with mock.patch.object(scorer_process.ctypes, "CDLL") as library:
        scorer_process.forbid_inspection()
    assert library.mock_calls == [mock.call(None), mock.call().prctl(4, 0)]
    with mock.patch.object(scorer_process.ctypes, "CDLL", side_effect=OSError):
        scorer_process.forbid_inspection()
    with mock.patch("boto3.client") as client:
        services._aws_client("sqs")
    config = client.call_args.kwargs["config"]
    assert client.call_args.args == ("sqs",)
    assert (config.connect_timeout, config.read_timeout, config.retries) == (10, 60, {"max_attempts": 3})
    monkeypatch.setattr(services, "call_in_thread", mock.Mock(side_effect=StoppedError("asked")))
    fetch = outcome(lambda: services.fetch_annotations("s3://b", "f", [], "w", lambda: None))
    assert fetch == "StoppedError: asked"


@pytest.mark.parametrize(
    ("status", "problem", "in_hand", "steps"),
    [
        ("submitted", "", False, "asks, looks at phase 2, claims again, logs submitted, begins"),
        ("running", "", False, "asks, looks at phase 2, claims again, logs running, begins"),
        ("resuming", "", False, "asks, looks at phase 2, claims again, logs resuming, begins"),
        ("running", "", True, "asks, looks at phase 2, claims again"),
        ("queued", "no truth", False, "asks, looks at phase 2"),
        ("finished", "", False, "asks"),
        ("cancelled", "no truth", False, "asks"),
        ("failed", "", False, "asks"),
    ],
)
def test_a_sweep_takes_lost_submissions(status: str, problem: str, in_hand: bool, steps: str) -> None:
    noted: list[str] = []

    def note(step: str, value: Any = None) -> Any:
        noted.append(step)
        return value

    row = {"id": 4, "status": status, "challenge_phase": 2}
    job = None if in_hand else SimpleNamespace(submission=4)
    played: Any = SimpleNamespace(
        _jobs=SimpleNamespace(fetch_submission=lambda number: note("asks" if number == 4 else "asks for another", row)),
        scoring=SimpleNamespace(problem_of=lambda phase: note(f"looks at phase {phase}", problem)),
        _claim=lambda claimed, *, again: note(f"claims{' again' * again}" if claimed is row else "claims another", job),
        _log=lambda event, submission, status: note(
            f"logs {status}" if (event, submission) == ("recovered", 4) else event
        ),
        _guard=lambda _job, work: work(),
        _begin=lambda _job, begun, message: note("begins" if begun is row and message is None else "begins another"),
    )
    worker.Worker.take_lost(played, {"id": 4})
    assert ", ".join(noted) == steps


# ── the ends of a scorer ────────────────────────────────────────────────────

SCRIPT: Any = {"python": "python3.9", "file": "evaluate.py", "root": "/repository"}
OURS = scorer_process.ScoringRequest("s.zip", "dev", "dev.zip", {"id": 4}, 7, "bundle.zip", hidden=("secret",))
HOSTS = scorer_process.ScoringRequest("s.zip", "dev", "", {"id": 4}, 0, "bundle.zip", SCRIPT)
HOSTS_ORDER = {"worker": "remote", "memory": 0, "file": "evaluate.py", "root": "/repository"}


class Scorer:
    """The process of a scorer that gives one answer, and what it is started with and asked."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, answer: Any) -> None:
        self.begun: list[Any] = []
        self.asked: list[Any] = []
        self.closed = 0
        self._answer = answer
        monkeypatch.setattr(scorer_process, "ScoringProcess", self._start)
        monkeypatch.setattr(scorer_process, "IMPORT_ROOT", "ROOT")
        for name in [*os.environ]:
            monkeypatch.delenv(name)
        for name, value in {"TMPDIR": "T", "HOME": "H", "TOKEN": "secret"}.items():
            monkeypatch.setenv(name, value)

    def _start(self, python: list[str], order: Any, terms: Any) -> Any:
        variables = {name: value for name, value in terms.environment.items() if os.environ.get(name) != value}
        assert terms.folder
        self.begun.append((python, order, variables, terms.passed, terms.bounds))
        if isinstance(self._answer, OSError):
            raise self._answer
        return SimpleNamespace(
            ask=self._ask, close=self._close, streams=lambda: ("out", "err"), log=lambda: "a long log " * 400
        )

    def _ask(self, fields: Any, seconds: float, is_over: Any = None) -> Any:
        self.asked.append((fields, seconds, is_over))
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer

    def _close(self) -> None:
        self.closed += 1


def test_a_scorer_is_started_for_our_script_or_that_of_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    scorer = Scorer(monkeypatch, {"accuracies": [1], "metadata": 2})
    for request in (OURS, HOSTS):
        made = scorer_process.run_scorer(request, "in", 60.0, 5, None)
        assert (made.accuracies, made.metadata, made.stdout, made.stderr, made.log) == (
            [1],
            2,
            "out",
            "err",
            "a long log " * 400,
        )
    module = "segjudge.remote_challenge_evaluation.evaluate"
    imports = {"PYTHONPATH": "ROOT", "PYTHONDONTWRITEBYTECODE": "1"}
    order = {"worker": "remote", "memory": 7, "folder": "ROOT", "module": module}
    assert scorer.begun == [
        ([sys.executable, "-P"], order, {**imports, "BUNDLE": "bundle.zip"}, (5,), None),
        (["python3.9", "-I"], HOSTS_ORDER, imports, (5,), None),
    ]
    fields = {"submission": "s.zip", "phase": "dev", "metadata": {"id": 4}}
    assert scorer.asked == [
        ({**fields, "annotation": "dev.zip", "hidden": ("secret",)}, 60.0, None),
        ({**fields, "annotation": "", "hidden": ()}, 60.0, None),
    ]
    assert scorer.closed == 2


@pytest.mark.parametrize("request_", [OURS, HOSTS], ids=["ours", "the host's"])
@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ({"refused": "No masks."}, {"refused": "No masks."}),
        ({"incident": 17}, {"incident": "17"}),
        ({}, {}),
        (HungError("slow"), {"is_late": True}),
        (UnwantedError("over"), {"is_handed_back": True}),
        (UnloadableError("no module"), {"incident": "the scorer cannot be loaded (no module)"}),
        (DiedError("killed by 9"), {"incident": "the scorer gave no answer: killed by 9"}),
        (KeyError("x"), "KeyError: 'x'"),
        (OSError(2, "no such file"), "FileNotFoundError: [Errno 2] no such file"),
    ],
    ids=str,
)
def test_the_end_of_a_scorer_is_an_outcome(
    request_: Any, answer: Any, expected: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    scorer = Scorer(monkeypatch, answer)
    made = outcome(lambda: vars(scorer_process.run_scorer(request_, "in", 60.0, 5, None)))
    usual = {"stdout": "out", "stderr": "err", "log": "a long log " * 400}
    if isinstance(expected, dict):
        made, expected = {name: value for name, value in made.items() if value}, {**usual, **expected}
    assert made == expected
    assert scorer.closed == (not isinstance(answer, OSError))


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ({"form": "hosted"}, "hosted"),
        (
            UnloadableError("no module"),
            f"HostError: evaluate.py: cannot be loaded:\n{('a long log ' * 400).strip()[-3000:]}",
        ),
        (DiedError("killed by 9"), "HostError: evaluate.py: cannot be loaded (killed by 9)"),
        (OSError(2, "no such file"), "HostError: evaluate.py: cannot be loaded ([Errno 2] no such file)"),
    ],
    ids=str,
)
def test_the_form_of_a_script_is_asked_of_it(answer: Any, expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    scorer = Scorer(monkeypatch, answer)
    assert outcome(lambda: scorer_process.read_form(SCRIPT)) == expected
    assert scorer.begun == [(["python3.9", "-I"], HOSTS_ORDER, {}, (), None)]
    assert scorer.asked == ([] if isinstance(answer, OSError) else [({}, 300.0, None)])


# ── a phase as starters ask for it ──────────────────────────────────────────

SPLITS = (PhaseSplit("val", "davis2017", ("J",)), PhaseSplit("secret", "davis2017", ("J",), hidden=True))
PHASES = {
    name: Phase(name, f"deep/{path}", SPLITS, report=True) for name, path in (("dev", "truth.zip"), ("late", "gone.zip"))
}  # fmt: skip
NO_TRUTH = "HostError: There is no annotation file for {}. The organisers must set ANNOTATIONS."


@pytest.mark.parametrize(
    ("name", "truth", "variables", "scored", "operator", "expected"),
    [
        ("dev", None, {}, "annotations/truth.zip", "", [True, False]),
        ("dev", "mine.zip", {}, "mine.zip", "", [True, False]),
        ("dev", None, {"BUNDLE": "b"}, "annotations/truth.zip", "", [True, False]),
        ("own", None, {"BUNDLE": "b"}, "annotations/truth.zip", "", [True, True]),  # of the bundle, which hides nothing
        ("dev", None, {"ANNOTATIONS": "elsewhere"}, "", "elsewhere/truth.zip: does not exist", NO_TRUTH.format("dev")),
        ("late", None, {}, "", "annotations/gone.zip: does not exist", NO_TRUTH.format("late")),
        ("nobody", None, {}, "", "", "KeyError: 'nobody'"),
        ("own", None, {}, "", "", "KeyError: 'own'"),
    ],
)
def test_a_phase_is_scored_with_its_truth(
    name: str, truth: str | None, variables: dict[str, str], scored: str, operator: str, expected: Any,
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    (tmp_path / "annotations").mkdir()
    (tmp_path / "annotations/truth.zip").touch()
    monkeypatch.chdir(tmp_path)
    for variable in ("BUNDLE", "ANNOTATIONS", "SEGJUDGE_BUNDLE"):
        monkeypatch.delenv(variable, raising=False)
    for variable, value in variables.items():
        monkeypatch.setenv(variable, value)
    bundle = SimpleNamespace(phases=lambda: [PHASES["late"], Phase("own", "deep/truth.zip", SPLITS[:1])])
    asked: list[Any] = []

    def score(phase: Any, truth: str, submission: str, metadata: object) -> Any:
        asked.append((phase.codename, phase.report, truth, submission, metadata))
        warnings.warn_explicit("odd numbers", UserWarning, "file.py", 3)
        return {"result": [{"val": {"J": 0.5}}, {"secret": {"J": 0.25}}], "submission_metadata": {"seconds": 1}}

    find = "segjudge.platforms.evalai.bundle.bundle_source.find_bundle"
    with (
        mock.patch.multiple(evaluate, evaluate_phase=score, phase_named=PHASES.__getitem__), warnings.catch_warnings(),
        mock.patch(find, lambda path: bundle if path == "b" else None), mock.patch.object(sys, "__stderr__", io.StringIO()) as errors,
    ):  # fmt: skip
        warnings.simplefilter("always")
        made = outcome(lambda: evaluate.evaluate("s.zip", name, truth, submission_metadata={"id": 4}, more=1))
    assert asked == ([(name, False, scored, "s.zip", {"id": 4})] if scored else [])
    assert errors.getvalue().strip() == ("file.py:3: UserWarning: odd numbers" if scored else operator)
    if scored:
        rows = zip(("val", "secret"), expected, ({"J": 0.5}, {"J": 0.25}), strict=True)
        results = [
            {"split": split, "show_to_participant": shown, "accuracies": scores} for split, shown, scores in rows
        ]
        expected = {"result": results, "submission_metadata": {"seconds": 1}}
    assert made == expected


def test_a_missing_truth_is_told_without_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "__stderr__", None)
    with contextlib.redirect_stderr(io.StringIO()) as errors, contextlib.suppress(HostError):
        evaluate._annotation(PHASES["late"], "annotations")
    assert errors.getvalue() == "annotations/gone.zip: does not exist\n"
