"""From a report to what a method is judged by: the curve over time, its area, and its value at a threshold."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

METRICS = {"J": "jaccard", "F": "contour", "J_AND_F": "j_and_f"}
COLUMNS = ["session_id", "sequence", "scribble_idx", "interaction", "object_id", "frame", *METRICS.values(), "timing"]
#: Seconds at which a method's curve is read.
THRESHOLD = 60


def read_report(path: str | os.PathLike[str]) -> pd.DataFrame:
    """A report from its CSV; a sequence may be called 001, 12e45678 or NA, and stays a text."""
    texts = ("session_id", "sequence")
    numbers: dict[str, Any] = dict.fromkeys((*METRICS.values(), "timing"), "float64")
    return pd.read_csv(path, index_col=0, dtype={**dict.fromkeys(texts, str), **numbers}, keep_default_na=False)


@dataclass(frozen=True)
class SummaryTerms:
    """What a session was held under, as far as its summary depends on it."""

    metric: str = "J_AND_F"
    #: Interactions with each sample; without a limit those that were reached.
    interactions: int | None = None
    #: Seconds for each object of a sample.
    seconds: float | None = None
    #: Over the sequences of the subset.
    objects: float = 1.0
    threshold: float = THRESHOLD
    #: Objects of every sample (sequence, scribble_idx) of the session.  A report has no row for a sample without an
    #: interaction in time, and such a sample counts as 0; without this table only the samples of the report count.
    samples: Mapping[tuple[str, int], int] | None = None


def summary(report: pd.DataFrame, terms: SummaryTerms) -> dict[str, Any]:
    """The curve over time, its area, and its value at the threshold."""
    times, values = _curve(report, terms)
    longest = max(times)
    area = float(np.trapezoid(values, times)) / longest if longest > 0 else 0.0
    at = float(np.interp(terms.threshold, times, values))
    return {
        "auc": area,
        "metric_at_threshold": {"threshold": terms.threshold, terms.metric: at},
        "curve": {"time": times, terms.metric: values},
    }


def _curve(report: pd.DataFrame, terms: SummaryTerms) -> tuple[list[float], list[float]]:
    """Time and value after each interaction: every object of every sample counts alike, and so does every time."""
    last = terms.interactions or (int(report["interaction"].max()) if len(report) else 0)
    longest = last * float(report["timing"].max()) if len(report) else 0.0
    end = terms.objects * terms.seconds if terms.seconds else longest
    if not len(report):
        return [*[0.0] * (last + 1), float(end)], [0.0] * (last + 2)
    keys = ["sequence", "scribble_idx"]
    column = METRICS[terms.metric]
    by_object = report.groupby([*keys, "object_id", "interaction"])[column].mean().unstack("interaction")  # noqa: PD010 - these are groups
    seconds = report.groupby([*keys, "interaction"])["timing"].first().unstack("interaction")  # noqa: PD010
    wanted = list(range(1, last + 1))
    # What a sample did not reach stays as it was, and takes no time.
    means = by_object.reindex(columns=wanted).ffill(axis=1).fillna(0.0).sum(axis=0)
    spent = seconds.reindex(columns=wanted).fillna(0.0).sum(axis=0).cumsum()
    objects, samples = _counted(by_object.index, seconds.index, terms.samples)
    values = [float(one) / objects for one in means]
    return [0.0, *(float(one) / samples for one in spent), float(end)], [0.0, *values, values[-1]]


def _counted(objects: pd.Index, samples: pd.Index, every: Mapping[tuple[str, int], int] | None) -> tuple[int, int]:
    """How many objects and samples the means are over: those of the session, with or without a row."""
    if every is None:
        return len(objects), len(samples)
    unseen = [count for sample, count in every.items() if sample not in samples]
    return len(objects) + sum(unseen), len(samples) + len(unseen)
