"""Which workers of a machine are alive, and what dead ones left behind.

Each process holds a lock on a file of its own.  The kernel releases it with the process, however that dies; an
evaluation inherits it, so that its job and its files are free only when no process works with them any more.
"""

from __future__ import annotations

import fcntl
import os
import re
import secrets
import shutil
from contextlib import suppress

_NAME = re.compile(r"[0-9a-f]{8}")
#: The end of names that belong to one worker: downloads, and files that are still being fetched.
_OWNED = re.compile(r".*-([0-9a-f]{8})(?:\.partial)?")
#: The folders with files of workers.
DOWNLOADS, FETCHED = "submissions", "annotations"


class Owners:
    """The workers of a state folder, and this process as one of them."""

    def __init__(self, folder: str) -> None:
        self._folder, self._locks = folder, os.path.join(folder, "locks")
        os.makedirs(self._locks, mode=0o700, exist_ok=True)
        #: The descriptor of our lock is for processes that work for us too.
        self.name, self.lock = self._locked()

    def _locked(self) -> tuple[str, int]:
        """Return a name of our own, and the descriptor of its lock."""
        while True:
            name = secrets.token_hex(4)
            path = os.path.join(self._locks, name)
            lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            fcntl.flock(lock, fcntl.LOCK_EX)
            # Between the two calls another process may have taken the file for a dead worker's, and removed it.
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(lock), os.stat(path)):
                    return name, lock
            os.close(lock)

    def is_alive(self, owner: str) -> bool:
        """Return whether a worker, or an evaluation of its, still runs."""
        if owner == self.name:
            return True
        if not _NAME.fullmatch(owner):
            return False
        path = os.path.join(self._locks, owner)
        try:
            with open(path, "rb") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.unlink(path)
        except FileNotFoundError:
            return False
        except OSError:
            return True
        return False

    def remove_abandoned(self) -> list[str]:
        """Remove what dead workers left behind; return the paths."""
        removed = []
        for folder in (os.path.join(self._folder, name) for name in (DOWNLOADS, FETCHED)):
            for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
                owner = _OWNED.fullmatch(name)
                if owner and not self.is_alive(owner[1]):
                    removed.append(os.path.join(folder, name))
                    _remove(removed[-1])
        for name in os.listdir(self._locks):
            if _NAME.fullmatch(name):
                self.is_alive(name)
        return removed

    def close(self) -> None:
        """Remove our lock."""
        with suppress(OSError):
            os.unlink(os.path.join(self._locks, self.name))
        os.close(self.lock)


def _remove(path: str) -> None:
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            os.unlink(path)
