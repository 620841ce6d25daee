"""The functions of the compiled kernel, called with arrays; `library` loads it.

`backend` has equivalent numpy code for each function.
"""

from __future__ import annotations

import ctypes
from dataclasses import replace
from functools import lru_cache, partial
from typing import Callable, List, Optional, Tuple, Type, Union

import numpy as np

from .detections import (
    ANNOTATION,
    FRAMES,
    MASK,
    CurveTables,
    CurveTask,
    OverlappingPairs,
    RecordTable,
    Rings,
    TrueSets,
)
from .distances import SQUARES, Surroundings
from .overlaps import SLACK, PairGroups, Pairs, SegmentRules, shape_of_table
from .run_lengths import MaskTexts, Spans, pack_texts
from .stack import WORD, Array, Size, Stack, Stacks, words_across
from .volumes import FINE, FULL, MAPS, VolumeKernel

#: The number of one-byte labels.
LABELS = 256
#: The initial space for pairs of labels, which grows fourfold, and its maximum.
_FIRST_PAIRS, _MOST_PAIRS = 1 << 18, 1 << 26
#: The initial space for a mask's run lengths, beside one character per pixel; it grows eightfold.
_FIRST_TEXT = 1 << 12
#: The number of columns in a table of records.
_RECORD_COLUMNS = 16
#: The minimum length in characters of a usual record, and of one of its frames.
_SHORTEST_RECORD, _SHORTEST_FRAME = 60, 5


class Kernel(VolumeKernel):
    """The library's functions on arrays, which return None for unsupported input."""

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
        return counts if status == FINE else None

    def grow(self, words: Array, halves: Array) -> Optional[Array]:
        """Return masks grown by a disk with these half widths by rows from its centre."""
        out = np.empty(words.shape, np.uint64)
        return out if self.library.sj_grow(words, *words.shape, halves, len(halves), out) == FINE else None

    def read_png(self, data: bytes, size: Size, kind: Type[np.generic] = np.uint8) -> Optional[Array]:
        """Return each pixel's byte, or grey of 16 bits, or red + 256 × green + 65,536 × blue as 32 bits.

        The kind of number must be that of the PNG; None for unusual ones.
        """
        numbers = np.empty(size, kind)
        status = self.library.sj_read_png(data, len(data), *size, numbers.itemsize, numbers)
        return numbers if status == FINE else None

    def label_pairs(self, truth: Array, prediction: Array) -> Optional[Tuple[Array, Array]]:
        """Return the pairs of labels (rows) at the same pixels, and their numbers of pixels."""
        if truth.shape != prediction.shape or not all(side.dtype.str in MAPS for side in (truth, prediction)):
            return None
        if not truth.size:
            return None
        shape = shape_of_table(truth, prediction)
        table = shape and self.label_table(truth, prediction, shape)
        if table is not None:
            cells = np.flatnonzero(table)  # a fraction of the time of nonzero
            return np.stack(np.divmod(cells, table.shape[1]), axis=1), table.reshape(-1)[cells]
        room, count, status = _FIRST_PAIRS, ctypes.c_int64(0), FULL
        sides = (truth, truth.itemsize, prediction, prediction.itemsize, truth.size)
        while status == FULL and room <= _MOST_PAIRS:
            labels, pixels = np.empty((room, 2), np.uint32), np.empty(room, np.int64)
            status = self.library.sj_label_pairs(*sides, labels, pixels, room, ctypes.byref(count))
            room *= 4
        return (labels[: count.value], pixels[: count.value]) if status == FINE else None

    def label_table(self, truth: Array, prediction: Array, shape: Tuple[int, int]) -> Optional[Array]:
        """Return how many pixels have each label of the truth (rows) and of the prediction; None if one is beyond."""
        if truth.size != prediction.size or not all(side.dtype.str in MAPS for side in (truth, prediction)):
            raise ValueError("two maps of one size are compared, of 8, 16 or 32 bits")
        table = np.zeros(shape, np.int64)
        status = self.library.sj_label_table(
            truth, truth.itemsize, prediction, prediction.itemsize, truth.size, *shape, table
        )
        return table if status == FINE else None

    def count_points(self, truth: Array, prediction: Array, classes: Array, shape: Size) -> Optional[Array]:
        """Return the keys and numbers of points by true class and predicted label; None if a label is beyond.

        The rows of a table of this `shape` are classes, and its columns labels; `classes` has the class of each label.
        """
        if truth.size != prediction.size or truth.dtype.str not in MAPS:
            return None
        cells, number = np.empty((2, shape[0] * shape[1]), np.int64), ctypes.c_int64(0)
        sides = (truth, truth.itemsize, prediction, truth.size, classes, len(classes), *shape)
        status = self.library.sj_points(*sides, cells, ctypes.byref(number))
        return cells[:, : number.value] if status == FINE else None

    def match_segments(
        self, truth: Array, values: Optional[Array], prediction: Array, rules: SegmentRules
    ) -> Optional[Tuple[Array, Array, Array]]:
        """Return tables of a scan's points and of its segments whose IoU is above 0.5; None where a label has no class.

        They are the keys and numbers of points by true class and predicted label; class, shared points and joint points
        of each match, ordered by class and number; and the unmatched segments by class, missed ones first. `values` may
        map the truth's numbers to labels with object numbers.
        """
        if truth.size != prediction.size or truth.dtype.str not in MAPS:
            return None
        count, labels = rules.count_of_classes, len(rules.classes)
        cells, matches = np.empty((2, count * labels), np.int64), np.empty((truth.size, 3), np.uint32)
        unmatched, numbers = np.zeros((2, count), np.int64), np.zeros(2, np.int64)
        sides = (truth, truth.itemsize, values, 0 if values is None else len(values), prediction, prediction.size)
        classes = (rules.classes, labels, count, rules.things, rules.has_values, rules.fewest_points)
        status = self.library.sj_segments(*sides, *classes, *cells, matches, numbers, unmatched)
        if status != FINE:
            return None
        cells_end, matches_end = numbers.tolist()
        return cells[:, :cells_end], matches[:matches_end], unmatched

    def boundaries(self, labels: Array, reach: int, inner: int) -> Optional[Array]:
        """Return a map in which pixels surrounded by their own label share one."""
        if labels.dtype != np.uint32:
            return None
        out = np.empty(labels.shape, np.uint32)
        status = self.library.sj_boundaries(labels, *labels.shape, reach, inner, out)
        return out if status == FINE else None

    def measure_surroundings(self, truth: Array, values: Array, least: int, near_square: int) -> Optional[Surroundings]:
        """Return an object's surroundings: sums by distance, and the map of nearest values."""
        if truth.shape != values.shape or truth.dtype != bool or values.dtype != np.uint8:
            return None
        excess, spread = np.zeros(SQUARES, np.int64), np.empty(values.shape, np.uint8)
        status = self.library.sj_survey(
            truth.view(np.uint8), values, *values.shape, least, near_square, excess, SQUARES, spread
        )
        return Surroundings(excess, spread) if status == FINE else None

    def check_runs(self, texts: List[str], pixels: Array) -> Tuple[Array, Array]:
        """Return the fault (a key of `run_lengths.FAULTS`, or 0) and the area of each mask."""
        masks = pack_texts(texts)
        count, text = len(masks), masks.text
        fault, area = np.zeros(count, np.int8), np.zeros(count, np.int64)
        bounds = np.append(0, masks.stops)
        _require_fine(self.library.sj_check_runs(text, len(text), bounds, count, pixels, fault, area))
        return fault, area

    def mask_boxes(self, masks: MaskTexts, sizes: Array) -> Optional[Array]:
        """Return the boxes (x, y, width, height) around masks, all 0 for empty ones; None if one is unusual."""
        masks, boxes = masks.compact(), np.zeros((len(masks), 4), np.int64)
        sides = (masks.text, len(masks.text), np.append(0, masks.stops), len(masks))
        return boxes if self.library.sj_mask_boxes(*sides, sizes, boxes) == FINE else None

    def paint(self, texts: List[str], labels: Array, pixels: int) -> Optional[Array]:
        """Return the label of each pixel of masks of one image, 0 for none; None if one is faulty or two overlap."""
        masks, painted = pack_texts(texts), np.zeros(pixels, np.uint8)
        sides = (masks.text, len(masks.text), np.append(0, masks.stops), len(texts))
        status = self.library.sj_paint_runs(*sides, labels, pixels, painted)
        return painted if status == FINE else None

    def encode(self, labels: Array) -> Optional[Tuple[str, int]]:
        """Return the run lengths of all non-zero pixels of an image, and their number."""
        pixels = labels if labels.dtype == np.uint8 else (labels != 0).view(np.uint8)
        return _write_runs(partial(self.library.sj_encode, pixels, *pixels.shape), pixels.size)

    def cover(self, texts: List[str], pixels: int) -> Optional[Array]:
        """Return the pixels of one image that masks cover, as words of bits; None if a mask is faulty."""
        masks, bits = pack_texts(texts), np.zeros(pixels // WORD + 1, np.uint64)
        sides = (masks.text, len(masks.text), np.append(0, masks.stops), len(texts))
        return bits if self.library.sj_cover(*sides, pixels, bits) == FINE else None

    def write_bits(self, bits: Array, pixels: int) -> Optional[Tuple[str, int]]:
        """Return the run lengths of the pixels of an image that are set in words of bits, and their number."""
        return _write_runs(partial(self.library.sj_write_bits, bits, pixels), pixels)

    def count_inside(self, labels: Array, spans: Spans) -> Optional[Tuple[Array, int]]:
        """Return the number of non-zero pixels of an image inside each mask, and of all of them."""
        pixels = labels if labels.dtype == np.uint8 else (labels != 0).view(np.uint8)
        inside, area = np.zeros(len(spans.bounds) - 1, np.int64), ctypes.c_int64(0)
        sides = (spans.runs, spans.bounds, len(inside), len(spans.runs))
        status = self.library.sj_count_inside(pixels, *pixels.shape, *sides, inside, ctypes.byref(area))
        return (inside, area.value) if status == FINE else None

    def first_overlap(self, masks: MaskTexts, pixels: Array, groups: Array) -> Optional[int]:
        """Return the first group of which two masks share pixels, or the number of groups; None for invalid masks.

        Texts are consecutive; `pixels` has the pixels of each mask's image.
        """
        group = np.zeros(1, np.int64)
        bounds = np.append(0, masks.stops)
        sides = (masks.text, len(masks.text), bounds, len(masks), pixels)
        status = self.library.sj_first_overlap(*sides, groups, len(groups) - 1, group)
        return int(group[0]) if status == FINE else None

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
            if status == FINE:
                return MaskTexts(out[: stops[-1]].tobytes(), stops[:-1], stops[1:]), area
            if status != FULL:
                break
        return None

    def records(self, data: bytes, shape: int) -> Optional[RecordTable]:
        """Return the usual-form records at the start of some text, each followed by a comma; None without any.

        Each record holds one of `SHAPES`.
        """
        length = len(data)
        rows = np.empty((length // _SHORTEST_RECORD + 1, _RECORD_COLUMNS), np.int64)
        masks = np.empty(length + length // 4 + 64, np.uint8)
        frame_room = {FRAMES: length // _SHORTEST_FRAME + 1, ANNOTATION: len(rows)}.get(shape, 1)
        frames = np.empty((frame_room, 4 if shape == ANNOTATION else 3), np.int64)
        numbers, rings = np.empty(length // 2 + 1), np.zeros(length // 12 + 2, np.int64)
        ring_ends = rings[1:]
        rooms = np.array([len(masks), len(frames), len(numbers), len(ring_ends)], np.int64)
        used = np.zeros(6, np.int64)
        status = self.library.sj_records(
            data, length, shape, len(rows), rows, masks, frames, numbers, ring_ends, rooms, used
        )
        if status != FINE:
            return None
        count, end, frame_count, number_count, ring_count, points = used.tolist()
        # Copies, since otherwise the rows would keep the memory of all possible ones.
        rows = rows[:count].copy()
        table = _record_table(rows, masks, shape, numbers[:number_count], rings[: ring_count + 1])
        if points >= 0 and shape == ANNOTATION:  # the last annotation's points come first
            coordinates = numbers[len(numbers) - count * points :].reshape(count, points)[::-1].copy()
            table = replace(table, points=coordinates)
        elif points >= 0:
            table = replace(table, points=numbers[:number_count].reshape(count, points).copy())
        if shape in (FRAMES, ANNOTATION):
            table = replace(table, frames=frames[:frame_count].copy())
        if shape == FRAMES:
            table = replace(table, masks=_text(masks, frames[frame_count - 1, 2]))
        return replace(table, end=end)

    def draw(self, rings: Rings, sizes: Array) -> Optional[Tuple[MaskTexts, Array]]:
        """Return the masks of polygons in images of these sizes, and their areas; None where one is unusual."""
        count = len(rings)
        stops, area = np.zeros(count, np.int64), np.zeros(count, np.int64)
        room = 1024 * count + 4 * len(rings.numbers) + 4096  # usually enough; what is not written takes no memory
        for _ in range(12):
            out = np.empty(room, np.uint8)
            status = self.library.sj_draw(
                rings.numbers, len(rings.numbers), rings.ends, len(rings.ends) - 1, rings.masks, count, sizes, out,
                room, stops, area,
            )  # fmt: skip
            if status == FINE:
                return MaskTexts(_text(out, stops[-1] if count else 0), np.append(0, stops)[:-1], stops), area
            if status != FULL:
                break
            room *= 4
        return None

    def order(self, score: Array, group: Array) -> Array:
        """Return the order by rising group, then by falling score; ties keep their order."""
        order = np.empty(len(score), np.int64)
        _require_fine(self.library.sj_order(score, group, len(order), order))
        return order

    def similar_pairs(self, groups: PairGroups, predictions: Array, truths: Array, crowd: Array, least: float) -> Pairs:
        """Return the pairs of each group whose extents let their IoU reach a bound, and those with a crowd."""
        room, count = groups.count_pairs(), len(groups.low)
        both, ends = np.empty((2, room), np.int64), np.zeros(count + 1, np.int64)
        sides = (predictions, len(predictions), truths, crowd, len(truths))
        _require_fine(
            self.library.sj_similar_pairs(
                *groups, count, *sides, np.array([least, SLACK]), room, both[0], both[1], ends[1:]
            )
        )
        prediction, truth = both[:, : ends[-1]]
        return Pairs(prediction, truth, ends)

    def box_overlaps(self, pairs: Pairs, predictions: Array, truths: Array, crowd: Array) -> Array:
        """Return the IoU of each pair of boxes; with a crowd, the share of the detection inside it."""
        ious = np.empty(len(pairs.prediction))
        columns, sides = (
            (pairs.prediction, pairs.truth, len(ious)),
            (predictions, len(predictions), truths, len(truths)),
        )
        _require_fine(self.library.sj_box_overlaps(*columns, *sides, crowd, ious))
        return ious

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

    def curves(self, task: CurveTask, categories: range, tables: CurveTables) -> None:
        """Enter the curves of some consecutive categories into the tables."""
        ranked, (total, areas, groups) = task.ranked, task.counts.shape
        detections = (ranked.true, ranked.counted, ranked.rank, task.group, len(task.group))
        parts = (task.bounds, min(total, len(task.bounds) - 1), categories.start, categories.stop)
        limits = (np.array(task.limits, np.int64), len(task.limits), len(tables.recall), areas, task.thresholds, groups)
        numbers = (task.counts, task.which, task.needed, *task.needed.shape, task.averaged)
        results = (tables.precision, tables.recall, ranked.score, tables.scores)
        _require_fine(self.library.sj_curves(*detections, *parts, *limits, *numbers, *results))

    def similarities(self, pairs: Pairs, predicted: Array, truth: TrueSets) -> Optional[Array]:
        """Return the OKS of each pair of keypoints, 0 below one half; None where one is unusual."""
        oks, (sets, points) = np.empty(len(pairs.prediction)), truth.marked.shape
        if not points or predicted.shape[1:] != (2 * points,):
            return None
        detections = (pairs.prediction, pairs.truth, len(oks), predicted, len(predicted))
        columns = (truth.points, truth.marked.view(np.uint8), truth.sigmas, truth.area, truth.boxes)
        return oks if self.library.sj_similarities(*detections, *columns, sets, points, oks) == FINE else None


def _write_runs(write: Callable[..., int], pixels: int) -> Optional[Tuple[str, int]]:
    """Return the run lengths and the number of pixels that a function writes, in as much room as they need."""
    room, length, area, status = _FIRST_TEXT + pixels, ctypes.c_int64(0), ctypes.c_int64(0), FULL
    while status == FULL and room <= 16 * pixels + _FIRST_TEXT:
        text = np.empty(room, np.uint8)
        status = write(text, room, ctypes.byref(length), ctypes.byref(area))
        room *= 8
    return (text[: length.value].tobytes().decode("ascii"), area.value) if status == FINE else None


def _text(characters: Array, length: int) -> bytes:
    return characters[:length].tobytes()


def _record_table(rows: Array, masks: Array, shape: int, numbers: Array, rings: Array) -> RecordTable:
    """Return rows that the kernel read as a table."""
    outlined, polygons, reals, has_masks = None, None, rows.view(float), shape in (MASK, ANNOTATION)
    if has_masks and len(rings) > 1:
        outlined = np.flatnonzero(rows[:, 3] < 0)
        polygons = Rings(numbers.copy(), rings.copy(), np.append(rows[outlined, 14], rows[outlined[-1], 15]))
    text = _text(masks, int(rows[-1, 6])) if has_masks else b""
    columns = (rows[:, 0], rows[:, 1], reals[:, 2].copy(), rows[:, 3:5], rows[:, 5:7], rows[:, 7], rows[:, 8])
    return RecordTable(0, *columns, text, rows[:, 9], reals[:, 10:14].copy(), None, outlined, polygons)


@lru_cache(maxsize=64)
def _columns(disk: Tuple[Tuple[int, int, int], ...]) -> ctypes.Array[ctypes.c_int32]:
    return (ctypes.c_int32 * (3 * len(disk)))(*(number for column in disk for number in column))


def _require_fine(status: int) -> None:
    """Raise ValueError if the kernel rejected a call."""
    if status != FINE:
        raise ValueError(f"the kernel returned {status}")


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
        #: The size of a frame, and the maximum number of frames in a block.
        self.size, self.frames = size, frames
        self._library = kernel.library
        self._slot_of = np.full(LABELS, -1, np.int32)
        self._boxes = np.zeros((LABELS, 4), np.int32)
        #: The labels of the last frame, including 0.
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
        block, status = self._block, FULL
        block.merged = merge
        while status == FULL and block.used <= limit:
            if block.used == len(self._words):
                self._take_words(np.concatenate([self._words, np.zeros_like(self._words)])[: LABELS - 1])
            status = pack(ctypes.byref(block), frame, data, length)
        return status == FINE and bool(block.used <= limit)

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
