"""Score masks that are in memory: arrays or run lengths, frame by frame or videos at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Self

import numpy as np

from segjudge.errors import UsageError
from segjudge.evaluation_script.answer import report_of
from segjudge.evaluation_script.errors import Problem, SubmissionError, listed
from segjudge.evaluation_script.mask_files import MaskFiles, Stacks
from segjudge.evaluation_script.masks import Array, Size
from segjudge.evaluation_script.provenance import counting, provenance
from segjudge.evaluation_script.sequence_accumulator import SequenceAccumulator
from segjudge.evaluation_script.sequence_counting import compared_labels, count
from segjudge.evaluation_script.sequence_counts import FIELDS, SequenceCounts, counted_object, decoded
from segjudge.evaluation_script.sequence_objects import ScoredObject, frames_to_read, scored_objects
from segjudge.evaluation_script.sequence_protocols import LifespanRule, MissingRule, ObjectRule, SequenceProtocol
from segjudge.evaluation_script.sequence_truth import Block, ObjectFacts, Split, is_number, ranges_of
from segjudge.evaluation_script.sequence_truth import Sequence as SequenceTruth
from segjudge.frame_masks import FrameMasks, FrameReader, refused
from segjudge.prepared import named_protocol
from segjudge.scoring import Scores

#: The masks of a video: labels (frames, height, width), or of each object booleans of that shape or a list of masks.
VideoMasks = object
#: The counts of each frame of each sequence.
CountedFrames = dict[str, dict[str, SequenceCounts]]
#: The split that scores of masks in memory are of.
SPLIT = "all"
#: What stands for the digest of masks that no file has.
MEMORY = "memory"
#: An object that no truth has: its counts are those of the predictions alone.
NOTHING = "\0"
#: Where the numbers of pixels and of boundary pixels of a truth stand among its counts, and those of a prediction.
OF_TRUTH, OF_PREDICTION = (0, 3), 1


class _FrameInMemory(MaskFiles):
    """The prediction of one frame."""

    def __init__(self, stacks: Stacks) -> None:
        self._stacks = stacks

    def stacks(self, frames: list[str], size: Size) -> Stacks:
        del frames, size
        return self._stacks


class FrameAccumulator:
    """Counts of masks in memory by sequence, object and frame, and the scores that they make.

    Frames come in any order; the same frame again changes nothing, so that a sampler that repeats some does no harm.
    Merging is exact: the scores have the same bits whatever was merged in which order.
    """

    def __init__(
        self,
        protocol: str | SequenceProtocol = "davis2017",
        *,
        expected: Mapping[str, Iterable[object]] | None = None,
        unseen: Iterable[str] = (),
    ) -> None:
        """Score by a protocol; `expected` has the frames that each sequence must have, `unseen` sequences of lvos."""
        chosen = named_protocol(protocol)
        if not isinstance(chosen, SequenceProtocol):
            raise UsageError(f"{chosen.name} does not score mask sequences")
        if chosen.rounds or chosen.missing_object is not MissingRule.EMPTY:
            raise UsageError(f"{chosen.name} scores whole results, as files; masks in memory are of single videos")
        self.protocol, self._unseen = chosen, frozenset(unseen)
        self._expected = {name: {frame_name(frame) for frame in frames} for name, frames in (expected or {}).items()}
        self._frames: CountedFrames = {}
        self._reader = FrameReader()

    def update(self, sequence: str, frame: object, prediction: FrameMasks, truth: FrameMasks) -> None:
        """Count one frame; raises SubmissionError where its masks cannot be compared."""
        name, where = frame_name(frame), f"{sequence}, frame {frame_name(frame)}"
        stacks = self._reader.stacks(truth, f"truth of {where}")
        predicted = self._reader.stacks(prediction, f"prediction of {where}")
        sizes = {stack.size for stack in (*stacks.values(), *predicted.values())}
        size = sizes.pop() if sizes else (1, 1)
        if sizes:
            found = f"has frames of {size[1]}×{size[0]} and {' and '.join(f'{w}×{h}' for h, w in sizes)}"
            raise SubmissionError.of(Problem(where, found, "Give truth and prediction of one size"))
        _add(self._frames, self._counted(str(sequence), name, _Pair(stacks, predicted, size)))

    def _counted(self, sequence: str, frame: str, pair: _Pair) -> SequenceCounts:
        """Return the counts of all objects of a frame, those that the prediction alone has among them."""
        protocol = self.protocol
        names = [*dict.fromkeys([*pair.truth, *pair.prediction])]
        alone = protocol.proposals or protocol.salient
        objects = {name: ObjectFacts([(0, 1)]) for name in ([*pair.truth, NOTHING] if alone else names)}
        highest = max((int(label) for label in pair.prediction if is_number(label)), default=0)
        counting = replace(
            protocol,
            objects=ObjectRule.FOREGROUND if protocol.objects is ObjectRule.FOREGROUND else ObjectRule.SEEN,
            lifespan=LifespanRule.VIDEO,
            skip_first=False,
            skip_last=False,
            proposals=max(protocol.proposals, highest) if protocol.proposals else 0,
        )
        truth = SequenceTruth(sequence, [frame], [Block(0, 1, pair.size)], objects, lambda _: pair.truth)
        return count(truth, _FrameInMemory(pair.prediction), counting, Split([truth]))

    def merge(self, other: FrameAccumulator) -> Self:
        """Take all that another accumulator of the same protocol holds; raises ValueError where they contradict."""
        if other.protocol != self.protocol:
            raise ValueError(f"one is of {self.protocol.name}, the other of {other.protocol.name}")
        for frames in other._frames.values():
            for counts in frames.values():
                _add(self._frames, counts)
        return self

    def reset(self) -> None:
        """Forget everything that was counted."""
        self._frames = {}

    def state_dict(self) -> dict[str, object]:
        """Return all that was counted; each frame as bytes, in the form of `docs/scale.md`."""
        counts = {
            f"{name}/{frame}": one.encoded() for name, all_ in self._frames.items() for frame, one in all_.items()
        }
        return {"protocol": self.protocol.name, "counts": counts}

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        """Hold what `state_dict` returned, and nothing else; raises ValueError where it cannot be that."""
        if state.get("protocol") != self.protocol.name or not isinstance(state.get("counts"), Mapping):
            raise ValueError(f"is no state of an accumulator of {self.protocol.name}")
        loaded: CountedFrames = {}
        counts = state["counts"]
        for data in counts.values() if isinstance(counts, Mapping) else ():
            one = decoded(data)
            if len(one.frames) != 1 or len(one.rows) != 1:
                raise ValueError(f"{one.name} is not the counts of one frame")
            _add(loaded, one)
        self._frames = loaded

    def compute(self) -> Scores:
        """Return the scores of all frames that were counted; raises UsageError where expected ones are missing."""
        missing = [
            f"{name}/{frame}"
            for name, frames in self._expected.items()
            for frame in sorted(frames - self._frames.get(name, {}).keys(), key=_frame_order)
        ]
        if missing or not self._frames:
            raise UsageError(f"nothing was counted for {listed(missing, 5)}" if missing else "nothing was counted")
        accumulator = SequenceAccumulator(self.protocol, sorted(self._frames))
        for name in accumulator.names:
            accumulator.update(self._sequence_counts(name))
        origin = provenance({SPLIT: self.protocol}, MEMORY, MEMORY, counting())
        return Scores([report_of(SPLIT, accumulator)], provenance=origin)

    def _sequence_counts(self, name: str) -> SequenceCounts:
        """Return the counts of the objects that the protocol scores, in the frames that it compares."""
        frames = sorted(self._frames[name], key=_frame_order)
        table = _FrameTable(self.protocol, [self._frames[name][frame] for frame in frames])
        truth = SequenceTruth(name, frames, [], table.objects(), lambda _: {}, unseen=name in self._unseen)
        scored = scored_objects(truth, self.protocol)
        compared = np.flatnonzero(np.any(list(frames_to_read(truth, self.protocol).values()), axis=0))
        counts, strict = table.of(scored, compared.tolist())
        predicted = table.first_frames(compared.tolist())
        matched = bool(self.protocol.proposals)
        known = truth.objects.keys() | {one.name for one in scored}
        return SequenceCounts(
            name,
            [frames[frame] for frame in compared],
            [counted_object(one.name, one.counted[compared], unseen=truth.unseen) for one in scored],
            np.arange(len(compared)),
            counts,
            strict,
            {} if matched else {label: frames[frame] for label, frame in predicted.items() if label not in known},
            sorted({label for frame in compared for label in table.frames[frame].proposals}),
        )


def _add(frames: CountedFrames, counts: SequenceCounts) -> None:
    """Add the counts of one frame; raises ValueError where other ones are known."""
    frame = counts.frames[0]
    known = frames.setdefault(counts.name, {}).setdefault(frame, counts)
    if known is not counts and known.encoded() != counts.encoded():
        raise ValueError(f"{counts.name}, frame {frame} was counted twice, with different results")


class _Pair:
    """The truth of a frame beside its prediction."""

    def __init__(self, truth: Stacks, prediction: Stacks, size: Size) -> None:
        self.truth, self.prediction, self.size = truth, prediction, size


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

    def of(self, scored: list[ScoredObject], compared: list[int]) -> tuple[Array, Array]:
        """Return the counts (objects, labels, fields, frames) and MOSEv2's two F (objects, 2, frames)."""
        width = len(compared_labels("", len(scored), self._protocol))
        counts = np.zeros((len(scored), width, FIELDS, len(compared)), np.int64)
        strict = np.ones((len(scored), 2, len(compared) if self._protocol.reappearance else 0))
        for column, number in enumerate(compared):
            frame, places = self.frames[number], self._places[number]
            for row, one in enumerate(scored):
                place = places.get(one.name, places.get(NOTHING))
                if place is None:
                    continue
                found = frame.counts[place, :, :, 0]
                if len(found) < width:  # there was no such proposal
                    counts[row, :, OF_TRUTH, column] = found[:1, OF_TRUTH].T
                counts[row, : len(found), :, column] = found[:width]
                if strict.size:
                    strict[row, :, column] = frame.strict[place, :, 0]
        return counts, strict


def frame_name(frame: object) -> str:
    """Return the name of a frame; a number is written as file names are."""
    return f"{frame:05d}" if isinstance(frame, (int, np.integer)) else str(frame)


def _frame_order(frame: str) -> tuple[bool, int, str]:
    return (False, int(frame), frame) if is_number(frame) else (True, 0, frame)


def score_arrays(prediction: VideoMasks, truth: VideoMasks, protocol: str | SequenceProtocol = "davis2017") -> Scores:
    """Score one video in memory, or a mapping of several from name to masks.

    The masks of a video are labels (frames, height, width), or a mapping from object to booleans of that shape or to
    a list with a boolean array, run lengths or None for each frame.  A mapping whose values are labels or mappings has
    several videos.
    """
    accumulator = FrameAccumulator(protocol)
    truths, predictions = _videos(truth), _videos(prediction)
    if truths.keys() != predictions.keys():
        missing = [name for name in truths if name not in predictions]
        found = f"lacks {listed(missing, 5)}" if missing else "has videos that the truth does not have"
        raise refused("the predictions", found, "Give the same videos as the truth")
    for name, masks in truths.items():
        length = _length(masks, f"truth of {name}")
        if _length(predictions[name], f"prediction of {name}") not in (length, 0):
            found = f"has {_length(predictions[name], name)} frames, the truth {length}"
            raise refused(f"prediction of {name}", found, "Give each frame of the truth")
        for frame in range(length):
            accumulator.update(name, frame, _frame_of(predictions[name], frame), _frame_of(masks, frame))
    return accumulator.compute()


def _videos(masks: VideoMasks) -> dict[str, VideoMasks]:
    """Return the videos by name; one alone is called video."""
    if isinstance(masks, Mapping) and masks:
        label, first = next(iter(masks.items()))
        array = isinstance(first, (list, tuple)) or first is None
        if isinstance(first, Mapping) or not (array or isinstance(label, int) or np.asarray(first).dtype == bool):
            return {str(name): video for name, video in masks.items()}
    return {"video": masks}


def _length(masks: VideoMasks, where: str) -> int:
    """Return how many frames a video has; 0 where it has no objects."""
    lengths = {len(one) for one in (masks.values() if isinstance(masks, Mapping) else [masks])}  # type: ignore[arg-type]
    if len(lengths) > 1:
        raise refused(where, f"has objects of {' and '.join(map(str, sorted(lengths)))} frames", "Give each frame")
    return lengths.pop() if lengths else 0


def _frame_of(masks: VideoMasks, frame: int) -> FrameMasks:
    if isinstance(masks, Mapping):
        return {label: one[frame] for label, one in masks.items()}
    return masks[frame]  # type: ignore[index]
