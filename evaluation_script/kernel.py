"""The compiled kernel, where there is one: found once, tested with known answers, else left alone.

Whatever calls it has numpy code beside the call, which gives the same results.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import sys
from functools import lru_cache
from typing import Dict, Optional, Tuple

import numpy as np

from .inflate import Inflated
from .masks import Array, Size, Stack, words_across

#: What a library must answer to `sj_abi`.
ABI = 1
#: `off`, or the path of the library to use.
SETTING = "SEGJUDGE_KERNEL"
#: The compiled library, in this folder; beside it a file with its checksum.
SYSTEM = f"{os.uname().sysname.lower()}-{os.uname().machine}"
NAME = f"segjudge_kernel.{SYSTEM}.so"
CHECKSUM = ".sha256"

FINE, FULL = 0, 2
#: Labels of one byte.
LABELS = 256

_POINTER, _INT64 = ctypes.c_void_p, ctypes.c_int64
#: The arguments of each function; all return a status.
_SIGNATURES = {
    "sj_abi": [],
    "sj_pack_frame": [
        _POINTER, _INT64, ctypes.c_int32, _INT64, _INT64, _INT64, _INT64,
        _POINTER, _INT64, _POINTER, _POINTER, _POINTER, _POINTER, ctypes.c_int32,
    ],
    "sj_compare": [_POINTER, _POINTER, _POINTER, _POINTER, _INT64, _INT64, _INT64, _POINTER, _INT64, _POINTER],
}  # fmt: skip


class _Unusable(Exception):
    """Raised when there is no library that can be used; the text says why."""


def library() -> Optional[ctypes.CDLL]:
    """Return the kernel, or None where numpy does its work."""
    return _found()[0]


def state() -> str:
    """Return in a few words what does the work: the kernel, or numpy and why."""
    return _found()[1]


@lru_cache(maxsize=None)
def _found() -> Tuple[Optional[ctypes.CDLL], str]:
    try:
        loaded = _load(_path())
        return loaded, f"kernel for {SYSTEM}"
    except _Unusable as error:
        return None, f"numpy (no kernel: {error})"


def _path() -> str:
    """Return where the library is, if it is what it was when it was built."""
    setting = os.environ.get(SETTING, "")
    if setting == "off":
        raise _Unusable(f"{SETTING} is off")
    path = setting or os.path.join(os.path.dirname(os.path.abspath(__file__)), NAME)
    try:
        with open(path, "rb") as file, open(path + CHECKSUM, encoding="ascii") as checksum:
            if hashlib.sha256(file.read()).hexdigest() != checksum.read().split()[0]:
                raise _Unusable(f"{os.path.basename(path)} is not the file that was built")
    except (OSError, ValueError, IndexError):
        raise _Unusable("none was compiled" if not setting else f"{path} cannot be read") from None
    return path


def _load(path: str) -> ctypes.CDLL:
    if sys.byteorder != "little":
        raise _Unusable("this machine is not little-endian")
    try:
        loaded = ctypes.CDLL(path)
        for name, arguments in _SIGNATURES.items():
            function = getattr(loaded, name)
            function.argtypes, function.restype = arguments, ctypes.c_int
    except (OSError, AttributeError) as error:
        raise _Unusable(f"it cannot be loaded: {error}") from None
    if loaded.sj_abi() != ABI:
        raise _Unusable(f"it has version {loaded.sj_abi()}, not {ABI}")
    if not _answers_are_right(loaded):
        raise _Unusable("it fails its self-test")
    return loaded


def _answers_are_right(loaded: ctypes.CDLL) -> bool:
    """Return whether known questions get their known answers."""
    # Two rows of 70 pixels, filtered by Sub and Up: label 3 from pixel 60 on, then label 3 alone at pixel 69.
    rows = bytes([1, *[0] * 60, 3, *[0] * 9]) + bytes([2, *[0] * 60, *[253] * 9, 0])
    frame = Frames((2, 70), 1, loaded)
    if not frame.add(0, rows, 8) or frame.add(0, b"\7" * 142, 8) or frame.add(0, rows, 7):
        return False
    (stack,) = frame.take(1).values()
    if stack.words.tolist() != [[[0xF << 60, 0x3F], [0, 0x20]]] or (stack.top, stack.left) != (0, 0):
        return False
    other = Stack(np.array([[[0x38]]], np.uint64), 1, 1, (2, 70))
    columns = ((-1, 0, 0), (0, -1, 1), (1, 0, 0))
    counts = compare(stack, other, columns, loaded)
    return counts is not None and counts.tolist() == [[11, 3, 1, 11, 5, 5, 5]]


def compare(
    truth: Stack, prediction: Stack, disk: Tuple[Tuple[int, int, int], ...], loaded: Optional[ctypes.CDLL]
) -> Optional[Array]:
    """Return the seven counts of each frame as rows, or None where the kernel cannot say."""
    if loaded is None:
        return None
    frames = len(truth.words)
    sides = [np.ascontiguousarray(side.words, np.uint64) for side in (truth, prediction)]
    windows = [
        np.array([side.top, side.left, *words.shape[1:]], np.int64) for side, words in zip((truth, prediction), sides)
    ]
    columns = np.array(disk, np.int32)
    counts = np.zeros((frames, 7), np.int64)
    status = loaded.sj_compare(
        sides[0].ctypes.data, windows[0].ctypes.data, sides[1].ctypes.data, windows[1].ctypes.data,
        frames, *truth.size, columns.ctypes.data, len(columns), counts.ctypes.data,
    )  # fmt: skip
    return counts if status == FINE else None


class Frames:
    """Packs the frames of one block after the other; its memory serves every block of a sequence."""

    def __init__(self, size: Size, most_frames: int, loaded: ctypes.CDLL) -> None:
        self.size, self._library = size, loaded
        self._slot_of = np.full(LABELS, -1, np.int32)
        self._boxes = np.zeros((LABELS, 4), np.int32)
        self._used = ctypes.c_int64(0)
        self._words = np.zeros((1, most_frames, size[0], words_across(size[1])), np.uint64)
        #: Which labels the frame has that was added last, 0 included.
        self.seen = np.zeros(LABELS, np.uint8)

    @property
    def most_frames(self) -> int:
        """How many frames a block may have."""
        return self._words.shape[1]

    def add(self, frame: int, rows: Inflated, depth: int, most: int = LABELS, *, merged: bool = False) -> bool:
        """Pack a frame, and return whether it could be, which takes at most so many labels in a block.

        Its rows are filtered and have this depth, or are labels of one byte each where it is 0.  Where labels
        are merged, all but 0 become label 1.
        """
        status, source = FULL, np.frombuffer(rows, np.uint8)
        while status == FULL and self._used.value <= most:
            if self._used.value == len(self._words):
                self._words = np.concatenate([self._words, np.zeros_like(self._words)])[: LABELS - 1]
            status = self._library.sj_pack_frame(
                source.ctypes.data, len(rows), depth, *self.size, frame, self.most_frames, self._words.ctypes.data,
                len(self._words), self._slot_of.ctypes.data, self._boxes.ctypes.data, ctypes.byref(self._used),
                self.seen.ctypes.data, merged,
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
