"""The local session: rules, evaluation of masks behind a connector, and report files.

The module is independent of networks: `remote_session` uses a session on a server, and `session_host` holds the
server's sessions.
"""

import copy
import os
import random
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd
from numpy.typing import ArrayLike

from .dataset import Davis, InteractiveDataset, SessionInputError, lists_of, root_of
from .evaluation import UNPUBLISHED, EvaluationService
from .reports import LocalStorage, ReportFiles, Sample, StoredProgress, Summary, read_report
from .scribbles import Scribbles, fuse_scribbles

#: The name of this process as a host.
LOCAL_HOST = "localhost"
#: The challenge's limits.
_MOST_SECONDS, MOST_INTERACTIONS = 600, 16
#: The subsets with published masks; a root may list more.
_LOCAL_SUBSETS = ["train", "val", "trainval"]

NOT_BEGUN = "The session has not begun: use it as `with DavisInteractiveSession(...) as session`."
_NOTHING_TO_SEGMENT = "There is nothing to segment: call next() first, and continue only while it returns True."
_TWICE = "You can not call get_scribbles twice without submitting the masks first"
_NOTHING_DUE = "You must have called .get_scribbles before submiting the masks"

#: Key of the saved state → attribute.
_SAVED = {
    "samples": "samples", "sample_idx": "sample_idx", "interaction_nb": "interaction_nb",
    "sample_start_time": "sample_start_time", "interaction_start_time": "interaction_start_time",
    "running_model": "running_model", "scribbles": "sample_scribbles", "last": "sample_last_scribble",
}  # fmt: skip


@dataclass(frozen=True)
class SessionTerms:
    """The samples of a session, its limits, and its metric."""

    subset: str = "val"
    shuffle: bool = False
    max_time: float | None = None
    max_nb_interactions: int | None = 5
    metric: str = "J_AND_F"
    #: The root of DAVIS for a connector without a dataset.
    davis_root: str | os.PathLike[str] | None = None


class SessionRules:
    """The rules of a session: the due call, the open sample, and its time limit.

    They measure nothing and use no files or network. `_open_due_sample` opens a sample; `_begin_interaction` and
    `_end_interaction` enclose each interaction.
    """

    def __init__(self, max_time: float | None, max_nb_interactions: int | None) -> None:
        #: Seconds per object of a sample, for all of its interactions.
        self.max_time = None if max_time is None else min(max_time, _MOST_SECONDS)
        #: The maximum number of interactions per sample.
        self.max_nb_interactions = None if max_nb_interactions is None else min(max_nb_interactions, MOST_INTERACTIONS)
        self.samples: list[Sample] = []
        #: None before the session is entered, -1 until the first sample is opened.
        self.sample_idx: int | None = None
        #: The number of finished interactions with the open sample.
        self.interaction_nb: int | None = None
        #: Whether more interactions may follow.
        self.running = True
        #: Whether scribbles were read, so that masks are expected.
        self.running_model = False
        self.sample_start_time: float | None = None
        self.interaction_start_time: float | None = None
        self.sample_scribbles: Scribbles | None = None
        self.sample_last_scribble: Scribbles | None = None
        #: Whether the program was restarted and lacks the state of the open sample.
        self._is_resumed = False

    def _count_objects(self, _sequence: str) -> int:
        return 1

    @property
    def _has_opened(self) -> bool:
        return self.sample_idx is not None and self.sample_idx >= 0

    @property
    def sample(self) -> Sample:
        return self.samples[self.sample_idx or 0]

    @property
    def interaction(self) -> int:
        """Return the number of the next interaction, from 1."""
        return (self.interaction_nb or 0) + 1

    def _open_due_sample(self, time_now: float) -> bool:
        """Open the next sample if the open one is over; return False after the last."""
        has_all = bool(self.max_nb_interactions and (self.interaction_nb or 0) >= self.max_nb_interactions)
        if not self._has_opened or has_all or self.is_late(time_now):
            self.sample_idx = (self.sample_idx or 0) + 1 if self._has_opened else 0
            self.interaction_nb, self.sample_start_time = 0, time_now
            self.sample_scribbles = self.sample_last_scribble = None
            self.running_model = False  # the masks came too late
        return (self.sample_idx or 0) < len(self.samples)

    def is_late(self, time_now: float) -> bool:
        if not self.max_time or self.sample_start_time is None:
            return False
        return time_now - self.sample_start_time > self.max_time * self._count_objects(self.sample[0])

    def _check_scribbles_due(self) -> None:
        if not self._has_opened or not self.running:
            raise RuntimeError(_NOTHING_TO_SEGMENT)
        if self.running_model:
            raise RuntimeError(_TWICE)

    def _check_masks_due(self) -> None:
        if not self.running_model:
            raise RuntimeError(_NOTHING_DUE)

    def _copy_scribbles(self, *, only_last: bool) -> Scribbles:
        """Copy the scribbles of the open sample, which later grow."""
        scribbles = self.sample_last_scribble if only_last else self.sample_scribbles
        if scribbles is None:
            raise RuntimeError(_NOTHING_TO_SEGMENT)
        return copy.deepcopy(scribbles)

    def _begin_interaction(self, time_now: float | None, *, new_sample: bool) -> bool:
        """Record that scribbles were read; return whether the sample is new."""
        self.running_model, self.interaction_start_time = True, time_now
        new_to_program, self._is_resumed = new_sample or self._is_resumed, False
        return new_to_program

    def _end_interaction(self, drawn: Scribbles | None) -> None:
        """Record accepted masks, and add the robot's scribbles to the sample's."""
        if drawn is not None and self.sample_scribbles is not None:
            self.sample_last_scribble = drawn
            self.sample_scribbles = fuse_scribbles(self.sample_scribbles, drawn)
        self.interaction_nb, self.running_model = self.interaction, False

    def _return_to(self, saved: Mapping[str, Any]) -> None:
        """Restore a saved state, whose times follow this session's clock."""
        for key, name in _SAVED.items():
            setattr(self, name, saved[key])
        self.samples = [(name, number) for name, number in self.samples]

    def _restart(self, saved_at: float, time_now: float) -> None:
        """Continue with a new clock and program; an interaction without masks restarts."""
        self.sample_start_time = time_now - (saved_at - (self.sample_start_time or 0.0))
        self.interaction_start_time, self.running_model, self._is_resumed = None, False, True


class LocalConnector:
    """A connector to an evaluation service of this process, created when samples are read."""

    VALID_SUBSETS = _LOCAL_SUBSETS

    def __init__(
        self,
        user_key: str | None = None,
        session_key: str = "",
        *,
        clock: Callable[[], float] = time.time,
        dataset: InteractiveDataset | None = None,
    ) -> None:
        self.user_key, self.session_key = user_key, session_key
        self._clock, self._dataset = clock, dataset
        self._service: EvaluationService | None = None
        self.storage = LocalStorage()

    @property
    def service(self) -> EvaluationService:
        """Return the service, whose `robot` may be adjusted during the session."""
        if self._service is None:
            raise RuntimeError(NOT_BEGUN)
        return self._service

    def get_samples(
        self,
        subset: str,
        davis_root: str | os.PathLike[str] | None = None,
        max_t: float | None = None,
        max_i: int | None = None,
        metric_to_optimize: str = "J_AND_F",
    ) -> tuple[list[Sample], float | None, int | None]:
        """Open the service of a subset; return its samples and limits."""
        if self._dataset is None:
            valid = list(dict.fromkeys([*_LOCAL_SUBSETS, *sorted(lists_of(root_of(davis_root)))]))
            # A program may have added subsets to the catalogue.
            if subset not in valid and (subset == UNPUBLISHED or subset not in Davis.sets):
                raise SessionInputError(f"For local connector, `subset` must be a valid subset: {valid}")
        self.storage = LocalStorage()
        self._service = EvaluationService(
            subset, self.storage, davis_root, None, max_t, max_i, metric_to_optimize,
            clock=self._clock, dataset=self._dataset,
        )  # fmt: skip
        return self._service.get_samples()

    def get_scribble(self, sequence: str, scribble_idx: int) -> Scribbles:
        return self.service.get_scribble(sequence, scribble_idx)

    def post_predicted_masks(
        self,
        sequence: str,
        scribble_idx: int,
        pred_masks: ArrayLike,
        timing: float,
        interaction: int,
        next_scribble_frame_candidates: Iterable[int] | None = None,
    ) -> Scribbles:
        """Measure masks; return the robot's scribbles."""
        return self.service.post_predicted_masks(
            sequence, scribble_idx, pred_masks, timing, interaction, self.user_key, self.session_key,
            next_scribble_frame_candidates,
        )  # fmt: skip

    def get_report(self) -> pd.DataFrame:
        return self.service.get_report(self.session_key)

    def post_finish(self) -> Summary:
        return self.service.summarize_report(self.get_report())

    def restore(self, session_key: str, progress: StoredProgress, report: pd.DataFrame) -> None:
        """Continue as the session with this key from saved rows and progress."""
        self.session_key = session_key
        self.storage.restore(session_key, progress, report)


class Session(SessionRules):
    """A session whose masks are measured in this process."""

    def __init__(
        self,
        connector: LocalConnector,
        terms: SessionTerms,
        files: ReportFiles,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(terms.max_time, terms.max_nb_interactions)
        self.connector, self.terms, self.files, self.clock = connector, terms, files, clock
        self.summary: Summary = {}

    def _count_objects(self, sequence: str) -> int:
        return self.connector.service.davis.dataset[sequence]["num_objects"]

    def enter(self, *, resume: bool) -> None:
        """Read the samples; `resume` continues the newest unfinished session with the same terms and samples."""
        if not self.max_time and not self.max_nb_interactions:
            raise ValueError("Both max_time and max_nb_interactions can not be None")
        samples, _, _ = self.connector.get_samples(
            self.terms.subset, self.terms.davis_root, self.max_time, self.max_nb_interactions, self.terms.metric
        )
        if self.terms.shuffle:
            random.shuffle(samples)
        self.samples, self.sample_idx, self.interaction_nb = samples, -1, -1
        if resume:
            self._restart(self._restore()["clock"], self.clock())

    def _restore(self) -> dict[str, Any]:
        """Restore the newest saved state in the folder that has the same terms and samples."""
        terms = {**self._terms_to_save(), "samples": sorted([*sample] for sample in self.samples)}

        def matches(saved: dict[str, Any]) -> bool:
            return {**{name: saved.get(name) for name in terms}, "samples": sorted(saved["samples"])} == terms

        saved = self.files.resume(matches, "of this subset with these samples and limits")
        self._return_to(saved)
        try:
            report = read_report(self.files.temporary_path)
        except ValueError as error:
            raise SessionInputError(f"{self.files.temporary_path}: cannot be read ({error})") from None
        self.connector.restore(saved["session_key"], saved["service"], report)
        return saved

    def _terms_to_save(self) -> dict[str, object]:
        """Return the terms that a session and its continuation must share."""
        return {
            "subset": self.terms.subset,
            "max_time": self.max_time,
            "max_nb_interactions": self.max_nb_interactions,
            "metric_to_optimize": self.terms.metric,
        }

    def next(self) -> bool:
        """Return True if there is another interaction; write the report."""
        if not self.running:
            return False
        if self._open_due_sample(self.clock()):
            self.files.write_report(self.report())
            return True
        self.summary = self.connector.post_finish()
        self.files.finish(self.report(), self.summary)
        self.running = False
        return False

    def read_scribbles(self, *, only_last: bool) -> tuple[str, Scribbles, bool]:
        """Return the sequence, its scribbles, and True for a new sample; the interaction's time begins."""
        self._check_scribbles_due()
        sequence, number = self.sample
        new_sample = self.sample_scribbles is None
        if new_sample:
            self.sample_scribbles = self.connector.get_scribble(sequence, number)
            self.sample_last_scribble = self._copy_scribbles(only_last=False)
        scribbles = self._copy_scribbles(only_last=only_last)
        return sequence, scribbles, self._begin_interaction(self.clock(), new_sample=new_sample)

    def submit(self, masks: ArrayLike, candidates: Iterable[int] | None, arrival_time: float | None = None) -> bool:
        """Measure masks and save the session; return whether they came in time."""
        arrival_time = self.clock() if arrival_time is None else arrival_time
        self._check_masks_due()
        timing = max(0.0, arrival_time - (self.interaction_start_time or 0.0))
        sequence, number = self.sample
        in_time = not self.is_late(arrival_time)
        scribbles = None
        if in_time:
            scribbles = self.connector.post_predicted_masks(
                sequence, number, masks, timing, self.interaction, candidates
            )
        self._end_interaction(scribbles)
        self.save()
        return in_time

    def save(self) -> None:
        self.files.write_report(self.report())
        self._save_state()

    def _save_state(self) -> None:
        self.files.write_state(self._state_to_save())

    def _state_to_save(self) -> dict[str, object]:
        connector = self.connector
        return {
            **self._terms_to_save(),
            **{key: getattr(self, name) for key, name in _SAVED.items()},
            "session_key": connector.session_key,
            "clock": self.clock(),
            "service": connector.storage.progress(connector.session_key),
        }

    def report(self) -> pd.DataFrame:
        return self.connector.get_report()
