"""Every check and test: the linters, then the tests in parts that run at once, and one count of them all.

usage: python -m tests.everything [--all] [pytest's arguments, for a part of the tests]   (./run.sh test calls it)

What is marked `long` runs with --all, or when a part is asked for.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from .conftest import NEWER

ROOT = Path(__file__).resolve().parent.parent
WORKER = os.environ.get("SEGJUDGE_WORKER_PYTHON", "")
LINTERS = (["ruff", "format", "--check", "."], ["ruff", "check", "."], ["mypy"])
#: pytest's exit code when none of the tests that were asked for is in a part.
NOTHING = 5


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

    def start(self, *, shown: bool) -> None:
        """Run it; what is not shown at once goes to a log."""
        self.folder.mkdir()
        self.started = time.monotonic()
        command = [*self.command, f"--junitxml={self.folder / 'counts.xml'}", f"--basetemp={self.folder / 'files'}"]
        with open(self.folder / "log", "wb") as log:
            streams = {} if shown else {"stdout": log, "stderr": subprocess.STDOUT}
            env = os.environ if self.kernel else {**os.environ, "SEGJUDGE_KERNEL": "off"}
            self.process = subprocess.Popen(command, cwd=ROOT, env=env, stdin=subprocess.DEVNULL, **streams)

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


def parts_of(arguments: list[str], folder: Path) -> list[Part]:
    """The parts: some on this Python, since most tests wait for others most of the time, and the worker's."""
    # A file that cannot be imported fails, and the others are run all the same.
    pytest = ["-m", "pytest", "--continue-on-collection-errors"]
    here, there = [sys.executable, *pytest], [WORKER, *pytest, "-p", "no:cacheprovider"]
    if arguments == ["--all"] or not arguments:
        quick = [] if arguments else ["-m", "not long"]
        names = sorted(path.name for path in (ROOT / "tests").glob("test_*.py"))
        borders = (
            ["test_i"] if arguments else ["test_guest", "test_rehearsal_r"]
        )  # what is quick waits more than it works
        parts = []
        for number, (start, end) in enumerate(zip(["", *borders], [*borders, "test_~"], strict=True), 1):
            files = [f"tests/{name}" for name in names if start <= name < end] + ["tests/journeys"] * (not start)
            cache = [] if number == 1 else ["-p", "no:cacheprovider"]
            parts.append(Part(f"Part {number}", [*here, *quick, *cache, *files], folder / f"part-{number}"))
        its: list[str] | None = quick
    else:
        parts = [Part("What was asked for", [*here, *arguments], folder / "asked")]
        its = [one for one in arguments if not needs_toolkit(ROOT / one.partition("::")[0])]
        if len(its) < len(arguments) and not any((ROOT / one.partition("::")[0]).exists() for one in its):
            its = None  # all files that were asked for are the toolkit's
    if WORKER and its is not None:
        title = "On the interpreter and pins of EvalAI's worker, by numpy"
        parts.append(Part(title, [*there, *its], folder / "worker", kernel=False))
    return parts


def needs_toolkit(path: Path) -> bool:
    """Whether a file of tests is not for the worker's interpreter; pytest would take it, since it was asked for."""
    return path.is_file() and bool(NEWER.search(path.read_text(encoding="utf-8")))


def main(arguments: list[str]) -> int:
    """0 when everything passed."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    for linter in LINTERS:
        if subprocess.run([sys.executable, "-m", *linter], cwd=ROOT, check=False).returncode:
            say(f"failed: {' '.join(linter)}, so no test was run")
            return 1
    if not WORKER:
        say("\n*** PYTHON 3.9 ABSENT: the tests under the worker's interpreter are SKIPPED ***\n")
    with tempfile.TemporaryDirectory(prefix="segjudge-tests-", ignore_cleanup_errors=True) as folder:
        parts = parts_of(arguments, Path(folder))
        try:
            start(parts)
            return report(parts)
        except KeyboardInterrupt:
            say("stopped")
            return 130
        finally:
            for part in parts:
                if part.process and part.process.poll() is None:
                    part.process.terminate()
                    part.process.wait()


def start(parts: list[Part]) -> None:
    """All of them at once; the first is seen as it goes."""
    for part in parts[1:]:
        part.start(shown=False)
    _heading(parts[0].title)
    parts[0].start(shown=True)


def report(parts: list[Part]) -> int:
    """Wait for each, show what was not seen yet, and count: 0 when nothing failed."""
    lines, whole = [], dict.fromkeys(("passed", "failed", "skipped"), 0)
    for part in parts:
        part.process.wait()
        taken = time.monotonic() - part.started
        if part is not parts[0]:
            _heading(part.title)
            say((part.folder / "log").read_text(encoding="utf-8", errors="replace"))
        counts = part.counts()
        lines.append(f"{part.title}: {_said(counts)} (after {taken:.0f} s)")
        whole = {name: whole[name] + counts[name] for name in whole}
    _heading("All parts together")
    say("\n".join([*lines, _said(whole)]))
    return 1 if whole["failed"] else 0


def _said(counts: dict[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counts.items())


def _heading(title: str) -> None:
    say(f"\n{f' {title} ':═^100}\n")


def say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
