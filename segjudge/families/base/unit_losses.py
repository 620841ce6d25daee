"""The loss of each image, video, sequence or category, as shares of what a score lacks to 1."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from segjudge.evaluation_script.families.base.reports import Row
from segjudge.evaluation_script.families.base.units import UnitAccumulator
from segjudge.evaluation_script.families.panoptic.counting import IOU, MATCHED, MISSED, SURPLUS
from segjudge.evaluation_script.families.panoptic.protocols import PanopticProtocol
from segjudge.evaluation_script.families.semantic.protocols import SemanticProtocol
from segjudge.evaluation_script.families.tracking.counting import HOTA_FIELDS
from segjudge.evaluation_script.families.tracking.protocols import TracksProtocol
from segjudge.evaluation_script.masks.overlaps import SHIFT
from segjudge.evaluation_script.masks.stack import Array


@dataclass(frozen=True)
class UnitLosses:
    """What metrics lack to 1, as shares of units (or categories) by kind."""

    #: The kinds by name, and what they mean.
    kinds: dict[str, str]
    #: Rows are units in the truth's order, and categories in that of the scores; columns are kinds.
    by_unit: Array
    by_category: Array

    def totals(self) -> dict[str, float]:
        """Return what each kind costs altogether."""
        return dict(zip(self.kinds, self.by_unit.sum(axis=0).tolist(), strict=True))

    def rows(self, names: list[str], losses: Array) -> list[Row]:
        """Return a row for each name, those that cost most first."""
        order = np.argsort(-losses.sum(axis=1), kind="stable").tolist()
        return [
            {"name": names[one], "costs": float(losses[one].sum()), **dict(zip(self.kinds, losses[one].tolist()))}
            for one in order
        ]


def panoptic_losses(accumulator: UnitAccumulator[PanopticProtocol]) -> UnitLosses:
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


def semantic_losses(accumulator: UnitAccumulator[SemanticProtocol]) -> UnitLosses:
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


def tracks_losses(accumulator: UnitAccumulator[TracksProtocol]) -> UnitLosses:
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


#: What costs the metrics of each track that counts by unit.
UNIT_LOSSES: dict[str, Callable[[UnitAccumulator[Any]], UnitLosses]] = {
    PanopticProtocol.track: panoptic_losses,
    SemanticProtocol.track: semantic_losses,
    TracksProtocol.track: tracks_losses,
}
