"""Mask sequences in memory: the counts of each frame, and of a whole sequence."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from segjudge.evaluation_script.families.sequences.counting import (
    FIELDS,
    CountedObject,
    SequenceAccumulator,
    SequenceCounts,
    choose_objects,
    compare_masks,
    decode_counts,
    frames_to_read,
    list_labels,
    prepare_masks,
)
from segjudge.evaluation_script.families.sequences.protocols import MissingRule, ObjectRule, SequenceProtocol
from segjudge.evaluation_script.families.sequences.truth import ObjectFacts, Sequence, is_number, label_order, ranges_of
from segjudge.evaluation_script.masks.stack import Array, Stacks, empty_stack
from segjudge.families.base.frame_masks import FrameReader, plain_array
from segjudge.families.base.memory import CountedFrames, MemoryDoor, numbered, one_size, refused, text_name
from segjudge.system.errors import UsageError

#: What a side of a comparison may hold: one video as an array, the objects of one, videos, or one of these two.
ONE, OBJECTS, VIDEOS, EITHER = "one", "objects", "videos", "either"
#: An object that no truth has: its counts are those of the predictions alone.
NOTHING = "\0"
#: Where the numbers of pixels and of boundary pixels of a truth stand among its counts, and those of a prediction.
OF_TRUTH, OF_PREDICTION = (0, 3), 1


class SequencesInMemory(MemoryDoor):
    """Counts frames of mask sequences."""

    def __init__(self, protocol: SequenceProtocol, unseen: Iterable[str] = ()) -> None:
        if protocol.rounds or protocol.missing_object is not MissingRule.EMPTY:
            raise UsageError(f"{protocol.name} scores whole results, as files; masks in memory are of single videos")
        self.protocol, self._unseen = protocol, frozenset(map(text_name, unseen))
        self._reader = FrameReader(many_values=protocol.many_values)

    def count(self, sequence: str, frame: str, prediction: object, truth: object) -> bytes:
        where = f"{sequence}, frame {frame}"
        real = self._reader.stacks(truth, f"truth of {where}")
        sent = self._reader.stacks(prediction, f"prediction of {where}")
        size = one_size((stack.size for stack in (*real.values(), *sent.values())), "frames", where)
        empty = empty_stack(1, size or (1, 1))
        names = self._objects(real, sent)
        protocol = self.protocol
        if protocol.proposals:
            highest = max((int(label) for label in sent if is_number(label)), default=0)
            protocol = replace(protocol, proposals=max(protocol.proposals, highest))
        proposals = sorted(sent) if protocol.proposals else []
        real, sent = prepare_masks(real, sent, protocol, empty)
        counts, strict = compare_masks(real, sent, names, protocol, empty)
        objects = [CountedObject(name, [(0, 1)], unseen=False) for name in names]
        rows = np.zeros(1, np.int64)
        return SequenceCounts(sequence, [frame], objects, rows, counts, strict, {}, proposals).encode()

    def _objects(self, truth: Stacks, prediction: Stacks) -> list[str]:
        """Return all objects of a frame, those that the prediction alone has among them."""
        if self.protocol.objects is ObjectRule.FOREGROUND:
            return ["1"]
        alone = self.protocol.proposals or self.protocol.salient
        return sorted({*truth, NOTHING} if alone else {*truth, *prediction}, key=label_order)

    def check(self, data: bytes) -> None:
        one = decode_counts(data)
        if len(one.frames) != 1 or len(one.rows) != 1:
            raise ValueError(f"{one.name} is not the counts of one frame")

    def pair_sides(self, truth: object, prediction: object) -> tuple[dict[str, object], dict[str, object]]:
        """Return the videos of both sides by name; one alone is called video.

        Raises UsageError for a mapping that may be one of videos or of objects.
        """
        held = [_held(side) if isinstance(side, Mapping) and side else ONE for side in (truth, prediction)]
        if held[0] is EITHER:  # what the other side is tells
            held[0] = OBJECTS if held[1] is ONE else held[1]
        if held[1] is EITHER or (held[0] is VIDEOS and held[1] is OBJECTS):
            held[1] = OBJECTS if held[0] is ONE else held[0]
        if EITHER in held:
            named_sides = "numbers or lists name what may be videos of one object each, or the objects of one video"
            remedy = "name videos by text and give arrays, or give masks of objects as booleans"
            raise UsageError(f"{named_sides}: {remedy}")
        sides = (truth, prediction)
        first, second = (
            self.sequences_of(side) if one is VIDEOS else {"video": side} for one, side in zip(held, sides, strict=True)
        )
        return first, second

    def frames_of(self, masks: object, where: str) -> list[tuple[object, object]]:
        """Return the frames of labels (frames, height, width), or of a mapping from object to the masks of frames."""
        if not isinstance(masks, Mapping):
            return numbered(masks, where)
        masks = {
            label: [one for _, one in numbered(frames, f"{where}, object {label}")] for label, frames in masks.items()
        }
        lengths = {len(one) for one in masks.values()}
        if len(lengths) > 1:
            raise refused(where, f"has objects of {' and '.join(map(str, sorted(lengths)))} frames", "Give each frame")
        return [
            (frame, {label: one[frame] for label, one in masks.items()}) for frame in range(max(lengths, default=0))
        ]

    def accumulate(self, frames: CountedFrames) -> SequenceAccumulator:
        accumulator = SequenceAccumulator(self.protocol, list(frames))
        for name in accumulator.names:
            accumulator.update(self._sequence_counts(name, frames[name]))
        return accumulator

    def _sequence_counts(self, name: str, counted: Mapping[str, bytes]) -> SequenceCounts:
        """Return the counts of the objects that the protocol scores, in the frames that it compares."""
        frames = list(counted)
        table = _FrameTable(self.protocol, [decode_counts(counted[frame]) for frame in frames])
        truth = Sequence(name, frames, [], table.objects(), lambda _: {}, unseen=name in self._unseen)
        scored = choose_objects(truth, self.protocol)
        chosen = np.flatnonzero(np.any(list(frames_to_read(truth, self.protocol).values()), axis=0))
        counts, strict = table.of(list(scored), chosen.tolist())
        predicted = table.first_frames(chosen.tolist())
        matched = bool(self.protocol.proposals)
        known = truth.objects.keys() | scored.keys()
        return SequenceCounts(
            name,
            [frames[frame] for frame in chosen],
            [CountedObject(one, ranges_of(flags[chosen]), truth.unseen) for one, flags in scored.items()],
            np.arange(len(chosen)),
            counts,
            strict,
            {} if matched else {label: frames[frame] for label, frame in predicted.items() if label not in known},
            sorted({label for frame in chosen for label in table.frames[frame].proposals}),
        )


def _held(masks: Mapping[Any, object]) -> str:
    """Return whether a mapping holds objects, videos, or what may be both: whole numbers of two values at the most."""
    if any(isinstance(one, Mapping) for one in masks.values()):
        return VIDEOS
    kinds = {label: _whole_numbers(one) for label, one in masks.items()}
    if any(numbers is None for numbers in kinds.values()):
        return OBJECTS
    by_text = all(isinstance(label, str) and not isinstance(masks[label], (list, tuple)) for label in masks)
    frames = [frame for numbers in kinds.values() for frame in numbers or []]
    if by_text or any(((frame != frame.min()) & (frame != frame.max())).any() for frame in frames if frame.size):
        return VIDEOS
    return EITHER


def _whole_numbers(masks: object) -> list[Array] | None:
    """Return frames that are arrays of whole numbers, as labels are; None for masks of an object."""
    if masks is None:
        return None
    frames = list(masks) if isinstance(masks, (list, tuple)) else [masks]
    if any(frame is None or isinstance(frame, Mapping) for frame in frames):
        return None
    arrays = [plain_array(frame, "the masks") for frame in frames]
    return arrays if all(array.dtype.kind in "iuf" for array in arrays) else None


class _FrameTable:
    """The counts of all objects in the frames of a sequence."""

    def __init__(self, protocol: SequenceProtocol, frames: list[SequenceCounts]) -> None:
        self._protocol, self.frames = protocol, frames
        #: Of each frame, the place of each of its objects.
        self._places = [{one.name: place for place, one in enumerate(frame.objects)} for frame in frames]

    def objects(self) -> dict[str, ObjectFacts]:
        """Return the objects of the truth, with the frames in which they are visible."""
        flags: dict[str, Array] = {}
        for number, (frame, places) in enumerate(zip(self.frames, self._places, strict=True)):
            for name, place in places.items():
                if frame.counts.shape[1] and frame.counts[place, 0, OF_TRUTH[0], 0]:
                    flags.setdefault(name, np.zeros(len(self.frames), bool))[number] = True
        return {name: ObjectFacts(ranges_of(visible)) for name, visible in flags.items()}

    def first_frames(self, compared: list[int]) -> dict[str, int]:
        """Return the labels that were predicted, each with the first of these frames."""
        first: dict[str, int] = {}
        for number in compared:
            frame = self.frames[number]
            for name, place in self._places[number].items():
                if name not in first and name != NOTHING and frame.counts[place, :, OF_PREDICTION, 0].any():
                    first[name] = number
        return first

    def of(self, scored: list[str], compared: list[int]) -> tuple[Array, Array]:
        """Return the counts (objects, labels, fields, frames) and MOSEv2's two F (objects, 2, frames)."""
        width = len(list_labels("", len(scored), self._protocol))
        counts = np.zeros((len(scored), width, FIELDS, len(compared)), np.int64)
        strict = np.ones((len(scored), 2, len(compared) if self._protocol.reappearance else 0))
        for column, number in enumerate(compared):
            frame, places = self.frames[number], self._places[number]
            for row, name in enumerate(scored):
                place = places.get(name, places.get(NOTHING))
                if place is None:
                    continue
                found = frame.counts[place, :, :, 0]
                if len(found) < width:  # there was no such proposal
                    counts[row, :, OF_TRUTH, column] = found[:1, OF_TRUTH].T
                counts[row, : len(found), :, column] = found[:width]
                if strict.size:
                    strict[row, :, column] = frame.strict[place, :, 0]
        return counts, strict
