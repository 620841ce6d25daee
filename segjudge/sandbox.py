"""What keeps an agent's or a scoring script's process within bounds: limits, and `bwrap` where it works."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from segjudge.evaluation_script.errors import HostError

#: The platform's memory limit.
MEMORY = 8 << 30
#: The folder of our packages.
HOME = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_PACKAGES = ("evaluation_script", "segjudge", "code_upload_challenge_evaluation")
_SYSTEM = ("/usr", "/bin", "/lib", "/lib64", "/etc/ld.so.cache", "/etc/ssl", "/etc/alternatives")


@dataclass(frozen=True)
class ProcessLimits:
    """What an agent's process may use."""

    seconds: float = 3600.0
    memory: int = MEMORY
    #: Refuse to run where there is no sandbox.
    sandbox: bool = False


def bwrap() -> str | None:
    """The sandbox, where it is there and works."""
    found = shutil.which("bwrap")
    if found is None:
        return None
    trial = [found, "--unshare-all", "--ro-bind", "/", "/", "true"]
    # In a session of its own: Ctrl-C in a terminal must not look as if there were none.
    tried = subprocess.run(trial, capture_output=True, check=False, start_new_session=True)
    return found if tried.returncode == 0 else None


def found(limits: ProcessLimits) -> str | None:
    """The sandbox, or none; raises HostError where one is required."""
    box = bwrap()
    if box is None and limits.sandbox:
        raise HostError("--require-sandbox: there is no bwrap here that works; install bubblewrap, or leave it out")
    return box


def command(
    box: str | None,
    words: list[str],
    folder: str,
    mounts: Sequence[tuple[str, bool]],
    hidden: Sequence[str],
    limits: ProcessLimits,
) -> list[str]:
    """A command within its limits, and in the sandbox where there is one.

    Mounts are paths and whether they may be written; what is hidden is not there, wherever it lies.
    """
    limited = _limited(words, limits)
    return limited if box is None else [*_boxed(box, folder, mounts, hidden, limits.memory), *limited]


def scorer_command(
    box: str, words: list[str], readable: Sequence[str], mounts: Sequence[tuple[str, str]], hidden: Sequence[str]
) -> list[str]:
    """A scoring script's command in the sandbox; mounts are folders that it may write, and where it finds them."""
    walls = [box, *_ALONE, "--cap-drop", "ALL", "--hostname", "worker"]
    (source, place), *others = mounts
    walls += ["--bind", source, place]  # first: what is readable may lie in it
    for path in (*_SYSTEM, *readable):
        walls += ["--ro-bind-try", path, path]
    for source, place in others:
        walls += ["--bind", source, place]
    return [*walls, *_covered(hidden, [*readable, *(place for _, place in mounts)]), "--chdir", mounts[0][1], *words]


_ALONE = ("--unshare-all", "--die-with-parent", "--new-session", "--proc", "/proc", "--dev", "/dev")


def _boxed(box: str, folder: str, mounts: Sequence[tuple[str, bool]], hidden: Sequence[str], memory: int) -> list[str]:
    """A command's sandbox: the system and the packages to read, the agent's folder, and what is named."""
    readable = [*_SYSTEM, sys.prefix, sys.base_prefix, *(os.path.join(HOME, name) for name in _PACKAGES), folder]
    words = [box, *_ALONE, "--size", str(memory), "--tmpfs", "/tmp"]  # noqa: S108 - inside the sandbox
    for path in readable:
        words += ["--ro-bind-try", path, path]
    for path, writable in mounts:
        words += ["--bind" if writable else "--ro-bind", path, path]
    return [*words, *_covered(hidden, [*readable, *(path for path, _ in mounts)]), "--chdir", folder]


def _covered(hidden: Sequence[str], seen: list[str]) -> list[str]:
    """What puts nothing in the place of hidden files and folders.

    Last, so that nothing is mounted over it; by all of its names, since a folder may be a link.
    """
    words: list[str] = []
    seen = [*seen, *(os.path.realpath(path) for path in seen)]
    for path in dict.fromkeys(name for one in hidden for name in (os.path.abspath(one), os.path.realpath(one))):
        if os.path.exists(path) and any(_below(path, one) for one in seen):
            words += ["--tmpfs", path] if os.path.isdir(path) else ["--ro-bind", os.devnull, path]
    return words


def _below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


#: Set before the command begins, and inside the sandbox, whose processes are not ours to limit later.
_LIMIT = """
import os, resource, sys
memory, seconds = int(sys.argv[1]), int(sys.argv[2])
resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))
resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
os.execvp(sys.argv[3], sys.argv[3:])
"""


def _limited(command: list[str], limits: ProcessLimits) -> list[str]:
    seconds = (int(limits.seconds) + 60) * (os.cpu_count() or 1)
    return [sys.executable, "-c", _LIMIT, str(limits.memory), str(seconds), *command]
