"""The causes of volumes' losses: the components of the costliest cases by cause, and each case's worst place."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from segjudge.evaluation_script.families.base.reports import Report
from segjudge.evaluation_script.families.base.units import Unit, UnitAccumulator, UnitTruth
from segjudge.evaluation_script.families.volumes.boxes import Box, Boxes, cut_slabs, find_boxes, select_labels
from segjudge.evaluation_script.families.volumes.engine import find_region_box, list_labels, list_regions
from segjudge.evaluation_script.families.volumes.files import VolumeSubmission, decode_geometry, read_labels
from segjudge.evaluation_script.families.volumes.geometry import Geometry
from segjudge.evaluation_script.families.volumes.protocols import LabelRegion, VolumeProtocol
from segjudge.evaluation_script.families.volumes.voxels import LABELS_END
from segjudge.evaluation_script.files.problems import Problems
from segjudge.evaluation_script.masks.stack import Array
from segjudge.families.base.tools import ScoringInputs

from .causes import FOUND, VolumeCauses
from .components import INEXACT, RIGHT, SURPLUS, WRONG_LABEL, JudgedRegion, judge_region
from .losses import name_label, weigh_losses

#: The maximum number of examined cases, the costliest first, and of components kept per case for tables.
MOST_CASES, MOST_KEPT = 40, 300


#: A place in an array: along z, y and x.
Voxel = tuple[int, int, int]


class SeenComponent(NamedTuple):
    """A component of a case, for a table."""

    case: str
    region: str
    kind: str
    #: The label that most of it gets instead.
    called: str
    #: In cubic millimetres.
    volume: float
    dice: float | None
    cost: float
    #: Its voxel nearest to its centre.
    voxel: Voxel


@dataclass
class Diagnosis:
    """The causes of the loss in the costliest cases."""

    protocol: VolumeProtocol
    causes: VolumeCauses
    looked_at: int = 0
    cases: int = 0
    #: Whether all cases with a loss were examined.
    is_whole: bool = True
    #: The costs by cause of each examined case.
    costs: dict[str, dict[str, float]] = field(default_factory=dict)
    components: list[SeenComponent] = field(default_factory=list)
    #: Volumes of true components in cubic millimetres, and whether each is detected.
    volumes: list[Array] = field(default_factory=list)
    met: list[Array] = field(default_factory=list)
    #: The cost of each component, by the predictions around it.
    lost: list[Array] = field(default_factory=list)


class OpenCase(NamedTuple):
    """Both sides of a case."""

    name: str
    truth: Array
    prediction: Array
    geometry: Geometry
    boxes: tuple[Boxes, Boxes]


class JudgedCase(NamedTuple):
    """A case as one method predicts it."""

    case: OpenCase
    regions: list[JudgedRegion]
    #: The share of the loss that one unit of each region's costs has.
    scales: list[float]
    #: The components for a table, costliest first.
    components: list[SeenComponent]
    #: The loss by region.
    costs: dict[str, float]

    @property
    def worst(self) -> Voxel:
        """The place with the most wrong voxels."""
        return _find_worst_place(self.case, self.regions, self.costs)

    @property
    def is_wrong(self) -> bool:
        return any(region.missing.any() or region.wrong.any() for region in self.regions)


def open_case(unit: Unit, submission: VolumeSubmission) -> OpenCase | None:
    """Read both sides of a case; None if the prediction cannot be read."""
    (frame,) = unit.load()
    geometry = decode_geometry(frame.rows)
    volume = submission.read_volume(unit.name, geometry, Problems())
    if volume is None:
        return None
    prediction = volume.labels
    truth = read_labels(frame).reshape(prediction.shape)
    boxes = find_boxes(truth, LABELS_END), find_boxes(prediction, LABELS_END)
    return OpenCase(unit.name, truth, prediction, geometry, boxes)


def _list_case_regions(case: OpenCase, protocol: VolumeProtocol) -> list[LabelRegion]:
    """Return the regions of a case."""
    labels = sorted(case.boxes[0].labels | case.boxes[1].labels)
    regions = list_regions(np.array(labels, np.int64), protocol)
    return regions if protocol.regions else [region._replace(name=f"label {region.name}") for region in regions]


def _judge_regions(case: OpenCase, protocol: VolumeProtocol) -> list[JudgedRegion]:
    """Judge the components of each region that a side of a case has."""
    judged = []
    for region in _list_case_regions(case, protocol):
        box = find_region_box(region, case.boxes, case.truth.shape, protocol)
        labels = case.truth[box], case.prediction[box]
        masks = select_labels(labels[0], region.labels), select_labels(labels[1], region.labels)
        if region.is_cropped:
            box, labels, masks = _crop(box, labels, masks)
        voxel = float(np.prod(case.geometry.spacing))
        origin = box[0].start, box[1].start, box[2].start
        judged.append(judge_region(region, masks, labels, origin, voxel, protocol))
    return judged


def _crop(
    box: Box, labels: tuple[Array, Array], masks: tuple[Array, Array]
) -> tuple[Box, tuple[Array, Array], tuple[Array, Array]]:
    """Return the part of a box that is scored: from the truth's first slice to the one before its last."""
    slices = np.flatnonzero(masks[0].any(axis=(1, 2)))
    if not slices.size:
        return box, labels, masks
    start, end = int(slices[0]), max(int(slices[-1]), int(slices[0]) + 1)
    cropped: Box = (slice(box[0].start + start, box[0].start + end), *box[1:])
    return cropped, (labels[0][start:end], labels[1][start:end]), (masks[0][start:end], masks[1][start:end])


def diagnose(inputs: ScoringInputs, report: Report, paint: Callable[[JudgedCase], None] | None = None) -> Diagnosis:
    """Examine the components of the costliest cases, and draw these cases."""
    scorer, counts = inputs.scorers[report.split], report.counts
    if not isinstance(scorer.truth, UnitTruth) or not isinstance(counts, UnitAccumulator):
        raise TypeError(f"{report.split} has no cases")
    protocol: Any = scorer.rules.protocol
    losses, labels = weigh_losses(counts), list_labels(counts)
    wrong = [int((unit.tables["voxels"] @ [1, 1, -2]).sum()) for unit in counts.complete_counts()]
    order = np.lexsort((-np.array(wrong), -losses.sum(axis=1))).tolist()
    diagnosis = Diagnosis(protocol, VolumeCauses.for_protocol(protocol), cases=len(order))
    diagnosis.is_whole = not any(wrong[index] or losses[index].any() for index in order[MOST_CASES:])
    with closing(VolumeSubmission(inputs.results, scorer.truth, protocol, scorer.rules.limits)) as submission:
        for index in order[:MOST_CASES]:
            case = open_case(scorer.truth.units[index], submission)
            if case is None:
                continue
            costs = name_costs(protocol, labels, losses[index])
            _examine_case(diagnosis, case, costs, paint)
            diagnosis.looked_at += 1
    return diagnosis


def name_costs(protocol: VolumeProtocol, labels: Sequence[int], losses: Array) -> dict[str, float]:
    """Return the loss of a case by the name of each region."""
    names = [protocol.regions[label].name if protocol.regions else f"label {label}" for label in labels]
    return dict(zip(names, losses.tolist(), strict=True))


def _examine_case(
    diagnosis: Diagnosis,
    case: OpenCase,
    costs: dict[str, float],
    paint: Callable[[JudgedCase], None] | None,
) -> None:
    """Add the components of a case."""
    causes, sums = diagnosis.causes, dict[str, float]()
    pairs = _pair_labels(case)
    voxel, judged_case = float(np.prod(case.geometry.spacing)), judge_case(case, diagnosis.protocol, costs)
    for judged, scale in zip(judged_case.regions, judged_case.scales, strict=True):
        if costs.get(judged.region.name, 0.0) and not scale:  # only by rounding
            sums[INEXACT] = sums.get(INEXACT, 0.0) + costs[judged.region.name]
        for kinds, costs_of_side in zip(judged.kinds, judged.costs, strict=True):
            for kind in np.unique(kinds.astype(str)).tolist():
                sums[kind] = sums.get(kind, 0.0) + float(costs_of_side[kinds == kind].sum()) * scale
        causes.add_region(case.name, judged, scale, case.geometry.spacing, pairs)
        diagnosis.volumes.append(judged.sizes[0][judged.counted] * voxel)
        diagnosis.met.append(np.isin(judged.kinds[0][judged.counted], FOUND))
        diagnosis.lost.append(_sum_losses(judged)[judged.counted] * scale)
    causes.add_labels(case.name, judged_case.regions, pairs, case.boxes[0].voxels)
    sums.pop(RIGHT, None)
    diagnosis.costs[case.name] = sums
    diagnosis.components += judged_case.components
    if paint is not None and judged_case.is_wrong:
        paint(judged_case)


def _pair_labels(case: OpenCase) -> dict[tuple[int, int], int]:
    """Return the voxels by true and predicted label, where these differ and neither is 0."""
    wrong = (case.truth != case.prediction) & (case.truth > 0) & (case.prediction > 0)
    keys, voxels = np.unique(case.truth[wrong].astype(np.int64) << 32 | case.prediction[wrong], return_counts=True)
    return {(key >> 32, key & 0xFFFFFFFF): count for key, count in zip(keys.tolist(), voxels.tolist(), strict=True)}


def judge_case(case: OpenCase, protocol: VolumeProtocol, costs: dict[str, float]) -> JudgedCase:
    """Judge the components of a case, given its loss by region."""
    judged = _judge_regions(case, protocol)
    scales, listed = [], list[SeenComponent]()
    for region in judged:
        total = float(region.costs[0].sum() + region.costs[1].sum())
        scales.append(costs.get(region.region.name, 0.0) / total if total else 0.0)
        listed += _list_components(case, region, protocol, scales[-1])
    listed.sort(key=lambda seen: (-seen.cost, -seen.volume))
    return JudgedCase(case, judged, scales, listed[:MOST_KEPT], costs)


def _sum_losses(judged: JudgedRegion) -> Array:
    """Return the cost of each true component with its predictions."""
    belongs = (judged.partner >= 0) & (judged.kinds[1] != SURPLUS)
    around = np.bincount(judged.partner[belongs], weights=judged.costs[1][belongs], minlength=len(judged.sizes[0]))
    losses: Array = judged.costs[0] + around
    return losses


def _list_components(
    case: OpenCase, judged: JudgedRegion, protocol: VolumeProtocol, scale: float
) -> list[SeenComponent]:
    """List the costliest components of a region, true and surplus ones."""
    listed, voxel = [], float(np.prod(case.geometry.spacing))
    for side in (0, 1):
        kinds, costs, sizes = judged.kinds[side], judged.costs[side] * scale, judged.sizes[side]
        shown = np.flatnonzero(np.isin(kinds, [SURPLUS, WRONG_LABEL]) if side else judged.counted)
        order = shown[np.lexsort((-sizes[shown], -costs[shown]))][:MOST_KEPT]
        places = _find_places(judged, side, order)
        for number, voxel_of in zip(order.tolist(), places, strict=True):
            labels_of = judged.called if not side else judged.covers
            called = name_label(labels_of[number], protocol) if number in labels_of else ""
            dice = None if side else float(judged.dice[number])
            listed.append(
                SeenComponent(
                    case.name, judged.region.name, str(kinds[number]), called, float(sizes[number]) * voxel, dice,
                    float(costs[number]), voxel_of,
                )
            )  # fmt: skip
    return [seen for seen in listed if seen.kind != WRONG_LABEL or seen.dice is not None]


def _find_places(judged: JudgedRegion, side: int, chosen: Array) -> list[Voxel]:
    """Return for each chosen component its voxel (z, y, x) nearest to its middle."""
    numbers, count = judged.numbers[side], len(judged.sizes[side])
    sums, sizes = np.zeros((3, count)), np.zeros(count)
    for names, voxels in _list_voxels(numbers):
        sizes += np.bincount(names, minlength=count)
        sums += [np.bincount(names, weights=axis, minlength=count) for axis in voxels]
    middle = sums / np.maximum(sizes, 1)
    nearest, places = np.full(count, np.inf), np.zeros((count, 3), np.int64)
    for names, voxels in _list_voxels(numbers):
        away = sum((axis - mean[names]) ** 2 for axis, mean in zip(voxels, middle, strict=True))
        order = np.lexsort((away, names))
        components, firsts = np.unique(names[order], return_index=True)
        best = order[firsts]
        is_nearer = away[best] < nearest[components]
        nearest[components[is_nearer]] = away[best[is_nearer]]
        places[components[is_nearer]] = np.stack(voxels, axis=1)[best[is_nearer]]
    return [(z, y, x) for z, y, x in (places[chosen] + np.array(judged.origin)).tolist()]


def _list_voxels(numbers: Array) -> Iterator[tuple[Array, list[Array]]]:
    """Yield the component of voxels, from 0, and their places along z, y and x, a few planes at a time."""
    for slab in cut_slabs(numbers.shape):
        planes = numbers[slab]
        z, y, x = np.nonzero(planes)
        if len(z):
            yield planes[z, y, x] - 1, [z + slab.start, y, x]


def _find_worst_place(case: OpenCase, judged: Sequence[JudgedRegion], costs: dict[str, float]) -> Voxel:
    """Return a voxel where the costliest component of the costliest region is wrong.

    Without a loss, return the place with the most wrong voxels, or the middle of a case without components.
    """
    worst: tuple[JudgedRegion, int, int] | None = None
    highest = -1.0, -1.0
    for region in judged:
        total = float(region.costs[0].sum() + region.costs[1].sum())
        scale = costs.get(region.region.name, 0.0) / total if total else 0.0
        for side, wrong in enumerate((region.missing, region.wrong)):
            if len(wrong):
                number = int(np.lexsort((wrong, region.costs[side]))[-1])
                keys = float(region.costs[side][number]) * scale, float(wrong[number])
                if keys > highest:
                    highest, worst = keys, (region, side, number)
    if worst is None:
        z, y, x = (side // 2 for side in case.truth.shape)
        return z, y, x
    return _find_error(*worst)


def _find_error(judged: JudgedRegion, side: int, number: int) -> Voxel:
    """Return a wrong voxel in the worst row of a component's worst slice; else any voxel of it."""
    numbers = judged.numbers
    component = numbers[side] == number + 1
    wrong = component & (numbers[1 - side] == 0)
    if not side:
        wrong |= np.append(False, judged.partner == number)[numbers[1]] & (numbers[0] == 0)
    chosen = wrong if wrong.any() else component
    z = _find_largest(np.count_nonzero(chosen, axis=(1, 2)))
    y = _find_largest(np.count_nonzero(chosen[z], axis=1))
    x = _find_largest(chosen[z, y])
    return z + judged.origin[0], y + judged.origin[1], x + judged.origin[2]


def _find_largest(counts: Array) -> int:
    """Return the index of the largest count; of equal ones, the middle index."""
    largest = np.flatnonzero(counts == counts.max())
    return int(largest[len(largest) // 2])
