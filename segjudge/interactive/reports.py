"""The report of a session: stored rows, files, and summary.

A method is judged by a curve over time, its area, and its value at a threshold.
"""

import datetime
import json
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict

import numpy as np
import pandas as pd

from segjudge.system.files import replace

from .dataset import RECORDS, SessionInputError

#: Metric → column of a report.
METRICS = {"J": "jaccard", "F": "contour", "J_AND_F": "j_and_f"}
COLUMNS = ["session_id", "sequence", "scribble_idx", "interaction", "object_id", "frame", *METRICS.values(), "timing"]
#: The time in seconds at which a method's curve is sampled.
THRESHOLD = 60

#: A sequence with one of its sets of first scribbles, numbered from 1.
Sample = tuple[str, int]


class Summary(TypedDict, total=False):
    """The summary: the curve over time, its area, and its value at the threshold, keyed by metric.

    It is empty before the session has ended; a server adds the session's key.
    """

    auc: float
    metric_at_threshold: dict[str, float]
    curve: dict[str, list[float]]
    session_key: str


def read_report(path: str | os.PathLike[str]) -> pd.DataFrame:
    """Read a report's CSV; the name of a sequence is text, even if it is 001, 12e45678 or NA."""
    types = {
        **dict.fromkeys(("session_id", "sequence"), "str"),
        **dict.fromkeys((*METRICS.values(), "timing"), "float64"),
    }
    return pd.read_csv(path, index_col=0, dtype=types, keep_default_na=False, compression=None)


@dataclass(frozen=True)
class SummaryTerms:
    """The terms of a session on which its summary depends."""

    metric: str = "J_AND_F"
    #: The number of interactions with each sample; without a limit, of those that took place.
    interactions: int | None = None
    #: Seconds for each object of a sample.
    seconds: float | None = None
    #: The mean number of objects of a sequence.
    objects: float = 1.0
    threshold: float = THRESHOLD
    #: The number of objects of every sample of the session. Samples without an interaction in time have no row in a
    #: report and count as 0; without this table, only the samples of the report count.
    samples: Mapping[Sample, int] | None = None

    def summarize(self, report: pd.DataFrame) -> Summary:
        times, values = _draw_curve(report, self)
        longest = max(times)
        area = float(np.trapezoid(values, times)) / longest if longest > 0 else 0.0
        at_threshold = float(np.interp(self.threshold, times, values))
        return {
            "auc": area,
            "metric_at_threshold": {"threshold": self.threshold, self.metric: at_threshold},
            "curve": {"time": times, self.metric: values},
        }


def _draw_curve(report: pd.DataFrame, terms: SummaryTerms) -> tuple[list[float], list[float]]:
    """Return time and value after each interaction, with equal weight for all objects of all samples."""
    last_interaction = terms.interactions or (int(report["interaction"].max()) if len(report) else 0)
    longest = last_interaction * float(report["timing"].max()) if len(report) else 0.0
    end_time = terms.objects * terms.seconds if terms.seconds else longest
    if not len(report):
        return [*[0.0] * (last_interaction + 1), float(end_time)], [0.0] * (last_interaction + 2)
    keys = ["sequence", "scribble_idx"]
    column = METRICS[terms.metric]
    by_object = report.groupby([*keys, "object_id", "interaction"])[column].mean().unstack("interaction")  # noqa: PD010 - these are groups
    seconds = report.groupby([*keys, "interaction"])["timing"].first().unstack("interaction")  # noqa: PD010
    interactions = list(range(1, last_interaction + 1))
    # A sample without an interaction keeps its last value, and takes no time.
    means = by_object.reindex(columns=interactions).ffill(axis=1).fillna(0.0).sum(axis=0)
    spent = seconds.reindex(columns=interactions).fillna(0.0).sum(axis=0).cumsum()
    objects, samples = _count_objects_and_samples(by_object.index, seconds.index, terms.samples)
    values = [float(total) / objects for total in means]
    return [0.0, *(float(total) / samples for total in spent), float(end_time)], [0.0, *values, values[-1]]


def _count_objects_and_samples(
    objects: pd.Index, samples: pd.Index, counts_of_session: Mapping[Sample, int] | None
) -> tuple[int, int]:
    """Return the numbers of objects and samples that the means cover: all of the session."""
    if counts_of_session is None:
        return len(objects), len(samples)
    without_rows = [count for sample, count in counts_of_session.items() if sample not in samples]
    return len(objects) + sum(without_rows), len(samples) + len(without_rows)


#: Columns of the table of frames in which the robot drew.
_ANNOTATED_COLUMNS = ["session_id", "sequence", "scribble_idx", "frame", "override"]


class StoredProgress(TypedDict):
    """The progress of a session that a storage keeps beside its rows."""

    #: Sequence, set of scribbles, and the number of stored interactions.
    done: list[tuple[str, int, int]]
    #: Sequence, set of scribbles, frame, and whether the program named candidates.
    annotated: list[tuple[str, int, int, bool]]


class AbstractStorage(ABC):
    """The interface of an evaluation service's storage."""

    @abstractmethod
    def store_interactions_results(  # noqa: PLR0913, PLR0917 - a published signature
        self,
        user_id: str | None,
        session_id: str,
        sequence: str,
        scribble_idx: int,
        interaction: int,
        timing: float,
        objects_idx: Sequence[int],
        frames: Sequence[int],
        jaccard: Sequence[float],
        contour: Sequence[float],
    ) -> bool:
        """Store an interaction, a row for each object of each frame; return True.

        Raises ValueError for values outside [0, 1] or lists of different lengths, and RuntimeError for an interaction
        that is already stored or out of order.
        """

    @abstractmethod
    def get_annotated_frames(self, session_id: str, sequence: str, scribble_idx: int) -> tuple[int, ...]:
        """Return the frames in which the robot drew, in order; empty once it drew in all."""

    @abstractmethod
    def store_annotated_frame(
        self, session_id: str, sequence: str, scribble_idx: int, annotated_frame: int, override: bool  # noqa: FBT001
    ) -> bool:  # fmt: skip
        """Record that the robot drew in a frame (`override`: from named candidates).  Return True."""

    @abstractmethod
    def get_report(self, session_id: str | None = None) -> pd.DataFrame:
        """Return rows by object, frame and interaction, of one session or all."""


class LocalStorage(AbstractStorage):
    """A storage in memory."""

    def __init__(self) -> None:
        self._reports: dict[str, list[pd.DataFrame]] = {}
        self._done: dict[tuple[str, str, int], int] = {}
        self._annotated: list[tuple[str, str, int, int, bool]] = []

    def store_interactions_results(  # noqa: PLR0913, PLR0917 - a published signature
        self,
        user_id: str | None,
        session_id: str,
        sequence: str,
        scribble_idx: int,
        interaction: int,
        timing: float,
        objects_idx: Sequence[int],
        frames: Sequence[int],
        jaccard: Sequence[float],
        contour: Sequence[float],
    ) -> bool:
        del user_id
        _check_values(jaccard, contour, [objects_idx, frames])
        sample = (session_id, sequence, scribble_idx)
        self._check_order(sample, interaction)
        j, f = np.asarray(jaccard, dtype=float), np.asarray(contour, dtype=float)
        ids, numbers = np.asarray(objects_idx, dtype=int), np.asarray(frames, dtype=int)
        values = (*sample, interaction, ids, numbers, j, f, 0.5 * j + 0.5 * f, float(timing))
        self._reports.setdefault(session_id, []).append(pd.DataFrame(dict(zip(COLUMNS, values, strict=True))))
        self._done[sample] = interaction
        return True

    def _check_order(self, sample: tuple[str, str, int], interaction: int) -> None:
        done, subject = self._done.get(sample, 0), f"For {sample[1]} and scribble {sample[2]}"
        if interaction <= done:
            raise RuntimeError(f"{subject} already exist a result for interaction {interaction}")
        if interaction > done + 1:
            raise RuntimeError(f"{subject} does not exist a result for previous interaction {interaction - 1}")

    def get_annotated_frames(self, session_id: str, sequence: str, scribble_idx: int) -> tuple[int, ...]:
        frames = tuple(row[3] for row in self._annotated if row[:3] == (session_id, sequence, scribble_idx))
        count = self._count_frames(session_id, sequence)
        return () if count and set(range(count)) <= set(frames) else frames

    def _count_frames(self, session_id: str, sequence: str) -> int:
        """Return the number of frames of a sequence, as stored or as published."""
        tables = (table for table in self._reports.get(session_id, []) if sequence in table["sequence"].to_numpy())
        last_frame = max((int(table["frame"].max()) for table in tables if len(table)), default=-1)
        if last_frame >= 0 or sequence not in RECORDS:
            return last_frame + 1
        return RECORDS[sequence]["num_frames"]

    def store_annotated_frame(
        self, session_id: str, sequence: str, scribble_idx: int, annotated_frame: int, override: bool  # noqa: FBT001
    ) -> bool:  # fmt: skip
        self._annotated.append((session_id, sequence, scribble_idx, int(annotated_frame), bool(override)))
        return True

    @property
    def annotated_frames(self) -> pd.DataFrame:
        """Return the table of frames in which the robot drew."""
        return pd.DataFrame(self._annotated, columns=_ANNOTATED_COLUMNS)

    def get_report(self, session_id: str | None = None) -> pd.DataFrame:
        sessions = [session_id] if session_id is not None else list(self._reports)
        tables = [table for session in sessions for table in self._reports.get(session, [])]
        return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame([], columns=COLUMNS)

    def progress(self, session_id: str) -> StoredProgress:
        """Return the progress for `restore`: the last interactions and the robot's frames."""
        return {
            "done": [(name, number, done) for (key, name, number), done in self._done.items() if key == session_id],
            "annotated": [row[1:] for row in self._annotated if row[0] == session_id],
        }

    def restore(self, session_id: str, progress: StoredProgress, report: pd.DataFrame) -> None:
        """Restore a progress; later rows of the report are dropped."""
        self._done |= {(session_id, name, number): done for name, number, done in progress["done"]}
        self._annotated += [(session_id, name, number, frame, by) for name, number, frame, by in progress["annotated"]]
        samples = zip(report["sequence"], report["scribble_idx"], strict=True)
        done = [self._done.get((session_id, name, number), 0) for name, number in samples]
        self._reports[session_id] = [report[report["interaction"] <= np.array(done, int)]]


def _check_values(jaccard: Sequence[float], contour: Sequence[float], indices: list[Sequence[int]]) -> None:
    for name, values in (("Jaccard", jaccard), ("Contour", contour)):
        numbers = np.asarray(values, dtype=float)
        if not ((numbers >= 0) & (numbers <= 1)).all():
            raise ValueError(f"{name} values must be between 0 and 1")
    lengths = {len(values) for values in (jaccard, contour, *indices)}
    if len(lengths) > 1:
        raise ValueError(f"Objects, frames, Jaccard and contour values must have the same length, not {lengths}")


_STATE = ".state.json"
#: The ending of a report's name while its session runs.
TEMPORARY = ".tmp.csv"


class ReportFiles:
    """The files of a session, each written atomically, so that killed programs leave complete reports.

    `summary_name` is the summary file of a finished session, if any.
    """

    def __init__(self, folder: str | os.PathLike[str], summary_name: str | None = None) -> None:
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.name = _choose_name(self.folder)
        self._summary_name = summary_name

    @property
    def temporary_path(self) -> Path:
        """Return the path of the report while the session runs."""
        return self.folder / f"{self.name}{TEMPORARY}"

    @property
    def _state(self) -> Path:
        return self.folder / f"{self.name}{_STATE}"

    def write_report(self, report: pd.DataFrame) -> None:
        replace(self.temporary_path, report.to_csv())

    def write_state(self, state: Mapping[str, object], *, private: bool = False) -> None:
        """Write the state as JSON; a private file can be read by its owner alone."""
        replace(self._state, json.dumps(state), private=private)

    def resume(self, matches: Callable[[dict[str, Any]], bool], description: str) -> dict[str, Any]:
        """Resume the newest unfinished session with a matching state; return that state."""
        paths = sorted(self.folder.glob(f"result_*{_STATE}"), key=lambda path: path.stat().st_mtime_ns)
        for path in reversed(paths):
            try:
                state: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            except ValueError as error:
                raise SessionInputError(f"{path}: cannot be read ({error})") from None
            if matches(state):
                self.name = path.name.removesuffix(_STATE)
                return state
        raise SessionInputError(f"resume: {self.folder} has no unfinished session {description}")

    def finish(self, report: pd.DataFrame, summary: Summary) -> None:
        """Write the final report; the state is removed last, so that an interrupted end is repeated."""
        if self._summary_name is not None:
            replace(self.folder / self._summary_name, json.dumps(summary))
        replace(self.folder / f"{self.name}.csv", report.to_csv())
        self._state.unlink(missing_ok=True)
        self.temporary_path.unlink(missing_ok=True)


def _choose_name(folder: Path) -> str:
    """Return the session's name: the local time, numbered if taken."""
    name = datetime.datetime.now().strftime("result_%Y%m%d_%H%M%S")  # noqa: DTZ005 - local time
    names = [name, *(f"{name}_{number}" for number in range(2, 1000))]
    return next((candidate for candidate in names if not any(folder.glob(f"{candidate}.*"))), name)
