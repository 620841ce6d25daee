"""The base of scoring masks in memory: counts of each frame as bytes, and an accumulator made of them."""

import abc
import math
import re
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any, TypeVar

import numpy as np

from segjudge.evaluation_script.families.base.accumulator import Accumulator
from segjudge.evaluation_script.families.base.truth import compose
from segjudge.evaluation_script.families.base.units import UnitAccumulator, UnitCounts
from segjudge.evaluation_script.files.problems import Problem, SubmissionError, printable
from segjudge.evaluation_script.masks.stack import Array, Size
from segjudge.system.errors import UsageError

Item = TypeVar("Item")
#: Of each sequence the frames, and what was counted of each.
CountedFrames = Mapping[str, Mapping[str, bytes]]
#: What was kept of the frames of one video, in order.
KeptFrames = Mapping[str, bytes]
#: The name of a frame that is a number, and how many digits one has at least where it is a whole one.
NUMBER, DIGITS = re.compile(r"-?\d+(\.\d+)?", re.ASCII), 5


class MemoryDoor(abc.ABC):
    """Counts masks in memory by a protocol."""

    @abc.abstractmethod
    def count(self, sequence: str, frame: str, prediction: object, truth: object) -> bytes:
        """Return what was counted of a frame; raises SubmissionError where its masks cannot be compared."""

    @abc.abstractmethod
    def check(self, data: bytes) -> None:
        """Raise ValueError where these bytes are not what `count` returns."""

    @abc.abstractmethod
    def accumulate(self, frames: CountedFrames) -> Accumulator[Any, Any]:
        """Return the accumulator of all that was counted, in its order, as files would fill it."""

    def sort_names(self, names: Iterable[str]) -> list[str]:
        """Return the names of sequences in the order that files have where no list names them."""
        return sorted(names)

    def pair_sides(self, truth: object, prediction: object) -> tuple[dict[str, object], dict[str, object]]:
        """Return what is counted by itself, by name, of truth and prediction."""
        return self.sequences_of(truth), self.sequences_of(prediction)

    def sequences_of(self, masks: object) -> dict[str, object]:
        """Return what is counted by itself, by name."""
        return named(masks.items() if isinstance(masks, Mapping) else numbered(masks, "the masks"), "the masks")

    def frames_of(self, masks: object, where: str) -> list[tuple[object, object]]:
        """Return the frames of a sequence, each with its name; None is that of one that is counted as a whole."""
        del where
        return [(None, masks)]


class UnitsInMemory(MemoryDoor):
    """Counts videos, and images: frames wait until all are there, then a video is counted at once."""

    protocol: Any

    def sequences_of(self, masks: object) -> dict[str, object]:
        """Return videos by name; one alone is called video."""
        return super().sequences_of(masks) if isinstance(masks, Mapping) else {"video": masks}

    def frames_of(self, masks: object, where: str) -> list[tuple[object, object]]:
        return numbered(masks, where)

    def accumulate(self, frames: CountedFrames) -> UnitAccumulator[Any]:
        units = self.units(frames)
        accumulator = UnitAccumulator(self.protocol, self.facts(units), list(units))
        for name, kept in units.items():
            accumulator.update(UnitCounts(name, self.tables(kept, accumulator.facts)))
        return accumulator

    def units(self, frames: CountedFrames) -> dict[str, KeptFrames]:
        """Return what is counted at once, by name."""
        return dict(frames)

    def facts(self, units: Mapping[str, KeptFrames]) -> dict[str, Any]:
        """Return what the scores need to know of all units."""
        del units
        return {}

    @abc.abstractmethod
    def tables(self, frames: KeptFrames, facts: Mapping[str, Any]) -> dict[str, Array]:
        """Return what is counted in a unit."""


def in_order(names: Iterable[str]) -> list[str]:
    """Return names by the numbers that they are, and others after them."""
    return sorted(names, key=lambda name: (False, number_of(name), name) if NUMBER.fullmatch(name) else (True, 0, name))


def number_of(name: str) -> int | Decimal:
    """Return the number that a name is."""
    return Decimal(name) if "." in name else int(name)


def frame_name(frame: object) -> str:
    """Return the name of a frame; a number is written as file names are, None is a sequence as a whole.

    Raises UsageError for a number that has no place among others.
    """
    if frame is None:
        return ""
    if isinstance(frame, (float, np.floating)) and not math.isfinite(frame):
        raise UsageError(f"the frame {frame} is no number of a frame")
    name = text_name(frame)
    whole = NUMBER.fullmatch(name) and "." not in name and len(name) <= DIGITS
    return f"{int(name):0{DIGITS}d}" if whole else name


def text_name(name: object) -> str:
    """Return a name as text: a whole number without a point, letters in one Unicode form."""
    if isinstance(name, (float, np.floating)) and math.isfinite(name):
        return str(int(name)) if name == int(name) else np.format_float_positional(name)
    return compose(str(name))


def named(items: Iterable[tuple[object, Item]], where: str) -> dict[str, Item]:
    """Return items by their names as text; raises SubmissionError where two have the same."""
    found: dict[str, Item] = {}
    for name, one in items:
        if text_name(name) in found:
            raise refused(where, f"has {printable(name)} twice, as text and as something else", "Give each name once")
        found[text_name(name)] = one
    return found


def numbered(masks: Any, where: str) -> list[tuple[object, object]]:
    """Return frames, images or videos with their numbers; raises SubmissionError where there are none."""
    try:
        return list(enumerate(np.asarray(masks) if isinstance(masks, memoryview) else masks))
    except (TypeError, ValueError):  # no list; a memoryview that was released
        raise refused(
            where, f"is of {type(masks).__name__}", "Give a list or an array with a frame after another"
        ) from None


def check_no_map(side: object, protocol: str, form: str) -> None:
    """Raise UsageError for a map of labels, which a protocol does not score, neither in truths nor in predictions."""
    if hasattr(side, "shape") and hasattr(side, "dtype"):
        raise UsageError(f"{protocol} does not score maps of labels: give {form}, of the truth and of the prediction")


def refused(where: str, found: str, remedy: str) -> SubmissionError:
    """Return the error of masks that cannot be scored."""
    return SubmissionError.of(Problem(where, found, remedy))


def one_size(sizes: Iterable[Size], what: str, where: str) -> Size | None:
    """Return the size that all have, None without any; raises SubmissionError where there are several."""
    found = list(dict.fromkeys(sizes))
    if len(found) > 1:
        several = " and ".join(f"{width}×{height}" for height, width in found)
        raise refused(where, f"has {what} of {several}", "Give truth and prediction of one size")
    return found[0] if found else None
