"""Checks that processes have ended."""

from __future__ import annotations

import time
from pathlib import Path


def is_gone(process: int, seconds: float = 60.0) -> bool:
    """Return whether a process has ended; a zombie has."""
    until = time.monotonic() + seconds
    while True:
        try:
            text = Path(f"/proc/{process}/stat").read_text()
        except OSError:
            return True
        if text.rpartition(")")[2].split()[0] in "ZX":
            return True
        if time.monotonic() > until:
            return False
        time.sleep(0.02)
