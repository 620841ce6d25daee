"""From a report to what a method is judged by: the curve over time, its area, and its value at a threshold."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypedDict

import numpy as np
import pandas as pd

#: Metric → column of a report.
METRICS = {"J": "jaccard", "F": "contour", "J_AND_F": "j_and_f"}
COLUMNS = ["session_id", "sequence", "scribble_idx", "interaction", "object_id", "frame", *METRICS.values(), "timing"]
#: The seconds at which a method's curve is read.
THRESHOLD = 60

#: A sequence with one of its sets of first scribbles, counted from 1.
Sample = tuple[str, int]


class Summary(TypedDict, total=False):
    """The curve over time, its area, and its value at the threshold; the metric's name is a key of both mappings.

    It is empty before a session has ended; a server adds the session's key.
    """

    auc: float
    metric_at_threshold: dict[str, float]
    curve: dict[str, list[float]]
    session_key: str


def read_report(path: str | os.PathLike[str]) -> pd.DataFrame:
    """Return a report from its CSV; the name of a sequence is text, also if it is 001, 12e45678 or NA."""
    types = {
        **dict.fromkeys(("session_id", "sequence"), "str"),
        **dict.fromkeys((*METRICS.values(), "timing"), "float64"),
    }
    return pd.read_csv(path, index_col=0, dtype=types, keep_default_na=False)


@dataclass(frozen=True)
class SummaryTerms:
    """The terms of a session on which its summary depends."""

    metric: str = "J_AND_F"
    #: Interactions with each sample; without a limit those that were reached.
    interactions: int | None = None
    #: Seconds for each object of a sample.
    seconds: float | None = None
    #: The mean number of objects of a sequence.
    objects: float = 1.0
    threshold: float = THRESHOLD
    #: The number of objects of every sample of the session.  A report has no row for a sample without an interaction
    #: in time, and such a sample counts as 0; without this table only the samples of the report count.
    samples: Mapping[Sample, int] | None = None


def summary(report: pd.DataFrame, terms: SummaryTerms) -> Summary:
    """Return the curve over time, its area, and its value at the threshold."""
    times, values = _curve(report, terms)
    longest = max(times)
    area = float(np.trapezoid(values, times)) / longest if longest > 0 else 0.0
    at_threshold = float(np.interp(terms.threshold, times, values))
    return {
        "auc": area,
        "metric_at_threshold": {"threshold": terms.threshold, terms.metric: at_threshold},
        "curve": {"time": times, terms.metric: values},
    }


def _curve(report: pd.DataFrame, terms: SummaryTerms) -> tuple[list[float], list[float]]:
    """Return time and value after each interaction: all objects of all samples have one weight, and so have times."""
    last = terms.interactions or (int(report["interaction"].max()) if len(report) else 0)
    longest = last * float(report["timing"].max()) if len(report) else 0.0
    end = terms.objects * terms.seconds if terms.seconds else longest
    if not len(report):
        return [*[0.0] * (last + 1), float(end)], [0.0] * (last + 2)
    keys = ["sequence", "scribble_idx"]
    column = METRICS[terms.metric]
    by_object = report.groupby([*keys, "object_id", "interaction"])[column].mean().unstack("interaction")  # noqa: PD010 - these are groups
    seconds = report.groupby([*keys, "interaction"])["timing"].first().unstack("interaction")  # noqa: PD010
    interactions = list(range(1, last + 1))
    # A sample that did not reach an interaction keeps its last value, and takes no time.
    means = by_object.reindex(columns=interactions).ffill(axis=1).fillna(0.0).sum(axis=0)
    spent = seconds.reindex(columns=interactions).fillna(0.0).sum(axis=0).cumsum()
    objects, samples = _object_and_sample_counts(by_object.index, seconds.index, terms.samples)
    values = [float(total) / objects for total in means]
    return [0.0, *(float(total) / samples for total in spent), float(end)], [0.0, *values, values[-1]]


def _object_and_sample_counts(
    objects: pd.Index, samples: pd.Index, every: Mapping[Sample, int] | None
) -> tuple[int, int]:
    """Return how many objects and samples the means are over: those of the session, with or without a row."""
    if every is None:
        return len(objects), len(samples)
    without_rows = [count for sample, count in every.items() if sample not in samples]
    return len(objects) + sum(without_rows), len(samples) + len(without_rows)
