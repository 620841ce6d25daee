"""What keeps the files of a ledger: it adds files only to the state that its user has read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol


class MovedError(Exception):
    """Raised if another writer added files since the last reading: read again."""


class Storage(Protocol):
    """Files by their paths, with one writer at a time by compare-and-swap."""

    def read(self) -> dict[str, bytes]:
        """Return all files, and remember the state."""

    def write(self, files: Mapping[str, bytes | None], why: str) -> None:
        """Add, replace or (None) remove files in the state that was read; raises MovedError if there is a newer one."""
