"""The sessions of a server: each belongs to a user, has a folder of its own, and is within limits."""

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
from typing import TypedDict, cast

import pandas as pd

from segjudge.system.files import replace

from .dataset_protocol import InteractiveDataset, first_scribbles, shape_of
from .hosted_session import SUMMARY, HostedSession, means_of
from .local_session import SessionTerms
from .server_state import SessionLedger
from .summary import Summary, read_report

#: Folders of sessions; keys are not stored, so that a copy of the state opens no session.
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
    #: Seconds without a request after which a session is closed.
    idle: float = 24 * 3600.0
    #: Sessions of a user in which masks of one sequence are measured, ever.
    sessions_per_sequence: int = 5
    #: Sessions in memory at once; the others are on disk until a request needs them.
    open_sessions: int = 8


class SessionOwner(TypedDict):
    """Whose a session is; the request that began it is a checksum."""

    user: str
    request: str
    closed: bool


@dataclass
class SessionHost:
    """The sessions of a server; `users` is a checksum of each key → name."""

    folder: Path
    dataset: InteractiveDataset
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
        #: The session that was used last comes last.
        self._open: dict[str, HostedSession] = {}
        self._lock = threading.Lock()
        #: When a session that is not finished was last used; for those of an earlier process, when this one began.
        self._last_used = {name: self.clock() for name, owner in self._owners() if self._is_unfinished(name, owner)}
        names = self.dataset.sequences(self.terms.subset)
        self.dataset.check_files(names)
        #: Brackets and commas of the largest submission: each frame has some, and each object of a frame.
        self.most_marks = 1000
        for name in names:
            frames, height, width = shape_of(self.dataset.dataset[name])
            if frames * width * height > self.limits.pixels:
                raise ValueError(f"{name}: has more than {self.limits.pixels:,} pixels in all of its frames")
            for number in range(1, self.dataset.num_scribbles(name) + 1):
                first_scribbles(self.dataset, name, number)
            self.most_marks = max(self.most_marks, 1000 + frames * 256 * 4)

    def user(self, key: str) -> str:
        """Return the user with a key; raises PermissionError."""
        name = self.users.get(checksum_of(key.encode()))
        if name is None:
            raise PermissionError("This User-Key is not known here.")
        return name

    def begin(self, user: str, request: str) -> tuple[str, HostedSession]:
        """Return the key of a new session, and the session; the same again for the same request."""
        checksum = checksum_of(request.encode()) if request else ""
        message = f"{user}\n{request}" if request else secrets.token_hex(32)
        key = hmac.new(self._secret, message.encode(), hashlib.sha256).hexdigest()
        with self._lock:
            self._close_idle()
            owned = [(name, owner) for name, owner in self._owners() if owner["user"] == user]
            if any(checksum and owner["request"] == checksum for _, owner in owned):
                return key, self._session(name_of(key), user)
            self._check_allowed(user, [name for name, owner in owned if self._is_unfinished(name, owner)])
            return key, self._new_session(name_of(key), {"user": user, "request": checksum, "closed": False})

    def _check_allowed(self, user: str, unfinished: list[str]) -> None:
        """Raise BlockingIOError for a session too many; an unfinished one may still measure every sequence."""
        if len(unfinished) >= self.limits.sessions:
            raise BlockingIOError(
                f"{user} has {len(unfinished)} sessions that are not finished, and may have no more; go on with one, "
                "or wait until they are closed."
            )
        most = self.limits.sessions_per_sequence
        for sequence in self.dataset.sequences(self.terms.subset):
            if len(self._ledger.sessions(user, sequence) | {*unfinished}) >= most:
                raise BlockingIOError(
                    f"{user} has had masks of {sequence} measured in {most} sessions, or may yet in unfinished ones: "
                    "no other session may do so; ask the host."
                )

    def _new_session(self, name: str, owner: SessionOwner) -> HostedSession:
        folder = self.folder / name
        folder.mkdir(mode=0o700)
        session = self._hosted_session(name, owner["user"])
        try:
            session.begin()
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        # Last: a folder without an owner is not a session.
        replace(folder / _OWNER, json.dumps(owner))
        self._open[name], self._last_used[name] = session, self.clock()
        self._make_room()
        return session

    def _hosted_session(self, name: str, user: str) -> HostedSession:
        def note(sequence: str) -> None:
            self._ledger.note(user, sequence, name)

        return HostedSession(self.dataset, self.terms, self.folder / name, self.clock, note)

    @contextmanager
    def using(self, user: str, key: str) -> Iterator[HostedSession]:
        """Give a session of this user to one request at a time, read from disk if needed; meanwhile it is in memory."""
        with self._lock:
            self._close_idle()
            session = self._session(self._owned_name(user, key), user)
            session.users += 1
        try:
            with session.lock:
                yield session
        finally:
            with self._lock:
                session.users -= 1

    def check(self, user: str, key: str) -> None:
        """Raise LookupError if the user has no such session."""
        with self._lock:
            self._owned_name(user, key)

    def _owned_name(self, user: str, key: str) -> str:
        name = name_of(key)
        owner = self._owner(name)
        if owner is None or owner["user"] != user:  # one answer, so that nothing is learned of another user's session
            raise LookupError("There is no such session of yours.")
        if owner["closed"]:
            raise LookupError("This session was closed, since nobody had asked for it for long.")
        return name

    def finished(self, session: HostedSession) -> Summary | None:
        """Return the summary of a session that is over, else None."""
        path = session.folder / SUMMARY
        if not path.exists():
            return None
        with self._lock:  # from now on the files are enough
            self._open.pop(session.folder.name, None)
            self._last_used.pop(session.folder.name, None)
        return cast("Summary", json.loads(path.read_text()))

    def report(self, session: HostedSession) -> pd.DataFrame:
        """Return a session's rows without the frames."""
        if (session.folder / SUMMARY).exists():
            # A temporary report remains where the end was interrupted.
            paths = session.folder.glob("result_*.csv")
            return means_of(read_report(max(paths, key=lambda path: not path.name.endswith(".tmp.csv"))))
        return session.means()

    def _session(self, name: str, user: str) -> HostedSession:
        self._last_used[name] = self.clock()
        if name not in self._open:
            session = self._hosted_session(name, user)
            try:
                session.resume()
            except ValueError:
                raise LookupError(
                    "This session was begun with other sequences or limits than the server has now."
                ) from None
            self._open[name] = session
        self._open[name] = self._open.pop(name)
        self._make_room()
        return self._open[name]

    def _make_room(self) -> None:
        """Drop the sessions that were used longest ago from memory; all of them is on disk."""
        for name in list(self._open)[: -self.limits.open_sessions]:
            if not self._open[name].users:
                del self._open[name]

    def _is_unfinished(self, name: str, owner: SessionOwner) -> bool:
        return not owner["closed"] and not (self.folder / name / SUMMARY).exists()

    def _close_idle(self) -> None:
        """Drop idle sessions from memory, and close those that are not finished for good."""
        for name, last_used in list(self._last_used.items()):
            session, owner = self._open.get(name), self._owner(name)
            if self.clock() - last_used <= self.limits.idle or (session is not None and session.users):
                continue
            del self._last_used[name]
            self._open.pop(name, None)
            if owner is not None and self._is_unfinished(name, owner):
                replace(self.folder / name / _OWNER, json.dumps({**owner, "closed": True}))

    def _owners(self) -> list[tuple[str, SessionOwner]]:
        owners = ((name, self._owner(name)) for name in sorted(os.listdir(self.folder)) if _NAME.fullmatch(name))
        return [(name, owner) for name, owner in owners if owner is not None]

    def _owner(self, name: str) -> SessionOwner | None:
        with suppress(OSError, ValueError):
            return cast("SessionOwner", json.loads((self.folder / name / _OWNER).read_text()))
        return None


def name_of(key: str) -> str:
    """Return the folder of the session with a key."""
    return f"session-{checksum_of(key.encode(errors='replace'))}"


def _secret(path: Path) -> bytes:
    """Return the secret from which session keys are made; it is drawn once."""
    if not path.exists():
        replace(path, secrets.token_hex(32), private=True)
    return path.read_bytes()


def _protect_old(folder: Path) -> None:
    """Rename the folders of an older server, which were named by the sessions' keys and which everybody could read."""
    for name in os.listdir(folder):
        if _OLD_NAME.fullmatch(name):
            owner_file = folder / name / _OWNER
            with suppress(OSError, ValueError, KeyError):
                owner = json.loads(owner_file.read_text())
                checksum = checksum_of(owner["request"].encode()) if owner["request"] else ""
                replace(owner_file, json.dumps({**owner, "request": checksum}))
            os.rename(folder / name, folder / name_of(name))
    for parent, _, names in os.walk(folder):
        os.chmod(parent, 0o700)
        for name in names:
            with suppress(FileNotFoundError):  # the clock replaces its file all the time
                os.chmod(os.path.join(parent, name), 0o600)


def checksum_of(data: bytes) -> str:
    """Return what is stored and compared in place of a secret."""
    return hashlib.sha256(data).hexdigest()


def users_of(path: str) -> dict[str, str]:
    """Return the checksum of each key → name, from lines `name key`; raises ValueError with the line that is wrong."""
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
