"""The counts of a unit, which is an image, video or sequence, and the accumulator of a split's units."""

from __future__ import annotations

import copy
import io
import math
from dataclasses import dataclass, field
from itertools import compress
from typing import (
    Any,
    Callable,
    Collection,
    Dict,
    Iterable,
    Iterator,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Sequence,
    Tuple,
    TypeVar,
    Union,
)

import numpy as np

from ...files import Problem
from ...masks.run_lengths import cut_batches
from ...masks.stack import Array
from .accumulator import NamedAccumulator, NamedCounts, Rules, decode_with, problems_of
from .family import Values
from .reports import deal_groups

#: The longest header: names of tables and problems.
_LONGEST_HEADER = 16 << 20
#: The types of numbers in a table, little-endian.
_KINDS = frozenset({"<i8", "<f8"})
_KIND_OF = {kind[1]: np.dtype(kind) for kind in _KINDS}
#: The shapes of a unit's tables by name; a letter stands for any number, equal letters for equal numbers.
Shapes = Dict[str, Tuple[Union[int, str], ...]]
#: Key -> the types in a row of the truth's facts.
FactForms = Mapping[str, Tuple[type, ...]]
_Entry = TypeVar("_Entry")
#: The table of a unit's cells in two rows: their keys, which are pairs of labels, and their pixels or points.
CELLS = "cells"
#: The number of cells that are summed at a time: so many fit into a processor's cache.
_CELLS_AT_ONCE = 1 << 15
#: Returns rows and columns of keys.
SplitKeys = Callable[[Array], Tuple[Array, Array]]


@dataclass(frozen=True)
class UnitCounts(NamedCounts):
    """The counts of one unit."""

    name: str
    #: Tables of 64-bit numbers, by names that the family gives them.
    tables: Dict[str, Array]
    #: The first problems of its prediction, and their number.
    problems: List[Problem] = field(default_factory=list)
    problem_count: int = 0

    def describe(self) -> Dict[str, object]:
        return {"tables": {key: [f"<{table.dtype.kind}8", *table.shape] for key, table in self.tables.items()}}

    def numbers(self) -> List[Array]:
        return [table.astype(f"<{table.dtype.kind}8", copy=False) for table in self.tables.values()]

    def detach(self) -> UnitCounts:
        """Return the counts as `decode_unit` reads them from their encoding: in 64-bit tables of their own."""
        tables = {}
        for key, table in self.tables.items():
            kind = _KIND_OF.get(table.dtype.kind)
            if kind is None:
                raise ValueError("has a table with an unknown form")
            tables[key] = detached = np.array(table, kind, order="C")
            detached.flags.writeable = False
        return UnitCounts(self.name, tables, self.problems, self.problem_count)


def decode_unit(data: bytes) -> UnitCounts:
    """Return the counts that `encode` wrote; raises ValueError for malformed bytes."""
    return decode_with(_decode_unit, data, _LONGEST_HEADER)


def _decode_unit(header: Dict[str, Any], numbers: bytes) -> UnitCounts:
    source = io.BytesIO(numbers)
    tables = {str(key): _read_table(source, *form) for key, form in header["tables"].items()}
    problems, count = problems_of(header)
    if source.read(1):
        raise ValueError("has more numbers than tables")
    return UnitCounts(str(header["name"]), tables, problems, count)


def _read_table(source: io.BytesIO, kind: str, *shape: int) -> Array:
    if kind not in _KINDS or not all(type(side) is int and 0 <= side < 1 << 31 for side in shape):
        raise ValueError("has a table with an unknown form")
    data = source.read(8 * math.prod(shape))
    if len(data) != 8 * math.prod(shape):
        raise ValueError("has fewer numbers than its tables")
    return np.frombuffer(data, kind).reshape(shape)


class UnitAccumulator(NamedAccumulator[Rules, UnitCounts]):
    """The counts of the units of one split, and the other inputs of their scores."""

    decode = staticmethod(decode_unit)

    def __init__(
        self,
        protocol: Rules,
        facts: Dict[str, Any],
        names: List[str],
        notes: Sequence[str] = (),
        suspicions: Sequence[str] = (),
        *,
        strict: bool = False,
    ) -> None:
        super().__init__(protocol, names, strict=strict)
        #: The truth's facts about all units, such as its categories, as JSON values.
        self.facts = facts
        #: The notes from before decoding.
        self.notes = list(notes)
        #: Suspicions about the whole submission.
        self.suspicions = list(suspicions)
        #: The tables that were stacked, for scores without some of the units.
        self._stacks: Dict[str, Array] = {}
        #: The sums by name, and those of each group. Without a group: the accumulator of all units, and its number.
        self._sums: Dict[str, Array] = {}
        self._sums_by_group: Dict[str, Array] = {}
        self._left_out: Optional[Tuple[UnitAccumulator[Rules], int]] = None
        #: The counts of all units in the truth's order, once they are known to be complete.
        self._complete: Optional[List[UnitCounts]] = None

    @classmethod
    def make_empty(cls, protocol: Rules, description: Dict[str, Any], *, strict: bool) -> UnitAccumulator[Rules]:
        names, notes = (list(map(str, description[key])) for key in ("units", "notes"))
        suspicions = list(map(str, description.get("suspicions", ())))
        return cls(protocol, dict(description["facts"]), names, notes, suspicions, strict=strict)

    def describe(self) -> Dict[str, Any]:
        suspicions = {"suspicions": self.suspicions} if self.suspicions else {}
        return {"units": self.names, "facts": self.facts, "notes": self.notes, **suspicions}

    def check(
        self, shapes: Shapes, facts: Optional[FactForms], signed: Collection[str], added: Collection[str]
    ) -> None:
        """Raise ValueError if tables have unexpected shapes or facts unexpected forms, if these are given.

        Counts of earlier versions may lack `added` tables.
        """
        for key, rows in self.facts.items():
            if facts is not None and (key not in facts or any(tuple(map(type, row)) != facts[key] for row in rows)):
                raise ValueError("the description of the truth has an unknown format")
        for unit in self.all_counts():
            if shapes and not unit.problem_count:
                due_shapes = {key: shape for key, shape in shapes.items() if key not in added or key in unit.tables}
                _check_tables(unit.tables, due_shapes, signed)

    def complete_counts(self) -> List[UnitCounts]:
        """Return the counts of all units in the truth's order; raises SubmissionError with every problem."""
        if self._complete is None and self._left_out is not None:
            everything, number = self._left_out
            self._complete = _select(everything.complete_counts(), everything.groups() != number)
        elif self._complete is None:
            self.refuse_missing()
            self.refuse_problems()
            self._complete = self.all_counts()
        return self._complete

    def stack(self, key: str) -> Array:
        """Return a table that has the same shape in all units, with the units first."""
        if key not in self._stacks:
            if self._left_out is None:
                self._stacks[key] = stack_tables(self.complete_counts(), key)
            else:
                everything, number = self._left_out
                self._stacks[key] = everything.stack(key)[everything.groups() != number]
        return self._stacks[key]

    def add_up(self, key: str, tabulate: Callable[[Any], Array], table: str = "") -> Array:
        """Return a table of whole numbers that are sums over units; `key` identifies `tabulate`.

        `tabulate` gets counts, or the rows of a `table` that has the same shape in all units.
        """

        def tabulate_each(everything: UnitAccumulator[Rules]) -> Array:
            groups, rows = everything.groups(), everything.stack(table) if table else None
            chosen = [groups == number for number in range(int(groups.max(initial=0)) + 1)]
            units = everything.complete_counts() if rows is None else []
            return np.array([tabulate(_select(units, flags) if rows is None else rows[flags]) for flags in chosen])

        return self.add_groups(key, tabulate_each)

    def add_up_cells(self, split_keys: SplitKeys, shape: Tuple[int, int]) -> Array:
        """Return the sums of all cells in a table of this shape; `split_keys` returns rows and columns of keys."""
        return self.add_groups(
            CELLS, lambda everything: tabulate_groups(everything.cells(), everything.groups(), split_keys, shape)
        )

    def add_groups(self, key: str, tabulate_each: Callable[[UnitAccumulator[Rules]], Array]) -> Array:
        """Return the sum over units, given the function that returns the sums of each group.

        The total is the sum over groups, and the sum without a group lacks its own, so all scores read each unit once.
        """
        if key not in self._sums:
            if self._left_out is None:
                self._sums[key] = self.groups_of(key, tabulate_each).sum(axis=0)
            else:
                everything, number = self._left_out
                own_sums = everything.groups_of(key, tabulate_each)[number]
                self._sums[key] = everything.add_groups(key, tabulate_each) - own_sums
        return self._sums[key]

    def groups_of(self, key: str, tabulate_each: Callable[[UnitAccumulator[Rules]], Array]) -> Array:
        """Return the sums of each group."""
        if key not in self._sums_by_group:
            self._sums_by_group[key] = tabulate_each(self)
        return self._sums_by_group[key]

    def cells(self) -> Iterator[CellBatch]:
        """Return the cells of all units, some units at a time."""
        return batch_cells(self.complete_counts())

    def update(self, counts: UnitCounts) -> None:
        super().update(counts)
        if self._complete is not None or self._left_out is not None:
            self._forget()

    def all_counts(self) -> List[UnitCounts]:
        return super().all_counts() if self._left_out is None else self.complete_counts()

    def load_state_dict(self, state: Dict[str, bytes]) -> None:
        self._forget()
        super().load_state_dict(state)

    def _forget(self) -> None:
        """Drop what was computed from the counts before they change."""
        self._stacks, self._sums, self._sums_by_group = {}, {}, {}
        self._left_out, self._complete = None, None

    def groups(self) -> Array:
        """Return the group of each unit."""
        return deal_groups(len(self.names))

    def _without_group(self, number: int) -> UnitAccumulator[Rules]:
        """Return the accumulator of the units of all other groups."""
        accumulator = copy.copy(self)
        accumulator.leave_out(self, number)
        return accumulator

    def leave_out(self, everything: UnitAccumulator[Rules], number: int) -> None:
        """Drop a group in a copy of the accumulator of everything."""
        self.names = _select(everything.names, everything.groups() != number)
        self._stacks, self._sums, self._complete, self._left_out = {}, {}, None, (everything, number)

    def without_groups(
        self, values: Callable[[UnitAccumulator[Rules]], Values], _metrics: Collection[str] = ()
    ) -> Dict[str, Array]:
        """Return all metrics, computed by `values`, leaving out one group of units at a time; empty for one unit."""
        self.complete_counts()  # raises an error for any problem
        if len(self.names) < 2:
            return {}
        rows = [values(self._without_group(number)) for number in range(int(self.groups().max()) + 1)]
        return {metric: np.array([row[metric] for row in rows], float) for metric in rows[0]}


def stack_tables(units: Sequence[UnitCounts], key: str) -> Array:
    """Return a table that has the same shape in all units, with the units first."""
    tables = [counts.tables[key] for counts in units]
    (shape,) = {table.shape for table in tables}
    # np.stack takes several times as long for many small tables.
    return np.concatenate(tables).reshape(len(tables), *shape)


def _select(entries: Sequence[_Entry], flags: Array) -> List[_Entry]:
    return list(compress(entries, flags.tolist()))


def _check_tables(tables: Dict[str, Array], shapes: Shapes, signed: Collection[str]) -> None:
    if tables.keys() != shapes.keys():
        raise ValueError(f"a unit has tables other than {', '.join(shapes)}")
    lengths: Dict[str, int] = {}
    for key, shape in shapes.items():
        sides = tables[key].shape
        fits = len(sides) == len(shape) and all(
            side == (wanted if isinstance(wanted, int) else lengths.setdefault(wanted, side))
            for side, wanted in zip(sides, shape)
        )
        if not fits or not np.isfinite(tables[key]).all() or (key not in signed and (tables[key] < 0).any()):
            raise ValueError(f"a unit has numbers as {key} that are not counts")


# ── the cells of units ──────────────────────────────────────────────────────


class CellBatch(NamedTuple):
    """The cells of some units, unit by unit."""

    #: The number of each unit in the truth, and the number of its cells.
    numbers: Array
    lengths: Array
    keys: Array
    sums: Array

    def rows(self) -> Array:
        """Return the index of the unit of each cell."""
        return np.repeat(np.arange(len(self.lengths)), self.lengths)


def batch_cells(units: Sequence[UnitCounts]) -> Iterator[CellBatch]:
    """Yield the cells of all units of a truth, some units at a time."""
    lengths = _count_cells(units)
    for chosen in cut_batches(lengths, _CELLS_AT_ONCE):
        yield CellBatch(np.arange(chosen.start, chosen.stop), lengths[chosen], *join_cells(units[chosen]))


def _count_cells(units: Sequence[UnitCounts]) -> Array:
    return np.array([counts.tables[CELLS].shape[1] for counts in units])


def join_cells(units: Sequence[UnitCounts]) -> Array:
    """Return the keys of all units' cells, and their sums."""
    return np.concatenate([counts.tables[CELLS] for counts in units], axis=1)


def units_of_cells(units: Sequence[UnitCounts]) -> Array:
    """Return the index of the unit of each joined cell."""
    return np.repeat(np.arange(len(units)), _count_cells(units))


def tabulate_groups(
    batches: Iterable[CellBatch], groups: Array, split_keys: SplitKeys, shape: Tuple[int, int]
) -> Array:
    """Return the sums of the cells of each group in a table of this shape, given the group of each unit."""
    tables = np.zeros((int(groups.max(initial=0)) + 1, *shape), np.int64)
    for batch in batches:
        rows, columns = split_keys(batch.keys)
        if rows.max(initial=0) >= shape[0] or columns.max(initial=0) >= shape[1]:
            raise ValueError("has counted a label that is rejected")
        places = np.repeat(groups[batch.numbers] * shape[0], batch.lengths) + rows
        np.add.at(tables.reshape(-1), places * shape[1] + columns, batch.sums)
    return tables
