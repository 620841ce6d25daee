"""J and F of each frame and object, by the same counts as every other score of the project.

All frames are scored.  Void (255) is no object, so an object predicted there is wrong.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from segjudge.evaluation_script.masks.similarity import (
    BOUNDARY_TOLERANCE,
    Counts,
    boundary_similarity,
    region_similarity,
)
from segjudge.evaluation_script.masks.stack import Array
from segjudge.masks.comparison import VOID, FrameComparison, disk_of


def batched_jaccard(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    average_over_objects: bool = True,  # noqa: FBT001, FBT002 - a published signature
    nb_objects: int | None = None,
) -> Array:
    """Return J of each frame, or of each frame and object."""
    values = _similarities(region_similarity, y_true, y_pred, nb_objects, BOUNDARY_TOLERANCE)
    return values.mean(axis=1) if average_over_objects else values


def batched_f_measure(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    average_over_objects: bool = True,  # noqa: FBT001, FBT002 - a published signature
    nb_objects: int | None = None,
    bound_th: float = BOUNDARY_TOLERANCE,
) -> Array:
    """Return F likewise; `bound_th` is a share of the diagonal, or pixels from 1 on."""
    values = _similarities(boundary_similarity, y_true, y_pred, nb_objects, bound_th)
    return values.mean(axis=1) if average_over_objects else values


def f_measure(true_mask: ArrayLike, pred_mask: ArrayLike, bound_th: float = BOUNDARY_TOLERANCE) -> float:
    """Return F of one pair of binary masks (height, width)."""
    truth, prediction = (np.asarray(mask).astype(bool)[None] for mask in (true_mask, pred_mask))
    return float(batched_f_measure(truth, prediction, nb_objects=1, bound_th=bound_th)[0])


def _similarities(
    measure: Callable[[Counts], Array], y_true: ArrayLike, y_pred: ArrayLike, nb_objects: int | None, tolerance: float
) -> Array:
    truth, prediction = as_ids(y_true), as_ids(y_pred)
    comparison = FrameComparison(truth, object_ids(truth, prediction, nb_objects))
    counts = comparison.compared(prediction, disk_of(tolerance, comparison.size))
    return np.stack([measure(of_object) for of_object in counts], axis=1)


def as_ids(masks: ArrayLike) -> Array:
    """Return masks as bytes: fractions are cut off, and a number that cannot be an object's id becomes void."""
    masks = np.asarray(masks)
    if masks.dtype == np.uint8:
        return masks
    if masks.dtype == bool:
        return masks.astype(np.uint8)
    integers = masks if masks.dtype.kind in "iu" else masks.astype(int)
    return np.where((integers >= 0) & (integers < VOID), integers, VOID).astype(np.uint8)


def object_ids(truth: Array, prediction: Array, count: int | None = None) -> list[int]:
    """Return the ids that are scored: 1 to `count`, or those of the truth; raises ValueError if nothing compares."""
    for name, masks in (("y_true", truth), ("y_pred", prediction)):
        if masks.ndim != 3:
            raise ValueError(f"{name} array must have 3 dimensions.")
    if truth.shape != prediction.shape:
        raise ValueError(f"y_true and y_pred must have the same shape. {truth.shape} != {prediction.shape}")
    if count is not None:
        ids = list(range(1, count + 1))
    else:
        ids = [int(value) for value in np.unique(truth) if 0 < value < VOID]
    if not ids:
        raise ValueError("Number of objects in y_true should be higher than 0.")
    return ids
