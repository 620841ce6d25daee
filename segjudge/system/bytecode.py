"""Bytecode: Python writes it completely or not at all."""

from __future__ import annotations

import os
import sys
from contextlib import suppress

#: A disk with less space may fill up while a module is written.
_LEAST_ROOM = 1 << 20


def avoid_partial_bytecode() -> None:
    """Stop this program and its children from writing bytecode if files are limited or the disk is full.

    Python before 3.12.8 does not check how much of a module's bytecode was written. With a file limit (`ulimit -f`) or
    a full disk, it would leave a part, and could never import the module again.
    """
    with suppress(ImportError, AttributeError, OSError):  # Windows sets no such limits
        import resource

        disk = os.statvfs(os.path.dirname(__file__))
        is_limited = resource.getrlimit(resource.RLIMIT_FSIZE)[0] != resource.RLIM_INFINITY
        if is_limited or disk.f_bavail * disk.f_frsize < _LEAST_ROOM:
            sys.dont_write_bytecode = True
            os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
