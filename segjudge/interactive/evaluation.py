"""What happens to submitted masks: measure them, remember, choose the frame for the robot, and sum up."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd

from segjudge.masks.comparison import FrameComparison

from .dataset import Davis, Sequences, first_scribbles, lists_of, root_of
from .metrics import as_ids, object_ids
from .robot import InteractiveScribblesRobot
from .storage import AbstractStorage, LocalStorage
from .summary import METRICS, THRESHOLD, SummaryTerms, summary

#: What the sessions of the challenge gave their robot.
ROBOT_DEFAULT_PARAMETERS = {"kernel_size": 0.2, "max_kernel_radius": 16, "min_nb_nodes": 4, "nb_points": 1000}
#: The subset whose masks were never published.
UNPUBLISHED = "test-dev"


class EvaluationService:
    """Knows the truth of a subset; sessions ask it."""

    def __init__(  # noqa: PLR0913, PLR0917 - the signature that programs know
        self,
        subset: str,
        storage: AbstractStorage | None = None,
        davis_root: str | os.PathLike[str] | None = None,
        robot_parameters: dict[str, Any] | None = None,
        max_t: float | None = None,
        max_i: int | None = None,
        metric_to_optimize: str = "J_AND_F",
        time_threshold: float | None = None,
        *,
        clock: Callable[[], float] = time.time,
        dataset: Sequences | None = None,
    ) -> None:
        if metric_to_optimize not in METRICS:
            raise ValueError(f"metric_to_optimize not between available metrics: {tuple(METRICS)}")
        if dataset is None and subset not in {**Davis.sets, **lists_of(root_of(davis_root))}:
            raise ValueError(f"Subset must be a valid subset: {Davis.sets.keys()}")
        self.davis = Davis(davis_root) if dataset is None else dataset
        self.storage = LocalStorage() if storage is None else storage
        self.subset, self.sequences = subset, self.davis.sequences(subset)
        if subset != UNPUBLISHED:
            self.davis.check_files(self.sequences)
        self.max_t, self.max_i, self.metric_to_optimize = max_t, max_i, metric_to_optimize
        self.time_threshold = time_threshold or THRESHOLD
        self.robot_parameters = robot_parameters or ROBOT_DEFAULT_PARAMETERS
        self.robot = InteractiveScribblesRobot(**self.robot_parameters, clock=clock)

    @property
    def avg_nb_objects(self) -> float:
        """Over the sequences of the subset."""
        return float(sum(self.davis.dataset[one]["num_objects"] for one in self.sequences)) / len(self.sequences)

    @property
    def num_entries(self) -> int:
        """How many rows a whole report has, with a limit of interactions; without one those of one interaction."""
        rows = 0
        for name in self.sequences:
            record = self.davis.dataset[name]
            rows += self.davis.num_scribbles(name) * record["num_frames"] * record["num_objects"]
        return rows * (self.max_i or 1)

    def get_samples(self) -> tuple[list[tuple[str, int]], float | None, int | None]:
        """Every sequence with each of its sets of scribbles, and the limits."""
        samples = [(name, number + 1) for name in self.sequences for number in range(self.davis.num_scribbles(name))]
        return samples, self.max_t, self.max_i

    def get_scribble(self, sequence: str, scribble_idx: int) -> dict[str, Any]:
        """What was drawn first, with a list for each frame."""
        if sequence not in self.sequences:
            raise ValueError(f"Invalid sequence: {sequence}")
        if not 1 <= scribble_idx <= self.davis.num_scribbles(sequence):
            raise ValueError(f"Invalid scribble index: {scribble_idx}")
        # Masks that cannot be read are found here, before a method's time begins.
        return first_scribbles(self.davis, sequence, scribble_idx)

    get_starting_scribble = get_scribble

    def post_predicted_masks(  # noqa: PLR0913, PLR0917 - the signature that programs know
        self,
        sequence: str,
        scribble_idx: int,
        pred_masks: Any,
        timing: float,
        interaction: int,
        user_key: str | None = None,
        session_key: str = "",
        next_scribble_frame_candidates: Any = None,
    ) -> dict[str, Any]:
        """Measure and keep masks; the robot's scribbles in the frame that is worst and was not chosen before.

        Whatever is wrong is said before anything is kept, so that the call may be repeated.
        """
        self._check(sequence, scribble_idx, interaction)
        count = self.davis.dataset[sequence]["num_objects"]
        truth, objects = _truth(self.davis, sequence, count)
        prediction = as_masks(pred_masks)
        object_ids(truth, prediction, count)
        jaccard, contour = objects.similarities(prediction)
        values = {"J": jaccard, "F": contour, "J_AND_F": 0.5 * jaccard + 0.5 * contour}[self.metric_to_optimize]
        candidates = _candidates(next_scribble_frame_candidates, len(truth))
        used = self.storage.get_annotated_frames(session_key, sequence, scribble_idx)
        frame = _chosen(values.mean(axis=1), set(used), candidates)
        drawn = self.robot.interact(sequence, prediction, truth, count, frame)
        frames, ids = np.repeat(np.arange(len(truth)), count), np.tile(np.arange(1, count + 1), len(truth))
        self.storage.store_interactions_results(
            user_key, session_key, sequence, scribble_idx, interaction, timing,
            ids.tolist(), frames.tolist(), jaccard.ravel().tolist(), contour.ravel().tolist(),
        )  # fmt: skip
        override = next_scribble_frame_candidates is not None
        self.storage.store_annotated_frame(session_key, sequence, scribble_idx, frame, override)
        return drawn

    def _check(self, sequence: str, scribble_idx: int, interaction: int) -> None:
        if self.max_i and interaction > self.max_i:
            told = f"Interaction {interaction} is higher than the maximum number of interactions {self.max_i}"
            raise ValueError(told)
        if interaction < 1:
            raise ValueError("Interaction value invalid. Should be higher than 0.")
        known = sequence in self.sequences and 1 <= scribble_idx <= self.davis.num_scribbles(sequence)
        if not known:
            raise ValueError(f"Sequence: {sequence} and scribble index: {scribble_idx} invalid")

    def get_report(self, session_id: str | None = None) -> pd.DataFrame:
        """A row for each frame and object of each interaction, of one session or of all."""
        return self.storage.get_report(session_id)

    def summarize_report(self, report: pd.DataFrame) -> dict[str, Any]:
        """The curve over time, its area, and its value at the threshold."""
        samples = {(name, number): self.davis.dataset[name]["num_objects"] for name, number in self.get_samples()[0]}
        terms = SummaryTerms(
            self.metric_to_optimize, self.max_i, self.max_t, self.avg_nb_objects, self.time_threshold, samples
        )
        return summary(report, terms)


def _chosen(values: Any, used: set[int], candidates: set[int]) -> int:
    """The worst frame, of several the first; frames that were used come again only when no other is left."""
    free = candidates if len(used) == len(values) else candidates - used or candidates
    return next(int(one) for one in np.argsort(values, kind="stable") if int(one) in free)


@lru_cache(maxsize=2)
def _truth(dataset: Sequences, sequence: str, count: int) -> tuple[Any, FrameComparison]:
    """A sequence's masks and objects, ready for all sessions that use this dataset."""
    masks = dataset.load_annotations(sequence, np.uint8)
    return masks, FrameComparison(masks, list(range(1, count + 1)))


def as_masks(told: Any) -> Any:
    """Ids as bytes; what is no number is refused before it becomes one."""
    if told is None:
        raise TypeError("int() argument must be a string, a bytes-like object or a number, not 'NoneType'")
    masks = np.asarray(told)
    if masks.dtype.kind == "f" and not np.isfinite(masks).all():
        raise ValueError("The masks hold values that are no numbers (NaN or infinity).")
    return as_ids(masks)


def _candidates(told: Any, frames: int) -> set[int]:
    """The frames to choose from: those that were named and are there, or all."""
    everything = set(range(frames))
    if told is None:
        return everything
    named: Iterable[Any] = told
    numbers = [int(one) for one in named]
    wrong = [one for one in numbers if one not in everything]
    if wrong:
        warnings.warn(f"Candidates that are no frames are ignored: {wrong}", stacklevel=2)
    return everything & set(numbers) or everything
