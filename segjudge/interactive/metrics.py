"""J and F of each frame and object, by the same counts as every other score here.

All frames are scored.  Void (255) is no object, so what is predicted there is wrong.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from segjudge.evaluation_script.similarity import BOUNDARY_TOLERANCE, Counts, boundary_similarity, region_similarity
from segjudge.masks.comparison import VOID, FrameComparison, disk_of


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


def f_measure(true_mask: Any, pred_mask: Any, bound_th: float = BOUNDARY_TOLERANCE) -> float:
    """F of one pair of binary masks (height, width)."""
    pair = [np.asarray(mask).astype(bool)[None] for mask in (true_mask, pred_mask)]
    return float(batched_f_measure(pair[0], pair[1], nb_objects=1, bound_th=bound_th)[0])


def _averaged(columns: list[Any], over_objects: bool) -> Any:  # noqa: FBT001 - passed on
    values = np.stack(columns, axis=1)
    return values.mean(axis=1) if over_objects else values


def _counts(truth: Any, prediction: Any, objects: int | None, tolerance: float) -> list[Counts]:
    truth, prediction = as_ids(truth), as_ids(prediction)
    found = FrameComparison(truth, object_ids(truth, prediction, objects))
    return found.compared(prediction, disk_of(tolerance, found.size))


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
