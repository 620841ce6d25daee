"""The scoring of panoptic segmentation: PQ of images, VPQ and STQ of videos."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Dict, List

import numpy as np

from ...doctor import Examination, Sample, choose_frames, fit_classes
from ...files.problems import Problems
from ...masks.stack import Array
from ...values.arithmetic import mean
from ..base.family import Values, mean_of_all
from ..base.truth import DEFAULT_SPLIT, AnnotationFile
from ..base.units import Shapes, UnitAccumulator, UnitCounts, unit_engine
from .counting import IOU, MATCHED, MISSED, SURPLUS, UNASSOCIATED, count, sum_confusion, union_of
from .files import AnySubmission, open_submission, read_coded_truth, read_truth
from .protocols import CODED_LAYOUTS, GROUPS, QUALITIES, PanopticProtocol


def _qualities(counts: Array) -> Array:
    """Return PQ, SQ and RQ (rows) of each category (columns); NaN where it has no segment on either side."""
    matched = counts[:, MATCHED]
    total = matched + counts[:, SURPLUS] / 2 + counts[:, MISSED] / 2
    present = np.where(total > 0, total, np.nan)
    return np.stack(
        (counts[:, IOU] / present, counts[:, IOU] / np.maximum(matched, 1) + 0 * present, matched / present)
    )


def _average_groups(counts: Array, things: List[bool]) -> Dict[str, Values]:
    """Return the means of PQ, SQ and RQ over each group of categories; None for groups without a segment."""
    table, flags = _qualities(counts), np.array(things, bool)
    means: Dict[str, Values] = {}
    for group, members in zip(GROUPS, (np.ones_like(flags), flags, ~flags)):
        of_group = table[:, members & ~np.isnan(table[0])]
        values = [mean(row) if row.size else None for row in of_group]
        means[group] = dict(zip(QUALITIES, values))
    return means


def values(accumulator: UnitAccumulator[PanopticProtocol]) -> Values:
    """Return the benchmark's metrics of all units."""
    protocol, things = accumulator.protocol, [entry[2] for entry in accumulator.facts["categories"]]
    if not protocol.windows:
        return _tube_quality(accumulator.complete_counts(), protocol, len(things))
    totals = accumulator.stack("quality").sum(axis=0)
    by_window = [_average_groups(counts, things) for counts in totals]
    if not protocol.video:
        return {f"{quality}{group}": by_window[0][group][quality] for group in GROUPS for quality in QUALITIES}
    metrics: Values = {f"VPQ{group}": mean_of_all([window[group]["PQ"] for window in by_window]) for group in GROUPS}
    for frames, window in zip(protocol.windows, by_window):
        metrics[f"VPQ{frames}"] = window[""]["PQ"]
    return {**metrics, **_tube_quality(accumulator.complete_counts(), protocol, len(things))}


def _tube_quality(videos: List[UnitCounts], protocol: PanopticProtocol, void: int) -> Values:
    """Return STQ and its parts: segmentation quality and association quality."""
    confusion = sum_confusion(videos, void)
    union = union_of(confusion, protocol)
    present = union > 0
    if not present.any():
        return {"STQ": None, "AQ": None, "IoU": None}
    iou = mean(np.diagonal(confusion)[present] / union[present])
    quality, tubes = np.sum([counts.tables["association"] for counts in videos], axis=0).tolist()
    association = quality / tubes if tubes else 0.0
    return {"STQ": math.sqrt(association * iou), "AQ": association, "IoU": iou}


def tables(accumulator: UnitAccumulator[PanopticProtocol]) -> Dict[str, List[Dict[str, Any]]]:
    """Return a row per category for windows of the first length; without windows also a row per video."""
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
    """Return the IoU of each occurring category, and STQ and its parts per video."""
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
    """Return the shapes of the counts of an image or a video."""
    quality: Shapes = {"quality": (len(protocol.windows), len(facts["categories"]), 4)}
    if not protocol.video:
        return quality
    unassociated = (len(facts["categories"]), len(UNASSOCIATED))
    return {**quality, "cells": (2, "n"), "association": (2,), "unassociated": unassociated}


def _examine(submission: AnySubmission) -> Examination:
    """Return a submission as the doctor examines it: maps of categories, or of colours that hold them."""
    units, protocol = submission.truth.units, submission.protocol
    ids = np.array([*(category[0] for category in submission.truth.facts["categories"]), -1])

    def sample(number: int) -> List[Sample]:
        unit, frames = units[number], units[number].load()
        chosen = choose_frames(len(frames))
        predictions = submission.frames(unit.name, frames, Problems())
        if len(predictions) != len(frames) or any(prediction is None for prediction in predictions):
            return []
        pairs = [(frames[index], prediction) for index in chosen if (prediction := predictions[index]) is not None]
        truth = [ids[submission.map_truth(frame)] for frame, _ in pairs]
        drawn = [submission.map_labels(prediction, frame.size, ids) for frame, prediction in pairs]
        return [Sample(number, unit.name, truth, drawn, chosen, len(frames))]

    traits = {"pictures", "places", "filled", "labels"}
    traits |= {"frames"} if protocol.video else {"units"}
    traits |= {"colours", "units"} if protocol.classes else set()
    return Examination(
        submission.truth.item_names, sample, frozenset(traits), submission.noun, "maps", "categories", fit_classes,
        agreement="the mean IoU of categories", label_bits=8 if protocol.classes else 64,
    )  # fmt: skip


_FACTS = {"categories": (int, str, bool)}
ENGINE = replace(
    unit_engine(
        read_truth, open_submission, count, values, tables, _shapes, facts=_FACTS, added=("unassociated",),
        examine=_examine,
    ),
    read_published=lambda path, subset, layout: AnnotationFile({
        subset or DEFAULT_SPLIT: read_coded_truth(path, layout, subset)
        if layout in CODED_LAYOUTS
        else read_truth(path, subset)
    }),
)  # fmt: skip
