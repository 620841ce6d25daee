"""In which sessions each user has had masks of a sequence measured; on disk, for what was revealed stays revealed."""

import hashlib
import json
import threading
from pathlib import Path

from segjudge.system.files import replace


class SessionLedger:
    """User → sequence → the sessions in which masks of it were measured; one file for each user."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._lock = threading.Lock()
        self._entries = dict(_read(path) for path in folder.glob("*.json"))

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


def _read(path: Path) -> tuple[str, dict[str, list[str]]]:
    try:
        entry = json.loads(path.read_text(encoding="utf-8"))
        user, sequences = entry["user"], entry["sequences"]
        if all(isinstance(session, str) for sessions in sequences.values() for session in sessions):
            return str(user), {str(name): list(sessions) for name, sessions in sequences.items()}
    except (ValueError, KeyError, TypeError, AttributeError):
        pass
    raise ValueError(f"{path}: is not a ledger of sessions; restore it from a copy, or remove it, which forgets a user")
