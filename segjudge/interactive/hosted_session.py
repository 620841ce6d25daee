"""The session of a user elsewhere: a local session whose requests may be repeated, with the server's clock."""

import threading
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from segjudge.evaluation_script.masks.stack import Array

from .dataset_protocol import InteractiveDataset, shape_of
from .local_connector import LocalConnector
from .local_session import LocalSession, SessionTerms
from .report_files import ReportFiles
from .session import MOST_INTERACTIONS
from .untrusted_masks import MaskSubmission, short_text
from .wire_format import ScribblesAnswer

#: Beside the report of a session that is over.
SUMMARY = "summary.json"
#: In the saved state: whether the open sample is new to the client, and the masks that came last (the interaction
#: that they named, a checksum, and whether they were in time).
_NEW, _LAST_TAKEN = "new", "last_taken"


class HostedSession:
    """A local session for a client.

    Scribbles are returned again until masks come, the time running from the first answer; masks that come a second
    time change nothing.
    """

    def __init__(
        self,
        dataset: InteractiveDataset,
        terms: SessionTerms,
        folder: Path,
        clock: Callable[[], float],
        note: Callable[[str], None] = lambda _sequence: None,
    ) -> None:
        # Without a limit masks could be measured as often as the time allows.
        terms = replace(terms, max_nb_interactions=terms.max_nb_interactions or MOST_INTERACTIONS)
        files = ReportFiles(folder, SUMMARY)
        self._session = LocalSession(LocalConnector(session_key=folder.name, dataset=dataset), terms, files, clock)
        self._session.shell_state = {_NEW: False, _LAST_TAKEN: []}
        self.state, self.folder = self._session.state, folder
        self._note = note
        self.lock = threading.RLock()
        #: Requests that use the session, or wait for its lock; then it must not be opened a second time.
        self.users = 0

    def begin(self) -> None:
        """Open a new session, and save it."""
        self._session.enter(resume=False)
        self._session.save()

    def resume(self) -> None:
        """Go on with the session that the folder holds; one that has finished has its report there."""
        self._session.enter(resume=False)
        if (self.folder / SUMMARY).exists():
            self.state.running = False
        else:
            self._session.restore()

    def terms(self) -> dict[str, object]:
        """Return the samples and limits."""
        return {
            "samples": self.state.samples,
            "max_time": self.state.max_time,
            "max_nb_interactions": self.state.max_nb_interactions,
        }

    def advance(self) -> dict[str, object]:
        """Return the interaction that comes next; the same again while nothing was submitted."""
        before = (self.state.sample_idx, self.state.interaction_nb)
        if not self._session.next():
            return {"finished": True}
        if (self.state.sample_idx, self.state.interaction_nb) != before:
            self._session.save_state()
        sequence, number = self._open_sample()
        new = self._session.shell_state[_NEW] if self.state.running_model else self.state.sample_scribbles is None
        return {
            "sequence": sequence,
            "scribble_idx": number,
            "interaction": self.state.interaction,
            "new_sequence": new,
            "finished": False,
        }

    def scribbles(self, *, only_last: bool) -> ScribblesAnswer:
        """Return the scribbles of this interaction; its time begins when they are first asked for."""
        if self.state.running_model:
            sequence, _ = self._open_sample()
            drawn = self.state.scribbles(only_last=only_last)
        else:
            sequence, drawn, self._session.shell_state[_NEW] = self._session.scribbles(only_last=only_last)
            self._session.save_state()
            # Reading the truth and writing is the server's work; the method's time begins when the answer can go.
            self.state.interaction_start_time = self._session.clock()
        return {"sequence": sequence, "scribbles": drawn, "new_sequence": self._session.shell_state[_NEW]}

    def repeated(self, checksum: str) -> bool | None:
        """Return whether masks that came last and come again were in time; None for other masks."""
        last = self._session.shell_state[_LAST_TAKEN]
        return bool(last[4]) if last and last[3] == checksum else None

    def submit(self, submission: MaskSubmission, most_runs: int, checksum: str, arrived: float) -> bool:
        """Take masks; return whether they came in time."""
        sequence, number = self._open_sample()
        due = [sequence, number, self.state.interaction]
        if submission.due != due:
            named = ", ".join(map(short_text, submission.due))
            raise RuntimeError(f"These masks are for [{named}]; those that are due are for {due}.")
        self.state.check_masks_due()
        in_time = not self.state.is_late(arrived)
        masks: Array = np.zeros(0)  # late masks are not decoded
        if in_time:
            record = self._session.connector.service.davis.dataset[sequence]
            masks = submission.decode(shape_of(record), most_runs)
            self._note(sequence)
        shell_state = self._session.shell_state
        before, shell_state[_LAST_TAKEN] = shell_state[_LAST_TAKEN], [*due, checksum, in_time]
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of candidates that are not frames
                self._session.submit(masks, submission.candidates, arrived)
        except BaseException:
            shell_state[_LAST_TAKEN] = before
            raise
        return in_time

    def means(self) -> pd.DataFrame:
        """Return the report without its frames: values of single frames would reveal too much of the truth."""
        return means_of(self._session.report())

    def _open_sample(self) -> tuple[str, int]:
        if not self.state.has_opened or not self.state.running:
            raise RuntimeError(f"There is no interaction to answer; ask {'next'!r} first.")
        return self.state.sample


def means_of(report: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each object of each interaction."""
    keys = ["session_id", "sequence", "scribble_idx", "interaction", "object_id"]
    return report.groupby(keys, sort=False, as_index=False)[["jaccard", "contour", "j_and_f", "timing"]].mean()
