"""A folder that one process has for itself, and files that are written in one step."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import Any

from evaluation_script.errors import HostError


def locked(folder: str, who: str) -> Any:
    """A lock that ends with the process, or when it is closed; raises HostError where another holds it."""
    os.makedirs(folder, mode=0o700, exist_ok=True)
    file = open(os.path.join(folder, "lock"), "w", encoding="ascii")  # noqa: SIM115 - held as long as the process
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        raise HostError(f"{folder}: another {who} uses this folder; end it, or name another with --data") from None
    return file


def replace(path: Path, text: str) -> None:
    """Write a file in one step: whoever reads it finds the old one or the new one whole."""
    partial = path.with_suffix(".partial")
    partial.write_text(text, encoding="utf-8")
    os.replace(partial, path)
