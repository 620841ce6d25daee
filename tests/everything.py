"""Every check and test: ruff, then mypy and the tests in parts, some of which run at once, and one count of them all.

usage: ./run.sh test                     the linters and the quick tests
       ./run.sh test --all               and those that are marked `long`
       ./run.sh test tests/ROOM          the tests of a room, or one file, without the linters; pytest's options go along
       ./run.sh format                   format the sources, and mend what ruff can mend

Runs before anything is installed, and has `segjudge.set_up` make the environments that the tests need.
"""

from __future__ import annotations

import ctypes
import difflib
import functools
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parent.parent
LINTERS = (["ruff", "format", "--check", "."], ["ruff", "check", "."])
MENDING = (["format", "."], ["check", "--fix", "."])
#: These use the toolkit or what stands on it, which needs a newer Python than the worker has.
NEWER = re.compile(r"""segjudge(?!\.evaluation_script)(?![-\w]*["'/])|rehearsals|from demo|scoring\.test_parts""")
#: What a module of tests imports as soon as it is: the line, the module's dots, its name, and what is taken of it.
IMPORTED = re.compile(r"^(?=(.*))from (\.*)([\w.]*) import (\([^)]*\)|.*)", re.MULTILINE)
#: Folders of tests of which no file is for the worker's interpreter.
NEWER_FOLDERS = ("tests/house", "tests/journeys", "tests/server", "tests/set_up", "tests/system")
#: The environment beside the toolkit's that a file of tests needs if it names this variable.
VARIABLES = {"SEGJUDGE_EVALAI_CLIENT": "client", "SEGJUDGE_WORKER_PYTHON": "worker"}
#: pytest's exit code when none of the tests that were asked for is in a part.
NOTHING = 5
#: Seconds in which what is interrupted ends by itself.
PATIENCE = 20.0
#: The parts that run at once, for each core: most tests wait for others most of the time.
AT_ONCE = 2
#: A part has files of so many bytes: each part loads what it tests anew.
PART_BYTES = 300_000
#: Rooms whose tests wait or work longest for their size, the slowest first: their parts come first, and are a quarter as
#: large, so that parts take about equally long and no core is left without one at the end.
SLOW_ROOMS = (
    "tests/server", "tests/remote", "tests/code_upload", "tests/report", "tests/house", "tests/commands", "tests/journeys",
    "tests/starting", "tests/system", "tests/platforms/evalai", "tests/platforms/codabench",
)  # fmt: skip
#: What Linux does with processes: send one a signal when its parent ends; give those who lost their parent to this one.
_SET_DEATH_SIGNAL, _SET_CHILD_SUBREAPER = 1, 36


@dataclass
class Part:
    """Some of the tests, in a process of their own."""

    title: str
    command: list[str]
    folder: Path
    #: Whether the scorers use the compiled kernel, where there is one, or numpy.
    kernel: bool = True
    process: Any = None
    started: float = 0.0
    seconds: float = 0.0

    def start(self, *, shown: bool) -> None:
        """Run it; what is not shown at once goes to a log."""
        self.folder.mkdir(parents=True)
        self.started = time.monotonic()
        command = [*self.command, *self.options()]
        with open(self.folder / "log", "wb") as log:
            streams = {} if shown else {"stdout": log, "stderr": subprocess.STDOUT}
            env = os.environ if self.kernel else {**os.environ, "SEGJUDGE_KERNEL": "off"}
            self.process = subprocess.Popen(
                command, cwd=ROOT, env=env, stdin=subprocess.DEVNULL, start_new_session=True,
                preexec_fn=lambda: control(_SET_DEATH_SIGNAL, signal.SIGINT), **streams,  # noqa: PLW1509 - one thread
            )  # fmt: skip

    def options(self) -> list[str]:
        """What the command is told beside what it tests."""
        return [f"--junitxml={self.folder / 'counts.xml'}", f"--basetemp={self.folder / 'files'}"]

    def counts(self) -> dict[str, int]:
        """How many passed, failed and were skipped; a part that ended early counts as a failure."""
        names = ("tests", "failures", "errors", "skipped")
        try:
            suite = next(ElementTree.parse(self.folder / "counts.xml").getroot().iter("testsuite"))
        except (OSError, ElementTree.ParseError):
            return {"passed": 0, "failed": 1, "skipped": 0}
        tests, failures, errors, skipped = (int(suite.get(name, 0)) for name in names)
        failed = failures + errors
        if self.process.returncode not in (0, NOTHING) and not failed:
            failed = 1
        return {"passed": max(0, tests - failures - errors - skipped), "failed": failed, "skipped": skipped}


class Check(Part):
    """A linter that works for long, while the tests wait for others; it counts as one test."""

    def options(self) -> list[str]:
        return []

    def counts(self) -> dict[str, int]:
        failed = int(self.process.returncode != 0)
        return {"passed": 1 - failed, "failed": failed, "skipped": 0}


def parts_of(arguments: list[str], folder: Path, python: str, worker: str) -> list[Part]:
    """The parts: mypy and the worker's, which work all the time, before those on this Python, the slow ones first."""
    # A file that cannot be imported fails, and the others are run all the same.
    pytest = ["-m", "pytest", "--continue-on-collection-errors", "-p", "no:cacheprovider"]
    parts: list[Part] = [Check("mypy", [python, "-m", "mypy"], folder / "mypy")] if is_whole(arguments) else []
    quick = ["-m", "not long"] if not arguments else []
    older = quick if is_whole(arguments) else for_worker(arguments)
    if worker and older is not None:
        title = "On the interpreter and pins of EvalAI's worker, by numpy"
        parts.append(Part(title, [worker, *pytest, *older], folder / "worker", kernel=False))
    if not is_whole(arguments):
        asked = [python, "-m", "pytest", "--continue-on-collection-errors", *arguments]
        return [Part("What was asked for", asked, folder / "asked"), *parts]
    for number, files in enumerate(_groups()):
        rooms = dict.fromkeys(os.path.dirname(file) for file in files)
        title = f"{', '.join(rooms)} ({len(files)} files)"
        parts.append(Part(title, [python, *pytest, *quick, *files], folder / f"part-{number}"))
    return parts


def _groups() -> list[list[str]]:
    """The files of tests in groups of about the same size, each of neighbours; slow rooms come first."""
    files = [path.relative_to(ROOT).as_posix() for path in sorted((ROOT / "tests").rglob("test_*.py"))]
    groups: list[list[str]] = []
    slow = [file for room in SLOW_ROOMS for file in files if file.startswith(f"{room}/")]
    for chosen, most in ((slow, PART_BYTES // 4), ([file for file in files if file not in slow], PART_BYTES)):
        size = most
        for file in chosen:
            if size >= most:
                groups.append([])
                size = 0
            groups[-1].append(file)
            size += (ROOT / file).stat().st_size
    return groups


def is_whole(arguments: list[str]) -> bool:
    """Whether all tests are asked for, or all quick ones."""
    return arguments in ([], ["--all"])


def for_worker(arguments: list[str]) -> list[str] | None:
    """The arguments without the files that need the toolkit; None when all files that are named do."""
    older = [argument for argument in arguments if not needs_toolkit(file_of(argument))]
    if len(older) < len(arguments) and not any(file_of(argument).exists() for argument in older):
        return None
    return older


def file_of(argument: str) -> Path:
    """The path in an argument of pytest's; one that cannot be is no file."""
    return ROOT / argument.partition("::")[0]


def needs_toolkit(path: Path) -> bool:
    """Whether a file or folder of tests is not for the worker's interpreter; pytest would take it, since it was asked for."""
    if any(path.is_relative_to(ROOT / folder) for folder in NEWER_FOLDERS):
        return True
    if not path.is_file():
        return False
    text = path.read_text(encoding="utf-8")
    return bool(NEWER.search(text)) or any(map(_imports_toolkit, _imported_files(path, text)))


@functools.cache
def _imports_toolkit(path: Path) -> bool:
    """Whether a module of tests imports the toolkit as soon as it is imported."""
    text = path.read_text(encoding="utf-8")
    if any(NEWER.search(line) for line, *_ in IMPORTED.findall(text)):
        return True
    return any(map(_imports_toolkit, _imported_files(path, text)))


def _imported_files(path: Path, text: str) -> list[Path]:
    """The other modules of tests that a module imports."""
    files = []
    for _, dots, module, names in IMPORTED.findall(text):
        if dots or module.partition(".")[0] == "tests":
            base = (path.parents[len(dots) - 1] if dots else ROOT).joinpath(*module.split("."))
            files += [base.with_suffix(".py"), *(base / f"{name}.py" for name in re.findall(r"\w+", names))]
    return [file for file in files if file.is_file() and file != path]


def missing_path(arguments: list[str]) -> str:
    """A sentence on the first path that does not exist; "" when all do."""
    for before, argument in zip(["", *arguments], arguments):
        path = argument.partition("::")[0]
        is_value = before.startswith("-") and "=" not in before and "/" not in path and not path.endswith(".py")
        if path.startswith("-") or is_value or (ROOT / path).exists():
            continue
        files = {file.stem: file.relative_to(ROOT).as_posix() for file in (ROOT / "tests").rglob("test_*.py")}
        near = difflib.get_close_matches(Path(path).stem, files, 1)
        return f"{path}: there is no such file{f'; did you mean {files[near[0]]}?' if near else ''}"
    return ""


def environments_for(arguments: list[str]) -> list[str]:
    """What the tests need, in the words of `segjudge.set_up`; CI requires the worker's."""
    files = [file_of(argument) for argument in arguments if file_of(argument).is_file()]
    if files and not [argument for argument in arguments if file_of(argument).is_dir()]:
        text = "".join(path.read_text(encoding="utf-8") for path in files)
        needed = {kind for variable, kind in VARIABLES.items() if variable in text}
        needed |= {"worker"} if for_worker(arguments) is not None else set()
    else:
        needed = set(VARIABLES.values())
    optional = "" if os.environ.get("CI", "") == "true" else "try:"
    return ["toolkit[test]", *["client"] * ("client" in needed), *[f"{optional}worker"] * ("worker" in needed)]


def main(command_line: list[str]) -> int:
    """Run `test` or `format`, the first word: 0 when everything passed."""
    command, *arguments = command_line
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, lambda number, _: sys.exit(128 + number))
    if {"-h", "--help"} & set(arguments):
        say((__doc__ or "").partition("\n\n")[2].partition("\n\n")[0])
        return 0
    missing = missing_path(arguments)
    if missing:
        say(f"run.sh test: {missing}")
        return 2
    from segjudge.set_up.main import SetUpError, prepare_environments

    needed = environments_for(arguments) if command == "test" else ["toolkit[test]"]
    try:
        python, variables = prepare_environments(needed)
    except SetUpError as error:
        say(f"run.sh: {error}")
        return 3
    except KeyboardInterrupt:
        say("stopped")
        return 130
    for number in (0, 1, 2):
        os.set_inheritable(number, True)  # linters and pytest want streams, also where ours are closed
    if command == "format":
        codes = [
            subprocess.run([python, "-m", "ruff", *arguments], cwd=ROOT, check=False).returncode
            for arguments in MENDING
        ]
        return max(codes)
    os.environ.update(variables)
    if is_whole(arguments):
        for linter in LINTERS:
            if subprocess.run([python, "-m", *linter], cwd=ROOT, check=False).returncode:
                say(f"failed: {' '.join(linter)}, so no test was run; ./run.sh format mends what can be mended")
                return 1
    else:
        say("Without the linters: ./run.sh format is for them, and ./run.sh test runs everything")
    worker = variables.get("SEGJUDGE_WORKER_PYTHON", "")
    if "try:worker" in needed and not worker:
        say("\n*** PYTHON 3.9 ABSENT: the tests under the worker's interpreter are SKIPPED ***\n")
    with tempfile.TemporaryDirectory(prefix="segjudge-tests-", ignore_cleanup_errors=True) as folder:
        return run(parts_of(arguments, Path(folder), python, worker))


def run(parts: list[Part]) -> int:
    """Run the parts; whatever ends them, nothing that they started stays."""
    control(_SET_CHILD_SUBREAPER, 1)
    try:
        return report(parts)
    except KeyboardInterrupt:
        say("stopped")
        return 130
    finally:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        end(parts)


def control(option: int, value: int) -> None:
    """Ask Linux to treat this process so; other systems have nothing like it."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def end(parts: list[Part]) -> None:
    """Interrupt the parts that run, so that they end what they started; then end what is left."""
    for part in parts:
        if part.process and part.process.poll() is None:
            part.process.send_signal(signal.SIGINT)
    for part in parts:
        if part.process:
            with suppress(subprocess.TimeoutExpired):
                part.process.wait(PATIENCE)
    for number in (signal.SIGTERM, signal.SIGKILL):
        for pid in descendants():
            with suppress(ProcessLookupError):
                os.kill(pid, number)
        deadline = time.monotonic() + PATIENCE
        while descendants() and time.monotonic() < deadline:
            reap()
            time.sleep(0.05)


def descendants() -> list[int]:
    """The processes that this one has started, and those that they have; those that have lost their parent are ours."""
    parents = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, parent = path.read_text(errors="replace").rpartition(")")[2].split()[:2]
            if state != "Z":
                parents[int(path.parent.name)] = int(parent)
    family = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in family} - family:
        family |= more
    return sorted(family - {os.getpid()})


def reap() -> None:
    """Take the exit codes of those who lost their parent, so that tests which look for them see that they ended."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def report(parts: list[Part]) -> int:
    """Run some at once; show what each said when it has ended, and count: 0 when nothing failed."""
    waiting, running = list(parts), list[Part]()
    lines, whole = [], dict.fromkeys(("passed", "failed", "skipped"), 0)
    live = parts[0] if len(parts) <= AT_ONCE else None
    if live is not None:
        _heading(live.title)
    else:
        say(f"{len(parts)} parts, each shown when it has ended")
    while waiting or running:
        while waiting and len(running) < max(AT_ONCE, AT_ONCE * (os.cpu_count() or 1)):
            running.append(waiting.pop(0))
            running[-1].start(shown=running[-1] is live)
        for part in wait(running):
            running.remove(part)
            counts = part.counts()
            line = f"{part.title}: {_count_text(counts)} (in {part.seconds:.0f} s)"
            lines.append(line)
            whole = {name: whole[name] + counts[name] for name in whole}
            if part is live:
                continue
            if counts["failed"] or live is not None:
                _heading(part.title)
                say((part.folder / "log").read_text(encoding="utf-8", errors="replace"))
            else:
                say(line)
    _heading("All parts together")
    say("\n".join([*lines, _count_text(whole)]))
    return 1 if whole["failed"] else 0


def wait(running: list[Part]) -> list[Part]:
    """Wait until a part has ended, and meanwhile for those who lost their parent, so that a test sees that they did."""
    parts_by_process = {part.process.pid: part for part in running}
    while True:
        ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)
        if ended is not None and ended.si_pid in parts_by_process:
            part = parts_by_process[ended.si_pid]
            part.process.wait()
            part.seconds = time.monotonic() - part.started
            return [part]
        if ended is not None:
            os.waitpid(ended.si_pid, 0)


def _count_text(counts: dict[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counts.items())


def _heading(title: str) -> None:
    say(f"\n{f' {title} ':═^100}\n")


def say(text: str) -> None:
    print(text, flush=True)
