"""Where an evaluation service keeps what was measured and in which frames the robot drew."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from .summary import COLUMNS

#: Columns of the table of frames in which the robot drew.
ANNOTATED_COLUMNS = ["session_id", "sequence", "scribble_idx", "frame", "override"]


class AbstractStorage(ABC):
    """What an evaluation service asks of its storage."""

    @abstractmethod
    def store_interactions_results(  # noqa: PLR0913, PLR0917 - the signature that programs know
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
        """Keep an interaction, a row for each object of each frame.

        Raises ValueError for values that are not in [0, 1] or lists of different lengths, and RuntimeError for an
        interaction that is there already or does not follow the one before it.
        """

    @abstractmethod
    def get_annotated_frames(self, session_id: str, sequence: str, scribble_idx: int) -> tuple[int, ...]:
        """Return the frames in which the robot drew, in their order in time."""

    @abstractmethod
    def store_annotated_frame(
        self, session_id: str, sequence: str, scribble_idx: int, annotated_frame: int, override: bool  # noqa: FBT001
    ) -> bool:  # fmt: skip
        """Keep that the robot drew in a frame; `override` says that the program named candidates."""

    @abstractmethod
    def get_report(self, session_id: str | None = None) -> pd.DataFrame:
        """Return a row for each object and frame of each interaction, of one session or of all."""


class LocalStorage(AbstractStorage):
    """Keeps everything in memory."""

    def __init__(self) -> None:
        self._reports: dict[str, list[pd.DataFrame]] = {}
        self._done: dict[tuple[str, str, int], int] = {}
        self._annotated: list[tuple[str, str, int, int, bool]] = []

    def store_interactions_results(  # noqa: PLR0913, PLR0917 - the signature that programs know
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
        told = {
            "session_id": session_id,
            "sequence": sequence,
            "scribble_idx": scribble_idx,
            "interaction": interaction,
            "object_id": np.asarray(objects_idx, dtype=int),
            "frame": np.asarray(frames, dtype=int),
            "jaccard": j,
            "contour": f,
            "j_and_f": 0.5 * j + 0.5 * f,
            "timing": float(timing),
        }
        self._reports.setdefault(session_id, []).append(pd.DataFrame(told, columns=COLUMNS))
        self._done[sample] = interaction
        return True

    def _check_order(self, sample: tuple[str, str, int], interaction: int) -> None:
        _, sequence, number = sample
        done = self._done.get(sample, 0)
        if interaction <= done:
            told = f"For {sequence} and scribble {number} already exist a result for interaction {interaction}"
            raise RuntimeError(told)
        if interaction > done + 1:
            told = f"For {sequence} and scribble {number} does not exist a result for previous interaction"
            raise RuntimeError(f"{told} {interaction - 1}")

    def get_annotated_frames(self, session_id: str, sequence: str, scribble_idx: int) -> tuple[int, ...]:
        sample = (session_id, sequence, scribble_idx)
        return tuple(one[3] for one in self._annotated if one[:3] == sample)

    def store_annotated_frame(
        self, session_id: str, sequence: str, scribble_idx: int, annotated_frame: int, override: bool  # noqa: FBT001
    ) -> bool:  # fmt: skip
        self._annotated.append((session_id, sequence, scribble_idx, int(annotated_frame), bool(override)))
        return True

    @property
    def annotated_frames(self) -> pd.DataFrame:
        """The table of frames in which the robot drew."""
        return pd.DataFrame(self._annotated, columns=ANNOTATED_COLUMNS)

    def get_report(self, session_id: str | None = None) -> pd.DataFrame:
        wanted = [session_id] if session_id is not None else list(self._reports)
        parts = [part for one in wanted for part in self._reports.get(one, [])]
        return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame([], columns=COLUMNS)

    def state(self, session_id: str) -> dict[str, Any]:
        """What a session has behind it beside its rows: how far samples came, and in which frames the robot drew."""
        return {
            "done": [[name, number, done] for (key, name, number), done in self._done.items() if key == session_id],
            "annotated": [list(one[1:]) for one in self._annotated if one[0] == session_id],
        }

    def restore(self, session_id: str, state: dict[str, Any], report: pd.DataFrame) -> None:
        """Go back to that state; rows of the report that are later than it are dropped."""
        self._done |= {(session_id, name, number): done for name, number, done in state["done"]}
        self._annotated += [(session_id, name, number, frame, by) for name, number, frame, by in state["annotated"]]
        done = [
            self._done.get((session_id, name, number), 0)
            for name, number in zip(report["sequence"], report["scribble_idx"], strict=True)
        ]
        self._reports[session_id] = [report[report["interaction"] <= np.array(done, int)]]


def _check_values(jaccard: Sequence[float], contour: Sequence[float], others: list[Sequence[int]]) -> None:
    for name, values in (("Jaccard", jaccard), ("Contour", contour)):
        found = np.asarray(values, dtype=float)
        if not ((found >= 0) & (found <= 1)).all():
            raise ValueError(f"{name} values must be between 0 and 1")
    lengths = {len(values) for values in (jaccard, contour, *others)}
    if len(lengths) > 1:
        raise ValueError(f"Objects, frames, Jaccard and contour values must have the same length, not {lengths}")
