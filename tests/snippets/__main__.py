"""`segjudge` in the folder of a page: makes missing inputs of a command, then runs it.

A command that serves is stopped once it has said its address; one that needs another machine is only parsed.
"""

from __future__ import annotations

import glob
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

from segjudge import cli

from .reading import DONE_VARIABLE

#: Commands that go on until they are stopped.
SERVING = (("rehearse",), ("interactive", "serve"))
#: What needs a server, an account or another machine.
ELSEWHERE = ("push", "worker", "leave", "--import", "--history", "--scheduler", "--host", "s3://")
#: Commands with missing inputs, which take longer to import than most commands run.
WITH_INPUTS = ("score", "compare", "new", "pack", "compress", "rank", "interactive", "report")
#: Commands on the whole bundle that several pages show, with options that other tests try: each runs where it is shown
#: first, and is parsed where it is shown again.
ONCE = ("rehearse", "check --platform codabench", "check", "run --platform codabench", "run", "benchmarks")


def main(arguments: list[str]) -> int:
    """Carry out a page's command; return its exit code."""
    line, done = " ".join(arguments), Path(os.environ[DONE_VARIABLE])
    once = [start for start in ONCE if re.fullmatch(rf"{start}( --[\w-]+( \d\S*| pages)?)*", line)][:1]
    once *= Path.cwd() == Path(os.environ["SEGJUDGE_BUNDLE"])
    if once and done.exists() and once[0] in done.read_text(encoding="utf-8").splitlines():
        cli.make_parser(arguments).parse_args(arguments)
        return 0
    code = carry_out(arguments)
    if once and code == 0:
        with done.open("a", encoding="utf-8") as file:
            file.write(f"{once[0]}\n")
    return code


def carry_out(arguments: list[str]) -> int:
    """Make missing inputs and run a command, or only parse one that needs another machine."""
    arguments = [_existing(word) for word in arguments]
    if any(re.search(rf"(^|[= ]){item}", " ".join(arguments)) for item in ELSEWHERE):
        cli.make_parser(arguments).parse_args(arguments)
        return 0
    if arguments[0] in WITH_INPUTS:
        from .inputs import prepare

        prepare(arguments)
    if any(tuple(arguments[: len(item)]) == item for item in SERVING):
        return served(arguments)
    return cli.main(arguments)


def _existing(word: str) -> str:
    """Return the path that a shortened one means."""
    name, _, path = word.rpartition("=")
    results = sorted(glob.glob(path.replace("…", "*"))) if "…" in path else []
    return f"{name}={results[0]}" if results and name else results[0] if results else word


def served(arguments: list[str]) -> int:
    """Start a server, wait until it has printed its address, and stop it as Ctrl-C does."""
    command = [sys.executable, "-m", "segjudge", *arguments, "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout
        output = []
        for line in process.stdout:
            output.append(line)
            if "http://" in line:
                process.send_signal(signal.SIGINT)
        if process.wait() in (0, 130, -signal.SIGINT) and any("http://" in line for line in output):
            return 0
    print("".join(output), file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
