"""The accumulator of the tracks that count by unit: what was counted in each image, video or sequence."""

from __future__ import annotations

import io
import math
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Callable, Collection, Dict, List, Tuple, Union

import numpy as np

from ...files.problems import Problem
from ...masks.stack import Array
from .accumulator import NamedAccumulator, NamedCounts, Rules, decoded_with, problems_of
from .family import Values
from .intervals import dealt
from .reports import Report, Row

#: The longest header: names of tables and problems.
MOST_HEADER = 16 << 20
#: What the numbers of a table may be, little-endian.
_KINDS = frozenset({"<i8", "<f8"})
#: The shapes of a unit's tables by name; a number that may be any has a letter, the same one for the same number.
Shapes = Dict[str, Tuple[Union[int, str], ...]]
#: What a row of the truth's facts holds, by its key.
FACTS: Dict[str, Tuple[type, ...]] = {"categories": (int, str, bool), "classes": (str, int), "merged": (int, int)}
#: Tables whose numbers may be below zero, since they have scores.
_SIGNED = frozenset({"tracks"})


@dataclass(frozen=True)
class UnitCounts(NamedCounts):
    """What was counted in one unit."""

    name: str
    #: Tables of 64-bit numbers, by names that the track gives them.
    tables: Dict[str, Array]
    #: What is wrong with its prediction: the first ones, and how many there are.
    problems: List[Problem] = field(default_factory=list)
    problem_count: int = 0

    def described(self) -> Dict[str, object]:
        return {"tables": {key: [f"<{table.dtype.kind}8", *table.shape] for key, table in self.tables.items()}}

    def numbers(self) -> List[Array]:
        return [table.astype(f"<{table.dtype.kind}8", copy=False) for table in self.tables.values()]


def decoded_unit(data: bytes) -> UnitCounts:
    """Return the counts that `encoded` wrote; raises ValueError where they cannot be such."""
    return decoded_with(_unit, data, MOST_HEADER)


def _unit(header: Dict[str, Any], numbers: bytes) -> UnitCounts:
    source = io.BytesIO(numbers)
    tables = {str(key): _table(source, *form) for key, form in header["tables"].items()}
    problems, count = problems_of(header)
    if source.read(1):
        raise ValueError("has more numbers than tables")
    return UnitCounts(str(header["name"]), tables, problems, count)


def _table(source: io.BytesIO, kind: str, *shape: int) -> Array:
    if kind not in _KINDS or not all(type(side) is int and 0 <= side < 1 << 31 for side in shape):
        raise ValueError("has a table of an unknown form")
    data = source.read(8 * math.prod(shape))
    if len(data) != 8 * math.prod(shape):
        raise ValueError("has fewer numbers than its tables")
    return np.frombuffer(data, kind).reshape(shape)


class UnitAccumulator(NamedAccumulator[Rules, UnitCounts]):
    """The counts of the units of one split, and what their scores need beside them."""

    decoded = staticmethod(decoded_unit)

    def __init__(self, protocol: Rules, facts: Dict[str, Any], names: List[str], *, strict: bool = False) -> None:
        super().__init__(protocol, names, strict=strict)
        #: What the truth says of all units, such as its categories; JSON can hold it.
        self.facts = facts
        self.notes: List[str] = []

    @classmethod
    def restored(cls, protocol: Rules, described: Dict[str, Any], *, strict: bool) -> UnitAccumulator[Rules]:
        names = [str(name) for name in described["units"]]
        total = cls(protocol, dict(described["facts"]), names, strict=strict)
        total.notes = [str(note) for note in described["notes"]]
        return total

    def described(self) -> Dict[str, Any]:
        return {"units": self.names, "facts": self.facts, "notes": self.notes}

    def check(self, shapes: Shapes) -> None:
        """Raise ValueError where facts or tables are not what a track with these shapes counts; none are any."""
        for key, rows in self.facts.items():
            if shapes and (key not in FACTS or any(tuple(map(type, row)) != FACTS[key] for row in rows)):
                raise ValueError("the truth is described in a way that is not known")
        for unit in self.held():
            if shapes and not unit.problem_count:
                _check_tables(unit.tables, shapes)

    def complete(self) -> List[UnitCounts]:
        """Return the counts of all units in the truth's order; raises SubmissionError with every problem."""
        self.refuse_missing()
        self.refuse_problems()
        return self.held()

    def stacked(self, key: str) -> Array:
        """Return a table that has the same shape in all units, with the units first."""
        return np.stack([counts.tables[key] for counts in self.complete()])

    def without_groups(
        self, values: Callable[[UnitAccumulator[Rules]], Values], _metrics: Collection[str] = ()
    ) -> Dict[str, Array]:
        """Return what `values` makes of the units without each group of them: all metrics; nothing of a single unit."""
        units = self.complete()
        if len(units) < 2:
            return {}
        group, found = dealt(len(units)), []
        for number in range(int(group.max()) + 1):
            left = {unit.name: unit for unit, one in zip(units, group.tolist()) if one != number}
            part = UnitAccumulator(self.protocol, self.facts, list(left))
            part._counts = left
            found.append(values(part))
        return {metric: np.array([one[metric] for one in found], float) for metric in found[0]}


def _check_tables(tables: Dict[str, Array], shapes: Shapes) -> None:
    if tables.keys() != shapes.keys():
        raise ValueError(f"a unit has other tables than {', '.join(shapes)}")
    lengths: Dict[str, int] = {}
    for key, shape in shapes.items():
        found = tables[key].shape
        fits = len(found) == len(shape) and all(
            real == (wanted if isinstance(wanted, int) else lengths.setdefault(wanted, real))
            for real, wanted in zip(found, shape)
        )
        if not fits or not np.isfinite(tables[key]).all() or (key not in _SIGNED and (tables[key] < 0).any()):
            raise ValueError(f"a unit has numbers as {key} that are no counts")


class UnitReport(Report):
    """Scores of a family that counts by unit."""

    def __init__(
        self,
        split: str,
        accumulator: UnitAccumulator[Any],
        values: Callable[[UnitAccumulator[Any]], Values],
        tables: Dict[str, List[Row]],
        oddities: List[str],
    ) -> None:
        warnings = [*accumulator.notes, *oddities]
        super().__init__(split, accumulator.protocol, values(accumulator), tables, warnings)
        self._left_out, self._units = partial(accumulator.without_groups, values), len(accumulator.names)
