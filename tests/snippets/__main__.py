"""`segjudge` in the folder of a page: makes missing inputs of a command, then runs it.

A command that serves is stopped once it has said its address; one that needs another machine is only parsed.
"""

from __future__ import annotations

import glob
import re
import signal
import subprocess
import sys

from segjudge import cli

from .inputs import prepare

#: Commands that go on until they are stopped.
SERVING = (("rehearse",), ("interactive", "serve"))
#: What needs a server, an account or another machine.
ELSEWHERE = ("push", "worker", "--scheduler", "--host", "--database", "s3://")


def main(arguments: list[str]) -> int:
    """Carry out a page's command."""
    arguments = [_existing(word) for word in arguments]
    if any(re.search(rf"(^|[= ]){item}", " ".join(arguments)) for item in ELSEWHERE):
        cli.make_parser(arguments).parse_args(arguments)
        return 0
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
