"""What costs PQ and VPQ: segments that are missed, surplus or inexact."""

from __future__ import annotations

import numpy as np

from segjudge.evaluation_script.families.base.units import UnitAccumulator
from segjudge.evaluation_script.families.panoptic.counting import IOU, MATCHED, MISSED, SURPLUS
from segjudge.evaluation_script.families.panoptic.protocols import PanopticProtocol
from segjudge.families.base.units import UnitLosses


def split_losses(accumulator: UnitAccumulator[PanopticProtocol]) -> UnitLosses:
    """Return what costs PQ, or VPQ: their sum is 1 - PQ."""
    table = accumulator.stack("quality")
    total = table.sum(axis=0)
    most = total[..., MATCHED] + total[..., SURPLUS] / 2 + total[..., MISSED] / 2
    seen = most > 0  # windows, categories
    weight = seen / np.maximum(most, 0.5) / np.maximum(seen.sum(axis=1, keepdims=True), 1) / len(seen)
    parts = (table[..., MATCHED] - table[..., IOU], table[..., SURPLUS] / 2, table[..., MISSED] / 2)
    losses = np.stack([(part * weight).sum(axis=1) for part in parts], axis=-1)
    kinds = {
        "inexact": "segments that match, but not exactly",
        "surplus": "segments that match nothing",
        "missed": "segments of the truth that nothing matches",
    }
    return UnitLosses(kinds, losses.sum(axis=1), losses.sum(axis=0))
