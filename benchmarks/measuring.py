"""The measurements of all benchmarks: whole processes, run in turns with peers, as tables.

CPU is user and system time of a process and its children, start-up included, from bytecode as installed packages have
it.  Times of a shared machine swing; the ratios of runs in turns swing less, and the least of several runs least.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.data import ROOT

TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Run:
    """The cost of one run of a command."""

    cpu: float
    wall: float
    #: Of its largest process.
    megabytes: float
    printed: str
    #: CPU seconds of the process itself, without its children.
    own: float

    def wall_on(self, cores: int) -> float:
        """Return the seconds on a number of idle cores: the process's own work, then its children's."""
        return self.own + (self.cpu - self.own) / cores


#: Runs a command and writes its CPU and wall seconds, its kilobytes and its own seconds to a file.  A process begins with
#: the peak memory of the one that starts it, which is small here, whatever a benchmark has drawn.
_LAUNCHER = """
import os, sys, time
begun = time.perf_counter()
process = os.fork()
if not process:
    try:
        os.execvp(sys.argv[2], sys.argv[2:])
    except OSError as error:
        print(error, flush=True)
        os._exit(127)
os.waitid(os.P_PID, process, os.WEXITED | os.WNOWAIT)
fields = open(f"/proc/{process}/stat").read().rpartition(")")[2].split()
own = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
_, status, usage = os.wait4(process, 0)
wall = time.perf_counter() - begun
with open(sys.argv[1], "w") as report:
    print(usage.ru_utime + usage.ru_stime, wall, usage.ru_maxrss, own, file=report)
sys.exit(os.waitstatus_to_exitcode(status) and 1)
"""


class CommandError(Exception):
    """Raised if a command failed; the text is its last output."""


def cpu_of(process: int) -> float:
    """Return the CPU seconds of a process so far, without its children."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def run(
    command: Sequence[str],
    folder: Path = ROOT,
    *,
    cores: int = 1,
    start: int = 0,
    env: Mapping[str, str] | None = None,
) -> Run:
    """Run a command on this number of cores: the last ones, or those before the last `start` ones."""
    usable = sorted(os.sched_getaffinity(0), reverse=True)
    allowed = usable[start:][:cores] or usable
    more = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"} | dict(env or {})
    with tempfile.NamedTemporaryFile("r") as report:
        finished = subprocess.run(
            [sys.executable, "-I", "-S", "-c", _LAUNCHER, report.name, *command],
            cwd=folder,
            env=more,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
            preexec_fn=lambda: os.sched_setaffinity(0, allowed),
        )
        printed = finished.stdout.decode(errors="replace")
        if finished.returncode:
            raise CommandError((printed.strip() or f"exit status {finished.returncode}").splitlines()[-1][:300])
        cpu, wall, kilobytes, own = map(float, report.read().split())
    return Run(cpu, wall, kilobytes / 1024, printed, min(own, cpu))


def segjudge(*arguments: str | Path, python: str = sys.executable) -> list[str]:
    """Return the command that a user types."""
    return [python, "-m", "segjudge", *map(str, arguments)]


@dataclass(frozen=True)
class Task:
    """A command to compare with others; a peer that cannot run is named and skipped."""

    command: list[str]
    folder: Path = ROOT
    env: Mapping[str, str] = field(default_factory=dict)
    is_peer: bool = False


def take_turns(tasks: Mapping[str, Task], repeat: int) -> dict[str, list[Run]]:
    """Run each task several times, in turns; the first turn, which writes bytecode, counts only if it is the only one."""
    runs: dict[str, list[Run]] = {name: [] for name in tasks}
    for turn in range(repeat + 1):
        for name, task in tasks.items():
            if name not in runs:
                continue
            try:
                finished = run(task.command, task.folder, env=task.env)
                runs[name] += [finished] if turn or not repeat else []
            except (CommandError, OSError) as error:
                if not task.is_peer:
                    raise
                print(f"{name} is left out: {error}")
                del runs[name]
    return runs


def least(runs: Sequence[Run]) -> Run:
    """Return the run with the least CPU time."""
    return min(runs, key=lambda run: run.cpu)


@dataclass(frozen=True)
class Table:
    """The results of a benchmark as a page shows them."""

    head: list[str]
    rows: list[list[str]]

    def __str__(self) -> str:
        lines = [self.head, ["---"] * len(self.head), *self.rows]
        return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def check_peer(peer: str, scores: Path, theirs: Path, tolerance: float = 0.0) -> None:
    """Print each number of a peer's JSON that differs from ours."""
    own = json.loads(scores.read_text())["result"][0]["val"]
    for name, value in json.loads(theirs.read_text()).items():
        if abs(value - own[name]) > tolerance:
            print(f"{peer}: {name} {value}, here {own[name]}")


def cost_rows(runs: Mapping[str, Sequence[Run]], ours: str) -> list[list[str]]:
    """Return a row per command: CPU seconds, megabytes, and the ratio to ours."""
    base = least(runs[ours]).cpu
    rows = []
    for name, known in runs.items():
        best = least(known)
        ratio = "" if name == ours else f"{best.cpu / base:.2g}" if best.cpu < 99 * base else f"{best.cpu / base:.0f}"
        rows.append([name, f"{best.cpu:.2f}", f"{best.megabytes:.0f}", ratio])
    return rows


def options(about: str | None) -> argparse.ArgumentParser:
    """Return a parser with the options that all benchmarks share."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=3, help="runs of each, of which the best counts")
    return parser


def _folder(text: str) -> Path:
    return Path(text).resolve()


def add_peers(parser: argparse.ArgumentParser) -> None:
    """Add the options of benchmarks with peers."""
    parser.add_argument(
        "--peers", type=_folder, default=ROOT.parent / "peers", help="the folder with checkouts of peers"
    )
    parser.add_argument("--peer-python", default=sys.executable, help="an interpreter with the peers' packages")


#: A benchmark: takes its options, prints and returns its table.
Benchmark = Callable[[Sequence[str] | None], Table]


def show(table: Table) -> Table:
    """Print a table."""
    print(table, flush=True)
    return table
