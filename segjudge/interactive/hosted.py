"""A session for somebody elsewhere: the session of this machine, with a clock that runs on this side."""

from __future__ import annotations

import copy
import json
import threading
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from segjudge.files import replace

from .dataset import Sequences
from .evaluation import EvaluationService
from .session import MOST_INTERACTIONS, NOTHING_DUE, DavisInteractiveSession

#: Beside the report of a session that is over.
SUMMARY = "summary.json"


@dataclass(frozen=True)
class SessionTerms:
    """What every session of a server is held under."""

    dataset: Sequences
    subset: str = "val"
    shuffle: bool = False
    max_time: float | None = None
    max_nb_interactions: int | None = 5
    metric: str = "J_AND_F"


class HostedSession(DavisInteractiveSession):
    """A session for somebody elsewhere.

    What was handed out is handed out again until masks come, the clock running from the first time; masks that
    come a second time change nothing.
    """

    def __init__(
        self,
        terms: SessionTerms,
        folder: Path,
        clock: Callable[[], float],
        note: Callable[[str], None] = lambda _sequence: None,
        *,
        resume: bool = False,
    ) -> None:
        super().__init__(
            subset=terms.subset,
            shuffle=terms.shuffle,
            max_time=terms.max_time,
            # Without a limit masks could be measured as often as the time allows.
            max_nb_interactions=terms.max_nb_interactions or MOST_INTERACTIONS,
            metric_to_optimize=terms.metric,
            report_save_dir=folder,
            dataset=terms.dataset,
            resume=resume,
        )
        self._clock, self._note = clock, note
        self._new = False
        #: Which masks came last, and a checksum of them.
        self._last: list[Any] = []
        self.lock = threading.Lock()
        #: Requests that have it, or wait for its lock.
        self.users = 0

    def is_in_use(self) -> bool:
        """Whether a request has it; then it must not be opened a second time."""
        return self.users > 0 or self.lock.locked()

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

    def repeated(self, checksum: str) -> bool | None:
        """Whether masks were in time that were taken last and come again; None for others."""
        return bool(self._last[4]) if self._last and self._last[3] == checksum else None

    def submit(self, told: Any, masks: Callable[[tuple[int, int, int]], Any], checksum: str, arrived: float) -> bool:
        """Take masks; whether they came in time.  `masks` decodes them for a shape."""
        named = [told.get("sequence"), told.get("scribble_idx"), told.get("interaction")]
        sequence, number = self._sample()
        wanted = [sequence, number, (self.interaction_nb or 0) + 1]
        if named != wanted:
            found = ", ".join(shown(one) for one in named)
            raise RuntimeError(f"These masks are for [{found}]; those that are due are for {wanted}.")
        if not self.running_model:
            raise RuntimeError(NOTHING_DUE)
        in_time = not self._late(arrived)
        record = self._entered().davis.dataset[sequence]
        width, height = record["image_size"]
        decoded = masks((record["num_frames"], height, width)) if in_time else None
        if in_time:
            self._note(sequence)
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
        replace(self.report_save_dir / SUMMARY, json.dumps(found))
        super()._end(service)


def means_of(report: pd.DataFrame) -> pd.DataFrame:
    """A row for each object of each interaction."""
    keys = ["session_id", "sequence", "scribble_idx", "interaction", "object_id"]
    return report.groupby(keys, sort=False, as_index=False)[["jaccard", "contour", "j_and_f", "timing"]].mean()


def shown(told: Any) -> str:
    """An untrusted value as it may stand in a sentence: short, plain, and made without walking through it."""
    if isinstance(told, str):
        return ascii(told[:40])
    small = told is None or isinstance(told, (bool, float)) or (isinstance(told, int) and abs(told) < 10**18)
    return str(told) if small else f"a value of the type {type(told).__name__}"
