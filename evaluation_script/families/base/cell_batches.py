"""The cells of units, of which many units are added up at a time.

The table `cells` of a unit has two rows: the keys of its cells, which are pairs of labels, and their pixels or points.
"""

from __future__ import annotations

from typing import Callable, Dict, Iterable, Iterator, NamedTuple, Protocol, Sequence, Tuple

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


def batch_cells(units: Sequence[CountedCells]) -> Iterator[CellBatch]:
    """Yield the cells of all units of a truth, some units at a time."""
    lengths = _count_cells(units)
    for chosen in cut_batches(lengths, _CELLS_AT_ONCE):
        yield CellBatch(np.arange(chosen.start, chosen.stop), lengths[chosen], *join_cells(units[chosen]))


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
