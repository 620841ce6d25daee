"""The conversion of COCO run lengths, validated first, to packed masks.

Runs go down the columns and begin with background. The compressed form is text, five bits per character, each value
relative to the run before last. `MaskTexts` holds many masks as one text with bounds.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import (
    Any,
    Callable,
    Iterable,
    Iterator,
    List,
    NamedTuple,
    Optional,
    Sequence,
    Tuple,
    TypeVar,
    Union,
)

import numpy as np

from ..files import Flaw, printable
from .stack import Array, Size, empty_labels

_Pixels = TypeVar("_Pixels", int, Array)

#: The maximum number of characters of a run length; six encode thirty bits.
_LONGEST_VALUE = 6
#: The minimum allowed length of a mask's text; even a mask of one pixel takes a few characters.
_LEAST_LENGTH = 64
#: The highest code of a character, which encodes six bits, and the bit that continues a number.
_HIGHEST_CODE, _CONTINUED = 63, 0x20
#: The number of characters decoded at a time, which fit into a core's cache.
_CHARACTERS = 1 << 16
WRITE_AGAIN = "Encode it with pycocotools or as it does"

TOO_LONG = 5
FAULTS = {
    1: "has counts with invalid characters",
    2: "has counts that end too early or do not end",
    3: "has counts below zero",
    4: "has counts that do not add up to the pixels of its image",
    TOO_LONG: "has more counts than its image can need",
}


@dataclass(frozen=True, eq=False, repr=False)
class MaskTexts:
    """Masks by index, stored as one text and two numbers each."""

    text: bytes
    starts: Array
    stops: Array

    def __len__(self) -> int:
        return len(self.starts)

    def __getitem__(self, index: int) -> str:
        return self.text[self.starts[index] : self.stops[index]].decode("ascii")

    def unpack(self) -> List[str]:
        """Return the masks as separate texts."""
        return [self[index] for index in range(len(self))]

    def take(self, indices: Union[Array, slice]) -> MaskTexts:
        """Return some of the masks, which share the text."""
        return MaskTexts(self.text, self.starts[indices], self.stops[indices])

    def compact(self) -> MaskTexts:
        """Return the same masks with a text of only their characters."""
        starts, stops, lengths = self.starts, self.stops, self.stops - self.starts
        # Adjacent texts are copied together.
        begins = np.flatnonzero(np.append(True, starts[1:] != stops[:-1])[: len(self)])
        closes = np.append(begins[1:], len(self))[: len(begins)] - 1
        spans = [self.text[start:stop] for start, stop in zip(starts[begins].tolist(), stops[closes].tolist())]
        ends = np.cumsum(lengths)
        return MaskTexts(b"".join(spans), ends - lengths, ends)


def pack_texts(texts: Sequence[str]) -> MaskTexts:
    """Return masks from separate texts, which are ASCII if valid."""
    stops = np.cumsum(np.fromiter(map(len, texts), np.int64, len(texts)))
    return MaskTexts("".join(texts).encode("ascii", "replace"), np.append(0, stops)[:-1], stops)


def join_texts(parts: List[MaskTexts]) -> MaskTexts:
    """Return the masks of all parts, in order."""
    offsets = np.cumsum([0, *(len(masks.text) for masks in parts)])
    nothing = np.zeros(0, np.int64)
    return MaskTexts(
        b"".join(masks.text for masks in parts),
        np.concatenate([nothing, *(masks.starts + offset for masks, offset in zip(parts, offsets))]),
        np.concatenate([nothing, *(masks.stops + offset for masks, offset in zip(parts, offsets))]),
    )


class Masks(NamedTuple):
    """Checked masks, their areas and the sizes of their images."""

    texts: MaskTexts
    area: Array
    sizes: Array
    #: Some runs may be empty.
    empty_runs: bool = False


def encode_masks(masks: Masks, indices: Array) -> List[Any]:
    """Return some of the masks in pycocotools' form."""
    texts = [masks.texts[index] for index in indices.tolist()]
    sizes = masks.sizes[indices].tolist()
    if masks.empty_runs:  # pycocotools rejects them
        texts = [compress(_drop_empty_runs(runs_of(text, h * w)).tolist()) for text, (h, w) in zip(texts, sizes)]
    return [{"size": size, "counts": text} for size, text in zip(sizes, texts)]


def _drop_empty_runs(runs: Array) -> Array:
    """Return the same mask without empty runs after the first."""
    ends = np.cumsum(runs)
    borders, times = np.unique(ends[:-1], return_counts=True)
    return np.diff(borders[(times % 2 == 1) & (borders < ends[-1])], prepend=0, append=ends[-1])


def flags(rle: object, size: Size) -> Array:
    """Return booleans (1, height, whole words) of run lengths that must fill a frame of this size."""
    if not isinstance(rle, dict) or not {"size", "counts"} <= rle.keys():
        raise Flaw('is not {"size": [height, width], "counts": ...}', WRITE_AGAIN)
    if rle["size"] != list(size) or any(type(side) is not int for side in rle["size"]):
        raise Flaw(
            f"has the size {str(rle['size'])[:40]} but the frame is [{size[0]}, {size[1]}] (height, width)",
            "Encode the mask at the size of the frame",
        )
    runs = runs_of(rle["counts"], size[0] * size[1])
    mask = empty_labels(1, size, bool)
    mask[0, :, : size[1]] = flags_of(runs).reshape(size[::-1]).T
    return mask


def flags_of(runs: Array) -> Array:
    """Return the pixels of runs, column after column, as booleans."""
    return np.repeat(np.arange(len(runs)) % 2 == 1, runs)


def read_encoding(mask: object, example: str) -> Tuple[Size, object]:
    """Return the size and the unchecked counts of a mask in JSON."""
    if not isinstance(mask, dict) or not {"size", "counts"} <= mask.keys():
        raise Flaw("has no segmentation of run lengths", f"Write {example}")
    size = mask["size"]
    if not isinstance(size, list) or list(map(type, size)) != [int, int]:
        raise Flaw(f"has a mask of size {printable(size)}, which is not [height, width]", WRITE_AGAIN)
    return (size[0], size[1]), mask["counts"]


def other_size(size: Size, picture: Size) -> Flaw:
    """Return the fault of a mask whose size differs from its picture's."""
    problem = f"has a mask of size {printable(list(size))} but the picture is {list(picture)} (height, width)"
    return Flaw(problem, "Encode the mask at the size of the picture")


def text_of(counts: object, pixels: int) -> str:
    """Return counts of either form as text; runs of a text stay unchecked."""
    if isinstance(counts, list):
        return compress(runs_of(counts, pixels).tolist())
    if not isinstance(counts, str):
        raise Flaw("has counts that are neither text nor a list", WRITE_AGAIN)
    return counts


def length_limit(pixels: _Pixels) -> _Pixels:
    """Return the maximum length of a mask's run lengths, in characters or numbers, given its pixels."""
    limit: _Pixels = 2 * pixels + _LEAST_LENGTH
    return limit


def runs_of(counts: object, pixels: int) -> Array:
    """Return the run lengths of either form, checked."""
    if isinstance(counts, (str, list)) and len(counts) > length_limit(pixels):
        raise Flaw(f"has counts of length {len(counts):,}, more than {pixels} pixels can need", WRITE_AGAIN)
    if isinstance(counts, str):
        try:
            runs = np.concatenate([np.zeros(0, np.int64), *_windows(counts)])
        except _FaultyError as error:
            raise Flaw(FAULTS[error.fault], WRITE_AGAIN) from None
    elif isinstance(counts, list):
        if not set(map(type, counts)) <= {int}:
            raise Flaw("has counts that are not all whole numbers", WRITE_AGAIN)
        if counts and (min(counts) < 0 or max(counts) > pixels):  # before they overflow
            raise Flaw("has counts below zero or beyond the frame", WRITE_AGAIN)
        runs = np.array(counts, np.int64)
    else:
        raise Flaw("has counts that are neither text nor a list", WRITE_AGAIN)
    if len(runs) and (runs.min() < 0 or runs.max() > pixels):
        raise Flaw("has counts below zero or beyond the frame", WRITE_AGAIN)
    if runs.sum() != pixels:
        raise Flaw(f"has counts that add up to {runs.sum()}, not to the {pixels} pixels of the frame", WRITE_AGAIN)
    return runs


class _FaultyError(Exception):
    """Raised for a mask text that cannot be decoded, with a key of FAULTS."""

    def __init__(self, fault: int) -> None:
        super().__init__(fault)
        self.fault = fault


def _windows(text: str) -> Iterator[Array]:
    """Yield the run lengths of one mask in batches, so that long texts need no more memory."""
    if not text.isascii():
        raise _FaultyError(1)
    codes = np.frombuffer(text.encode("ascii"), np.uint8) - np.uint8(48)
    if len(codes) and codes.max() > _HIGHEST_CODE:
        raise _FaultyError(1)
    start = 0
    before = np.zeros(0, np.int64)
    while start < len(codes):
        window = codes[start : start + _CHARACTERS]
        ends = np.flatnonzero(window < _CONTINUED)
        if not len(ends) or (start + len(window) == len(codes) and ends[-1] != len(window) - 1):
            raise _FaultyError(2)
        values, sizes = _values(window, np.concatenate(([0], ends[:-1] + 1)), ends)
        if sizes.max() > _LONGEST_VALUE:
            raise _FaultyError(2)
        background, covered, _ = _runs(np.concatenate((before, values)), np.zeros(1, np.int64))
        runs = np.stack((background, covered), axis=1).reshape(-1)[: len(before) + len(values)]
        yield runs[len(before) :]
        start += int(ends[-1]) + 1
        # A window is decoded as a mask that begins with the last run of either colour, at that colour's positions.
        before = runs if len(runs) < 3 else np.concatenate((np.zeros(2 - len(runs) % 2, np.int64), runs[-2:]))


class CheckedMasks(NamedTuple):
    """The faults and areas of many compressed masks."""

    #: 0 if a mask is valid, else a key of FAULTS.
    fault: Array
    area: Array


#: Checks masks, one text each, in images with these numbers of pixels: returns for each a key of FAULTS or 0, and the
#: area.
_BatchCheck = Callable[[List[str], Array], Tuple[Array, Array]]


def check_in_batches(texts: List[str], pixels: Array, check_batch: Optional[_BatchCheck] = None) -> CheckedMasks:
    """Check that every run of compressed masks is valid, and compute their areas; by numpy unless a function is given.

    This check keeps C libraries from an endless loop: pycocotools never returns from runs that do not fill the image.
    pycocotools reads UTF-8 bytes, so only ASCII passes, in which bytes and characters are the same.
    """
    lengths = np.fromiter(map(len, texts), np.int64, len(texts))
    fault, area = np.zeros(len(texts), np.int8), np.zeros(len(texts), np.int64)
    too_long = lengths > length_limit(pixels)
    if too_long.any():
        texts, lengths = ["" if flag else text for text, flag in zip(texts, too_long)], np.where(too_long, 0, lengths)
    for batch in cut_batches(lengths, _CHARACTERS):
        if check_batch:
            fault[batch], area[batch] = check_batch(texts[batch], pixels[batch])
        elif lengths[batch.start] > _CHARACTERS:
            fault[batch], area[batch] = _check_long(texts[batch.start], int(pixels[batch.start]))
        else:
            fault[batch], area[batch] = _check_batch(texts[batch], pixels[batch])
    if not all(map(str.isascii, texts)):
        fault[[index for index, mask in enumerate(texts) if not mask.isascii()]] = 1
    fault[too_long] = TOO_LONG
    return CheckedMasks(fault, area)


def cut_batches(lengths: Array, limit: int) -> Iterator[slice]:
    """Yield ranges of masks, or of other items, of these lengths that are looked at together: few, or a longer one."""
    ends = np.cumsum(lengths)
    start = 0
    while start < len(lengths):
        reached = (ends[start - 1] if start else 0) + limit
        stop = max(start + 1, int(np.searchsorted(ends, reached, side="right")))
        yield slice(start, stop)
        start = stop


def _check_long(text: str, pixels: int) -> Tuple[int, int]:
    """Return the fault and the area of one long mask."""
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


def _check_batch(texts: List[str], pixels: Array) -> Tuple[Array, Array]:
    """Return the fault and the area of each mask, ignoring characters beyond ASCII."""
    lengths = np.fromiter(map(len, texts), np.int64, len(texts))
    fault, area = np.zeros(len(texts), np.int8), np.zeros(len(texts), np.int64)
    codes = np.frombuffer("".join(texts).encode("ascii", "replace"), np.uint8) - np.uint8(48)
    empty = lengths == 0
    fault[empty & (pixels > 0)] = 4
    if not len(codes) or empty.all():
        return fault, area
    nonempty = np.flatnonzero(~empty)
    first_codes = (np.cumsum(lengths) - lengths)[nonempty]
    last = codes < _CONTINUED
    final = first_codes + lengths[nonempty] - 1
    broken = ~last[final]
    last[final] = True  # so that a truncated mask does not run into the next
    ends = np.flatnonzero(last)
    starts = np.concatenate(([0], ends[:-1] + 1))
    heads = np.searchsorted(starts, first_codes)
    values, sizes = _values(codes, starts, ends)
    background, covered, first_pairs = _runs(values, heads)
    area[nonempty] = np.add.reduceat(covered, first_pairs)
    fault[nonempty[np.add.reduceat(background, first_pairs) + area[nonempty] != pixels[nonempty]]] = 4
    fault[nonempty[np.minimum.reduceat(np.minimum(background, covered), first_pairs) < 0]] = 3
    fault[nonempty[broken | (np.maximum.reduceat(sizes, heads) > _LONGEST_VALUE)]] = 2
    fault[nonempty[np.maximum.reduceat(codes, first_codes) > _HIGHEST_CODE]] = 1
    return fault, area


def decode(texts: List[str]) -> Tuple[Array, Array, Array]:
    """Return the background and object runs of checked, non-empty masks, and each mask's start."""
    if not texts:
        return (np.zeros(0, np.int64),) * 3
    codes = np.frombuffer("".join(texts).encode("ascii"), np.uint8) - np.uint8(48)
    ends = np.flatnonzero(codes < _CONTINUED)
    starts, lengths = np.concatenate(([0], ends[:-1] + 1)), np.array(list(map(len, texts)))
    return _runs(_values(codes, starts, ends)[0], np.searchsorted(starts, np.cumsum(lengths) - lengths))


class Spans(NamedTuple):
    """The runs of pixels (from, to) of masks of one image, counted down its columns, and each mask's bounds."""

    runs: Array
    bounds: Array


def spans_of(texts: List[str]) -> Spans:
    """Return the runs of checked, non-empty masks."""
    background, covered, heads = decode(texts)
    ends = np.cumsum(background + covered)
    bounds = np.append(heads, len(covered))
    ends -= np.repeat((ends - background - covered)[heads], np.diff(bounds))
    return Spans(np.stack((ends - covered, ends), axis=1), bounds)


def count_inside(labels: Array, spans: Spans) -> Tuple[Array, int]:
    """Return the number of non-zero pixels of an image inside each mask, and of all of them."""
    before = np.append(0, np.cumsum(labels.T.reshape(-1) != 0))
    pixels = np.diff(before[spans.runs], axis=1)
    return np.diff(np.append(0, np.cumsum(pixels))[spans.bounds]), int(before[-1])


def _values(codes: Array, starts: Array, ends: Array) -> Tuple[Array, Array]:
    """Return the numbers encoded between these characters, and their lengths."""
    sizes = ends - starts + 1
    values = (codes[starts] & np.uint8(0x1F)).astype(np.int64)
    more = np.flatnonzero(sizes > 1)  # one in five
    for step in range(1, _LONGEST_VALUE):
        values[more] |= (codes[starts[more] + step] & np.uint8(0x1F)).astype(np.int64) << (5 * step)
        more = more[sizes[more] > step + 1]
    negative = np.flatnonzero(codes[ends] & np.uint8(0x10))
    values[negative] -= np.int64(1) << (5 * np.minimum(sizes[negative], _LONGEST_VALUE))
    return values, sizes


def _runs(values: Array, heads: Array) -> Tuple[Array, Array, Array]:
    """Return the background and object runs of masks whose values begin at `heads`, and each mask's start.

    From the fourth value on, a value is the difference to the run before last. Each mask gets whole pairs of runs, so
    that both sums are plain strides.
    """
    counts = np.diff(np.append(heads, len(values)))
    pairs = (counts + 1) // 2
    first_pairs = np.cumsum(pairs) - pairs
    grid = np.zeros(2 * int(pairs.sum()), np.int64)
    grid[np.arange(len(values)) + np.repeat(2 * first_pairs - heads, counts)] = values
    even, odd = grid[0::2], grid[1::2]
    opening = even[first_pairs]
    even[first_pairs] = 0  # the first value is not part of a chain
    background, covered = np.cumsum(even), np.cumsum(odd)
    background -= np.repeat(background[first_pairs], pairs)
    covered -= np.repeat(covered[first_pairs] - odd[first_pairs], pairs)
    background[first_pairs] = opening
    covered[(first_pairs + pairs - 1)[counts % 2 == 1]] = 0  # the empty half of a last pair
    return background, covered, first_pairs


def paint(texts: List[str], labels: Array, pixels: int) -> Optional[Array]:
    """Return the label of each pixel of checked, non-empty masks, 0 for none; None if two share a pixel.

    Masks have labels of one byte, and fill the image down its columns.
    """
    background, covered, firsts = decode(texts)
    counts = np.diff(np.append(firsts, len(covered)))
    ends = np.cumsum(background + covered) - np.repeat(np.arange(len(texts)) * pixels, counts)
    spans = np.column_stack((ends - covered, ends))[covered > 0]
    order = np.argsort(spans[:, 0], kind="stable")
    spans = spans[order]
    if (spans[1:, 0] < spans[:-1, 1]).any():
        return None
    return paint_spans(spans, np.repeat(labels, counts)[covered > 0][order], pixels)


def paint_spans(spans: Array, labels: Array, pixels: int) -> Array:
    """Return the label of each pixel, 0 for none, from spans (from, to) that rise and share no pixel."""
    edges = np.append(spans.reshape(-1), pixels)
    numbers = np.zeros(len(edges), np.uint8)
    numbers[1::2] = labels
    return np.repeat(numbers, np.diff(edges, prepend=0))


def boxes_of(texts: List[str], sizes: Array) -> Array:
    """Return the boxes (x, y, width, height) around checked masks in images of these sizes; all 0 for empty ones."""
    boxes = np.zeros((len(texts), 4), np.int64)
    for batch in cut_batches(np.fromiter(map(len, texts), np.int64, len(texts)), _CHARACTERS):
        boxes[batch] = _find_boxes(texts[batch], sizes[batch])
    return boxes


def _find_boxes(texts: List[str], sizes: Array) -> Array:
    """Return the same of masks that are decoded together."""
    boxes = np.zeros((len(texts), 4), np.int64)
    nonempty = np.flatnonzero([bool(text) for text in texts])
    if not len(nonempty):
        return boxes
    runs, bounds = spans_of([texts[index] for index in nonempty.tolist()])
    first_pairs, counts = bounds[:-1], np.diff(bounds)
    height, is_run = np.repeat(sizes[nonempty, 0], counts), runs[:, 0] < runs[:, 1]
    begins, closes = np.divmod(runs[:, 0], height), np.divmod(runs[:, 1] - 1, height)
    spans = begins[0] != closes[0]  # from the bottom of one column to the top of the next
    beyond = np.int64(1) << 62
    starts = [np.where(is_run, values, beyond) for values in (begins[0], np.where(spans, 0, begins[1]))]
    stops = [np.where(is_run, values + 1, 0) for values in (closes[0], np.where(spans, height - 1, closes[1]))]
    corner = np.stack([np.minimum.reduceat(values, first_pairs) for values in starts], axis=1)
    opposite = np.stack([np.maximum.reduceat(values, first_pairs) for values in stops], axis=1)
    has_pixels = opposite[:, 0] > 0
    boxes[nonempty[has_pixels]] = np.hstack((corner, opposite - corner))[has_pixels]
    return boxes


def unite(texts: List[str], pixels: int) -> Tuple[str, int]:
    """Return the mask of all pixels of any checked masks of an image, and their number."""
    flags = np.zeros(pixels, bool)
    for text in texts:
        flags |= flags_of(runs_of(text, pixels))
    return encode_flags(flags), int(np.count_nonzero(flags))


def encode_flags(flags: Array) -> str:
    """Return pixels, column after column, as compressed run lengths."""
    borders = np.flatnonzero(flags[1:] != flags[:-1]) + 1
    return compress(np.diff(borders, prepend=[0, 0] if flags[0] else [0], append=len(flags)).tolist())


def compress(runs: Iterable[int]) -> str:
    """Return COCO's text form of run lengths."""
    return compress_many([list(map(int, runs))])[0]


def compress_many(masks: List[List[int]], pixels: Optional[Array] = None) -> List[str]:
    """Return COCO's text form of the run lengths of many masks.

    With `pixels`, raise ValueError or TypeError unless each mask is whole numbers that fill its image.
    """
    lengths = np.fromiter(map(len, masks), np.int64, len(masks))
    ends = np.cumsum(lengths)
    flat = list(chain.from_iterable(masks))
    if pixels is not None:
        whole = set(map(type, flat)) <= {int}
        if not whole or not lengths.all() or (lengths > length_limit(pixels)).any():
            raise TypeError
    runs = np.fromiter(flat, np.int64, len(flat))
    if pixels is not None:
        if (runs < 0).any() or (runs > pixels.max(initial=0)).any():
            raise ValueError
        if (np.add.reduceat(runs, ends - lengths) != pixels).any():
            raise ValueError
    return texts_of(runs, ends)


def texts_of(runs: Array, ends: Array) -> List[str]:
    """Return COCO's text form of masks stored consecutively, which end at `ends`."""
    lengths = np.diff(ends, prepend=0)
    first_runs, values = np.repeat(ends - lengths, lengths), runs.copy()
    values[3:] -= np.where(np.arange(3, len(runs)) - first_runs[3:] > 2, runs[1:-2], 0)
    columns, more = [], np.ones(len(values), bool)
    written = np.zeros(len(values), np.int64)
    while more.any():
        bits = (values & 0x1F).astype(np.uint8)
        values >>= 5
        written += more
        again = more & (values != np.where(bits & 0x10, -1, 0))
        columns.append(np.where(again, bits | _CONTINUED, bits) + np.uint8(48))
        more = again
    if not columns:
        return [""] * len(ends)
    is_written = np.arange(len(columns)) < written[:, None]
    text = np.stack(columns, axis=1)[is_written].tobytes().decode("ascii")
    bounds = np.concatenate(([0], np.cumsum(written)))[np.concatenate(([0], ends))].tolist()
    return [text[start:stop] for start, stop in zip(bounds, bounds[1:])]


def encode_mask(labels: Array) -> Tuple[str, int]:
    """Return the run lengths of all non-zero pixels, and their number."""
    flags = labels.T.reshape(-1) != 0
    return encode_flags(flags), int(np.count_nonzero(flags))
