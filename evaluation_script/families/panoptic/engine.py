"""How panoptic segmentation is scored: PQ of images, VPQ and STQ of videos."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Dict, List

import numpy as np

from ...masks.stack import Array
from ..base.family import Values, mean_of_all
from ..base.reports import judge_matches, judge_pixels
from ..base.truth import DEFAULT_SPLIT, AnnotationFile
from ..base.units import Shapes, UnitAccumulator, UnitCounts, unit_engine
from .counting import IOU, MATCHED, MISSED, SURPLUS, count, sum_confusion, union_of
from .files import open_submission, read_coded_truth, read_truth
from .protocols import CODED_LAYOUTS, GROUPS, QUALITIES, PanopticProtocol


def _qualities(counts: Array) -> Array:
    """Return PQ, SQ and RQ (rows) of each category (columns); NaN where it has no segment on either side."""
    matched = counts[:, MATCHED]
    total = matched + counts[:, SURPLUS] / 2 + counts[:, MISSED] / 2
    present = np.where(total > 0, total, np.nan)
    return np.stack(
        (counts[:, IOU] / present, counts[:, IOU] / np.maximum(matched, 1) + 0 * present, matched / present)
    )


def _averages(counts: Array, things: List[bool]) -> Dict[str, Values]:
    """Return the means of PQ, SQ and RQ over each group of categories; None where none of them has a segment."""
    table, flags = _qualities(counts), np.array(things, bool)
    means: Dict[str, Values] = {}
    for group, members in zip(GROUPS, (np.ones_like(flags), flags, ~flags)):
        of_group = table[:, members & ~np.isnan(table[0])]
        values = [float(row.mean()) if row.size else None for row in of_group]
        means[group] = dict(zip(QUALITIES, values))
    return means


def values(accumulator: UnitAccumulator[PanopticProtocol]) -> Values:
    """Return the benchmark's metrics of all units."""
    protocol, things = accumulator.protocol, [entry[2] for entry in accumulator.facts["categories"]]
    if not protocol.windows:
        return _tube_quality(accumulator.complete_counts(), protocol, len(things))
    totals = accumulator.stack("quality").sum(axis=0)
    by_window = [_averages(counts, things) for counts in totals]
    if not protocol.video:
        return {f"{quality}{group}": by_window[0][group][quality] for group in GROUPS for quality in QUALITIES}
    metrics: Values = {f"VPQ{group}": mean_of_all([window[group]["PQ"] for window in by_window]) for group in GROUPS}
    for frames, window in zip(protocol.windows, by_window):
        metrics[f"VPQ{frames}"] = window[""]["PQ"]
    return {**metrics, **_tube_quality(accumulator.complete_counts(), protocol, len(things))}


def _tube_quality(videos: List[UnitCounts], protocol: PanopticProtocol, void: int) -> Values:
    """Return STQ, and its parts: how well pixels are classified, and how well tubes are kept apart."""
    confusion = sum_confusion(videos, void)
    union = union_of(confusion, protocol)
    present = union > 0
    if not present.any():
        return {"STQ": None, "AQ": None, "IoU": None}
    iou = float((np.diagonal(confusion)[present] / union[present]).sum() / np.count_nonzero(present))
    quality, tubes = np.sum([counts.tables["association"] for counts in videos], axis=0).tolist()
    association = quality / tubes if tubes else 0.0
    return {"STQ": float(np.sqrt(association * iou)), "AQ": association, "IoU": iou}


def tables(accumulator: UnitAccumulator[PanopticProtocol]) -> Dict[str, List[Dict[str, Any]]]:
    """Return a row for each category, for windows of the first length; without windows also one for each video."""
    if not accumulator.protocol.windows:
        return _tables_of_tubes(accumulator)
    totals = accumulator.stack("quality").sum(axis=0)[0]
    name = "VPQ1" if accumulator.protocol.video else "PQ"
    rows = [
        {
            "id": category[0],
            "name": category[1],
            **{key: None if np.isnan(value) else float(value) for key, value in zip((name, "SQ", "RQ"), column)},
            "matched": int(counts[MATCHED]), "surplus": int(counts[SURPLUS]), "missed": int(counts[MISSED]),
        }
        for category, column, counts in zip(accumulator.facts["categories"], _qualities(totals).T, totals)
    ]  # fmt: skip
    return {"categories": rows}


def _tables_of_tubes(accumulator: UnitAccumulator[PanopticProtocol]) -> Dict[str, List[Dict[str, Any]]]:
    """Return the IoU of each category that occurs, and STQ and its parts of each video."""
    protocol, categories, videos = accumulator.protocol, accumulator.facts["categories"], accumulator.complete_counts()
    confusion = sum_confusion(videos, len(categories))
    union = union_of(confusion, protocol)
    return {
        "categories": [
            {"id": number, "name": name, "IoU": float(confusion[index, index] / union[index])}
            for index, (number, name, _) in enumerate(categories)
            if union[index]
        ],
        "sequences": [
            {
                "sequence": video.name,
                **_tube_quality([video], protocol, len(categories)),
                "tubes": int(video.tables["association"][1]),
            }
            for video in videos
        ],
    }


def _shapes(protocol: PanopticProtocol, facts: Dict[str, Any]) -> Shapes:
    """Return the shapes of what is counted in an image or a video."""
    quality: Shapes = {"quality": (len(protocol.windows), len(facts["categories"]), 4)}
    return {**quality, "cells": (2, "n"), "association": (2,)} if protocol.video else quality


def _oddities(accumulator: UnitAccumulator[PanopticProtocol]) -> List[str]:
    """Return what is odd about the segments of all units."""
    if not accumulator.protocol.windows:
        void = len(accumulator.facts["categories"])
        return judge_pixels(sum_confusion(accumulator.complete_counts(), void)[:-1, :-1])
    totals = accumulator.stack("quality").sum(axis=(0, 2))[0]
    matched, surplus, missed = (int(totals[field]) for field in (MATCHED, SURPLUS, MISSED))
    return judge_matches("segment", matched + missed, matched + surplus, matched)


_FACTS = {"categories": (int, str, bool)}
ENGINE = replace(
    unit_engine(read_truth, open_submission, count, values, tables, _shapes, _oddities, facts=_FACTS),
    read_published=lambda path, subset, layout: AnnotationFile({
        subset or DEFAULT_SPLIT: read_coded_truth(path, layout, subset)
        if layout in CODED_LAYOUTS
        else read_truth(path, subset)
    }),
)  # fmt: skip
