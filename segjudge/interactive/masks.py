"""Masks of ids (frames, height, width): J and F of each frame and object, and run lengths.

J and F come from the same counts as all other scores of the project. All frames are scored. Void (255) is not an
object, so predictions on it are wrong.
"""

from collections.abc import Callable, Sequence
from typing import TypedDict

import numpy as np
from numpy.typing import ArrayLike

from segjudge.evaluation_script.files.problems import quantity
from segjudge.evaluation_script.masks import run_lengths as rle
from segjudge.evaluation_script.masks.similarity import (
    BOUNDARY_TOLERANCE,
    Counts,
    boundary_similarity,
    region_similarity,
)
from segjudge.evaluation_script.masks.stack import Array, Size
from segjudge.families.sequences.comparison import VOID, FrameComparison, disk_of
from segjudge.masks.run_lengths import decode_labels, encode_labels


def batched_jaccard(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    average_over_objects: bool = True,  # noqa: FBT001, FBT002 - a published signature
    nb_objects: int | None = None,
) -> Array:
    """Return J of each frame, or of each frame and object."""
    values = _compare(region_similarity, y_true, y_pred, nb_objects, BOUNDARY_TOLERANCE)
    return values.mean(axis=1) if average_over_objects else values


def batched_f_measure(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    average_over_objects: bool = True,  # noqa: FBT001, FBT002 - a published signature
    nb_objects: int | None = None,
    bound_th: float = BOUNDARY_TOLERANCE,
) -> Array:
    """Return F per frame, or per object too; `bound_th` below 1 is a fraction of the diagonal, else pixels."""
    values = _compare(boundary_similarity, y_true, y_pred, nb_objects, bound_th)
    return values.mean(axis=1) if average_over_objects else values


def f_measure(true_mask: ArrayLike, pred_mask: ArrayLike, bound_th: float = BOUNDARY_TOLERANCE) -> float:
    """Return F of a pair of binary masks (height, width)."""
    truth, prediction = (np.asarray(mask).astype(bool)[None] for mask in (true_mask, pred_mask))
    return float(batched_f_measure(truth, prediction, nb_objects=1, bound_th=bound_th)[0])


def _compare(
    measure: Callable[[Counts], Array], y_true: ArrayLike, y_pred: ArrayLike, nb_objects: int | None, tolerance: float
) -> Array:
    truth, prediction = as_ids(y_true), as_ids(y_pred)
    comparison = FrameComparison(truth, object_ids(truth, prediction, nb_objects))
    counts = comparison.compare(prediction, disk_of(tolerance, comparison.size))
    return np.stack([measure(of_object) for of_object in counts], axis=1)


def as_ids(masks: ArrayLike) -> Array:
    """Return masks as bytes: fractions are truncated, impossible ids become void."""
    masks = np.asarray(masks)
    if masks.dtype == np.uint8:
        return masks
    if masks.dtype == bool:
        return masks.astype(np.uint8)
    integers = masks if masks.dtype.kind in "iu" else masks.astype(int)
    return np.where((integers >= 0) & (integers < VOID), integers, VOID).astype(np.uint8)


def object_ids(truth: Array, prediction: Array, count: int | None = None) -> list[int]:
    """Return the scored ids: 1 to `count`, or the truth's; raises ValueError without any."""
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


class _EncodedObject(TypedDict):
    """One object's mask as COCO's compressed run lengths."""

    object_id: int
    counts: str


class _EncodedMask(TypedDict):
    """The objects of one frame; the size is [height, width]."""

    size: list[int]
    objects: list[_EncodedObject]


class EncodedMasks(TypedDict):
    """The objects of each frame; the size is [frames, height, width]."""

    size: list[int]
    frames: list[list[_EncodedObject]]


def combine_masks(masks: ArrayLike, th: float = 0.5, method: str = "max_per_pixel") -> Array:
    """Return the most likely object of `masks[object][frame]`, where it exceeds `th`."""
    del method  # the original has one
    masks = np.asarray(masks)
    best = masks.argmax(axis=0)
    return np.where(masks.max(axis=0) > th, best + 1, 0).astype(np.float64)


def encode_mask(mask: ArrayLike, nb_objects: int | None = None) -> _EncodedMask:
    """Encode one frame of ids: objects 1 to `nb_objects`, or those that it shows."""
    mask = np.asarray(mask)
    assert mask.ndim == 2  # noqa: S101 - what the original raises
    return {"size": list(mask.shape), "objects": _encode_objects(mask, nb_objects)}


def encode_batch_masks(masks: ArrayLike, nb_objects: int | None = None) -> EncodedMasks:
    """Encode all frames: objects 1 to `nb_objects`, or to the largest id."""
    masks = np.asarray(masks)
    assert masks.ndim == 3  # noqa: S101 - what the original raises
    if nb_objects is None:
        nb_objects = max(int(masks.max(initial=0)), 0)
    return {"size": list(masks.shape), "frames": [_encode_objects(mask, nb_objects) for mask in masks]}


def encode_frames(masks: Array) -> EncodedMasks:
    """Encode all frames, each with the objects that it shows.

    With `encode_batch_masks`, one pixel of 255 would cost 255 masks per frame.
    """
    return {"size": list(masks.shape), "frames": [_encode_objects(mask, None) for mask in masks]}


def _encode_objects(mask: Array, nb_objects: int | None) -> list[_EncodedObject]:
    counts = encode_labels(mask)
    ids = sorted(number for number in counts if number > 0) if nb_objects is None else range(1, nb_objects + 1)
    absent = rle.compress([mask.size])
    return [{"object_id": number, "counts": counts.get(number, absent)} for number in ids]


def decode_mask(encoded_mask: _EncodedMask) -> Array:
    """Decode one frame; where objects overlap, the larger id counts."""
    height, width = encoded_mask["size"]
    mask: Array = decode_frames([encoded_mask["objects"]], (height, width))[0]
    return mask


def decode_batch_masks(encoded_masks: EncodedMasks) -> Array:
    """Decode all frames; where objects overlap, the larger id counts."""
    frames, height, width = encoded_masks["size"]
    if len(encoded_masks["frames"]) != frames:
        raise ValueError(f"holds {quantity(len(encoded_masks['frames']), 'frame')}, but its size says {frames}")
    return decode_frames(encoded_masks["frames"], (height, width))


def decode_frames(frames: Sequence[list[_EncodedObject]], size: Size, *, overlapping: bool = True) -> Array:
    """Decode masks (frames, height, width); raises Flaw."""
    masks = np.zeros((len(frames), *size), dtype=np.uint8)
    for mask, objects in zip(masks, frames, strict=True):
        mask[:] = decode_labels(
            ((runs["object_id"], runs["counts"]) for runs in objects), size, overlapping=overlapping
        )
    return masks
