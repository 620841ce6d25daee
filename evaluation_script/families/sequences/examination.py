"""What the doctor sees of mask sequences: the masks of some frames, as label maps or expression by expression."""

from __future__ import annotations

from functools import partial
from typing import Dict, List, Optional, Sequence, Tuple

import numpy as np

from ...doctor import Examination, Sample, choose_frames, fit_flags, fit_masks, fit_segments
from ...files import Problems
from ...masks.files import MaskFiles, ObjectFolders, RunLengths
from ...masks.stack import Array, Size, Stacks
from .counting import choose_objects, is_one_mask, list_frames
from .protocols import SequenceProtocol
from .truth import VOID, SequencePair, is_number
from .truth import Sequence as TrueSequence

#: The maximum number of expressions of a sequence that are sampled.
_MOST_EXPRESSIONS = 4
#: The number of the first label that is no number.
_FIRST_NAME = 1 << 17


def examine(pairs: Sequence[SequencePair], protocol: SequenceProtocol) -> Examination:
    """Return the sequences of a submission as the doctor examines them."""
    is_binary = is_one_mask(protocol) or protocol.overlapping
    traits = {"pictures", "places", "frames", "units", "masks"}
    traits |= {"binary"} if is_binary else {"tracks"} if protocol.proposals else {"labels"}
    if any(isinstance(masks, RunLengths) for _, masks in pairs):
        traits.add("runs")
    fit = fit_flags if is_binary else fit_segments if protocol.proposals else fit_masks
    names = [sequence.name for sequence, _ in pairs]
    sample = partial(_sample, pairs, protocol)
    return Examination(names, sample, frozenset(traits), "sequence", "masks", "object numbers", fit)


def _sample(pairs: Sequence[SequencePair], protocol: SequenceProtocol, number: int) -> List[Sample]:
    """Return a sequence, or each of its expressions, in some frames; none without masks."""
    sequence, masks = pairs[number]
    if masks is None:
        return []
    scored = list_frames(sequence, protocol)
    chosen = [int(scored[position]) for position in choose_frames(len(scored))]
    pictures = _read(sequence, masks, chosen)
    if pictures is None or not chosen:
        return []
    samples = []
    for name in _name_samples(sequence, protocol):
        drawn = [_draw(protocol, name, picture) for picture in pictures]
        truth, prediction = ([frames[side] for frames in drawn] for side in (0, 1))
        if protocol.many_values and isinstance(masks, ObjectFolders) and name:
            prediction = _read_values(sequence, masks, name, chosen, prediction)
        title = f"{sequence.name}, {name}" if name else sequence.name
        samples.append(Sample(number, title, truth, prediction, chosen, len(sequence.frames)))
    return samples


def _name_samples(sequence: TrueSequence, protocol: SequenceProtocol) -> List[str]:
    """Return the expressions of a sequence; "" stands for all of its objects together."""
    if not protocol.overlapping or is_one_mask(protocol):
        return [""]
    return [*choose_objects(sequence, protocol)][:_MOST_EXPRESSIONS]


#: Both sides of a frame, the index of the frame in them, and its size.
_Picture = Tuple[Stacks, Stacks, int, int, Size]


def _read(sequence: TrueSequence, masks: MaskFiles, frames: List[int]) -> Optional[List[_Picture]]:
    """Return both sides of frames; None if they cannot be read."""
    pictures: List[_Picture] = []
    for index, block in enumerate(sequence.blocks):
        inside = [frame for frame in frames if block.start <= frame < block.stop]
        if not inside:
            continue
        names = [sequence.frames[frame] for frame in inside]
        problems = Problems()
        predicted = masks.read_stacks(names, block.size, problems)
        if predicted is None or problems:
            return None
        truth = sequence.read_block(index)
        pictures += [
            (truth, predicted, frame - block.start, position, block.size) for position, frame in enumerate(inside)
        ]
    return pictures


def _draw(protocol: SequenceProtocol, name: str, picture: _Picture) -> Tuple[Array, Array]:
    """Return the labels of a frame on both sides, of one expression or of all objects."""
    truth, predicted, row, column, size = picture
    if name:
        truth, predicted = ({key: stack for key, stack in side.items() if key == name} for side in (truth, predicted))
    true, drawn = _paint(truth, row, size), _paint(predicted, column, size)
    if protocol.void and VOID in truth:
        true[truth[VOID].draw(row)] = -1
    if name or is_one_mask(protocol):
        return np.sign(true), np.sign(drawn)
    return true, drawn


def _paint(stacks: Stacks, frame: int, size: Size) -> Array:
    names: Dict[str, int] = {}
    numbers = [
        int(label) if is_number(label) else names.setdefault(label, _FIRST_NAME + len(names)) for label in stacks
    ]
    labels = np.zeros(size, np.min_scalar_type(-1 - max(numbers, default=0)))  # small, with room for void
    for number, stack in zip(numbers, stacks.values()):
        np.copyto(labels, number, where=stack.draw(frame))
    return labels


def _read_values(
    sequence: TrueSequence, masks: ObjectFolders, name: str, frames: List[int], flags: List[Array]
) -> List[Array]:
    """Return the values of the masks of one expression, which may be confidences."""
    return [
        masks.read_values(name, sequence.frames[frame], (mask.shape[0], mask.shape[1])) if mask.any() else mask
        for frame, mask in zip(frames, flags)
    ]
