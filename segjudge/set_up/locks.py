"""One lock around all set-ups, and one in each environment that those who use it hold."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from .environment import PLACE, say

#: While another process sets up, a line comes this often, in seconds.
REPORT_EVERY = 15

#: Runs at the start of every process in an environment. One that was started through the link stays with the folder
#: that the link led to, also when the link is switched.
IN_USE = '''\
"""Keep the environment of this process: see set_up.py."""

import fcntl
import os
import sys

_real = os.path.realpath(sys.prefix)
if _real != sys.prefix:
    _moved = [_real + path[len(sys.prefix) :] if path.startswith(sys.prefix + os.sep) else path for path in sys.path]
    sys.path[:] = _moved
    if sys.executable.startswith(sys.prefix + os.sep):
        sys.executable = _real + sys.executable[len(sys.prefix) :]
    sys.prefix = sys.exec_prefix = _real
try:
    _near = os.open(os.path.join(_real, "in-use"), os.O_RDONLY)
    _held = fcntl.fcntl(_near, fcntl.F_DUPFD_CLOEXEC, 100)
    os.close(_near)
    fcntl.flock(_held, fcntl.LOCK_SH | fcntl.LOCK_NB)
except OSError:
    pass
'''


@contextmanager
def alone(*, wait: bool = True) -> Iterator[int]:
    """Hold the lock of all set-ups; the kernel frees it when its holder and the pip that it started have ended."""
    os.makedirs(PLACE, exist_ok=True)
    lock = os.open(os.path.join(PLACE, "lock"), os.O_RDWR | os.O_CREAT, 0o644)
    try:
        _take(lock, wait=wait)
        os.truncate(lock, 0)
        os.pwrite(lock, str(os.getpid()).encode(), 0)
        yield lock
    finally:
        os.close(lock)


def _take(lock: int, *, wait: bool) -> None:
    started = time.monotonic()
    told = -REPORT_EVERY
    while True:
        try:
            return fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
                return None  # a file system without locks
            if not wait:
                raise
        passed = int(time.monotonic() - started)
        if passed >= told + REPORT_EVERY:
            told = passed
            holder = os.pread(lock, 20, 0).decode(errors="replace") or "another"
            say(f"Waiting for process {holder}, which is setting up this checkout ({passed} s so far)…")
        time.sleep(0.2)


def lease(folder: str) -> int:
    """A lock on an environment, which the program that this process becomes keeps."""
    held = os.open(os.path.join(folder, "in-use"), os.O_RDONLY)
    with suppress(OSError):
        fcntl.flock(held, fcntl.LOCK_SH | fcntl.LOCK_NB)
    os.set_inheritable(held, True)  # noqa: FBT003 - it takes no keyword
    return held


def remove(folder: str) -> bool:
    """Remove an environment unless a process uses it; whether it is gone."""
    held = -1
    try:
        with suppress(FileNotFoundError):
            held = os.open(os.path.join(folder, "in-use"), os.O_RDONLY)
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        doomed = os.path.join(PLACE, f"removed-{os.path.basename(folder)}-{os.getpid()}")
        with suppress(FileNotFoundError):
            os.rename(folder, doomed)
        shutil.rmtree(doomed, ignore_errors=True)
    except OSError:
        return False
    finally:
        if held >= 0:
            os.close(held)
    return True
