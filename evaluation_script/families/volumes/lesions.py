"""Lesions: the connected components of a mask (z, y, x) after growing, and which of two masks meet."""

from __future__ import annotations

from typing import List, NamedTuple, Tuple

import numpy as np

from ...masks.stack import Array
from ...values.arithmetic import add
from .boxes import cover, find_box
from .components import Components, find_components
from .distances import Spacing
from .overlaps import Overlap, count_overlap
from .protocols import LesionRule
from .surfaces import Sides, distance_by_weight, measure_borders, measure_elements


def _spread(mask: Array, axis: int) -> Array:
    """Return a mask and its neighbours along an axis."""
    spread = mask.copy()
    target, source = np.moveaxis(spread, axis, 0), np.moveaxis(mask, axis, 0)
    target[1:] |= source[:-1]
    target[:-1] |= source[1:]
    return spread


def grow(mask: Array, steps: int) -> Array:
    """Return a mask after this many steps to 18 neighbours."""
    grown = mask.copy()
    box = find_box(mask)
    if not mask[box].size:
        return grown
    wide = tuple(slice(max(0, side.start - steps), side.stop + steps) for side in box)
    grown_box = mask[wide]
    for _ in range(steps):
        along_x, along_y = _spread(grown_box, 2), _spread(grown_box, 1)
        grown_box = _spread(along_x, 1) | _spread(along_x, 0) | _spread(along_y, 0)
    grown[wide] = grown_box
    return grown


# ── lesions of two masks ────────────────────────────────────────────────────


class Lesion(NamedTuple):
    """A lesion of the truth beside the predictions that meet it."""

    #: Its volume is above the rule's.
    counts: bool
    is_met: bool
    overlap: Overlap
    #: By elements; the rule's penalty if nothing meets it.
    hd95: float
    #: Shares of both borders within half a millimetre and one, averaged over sides.
    nsd: Tuple[float, float]


class Lesions(NamedTuple):
    """The lesions of a region."""

    lesions: List[Lesion]
    #: The voxels of predictions that meet no lesion.
    false: List[int]


def find_predicted(prediction: Array, rule: LesionRule) -> Components:
    """Return the lesions of a prediction, without those that a rule removes."""
    predicted = find_components(grow(prediction, rule.steps) if rule.joins else prediction, 26)
    numbers = np.where(prediction, predicted.numbers, 0)
    sizes = np.bincount(numbers.reshape(-1), minlength=len(predicted.sizes))
    is_large = sizes > rule.removed
    is_large[0] = False
    names = np.where(is_large, np.cumsum(is_large), 0).astype(np.int32)
    return Components(names[numbers], np.append(prediction.size - sizes[is_large].sum(), sizes[is_large]))


def match_lesions(truth: Array, prediction: Array, rule: LesionRule, spacing: Spacing, *, nsd: bool = False) -> Lesions:
    """Match the lesions of a region by a rule; NSD is measured on request."""
    grown, predicted = find_components(grow(truth, rule.steps), 26), find_predicted(prediction, rule)
    boxes, predicted_boxes = grown.boxes, predicted.boxes
    volume = spacing[0] * spacing[1] * spacing[2]
    is_met = np.zeros(predicted.total + 1, bool)
    lesions = []
    for number in range(1, grown.total + 1):
        box = boxes.box_of(number)
        meeting = np.unique(predicted.numbers[box][grown.numbers[box] == number])
        meeting = meeting[meeting > 0]
        is_met[meeting] = True
        wide = cover([box, *(predicted_boxes.box_of(name) for name in meeting.tolist())])
        flags = np.zeros(len(is_met), bool)
        flags[meeting] = True
        masks = truth[wide] & (grown.numbers[wide] == number), flags[predicted.numbers[wide]]
        lesions.append(_measure_lesion(masks, rule, volume, spacing, is_met=meeting.size > 0, nsd=nsd))
    return Lesions(lesions, predicted.sizes[1:][~is_met[1:]].tolist())


def _measure_lesion(
    masks: Tuple[Array, Array], rule: LesionRule, volume: float, spacing: Spacing, *, is_met: bool, nsd: bool
) -> Lesion:
    overlap = count_overlap(*masks)
    counts = overlap.truth * volume > rule.ignored
    if not is_met:
        return Lesion(counts, is_met, overlap, rule.penalty, (0.0, 0.0))
    hd95 = distance_by_weight(measure_elements(*masks, spacing), 95)
    return Lesion(
        counts, is_met, overlap, hd95, share_of_sides(measure_borders(*masks, spacing)) if nsd else (0.0, 0.0)
    )


def share_of_sides(sides: Sides) -> Tuple[float, float]:
    """Return BraTS' NSD at 0.5 and 1 mm: the mean of both borders' shares, with its small constant."""
    half, whole = (
        add([np.count_nonzero(side.distances <= tolerance) / len(side.distances) for side in sides]) / (2 + 1e-8)
        for tolerance in (0.5, 1.0)
    )
    return half, whole


class LesionScores(NamedTuple):
    """The lesion-wise scores of a region in a case."""

    dice: float
    hd95: float
    nsd: Tuple[float, float]
    #: Lesions of the truth that count: met and missed; and false ones.
    met: int
    missed: int
    false: int


def score_lesions(lesions: Lesions, rule: LesionRule) -> LesionScores:
    """Return the sums over scored lesions, divided by the number of scored and false lesions."""
    counted = [lesion for lesion in lesions.lesions if lesion.counts]
    false = len(lesions.false) if rule.counts_false else 0
    total, met = len(counted) + false, sum(lesion.is_met for lesion in counted)
    if not total:
        return LesionScores(1.0, 0.0, (1.0, 1.0), 0, 0, 0)
    dice = add([lesion.overlap.dice or 0.0 for lesion in counted]) / total
    hd95 = (add([lesion.hd95 for lesion in counted]) + rule.penalty * false) / total
    half, whole = (add([lesion.nsd[index] for lesion in counted]) / total for index in range(2))
    return LesionScores(dice, hd95, (half, whole), met, len(counted) - met, false)
