"""Student's t intervals of metrics, from their standard errors and how many cases these are known from."""

from __future__ import annotations

import numpy as np

from segjudge.evaluation_script.answer import Report, SequenceReport
from segjudge.evaluation_script.instance_accumulator import InstanceAccumulator
from segjudge.evaluation_script.instance_errors import GROUPS
from segjudge.evaluation_script.sequence_averages import video_of

from .rankings import FEWEST_CASES
from .significance import interval

#: A low and a high end.
Interval = tuple[float, float]


def intervals(report: Report, level: float = 0.95) -> dict[str, Interval]:
    """Return the interval of each metric that has a standard error from cases enough, cut to what it can be."""
    found = {}
    for metric, error in report.errors().items():
        value, cases = report.values[metric], _cases(report, metric)
        if value is not None and error is not None and cases >= FEWEST_CASES:
            lowest = -1.0 if metric.endswith("-Decay") else 0.0
            low, high = np.clip(interval(value, error, cases, level), lowest, 1.0).tolist()
            found[metric] = (low, high)
    return found


def _cases(report: Report, metric: str) -> int:
    """Return how many sequences, or groups of images, a metric's error is known from.

    Where seen and unseen ones are averaged it is the fewer of both.
    """
    if isinstance(report, SequenceReport):
        seen, unseen = (
            len({video_of(score) for score in report.scores if score.unseen is group}) for group in (False, True)
        )
        if "-seen-" in metric or "-unseen-" in metric:
            return unseen if "-unseen-" in metric else seen
        if report.protocol.by_class and metric in report.protocol.metrics:
            return min(count for count in (seen, unseen) if count) if seen or unseen else 0
        return len({video_of(score) for score in report.scores})
    return min(GROUPS, len(report.counted.images)) if isinstance(report.counted, InstanceAccumulator) else 0
