"""What is counted in an image: cells of both sides, and how many of them match."""

from __future__ import annotations

from typing import Dict, Tuple

import numpy as np

from ...masks.overlaps import LabelPairs, sum_by_key
from ...masks.stack import Array
from ..base.units import UnitAccumulator
from .protocols import THRESHOLDS, MicroscopyProtocol

#: The columns of `image`: cells, whether any pixel is background, and pairs of cells that share a pixel.
IN_TRUTH, PREDICTED, TRUTH_BACKGROUND, PREDICTED_BACKGROUND, SHARING = range(5)
COLUMNS = 5


def count_image(pairs: LabelPairs) -> Dict[str, Array]:
    """Return the tables of an image, by the pixels that pairs of labels share.

    The script takes the assignment with the most matches.  From an IoU of one half on, a cell has several partners only
    where each is exactly a half of it, and they have no other partner; so each group of partners has one match.
    """
    (true, areas), (predicted, sizes) = (sum_by_key(side, pairs.pixels) for side in (pairs.truth, pairs.prediction))
    cells = (pairs.truth > 0) & (pairs.prediction > 0)
    rows, columns = np.searchsorted(true, pairs.truth[cells]), np.searchsorted(predicted, pairs.prediction[cells])
    shared = pairs.pixels[cells]
    ious = shared / (areas[rows] + sizes[columns] - shared)
    matches = []
    for threshold in THRESHOLDS.values():
        near = ious >= threshold
        matches.append(len(np.unique(rows[near])) + len(np.unique(columns[near])) - np.count_nonzero(near))
    counts = [np.count_nonzero(true), np.count_nonzero(predicted), (true == 0).sum(), (predicted == 0).sum(), len(ious)]
    return {"image": np.array(counts, np.int64), "matches": np.array(matches, np.int64)}


def list_mistakes(accumulator: UnitAccumulator[MicroscopyProtocol]) -> Tuple[Array, Array, Array]:
    """Return TP, FP and FN of each image (rows) at each threshold."""
    images, matches = accumulator.stack("image"), accumulator.stack("matches")
    truth, predicted = images[:, [IN_TRUTH]], images[:, [PREDICTED]]
    if accumulator.protocol.as_script:
        truth = truth + images[:, [TRUTH_BACKGROUND]] - 1
        predicted = predicted + images[:, [PREDICTED_BACKGROUND]] - 1
        matches = np.where(predicted > 0, matches, 0)
    return matches, predicted - matches, truth - matches


def measure_images(accumulator: UnitAccumulator[MicroscopyProtocol]) -> Array:
    """Return AP of each image (rows) at each threshold, not a number where it is undefined."""
    kind = np.float32 if accumulator.protocol.as_script else np.float64
    hits, surplus, missed = list_mistakes(accumulator)
    with np.errstate(divide="ignore", invalid="ignore"):
        precisions: Array = hits.astype(kind) / (hits + surplus + missed).astype(kind)
    return precisions
