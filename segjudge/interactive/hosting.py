"""The sessions of a server: whose they are, each in a folder of its own, within limits."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
import secrets
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from segjudge.files import replace

from .dataset import first_scribbles
from .hosted import SUMMARY, HostedSession, SessionTerms, means_of
from .session_ledger import SessionLedger
from .summary import read_report

#: Folders of sessions; keys are not kept, so that a copy of the state opens no session.
_NAME = re.compile(r"session-[0-9a-f]{64}")
_OLD_NAME = re.compile(r"[0-9a-f]{64}")
_OWNER, _LEDGER, _SECRET = "owner.json", "ledger", "secret"


@dataclass(frozen=True)
class SessionLimits:
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
    #: Sessions of a user in which masks of one sequence are measured, ever.
    sessions_per_sequence: int = 5
    #: Sessions in memory at once; the others are on disk until they are asked for.
    open_sessions: int = 8


@dataclass
class Host:
    """Everything a server holds; `users` is a checksum of each key → name."""

    folder: Path
    terms: SessionTerms
    users: Mapping[str, str]
    limits: SessionLimits = field(default_factory=SessionLimits)
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.folder.chmod(0o700)
        self._ledger = SessionLedger(self.folder / _LEDGER)
        self._secret = _secret(self.folder / _SECRET)
        _protect_old(self.folder)
        #: Those used last come last.
        self._open: dict[str, HostedSession] = {}
        self._lock = threading.Lock()
        #: When a session that is not finished was last asked for; what we were begun with counts from now on.
        self._seen = {name: self.clock() for name, owner in self._owners() if self._lives(name, owner)}
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
                first_scribbles(dataset, name, number)
            self.most_marks = max(self.most_marks, 1000 + record["num_frames"] * 256 * 4)

    def user(self, key: str) -> str:
        """Whose key it is."""
        name = self.users.get(checksum_of(key.encode()))
        if name is None:
            raise PermissionError("This User-Key is not known here.")
        return name

    def begin(self, user: str, request: str) -> tuple[str, HostedSession]:
        """A session of this user's and its key; the same again for the same request."""
        asked = checksum_of(request.encode()) if request else ""
        drawn = f"{user}\n{request}" if request else secrets.token_hex(32)
        key = hmac.new(self._secret, drawn.encode(), hashlib.sha256).hexdigest()
        with self._lock:
            self._close_idle()
            mine = [(name, owner) for name, owner in self._owners() if owner["user"] == user]
            if any(asked and owner["request"] == asked for _, owner in mine):
                return key, self._session(name_of(key), user)
            self._check_allowed(user, [name for name, owner in mine if self._lives(name, owner)])
            return key, self._begun(name_of(key), {"user": user, "request": asked, "closed": False})

    def _check_allowed(self, user: str, unfinished: list[str]) -> None:
        """Raises BlockingIOError for a session too many; one that is not finished may still measure everything."""
        if len(unfinished) >= self.limits.sessions:
            told = f"{user} has {len(unfinished)} sessions that are not finished, and may have no more"
            raise BlockingIOError(f"{told}; go on with one, or wait until they are closed.")
        most = self.limits.sessions_per_sequence
        for sequence in self.terms.dataset.sequences(self.terms.subset):
            if len(self._ledger.sessions(user, sequence) | {*unfinished}) >= most:
                told = f"{user} has had masks of {sequence} measured in {most} sessions, or may yet in those begun"
                raise BlockingIOError(f"{told}: no session more may do so; ask the host.")

    def _begun(self, name: str, owner: dict[str, Any]) -> HostedSession:
        folder = self.folder / name
        folder.mkdir(mode=0o700)
        session = self._made(name, owner["user"], resume=False)
        try:
            session.begin(name)
            session.keep()
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        # Last, so that a folder without it is of no session.
        replace(folder / _OWNER, json.dumps(owner))
        self._open[name], self._seen[name] = session, self.clock()
        self._make_room()
        return session

    def _made(self, name: str, user: str, *, resume: bool) -> HostedSession:
        def note(sequence: str) -> None:
            self._ledger.note(user, sequence, name)

        return HostedSession(self.terms, self.folder / name, self.clock, note, resume=resume)

    @contextmanager
    def using(self, user: str, key: str) -> Iterator[HostedSession]:
        """A session of this user's, from the disk where it has to be; it stays in memory while it is in use."""
        with self._lock:
            self._close_idle()
            session = self._session(self._owned(user, key), user)
            session.users += 1
        try:
            yield session
        finally:
            with self._lock:
                session.users -= 1

    def check(self, user: str, key: str) -> None:
        """Raises LookupError where the user has no such session."""
        with self._lock:
            self._owned(user, key)

    def _owned(self, user: str, key: str) -> str:
        name = name_of(key)
        owner = self._owner(name)
        if owner is None or owner["user"] != user:  # another's is as none
            raise LookupError("There is no such session of yours.")
        if owner["closed"]:
            raise LookupError("This session was closed, since nobody had asked for it for long.")
        return name

    def finished(self, session: HostedSession) -> dict[str, Any] | None:
        """Its summary, once it is over."""
        path = session.report_save_dir / SUMMARY
        if not path.exists():
            return None
        with self._lock:  # from now on the disk is enough
            self._open.pop(session.report_save_dir.name, None)
            self._seen.pop(session.report_save_dir.name, None)
        found: dict[str, Any] = json.loads(path.read_text())
        return found

    def report(self, session: HostedSession) -> pd.DataFrame:
        """Its rows without the frames."""
        if (session.report_save_dir / SUMMARY).exists():
            # The temporary one stays behind where the end was cut off.
            found = session.report_save_dir.glob("result_*.csv")
            return means_of(read_report(max(found, key=lambda path: not path.name.endswith(".tmp.csv"))))
        return session.means()

    def _session(self, name: str, user: str) -> HostedSession:
        self._seen[name] = self.clock()
        if name not in self._open:
            over = (self.folder / name / SUMMARY).exists()
            session = self._made(name, user, resume=not over)
            try:
                session.begin(name)
            except ValueError:
                told = "This session was begun with other sequences or limits than the server has now."
                raise LookupError(told) from None
            session.running = not over
            self._open[name] = session
        self._open[name] = self._open.pop(name)
        self._make_room()
        return self._open[name]

    def _make_room(self) -> None:
        """Let sessions that were used longest ago go from memory; all of them is on disk."""
        for name in list(self._open)[: -self.limits.open_sessions]:
            if not self._open[name].is_in_use():
                del self._open[name]

    def _lives(self, name: str, owner: dict[str, Any]) -> bool:
        return not owner["closed"] and not (self.folder / name / SUMMARY).exists()

    def _close_idle(self) -> None:
        """Sessions that nobody asks for leave memory; those that are not finished end for good."""
        for name, seen in list(self._seen.items()):
            session, owner = self._open.get(name), self._owner(name)
            if self.clock() - seen <= self.limits.idle or (session is not None and session.is_in_use()):
                continue
            del self._seen[name]
            self._open.pop(name, None)
            if owner is not None and self._lives(name, owner):
                replace(self.folder / name / _OWNER, json.dumps({**owner, "closed": True}))

    def _owners(self) -> list[tuple[str, dict[str, Any]]]:
        found = ((name, self._owner(name)) for name in sorted(os.listdir(self.folder)) if _NAME.fullmatch(name))
        return [(name, owner) for name, owner in found if owner is not None]

    def _owner(self, name: str) -> dict[str, Any] | None:
        with suppress(OSError, ValueError):
            owner: dict[str, Any] = json.loads((self.folder / name / _OWNER).read_text())
            return owner
        return None


def name_of(key: str) -> str:
    """The folder of the session with this key."""
    return f"session-{checksum_of(key.encode(errors='replace'))}"


def _secret(path: Path) -> bytes:
    """What session keys are drawn with; made once."""
    if not path.exists():
        partial = path.with_suffix(".partial")
        partial.unlink(missing_ok=True)
        with open(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(secrets.token_bytes(32))
        os.replace(partial, path)
    return path.read_bytes()


def _protect_old(folder: Path) -> None:
    """Folders used to have the sessions' keys for names, and everybody could read them."""
    for name in os.listdir(folder):
        if _OLD_NAME.fullmatch(name):
            owner_file = folder / name / _OWNER
            with suppress(OSError, ValueError, KeyError):
                owner = json.loads(owner_file.read_text())
                asked = checksum_of(owner["request"].encode()) if owner["request"] else ""
                replace(owner_file, json.dumps({**owner, "request": asked}))
            os.rename(folder / name, folder / name_of(name))
    for place, _, names in os.walk(folder):
        os.chmod(place, 0o700)
        for name in names:
            with suppress(FileNotFoundError):  # the clock writes its file anew all the time
                os.chmod(os.path.join(place, name), 0o600)


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
