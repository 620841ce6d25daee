"""The client of a server's session: the server has the truth, the order, the limits and the clock."""

from collections.abc import Iterable

import pandas as pd
from numpy.typing import ArrayLike

from segjudge.interactive.utils.mask import encode_frames
from segjudge.interactive.utils.scribbles import Scribbles

from . import wire_format
from .evaluation import as_masks
from .remote_connector import RemoteConnector
from .report_files import ReportFiles
from .session import SessionState
from .summary import Summary


class RemoteSession:
    """A session whose masks are measured on a server.

    Requests that failed on the way are tried again; the server recognises a repeat.
    """

    def __init__(self, connector: RemoteConnector, files: ReportFiles) -> None:
        self.connector, self.files = connector, files
        self.state = SessionState(None, None)
        self.summary: Summary = {}
        #: The sample and interaction of the report that was written last.
        self._reported: tuple[int | None, int | None] | None = None

    def enter(self, *, resume: bool) -> None:
        """Begin a session; `resume` goes on with the newest unfinished session of this user and server."""
        state, connector = self.state, self.connector
        keys = {"host": connector.host, "user_key": connector.user_key}
        if resume:
            saved = self.files.resume(lambda saved: keys.items() <= saved.items(), "of this server")
            connector.session_key = saved["session_key"]
            samples = [(name, number) for name, number in saved["samples"]]
            state.max_time, state.max_nb_interactions = saved["max_time"], saved["max_nb_interactions"]
            state.resumed = True
        else:
            samples, state.max_time, state.max_nb_interactions = connector.get_samples()
        state.enter(samples)
        limits = {"max_time": state.max_time, "max_nb_interactions": state.max_nb_interactions}
        saved_state = {**keys, "session_key": connector.session_key, "samples": samples, **limits}
        self.files.write_state(saved_state, private=True)  # it holds the keys

    def next(self) -> bool:
        """Return whether there is another interaction; write the report if anything is new."""
        state = self.state
        if not state.running:
            return False
        answer = self.connector.next()
        if answer["finished"]:
            self.summary = self.connector.post_finish()
            self.files.finish(self.report(), self.summary)
            state.running = state.running_model = False
            return False
        index = state.samples.index((answer["sequence"], answer["scribble_idx"]))
        if index != state.sample_idx:
            state.sample_idx, state.running_model = index, False
        state.interaction_nb = answer["interaction"] - 1
        if self._reported != (state.sample_idx, state.interaction_nb):
            self.files.write_report(self.report())
            self._reported = (state.sample_idx, state.interaction_nb)
        return True

    def scribbles(self, *, only_last: bool) -> tuple[str, Scribbles, bool]:
        """Return sequence, scribbles, and whether the sample is new; the server's clock runs."""
        self.state.check_scribbles_due()
        answer = self.connector.get_scribbles(only_last=only_last)
        new = self.state.begin_interaction(None, new_sample=answer["new_sequence"])
        return answer["sequence"], answer["scribbles"], new

    def submit(self, masks: ArrayLike, candidates: Iterable[int] | None) -> bool:
        """Send masks; return whether they came in time."""
        self.state.check_masks_due()
        ids = as_masks(masks)
        if ids.ndim != 3:
            raise ValueError("y_pred array must have 3 dimensions.")
        sequence, number = self.state.sample
        submission: wire_format.InteractionBody = {
            "sequence": sequence,
            "scribble_idx": number,
            "interaction": self.state.interaction,
            "pred_masks": encode_frames(ids),
        }
        if candidates is not None:
            submission["next_scribble_frame_candidates"] = [int(frame) for frame in candidates]
        in_time = self.connector.post_predicted_masks(submission)
        self.state.end_interaction(None)
        return in_time

    def report(self) -> pd.DataFrame:
        """Return a row for each object of each interaction so far, the mean over its frames."""
        return self.connector.get_report()
