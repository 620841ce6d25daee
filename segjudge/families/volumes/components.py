"""The verdict on each component of a region in a case: found, missed, merged, split, or of another class.

If the row has a rule of lesions, it defines components and their matches. Otherwise components are touching voxels, and
are found if they share a voxel with the prediction.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from segjudge.evaluation_script.families.volumes.components import SharedComponents, name_components, share_components
from segjudge.evaluation_script.families.volumes.lesions import LesionSides, find_lesions, find_predicted, find_true
from segjudge.evaluation_script.families.volumes.protocols import LabelRegion, LesionRule, VolumeProtocol
from segjudge.evaluation_script.masks.stack import Array

#: The verdicts on a component.
MISSED, SURPLUS, WRONG_LABEL, MERGED, SPLIT = "missed", "surplus", "wrong label", "merged", "split"
TOO_LITTLE, TOO_MUCH, INEXACT, RIGHT = "too little", "too much", "inexact", "right"
#: The meaning of each cause, in the order of a page.
MEANINGS = {
    MISSED: "true components that no prediction touches",
    SURPLUS: "predicted components that touch no true one",
    WRONG_LABEL: "in the right place, with another label",
    MERGED: "one predicted component over several true ones",
    SPLIT: "several predicted components in one true one",
    TOO_LITTLE: "found, but voxels are missing",
    TOO_MUCH: "found, but voxels lie outside",
    INEXACT: "found, but voxels are missing and others lie outside",
}
#: Most of a component, and the minimum part of a component that counts among several joined ones.
_HALF, _PART = 0.5, 0.1
#: A component is too small if its missing voxels are this many times its extra ones, and too large in the opposite
#: case.
_LOPSIDED = 3


@dataclass
class JudgedRegion:
    """The components of a region in a case; arrays have an entry for each one."""

    region: LabelRegion
    #: The start of the region's box along z, y and x.
    origin: tuple[int, int, int]
    #: The number of each voxel's component, on both sides.
    numbers: tuple[Array, Array]
    #: The number of voxels of each component, on both sides.
    sizes: tuple[Array, Array]
    #: The verdict on each component, on both sides.
    kinds: tuple[Array, Array]
    #: Whether the score counts each component of the truth.
    counted: Array
    #: For each predicted component, the true one that it overlaps most, or -1.
    partner: Array
    #: Missing voxels of each true component, and extra ones of each predicted component.
    missing: Array
    wrong: Array
    #: The cost of each component, on both sides, in the unit of the row's first measure.
    costs: tuple[Array, Array]
    #: Dice of each true component with all predictions that meet it.
    dice: Array
    pairs: SharedComponents
    #: For true components with another label, the label that most of each gets.
    called: dict[int, int]
    #: For predicted components on another label, the true label there.
    covers: dict[int, int]


def judge_region(
    region: LabelRegion,
    masks: tuple[Array, Array],
    labels: tuple[Array, Array],
    origin: tuple[int, int, int],
    voxel: float,
    protocol: VolumeProtocol,
) -> JudgedRegion:
    """Judge the components of two masks, given the labels of both sides there and the volume of a voxel."""
    tissues = protocol.tissues_of(region)
    rule = tissues[0].lesions if tissues else LesionRule(0, -1.0, 0.0)
    if tissues:
        lesions = find_lesions(labels, tissues)
    else:
        grown, true = find_true(masks[0], rule, 18 if "FPV" in protocol.measures else 26)
        lesions = LesionSides(grown, true, find_predicted(masks[1], rule, masks[1].size))
    true = lesions.true
    sizes, pairs, meetings = (true.sizes, lesions.predicted.sizes), lesions.shared, lesions.meetings
    shared = [
        np.bincount(side, weights=pairs.voxels, minlength=len(size)).astype(np.int64)
        for side, size in zip((pairs.true, pairs.predicted), sizes, strict=True)
    ]
    missing, wrong = sizes[0] - shared[0], sizes[1] - shared[1]
    is_met = [
        np.bincount(side, minlength=len(size)) > 0
        for side, size in zip((meetings.true, meetings.predicted), sizes, strict=True)
    ]
    numbers = true.number(), lesions.predicted.number()
    foreign = [_find_other_labels(*side, region) for side in zip(numbers, labels[::-1], strict=True)]
    predicted_sizes = np.bincount(meetings.true, weights=sizes[1][meetings.predicted], minlength=len(sizes[0]))
    dice = 2 * shared[0] / (sizes[0] + predicted_sizes)
    called, covers = (
        {index: label for index, (label, voxels) in labels_by_component.items() if voxels >= _HALF * size[index]}
        for labels_by_component, size in zip(foreign, sizes, strict=True)
    )
    partner = np.full(len(sizes[1]), -1)
    order = np.argsort(pairs.voxels, kind="stable")
    partner[pairs.predicted[order]] = pairs.true[order]
    none = np.zeros(0, object)
    judged = JudgedRegion(
        region, origin, numbers, sizes, kinds=(none, none), counted=sizes[0] * voxel > rule.ignored, partner=partner,
        missing=missing, wrong=wrong, costs=(missing, wrong), dice=dice, pairs=pairs, called=called, covers=covers,
    )  # fmt: skip
    true_kinds = np.where(is_met[0], _judge_edges(judged), MISSED).astype(object)
    true_kinds[list(called)] = WRONG_LABEL
    _note_merged(judged, meetings, true_kinds, by_lesion=protocol.lesions is not None)
    _note_split(judged, lesions, true_kinds)
    kinds = np.where(is_met[1], np.append(true_kinds, INEXACT)[partner], SURPLUS).astype(object)
    kinds[list(covers)] = WRONG_LABEL
    judged.kinds = true_kinds, kinds
    if protocol.measures[0] == "PQ":
        judged.costs = _cost_of_pairs(judged)
    if protocol.lesions is not None:
        is_surplus = ~is_met[1] if rule.counts_false else np.zeros(len(kinds), bool)
        judged.costs = np.where(judged.counted, 1 - dice, 0.0), is_surplus.astype(float)
    return judged


def _find_other_labels(numbers: Array, labels: Array, region: LabelRegion) -> dict[int, tuple[int, int]]:
    """Return for each component the other side's most frequent label there from outside its region."""
    foreign = (numbers > 0) & (labels > 0) & ~np.isin(labels, region.labels)
    if not foreign.any():
        return {}
    keys, voxels = np.unique(numbers[foreign].astype(np.int64) << 32 | labels[foreign], return_counts=True)
    commonest: dict[int, tuple[int, int]] = {}
    for key, count in zip(keys.tolist(), voxels.tolist(), strict=True):
        number, label = (key >> 32) - 1, key & 0xFFFFFFFF
        if count > commonest.get(number, (0, 0))[1]:
            commonest[number] = label, count
    return commonest


def _cost_of_pairs(judged: JudgedRegion) -> tuple[Array, Array]:
    """Return the components' loss of PQ: 1 - IoU of a pair, and one half without a pair."""
    ious = judged.dice / (2 - judged.dice)
    is_paired = np.append(ious >= _HALF, False)
    return np.where(is_paired[:-1], 1 - ious, _HALF), np.where(is_paired[judged.partner], 0.0, _HALF)


def _judge_edges(judged: JudgedRegion) -> Array:
    """Return the verdict on the edges of each true component, given its predictions."""
    count = len(judged.sizes[0])
    has_partner = judged.partner >= 0
    wrong = np.bincount(judged.partner[has_partner], weights=judged.wrong[has_partner], minlength=count)
    missing = judged.missing
    kinds: Array = np.full(count, INEXACT, object)
    kinds[missing > _LOPSIDED * wrong] = TOO_LITTLE
    kinds[wrong > _LOPSIDED * missing] = TOO_MUCH
    kinds[(missing == 0) & (wrong == 0)] = RIGHT
    kinds[missing == judged.sizes[0]] = INEXACT  # something lies near it
    return kinds


def _note_merged(judged: JudgedRegion, meetings: SharedComponents, kinds: Array, *, by_lesion: bool) -> None:
    """Mark components that one prediction joins."""
    truth, prediction, voxels = judged.pairs.true, judged.pairs.predicted, judged.pairs.voxels
    if not len(truth):
        return
    sizes = judged.sizes
    over = voxels >= _HALF * sizes[0][truth]
    rows, columns = truth[over], prediction[over]
    if by_lesion:
        rows, columns = meetings.true, meetings.predicted
        lies_in = judged.counted[rows]
        rows, columns = rows[lies_in], columns[lies_in]
    largest = np.zeros(len(sizes[1]), np.int64)
    np.maximum.at(largest, columns, sizes[0][rows])
    large = sizes[0][rows] >= _PART * largest[columns]
    joins = np.bincount(columns[large], minlength=len(sizes[1])) > 1
    kinds[rows[large & joins[columns]]] = MERGED


def _note_split(judged: JudgedRegion, lesions: LesionSides, kinds: Array) -> None:
    """Mark components that several predictions share.

    A lesion may consist of parts that do not touch; several predictions split it only if they share one of its parts.
    """
    true = lesions.true
    whole = true if true is lesions.grown else name_components(true.runs, 26)
    owners = np.zeros(whole.total, np.int64)
    owners[whole.names] = true.names
    pairs = judged.pairs if whole is true else share_components(whole, lesions.predicted)
    inside = (pairs.voxels >= _HALF * judged.sizes[1][pairs.predicted]) & (
        pairs.voxels >= _PART * whole.sizes[pairs.true]
    )
    shared_by = np.bincount(pairs.true[inside], minlength=whole.total)
    covered = np.bincount(owners[pairs.true[inside]], weights=pairs.voxels[inside], minlength=true.total)
    is_split = np.bincount(owners[shared_by > 1], minlength=true.total) > 0
    kinds[is_split & (covered >= _HALF * judged.sizes[0]) & (kinds != MERGED)] = SPLIT
