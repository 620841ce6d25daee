"""Tables and files of instance scores: images, curves, CSV, and the Places Challenge's output."""

from __future__ import annotations

import numpy as np

from segjudge.evaluation_script.families.base.reports import Report
from segjudge.evaluation_script.families.instances.metrics import RECALLS, InstanceAccumulator
from segjudge.evaluation_script.families.instances.protocols import THRESHOLDS
from segjudge.evaluation_script.masks.stack import Array
from segjudge.families.base.tools import Columns
from segjudge.report.tables import format_units

#: Columns of the file on categories.
_METRICS = ("AP", "AP50", "AP75", "AR")


def list_images(report: Report) -> Columns:
    """Return the instances and detections of each image at an IoU of 0.5, with any score."""
    accumulator = _counts_of(report)
    counts, categories = accumulator.join_parts(), len(accumulator.categories)
    truth = counts.truth[counts.truth["category"] < categories]
    detections = counts.detections[counts.detections["category"] < categories]
    detections = detections[detections["ignored"] & 1 == 0]

    def sum_by_image(index: Array, numbers: Array) -> Array:
        return np.bincount(index, numbers, len(accumulator.images)).astype(int)

    instances = sum_by_image(truth["image"], truth["counted"][:, 0])
    matched = sum_by_image(detections["image"], detections["matched"] & 1)
    return {
        "image": accumulator.images,
        "instances": instances,
        "matched": matched,
        "missed": instances - matched,
        "false": sum_by_image(detections["image"], 1 - (detections["matched"] & 1)),
        "dropped": sum_by_image(counts.images["image"], counts.images["dropped"]),
    }


def list_curves(report: Report) -> Columns:
    """List the precision of each category at each IoU and recall, over all sizes and up to the cap."""
    accumulator = _counts_of(report)
    names = [category.name for category in accumulator.categories]
    last_cap = len(accumulator.protocol.detections) - 1
    curves = accumulator.rank_detections().curves([(0, last_cap)])
    shown_categories = np.flatnonzero(curves.recall[0, : len(names), 0, last_cap] > -1)
    precision = curves.precision[:, :, shown_categories, 0, last_cap].transpose(2, 0, 1)
    categories, thresholds, recalls = precision.shape
    return {
        "category": np.repeat([names[index] for index in shown_categories], thresholds * recalls),
        "iou": np.tile(np.repeat(np.round(THRESHOLDS, 2), recalls), categories),
        "recall": np.tile(np.round(RECALLS, 2), categories * thresholds),
        "precision": precision.ravel(),
    }


def _counts_of(report: Report) -> InstanceAccumulator:
    if not isinstance(report.counts, InstanceAccumulator):
        raise TypeError(f"{report.split} has no instances")
    return report.counts


def make_files(report: Report) -> dict[str, str]:
    protocol = _counts_of(report).protocol
    unit, text = format_units(report, protocol.metrics if protocol.streets else _METRICS)
    return {f"per-{unit}_results": text}


def format_places(report: Report) -> str:
    """Return the output of the Places Challenge 2017 script."""
    values, protocol = report.values, _counts_of(report).protocol
    lines = [f"* MeanAP: {_or_nan(values['AP'])}", "* Performance by class:"]
    lines += [f"{row['name']}, AP: {_or_nan(row['AP'])}" for row in report.rows()["categories"]]
    lines.append("* Performance at different thresholds:")
    caps = () if protocol.streets else protocol.detections  # Cityscapes' script has no cap
    last_cap = caps[-1] if caps else 0
    all_ious, sizes = "0.50:0.95", ("small", "medium", "large")
    printed_rows = [
        ("AP", all_ious, "all", last_cap),
        ("AP50", "0.50", "all", last_cap),
        ("AP75", "0.75", "all", last_cap),
    ]
    printed_rows += [(f"AP{area[0]}", all_ious, area, last_cap) for area in sizes]
    printed_rows += [("AR", all_ious, "all", last_cap), ("AR50", "0.50", "all", last_cap)]
    printed_rows += [("AR75", "0.75", "all", last_cap)]
    printed_rows += [(f"AR@{cap}", all_ious, "all", cap) for cap in caps]
    printed_rows += [(f"AR{protocol.recall_of(area[0])}", all_ious, area, last_cap) for area in sizes]
    for name, iou, area, cap in printed_rows:
        if name not in values:  # keypoints lack some metrics of masks
            continue
        kind, short = ("Average Precision", "(AP)") if name.startswith("AP") else ("Average Recall", "(AR)")
        value = -1.0 if values[name] is None else values[name]
        lines.append(
            f" {kind:<18} {short} @[ IoU={iou:<9} | area={area:>6s} | maxDets={cap or 'all':>3} ] = {value:0.3f}"
        )
    return "\n".join(lines)


def _or_nan(value: float | None) -> float:
    return float("nan") if value is None else value
