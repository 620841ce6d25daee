"""The compiled kernel, loaded once and self-tested, and not used if a test fails; its functions on arrays.

`backend` has equivalent numpy code for each function.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import struct
import sys
import zlib
from dataclasses import replace
from functools import lru_cache
from typing import Callable, Iterator, List, Optional, Tuple, Union

import numpy as np

from ..files.inflate import crc32
from . import png
from .detections import ANNOTATION, BOX, FRAMES, MASK, POINTS, OverlappingPairs, RankedBits, RecordTable, Rings
from .distances import SQUARES, Surroundings
from .overlaps import Pairs, shape_of_table
from .run_lengths import MaskTexts, pack_texts
from .stack import Array, Size, Stack, Stacks, words_across

#: Statuses.
_FINE, _FULL = 0, 2
#: Labels of one byte.
LABELS = 256
#: What the numbers of a map of labels may be.
_MAPS = ("|u1", "<u2", "<u4")
#: There is room for so many pairs of labels at first, then for four times as many, and at most for so many.
_FIRST_PAIRS, _MOST_PAIRS = 4096, 1 << 26
#: How many columns a table of records has.
_RECORD_COLUMNS = 16
#: No record of the usual form is shorter, in characters, and none of its frames.
_SHORTEST_RECORD, _SHORTEST_FRAME = 60, 5


class Kernel:
    """The library's functions on arrays, which return None for unsupported input."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self.library = library

    def compare(self, pairs: List[Tuple[Stack, Stack]], disk: Tuple[Tuple[int, int, int], ...]) -> Optional[Array]:
        """Return the seven counts of pairs of masks over the same frames: (pairs, 7, frames)."""
        stacks = {id(stack): stack for pair in pairs for stack in pair}
        shapes = {(len(stack.words), stack.size) for stack in stacks.values()}
        if len(shapes) != 1:
            return None
        ((frames, size),) = shapes
        index = {key: number for number, key in enumerate(stacks)}
        masks = [np.ascontiguousarray(stack.words, np.uint64) for stack in stacks.values()]
        windows = np.array([(mask.top, mask.column, *mask.words.shape[1:]) for mask in stacks.values()], np.int64)
        indices = np.array([(index[id(truth)], index[id(prediction)]) for truth, prediction in pairs], np.int64)
        counts = np.zeros((len(pairs), 7, frames), np.int64)
        addresses = np.array([words.ctypes.data for words in masks], np.uint64)
        status = self.library.sj_compare(
            addresses, windows, len(masks), indices, len(pairs), frames, *size, _columns(disk), len(disk), counts
        )
        return counts if status == _FINE else None

    def read_png(self, data: bytes, size: Size, *, colours: bool) -> Optional[Array]:
        """Return each pixel's byte, or red + 256 × green + 65,536 × blue, of a PNG; None for unusual ones."""
        numbers = np.empty(size, np.uint32 if colours else np.uint8)
        status = self.library.sj_read_png(data, len(data), *size, colours, numbers)
        return numbers if status == _FINE else None

    def label_pairs(self, truth: Array, prediction: Array) -> Optional[Tuple[Array, Array]]:
        """Return the pairs of labels (rows) at the same pixels, and their numbers of pixels."""
        if truth.shape != prediction.shape or not all(side.dtype.str in _MAPS for side in (truth, prediction)):
            return None
        if not truth.size:
            return None
        shape = shape_of_table(truth, prediction)
        table = shape and self.label_table(truth, prediction, shape)
        if table is not None:
            numbers = np.argwhere(table)
            return numbers, table[numbers[:, 0], numbers[:, 1]]
        labels, pixels = np.empty((_FIRST_PAIRS, 2), np.uint32), np.empty(_FIRST_PAIRS, np.int64)
        sides = (truth, truth.itemsize, prediction, prediction.itemsize, truth.size)
        begun, count = ctypes.c_int64(0), ctypes.c_int64(0)
        count_on = self.library.sj_label_pairs
        status = count_on(*sides, labels, pixels, len(pixels), ctypes.byref(begun), ctypes.byref(count))
        while status == _FULL and 4 * len(pixels) <= _MOST_PAIRS:
            labels, pixels = np.resize(labels, (4 * len(labels), 2)), np.resize(pixels, 4 * len(pixels))
            status = count_on(*sides, labels, pixels, len(pixels), ctypes.byref(begun), ctypes.byref(count))
        return (labels[: count.value], pixels[: count.value]) if status == _FINE else None

    def label_table(
        self,
        truth: Array,
        prediction: Array,
        shape: Tuple[int, int],
        places: Optional[Array] = None,
        mask: int = (1 << 32) - 1,
    ) -> Optional[Array]:
        """Return how many pixels have each label of the truth (rows) and of the prediction; None where one is beyond.

        Only the bits of a mask count in labels. `places` may map a label of the truth to its row.
        """
        if truth.size != prediction.size or not all(side.dtype.str in _MAPS for side in (truth, prediction)):
            raise ValueError("two maps of one size are compared, of 8, 16 or 32 bits")
        table, ends = np.zeros(shape, np.int64), shape[0] if places is None else len(places)
        status = self.library.sj_label_table(
            truth, truth.itemsize, prediction, prediction.itemsize, truth.size, mask, places, ends, *shape, table
        )
        return table if status == _FINE else None

    def boundaries(self, labels: Array, reach: int, inner: int) -> Optional[Array]:
        """Return a map in which pixels surrounded by their own label share one."""
        if labels.dtype != np.uint32:
            return None
        out = np.empty(labels.shape, np.uint32)
        status = self.library.sj_boundaries(labels, *labels.shape, reach, inner, out)
        return out if status == _FINE else None

    def measure_surroundings(self, truth: Array, values: Array, least: int, near_square: int) -> Optional[Surroundings]:
        """Return an object's surroundings: sums by distance, and the map of nearest values."""
        if truth.shape != values.shape or truth.dtype != bool or values.dtype != np.uint8:
            return None
        excess, spread = np.zeros(SQUARES, np.int64), np.empty(values.shape, np.uint8)
        status = self.library.sj_survey(
            truth.view(np.uint8), values, *values.shape, least, near_square, excess, SQUARES, spread
        )
        return Surroundings(excess, spread) if status == _FINE else None

    def find_boxes(self, labels: Array, end: int) -> Optional[Tuple[Array, Array]]:
        """Return the voxels of each label below an end, of a volume, and its box: from and to along z, y and x."""
        if labels.dtype.str not in _MAPS:
            return None
        voxels, boxes = np.zeros(end, np.int64), np.zeros((end, 6), np.int64)
        status = self.library.sj_boxes(labels, labels.itemsize, *labels.shape, end, voxels, boxes)
        return (voxels, boxes) if status == _FINE else None

    def find_corners(self, mask: Array) -> Optional[Array]:
        """Return a code of the set voxels around each corner of a volume."""
        if mask.dtype != bool:
            return None
        codes = np.zeros([side + 1 for side in mask.shape], np.uint8)
        status = self.library.sj_corners(mask.view(np.uint8), *mask.shape, codes)
        return codes if status == _FINE else None

    def find_distances(self, queries: Array, places: Array, spacing: Tuple[float, float, float]) -> Optional[Array]:
        """Return the distance of each query to the nearest place of a volume; both arrays have nonzero bytes for
        members.
        """
        if queries.shape != places.shape or queries.dtype != np.uint8 or places.dtype != np.uint8:
            return None
        count = np.count_nonzero(queries) - np.count_nonzero(queries == LABELS - 1)
        distances = np.zeros(count)
        status = self.library.sj_squares(queries, places, *queries.shape, np.array(spacing), distances, count)
        return np.sqrt(distances, out=distances) if status == _FINE else None

    def find_components(self, mask: Array, neighbours: int) -> Optional[Tuple[Array, int]]:
        """Return the component of each voxel of a volume, from 1, and how many there are."""
        if mask.dtype != bool:
            return None
        numbers, total = np.zeros(mask.shape, np.int32), ctypes.c_int64(0)
        status = self.library.sj_components(mask.view(np.uint8), *mask.shape, neighbours, numbers, ctypes.byref(total))
        return (numbers, total.value) if status == _FINE else None

    def check_runs(self, texts: List[str], pixels: Array) -> Tuple[Array, Array]:
        """Return the fault (a key of `run_lengths.FAULTS`, or 0) and the area of each mask."""
        masks = pack_texts(texts)
        fault, area = np.zeros(len(texts), np.int8), np.zeros(len(texts), np.int64)
        bounds = np.append(0, masks.stops)
        _require_fine(self.library.sj_check_runs(masks.text, len(masks.text), bounds, len(texts), pixels, fault, area))
        return fault, area

    def overlaps(self, predictions: MaskTexts, truths: MaskTexts, pairs: Pairs) -> Array:
        """Return the number of shared pixels of each pair of masks."""
        shared = np.zeros(len(pairs.prediction), np.int64)
        sides = [(side.text, len(side.text), side.starts, side.stops, len(side)) for side in (predictions, truths)]
        columns = (pairs.prediction, pairs.truth, len(shared), pairs.bounds)
        _require_fine(self.library.sj_overlaps(*sides[0], *sides[1], *columns, len(pairs.bounds) - 1, shared))
        return shared

    def join_frames(
        self, texts: MaskTexts, shown: Array, pixels: Array, frames: Array
    ) -> Optional[Tuple[MaskTexts, Array]]:
        """Return the masks of frames as one wide mask per instance, and the area of each frame.

        `frames` are the bounds of the instances; texts are consecutive. None if a mask is invalid.
        """
        bounds, length = np.append(0, texts.stops), len(texts.text)
        stops, area = np.zeros(len(frames), np.int64), np.zeros(len(pixels), np.int64)
        for room in (2 * length + 16 * len(pixels) + 64, 8 * length + 16 * len(pixels) + 64):
            out = np.empty(room, np.uint8)
            status = self.library.sj_join_frames(
                texts.text, length, bounds, len(texts), shown, pixels, len(pixels), frames, len(frames) - 1, out, room,
                stops, area,
            )  # fmt: skip
            if status == _FINE:
                return MaskTexts(out[: stops[-1]].tobytes(), stops[:-1], stops[1:]), area
            if status != _FULL:
                break
        return None

    def records(self, text: Union[str, bytes], shape: Optional[int] = None) -> Optional[RecordTable]:
        """Return the usual-form records at the start of a text, each followed by a comma; None without any.

        Each record holds one of `SHAPES`; without a shape, its mask or the masks of its frames.
        """
        data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
        length = len(data)
        rows = np.empty((length // _SHORTEST_RECORD + 1, _RECORD_COLUMNS), np.int64)
        masks = np.empty(length + length // 4 + 64, np.uint8)
        for each in (MASK, FRAMES) if shape is None else (shape,):
            frame_room = {FRAMES: length // _SHORTEST_FRAME + 1, ANNOTATION: len(rows)}.get(each, 1)
            frames = np.empty((frame_room, 3), np.int64)
            numbers, rings = np.empty(length // 2 + 1), np.empty(length // 12 + 2, np.int64)
            odd, used = np.empty((length // 64 + 8, 3), np.int64), np.zeros(7, np.int64)
            rooms = np.array([len(masks), len(frames), len(numbers), len(rings) - 1, len(odd)], np.int64)
            rings[0] = 0
            status = self.library.sj_records(
                data, length, each, len(rows), rows, masks, frames, numbers, rings[1:], odd, rooms, used
            )
            if status != _FINE:
                continue
            count, end, frame_count, number_count, ring_count, odd_count, points = used.tolist()
            # Copies, since the room for all that there might have been would stay with the rows.
            rows, numbers = rows[:count].copy(), numbers[:number_count].copy()
            _read_odd(data, odd[:odd_count], rows.view(float).reshape(-1), numbers)
            table = _record_table(rows, masks, each, numbers, rings[: ring_count + 1].copy(), points)
            if each in (FRAMES, ANNOTATION):
                table = replace(table, frames=frames[:frame_count].copy())
            if each == FRAMES:
                table = replace(table, masks=_text(masks, frames[frame_count - 1, 2]))
            if isinstance(text, bytes):
                return replace(table, end=end)
            return replace(table, text=text, end=end if end == length or text.isascii() else len(data[:end].decode()))
        return None

    def draw(self, rings: Rings, sizes: Array) -> Optional[Tuple[MaskTexts, Array]]:
        """Return the masks of polygons in images of these sizes, and their areas; None where one is unusual."""
        count = len(rings)
        stops, area = np.zeros(count, np.int64), np.zeros(count, np.int64)
        room = 64 * count + 4096
        for _ in range(12):
            out = np.empty(room, np.uint8)
            status = self.library.sj_draw(
                rings.numbers, len(rings.numbers), rings.ends, len(rings.ends) - 1, rings.masks, count, sizes, out,
                room, stops, area,
            )  # fmt: skip
            if status == _FINE:
                return MaskTexts(_text(out, stops[-1] if count else 0), np.append(0, stops)[:-1], stops), area
            if status != _FULL:
                break
            room *= 4
        return None

    def order(self, score: Array, group: Array) -> Array:
        """Return the order by rising group, then by falling score; ties keep their order."""
        order = np.empty(len(score), np.int64)
        _require_fine(self.library.sj_order(score, group, len(order), order))
        return order

    def match(
        self, pairs: OverlappingPairs, kinds: Array, thresholds: Array, areas: int, outside: Array
    ) -> Tuple[Array, Array]:
        """Return words of bits per detection: where it is matched, and where it is ignored.

        `kinds` has a bit for each range of areas in which an instance is ignored, one for crowds, and one for
        unmatchable instances; `outside` has the ranges that exclude a detection's own area.
        """
        matched, ignored = np.zeros(len(outside), np.uint64), np.array(outside, np.uint64)
        columns = (pairs.prediction, pairs.truth, pairs.iou, len(pairs.prediction))
        _require_fine(
            self.library.sj_match(
                *columns, kinds, len(kinds), thresholds, len(thresholds), areas, len(ignored), matched, ignored
            )
        )
        return matched, ignored

    def curves(
        self,
        ranked: RankedBits,
        group: Array,
        shifts: List[int],
        caps: List[int],
        thresholds: int,
        needed: Array,
    ) -> Tuple[Array, Array, Array]:
        """Return precision (ranges, groups, thresholds, recalls) leaving out each group of detections, the number
        correct (ranges, thresholds, groups), and the score that reaches each recall (ranges, thresholds, recalls).

        A range is a range of areas, whose bits begin at its shift, up to a cap; `needed` (ranges, groups, recalls)
        gives the number of true detections that each recall requires. Detections with scores have one group; without
        scores, the last array is empty.
        """
        ranges, groups, recalls = needed.shape
        precision, true_counts = (
            np.empty((ranges, groups, thresholds, recalls)),
            np.empty((ranges, thresholds, groups), np.int64),
        )
        detections = (ranked.true, ranked.counted, ranked.rank, group, len(group))
        limits = (np.array(shifts, np.int64), np.array(caps, np.int64), ranges, thresholds)
        is_scored = ranked.score is not None
        reached = np.empty((ranges if is_scored else 0, thresholds, recalls))
        _require_fine(
            self.library.sj_curves(
                *detections, *limits, groups, needed, recalls, precision, true_counts, ranked.score,
                reached if is_scored else None,
            )
        )  # fmt: skip
        return precision, true_counts, reached


def _text(characters: Array, length: int) -> bytes:
    return characters[:length].tobytes()


def _read_odd(data: bytes, odd: Array, rows: Array, numbers: Array) -> None:
    """Read numbers of many digits with Python, each at its index: in the rows, or from -1 down in the others."""
    for index, start, stop in odd.tolist():
        if index >= 0:
            rows[index] = float(data[start:stop])
        else:
            numbers[-1 - index] = float(data[start:stop])


def _record_table(rows: Array, masks: Array, shape: int, numbers: Array, rings: Array, points: int) -> RecordTable:
    """Return rows that the kernel read as a table."""
    outlined, polygons, reals = None, None, rows.view(float)
    if shape in (MASK, ANNOTATION) and len(rings) > 1:
        outlined = np.flatnonzero(rows[:, 3] < 0)
        polygons = Rings(numbers, rings, np.append(rows[outlined, 14], rows[outlined[-1], 15]))
    text = _text(masks, int(rows[-1, 6])) if shape in (MASK, ANNOTATION) else b""
    columns = (rows[:, 0], rows[:, 1], reals[:, 2].copy(), rows[:, 3:5], rows[:, 5:7], rows[:, 7], rows[:, 8])
    table = RecordTable("", 0, *columns, text, rows[:, 9], reals[:, 10:14].copy(), None, outlined, polygons)
    return replace(table, points=numbers.reshape(len(rows), points)) if points >= 0 else table


@lru_cache(maxsize=64)
def _columns(disk: Tuple[Tuple[int, int, int], ...]) -> ctypes.Array[ctypes.c_int32]:
    return (ctypes.c_int32 * (3 * len(disk)))(*(number for column in disk for number in column))


def _require_fine(status: int) -> None:
    """Raise ValueError if the kernel rejected a call."""
    if status != _FINE:
        raise ValueError(f"the kernel says {status}")


class _Block(ctypes.Structure):
    """The kernel's state of the frames being packed; frames.c has the same fields."""

    _fields_ = (
        ("words", ctypes.c_void_p),
        ("room", ctypes.c_int64),
        ("slots", ctypes.c_int64),
        ("frames", ctypes.c_int64),
        ("height", ctypes.c_int64),
        ("width", ctypes.c_int64),
        ("used", ctypes.c_int64),
        ("slot_of", ctypes.c_void_p),
        ("boxes", ctypes.c_void_p),
        ("seen", ctypes.c_void_p),
        ("merged", ctypes.c_int64),
    )


class PackedFrames:
    """A packer of frames, block by block, that reuses its memory for a whole sequence."""

    def __init__(self, size: Size, frames: int, kernel: Kernel) -> None:
        #: The size of a frame, and how many a block may have.
        self.size, self.frames = size, frames
        self._library = kernel.library
        self._slot_of = np.full(LABELS, -1, np.int32)
        self._boxes = np.zeros((LABELS, 4), np.int32)
        #: Which labels the frame has that was added last, 0 included.
        self.seen = np.zeros(LABELS, np.uint8)
        tables = (self._slot_of.ctypes.data, self._boxes.ctypes.data, self.seen.ctypes.data)
        self._block = _Block(None, 0, 0, frames, *size, 0, *tables, 0)
        self._take_words(np.zeros((1, frames, size[0], words_across(size[1])), np.uint64))

    @property
    def objects(self) -> int:
        """Return the number of objects that fit."""
        return len(self._words)

    def add_png(self, frame: int, data: bytes, limit: int = LABELS, *, merge: bool = False) -> bool:
        """Pack a PNG as a frame, given a limit of labels per block; return whether that worked.

        If labels are merged, all nonzero labels become 1.
        """
        return self._add(self._library.sj_pack_png, frame, data, len(data), limit, merge=merge)

    def add_labels(self, frame: int, labels: Array, limit: int = LABELS, *, merge: bool = False) -> bool:
        """Pack labels of one byte each, as `add_png` does."""
        rows = np.ascontiguousarray(labels, np.uint8)
        return self._add(self._library.sj_pack_labels, frame, rows.ctypes.data, rows.size, limit, merge=merge)

    def _add(
        self, pack: Callable[..., int], frame: int, data: Union[bytes, int], length: int, limit: int, *, merge: bool
    ) -> bool:
        block, status = self._block, _FULL
        block.merged = merge
        while status == _FULL and block.used <= limit:
            if block.used == len(self._words):
                self._take_words(np.concatenate([self._words, np.zeros_like(self._words)])[: LABELS - 1])
            status = pack(ctypes.byref(block), frame, data, length)
        return status == _FINE and bool(block.used <= limit)

    def _take_words(self, words: Array) -> None:
        self._words = words
        self._block.words, self._block.room, self._block.slots = words.ctypes.data, words.size, len(words)

    def take(self, frames: int) -> Stacks:
        """Return and clear the masks of each label in the first frames, cut to their non-zero words."""
        stacks = {}
        for label in np.flatnonzero(self._slot_of >= 0).tolist():
            slot = self._slot_of[label]
            top, bottom, column, end_column = self._boxes[slot].tolist()
            window = self._words[slot, :, top:bottom, column:end_column]
            stacks[str(label)] = Stack(np.array(window[:frames]), top, column, self.size)
            window[:] = 0
        self._slot_of[:] = -1
        self._block.used = 0
        return stacks


#: What a library must answer to `sj_abi`.
_ABI = 14
#: `off`, or the path of the library to use.
SETTING = "SEGJUDGE_KERNEL"
#: The compiled library, in this folder; beside it a file with its checksum.
SYSTEM = f"{os.uname().sysname.lower()}-{os.uname().machine}" if hasattr(os, "uname") else sys.platform
NAME = f"segjudge_kernel.{SYSTEM}.so"
CHECKSUM = ".sha256"

#: What a library says to known questions, and what it must say.
_Answers = Iterator[Tuple[object, object]]


class _Array:
    """A ctypes argument type: an array, made contiguous and of one kind, or an address."""

    def __init__(self, kind: Optional[str]) -> None:
        self._kind = kind and np.dtype(kind)

    def from_param(self, value: object) -> object:
        """Return the value to pass, which keeps temporary arrays alive during the call."""
        if not isinstance(value, np.ndarray):
            return ctypes.c_void_p.from_param(value)
        array = np.ascontiguousarray(value, self._kind)
        try:
            return ctypes.byref(ctypes.c_char.from_buffer(array.data))  # a fifth of the time that `array.ctypes` takes
        except (TypeError, ValueError):  # it is empty, or only to be read
            return array.ctypes


_KINDS = {
    "*": ctypes.c_void_p,
    "[]": _Array(None),
    "i4": ctypes.c_int32,
    "u4": ctypes.c_uint32,
    "i8": ctypes.c_int64,
} | {f"{kind}[]": _Array(kind) for kind in ("i1", "i4", "u1", "u2", "u4", "i8", "u8", "f8")}
#: The arguments of each function: addresses, numbers and arrays, by numpy's names of their kinds; all return a status.
_SIGNATURES = {
    "sj_abi": "",
    "sj_pack_png": "* i8 * i8",
    "sj_pack_labels": "* i8 * i8",
    "sj_compare": "u8[] i8[] i8 i8[] i8 i8 i8 i8 * i8 i8[]",
    "sj_read_png": "* i8 i8 i8 i4 []",
    "sj_label_pairs": "[] i4 [] i4 i8 u4[] i8[] i8 * *",
    "sj_label_table": "[] i4 [] i4 i8 u4 u2[] i8 i8 i8 i8[]",
    "sj_boundaries": "u4[] i8 i8 i8 u4 u4[]",
    "sj_survey": "u1[] u1[] i8 i8 u4 i4 i8[] i8 u1[]",
    "sj_boxes": "[] i4 i8 i8 i8 i8 i8[] i8[]",
    "sj_corners": "u1[] i8 i8 i8 u1[]",
    "sj_squares": "u1[] u1[] i8 i8 i8 f8[] f8[] i8",
    "sj_components": "u1[] i8 i8 i8 i4 i4[] *",
    "sj_check_runs": "* i8 i8[] i8 i8[] i1[] i8[]",
    "sj_overlaps": "* i8 i8[] i8[] i8 * i8 i8[] i8[] i8 i8[] i8[] i8 i8[] i8 i8[]",
    "sj_records": "* i8 i4 i8 i8[] u1[] i8[] f8[] i8[] i8[] i8[] i8[]",
    "sj_draw": "f8[] i8 i8[] i8 i8[] i8 i8[] u1[] i8 i8[] i8[]",
    "sj_join_frames": "* i8 i8[] i8 u1[] i8[] i8 i8[] i8 u1[] i8 i8[] i8[]",
    "sj_order": "f8[] i8[] i8 i8[]",
    "sj_match": "i8[] i8[] f8[] i8 u1[] i8 f8[] i4 i4 i8 u8[] u8[]",
    "sj_curves": "u8[] u8[] u4[] u1[] i8 i8[] i8[] i8 i8 i8 i8[] i8 f8[] i8[] f8[] f8[]",
}


class KernelError(Exception):
    """Raised if no library can be used; the text says why."""


def load(path: str = "") -> Kernel:
    """Return the library at a path, by default the one of this package or of the setting; raises KernelError."""
    kernel = Kernel(_load(path or _path()))
    if not _answers_are_right(kernel):
        raise KernelError("it fails its self-test")
    return kernel


def _path() -> str:
    """Return the path of the library, if the file is unchanged since it was built."""
    setting = os.environ.get(SETTING, "")
    if setting == "off":
        raise KernelError(f"{SETTING} is off")
    path = setting or os.path.join(os.path.dirname(os.path.abspath(__file__)), NAME)
    try:
        with open(path, "rb") as file, open(path + CHECKSUM, encoding="ascii") as checksum:
            if hashlib.sha256(file.read()).hexdigest() != checksum.read().split()[0]:
                raise KernelError(f"{os.path.basename(path)} is not the file that the build wrote")
    except (OSError, ValueError, IndexError):
        absent = f"{path} or the checksum beside it cannot be read"
        raise KernelError(
            absent if setting else "none was compiled; ./run.sh compiles one if it finds a C compiler"
        ) from None
    return path


def _load(path: str) -> ctypes.CDLL:
    if sys.byteorder != "little":
        raise KernelError("this machine is not little-endian")
    try:
        loaded = ctypes.CDLL(path)
        for name, arguments in _SIGNATURES.items():
            function = getattr(loaded, name)
            function.argtypes = [_KINDS[argument] for argument in arguments.split()]
            function.restype = ctypes.c_int
    except (OSError, AttributeError) as error:
        raise KernelError(f"it cannot be loaded: {error}") from None
    if loaded.sj_abi() != _ABI:
        raise KernelError(f"it has version {loaded.sj_abi()}, not {_ABI}")
    return loaded


def _answers_are_right(kernel: Kernel) -> bool:
    """Return whether the kernel passes its self-test."""
    try:
        tests = (_frames, _labels, _maps, _volumes, _runs, _matches)
        return all(_as_lists(reply) == answer for answers in tests for reply, answer in answers(kernel))
    except Exception:  # noqa: BLE001 - whatever a library does that is not ours
        return False


def _as_lists(reply: object) -> object:
    """Return a reply with arrays and tuples turned into lists."""
    return [_as_lists(item) for item in reply] if isinstance(reply, (list, tuple, np.ndarray)) else reply


def _png(size: Size, colour: int, rows: bytes) -> bytes:
    """Return an 8-bit PNG with these rows, each preceded by its filter number."""
    header = struct.pack(">IIBBBBB", size[1], size[0], 8, colour, 0, 0, 0)
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(rows)), (b"IEND", b"")]
    return png.SIGNATURE + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", crc32(kind + body)) for kind, body in chunks
    )


def _frames(kernel: Kernel) -> _Answers:
    # Two rows of 70 pixels, filtered by Sub and Up: label 3 from pixel 60 on, then label 3 alone at pixel 69.
    picture = _png((2, 70), 0, bytes([1, *[0] * 60, 3, *[0] * 9]) + bytes([2, *[0] * 60, *[253] * 9, 0]))
    frame = PackedFrames((2, 70), 1, kernel)
    yield [frame.add_png(0, picture), frame.add_png(0, picture[:-20]), frame.add_png(0, picture)], [True, False, True]
    (stack,) = frame.take(1).values()
    yield (stack.words, stack.top, stack.column), [[[[0xF << 60, 0x3F], [0, 0x20]]], 0, 0]
    yield [frame.add_labels(0, np.full((2, 70), 9)), frame.add_labels(0, stack.words)], [True, False]
    (full,) = frame.take(1).values()
    yield full.words, [[[(1 << 64) - 1, 0x3F]] * 2]
    # Two colours, the second filtered by Sub, and their row again by Up; then a filter that there is not.
    colours = bytes([1, 1, 2, 3, 1, 1, 255, 2, *[0] * 6])
    yield kernel.read_png(_png((2, 2), 2, colours), (2, 2), colours=True), [[0x030201, 0x020302]] * 2
    yield kernel.read_png(_png((2, 2), 2, b"\7" * 14), (2, 2), colours=True), None
    neighbour = Stack(np.array([[[0x38]]], np.uint64), 1, 1, (2, 70))
    counts = kernel.compare([(stack, neighbour), (stack, stack)], ((-1, 0, 0), (0, -1, 1), (1, 0, 0)))
    yield counts, [[[11], [3], [1], [11], [5], [5], [5]], [[11]] * 7]


def _labels(kernel: Kernel) -> _Answers:
    # A square of 3 pixels inside a row and a column of others; as bytes, the pairs with itself.
    square = np.full((4, 4), 7, np.uint32)
    square[0] = square[:, 0] = 0
    yield kernel.label_pairs(square.astype(np.uint8), square), [[[0, 0], [7, 7]], [7, 9]]
    yield kernel.label_pairs(square + np.uint32(9000), square), [[[9000, 0], [9007, 7]], [7, 9]]
    yield kernel.label_table(square, square[::-1], (2, 8), np.arange(8) // 7, 7), [[4, *[0] * 6, 3], [3, *[0] * 6, 6]]
    yield kernel.boundaries(square, 1, 9), [[0, 0, 0, 0], [0, 7, 7, 7], [0, 7, 9, 7], [0, 7, 7, 7]]


def _maps(kernel: Kernel) -> _Answers:
    # An object of two pixels, to which the third of the row is as near, and the one below it no longer near.
    truth, values = np.zeros((2, 7), bool), np.arange(1, 15, dtype=np.uint8).reshape(2, 7)
    truth[0, [0, 4]] = True
    excess, spread = kernel.measure_surroundings(truth, values, 3, 4) or (np.zeros(0), [])
    yield (np.flatnonzero(excess), excess[excess > 0]), [[1, 2, 4, 5], [18, 24, 4, 18]]
    yield spread, [[1, 1, 1, 5, 5, 5, 5], [1, 1, 255, 5, 5, 5, 255]]


def _volumes(kernel: Kernel) -> _Answers:
    # Of eight voxels two, which touch at a corner; their surface, and how far it is from its mirror image.
    mask = np.zeros((2, 2, 2), bool)
    mask[0, 0, 0] = mask[1, 1, 1] = True
    yield kernel.find_boxes(mask * np.uint8(2), 3), [[0, 0, 2], [[0] * 6, [0] * 6, [0, 2] * 3]]
    yield kernel.find_components(mask, 18), [[[[1, 0], [0, 0]], [[0, 0], [0, 2]]], 2]
    yield kernel.find_components(mask, 26), [[[[1, 0], [0, 0]], [[0, 0], [0, 1]]], 1]
    codes = kernel.find_corners(mask)
    outer, middle = [[128, 8, 0], [32, 2, 0], [0, 0, 0]], [[64, 4, 0], [16, 129, 8], [0, 32, 2]]
    yield codes, [outer, middle, [[0, 0, 0], [0, 64, 4], [0, 16, 1]]]
    if codes is not None:
        far = [3.0016662039607267, 3.0, 0.1]
        yield kernel.find_distances(codes, codes[::-1], (0.1, 3.0, 5.0)), [*far, *[0.0] * 9, *far[::-1]]


def _runs(kernel: Kernel) -> _Answers:
    # 3 pixels of 8 from the third on; the same with a run below zero, one too short, one that breaks off, a wrong sign.
    texts = ["233", "2N", "22", "2P", "\x7f"]
    fault, area = kernel.check_runs(texts, np.full(len(texts), 8))
    yield (fault, area[:1]), [[0, 3, 4, 2, 1], [3]]
    pairs = Pairs(np.array([0, 1]), np.array([0, 0]), np.array([0, 2]))
    yield kernel.overlaps(pack_texts(["233", "08"]), pack_texts(["143"]), pairs), [3, 4]
    # Two frames of 8 pixels and a hidden one as an instance, and one that breaks off.
    wide = kernel.join_frames(pack_texts(["233", "08"]), np.array([1, 0, 1], np.uint8), np.full(3, 8), np.array([0, 3]))
    yield wide and (wide[0][0], wide[1]), ["233M50H8", [3, 0, 8]]
    yield kernel.join_frames(pack_texts(["2P"]), np.ones(1, np.uint8), np.full(1, 8), np.array([0, 1])), None
    text = '{"image_id": 7, "category_id":-2,"score":0.125,"segmentation":{"counts":"08","size":[2,4]}}'
    table = kernel.records(f"{text}, {text.replace('0.125', '125e-3')}, {text}")
    expected = [[7, 7], [-2, -2], [0.125, 0.125], [[2, 4], [2, 4]], [[0, 2], [2, 4]], [0, 0], [8, 8], b"0808"]
    yield table and list(vars(table).values())[2:10], expected
    boxed = text.replace('"08"', "[0,8]").replace("}}", '},"bbox":[1,0.30000000000000004,12e-1,-0],"x":[{"y":null}]}')
    table = kernel.records(f"{boxed},")
    yield table and (table.masks, table.boxed, table.boxes), [b"08", [2], [[1, 0.1 + 0.2, 1.2, 0]]]
    table = kernel.records(f"{boxed},", BOX)
    yield table and table.boxes, [[1, 0.1 + 0.2, 1.2, 0]]
    table = kernel.records(f"{boxed.replace('bbox', 'keypoints')},", POINTS)
    yield table and table.points, [[1, 0.1 + 0.2, 1.2, 0]]
    outlined = text[: text.index('"seg')] + '"segmentation":[[0,0,2,0,2,2,0,2]]}'
    table = kernel.records(f"{outlined},")
    drawn = kernel.draw(table.rings, np.array([[3, 4]])) if table is not None and table.rings is not None else None
    yield drawn and (drawn[0].text, drawn[1]), [b"02106", [4]]
    text = text.replace("image", "video").replace('tion":', 'tions":[null,')
    table = kernel.records(f"{text[:-1]}]}},")
    yield table and table.frames, [[-1, -1, 0], [2, 4, 2]]


def _matches(kernel: Kernel) -> _Answers:
    yield kernel.order(np.array([0.5, -0.0, 2, 0.0, -1]), np.array([7, -2, 7, -2, 7])), [1, 3, 2, 0, 4]
    # The first takes the better of two, the second the other, which does not count among the large ones (bits 2, 3).
    near = OverlappingPairs(np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1]), np.array([0.5, 0.8, 0.9, 0.6]))
    reached, outside = np.array([0.5, 0.7]), np.array([0, 0b1100], np.uint64)
    yield kernel.match(near, np.array([0b10, 0], np.uint8), reached, 2, outside), [[0b1111, 0b1111], [0, 0b1100]]
    ranked = RankedBits(np.array([1, 0, 1, 0, 1]), np.array([1, 0, 1, 1, 1]), np.zeros(5), np.array([0, 0, 1, 1, 1]))
    recalls, nobody = np.array([[[1, 2, 3, 4]]]), np.ones(5)
    yield kernel.curves(ranked, nobody, [0], [1], 1, recalls), [[[[[1, 1, 3 / 4, 0]]]], [[[3]]], []]
    scored = ranked._replace(score=np.array([0.9, 0.8, 0.7, 0.6, 0.5]))
    yield kernel.curves(scored, nobody, [0], [1], 1, recalls)[2], [[[0.9, 0.7, 0.5, 0]]]
    least, below_one = np.array([[[1, 2, 3]] * 2]), 1 / (1 + np.spacing(1))
    precision = [[[[below_one, 2 / 3, 0]], [[below_one, 0, 0]]]]
    yield kernel.curves(ranked, ranked.image, [0], [1], 1, least), [precision, [[[2, 1]]], []]
