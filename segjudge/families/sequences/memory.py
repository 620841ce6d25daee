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
from segjudge.families.base.memory import (
    CountedFrames,
    FrameReader,
    MemoryDoor,
    common_size,
    number_frames,
    read_array,
    refusal,
    text_name,
)
from segjudge.system.errors import UsageError

#: The forms of one side: one video as an array, the objects of one video, videos, or either of the last two.
_ONE, _OBJECTS, _VIDEOS, _EITHER = "one", "objects", "videos", "either"
#: An object that no truth contains; its counts are those of the predictions.
_NOTHING = "\0"
#: The counts of pixels and boundary pixels in the truth, and in the prediction.
_OF_TRUTH, _OF_PREDICTION = (0, 3), 1


class SequencesInMemory(MemoryDoor):
    """A counter of frames of mask sequences."""

    def __init__(self, protocol: SequenceProtocol, unseen: Iterable[str] = ()) -> None:
        if protocol.rounds or protocol.missing_object is not MissingRule.EMPTY:
            raise UsageError(f"{protocol.name} scores whole results, as files; masks in memory are of single videos")
        self.protocol, self._unseen = protocol, frozenset(map(text_name, unseen))
        self._reader = FrameReader(many_values=protocol.many_values)

    def count(self, sequence: str, frame: str, prediction: object, truth: object) -> bytes:
        location = f"{sequence}, frame {frame}"
        truth_stacks = self._reader.read(truth, f"truth of {location}")
        predicted_stacks = self._reader.read(prediction, f"prediction of {location}")
        size = common_size(
            (stack.size for stack in (*truth_stacks.values(), *predicted_stacks.values())), "frames", location
        )
        empty = empty_stack(1, size or (1, 1))
        names = self._objects(truth_stacks, predicted_stacks)
        protocol = self.protocol
        if protocol.proposals:
            highest = max((int(label) for label in predicted_stacks if is_number(label)), default=0)
            protocol = replace(protocol, proposals=max(protocol.proposals, highest))
        proposals = sorted(predicted_stacks) if protocol.proposals else []
        truth_stacks, predicted_stacks = prepare_masks(truth_stacks, predicted_stacks, protocol, empty)
        counts, strict = compare_masks(truth_stacks, predicted_stacks, names, protocol, empty)
        objects = [CountedObject(name, [(0, 1)], unseen=False) for name in names]
        rows = np.zeros(1, np.int64)
        return SequenceCounts(sequence, [frame], objects, rows, counts, strict, {}, proposals).encode()

    def _objects(self, truth: Stacks, prediction: Stacks) -> list[str]:
        """Return all objects of a frame, including those only predicted."""
        if self.protocol.objects is ObjectRule.FOREGROUND:
            return ["1"]
        alone = self.protocol.proposals or self.protocol.salient
        return sorted({*truth, _NOTHING} if alone else {*truth, *prediction}, key=label_order)

    def check(self, data: bytes) -> None:
        counts = decode_counts(data)
        if len(counts.frames) != 1 or len(counts.rows) != 1:
            raise ValueError(f"{counts.name} does not hold the counts of one frame")

    def pair_sides(self, truth: object, prediction: object) -> tuple[dict[str, object], dict[str, object]]:
        """Return the videos of both sides by name; a single one is named video.

        Raises UsageError if a mapping could hold videos or objects.
        """
        sides = {"truth": truth, "prediction": prediction}
        kinds = [
            _tell_kind(masks, side) if isinstance(masks, Mapping) and masks else _ONE for side, masks in sides.items()
        ]
        if kinds[0] is _EITHER:  # the other side decides
            kinds[0] = _OBJECTS if kinds[1] is _ONE else kinds[1]
        if kinds[1] is _EITHER or (kinds[0] is _VIDEOS and kinds[1] is _OBJECTS):
            kinds[1] = _OBJECTS if kinds[0] is _ONE else kinds[0]
        if _EITHER in kinds:
            named_sides = (
                "it is unclear whether numbers or lists name videos of one object each, or the objects of one video"
            )
            remedy = "name videos by text and give arrays, or give masks of objects as booleans"
            raise UsageError(f"{named_sides}: {remedy}")
        truths, predictions = (
            self.sequences_of(masks, side) if kind is _VIDEOS else {"video": masks}
            for kind, (side, masks) in zip(kinds, sides.items(), strict=True)
        )
        return truths, predictions

    def frames_of(self, masks: object, location: str) -> list[tuple[object, object]]:
        """Return frames from labels (frames, height, width) or a mapping of objects to masks."""
        if not isinstance(masks, Mapping):
            return number_frames(masks, location)
        masks = {
            label: [mask for _, mask in number_frames(frames, f"{location}, object {label}")]
            for label, frames in masks.items()
        }
        lengths = {len(frames) for frames in masks.values()}
        if len(lengths) > 1:
            raise refusal(
                location,
                f"has objects of different lengths: {' and '.join(map(str, sorted(lengths)))} frames",
                "Give each frame",
            )
        return [
            (frame, {label: frames[frame] for label, frames in masks.items()})
            for frame in range(max(lengths, default=0))
        ]

    def accumulate(self, frames: CountedFrames) -> SequenceAccumulator:
        accumulator = SequenceAccumulator(self.protocol, list(frames))
        for name in accumulator.names:
            accumulator.update(self._assemble_counts(name, frames[name]))
        return accumulator

    def _assemble_counts(self, name: str, counted: Mapping[str, bytes]) -> SequenceCounts:
        """Return the counts of the scored objects in the compared frames."""
        frames = list(counted)
        table = _FrameTable(self.protocol, [decode_counts(counted[frame]) for frame in frames])
        truth = Sequence(name, frames, [], table.objects(), lambda _: {}, unseen=name in self._unseen)
        scored = choose_objects(truth, self.protocol)
        chosen = np.flatnonzero(np.any(list(frames_to_read(truth, self.protocol).values()), axis=0))
        counts, strict = table.select(list(scored), chosen.tolist())
        predicted = table.first_frames(chosen.tolist())
        matched = bool(self.protocol.proposals)
        names = truth.objects.keys() | scored.keys()
        return SequenceCounts(
            name,
            [frames[frame] for frame in chosen],
            [CountedObject(label, ranges_of(flags[chosen]), truth.unseen) for label, flags in scored.items()],
            np.arange(len(chosen)),
            counts,
            strict,
            {} if matched else {label: frames[frame] for label, frame in predicted.items() if label not in names},
            sorted({label for frame in chosen for label in table.frames[frame].proposals}),
        )


def _tell_kind(masks: Mapping[Any, object], side: str) -> str:
    """Return whether a mapping holds objects, videos, or either."""
    if any(isinstance(value, Mapping) for value in masks.values()):
        return _VIDEOS
    kinds = {label: _read_whole_numbers(value, side) for label, value in masks.items()}
    if any(numbers is None for numbers in kinds.values()):
        return _OBJECTS
    by_text = all(isinstance(label, str) and not isinstance(masks[label], (list, tuple)) for label in masks)
    frames = [frame for numbers in kinds.values() for frame in numbers or []]
    if by_text or any(((frame != frame.min()) & (frame != frame.max())).any() for frame in frames if frame.size):
        return _VIDEOS
    return _EITHER


def _read_whole_numbers(masks: object, side: str) -> list[Array] | None:
    """Return frames of integer arrays as labels; None for masks of an object."""
    if masks is None:
        return None
    frames = list(masks) if isinstance(masks, (list, tuple)) else [masks]
    if any(frame is None or isinstance(frame, Mapping) for frame in frames):
        return None
    arrays = [read_array(frame, side) for frame in frames]
    return arrays if all(array.dtype.kind in "iuf" for array in arrays) else None


class _FrameTable:
    """The counts of all objects in the frames of a sequence."""

    def __init__(self, protocol: SequenceProtocol, frames: list[SequenceCounts]) -> None:
        self._protocol, self.frames = protocol, frames
        #: For each frame, the index of each of its objects.
        self._places = [{entry.name: row for row, entry in enumerate(frame.objects)} for frame in frames]

    def objects(self) -> dict[str, ObjectFacts]:
        """Return the true objects and the frames that show them."""
        flags: dict[str, Array] = {}
        for number, (frame, places) in enumerate(zip(self.frames, self._places, strict=True)):
            for name, row in places.items():
                if frame.counts.shape[1] and frame.counts[row, 0, _OF_TRUTH[0], 0]:
                    flags.setdefault(name, np.zeros(len(self.frames), bool))[number] = True
        return {name: ObjectFacts(ranges_of(visible)) for name, visible in flags.items()}

    def first_frames(self, compared: list[int]) -> dict[str, int]:
        """Return the predicted labels, each with its first frame."""
        numbers: dict[str, int] = {}
        for number in compared:
            frame = self.frames[number]
            for name, row in self._places[number].items():
                if name not in numbers and name != _NOTHING and frame.counts[row, :, _OF_PREDICTION, 0].any():
                    numbers[name] = number
        return numbers

    def select(self, scored: list[str], compared: list[int]) -> tuple[Array, Array]:
        """Return the counts (objects, labels, fields, frames) and MOSEv2's two F (objects, 2, frames)."""
        width = len(list_labels("", len(scored), self._protocol))
        counts = np.zeros((len(scored), width, FIELDS, len(compared)), np.int64)
        strict = np.ones((len(scored), 2, len(compared) if self._protocol.reappearance else 0))
        for column, number in enumerate(compared):
            frame, places = self.frames[number], self._places[number]
            for row, name in enumerate(scored):
                entry = places.get(name, places.get(_NOTHING))
                if entry is None:
                    continue
                label_counts = frame.counts[entry, :, :, 0]
                if len(label_counts) < width:  # no such proposal exists
                    counts[row, :, _OF_TRUTH, column] = label_counts[:1, _OF_TRUTH].T
                counts[row, : len(label_counts), :, column] = label_counts[:width]
                if strict.size:
                    strict[row, :, column] = frame.strict[entry, :, 0]
        return counts, strict
