"""Limits of agents' processes, and the `bwrap` sandbox of agents and scoring scripts."""

import errno
import functools
import os
import platform
import re
import shutil
import site
import struct
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from segjudge.evaluation_script.files.problems import HostError

from . import IMPORT_ROOT

#: The platform's memory limit.
MEMORY = 8 << 30
_PACKAGES = ("evaluation_script", "segjudge", "code_upload_challenge_evaluation")
_SYSTEM = ("/usr", "/bin", "/lib", "/lib64", "/etc/ld.so.cache", "/etc/ssl", "/etc/alternatives")
#: The files that name resolution and pip read in addition.
_NETWORK = (
    *("/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf", "/etc/ca-certificates", "/etc/pip.conf", "/opt"),
    "/run/systemd/resolve",
)
_SHARED_MEMORY, _TEMPORARY = "/dev/shm", "/tmp"  # noqa: S108 - inside the sandbox
#: The tmpfs mounts that an agent, and a scorer, may write.
AGENT_TMPFS, SCORER_TMPFS = (_SHARED_MEMORY, _TEMPORARY), (_SHARED_MEMORY,)
_ISOLATED = ("--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL", "--proc", "/proc")
#: Forbid namespaces, in which a program could mount unbounded file systems.
_NO_NAMESPACES = ("--unshare-user", "--disable-userns")
#: The maximum number of processes and threads; libraries start threads per core.
PROCESSES = 128 + 32 * (os.cpu_count() or 1)
SCORER_PROCESSES = 1024
#: The first Linux version whose RLIMIT_NPROC counts each sandbox alone; before, it counts all processes of the user.
_COUNTED_APART = (5, 14)


@dataclass(frozen=True)
class ProcessLimits:
    """The limits of an agent's processes."""

    seconds: float = 3600.0
    #: The maximum bytes of one process, and of all together with their files in tmpfs mounts.
    memory: int = MEMORY
    #: Refuse to run without a sandbox.
    sandbox: bool = False
    #: The maximum number of processes and threads together.
    processes: int = PROCESSES


def find_sandbox(*, required: bool = False) -> str | None:
    """Return the path of `bwrap` if it works here; raises HostError if required but broken."""
    program = shutil.which("bwrap")
    if program is not None:
        trial = [program, "--unshare-all", "--ro-bind", "/", "/", "true"]
        # In a session of its own, so that Ctrl-C in a terminal does not look like a missing sandbox.
        if subprocess.run(trial, capture_output=True, check=False, start_new_session=True).returncode == 0:
            return program
    if required:
        raise HostError("--require-sandbox: no working bwrap was found; install bubblewrap, or omit the option")
    return None


def missing_limits(program: str) -> list[str]:
    """Return a sentence for each limit that this sandbox lacks."""
    sentences = []
    if not _namespace_arguments(program):
        text = "This bwrap cannot forbid namespaces, in which mounted memory is unlimited (bubblewrap 0.8 can)."
        sentences.append(text)
    if platform.machine() not in _FILTERED:
        text = f"On {platform.machine()} memory outside processes (memfd, System V) is unlimited."
        sentences.append(text)
    return sentences


def are_processes_refused() -> bool:
    """Return whether the kernel limits a sandbox's processes, which fails for root."""
    return os.getuid() != 0 and _counts_apart()


def _counts_apart() -> bool:
    numbers = [int(text) for text in re.findall(r"\d+", platform.release())[:2]]
    return tuple(numbers) >= _COUNTED_APART


@functools.cache
def _namespace_arguments(program: str) -> tuple[str, ...]:
    trial = [program, "--unshare-all", *_NO_NAMESPACES, "--ro-bind", "/", "/", "true"]
    done = subprocess.run(trial, capture_output=True, check=False, start_new_session=True)
    return _NO_NAMESPACES if done.returncode == 0 else ()


def agent_command(
    program: str | None,
    command: list[str],
    folder: str,
    mounts: Sequence[tuple[str, bool]],
    hidden: Sequence[str],
    limits: ProcessLimits,
) -> list[str]:
    """Return an agent's command within its limits, in the sandbox if there is one.

    The sandbox contains the system and Segjudge's packages (read-only), the agent's folder, and the mounts: paths, and
    whether they are writable. Hidden paths do not exist in it.
    """
    seconds = (int(limits.seconds) + 60) * (os.cpu_count() or 1)
    if program is None:
        return _limit_command(sys.executable, command, limits.memory, seconds)
    user_packages = [site.getusersitepackages()] if site.ENABLE_USER_SITE else []
    packages = [os.path.join(IMPORT_ROOT, name) for name in _PACKAGES]
    readable = [*_SYSTEM, sys.prefix, sys.base_prefix, *user_packages, *packages, folder]
    boxed = [*_begin_command(program, limits.memory), "--size", str(limits.memory), "--tmpfs", _TEMPORARY]
    boxed += _bind_read_only(readable)
    for path, is_writable in mounts:
        boxed += ["--bind" if is_writable else "--ro-bind", path, path]
    boxed += _hide_paths(hidden, [*readable, *(path for path, _ in mounts)])
    limited = _limit_command(sys.executable, command, limits.memory, seconds, limits.processes, is_boxed=True)
    return [*boxed, *_CLOSED, "--chdir", folder, *limited]


def scorer_command(  # noqa: PLR0913 - what a sandbox consists of
    program: str,
    command: list[str],
    readable: Sequence[str],
    mounts: Sequence[tuple[str, str]],
    hidden: Sequence[str],
    folder: str = "",
    *,
    python: str,
    memory: int = 0,
) -> list[str]:
    """Return a scoring script's command in the sandbox; mounts map writable folders to paths inside.

    It starts in the folder of that path, by default the first mount, with this Python, which the sandbox contains.
    """
    (source, target), *further_mounts = mounts
    boxed = [*_begin_command(program, memory or MEMORY), "--hostname", "worker"]
    boxed += ["--bind", source, target]  # first: readable paths may lie in it
    boxed += _bind_read_only((*_SYSTEM, *readable))
    for source, path in further_mounts:
        boxed += ["--bind", source, path]
    boxed += _hide_paths(hidden, [*readable, *(path for _, path in mounts)])
    limited = _limit_command(python, command, processes=SCORER_PROCESSES, is_boxed=True)
    return [*boxed, *_CLOSED, "--chdir", folder or target, *limited]


def with_network(command: list[str]) -> list[str]:
    """Return a command whose sandbox, if any, shares the machine's network."""
    return [option for word in command for option in ([word, "--share-net"] if word == "--unshare-all" else [word])]


def installer_command(
    program: str, arguments: list[str], readable: Sequence[str], writable: Sequence[str]
) -> list[str]:
    """Return a command that installs packages in the sandbox, with network."""
    boxed = [*with_network(_begin_command(program, MEMORY)), "--size", str(MEMORY), "--tmpfs", _TEMPORARY]
    links = [path for path in os.environ.get("PIP_FIND_LINKS", "").split() if os.path.isdir(path)]
    settings = [os.path.expanduser(path) for path in ("~/.config/pip", "~/.pip")]
    boxed += _bind_read_only((*_SYSTEM, *_NETWORK, *settings, *links, *readable))
    for path in writable:
        boxed += ["--bind", path, path]
    limited = _limit_command(arguments[0], arguments, processes=SCORER_PROCESSES, is_boxed=True)
    return [*boxed, *_CLOSED, "--chdir", _TEMPORARY, *limited]


def _begin_command(program: str, memory: int) -> list[str]:
    """Return the start of a sandbox command, with a size of shared memory."""
    boxed = [program, *_ISOLATED, *_namespace_arguments(program), "--dev", "/dev"]
    return [*boxed, "--size", str(memory), "--tmpfs", _SHARED_MEMORY]


#: Nothing is mounted after it: bwrap's own mounts have no size limit.
_CLOSED = ("--remount-ro", "/dev", "--remount-ro", "/")


def _bind_read_only(paths: Sequence[str]) -> list[str]:
    return [word for path in paths for word in ("--ro-bind-try", path, path)]


def _hide_paths(hidden: Sequence[str], visible: list[str]) -> list[str]:
    """Return the options that hide files and folders.

    They come last, so that no later mount uncovers a path, and cover all names of a folder, which may be a link.
    """
    arguments: list[str] = []
    visible = [*visible, *(os.path.realpath(path) for path in visible)]
    names = (name for path in hidden for name in (os.path.abspath(path), os.path.realpath(path)))
    for path in dict.fromkeys(names):
        if os.path.exists(path) and any(_is_below(path, folder) for folder in visible):
            is_folder = os.path.isdir(path)
            arguments += ["--tmpfs", path, "--remount-ro", path] if is_folder else ["--ro-bind", os.devnull, path]
    return arguments


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


#: Set before the command begins and inside the sandbox, whose processes we cannot limit later.
_LIMIT = """
import os, resource, sys
memory, seconds, processes = map(int, sys.argv[1:4])
def limit(kind, value):
    most = resource.getrlimit(kind)[1]
    value = value if most == resource.RLIM_INFINITY else min(value, most)
    resource.setrlimit(kind, (value, value))
for kind, value in ((resource.RLIMIT_DATA, memory), (resource.RLIMIT_CPU, seconds), (resource.RLIMIT_NPROC, processes)):
    if value:
        limit(kind, value)
limit(resource.RLIMIT_CORE, 0)
code = bytes.fromhex(sys.argv[4])
if code:
    import ctypes
    class Program(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_char_p)]
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    number = ctypes.c_ulong
    if prctl(38, number(1), number(0), number(0), number(0)) or prctl(
        22, number(2), ctypes.byref(Program(len(code) // 8, code)), number(0), number(0)
    ):
        raise OSError(ctypes.get_errno(), "the kernel takes no filter of system calls")
os.execvp(sys.argv[5], sys.argv[5:])
"""


def _limit_command(
    python: str, command: list[str], memory: int = 0, seconds: int = 0, processes: int = 0, *, is_boxed: bool = False
) -> list[str]:
    # Older systems would also count the user's other processes.
    numbers = (memory, seconds, processes if is_boxed and _counts_apart() else 0)
    return [python, "-I", "-S", "-c", _LIMIT, *map(str, numbers), _make_filter().hex() if is_boxed else "", *command]


#: Machine -> its number for the kernel, and the numbers of its forbidden system calls. These allocate memory that
#: belongs to no process and no mount, so nobody could count it: memfd_create, memfd_secret, shmget, semget, msgget,
#: io_uring_setup.
_FILTERED = {
    "x86_64": (0xC000003E, (319, 447, 29, 64, 68, 425)),
    "aarch64": (0xC00000B7, (279, 447, 194, 190, 186, 425)),
}
_LOAD, _IF_EQUAL, _IF_AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_ALLOWED, _REFUSED = 0x7FFF0000, 0x00050000 | errno.ENOSYS
#: Higher numbers belong to another calling convention of the same machine.
_OTHER_CONVENTION = 0x40000000


def _make_filter() -> bytes:
    """Return the seccomp program that blocks system calls; empty for other machines."""
    if platform.machine() not in _FILTERED:
        return b""
    machine, numbers = _FILTERED[platform.machine()]
    count = len(numbers)
    steps = [(_LOAD, 0, 0, 4), (_IF_EQUAL, 0, count + 3, machine), (_LOAD, 0, 0, 0)]
    steps += [(_IF_AT_LEAST, count + 1, 0, _OTHER_CONVENTION)]
    steps += [(_IF_EQUAL, count - index, 0, number) for index, number in enumerate(numbers)]
    steps += [(_RETURN, 0, 0, _ALLOWED), (_RETURN, 0, 0, _REFUSED)]
    return b"".join(struct.pack("=HBBI", *step) for step in steps)
