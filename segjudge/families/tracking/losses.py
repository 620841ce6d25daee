"""What costs DetA and AssA: objects that are missed, surplus or swapped."""

from __future__ import annotations

import numpy as np

from segjudge.evaluation_script.families.base.units import UnitAccumulator
from segjudge.evaluation_script.families.tracking.counting import HOTA_FIELDS
from segjudge.evaluation_script.families.tracking.protocols import TracksProtocol
from segjudge.families.base.units import UnitLosses


def split_losses(accumulator: UnitAccumulator[TracksProtocol]) -> UnitLosses:
    """Return what costs DetA, then AssA; what categories without any match cost AssA is no sequence's."""
    units = [counts.tables for counts in accumulator.complete_counts()]
    classes = len(accumulator.protocol.classes or accumulator.facts["classes"])
    total = np.zeros((classes, *units[0]["hota"].shape[1:])) if units else np.zeros((classes, len(HOTA_FIELDS), 1))
    for tables in units:
        total[tables["classes"]] += tables["hota"]
    matched, missed, surplus, associated = (
        HOTA_FIELDS.index(name) for name in ("matched", "missed", "surplus", "AssA")
    )
    every = np.maximum(1, total[:, [matched, missed, surplus]].sum(axis=1))
    by_unit, by_category = np.zeros((len(units), 3)), np.zeros((classes, 3))
    for place, tables in enumerate(units):
        mine, hota = tables["classes"], tables["hota"]
        detected = np.maximum(1, total[mine, matched])
        parts = (
            hota[:, missed] / every[mine],
            hota[:, surplus] / every[mine],
            (hota[:, matched] - hota[:, associated]) / detected,
        )
        losses = np.stack([part.mean(axis=1) for part in parts], axis=-1) / max(classes, 1)
        by_unit[place] = losses.sum(axis=0)
        by_category[mine] += losses
    kinds = {
        "missed": "objects that nothing matches, of DetA",
        "surplus": "predictions that match nothing, of DetA",
        "swapped": "matches whose tracks are of several objects, of AssA",
    }
    return UnitLosses(kinds, by_unit, by_category)
