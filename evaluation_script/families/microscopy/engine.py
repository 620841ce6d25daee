"""The scoring of cells in images: match cells, compute AP per image, average over images."""

from __future__ import annotations

import math
from functools import partial
from typing import Any, Dict, List, Tuple

import numpy as np

from ...doctor import Examination, Sample, fit_segments
from ...files.problems import Problems, inflect, name_list, quantity
from ...masks.backend import backend
from ...masks.overlaps import LabelMap, LabelPairs, sum_by_label
from ...masks.stack import Array
from ..base.family import Values
from ..base.units import Shapes, Unit, UnitAccumulator, count_by_image, score_samples, unit_engine
from .files import MicroscopySubmission, read_truth
from .protocols import THRESHOLDS, MicroscopyProtocol

#: The columns of `image`: the numbers of true and predicted cells, and whether any pixel is background.
_IN_TRUTH, _PREDICTED, _TRUTH_BACKGROUND, _PREDICTED_BACKGROUND = range(4)
_COLUMNS = 4


def count_image(truth: LabelMap, labels: Array) -> Dict[str, Array]:
    """Return the tables of an image."""
    return count_pairs(backend().count_label_pairs(truth, LabelMap(labels)))


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
    counts = [np.count_nonzero(true), np.count_nonzero(predicted), (true == 0).sum(), (predicted == 0).sum()]
    return {"image": np.array(counts, np.int64), "matches": np.array(matches, np.int64)}


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
    return {"image": (_COLUMNS,), "matches": (len(THRESHOLDS),)}


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


def _examine(submission: MicroscopySubmission) -> Examination:
    """Return a submission as the doctor examines it."""
    units, protocol = submission.truth.units, submission.protocol

    def sample(number: int) -> List[Sample]:
        unit, (frame,) = units[number], units[number].load()
        prediction = submission.read(unit.name, frame.size, Problems())
        if prediction is None:
            return []
        truth = frame.read()
        return [Sample(number, unit.name, [truth.labels_of(truth.numbers)], [prediction])]

    def tabulate(sample: Sample) -> Dict[str, Array]:
        truth, prediction = (np.ascontiguousarray(side[0], np.int64) for side in (sample.truth, sample.prediction))
        return count_image(LabelMap(truth), prediction)

    return Examination(
        submission.truth.item_names, sample, frozenset({"pictures", "places", "units", "masks", "segments"}),
        submission.noun, "maps", fit=fit_segments,
        rescore=partial(score_samples, protocol, {}, _compute_metrics, tabulate), metric=protocol.metrics[0],
        agreement="the mean IoU of true cells",
    )  # fmt: skip


ENGINE = unit_engine(
    read_truth,
    MicroscopySubmission,
    count_by_image(_tabulate),
    _compute_metrics,
    _tables,
    _shapes,
    facts={},
    notes=_note_undefined,
    examine=_examine,
)
