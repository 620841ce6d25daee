"""J and F of each frame and object, by the same counts as every other score here.

All frames are scored.  Void (255) is no object, so what is predicted there is wrong.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from evaluation_script.masks import Stack, cropped, empty_labels, pack
from evaluation_script.similarity import (
    BOUNDARY_TOLERANCE,
    Counts,
    Region,
    boundary_similarity,
    disk,
    region_similarity,
)

VOID = 255


def batched_jaccard(
    y_true: Any,
    y_pred: Any,
    average_over_objects: bool = True,  # noqa: FBT001, FBT002 - as its callers write it
    nb_objects: int | None = None,
) -> Any:
    """J: a value for each frame, or for each frame and object."""
    return _averaged(_measured(y_true, y_pred, nb_objects, BOUNDARY_TOLERANCE, region_similarity), average_over_objects)


def batched_f_measure(
    y_true: Any,
    y_pred: Any,
    average_over_objects: bool = True,  # noqa: FBT001, FBT002 - likewise
    nb_objects: int | None = None,
    bound_th: float = BOUNDARY_TOLERANCE,
) -> Any:
    """F, likewise; `bound_th` is a share of the diagonal, or pixels from 1 on."""
    return _averaged(_measured(y_true, y_pred, nb_objects, bound_th, boundary_similarity), average_over_objects)


def _averaged(values: Any, over_objects: bool) -> Any:  # noqa: FBT001 - passed on
    return values.mean(axis=1) if over_objects else values


def _measured(
    truth: Any, prediction: Any, objects: int | None, tolerance: float, measure: Callable[[Counts], Any]
) -> Any:
    truth, prediction = np.asarray(truth).astype(int), np.asarray(prediction).astype(int)
    ids = object_ids(truth, prediction, objects)
    reach = tolerance if tolerance >= 1 else math.ceil(tolerance * float(np.linalg.norm(truth.shape[1:])))
    found = np.empty((len(truth), len(ids)))
    for place, one in enumerate(ids):
        counts = Region(_stack(truth == one)).compared(Region(_stack(prediction == one)), disk(int(reach)))
        found[:, place] = measure(counts)
    return found


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


def _stack(flags: Any) -> Stack:
    frames, height, width = flags.shape
    block = empty_labels(frames, (height, width), bool)
    block[:, :, :width] = flags
    return cropped(pack(block), (height, width))
