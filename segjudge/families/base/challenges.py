"""The parts of new challenges: sentences about a truth, and masks moved to the right."""

from __future__ import annotations

import json

import numpy as np

from segjudge.evaluation_script.masks.overlaps import LabelMap
from segjudge.evaluation_script.masks.run_lengths import runs_of
from segjudge.evaluation_script.masks.stack import Array

#: The level of compression of PNGs.
QUICK = 3


def move_image(labels: Array, share: float) -> Array:
    """Move an image to the right; its first column fills the gap."""
    width = labels.shape[1]
    image: Array = labels[:, np.maximum(np.arange(width) - shift_of(width, share), 0)]
    return image


def move_labels(pixels: LabelMap, chosen_labels: Array, share: float) -> Array:
    """Move the labels of a map; unwanted labels become 0."""
    numbers = move_image(pixels.numbers, share)
    labels = numbers if pixels.labels is None else pixels.labels
    visible: Array = np.where(np.isin(labels, chosen_labels), labels, 0)
    return visible if pixels.labels is None else visible[numbers]


def move_runs(mask: str, size: tuple[int, int], frames: int, share: float) -> list[list[int]]:
    """Move each mask of frames joined side by side, and return its column-wise runs."""
    height, width = size
    pixels = height * width
    ends = np.cumsum(runs_of(mask, pixels * frames))
    runs = ends[: len(ends) // 2 * 2].reshape(-1, 2)
    masks = []
    for frame in range(frames):
        inside: Array = np.clip(runs - frame * pixels, 0, pixels)
        borders = inside[inside[:, 1] > inside[:, 0]].reshape(-1) + shift_of(width, share) * height
        masks.append(np.diff(borders[borders < pixels], prepend=0, append=pixels).tolist())
    return masks


def shift_of(width: int, share: float) -> int:
    """Return a fraction of the width in pixels, at least one."""
    return min(width, max(1, round(width * share)))


def encode_json(document: object) -> bytes:
    return json.dumps(document, separators=(",", ":")).encode()


def count_categories(count: int) -> str:
    return f"{count:,} {'category' if count == 1 else 'categories'}"
