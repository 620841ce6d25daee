"""How cells in images are scored: AP of each image, then the mean over images."""

from __future__ import annotations

import math
from typing import Any, Dict, List

import numpy as np

from ...files.problems import Problems, name_list, quantity, verb
from ...masks.backend import backend
from ...masks.overlaps import LabelMap
from ...masks.stack import Array
from ..base.family import Values
from ..base.units import Shapes, Unit, UnitAccumulator, UnitCounts, unit_engine
from .counting import (
    COLUMNS,
    IN_TRUTH,
    PREDICTED,
    PREDICTED_BACKGROUND,
    SHARING,
    TRUTH_BACKGROUND,
    count_image,
    list_mistakes,
    measure_images,
)
from .files import MicroscopySubmission, read_truth
from .protocols import THRESHOLDS, MicroscopyProtocol


def _count(unit: Unit, submission: MicroscopySubmission) -> UnitCounts:
    """Count an image."""
    problems, (frame,) = Problems(), unit.load()
    labels = submission.read(unit.name, frame.size, problems)
    if labels is None:
        return UnitCounts(unit.name, {}, problems.first, problems.count)
    return UnitCounts(unit.name, count_image(backend().count_label_pairs(frame.read(), LabelMap(labels))))


def _name_values(numbers: Array) -> Values:
    values = map(float, numbers)
    return {metric: value if math.isfinite(value) else None for metric, value in zip(THRESHOLDS, values)}


def _values(accumulator: UnitAccumulator[MicroscopyProtocol]) -> Values:
    """Return the means over images; but for the script, over those that have a value."""
    precisions = measure_images(accumulator)
    if not accumulator.protocol.as_script:
        precisions = precisions[np.isfinite(precisions[:, 0])]
    return _name_values(precisions.mean(axis=0)) if len(precisions) else dict.fromkeys(THRESHOLDS)


def _tables(accumulator: UnitAccumulator[MicroscopyProtocol]) -> Dict[str, List[Dict[str, Any]]]:
    """Return a row for each image: AP, and at the lowest threshold right, surplus and missed cells."""
    mistakes = np.stack([table[:, 0] for table in list_mistakes(accumulator)], axis=1).tolist()
    return {
        "images": [
            {"name": name, **_name_values(row), **dict(zip(("TP", "FP", "FN"), counts))}
            for name, row, counts in zip(accumulator.names, measure_images(accumulator), mistakes)
        ]
    }


def _shapes(_protocol: MicroscopyProtocol, _facts: Dict[str, Any]) -> Shapes:
    """Return the shapes of what is counted in an image."""
    return {"image": (COLUMNS,), "matches": (len(THRESHOLDS),)}


def _oddities(accumulator: UnitAccumulator[MicroscopyProtocol]) -> List[str]:
    """Return what is odd about all images together, and which are in no mean."""
    images = accumulator.stack("image")
    totals = images.sum(axis=0)
    notes: List[str] = []
    if totals[IN_TRUTH] and not totals[SHARING]:
        notes.append("not one cell overlaps a prediction: check which image each belongs to")
    elif totals[IN_TRUTH] > len(images) and images[:, PREDICTED].max() == 1:
        notes.append("no image has more than one label: check that each cell has a number of its own")

    as_script = accumulator.protocol.as_script

    def note(flags: Array, lacking: str, fate: str) -> None:
        chosen = [unit for unit, flag in zip(accumulator.names, flags.tolist()) if flag]
        if chosen:
            be = verb(len(chosen), "is", "are")
            notes.append(f"{quantity(len(chosen), 'image')} {be} without {lacking}{fate}: {name_list(chosen)}")

    fate = ", which leaves AP undefined" if as_script else " and in no mean"
    note(images[:, IN_TRUTH] + images[:, PREDICTED] == 0, "a cell on either side", fate)
    if as_script:
        full = (images[:, [TRUTH_BACKGROUND, PREDICTED_BACKGROUND]] == 0).any(axis=1)
        note(full, "background on one side", ", where the script counts a cell less")
    return notes


ENGINE = unit_engine(read_truth, MicroscopySubmission, _count, _values, _tables, _shapes, _oddities, facts={})
