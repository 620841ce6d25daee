"""Metrics that are no means over objects, as sums over groups of images, videos or sequences (`docs/ranking.md`)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from segjudge.errors import UsageError
from segjudge.evaluation_script.instance_accumulator import InstanceAccumulator
from segjudge.evaluation_script.reports import Report
from segjudge.evaluation_script.unit_counts import UnitAccumulator
from segjudge.starting.meanings import rises

from .rankings import Sums
from .ranks import Floats


def grouped_sums(reports: Mapping[str, Report], metric: str) -> Sums:
    """Return the pseudo-values of a metric of several algorithms by group; refuses what cannot be compared."""
    first_name, first = next(iter(reports.items()))
    for name, report in reports.items():
        if report.protocol != first.protocol:
            raise UsageError(f"{name} was scored as {report.protocol.name}, {first_name} as {first.protocol.name}")
        if metric not in report.values:
            raise UsageError(f"{report.protocol.name} has no metric {metric}, only {', '.join(report.values)}")
        if _cases(report) != _cases(first):
            raise UsageError(f"{name} and {first_name} were not scored on the same truth")
    table = np.stack([_pseudo_values(name, report, metric) for name, report in reports.items()])
    return Sums(tuple(reports), table, np.ones(table.shape[1]), rises(metric))


def _cases(report: Report) -> object:
    counted = report.counted
    if isinstance(counted, InstanceAccumulator):
        return counted.images, counted.categories
    return (counted.names, counted.facts) if isinstance(counted, UnitAccumulator) else None


def _pseudo_values(name: str, report: Report, metric: str) -> Floats:
    """Return a number for each group; their mean is the metric."""
    found = report.sums([metric])
    if metric not in found:
        raise UsageError(f"{name}: {metric} has no value, or none without some of the images or videos")
    values: Floats = found[metric][0]
    return values
