"""The masks of a sequence for a page: small label images as row-wise runs."""

from __future__ import annotations

import json
import math
import zlib
from typing import Dict, Iterable, List, Tuple, Type

import numpy as np
from numpy.typing import NDArray

from .stack import WORD, Array, Size, Stack, Stacks, Window, overlaps

#: What a stream is compressed by: more takes longer, and gains little.
_EFFORT = 6
#: A run length has at most so many groups of seven bits.
_GROUPS = 4
#: A stream has no more labels.
MOST_LABELS = 1 << 14

#: Widths of masks in pixels, and how many bytes a frame of one side takes for each pixel of it, by measurement.
WIDTHS, _BYTES = (854, 640, 480, 320, 240, 160), 1.2
#: What masks may take of a page, alone and where pictures are wanted too.
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
        #: What each label is: indices of objects; label 0 is nothing.
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
        rows, columns = (
            ((np.arange(count) + 0.5) * whole / count).astype(int) for count, whole in zip(self.size, size)
        )
        image = np.zeros((frames, *self.size), self._label_kind())
        painted: List[Stack] = []
        for name, stack in stacks.items():
            if name not in self._indices or not stack.words.size:
                continue
            top, bottom = np.searchsorted(rows, [stack.top, stack.top + stack.words.shape[1]])
            start = stack.column * WORD
            first_column, end_column = np.searchsorted(columns, [start, start + stack.words.shape[2] * WORD])
            lines = np.ascontiguousarray(stack.words[:, rows[top:bottom] - stack.top])
            bits = np.unpackbits(lines.view(np.uint8), axis=-1, bitorder="little")
            flags = bits.take(columns[first_column:end_column] - start, axis=-1).view(bool)
            if any(overlaps(stack, painted_stack) for painted_stack in painted):
                image = self._paint_over(
                    image, (slice(None), slice(top, bottom), slice(first_column, end_column)), flags, name
                )
            else:
                window = image[:, top:bottom, first_column:end_column]
                np.maximum(
                    window, np.multiply(flags, self._label((self._indices[name],)), dtype=image.dtype), out=window
                )
            painted.append(stack)
        self._take(image.reshape(frames, -1))

    def add_labels(self, images: Array, groups: List[Tuple[int, ...]]) -> None:
        """Add label images at the page's size; each label is the index of its group of objects."""
        self._groups = groups
        self._take(images.reshape(len(images), -1))

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
        self._runs += len(starts)
        self._labels.append(images.reshape(-1)[starts])
        self._lengths.append(np.diff(np.append(starts, images.size)))


def _in_groups(numbers: NDArray[np.int64]) -> bytes:
    """Return numbers in bytes of seven bits, lowest first; the eighth bit marks continuation."""
    counts = np.ones(len(numbers), int)
    for group in range(1, _GROUPS):
        counts += numbers >= 1 << 7 * group
    ends = np.cumsum(counts)
    out = np.zeros(int(ends[-1]) if len(ends) else 0, np.uint8)
    for group in range(_GROUPS):
        has = np.flatnonzero(counts > group)
        out[(ends - counts)[has] + group] = numbers[has] >> 7 * group & 127 | (counts[has] > group + 1) * 128
    return out.tobytes()
