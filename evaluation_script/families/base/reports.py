"""The scores of one split as rows for people and programs, with their errors."""

from __future__ import annotations

from functools import partial
from typing import Any, Callable, Collection, Dict, List, Tuple

import numpy as np

from ...masks.stack import Array
from ..instances.accumulator import InstanceAccumulator
from ..instances.protocols import InstanceProtocol
from ..sequences.metrics import ObjectScore, ScoreTable, by_sequence
from ..sequences.protocols import BESIDE, SequenceProtocol
from .accumulator import Accumulator
from .family import TrackProtocol, Values
from .intervals import FEWEST_CASES, GROUPS, bounds_of, interval, pseudo_values, standard_errors
from .unit_counts import UnitAccumulator

#: A row of a table: names and values that JSON can hold.
Row = Dict[str, Any]

#: A sum over sequences that differs by less from a metric is the metric.
SAME = 1e-9


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


class SequenceReport(Report):
    """Scores of mask sequences."""

    protocol: SequenceProtocol

    def __init__(self, split: str, protocol: SequenceProtocol, scores: List[ObjectScore], warnings: List[str]) -> None:
        self._table = ScoreTable(scores, protocol)
        super().__init__(split, protocol, self._table.averaged(), {}, warnings)
        self.scores, self._left_out = scores, self._table.averaged_without_each

    @property
    def metrics(self) -> List[str]:
        """The metrics that sequences and objects have."""
        known = {metric for score in self.scores for metric in score.values}
        return [metric for metric in (*self.protocol.metrics, *BESIDE) if metric in known]

    def sums(self, metrics: Collection[str]) -> Dict[str, Tuple[Array, Array]]:
        found = super().sums(metrics)
        for metric in list(found):
            sums, counts = self._table.sums(metric)
            if abs(sums.sum() / max(counts.sum(), 1) - (self.values[metric] or 0.0)) <= SAME:
                found[metric] = sums, counts
        return found

    def cases(self, metric: str) -> int:
        return self._table.cases(metric)

    def rows(self) -> Dict[str, List[Row]]:
        means = by_sequence(self.scores, self.metrics)
        return {
            "sequences": [{"split": self.split, "sequence": name, **values} for name, values in means.items()],
            "objects": [
                {"split": self.split, "sequence": score.sequence, "object": score.name, **score.values}
                for score in self.scores
            ],
        }


class InstanceReport(Report):
    """Scores of instance masks."""

    protocol: InstanceProtocol

    def __init__(self, split: str, accumulator: InstanceAccumulator) -> None:
        score = accumulator.compute()
        super().__init__(split, accumulator.protocol, score.values, {"categories": score.categories}, score.warnings)
        self._left_out, self._units = accumulator.without_groups, len(accumulator.images)


class UnitReport(Report):
    """Scores of a track that counts by unit."""

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
