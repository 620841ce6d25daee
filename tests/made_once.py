"""What takes long to make is made once for all parts of a run of the tests."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
from pathlib import Path

from tests.everything import FOLDER_VARIABLE


def make_once(name: str, folder: Path, make: Callable[[Path], object]) -> Path:
    """Return a filled folder: in a run of all tests one that its parts share, else this one."""
    if FOLDER_VARIABLE not in os.environ:
        make(folder)
        return folder
    shared = Path(os.environ[FOLDER_VARIABLE], name)
    shared.mkdir(exist_ok=True)
    with open(shared / "lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another part may fill it meanwhile
        if not (shared / "complete").exists():
            make(shared)
            (shared / "complete").touch()
    return shared
