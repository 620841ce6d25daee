"""COCO run lengths → packed masks, checked before they are believed.

Runs go down the columns, beginning with background; compressed ones are
written as text, five bits a character, as differences to the run before last.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import Any, Iterable, Iterator, List, Tuple

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


def longest(pixels: Any) -> Any:
    """Characters or numbers that the run lengths of so many pixels can need at the most."""
    return 2 * pixels + LEAST_LENGTH


def runs_of(counts: Any, pixels: int) -> Array:
    """Run lengths of either form, checked."""
    if isinstance(counts, (str, list)) and len(counts) > longest(pixels):
        raise Flaw(f"has counts of length {len(counts):,}, more than {pixels} pixels can need", WRITE_AGAIN)
    if isinstance(counts, str):
        runs = _decompressed(counts)
    elif isinstance(counts, list):
        if not set(map(type, counts)) <= {int}:
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
        return np.concatenate([np.zeros(0, np.int64), *_windows(text)])
    except _FaultyError as error:
        raise Flaw(FAULTS[error.fault], WRITE_AGAIN) from None


class _FaultyError(Exception):
    """Raised where one mask's text breaks off being run lengths."""

    def __init__(self, fault: int) -> None:
        super().__init__(fault)
        self.fault = fault


def _windows(text: str) -> Iterator[Array]:
    """The run lengths of one mask, some at a time, so that a long text takes no more memory than a short one."""
    if not text.isascii():
        raise _FaultyError(1)
    codes = np.frombuffer(text.encode("ascii"), np.uint8) - np.uint8(48)
    if len(codes) and codes.max() > HIGHEST_CODE:
        raise _FaultyError(1)
    start = count = 0
    before = [0, 0]  # the last run of either colour
    while start < len(codes):
        part = codes[start : start + CHARACTERS]
        ends = np.flatnonzero(part < CONTINUED)
        if not len(ends) or (start + len(part) == len(codes) and ends[-1] != len(part) - 1):
            raise _FaultyError(2)
        values, sizes = _values(part, np.concatenate(([0], ends[:-1] + 1)), ends)
        if sizes.max() > LONGEST_VALUE:
            raise _FaultyError(2)
        # From the fourth on each is a difference to the run two before.
        for first in (0, 1):
            chain = values[2 if first == count == 0 else first :: 2]
            if len(chain):
                chain[0] += before[(count + first) % 2]
                np.cumsum(chain, out=chain)
                before[(count + first) % 2] = int(chain[-1])
        yield values
        start, count = start + int(ends[-1]) + 1, count + len(values)


@dataclass(frozen=True)
class Checked:
    """What many compressed masks turned out to be."""

    #: 0 where a mask is good, else a key of FAULTS.
    fault: Array
    area: Array


#: Characters stand for six bits; this one says that the number goes on.
HIGHEST_CODE, CONTINUED = 63, 0x20

FAULTS = {
    1: "has counts with characters that run lengths do not have",
    2: "has counts that break off or are endless",
    3: "has counts below zero",
    4: "has counts that do not add up to the pixels of its image",
    5: "has counts that are longer than its image can need",
}

#: Characters decoded at a time: what fits into a core's own cache.
CHARACTERS = 1 << 16


def check_many(texts: List[str], pixels: Array) -> Checked:
    """Decode compressed masks far enough to know that every run is sound, and their areas.

    Nothing else in this file keeps a C library from an endless loop: pycocotools
    never returns from runs that do not fill the image.  It reads the UTF-8 bytes
    of a text, so only ASCII passes: there they are the characters looked at here.
    """
    lengths = np.fromiter(map(len, texts), np.int64, len(texts))
    fault, area = np.zeros(len(texts), np.int8), np.zeros(len(texts), np.int64)
    too_long = np.flatnonzero(lengths > longest(pixels))
    if len(too_long):
        texts, lengths[too_long] = list(texts), 0
        for place in too_long.tolist():
            texts[place] = ""
    ends = np.cumsum(lengths)
    start = 0
    while start < len(texts):
        reached = (ends[start - 1] if start else 0) + CHARACTERS
        stop = max(start + 1, int(np.searchsorted(ends, reached, side="right")))
        part = slice(start, stop)
        if lengths[start] > CHARACTERS:
            fault[start], area[start] = _check_long(texts[start], int(pixels[start]))
        else:
            _check_part(texts[part], lengths[part], pixels[part], fault[part], area[part])
        start = stop
    fault[too_long] = 5
    return Checked(fault, area)


def _check_long(text: str, pixels: int) -> Tuple[int, int]:
    """Fault and area of one long mask."""
    total = area = count = 0
    try:
        for runs in _windows(text):
            if runs.min() < 0:
                return 3, 0
            total, area = total + int(runs.sum()), area + int(runs[1 - count % 2 :: 2].sum())
            count += len(runs)
    except _FaultyError as error:
        return error.fault, 0
    return (0 if total == pixels else 4), area


def _check_part(texts: List[str], lengths: Array, pixels: Array, fault: Array, area: Array) -> None:
    text = "".join(texts)
    codes = np.frombuffer(text.encode("ascii", "replace"), np.uint8) - np.uint8(48)
    empty = lengths == 0
    fault[empty & (pixels > 0)] = 4
    if not len(codes) or empty.all():
        return
    some = np.flatnonzero(~empty)
    first = (np.cumsum(lengths) - lengths)[some]
    last = codes < CONTINUED
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
    fault[some[np.maximum.reduceat(codes, first) > HIGHEST_CODE]] = 1
    if not text.isascii():
        fault[[place for place, one in enumerate(texts) if not one.isascii()]] = 1


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
    return compressed_many([list(runs)])[0]


def compressed_lists(masks: List[List[Any]], pixels: Array) -> List[str]:
    """Text of run lengths that were lists; ValueError or TypeError unless each is whole numbers that fill its image."""
    lengths = np.fromiter(map(len, masks), np.int64, len(masks))
    flat = list(chain.from_iterable(masks))
    if not set(map(type, flat)) <= {int} or (lengths > longest(pixels)).any() or (lengths == 0).any():
        raise TypeError
    runs = np.array(flat, np.int64)
    most = int(pixels.max(initial=0))
    if len(runs) and (runs.min() < 0 or runs.max() > most):
        raise ValueError
    if (np.add.reduceat(runs, np.cumsum(lengths) - lengths) != pixels).any():
        raise ValueError
    return compressed_many(masks)


def compressed_many(masks: List[List[int]]) -> List[str]:
    """The same for many masks at once; what they hold must be whole numbers."""
    lengths = np.fromiter(map(len, masks), np.int64, len(masks))
    runs = np.fromiter(chain.from_iterable(masks), np.int64, int(lengths.sum()))
    ends = np.cumsum(lengths)
    first = np.repeat(ends - lengths, lengths)
    values = runs.copy()
    values[3:] -= np.where(np.arange(3, len(runs)) - first[3:] > 2, runs[1:-2], 0)
    columns, more = [], np.ones(len(values), bool)
    written = np.zeros(len(values), np.int64)
    while more.any():
        bits = (values & 0x1F).astype(np.uint8)
        values >>= 5
        written += more
        again = more & (values != np.where(bits & 0x10, -1, 0))
        columns.append(np.where(again, bits | CONTINUED, bits) + np.uint8(48))
        more = again
    if not columns:
        return [""] * len(masks)
    taken = np.arange(len(columns)) < written[:, None]
    text = np.stack(columns, axis=1)[taken].tobytes().decode("ascii")
    bounds = np.concatenate(([0], np.cumsum(written)))[np.concatenate(([0], ends))].tolist()
    return [text[start:stop] for start, stop in zip(bounds, bounds[1:])]
