"""The cells of units, of which many units are added up at a time.

The table `cells` of a unit has two rows: the keys of its cells, which are pairs of labels, and their pixels or points.
"""

from __future__ import annotations

from typing import Callable, Dict, Iterable, Iterator, List, NamedTuple, Protocol, Sequence, Tuple

import numpy as np

from ...masks.run_lengths import cut_batches
from ...masks.stack import Array

#: The name of the table.
CELLS = "cells"
#: The number of cells that are summed at a time: so many fit into a processor's cache.
_CELLS_AT_ONCE = 1 << 15
#: Returns rows and columns of keys.
SplitKeys = Callable[[Array], Tuple[Array, Array]]


class CountedCells(Protocol):
    """The counts of a unit."""

    @property
    def tables(self) -> Dict[str, Array]:
        """The tables by name."""


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

    def cut(self) -> Iterator[CellBatch]:
        """Yield the same units, some at a time."""
        ends = np.append(0, np.cumsum(self.lengths)).tolist()
        for units in cut_batches(self.lengths, _CELLS_AT_ONCE):
            cells = slice(ends[units.start], ends[units.stop])
            yield CellBatch(self.numbers[units], self.lengths[units], self.keys[cells], self.sums[cells])


def has_cells(shape: Tuple[int, ...]) -> bool:
    """Return whether a table of this shape can be one of cells."""
    return len(shape) == 2 and shape[0] == 2


def batch_cells(units: Iterable[Tuple[int, CountedCells]]) -> Iterator[CellBatch]:
    """Yield the cells of units with these numbers, some units at a time."""
    batch: List[CountedCells] = []
    numbers: List[int] = []
    cells = 0
    for number, unit in units:
        batch.append(unit)
        numbers.append(number)
        cells += unit.tables[CELLS].shape[1]
        if cells >= _CELLS_AT_ONCE:
            yield CellBatch(np.array(numbers), _count_cells(batch), *join_cells(batch))
            batch, numbers, cells = [], [], 0
    if batch:
        yield CellBatch(np.array(numbers), _count_cells(batch), *join_cells(batch))


def _count_cells(units: Sequence[CountedCells]) -> Array:
    return np.array([counts.tables[CELLS].shape[1] for counts in units])


def join_cells(units: Sequence[CountedCells]) -> Array:
    """Return the keys of all units' cells, and their sums."""
    return np.concatenate([counts.tables[CELLS] for counts in units], axis=1)


def units_of_cells(units: Sequence[CountedCells]) -> Array:
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
