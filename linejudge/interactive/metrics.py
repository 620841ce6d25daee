"""J and F of each frame and object, by the same counts as every other score here.

All frames are scored.  Void (255) is no object, so what is predicted there is wrong.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from evaluation_script.masks import Stack, cropped, empty_labels, pack
from evaluation_script.similarity import (
    BOUNDARY_TOLERANCE,
    Counts,
    Disk,
    Region,
    boundary_similarity,
    disk,
    joined,
    region_similarity,
)
from evaluation_script.truth import Block, blocks_of

VOID = 255


class Objects:
    """The objects of a sequence's true masks, ready to be compared with any number of predictions."""

    def __init__(self, masks: Any, ids: list[int]) -> None:
        self.ids = ids
        self.size: tuple[int, int] = masks.shape[1:]
        self._blocks = blocks_of([self.size] * len(masks))
        self._regions = [[_region(masks, block, one) for one in ids] for block in self._blocks]

    def compared(self, prediction: Any, match: Disk) -> list[Counts]:
        """For each object the counts of all frames."""
        parts: list[list[Counts]] = [[] for _ in self.ids]
        for block, regions in zip(self._blocks, self._regions, strict=True):
            for part, one, truth in zip(parts, self.ids, regions, strict=True):
                part.append(truth.compared(_region(prediction, block, one), match))
        return [joined(part) for part in parts]

    def similarities(self, prediction: Any) -> tuple[Any, Any]:
        """J and F, each (frames, objects)."""
        counts = self.compared(prediction, _disk(BOUNDARY_TOLERANCE, self.size))
        columns = [[measure(one) for one in counts] for measure in (region_similarity, boundary_similarity)]
        return np.stack(columns[0], axis=1), np.stack(columns[1], axis=1)


def batched_jaccard(
    y_true: Any,
    y_pred: Any,
    average_over_objects: bool = True,  # noqa: FBT001, FBT002 - as its callers write it
    nb_objects: int | None = None,
) -> Any:
    """J: a value for each frame, or for each frame and object."""
    counts = _counts(y_true, y_pred, nb_objects, BOUNDARY_TOLERANCE)
    return _averaged([region_similarity(one) for one in counts], average_over_objects)


def batched_f_measure(
    y_true: Any,
    y_pred: Any,
    average_over_objects: bool = True,  # noqa: FBT001, FBT002 - likewise
    nb_objects: int | None = None,
    bound_th: float = BOUNDARY_TOLERANCE,
) -> Any:
    """F, likewise; `bound_th` is a share of the diagonal, or pixels from 1 on."""
    counts = _counts(y_true, y_pred, nb_objects, bound_th)
    return _averaged([boundary_similarity(one) for one in counts], average_over_objects)


def _averaged(columns: list[Any], over_objects: bool) -> Any:  # noqa: FBT001 - passed on
    values = np.stack(columns, axis=1)
    return values.mean(axis=1) if over_objects else values


def _counts(truth: Any, prediction: Any, objects: int | None, tolerance: float) -> list[Counts]:
    truth, prediction = as_ids(truth), as_ids(prediction)
    found = Objects(truth, object_ids(truth, prediction, objects))
    return found.compared(prediction, _disk(tolerance, found.size))


def _disk(tolerance: float, size: tuple[int, int]) -> Disk:
    return disk(int(tolerance if tolerance >= 1 else math.ceil(tolerance * float(np.linalg.norm(size)))))


def as_ids(told: Any) -> Any:
    """Masks of any kind of number as bytes: fractions are cut off, and what can be no object's id becomes void."""
    masks = np.asarray(told)
    if masks.dtype == np.uint8:
        return masks
    if masks.dtype == bool:
        return masks.astype(np.uint8)
    whole = masks if masks.dtype.kind in "iu" else masks.astype(int)
    return np.where((whole >= 0) & (whole < VOID), whole, VOID).astype(np.uint8)


def object_ids(truth: Any, prediction: Any, objects: int | None = None) -> list[int]:
    """The ids that count; raises ValueError where there is nothing to compare."""
    for name, masks in (("y_true", truth), ("y_pred", prediction)):
        if masks.ndim != 3:
            raise ValueError(f"{name} array must have 3 dimensions.")
    if truth.shape != prediction.shape:
        raise ValueError(f"y_true and y_pred must have the same shape. {truth.shape} != {prediction.shape}")
    inferred = [int(one) for one in np.unique(truth) if 0 < one < VOID] if objects is None else []
    ids = inferred if objects is None else list(range(1, objects + 1))
    if not ids:
        raise ValueError("Number of objects in y_true should be higher than 0.")
    return ids


def _region(masks: Any, block: Block, one: int) -> Region:
    height, width = block.size
    flags = empty_labels(block.stop - block.start, (height, width), bool)
    np.equal(masks[block.start : block.stop], one, out=flags[:, :, :width])
    return Region(_stack(flags, (height, width)))


def _stack(flags: Any, size: tuple[int, int]) -> Stack:
    return cropped(pack(flags), size)
