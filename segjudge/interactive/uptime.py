"""The clock of a server of sessions."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from segjudge.files import replace

_UPTIME = "uptime"
#: Seconds between two notes of the time.
BEAT = 1.0


class Uptime:
    """Seconds for which the server has run, restarts and all: time while it is down counts for nobody."""

    def __init__(self, folder: Path, beat: float = BEAT) -> None:
        self._path, self._beat = folder / _UPTIME, beat
        self._before = max([0.0, *_noted(folder)])
        self._start = time.monotonic()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._note, daemon=True)
        self._thread.start()

    def __call__(self) -> float:
        return self._before + time.monotonic() - self._start

    def begin(self) -> None:
        """Count from now on."""
        self._start = time.monotonic()

    def _note(self) -> None:
        while not self._ended.wait(self._beat):
            with suppress(OSError):  # a full disk may have room again
                self._keep()

    def _keep(self) -> None:
        replace(self._path, repr(self()))

    def stop(self) -> None:
        """Note the time for the last time."""
        self._ended.set()
        self._thread.join()
        with suppress(OSError):
            self._keep()


def _noted(folder: Path) -> Iterator[float]:
    """The time as it was noted, and as sessions noted it: the later one is nearer to when the server died."""
    for path in (folder / _UPTIME, *folder.glob("*/result_*.state.json")):
        with suppress(OSError, ValueError, KeyError, TypeError):
            told = json.loads(path.read_text())
            if isinstance(told, dict):
                yield float(told["clock"])
                yield float(told["interaction_start_time"] or 0.0)
            else:
                yield float(told)
