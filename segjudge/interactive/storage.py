"""The storage of an evaluation service: the measurements, and the frames in which the robot drew."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TypedDict

import numpy as np
import pandas as pd

from .davis_catalogue import RECORDS
from .summary import COLUMNS

#: Columns of the table of frames in which the robot drew.
ANNOTATED_COLUMNS = ["session_id", "sequence", "scribble_idx", "frame", "override"]


class StoredProgress(TypedDict):
    """What a storage keeps of a session beside its rows."""

    #: Sequence, set of scribbles, and the interactions that were stored.
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

        Raises ValueError for values that are not in [0, 1] or lists of different lengths, and RuntimeError for an
        interaction that is stored already or does not follow the one before it.
        """

    @abstractmethod
    def get_annotated_frames(self, session_id: str, sequence: str, scribble_idx: int) -> tuple[int, ...]:
        """Return the frames in which the robot drew, in the order in which it did; nothing once it drew in all."""

    @abstractmethod
    def store_annotated_frame(
        self, session_id: str, sequence: str, scribble_idx: int, annotated_frame: int, override: bool  # noqa: FBT001
    ) -> bool:  # fmt: skip
        """Store that the robot drew in a frame; `override` says that the program named candidates.  Return True."""

    @abstractmethod
    def get_report(self, session_id: str | None = None) -> pd.DataFrame:
        """Return a row for each object and frame of each interaction, of one session or of all."""


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
        done, where = self._done.get(sample, 0), f"For {sample[1]} and scribble {sample[2]}"
        if interaction <= done:
            raise RuntimeError(f"{where} already exist a result for interaction {interaction}")
        if interaction > done + 1:
            raise RuntimeError(f"{where} does not exist a result for previous interaction {interaction - 1}")

    def get_annotated_frames(self, session_id: str, sequence: str, scribble_idx: int) -> tuple[int, ...]:
        frames = tuple(row[3] for row in self._annotated if row[:3] == (session_id, sequence, scribble_idx))
        count = self._frame_count(session_id, sequence)
        return () if count and set(range(count)) <= set(frames) else frames

    def _frame_count(self, session_id: str, sequence: str) -> int:
        """Return how many frames a sequence has: by what was stored of it, else as it was published."""
        parts = (part for part in self._reports.get(session_id, []) if sequence in part["sequence"].to_numpy())
        last = max((int(part["frame"].max()) for part in parts if len(part)), default=-1)
        if last >= 0 or sequence not in RECORDS:
            return last + 1
        return RECORDS[sequence]["num_frames"]

    def store_annotated_frame(
        self, session_id: str, sequence: str, scribble_idx: int, annotated_frame: int, override: bool  # noqa: FBT001
    ) -> bool:  # fmt: skip
        self._annotated.append((session_id, sequence, scribble_idx, int(annotated_frame), bool(override)))
        return True

    @property
    def annotated_frames(self) -> pd.DataFrame:
        """Return the table of frames in which the robot drew."""
        return pd.DataFrame(self._annotated, columns=ANNOTATED_COLUMNS)

    def get_report(self, session_id: str | None = None) -> pd.DataFrame:
        sessions = [session_id] if session_id is not None else list(self._reports)
        parts = [part for session in sessions for part in self._reports.get(session, [])]
        return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame([], columns=COLUMNS)

    def progress(self, session_id: str) -> StoredProgress:
        """Return what `restore` needs beside the report: the last interactions, and the frames of the robot."""
        return {
            "done": [(name, number, done) for (key, name, number), done in self._done.items() if key == session_id],
            "annotated": [row[1:] for row in self._annotated if row[0] == session_id],
        }

    def restore(self, session_id: str, progress: StoredProgress, report: pd.DataFrame) -> None:
        """Return to that progress; rows of the report that are later than it are dropped."""
        self._done |= {(session_id, name, number): done for name, number, done in progress["done"]}
        self._annotated += [(session_id, name, number, frame, by) for name, number, frame, by in progress["annotated"]]
        samples = zip(report["sequence"], report["scribble_idx"], strict=True)
        done = [self._done.get((session_id, name, number), 0) for name, number in samples]
        self._reports[session_id] = [report[report["interaction"] <= np.array(done, int)]]


def _check_values(jaccard: Sequence[float], contour: Sequence[float], others: list[Sequence[int]]) -> None:
    for name, values in (("Jaccard", jaccard), ("Contour", contour)):
        numbers = np.asarray(values, dtype=float)
        if not ((numbers >= 0) & (numbers <= 1)).all():
            raise ValueError(f"{name} values must be between 0 and 1")
    lengths = {len(values) for values in (jaccard, contour, *others)}
    if len(lengths) > 1:
        raise ValueError(f"Objects, frames, Jaccard and contour values must have the same length, not {lengths}")
