"""Sequences of cells in memory: label maps of all frames, and their tracks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from segjudge.evaluation_script.families.base.units import TruthFrame, Unit, UnitCounts
from segjudge.evaluation_script.families.cells.engine import count_sequence
from segjudge.evaluation_script.families.cells.files import LABELS_END, judge_tracks
from segjudge.evaluation_script.files.problems import Problems
from segjudge.evaluation_script.masks.overlaps import LabelMap
from segjudge.evaluation_script.masks.stack import Array
from segjudge.families.base.memory import SamplesInMemory, read_array, refusal

_FORM = "Give {'masks': (frames, [slices,] height, width), 'tracks': [[label, first, last, parent], ...]}"
_CELLS = (
    "Give outlines as {'cells': {frame: (height, width) or (slices, height, width), (frame, slice): (height, width)}}"
)


class CellsInMemory(SamplesInMemory):
    """A counter of sequences: masks and tracks of both sides, and outlines in some true frames."""

    may_be_listed = False

    def count(self, sequence: str, frame: str, prediction: object, truth: object) -> bytes:
        (true_masks, true_tracks), (masks, tracks) = (
            _read_side(side, f"{name} of {sequence}") for name, side in (("truth", truth), ("prediction", prediction))
        )
        if true_masks.shape != masks.shape:
            fault = f"has the shape {masks.shape}; the truth has {true_masks.shape}"
            raise refusal(f"prediction of {sequence}", fault, "Give every frame at its size")
        slices, height, width = true_masks.shape[1:]

        def open_frame(labels: Array, rows: list[list[int]]) -> TruthFrame:
            flat = labels.reshape(-1, width)
            return TruthFrame("", flat.shape, rows, lambda: LabelMap(flat))

        frames = [open_frame(labels, []) for labels in true_masks]
        cells = truth.get("cells", {}) if isinstance(truth, Mapping) else {}
        for key, labels in cells.items():
            number, cut = key if isinstance(key, tuple) else (key, -1)
            outlines = _read_labels(labels, f"truth of {sequence}, outlines of frame {number}")
            whole = (slices, height, width) if cut < 0 else (1, height, width)
            if not (0 <= number < len(true_masks) and -1 <= cut < slices and outlines.size == np.prod(whole)):
                fault = f"has the shape {outlines.shape}, which does not match the sequence's frames {true_masks.shape}"
                raise refusal(f"truth of {sequence}, outlines {key}", fault, _CELLS)
            frames.append(open_frame(outlines, [[int(number), int(cut)]]))
        unit = Unit(sequence, len(true_masks), lambda: frames, {"tracks": true_tracks.tolist(), "slices": slices})
        problems = Problems()
        members = [f"prediction of {sequence}, frame {index}" for index in range(len(true_masks))]

        def read(index: int, _frame: TruthFrame) -> Array:
            flat: Array = masks[index].reshape(-1, width)
            return flat

        tables = count_sequence(unit, tracks, members, read, (self.protocol, problems))
        problems.raise_if_any()
        return UnitCounts("", tables).encode()


def _read_labels(values: object, location: str) -> Array:
    labels = read_array(values, location)
    if labels.dtype.kind not in "ui" or not labels.size or labels.ndim < 2:
        raise refusal(
            location, f"is of {labels.dtype} and has the shape {labels.shape}", "Give labels as whole numbers"
        )
    if labels.min() < 0 or labels.max() >= LABELS_END:
        raise refusal(location, "has a label beyond 16 bits", "Number cells from 1, with 0 as background")
    return labels.astype(np.uint16, copy=False)


def _read_side(side: object, location: str) -> tuple[Array, Array]:
    """Read masks (frames, slices, height, width) and tracks."""
    if not isinstance(side, Mapping) or not {"masks", "tracks"} <= side.keys():
        raise refusal(location, "has no masks and tracks", _FORM)
    masks: Any = _read_labels(side["masks"], location)
    masks = masks[:, None] if masks.ndim == 3 else masks
    tracks = read_array(side["tracks"], f"{location}, tracks").reshape(-1)
    if masks.ndim != 4 or tracks.dtype.kind not in "uif" or len(tracks) % 4 or (tracks != np.round(tracks)).any():
        raise refusal(
            location, f"has masks of the shape {masks.shape}, or tracks that are not four numbers each", _FORM
        )
    rows = tracks.astype(np.int64).reshape(-1, 4)
    problems = Problems()
    for flaw in judge_tracks(rows, len(masks)):
        problems.add(flaw.as_problem(f"{location}, tracks"))
    problems.raise_if_any()
    return masks, rows
