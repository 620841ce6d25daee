"""`segjudge` in the folder of a page: makes the inputs that a command names and that are not there, then runs it.

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


def main(words: list[str]) -> int:
    """Do what a page says."""
    words = [_existing(word) for word in words]
    if any(re.search(rf"(^|[= ]){one}", " ".join(words)) for one in ELSEWHERE):
        cli._parser(words).parse_args(words)
        return 0
    prepare(words)
    if any(tuple(words[: len(one)]) == one for one in SERVING):
        return served(words)
    return cli.main(words)


def _existing(word: str) -> str:
    """Return the path that a shortened one means."""
    name, _, path = word.rpartition("=")
    found = sorted(glob.glob(path.replace("…", "*"))) if "…" in path else []
    return f"{name}={found[0]}" if found and name else found[0] if found else word


def served(words: list[str]) -> int:
    """Start a server, wait until it has said where it is, and stop it as Ctrl-C does."""
    command = [sys.executable, "-m", "segjudge", *words, "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout
        said = []
        for line in process.stdout:
            said.append(line)
            if "http://" in line:
                process.send_signal(signal.SIGINT)
        if process.wait() in (0, 130, -signal.SIGINT) and any("http://" in line for line in said):
            return 0
    print("".join(said), file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
