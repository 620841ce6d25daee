"""The accumulator of the tracks that count by unit: what was counted in each image, video or sequence.

One run, a pool of processes and parts fill the same accumulators.  Nothing is summed before all is there, and
then in the truth's order, so merging is exact, in any order and with repeats.
"""

from __future__ import annotations

import io
import json
import struct
from dataclasses import dataclass, field
from typing import Any, Dict, Generic, List, TypeVar

import numpy as np

from .errors import HostError, Problem, Problems, counted, listed
from .masks import Array

Rules = TypeVar("Rules")

#: The longest header: names of tables and problems.
MOST_HEADER = 16 << 20
#: What the numbers of a table may be, little-endian.
_KINDS = frozenset({"<i8", "<f8"})


@dataclass(frozen=True)
class UnitCounts:
    """What was counted in one unit."""

    name: str
    #: Tables of 64-bit numbers, by names that the track gives them.
    tables: Dict[str, Array]
    #: What is wrong with its prediction: the first ones, and how many there are.
    problems: List[Problem] = field(default_factory=list)
    problem_count: int = 0

    def encoded(self) -> bytes:
        """Return the bytes that `decoded_unit` reads: the length of a JSON header, the header, and the numbers."""
        tables = {key: table.astype(f"<{table.dtype.kind}8", copy=False) for key, table in self.tables.items()}
        header = {
            "name": self.name,
            "tables": {key: [table.dtype.str, *table.shape] for key, table in tables.items()},
            "problems": [[one.where, one.found, one.remedy] for one in self.problems],
            "problem_count": self.problem_count,
        }
        text = json.dumps(header, separators=(",", ":")).encode("ascii")
        return struct.pack("<I", len(text)) + text + b"".join(table.tobytes() for table in tables.values())


def decoded_unit(data: bytes) -> UnitCounts:
    """Return the counts that `encoded` wrote; raises ValueError where they cannot be such."""
    source = io.BytesIO(data)
    length = int.from_bytes(source.read(4), "little")
    if not 0 < length <= min(MOST_HEADER, len(data) - 4):
        raise ValueError("has no header")
    try:
        header = json.loads(source.read(length))
        tables = {str(key): _table(source, *form) for key, form in header["tables"].items()}
        problems = [Problem(str(where), str(found), str(remedy)) for where, found, remedy in header["problems"]]
        count = max(int(header["problem_count"]), len(problems))
        name = str(header["name"])
    except (KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"has a header that cannot be read ({error!r})") from None
    if source.read(1):
        raise ValueError("has more numbers than tables")
    return UnitCounts(name, tables, problems, count)


def _table(source: io.BytesIO, kind: str, *shape: int) -> Array:
    if kind not in _KINDS or not all(type(side) is int and 0 <= side < 1 << 31 for side in shape):
        raise ValueError("has a table of an unknown form")
    count = 1
    for side in shape:
        count *= side
    data = source.read(8 * count)
    if len(data) != 8 * count:
        raise ValueError("has fewer numbers than its tables")
    return np.frombuffer(data, kind).reshape(shape)


class UnitAccumulator(Generic[Rules]):
    """The counts of the units of one split, whoever counted them, and what their scores need beside them."""

    def __init__(self, protocol: Rules, facts: Dict[str, Any], names: List[str]) -> None:
        self.protocol = protocol
        #: What the truth says of all units, such as its categories; JSON can hold it.
        self.facts = facts
        #: The units to be scored, in the truth's order.
        self.names = names
        #: What a participant should know though the submission is scored, noted before anything was decoded.
        self.notes: List[str] = []
        self._known = frozenset(names)
        self._counts: Dict[str, UnitCounts] = {}

    def __len__(self) -> int:
        return len(self._counts)

    def update(self, counts: UnitCounts) -> None:
        """Take the counts of a unit; the same again changes nothing, others raise ValueError."""
        if counts.name not in self._known:
            raise ValueError(f"{counts.name} is no unit of this split")
        known = self._counts.setdefault(counts.name, counts)
        if known is not counts and known.encoded() != counts.encoded():
            raise ValueError(f"{counts.name} was counted twice, with different results")

    def merge(self, other: UnitAccumulator[Rules]) -> None:
        """Take all that another accumulator of the same split holds; raises ValueError where they contradict."""
        if self._head() != other._head():
            raise ValueError("they are of different splits, protocols or submissions")
        for counts in other._counts.values():
            self.update(counts)

    def _head(self) -> List[object]:
        return [self.protocol, self.facts, self.names, self.notes]

    def missing(self) -> List[str]:
        """Return the units that were not counted yet."""
        return [name for name in self.names if name not in self._counts]

    def state_dict(self) -> Dict[str, bytes]:
        """Return the counts of each unit as bytes."""
        return {name: self._counts[name].encoded() for name in self.names if name in self._counts}

    def load_state_dict(self, state: Dict[str, bytes]) -> None:
        """Hold what `state_dict` returned, and nothing else; raises ValueError where it cannot be that."""
        self._counts = {}
        for name, data in state.items():
            counts = decoded_unit(data)
            if counts.name != name:
                raise ValueError(f"{name} holds {counts.name}")
            self.update(counts)

    def refuse_problems(self) -> None:
        """Raise SubmissionError with every problem of the units that were counted."""
        problems = Problems()
        for name in self.names:
            if name in self._counts:
                problems.extend(self._counts[name].problems, self._counts[name].problem_count)
        problems.raise_if_any()

    def complete(self) -> List[UnitCounts]:
        """Return the counts of all units in the truth's order; raises SubmissionError with every problem."""
        missing = self.missing()
        if missing:
            raise HostError(f"{counted(len(missing), 'unit')} not counted yet: {listed(missing)}")
        self.refuse_problems()
        return [self._counts[name] for name in self.names]

    def stacked(self, key: str) -> Array:
        """Return a table that has the same shape in all units, with the units first."""
        return np.stack([counts.tables[key] for counts in self.complete()])
