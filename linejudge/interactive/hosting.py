"""The sessions of a server: each in a folder of its own, with a clock that runs on this side."""

from __future__ import annotations

import copy
import hashlib
import json
import os
import re
import secrets
import shutil
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from .dataset import Sequences
from .evaluation import EvaluationService
from .session import DavisInteractiveSession, replace
from .summary import read_report

_KEY = re.compile(r"[0-9a-f]{64}")
_OWNER, _SUMMARY, _UPTIME = "owner.json", "summary.json", "uptime"
#: Seconds between two notes of the time.
BEAT = 1.0


@dataclass(frozen=True)
class Terms:
    """What every session of a server is held under."""

    dataset: Sequences
    subset: str = "val"
    shuffle: bool = False
    max_time: float | None = None
    max_nb_interactions: int | None = 5
    metric: str = "J_AND_F"


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


class HostedSession(DavisInteractiveSession):
    """A session for somebody elsewhere.

    What was handed out is handed out again until masks come, the clock running from the first time; masks that
    come a second time change nothing.
    """

    def __init__(self, terms: Terms, folder: Path, clock: Callable[[], float], *, resume: bool = False) -> None:
        super().__init__(
            subset=terms.subset,
            shuffle=terms.shuffle,
            max_time=terms.max_time,
            max_nb_interactions=terms.max_nb_interactions,
            metric_to_optimize=terms.metric,
            report_save_dir=folder,
            dataset=terms.dataset,
            resume=resume,
        )
        self._clock = clock
        self._new = False
        #: Which masks came last, and a checksum of them.
        self._last: list[Any] = []
        self.lock = threading.Lock()

    def _own_thread(self) -> None:
        """Whoever holds the lock."""

    def begin(self, key: str) -> None:
        """Open the session, or go on with what the folder holds."""
        if not self._resume:
            self.session_key = key
        self.__enter__()

    def keep(self) -> None:
        """Write what is needed to go on after a restart."""
        service = self._entered()
        self._write(service, self._temporary)
        self._save(service)

    def told(self) -> dict[str, Any]:
        """Its samples and limits."""
        return {
            "session_key": self.session_key,
            "samples": self.samples,
            "max_time": self.max_time,
            "max_nb_interactions": self.max_nb_interactions,
        }

    def advance(self) -> dict[str, Any]:
        """What comes next; the same again while nothing was submitted."""
        before = (self.sample_idx, self.interaction_nb)
        if not self.next():
            return {"finished": True}
        if (self.sample_idx, self.interaction_nb) != before:
            self._save(self._entered())
        sequence, number = self._sample()
        return {
            "sequence": sequence,
            "scribble_idx": number,
            "interaction": (self.interaction_nb or 0) + 1,
            "new_sequence": self._new if self.running_model else self.sample_scribbles is None,
            "finished": False,
        }

    def scribbles(self, *, only_last: bool) -> dict[str, Any]:
        """The scribbles of this interaction; its clock runs from when they are first asked for."""
        if self.running_model:
            sequence, _ = self._sample()
            # A copy: it is sent after the lock was let go, and the lists grow.
            drawn = copy.deepcopy(self.sample_last_scribble if only_last else self.sample_scribbles)
        else:
            sequence, drawn, self._new = self.get_scribbles(only_last)
            self._save(self._entered())
            # Reading the truth and writing are ours; the method's time begins when the answer can go.
            self.interaction_start_time = self._clock()
        return {"sequence": sequence, "scribbles": drawn, "new_sequence": self._new}

    def submit(self, told: Any, masks: Callable[[tuple[int, int, int]], Any], checksum: str, arrived: float) -> bool:
        """Take masks; whether they came in time.  `masks` decodes them for a shape."""
        named = [told.get("sequence"), told.get("scribble_idx"), told.get("interaction")]
        if self._last[:4] == [*named, checksum]:
            return bool(self._last[4])
        sequence, number = self._sample()
        wanted = [sequence, number, (self.interaction_nb or 0) + 1]
        if named != wanted:
            raise RuntimeError(f"These masks are for {ascii(named)[:200]}; those that are due are for {wanted}.")
        if not self.running_model:
            raise RuntimeError("You must have called .get_scribbles before submiting the masks")
        in_time = not self._late(arrived)
        record = self._entered().davis.dataset[sequence]
        width, height = record["image_size"]
        decoded = masks((record["num_frames"], height, width)) if in_time else None
        before, self._last = self._last, [*named, checksum, in_time]
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # candidates that are no frames; the client is told by the docs
                self._take(decoded, told.get("next_scribble_frame_candidates"), arrived)
        except BaseException:
            self._last = before
            raise
        return in_time

    def means(self) -> pd.DataFrame:
        """The report without its frames: values of single frames would tell too much of the truth."""
        return means_of(self.get_report())

    def _sample(self) -> tuple[str, int]:
        if not self._begun() or not self.running:
            raise RuntimeError(f"There is no interaction to answer; ask {'next'!r} first.")
        return self.samples[self.sample_idx or 0]

    def _more_state(self) -> dict[str, Any]:
        return {
            "running_model": self.running_model,
            "interaction_start_time": self.interaction_start_time,
            "new": self._new,
            "last_taken": self._last,
        }

    def _resume_clock(self, state: dict[str, Any]) -> None:
        self.sample_start_time = state["sample_start_time"]
        self.interaction_start_time = state["interaction_start_time"]
        self.running_model, self._new, self._last = state["running_model"], state["new"], state["last_taken"]

    def _take_up(self, service: EvaluationService) -> None:
        super()._take_up(service)
        self._resumed = False

    def _end(self, service: EvaluationService) -> None:
        # Before the state goes, so that a session whose end was cut off ends again.
        found = service.summarize_report(service.get_report(self.session_key))
        replace(self.report_save_dir / _SUMMARY, json.dumps(found))
        super()._end(service)


def means_of(report: pd.DataFrame) -> pd.DataFrame:
    """A row for each object of each interaction."""
    keys = ["session_id", "sequence", "scribble_idx", "interaction", "object_id"]
    return report.groupby(keys, sort=False, as_index=False)[["jaccard", "contour", "j_and_f", "timing"]].mean()


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
        return self.folder / key / _SUMMARY


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
