"""The scoring of cells in images: match cells, compute AP per image, average over images."""

from __future__ import annotations

import math
from typing import Any, Dict, List, Tuple

import numpy as np

from ...files.problems import inflect, name_list, quantity
from ...masks.backend import backend
from ...masks.overlaps import LabelMap, LabelPairs, sum_by_label
from ...masks.restoration import do_waver
from ...masks.stack import Array
from ..base.family import Values
from ..base.readings import read_blended, read_compressed, read_neighbours, read_rearranged
from ..base.suspicions import is_nearly_none, judge_blank
from ..base.units import Shapes, Unit, UnitAccumulator, count_by_image, unit_engine
from .files import MicroscopySubmission, read_truth
from .protocols import THRESHOLDS, MicroscopyProtocol

#: The columns of `image`: the numbers of true and predicted cells, whether any pixel is background, pairs of cells that
#: share a pixel, whether the true background is wide, and whether a single predicted cell covers most of it.
_IN_TRUTH, _PREDICTED, _TRUTH_BACKGROUND, _PREDICTED_BACKGROUND, _SHARING, _WIDE, _COVERED = range(7)
_COLUMNS = 7
#: The minimum share of a wide background, and the share of such images that cells must cover before the background
#: looks numbered.
_WIDE_SHARE, _NEARLY_ALL = 0.25, 0.9
#: The numbers of labels that suggest classes, such as cell and outline, instead of cells.
_FEW_LABELS = {1: "one label", 2: "2 labels"}
#: The highest label of 8-bit maps, and the minimum number of images that reach it.
_LAST_LABEL, _FEWEST = 255, 2


def count_image(truth: LabelMap, labels: Array) -> Dict[str, Array]:
    """Return the tables of an image."""
    tables = count_pairs(backend().count_label_pairs(truth, LabelMap(labels)))
    return {**tables, "waver": np.array([do_waver(labels)], np.int64)}


def count_pairs(pairs: LabelPairs) -> Dict[str, Array]:
    """Return the tables of an image that follow from the pixels that pairs of labels share.

    The script takes the assignment with the most matches. At an IoU of one half or more, a cell can have two partners
    only if each covers exactly half of it; such partners have no other, so each group has one match.
    """
    true, areas, rows = sum_by_label(pairs.truth, pairs.pixels)
    predicted, sizes, columns = sum_by_label(pairs.prediction, pairs.pixels)
    cells = (pairs.truth > 0) & (pairs.prediction > 0)
    rows, columns, shared = rows[cells], columns[cells], pairs.pixels[cells]
    ious = shared / (areas[rows] + sizes[columns] - shared)
    matches = []
    for threshold in THRESHOLDS.values():
        near = ious >= threshold
        partners = sum(np.count_nonzero(np.bincount(cells_of[near])) for cells_of in (rows, columns))
        matches.append(partners - np.count_nonzero(near))
    is_wide, is_covered = _judge_background(pairs)
    has_background = (true == 0).sum(), (predicted == 0).sum()
    counts = [np.count_nonzero(true), np.count_nonzero(predicted), *has_background, len(ious), is_wide, is_covered]
    return {"image": np.array(counts, np.int64), "matches": np.array(matches, np.int64)}


def _judge_background(pairs: LabelPairs) -> Tuple[bool, bool]:
    """Return whether an image has much true background, and whether a single predicted cell covers most of it."""
    is_background = pairs.truth == 0
    background = int(pairs.pixels[is_background].sum())
    is_wide = background > 0 and background >= _WIDE_SHARE * int(pairs.pixels.sum())
    largest = int(pairs.pixels[is_background & (pairs.prediction > 0)].max(initial=0))
    return is_wide, is_wide and 2 * largest > background


def list_mistakes(accumulator: UnitAccumulator[MicroscopyProtocol]) -> Tuple[Array, Array, Array]:
    """Return TP, FP and FN of each image (rows) at each threshold."""
    images, matches = accumulator.stack("image"), accumulator.stack("matches")
    truth, predicted = images[:, [_IN_TRUTH]], images[:, [_PREDICTED]]
    if accumulator.protocol.as_script:
        truth = truth + images[:, [_TRUTH_BACKGROUND]] - 1
        predicted = predicted + images[:, [_PREDICTED_BACKGROUND]] - 1
        matches = np.where(predicted > 0, matches, 0)
    return matches, predicted - matches, truth - matches


def _measure_images(accumulator: UnitAccumulator[MicroscopyProtocol]) -> Array:
    """Return AP of each image (rows) at each threshold; NaN if it is undefined."""
    kind = np.float32 if accumulator.protocol.as_script else np.float64
    hits, surplus, missed = list_mistakes(accumulator)
    with np.errstate(divide="ignore", invalid="ignore"):
        precisions: Array = hits.astype(kind) / (hits + surplus + missed).astype(kind)
    return precisions


def _tabulate(_unit: Unit, truth: LabelMap, labels: Array, _protocol: MicroscopyProtocol) -> Dict[str, Array]:
    return count_image(truth, labels)


def _name_values(numbers: Array) -> Values:
    values = map(float, numbers)
    return {metric: value if math.isfinite(value) else None for metric, value in zip(THRESHOLDS, values)}


def _compute_metrics(accumulator: UnitAccumulator[MicroscopyProtocol]) -> Values:
    """Return the means over images with a value, or over all images as in the script."""
    precisions = _measure_images(accumulator)
    if not accumulator.protocol.as_script:
        precisions = precisions[np.isfinite(precisions[:, 0])]
    return _name_values(precisions.mean(axis=0)) if len(precisions) else dict.fromkeys(THRESHOLDS)


def _tables(accumulator: UnitAccumulator[MicroscopyProtocol]) -> Dict[str, List[Dict[str, Any]]]:
    """Return a row per image: AP, and the correct, surplus and missed cells at the lowest threshold."""
    mistakes = np.stack([table[:, 0] for table in list_mistakes(accumulator)], axis=1).tolist()
    return {
        "images": [
            {"name": name, **_name_values(row), **dict(zip(("TP", "FP", "FN"), counts))}
            for name, row, counts in zip(accumulator.names, _measure_images(accumulator), mistakes)
        ]
    }


def _shapes(_protocol: MicroscopyProtocol, _facts: Dict[str, Any]) -> Shapes:
    """Return the shapes of an image's counts."""
    return {"image": (_COLUMNS,), "matches": (len(THRESHOLDS),), "waver": (1,)}


def _suspect(accumulator: UnitAccumulator[MicroscopyProtocol]) -> List[str]:
    """Return suspicions about all images together."""
    images = accumulator.stack("image")
    totals = images.sum(axis=0)
    if not totals[_IN_TRUTH]:
        return []
    if not totals[_PREDICTED]:
        return ["no image has a cell: check that cells are numbered from 1"]
    if not totals[_SHARING]:
        return ["no cell overlaps a prediction: check which image each belongs to"]
    labels = int(images[:, _PREDICTED].max())
    if totals[_IN_TRUTH] > labels * labels * len(images) and labels in _FEW_LABELS:
        return [f"no image has more than {_FEW_LABELS[labels]}: check that each cell has its own number"]
    if not totals[_PREDICTED_BACKGROUND] and 2 * totals[_TRUTH_BACKGROUND] > len(images):
        return ["no image has background, so each has one cell too many: write 0 where there is no cell"]
    wavering = sum(int(unit.tables["waver"][0]) for unit in accumulator.complete_counts() if "waver" in unit.tables)
    if 2 * wavering > len(images):
        cause = "most labels lie scattered in specks beside similar labels, as after JPEG compression or interpolation"
        scope = f"in {wavering:,} of {quantity(len(images), 'image')}"
        return [f"{scope}, {cause}: write labels as PNG at once, and resize them by nearest neighbour"]
    covered, wide = int(totals[_COVERED]), int(totals[_WIDE])
    if covered and covered >= _NEARLY_ALL * wide:
        scope = quantity(covered, "image", wide)
        return [f"in {scope} a single cell covers most of the background: write 0 where there is no cell"]
    crowded = images[images[:, _IN_TRUTH] > _LAST_LABEL]
    if len(crowded) >= _FEWEST and (crowded[:, _PREDICTED] == _LAST_LABEL).all():
        scope = f"all {len(crowded):,} images with more than {_LAST_LABEL} cells have exactly {_LAST_LABEL} labels"
        return [f"{scope}: write 16-bit maps"]
    matched = int(accumulator.stack("matches")[:, 0].sum())
    if is_nearly_none(matched, totals[_IN_TRUTH]):
        few = f"only {matched:,}" if matched else "none"
        remedy = "check which image each belongs to, and that rows and columns are not exchanged"
        return [
            f"{few} of {quantity(int(totals[_IN_TRUTH]), 'cell')} {inflect(matched, 'is', 'are')} matched: {remedy}"
        ]
    names = [unit.name for unit in accumulator.complete_counts()]
    flags = images[:, _IN_TRUTH] > 0, images[:, _PREDICTED] == 0
    return judge_blank("image", names, flags, "cells", "no predicted cell")


def _note_undefined(accumulator: UnitAccumulator[MicroscopyProtocol]) -> List[str]:
    """Return a note about the images that no mean includes."""
    images, notes = accumulator.stack("image"), []
    as_script = accumulator.protocol.as_script

    def note(flags: Array, lacking: str, fate: str) -> None:
        chosen = [unit for unit, flag in zip(accumulator.names, flags.tolist()) if flag]
        if chosen:
            be = inflect(len(chosen), "is", "are")
            notes.append(f"{quantity(len(chosen), 'image')} {be} without {lacking}{fate}: {name_list(chosen)}")

    fate = ", which leaves AP undefined" if as_script else ", so not averaged"
    note(images[:, _IN_TRUTH] + images[:, _PREDICTED] == 0, "cells in truth and prediction", fate)
    if as_script:
        full = (images[:, [_TRUTH_BACKGROUND, _PREDICTED_BACKGROUND]] == 0).any(axis=1)
        note(full, "background in truth or prediction", ", where the script counts one cell too few")
    return notes


ENGINE = unit_engine(
    read_truth,
    MicroscopySubmission,
    count_by_image(_tabulate),
    _compute_metrics,
    _tables,
    _shapes,
    _suspect,
    facts={},
    notes=_note_undefined,
    added=("waver",),
    readings=lambda _protocol: [
        read_blended("image", "maps"),
        *read_compressed("image", "maps"),
        *read_rearranged("image", "maps"),
        *read_neighbours("maps"),
    ],
)
