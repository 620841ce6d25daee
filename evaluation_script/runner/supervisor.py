"""A supervisor: a process between its parent and a job, which ends the job with all its processes.

On Linux it adopts the job's orphans, so it also finds processes that left the group or session; elsewhere it ends only
the process group. It ends them when the job ends, when its parent asks, and when its parent dies.

`guard.py` forks a supervisor for scoring jobs. As a program it runs a command and returns its exit code; the toolkit
starts its children this way:

usage: supervisor.py DESCRIPTOR COMMAND…

Over its socket the supervisor reports the job's process id and the error number of `fork` or `exec` (or 0), and at the
end the job's status. A byte that it receives is a signal for the job; the socket's end ends everything.
"""

from __future__ import annotations

import ctypes
import errno
import gc
import os
import select
import signal
import sys
import time
from contextlib import suppress
from typing import Callable, Dict, List, NoReturn, Optional, Set, Tuple

#: The status of an ended process, as `os.waitpid` returns it.
Status = int
#: The job, which runs in a child; its argument is a descriptor to close at the start.
_Job = Callable[[int], object]

_DEATH_SIGNAL, _CHILD_SUBREAPER = 1, 36
#: Seconds between checks whether the parent still exists, in case the socket does not show it.
_POLL_SECONDS = 1.0
#: Seconds after which a process that cannot be killed (another user's, or waiting for a disk) is abandoned.
GIVE_UP_SECONDS = 60.0
_PAUSE = 0.01
#: Signals that end a supervisor in order.
_ENDING = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGINT", "SIGHUP") if hasattr(signal, name))
#: More than the bytes of a process's `stat`, whose name has at most 64.
_STATE_BYTES = 4096
_HAS_PROC = os.path.exists("/proc/self/stat")


def _find_prctl() -> Optional[Callable[..., int]]:
    """Return Linux's `prctl`; None where it is missing, as on macOS, or cannot be loaded, as on Windows."""
    with suppress(OSError, AttributeError, TypeError):
        function: Callable[..., int] = ctypes.CDLL(None).prctl
        return function
    return None


#: Found on import: if another thread held the loader's lock, a forked child could never get it.
_PRCTL = _find_prctl()


def die_with_parent(parent: int) -> None:
    """Ask Linux to kill this process when its parent with this id ends."""
    _set_option(_DEATH_SIGNAL, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)  # it ended before the request to the kernel


def descendants(process: int) -> Dict[int, int]:
    """Return the living descendants of a process with their groups; empty without /proc."""
    children: Dict[int, List[Tuple[int, int]]] = {}
    for name in os.listdir("/proc") if _HAS_PROC else []:
        if name.isdecimal():
            with suppress(OSError, ValueError, IndexError):
                fields = _read_state(name).rpartition(b")")[2].split()
                # A zombie is dead, unless only its first thread has ended.
                if fields[0] not in (b"Z", b"X") or int(fields[17]) > 1:
                    children.setdefault(int(fields[1]), []).append((int(name), int(fields[2])))
    groups: Dict[int, int] = {}
    pending = [process]
    while pending:
        below = children.get(pending.pop(), [])
        groups.update(below)
        pending += [child for child, _ in below]
    return groups


def _read_state(process: str) -> bytes:
    """Return the `stat` of a process in three calls, because a watch reads all of them ten times a second."""
    number = os.open(f"/proc/{process}/stat", os.O_RDONLY)
    try:
        return os.read(number, _STATE_BYTES)
    finally:
        os.close(number)


def keep_forked(job: Callable[[], object], leash: int, parent: int) -> NoReturn:
    """Supervise a job, in a child that was forked for it."""
    try:
        collecting = gc.isenabled()
        gc.disable()  # it would collect the parent's objects, whose descriptors are closed here
        signal.set_wakeup_fd(-1)
        os.setsid()
        allowed, allowing = os.pipe()  # `_let_go` closes it, once the parent knows that the job is there

        def begin(ready: int) -> None:
            os.close(ready)
            os.close(allowing)
            os.read(allowed, 1)  # a job that began earlier could stop the supervisor before it has reported anything
            os.close(allowed)
            if collecting:
                gc.enable()
            job()

        _supervise(begin, leash, parent)
    finally:
        os._exit(0)


def _supervise(job: _Job, leash: int, parent: int) -> Status:
    """Run a job in a child and only supervise it; return how it ended."""
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    for number in _ENDING:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _do_nothing)
    signal.signal(signal.SIGCHLD, _do_nothing)  # ignored, it would leave no status
    _set_option(_CHILD_SUBREAPER, 1)
    child, error = _start(job, leash)
    with suppress(OSError):  # its reader may be gone already
        os.write(leash, b"%d %d\n" % (child, error))
    if not child:
        return 0
    _let_go(leash)
    status = _end(child, _watch(child, leash, parent))
    with suppress(OSError):
        os.write(leash, b"%d\n" % status)
    return status


def _do_nothing(*_: object) -> None:
    """Ignore a signal that the wake-up descriptor has already passed on."""


def _set_option(option: int, value: int) -> None:
    if _PRCTL is not None:
        _PRCTL(option, value)


def _start(job: _Job, leash: int) -> Tuple[int, int]:
    """Start the job; return its process id (0 for none), and the error number of `fork` or `exec`."""
    reader, writer = os.pipe()
    supervisor = os.getpid()
    try:
        child = os.fork()
    except OSError as error:
        return 0, error.errno or errno.EAGAIN
    if child == 0:
        try:
            os.setsid()
            die_with_parent(supervisor)
            for number in (*_ENDING, signal.SIGCHLD):
                if signal.getsignal(number) is _do_nothing:
                    signal.signal(number, signal.SIG_DFL)
            os.close(leash)
            os.close(reader)
            job(writer)
        finally:
            os._exit(127)
    os.close(writer)
    with os.fdopen(reader, "rb") as file:
        error_number = file.read()
    return child, int(error_number or 0)


def _become(command: List[str], ready: int) -> None:
    """Replace this process with a command; `exec` closes `ready`."""
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them, and `exec` would keep that
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execvp(command[0], command)  # noqa: S606 - there is no shell in between
    except OSError as error:
        os.write(ready, str(error.errno).encode())


def _let_go(leash: int) -> None:
    """Close the job's streams and locks in this process."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nothing, number)
    names = os.listdir("/proc/self/fd") if _HAS_PROC else [str(number) for number in range(3, 256)]
    for number in (int(name) for name in names):
        if number > 2 and number != leash and not _is_anonymous(number):
            with suppress(OSError):
                os.close(number)


def _is_anonymous(number: int) -> bool:
    """Return whether a descriptor is an epoll or a counter, without which threads that gRPC starts in forks abort."""
    with suppress(OSError):
        return os.readlink(f"/proc/self/fd/{number}").startswith("anon_inode:")
    return False


def _watch(child: int, leash: int, parent: int) -> Optional[Status]:
    """Wait until the child ends or should be ended; return its status if it ended."""
    wakeup_reader, wakeup_writer = os.pipe()
    os.set_blocking(wakeup_writer, False)
    signal.set_wakeup_fd(wakeup_writer, warn_on_full_buffer=False)
    waiting = select.poll()
    waiting.register(wakeup_reader, select.POLLIN)
    waiting.register(leash, select.POLLIN)
    while os.getppid() == parent:
        status = _reap()[0].get(child)
        if status is not None:
            return status
        ready = [number for number, _ in waiting.poll(1000 * _POLL_SECONDS)]
        if wakeup_reader in ready and set(os.read(wakeup_reader, 4096)) & set(_ENDING):
            return None
        if leash in ready and not _obey(leash, child):
            return None
    return None


def _obey(leash: int, child: int) -> bool:
    """Forward the parent's signals to the job; return False when the parent is gone."""
    orders = b""
    with suppress(OSError):
        orders = os.read(leash, 256)
    for number in orders:
        with suppress(OSError):
            os.kill(child, number)
    return bool(orders)


def _end(child: int, status: Optional[Status]) -> Status:
    """End the job's remaining processes; return the child's status."""
    statuses = _kill_descendants()
    if not _HAS_PROC:  # only the group can be located
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(child, signal.SIGKILL)
        until = time.monotonic() + GIVE_UP_SECONDS
        while status is None and child not in statuses and time.monotonic() < until:
            time.sleep(_PAUSE)
            statuses.update(_reap()[0])
    return statuses.get(child, signal.SIGKILL) if status is None else status


def _kill_descendants() -> Dict[int, Status]:
    """Kill all descendants; return the statuses of children.

    They are stopped first, so that nothing forks meanwhile, and killed by group, which no fork escapes.
    """
    until = time.monotonic() + GIVE_UP_SECONDS
    stopped: Set[int] = set()
    statuses, some = _reap()
    while some and _HAS_PROC and time.monotonic() < until:
        survivors = descendants(os.getpid())
        running = survivors.keys() - stopped
        _signal(survivors, signal.SIGSTOP if running else signal.SIGKILL)
        stopped |= running
        if not running:
            time.sleep(_PAUSE)
        ended, some = _reap()
        statuses.update(ended)
    return statuses


def _signal(processes: Dict[int, int], number: int) -> None:
    own_group = os.getpgrp()
    for group in set(processes.values()) - {own_group}:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(group, number)
    for process in [process for process, group in processes.items() if group == own_group]:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(process, number)


def _reap() -> Tuple[Dict[int, Status], bool]:
    """Reap ended children; return their statuses, and whether others remain."""
    statuses: Dict[int, Status] = {}
    while True:
        try:
            process, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return statuses, False
        if not process:
            return statuses, True
        statuses[process] = status


def _end_as(status: Status) -> NoReturn:
    """End this process with the command's status or signal."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        with suppress(ImportError, OSError, ValueError):
            import resource

            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # the command's own signal was enough
        with suppress(OSError):  # SIGKILL has no handler
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    os._exit(os.WEXITSTATUS(status) if os.WIFEXITED(status) else 1)


def main() -> None:
    """Run and supervise the command in the arguments."""
    leash, command = int(sys.argv[1]), sys.argv[2:]
    _end_as(_supervise(lambda ready: _become(command, ready), leash, os.getppid()))


if __name__ == "__main__":
    main()
