"""The limits of agents' processes, and the sandbox of agents and scoring scripts: `bwrap`, where it works."""

import os
import shutil
import site
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from segjudge.evaluation_script.errors import HostError

from .processes import IMPORT_ROOT

#: The platform's memory limit.
MEMORY = 8 << 30
_PACKAGES = ("evaluation_script", "segjudge", "code_upload_challenge_evaluation")
_SYSTEM = ("/usr", "/bin", "/lib", "/lib64", "/etc/ld.so.cache", "/etc/ssl", "/etc/alternatives")
#: What name resolution and pip read beside it.
_NETWORK = (
    *("/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf", "/etc/ca-certificates", "/etc/pip.conf", "/opt"),
    "/run/systemd/resolve",
)
_ISOLATED = ("--unshare-all", "--die-with-parent", "--new-session", "--proc", "/proc", "--dev", "/dev")


@dataclass(frozen=True)
class ProcessLimits:
    """What an agent's process may use."""

    seconds: float = 3600.0
    memory: int = MEMORY
    #: Refuse to run where there is no sandbox.
    sandbox: bool = False


def find_sandbox(*, required: bool = False) -> str | None:
    """Return the path of `bwrap` if it works here; raise HostError if it does not and is required."""
    program = shutil.which("bwrap")
    if program is not None:
        trial = [program, "--unshare-all", "--ro-bind", "/", "/", "true"]
        # In a session of its own: Ctrl-C in a terminal must not look as if there were none.
        if subprocess.run(trial, capture_output=True, check=False, start_new_session=True).returncode == 0:
            return program
    if required:
        raise HostError("--require-sandbox: there is no bwrap here that works; install bubblewrap, or leave it out")
    return None


def agent_command(
    program: str | None,
    words: list[str],
    folder: str,
    mounts: Sequence[tuple[str, bool]],
    hidden: Sequence[str],
    limits: ProcessLimits,
) -> list[str]:
    """Return an agent's command within its limits, and in the sandbox if there is one.

    The sandbox holds the system and our packages to read, the agent's folder, and the mounts: paths, and whether they
    may be written.  What is hidden is not there, wherever it lies.
    """
    limited = _limited(words, limits)
    if program is None:
        return limited
    own = [site.getusersitepackages()] if site.ENABLE_USER_SITE else []
    packages = [os.path.join(IMPORT_ROOT, name) for name in _PACKAGES]
    readable = [*_SYSTEM, sys.prefix, sys.base_prefix, *own, *packages, folder]
    boxed = [program, *_ISOLATED, "--size", str(limits.memory), "--tmpfs", "/tmp"]  # noqa: S108 - inside the sandbox
    boxed += _read_only(readable)
    for path, is_writable in mounts:
        boxed += ["--bind" if is_writable else "--ro-bind", path, path]
    boxed += _covered(hidden, [*readable, *(path for path, _ in mounts)])
    return [*boxed, "--chdir", folder, *limited]


def scorer_command(
    program: str,
    words: list[str],
    readable: Sequence[str],
    mounts: Sequence[tuple[str, str]],
    hidden: Sequence[str],
    folder: str = "",
) -> list[str]:
    """Return a scoring script's command in the sandbox; mounts are writable folders and their paths inside.

    It is started in the folder of that path, by default in the first mount.
    """
    (source, target), *others = mounts
    boxed = [program, *_ISOLATED, "--cap-drop", "ALL", "--hostname", "worker"]
    boxed += ["--bind", source, target]  # first: what is readable may lie in it
    boxed += _read_only((*_SYSTEM, *readable))
    for source, path in others:
        boxed += ["--bind", source, path]
    boxed += _covered(hidden, [*readable, *(path for _, path in mounts)])
    return [*boxed, "--chdir", folder or target, *words]


def with_network(words: list[str]) -> list[str]:
    """Return a command whose sandbox, if it has one, shares the machine's network."""
    return [part for word in words for part in ([word, "--share-net"] if word == "--unshare-all" else [word])]


def installer_command(program: str, words: list[str], readable: Sequence[str], writable: Sequence[str]) -> list[str]:
    """Return a command that installs packages in the sandbox, with the network and this machine's settings of pip."""
    boxed = [program, *with_network([*_ISOLATED]), "--cap-drop", "ALL", "--tmpfs", "/tmp"]  # noqa: S108 - inside
    links = [path for path in os.environ.get("PIP_FIND_LINKS", "").split() if os.path.isdir(path)]
    settings = [os.path.expanduser(path) for path in ("~/.config/pip", "~/.pip")]
    boxed += _read_only((*_SYSTEM, *_NETWORK, *settings, *links, *readable))
    for path in writable:
        boxed += ["--bind", path, path]
    return [*boxed, "--chdir", "/tmp", *words]  # noqa: S108 - inside


def _read_only(paths: Sequence[str]) -> list[str]:
    return [word for path in paths for word in ("--ro-bind-try", path, path)]


def _covered(hidden: Sequence[str], visible: list[str]) -> list[str]:
    """Return what puts nothing in the place of hidden files and folders.

    Last, so that nothing is mounted over it; by all of their names, since a folder may be a link.
    """
    words: list[str] = []
    visible = [*visible, *(os.path.realpath(path) for path in visible)]
    names = (name for path in hidden for name in (os.path.abspath(path), os.path.realpath(path)))
    for path in dict.fromkeys(names):
        if os.path.exists(path) and any(_is_below(path, folder) for folder in visible):
            words += ["--tmpfs", path] if os.path.isdir(path) else ["--ro-bind", os.devnull, path]
    return words


def _is_below(path: str, folder: str) -> bool:
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
