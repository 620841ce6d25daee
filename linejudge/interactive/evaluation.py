"""What happens to submitted masks: measure them, remember, choose the frame for the robot, and sum up."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pandas as pd

from .dataset import Davis
from .metrics import batched_f_measure, batched_jaccard
from .robot import InteractiveScribblesRobot

METRICS = {"J": "jaccard", "F": "contour", "J_AND_F": "j_and_f"}
COLUMNS = ["session_id", "sequence", "scribble_idx", "interaction", "object_id", "frame", *METRICS.values(), "timing"]
#: What the sessions of the challenge gave their robot.
ROBOT = {"kernel_size": 0.2, "max_kernel_radius": 16, "min_nb_nodes": 4, "nb_points": 1000}
#: Seconds at which a method's curve is read.
THRESHOLD = 60


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
    ) -> None:
        del storage  # what was submitted is kept here
        if metric_to_optimize not in METRICS:
            raise ValueError(f"metric_to_optimize not between available metrics: {tuple(METRICS)}")
        self.davis = Davis(davis_root)
        self.sequences = self.davis.sequences(subset)
        self.davis.check_files(self.sequences)
        self.max_t, self.max_i, self.metric = max_t, max_i, metric_to_optimize
        self.time_threshold = time_threshold or THRESHOLD
        self.robot = InteractiveScribblesRobot(**(robot_parameters or ROBOT), clock=clock)
        self._rows: list[dict[str, Any]] = []
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
        samples = [
            (name, number + 1) for name in self.sequences for number in range(len(self.davis.scribble_paths(name)))
        ]
        return samples, self.max_t, self.max_i

    def get_scribble(self, sequence: str, scribble_idx: int) -> dict[str, Any]:
        """What was drawn first, with a list for each frame."""
        if sequence not in self.sequences:
            raise ValueError(f"Invalid sequence: {sequence}")
        if not 1 <= scribble_idx <= len(self.davis.scribble_paths(sequence)):
            raise ValueError(f"Invalid scribble index: {scribble_idx}")
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
        truth = self.davis.load_annotations(sequence)
        prediction = as_masks(pred_masks)
        count = self.davis.dataset[sequence]["num_objects"]
        jaccard = batched_jaccard(truth, prediction, average_over_objects=False, nb_objects=count)
        contour = batched_f_measure(truth, prediction, average_over_objects=False, nb_objects=count)
        measured = {"jaccard": jaccard, "contour": contour, "j_and_f": 0.5 * jaccard + 0.5 * contour}
        candidates = _candidates(next_scribble_frame_candidates, len(truth))
        frame = self._chosen(sample, measured[METRICS[self.metric]].mean(axis=1), candidates)
        drawn = self.robot.interact(sequence, prediction, truth, count, frame)
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
        known = sequence in self.sequences and 1 <= number <= len(self.davis.scribble_paths(sequence))
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
        session, sequence, number = sample
        frames, objects = measured["jaccard"].shape
        for frame in range(frames):
            for one in range(objects):
                self._rows.append(
                    {
                        "session_id": session,
                        "sequence": sequence,
                        "scribble_idx": number,
                        "interaction": interaction,
                        "object_id": one + 1,
                        "frame": frame,
                        **{name: float(values[frame, one]) for name, values in measured.items()},
                        "timing": timing,
                    }
                )
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
        rows: list[dict[str, Any]] = report.to_dict("records")  # type: ignore[assignment,unused-ignore]
        done = self._done
        self._rows += [
            row for row in rows if row["interaction"] <= done.get((session_id, row["sequence"], row["scribble_idx"]), 0)
        ]

    def get_report(self, session_id: str = "") -> pd.DataFrame:
        """A row for each frame and object of each interaction."""
        rows = [row for row in self._rows if row["session_id"] == session_id]
        return pd.DataFrame(rows, columns=COLUMNS)

    def summarize_report(self, report: pd.DataFrame) -> dict[str, Any]:
        """The curve over time, its area, and its value at the threshold."""
        times, values = self._curve(report)
        longest = max(times)
        area = float(np.trapezoid(values, times)) / longest if longest > 0 else 0.0
        at = float(np.interp(self.time_threshold, times, values))
        return {
            "auc": area,
            "metric_at_threshold": {"threshold": self.time_threshold, self.metric: at},
            "curve": {"time": times, self.metric: values},
        }

    def _curve(self, report: pd.DataFrame) -> tuple[list[float], list[float]]:
        """Time and value after each interaction: every object of every sample counts alike, and so does every time."""
        last = self.max_i or (int(report["interaction"].max()) if len(report) else 0)
        if not len(report):
            return [0.0] * (last + 2), [0.0] * (last + 2)
        keys = ["sequence", "scribble_idx"]
        column = METRICS[self.metric]
        by_object = report.groupby([*keys, "object_id", "interaction"])[column].mean().unstack("interaction")  # noqa: PD010 - these are groups
        seconds = report.groupby([*keys, "interaction"])["timing"].first().unstack("interaction")  # noqa: PD010
        wanted = list(range(1, last + 1))
        # What a sample did not reach stays as it was, and takes no time.
        means = by_object.reindex(columns=wanted).ffill(axis=1).fillna(0.0).mean(axis=0)
        spent = seconds.reindex(columns=wanted).fillna(0.0).mean(axis=0).cumsum()
        end = self.avg_nb_objects * self.max_t if self.max_t else last * float(report["timing"].max())
        values = [float(one) for one in means]
        return [0.0, *(float(one) for one in spent), float(end)], [0.0, *values, values[-1]]


def as_masks(told: Any) -> Any:
    """Ids as whole numbers; what is no number is refused before it becomes one."""
    if told is None:
        raise TypeError("int() argument must be a string, a bytes-like object or a number, not 'NoneType'")
    masks = np.asarray(told)
    if masks.dtype.kind == "f" and not np.isfinite(masks).all():
        raise ValueError("The masks hold values that are no numbers (NaN or infinity).")
    return masks.astype(int)


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
