"""What costs mIoU: pixels of a class that are missed or surplus."""

from __future__ import annotations

import numpy as np

from segjudge.evaluation_script.families.base.units import UnitAccumulator
from segjudge.evaluation_script.families.semantic.protocols import SemanticProtocol
from segjudge.evaluation_script.masks.overlaps import SHIFT
from segjudge.families.base.units import UnitLosses


def split_losses(accumulator: UnitAccumulator[SemanticProtocol]) -> UnitLosses:
    """Return what costs mIoU: the sum is 1 - mIoU."""
    classes, units = accumulator.protocol.classes, accumulator.complete_counts()
    rows, columns = (np.zeros((len(units), classes)) for _ in range(2))
    hits = np.zeros(classes)
    for place, counts in enumerate(units):
        keys, pixels = counts.tables["cells"]
        real, sent = keys >> SHIFT, keys & ((1 << SHIFT) - 1)
        right = real == sent
        hits += np.bincount(real[right], pixels[right], classes)
        rows[place] = np.bincount(real[~right], pixels[~right], classes)
        columns[place] = np.bincount(sent[~right], pixels[~right], classes)
    present = rows.sum(axis=0) + hits
    union = present + columns.sum(axis=0)
    seen = present > 0
    weight = seen / np.maximum(union, 1) / max(int(seen.sum()), 1)
    losses = np.stack((rows * weight, columns * weight), axis=-1)
    kinds = {"missed": "pixels of a class that have another label", "surplus": "pixels that have its label wrongly"}
    shown = union > 0
    return UnitLosses(kinds, losses.sum(axis=1), losses.sum(axis=0)[shown])
