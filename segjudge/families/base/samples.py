"""Masks of a truth moved to the right: what the samples of new challenges are made of."""

from __future__ import annotations

import json

import numpy as np
from numpy.typing import NDArray

from segjudge.evaluation_script.masks.overlaps import LabelMap
from segjudge.evaluation_script.masks.run_lengths import runs_of
from segjudge.evaluation_script.masks.stack import Array

#: The effort of compressing PNGs.
QUICK = 3


def moved(labels: Array, share: float) -> Array:
    """Return an image moved to the right; its first column fills the gap."""
    width = labels.shape[1]
    image: Array = labels[:, np.maximum(np.arange(width) - step(width, share), 0)]
    return image


def moved_labels(pixels: LabelMap, kept: Array, share: float) -> Array:
    """Return the moved labels of a map; those that are not kept are 0."""
    numbers = moved(pixels.numbers, share)
    labels = numbers if pixels.labels is None else pixels.labels
    shown: Array = np.where(np.isin(labels, kept), labels, 0)
    return shown if pixels.labels is None else shown[numbers]


def moved_runs(mask: str, size: tuple[int, int], frames: int, share: float) -> list[list[int]]:
    """Return the runs of the masks of frames side by side, each moved to the right; runs go down the columns."""
    height, width = size
    pixels = height * width
    ends = np.cumsum(runs_of(mask, pixels * frames))
    parts = ends[: len(ends) // 2 * 2].reshape(-1, 2)
    moved_masks = []
    for frame in range(frames):
        inside: NDArray[np.int64] = np.clip(parts - frame * pixels, 0, pixels)
        borders = inside[inside[:, 1] > inside[:, 0]].reshape(-1) + step(width, share) * height
        moved_masks.append(np.diff(borders[borders < pixels], prepend=0, append=pixels).tolist())
    return moved_masks


def step(width: int, share: float) -> int:
    """Return how many pixels a share of the width is: one at least."""
    return min(width, max(1, round(width * share)))


def as_json(document: object) -> bytes:
    """Return a document without blanks."""
    return json.dumps(document, separators=(",", ":")).encode()
