"""The counting of sequences, block by block: the objects and frames that the protocol chooses.

`SequenceCounts` holds all counts of a sequence, from which its scores are computed. Its bytes are the format that
processes exchange and that parts hold (`docs/scale.md`).
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field
from typing import Any, Dict, Iterable, Iterator, List, NamedTuple, Optional, Set, Tuple

import numpy as np

from ...files.problems import Problem, Problems, printable
from ...masks.backend import backend
from ...masks.files import GreyFolders, MaskFiles, ObjectMasks, SalientImages
from ...masks.similarity import Counts, Region, boundary_similarity, diagonal_tolerance, disk, fractional_disk, reach
from ...masks.stack import Array, Size, Stack, Stacks, empty_stack, join_stacks
from ..base.accumulator import NamedAccumulator, NamedCounts, decode_with, problems_of
from .protocols import LifespanRule, ObjectRule, SequenceProtocol
from .truth import FOREGROUND, VOID, Ranges, Sequence, Split, flags_of, is_number, label_order, name_layer, ranges_of

#: The fields of `similarity.Counts`.
FIELDS = 7
#: The maximum size of a header: names of frames, objects and problems.
_MOST_HEADER = 64 << 20


class CountedObject(NamedTuple):
    """A scored object and the compared frames that may count for it."""

    name: str
    ranges: Ranges
    unseen: bool
    #: One of the protocol's kinds, or another kind of the truth.
    kind: str = ""


@dataclass(frozen=True)
class SequenceCounts(NamedCounts):
    """The counts of some or all frames of a sequence; parts differ only in their rows."""

    name: str
    #: The compared frames in the truth's order, with or without rows here.
    frames: List[str]
    objects: List[CountedObject]
    #: The counted frames, as rising indices.
    rows: Array
    #: (objects, labels compared with each, fields, rows).
    counts: Array
    #: MOSEv2's two boundary similarities, or ReVOS's A and R (objects, 2, rows); NaN if the object scores 0, empty in
    #: other protocols.
    strict: Array
    #: Predicted objects that the truth lacks, and the first frame of each.
    unknown: Dict[str, str] = field(default_factory=dict)
    proposals: List[str] = field(default_factory=list)
    is_sent: bool = True
    #: The first problems of its masks, and their number.
    problems: List[Problem] = field(default_factory=list)
    problem_count: int = 0
    #: The objects whose masks have values other than 0 and 1, if values are compared.
    shaded: List[str] = field(default_factory=list)

    @property
    def is_complete(self) -> bool:
        """Return True if all countable frames have been counted."""
        return bool(self.problem_count) or len(self.rows) == len(self.frames)

    def select(self, number: int, label: int) -> Counts:
        """Return the counts of an object and the predicted label at an index."""
        return Counts(*self.counts[number, label])

    def flags(self, number: int) -> Array:
        """Return flags of the compared frames that may count for an object."""
        return flags_of(self.objects[number].ranges, len(self.frames))

    def union(self, added: SequenceCounts) -> SequenceCounts:
        """Return the rows of both; raises ValueError for contradictory rows."""
        own_head, other_head = self._head(), added._head()
        if own_head != other_head:
            raise ValueError(f"{self.name} has two different descriptions")
        rows, row_indices = np.unique(np.concatenate((self.rows, added.rows)), return_index=True)
        tables = []
        for own_table, other_table in ((self.counts, added.counts), (self.strict, added.strict)):
            both = np.concatenate((own_table, other_table), axis=-1)
            own_rows, other_rows = (np.searchsorted(rows, of_side) for of_side in (self.rows, added.rows))
            table = both[..., row_indices] if both.size else both[..., :0]
            if both.size and not (
                _are_equal(table[..., own_rows], own_table) and _are_equal(table[..., other_rows], other_table)
            ):
                raise ValueError(f"{self.name} was counted twice, with different results")
            tables.append(table)
        if len(rows) == len(self.rows) and self._remarks() == added._remarks():
            return self
        unknown = _first_frames(self.unknown, added.unknown, self.frames)
        proposals = sorted({*self.proposals, *added.proposals})
        repeated = len(rows) < len(self.rows) + len(added.rows)
        problems = list(dict.fromkeys([*self.problems, *added.problems]))
        count = max(self.problem_count, added.problem_count) if repeated else self.problem_count + added.problem_count
        return SequenceCounts(
            self.name, self.frames, self.objects, rows, tables[0], tables[1], unknown, proposals, self.is_sent,
            problems, max(count, len(problems)), sorted({*self.shaded, *added.shaded}),
        )  # fmt: skip

    def _head(self) -> Tuple[object, ...]:
        return self.name, self.frames, self.objects, self.is_sent, self.counts.shape[:3], self.strict.shape[:2]

    def _remarks(self) -> Tuple[object, ...]:
        return self.unknown, self.proposals, self.problems, self.problem_count, self.shaded

    def describe(self) -> Dict[str, object]:
        return {
            "frames": self.frames,
            "objects": [
                [entry.name, entry.ranges, entry.unseen, *filter(None, [entry.kind])] for entry in self.objects
            ],
            "labels": self.counts.shape[1],
            "rows": len(self.rows),
            "strict": bool(self.strict.size),
            "unknown": list(self.unknown.items()),
            "proposals": self.proposals,
            "sent": self.is_sent,
            **({"shaded": self.shaded} if self.shaded else {}),
        }

    def numbers(self) -> Tuple[Array, ...]:
        return self.rows.astype("<i8"), self.counts.astype("<i8"), self.strict.astype("<f8")


def decode_counts(data: bytes) -> SequenceCounts:
    """Return the counts that `encode` wrote; raises ValueError for malformed bytes."""
    return decode_with(_from_header, data, _MOST_HEADER)


def _from_header(header: Dict[str, Any], data: bytes) -> SequenceCounts:
    frames, rows, labels = [str(name) for name in header["frames"]], header["rows"], header["labels"]
    objects = [_read_object(entry, len(frames)) for entry in header["objects"]]
    if not (isinstance(rows, int) and isinstance(labels, int) and 0 <= rows <= len(frames) and 0 <= labels < 1 << 17):
        raise ValueError("has impossible numbers of rows or labels")
    shapes = ((rows,), (len(objects), labels, FIELDS, rows), (len(objects), 2, rows if header["strict"] else 0))
    sizes = [8 * math.prod(shape) for shape in shapes]
    if sum(sizes) != len(data):
        raise ValueError(f"has {len(data)} bytes of numbers, not {sum(sizes)}")
    parts = [data[sum(sizes[:index]) : sum(sizes[: index + 1])] for index in range(3)]
    tables = [np.frombuffer(table, kind) for table, kind in zip(parts, ("<i8", "<i8", "<f8"))]
    index, counts, strict = (table.reshape(shape) for table, shape in zip(tables, shapes))
    if rows and (index[0] < 0 or index[-1] >= len(frames) or (np.diff(index) <= 0).any()):
        raise ValueError("has rows out of order")
    if (counts < 0).any():
        raise ValueError("has negative counts")
    problems, count = problems_of(header)
    unknown = {str(label): str(frame) for label, frame in header["unknown"]}
    proposals = [str(label) for label in header["proposals"]]
    return SequenceCounts(
        str(header["name"]), frames, objects, index, counts, strict, unknown, proposals, bool(header["sent"]),
        problems, count, list(map(str, header.get("shaded", ()))),
    )  # fmt: skip


def _read_object(entry: List[Any], frames: int) -> CountedObject:
    name, counted, unseen, *kinds = entry
    ranges = [(int(start), int(stop)) for start, stop in counted]
    if not all(0 <= start < stop <= frames for start, stop in ranges):
        raise ValueError("has an object outside its frames")
    return CountedObject(str(name), ranges, bool(unseen), *map(str, kinds))


def _are_equal(counted: Array, added: Array) -> bool:
    return bool(np.array_equal(counted, added, equal_nan=counted.dtype.kind == "f"))


def _first_frames(in_truth: Dict[str, str], in_prediction: Dict[str, str], frames: List[str]) -> Dict[str, str]:
    """Return the labels of both sides, each with its first frame, in the order of frames."""
    order = {name: index for index, name in enumerate(frames)}
    frames_by_label: Dict[str, str] = {}
    for label, frame in [*in_truth.items(), *in_prediction.items()]:
        if label not in frames_by_label or order[frame] < order[frames_by_label[label]]:
            frames_by_label[label] = frame
    return dict(sorted(frames_by_label.items(), key=lambda item: (order[item[1]], item[0])))


#: LVOS skips objects that are visible in fewer frames.
_SHORTEST_LIFESPAN = 4


def choose_objects(sequence: Sequence, protocol: SequenceProtocol) -> Dict[str, Array]:
    """Return the objects that a protocol scores in a sequence, each with the frames that may count."""
    objects = {}
    for name in _names(sequence, protocol):
        counted = _without_ends(_lifespan(sequence, name, protocol), protocol)
        if protocol.objects is not ObjectRule.SEEN or (_visible_frames(sequence, name) & counted).any():
            objects[name] = counted
    return objects


def frames_to_read(sequence: Sequence, protocol: SequenceProtocol) -> Dict[str, Array]:
    """Return the frames to read for each object; "" stands for sequences without objects."""
    return choose_objects(sequence, protocol) or {"": _without_ends(np.ones(len(sequence.frames), bool), protocol)}


def _without_ends(frames: Array, protocol: SequenceProtocol) -> Array:
    """Return these frames without the first and last ones that the protocol skips."""
    indices = np.flatnonzero(frames)
    if protocol.skip_first:
        frames[indices[:1]] = False
    if protocol.skip_last:
        frames[indices[-1:]] = False
    return frames


def _names(sequence: Sequence, protocol: SequenceProtocol) -> List[str]:
    labels = sorted((label for label in sequence.objects if label != VOID), key=label_order)
    at_first = [label for label in labels if _visible_frames(sequence, label)[:1].any()]
    if protocol.objects is ObjectRule.FOREGROUND:
        return ["1"]
    if protocol.objects is ObjectRule.NUMBERED:
        highest = max((int(label) for label in at_first if is_number(label)), default=0)
        return [str(number) for number in range(1, highest + 1)]
    if protocol.objects is ObjectRule.SEEN:
        return sorted(sequence.objects, key=label_order)
    if sequence.lists_objects:
        return [label for label, facts in sequence.objects.items() if facts.lifespan is not None]
    if protocol.objects is ObjectRule.FIRST:
        return at_first
    return [label for label in labels if _lifespan(sequence, label, protocol).sum() >= _SHORTEST_LIFESPAN]


def _visible_frames(sequence: Sequence, name: str) -> Array:
    facts = sequence.objects.get(name)
    return flags_of(facts.visible if facts else [], len(sequence.frames))


def _lifespan(sequence: Sequence, name: str, protocol: SequenceProtocol) -> Array:
    facts = sequence.objects.get(name)
    if protocol.lifespan is not LifespanRule.VIDEO and facts is not None and facts.lifespan is not None:
        return flags_of(facts.lifespan, len(sequence.frames))
    if protocol.lifespan is LifespanRule.OWN:
        return np.maximum.accumulate(_visible_frames(sequence, name))
    return np.ones(len(sequence.frames), bool)


def count_sequence(
    truth: Sequence, masks: Optional[MaskFiles], protocol: SequenceProtocol, split: Split
) -> SequenceCounts:
    """Return the counts of one sequence and the problems of its masks.

    Memory holds one block of frames, and seven numbers per object and frame.
    """
    objects, problems = choose_objects(truth, protocol), Problems()
    frames = list_frames(truth, protocol)
    labels = len(list_labels("", len(objects), protocol))
    rows = [np.zeros(0, np.int64)]
    #: For each block: (objects, labels, fields, frames), and (objects, 2, frames).
    counts, strict = [np.zeros((len(objects), labels, FIELDS, 0), np.int64)], [np.zeros((len(objects), 2, 0))]
    #: The first frame of each predicted label: of all labels if the protocol matches them, else of labels that the
    #: truth lacks.
    first_frames: Dict[str, str] = {}
    shaded: Set[str] = set()
    for indices, truth_masks, predictions, empty, aside in read_scored_blocks(truth, masks, protocol, problems, frames):
        if protocol.proposals or not is_one_mask(protocol):
            truth_labels = set() if protocol.proposals else truth.objects.keys() | objects.keys()
            for label in [label for label in predictions if label not in truth_labels and label not in first_frames]:
                first_frames[label] = truth.frames[frames[indices[np.argmax(predictions[label].area > 0)]]]
        if objects:
            of_block = compare_masks(truth_masks, predictions, list(objects), protocol, empty)
            counts.append(of_block[0])
            strict.append(of_block[1])
            if protocol.accuracy:
                names = [truth.frames[frame] for frame in frames[indices]]
                block = _PixelBlock(list(objects), of_block[0][:, 0], truth_masks, predictions, aside, empty.size)
                strict[-1] = block.rate_in_grey(masks, names, shaded) if protocol.grey else block.rate()
        rows.append(indices)
    return SequenceCounts(
        truth.name,
        [truth.frames[frame] for frame in frames],
        [
            CountedObject(
                name, ranges_of(flags[frames]), _is_unseen(name, truth, split), _kind_of(name, truth, protocol)
            )
            for name, flags in objects.items()
        ],
        np.concatenate(rows),
        np.concatenate(counts, axis=-1),
        np.concatenate(strict, axis=-1),
        {} if protocol.proposals else first_frames,
        sorted(first_frames) if protocol.proposals else [],
        masks is not None,
        list(problems),
        problems.count,
        sorted(shaded),
    )


def list_frames(truth: Sequence, protocol: SequenceProtocol) -> Array:
    """Return the frames of a sequence to read."""
    return np.flatnonzero(np.any(list(frames_to_read(truth, protocol).values()), axis=0))


def read_scored_blocks(
    truth: Sequence, masks: Optional[MaskFiles], protocol: SequenceProtocol, problems: Problems, frames: Array
) -> Iterator[Tuple[Array, Stacks, Stacks, Stack, Stacks]]:
    """Yield per block the indices of its frames, both sides, an empty mask, and separate truth masks.

    Only these frames are read. A mask with a problem is replaced by None.
    """
    for index, block in enumerate(truth.blocks):
        indices = np.flatnonzero((frames >= block.start) & (frames < block.stop))
        if not len(indices):
            continue
        names = [truth.frames[frame] for frame in frames[indices]]
        predictions = {} if masks is None else masks.read_stacks(names, block.size, problems)
        if predictions is not None and not problems:
            rows, empty = frames[indices] - block.start, empty_stack(len(indices), block.size)
            truth_masks, aside = (
                {label: stack.frames(rows) for label, stack in read(index).items()}
                for read in (truth.read_block, truth.read_aside if protocol.accuracy else lambda _: {})
            )
            if protocol.accuracy and not truth.has_foreground:
                aside = {name_layer(FOREGROUND, 1): join_stacks(list(truth_masks.values()), len(indices), block.size)}
            truth_masks, predictions = prepare_masks(truth_masks, predictions, protocol, empty)
            yield indices, truth_masks, predictions, empty, aside


def _is_unseen(name: str, truth: Sequence, split: Split) -> bool:
    facts = truth.objects.get(name)
    return truth.unseen or (facts is not None and facts.category in split.unseen_categories)


def _kind_of(name: str, truth: Sequence, protocol: SequenceProtocol) -> str:
    facts = truth.objects.get(name)
    return facts.category or "" if facts is not None and protocol.kinds else ""


def list_labels(name: str, objects: int, protocol: SequenceProtocol) -> List[str]:
    """Return the predicted labels that an object is compared with."""
    if protocol.proposals:
        return [str(number) for number in range(1, max(protocol.proposals, objects) + 1)]
    if is_one_mask(protocol):
        return [SalientImages.NAME]
    return [name]


def is_one_mask(protocol: SequenceProtocol) -> bool:
    """Return whether a protocol's prediction is a single mask with any labels."""
    return protocol.salient or protocol.objects is ObjectRule.FOREGROUND


def prepare_masks(truth: Stacks, predicted: Stacks, protocol: SequenceProtocol, empty: Stack) -> Tuple[Stacks, Stacks]:
    """Return the masks of a block as the protocol compares them: without void, or as one object."""
    if protocol.void and VOID in truth:
        predicted = {label: stack.without(truth[VOID]) for label, stack in predicted.items()}
    if protocol.objects is ObjectRule.FOREGROUND:
        truth = {"1": join_stacks(list(truth.values()), len(empty.words), empty.size)}
    if is_one_mask(protocol):
        predicted = {SalientImages.NAME: join_stacks(list(predicted.values()), len(empty.words), empty.size)}
    return truth, predicted


def compare_masks(
    truth: Stacks, predicted: Stacks, objects: List[str], protocol: SequenceProtocol, empty: Stack
) -> Tuple[Array, Array]:
    """Return the counts of a block (objects, labels, fields, frames), and MOSEv2's two F (objects, 2, frames)."""
    frames, match = len(empty.words), disk(reach(empty.size))
    no_region = Region(empty)
    regions = {label: Region(stack) for label, stack in predicted.items()}
    labels = [list_labels(name, len(objects), protocol) for name in objects]
    true_regions = (Region(truth[name]) if name in truth else no_region for name in objects)
    pairs = (  # made on comparison, since without the kernel each keeps its boundary
        (region, regions.get(label, no_region))
        for region, labels_of_object in zip(true_regions, labels)
        for label in labels_of_object
    )
    counts = np.zeros((len(objects), len(list_labels("", len(objects), protocol)), FIELDS, frames), np.int64)
    for row, of_pair in zip(counts.reshape(-1, FIELDS, frames), backend().compare(pairs, match)):
        row[:] = of_pair
    strict = np.zeros((len(objects), 2, frames if protocol.reappearance else 0))
    if protocol.reappearance:
        for number, name in enumerate(objects):
            region = Region(truth[name]) if name in truth else no_region
            strict[number] = _strict_boundary(region, regions.get(labels[number][0], no_region))
    return counts, strict


#: The number that ReVOS's script adds to the foreground of a frame before dividing by it.
_ADDED = 1e-6


class _PixelBlock(NamedTuple):
    """The pixel counts of a block that give ReVOS's A and R."""

    objects: List[str]
    #: (objects, fields, frames)
    counts: Array
    truth: Stacks
    predicted: Stacks
    aside: Stacks
    size: Size

    def rate(self) -> Array:
        """Return A and R (objects, 2, frames) of binary masks, over the pixels of the foreground."""
        of_objects = [Counts(*of_object) for of_object in self.counts]
        outside = np.array([of_object.prediction - of_object.shared for of_object in of_objects])
        missed = np.array([of_object.truth - of_object.shared for of_object in of_objects])
        foreground = self._layers(FOREGROUND)
        return self._rates(outside + missed, outside, foreground[0].area if foreground else np.zeros(outside.shape[1]))

    def rate_in_grey(self, masks: Optional[MaskFiles], frames: List[str], shaded: Set[str]) -> Array:
        """Return A and R as ReVOS's script does: in 8-bit numbers, over foreground pixels, with multiplicity.

        A and R are NaN for an object that cannot be compared. Predictions with values other than 0 and 1 are added to
        the shaded objects.
        """
        wrong, outside = np.zeros((2, len(self.objects), len(frames)))
        for row, name in enumerate(self.objects):
            truths, predicted = self._layers(name), self.predicted.get(name)
            for column, frame in enumerate(frames):
                times = np.zeros(self.size, np.uint8)
                for layer in truths:
                    times += layer.draw(column)
                if isinstance(masks, GreyFolders) and name not in masks.faulty:
                    greys = masks.read_greys(name, frame, self.size)
                else:
                    greys = np.zeros_like(times) if predicted is None else predicted.draw(column).astype(np.uint8)
                wrong[row, column] = np.count_nonzero(times != greys)
                outside[row, column] = ((1 - times) * greys).sum(dtype=np.int64)  # values below 0 or above 255 wrap
                if greys.max(initial=0) > 1:
                    shaded.add(name)
        foreground = sum((layer.area for layer in self._layers(FOREGROUND)), np.zeros(len(frames)))
        rates = self._rates(wrong, outside, foreground + _ADDED)
        if isinstance(masks, ObjectMasks):
            rates[np.array([name in masks.faulty for name in self.objects])] = np.nan
        return rates

    def _layers(self, name: str) -> List[Stack]:
        """Return an object's mask, if any, and the overlaps of its parts."""
        masks = {**self.aside, **({name_layer(name, 1): self.truth[name]} if name in self.truth else {})}
        return [masks[layer] for layer in itertools.takewhile(masks.__contains__, _list_layers(name))]

    def _rates(self, wrong: Array, outside: Array, foreground: Array) -> Array:
        share = np.where(foreground > 0, 1 - outside / np.maximum(foreground, _ADDED), outside == 0)
        return np.stack([1 - wrong / (self.size[0] * self.size[1]), np.maximum(share, 0.0)], axis=1)


def _list_layers(name: str) -> Iterator[str]:
    return (name_layer(name, number) for number in itertools.count(1))


#: The maximum distance in MOSEv2's second F, as a share of the square root of the object's area.
_NEAR = 0.1


def _strict_boundary(truth: Region, prediction: Region) -> Tuple[Array, Array]:
    """Return MOSEv2's second F, whose tolerance shrinks with the object, and the usual F, per frame."""
    size = truth.stack.size
    widest = diagonal_tolerance(size)
    f_values, new_values = [], []
    for frame, area in enumerate(truth.area.tolist()):
        radius = math.ceil(_NEAR * math.sqrt(area)) if area else reach(size)
        shrunk = radius < widest
        pair = [(truth.frame(frame), prediction.frame(frame))]
        (counts,) = backend().compare(pair, disk(radius) if shrunk else fractional_disk(widest))
        new_values.append(boundary_similarity(counts)[0])
        if shrunk:
            (counts,) = backend().compare(pair, disk(reach(size)))
        f_values.append(boundary_similarity(counts)[0])
    return np.array(new_values), np.array(f_values)


#: The maximum number of shown warnings of one kind.
_WARNINGS_SHOWN = 4


class Warnings:
    """Warnings about a scored submission; problems if strict."""

    def __init__(self, entries: Iterable[Tuple[str, Problem]] = (), *, strict: bool, problems: Problems) -> None:
        #: Kinds of warnings with their subjects, in order.
        self.entries = list(entries)
        self._strict, self._problems = strict, problems

    def add(self, kind: str, problem: Problem) -> None:
        """Add a warning, or a problem when strict."""
        if self._strict:
            self._problems.add(problem)
        else:
            self.note(kind, problem)

    def note(self, kind: str, problem: Problem) -> None:
        """Add a warning that never becomes a problem."""
        self.entries.append((kind, problem))

    @property
    def lines(self) -> List[str]:
        """Return the first warnings of each kind."""
        by_kind: Dict[str, List[str]] = {}
        for kind, problem in self.entries:
            by_kind.setdefault(kind, []).append(f"{printable(problem.subject)}: {problem.fault}")
        lines = []
        for warnings in by_kind.values():
            lines += warnings[:_WARNINGS_SHOWN]
            if len(warnings) > _WARNINGS_SHOWN:
                lines.append(f"... and {len(warnings) - _WARNINGS_SHOWN} more like this")
        return lines


class SequenceAccumulator(NamedAccumulator[SequenceProtocol, SequenceCounts]):
    """The counts of the sequences of one split, from any number of processes."""

    noun = "sequence"
    decode = staticmethod(decode_counts)

    def __init__(
        self,
        protocol: SequenceProtocol,
        names: List[str],
        notes: Iterable[Tuple[str, Problem]] = (),
        *,
        strict: bool = False,
    ) -> None:
        super().__init__(protocol, names, strict=strict)
        #: The notes from before decoding: their kinds and subjects.
        self.notes = list(notes)

    @classmethod
    def make_empty(
        cls, protocol: SequenceProtocol, description: Dict[str, Any], *, strict: bool
    ) -> SequenceAccumulator:
        notes = [(str(kind), Problem(*map(str, problem))) for kind, *problem in description["notes"]]
        return cls(protocol, list(map(str, description["sequences"])), notes, strict=strict)

    def describe(self) -> Dict[str, Any]:
        notes = [[kind, problem.subject, problem.fault, problem.remedy] for kind, problem in self.notes]
        return {"sequences": self.names, "notes": notes}
