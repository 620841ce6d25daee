"""The session of this process: the state machine, an evaluation service, and the files of the report."""

import os
import random
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import pandas as pd
from numpy.typing import ArrayLike

from segjudge.interactive.utils.scribbles import Scribbles

from .local_connector import LocalConnector
from .report_files import ReportFiles
from .session import SessionState
from .summary import Summary, read_report


@dataclass(frozen=True)
class SessionTerms:
    """The samples of a session, its limits, and its metric."""

    subset: str = "val"
    shuffle: bool = False
    max_time: float | None = None
    max_nb_interactions: int | None = 5
    metric: str = "J_AND_F"
    #: The root of DAVIS, for a connector without a dataset.
    davis_root: str | os.PathLike[str] | None = None


class LocalSession:
    """A session whose masks are measured in this process."""

    def __init__(
        self,
        connector: LocalConnector,
        terms: SessionTerms,
        files: ReportFiles,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.connector, self.terms, self.files, self.clock = connector, terms, files, clock
        self.state = SessionState(terms.max_time, terms.max_nb_interactions)
        self.summary: Summary = {}
        #: What a shell around this session adds to the saved state.
        self.shell_state: dict[str, Any] = {}

    def enter(self, *, resume: bool) -> None:
        """Read the samples; `resume` goes on with the newest unfinished session that has the same terms and samples."""
        state, terms = self.state, self.terms
        if not state.max_time and not state.max_nb_interactions:
            raise ValueError("Both max_time and max_nb_interactions can not be None")
        samples, _, _ = self.connector.get_samples(
            terms.subset, terms.davis_root, state.max_time, state.max_nb_interactions, terms.metric
        )
        if terms.shuffle:
            random.shuffle(samples)
        state.num_objects = lambda sequence: self.connector.service.davis.dataset[sequence]["num_objects"]
        state.enter(samples)
        if resume:
            state.restart(self.restore()["clock"], self.clock())

    def restore(self) -> dict[str, Any]:
        """Return to the newest saved state in the folder that has the same terms and samples; return it."""
        same = {**self._saved_terms(), "samples": sorted([*sample] for sample in self.state.samples)}

        def matches(saved: dict[str, Any]) -> bool:
            return {**{name: saved.get(name) for name in same}, "samples": sorted(saved["samples"])} == same

        saved = self.files.resume(matches, "of this subset with these samples and limits")
        self.connector.session_key = saved["session_key"]
        self.state.restore(saved)
        self.shell_state = {name: saved[name] for name in self.shell_state}
        report = read_report(self.files.temporary)
        self.connector.storage.restore(saved["session_key"], saved["service"], report)
        return saved

    def _saved_terms(self) -> dict[str, object]:
        """What must agree between a session and its continuation."""
        return {
            "subset": self.terms.subset,
            "max_time": self.state.max_time,
            "max_nb_interactions": self.state.max_nb_interactions,
            "metric_to_optimize": self.terms.metric,
        }

    def next(self) -> bool:
        """Return whether there is another interaction; write the report."""
        if not self.state.running:
            return False
        if self.state.advance(self.clock()):
            self.files.write_report(self.report())
            return True
        self.summary = self.connector.post_finish()
        self.files.finish(self.report(), self.summary)
        self.state.running = False
        return False

    def scribbles(self, *, only_last: bool) -> tuple[str, Scribbles, bool]:
        """Return sequence, scribbles, and whether the sample is new; the interaction's time begins."""
        state = self.state
        state.check_scribbles_due()
        sequence, number = state.sample
        new_sample = state.sample_scribbles is None
        if new_sample:
            state.sample_scribbles = self.connector.get_scribble(sequence, number)
            state.sample_last_scribble = state.scribbles(only_last=False)
        drawn = state.scribbles(only_last=only_last)
        return sequence, drawn, state.begin_interaction(self.clock(), new_sample=new_sample)

    def submit(self, masks: ArrayLike, candidates: Iterable[int] | None, now: float | None = None) -> bool:
        """Measure masks and save the session; return whether they came in time."""
        now = self.clock() if now is None else now
        state = self.state
        state.check_masks_due()
        timing = max(0.0, now - (state.interaction_start_time or 0.0))
        sequence, number = state.sample
        in_time = not state.is_late(now)
        drawn = None
        if in_time:
            drawn = self.connector.post_predicted_masks(sequence, number, masks, timing, state.interaction, candidates)
        state.end_interaction(drawn)
        self.save()
        return in_time

    def save(self) -> None:
        """Write the report so far and the state."""
        self.files.write_report(self.report())
        self.save_state()

    def save_state(self) -> None:
        """Write what another process needs to go on beside the report."""
        self.files.write_state(
            {
                **self._saved_terms(),
                **self.state.saved(),
                "session_key": self.connector.session_key,
                "clock": self.clock(),
                "service": self.connector.storage.progress(self.connector.session_key),
                **self.shell_state,
            }
        )

    def report(self) -> pd.DataFrame:
        """Return all rows so far."""
        return self.connector.get_report()
