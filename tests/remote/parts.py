"""The worker's messages about settings, challenges and its processes before scoring, as one text."""

from __future__ import annotations

import contextlib
import datetime
import io
import itertools
import json
import os
import select
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

from segjudge.platforms.evalai.bundle.build import build
from segjudge.remote_challenge_evaluation import __main__ as program
from segjudge.remote_challenge_evaluation import (
    challenge,
    journal,
    monitoring,
    scorer_process,
    services,
    worker_loop,
)
from segjudge.remote_challenge_evaluation.services import TokenRefusedError
from segjudge.remote_challenge_evaluation.settings import SettingsError, StartError, WorkerSettings
from segjudge.system.network import StoppedError, WireError
from tests import guests
from tests.builders import ROOT

from .parts_of_scoring import PARTS as OF_SCORING

FILE = Path(__file__).parent.parent / "golden/worker_parts.txt"
RIGHT = {"AUTH_TOKEN": "abc", "API_SERVER": "https://eval.ai/", "QUEUE_NAME": "queue", "CHALLENGE_PK": "7"}


class Page:
    """The text up to now, and a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.lines, self._earlier = folder, list[str](), dict[str, str]()

    def say(self, *arguments: object) -> None:
        text = " ".join(map(str, arguments)).replace(sys.executable, "PYTHON").replace(str(self.folder), "FOLDER")
        self.lines.append(text.replace(str(ROOT), "CHECKOUT"))

    def try_out(self, about: str, work: Callable[[], object]) -> None:
        try:
            self.say(f"{about}: {work()}")
        except (Exception, SystemExit) as error:  # noqa: BLE001 - its sentence is what is held
            self.say(f"{about}: {type(error).__name__}: {error}")

    def try_in_a_line(self, about: str, work: Callable[[], object]) -> None:
        """Note what is said meanwhile before the value, or name an earlier line that says the same."""
        start = len(self.lines)
        self.try_out("gives", work)
        text = "; ".join(line.strip() for line in self.lines[start:])
        self.lines[start:] = [f"{about}: {self._earlier.get(text, text)}"]
        self._earlier.setdefault(text, f"as {about!r}")


def settings(page: Page) -> None:
    defaults = vars(WorkerSettings("", "", "", 0))

    def read(**changes: str) -> str:
        made = WorkerSettings.read({**RIGHT, **changes})
        return str(
            {name: value for name, value in vars(made).items() if value != defaults[name] and name != "queue_name"}
        )

    for changes in (
        {}, {"SWEEP_SECONDS": "0.5", "MEMORY_BYTES": " 7 ", "LOG_FORMAT": "json"}, {"AUTH_TOKEN": " "}, {"AUTH_TOKEN": "a b"}, {"AUTH_TOKEN": "é"},
        {"CHALLENGE_PK": "1.5"}, {"CHALLENGE_PK": "x" * 60}, {"GRACE_SECONDS": "nan", "POLL_SECONDS": "inf"}, {"REQUESTS_PER_MINUTE": "1" + "0" * 5000},
        {"API_SERVER": "http://127.0.0.1:8899"}, {"API_SERVER": "eval.ai"}, {"QUEUE_NAME": "<queue>"}, {"GRACE_SECONDS": "0", "HEALTH_PORT": "65535"},
        {"GRACE_SECONDS": "-0.1", "HEALTH_PORT": "-1"}, {"HEALTH_PORT": "65536"}, {"SCORER_PYTHON": "<python>"},
        {"LOG_FORMAT": "xml"}, {"LOG_FORMAT": "pretty"},
        *({name: value} for name in ("SCORING_SECONDS", "REQUESTS_PER_MINUTE", "POLL_SECONDS", "MEMORY_BYTES", "MAX_SUBMISSION_BYTES") for value in ("0", "1")),
    ):  # fmt: skip
        page.try_out(str(changes)[:100], lambda changes=changes: read(**changes))  # type: ignore[misc]
    page.try_out("nothing", lambda: WorkerSettings.read({}))
    page.say(repr(WorkerSettings("secret", "s", "q", 1, webhook="hidden")))
    (page.folder / "bundle/annotations").mkdir(parents=True)
    (page.folder / "annotations").mkdir()
    (page.folder / "truths").mkdir()
    for options in ({}, {"scorer_python": "python3", "evaluate": "e.py"}, {"scorer_python": "./python", "annotations": "s3://b/x"},
                    {"bundle": "bundle"}, {"bundle": "bundle/challenge_config.yaml"}, {"bundle": "bundle", "annotations": "truths"}):  # fmt: skip
        for config in ("none", "challenge_config.yml"):
            (page.folder / config).touch()
            made = WorkerSettings("", "", "", 0, **options).with_absolute_paths()  # type: ignore[arg-type]
            page.say(options, config, [made.save_dir, made.bundle, made.evaluate, made.scorer_python, made.annotations])
            (page.folder / config).unlink()
    page.say(made.scorer_choice)
    for name in ("a.zip", ""):
        page.say(repr(made.annotation_path({"annotation": name, "labels": {}, "seconds": 1})))


class Worker:
    """A process that ends on request, or after this many polls."""

    def __init__(self, page: Page, number: int, looks: int, code: int) -> None:
        self._page, self._number, self._looks, self._code = page, number, looks, code

    def poll(self) -> int | None:
        self._looks -= 1
        return None if self._looks >= 0 else self._code

    def __getattr__(self, name: str) -> Any:
        return lambda *words: self._page.say(name, *[round(word, 2) for word in words], f"of process {self._number}")


def several_workers(page: Page) -> None:
    for about, count, arguments, looks, seconds in (
        ("one ends and is started again", 2, [], ((3, 1), (99, 0), (99, 0)), 4.0), ("one is refused", 3, [], ((99, 0), (2, 4), (99, 0)), 9.0),
        ("all are done", 2, ["--once"], ((2, 0), (4, 0)), 9.0), ("one died", 2, ["--once"], ((2, 0), (4, 1), (3, 0)), 20.0),
        ("none can be started again", 1, [], ((0, 0), None, (1, 3)), 20.0), ("one that was done starts again", 1, [], ((1, 0), (99, 0)), 3.0),
    ):  # fmt: skip
        now, coming, numbers = [1000.0], iter(looks), itertools.count(1)

        def wait(pause: float) -> bool:
            now[0] += pause  # noqa: B023
            return now[0] > 1000 + seconds  # noqa: B023

        def start(arguments: list[str], _streams: object, *, environment: dict[str, str]) -> Worker:
            number, looks_and_code = next(numbers), next(coming)  # noqa: B023
            options = " ".join([*arguments[1:], environment.get("HEALTH_PORT", "")])
            page.say(options.replace("-P -m segjudge.remote_challenge_evaluation", f"{number} at {now[0] - 1000:.1f}"))  # noqa: B023
            if looks_and_code is None:
                raise OSError
            return Worker(page, number, *looks_and_code)

        stop = mock.Mock(wait=wait)
        clock = SimpleNamespace(monotonic=lambda: now[0])  # noqa: B023
        with (
            mock.patch.object(worker_loop, "Child", start), mock.patch.object(worker_loop, "Stop", return_value=stop) as made,
            mock.patch.object(worker_loop, "time", clock), mock.patch.dict(os.environ, HEALTH_PORT="8000"),
        ):  # fmt: skip
            page.try_in_a_line(about, lambda: worker_loop.run_workers(count, arguments, (2, 3, 4), 1.5))  # noqa: B023
        assert (made.call_args, stop.method_calls[:1]) == (mock.call(1.5), [mock.call.listen()])


def the_program(page: Page) -> None:
    class Loop:
        def __init__(self, made: WorkerSettings, *, once: bool) -> None:
            page.say(made.queue_name, once, [made.bundle, made.evaluate, made.scorer_python])

        def check(self) -> list[str]:
            return ["one", "two"]

        def run(self) -> None:
            if errors:
                raise errors.pop()

    errors: list[Exception] = []
    workers = mock.Mock(return_value=9)
    for message, environment, error in (
        ([], RIGHT, None), (["--check"], RIGHT, None), (["--check", "--jobs", "3"], RIGHT, None), (["--once"], RIGHT, StartError("not here")),
        (["--bundle", "b", "--evaluate", "e", "--python", "p"], RIGHT, TokenRefusedError("Invalid token")), ([], {**RIGHT, "AUTH_TOKEN": ""}, None),
        (["--jobs", "3", "--once"], RIGHT, None), (["--jobs", "2"], {**RIGHT, "GRACE_SECONDS": "7"}, None), ([], RIGHT, StoppedError("asked")),
        ([], RIGHT, SettingsError("no port")),
    ):  # fmt: skip
        errors[:] = [error] if error else []
        out, output = io.StringIO(), io.StringIO()
        with (
            mock.patch.object(program, "WorkerLoop", Loop), mock.patch.object(program, "run_workers", workers),
            mock.patch.dict(os.environ, environment), contextlib.redirect_stdout(out), contextlib.redirect_stderr(output),
        ):  # fmt: skip
            page.try_in_a_line(
                str(message),
                lambda: (program.main(message), out.getvalue(), output.getvalue(), *workers.mock_calls),  # noqa: B023
            )
        workers.reset_mock()
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        page.say(program.main(["--print", "dockerfile"]), printed.getvalue().splitlines()[0])


def challenges_described(page: Page) -> None:
    def describe(**choice: str) -> str:
        whole = {
            "bundle": "",
            "evaluate": "",
            "scorer_python": "",
            "annotations": str(page.folder / "truths"),
            "scoring_seconds": 60.0,
            **choice,
        }
        out = io.StringIO()
        with (
            contextlib.redirect_stdout(out),
            mock.patch.object(sys, "argv", ["challenge", "describe", json.dumps(whole)]),
        ):
            challenge.main()
        phases = list(json.loads(out.getvalue()).items())[:2]  # a fork may have others of its own
        return "\n  " + "\n  ".join(f"{name}: {phase}" for name, phase in phases)

    (page.folder / "truths").mkdir()
    for name in ("dev.json", "dev.zip", "test.zip"):
        (page.folder / "truths" / name).touch()
    foreign, remote = guests.starter(page.folder / "foreign"), guests.remote(page.folder / "remote")
    plain = (
        Path(foreign, "challenge_config.yaml").read_text().replace("test_annotation_file: annotations/", "other_file: ")
    )
    bare = guests.starter(page.folder / "bare", config=plain)
    shutil.rmtree(Path(bare, "evaluation_script"))
    (page.folder / "alone.py").touch()
    with mock.patch.object(challenge, "read_form", side_effect=itertools.cycle(("hosted", "remote"))) as form:
        for about, choice in (
            ("installed", {}), ("ours", {"bundle": str(ROOT)}), ("foreign", {"bundle": str(foreign)}), ("remote", {"bundle": str(remote), "scorer_python": "py"}),
            ("a file", {"evaluate": str(Path(bare, "challenge_config.yaml"))}), ("a file elsewhere", {"evaluate": str(page.folder / "alone.py"), "bundle": str(bare)}),
            ("built", {"bundle": build(str(foreign), str(page.folder / "built.zip")).path}), ("no evaluate", {"bundle": str(bare)}),
            ("no bundle", {"evaluate": str(page.folder / "alone.py")}), ("not there", {"bundle": str(page.folder / "nowhere")}),
        ):  # fmt: skip
            form.reset_mock()
            page.try_out(about, lambda choice=choice: describe(**choice))  # type: ignore[misc]
            if form.mock_calls:
                page.say(*form.mock_calls)
    (page.folder / "none").mkdir()
    for name, folder in (("x/y.zip", "truths"), ("", "truths"), (None, "truths"), (None, "none"), (None, "nowhere")):
        page.say(
            name,
            folder,
            [challenge._annotation_name(name, codename, str(page.folder / folder)) for codename in ("dev", "test")],
        )
    truths = page.folder / "annotations"
    chosen = {"bundle": "", "annotations": str(truths), "evaluate": ""}
    phases = [SimpleNamespace(codename=name, annotations=f"annotations/{name}.zip") for name in ("c", "a", "d", "b")]
    facts = mock.patch.object(
        challenge,
        "_annotation_facts",
        side_effect=[challenge.HostError("a truth"), "b's", ZeroDivisionError("x"), "d's"],
    )
    with mock.patch.object(challenge, "_phases_of", return_value=phases), facts:
        page.say(challenge._read_annotations(chosen))  # type: ignore[arg-type]
    for code, output in ((0, '{"a": 1}'), (0, "[1]"), (0, "x"), (1, '{"a": 1}')):
        script = f"import sys; print({output!r}); sys.stderr.write('a fault'); sys.exit({code})"
        command = [sys.executable, "-c", script]
        with mock.patch.object(scorer_process, "Child", lambda _, *more, **named: _Child(command, *more, **named)):  # noqa: B023
            page.try_out(f"{code} {output}", lambda: scorer_process._describe("s", str(page.folder), {}, lambda: None))  # type: ignore[typeddict-item]
    for problems in (["a", "b"], []):
        described = mock.patch.object(scorer_process, "_describe", return_value={"problems": problems, "facts": ["c"]})
        with described as describing:
            page.try_out("annotations", lambda: scorer_process.read_annotations("f", {}))  # type: ignore[typeddict-item]
            page.say(scorer_process.read_phases("f", {}), *(call.args[:3] for call in describing.call_args_list))  # type: ignore[typeddict-item]
    splits = [
        SimpleNamespace(split=name, truth=SimpleNamespace(read_through=lambda name=name: f"of {name}")) for name in "ab"
    ]
    with (
        mock.patch("segjudge.evaluation_script.main.open_truth", return_value="opened") as opened,
        mock.patch("segjudge.evaluation_script.scoring.scorer.phase_scorers", return_value=splits) as scorers,
    ):
        page.say(challenge._annotation_facts(phases[0], "truth.zip"), opened.call_args, scorers.call_args)  # type: ignore[arg-type]


_Child = scorer_process.Child


def a_machine_and_its_limits(page: Page) -> None:
    for about, files in (
        ("no cgroups", {}), ("a limit", {"/proc/self/cgroup": "0::/a\n", "/sys/fs/cgroup/a/pids.max": "100\n"}),
        ("no limit", {"/proc/self/cgroup": "0::/a\n", "/sys/fs/cgroup/a/pids.max": "max\n"}),
        ("of the old kind", {"/proc/self/cgroup": "3:cpu:/\n2:pids:/b:c\n", "/sys/fs/cgroup/pids/b:c/pids.max": "7"}), ("unknown", {"/proc/self/cgroup": "0::/z"}),
    ):  # fmt: skip

        def read(path: str, **_: str) -> io.StringIO:
            if path not in files:  # noqa: B023
                raise FileNotFoundError(path)
            return io.StringIO(files[path])  # noqa: B023

        with mock.patch("builtins.open", read):
            limited = worker_loop._has_process_limit()
        page.say(about, limited)
    for name in ("new/below", "file/below", "file"):
        (page.folder / "file").touch()
        page.say(name, repr(worker_loop._folder_problem(str(page.folder / name))))
    with mock.patch.object(worker_loop.os, "access", return_value=False) as access:  # type: ignore[attr-defined]
        page.say(repr(worker_loop._folder_problem(str(page.folder))), access.call_args)
    stop = services.Stop(0.0)
    page.say(stop.is_set(), stop.is_over(), select.select([stop._read], [], [], 0)[0])
    stop.ask()
    page.say(
        stop.is_set(), stop.is_over(), len(select.select([stop._read], [], [], 0)[0]), stop.wait(99), stop.wait_over(99)
    )
    for check in (stop.check, stop.check_over):
        page.try_out("asked", check)
    patient = services.Stop(99.0)
    patient.ask()
    page.say(patient.is_set(), patient.is_over())
    patient.ask()
    page.say(patient.is_over())
    settings_of_it = WorkerSettings("t", "http://127.0.0.1:1", "q", 1, save_dir=str(page.folder / "machine"))
    with (
        mock.patch.object(worker_loop, "forbid_inspection") as forbid,
        mock.patch.object(worker_loop, "Stop", return_value=stop),
    ):
        loop = worker_loop.WorkerLoop(settings_of_it)
        os.umask(0o022)
        loop._open_journal()
    page.say("a worker of its own:", forbid.call_count, stat.filemode((page.folder / "machine").stat().st_mode))
    loop._journal.close()
    os.umask(0o022)
    item = journal.Journal(str(page.folder / "journal"))
    modes = {path.name: stat.filemode(path.stat().st_mode) for path in sorted((page.folder / "journal").rglob("*"))}
    page.say({name if len(name) != 8 else "owner": mode for name, mode in modes.items()})
    item.close()

    class Now(datetime.datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return cls(2026, 1, 2, 3, 4, 5, 678901, tz)

    out = io.StringIO()
    with (
        mock.patch.object(monitoring, "datetime", SimpleNamespace(datetime=Now, UTC=datetime.UTC)),
        contextlib.redirect_stderr(out),
    ):
        for form in ("pretty", "json"):
            log = monitoring.Log(form, worker="w")
            log(
                "start",
                text="a\nb\x1b",
                why="c" * 5000 if form == "pretty" else "c",
                submission=1,
                state="",
                other=None,
                some_thing=0,
            )
            for event in ("ALERT", "refused", "waits", "a long name of an event"):
                log(event, size={1})
            log("signed", text="https://s3/x?Signature=secret&a=1")
        with mock.patch.object(monitoring, "exchange", side_effect=WireError("nobody")):
            monitoring.send_to_webhook("http://x", "text", monitoring.Log("pretty"), lambda: None)
    page.say(out.getvalue().replace("c" * 3999, "c…"))


def what_it_asks_of_its_system(page: Page) -> None:
    with mock.patch.object(scorer_process.ctypes, "CDLL") as library:
        scorer_process.forbid_inspection()
        page.say("inspection:", library.mock_calls)
    with mock.patch.object(scorer_process.ctypes, "CDLL", side_effect=OSError):
        page.say("elsewhere:", scorer_process.forbid_inspection())  # type: ignore[func-returns-value]
    with mock.patch("boto3.client") as client:
        services._aws_client("sqs")
    config = client.call_args.kwargs["config"]
    page.say("AWS:", client.call_args.args, config.connect_timeout, config.read_timeout, config.retries)
    with mock.patch.object(services, "call_watched", side_effect=StoppedError("asked")):
        page.try_out("stopped", lambda: services.fetch_annotations("s3://b", "f", [], "w", lambda: None))


PARTS = (
    settings,
    several_workers,
    the_program,
    challenges_described,
    a_machine_and_its_limits,
    what_it_asks_of_its_system,
    *OF_SCORING,
)


def write_part(part: Callable[[Page], None]) -> str:
    mask = os.umask(0o077)
    with (
        tempfile.TemporaryDirectory(prefix="segjudge-") as folder,
        contextlib.chdir(folder),
        mock.patch.dict(os.environ),
    ):
        for name in (*RIGHT, "BUNDLE", "EVALUATE", "SCORER_PYTHON", "SEGJUDGE_BUNDLE", "GRACE_SECONDS"):
            os.environ.pop(name, None)
        page = Page(Path(folder))
        try:
            part(page)
        finally:
            os.umask(mask)
    return f"═══ {part.__name__.replace('_', ' ')}\n" + "\n".join(page.lines) + "\n\n"


if __name__ == "__main__":
    FILE.write_text("".join(map(write_part, PARTS)), encoding="utf-8")
