"""Bounds for a command and all its processes together: enforced by cgroups, and watched.

The kernel's own limits apply to one process or one user, and cgroups are not always available. So the command is also
watched while it runs, and killed beyond a limit. Its memory is the private memory of its processes, the files in their
tmpfs mounts, and shared mappings without a file.
"""

from __future__ import annotations

import errno
import itertools
import os
import re
import stat
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass

from segjudge.evaluation_script.runner.supervisor import descendants

from . import sandbox
from .processes import Child, ExitCode, Streams, Tail

#: The maximum seconds between two checks; below that, checks take at most this share of the time.
_LONG_PAUSE, _SHARE = 1.0, 0.1
#: The same for the disk, where a check takes longer.
_DISK_PAUSE, _DISK_SHARE = 0.5, 0.05
#: The command's own processes and its sandbox's, which are not counted.
_UNCOUNTED_PROCESSES = 4
#: The maximum number of exact readings of memory, if processes end meanwhile.
_MOST_READINGS = 3
#: Bytes of kernel memory for a file of a tmpfs, even an empty one.
_INODE_BYTES = 1024
#: The minimum bytes on disk of a file, folder or link: its name and its inode.
_ENTRY_BYTES = 1024
_STATUS = re.compile(rb"^(RssAnon|VmSwap|Threads):\s+(\d+)", re.MULTILINE)
_ROLLUP = re.compile(rb"^(?:Pss_Anon|SwapPss):\s+(\d+) kB", re.MULTILINE)
#: Mappings without a name: shared memory, System V's, memfds, and removed files.
_DELETED_MAPPING = re.compile(
    rb"^([0-9a-f]+)-([0-9a-f]+) \S+ ([0-9a-f]+) (\w+):(\w+) (\d+) +(/\S+).* \(deleted\)$", re.MULTILINE
)


@dataclass(frozen=True)
class TreeBounds:
    """The bounds of a command and all its processes together; 0 removes a bound."""

    #: The maximum bytes of memory.
    memory: int = 0
    #: The maximum number of processes and threads.
    processes: int = 0
    #: The paths of the tmpfs mounts in the sandbox, whose files are memory.
    tmpfs: Sequence[str] = ()
    #: Writable folders on the disk, and the maximum of their bytes together.
    folders: Sequence[str] = ()
    disk: int = 0
    #: The minimum seconds between two checks, which take some milliseconds of a core.
    pause: float = 0.1


class TreeWatch:
    """A thread that ends a command when it and all its processes exceed their bounds."""

    def __init__(self, child: Child, bounds: TreeBounds) -> None:
        self._child, self._bounds = child, bounds
        self._next_disk = 0.0
        #: The exceeded limit, as a clause whose subject is the command; "" if there is none.
        self.sentence = ""
        if os.path.isdir("/proc/self"):
            threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        while self._child.poll() is None:
            started = time.monotonic()
            try:
                self.sentence = self._excess()
            except Exception as error:  # noqa: BLE001 - what cannot be watched does not run on
                reason = getattr(error, "strerror", None) or type(error).__name__
                self.sentence = f"its use of resources cannot be measured ({reason})"
            if self.sentence:
                self._child.end()
                return
            pause = (time.monotonic() - started) / _SHARE
            time.sleep(min(_LONG_PAUSE, max(self._bounds.pause, pause)))

    def _excess(self) -> str:
        bounds = self._bounds
        pids = list(descendants(self._child.above))
        private, threads = _private_bytes(pids)
        if bounds.processes and threads > bounds.processes + _UNCOUNTED_PROCESSES:
            return f"it had more than {bounds.processes} processes and threads"
        if bounds.memory:
            shared = _tmpfs_bytes(pids, bounds.tmpfs) + _nameless_bytes(pids, bounds.tmpfs)
            # The first number counts pages that processes share after a fork once per process.
            if private + shared > bounds.memory and self._is_memory_above(bounds.memory - shared, pids):
                return f"its processes took more than {bounds.memory >> 20} MB of memory together"
        if bounds.disk and self._bytes_on_disk(pids) > bounds.disk:
            return f"it wrote more than {bounds.disk >> 20} MB to the disk"
        return ""

    def _is_memory_above(self, bound: int, pids: Sequence[int]) -> bool:
        """Return whether the exact memory of processes is above a bound.

        Shared pages count once, but several times if processes end during a reading; such a reading is repeated.
        """
        for _ in range(_MOST_READINGS):
            if _exact_private_bytes(pids) <= bound:
                return False
            if descendants(self._child.above).keys() >= set(pids):
                break
        return True

    def _bytes_on_disk(self, pids: Sequence[int]) -> int:
        """Return the bytes on disk; 0 right after the last look, which is slow in large folders."""
        started = time.monotonic()
        if started < self._next_disk:
            return 0
        count = _disk_bytes(self._bounds.folders, self._bounds.disk) + _bytes_of_removed(pids, self._bounds.folders)
        self._next_disk = time.monotonic() + max(_DISK_PAUSE, (time.monotonic() - started) / _DISK_SHARE)
        return count


@dataclass(frozen=True)
class _BoundedRun:
    """The end of a bounded command: its exit code and its last output."""

    #: None if it ran out of time.
    code: ExitCode | None
    #: The exceeded limit, as a clause whose subject is the command; "" if there is none.
    excess: str
    output: str
    errors: str


def run_bounded(  # noqa: PLR0913 - what a run consists of
    command: Sequence[str],
    bounds: TreeBounds,
    seconds: float,
    text_bytes: int,
    *,
    environment: Mapping[str, str],
    folder: str,
    joins_streams: bool = False,
    check: Callable[[], object] = lambda: None,
) -> _BoundedRun:
    """Run a command within bounds and a time limit, and end its remaining processes.

    Raises OSError if it cannot be started, and any error of `check`, which is called meanwhile.
    """
    errors = subprocess.STDOUT if joins_streams else subprocess.PIPE
    child = Child(command, Streams(output=subprocess.PIPE, errors=errors), environment=environment, folder=folder)
    tree = TreeWatch(child, bounds)
    tails = [Tail(stream, text_bytes) for stream in ([child.output] if joins_streams else [child.output, child.errors])]
    try:
        code: ExitCode | None = child.watch(check, seconds)
    except TimeoutError:
        code = None
    finally:
        child.end()
    texts = [tail.text() for tail in tails]
    return _BoundedRun(code, tree.sentence, texts[0], "" if joins_streams else texts[1])


def _disk_bytes(folders: Sequence[str], bound: int) -> int:
    """Return the disk usage of folders, with an overhead per file; stops beyond the bound."""
    total, pending = 0, list(folders)
    while pending and total <= bound:
        try:
            with os.scandir(pending.pop()) as entries:
                for entry in entries:
                    total += _ENTRY_BYTES
                    with suppress(FileNotFoundError):
                        total += entry.stat(follow_symlinks=False).st_blocks * 512
                        pending += [entry.path] if entry.is_dir(follow_symlinks=False) else []
                    if total > bound:
                        break
        except OSError as error:
            # Removed files no longer count; unreadable folders may hold anything.
            if error.errno not in (errno.ENOENT, errno.ENOTDIR):
                raise
    return total


def _read(pid: int, name: str) -> bytes:
    """Return a file of a process; empty if it has ended or is inaccessible."""
    with suppress(OSError), open(f"/proc/{pid}/{name}", "rb") as file:
        return file.read()
    return b""


def _private_bytes(pids: Sequence[int]) -> tuple[int, int]:
    """Return an upper bound of the processes' private memory, and their number of threads."""
    memory = threads = 0
    for pid in pids:
        for name, number in _STATUS.findall(_read(pid, "status")):
            if name == b"Threads":
                threads += int(number)
            else:
                memory += int(number) << 10
    return memory, threads


def _exact_private_bytes(pids: Sequence[int]) -> int:
    total = 0
    for pid in pids:
        numbers = _ROLLUP.findall(_read(pid, "smaps_rollup"))
        total += sum(map(int, numbers)) << 10 if numbers else _private_bytes([pid])[0]
    return total


def _tmpfs_bytes(pids: Sequence[int], mounts: Sequence[str]) -> int:
    """Return the bytes of all files in tmpfs mounts, including removed files that are still open."""
    own_root = os.stat("/")
    for pid in reversed(pids) if mounts else ():
        root = f"/proc/{pid}/root"
        with suppress(OSError):
            inside = os.stat(f"{root}/")
            if (inside.st_dev, inside.st_ino) != (own_root.st_dev, own_root.st_ino):
                states = [os.statvfs(root + path) for path in mounts]
                return sum(
                    (state.f_blocks - state.f_bfree) * state.f_frsize + (state.f_files - state.f_ffree) * _INODE_BYTES
                    for state in states
                )
    return 0


def _nameless_bytes(pids: Sequence[int], tmpfs: Sequence[str]) -> int:
    """Return the size of mapped or open nameless files, counted once per file."""
    sizes: dict[tuple[int, int], int] = {}
    tmpfs_prefixes = tuple(os.fsencode(path) + b"/" for path in tmpfs)
    for pid in pids:
        for start, end, offset, major, minor, inode, name in _DELETED_MAPPING.findall(_read(pid, "maps")):
            if not name.startswith(tmpfs_prefixes):
                key = os.makedev(int(major, 16), int(minor, 16)), int(inode)
                sizes[key] = max(sizes.get(key, 0), int(offset, 16) + int(end, 16) - int(start, 16))
        for state in _open_files(pid, "/memfd:"):
            key = state.st_dev, state.st_ino
            sizes[key] = max(sizes.get(key, 0), state.st_blocks * 512)
    return sum(sizes.values())


def _bytes_of_removed(pids: Sequence[int], folders: Sequence[str]) -> int:
    """Return the disk usage of removed files that are still open."""
    devices = set()
    for folder in folders:
        with suppress(OSError):
            devices.add(os.stat(folder).st_dev)
    files = {
        (state.st_dev, state.st_ino): state.st_blocks * 512
        for pid in pids
        for state in _open_files(pid)
        if stat.S_ISREG(state.st_mode) and not state.st_nlink and state.st_dev in devices
    }
    return sum(files.values())


def _open_files(pid: int, beginning: str = "") -> Iterator[os.stat_result]:
    """Yield the states of a process's open files with this prefix."""
    with suppress(OSError), os.scandir(f"/proc/{pid}/fd") as entries:
        for entry in entries:
            with suppress(OSError):
                if not beginning or os.readlink(entry.path).startswith(beginning):
                    yield os.stat(entry.path)


# ── cgroups ─────────────────────────────────────────────────────────────────

_GROUP_ROOT = "/sys/fs/cgroup"
#: The folders of control groups: in version 2 one for all limits, in version 1 one per kind. Version 1's `memory` is
#: unused, since it would remove processes from our own limits.
_GROUP_ROOTS = (_GROUP_ROOT, os.path.join(_GROUP_ROOT, "cpu"), os.path.join(_GROUP_ROOT, "pids"))
#: The microseconds over which a share of the processor is measured.
_PERIOD = 100_000
_GROUP_NAME = "segjudge-"
_numbers = itertools.count()
#: Enters the groups before anything else runs, so that they contain all of the command's processes.
_ENTER = 'for file in $0; do echo $$ > "$file" 2>/dev/null; done; exec "$@"'


class ResourceGroup:
    """Cgroups with bounds of cores, processes (including threads) and bytes; 0 removes a bound."""

    def __init__(self, *, cores: float = 0, processes: int = 0, memory: int = 0) -> None:
        _remove_abandoned()
        quota = int(cores * _PERIOD)
        second = {
            "cpu.max": f"{quota} {_PERIOD}" if cores else "",
            "pids.max": f"{processes or ''}",
            "memory.max": f"{memory or ''}",
        }
        cpu = {"cpu.cfs_period_us": f"{_PERIOD}", "cpu.cfs_quota_us": f"{quota}"} if cores else {}
        self._folders: list[str] = []
        self._bounds: set[str] = set()
        name = f"{_GROUP_NAME}{os.getpid()}-{next(_numbers)}"
        for root, values in zip(_GROUP_ROOTS, (second, cpu, {"pids.max": f"{processes or ''}"}), strict=True):
            folder = os.path.join(root, name)
            if names := _make_group(folder, {key: value for key, value in values.items() if value}):
                self._folders.append(folder)
                self._bounds |= {key.partition(".")[0] for key in names}

    def holds_bound(self, kind: str) -> bool:
        """Return whether the kernel enforces a bound: `cpu`, `pids` or `memory`."""
        return kind in self._bounds

    def wrap(self, command: Sequence[str]) -> list[str]:
        """Return a command that starts inside the group."""
        files = " ".join(os.path.join(folder, "cgroup.procs") for folder in self._folders)
        return ["/bin/sh", "-c", _ENTER, files, *command] if files else list(command)

    def close(self) -> None:
        for folder in self._folders:
            for _ in range(20):
                try:
                    os.rmdir(folder)
                except OSError:
                    time.sleep(0.05)  # killed processes are still ending
                else:
                    break


def missing_bounds(program: str | None) -> list[str]:
    """Return a sentence for each bound that this sandbox cannot enforce."""
    if program is None:
        return ["No sandbox: limits stop accidents, not attackers (install bwrap for a sandbox)."]
    sentences = sandbox.missing_limits(program)
    with closing(ResourceGroup(processes=sandbox.SCORER_PROCESSES)) as group:
        if not sandbox.are_processes_refused() and not group.holds_bound("pids"):
            text = "The kernel does not limit processes here: surplus processes are killed, up to a second late."
            sentences.append(text)
    return sentences


def _remove_abandoned() -> None:
    for root in _GROUP_ROOTS:
        for name in os.listdir(root) if os.path.isdir(root) else []:
            owner = name.removeprefix(_GROUP_NAME).partition("-")[0]
            if name.startswith(_GROUP_NAME) and owner.isdecimal() and not os.path.exists(f"/proc/{owner}"):
                with suppress(OSError):
                    os.rmdir(os.path.join(root, name))


def _make_group(folder: str, values: dict[str, str]) -> list[str]:
    """Create a group and return the settings it supports; remove it if there are none."""
    names = []
    if values:
        with suppress(OSError):
            os.mkdir(folder)
        for name, value in values.items():
            path = os.path.join(folder, name)
            # If a kind of group is unavailable, the file does not exist and must not be created.
            with suppress(OSError), open(os.open(path, os.O_WRONLY), "w", encoding="ascii") as file:
                file.write(value)
                names.append(name)
        if not names:
            with suppress(OSError):
                os.rmdir(folder)
    return names
