"""The scores of one split as rows for people and programs, with their errors."""

from __future__ import annotations

from typing import Any, Callable, Collection, Dict, List, Tuple

import numpy as np

from ...masks.stack import Array
from .accumulator import Accumulator
from .family import TrackProtocol, Values
from .intervals import FEWEST_CASES, GROUPS, bounds_of, interval, pseudo_values, standard_errors

#: A row of a table: names and values that JSON can hold.
Row = Dict[str, Any]


class Report:
    """One split's scores as rows for people and programs; what has no value is None."""

    #: What the scores were made of.
    counted: Accumulator[Any, Any]
    #: How many images, videos or sequences there are.
    _units: int
    #: Returns these metrics, or all, without each of them or each group of them.
    _left_out: Callable[[Collection[str]], Dict[str, Array]]

    def __init__(
        self, split: str, protocol: TrackProtocol, values: Values, tables: Dict[str, List[Row]], warnings: List[str]
    ) -> None:
        self.split, self.protocol, self._tables = split, protocol, tables
        #: The protocol's own metrics and those beside it.
        self.values = values
        self.warnings = [f"{split}: {line}" for line in warnings]
        self._without: Dict[Tuple[str, ...], Dict[str, Array]] = {}
        empty = [metric for metric in protocol.metrics if values[metric] is None]
        if empty:
            self.warnings.append(f"{split}: nothing to average for {', '.join(empty)}")

    def errors(self, metrics: Collection[str] = ()) -> Values:
        """Return the standard errors of these metrics, or of all, where they have one."""
        return {**standard_errors(self.without_each(metrics))}

    def without_each(self, metrics: Collection[str] = ()) -> Dict[str, Array]:
        """Return these metrics, or all, without each sequence, or each group of images or videos."""
        wanted = tuple(metrics)
        if wanted not in self._without:
            self._without[wanted] = self._left_out(wanted)
        return self._without[wanted]

    def sums(self, metrics: Collection[str]) -> Dict[str, Tuple[Array, Array]]:
        """Return what each of these metrics, or of all, sums to in each sequence or group, and over how many there.

        Of a metric that is no mean these are pseudo-values.
        """
        without = self.without_each(metrics)
        return {
            metric: (pseudo_values(value, without[metric]), np.ones(len(without[metric])))
            for metric, value in self.values.items()
            if metric in (metrics or self.values)
            and metric in without
            and value is not None
            and not np.isnan(without[metric]).any()
        }

    def cases(self, metric: str) -> int:
        """Return how many sequences, or groups of images, a metric's standard error is known from."""
        del metric
        return min(GROUPS, self._units)

    def intervals(self, level: float = 0.95, metrics: Collection[str] = ()) -> Dict[str, Tuple[float, float]]:
        """Return Student's t interval of each of these metrics, or of all, that has an error from cases enough."""
        found = {}
        for metric, error in self.errors(metrics).items():
            value, cases = self.values[metric], self.cases(metric)
            if value is not None and error is not None and cases >= FEWEST_CASES:
                low, high = interval(value, error, cases, level)
                least, most = bounds_of(metric)
                found[metric] = max(low, least), min(high, most)
        return found

    def rows(self) -> Dict[str, List[Row]]:
        """Return the tables of what was averaged, by name."""
        return {name: [{"split": self.split, **row} for row in rows] for name, rows in self._tables.items()}
