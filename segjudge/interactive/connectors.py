"""What a session asks: a service of this process."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

import pandas as pd

from .dataset import Davis, Sequences, lists_of, root_of
from .evaluation import UNPUBLISHED, EvaluationService

NOT_BEGUN = "The session has not begun: use it as `with DavisInteractiveSession(...) as session`."
#: Subsets whose masks were published; a root may list others.
LOCAL_SUBSETS = ["train", "val", "trainval"]


class LocalConnector:
    """Asks an evaluation service of this process; `service` is there once the samples were asked for."""

    VALID_SUBSETS = LOCAL_SUBSETS

    def __init__(
        self,
        user_key: str | None = None,
        session_key: str = "",
        *,
        clock: Callable[[], float] = time.time,
        dataset: Sequences | None = None,
    ) -> None:
        self.user_key, self.session_key = user_key, session_key
        self._clock, self._dataset = clock, dataset
        self._service: EvaluationService | None = None

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
    ) -> tuple[list[tuple[str, int]], float | None, int | None]:
        """Open the service of a subset; return its samples and limits."""
        if self._dataset is None:
            _check_subset(subset, davis_root)
        self._service = EvaluationService(
            subset,
            davis_root=davis_root,
            max_t=max_t,
            max_i=max_i,
            metric_to_optimize=metric_to_optimize,
            clock=self._clock,
            dataset=self._dataset,
        )
        return self._service.get_samples()

    def get_scribble(self, sequence: str, scribble_idx: int) -> dict[str, Any]:
        """Return what was drawn first."""
        return self.service.get_scribble(sequence, scribble_idx)

    def post_predicted_masks(
        self,
        sequence: str,
        scribble_idx: int,
        pred_masks: Any,
        timing: float,
        interaction: int,
        next_scribble_frame_candidates: Any = None,
    ) -> dict[str, Any]:
        """Measure masks; return the robot's scribbles."""
        return self.service.post_predicted_masks(
            sequence, scribble_idx, pred_masks, timing, interaction, self.user_key, self.session_key,
            next_scribble_frame_candidates,
        )  # fmt: skip

    def get_report(self) -> pd.DataFrame:
        """Return the rows of this session."""
        return self.service.get_report(self.session_key)

    def post_finish(self) -> dict[str, Any]:
        """Return the summary of this session."""
        return self.service.summarize_report(self.get_report())


def _check_subset(subset: str, davis_root: str | os.PathLike[str] | None) -> None:
    known = dict.fromkeys([*LOCAL_SUBSETS, *sorted(lists_of(root_of(davis_root)))])
    changed = [name for name in Davis.sets if name != UNPUBLISHED]
    if subset not in {**known, **dict.fromkeys(changed)}:
        raise ValueError(f"For local connector, `subset` must be a valid subset: {list(known)}")
