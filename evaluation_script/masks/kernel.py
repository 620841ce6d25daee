"""The compiled kernel: loaded once, tested with known answers, else left alone; its functions on arrays.

`backend` has numpy code beside each of them, which gives the same results.
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
from .detections import OverlappingPairs, RankedBits, RecordTable
from .distances import SQUARES, Surroundings
from .overlaps import Pairs
from .run_lengths import MaskTexts, pack_texts
from .stack import Array, Size, Stack, Stacks, words_across

#: Statuses.
_FINE, _FULL = 0, 2
#: Labels of one byte.
LABELS = 256
#: What the numbers of a map of labels may be.
_MAPS = ("|u1", "<u2", "<u4")
#: More pairs than this are left to numpy; a few hundred are usual.
_MOST_PAIRS = 4096
#: How many columns a table of records has.
_RECORD_COLUMNS = 12
#: No record of the usual form is shorter, in characters, and none of its frames.
_SHORTEST_RECORD, _SHORTEST_FRAME = 60, 5


class Kernel:
    """The functions of the library on arrays; None where it cannot say."""

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
        """Return the byte of each pixel of a PNG, or red + 256 × green + 65,536 × blue; None where it is unusual."""
        numbers = np.empty(size, np.uint32 if colours else np.uint8)
        status = self.library.sj_read_png(data, len(data), *size, colours, numbers)
        return numbers if status == _FINE else None

    def label_pairs(self, truth: Array, prediction: Array) -> Optional[Tuple[Array, Array]]:
        """Return the pairs of labels (rows) at the same pixels, and in how many."""
        if truth.shape != prediction.shape or not all(side.dtype.str in _MAPS for side in (truth, prediction)):
            return None
        labels, pixels = np.empty((_MOST_PAIRS, 2), np.uint32), np.empty(_MOST_PAIRS, np.int64)
        count = ctypes.c_int64(0)
        status = self.library.sj_label_pairs(
            truth, truth.itemsize, prediction, prediction.itemsize, truth.size, labels, pixels, _MOST_PAIRS,
            ctypes.byref(count),
        )  # fmt: skip
        return (labels[: count.value], pixels[: count.value]) if status == _FINE else None

    def boundaries(self, labels: Array, reach: int, inner: int) -> Optional[Array]:
        """Return a map with one label for what has nothing but its own within reach."""
        if labels.dtype != np.uint32:
            return None
        out = np.empty(labels.shape, np.uint32)
        status = self.library.sj_boundaries(labels, *labels.shape, reach, inner, out)
        return out if status == _FINE else None

    def measure_surroundings(self, truth: Array, values: Array, least: int, near_square: int) -> Optional[Surroundings]:
        """Return what lies around an object: sums by distance, and the map with what is nearest."""
        if truth.shape != values.shape or truth.dtype != bool or values.dtype != np.uint8:
            return None
        excess, spread = np.zeros(SQUARES, np.int64), np.empty(values.shape, np.uint8)
        status = self.library.sj_survey(
            truth.view(np.uint8), values, *values.shape, least, near_square, excess, SQUARES, spread
        )
        return Surroundings(excess, spread) if status == _FINE else None

    def check_runs(self, texts: List[str], pixels: Array) -> Tuple[Array, Array]:
        """Return the fault (a key of `run_lengths.FAULTS`, or 0) and the area of each mask."""
        masks = pack_texts(texts)
        fault, area = np.zeros(len(texts), np.int8), np.zeros(len(texts), np.int64)
        bounds = np.append(0, masks.stops)
        _require_fine(self.library.sj_check_runs(masks.text, len(masks.text), bounds, len(texts), pixels, fault, area))
        return fault, area

    def overlaps(self, predictions: MaskTexts, truths: MaskTexts, pairs: Pairs) -> Array:
        """Return how many pixels the masks of each pair share."""
        shared = np.zeros(len(pairs.prediction), np.int64)
        sides = [(side.text, len(side.text), side.starts, side.stops, len(side)) for side in (predictions, truths)]
        columns = (pairs.prediction, pairs.truth, len(shared), pairs.bounds)
        _require_fine(self.library.sj_overlaps(*sides[0], *sides[1], *columns, len(pairs.bounds) - 1, shared))
        return shared

    def join_frames(
        self, texts: MaskTexts, shown: Array, pixels: Array, frames: Array
    ) -> Optional[Tuple[MaskTexts, Array]]:
        """Return the masks of frames as one wide mask for each instance, and the area of each frame.

        `frames` are the bounds of the instances; the texts stand one after the other.  None where a mask is not sound.
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

    def records(self, text: Union[str, bytes]) -> Optional[RecordTable]:
        """Return the records of the usual form that begin a text, each with a comma behind it; None without any."""
        if isinstance(text, str) and not text.isascii():
            return None
        data = text.encode("ascii") if isinstance(text, str) else text
        rows = np.empty((len(data) // _SHORTEST_RECORD + 1, _RECORD_COLUMNS), np.int64)
        masks, frames = np.empty(len(data) + 1, np.uint8), np.empty((len(data) // _SHORTEST_FRAME + 1, 3), np.int64)
        count, used, end = (ctypes.c_int64(0) for _ in range(3))
        numbers = [ctypes.byref(number) for number in (used, end)]
        for frame_table in (None, frames):  # of images, of videos
            status = self.library.sj_records(
                data, len(data), len(rows), rows, masks, ctypes.byref(count), frame_table, len(frames), *numbers
            )
            if status == _FINE:
                frames = frames[: used.value].copy()
                shown = None if frame_table is None else frames
                # A copy, since the room for all that there might have been would stay with the rows.
                table = _record_table(data, end.value, rows[: count.value].copy(), masks, shown)
                return table if isinstance(text, bytes) else replace(table, text=text)
        return None

    def order(self, score: Array, group: Array) -> Array:
        """Return the order by rising group, then by falling score, then as it was."""
        order = np.empty(len(score), np.int64)
        _require_fine(self.library.sj_order(score, group, len(order), order))
        return order

    def match(
        self, pairs: OverlappingPairs, kinds: Array, thresholds: Array, areas: int, outside: Array
    ) -> Tuple[Array, Array]:
        """Return words of bits for each detection: where it was matched, and where it counts neither for nor against.

        `kinds` has a bit for each range of areas in which an instance does not count, one for crowds and one for what
        cannot be matched; `outside` the bits in which a detection's own area does not count.
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
        self, ranked: RankedBits, group: Array, shifts: List[int], caps: List[int], thresholds: int, needed: Array
    ) -> Tuple[Array, Array]:
        """Return precision (ranges, groups, thresholds, recalls) without each group of detections, and how many are
        true (ranges, thresholds, groups).

        A range is one of areas, whose bits begin at its shift, up to a cap; `needed` (ranges, groups, recalls) says how
        many true detections each recall takes.
        """
        ranges, groups, recalls = needed.shape
        precision, true_counts = (
            np.empty((ranges, groups, thresholds, recalls)),
            np.empty((ranges, thresholds, groups), np.int64),
        )
        detections = (ranked.true, ranked.counted, ranked.rank, group, len(group))
        limits = (np.array(shifts, np.int64), np.array(caps, np.int64), ranges, thresholds)
        _require_fine(self.library.sj_curves(*detections, *limits, groups, needed, recalls, precision, true_counts))
        return precision, true_counts


def _record_table(data: bytes, end: int, rows: Array, masks: Array, frames: Optional[Array]) -> RecordTable:
    image, category, digits, decimals = rows.T[:4]
    # Whole numbers up to 2^53 and powers of ten up to 10^22 are exact, so their quotient is what Python would read.
    score = digits / 10.0 ** np.maximum(decimals, 0)
    unusual = np.flatnonzero(decimals < 0)
    score[unusual] = [float(data[start:stop]) for start, stop in rows[unusual, 4:6].tolist()]
    length = int(rows[-1, 9] if frames is None else frames[-1, -1])
    columns = (image, category, score, rows[:, 6:8], rows[:, 8:10], rows[:, 10], rows[:, 11])
    return RecordTable("", end, *columns, masks[:length].tobytes(), frames)


@lru_cache(maxsize=64)
def _columns(disk: Tuple[Tuple[int, int, int], ...]) -> ctypes.Array[ctypes.c_int32]:
    return (ctypes.c_int32 * (3 * len(disk)))(*(number for column in disk for number in column))


def _require_fine(status: int) -> None:
    """Raise ValueError for a call that the kernel refused."""
    if status != _FINE:
        raise ValueError(f"the kernel says {status}")


class _Block(ctypes.Structure):
    """What the kernel knows of the frames that it packs; frames.c has the same fields."""

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
    """Packs the frames of one block after the other; its memory serves every block of a sequence."""

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
        """For how many objects there is space."""
        return len(self._words)

    def add_png(self, frame: int, data: bytes, limit: int = LABELS, *, merge: bool = False) -> bool:
        """Pack a PNG as a frame, and return whether it could be, which takes at most so many labels in a block.

        Where labels are merged, all but 0 become label 1.
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
        """Return the masks of each label in the first frames, cut to the words that hold any pixel, and forget them."""
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
_ABI = 9
#: `off`, or the path of the library to use.
SETTING = "SEGJUDGE_KERNEL"
#: The compiled library, in this folder; beside it a file with its checksum.
SYSTEM = f"{os.uname().sysname.lower()}-{os.uname().machine}"
NAME = f"segjudge_kernel.{SYSTEM}.so"
CHECKSUM = ".sha256"

#: What a library says to known questions, and what it must say.
_Answers = Iterator[Tuple[object, object]]


class _Array:
    """An argument of numbers of one kind, or of any: an array, made contiguous and of that kind, or an address."""

    def __init__(self, kind: Optional[str]) -> None:
        self._kind = kind and np.dtype(kind)

    def from_param(self, value: object) -> object:
        """Return what is passed, which keeps alive what was made for the call."""
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
} | {f"{kind}[]": _Array(kind) for kind in ("i1", "u1", "u4", "i8", "u8", "f8")}
#: The arguments of each function: addresses, numbers and arrays, by numpy's names of their kinds; all return a status.
_SIGNATURES = {
    "sj_abi": "",
    "sj_pack_png": "* i8 * i8",
    "sj_pack_labels": "* i8 * i8",
    "sj_compare": "u8[] i8[] i8 i8[] i8 i8 i8 i8 * i8 i8[]",
    "sj_read_png": "* i8 i8 i8 i4 []",
    "sj_label_pairs": "[] i4 [] i4 i8 u4[] i8[] i8 *",
    "sj_boundaries": "u4[] i8 i8 i8 u4 u4[]",
    "sj_survey": "u1[] u1[] i8 i8 u4 i4 i8[] i8 u1[]",
    "sj_check_runs": "* i8 i8[] i8 i8[] i1[] i8[]",
    "sj_overlaps": "* i8 i8[] i8[] i8 * i8 i8[] i8[] i8 i8[] i8[] i8 i8[] i8 i8[]",
    "sj_records": "* i8 i8 i8[] u1[] * i8[] i8 * *",
    "sj_join_frames": "* i8 i8[] i8 u1[] i8[] i8 i8[] i8 u1[] i8 i8[] i8[]",
    "sj_order": "f8[] i8[] i8 i8[]",
    "sj_match": "i8[] i8[] f8[] i8 u1[] i8 f8[] i4 i4 i8 u8[] u8[]",
    "sj_curves": "u8[] u8[] u4[] u1[] i8 i8[] i8[] i8 i8 i8 i8[] i8 f8[] i8[]",
}


class KernelError(Exception):
    """Raised when there is no library that can be used; the text says why."""


def load(path: str = "") -> Kernel:
    """Return the library at a path, by default the one of this package or of the setting; raises KernelError."""
    kernel = Kernel(_load(path or _path()))
    if not _answers_are_right(kernel):
        raise KernelError("it fails its self-test")
    return kernel


def _path() -> str:
    """Return where the library is, if it is what it was when it was built."""
    setting = os.environ.get(SETTING, "")
    if setting == "off":
        raise KernelError(f"{SETTING} is off")
    path = setting or os.path.join(os.path.dirname(os.path.abspath(__file__)), NAME)
    try:
        with open(path, "rb") as file, open(path + CHECKSUM, encoding="ascii") as checksum:
            if hashlib.sha256(file.read()).hexdigest() != checksum.read().split()[0]:
                raise KernelError(f"{os.path.basename(path)} is not the file that was built")
    except (OSError, ValueError, IndexError):
        absent = f"{path} or the checksum beside it cannot be read"
        raise KernelError(
            absent if setting else "none was compiled; ./run.sh does where it finds a C compiler"
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
    """Return whether known questions get their known answers."""
    try:
        tests = (_frames, _labels, _maps, _runs, _matches)
        return all(_as_lists(reply) == answer for answers in tests for reply, answer in answers(kernel))
    except Exception:  # noqa: BLE001 - whatever a library does that is not ours
        return False


def _as_lists(reply: object) -> object:
    """Return a reply with lists in place of arrays and tuples."""
    return [_as_lists(item) for item in reply] if isinstance(reply, (list, tuple, np.ndarray)) else reply


def _png(size: Size, colour: int, rows: bytes) -> bytes:
    """Return a PNG of 8 bits with these rows, each behind the number of its filter."""
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
    yield kernel.boundaries(square, 1, 9), [[0, 0, 0, 0], [0, 7, 7, 7], [0, 7, 9, 7], [0, 7, 7, 7]]


def _maps(kernel: Kernel) -> _Answers:
    # An object of two pixels, to which the third of the row is as near, and the one below it no longer near.
    truth, values = np.zeros((2, 7), bool), np.arange(1, 15, dtype=np.uint8).reshape(2, 7)
    truth[0, [0, 4]] = True
    excess, spread = kernel.measure_surroundings(truth, values, 3, 4) or (np.zeros(0), [])
    yield (np.flatnonzero(excess), excess[excess > 0]), [[1, 2, 4, 5], [18, 24, 4, 18]]
    yield spread, [[1, 1, 1, 5, 5, 5, 5], [1, 1, 255, 5, 5, 5, 255]]


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
    yield table and list(vars(table).values())[2:-1], expected
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
    yield kernel.curves(ranked, nobody, [0], [1], 1, recalls), [[[[[1, 1, 3 / 4, 0]]]], [[[3]]]]
    least, below_one = np.array([[[1, 2, 3]] * 2]), 1 / (1 + np.spacing(1))
    precision = [[[[below_one, 2 / 3, 0]], [[below_one, 0, 0]]]]
    yield kernel.curves(ranked, ranked.image, [0], [1], 1, least), [precision, [[[2, 1]]]]
