"""What a server of sessions keeps on disk beside the sessions: its clock, and in which of them masks were measured."""

import hashlib
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


class SessionLedger:
    """User → sequence → the sessions in which masks of it were measured; one file for each user.

    It is kept on disk, for what was revealed stays revealed.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._lock = threading.Lock()
        self._entries = dict(_read_entry(path) for path in folder.glob("*.json"))

    def sessions(self, user: str, sequence: str) -> frozenset[str]:
        """Return the sessions of a user in which masks of a sequence were measured."""
        with self._lock:
            return frozenset(self._entries.get(user, {}).get(sequence, ()))

    def note(self, user: str, sequence: str, session: str) -> None:
        """Write down that a session measures masks of a sequence; a second time changes nothing."""
        with self._lock:
            entries = self._entries.get(user, {})
            before = entries.get(sequence, [])
            if session in before:
                return
            after = {**entries, sequence: [*before, session]}
            name = hashlib.sha256(user.encode()).hexdigest()
            replace(self._folder / f"{name}.json", json.dumps({"user": user, "sequences": after}))
            # Last, so that an entry that could not be written is tried again.
            self._entries[user] = after


def _read_entry(path: Path) -> tuple[str, dict[str, list[str]]]:
    try:
        entry = json.loads(path.read_text(encoding="utf-8"))
        user, sequences = entry["user"], entry["sequences"]
        if all(isinstance(session, str) for sessions in sequences.values() for session in sessions):
            return str(user), {str(name): list(sessions) for name, sessions in sequences.items()}
    except (ValueError, KeyError, TypeError, AttributeError):
        pass
    raise ValueError(f"{path}: is not a ledger of sessions; restore it from a copy, or remove it, which forgets a user")
