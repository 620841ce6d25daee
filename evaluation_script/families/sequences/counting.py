"""Count the pixels of one sequence, block by block: of which objects, and in which frames, the protocol says."""

from __future__ import annotations

from typing import Dict, Iterator, List, Optional, Tuple

import numpy as np

from ...files.problems import Problems
from ...masks.files import MaskFiles, SalientImages
from ...masks.similarity import Region, disk, reach
from ...masks.stack import Array, Stack, Stacks, joined, nothing
from . import metrics as sequence_metrics
from .counts import FIELDS, CountedObject, SequenceCounts
from .protocols import LifespanRule, ObjectRule, SequenceProtocol
from .truth import VOID, Sequence, Split, flags_of, is_number, label_order, ranges_of

#: LVOS leaves out objects that are seen in fewer frames.
SHORTEST_LIFESPAN = 4


def scored_objects(sequence: Sequence, protocol: SequenceProtocol) -> Dict[str, Array]:
    """Return the objects that a protocol scores in a sequence, each with the frames that may count."""
    objects = {}
    for name in _names(sequence, protocol):
        counted = _without_ends(_lifespan(sequence, name, protocol), protocol)
        if protocol.objects is not ObjectRule.SEEN or (_visible(sequence, name) & counted).any():
            objects[name] = counted
    return objects


def frames_to_read(sequence: Sequence, protocol: SequenceProtocol) -> Dict[str, Array]:
    """Return which frames are read for each object; without objects for "", so that the masks are checked anyway."""
    return scored_objects(sequence, protocol) or {"": _without_ends(np.ones(len(sequence.frames), bool), protocol)}


def _without_ends(frames: Array, protocol: SequenceProtocol) -> Array:
    """Return these frames without the first and last of them, where the protocol skips those."""
    indices = np.flatnonzero(frames)
    if protocol.skip_first:
        frames[indices[:1]] = False
    if protocol.skip_last:
        frames[indices[-1:]] = False
    return frames


def _names(sequence: Sequence, protocol: SequenceProtocol) -> List[str]:
    labels = sorted((label for label in sequence.objects if label != VOID), key=label_order)
    first = [label for label in labels if _visible(sequence, label)[:1].any()]
    if protocol.objects is ObjectRule.FOREGROUND:
        return ["1"]
    if protocol.objects is ObjectRule.NUMBERED:
        highest = max((int(label) for label in first if is_number(label)), default=0)
        return [str(number) for number in range(1, highest + 1)]
    if protocol.objects is ObjectRule.SEEN:
        return sorted(sequence.objects, key=label_order)
    if sequence.lists_objects:
        return [label for label, facts in sequence.objects.items() if facts.lifespan is not None]
    if protocol.objects is ObjectRule.FIRST:
        return first
    return [label for label in labels if _lifespan(sequence, label, protocol).sum() >= SHORTEST_LIFESPAN]


def _visible(sequence: Sequence, name: str) -> Array:
    facts = sequence.objects.get(name)
    return flags_of(facts.visible if facts else [], len(sequence.frames))


def _lifespan(sequence: Sequence, name: str, protocol: SequenceProtocol) -> Array:
    facts = sequence.objects.get(name)
    if protocol.lifespan is not LifespanRule.VIDEO and facts is not None and facts.lifespan is not None:
        return flags_of(facts.lifespan, len(sequence.frames))
    if protocol.lifespan is LifespanRule.OWN:
        return np.maximum.accumulate(_visible(sequence, name))
    return np.ones(len(sequence.frames), bool)


def count(truth: Sequence, masks: Optional[MaskFiles], protocol: SequenceProtocol, split: Split) -> SequenceCounts:
    """Return the counts of one sequence, and what is wrong with its masks.

    Memory is taken by a block of frames, and by seven numbers for each object and frame.
    """
    objects, problems = scored_objects(truth, protocol), Problems()
    frames = np.flatnonzero(np.any(list(frames_to_read(truth, protocol).values()), axis=0))
    labels = len(compared_labels("", len(objects), protocol))
    rows = [np.zeros(0, np.int64)]
    #: Of each block: (objects, labels, fields, frames), and (objects, 2, frames).
    counts, strict = [np.zeros((len(objects), labels, FIELDS, 0), np.int64)], [np.zeros((len(objects), 2, 0))]
    #: The first frame of each predicted label: of all that are matched, else of those that the truth does not have.
    first: Dict[str, str] = {}
    for here, real, sent, empty in _read_blocks(truth, masks, frames, protocol, problems):
        if protocol.proposals or not is_one_mask(protocol):
            known = set() if protocol.proposals else truth.objects.keys() | objects.keys()
            for label in [label for label in sent if label not in known and label not in first]:
                first[label] = truth.frames[frames[here[np.argmax(sent[label].area > 0)]]]
        if objects:
            of_block = compared(real, sent, list(objects), protocol, empty)
            counts.append(of_block[0])
            strict.append(of_block[1])
        rows.append(here)
    return SequenceCounts(
        truth.name,
        [truth.frames[frame] for frame in frames],
        [CountedObject(name, ranges_of(flags[frames]), _unseen(name, truth, split)) for name, flags in objects.items()],
        np.concatenate(rows),
        np.concatenate(counts, axis=-1),
        np.concatenate(strict, axis=-1),
        {} if protocol.proposals else first,
        sorted(first) if protocol.proposals else [],
        masks is not None,
        list(problems),
        problems.count,
    )


def _read_blocks(
    truth: Sequence, masks: Optional[MaskFiles], frames: Array, protocol: SequenceProtocol, problems: Problems
) -> Iterator[Tuple[Array, Stacks, Stacks, Stack]]:
    """Yield which of these frames a block holds, both sides, and an empty mask; none after a mask with a problem."""
    if masks is not None:
        masks.problems = problems
    for index, block in enumerate(truth.blocks):
        here = np.flatnonzero((frames >= block.start) & (frames < block.stop))
        if not len(here):
            continue
        sent = {} if masks is None else masks.stacks([truth.frames[frame] for frame in frames[here]], block.size)
        if sent is not None and not problems:
            rows, empty = frames[here] - block.start, nothing(len(here), block.size)
            real = {label: stack.frames(rows) for label, stack in truth.read_block(index).items()}
            real, sent = comparable(real, sent, protocol, empty)
            yield here, real, sent, empty


def _unseen(name: str, truth: Sequence, split: Split) -> bool:
    facts = truth.objects.get(name)
    return truth.unseen or (facts is not None and facts.category in split.unseen_categories)


def compared_labels(name: str, objects: int, protocol: SequenceProtocol) -> List[str]:
    """Return the labels of the predictions that an object is compared with, in a sequence of so many objects."""
    if protocol.proposals:
        return [str(number) for number in range(1, max(protocol.proposals, objects) + 1)]
    if is_one_mask(protocol):
        return [SalientImages.NAME]
    return [name]


def is_one_mask(protocol: SequenceProtocol) -> bool:
    """Return whether a prediction is one mask, whatever its labels."""
    return protocol.salient or protocol.objects is ObjectRule.FOREGROUND


def comparable(truth: Stacks, predicted: Stacks, protocol: SequenceProtocol, empty: Stack) -> Tuple[Stacks, Stacks]:
    """Return the masks of a block as the protocol compares them: without void, or as one object."""
    if protocol.void and VOID in truth:
        predicted = {label: stack.without(truth[VOID]) for label, stack in predicted.items()}
    if protocol.objects is ObjectRule.FOREGROUND:
        truth = {"1": joined(list(truth.values()), len(empty.words), empty.size)}
    if is_one_mask(protocol):
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
