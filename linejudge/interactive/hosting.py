"""The sessions of a server: whose they are, each in a folder of its own, within limits."""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import shutil
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from linejudge.files import replace

from .hosted import SUMMARY, HostedSession, Terms, means_of
from .summary import read_report

_KEY = re.compile(r"[0-9a-f]{64}")
_OWNER = "owner.json"


@dataclass(frozen=True)
class Limits:
    """What a user may ask of the server."""

    #: Bytes of one submission.
    body: int = 64 << 20
    #: Characters of run lengths in one submission.
    runs: int = 32 << 20
    #: Frames × height × width of a sequence.
    pixels: int = 1 << 30
    #: Sessions of a user that are not finished.
    sessions: int = 4
    #: Seconds after which a session nobody asked for is closed.
    idle: float = 24 * 3600.0


@dataclass
class Host:
    """Everything a server holds; `users` is a checksum of each key → name."""

    folder: Path
    terms: Terms
    users: Mapping[str, str]
    limits: Limits = field(default_factory=Limits)
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self._open: dict[str, HostedSession] = {}
        self._lock = threading.Lock()
        #: When a session that is not finished was last asked for; what we were begun with counts from now on.
        self._seen = {key: self.clock() for key, owner in self._owners() if self._lives(key, owner)}
        dataset = self.terms.dataset
        names = dataset.sequences(self.terms.subset)
        dataset.check_files(names)
        #: Brackets and commas of the largest submission: an object of a frame has some, and a frame its own.
        self.most_marks = 1000
        for name in names:
            record = dataset.dataset[name]
            width, height = record["image_size"]
            if record["num_frames"] * width * height > self.limits.pixels:
                raise ValueError(f"{name}: has more than {self.limits.pixels:,} pixels in all of its frames")
            for number in range(1, dataset.num_scribbles(name) + 1):
                dataset.load_scribble(name, number)
            self.most_marks = max(self.most_marks, 1000 + record["num_frames"] * 256 * 4)

    def user(self, key: str) -> str:
        """Whose key it is."""
        name = self.users.get(checksum_of(key.encode()))
        if name is None:
            raise PermissionError("This User-Key is not known here.")
        return name

    def begin(self, user: str, request: str) -> HostedSession:
        """A session of this user's; the same again for the same request."""
        with self._lock:
            self._close_idle()
            mine = [(key, owner) for key, owner in self._owners() if owner["user"] == user]
            for key, owner in mine:
                if request and owner["request"] == request:
                    return self._session(key)
            unfinished = [key for key, owner in mine if self._lives(key, owner)]
            if len(unfinished) >= self.limits.sessions:
                told = f"{user} has {len(unfinished)} sessions that are not finished, and may have no more"
                raise BlockingIOError(f"{told}; go on with one, or wait until they are closed.")
            key = secrets.token_hex(32)
            folder = self.folder / key
            folder.mkdir(parents=True)
            session = HostedSession(self.terms, folder, self.clock)
            try:
                session.begin(key)
                session.keep()
            except BaseException:
                shutil.rmtree(folder, ignore_errors=True)
                raise
            # Last, so that a folder without it is of no session.
            replace(folder / _OWNER, json.dumps({"user": user, "request": request, "closed": False}))
            self._open[key], self._seen[key] = session, self.clock()
            return session

    def of(self, user: str, key: str) -> HostedSession:
        """A session of this user's, from the disk where it has to be; another's is as none."""
        with self._lock:
            self._close_idle()
            owner = self._owner(key) if _KEY.fullmatch(key) else None
            if owner is None or owner["user"] != user:
                raise LookupError("There is no such session of yours.")
            if owner["closed"]:
                raise LookupError("This session was closed, since nobody had asked for it for long.")
            return self._session(key)

    def finished(self, session: HostedSession) -> dict[str, Any] | None:
        """Its summary, once it is over."""
        path = self._summary(session.session_key)
        if not path.exists():
            return None
        with self._lock:  # from now on the disk is enough
            self._open.pop(session.session_key, None)
            self._seen.pop(session.session_key, None)
        found: dict[str, Any] = json.loads(path.read_text())
        return found

    def report(self, session: HostedSession) -> pd.DataFrame:
        """Its rows without the frames."""
        if self._summary(session.session_key).exists():
            # The temporary one stays behind where the end was cut off.
            found = session.report_save_dir.glob("result_*.csv")
            return means_of(read_report(max(found, key=lambda path: not path.name.endswith(".tmp.csv"))))
        return session.means()

    def _session(self, key: str) -> HostedSession:
        self._seen[key] = self.clock()
        if key not in self._open:
            over = self._summary(key).exists()
            session = HostedSession(self.terms, self.folder / key, self.clock, resume=not over)
            try:
                session.begin(key)
            except ValueError:
                told = "This session was begun with other sequences or limits than the server has now."
                raise LookupError(told) from None
            session.running = not over
            self._open[key] = session
        return self._open[key]

    def _lives(self, key: str, owner: dict[str, Any]) -> bool:
        return not owner["closed"] and not self._summary(key).exists()

    def _close_idle(self) -> None:
        """Sessions that nobody asks for leave memory; those that are not finished end for good."""
        for key, seen in list(self._seen.items()):
            session, owner = self._open.get(key), self._owner(key)
            if self.clock() - seen <= self.limits.idle or (session is not None and session.lock.locked()):
                continue
            del self._seen[key]
            self._open.pop(key, None)
            if owner is not None and self._lives(key, owner):
                replace(self.folder / key / _OWNER, json.dumps({**owner, "closed": True}))

    def _owners(self) -> list[tuple[str, dict[str, Any]]]:
        found = ((name, self._owner(name)) for name in sorted(os.listdir(self.folder)) if _KEY.fullmatch(name))
        return [(name, owner) for name, owner in found if owner is not None]

    def _owner(self, key: str) -> dict[str, Any] | None:
        with suppress(OSError, ValueError):
            owner: dict[str, Any] = json.loads((self.folder / key / _OWNER).read_text())
            return owner
        return None

    def _summary(self, key: str) -> Path:
        return self.folder / key / SUMMARY


def checksum_of(data: bytes) -> str:
    """What is compared instead of the thing itself."""
    return hashlib.sha256(data).hexdigest()


def users_of(path: str) -> dict[str, str]:
    """Checksum of each key → name, from lines `name key`; raises ValueError with the line that is wrong."""
    users: dict[str, str] = {}
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            words = line.split("#")[0].split()
            if not words:
                continue
            if len(words) != 2 or len(words[1]) < 16:
                raise ValueError(f"{path}:{number}: is not `name key` with a key of 16 characters or more")
            if checksum_of(words[1].encode()) in users:
                raise ValueError(f"{path}:{number}: the key of {words[0]} is there twice")
            users[checksum_of(words[1].encode())] = words[0]
    if not users:
        raise ValueError(f"{path}: holds no user; write lines of `name key`")
    return users
