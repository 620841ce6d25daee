"""All checks and tests: ruff, then mypy and the tests in parts, several at once, with one total.

usage: ./run.sh test                     the linters and the quick tests
       ./run.sh test --all               also the tests marked `long`
       ./run.sh test tests/ROOM          the tests of a room or file, without the linters; pytest's options follow
       ./run.sh format                   format the sources, and apply ruff's fixes

It runs before anything is installed; `segjudge.set_up` creates the environments that the tests need.
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
FIXERS = (["format", "."], ["check", "--fix", "."])
#: Matches uses of the toolkit or of its users, which need a newer Python than the worker's.
NEWER = re.compile(r"""segjudge(?!\.evaluation_script)(?![-\w]*["'/])|rehearsals|from demo|scoring\.test_parts""")
#: Matches a top-level import of a test module: the line, the module's dots, its name, and the imported names.
IMPORTED = re.compile(r"^(?=(.*))from (\.*)([\w.]*) import (\([^)]*\)|.*)", re.MULTILINE)
#: Folders without tests for the worker's interpreter.
NEWER_FOLDERS = ("tests/house", "tests/journeys", "tests/server", "tests/set_up", "tests/system")
#: The further environment that a test file needs if it names the variable.
VARIABLES = {"SEGJUDGE_EVALAI_CLIENT": "client", "SEGJUDGE_WORKER_PYTHON": "worker"}
#: pytest's exit code if a part has none of the requested tests.
NOTHING = 5
#: "1" if the quick tests have just passed on the worker's Python, by numpy as in every run: `--all` adds the long ones.
PASSED_VARIABLE = "SEGJUDGE_QUICK_PASSED_ON_WORKER"
#: The folder of a run, in which its parts share what takes long to make.
FOLDER_VARIABLE = "SEGJUDGE_TESTS_FOLDER"
#: Where Linux keeps files in memory, and the bytes that must be free there, of which a run needs half. It makes half a
#: million small files, which take a disk minutes to make and to remove.
MEMORY, SPACE = "/dev/shm", 6 << 30
#: Seconds that interrupted processes get to end.
PATIENCE = 20.0
#: The parts that run at once per core: most tests mostly wait. Two left a sixth of the cores' time unused.
AT_ONCE = 3
#: The bytes of test files in a part of the quick tests, and in one of all tests. Each part takes three seconds to import
#: the tested modules, so that few parts save time, but a long one must not remain alone at the end.
PART_BYTES = {"quick": 1_100_000, "all": 400_000}
#: Rooms with the slowest tests for their size, the slowest first: their parts are a third as large, so that parts take
#: about equally long and all cores work until the end.
SLOW_ROOMS = (
    "tests/server", "tests/house", "tests/platforms/github", "tests/interactive", "tests/masks", "tests/scoring",
    "tests/remote", "tests/code_upload", "tests/hub", "tests/report", "tests/commands", "tests/ledger", "tests/journeys",
    "tests/starting", "tests/system", "tests/platforms/evalai", "tests/platforms/codabench", "tests/runner",
    "tests/families/volumes", "tests/archive",
)  # fmt: skip
#: Options of Linux' prctl: signal a process when its parent ends; give orphaned descendants to this process.
_SET_DEATH_SIGNAL, _SET_CHILD_SUBREAPER = 1, 36


@dataclass
class Part:
    """Some of the tests, in a separate process."""

    title: str
    command: list[str]
    folder: Path
    #: Whether the scorers use the compiled kernel, if there is one, or numpy.
    kernel: bool = True
    process: Any = None
    started: float = 0.0
    seconds: float = 0.0

    def start(self, *, shown: bool) -> None:
        """Start the part; its output goes to a log unless it is shown at once."""
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
        """Return the options of the command, besides its tests."""
        return [f"--junitxml={self.folder / 'counts.xml'}", f"--basetemp={self.folder / 'files'}"]

    def counts(self) -> dict[str, int]:
        """Return the numbers of passed, failed and skipped tests; a part that ended early counts as a failure."""
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
    """A slow linter that runs beside the tests and counts as one test."""

    def options(self) -> list[str]:
        return []

    def counts(self) -> dict[str, int]:
        failed = int(self.process.returncode != 0)
        return {"passed": 1 - failed, "failed": failed, "skipped": 0}


def parts_of(arguments: list[str], folder: Path, python: str, worker: str) -> list[Part]:
    """Return the parts: mypy and the worker's, which never wait, then the parts on this Python."""
    # A file that cannot be imported fails; the others still run.
    pytest = ["-m", "pytest", "--continue-on-collection-errors", "-p", "no:cacheprovider"]
    parts: list[Part] = [Check("mypy", [python, "-m", "mypy"], folder / "mypy")] if is_whole(arguments) else []
    quick = ["-m", "not long"] if not arguments else []
    older = quick if is_whole(arguments) else for_worker(arguments)
    if arguments == ["--all"] and os.environ.get(PASSED_VARIABLE) == "1":
        older = ["-m", "long"]
    if worker and older is not None:
        title = "On the interpreter and pins of EvalAI's worker, by numpy"
        parts.append(Part(title, [worker, *pytest, *older], folder / "worker", kernel=False))
    if not is_whole(arguments):
        asked = [python, "-m", "pytest", "--continue-on-collection-errors", *arguments]
        return [Part("The requested tests", asked, folder / "asked"), *parts]
    for number, files in enumerate(_groups(PART_BYTES["quick" if quick else "all"])):
        rooms = dict.fromkeys(os.path.dirname(file) for file in files)
        title = f"{', '.join(rooms)} ({len(files)} files)"
        parts.append(Part(title, [python, *pytest, *quick, *files], folder / f"part-{number}"))
    return parts


def _groups(most: int) -> list[list[str]]:
    """Return test files in groups of at most about so many bytes and neighbouring files.

    Slow rooms mostly wait, so that a large group beside them keeps the cores busy. The large groups begin early, and
    small ones come last.
    """
    files = [path.relative_to(ROOT).as_posix() for path in sorted((ROOT / "tests").rglob("test_*.py"))]
    slow = [file for room in SLOW_ROOMS for file in files if file.startswith(f"{room}/")]
    large = _cut([file for file in files if file not in slow], most)
    small = _cut(slow, most // 3)
    started = [(number * 0.6 / len(large), group) for number, group in enumerate(large)]
    started += [(number / len(small), group) for number, group in enumerate(small)]
    return [group for _, group in sorted(started, key=lambda item: item[0])]


def _cut(files: list[str], most: int) -> list[list[str]]:
    """Return the files in groups of about equally many bytes, at most about so many."""
    sizes = [(ROOT / file).stat().st_size for file in files]
    groups: list[list[str]] = [[] for _ in range(-(-sum(sizes) // most))]
    before = 0
    for file, size in zip(files, sizes):
        groups[len(groups) * before // sum(sizes)].append(file)
        before += size
    return [group for group in groups if group]


def is_whole(arguments: list[str]) -> bool:
    """Return whether all tests, or all quick tests, are requested."""
    return arguments in ([], ["--all"])


def for_worker(arguments: list[str]) -> list[str] | None:
    """Return the arguments without files that need the toolkit; None if all named files need it."""
    older = [argument for argument in arguments if not needs_toolkit(file_of(argument))]
    if len(older) < len(arguments) and not any(file_of(argument).exists() for argument in older):
        return None
    return older


def file_of(argument: str) -> Path:
    """Return the path in an argument of pytest, whether or not it exists."""
    return ROOT / argument.partition("::")[0]


def needs_toolkit(path: Path) -> bool:
    """Return whether a test file or folder needs the toolkit, so that the worker's interpreter cannot run it."""
    if any(path.is_relative_to(ROOT / folder) for folder in NEWER_FOLDERS):
        return True
    if not path.is_file():
        return False
    text = path.read_text(encoding="utf-8")
    return bool(NEWER.search(text)) or any(map(_imports_toolkit, _imported_files(path, text)))


@functools.cache
def _imports_toolkit(path: Path) -> bool:
    """Return whether importing a test module imports the toolkit."""
    text = path.read_text(encoding="utf-8")
    if any(NEWER.search(line) for line, *_ in IMPORTED.findall(text)):
        return True
    return any(map(_imports_toolkit, _imported_files(path, text)))


def _imported_files(path: Path, text: str) -> list[Path]:
    """Return the other test modules that a module imports."""
    files = []
    for _, dots, module, names in IMPORTED.findall(text):
        if dots or module.partition(".")[0] == "tests":
            base = (path.parents[len(dots) - 1] if dots else ROOT).joinpath(*module.split("."))
            files += [base.with_suffix(".py"), *(base / f"{name}.py" for name in re.findall(r"\w+", names))]
    return [file for file in files if file.is_file() and file != path]


def missing_path(arguments: list[str]) -> str:
    """Return a sentence about the first missing path; "" if all exist."""
    for before, argument in zip(["", *arguments], arguments):
        path = argument.partition("::")[0]
        is_value = before.startswith("-") and "=" not in before and "/" not in path and not path.endswith(".py")
        if path.startswith("-") or is_value or (ROOT / path).exists():
            continue
        files = {
            file.stem.removeprefix("test_"): file.relative_to(ROOT).as_posix()
            for file in (ROOT / "tests").rglob("test_*.py")
        }
        near = difflib.get_close_matches(Path(path).stem.removeprefix("test_"), files, 1, 0.85)
        return f"{path}: there is no such file{f'; did you mean {files[near[0]]}?' if near else ''}"
    return ""


def environments_for(arguments: list[str]) -> list[str]:
    """Return the environments that the tests need, as `segjudge.set_up` names them; CI requires the worker's."""
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
    """Run `test` or `format`, the first word; return 0 if everything passed."""
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
        os.set_inheritable(number, True)  # linters and pytest need streams, even if ours are closed
    if command == "format":
        codes = [
            subprocess.run([python, "-m", "ruff", *arguments], cwd=ROOT, check=False).returncode for arguments in FIXERS
        ]
        return max(codes)
    os.environ.update(variables)
    if is_whole(arguments):
        for linter in LINTERS:
            if subprocess.run([python, "-m", *linter], cwd=ROOT, check=False).returncode:
                say(f"failed: {' '.join(linter)}, so no test ran; ./run.sh format applies ruff's fixes")
                return 1
    else:
        say("Linters are skipped: ./run.sh test runs them and all quick tests")
    worker = variables.get("SEGJUDGE_WORKER_PYTHON", "")
    if "try:worker" in needed and not worker:
        say("\n*** PYTHON 3.9 ABSENT: the tests under the worker's interpreter are SKIPPED ***\n")
    with tempfile.TemporaryDirectory(prefix="segjudge-tests-", dir=find_place(), ignore_cleanup_errors=True) as folder:
        os.environ |= {FOLDER_VARIABLE: folder, "TMPDIR": os.path.join(folder, "tmp")}
        os.mkdir(os.environ["TMPDIR"])
        return run(parts_of(arguments, Path(folder), python, worker))


def find_place() -> str | None:
    """Return where the folder of a run lies: in memory, if there is enough and programs may run from it."""
    if "TMPDIR" in os.environ or not os.access(MEMORY, os.W_OK):
        return None
    space = os.statvfs(MEMORY)
    is_wide = space.f_bavail * space.f_frsize >= SPACE
    return MEMORY if is_wide and not space.f_flag & os.ST_NOEXEC else None


def run(parts: list[Part]) -> int:
    """Run the parts; however they end, end every process that they started."""
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
    """Set an option of Linux' prctl for this process; do nothing on other systems."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def end(parts: list[Part]) -> None:
    """Interrupt the running parts, so that they end their processes; then end the remaining ones."""
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
    """Return the living descendants of this process, orphans included."""
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
    """Reap orphans, so that tests that look for them see that they ended."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def report(parts: list[Part]) -> int:
    """Run several parts at once, show the output of each at its end, and the totals; return 0 if nothing failed."""
    waiting, running = list(parts), list[Part]()
    lines, whole = [], dict.fromkeys(("passed", "failed", "skipped"), 0)
    live = parts[0] if len(parts) <= AT_ONCE else None
    if live is not None:
        _heading(live.title)
    else:
        say(f"{len(parts)} parts, each shown at its end")
    while waiting or running:
        while waiting and len(running) < most_at_once():
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


def most_at_once() -> int:
    """Return how many parts run at once: several per core, as many as have half a GiB of memory each."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return max(AT_ONCE, min(AT_ONCE * (os.cpu_count() or 1), memory >> 29))


def wait(running: list[Part]) -> list[Part]:
    """Wait until a part ends; meanwhile reap orphans, so that tests see that they ended."""
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
