"""The backend: the most frequent operations, by numpy or by the compiled kernel, chosen once.

Counting code calls `backend()` without knowing which it is: both give the same bits. `NumpyBackend` is the interface;
`CompiledBackend` passes unsupported cases to it, such as 2-byte labels.
"""

from __future__ import annotations

import os
import threading
from functools import lru_cache
from typing import Callable, Collection, Dict, Iterable, List, NamedTuple, Optional, Tuple, Type

import numpy as np

from ..files import Files, Flaw, Problem
from . import detections, distances, overlaps, png
from . import run_lengths as rle
from .detections import Candidates, CurveTables, CurveTask, RecordTable, Rings, TrueSets
from .distances import Surroundings
from .kernel import LABELS, Kernel, PackedFrames
from .library import SETTING, SYSTEM, KernelError, load
from .overlaps import (
    LABEL_MASK,
    LabelMap,
    LabelPairs,
    PairGroups,
    Pairs,
    list_cells,
    sum_by_key,
    sum_label_pairs,
    whole_windows,
)
from .run_lengths import CheckedMasks, Masks, MaskTexts, encode_masks, pack_texts
from .similarity import Counts, Disk, Region, count_shared
from .stack import Array, Size, Stack, Stacks, crop, empty_labels, empty_stack, labels_in, pack, stacks_of

#: The names of mask files; None for a frame without a file.
Names = List[Optional[str]]
#: The kernel keeps its memory for the next block up to this number of objects.
_MOST_KEPT = 32
#: The kernel's types of the pixels of a PNG, by depth and colour type, if it has more than a byte for each.
_KINDS_OF_PNGS: Dict[Tuple[int, int], Type[np.generic]] = {(16, png.GREY): np.uint16, (8, png.RGB): np.uint32}
#: The maximum number of characters of masks decoded together.
_MOST_TOGETHER = 1 << 18
#: The pair of the first and the second of two masks.
_TWO_MASKS = Pairs(np.array([0]), np.array([1]), np.array([0, 1]))


class MergingRule(NamedTuple):
    """The rule that turns the labels of a file into one object's mask; raises a Flaw for impossible labels."""

    #: Returns the object's pixels.
    flags: Callable[[Array], Array]
    #: Returns whether the pixels are all except those of label 0, given the existing labels of 256.
    is_all: Callable[[Collection[int]], bool]


class NumpyBackend:
    """The numpy backend, with Pillow and pycocotools where numpy has no function."""

    name = "numpy"
    #: The kernel, for families with numpy code of their own beside its functions.
    kernel: Optional[Kernel] = None

    def __init__(self, reason: str = "", fault: str = "") -> None:
        #: The implementation and its reason, in a few words.
        self.about = f"numpy (no kernel: {reason})"
        #: Why a kernel that is there cannot be used.
        self.fault = fault

    # ── frames ──

    #: Return the labels of a PNG of this (height, width); raises a Flaw if it is unreadable.
    read_labels = staticmethod(png.read_labels)

    #: Return red + 256 × green + 65,536 × blue for every pixel of a PNG; raises a Flaw as `read_labels` does.
    read_codes = staticmethod(png.read_codes)

    def read_channel(self, data: bytes, size: Size, remedy: str) -> Array:
        """Return the labels of a PNG without palette colours: channels, if it has several, must be equal."""
        if not png.is_coloured(data):
            return self.read_labels(data, size)
        png.refuse_deep_colours(data, remedy)
        return png.merge_channels(self.read_codes(data, size), remedy)

    def read_member(self, files: Files, name: str, size: Size) -> Array:
        """Return the labels of one of the files."""
        png.check_length(files.sizes[name], size)
        return self.read_labels(files.read(name), size)

    def read_objects(self, files: Files, names: List[str], size: Size, limit: int) -> Tuple[Stacks, List[Problem]]:
        """Return the masks of each label in a block of files, up to a number of labels, and their problems."""
        problems: List[Problem] = []
        frames = [self._try_member(files, name, size, problems) for name in names]
        images = [labels for labels in frames if labels is not None]
        if problems:
            return {}, problems
        block = empty_labels(len(names), size, np.result_type(*images))
        for index, labels in enumerate(images):
            block[index, :, : size[1]] = labels
        numbers = labels_in(block)
        if len(numbers) > limit:
            numbers = [number for number in numbers if (block == number).any()]
        if len(numbers) > limit:
            return {}, [too_many_objects(names[0], len(numbers), limit)]
        return stacks_of(block, numbers, size), []

    def read_object(self, files: Files, names: Names, size: Size, rule: MergingRule) -> Tuple[Stack, List[Problem]]:
        """Return the masks of one object in a block of files, and their problems."""
        block, problems = empty_labels(len(names), size, bool), []  # type: Array, List[Problem]
        for frame, name in zip(block, names):
            flags = None if name is None else self._try_member(files, name, size, problems, rule)
            if flags is not None:
                frame[:, : size[1]] = flags
        return crop(pack(block), size), problems

    def _try_member(
        self, files: Files, name: str, size: Size, problems: List[Problem], rule: Optional[MergingRule] = None
    ) -> Optional[Array]:
        """Return the labels, or by a rule the object's pixels; None if there is a problem, which is added."""
        try:
            labels = self.read_member(files, name, size)
            return labels if rule is None else rule.flags(labels)
        except Flaw as flaw:
            problems.append(flaw.as_problem(name))
            return None

    def pack_labels(self, labels: Array) -> Stacks:
        """Return the masks of each label in a frame."""
        size: Size = labels.shape
        block = empty_labels(1, size, labels.dtype)
        block[0, :, : size[1]] = labels
        return stacks_of(block, labels_in(block), size)

    def compare(self, pairs: Iterable[Tuple[Region, Region]], match: Disk) -> List[Counts]:
        """Return the counts of pairs of truth and prediction over the same frames."""
        return [
            Counts(
                truth.area,
                prediction.area,
                count_shared(truth.stack, prediction.stack),
                truth.boundary_size,
                prediction.boundary_size,
                truth.count_matches(prediction, match),
                prediction.count_matches(truth, match),
            )
            for truth, prediction in pairs
        ]

    # ── maps of labels ──

    def count_label_pairs(self, truth: LabelMap, prediction: LabelMap) -> LabelPairs:
        """Return the pairs of labels in two maps and their numbers of pixels."""
        truth_numbers, prediction_numbers = truth.numbers.reshape(-1), prediction.numbers.reshape(-1)
        starts = np.flatnonzero(
            np.append(
                True, (truth_numbers[1:] != truth_numbers[:-1]) | (prediction_numbers[1:] != prediction_numbers[:-1])
            )
        )
        lengths = np.diff(np.append(starts, truth_numbers.size))
        return sum_label_pairs(truth.labels_at(starts), prediction.labels_at(starts), lengths)

    def pair_values(self, truth: Array, prediction: Array) -> Tuple[Array, Array, Array]:
        """Return each pair of values of 32 bits that points have, in any order, and how many have it."""
        keys, points = sum_by_key(
            truth.reshape(-1).astype(np.uint64) << np.uint64(32) | prediction.reshape(-1), np.ones(truth.size)
        )
        return (keys >> np.uint64(32)).astype(np.int64), (keys & np.uint64((1 << 32) - 1)).astype(np.int64), points

    def count_points(self, truth: Array, prediction: Array, classes: Array, shape: Size) -> Optional[Array]:
        """Return the keys and numbers of points by true class and predicted label, as `list_cells` does.

        The lower bits of a number are its label, and `classes` has the class of each label of the truth; points whose
        class is beyond the rows of this shape are skipped. None if a label has no class, or is beyond the columns.
        """
        true, predicted = (side.reshape(-1) & np.uint32(LABEL_MASK) for side in (truth, prediction))
        if true.max() >= len(classes) or predicted.max() >= shape[1]:
            return None
        true_classes = classes[true].astype(np.int64)
        scored = true_classes < shape[0]
        cells = true_classes[scored] * shape[1] + predicted[scored]
        return list_cells(np.bincount(cells, minlength=shape[0] * shape[1]).reshape(shape))

    def keep_boundaries(self, labels: Array, reach: int, inner: int) -> Array:
        """Return a map in which pixels surrounded by their own label share one label."""
        if min(labels.shape) <= 2 * reach:
            return labels
        down = whole_windows(labels[1:] == labels[:-1], 2 * reach, 2 * reach + 1)
        across = whole_windows(labels[:, 1:] == labels[:, :-1], 2 * reach + 1, 2 * reach)
        boundaries = labels.astype(np.result_type(labels, np.uint32))
        window = boundaries[reach:-reach, reach:-reach]
        window[down & across & (window != 0)] = inner
        return boundaries

    # ── grey maps ──

    #: Return the distances of bright pixels from an object, and the nearest values close to it.
    measure_surroundings = staticmethod(distances.measure_surroundings)

    # ── run lengths ──

    def check_masks(self, texts: List[str], pixels: Array) -> CheckedMasks:
        """Return the fault and the area of each mask, in images of these sizes."""
        return rle.check_in_batches(texts, pixels)

    def mask_boxes(self, masks: MaskTexts, sizes: Array) -> Array:
        """Return the boxes (x, y, width, height) around checked masks of these sizes; all 0 for empty ones."""
        return rle.boxes_of(masks.unpack(), sizes)

    def paint_masks(self, texts: List[str], labels: Array, pixels: int) -> Optional[Array]:
        """Return the label of each pixel of an image, 0 for none, as `run_lengths.paint` does, from labels above 0.

        None if a mask is faulty, two share a pixel, or texts are too long to be decoded together.
        """
        if sum(map(len, texts)) > _MOST_TOGETHER:
            return None
        if rle.check_in_batches(texts, np.full(len(texts), pixels)).fault.any():
            return None
        return rle.paint(texts, labels, pixels)

    def draw_mask(self, text: str, pixels: int) -> Array:
        """Return the pixels of a checked mask, eight in a byte."""
        return np.packbits(rle.flags_of(rle.runs_of(text, pixels)), bitorder="little")

    #: Return the mask of all pixels of checked, non-empty masks of an image, and their number.
    unite_masks = staticmethod(rle.unite)

    #: Return the run lengths of all non-zero pixels of an image, and their number.
    encode_mask = staticmethod(rle.encode_mask)

    #: Return the number of non-zero pixels of an image inside each mask, and of all of them.
    count_inside = staticmethod(rle.count_inside)

    def draw_polygons(self, rings: Rings, sizes: Array) -> Tuple[MaskTexts, Array]:
        """Return the masks of polygons that were checked, in images of these sizes, and the pixels of each."""
        from .rings import masks_of  # masks of videos have no outlines

        texts = masks_of(rings, sizes)
        return pack_texts(texts), rle.check_in_batches(texts, sizes.prod(axis=1)).area

    def join_frames(self, texts: MaskTexts, shown: Array, pixels: Array, ends: Array) -> Tuple[MaskTexts, Array]:
        """Return the masks of frames joined side by side, and the area of each frame.

        For each frame, the arguments state whether it has a text and its number of pixels; `ends` are the frames at
        which wide masks end. Raises ValueError if a mask is invalid.
        """
        masks = [texts[index] for index in range(len(texts))]
        checked = rle.check_in_batches(masks, pixels[shown])
        if checked.fault.any():
            raise ValueError
        area, parts = np.zeros(len(shown), np.int64), np.ones(len(shown), np.int64)
        background, covered, starts = rle.decode(masks)
        area[shown], parts[shown] = checked.area, np.diff(np.append(starts, len(covered)))
        is_shown = np.repeat(shown, parts)
        runs = np.zeros((len(is_shown), 2), np.int64)
        runs[~is_shown, 0] = pixels[~shown]
        runs[is_shown, 0], runs[is_shown, 1] = background, covered
        return pack_texts(rle.texts_of(runs.reshape(-1), 2 * np.append(0, np.cumsum(parts))[ends])), area

    def mask_overlaps(self, pairs: Pairs, predictions: Masks, truths: Masks, crowd: Array) -> Array:
        """Return the IoU of each pair of masks; for a crowd, the share of the prediction inside it."""
        from pycocotools.mask import iou

        ious = np.zeros(len(pairs.prediction))
        for start, stop in zip(pairs.bounds[:-1].tolist(), pairs.bounds[1:].tolist()):
            if start < stop:
                rows, row = np.unique(pairs.prediction[start:stop], return_inverse=True)
                columns, column = np.unique(pairs.truth[start:stop], return_inverse=True)
                crowds = crowd[columns].astype(np.uint8).tolist()
                table = np.asarray(iou(encode_masks(predictions, rows), encode_masks(truths, columns), crowds))
                ious[start:stop] = table.reshape(len(rows), len(columns))[row, column]
        return ious

    def first_overlap(self, masks: Masks, bounds: Array) -> int:
        """Return the first group of masks of which two share pixels, or the number of groups.

        Texts of masks are consecutive; a group's masks belong to one image.
        """
        from pycocotools.mask import area, merge

        for group, (start, stop) in enumerate(zip(bounds[:-1].tolist(), bounds[1:].tolist())):
            if stop - start > 1:
                union = merge(encode_masks(masks, np.arange(start, stop)))
                if int(area(union)) != int(masks.area[start:stop].sum()):
                    return group
        return len(bounds) - 1

    #: Return the pairs of each group whose extents let their IoU reach a bound, and those with a crowd.
    similar_pairs = staticmethod(overlaps.similar_pairs)

    #: Return the IoU of each pair of boxes; for a crowd, the share of the prediction inside it.
    box_overlaps = staticmethod(overlaps.box_overlaps)

    #: Return the number of pixels that two checked, non-empty masks of one size share.
    count_shared_pixels = staticmethod(overlaps.count_shared_pixels)

    # ── detections ──

    def read_records(self, text: bytes, shape: int) -> Optional[RecordTable]:
        """Return the first records of some text, each followed by a comma; None if the JSON parser is needed.

        Each record holds one of `detections.SHAPES`.
        """
        del text, shape
        return None

    #: Return the order by rising group, then by falling score; ties keep their order.
    order_by_score = staticmethod(detections.order_by_score)

    #: Return words of bits per detection: where it is matched, and where it is ignored.
    #: The words have a bit for each threshold and range of areas.
    match = staticmethod(detections.match)

    def draw_curves(self, task: CurveTask, categories: range, tables: CurveTables) -> None:
        """Enter the curves of some categories into the tables."""
        for category in categories:
            detections.draw_curves(task, category, tables)

    def compare_points(self, pairs: Pairs, predicted: Array, truth: TrueSets) -> Optional[Array]:
        """Return the OKS of each pair of keypoints; None if numpy is needed."""
        del pairs, predicted, truth
        return None


class _Spare(threading.local):
    """The memory of the previous block, reused by the next one of the same size."""

    frames: Optional[PackedFrames] = None


class CompiledBackend(NumpyBackend):
    """The kernel backend; fractions are computed here from the kernel's whole numbers."""

    name = "kernel"

    def __init__(self, kernel: Kernel) -> None:
        super().__init__()
        self.about = f"kernel for {SYSTEM} (numpy: {SETTING}=off)"
        self.kernel: Kernel = kernel
        self._spare = _Spare()

    def read_labels(self, data: bytes, size: Size) -> Array:
        kind = _KINDS_OF_PNGS.get(png.sample_kind_of(data), np.uint8)
        labels = self.kernel.read_png(data, size, kind)
        if labels is None:
            return super().read_labels(data, size)
        return png.labels_of_codes(labels) if kind is np.uint32 else labels

    def read_codes(self, data: bytes, size: Size) -> Array:
        codes = self.kernel.read_png(data, size, np.uint32)
        return super().read_codes(data, size) if codes is None else codes

    def read_objects(self, files: Files, names: List[str], size: Size, limit: int) -> Tuple[Stacks, List[Problem]]:
        packed = self._pack_files(files, [*names], size, limit, None)
        return super().read_objects(files, names, size, limit) if packed is None else packed

    def read_object(self, files: Files, names: Names, size: Size, rule: MergingRule) -> Tuple[Stack, List[Problem]]:
        packed = self._pack_files(files, names, size, LABELS, rule)
        if packed is None:
            return super().read_object(files, names, size, rule)
        stacks, problems = packed
        return stacks.get("1", empty_stack(len(names), size)), problems

    def _pack_files(
        self, files: Files, names: Names, size: Size, limit: int, rule: Optional[MergingRule]
    ) -> Optional[Tuple[Stacks, List[Problem]]]:
        """Return masks by label, or of one object by a rule; None for 2-byte labels or too many."""
        frames = self._take_memory(size, len(names))
        problems: List[Problem] = []
        complete = True
        for index, name in enumerate(names):
            try:
                complete = name is None or self._add(frames, index, files, name, limit, rule)
            except Flaw as flaw:
                problems.append(flaw.as_problem(str(name)))
            if not complete:
                break
        stacks = self._take_stacks(frames, len(names))
        return (stacks, problems) if complete else None

    def _add(
        self, frames: PackedFrames, index: int, files: Files, name: str, limit: int, rule: Optional[MergingRule]
    ) -> bool:
        png.check_length(files.sizes[name], frames.size)
        data, merge = files.read(name), rule is not None
        if not frames.add_png(index, data, limit, merge=merge):
            labels = self.read_labels(data, frames.size)
            if labels.dtype != np.uint8 or not frames.add_labels(index, labels, limit, merge=merge):
                return False
        return rule is None or rule.is_all(np.flatnonzero(frames.seen).tolist())

    def pack_labels(self, labels: Array) -> Stacks:
        if labels.dtype != np.uint8 and labels.max() >= LABELS:
            return super().pack_labels(labels)
        frames = self._take_memory(labels.shape, 1)
        complete = frames.add_labels(0, labels)
        stacks = self._take_stacks(frames, 1)
        return stacks if complete else super().pack_labels(labels)

    def _take_memory(self, size: Size, count: int) -> PackedFrames:
        frames, self._spare.frames = self._spare.frames, None  # dropped if an error is raised meanwhile
        if frames is None or frames.size != size or frames.frames < count:
            frames = PackedFrames(size, count, self.kernel)
        return frames

    def _take_stacks(self, frames: PackedFrames, count: int) -> Stacks:
        stacks = frames.take(count)
        self._spare.frames = frames if frames.objects <= _MOST_KEPT else None
        return stacks

    def compare(self, pairs: Iterable[Tuple[Region, Region]], match: Disk) -> List[Counts]:
        pairs = list(pairs)
        counts = self.kernel.compare([(truth.stack, prediction.stack) for truth, prediction in pairs], match)
        return super().compare(pairs, match) if counts is None else [Counts(*of_pair) for of_pair in counts]

    def count_label_pairs(self, truth: LabelMap, prediction: LabelMap) -> LabelPairs:
        pairs = self.kernel.label_pairs(truth.numbers, prediction.numbers)
        if pairs is None:
            return super().count_label_pairs(truth, prediction)
        numbers, pixels = pairs
        return sum_label_pairs(truth.labels_of(numbers[:, 0]), prediction.labels_of(numbers[:, 1]), pixels)

    def pair_values(self, truth: Array, prediction: Array) -> Tuple[Array, Array, Array]:
        pairs = self.kernel.label_pairs(truth.reshape(-1), prediction.reshape(-1))
        if pairs is None:
            return super().pair_values(truth, prediction)
        true, predicted = pairs[0].T.astype(np.int64)
        return true, predicted, pairs[1]

    def count_points(self, truth: Array, prediction: Array, classes: Array, shape: Size) -> Optional[Array]:
        cells = self.kernel.count_points(truth, prediction, classes, shape)
        return super().count_points(truth, prediction, classes, shape) if cells is None else cells

    def keep_boundaries(self, labels: Array, reach: int, inner: int) -> Array:
        boundaries = self.kernel.boundaries(labels, reach, inner)
        return super().keep_boundaries(labels, reach, inner) if boundaries is None else boundaries

    def measure_surroundings(self, truth: Array, values: Array, least: int, near_square: int) -> Surroundings:
        surroundings = self.kernel.measure_surroundings(truth, values, least, near_square)
        return super().measure_surroundings(truth, values, least, near_square) if surroundings is None else surroundings

    def check_masks(self, texts: List[str], pixels: Array) -> CheckedMasks:
        return rle.check_in_batches(texts, pixels, self.kernel.check_runs)

    def mask_boxes(self, masks: MaskTexts, sizes: Array) -> Array:
        boxes = self.kernel.mask_boxes(masks, sizes)
        return super().mask_boxes(masks, sizes) if boxes is None else boxes

    def paint_masks(self, texts: List[str], labels: Array, pixels: int) -> Optional[Array]:
        limit = rle.length_limit(pixels)
        fits = all(len(text) <= limit and text.isascii() for text in texts)
        return self.kernel.paint(texts, labels, pixels) if fits else None

    def _cover(self, texts: List[str], pixels: int) -> Optional[Array]:
        """Return the pixels that masks cover, eight in a byte; None if one is faulty."""
        limit = rle.length_limit(pixels)
        fits = all(len(text) <= limit and text.isascii() for text in texts)
        words = self.kernel.cover(texts, pixels) if fits else None
        return None if words is None else words.view(np.uint8)

    def draw_mask(self, text: str, pixels: int) -> Array:
        cover = self._cover([text], pixels)
        return super().draw_mask(text, pixels) if cover is None else cover

    def unite_masks(self, texts: List[str], pixels: int) -> Tuple[str, int]:
        words = self.kernel.cover(texts, pixels)
        united = None if words is None else self.kernel.write_bits(words, pixels)
        return united or super().unite_masks(texts, pixels)

    def encode_mask(self, labels: Array) -> Tuple[str, int]:
        return self.kernel.encode(labels) or super().encode_mask(labels)

    def count_inside(self, labels: Array, spans: rle.Spans) -> Tuple[Array, int]:
        return self.kernel.count_inside(labels, spans) or super().count_inside(labels, spans)

    def draw_polygons(self, rings: Rings, sizes: Array) -> Tuple[MaskTexts, Array]:
        return self.kernel.draw(rings, sizes) or super().draw_polygons(rings, sizes)

    def join_frames(self, texts: MaskTexts, shown: Array, pixels: Array, ends: Array) -> Tuple[MaskTexts, Array]:
        wide = self.kernel.join_frames(texts, shown, pixels, np.append(0, ends))
        if wide is None:
            raise ValueError
        return wide

    def mask_overlaps(self, pairs: Pairs, predictions: Masks, truths: Masks, crowd: Array) -> Array:
        shared = self.kernel.overlaps(predictions.texts, truths.texts, pairs)
        area = predictions.area[pairs.prediction]
        joint = np.where(crowd[pairs.truth], area, area + truths.area[pairs.truth] - shared)
        return np.where(shared > 0, shared / np.maximum(joint, 1), 0.0)

    def first_overlap(self, masks: Masks, bounds: Array) -> int:
        frame = self.kernel.first_overlap(masks.texts, masks.sizes.prod(axis=1), bounds)
        return super().first_overlap(masks, bounds) if frame is None else frame

    def similar_pairs(self, groups: PairGroups, predictions: Array, truths: Array, crowd: Array, least: float) -> Pairs:
        return self.kernel.similar_pairs(groups, predictions, truths, crowd, least)

    def box_overlaps(self, pairs: Pairs, predictions: Array, truths: Array, crowd: Array) -> Array:
        return self.kernel.box_overlaps(pairs, predictions, truths, crowd)

    def count_shared_pixels(self, first_mask: str, second_mask: str) -> int:
        masks = pack_texts([first_mask, second_mask])
        return int(self.kernel.overlaps(masks, masks, _TWO_MASKS)[0])

    def read_records(self, text: bytes, shape: int) -> Optional[RecordTable]:
        return self.kernel.records(text, shape)

    def order_by_score(self, score: Array, group: Array) -> Array:
        return self.kernel.order(score, group)

    def match(self, candidates: Candidates) -> Tuple[Array, Array]:
        kinds = np.zeros(len(candidates.crowd), np.uint8)
        for bit, flags in enumerate((*candidates.ignored, candidates.crowd, candidates.unmatchable)):
            kinds |= flags.astype(np.uint8) << np.uint8(bit)
        areas, thresholds = len(candidates.outside), len(candidates.thresholds)
        all_bits = np.array([((1 << thresholds) - 1) << thresholds * area for area in range(areas)], np.uint64)
        ignored = np.bitwise_or.reduce(np.where(candidates.outside, all_bits[:, None], np.uint64(0)))
        return self.kernel.match(candidates.pairs, kinds, candidates.thresholds, areas, ignored)

    def draw_curves(self, task: CurveTask, categories: range, tables: CurveTables) -> None:
        self.kernel.curves(task, categories, tables)

    def compare_points(self, pairs: Pairs, predicted: Array, truth: TrueSets) -> Optional[Array]:
        return self.kernel.similarities(pairs, predicted, truth)


def backend() -> NumpyBackend:
    """Return the backend of this process."""
    return _choose_backend()


@lru_cache(maxsize=None)
def _choose_backend() -> NumpyBackend:
    try:
        return CompiledBackend(load())
    except KernelError as error:
        remedy = "" if os.environ.get(SETTING) else "; in a checkout, ./run.sh compiles it again"
        return NumpyBackend(str(error), "" if error.is_absent else f"{error}{remedy}")


def too_many_objects(name: str, count: int, limit: int) -> Problem:
    """Return the problem of exceeding a phase's limit of objects."""
    return Problem(name, f"has {count} objects; this phase allows {limit} in a sequence", "Send fewer objects")
