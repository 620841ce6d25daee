"""The sessions of a server: each with a user, a folder and limits.

On disk, to survive restarts: the sessions, the server's clock, and the sessions that measured masks.
"""

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
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypedDict, cast

import numpy as np
import pandas as pd

from segjudge.evaluation_script.masks.stack import Array
from segjudge.system import files

from .dataset import InteractiveDataset, SessionInputError, load_first_scribbles, shape_of
from .reports import TEMPORARY, ReportFiles, Summary, read_report
from .session import MOST_INTERACTIONS, LocalConnector, Session, SessionTerms
from .wire_format import MaskSubmission, ScribblesAnswer, are_equal

#: The name of a session's folder. Keys are not stored, so that a copy of the state opens no session.
_NAME = re.compile(r"session-[0-9a-f]{64}")
_OWNER, _LEDGER, _SECRET = "owner.json", "ledger", "secret"
#: The file beside the report of a finished session.
_SUMMARY = "summary.json"


@dataclass(frozen=True)
class SessionLimits:
    """The limits of a user on the server."""

    #: The maximum bytes of a submission.
    body: int = 64 << 20
    #: The maximum characters of run lengths in a submission.
    runs: int = 32 << 20
    #: The maximum frames × height × width of a sequence.
    pixels: int = 1 << 30
    #: The maximum number of a user's unfinished sessions.
    sessions: int = 4
    #: The seconds without a request after which a session is closed.
    idle: float = 24 * 3600.0
    #: The maximum number of a user's sessions, ever, in which masks of a sequence are measured.
    sessions_per_sequence: int = 5
    #: The maximum number of sessions in memory; the others are on disk until a request needs them.
    open_sessions: int = 8


class _SessionOwner(TypedDict):
    """The owner of a session, and a checksum of the request that began it."""

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
        self._ledger = _Ledger(self.folder / _LEDGER)
        self._secret = _read_secret(self.folder / _SECRET)
        #: The open sessions; the most recently used one comes last.
        self._open: dict[str, HostedSession] = {}
        #: The number of requests that use a session or wait for its lock, during which it must not be opened again.
        self._users: Counter[str] = Counter()
        self._lock = threading.Lock()
        #: When each unfinished session was last used; for an earlier process's sessions, when this process started.
        self._last_used = {
            name: self.clock() for name, owner in self._read_owners() if self._is_unfinished(name, owner)
        }
        names = self.dataset.sequences(self.terms.subset)
        self.dataset.check_files(names)
        #: The maximum number of brackets and commas of a submission: some per frame, and per object of a frame.
        self.most_marks = 1000
        for name in names:
            frames, height, width = shape_of(self.dataset.dataset[name])
            if frames * width * height > self.limits.pixels:
                raise SessionInputError(f"{name}: has more than {self.limits.pixels:,} pixels in all of its frames")
            for number in range(1, self.dataset.num_scribbles(name) + 1):
                load_first_scribbles(self.dataset, name, number)
            self.most_marks = max(self.most_marks, 1000 + frames * 256 * 4)

    def find_user(self, key: str) -> str:
        name = self.users.get(_checksum(key.encode()))
        if name is None:
            raise PermissionError("The server does not know this User-Key.")
        return name

    def begin(self, user: str, request: str) -> tuple[str, HostedSession]:
        """Start a session, or return the same request's session; return its key too."""
        checksum = _checksum(request.encode()) if request else ""
        message = f"{user}\n{request}" if request else secrets.token_hex(32)
        key = hmac.new(self._secret, message.encode(), hashlib.sha256).hexdigest()
        with self._lock:
            self._close_idle()
            owned = [(name, owner) for name, owner in self._read_owners() if owner["user"] == user]
            if any(checksum and owner["request"] == checksum for _, owner in owned):
                return key, self._open_session(_name_of(key), user)
            self._check_allowed(user, [name for name, owner in owned if self._is_unfinished(name, owner)])
            return key, self._begin_session(_name_of(key), {"user": user, "request": checksum, "closed": False})

    def _check_allowed(self, user: str, unfinished: list[str]) -> None:
        """Raise BlockingIOError for surplus sessions; unfinished ones may still measure every sequence."""
        if len(unfinished) >= self.limits.sessions:
            raise BlockingIOError(
                f"{user} has {len(unfinished)} unfinished sessions, the limit; continue one of them, "
                "or wait until they are closed."
            )
        session_limit = self.limits.sessions_per_sequence
        for sequence in self.dataset.sequences(self.terms.subset):
            if len(self._ledger.sessions(user, sequence) | {*unfinished}) >= session_limit:
                raise BlockingIOError(
                    f"{user} has submitted masks of {sequence} in {session_limit} sessions, or may do so in unfinished "
                    "ones; that is the limit. Ask the host."
                )

    def _begin_session(self, name: str, owner: _SessionOwner) -> HostedSession:
        folder = self.folder / name
        folder.mkdir(mode=0o700)
        session = self._make_session(name, owner["user"])
        try:
            session.begin()
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        # Last: a folder without an owner is not a session.
        files.replace(folder / _OWNER, json.dumps(owner))
        self._open[name], self._last_used[name] = session, self.clock()
        self._make_room()
        return session

    def _make_session(self, name: str, user: str) -> HostedSession:
        def note_measured(sequence: str) -> None:
            self._ledger.note(user, sequence, name)

        return HostedSession(self.dataset, self.terms, self.folder / name, self.clock, note_measured)

    @contextmanager
    def use(self, user: str, key: str) -> Iterator[HostedSession]:
        """Yield a session of this user to one request at a time, loading it if needed."""
        with self._lock:
            self._close_idle()
            name = self._find_name(user, key)
            session = self._open_session(name, user)
            self._users[name] += 1
        try:
            with session.lock:
                yield session
        finally:
            with self._lock:
                self._users -= Counter([name])  # drops zero counts

    def check_session(self, user: str, key: str) -> None:
        with self._lock:
            self._find_name(user, key)

    def _find_name(self, user: str, key: str) -> str:
        name = _name_of(key)
        owner = self._read_owner(name)
        if owner is None or owner["user"] != user:  # the same answer reveals nothing about other sessions
            raise LookupError("You have no such session.")
        if owner["closed"]:
            raise LookupError("This session was closed because no request arrived for too long.")
        return name

    def read_summary(self, session: HostedSession) -> Summary | None:
        """Return the summary of a finished session; None otherwise."""
        path = session.folder / _SUMMARY
        if not path.exists():
            return None
        with self._lock:  # from now on the files suffice
            self._open.pop(session.folder.name, None)
            self._last_used.pop(session.folder.name, None)
        return cast("Summary", json.loads(path.read_text()))

    def read_report(self, session: HostedSession) -> pd.DataFrame:
        if (session.folder / _SUMMARY).exists():
            # If the end was interrupted, a temporary report remains.
            paths = session.folder.glob("result_*.csv")
            return _means_of(read_report(max(paths, key=lambda path: not path.name.endswith(TEMPORARY))))
        return _means_of(session.report())

    def _open_session(self, name: str, user: str) -> HostedSession:
        self._last_used[name] = self.clock()
        if name not in self._open:
            session = self._make_session(name, user)
            try:
                session.resume()
            except SessionInputError:
                raise LookupError(
                    "This session began with sequences or limits that the server no longer has."
                ) from None
            self._open[name] = session
        self._open[name] = self._open.pop(name)
        self._make_room()
        return self._open[name]

    def _make_room(self) -> None:
        """Drop the least recently used sessions from memory; all are on disk."""
        for name in list(self._open)[: -self.limits.open_sessions]:
            if not self._users[name]:
                del self._open[name]

    def _is_unfinished(self, name: str, owner: _SessionOwner) -> bool:
        return not owner["closed"] and not (self.folder / name / _SUMMARY).exists()

    def _close_idle(self) -> None:
        """Drop idle sessions from memory, and permanently close unfinished ones."""
        for name, last_used in list(self._last_used.items()):
            if self.clock() - last_used <= self.limits.idle or self._users[name]:
                continue
            owner = self._read_owner(name)
            del self._last_used[name]
            self._open.pop(name, None)
            if owner is not None and self._is_unfinished(name, owner):
                files.replace(self.folder / name / _OWNER, json.dumps({**owner, "closed": True}))

    def _read_owners(self) -> list[tuple[str, _SessionOwner]]:
        owners = ((name, self._read_owner(name)) for name in sorted(os.listdir(self.folder)) if _NAME.fullmatch(name))
        return [(name, owner) for name, owner in owners if owner is not None]

    def _read_owner(self, name: str) -> _SessionOwner | None:
        with suppress(OSError, ValueError):
            return cast("_SessionOwner", json.loads((self.folder / name / _OWNER).read_text()))
        return None


@contextmanager
def hold_sessions(
    folder: Path, dataset: InteractiveDataset, terms: SessionTerms, users: Mapping[str, str], limits: SessionLimits
) -> Iterator[SessionHost]:
    """Yield the sessions of a folder, locked for this server; raises UsageError if taken."""
    os.umask(0o077)  # only the server may read sessions and their reports
    folder.mkdir(parents=True, exist_ok=True)
    lock = files.hold_folder(str(folder), "server of sessions")
    clock = Uptime(folder)
    try:
        host = SessionHost(folder, dataset, terms, users, limits, clock)
        clock.begin()  # time spent reading masks is charged to no session
        yield host
    finally:
        clock.stop()
        lock.close()


def _name_of(key: str) -> str:
    return f"session-{_checksum(key.encode(errors='replace'))}"


def _read_secret(path: Path) -> bytes:
    """Read the secret from which session keys are made; it is drawn once."""
    if not path.exists():
        files.replace(path, secrets.token_hex(32), private=True)
    return path.read_bytes()


def _checksum(data: bytes) -> str:
    """Return the checksum stored and compared instead of a secret."""
    return hashlib.sha256(data).hexdigest()


def read_users(path: str) -> dict[str, str]:
    """Read the checksum of each key → name, from lines `name key`; raises SessionInputError with the wrong line."""
    users: dict[str, str] = {}
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise SessionInputError(f"{path}: is not UTF-8 ({error})") from None
    for number, line in enumerate(lines, 1):
        fields = line.split("#")[0].split()
        if not fields:
            continue
        if len(fields) != 2 or len(fields[1]) < 16:
            raise SessionInputError(f"{path}:{number}: is not `name key` with a key of 16 characters or more")
        if _checksum(fields[1].encode()) in users:
            raise SessionInputError(f"{path}:{number}: the key of {fields[0]} occurs twice")
        users[_checksum(fields[1].encode())] = fields[0]
    if not users:
        raise SessionInputError(f"{path}: holds no user; write lines of `name key`")
    return users


class HostedSession(Session):
    """A remote client's session on the server's clock; repeated requests change nothing.

    Scribbles are returned again until masks arrive; the time runs from the first answer.
    """

    def __init__(
        self,
        dataset: InteractiveDataset,
        terms: SessionTerms,
        folder: Path,
        clock: Callable[[], float],
        note_measured: Callable[[str], None],
    ) -> None:
        # Without a limit, masks could be measured as often as the time allows.
        terms = replace(terms, max_nb_interactions=terms.max_nb_interactions or MOST_INTERACTIONS)
        connector = LocalConnector(session_key=folder.name, dataset=dataset)
        super().__init__(connector, terms, ReportFiles(folder, _SUMMARY), clock)
        self.folder = folder
        self._note_measured = note_measured
        #: Whether the open sample is new to the client.
        self._is_new = False
        #: The last interaction whose masks were named, their checksum, and whether they were in time.
        self._last_taken: list[Any] = []
        self.lock = threading.RLock()

    def begin(self) -> None:
        self.enter(resume=False)
        self.save()

    def resume(self) -> None:
        """Continue the session in the folder; a finished one has its report there."""
        self.enter(resume=False)
        if (self.folder / _SUMMARY).exists():
            self.running = False
            return
        saved = self._restore()
        self._is_new, self._last_taken = saved["new"], saved["last_taken"]

    def _state_to_save(self) -> dict[str, object]:
        return {**super()._state_to_save(), "new": self._is_new, "last_taken": self._last_taken}

    def answer_terms(self) -> dict[str, object]:
        limits = {"max_time": self.max_time, "max_nb_interactions": self.max_nb_interactions}
        return {"samples": self.samples, **limits}

    def answer_next(self) -> dict[str, object]:
        """Answer with the next interaction; unchanged until masks are submitted."""
        before = (self.sample_idx, self.interaction_nb)
        if not self.next():
            return {"finished": True}
        if (self.sample_idx, self.interaction_nb) != before:
            self._save_state()
        sequence, number = self._open_sample()
        return {
            "sequence": sequence,
            "scribble_idx": number,
            "interaction": self.interaction,
            "new_sequence": self._is_new if self.running_model else self.sample_scribbles is None,
            "finished": False,
        }

    def answer_scribbles(self, *, only_last: bool) -> ScribblesAnswer:
        """Answer with the scribbles of this interaction; its time begins at the first request."""
        if self.running_model:
            sequence, _ = self._open_sample()
            scribbles = self._copy_scribbles(only_last=only_last)
        else:
            sequence, scribbles, self._is_new = self.read_scribbles(only_last=only_last)
            self._save_state()
            # The server reads the truth and writes; the method's time begins when the answer is ready.
            self.interaction_start_time = self.clock()
        return {"sequence": sequence, "scribbles": scribbles, "new_sequence": self._is_new}

    def answer_repeat(self, checksum: str) -> bool | None:
        """Return whether repeated masks were in time; None for other masks."""
        last_taken = self._last_taken
        return bool(last_taken[4]) if last_taken and last_taken[3] == checksum else None

    def take_masks(self, submission: MaskSubmission, most_runs: int, checksum: str, arrival_time: float) -> bool:
        """Accept masks; return whether they came in time."""
        sequence, number = self._open_sample()
        due_interaction = [sequence, number, self.interaction]
        if not are_equal(submission.due, due_interaction):
            raise RuntimeError(f"These masks are for [{submission.due_text}]; the masks for {due_interaction} are due.")
        self._check_masks_due()
        in_time = not self.is_late(arrival_time)
        masks: Array = np.zeros(0)  # late masks are not decoded
        if in_time:
            record = self.connector.service.davis.dataset[sequence]
            masks = submission.decode(shape_of(record), most_runs)
            self._note_measured(sequence)
        taken_before, self._last_taken = self._last_taken, [*due_interaction, checksum, in_time]
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # about candidates that are not frames
                self.submit(masks, submission.candidates, arrival_time)
        except BaseException:
            self._last_taken = taken_before
            raise
        return in_time

    def _open_sample(self) -> tuple[str, int]:
        if not self._has_opened or not self.running:
            raise RuntimeError(f"There is no interaction to answer; request {'next'!r} first.")
        return self.sample


def _means_of(report: pd.DataFrame) -> pd.DataFrame:
    """Return a row per object and interaction, since values of frames would reveal the truth."""
    keys = ["session_id", "sequence", "scribble_idx", "interaction", "object_id"]
    return report.groupby(keys, sort=False, as_index=False)[["jaccard", "contour", "j_and_f", "timing"]].mean()


class _Ledger:
    """The ledger of sessions that measured each sequence per user, one file per user.

    It is kept on disk, because revealed scores stay revealed.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._lock = threading.Lock()
        self._entries = dict(_read_entry(path) for path in folder.glob("*.json"))

    def sessions(self, user: str, sequence: str) -> frozenset[str]:
        with self._lock:
            return frozenset(self._entries.get(user, {}).get(sequence, ()))

    def note(self, user: str, sequence: str, session: str) -> None:
        """Record that a session measures a sequence; repeats change nothing."""
        with self._lock:
            entries = self._entries.get(user, {})
            sessions_before = entries.get(sequence, [])
            if session in sessions_before:
                return
            entries_after = {**entries, sequence: [*sessions_before, session]}
            name = hashlib.sha256(user.encode()).hexdigest()
            files.replace(self._folder / f"{name}.json", json.dumps({"user": user, "sequences": entries_after}))
            # Last, so that an entry whose writing failed is tried again.
            self._entries[user] = entries_after


def _read_entry(path: Path) -> tuple[str, dict[str, list[str]]]:
    try:
        entry = json.loads(path.read_text(encoding="utf-8"))
        user, sequences = entry["user"], entry["sequences"]
        if all(isinstance(session, str) for sessions in sequences.values() for session in sessions):
            return str(user), {str(name): list(sessions) for name, sessions in sequences.items()}
    except (ValueError, KeyError, TypeError, AttributeError):
        pass
    raise SessionInputError(
        f"{path}: is not a ledger of sessions; restore it from a copy, or remove it, which deletes the record of a user"
    )


_UPTIME = "uptime"
#: Seconds between records of the time.
_BEAT = 1.0


class Uptime:
    """The uptime of the server over all restarts; downtime does not count."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / _UPTIME
        self._before = _read_time(self._path)
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
        while not self._ended.wait(_BEAT):
            with suppress(OSError):  # a full disk may have space again
                files.replace(self._path, repr(self()))

    def stop(self) -> None:
        """Stop the thread, and note the time once more."""
        self._ended.set()
        self._thread.join()
        with suppress(OSError):
            files.replace(self._path, repr(self()))


def _read_time(path: Path) -> float:
    with suppress(OSError, ValueError):  # of a new folder, or of a full disk
        return float(path.read_text())
    return 0.0
