"""How often each user has had masks of a sequence measured, on disk: what was told cannot be taken back."""

from __future__ import annotations

import hashlib
import json
import threading
from pathlib import Path
from typing import Any

from segjudge.files import replace


class SessionLedger:
    """User → sequence → the sessions in which masks of it were measured; one file for each user."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._lock = threading.Lock()
        self._known = dict(_read(path) for path in folder.glob("*.json"))

    def sessions(self, user: str, sequence: str) -> frozenset[str]:
        """Return the sessions of a user in which masks of a sequence were measured."""
        with self._lock:
            return frozenset(self._known.get(user, {}).get(sequence, ()))

    def note(self, user: str, sequence: str, session: str) -> None:
        """Write down that masks are measured now; a second time changes nothing."""
        with self._lock:
            known = self._known.get(user, {})
            before = known.get(sequence, [])
            if session in before:
                return
            after = {**known, sequence: [*before, session]}
            name = hashlib.sha256(user.encode()).hexdigest()
            replace(self._folder / f"{name}.json", json.dumps({"user": user, "sequences": after}))
            # Last, so that what could not be written is tried again.
            self._known[user] = after


def _read(path: Path) -> tuple[str, dict[str, list[str]]]:
    try:
        told: Any = json.loads(path.read_text(encoding="utf-8"))
        user, sequences = told["user"], told["sequences"]
        if all(isinstance(one, str) for keys in sequences.values() for one in keys):
            return str(user), {str(name): list(keys) for name, keys in sequences.items()}
    except (ValueError, KeyError, TypeError, AttributeError):
        pass
    raise ValueError(f"{path}: is not a ledger of sessions; restore it from a copy, or remove it, which forgets a user")
