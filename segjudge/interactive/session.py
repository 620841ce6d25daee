"""The session that an interactive method runs in: scribbles come, masks go, and the clock runs."""

from __future__ import annotations

import copy
import datetime
import getpass
import json
import os
import random
import secrets
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self, cast

import pandas as pd

from segjudge.files import replace, written
from segjudge.interactive.utils.scribbles import fuse_scribbles

from .connectors import LocalConnector
from .dataset import Sequences
from .evaluation import EvaluationService
from .storage import LocalStorage
from .summary import read_report

LOCAL = "localhost"
NOTHING_TO_SEGMENT = "There is nothing to segment: call next() first, and go on only while it is True."
TOO_LATE = "The time for {} is over: these masks do not count."
TWICE = "You can not call get_scribbles twice without submitting the masks first"
NOTHING_DUE = "You must have called .get_scribbles before submiting the masks"
_STATE = ".state.json"
#: Nobody needs more, and the challenge allowed no more.
MOST_SECONDS, MOST_INTERACTIONS = 600, 16


class DavisInteractiveSession:
    """A context manager over all samples of a subset.

    `clock` returns seconds and decides durations and limits; it is for tests, and for methods that are simulated.
    `resume` goes on with the newest report of `report_save_dir` that was not finished: time while dead does not
    count, and what was handed out and not submitted is handed out again, as new.  `dataset` is another than DAVIS's
    (see `readers`); `davis_root` is then not needed.
    """

    def __new__(cls, host: str = LOCAL, *_args: Any, **_more: Any) -> Self:
        """With an address for a host the session runs there, and this is its client."""
        if cls is DavisInteractiveSession and host != LOCAL:
            from .remote import RemoteSession

            return cast("Self", object.__new__(RemoteSession))
        return object.__new__(cls)

    def __init__(  # noqa: PLR0913, PLR0917 - the signature that programs know
        self,
        host: str = LOCAL,
        user_key: str | None = None,
        davis_root: str | None = None,
        subset: str = "val",
        shuffle: bool = False,  # noqa: FBT001, FBT002 - likewise
        max_time: float | None = None,
        max_nb_interactions: int | None = 5,
        metric_to_optimize: str = "J_AND_F",
        report_save_dir: str | os.PathLike[str] | None = None,
        *,
        resume: bool = False,
        clock: Callable[[], float] | None = None,
        dataset: Sequences | None = None,
    ) -> None:
        del host  # see __new__
        self.davis_root, self.subset, self.shuffle = davis_root, subset, shuffle
        self.max_time = None if max_time is None else min(max_time, MOST_SECONDS)
        self.max_nb_interactions = None if max_nb_interactions is None else min(max_nb_interactions, MOST_INTERACTIONS)
        self.metric_to_optimize = metric_to_optimize
        self.user_key = user_key or _user()
        self.report_save_dir = Path(report_save_dir or Path.cwd())
        self.report_save_dir.mkdir(parents=True, exist_ok=True)
        self.report_name = _free(self.report_save_dir)
        self.running_model, self.running = False, True
        self.samples: list[tuple[str, int]] = []
        self.sample_idx: int | None = None
        self.interaction_nb: int | None = None
        self.sample_start_time: float | None = None
        self.sample_scribbles: dict[str, Any] | None = None
        self.sample_last_scribble: dict[str, Any] | None = None
        self.interaction_start_time: float | None = None
        self.global_summary: dict[str, Any] = {}
        self._clock = clock or time.monotonic
        self._resume, self._resumed = resume, False
        #: What the session asks; `connector.service.robot` is the robot.
        self.connector: Any = LocalConnector(self.user_key, clock=clock or time.time, dataset=dataset)
        self.session_key = secrets.token_hex(32)
        self._thread = threading.get_ident()

    # ── the context ─────────────────────────────────────────────────────────

    def __enter__(self) -> Self:
        if not self.max_time and not self.max_nb_interactions:
            raise ValueError("Both max_time and max_nb_interactions can not be None")
        self.samples, _, _ = self.connector.get_samples(
            self.subset, self.davis_root, self.max_time, self.max_nb_interactions, self.metric_to_optimize
        )
        if self.shuffle:
            random.shuffle(self.samples)
        self.sample_idx, self.interaction_nb = -1, -1
        if self._resume:
            self._take_up(self.connector.service)
        return self

    @property
    def session_key(self) -> str:
        """Drawn by the session, or by its server."""
        key: str = self.connector.session_key
        return key

    @session_key.setter
    def session_key(self, key: str) -> None:
        self.connector.session_key = key

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Nothing: what was not finished stays as the temporary report."""

    def _own_thread(self) -> None:
        if threading.get_ident() != self._thread:
            raise RuntimeError("A session belongs to the thread that made it.")

    def _entered(self) -> EvaluationService:
        self._own_thread()
        service: EvaluationService = self.connector.service
        return service

    # ── the loop ────────────────────────────────────────────────────────────

    def next(self) -> bool:
        """Whether there is another interaction; the temporary report is written each time."""
        service = self._entered()
        if not self.running:
            return False
        if self._sample_is_over():
            self.sample_idx, self.interaction_nb = max((self.sample_idx or 0) + 1, 0) if self._begun() else 0, 0
            self.sample_start_time = self._clock()
            self.sample_scribbles = self.sample_last_scribble = None
            self.running_model = False  # what was not submitted in its time is lost
        if (self.sample_idx or 0) >= len(self.samples):
            self._end(service)
            return False
        self._write(service, self._temporary)
        return True

    def _begun(self) -> bool:
        return self.sample_idx is not None and self.sample_idx >= 0

    def _sample_is_over(self) -> bool:
        if not self._begun():
            return True
        return bool(self.max_nb_interactions and (self.interaction_nb or 0) >= self.max_nb_interactions) or self._late(
            self._clock()
        )

    def _late(self, now: float) -> bool:
        """Whether the time for this sample, all of its interactions together, is over."""
        if not self.max_time or self.sample_start_time is None:
            return False
        objects = self.connector.service.davis.dataset[self.samples[self.sample_idx or 0][0]]["num_objects"]
        return bool(now - self.sample_start_time > self.max_time * objects)

    def get_scribbles(self, only_last: bool = False) -> tuple[str, dict[str, Any], bool]:  # noqa: FBT001, FBT002
        """Sequence, scribbles so far (or the last ones), and whether the sample is new; the clock runs from here."""
        service = self._entered()
        if not self._begun() or not self.running:
            raise RuntimeError(NOTHING_TO_SEGMENT)
        if self.running_model:
            raise RuntimeError(TWICE)
        sequence, number = self.samples[self.sample_idx or 0]
        new = self.sample_scribbles is None or self._resumed
        self._resumed = False
        if self.sample_scribbles is None:
            self.sample_scribbles = service.get_scribble(sequence, number)
            self.sample_last_scribble = copy.deepcopy(self.sample_scribbles)
        handed = copy.deepcopy(self.sample_last_scribble if only_last else self.sample_scribbles)
        self.running_model = True
        self.interaction_start_time = self._clock()
        return sequence, handed or {}, new

    def submit_masks(self, pred_masks: Any, next_scribble_frame_candidates: Any = None) -> None:
        """The masks of all frames; a refused submission changes nothing and may be repeated."""
        self._take(pred_masks, next_scribble_frame_candidates, self._clock())

    def _take(self, pred_masks: Any, candidates: Any, now: float) -> None:
        service = self._entered()
        if not self.running_model:
            raise RuntimeError(NOTHING_DUE)
        timing = max(0.0, now - (self.interaction_start_time or 0.0))
        sequence, number = self.samples[self.sample_idx or 0]
        interaction = (self.interaction_nb or 0) + 1
        if self._late(now):
            warnings.warn(TOO_LATE.format(sequence), stacklevel=3)
        else:
            drawn = service.post_predicted_masks(
                sequence, number, pred_masks, timing, interaction, self.user_key, self.session_key, candidates
            )  # fmt: skip
            self.sample_last_scribble = drawn
            self.sample_scribbles = fuse_scribbles(self.sample_scribbles or {}, drawn)
        self.interaction_nb, self.running_model = interaction, False
        self._write(service, self._temporary)
        self._save(service)

    def scribbles_iterator(self, *args: Any, **kwargs: Any) -> Iterator[tuple[str, dict[str, Any], bool]]:
        """`get_scribbles` as long as there is a next."""
        while self.next():
            yield self.get_scribbles(*args, **kwargs)

    # ── what comes of it ────────────────────────────────────────────────────

    def get_report(self) -> pd.DataFrame:
        """All rows so far."""
        return self._entered().get_report(self.session_key)

    def get_global_summary(self, save_file: str | os.PathLike[str] | None = None) -> dict[str, Any]:
        """The curve and its area, once the session has ended; before that nothing."""
        if self.running:
            warnings.warn("There is no summary before the session has ended.", stacklevel=2)
            return {}
        if save_file is not None:
            with written(save_file) as file:
                json.dump(self.global_summary, file)
        return self.global_summary

    @property
    def _temporary(self) -> Path:
        return self.report_save_dir / f"{self.report_name}.tmp.csv"

    def _write(self, service: EvaluationService, path: Path) -> None:
        """In one step: a program that dies leaves a whole report."""
        replace(path, service.get_report(self.session_key).to_csv())

    @property
    def _state(self) -> Path:
        return self.report_save_dir / f"{self.report_name}{_STATE}"

    def _save(self, service: EvaluationService) -> None:
        """What another process needs to go on; the rows are in the temporary report."""
        state = {
            **self._terms(),
            "samples": self.samples,
            "session_key": self.session_key,
            "sample_idx": self.sample_idx,
            "interaction_nb": self.interaction_nb,
            "clock": self._clock(),
            "sample_start_time": self.sample_start_time,
            "scribbles": self.sample_scribbles,
            "last": self.sample_last_scribble,
            "service": cast("LocalStorage", service.storage).state(self.session_key),
            **self._more_state(),
        }
        replace(self._state, json.dumps(state))

    def _more_state(self) -> dict[str, Any]:
        """What a session of another kind keeps beside that."""
        return {}

    def _terms(self) -> dict[str, Any]:
        """What must agree between a session and its continuation."""
        names = ("subset", "max_time", "max_nb_interactions", "metric_to_optimize")
        return {name: getattr(self, name) for name in names}

    def _take_up(self, service: EvaluationService) -> None:
        """Go on with the newest session that is not finished and has the same terms and samples."""
        wanted = {**self._terms(), "samples": sorted([*sample] for sample in self.samples)}

        def agrees(state: dict[str, Any]) -> bool:
            return {**{name: state.get(name) for name in wanted}, "samples": sorted(state["samples"])} == wanted

        self.report_name, state = self._newest(agrees, "of this subset with these samples and limits")
        self.session_key = state["session_key"]
        self.samples = [(name, number) for name, number in state["samples"]]
        self.sample_idx, self.interaction_nb = state["sample_idx"], state["interaction_nb"]
        self._resume_clock(state)
        self.sample_scribbles, self.sample_last_scribble = state["scribbles"], state["last"]
        cast("LocalStorage", service.storage).restore(self.session_key, state["service"], read_report(self._temporary))
        self._resumed = True

    def _newest(self, agrees: Callable[[dict[str, Any]], bool], told: str) -> tuple[str, dict[str, Any]]:
        """Name and state of the newest report that is not finished."""
        found = sorted(self.report_save_dir.glob(f"result_*{_STATE}"), key=lambda path: path.stat().st_mtime_ns)
        for path in reversed(found):
            state: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            if agrees(state):
                return path.name.removesuffix(_STATE), state
        raise ValueError(f"resume: {self.report_save_dir} has no unfinished session {told}")

    def _resume_clock(self, state: dict[str, Any]) -> None:
        """As much of the sample's time is gone as was when that was written."""
        self.sample_start_time = self._clock() - (state["clock"] - state["sample_start_time"])

    def _end(self, service: EvaluationService) -> None:
        self.global_summary = service.summarize_report(service.get_report(self.session_key))
        self._write(service, self.report_save_dir / f"{self.report_name}.csv")
        self._state.unlink(missing_ok=True)
        self._temporary.unlink(missing_ok=True)
        self.running = False


def _free(folder: Path) -> str:
    """A name by the wall's clock; with a number where another session of that second has it."""
    name = datetime.datetime.now().strftime("result_%Y%m%d_%H%M%S")  # noqa: DTZ005 - of the wall
    names = [name, *(f"{name}_{number}" for number in range(2, 1000))]
    return next((one for one in names if not any(folder.glob(f"{one}.*"))), name)


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "nobody"
