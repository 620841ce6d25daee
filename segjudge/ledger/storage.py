"""What keeps the files of a ledger: it adds files only to the state that its user has read."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from typing import Protocol, TypeVar

from segjudge.evaluation_script.files.problems import HostError

_Result = TypeVar("_Result")
#: The attempts at one change while others write, and the longest pause between two in seconds.
_TRIES, _PAUSE = 30, 2.0


class MovedError(Exception):
    """Raised if another writer added files since the last reading: read again."""


class Storage(Protocol):
    """Files by their paths, with one writer at a time by compare-and-swap."""

    def read(self) -> dict[str, bytes]:
        """Return all files, and remember the state."""

    def write(self, files: Mapping[str, bytes | None], why: str) -> None:
        """Add, replace or (None) remove files in the state that was read; raises MovedError if there is a newer one."""


def repeat_moved(call: Callable[[], _Result], name: str) -> _Result:
    """Return the result of a call, which is repeated while other writers are faster."""
    for _ in range(_TRIES):
        try:
            return call()
        except MovedError:
            time.sleep(random.uniform(0, _PAUSE))  # so that writers do not meet again
    raise HostError(f"{name}: other writers kept changing it; run again")
