"""The jackknife: how well metrics are known, from what they are without each case."""

from __future__ import annotations

from typing import Dict, Mapping

import numpy as np

from .masks import Array

#: Images, videos and sequences whose metrics are no means are dealt into so many groups, each of which is a case: the
#: cost hardly grows with them, and an interval has one degree of freedom less.
GROUPS = 20


def dealt(count: int) -> Array:
    """Return the group of each of so many, by a lot that is always the same."""
    groups: Array = np.random.Generator(np.random.PCG64(0)).permutation(count) % max(1, min(GROUPS, count))
    return groups


def standard_errors(without: Mapping[str, Array]) -> Dict[str, float]:
    """Return the standard errors of the metrics that are known without each case."""
    return {
        name: float(np.sqrt((len(values) - 1) / len(values) * ((values - values.mean()) ** 2).sum()))
        for name, values in without.items()
        if len(values) > 1 and not np.isnan(values).any()
    }


def pseudo_values(value: float, without: Array) -> Array:
    """Return what each case adds to a metric; their mean is the metric, and their spread gives its standard error.

    So metrics that are no means over cases compare as if they were.
    """
    values: Array = value + (len(without) - 1) * (without.mean() - without)
    return values
