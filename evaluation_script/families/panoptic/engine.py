"""The scoring of panoptic segmentation: PQ of images, VPQ and STQ of videos."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Dict, List

import numpy as np

from ...masks.stack import Array
from ...values.arithmetic import add, mean
from ..base.family import Values, mean_of_all
from ..base.image_order import judge_stacked_order
from ..base.readings import (
    FirstMaps,
    Reading,
    read_blended,
    read_compressed,
    read_neighbours,
    read_padded,
    read_rearranged,
    switch,
)
from ..base.suspicions import (
    judge_exchanged_classes,
    judge_matches,
    judge_one_class,
    judge_pixels,
    judge_uniform,
    judge_unlabelled,
)
from ..base.truth import DEFAULT_SPLIT, AnnotationFile
from ..base.units import Shapes, UnitAccumulator, UnitCounts, unit_engine
from .counting import IOU, MATCHED, MISSED, SURPLUS, UNASSOCIATED, count, sum_confusion, union_of
from .files import SAVE_RGB, open_submission, read_coded_truth, read_truth
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
        return {**quality, "sizes": (2, len(facts["categories"]))}
    unassociated = (len(facts["categories"]), len(UNASSOCIATED))
    return {**quality, "cells": (2, "n"), "association": (2,), "unassociated": unassociated}


def _judge_tubes(accumulator: UnitAccumulator[PanopticProtocol]) -> List[str]:
    """Return a suspicion if no object is tracked, so that STQ is 0 even with the right classes."""
    quality, tubes = accumulator.stack("association").sum(axis=0).tolist()
    if quality or not tubes:
        return []
    return ["no predicted object shares a pixel with one of the truth, so AQ and STQ are 0: check classes and numbers"]


#: The slips of numbers: their loss, the share of AQ above which it is no error of a method, the cause and the remedy.
_NUMBERINGS = (
    ("swapped", 0.6, "changes of numbers between frames", "give an object the same number in all frames"),
    ("merged", 0.4, "numbers that several objects have in one frame", "give each object a number of its own"),
)


def _judge_numbers(accumulator: UnitAccumulator[PanopticProtocol]) -> List[str]:
    """Return a suspicion if objects have a new number in most frames, or share their numbers."""
    videos = [counts for counts in accumulator.complete_counts() if "unassociated" in counts.tables]
    tubes = math.fsum(float(counts.tables["association"][1]) for counts in videos)
    for name, share, cause, remedy in _NUMBERINGS:
        column = UNASSOCIATED.index(name)
        lost = math.fsum(add(counts.tables["unassociated"][:, column]) for counts in videos)
        if lost > share * tubes:
            return [f"{cause} lower AQ by {lost / tubes:.2f}: {remedy}"]
    return []


#: The RQ of all segments together above which maps belong to their images.
_MOST_FOUND = 0.7


#: The minimum number of images whose classes are compared by their sizes alone, and of those that show each pair of
#: classes, with the minimum ratio of their sizes.
_FEWEST_IMAGES, _FEWEST_OF_PAIR, _ALIKE = 8, 2, 0.7


def _judge_classes(accumulator: UnitAccumulator[PanopticProtocol]) -> List[str]:
    """Return a suspicion if classes stand for each other: by the pixels of videos, or by the sizes in images."""
    ids = [category[0] for category in accumulator.facts["categories"]]
    if accumulator.protocol.video:
        shared = sum_confusion(accumulator.complete_counts(), len(ids))[:-1]
        return judge_exchanged_classes(shared[:, :-1], shared.sum(axis=1), ids, "be right")
    sizes = accumulator.stack("sizes").astype(np.int64)
    if len(sizes) < _FEWEST_IMAGES:
        return []
    shared = np.zeros((len(ids), len(ids)), np.int64)
    for row in np.flatnonzero(sizes[:, 0].any(axis=0)).tolist():
        smaller, larger = (side(sizes[:, 0, row, None], sizes[:, 1]) for side in (np.minimum, np.maximum))
        alike = np.where(smaller >= _ALIKE * larger, smaller, 0)
        shared[row] = np.where(np.count_nonzero(alike, axis=0) >= _FEWEST_OF_PAIR, alike.sum(axis=0), 0)
    return judge_exchanged_classes(shared, sizes[:, 0].sum(axis=0), ids, "belong to a class of about the true size")


def _suspect(accumulator: UnitAccumulator[PanopticProtocol]) -> List[str]:
    """Return warnings about the segments of all units."""
    if not accumulator.protocol.windows:
        void = len(accumulator.facts["categories"])
        confusion = sum_confusion(accumulator.complete_counts(), void)[:-1]
        labelled, unlabelled = confusion[:, :-1], confusion[:, -1].sum()
        without = judge_unlabelled("pixel", labelled.sum(), unlabelled)
        coded = judge_pixels(labelled) or _judge_uniform(accumulator)
        return without or [*coded, *(_judge_tubes(accumulator) or _judge_numbers(accumulator))]
    by_category = accumulator.stack("quality").sum(axis=0)[0]
    totals = by_category.sum(axis=0)
    matched, surplus, missed = (int(totals[field]) for field in (MATCHED, SURPLUS, MISSED))
    if 2 * matched < _MOST_FOUND * (2 * matched + surplus + missed):
        exchanged = [] if accumulator.protocol.video else judge_stacked_order(accumulator, "sizes")
        exchanged = exchanged or _judge_classes(accumulator)
        if exchanged:
            return exchanged
    unmatched = judge_matches("segment", matched + missed, matched + surplus, matched)
    in_truth, in_prediction = (by_category[:, [MATCHED, field]].sum(1) for field in (MISSED, SURPLUS))
    uniform = unmatched or judge_one_class("segment", in_truth, in_prediction) or _judge_uniform(accumulator)
    return uniform or _judge_numbers(accumulator)


def _judge_uniform(accumulator: UnitAccumulator[PanopticProtocol]) -> List[str]:
    """Return a suspicion if many images or videos have segments of one class alone."""
    protocol, units = accumulator.protocol, accumulator.complete_counts()
    if protocol.windows:
        segments = accumulator.stack("quality")[:, 0]
        sides = [segments[..., [MATCHED, column]].any(axis=-1) for column in (MISSED, SURPLUS)]
    else:
        void = len(accumulator.facts["categories"])
        confusions = np.stack([sum_confusion([unit], void)[:-1, :-1] for unit in units])
        sides = [confusions.any(axis=axis) for axis in (2, 1)]
    true, predicted = (np.count_nonzero(side, axis=1) for side in sides)
    return judge_uniform("video" if protocol.video else "image", [unit.name for unit in units], true, predicted)


_EXCHANGED = Reading(
    "channels",
    "red and blue look swapped",
    f"{SAVE_RGB[0].upper()}{SAVE_RGB[1:]}",
    "sequence",
    switch("exchanges_channels"),
    fits=FirstMaps.are_related,
)


#: The minimum ratio of the scores of mirrored maps: large areas partly match even then.
_TIMES_MIRRORED = 1.5


_NEIGHBOURS = read_neighbours(
    "maps", 2.0, subject="each entry", remedy="Check the pairs of image_id and file_name", method="frames"
)


def _list_readings(protocol: PanopticProtocol) -> List[Reading]:
    """Return the other readings of a unit; JSON lists reject unlisted ids, so none has swapped channels."""
    if protocol.classes or protocol.video:
        from ..base.frame_order import read_orders  # for videos alone
    if protocol.classes:
        padded, rearranged = read_padded("sequence", "maps"), read_rearranged("sequence", "maps", _TIMES_MIRRORED)
        restored = read_blended("sequence", "maps"), *read_compressed("sequence", "maps")
        return [_EXCHANGED, padded, *restored, *rearranged, *read_orders("sequence")]
    noun = "video" if protocol.video else "image"
    neighbours = read_orders(noun) if protocol.video else _NEIGHBOURS
    return [read_padded(noun, "maps"), *read_rearranged(noun, "maps", _TIMES_MIRRORED), *neighbours]


_FACTS = {"categories": (int, str, bool)}
ENGINE = replace(
    unit_engine(
        read_truth, open_submission, count, values, tables, _shapes, _suspect, facts=_FACTS, readings=_list_readings,
        added=("unassociated", "sizes"),
    ),
    read_published=lambda path, subset, layout: AnnotationFile({
        subset or DEFAULT_SPLIT: read_coded_truth(path, layout, subset)
        if layout in CODED_LAYOUTS
        else read_truth(path, subset)
    }),
)  # fmt: skip
