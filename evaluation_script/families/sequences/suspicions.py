"""Suspicions about masks of sequences that seem to follow another convention."""

from __future__ import annotations

import functools
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Callable, Dict, Iterable, List, Optional, Set, Tuple

import numpy as np

from ...files import Problem, Problems, name_list, quantity
from ...masks.files import LabelImages, MaskFiles, RequiredFrames, RunLengths
from ...masks.overlaps import best_assignment
from ...masks.run_lengths import turn_pixels
from ...masks.similarity import count_shared
from ...masks.stack import Array, Size, Stack, Stacks, empty_labels, labels_in, measure_iou, pack, stacks_of
from ..base.readings import (
    MOVED,
    OVERALL_IOU,
    TIMES_MOVED,
    Reading,
    ReadingScores,
    is_moved,
    judge_readings,
    list_neighbours,
    list_rearrangements,
    read_blended,
    read_compressed,
    read_turned,
    score_readings,
    spread_evenly,
)
from ..base.suspicions import is_nearly_none, judge_blank, judge_cover
from .counting import (
    SequenceAccumulator,
    SequenceCounts,
    choose_objects,
    is_one_mask,
    list_frames,
    list_labels,
    read_scored_blocks,
)
from .exchanged import judge_exchanged
from .protocols import SequenceProtocol

if TYPE_CHECKING:
    from ...masks.restoration import Displacement
from .truth import Sequence, is_number

#: The positions of true, predicted and shared pixels among the fields of counts.
_TRUTH, _PREDICTION, _SHARED = range(3)
#: The number of 8-bit labels.
_LABELS = 256
#: The minimum ratio of the scores of mirrored masks: large objects partly match even then.
_TIMES_MIRRORED = 1.6
#: Returns masks under their changed labels, without those of the label "".
_Change = Callable[[Stacks], Stacks]


def _rename(number_of: Callable[[int], int], stacks: Stacks) -> Stacks:
    renamed = {str(number_of(int(label))): stack for label, stack in stacks.items() if is_number(label)}
    return {label: stack for label, stack in renamed.items() if not label.startswith("-")}


def _invert(stacks: Stacks) -> Stacks:
    return {label: _complement(stack) for label, stack in stacks.items()}


def _complement(stack: Stack) -> Stack:
    flags = empty_labels(len(stack.words), stack.size, bool)
    flags[:, :, : stack.size[1]] = True
    return Stack(pack(flags), 0, 0, stack.size).without(stack)


def _redraw(change: Callable[[Array], Array], stacks: Stacks) -> Stacks:
    """Return masks whose pixels (height, width) are changed."""
    changed: Stacks = {}
    for label, stack in stacks.items():
        flags = empty_labels(len(stack.words), stack.size, bool)
        for frame in range(len(flags)):
            flags[frame, :, : stack.size[1]] = change(stack.draw(frame))
        changed[label] = Stack(pack(flags), 0, 0, stack.size)
    return changed


def _make_reading(name: str, slip: str, remedy: str, change: _Change) -> Reading:
    return Reading(name, slip, remedy, "sequence", lambda _: change)


# Whole frames are poor masks, unless objects are large.
_INVERTED = Reading(
    "inverted",
    "masks look inverted, with objects black",
    "Write objects white, on black",
    "sequence",
    lambda _: _invert,
    least=0.5,
)
_FROM_1 = "Number objects as the truth does"
_SHIFTED = [
    _make_reading("lower", "object numbers look 1 too high", _FROM_1, partial(_rename, lambda number: number - 1)),
    _make_reading("higher", "object numbers look 1 too low", _FROM_1, partial(_rename, lambda number: number + 1)),
]
_SCALED = [
    _make_reading(
        "scaled",
        "object numbers look 257 times too high, like 8-bit numbers scaled to 16 bits",
        "Save 8-bit label images",
        partial(_rename, lambda number: number // 257),
    ),
    _make_reading(
        "bytes",
        "object numbers look 256 times too high, like 16-bit numbers in the wrong byte order",
        "Save 8-bit label images",
        partial(_rename, lambda number: number // 256),
    ),
    _make_reading(
        "white",
        "the object looks white, so its pixels lack its number",
        "Write 1 for the first object",
        partial(_rename, lambda number: 1 if number == _LABELS - 1 else number),
    ),
]
_REARRANGED = list_rearrangements("sequence", lambda mirror, _: partial(_redraw, mirror), times=_TIMES_MIRRORED)
_TURNED = read_turned("sequence", lambda _: partial(_redraw, turn_pixels))
_MOVED = Reading(MOVED, "masks", "", "sequence", lambda _: lambda stacks: stacks, times=TIMES_MOVED)
#: The number of frames of a sequence that are tried first, and the share of the score that a reading must
#: reach below which no other frames are.
_FEW_FRAMES, _HOPELESS = 4, 0.5
#: The numbers of a sequence's objects, matched with its labels by their shared pixels.
_EXCHANGED = _make_reading("exchanged", "object numbers look exchanged", _FROM_1, lambda stacks: stacks)
#: The maximum number of objects of a sequence whose labels are all compared with all objects.
_MOST_OBJECTS = 32


#: The readings of the frames before and after, whose scores come from the counting itself.
_STEPS = [
    replace(reading, noun="sequence", times=1.0)
    for reading in list_neighbours(
        "each mask", "frame", "Check the numbers in the names of frames", lambda _step, masks: masks, 0.5, 1.0
    )
]
#: The steps from a frame to the masks that each of these readings compares with it.
_OFFSETS = (1, -1)
#: The minimum number of frames between two others, the maximum ratio of the missing IoU in neighbouring frames to that
#: in the masks' own, and the IoU of blocks whose masks are right.
_FEWEST_BETWEEN, _CLOSER, _RIGHT = 3, 0.6, 0.95
_REVERSED = Reading(
    "reversed", "the order of frames looks reversed", "Give the mask of the first frame the first frame's name",
    "sequence", lambda _: lambda stacks: stacks, least=0.5, times=_TIMES_MIRRORED,
)  # fmt: skip


#: The minimum share of the sequences tried, if there are so many: labels of one object blend with none.
_SHARE_RESTORED, _MANY = 0.25, 12
#: The readings of labels that were resized or compressed.
_RESTORED: List[Reading] = [
    replace(reading, open=lambda _: lambda stacks: stacks)
    for reading in (read_blended("sequence", "masks"), *read_compressed("sequence", "masks"))
]


def _list_restorations() -> List[Tuple[Callable[[Array, Array], bool], Callable[[Array], Array]]]:
    """Return the evidence of each of these readings in labels, predicted and true, and the change that undoes it."""
    from ...masks.restoration import is_blended, is_compressed, settle, sharpen, smooth  # run lengths do not need it

    def are_compressed(labels: Array, _truth: Array) -> bool:
        return is_compressed(labels)

    return [(is_blended, sharpen), (are_compressed, settle), (are_compressed, smooth)]


class _RestoredImages(MaskFiles):
    """The label images of a sequence whose pixels are changed."""

    def __init__(self, masks: MaskFiles, change: Callable[[Array], Array]) -> None:
        self._masks, self._change = masks, change

    def frames(self) -> Set[str]:
        return self._masks.frames()

    def read_stacks(self, frames: List[str], size: Size, problems: Problems) -> Optional[Stacks]:
        stacks = self._masks.read_stacks(frames, size, problems)
        if not stacks:
            return stacks
        block = empty_labels(len(frames), size, np.uint8)
        for frame in range(len(frames)):
            block[frame, :, : size[1]] = self._change(_draw_labels(stacks, frame, size))
        return stacks_of(block, labels_in(block), size)


class _FirstLabels(MaskFiles):
    """The label images of a sequence, of which one frame is kept when the first block is read."""

    def __init__(self, masks: MaskFiles) -> None:
        self._masks = masks
        #: The frame, by its index in the first block, and its labels.
        self._kept: Optional[Tuple[int, Array]] = None

    def frames(self) -> Set[str]:
        return self._masks.frames()

    def missing_frames(self, required: RequiredFrames) -> List[Problem]:
        return self._masks.missing_frames(required)

    def read_stacks(self, frames: List[str], size: Size, problems: Problems) -> Optional[Stacks]:
        stacks = self._masks.read_stacks(frames, size, problems)
        if stacks and self._kept is None and max(map(int, stacks)) < _LABELS:
            middle = len(frames) // 2
            self._kept = middle, _draw_labels(stacks, middle, size)
        return stacks

    def judge(self, truth: Stacks, empty: Stack) -> List[Reading]:
        """Return the readings that the labels of the frame suggest, given the true masks of the first block."""
        if self._kept is None:
            return []
        frame, labels = self._kept
        true_labels = _draw_labels(truth, frame, empty.size)
        return [
            reading for reading, (suggests, _) in zip(_RESTORED, _list_restorations()) if suggests(labels, true_labels)
        ]


def _draw_labels(stacks: Stacks, frame: int, size: Size) -> Array:
    """Return the labels of a frame."""
    labels = np.zeros(size, np.int32)
    for label, stack in stacks.items():
        if is_number(label):
            labels[stack.draw(frame)] = int(label)
    return labels


def _draw_objects(stacks: Stacks, frame: int, size: Size) -> Array:
    """Return an image of a frame with a number for each mask."""
    image = np.zeros(size, np.int32)
    for number, stack in enumerate(stacks.values(), 1):
        image[stack.draw(frame)] = number
    return image


def _find_displacement(truth: Stacks, predicted: Stacks, empty: Stack) -> Optional[Displacement]:
    """Return how the masks of the frame in the middle are moved or stretched."""
    from ...masks.restoration import Displacement, find_shift, try_stretch  # few submissions need it

    middle = len(empty.words) // 2
    true, drawn = (_draw_objects(masks, middle, empty.size) for masks in (truth, predicted))

    def measure(displacement: Displacement) -> float:
        return measure_iou(true > 0, displacement.undo(drawn) > 0)

    moved = Displacement(find_shift(true, drawn))
    best, _ = try_stretch(moved, measure(moved), (true, drawn), measure)
    return best or None


class _ReversedFrames(MaskFiles):
    """The masks of a sequence in reverse order."""

    def __init__(self, masks: MaskFiles, frames: List[str]) -> None:
        self._masks, self._sources = masks, dict(zip(frames, reversed(frames)))

    def frames(self) -> Set[str]:
        return self._masks.frames()

    def read_stacks(self, frames: List[str], size: Size, problems: Problems) -> Optional[Stacks]:
        return self._masks.read_stacks([self._sources.get(frame, frame) for frame in frames], size, problems)


class FrameSteps:
    """The pixels that masks share with the truth of their own frames, of the frames before and of those after.

    Counting ends with the first block whose masks are right.
    """

    def __init__(self, truth: Sequence, masks: Optional[MaskFiles], protocol: SequenceProtocol) -> None:
        #: The masks to count; label images show whether they were resized or compressed.
        self.masks = _FirstLabels(masks) if type(masks) is LabelImages else masks
        #: The readings of resized and compressed labels that one frame suggests.
        self.restored: List[Reading] = []
        self._labels = _list_pairs(truth, protocol)
        self._frames = 0
        self._is_right = self._has_looked = False
        #: How the masks of a frame are moved or stretched; None if they are not.
        self.displacement: Optional[Displacement] = None
        #: Of the masks' own frames, then of each step.
        self._tables = [_make_table(self._labels) for _ in (0, *_OFFSETS)]

    def add(self, counts: Array, truth: Stacks, predicted: Stacks, empty: Stack) -> None:
        """Count the frames of a block that lie between two others, given all its counts."""
        if not self._has_looked:
            self._has_looked = True
            if isinstance(self.masks, _FirstLabels):
                self.restored = self.masks.judge(truth, empty)
            true, predicted_pixels, shared = counts[:, :, [_TRUTH, _PREDICTION, _SHARED]].sum(axis=(0, 1, 3)).tolist()
            if TIMES_MOVED * shared < true + predicted_pixels - shared:
                self.displacement = _find_displacement(truth, predicted, empty)
        end = len(empty.words) - 1
        if self._is_right or end < 2:
            return
        true_areas, areas = counts[:, :, _TRUTH, 1:end].sum(axis=2), counts[:, :, _PREDICTION]
        shared = counts[:, :, _SHARED, 1:end].sum(axis=2)
        table = np.stack((shared, true_areas + areas[:, :, 1:end].sum(axis=2) - shared), axis=2)
        self._tables[0] += table
        self._frames += end - 1
        self._is_right = (_match_labels(table) or 0.0) >= _RIGHT
        for sums, offset in zip(self._tables[1:], () if self._is_right else _OFFSETS):
            window = np.arange(1 + offset, end + offset)
            sums[:, :, 1] += true_areas + areas[:, :, window].sum(axis=2)
            for row, (name, labels) in enumerate(self._labels.items()):
                for column, label in enumerate(labels):
                    if name in truth and label in predicted:
                        masks = truth[name].frames(np.arange(1, end)), predicted[label].frames(window)
                        pixels = int(count_shared(*masks).sum())
                        sums[row, column] += pixels, -pixels

    def score(self) -> ReadingScores:
        """Return the IoU over all pixels, as submitted and by each step that misses far less."""
        if self._is_right or self._frames < _FEWEST_BETWEEN:
            return {}
        before, *scores = (_match_labels(table) or 0.0 for table in self._tables)
        return {
            reading.name: (before, after)
            for reading, after in zip(_STEPS, scores)
            if 1 - after <= _CLOSER * (1 - before)
        }


#: The objects of a sequence, each with the labels that may be its own.
_Labels = Dict[str, List[str]]


def _list_pairs(truth: Sequence, protocol: SequenceProtocol) -> _Labels:
    objects = choose_objects(truth, protocol)
    return {name: list_labels(name, len(objects), protocol) for name in objects}


def _make_table(labels: _Labels) -> Array:
    """Return a table (objects, labels, 2) of shared pixels and pixels of either."""
    return np.zeros((len(labels), max(map(len, labels.values()), default=0), 2), np.int64)


def _add_pixels(table: Array, labels: _Labels, truth: Stacks, predicted: Stacks, empty: Stack) -> None:
    """Add the pixels of a block to the table of objects and labels."""
    areas = {label: int(stack.area.sum()) for label, stack in predicted.items()}
    for row, (name, names) in enumerate(labels.items()):
        true = truth.get(name, empty)
        true_area = int(true.area.sum())
        for column, label in enumerate(names):
            shared = int(count_shared(true, predicted[label]).sum()) if label in predicted else 0
            table[row, column] += shared, true_area + areas.get(label, 0) - shared


def _match_labels(table: Array) -> Optional[float]:
    """Return the IoU over all pixels, with the best label for each object if it may have several; None without any."""
    rows = np.arange(len(table))
    columns = np.zeros(len(table), np.int64)
    if table.shape[1] > 1:
        rows, columns = best_assignment(table[:, :, 0] / np.maximum(table[:, :, 1], 1))
    shared, union = table[rows, columns].sum(axis=0).tolist()
    return shared / union if union else None


def _list_readings(protocol: SequenceProtocol) -> List[Reading]:
    """Return the other readings by which a sequence may score more."""
    if protocol.proposals and not protocol.salient:
        return [*_REARRANGED, _TURNED, _REVERSED]
    numbered = [] if is_one_mask(protocol) else [*_SHIFTED, *_SCALED, _EXCHANGED]
    return [_INVERTED, *numbered, *_REARRANGED, _TURNED, _REVERSED]


def look_at_sequence(
    truth: Sequence,
    masks: Optional[MaskFiles],
    protocol: SequenceProtocol,
    counts: SequenceCounts,
    restored: List[Reading],
    displacement: Optional[Displacement],
) -> ReadingScores:
    """Return the scores of a sequence by other readings, also by those of restored or moved masks, if it is low."""
    if masks is None or counts.problem_count or not counts.counts.size:
        return {}
    totals = counts.counts.sum(axis=3)
    has_masks = bool(totals[:, :, _PREDICTION].any() or counts.unknown)
    union = totals[:, :, _TRUTH] + totals[:, :, _PREDICTION] - totals[:, :, _SHARED]
    pixels = np.stack((totals[:, :, _SHARED], union), axis=2)
    score = _match_labels(pixels) if totals[:, :, _TRUTH].any() and has_masks else None
    own_score = score or 0.0
    readings = [
        reading
        for reading in _list_readings(protocol)
        if own_score * reading.times < 1
        # A label image has a background; it is not an inverted object.
        if reading is not _INVERTED or is_one_mask(protocol) or not isinstance(masks, LabelImages)
        if reading is not _TURNED or isinstance(masks, RunLengths)
    ]

    @functools.lru_cache(maxsize=1)
    def score_all() -> Dict[str, float]:
        in_order = [reading for reading in readings if reading is not _REVERSED]
        names = masks.frames()
        backwards = _ReversedFrames(masks, [frame for frame in truth.frames if frame in names])
        return {
            **_score_readings(truth, masks, protocol, in_order, own_score),
            **_score_readings(truth, backwards, protocol, [_REVERSED] if _REVERSED in readings else [], own_score),
        }

    def score_restored(reading: Reading) -> Optional[float]:
        _, change = _list_restorations()[_RESTORED.index(reading)]
        return _score_readings(truth, _RestoredImages(masks, change), protocol, [reading], own_score).get(reading.name)

    def score_moved(reading: Reading) -> Optional[float]:
        if displacement is None:
            return own_score
        moved = replace(reading, open=lambda _: partial(_redraw, displacement.undo))
        after = _score_readings(truth, masks, protocol, [moved], own_score)
        return max(own_score, after.get(reading.name, 0.0))

    scores_moved = score_readings(score, [_MOVED], score_moved)
    noted: ReadingScores = {}
    if displacement and any(after > before for before, after in scores_moved.values()):
        from ..base.displacement import note_displacement  # few submissions need it

        noted = note_displacement(displacement)
    return {
        **score_readings(score, readings, lambda reading: score_all().get(reading.name)),
        **score_readings(score, restored, score_restored),
        **scores_moved,
        **noted,
    }


def _score_readings(
    truth: Sequence, masks: MaskFiles, protocol: SequenceProtocol, readings: List[Reading], score: float
) -> Dict[str, float]:
    """Return the IoU over all pixels of a sequence by each reading; empty if it cannot be read.

    A reading that is hopeless in few frames is not tried on the others: as submitted, the masks have this score.
    """
    if not readings:
        return {}
    frames = list_frames(truth, protocol)
    few = frames[spread_evenly(min(_FEW_FRAMES, len(frames)), len(frames))]
    scores = _score_frames(truth, masks, protocol, readings, few)
    promising = [
        reading
        for reading in readings
        if scores.get(reading.name, 1.0) >= _HOPELESS * max(reading.least, reading.times * score)
    ]
    if len(few) < len(frames) and promising:
        scores.update(_score_frames(truth, masks, protocol, promising, frames))
    return scores


def _score_frames(
    truth: Sequence, masks: MaskFiles, protocol: SequenceProtocol, readings: List[Reading], frames: Array
) -> Dict[str, float]:
    """Return the IoU over all pixels of some frames by each reading; empty if they cannot be read."""
    labels, problems = _list_pairs(truth, protocol), Problems()
    tables = {reading.name: _make_table(labels) for reading in readings}
    count = len(labels) if _EXCHANGED in readings and 1 < len(labels) <= _MOST_OBJECTS else 0
    overlaps: Array = np.zeros((count, count), np.int64)
    for _, truth_masks, predictions, empty, _ in read_scored_blocks(truth, masks, protocol, problems, frames):
        if count:
            overlaps += _count_shared(labels, truth_masks, predictions, empty)
        for reading in readings:
            _add_pixels(tables[reading.name], labels, truth_masks, reading.open(masks)(predictions), empty)
    if count:
        shared, union = tables[_EXCHANGED.name].sum(axis=(0, 1))
        best = int(overlaps[best_assignment(overlaps)].sum())
        tables[_EXCHANGED.name] = np.array([[[best, shared + union - best]]])
    scores = {name: _match_labels(table) for name, table in tables.items()}
    return {} if problems else {name: score for name, score in scores.items() if score is not None}


def _count_shared(objects: Iterable[str], truth_masks: Stacks, predictions: Stacks, empty: Stack) -> Array:
    """Return the pixels that each label (row) shares with each object (column)."""
    predicted, true = ([side.get(name, empty) for name in objects] for side in (predictions, truth_masks))
    return np.array([[int(count_shared(mask, target).sum()) for target in true] for mask in predicted])


#: The minimum number of objects without a mask if sequences are to seem to have all objects under one number.
_FEWEST_WITHOUT = 2
#: The minimum size of the surplus of one object's mask, and of what it is larger than the object, as shares of the
#: objects without a mask.
_SHARE_OF_REST, _LARGER = 0.5, 0.25


def _judge_numbers(answered: Iterable[SequenceCounts]) -> List[str]:
    """Return a warning if one object has the masks of all in most sequences that have several objects."""
    pixels = [counts.counts.sum(axis=(1, 3)) for counts in answered]
    several = [areas[areas[:, _TRUTH] > 0] for areas in pixels]
    several = [areas for areas in several if len(areas) > 1 and areas[:, _PREDICTION].any()]
    single = [areas for areas in several if np.count_nonzero(areas[:, _PREDICTION]) == 1]
    if 2 * len(single) <= len(several) or sum(len(areas) - 1 for areas in single) < _FEWEST_WITHOUT:
        return []
    truth, prediction, shared = (sum(int(areas[:, field].sum()) for areas in single) for field in range(3))
    masked_truth = sum(int(areas[areas[:, _PREDICTION] > 0, _TRUTH].sum()) for areas in single)
    unmasked = truth - masked_truth
    if prediction - shared < _SHARE_OF_REST * unmasked or prediction - masked_truth < _LARGER * unmasked:
        return []  # the method has lost the others
    scope = f"in {len(single)} of {quantity(len(several), 'sequence')} with several objects"
    return [f"{scope}, only one object has a mask: write each object's number into its pixels"]


def _judge_blank(answered: List[SequenceCounts]) -> List[str]:
    """Return a suspicion if many sequences have no mask in any frame."""
    pixels = np.array([counts.counts.sum(axis=(0, 1, 3)) for counts in answered])
    flags = pixels[:, _TRUTH] > 0, pixels[:, _PREDICTION] == 0
    return judge_blank("sequence", [counts.name for counts in answered], flags, "objects", "no mask")


#: The minimum number of unknown object numbers in a sequence of grey levels, and the minimum of the largest: white.
_FEWEST_LEVELS, _WHITE = 128, 248


def _judge_grey(answered: List[SequenceCounts]) -> List[str]:
    """Return a warning if most sequences hold grey levels up to white instead of the numbers of a few objects."""
    levels = [{int(label) for label in counts.unknown if is_number(label)} for counts in answered]
    grey = [len(numbers) for numbers in levels if len(numbers) >= _FEWEST_LEVELS and _WHITE <= max(numbers) < _LABELS]
    if 2 * len(grey) <= len(answered):
        return []
    scope = f"in {quantity(len(grey), 'sequence', len(answered))}, which hold up to {max(grey)} unknown object numbers"
    remedy = "Apply a threshold, and write each object's number into its pixels, 0 elsewhere"
    return [f"masks look like grey maps, such as probabilities, {scope}. {remedy}"]


def suspect(accumulator: SequenceAccumulator) -> List[str]:
    """Return warnings if the masks of all sequences look like a mistake."""
    protocol, all_counts = accumulator.protocol, accumulator.all_counts()
    answered = [counts for counts in all_counts if counts.is_sent and counts.counts.size]
    if grey := _judge_grey(answered):
        return grey
    reading_scores = [counts.reading_scores for counts in all_counts]
    count = len(accumulator.names)
    share = _SHARE_RESTORED if count >= _MANY else Reading.share
    restored = [replace(reading, share=share) for reading in _RESTORED]
    readings = [*_STEPS, *_list_readings(protocol), *restored]
    explained = judge_readings(reading_scores, count, readings, OVERALL_IOU)
    if not explained and any(map(is_moved, reading_scores)):
        from ..base.displacement import judge_displacements

        explained = judge_displacements(reading_scores, count, _MOVED, OVERALL_IOU)
    explained = explained or judge_exchanged([counts.name for counts in all_counts], reading_scores)
    if explained:
        return explained
    totals = sum((counts.counts.sum(axis=(0, 1, 3)) for counts in answered), np.zeros(7, np.int64))
    truth, prediction, shared = totals[[_TRUTH, _PREDICTION, _SHARED]].tolist()
    large = [label for counts in answered for label in counts.unknown if is_number(label) and int(label) >= _LABELS]
    if large and not shared:
        numbers = name_list(list(dict.fromkeys(large)))
        hold = f"masks hold numbers above {_LABELS - 1} ({numbers})"
        return [f"{hold}: save 8-bit label images, with the truth's numbers"]
    if not truth:
        return []
    if not prediction:
        if any(counts.unknown for counts in answered):
            return ["no mask has the number of an object of the truth: number objects as the truth does"]
        return ["all object masks are empty: check the submission"]
    covering = judge_cover("masks", truth, prediction, shared)
    if covering:
        return covering
    if not (protocol.proposals or protocol.overlapping or is_one_mask(protocol)) and (lost := _judge_numbers(answered)):
        return lost
    if blank := _judge_blank(answered):
        return blank
    is_said_of_each = not shared and not protocol.overlapping and not protocol.salient
    if protocol.proposals or is_said_of_each or not is_nearly_none(shared, truth):
        return []
    few = f"only {shared:,} of {truth:,} pixels of objects lie" if shared else "no pixel of an object lies"
    return [f"{few} in the mask of its object: check which sequence and object each mask belongs to"]
