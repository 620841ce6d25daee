"""Count the pixels of one sequence, block by block: truth beside prediction, object by object."""

from __future__ import annotations

from typing import Dict, List, Optional, Tuple

import numpy as np

from . import sequence_metrics
from .errors import Problems
from .mask_files import MaskFiles, SalientImages
from .masks import Array, Stack, Stacks, joined, nothing
from .sequence_counts import FIELDS, SequenceCounts, counted_object
from .sequence_objects import frames_to_read, scored_objects
from .sequence_protocols import ObjectRule, SequenceProtocol
from .sequence_truth import VOID, Sequence, Split
from .similarity import Region, disk, reach


def count(truth: Sequence, masks: Optional[MaskFiles], protocol: SequenceProtocol, split: Split) -> SequenceCounts:
    """Return the counts of one sequence, and what is wrong with its masks."""
    return _Counter(truth, masks, protocol, split).counted()


def compared_labels(name: str, objects: int, protocol: SequenceProtocol) -> List[str]:
    """Return the labels of the predictions that an object is compared with, in a sequence of so many objects."""
    if protocol.proposals:
        return [str(number) for number in range(1, max(protocol.proposals, objects) + 1)]
    if protocol.salient or protocol.objects is ObjectRule.FOREGROUND:
        return [SalientImages.NAME]
    return [name]


class _Counter:
    """Counts one sequence; its memory is a block of frames and seven numbers for each object and frame."""

    def __init__(self, truth: Sequence, masks: Optional[MaskFiles], protocol: SequenceProtocol, split: Split) -> None:
        self._truth, self._masks, self._protocol, self._split = truth, masks, protocol, split
        self._objects = scored_objects(truth, protocol)
        self._frames = np.flatnonzero(np.any(list(frames_to_read(truth, protocol).values()), axis=0))
        #: Of each block: (objects, labels, fields, frames), and (objects, 2, frames).
        self._counts: List[Array] = []
        self._strict: List[Array] = []
        #: Predicted objects that the truth does not have, and the first frame of each.
        self._unknown: Dict[str, str] = {}
        self._proposals: List[str] = []
        self._rows: List[Array] = []

    def counted(self) -> SequenceCounts:
        """Return the counts of every block; none after a mask that could not be read."""
        problems = Problems()
        if self._masks is not None:
            self._masks.problems = problems
        for index, block in enumerate(self._truth.blocks):
            rows = np.flatnonzero((self._frames >= block.start) & (self._frames < block.stop))
            if not len(rows):
                continue
            frames = self._frames[rows]
            names = [self._truth.frames[frame] for frame in frames]
            predicted = {} if self._masks is None else self._masks.stacks(names, block.size)
            if predicted is not None and not problems:
                truth = self._truth.read_block(index)
                truth = {label: stack.frames(frames - block.start) for label, stack in truth.items()}
                self._count(truth, predicted, names, nothing(len(frames), block.size))
                self._rows.append(rows)
        return self._result(problems)

    def _result(self, problems: Problems) -> SequenceCounts:
        objects = len(self._objects)
        labels = len(compared_labels("", objects, self._protocol))
        counts = [np.zeros((objects, labels, FIELDS, 0), np.int64), *self._counts]
        strict = [np.zeros((objects, 2, 0)), *self._strict]
        return SequenceCounts(
            self._truth.name,
            [self._truth.frames[frame] for frame in self._frames],
            [
                counted_object(name, counted[self._frames], unseen=self._unseen(name))
                for name, counted in self._objects.items()
            ],
            np.concatenate([np.zeros(0, np.int64), *self._rows]),
            np.concatenate(counts, axis=-1),
            np.concatenate(strict, axis=-1),
            self._unknown,
            sorted(self._proposals),
            self._masks is not None,
            list(problems),
            problems.count,
        )

    def _count(self, truth: Stacks, predicted: Stacks, names: List[str], empty: Stack) -> None:
        """Count the pixels of one block, object by object."""
        protocol = self._protocol
        truth, predicted = comparable(truth, predicted, protocol, empty)
        if protocol.proposals:
            self._proposals += [label for label in predicted if label not in self._proposals]
        elif not protocol.salient and protocol.objects is not ObjectRule.FOREGROUND:
            self._note_unknown(predicted, names)
        if self._objects:
            counts, strict = compared(truth, predicted, list(self._objects), protocol, empty)
            self._counts.append(counts)
            self._strict.append(strict)

    def _note_unknown(self, predicted: Stacks, names: List[str]) -> None:
        known = self._truth.objects.keys() | self._objects.keys()
        for label, stack in predicted.items():
            if label not in known and label not in self._unknown:
                self._unknown[label] = names[int(np.argmax(stack.area > 0))]

    def _unseen(self, name: str) -> bool:
        facts = self._truth.objects.get(name)
        category = facts.category if facts else None
        return self._truth.unseen or (category is not None and category in self._split.unseen_categories)


def comparable(truth: Stacks, predicted: Stacks, protocol: SequenceProtocol, empty: Stack) -> Tuple[Stacks, Stacks]:
    """Return the masks of a block as the protocol compares them: without void, or as one object."""
    if protocol.void and VOID in truth:
        predicted = {label: stack.without(truth[VOID]) for label, stack in predicted.items()}
    if protocol.objects is ObjectRule.FOREGROUND:
        truth = {"1": joined(list(truth.values()), len(empty.words), empty.size)}
    if protocol.salient or protocol.objects is ObjectRule.FOREGROUND:
        predicted = {SalientImages.NAME: joined(list(predicted.values()), len(empty.words), empty.size)}
    return truth, predicted


def compared(
    truth: Stacks, predicted: Stacks, objects: List[str], protocol: SequenceProtocol, empty: Stack
) -> Tuple[Array, Array]:
    """Return the counts of a block (objects, labels, fields, frames), and MOSEv2's two F (objects, 2, frames)."""
    frames, match = len(empty.words), disk(reach(empty.size))
    no_region = Region(empty)
    regions = {label: Region(stack) for label, stack in predicted.items()}
    labels = [compared_labels(name, len(objects), protocol) for name in objects]
    counts = np.zeros((len(objects), len(compared_labels("", len(objects), protocol)), FIELDS, frames), np.int64)
    strict = np.zeros((len(objects), 2, frames if protocol.reappearance else 0))
    for number, name in enumerate(objects):
        region = Region(truth[name]) if name in truth else no_region
        for place, label in enumerate(labels[number]):
            counts[number, place] = region.compared(regions.get(label, no_region), match).fields
        if protocol.reappearance:
            prediction = regions.get(labels[number][0], no_region)
            strict[number] = sequence_metrics.strict_boundary(region, prediction)
    return counts, strict
