"""The kernel's functions on maps with a label for each pixel: what two have in common, and boundaries."""

from __future__ import annotations

import ctypes
from typing import Optional, Tuple

import numpy as np

from .masks import Array

FINE = 0
#: What the numbers of a map may be.
MAPS = ("|u1", "<u2", "<u4")
#: More pairs than this are left to numpy; a few hundred are usual.
MOST_PAIRS = 4096


def label_pairs(one: Array, two: Array, loaded: Optional[ctypes.CDLL]) -> Optional[Tuple[Array, Array]]:
    """Return the pairs of labels (rows) at the same pixels, and in how many; None where the kernel cannot say."""
    if loaded is None or one.shape != two.shape or not all(side.dtype.str in MAPS for side in (one, two)):
        return None
    one, two = np.ascontiguousarray(one), np.ascontiguousarray(two)
    labels, pixels = np.empty((MOST_PAIRS, 2), np.uint32), np.empty(MOST_PAIRS, np.int64)
    found = ctypes.c_int64(0)
    status = loaded.sj_label_pairs(
        one.ctypes.data, one.itemsize, two.ctypes.data, two.itemsize, one.size,
        labels.ctypes.data, pixels.ctypes.data, MOST_PAIRS, ctypes.byref(found),
    )  # fmt: skip
    return (labels[: found.value], pixels[: found.value]) if status == FINE else None


def boundaries(labels: Array, reach: int, inner: int, loaded: Optional[ctypes.CDLL]) -> Optional[Array]:
    """Return a map with one label for what has nothing but its own within reach; None where the kernel cannot say."""
    if loaded is None or labels.dtype != np.uint32:
        return None
    labels, out = np.ascontiguousarray(labels), np.empty(labels.shape, np.uint32)
    status = loaded.sj_boundaries(labels.ctypes.data, *labels.shape, reach, inner, out.ctypes.data)
    return out if status == FINE else None
