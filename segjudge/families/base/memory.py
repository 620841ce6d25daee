"""Masks in memory, from any array library: counts per frame as bytes, and accumulators of them."""

from __future__ import annotations

import abc
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from decimal import Decimal
from operator import index
from typing import Any, ClassVar, TypeVar

import numpy as np

from segjudge.evaluation_script.families import engine_of
from segjudge.evaluation_script.families.base.accumulator import Accumulator
from segjudge.evaluation_script.families.base.truth import compose
from segjudge.evaluation_script.families.base.units import UnitAccumulator, UnitCounts, decode_unit
from segjudge.evaluation_script.files.problems import Flaw, Problem, SubmissionError, printable
from segjudge.evaluation_script.masks import run_lengths as rle
from segjudge.evaluation_script.masks.backend import backend
from segjudge.evaluation_script.masks.stack import Array, Size, Stack, Stacks, crop, empty_labels, pack
from segjudge.system.errors import UsageError

_Item = TypeVar("_Item")
#: For each sequence, its frames and their counts.
CountedFrames = Mapping[str, Mapping[str, bytes]]
#: The same for units that are counted at once, such as videos, in order.
UnitFrames = Mapping[str, bytes]
#: The name of a frame that is a number, and the minimum number of digits for a whole number.
NUMBER, _DIGITS = re.compile(r"-?\d+(\.\d+)?", re.ASCII), 5


class MemoryDoor(abc.ABC):
    """A counter of masks in memory by a protocol."""

    #: Whether a dataset's list may order the sequences, which are otherwise ordered by name.
    may_be_listed = True
    #: Whether each name is counted at once, without frames.
    is_undivided = False

    @abc.abstractmethod
    def count(self, sequence: str, frame: str, prediction: object, truth: object) -> bytes:
        """Return the counts of a frame; raises SubmissionError if its masks cannot be compared."""

    @abc.abstractmethod
    def check(self, data: bytes) -> None:
        """Raise ValueError if these bytes did not come from `count`."""

    @abc.abstractmethod
    def accumulate(self, frames: CountedFrames) -> Accumulator[Any, Any]:
        """Fill an accumulator with all counts in its order, as files would."""

    def sort_names(self, names: Iterable[str]) -> list[str]:
        """Return sequence names in the order of files without a list."""
        return sorted(names)

    def pair_sides(self, truth: object, prediction: object) -> tuple[dict[str, object], dict[str, object]]:
        """Return truth and prediction split into separately counted parts, by name."""
        return self.sequences_of(truth, "truth"), self.sequences_of(prediction, "prediction")

    def sequences_of(self, masks: object, side: str) -> dict[str, object]:
        """Return one side split into separately counted parts, by name."""
        return _name_items(masks.items() if isinstance(masks, Mapping) else number_frames(masks, side), side)

    def frames_of(self, masks: object, location: str) -> list[tuple[object, object]]:
        """Return a sequence's frames by name; None names a sequence counted as a whole."""
        return [(None, masks)]


class UnitsInMemory(MemoryDoor):
    """A counter of videos and images that waits until all frames of a video are there."""

    protocol: Any
    #: Whether units are videos with frames.
    in_videos = True
    #: The facts about all units that scores need, if they do not depend on the units.
    own_facts: ClassVar[Mapping[str, Any]] = {}

    def sequences_of(self, masks: object, side: str) -> dict[str, object]:
        """Return masks split into units by name; a single video is named video."""
        is_video = self.in_videos and not isinstance(masks, Mapping)
        return {"video": masks} if is_video else super().sequences_of(masks, side)

    def frames_of(self, masks: object, location: str) -> list[tuple[object, object]]:
        return number_frames(masks, location) if self.in_videos else super().frames_of(masks, location)

    def accumulate(self, frames: CountedFrames) -> UnitAccumulator[Any]:
        units = self.units(frames)
        accumulator = UnitAccumulator(self.protocol, self.facts(units), list(units))
        for name, unit_frames in units.items():
            accumulator.update(UnitCounts(name, self.tables(unit_frames, accumulator.facts)))
        return accumulator

    def units(self, frames: CountedFrames) -> dict[str, UnitFrames]:
        """Return the units, which are counted as a whole, by name."""
        return dict(frames)

    def facts(self, units: Mapping[str, UnitFrames]) -> dict[str, Any]:
        """Return the facts about all units that scores need."""
        return dict(self.own_facts)

    @abc.abstractmethod
    def tables(self, frames: UnitFrames, facts: Mapping[str, Any]) -> dict[str, Array]:
        """Count a unit."""


class SamplesInMemory(UnitsInMemory):
    """A counter of undivided items, such as a picture with a question."""

    in_videos = False
    is_undivided = True

    def __init__(self, protocol: Any, _categories: object = ()) -> None:
        self.protocol = protocol

    def check(self, data: bytes) -> None:
        counts = decode_unit(data)
        accumulator = UnitAccumulator(self.protocol, self.facts({}), [counts.name])
        accumulator.update(counts)
        engine_of(self.protocol.family).check(accumulator)

    def tables(self, frames: UnitFrames, facts: Mapping[str, Any]) -> dict[str, Array]:
        (data,) = frames.values()
        return decode_unit(data).tables


def sort_by_number(names: Iterable[str]) -> list[str]:
    """Return names sorted: numbers by value, then others."""
    return sorted(names, key=lambda name: (False, number_of(name), name) if NUMBER.fullmatch(name) else (True, 0, name))


def number_of(name: str) -> int | Decimal:
    return Decimal(name) if "." in name else int(name)


def frame_name(frame: object) -> str:
    """Return the name of a frame: a number as in file names; None for a whole sequence.

    Raises UsageError for a number that cannot be sorted among the others.
    """
    if frame is None:
        return ""
    if isinstance(frame, (float, np.floating)) and not math.isfinite(frame):
        raise UsageError(f"the frame {frame} is not the number of a frame")
    name = text_name(frame)
    whole = NUMBER.fullmatch(name) and "." not in name and len(name) <= _DIGITS
    return f"{int(name):0{_DIGITS}d}" if whole else name


def text_name(name: object) -> str:
    """Return a name as text: whole numbers without a point, letters in one Unicode form."""
    if isinstance(name, (float, np.floating)) and math.isfinite(name):
        return str(int(name)) if name == int(name) else np.format_float_positional(name)
    return compose(str(name))


def _name_items(items: Iterable[tuple[object, _Item]], location: str) -> dict[str, _Item]:
    by_name: dict[str, _Item] = {}
    for name, item in items:
        text = text_name(name)
        if text in by_name:
            raise refusal(
                location, f"has {printable(name)} twice, once as text and once as another type", "Give each name once"
            )
        by_name[text] = item
    return by_name


def number_frames(masks: Any, location: str) -> list[tuple[object, object]]:
    """Return frames, images or videos by number; raises SubmissionError without any."""
    try:
        return list(enumerate(np.asarray(masks) if isinstance(masks, memoryview) else masks))
    except (TypeError, ValueError):  # no list; a memoryview that was released
        raise refusal(location, f"is of {type(masks).__name__}", "Give a list or an array of frames") from None


def refuse_label_map(side: object, protocol: str, form: str) -> None:
    """Raise UsageError for label maps, if the protocol does not score them."""
    if hasattr(side, "shape") and hasattr(side, "dtype"):
        raise UsageError(f"{protocol} does not score maps of labels: give {form}, of the truth and of the prediction")


@contextmanager
def refuse_flaws(location: str) -> Iterator[None]:
    """Raise SubmissionError for a Flaw in the masks of this name."""
    try:
        yield
    except Flaw as flaw:
        raise SubmissionError.from_problem(flaw.as_problem(location)) from None


def refusal(location: str, fault: str, remedy: str) -> SubmissionError:
    return SubmissionError.from_problem(Problem(location, fault, remedy))


def common_size(sizes: Iterable[Size], noun: str, location: str) -> Size | None:
    """Return the common size; None without masks; raises SubmissionError for different sizes."""
    distinct = list(dict.fromkeys(sizes))
    if len(distinct) > 1:
        several = " and ".join(f"{width}x{height}" for height, width in distinct)
        raise refusal(location, f"has {noun} of {several}", "Give truth and prediction of the same size")
    return distinct[0] if distinct else None


# ── masks of a frame ────────────────────────────────────────────────────────


class FrameReader:
    """A packer of masks in memory, from any array library."""

    def __init__(self, *, many_values: bool = False) -> None:
        """Set up the packing; `many_values` says that masks of one object may hold several values."""
        self._many_values = many_values

    def read(self, masks: object, location: str) -> Stacks:
        """Read the objects of a frame: labels (height, width), or by object a boolean array, run lengths, or None.

        Raises SubmissionError if these are not masks.
        """
        if isinstance(masks, Mapping):
            objects = _name_items(masks.items(), location).items()
            stacks = {label: self._object(mask, f"{location}, object {printable(label)}") for label, mask in objects}
            return {label: stack for label, stack in stacks.items() if stack is not None and label != "0"}
        return backend().pack_labels(read_labels(masks, location))

    def _object(self, mask: object, location: str) -> Stack | None:
        if mask is None:
            return None
        if isinstance(mask, Mapping):
            return _stack_of_runs(mask, location)
        flags = _read_plane(mask, location)
        if not self._many_values:
            _check_one_object(flags, location)
        block = empty_labels(1, flags.shape, bool)
        np.not_equal(flags, 0, out=block[0, :, : flags.shape[1]])
        return crop(pack(block), flags.shape)


def read_labels(masks: object, location: str) -> Array:
    """Read labels (height, width), none below zero."""
    labels = _read_plane(masks, location)
    if labels.dtype == bool:
        labels = labels.view(np.uint8)
    if labels.dtype == np.uint64 and labels.max() >= 1 << 63:
        raise refusal(location, f"has the label {labels.max()}", "Number the objects from 1")
    if labels.dtype.kind == "i" and labels.min() < 0:
        raise refusal(location, f"has the label {labels.min()}", "Number the objects from 1, with 0 as background")
    return labels


def read_run_lengths(mask: object, location: str) -> dict[str, Any]:
    """Return one mask as run lengths, whose counts are text or unchecked."""
    if isinstance(mask, Mapping):
        counts = mask.get("counts")
        return {**mask, "counts": counts.decode("ascii", "replace") if isinstance(counts, bytes) else counts}
    flags = read_array(mask, location)
    flags = _read_plane(flags[0] if flags.ndim == 3 and len(flags) == 1 else flags, location)
    _check_one_object(flags, location)
    pixels = np.ascontiguousarray(flags if flags.dtype in (bool, np.uint8) else flags != 0)
    return {"size": list(flags.shape), "counts": backend().encode_mask(pixels.view(np.uint8))[0]}


#: A mask as text, its area, and its size.
CheckedMask = tuple[str, int, Size]


def read_checked_mask(mask: object, location: str, form: str) -> CheckedMask:
    """Return one mask as checked run lengths with its area; `form` names the expected form in errors."""
    encoded = read_run_lengths(mask, location)
    try:
        height, width = map(int, encoded["size"])
        text = encoded["counts"]
        if not isinstance(text, str):
            text = rle.compress(rle.runs_of(text, height * width))
        rle.runs_of(text, height * width)
    except Flaw as flaw:
        raise SubmissionError.from_problem(flaw.as_problem(location)) from None
    except (KeyError, TypeError, ValueError) as error:
        raise refusal(location, f"is not a mask ({error})", form) from None
    return text, int(backend().check_masks([text], np.array([height * width])).area[0]), (height, width)


def _stack_of_runs(mask: Mapping[str, object], location: str) -> Stack:
    text = read_run_lengths(mask, location)["counts"]
    try:
        height, width = map(index, mask.get("size", ()))  # type: ignore[call-overload]
    except (TypeError, ValueError):
        fault = f"has the size {printable(mask.get('size'))}"
        raise refusal(location, fault, "Give run lengths as {'size': [height, width], 'counts': ...}") from None
    if min(height, width) < 1 or height * width >= 1 << 31:
        raise refusal(location, f"has the size {[height, width]}", "Give the height and width of the frame")
    block = empty_labels(1, (height, width), bool)
    with refuse_flaws(location):
        block[0] = rle.flags({"size": [height, width], "counts": text}, (height, width))[0]
    return crop(pack(block), (height, width))


def _check_one_object(values: Array, location: str) -> None:
    """Raise a Flaw for a mask of one object with more than two values, as in files."""
    if values.dtype != bool and ((values != values.min()) & (values != values.max())).any():
        raise refusal(location, "holds more than two values", "Give the mask of one object as booleans")


def read_array(values: object, location: str) -> Array:
    """Return an array, also of tensors; raises for unconvertible and masked arrays."""
    try:
        if np.ma.is_masked(values):
            fault, remedy = (
                "is a masked array, which no protocol supports",
                "Fill it, with 255 for pixels that do not count",
            )
            raise refusal(location, fault, remedy)
        return np.asarray(values)
    except (TypeError, ValueError, RuntimeError) as error:
        raise refusal(
            location, f"cannot be read as an array ({error})", "Give it as an array in the CPU's memory"
        ) from None


def _read_plane(values: object, location: str) -> Array:
    array = read_array(values, location)
    if array.dtype.kind not in "bui":
        raise refusal(location, f"is of {array.dtype}", "Give labels as whole numbers, or masks as booleans")
    if array.ndim != 2 or not array.size:
        raise refusal(location, f"has the shape {array.shape}", "Give each frame as (height, width)")
    return array
