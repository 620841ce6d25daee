"""Lesions: the connected components of a mask (z, y, x), how they grow, and which of two masks meet."""

from __future__ import annotations

from typing import Dict, List, NamedTuple, Tuple

import numpy as np

from ...masks.backend import backend
from ...masks.stack import Array
from ...values.arithmetic import add, mean
from .boxes import Boxes, cover, find_box, find_boxes
from .overlaps import Overlap, count_overlap
from .protocols import LesionRule
from .surfaces import Sides, Spacing, distance_by_weight, measure_borders, measure_elements

#: For each number of neighbours the rows (z, y) beside a run that it may join, and by how many voxels along x it
#: reaches beyond its ends there.
_ROWS: Dict[int, Tuple[Tuple[int, int, int], ...]] = {
    6: ((0, 1, 0), (1, 0, 0)),
    18: ((0, 1, 1), (1, -1, 0), (1, 0, 1), (1, 1, 0)),
    26: ((0, 1, 1), (1, -1, 1), (1, 0, 1), (1, 1, 1)),
}


class Components(NamedTuple):
    """The components of a mask."""

    #: The component of each voxel (z, y, x), from 1; 0 outside.
    numbers: Array
    #: The voxels of each component; of the outside at 0.
    sizes: Array

    @property
    def total(self) -> int:
        return len(self.sizes) - 1

    @property
    def boxes(self) -> Boxes:
        """The box of each component."""
        return find_boxes(self.numbers.view(np.uint32), len(self.sizes))


def find_components(mask: Array, neighbours: int) -> Components:
    """Return the components of voxels that touch by 6, 18 or 26 neighbours, in the order of their first voxels."""
    numbers = np.zeros(mask.shape, np.int32)
    box = find_box(mask)
    if not mask[box].size:
        return Components(numbers, np.array([mask.size]))
    kernel = backend().kernel
    components = kernel.find_components(mask[box], neighbours) if kernel else None
    if components is not None:
        numbers[box] = components[0]
        sizes = find_boxes(components[0].view(np.uint32), components[1] + 1).voxels
        sizes[0] = mask.size - sizes.sum()
        return Components(numbers, sizes)
    depth, height, width = mask[box].shape
    padded = np.zeros((depth, height + 1, width + 1), np.int8)
    padded[:, :-1, :-1] = mask[box]
    edges = np.diff(padded.reshape(-1), prepend=np.int8(0))
    starts, ends = np.flatnonzero(edges == 1), np.flatnonzero(edges == -1)
    runs, partners = _pair_runs(starts, ends, padded.shape, neighbours)
    roots = _join(len(starts), runs, partners)
    names = np.cumsum(roots == np.arange(len(roots)))[roots]
    steps = np.zeros(padded.size, np.int32)
    steps[starts] = names
    steps[ends] -= names.astype(np.int32)
    numbers[box] = np.cumsum(steps, dtype=np.int32).reshape(padded.shape)[:, :-1, :-1]
    return Components(numbers, np.bincount(numbers.reshape(-1)))


def _pair_runs(starts: Array, ends: Array, shape: Tuple[int, ...], neighbours: int) -> Tuple[Array, Array]:
    """Return the pairs of runs that touch; behind each row and plane of the shape is background."""
    pairs: List[Tuple[Array, Array]] = []
    for plane, row, reach in _ROWS[neighbours]:
        offset = (plane * shape[1] + row) * shape[2]
        lowest = np.searchsorted(ends, starts + offset - reach, side="right")
        highest = np.searchsorted(starts, ends + offset + reach, side="left")
        counts = np.maximum(highest - lowest, 0)
        runs = np.repeat(np.arange(len(starts)), counts)
        within = np.arange(len(runs)) - np.repeat(np.cumsum(counts) - counts, counts)
        pairs.append((runs, lowest[runs] + within))
    return np.concatenate([pair[0] for pair in pairs]), np.concatenate([pair[1] for pair in pairs])


def _join(count: int, runs: Array, partners: Array) -> Array:
    """Return for each run the first run of its component."""
    roots = np.arange(count)
    while True:
        root, root_of_partner = roots[runs], roots[partners]
        apart = root != root_of_partner
        if not apart.any():
            return roots
        runs, partners, root, root_of_partner = runs[apart], partners[apart], root[apart], root_of_partner[apart]
        np.minimum.at(roots, np.maximum(root, root_of_partner), np.minimum(root, root_of_partner))
        while True:
            above = roots[roots]
            if (above == roots).all():
                break
            roots = above


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


# ── components of two masks ─────────────────────────────────────────────────

#: Components of both sides are a pair from this IoU on.
_PAIRED = 0.5


class PairedComponents(NamedTuple):
    """The components of two masks, paired one to one."""

    truth: int
    prediction: int
    #: The IoU and the Dice of each pair.
    ious: List[float]
    dices: List[float]

    @property
    def rq(self) -> float:
        return len(self.ious) / (len(self.ious) + (self.truth + self.prediction - 2 * len(self.ious)) / 2)

    @property
    def sq(self) -> float:
        return mean(self.ious) if self.ious else 0.0

    @property
    def dice(self) -> float:
        return mean(self.dices) if self.dices else 0.0


def pair_components(truth: Components, prediction: Components) -> PairedComponents:
    """Return the pairs of components with an IoU of at least 0.5, the largest first."""
    is_both = (truth.numbers > 0) & (prediction.numbers > 0)
    width = prediction.total + 1
    codes = truth.numbers[is_both].astype(np.int64) * width + prediction.numbers[is_both]
    names, counts = np.unique(codes, return_counts=True)
    true_numbers, predicted_numbers = names // width, names % width
    sums = truth.sizes[true_numbers] + prediction.sizes[predicted_numbers]
    ious = counts / (sums - counts)
    pairs = PairedComponents(truth.total, prediction.total, [], [])
    unpaired_true, unpaired_predicted = set(true_numbers.tolist()), set(predicted_numbers.tolist())
    order = np.argsort(-ious, kind="stable")
    for index in order[ious[order] >= _PAIRED].tolist():
        lesion, predicted = int(true_numbers[index]), int(predicted_numbers[index])
        if lesion in unpaired_true and predicted in unpaired_predicted:
            unpaired_true.remove(lesion)
            unpaired_predicted.remove(predicted)
            pairs.ious.append(float(ious[index]))
            pairs.dices.append(2 * int(counts[index]) / int(sums[index]))
    return pairs
