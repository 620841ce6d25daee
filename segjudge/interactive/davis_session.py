"""The session for programs: it returns scribbles, accepts masks, and keeps time."""

from __future__ import annotations

import getpass
import json
import os
import secrets
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

import pandas as pd
from numpy.typing import ArrayLike

from segjudge.system.files import open_output
from segjudge.system.python310 import Self

from .dataset import InteractiveDataset
from .reports import ReportFiles, Sample, Summary
from .scribbles import Scribbles
from .session import LOCAL_HOST, NOT_BEGUN, LocalConnector, Session, SessionTerms

if TYPE_CHECKING:
    from .remote_session import RemoteConnector, RemoteSession

ValueT = TypeVar("ValueT")


class _Attribute(Generic[ValueT]):
    """A published attribute whose value the session behind this one holds."""

    def __init__(self, path: str = "") -> None:
        self._path = path

    def __set_name__(self, owner: type, name: str) -> None:
        self._parent, _, self._name = f"_session.{self._path or name}".rpartition(".")

    def __get__(self, session: DavisInteractiveSession, owner: type) -> ValueT:
        value: ValueT = getattr(attrgetter(self._parent)(session), self._name)
        return value

    def __set__(self, session: DavisInteractiveSession, value: ValueT) -> None:
        setattr(attrgetter(self._parent)(session), self._name, value)


class DavisInteractiveSession:
    """A context manager over all samples of a subset, in this process or on a server.

    `clock` returns seconds and decides durations and limits, for tests and simulated methods. `resume` continues the
    newest unfinished report of `report_save_dir`: the time in between does not count, and scribbles without submitted
    masks are returned again. `dataset` is a dataset other than DAVIS (see `mask_datasets`); `davis_root` is then
    unnecessary. With an address as `host`, the server has the dataset, order, limits and clock.
    """

    max_time = _Attribute[float | None]()
    max_nb_interactions = _Attribute[int | None]()
    samples = _Attribute[list[Sample]]()
    sample_idx = _Attribute[int | None]()
    interaction_nb = _Attribute[int | None]()
    running = _Attribute[bool]()
    running_model = _Attribute[bool]()
    sample_start_time = _Attribute[float | None]()
    interaction_start_time = _Attribute[float | None]()
    sample_scribbles = _Attribute[Scribbles | None]()
    sample_last_scribble = _Attribute[Scribbles | None]()
    #: The key that the session or its server drew.
    session_key = _Attribute[str]("connector.session_key")
    report_save_dir = _Attribute[Path]("files.folder")
    report_name = _Attribute[str]("files.name")
    #: Empty until the session has ended.
    global_summary = _Attribute[Summary]("summary")
    #: The local connector; its `service.robot` is the robot.
    connector: _Attribute[LocalConnector | RemoteConnector] = _Attribute()

    def __init__(  # noqa: PLR0913, PLR0917 - a published signature
        self,
        host: str = LOCAL_HOST,
        user_key: str | None = None,
        davis_root: str | None = None,
        subset: str = "val",
        shuffle: bool = False,  # noqa: FBT001, FBT002 - a published signature
        max_time: float | None = None,
        max_nb_interactions: int | None = 5,
        metric_to_optimize: str = "J_AND_F",
        report_save_dir: str | os.PathLike[str] | None = None,
        *,
        resume: bool = False,
        clock: Callable[[], float] | None = None,
        dataset: InteractiveDataset | None = None,
    ) -> None:
        self.davis_root, self.subset, self.shuffle = davis_root, subset, shuffle
        self.metric_to_optimize = metric_to_optimize
        self._resume, self._thread = resume, threading.get_ident()
        session_key, folder = secrets.token_hex(32), report_save_dir or Path.cwd()
        self._session: Session | RemoteSession
        if host == LOCAL_HOST:
            self.user_key = user_key or _find_user_name()
            terms = SessionTerms(subset, shuffle, max_time, max_nb_interactions, metric_to_optimize, davis_root)
            connector = LocalConnector(self.user_key, session_key, clock=clock or time.time, dataset=dataset)
            self._session = Session(connector, terms, ReportFiles(folder), clock or time.monotonic)
        else:
            from .remote_session import RemoteConnector, RemoteSession

            server = RemoteConnector(user_key, session_key, host)
            self.user_key = server.user_key
            self._session = RemoteSession(server, ReportFiles(folder))

    def __enter__(self) -> Self:
        self._session.enter(resume=self._resume)
        return self

    def __exit__(self, *_error: object) -> None:
        """Do nothing: the report of a session that has not finished remains, and the session can be resumed."""

    def _check_call(self) -> Session | RemoteSession:
        """Return the inner session; raises RuntimeError in another thread, and before `with`."""
        if threading.get_ident() != self._thread:
            raise RuntimeError("A session belongs to the thread that created it.")
        if self._session.sample_idx is None:
            raise RuntimeError(NOT_BEGUN)
        return self._session

    def next(self) -> bool:
        """Return whether there is another interaction, writing the temporary report."""
        return self._check_call().next()

    def get_scribbles(self, only_last: bool = False) -> tuple[str, Scribbles, bool]:  # noqa: FBT001, FBT002
        """Return sequence, scribbles (all or last), and whether the sample is new; starts the clock."""
        return self._check_call().read_scribbles(only_last=only_last)

    def submit_masks(self, pred_masks: ArrayLike, next_scribble_frame_candidates: Iterable[int] | None = None) -> None:
        """Submit the masks of all frames; a refused submission changes nothing and may be repeated."""
        session = self._check_call()
        if not session.submit(pred_masks, next_scribble_frame_candidates):
            sequence, _ = session.sample
            warnings.warn(f"The time for {sequence} is over; these masks do not count.", stacklevel=2)

    def scribbles_iterator(self, only_last: bool = False) -> Iterator[tuple[str, Scribbles, bool]]:  # noqa: FBT001, FBT002
        while self.next():
            yield self.get_scribbles(only_last)

    def get_report(self) -> pd.DataFrame:
        return self._check_call().report()

    def get_global_summary(self, save_file: str | os.PathLike[str] | None = None) -> Summary:
        """Return the curve and its area after the session; before that `{}`, with a warning."""
        if self.running:
            warnings.warn("The summary exists only after the session has ended.", stacklevel=2)
            return {}
        if save_file is not None:
            with open_output(save_file) as file:
                json.dump(self.global_summary, file)
        return self.global_summary


def _find_user_name() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "nobody"
