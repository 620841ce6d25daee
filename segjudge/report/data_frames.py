"""Tables of scores as pandas has them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from segjudge.evaluation_script.families.base.reports import Report, Row
from segjudge.evaluation_script.families.instances.metrics import RECALLS, InstanceAccumulator, InstanceReport
from segjudge.evaluation_script.families.instances.protocols import THRESHOLDS
from segjudge.evaluation_script.families.sequences.metrics import SequenceReport
from segjudge.evaluation_script.masks.stack import Array
from segjudge.system.errors import UsageError, install_line

if TYPE_CHECKING:
    from pandas import DataFrame

#: A table by columns of one length.
Columns = dict[str, Any]
#: Columns of names, which repeat.
NAMES = ("split", "sequence", "object", "frame", "category")
#: The ends of no interval.
UNKNOWN = (math.nan, math.nan)


def metrics(report: Report) -> Columns:
    """Return each metric with its standard error and Student's t interval at 95 %."""
    errors, ends, names = report.errors(), report.intervals(), list(report.values)
    return {
        "metric": names,
        "value": [as_number(report.values[name]) for name in names],
        "error": [as_number(errors.get(name)) for name in names],
        "low": [ends.get(name, UNKNOWN)[0] for name in names],
        "high": [ends.get(name, UNKNOWN)[1] for name in names],
    }


def frames(report: Report) -> Columns:
    """Return J and F of each scored object in each frame that counts."""
    scores = report.scores if isinstance(report, SequenceReport) else []
    lengths = [len(score.frames) for score in scores]
    return {
        "sequence": np.repeat([score.sequence for score in scores], lengths),
        "object": np.repeat([score.name for score in scores], lengths),
        "frame": [frame for score in scores for frame in score.frames],
        "j": np.concatenate([np.zeros(0), *(score.j for score in scores)]),
        "f": np.concatenate([np.zeros(0), *(score.f for score in scores)]),
    }


def images(report: Report) -> Columns:
    """Return how many instances each image has, and its detections, at an IoU of one half and whatever their scores."""
    accumulator = _instances(report)
    counts, categories = accumulator.join_parts(), len(accumulator.categories)
    truth = counts.truth[counts.truth["category"] < categories]
    found = counts.detections[counts.detections["category"] < categories]
    counted = found[found["ignored"] & 1 == 0]

    def summed(index: Array, numbers: Array) -> Array:
        return np.bincount(index, numbers, len(accumulator.images)).astype(int)

    instances = summed(truth["image"], truth["counted"][:, 0])
    matched = summed(counted["image"], counted["matched"] & 1)
    return {
        "image": accumulator.images,
        "instances": instances,
        "matched": matched,
        "missed": instances - matched,
        "false": summed(counted["image"], 1 - (counted["matched"] & 1)),
        "dropped": summed(counts.images["image"], counts.images["dropped"]),
    }


def curves(report: Report) -> Columns:
    """Return the precision of each category at each IoU and recall, over all sizes and up to the cap."""
    accumulator = _instances(report)
    names = [category.name for category in accumulator.categories]
    last = len(accumulator.protocol.detections) - 1
    drawn = accumulator.rank_detections().curves([(0, last)])
    known = np.flatnonzero(drawn.recall[0, : len(names), 0, last] > -1)
    precision = drawn.precision[:, :, known, 0, last].transpose(2, 0, 1)
    categories, thresholds, recalls = precision.shape
    return {
        "category": np.repeat([names[index] for index in known], thresholds * recalls),
        "iou": np.tile(np.repeat(np.round(THRESHOLDS, 2), recalls), categories),
        "recall": np.tile(np.round(RECALLS, 2), categories * thresholds),
        "precision": precision.ravel(),
    }


def _instances(report: Report) -> InstanceAccumulator:
    if not isinstance(report.counts, InstanceAccumulator):
        raise TypeError(f"{report.split} has no instances")
    return report.counts


#: Beside the tables of a report's rows, those that are made of its counts.
MADE: Mapping[type[Report], Mapping[str, Callable[[Report], Columns]]] = {
    SequenceReport: {"frames": frames},
    InstanceReport: {"images": images, "curves": curves},
}


def data_frame(reports: list[Report], name: str) -> DataFrame:
    """Return a table of all splits; raises UsageError where there is none of this name."""
    tables = []
    for report in reports:
        rows, made = report.rows(), {**MADE.get(type(report), {}), "metrics": metrics}
        if name in made:
            tables.append(frame_of({"split": report.split, **made[name](report)}))
        elif name in rows:
            tables.append(frame_of(rows[name]))
        else:
            raise UsageError(f"{report.protocol.name} has no table {name}, only {', '.join([*rows, *made])}")
    import pandas as pd

    joined = pd.concat(tables, ignore_index=True)
    return joined.astype({column: "category" for column in joined if column in NAMES})


def frame_of(content: Columns | list[Row]) -> DataFrame:
    """Return columns or rows as a table of pandas; None becomes NaN."""
    if isinstance(content, list):
        content = [{key: as_number(value) for key, value in row.items()} for row in content]
    try:
        import pandas as pd
    except ImportError:
        raise UsageError(f"tables need pandas: {install_line('tables')}") from None
    return pd.DataFrame(content)


def as_number(value: Any) -> Any:
    """Return a value as pandas has it: NaN for None."""
    return math.nan if value is None else value
