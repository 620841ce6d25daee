"""The clock of a server of sessions."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from segjudge.system.files import replace

_UPTIME = "uptime"
#: Seconds between two notes of the time.
BEAT = 1.0


class Uptime:
    """The seconds for which the server has run, over all restarts: time while it is down counts for nobody."""

    def __init__(self, folder: Path, beat: float = BEAT) -> None:
        self._path, self._beat = folder / _UPTIME, beat
        self._before = max([0.0, *_noted_times(folder)])
        self._start = time.monotonic()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._note, daemon=True)
        self._thread.start()

    def __call__(self) -> float:
        return self._before + time.monotonic() - self._start

    def begin(self) -> None:
        """Count this run from now on."""
        self._start = time.monotonic()

    def _note(self) -> None:
        while not self._ended.wait(self._beat):
            with suppress(OSError):  # a full disk may have room again
                replace(self._path, repr(self()))

    def stop(self) -> None:
        """Stop the thread, and note the time once more."""
        self._ended.set()
        self._thread.join()
        with suppress(OSError):
            replace(self._path, repr(self()))


def _noted_times(folder: Path) -> Iterator[float]:
    """Yield the time as it was noted here and in sessions: the latest is nearest to when the server died."""
    for path in (folder / _UPTIME, *folder.glob("*/result_*.state.json")):
        with suppress(OSError, ValueError, KeyError, TypeError):
            noted = json.loads(path.read_text())
            if isinstance(noted, dict):
                yield float(noted["clock"])
                yield float(noted["interaction_start_time"] or 0.0)
            else:
                yield float(noted)
