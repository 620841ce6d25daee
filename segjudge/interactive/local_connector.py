"""The connector of a session to an evaluation service of this process."""

import os
import time
from collections.abc import Callable, Iterable

import pandas as pd
from numpy.typing import ArrayLike

from segjudge.interactive.utils.scribbles import Scribbles

from .dataset import Davis, lists_of, root_of
from .dataset_protocol import InteractiveDataset
from .evaluation import UNPUBLISHED, EvaluationService
from .session import NOT_BEGUN
from .storage import LocalStorage
from .summary import Sample, Summary

#: Subsets whose masks were published; a root may list others.
LOCAL_SUBSETS = ["train", "val", "trainval"]


class LocalConnector:
    """Asks an evaluation service of this process; the service exists once the samples were read."""

    VALID_SUBSETS = LOCAL_SUBSETS

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
        """The service; its `robot` may be adjusted while the session runs."""
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
            valid = list(dict.fromkeys([*LOCAL_SUBSETS, *sorted(lists_of(root_of(davis_root)))]))
            # A program may have added subsets to the catalogue.
            if subset not in valid and (subset == UNPUBLISHED or subset not in Davis.sets):
                raise ValueError(f"For local connector, `subset` must be a valid subset: {valid}")
        self.storage = LocalStorage()
        self._service = EvaluationService(
            subset, self.storage, davis_root, None, max_t, max_i, metric_to_optimize,
            clock=self._clock, dataset=self._dataset,
        )  # fmt: skip
        return self._service.get_samples()

    def get_scribble(self, sequence: str, scribble_idx: int) -> Scribbles:
        """Return the first scribbles."""
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
        """Return the rows of this session."""
        return self.service.get_report(self.session_key)

    def post_finish(self) -> Summary:
        """Return the summary of this session."""
        return self.service.summarize_report(self.get_report())
