"""The accumulator: the counts of a split, which every family adds to and merges.

A single run, a pool of processes and merged parts fill the same accumulators. Sums are computed only when all counts
are present, in the truth's order; so merging is exact, in any order and with repeats.
"""

from __future__ import annotations

import abc
import json
import struct
from typing import Any, Callable, ClassVar, Dict, Generic, Iterable, List, Tuple, TypeVar

from ...files import HostError, Problem, Problems, name_list, quantity
from ...masks.stack import Array

Rules = TypeVar("Rules")
_Counts = TypeVar("_Counts")


class Accumulator(abc.ABC, Generic[Rules, _Counts]):
    """The counts of one split; those of several processes or parts merge into one."""

    #: The name of the unit that is counted at once.
    noun: ClassVar[str] = "unit"
    #: Decodes encoded counts; raises ValueError if they are invalid.
    decode: Callable[[bytes], _Counts]

    def __init__(self, protocol: Rules, *, strict: bool = False) -> None:
        self.protocol, self.strict = protocol, strict

    @abc.abstractmethod
    def describe(self) -> Dict[str, Any]:
        """Return the counted units and the notes as JSON that `make_empty` reads."""

    @classmethod
    @abc.abstractmethod
    def make_empty(cls, protocol: Rules, description: Dict[str, Any], *, strict: bool) -> Accumulator[Rules, _Counts]:
        """Return an empty accumulator."""

    @abc.abstractmethod
    def update(self, counts: _Counts) -> None:
        """Add counts; equal counts again change nothing, different ones raise ValueError."""

    def add(self, counts: Any) -> None:
        """Add counts, or their encoding."""
        self.update(self.decode(counts) if isinstance(counts, bytes) else counts)

    @abc.abstractmethod
    def missing(self) -> List[str]:
        """Return the units that are not counted yet, in the truth's order."""

    @abc.abstractmethod
    def state_dict(self) -> Dict[str, bytes]:
        """Return all counts as bytes; equal contents give equal bytes."""

    @abc.abstractmethod
    def load_state_dict(self, state: Dict[str, bytes]) -> None:
        """Load a state from `state_dict`; raises ValueError for other bytes."""

    @abc.abstractmethod
    def all_counts(self) -> Iterable[_Counts]:
        """Return all counts."""

    def merge(self, accumulator: Accumulator[Rules, _Counts]) -> None:
        """Merge the counts of another accumulator of the same split; raises ValueError if they contradict."""
        rules, merged = ((side.protocol, side.strict, side.describe()) for side in (self, accumulator))
        if rules != merged:
            raise ValueError("they belong to different splits, protocols or submissions")
        for counts in accumulator.all_counts():
            self.update(counts)

    def refuse_missing(self) -> None:
        """Raise HostError unless every unit is counted."""
        missing = self.missing()
        if missing:
            raise HostError(f"{quantity(len(missing), self.noun)} not counted yet: {name_list(missing)}")

    def refuse_problems(self) -> None:
        """Raise SubmissionError with every problem that counting found; some families find all problems earlier."""


def problems_of(header: Dict[str, Any]) -> Tuple[List[Problem], int]:
    """Return the problems of a header and their number; raises ValueError for malformed ones."""
    problems = [Problem(*map(str, (subject, fault, remedy))) for subject, fault, remedy in header["problems"]]
    count = header["problem_count"]
    if type(count) is not int or count < len(problems) or (count > 0) != bool(problems):
        raise ValueError("has problems that cannot be counted")
    return problems, count


class NamedCounts(abc.ABC):
    """The counts of one image, video or sequence."""

    name: str
    #: The first problems of its prediction, and their number.
    problems: List[Problem]
    problem_count: int

    @property
    def is_complete(self) -> bool:
        """Return True if everything has been counted."""
        return True

    @abc.abstractmethod
    def describe(self) -> Dict[str, object]:
        """Return the header's further fields, as JSON, beside name and problems."""

    @abc.abstractmethod
    def numbers(self) -> Iterable[Array]:
        """Return the tables of the counts, little-endian."""

    def encode(self) -> bytes:
        """Return the bytes that `decode_with` reads: the length of a JSON header, the header, and the numbers."""
        problems = [[problem.subject, problem.fault, problem.remedy] for problem in self.problems]
        header = {"name": self.name, **self.describe(), "problems": problems, "problem_count": self.problem_count}
        text = json.dumps(header, separators=(",", ":")).encode("ascii")
        return struct.pack("<I", len(text)) + text + b"".join(table.tobytes() for table in self.numbers())

    def union(self: _Named, counts: _Named) -> _Named:  # noqa: PYI019 - Python 3.9 has no Self
        """Return the union of both counts; raises ValueError if they contradict."""
        if counts is not self and counts.encode() != self.encode():
            raise ValueError(f"{self.name} was counted twice, with different results")
        return self


_Named = TypeVar("_Named", bound=NamedCounts)


def decode_with(read: Callable[[Dict[str, Any], bytes], _Named], data: bytes, longest: int) -> _Named:
    """Decode a header of limited length and its numbers with `read`; raises ValueError for malformed bytes."""
    length = int.from_bytes(data[:4], "little")
    if not 0 < length <= min(longest, len(data) - 4):
        raise ValueError("has no header")
    try:
        return read(json.loads(data[4 : 4 + length]), data[4 + length :])
    except (KeyError, TypeError, AttributeError, IndexError, OverflowError, RecursionError) as error:
        raise ValueError(f"has a header that cannot be read ({error!r})") from None


class NamedAccumulator(Accumulator[Rules, _Named]):
    """Counts by name."""

    def __init__(self, protocol: Rules, names: List[str], *, strict: bool = False) -> None:
        super().__init__(protocol, strict=strict)
        #: The names of the scored units, in the truth's order.
        self.names = names
        self._known = frozenset(names)
        if len(self._known) != len(names):
            raise ValueError(f"a {self.noun}'s name occurs twice")
        self._counts: Dict[str, _Named] = {}

    def update(self, counts: _Named) -> None:
        if counts.name not in self._known:
            raise ValueError(f"{counts.name} is not a {self.noun} of this split")
        before = self._counts.get(counts.name)
        self._counts[counts.name] = counts if before is None else before.union(counts)

    def missing(self) -> List[str]:
        counted = self._counts
        return [name for name in self.names if name not in counted or not counted[name].is_complete]

    def state_dict(self) -> Dict[str, bytes]:
        return {counts.name: counts.encode() for counts in self.all_counts()}

    def load_state_dict(self, state: Dict[str, bytes]) -> None:
        self._counts = {}
        for name, data in state.items():
            counts = self.decode(data)
            if counts.name != name:
                raise ValueError(f"{name} holds {counts.name}")
            self.update(counts)

    def all_counts(self) -> List[_Named]:
        return [self._counts[name] for name in self.names if name in self._counts]

    def refuse_problems(self) -> None:
        problems = Problems()
        for counts in self.all_counts():
            if counts.problem_count:
                problems.extend(counts.problems, counts.problem_count)
        problems.raise_if_any()
