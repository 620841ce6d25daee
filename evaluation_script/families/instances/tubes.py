"""Instances in videos: the masks of all frames, side by side, are one wide mask.

Run lengths go down the columns, so those of the frames one after the other are those of the wide mask: what it shares
with another is what they share in all frames.  Some of its runs are empty, which pycocotools does not take.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import List, Tuple

import numpy as np

from ...masks import kernel, kernel_runs
from ...masks import run_lengths as rle
from ...masks.stack import Array
from ...masks.texts import MaskTexts, of_texts

#: How much of an instance is hidden in a frame, as OVIS labels it.
LABELS = {"no_occlusion": 0.0, "slight_occlusion": 0.25, "severe_occlusion": 0.75}


@dataclass(frozen=True)
class Tubes:
    """The wide masks of some instances."""

    masks: MaskTexts
    pixels: Array
    #: Over the frames that show anything.
    mean_area: Array


def joined(texts: MaskTexts, shown: Array, tube: Array, pixels: Array, count: int) -> Tubes:
    """Return the masks of frames, in order, as so many wide ones; raises ValueError where one is not sound.

    Of each frame it is known whether it has a text, the index of its tube, and how many pixels it has; the texts stand
    one after the other.
    """
    ends = np.cumsum(np.bincount(tube, minlength=count))
    library = kernel.library()
    if library is None:
        wide, area = _joined([texts[index] for index in range(len(texts))], shown, pixels, ends)
    else:
        found = kernel_runs.join_frames(texts, shown, pixels, np.append(0, ends), library)
        if found is None:
            raise ValueError
        wide, area = found
    total = np.bincount(tube, area, count)
    visible = np.bincount(tube, area > 0, count)
    return Tubes(wide, total.astype(np.int64), total / np.maximum(visible, 1))


def _joined(texts: List[str], shown: Array, pixels: Array, ends: Array) -> Tuple[MaskTexts, Array]:
    """Return the wide masks, whose frames end there, and the area of each frame."""
    checked = rle.check_many(texts, pixels[shown])
    if checked.fault.any():
        raise ValueError
    area, parts = np.zeros(len(shown), np.int64), np.ones(len(shown), np.int64)
    background, covered, first = rle.decoded(texts)
    area[shown], parts[shown] = checked.area, np.diff(np.append(first, len(covered)))
    known = np.repeat(shown, parts)
    runs = np.zeros((len(known), 2), np.int64)
    runs[~known, 0] = pixels[~shown]
    runs[known, 0], runs[known, 1] = background, covered
    return of_texts(rle.texts_of(runs.reshape(-1), 2 * np.append(0, np.cumsum(parts))[ends])), area


def hidden(labels: object) -> float:
    """Return how much of an instance is hidden: the mean of the upper half of its labels, or -1 without any."""
    known = sorted(LABELS[label] for label in (labels if isinstance(labels, list) else []) if label is not None)
    return float(np.mean(known[len(known) // 2 :])) if known else -1.0
