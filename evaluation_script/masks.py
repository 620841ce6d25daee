"""Packed masks: one bit a pixel, rows of 64-bit words, the lowest bit leftmost.

A stack holds one object in the frames of a block and is cropped to the words
that hold any of it.  Bits to the right of the frame are always zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Optional, Tuple

import numpy as np

Array = np.ndarray[Any, Any]
Size = Tuple[int, int]

WORD = 64


def words_across(width: int) -> int:
    """Words in a row of this many pixels."""
    return -(-width // WORD)


def empty_labels(frames: int, size: Size, dtype: Any = np.uint8) -> Array:
    """Room for the labels of some frames, with rows as long as their words."""
    return np.zeros((frames, size[0], words_across(size[1]) * WORD), dtype)


def pack(flags: Array) -> Array:
    """Booleans (frames, height, whole words of pixels) → words (frames, height, words)."""
    words: Array = np.packbits(flags.reshape(-1), bitorder="little").view(np.uint64)
    return words.reshape(*flags.shape[:2], flags.shape[2] // WORD)


def unpack(words: Array, width: int) -> Array:
    """Words (…, words) → booleans (…, width)."""
    return np.unpackbits(words.view(np.uint8), axis=-1, count=width, bitorder="little").astype(bool)


#: Set bits of every 16-bit number: what numpy before 2.0 counts with.
_ONES = np.unpackbits(np.arange(1 << 16, dtype=np.uint16).view(np.uint8).reshape(-1, 2), axis=1).sum(
    axis=1, dtype=np.uint8
)


def ones(words: Array) -> Array:
    """How many bits are set in each row of a contiguous array (rows, words)."""
    modern = hasattr(np, "bitwise_count")
    counts = np.bitwise_count(words) if modern else _ONES.take(words.view(np.uint16))
    total: Array = counts.sum(axis=-1, dtype=np.int64)
    return total


@dataclass(frozen=True)
class Stack:
    """One object in consecutive frames: words (frames, rows, words) at (top, left) of the frame."""

    words: Array
    top: int
    left: int
    size: Size

    @property
    def area(self) -> Array:
        """Pixels in each frame."""
        return ones(self.words.reshape(len(self.words), -1))

    def frames(self, wanted: Array) -> Stack:
        """Some of the frames."""
        if len(wanted) == len(self.words):
            return self
        return Stack(np.ascontiguousarray(self.words[wanted]), self.top, self.left, self.size)

    def without(self, other: Stack) -> Stack:
        """The pixels that the other stack doesn't have."""
        shared = overlap(self, other)
        if shared is None:
            return self
        mine, theirs = shared
        words = self.words.copy()
        words[mine] &= ~other.words[theirs]
        return Stack(words, self.top, self.left, self.size)


def overlap(a: Stack, b: Stack) -> Optional[tuple[Any, Any]]:
    """Where two stacks lie over each other: the part of each, or None."""
    top, left = max(a.top, b.top), max(a.left, b.left)
    bottom = min(a.top + a.words.shape[1], b.top + b.words.shape[1])
    right = min(a.left + a.words.shape[2], b.left + b.words.shape[2])
    if bottom <= top or right <= left:
        return None

    def part(stack: Stack) -> Any:
        return np.s_[:, top - stack.top : bottom - stack.top, left - stack.left : right - stack.left]

    return part(a), part(b)


def overlaps(a: Stack, b: Stack) -> bool:
    """Do they share a pixel in any frame?"""
    parts = overlap(a, b)
    return parts is not None and bool((a.words[parts[0]] & b.words[parts[1]]).any())


def cropped(words: Array, size: Size) -> Stack:
    """A stack of whole frames (frames, height, words), cut to what it holds."""
    seen = np.bitwise_or.reduce(words, axis=0)
    rows = np.flatnonzero(np.bitwise_or.reduce(seen, axis=1))
    if not len(rows):
        return nothing(len(words), size)
    columns = np.flatnonzero(np.bitwise_or.reduce(seen, axis=0))
    top, left = int(rows[0]), int(columns[0])
    part = words[:, top : rows[-1] + 1, left : columns[-1] + 1]
    return Stack(np.ascontiguousarray(part), top, left, size)


def joined(stacks: list[Stack], frames: int, size: Size) -> Stack:
    """Pixels that any of the stacks has."""
    held = [stack for stack in stacks if stack.words.size]
    if len(held) < 2:
        return held[0] if held else nothing(frames, size)
    top, left = min(stack.top for stack in held), min(stack.left for stack in held)
    bottom = max(stack.top + stack.words.shape[1] for stack in held)
    right = max(stack.left + stack.words.shape[2] for stack in held)
    union = Stack(np.zeros((frames, bottom - top, right - left), np.uint64), top, left, size)
    for stack in held:
        parts = overlap(union, stack)
        if parts is not None:
            union.words[parts[0]] |= stack.words[parts[1]]
    return union


def nothing(frames: int, size: Size) -> Stack:
    """An object that is in none of the frames."""
    return Stack(np.zeros((frames, 0, 0), np.uint64), 0, 0, size)
