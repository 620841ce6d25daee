"""What is known of a sequence once its pixels were counted: all that its scores come from, as bytes too.

The bytes are what processes send each other and what a part holds (`docs/scale.md`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Dict, List, Tuple

import numpy as np

from ...files.problems import Problem
from ...masks.similarity import Counts
from ...masks.stack import Array
from ..base.accumulator import NamedCounts, decoded_with, problems_of
from .truth import Ranges, flags_of

#: The fields of `similarity.Counts`.
FIELDS = 7
#: The longest header: names of frames, objects and problems.
MOST_HEADER = 64 << 20


@dataclass(frozen=True)
class CountedObject:
    """A scored object, and the compared frames that may count for it."""

    name: str
    counted: Ranges
    unseen: bool


@dataclass(frozen=True)
class SequenceCounts(NamedCounts):
    """The counts of some or all frames of a sequence; equal in every part but for the rows that it holds."""

    name: str
    #: The compared frames in the truth's order, whether their rows are here or not.
    frames: List[str]
    objects: List[CountedObject]
    #: The frames that were counted, as rising indices.
    rows: Array
    #: (objects, labels that each is compared with, fields, rows).
    counts: Array
    #: MOSEv2's two boundary similarities (objects, 2, rows); empty in other protocols.
    strict: Array
    #: Predicted objects that the truth does not have, and the first frame of each.
    unknown: Dict[str, str] = field(default_factory=dict)
    proposals: List[str] = field(default_factory=list)
    sent: bool = True
    #: What is wrong with its masks: the first ones, and how many there are.
    problems: List[Problem] = field(default_factory=list)
    problem_count: int = 0

    @property
    def is_complete(self) -> bool:
        """Whether all frames were counted, or cannot be."""
        return bool(self.problem_count) or len(self.rows) == len(self.frames)

    def of(self, number: int, label: int) -> Counts:
        """Return the counts of an object and the label at this place."""
        return Counts(*self.counts[number, label])

    def flags(self, number: int) -> Array:
        """Return which of the compared frames may count for an object."""
        return flags_of(self.objects[number].counted, len(self.frames))

    def merged(self, other: SequenceCounts) -> SequenceCounts:
        """Return the rows of both; raises ValueError where they contradict each other."""
        mine, theirs = self._head(), other._head()
        if mine != theirs:
            raise ValueError(f"{self.name} is described in two ways")
        rows, first = np.unique(np.concatenate((self.rows, other.rows)), return_index=True)
        tables = []
        for one, two in ((self.counts, other.counts), (self.strict, other.strict)):
            both = np.concatenate((one, two), axis=-1)
            mine_at, theirs_at = (np.searchsorted(rows, part) for part in (self.rows, other.rows))
            table = both[..., first] if both.size else both[..., :0]
            if both.size and not (_same(table[..., mine_at], one) and _same(table[..., theirs_at], two)):
                raise ValueError(f"{self.name} was counted twice, with different results")
            tables.append(table)
        if len(rows) == len(self.rows) and self._found() == other._found():
            return self
        unknown = _first_frames(self.unknown, other.unknown, self.frames)
        proposals = sorted({*self.proposals, *other.proposals})
        repeated = len(rows) < len(self.rows) + len(other.rows)
        problems = list(dict.fromkeys([*self.problems, *other.problems]))
        count = max(self.problem_count, other.problem_count) if repeated else self.problem_count + other.problem_count
        return SequenceCounts(
            self.name, self.frames, self.objects, rows, tables[0], tables[1], unknown, proposals, self.sent, problems,
            max(count, len(problems)),
        )  # fmt: skip

    def _head(self) -> Tuple[object, ...]:
        return self.name, self.frames, self.objects, self.sent, self.counts.shape[:3], self.strict.shape[:2]

    def _found(self) -> Tuple[object, ...]:
        return self.unknown, self.proposals, self.problems, self.problem_count

    def described(self) -> Dict[str, object]:
        return {
            "frames": self.frames,
            "objects": [[one.name, one.counted, one.unseen] for one in self.objects],
            "labels": self.counts.shape[1],
            "rows": len(self.rows),
            "strict": bool(self.strict.size),
            "unknown": list(self.unknown.items()),
            "proposals": self.proposals,
            "sent": self.sent,
        }

    def numbers(self) -> Tuple[Array, ...]:
        return self.rows.astype("<i8"), self.counts.astype("<i8"), self.strict.astype("<f8")


def decoded(data: bytes) -> SequenceCounts:
    """Return the counts that `encoded` wrote; raises ValueError where they cannot be such."""
    return decoded_with(_from_header, data, MOST_HEADER)


def _from_header(header: Dict[str, Any], data: bytes) -> SequenceCounts:
    frames, rows, labels = [str(name) for name in header["frames"]], header["rows"], header["labels"]
    objects = [_object(entry, len(frames)) for entry in header["objects"]]
    if not (isinstance(rows, int) and isinstance(labels, int) and 0 <= rows <= len(frames) and 0 <= labels < 1 << 17):
        raise ValueError("has impossible numbers of rows or labels")
    shapes = ((rows,), (len(objects), labels, FIELDS, rows), (len(objects), 2, rows if header["strict"] else 0))
    sizes = [8 * math.prod(shape) for shape in shapes]
    if sum(sizes) != len(data):
        raise ValueError(f"has {len(data)} bytes of numbers, not {sum(sizes)}")
    parts = [data[sum(sizes[:index]) : sum(sizes[: index + 1])] for index in range(3)]
    tables = [np.frombuffer(part, kind) for part, kind in zip(parts, ("<i8", "<i8", "<f8"))]
    index, counts, strict = (table.reshape(shape) for table, shape in zip(tables, shapes))
    if rows and (index[0] < 0 or index[-1] >= len(frames) or (np.diff(index) <= 0).any()):
        raise ValueError("has rows that are not in order")
    if (counts < 0).any():
        raise ValueError("has negative counts")
    problems, count = problems_of(header)
    unknown = {str(label): str(frame) for label, frame in header["unknown"]}
    proposals = [str(label) for label in header["proposals"]]
    return SequenceCounts(
        str(header["name"]), frames, objects, index, counts, strict, unknown, proposals, bool(header["sent"]),
        problems, count,
    )  # fmt: skip


def _object(entry: List[Any], frames: int) -> CountedObject:
    name, counted, unseen = entry
    ranges = [(int(start), int(stop)) for start, stop in counted]
    if not all(0 <= start < stop <= frames for start, stop in ranges):
        raise ValueError("has an object outside of its frames")
    return CountedObject(str(name), ranges, bool(unseen))


def _same(one: Array, two: Array) -> bool:
    return bool(np.array_equal(one, two, equal_nan=one.dtype.kind == "f"))


def _first_frames(one: Dict[str, str], two: Dict[str, str], frames: List[str]) -> Dict[str, str]:
    """Return the labels of both, each with the first of its frames, in the order of those."""
    place = {name: index for index, name in enumerate(frames)}
    first: Dict[str, str] = {}
    for label, frame in [*one.items(), *two.items()]:
        if label not in first or place[frame] < place[first[label]]:
            first[label] = frame
    return dict(sorted(first.items(), key=lambda item: (place[item[1]], item[0])))
