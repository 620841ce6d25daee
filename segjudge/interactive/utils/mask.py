"""Masks of several objects: from probabilities, and as run lengths."""

from collections.abc import Sequence
from typing import TypedDict

import numpy as np
from numpy.typing import ArrayLike

from segjudge.evaluation_script.masks import run_lengths as rle
from segjudge.evaluation_script.masks.stack import Array, Size
from segjudge.masks.run_lengths import decoded, encoded


class EncodedObject(TypedDict):
    """One object's mask as COCO's compressed run lengths."""

    object_id: int
    counts: str


class EncodedMask(TypedDict):
    """The objects of one frame; the size is [height, width]."""

    size: list[int]
    objects: list[EncodedObject]


class EncodedMasks(TypedDict):
    """The objects of each frame; the size is [frames, height, width]."""

    size: list[int]
    frames: list[list[EncodedObject]]


def combine_masks(masks: ArrayLike, th: float = 0.5, method: str = "max_per_pixel") -> Array:
    """Return ids for `masks[object][frame]` of probabilities: the likeliest object, where it is likelier than `th`."""
    del method  # the original knows one
    masks = np.asarray(masks)
    best = masks.argmax(axis=0)
    return np.where(masks.max(axis=0) > th, best + 1, 0).astype(np.float64)


def encode_mask(mask: ArrayLike, nb_objects: int | None = None) -> EncodedMask:
    """Return the run lengths of one frame of ids: of objects 1 to `nb_objects`, or of those that it shows."""
    mask = np.asarray(mask)
    assert mask.ndim == 2  # noqa: S101 - what the original raises
    return {"size": list(mask.shape), "objects": _encoded_objects(mask, nb_objects)}


def encode_batch_masks(masks: ArrayLike, nb_objects: int | None = None) -> EncodedMasks:
    """Return the run lengths of all frames: of objects 1 to `nb_objects`, or to the largest id."""
    masks = np.asarray(masks)
    assert masks.ndim == 3  # noqa: S101 - what the original raises
    if nb_objects is None:
        nb_objects = max(int(masks.max(initial=0)), 0)
    return {"size": list(masks.shape), "frames": [_encoded_objects(mask, nb_objects) for mask in masks]}


def encode_frames(masks: Array) -> EncodedMasks:
    """Return the run lengths of all frames, each with the objects that it shows.

    With `encode_batch_masks` a single pixel of 255 would cost 255 masks a frame.
    """
    return {"size": list(masks.shape), "frames": [_encoded_objects(mask, None) for mask in masks]}


def _encoded_objects(mask: Array, nb_objects: int | None) -> list[EncodedObject]:
    counts = encoded(mask)
    ids = sorted(number for number in counts if number > 0) if nb_objects is None else range(1, nb_objects + 1)
    absent = rle.compress([mask.size])
    return [{"object_id": number, "counts": counts.get(number, absent)} for number in ids]


def decode_mask(encoded_mask: EncodedMask) -> Array:
    """Return the ids of one frame; where objects overlap, the larger id."""
    height, width = encoded_mask["size"]
    mask: Array = decode_frames([encoded_mask["objects"]], (height, width))[0]
    return mask


def decode_batch_masks(encoded_masks: EncodedMasks) -> Array:
    """Return the ids of all frames; where objects overlap, the larger id."""
    frames, height, width = encoded_masks["size"]
    if len(encoded_masks["frames"]) != frames:
        raise ValueError(f"holds {len(encoded_masks['frames'])} frames, and its size says {frames}")
    return decode_frames(encoded_masks["frames"], (height, width))


def decode_frames(frames: Sequence[list[EncodedObject]], size: Size, *, overlapping: bool = True) -> Array:
    """Return masks (frames, height, width) of objects' run lengths; raises Flaw."""
    masks = np.zeros((len(frames), *size), dtype=np.uint8)
    for mask, objects in zip(masks, frames, strict=True):
        mask[:] = decoded(((one["object_id"], one["counts"]) for one in objects), size, overlapping=overlapping)
    return masks
