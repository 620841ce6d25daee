"""Masks of several objects: from probabilities, and over the wire as run lengths."""

from __future__ import annotations

from typing import Any

import numpy as np
from pycocotools import mask as coco

from segjudge.masks.run_lengths import decoded


def combine_masks(masks: Any, th: float = 0.5, method: str = "max_per_pixel") -> Any:
    """From `masks[object][frame]` of probabilities to ids: the likeliest object, where it is likelier than `th`."""
    del method  # there is one
    masks = np.asarray(masks)
    best = masks.argmax(axis=0)
    return np.where(masks.max(axis=0) > th, best + 1, 0).astype(np.float64)


def encode_mask(mask: Any, nb_objects: int | None = None) -> dict[str, Any]:
    """One frame of ids as COCO's run lengths, object by object."""
    mask = np.asarray(mask)
    assert mask.ndim == 2  # noqa: S101 - what the original raises
    return {"size": list(mask.shape), "objects": _encoded(mask, nb_objects)}


def encode_batch_masks(masks: Any, nb_objects: int | None = None) -> dict[str, Any]:
    """All frames."""
    masks = np.asarray(masks)
    assert masks.ndim == 3  # noqa: S101 - likewise
    if nb_objects is None:
        nb_objects = max(int(masks.max(initial=0)), 0)
    return {"size": list(masks.shape), "frames": [_encoded(mask, nb_objects) for mask in masks]}


def encode_frames(masks: Any) -> dict[str, Any]:
    """All frames, each with the objects that it shows: one pixel of 255 would else cost 255 masks a frame."""
    return {"size": list(masks.shape), "frames": [_encoded(mask, None) for mask in masks]}


def _encoded(mask: Any, nb_objects: int | None) -> list[dict[str, Any]]:
    ids = range(1, nb_objects + 1) if nb_objects is not None else [int(one) for one in np.unique(mask) if one > 0]
    if not ids:
        return []
    stack = np.asfortranarray(np.stack([mask == one for one in ids], axis=2).astype(np.uint8))
    encoded: Any = coco.encode(stack)  # a list, since there is a third axis
    return [
        {"object_id": one, "counts": told["counts"].decode("ascii")} for one, told in zip(ids, encoded, strict=True)
    ]


def decode_mask(encoded: dict[str, Any]) -> Any:
    """The ids of one frame; where objects overlap the larger id."""
    height, width = encoded["size"]
    return decode_frames([encoded["objects"]], (height, width))[0]


def decode_batch_masks(encoded: dict[str, Any]) -> Any:
    """All frames."""
    frames, height, width = encoded["size"]
    if len(encoded["frames"]) != frames:
        raise ValueError(f"holds {len(encoded['frames'])} frames, and its size says {frames}")
    return decode_frames(encoded["frames"], (height, width))


def decode_frames(frames: list[list[dict[str, Any]]], size: tuple[int, int], *, overlapping: bool = True) -> Any:
    """Masks (frames, height, width) of objects' run lengths; raises Flaw."""
    masks = np.zeros((len(frames), *size), dtype=np.uint8)
    for mask, objects in zip(masks, frames, strict=True):
        mask[:] = decoded(((one["object_id"], one["counts"]) for one in objects), size, overlapping=overlapping)
    return masks
