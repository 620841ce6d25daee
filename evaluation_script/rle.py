"""COCO run lengths → packed masks, checked before they are believed.

Runs go down the columns, beginning with background; compressed ones are
written as text, five bits a character, as differences to the run before last.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Iterable, List, Tuple

import numpy as np

from .errors import Flaw
from .masks import Array, Size, empty_labels

#: Characters of one run length; six hold thirty bits.
LONGEST_VALUE = 6
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
    runs = runs_of(rle["counts"], size[0] * size[1])
    height, width = size
    mask = empty_labels(1, size, bool)
    down = np.repeat(np.arange(len(runs)) % 2 == 1, runs)
    mask[0, :, :width] = down.reshape(width, height).T
    return mask


def runs_of(counts: Any, pixels: int) -> Array:
    """Run lengths of either form, checked."""
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
    if not last[-1] or place.max() >= LONGEST_VALUE:
        raise Flaw("has counts that break off or are endless", WRITE_AGAIN)
    values = np.add.reduceat((codes & 0x1F) << (5 * place), starts)
    ends = np.flatnonzero(last)
    negative = (codes[ends] & 0x10) != 0
    values[negative] -= np.int64(1) << (5 * (place[ends][negative] + 1))
    # From the fourth on each is a difference to the run two before.
    values[1::2] = np.cumsum(values[1::2])
    values[2::2] = np.cumsum(values[2::2])
    return values


@dataclass(frozen=True)
class Checked:
    """What many compressed masks turned out to be."""

    #: 0 where a mask is good, else a key of FAULTS.
    fault: Array
    area: Array


FAULTS = {
    1: "has counts with characters that run lengths do not have",
    2: "has counts that break off or are endless",
    3: "has counts below zero",
    4: "has counts that do not add up to the pixels of its image",
}

#: Characters decoded at a time: what fits into a core's own cache.
CHARACTERS = 1 << 16


def check_many(texts: List[str], pixels: Array) -> Checked:
    """Decode compressed masks far enough to know that every run is sound, and their areas.

    Nothing else in this file keeps a C library from an endless loop: pycocotools
    never returns from runs that do not fill the image.
    """
    lengths = np.fromiter(map(len, texts), np.int64, len(texts))
    fault, area = np.zeros(len(texts), np.int8), np.zeros(len(texts), np.int64)
    ends = np.cumsum(lengths)
    start = 0
    while start < len(texts):
        reached = (ends[start - 1] if start else 0) + CHARACTERS
        stop = max(start + 1, int(np.searchsorted(ends, reached, side="right")))
        part = slice(start, stop)
        _check_part("".join(texts[part]), lengths[part], pixels[part], fault[part], area[part])
        start = stop
    return Checked(fault, area)


def _check_part(text: str, lengths: Array, pixels: Array, fault: Array, area: Array) -> None:
    codes = np.frombuffer(text.encode("latin-1", "replace"), np.uint8) - np.uint8(48)
    empty = lengths == 0
    fault[empty & (pixels > 0)] = 4
    if not len(codes) or empty.all():
        return
    some = np.flatnonzero(~empty)
    first = (np.cumsum(lengths) - lengths)[some]
    last = codes < 0x20
    final = first + lengths[some] - 1
    broken = ~last[final]
    last[final] = True  # so that a mask that breaks off does not run into the next
    ends = np.flatnonzero(last)
    starts = np.concatenate(([0], ends[:-1] + 1))
    heads = np.searchsorted(starts, first)
    values, sizes = _values(codes, starts, ends)
    runs, pair_heads, odd = _runs_of_values(values, heads)
    area[some] = np.add.reduceat(odd, pair_heads)
    fault[some[np.add.reduceat(runs, pair_heads) + area[some] != pixels[some]]] = 4
    fault[some[np.minimum.reduceat(np.minimum(runs, odd), pair_heads) < 0]] = 3
    fault[some[broken | (np.maximum.reduceat(sizes, heads) > LONGEST_VALUE)]] = 2
    fault[some[np.maximum.reduceat(codes, first) > 63]] = 1


def _values(codes: Array, starts: Array, ends: Array) -> Tuple[Array, Array]:
    """The numbers written between these characters, and how many characters each has."""
    sizes = ends - starts + 1
    values = (codes[starts] & np.uint8(0x1F)).astype(np.int64)
    more = np.flatnonzero(sizes > 1)  # one in five
    for step in range(1, LONGEST_VALUE):
        values[more] |= (codes[starts[more] + step] & np.uint8(0x1F)).astype(np.int64) << (5 * step)
        more = more[sizes[more] > step + 1]
    negative = np.flatnonzero(codes[ends] & np.uint8(0x10))
    values[negative] -= np.int64(1) << (5 * np.minimum(sizes[negative], LONGEST_VALUE))
    return values, sizes


def _runs_of_values(values: Array, heads: Array) -> Tuple[Array, Array, Array]:
    """Runs of background and of object, mask by mask in pairs: from the fourth on, values are differences.

    Each mask gets whole pairs, so that both chains of sums are plain strides.
    """
    counts = np.diff(np.append(heads, len(values)))
    pairs = (counts + 1) // 2
    pair_heads = np.cumsum(pairs) - pairs
    grid = np.zeros(2 * int(pairs.sum()), np.int64)
    grid[np.arange(len(values)) + np.repeat(2 * pair_heads - heads, counts)] = values
    even, odd = grid[0::2], grid[1::2]
    opening = even[pair_heads]
    even[pair_heads] = 0  # the first value is no part of a chain
    even_runs, odd_runs = np.cumsum(even), np.cumsum(odd)
    even_runs -= np.repeat(even_runs[pair_heads], pairs)
    odd_runs -= np.repeat(odd_runs[pair_heads] - odd[pair_heads], pairs)
    even_runs[pair_heads] = opening
    odd_runs[(pair_heads + pairs - 1)[counts % 2 == 1]] = 0  # the empty half of a last pair
    return even_runs, pair_heads, odd_runs


def compressed(runs: Iterable[int]) -> str:
    """COCO's text form of run lengths."""
    text: List[str] = []
    before: List[int] = []
    for run in runs:
        value = run - (before[-2] if len(before) > 2 else 0)
        before.append(run)
        more = True
        while more:
            bits = value & 0x1F
            value >>= 5
            more = value != (-1 if bits & 0x10 else 0)
            text.append(chr((bits | 0x20 if more else bits) + 48))
    return "".join(text)
