"""COCO run lengths → packed masks, checked before they are believed.

Runs go down the columns, beginning with background; compressed ones are
written as text, five bits a character, as differences to the run before last.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .errors import Flaw
from .masks import Array, Size, empty_labels

#: Even a mask of one pixel may take a few characters.
LEAST_LENGTH = 64
WRITE_AGAIN = "Write it as pycocotools' encode does"


def flags(rle: Any, size: Size) -> Array:
    """Booleans (1, height, whole words) of run lengths that must fill a frame of this size."""
    if not isinstance(rle, dict) or not {"size", "counts"} <= rle.keys():
        raise Flaw('is not {"size": [height, width], "counts": …}', WRITE_AGAIN)
    if rle["size"] != list(size) or any(type(side) is not int for side in rle["size"]):
        raise Flaw(
            f"has the size {str(rle['size'])[:40]} but the frame is [{size[0]}, {size[1]}] (height, width)",
            "Encode the mask at the size of the frame",
        )
    runs = _runs(rle["counts"], size[0] * size[1])
    height, width = size
    mask = empty_labels(1, size, bool)
    down = np.repeat(np.arange(len(runs)) % 2 == 1, runs)
    mask[0, :, :width] = down.reshape(width, height).T
    return mask


def _runs(counts: Any, pixels: int) -> Array:
    if isinstance(counts, (str, list)) and len(counts) > 2 * pixels + LEAST_LENGTH:
        raise Flaw(f"has counts of length {len(counts):,}, more than {pixels} pixels can need", WRITE_AGAIN)
    if isinstance(counts, str):
        runs = _decompressed(counts)
    elif isinstance(counts, list):
        if not all(type(run) is int for run in counts):
            raise Flaw("has counts that are not all whole numbers", WRITE_AGAIN)
        if counts and (min(counts) < 0 or max(counts) > pixels):
            raise Flaw("has counts below zero or beyond the frame", WRITE_AGAIN)
        runs = np.array(counts, np.int64)
    else:
        raise Flaw("has counts that are neither text nor a list", WRITE_AGAIN)
    if len(runs) and (runs.min() < 0 or runs.max() > pixels):
        raise Flaw("has counts below zero or beyond the frame", WRITE_AGAIN)
    if runs.sum() != pixels:
        raise Flaw(f"has counts that add up to {runs.sum()}, not to the {pixels} pixels of the frame", WRITE_AGAIN)
    return runs


def _decompressed(text: str) -> Array:
    """Run lengths of COCO's text form."""
    try:
        codes = np.frombuffer(text.encode("ascii"), np.uint8).astype(np.int64) - 48
    except UnicodeEncodeError:
        raise Flaw("has counts with characters that run lengths do not have", WRITE_AGAIN) from None
    if not len(codes):
        return codes
    if codes.min() < 0 or codes.max() > 63:
        raise Flaw("has counts with characters that run lengths do not have", WRITE_AGAIN)
    last = (codes & 0x20) == 0
    starts = np.concatenate(([0], np.flatnonzero(last)[:-1] + 1))
    place = np.arange(len(codes)) - np.repeat(starts, np.diff(np.append(starts, len(codes))))
    if not last[-1] or place.max() > 6:
        raise Flaw("has counts that break off or are endless", WRITE_AGAIN)
    values = np.add.reduceat((codes & 0x1F) << (5 * place), starts)
    ends = np.flatnonzero(last)
    negative = (codes[ends] & 0x10) != 0
    values[negative] -= np.int64(1) << (5 * (place[ends][negative] + 1))
    # From the fourth on each is a difference to the run two before.
    values[1::2] = np.cumsum(values[1::2])
    values[2::2] = np.cumsum(values[2::2])
    return values
