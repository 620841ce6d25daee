"""The loss of the ranking mean by case and region, from counts alone."""

from __future__ import annotations

from typing import Any

import numpy as np

from segjudge.evaluation_script.families.base.units import UnitAccumulator
from segjudge.evaluation_script.families.volumes.engine import list_labels
from segjudge.evaluation_script.families.volumes.protocols import SMALLER, VolumeProtocol
from segjudge.evaluation_script.masks.stack import Array
from segjudge.families.base.unit_tools import UnitLosses

from .components import INEXACT, MISSED, SURPLUS, TOO_LITTLE, TOO_MUCH


def name_measure(protocol: VolumeProtocol) -> str:
    """Return the first measure that is a share; pages explain its loss."""
    return next(measure for measure in protocol.measures if measure not in SMALLER)


def name_label(label: int, protocol: VolumeProtocol) -> str:
    """Return the name of the region with only this label; of others, the label and the smallest region that has it."""
    regions = sorted((region for region in protocol.regions if label in region.labels), key=lambda row: len(row.labels))
    if not regions:
        return f"label {label}"
    return regions[0].name if regions[0].labels == (label,) else f"label {label} ({regions[0].name})"


def overlaps(protocol: VolumeProtocol) -> bool:
    """Return whether regions of a protocol share labels, so that one may hide that labels are exchanged in another."""
    labels = [label for region in protocol.regions for label in region.labels]
    return len(labels) > len({*labels})


def weigh_losses(accumulator: UnitAccumulator[VolumeProtocol]) -> Array:
    """Return the loss by case (rows) and region (columns), which sums to 1 minus the measure."""
    protocol, labels = accumulator.protocol, list_labels(accumulator)
    voxels, values, flags = _tabulate_regions(accumulator, labels)
    if protocol.is_aggregated:
        wrong, total = voxels[..., 0] + voxels[..., 1] - 2 * voxels[..., 2], voxels[..., 0] + voxels[..., 1]
        aggregated: Array = wrong / np.maximum(total.sum(axis=0), 1) / max(len(labels), 1)
        return aggregated
    if protocol.beside:
        flags &= np.array([protocol.regions[label].name not in protocol.beside for label in labels])
    axis = 1 if protocol.averages_cases else 0
    counts = flags.sum(axis=axis, keepdims=True)
    losses: Array = np.where(flags, 1 - values, 0) / np.maximum(counts, 1) / max(int((counts > 0).sum()), 1)
    return losses


def _tabulate_regions(accumulator: UnitAccumulator[VolumeProtocol], labels: list[int]) -> tuple[Array, Array, Array]:
    """Return three tables by case and region: the voxels, the measure, and flags of measures with a value."""
    units, columns = accumulator.complete_counts(), {label: index for index, label in enumerate(labels)}
    measure = accumulator.protocol.measures.index(name_measure(accumulator.protocol))
    shape = len(units), len(labels)
    voxels, values, flags = np.zeros((*shape, 3), np.int64), np.zeros(shape), np.zeros(shape, bool)
    for row, unit in enumerate(units):
        tables: Any = unit.tables
        for index, label in enumerate(tables["labels"].tolist()):
            if label in columns:
                column = columns[label]
                voxels[row, column] = tables["voxels"][index]
                values[row, column] = tables["values"][index, measure]
                flags[row, column] = tables["known"][index, measure] > 0
    return voxels, values, flags


def divide_losses(accumulator: UnitAccumulator[VolumeProtocol]) -> UnitLosses:
    """Split losses by case and region into missing regions, and too few or too many voxels."""
    protocol, losses = accumulator.protocol, weigh_losses(accumulator)
    voxels, _, _ = _tabulate_regions(accumulator, list_labels(accumulator))
    true, predicted, both = (voxels[..., index] for index in range(3))
    is_missed, is_surplus = (true > 0) & (predicted == 0), (true == 0) & (predicted > 0)
    parts = {MISSED: np.where(is_missed, losses, 0), SURPLUS: np.where(is_surplus, losses, 0)}
    kinds = {MISSED: "regions that the prediction lacks", SURPLUS: "regions that the truth lacks"}
    remainder = np.where(is_missed | is_surplus, 0, losses)
    if protocol.lesions is not None:
        parts[INEXACT] = remainder
        kinds[INEXACT] = "regions on both sides, with lesions that are missed, false or inexact"
    else:
        share = (true - both) / np.maximum(true + predicted - 2 * both, 1)
        parts |= {TOO_LITTLE: remainder * share, TOO_MUCH: remainder * (1 - share)}
        kinds |= {TOO_LITTLE: "missing voxels of regions on both sides", TOO_MUCH: "their wrong voxels"}
    stacked = np.stack(list(parts.values()), axis=-1)
    return UnitLosses(kinds, stacked.sum(axis=1), stacked.sum(axis=0))
