"""The evaluation of masks: measuring, storing, the robot's frames, and summaries."""

import os
import time
import warnings
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import TypedDict

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from segjudge.evaluation_script.masks.stack import Array
from segjudge.families.sequences.comparison import FrameComparison

from .dataset import Davis, InteractiveDataset, SessionInputError, lists_of, load_first_scribbles, root_of
from .masks import as_ids, object_ids
from .reports import METRICS, THRESHOLD, AbstractStorage, LocalStorage, Sample, Summary, SummaryTerms
from .robot import InteractiveScribblesRobot
from .scribbles import Scribbles


class _RobotParameters(TypedDict, total=False):
    """The parameters of a robot; omitted ones have the robot's defaults."""

    kernel_size: float
    max_kernel_radius: float
    min_nb_nodes: int
    nb_points: int


#: The robot's parameters in the sessions of the challenge.
ROBOT_DEFAULT_PARAMETERS: _RobotParameters = {
    "kernel_size": 0.2,
    "max_kernel_radius": 16,
    "min_nb_nodes": 4,
    "nb_points": 1000,
}
#: The subset whose masks were never published.
UNPUBLISHED = "test-dev"


class EvaluationService:
    """A service that measures masks against a subset's truth and lets the robot draw on errors."""

    def __init__(  # noqa: PLR0913, PLR0917 - a published signature
        self,
        subset: str,
        storage: AbstractStorage | None = None,
        davis_root: str | os.PathLike[str] | None = None,
        robot_parameters: _RobotParameters | None = None,
        max_t: float | None = None,
        max_i: int | None = None,
        metric_to_optimize: str = "J_AND_F",
        time_threshold: float | None = None,
        *,
        clock: Callable[[], float] = time.time,
        dataset: InteractiveDataset | None = None,
    ) -> None:
        if metric_to_optimize not in METRICS:
            raise ValueError(f"metric_to_optimize not between available metrics: {tuple(METRICS)}")
        if dataset is None and subset not in {**Davis.sets, **lists_of(root_of(davis_root))}:
            raise SessionInputError(f"Subset must be a valid subset: {Davis.sets.keys()}")
        self.davis: InteractiveDataset = Davis(davis_root) if dataset is None else dataset
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
        counts = [self.davis.dataset[name]["num_objects"] for name in self.sequences]
        return float(sum(counts)) / len(counts)

    @property
    def num_entries(self) -> int:
        """Return the number of rows of a complete report, or of one interaction without a limit."""
        records = ((name, self.davis.dataset[name]) for name in self.sequences)
        rows = sum(
            self.davis.num_scribbles(name) * record["num_frames"] * record["num_objects"] for name, record in records
        )
        return rows * (self.max_i or 1)

    def get_samples(self) -> tuple[list[Sample], float | None, int | None]:
        """Return every sequence with each set of scribbles, and the limits."""
        samples = [(name, number + 1) for name in self.sequences for number in range(self.davis.num_scribbles(name))]
        return samples, self.max_t, self.max_i

    def get_scribble(self, sequence: str, scribble_idx: int) -> Scribbles:
        """Load the first scribbles, with a list for each frame."""
        if sequence not in self.sequences:
            raise ValueError(f"Invalid sequence: {sequence}")
        if not 1 <= scribble_idx <= self.davis.num_scribbles(sequence):
            raise ValueError(f"Invalid scribble index: {scribble_idx}")
        # The record may read the masks, so errors in them are raised here, before a method's time begins.
        return load_first_scribbles(self.davis, sequence, scribble_idx)

    get_starting_scribble = get_scribble

    def post_predicted_masks(  # noqa: PLR0913, PLR0917 - a published signature
        self,
        sequence: str,
        scribble_idx: int,
        pred_masks: ArrayLike,
        timing: float,
        interaction: int,
        user_key: str | None = None,
        session_key: str = "",
        next_scribble_frame_candidates: Iterable[int] | None = None,
    ) -> Scribbles:
        """Measure and store masks; return the robot's scribbles in the worst unused frame.

        Errors are raised before anything is stored, so the call may be repeated.
        """
        self._check(sequence, scribble_idx, interaction)
        count = self.davis.dataset[sequence]["num_objects"]
        truth, comparison = _load_truth(self.davis, sequence, count)
        prediction = as_masks(pred_masks)
        object_ids(truth, prediction, count)
        jaccard, contour = comparison.similarities(prediction)
        values = {"J": jaccard, "F": contour, "J_AND_F": 0.5 * jaccard + 0.5 * contour}[self.metric_to_optimize]
        candidates = _choose_candidates(next_scribble_frame_candidates, len(truth))
        used_frames = self.storage.get_annotated_frames(session_key, sequence, scribble_idx)
        frame = _find_worst_frame(values.mean(axis=1), set(used_frames), candidates)
        scribbles = self.robot.interact(sequence, prediction, truth, count, frame)
        frames, ids = np.repeat(np.arange(len(truth)), count), np.tile(np.arange(1, count + 1), len(truth))
        self.storage.store_interactions_results(
            user_key, session_key, sequence, scribble_idx, interaction, timing,
            ids.tolist(), frames.tolist(), jaccard.ravel().tolist(), contour.ravel().tolist(),
        )  # fmt: skip
        override = next_scribble_frame_candidates is not None
        self.storage.store_annotated_frame(session_key, sequence, scribble_idx, frame, override)
        return scribbles

    def _check(self, sequence: str, scribble_idx: int, interaction: int) -> None:
        if self.max_i and interaction > self.max_i:
            raise ValueError(
                f"Interaction {interaction} is higher than the maximum number of interactions {self.max_i}"
            )
        if interaction < 1:
            raise ValueError("Interaction value invalid. Should be higher than 0.")
        if sequence not in self.sequences or not 1 <= scribble_idx <= self.davis.num_scribbles(sequence):
            raise ValueError(f"Sequence: {sequence} and scribble index: {scribble_idx} invalid")

    def get_report(self, session_id: str | None = None) -> pd.DataFrame:
        return self.storage.get_report(session_id)

    def summarize_report(self, report: pd.DataFrame) -> Summary:
        samples = {(name, number): self.davis.dataset[name]["num_objects"] for name, number in self.get_samples()[0]}
        terms = SummaryTerms(
            self.metric_to_optimize, self.max_i, self.max_t, self.avg_nb_objects, self.time_threshold, samples
        )
        return terms.summarize(report)


def _find_worst_frame(values: Array, used_frames: set[int], candidates: set[int]) -> int:
    """Return the first frame of lowest value, preferring unused frames."""
    free_frames = candidates if len(used_frames) == len(values) else candidates - used_frames or candidates
    return next(int(frame) for frame in np.argsort(values, kind="stable") if int(frame) in free_frames)


@lru_cache(maxsize=2)
def _load_truth(dataset: InteractiveDataset, sequence: str, count: int) -> tuple[Array, FrameComparison]:
    """Return a sequence's masks and their comparison, shared by all sessions of the dataset."""
    masks = dataset.load_annotations(sequence, np.uint8)
    return masks, FrameComparison(masks, list(range(1, count + 1)))


def as_masks(values: ArrayLike | None) -> Array:
    """Return ids as bytes; raises TypeError or ValueError for values that are not finite numbers."""
    if values is None:
        raise TypeError("int() argument must be a string, a bytes-like object or a number, not 'NoneType'")
    masks = np.asarray(values)
    if masks.dtype.kind == "f" and not np.isfinite(masks).all():
        raise ValueError("The masks hold values that are not finite numbers (NaN or infinity).")
    return as_ids(masks)


def _choose_candidates(named_frames: Iterable[int] | None, frames: int) -> set[int]:
    """Return the candidate frames: the named ones that exist, or all."""
    all_frames = set(range(frames))
    if named_frames is None:
        return all_frames
    numbers = [int(number) for number in named_frames]
    unknown = [number for number in numbers if number not in all_frames]
    if unknown:
        warnings.warn(f"Candidates that are not frames are ignored: {unknown}", stacklevel=2)
    return all_frames & set(numbers) or all_frames
