"""What happens to submitted masks: measure them, remember, choose the frame for the robot, and sum up."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd

from linejudge.objects import Objects

from .dataset import Davis, Sequences
from .metrics import as_ids, object_ids
from .robot import InteractiveScribblesRobot
from .summary import COLUMNS, METRICS, THRESHOLD, Terms, summary

#: What the sessions of the challenge gave their robot.
ROBOT = {"kernel_size": 0.2, "max_kernel_radius": 16, "min_nb_nodes": 4, "nb_points": 1000}


class EvaluationService:
    """Knows the truth of a subset; sessions ask it."""

    def __init__(  # noqa: PLR0913, PLR0917 - the signature that programs know
        self,
        subset: str,
        storage: None = None,
        davis_root: str | None = None,
        robot_parameters: dict[str, Any] | None = None,
        max_t: float | None = None,
        max_i: int | None = None,
        metric_to_optimize: str = "J_AND_F",
        time_threshold: float | None = None,
        *,
        clock: Callable[[], float] = time.time,
        dataset: Sequences | None = None,
    ) -> None:
        del storage  # what was submitted is kept here
        if metric_to_optimize not in METRICS:
            raise ValueError(f"metric_to_optimize not between available metrics: {tuple(METRICS)}")
        self.davis = Davis(davis_root) if dataset is None else dataset
        self.sequences = self.davis.sequences(subset)
        self.davis.check_files(self.sequences)
        self.max_t, self.max_i, self.metric = max_t, max_i, metric_to_optimize
        self.time_threshold = time_threshold or THRESHOLD
        self.robot = InteractiveScribblesRobot(**(robot_parameters or ROBOT), clock=clock)
        self._reports: dict[str, list[pd.DataFrame]] = {}
        self._done: dict[tuple[str, str, int], int] = {}
        self._used: dict[tuple[str, str, int], set[int]] = {}
        #: Which frame the robot drew in: sequence, scribble_idx, frame, override.
        self.annotated: list[tuple[str, int, int, bool]] = []

    @property
    def avg_nb_objects(self) -> float:
        """Over the sequences of the subset."""
        return float(sum(self.davis.dataset[one]["num_objects"] for one in self.sequences)) / len(self.sequences)

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
        _ = self.davis.dataset[sequence]  # masks that cannot be read are found before a method's time begins
        return self.davis.load_scribble(sequence, scribble_idx)

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
        del user_key
        sample = (session_key, sequence, scribble_idx)
        self._check(sample, interaction)
        truth = self.davis.load_annotations(sequence, np.uint8)
        prediction = as_masks(pred_masks)
        object_ids(truth, prediction, self.davis.dataset[sequence]["num_objects"])
        jaccard, contour = _objects(self.davis, sequence).similarities(prediction)
        measured = {"jaccard": jaccard, "contour": contour, "j_and_f": 0.5 * jaccard + 0.5 * contour}
        candidates = _candidates(next_scribble_frame_candidates, len(truth))
        frame = self._chosen(sample, measured[METRICS[self.metric]].mean(axis=1), candidates)
        drawn = self.robot.interact(sequence, prediction, truth, jaccard.shape[1], frame)
        self._keep(sample, interaction, timing, measured)
        self.annotated.append((sequence, scribble_idx, frame, next_scribble_frame_candidates is not None))
        return drawn

    def _check(self, sample: tuple[str, str, int], interaction: int) -> None:
        _, sequence, number = sample
        if self.max_i and interaction > self.max_i:
            told = f"Interaction {interaction} is higher than the maximum number of interactions {self.max_i}"
            raise ValueError(told)
        if interaction < 1:
            raise ValueError("Interaction value invalid. Should be higher than 0.")
        known = sequence in self.sequences and 1 <= number <= self.davis.num_scribbles(sequence)
        if not known:
            raise ValueError(f"Sequence: {sequence} and scribble index: {number} invalid")
        done = self._done.get(sample, 0)
        if interaction <= done:
            told = f"For {sequence} and scribble {number} already exist a result for interaction {interaction}"
            raise RuntimeError(told)
        if interaction > done + 1:
            told = f"For {sequence} and scribble {number} does not exist a result for previous interaction"
            raise RuntimeError(f"{told} {interaction - 1}")

    def _chosen(self, sample: tuple[str, str, int], values: Any, candidates: set[int]) -> int:
        """The worst frame, of several the first; frames that were used come again only when no other is left."""
        used = self._used.setdefault(sample, set())
        everywhere = len(used) == len(values)
        free = candidates if everywhere else candidates - used or candidates
        frame = next(int(one) for one in np.argsort(values, kind="stable") if int(one) in free)
        used.add(frame)
        return frame

    def _keep(self, sample: tuple[str, str, int], interaction: int, timing: float, measured: dict[str, Any]) -> None:
        """A row for each frame and object, the objects of a frame together."""
        session, sequence, number = sample
        frames, objects = measured["jaccard"].shape
        told = {
            "session_id": session,
            "sequence": sequence,
            "scribble_idx": number,
            "interaction": interaction,
            "object_id": np.tile(np.arange(1, objects + 1), frames),
            "frame": np.repeat(np.arange(frames), objects),
            **{name: values.ravel() for name, values in measured.items()},
            "timing": timing,
        }
        self._reports.setdefault(session, []).append(pd.DataFrame(told, columns=COLUMNS))
        self._done[sample] = interaction

    def state(self, session_id: str) -> dict[str, Any]:
        """What a session has behind it beside its rows: which frames the robot used, and up to where samples came."""
        return {
            "used": [
                [name, number, sorted(used)] for (key, name, number), used in self._used.items() if key == session_id
            ],
            "done": [[name, number, done] for (key, name, number), done in self._done.items() if key == session_id],
            "annotated": self.annotated,
        }

    def restore(self, session_id: str, state: dict[str, Any], report: pd.DataFrame) -> None:
        """As it was when that state was taken; later rows of a report are none."""
        self._used |= {(session_id, name, number): set(used) for name, number, used in state["used"]}
        self._done |= {(session_id, name, number): done for name, number, done in state["done"]}
        self.annotated = [(name, number, frame, override) for name, number, frame, override in state["annotated"]]
        done = [
            self._done.get((session_id, name, number), 0)
            for name, number in zip(report["sequence"], report["scribble_idx"], strict=True)
        ]
        self._reports[session_id] = [report[report["interaction"] <= np.array(done, int)]]

    def get_report(self, session_id: str = "") -> pd.DataFrame:
        """A row for each frame and object of each interaction."""
        parts = self._reports.get(session_id)
        return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame([], columns=COLUMNS)

    def summarize_report(self, report: pd.DataFrame) -> dict[str, Any]:
        """The curve over time, its area, and its value at the threshold."""
        terms = Terms(self.metric, self.max_i, self.max_t, self.avg_nb_objects, self.time_threshold)
        return summary(report, terms)


@lru_cache(maxsize=4)
def _objects(dataset: Sequences, sequence: str) -> Objects:
    """A sequence's objects, ready for all sessions that use this dataset."""
    count = dataset.dataset[sequence]["num_objects"]
    return Objects(dataset.load_annotations(sequence, np.uint8), list(range(1, count + 1)))


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
