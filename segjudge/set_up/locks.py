"""The lock of all set-ups, and the locks on environments in use."""

import errno
import fcntl
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from .environment import ENVIRONMENTS, say

#: Seconds between two messages while another process sets up.
REPORT_EVERY = 15

#: The code that runs at the start of every process in an environment. A process that was started through the link keeps
#: the folder that the link pointed at, also when the link is switched.
IN_USE = '''\
"""Keep the environment of this process: see segjudge/set_up/locks.py."""

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
def set_up_lock(*, wait: bool = True) -> Iterator[int]:
    """Hold the lock of all set-ups, which the kernel releases when this process and the pip that it started ended."""
    os.makedirs(ENVIRONMENTS, exist_ok=True)
    lock = os.open(os.path.join(ENVIRONMENTS, "lock"), os.O_RDWR | os.O_CREAT, 0o644)
    try:
        _acquire(lock, wait=wait)
        os.truncate(lock, 0)
        os.pwrite(lock, str(os.getpid()).encode(), 0)
        yield lock
    finally:
        os.close(lock)


def _acquire(lock: int, *, wait: bool) -> None:
    started = time.monotonic()
    reported = -REPORT_EVERY
    while True:
        try:
            return fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
                return None  # a file system without locks
            if not wait:
                raise
        passed = int(time.monotonic() - started)
        if passed >= reported + REPORT_EVERY:
            reported = passed
            holder = os.pread(lock, 20, 0).decode(errors="replace") or "another"
            say(f"Waiting for process {holder}, which is setting up this checkout ({passed} s so far)…")
        time.sleep(0.2)


def mark_in_use(folder: str) -> None:
    """Lock an environment for the program that replaces this process."""
    lock = os.open(os.path.join(folder, "in-use"), os.O_RDONLY)
    with suppress(OSError):
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    os.set_inheritable(lock, True)  # noqa: FBT003 - it takes no keyword


def remove(folder: str) -> bool:
    """Remove an environment unless a process uses it; return whether it is gone."""
    lock = -1
    try:
        with suppress(FileNotFoundError):
            lock = os.open(os.path.join(folder, "in-use"), os.O_RDONLY)
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        removed = os.path.join(ENVIRONMENTS, f"removed-{os.path.basename(folder)}-{os.getpid()}")
        with suppress(FileNotFoundError):
            os.rename(folder, removed)
        shutil.rmtree(removed, ignore_errors=True)
    except OSError:
        return False
    finally:
        if lock >= 0:
            os.close(lock)
    return True
