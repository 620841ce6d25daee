"""The masks of a sequence for a page: small label images as row-wise runs."""

from __future__ import annotations

import json
import math
import zlib
from itertools import combinations
from typing import Dict, Iterable, List, Tuple, Type

import numpy as np
from numpy.typing import NDArray

from .stack import WORD, Array, Size, Stack, Stacks, Window, overlaps, unpack

#: The level of compression; a higher one takes longer and gains little.
_EFFORT = 6
#: The maximum number of seven-bit groups in a run length.
_MOST_GROUPS = 4
#: The maximum number of labels of a stream.
MOST_LABELS = 1 << 14

#: Widths of masks in pixels, and the measured bytes of one side's frame per pixel of width.
WIDTHS, _BYTES = (854, 640, 480, 320, 240, 160), 1.2
#: The share of a page for masks, alone and with pictures.
_ALONE, _BESIDE_PICTURES = 0.9, 0.7


def width_for(frames: int, methods: int, budget: int, *, pictures: bool) -> int:
    """Return the width of masks for a page of this many bytes."""
    room = budget * (_BESIDE_PICTURES if pictures else _ALONE)
    fitting = [width for width in WIDTHS if frames * (1 + methods) * width * _BYTES <= room]
    return fitting[0] if fitting else WIDTHS[-1]


def bytes_in_page(streams: Iterable[bytes]) -> int:
    """Return the size of streams in a page, in bytes."""
    return sum(-(-len(stream) // 3) * 4 for stream in streams)


class MaskStream:
    """A collector of some objects' masks, block by block; overlaps have labels of their own.

    Masks with more runs than the limit are omitted.
    """

    def __init__(self, objects: List[str], size: Size, width: int, limit: float = math.inf) -> None:
        across = min(width, size[1])
        #: Height and width in the page.
        self.size: Size = (max(1, round(size[0] * across / size[1])), across)
        self._indices = {name: index for index, name in enumerate(objects)}
        #: The indices of each label's objects; label 0 is background.
        self._groups: List[Tuple[int, ...]] = [()]
        self._known: Dict[Tuple[int, ...], int] = {(): 0}
        self._labels: List[Array] = []
        self._lengths: List[Array] = []
        self._runs, self._limit = 0, limit

    def pack(self, header: Dict[str, object], *, bare: bool = False) -> bytes:
        """Return a zlib stream: a line of JSON that describes the rest, then labels and run lengths.

        A bare stream has no runs.
        """
        bare = bare or self.is_full
        labels = np.concatenate([np.zeros(0, np.uint16), *(() if bare else self._labels)])
        lengths = np.concatenate([np.zeros(0, np.int64), *(() if bare else self._lengths)])
        groups = [()] if bare else self._groups
        about = {**header, "size": self.size, "groups": groups, "runs": len(labels)}
        text = json.dumps(about, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
        data = text.encode("ascii") + b"\n" + _in_groups(labels.astype(np.int64)) + _in_groups(lengths)
        return zlib.compress(data, _EFFORT)

    @property
    def is_full(self) -> bool:
        """Return whether a stream's limit of runs or labels is exceeded."""
        return self._runs > self._limit or len(self._groups) > MOST_LABELS

    def add(self, stacks: Stacks, frames: int, size: Size) -> None:
        """Add the masks of some frames, at the page's size."""
        if self.is_full:
            return
        visible = {name: stack for name, stack in stacks.items() if name in self._indices and stack.words.size}
        if any(overlaps(*pair) for pair in combinations(visible.values(), 2)):
            self._take(self._paint(visible, frames, size))
            return
        runs = [_runs_of(stack, self.size) for stack in visible.values()]
        labels = np.array([self._label((self._indices[name],)) for name in visible], self._label_kind())
        numbers = np.repeat(labels, [len(starts) for starts, _ in runs])
        starts, ends = (np.concatenate([np.zeros(0, np.int64), *sides]) for sides in zip(*runs)) if runs else _NO_RUNS
        self._join_runs(numbers, starts, ends, frames)

    def add_labels(self, images: Array, groups: List[Tuple[int, ...]]) -> None:
        """Add label images at the page's size; each label is the index of its group of objects."""
        self._groups = groups
        self._take(images.reshape(len(images), -1))

    def _paint(self, stacks: Stacks, frames: int, size: Size) -> Array:
        """Return label images in which overlaps have labels of their own."""
        rows, columns = _pick_pixels(self.size, size)
        image = np.zeros((frames, *self.size), self._label_kind())
        for name, stack in stacks.items():
            start = stack.column * WORD
            top, bottom = np.searchsorted(rows, [stack.top, stack.top + stack.words.shape[1]])
            lines = np.ascontiguousarray(stack.words[:, rows[top:bottom] - stack.top])
            begin, end = np.searchsorted(columns, [start, start + stack.words.shape[2] * WORD])
            flags = unpack(lines, stack.words.shape[2] * WORD).take(columns[begin:end] - start, axis=-1)
            image = self._paint_over(image, (slice(None), slice(top, bottom), slice(begin, end)), flags, name)
        return image.reshape(frames, -1)

    def _paint_over(self, image: Array, window: Window, flags: Array, name: str) -> Array:
        """Return images with an object added; overlaps get the label of both."""
        index, below = self._indices[name], image[window][flags]
        labels_below, numbers = np.unique(below, return_inverse=True)
        labels = [self._label((*self._groups[label], index)) for label in labels_below.tolist()]
        if not self.is_full:
            image = image.astype(self._label_kind(), copy=False)
            image[window][flags] = np.array(labels, image.dtype)[numbers]
        return image

    def _label_kind(self) -> Type[np.generic]:
        """Return the number type that holds all labels, including future single-object ones."""
        return np.uint8 if len(self._groups) + len(self._indices) <= 1 << 8 else np.uint16

    def _label(self, group: Tuple[int, ...]) -> int:
        if group not in self._known:
            self._known[group] = len(self._groups)
            self._groups.append(group)
        return self._known[group]

    def _take(self, images: Array) -> None:
        """Add the runs of label images; none continues into the next image."""
        changes = np.ones(images.shape, bool)
        np.not_equal(images[:, 1:], images[:, :-1], out=changes[:, 1:])
        starts: Array = np.flatnonzero(changes)
        self._add_runs(images.reshape(-1)[starts], starts, images.size)

    def _join_runs(self, labels: Array, starts: Array, ends: Array, frames: int) -> None:
        """Add the runs of objects that do not overlap, and those of the pixels between them."""
        pixels = self.size[0] * self.size[1]
        order = np.argsort(starts, kind="stable")
        edges = np.column_stack([starts[order], ends[order]]).reshape(-1)
        firsts = np.arange(frames, dtype=np.int64) * pixels
        places = np.append(firsts, edges)
        after = np.zeros(len(places), labels.dtype)
        after[frames::2] = labels[order]
        # Of equal positions the last one counts: a run begins where another one ends, or where a frame begins.
        order = np.argsort(places, kind="stable")
        places, after = places[order], after[order]
        counts = np.append(places[1:] != places[:-1], True) & (places < frames * pixels)
        places, after = places[counts], after[counts]
        differs = np.append(True, after[1:] != after[:-1]) | (places % pixels == 0)
        self._add_runs(after[differs], places[differs], frames * pixels)

    def _add_runs(self, labels: Array, starts: Array, pixels: int) -> None:
        self._runs += len(starts)
        self._labels.append(labels)
        self._lengths.append(np.diff(np.append(starts, pixels)))


#: The starts and ends of an empty list of runs.
_NO_RUNS = (np.zeros(0, np.int64), np.zeros(0, np.int64))


def _pick_pixels(small: Size, size: Size) -> Tuple[Array, Array]:
    """Return the rows and the columns of a frame that a smaller image shows."""
    rows, columns = (((np.arange(count) + 0.5) * whole / count).astype(int) for count, whole in zip(small, size))
    return rows, columns


def _runs_of(stack: Stack, small: Size) -> Tuple[Array, Array]:
    """Return where the runs of an object start and end, as places of pixels in all its small images."""
    rows, columns = _pick_pixels(small, stack.size)
    top, bottom = np.searchsorted(rows, [stack.top, stack.top + stack.words.shape[1]]).tolist()
    before = np.searchsorted(columns, np.arange(stack.size[1] + 1))
    lines = stack.words[:, rows[top:bottom] - stack.top]
    # A bit of `edges` means that a pixel differs from the previous one; the word after a row ends its last run.
    edges = np.zeros((*lines.shape[:2], lines.shape[2] + 1), np.uint64)
    edges[..., :-1] = lines ^ (lines << np.uint64(1))
    edges[..., 1:] ^= lines >> np.uint64(WORD - 1)
    words = np.flatnonzero(edges)
    bits = np.flatnonzero(np.unpackbits(edges.reshape(-1)[words].view(np.uint8), bitorder="little"))
    line, word = np.divmod(words[bits // WORD], edges.shape[2])
    frame, row = np.divmod(line, max(bottom - top, 1))
    column = before[(stack.column + word) * WORD + bits % WORD]
    places = (frame * small[0] + row + top) * small[1] + column
    starts, ends = places[0::2], places[1::2]
    return starts[starts < ends], ends[starts < ends]


def _in_groups(numbers: NDArray[np.int64]) -> bytes:
    """Return numbers in bytes of seven bits, lowest first; the eighth bit marks continuation."""
    counts = np.ones(len(numbers), int)
    for group in range(1, _MOST_GROUPS):
        counts += numbers >= 1 << 7 * group
    ends = np.cumsum(counts)
    out = np.zeros(int(ends[-1]) if len(ends) else 0, np.uint8)
    for group in range(_MOST_GROUPS):
        has = np.flatnonzero(counts > group)
        out[(ends - counts)[has] + group] = numbers[has] >> 7 * group & 127 | (counts[has] > group + 1) * 128
    return out.tobytes()
