"""Packed masks: one bit per pixel, rows of 64-bit words, the lowest bit leftmost.

A stack holds one object in the frames of a block, cropped to its nonzero words. Bits to the right of the frame are
always zero.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any, Dict, Iterable, List, NamedTuple, Optional, Tuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

Array = np.ndarray[Any, Any]
#: Height and width.
Size = Tuple[int, int]
#: Frames, rows and words of a stack.
Window = Tuple[slice, slice, slice]

WORD = 64
#: Label images with more labels are searched for existing ones.
_FEW_LABELS = 24


def words_across(width: int) -> int:
    """Return the number of words in a row of this many pixels."""
    return -(-width // WORD)


def empty_labels(frames: int, size: Size, dtype: DTypeLike = np.uint8) -> Array:
    """Return empty labels (frames, height, whole words of pixels)."""
    return np.zeros((frames, size[0], words_across(size[1]) * WORD), dtype)


def pack(flags: Array) -> Array:
    """Return booleans (frames, height, whole words of pixels) as words (frames, height, words)."""
    words: Array = np.packbits(flags.reshape(-1), bitorder="little").view(np.uint64)
    return words.reshape(*flags.shape[:2], flags.shape[2] // WORD)


def unpack(words: Array, width: int) -> Array:
    """Return words (…, words) as booleans (…, width)."""
    return np.unpackbits(words.view(np.uint8), axis=-1, count=width, bitorder="little").astype(bool)


def spread_rows(words: Array, step: int, moved: Array) -> Array:
    """Return each row of words (words across, …) united with itself moved either way; `moved` is overwritten."""
    joined = words << np.uint64(step)
    joined |= words
    joined |= np.right_shift(words, np.uint64(step), out=moved)
    joined[1:] |= np.right_shift(words[:-1], np.uint64(WORD - step), out=moved[1:])
    joined[:-1] |= np.left_shift(words[1:], np.uint64(WORD - step), out=moved[1:])
    return joined


def ones(words: Array) -> Array:
    """Return how many bits are set in each row of a contiguous array (rows, words)."""
    counts = np.bitwise_count(words) if hasattr(np, "bitwise_count") else _list_bit_counts().take(words.view(np.uint16))
    total: Array = counts.sum(axis=-1, dtype=np.int64)
    return total


@functools.cache
def _list_bit_counts() -> Array:
    """Return the number of set bits of every 16-bit number, for numpy before 2.0."""
    numbers = np.arange(1 << 16, dtype=np.uint16).view(np.uint8).reshape(-1, 2)
    counts: Array = np.unpackbits(numbers, axis=1).sum(axis=1, dtype=np.uint8)
    return counts


class Stack(NamedTuple):
    """One object in consecutive frames: words (frames, rows, words) from a row and a word column on."""

    words: Array
    top: int
    column: int
    size: Size

    @property
    def area(self) -> Array:
        """The number of pixels in each frame."""
        return ones(self.words.reshape(len(self.words), -1))

    def frames(self, indices: Array) -> Stack:
        """Return the frames with these rising indices."""
        if len(indices) == len(self.words):
            return self
        return Stack(np.ascontiguousarray(self.words[indices]), self.top, self.column, self.size)

    def draw(self, frame: int) -> Array:
        """Return the pixels of a frame as booleans (height, width)."""
        flags = np.zeros(self.size, bool)
        rows, words = self.words.shape[1:]
        covered = flags[self.top : self.top + rows, self.column * WORD : (self.column + words) * WORD]
        covered[:] = unpack(self.words[frame], covered.shape[1])
        return flags

    def without(self, stack: Stack) -> Stack:
        """Return the pixels that another stack lacks."""
        windows = overlap(self, stack)
        if windows is None:
            return self
        words = self.words.copy()
        words[windows[0]] &= ~stack.words[windows[1]]
        return Stack(words, self.top, self.column, self.size)


#: Objects by their labels.
Stacks = Dict[str, Stack]


class FoldedStack:
    """A stack in compact form: the words that differ from the row above, and their positions."""

    def __init__(self, stack: Stack) -> None:
        self._top, self._column, self._size, self._shape = stack.top, stack.column, stack.size, stack.words.shape
        changes = stack.words.copy()
        changes[:, 1:] ^= stack.words[:, :-1]
        places = changes.reshape(-1) != 0
        self._words, self._places = changes.reshape(-1)[places], np.packbits(places)

    def unfold(self) -> Stack:
        """Return the stack."""
        count = math.prod(self._shape)
        words = np.zeros(count, np.uint64)
        words[np.unpackbits(self._places, count=count).view(bool)] = self._words
        words = words.reshape(self._shape)
        return Stack(np.bitwise_xor.accumulate(words, axis=1, out=words), self._top, self._column, self._size)


def overlap(a: Stack, b: Stack) -> Optional[Tuple[Window, Window]]:
    """Return the windows where two stacks overlap, in each one's words; None without overlap."""
    top, column = max(a.top, b.top), max(a.column, b.column)
    bottom = min(a.top + a.words.shape[1], b.top + b.words.shape[1])
    end = min(a.column + a.words.shape[2], b.column + b.words.shape[2])
    if bottom <= top or end <= column:
        return None

    def window(stack: Stack) -> Window:
        return slice(None), slice(top - stack.top, bottom - stack.top), slice(column - stack.column, end - stack.column)

    return window(a), window(b)


def overlaps(a: Stack, b: Stack) -> bool:
    """Return whether two stacks share a pixel in any frame."""
    parts = overlap(a, b)
    return parts is not None and bool((a.words[parts[0]] & b.words[parts[1]]).any())


def pad(words: Array, above: int, below: int, before: int, after: int) -> Array:
    """Return words (frames, rows, words) padded with empty rows and words."""
    frames, rows, across = words.shape
    wide = np.zeros((frames, above + rows + below, before + across + after), np.uint64)
    wide[:, above : above + rows, before : before + across] = words
    return wide


def crop(words: Array, size: Size, top: int = 0, column: int = 0) -> Stack:
    """Return words from this row and column on as a stack, cut to its non-zero words."""
    seen = np.bitwise_or.reduce(words, axis=0)
    rows = np.flatnonzero(np.bitwise_or.reduce(seen, axis=1))
    if not len(rows):
        return empty_stack(len(words), size)
    columns = np.flatnonzero(np.bitwise_or.reduce(seen, axis=0))
    window = words[:, rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    return Stack(np.ascontiguousarray(window), top + int(rows[0]), column + int(columns[0]), size)


def join_stacks(stacks: list[Stack], frames: int, size: Size) -> Stack:
    """Return the union of the stacks."""
    visible = [stack for stack in stacks if stack.words.size]
    if len(visible) < 2:
        return visible[0] if visible else empty_stack(frames, size)
    top, column = min(stack.top for stack in visible), min(stack.column for stack in visible)
    bottom = max(stack.top + stack.words.shape[1] for stack in visible)
    end = max(stack.column + stack.words.shape[2] for stack in visible)
    return add_stacks(Stack(np.zeros((frames, bottom - top, end - column), np.uint64), top, column, size), visible)


def layers_of(stacks: Iterable[Stack], frames: int, size: Size) -> List[Stack]:
    """Return the pixels that at least one, two, three... of the stacks have."""
    layers: List[Stack] = []
    for stack in stacks:
        surplus = stack
        for index, layer in enumerate(layers):
            shared = layer.without(layer.without(surplus))
            layers[index] = join_stacks([layer, surplus], frames, size)
            surplus = crop(shared.words, size, shared.top, shared.column)
        if surplus.words.size:
            layers.append(surplus)
    return layers


def add_stacks(window: Stack, stacks: Iterable[Stack]) -> Stack:
    """Add the stacks' pixels to a window in place, and return it."""
    for stack in stacks:
        parts = overlap(window, stack)
        if parts is not None:
            window.words[parts[0]] |= stack.words[parts[1]]
    return window


def empty_stack(frames: int, size: Size) -> Stack:
    """Return the stack of an object that is absent from all frames."""
    return Stack(np.zeros((frames, 0, 0), np.uint64), 0, 0, size)


def stacks_of(block: Array, numbers: List[int], size: Size) -> Stacks:
    """Return the stacks of these labels, where they occur, in images (frames, height, whole words of pixels)."""
    seen = np.bitwise_or.reduce(block.view(np.uint64), axis=0)
    rows = np.flatnonzero(np.bitwise_or.reduce(seen, axis=1))
    if not len(rows):
        return {}
    words = np.flatnonzero(np.bitwise_or.reduce(seen, axis=0).reshape(words_across(size[1]), -1).any(axis=1))
    top, column = int(rows[0]), int(words[0])
    window = block[:, top : rows[-1] + 1, column * WORD : (words[-1] + 1) * WORD]
    stacks = {str(number): crop(pack(window == number), size, top, column) for number in numbers}
    return {label: stack for label, stack in stacks.items() if stack.words.size}


def labels_in(block: Array) -> List[int]:
    """Return candidate labels of these images without 0, exact if there are many."""
    highest = int(block.max(initial=0))
    if highest <= _FEW_LABELS:
        return list(range(1, highest + 1))
    flat = block.reshape(-1)
    changes = flat[np.flatnonzero(flat[1:] != flat[:-1])]
    return [int(label) for label in np.unique(np.append(changes, flat[-1])) if label]


def places_of(numbers: Array, wanted: Array) -> Array:
    """Return the index of each number in a sorted array; -1 if absent."""
    if not len(numbers):
        return np.full(len(wanted), -1)
    places = np.minimum(np.searchsorted(numbers, wanted), len(numbers) - 1)
    return np.where(numbers[places] == wanted, places, -1)
