"""Score masks that are in memory: arrays or run lengths, frame by frame or videos at once."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from segjudge.evaluation_script.families import FAMILIES, report_of
from segjudge.evaluation_script.families.base.family import FamilyProtocol, Values
from segjudge.evaluation_script.files import name_list, quantity
from segjudge.evaluation_script.masks.backend import backend
from segjudge.evaluation_script.scoring.provenance import provenance
from segjudge.families import tools_of
from segjudge.families.base.memory import NUMBER, MemoryDoor, frame_name, number_of, refusal, sort_by_number, text_name
from segjudge.scoring.request import find_protocol
from segjudge.scoring.scores import Scores
from segjudge.system.arguments import SEVERAL, check_arguments, describe_value
from segjudge.system.errors import ArgumentTypeError, ArgumentValueError, UsageError
from segjudge.system.python310 import Self

#: The split of the scores of masks in memory.
_SPLIT = "all"
#: The digest of masks that are not in a file.
_MEMORY = "memory"


class FrameAccumulator:
    """The counts of masks in memory, by sequence and frame, and the scores computed from them.

    Frames may arrive in any order, and repeated frames change nothing, so samplers may repeat them. Merging is exact:
    the scores have the same bits in any order. Means follow the order of `expected`, as scores of files follow the
    dataset's list, or else the order of names, as in benchmarks without a list.
    """

    def __init__(
        self,
        protocol: str | FamilyProtocol = "davis2017",
        *,
        expected: Mapping[str, Iterable[object]] | Iterable[str] = (),
        unseen: Iterable[str] = (),
        categories: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        """Score by a protocol.

        Args:
            protocol: its name, or one of its rows with changes.
            expected: the frames that each sequence must have, or the names of items that are counted as a whole.
            unseen: the unseen sequences, for protocols with means of their own for these.
            categories: as in COCO's annotation files; required by panoptic protocols; for instances, the default is the
                categories that occur.

        """
        self.protocol = find_protocol(protocol)
        check_arguments(SEVERAL, expected=expected, unseen=unseen)
        self._door = _open_door(self.protocol, categories, unseen)
        wanted = expected.items() if isinstance(expected, Mapping) else ((name, [None]) for name in expected)
        self._expected: dict[str, set[str]] = {}
        for name, frames in wanted:
            check_arguments(SEVERAL, **{f"expected[{name!r:.40}]": frames})
            self._expected[text_name(name)] = {frame_name(frame) for frame in frames}
        self._frames: dict[str, dict[str, bytes]] = {}

    def update(self, sequence: object, frame: object, prediction: object, truth: object) -> None:
        """Count one frame; raises SubmissionError if its masks cannot be compared."""
        name, key = text_name(sequence), frame_name(frame)
        self._add(name, key, self._door.count(name, key, prediction, truth))

    def _add(self, name: str, frame: str, data: bytes) -> None:
        """Add the counts of a frame; raises ValueError if different counts are known.

        Raises UsageError for a second frame of what is counted as a whole.
        """
        frames = self._frames.setdefault(name, {})
        if frames and frame not in frames and self._door.is_undivided:
            fault = f"{name} has a second frame, but {self.protocol.name} counts each name as a whole"
            raise UsageError(f"{fault}; give each image, scan or case a name of its own, and None as the frame")
        if frames.setdefault(frame, data) != data:
            location = f"{name}, frame {frame}" if frame else name
            raise ArgumentValueError(f"{location} was counted twice, with different results")

    def merge(self, accumulator: Self) -> Self:
        """Add the counts of another accumulator of the same protocol; raises ValueError if they contradict."""
        if not isinstance(accumulator, FrameAccumulator):
            raise ArgumentTypeError(f"accumulator is {describe_value(accumulator)}; give a FrameAccumulator")
        if accumulator.protocol != self.protocol:
            raise ArgumentValueError(f"one belongs to {self.protocol.name}, the other to {accumulator.protocol.name}")
        for name, frames in accumulator._frames.items():  # noqa: SLF001 - of the same class
            for frame, data in frames.items():
                self._add(name, frame, data)
        return self

    def reset(self) -> None:
        """Remove all counts."""
        self._frames = {}

    def state_dict(self) -> dict[str, Any]:
        """Return all counts as bytes by sequence and frame; equal contents give equal bytes."""
        frames = {name: dict(sorted(self._frames[name].items())) for name in sorted(self._frames)}
        return {"protocol": self.protocol.name, "frames": frames}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Replace the contents by a state from `state_dict`; raises ValueError for anything else."""
        try:
            if state["protocol"] != self.protocol.name:
                raise KeyError(state["protocol"])
            frames = {str(name): dict(counted) for name, counted in state["frames"].items()}
            for data in (data for counted in frames.values() for data in counted.values()):
                self._door.check(data)
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            fault = f"state does not belong to an accumulator of {self.protocol.name} ({error!r:.200})"
            raise ArgumentValueError(f"{fault}; give a state that state_dict returned") from None
        self._frames = frames

    def values(self) -> Values:
        """Return the overall metrics; None for each metric without counts or values to average."""
        if self._frames:
            return self.compute().metrics[_SPLIT]
        return dict.fromkeys((*self.protocol.metrics, *FAMILIES[self.protocol.family].own_metrics))

    def compute(self) -> Scores:
        """Return the scores of all frames that were counted.

        Raises UsageError if expected ones are missing, and ValueError for counts that a loaded state cannot have.
        """
        missing = [
            f"{name}/{frame}" if frame else name
            for name, frames in self._expected.items()
            for frame in sort_by_number(frames - self._frames.get(name, {}).keys())
        ]
        if missing or not self._frames:
            raise UsageError(f"nothing was counted for {name_list(missing, 5)}" if missing else "nothing was counted")
        for name, frames in self._frames.items():
            _check_frame_numbers(name, frames)
        try:
            report = report_of(_SPLIT, self._door.accumulate(self._in_order()))
        except (LookupError, TypeError, ValueError, OverflowError) as error:
            fault = f"the counts do not give scores of {self.protocol.name} ({error!r})"
            raise ArgumentValueError(f"{fault}: the loaded state did not come from state_dict") from error
        origin = provenance({_SPLIT: self.protocol}, _MEMORY, _MEMORY, backend().name, {})
        return Scores([report], provenance=origin)

    def _in_order(self) -> dict[str, dict[str, bytes]]:
        """Return the counts: sequences in the order of the means, frames by number."""
        listed = [name for name in self._expected if name in self._frames] if self._door.may_be_listed else []
        names = [*listed, *self._door.sort_names(self._frames.keys() - set(listed))]
        return {
            name: {frame: self._frames[name][frame] for frame in sort_by_number(self._frames[name])} for name in names
        }


def _open_door(protocol: FamilyProtocol, categories: Sequence[Mapping[str, Any]], unseen: Iterable[str]) -> MemoryDoor:
    """Return the counter of masks in memory; raises UsageError for categories that the protocol cannot use."""
    check_arguments(SEVERAL, categories=categories)
    rows = list(categories)
    if not all(isinstance(row, Mapping) for row in rows):
        odd = next(row for row in rows if not isinstance(row, Mapping))
        raise ArgumentTypeError(f"categories hold {describe_value(odd)}; give mappings as in COCO's annotation files")
    try:
        return tools_of(protocol.family).open_memory(protocol, rows, unseen)
    except UsageError:
        raise
    except (LookupError, TypeError, ValueError) as error:
        if not rows:
            raise
        fault = f"categories cannot be used by {protocol.name} ({error!r:.100})"
        raise ArgumentValueError(f"{fault}; give each the keys of COCO's annotation files: id, name") from None


def _check_frame_numbers(name: str, frames: Iterable[str]) -> None:
    """Raise UsageError if two frames have one number, so that their order is undefined."""
    names: dict[object, str] = {}
    for frame in frames:
        if NUMBER.fullmatch(frame) and names.setdefault(number_of(frame), frame) != frame:
            pair = f"{names[number_of(frame)]} and {frame}"
            raise UsageError(f"{name} has the frames {pair}, which are the same number: name each frame once")


def score_arrays(
    prediction: object,
    truth: object,
    protocol: str | FamilyProtocol = "davis2017",
    *,
    categories: Sequence[Mapping[str, Any]] = (),
) -> Scores:
    """Score one video in memory, or a mapping of several from name to masks.

    A video's masks are labels (frames, height, width), or a mapping from object to booleans of that shape or to a list
    with a boolean array, run lengths or None per frame. A mapping of labels or mappings holds several videos. Names may
    have any Unicode form.
    """
    rules = find_protocol(protocol)
    door = _open_door(rules, categories, ())
    truths, predictions = door.pair_sides(truth, prediction)
    if truths.keys() != predictions.keys():
        missing = [name for name in truths if name not in predictions]
        surplus = [name for name in predictions if name not in truths]
        faults = (("lacks {}", missing), ("has {}, which the truth lacks", surplus))
        fault = ", and ".join(form.format(name_list(names, 5)) for form, names in faults if names)
        raise refusal("prediction", fault, "Give the same names as the truth")
    accumulator = FrameAccumulator(rules, expected=dict.fromkeys(truths, ()), categories=categories)
    for name, masks in truths.items():
        frames = door.frames_of(masks, f"truth of {name}")
        predicted = door.frames_of(predictions[name], f"prediction of {name}") or [(frame, {}) for frame, _ in frames]
        if len(predicted) != len(frames):
            fault = f"has {quantity(len(predicted), 'frame')}, the truth {len(frames)}"
            raise refusal(f"prediction of {name}", fault, "Give each frame of the truth")
        for (frame, truth_masks), (_, predicted_masks) in zip(frames, predicted, strict=True):
            accumulator.update(name, frame, predicted_masks, truth_masks)
    return accumulator.compute()
