"""The kernel's functions on frames: PNG rows → packed masks, two masks → their counts, and maps of labels."""

from __future__ import annotations

import ctypes
from functools import lru_cache
from typing import Dict, Optional, Tuple, Union

import numpy as np

from ..files.inflate import Inflated
from .stack import Array, Size, Stack, words_across

#: Statuses.
FINE, FULL = 0, 2
#: Labels of one byte.
LABELS = 256
#: What the numbers of a map of labels may be.
MAPS = ("|u1", "<u2", "<u4")
#: More pairs than this are left to numpy; a few hundred are usual.
MOST_PAIRS = 4096

_Window = ctypes.c_int64 * 4


def compare(
    truth: Stack, prediction: Stack, disk: Tuple[Tuple[int, int, int], ...], loaded: Optional[ctypes.CDLL]
) -> Optional[Array]:
    """Return the seven counts of each frame as rows, or None where the kernel cannot say."""
    if loaded is None:
        return None
    windows = [_Window(side.top, side.left, *side.words.shape[1:]) for side in (truth, prediction)]
    counts = np.zeros((len(truth.words), 7), np.int64)
    sides = (truth.words, windows[0], prediction.words, windows[1])
    status = loaded.sj_compare(*sides, len(counts), *truth.size, _columns(disk), len(disk), counts)
    return counts if status == FINE else None


@lru_cache(maxsize=64)
def _columns(disk: Tuple[Tuple[int, int, int], ...]) -> ctypes.Array[ctypes.c_int32]:
    return (ctypes.c_int32 * (3 * len(disk)))(*(number for column in disk for number in column))


def codes_of(rows: Optional[Inflated], size: Size, channels: int, loaded: ctypes.CDLL) -> Optional[Array]:
    """Return red + 256 × green + 65,536 × blue of each pixel, or its only byte; None where rows are odd."""
    if rows is None:
        return None
    source, codes = np.frombuffer(rows, np.uint8), np.empty(size, np.uint8 if channels == 1 else np.uint32)
    status = loaded.sj_codes(source, len(source), *size, channels, codes.ctypes.data)
    return codes if status == FINE else None


class PackedFrames:
    """Packs the frames of one block after the other; its memory serves every block of a sequence."""

    def __init__(self, size: Size, most_frames: int, loaded: ctypes.CDLL) -> None:
        #: The size of a frame, and how many a block may have.
        self.size, self.most_frames = size, most_frames
        self._library = loaded
        self._slot_of = np.full(LABELS, -1, np.int32)
        self._boxes = np.zeros((LABELS, 4), np.int32)
        self._used = ctypes.c_int64(0)
        self._words = np.zeros((1, most_frames, size[0], words_across(size[1])), np.uint64)
        #: Which labels the frame has that was added last, 0 included.
        self.seen = np.zeros(LABELS, np.uint8)
        # Each look-up of an address takes a tenth of what packing a small frame does.
        self._addresses = [table.ctypes.data for table in (self._slot_of, self._boxes, self.seen)]

    @property
    def objects(self) -> int:
        """For how many objects there is space."""
        return len(self._words)

    def add(
        self, frame: int, rows: Union[Inflated, memoryview], depth: int, most: int = LABELS, *, merged: bool = False
    ) -> bool:
        """Pack a frame, and return whether it could be, which takes at most so many labels in a block.

        Its rows are filtered and have this depth, or are labels of one byte each where it is 0.  Where labels
        are merged, all but 0 become label 1.
        """
        status, source = FULL, np.frombuffer(rows, np.uint8)
        slot_of, boxes, seen = self._addresses
        while status == FULL and self._used.value <= most:
            if self._used.value == len(self._words):
                self._words = np.concatenate([self._words, np.zeros_like(self._words)])[: LABELS - 1]
            status = self._library.sj_pack_frame(
                source.ctypes.data, len(rows), depth, *self.size, frame, self.most_frames, self._words.ctypes.data,
                self._words.size, len(self._words), slot_of, boxes, ctypes.byref(self._used), seen, merged,
            )  # fmt: skip
        return bool(status == FINE) and self._used.value <= most

    def take(self, frames: int) -> Dict[str, Stack]:
        """Return the masks of each label in the first frames, cut to the words that hold any pixel, and forget them."""
        stacks = {}
        for label in np.flatnonzero(self._slot_of >= 0).tolist():
            slot = self._slot_of[label]
            top, bottom, left, right = self._boxes[slot].tolist()
            window = self._words[slot, :, top:bottom, left:right]
            stacks[str(label)] = Stack(np.array(window[:frames]), top, left, self.size)
            window[:] = 0
        self._slot_of[:] = -1
        self._used.value = 0
        return stacks


def label_pairs(one: Array, two: Array, loaded: Optional[ctypes.CDLL]) -> Optional[Tuple[Array, Array]]:
    """Return the pairs of labels (rows) at the same pixels, and in how many; None where the kernel cannot say."""
    if loaded is None or one.shape != two.shape or not all(side.dtype.str in MAPS for side in (one, two)):
        return None
    one, two = np.ascontiguousarray(one), np.ascontiguousarray(two)
    labels, pixels = np.empty((MOST_PAIRS, 2), np.uint32), np.empty(MOST_PAIRS, np.int64)
    found = ctypes.c_int64(0)
    status = loaded.sj_label_pairs(
        one.ctypes.data, one.itemsize, two.ctypes.data, two.itemsize, one.size, labels, pixels, MOST_PAIRS,
        ctypes.byref(found),
    )  # fmt: skip
    return (labels[: found.value], pixels[: found.value]) if status == FINE else None


def boundaries(labels: Array, reach: int, inner: int, loaded: Optional[ctypes.CDLL]) -> Optional[Array]:
    """Return a map with one label for what has nothing but its own within reach; None where the kernel cannot say."""
    if loaded is None or labels.dtype != np.uint32:
        return None
    out = np.empty(labels.shape, np.uint32)
    status = loaded.sj_boundaries(labels, *labels.shape, reach, inner, out)
    return out if status == FINE else None
