"""Metrics that are no means over objects, as sums over groups of images, videos or sequences (`docs/ranking.md`).

A pseudo-value of a group says what the metric is with it beyond what it is without: their mean is the metric, and
their spread is what the jackknife makes of it, so that they compare as any values by case do.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from segjudge.errors import UsageError
from segjudge.evaluation_script.answer import Report
from segjudge.evaluation_script.engine import report_of
from segjudge.evaluation_script.instance_accumulator import InstanceAccumulator
from segjudge.evaluation_script.instance_errors import GROUPS
from segjudge.evaluation_script.unit_counts import UnitAccumulator

from .rankings import Sums

Floats = NDArray[np.float64]


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
    return Sums(tuple(reports), table, np.ones(table.shape[1]))


def _cases(report: Report) -> object:
    counted = report.counted
    if isinstance(counted, InstanceAccumulator):
        return counted.images, counted.categories
    return (counted.names, counted.facts) if isinstance(counted, UnitAccumulator) else None


def _pseudo_values(name: str, report: Report, metric: str) -> Floats:
    """Return a number for each group; their mean is the metric."""
    value, without = report.values[metric], _without_groups(report, metric)
    if value is None or len(without) < 2 or np.isnan(without).any():
        raise UsageError(f"{name}: {metric} has no value, or none without some of the images or videos")
    values: Floats = value + (len(without) - 1) * (without.mean() - without)
    return values


def _without_groups(report: Report, metric: str) -> Floats:
    """Return the metric without each of at most 20 groups, dealt by a lot that is always the same."""
    counted = report.counted
    if isinstance(counted, InstanceAccumulator):
        of_images: Floats = counted.without_groups([metric]).get(metric, np.zeros(0))
        return of_images
    if not isinstance(counted, UnitAccumulator):
        raise UsageError(f"{metric} of {report.protocol.name} is compared by sequence alone")
    count = len(counted.names)
    group = np.random.Generator(np.random.PCG64(0)).permutation(count) % max(min(GROUPS, count), 1)
    found = []
    for number in range(min(GROUPS, count)):
        left = dict(zip(counted.names, (group != number).tolist(), strict=True))
        part = UnitAccumulator(counted.protocol, counted.facts, [name for name in counted.names if left[name]])
        for one in counted.held():
            if left[one.name]:
                part.update(one)
        found.append(report_of(report.split, part).values[metric] if part.names else None)
    return np.array(found, float)
