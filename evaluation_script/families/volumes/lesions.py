"""Lesions: the connected components of a mask (z, y, x) after growing, and which of two masks meet."""

from __future__ import annotations

from typing import Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from ...files.problems import Flaw
from ...masks.stack import Array
from ...values.arithmetic import add
from .boxes import Box, select_labels
from .components import (
    Components,
    SharedComponents,
    find_components,
    find_runs,
    find_true_runs,
    group_by_touch,
    limit_runs,
    name_components,
    share_components,
)
from .overlaps import Overlap
from .places import Places, Spacing
from .protocols import LesionRule, Tissue
from .surfaces import check_noise, distance_by_weight, find_surfaces, list_border, measure_surfaces

#: The maximum number of voxels in all boxes around a lesion of the truth and the lesions that meet it.
_MOST_SEARCHED = 1 << 29
#: The maximum number of runs of a truth with fewer voxels per run.
_MOST_SPECKS, _PER_RUN = 1 << 19, 1.5
#: The number of runs of lesions in a cache.
_MOST_CACHED = 1 << 22
#: The tolerances of BraTS' NSD in millimetres.
_TOLERANCES = (0.5, 1.0)


class Lesion(NamedTuple):
    """A lesion of the truth and the predictions that meet it."""

    #: The lesion's volume is above the rule's minimum.
    counts: bool
    is_met: bool
    overlap: Overlap
    #: HD95 by surface elements; the rule's penalty if no prediction meets the lesion.
    hd95: float
    #: The shares of both borders within 0.5 and 1 mm, averaged over sides.
    nsd: Tuple[float, float]


class Lesions(NamedTuple):
    """The lesions of a region."""

    lesions: List[Lesion]
    #: The voxels of each prediction that meets no lesion.
    false: List[int]


class LesionSides(NamedTuple):
    """The lesions of both sides of a region, by a rule."""

    #: The grown truth, and the original truth in it.
    grown: Components
    true: Components
    predicted: Components

    @property
    def meetings(self) -> SharedComponents:
        """The pairs of a true lesion, after growing, and a predicted lesion that meet."""
        return share_components(self.grown, self.predicted)

    @property
    def shared(self) -> SharedComponents:
        """Pairs that share voxels of the truth."""
        return share_components(self.true, self.predicted)


def find_true(truth: Array, rule: LesionRule, neighbours: int = 26) -> Tuple[Components, Components]:
    """Return the lesions of a truth, grown and as annotated; raises a Flaw if they are isolated voxels."""
    runs, voxels = find_true_runs(truth), int(np.count_nonzero(truth))
    if runs.total > _MOST_SPECKS and voxels < _PER_RUN * runs.total:
        fault = f"has a truth with a region of isolated voxels: {voxels:,} voxels in {runs.total:,} runs"
        raise Flaw(fault, "Check the labels of the truth, which look like noise")
    if not rule.steps:
        grown = name_components(runs, neighbours)
        return grown, grown
    grown = name_components(find_true_runs(truth, rule.steps), neighbours)
    return grown, grown.name_within(runs)


def find_predicted(prediction: Array, rule: LesionRule, limit: int) -> Components:
    """Return predicted lesions without those that a rule removes; raises a Flaw if they have too many runs."""
    return _remove_small(_find_grown(prediction, rule, limit)[1], rule)


def _find_grown(prediction: Array, rule: LesionRule, limit: int) -> Tuple[Components, Components]:
    """Return predicted lesions, grown if the rule joins them, and as predicted."""
    runs = find_runs(prediction, limit)
    grown = find_components(prediction, 26, steps=rule.steps) if rule.joins else name_components(runs, 26)
    return grown, grown.name_within(runs)


def _remove_small(predicted: Components, rule: LesionRule) -> Components:
    return predicted.keep(predicted.sizes > rule.removed) if rule.removed else predicted


class LesionCache:
    """The lesions of tissues that several regions of a case need, while they have few runs."""

    def __init__(self) -> None:
        self._listed: Dict[Tuple[object, ...], Tuple[Components, ...]] = {}
        self._runs = 0

    def get(self, key: Tuple[object, ...]) -> Optional[Tuple[Components, ...]]:
        """Return the lesions of a key if they are listed."""
        return self._listed.get(key)

    def find(self, key: Tuple[object, ...], make: Callable[[], Tuple[Components, ...]]) -> Tuple[Components, ...]:
        """Return the lesions of a key, which are made unless they are listed."""
        listed = self.get(key)
        if listed is None:
            listed = make()
            runs = sum(lesions.runs.total for lesions in listed)
            if self._runs + runs <= _MOST_CACHED:
                self._listed[key] = listed
                self._runs += runs
        return listed


def find_lesions(
    labels: Tuple[Array, Array],
    tissues: Sequence[Tissue],
    box: Optional[Box] = None,
    cache: Optional[LesionCache] = None,
) -> LesionSides:
    """Return the lesions of the first tissue on both sides, joined where they touch the same lesion of another one.

    The first lesion that several touch is that by columns, as in BraTS' scripts. Labels are those in a box of the case,
    whose cache has lesions of tissues.
    """
    source = _TissueSource(labels, str(box), cache or LesionCache())
    grown, true = source.find_true(tissues[0])
    predicted = source.find_predicted(tissues[0])
    for tissue in tissues[1:]:
        if true.total > 1:
            groups = group_by_touch(true, source.sort_true(tissue))
            grown, true = grown.regroup(groups), true.regroup(groups)
        if predicted.total > 1:
            predicted = predicted.regroup(group_by_touch(predicted, source.sort_predicted(tissue)))
    return LesionSides(grown, true, predicted)


class _TissueSource(NamedTuple):
    """Labels of both sides in a box, and a cache of the lesions of tissues that are found in them."""

    labels: Tuple[Array, Array]
    box: str
    cache: LesionCache

    def find_true(self, tissue: Tissue) -> Tuple[Components, ...]:
        """Return a tissue's lesions of the truth, grown and as annotated."""

        def make() -> Tuple[Components, ...]:
            return find_true(select_labels(self.labels[0], tissue.labels), tissue.lesions)

        return self.cache.find(self._name_true(tissue), make)

    def _name_true(self, tissue: Tissue) -> Tuple[object, ...]:
        """Return the key of a tissue's lesions of the truth."""
        return 0, self.box, tissue.labels, tissue.lesions.steps

    def _find_grown(self, tissue: Tissue) -> Tuple[Components, ...]:
        """Return a tissue's predicted lesions, grown and as predicted."""

        def make() -> Tuple[Components, ...]:
            true = self.cache.get(self._name_true(tissue))
            runs = true[1].runs if true else find_true_runs(select_labels(self.labels[0], tissue.labels))
            return _find_grown(select_labels(self.labels[1], tissue.labels), tissue.lesions, limit_runs(runs))

        return self.cache.find((1, self.box, tissue.labels, tissue.lesions.steps, tissue.lesions.joins), make)

    def find_predicted(self, tissue: Tissue) -> Components:
        """Return a tissue's predicted lesions without those that its rule removes."""
        return _remove_small(self._find_grown(tissue)[1], tissue.lesions)

    def sort_true(self, tissue: Tissue) -> Components:
        """Return a tissue's lesions of the truth, by columns."""
        grown, true = self.find_true(tissue)
        key = (2, self.box, tissue.labels, tissue.lesions.steps)
        return self.cache.find(key, lambda: (grown.sort_by_columns().name_within(true.runs),))[0]

    def sort_predicted(self, tissue: Tissue) -> Components:
        """Return a tissue's predicted lesions, by columns, without those that its rule removes."""

        def make() -> Tuple[Components, ...]:
            grown, predicted = self._find_grown(tissue)
            return (_remove_small(grown.sort_by_columns().name_within(predicted.runs), tissue.lesions),)

        return self.cache.find((3, self.box, tissue.labels, tissue.lesions), make)[0]


def match_lesions(sides: LesionSides, rule: LesionRule, spacing: Spacing, *, nsd: bool = False) -> Lesions:
    """Match the lesions of a region by a rule; NSD is measured on request."""
    true, predicted, meetings, shared = sides.true, sides.predicted, sides.meetings, sides.shared
    volume, both = spacing[0] * spacing[1] * spacing[2], np.bincount(shared.true, shared.voxels, true.total)
    counts = true.sizes * volume > rule.ignored
    places = np.searchsorted(meetings.true, np.arange(true.total + 1))
    boxes = _find_boxes(sides, meetings.predicted, places, counts)
    lesions: List[Lesion] = []
    drawn: Optional[_DrawnLesions] = None
    numbers = zip(true.sizes.tolist(), both.tolist(), counts.tolist(), places.tolist(), places[1:].tolist())
    for number, (size, voxels, is_counted, start, stop) in enumerate(numbers):
        meeting = meetings.predicted[start:stop]
        overlap = Overlap(size, int(predicted.sizes[meeting].sum()), int(voxels))
        hd95, shares = rule.penalty, (0.0, 0.0)
        if number in boxes:
            if drawn is None or not drawn.shows(meeting, boxes[number]):
                drawn = _DrawnLesions(predicted, meeting, boxes[number])
            truth = true.draw(np.array([number]), boxes[number])
            hd95, shares = _measure_masks(truth, drawn, spacing, nsd=nsd)
        lesions.append(Lesion(is_counted, len(meeting) > 0, overlap, hd95, shares))
    return Lesions(lesions, np.delete(predicted.sizes, meetings.predicted).tolist())


def _find_boxes(sides: LesionSides, predicted: Array, places: Array, counts: Array) -> Dict[int, Box]:
    """Return the boxes of true lesions that count, each with the predictions that meet it, listed from some places on.

    Raises a Flaw if the boxes have too many voxels in all.
    """
    met = np.flatnonzero(places[1:] > places[:-1])
    ends, chosen = np.empty((len(met), 6), np.int64), counts[met]
    for side in range(6) if len(met) else ():
        unite = np.maximum if side % 2 else np.minimum
        around = unite.reduceat(sides.predicted.ends[predicted, side], places[met])
        ends[:, side] = unite(around, sides.true.ends[met, side])
    lengths = (ends[:, 1::2] - ends[:, ::2])[chosen]
    if int(lengths.prod(axis=1).sum()) > _MOST_SEARCHED:
        fault = "has lesions that extend across the volume and touch many true ones"
        limit = f"the boxes around them have more than {_MOST_SEARCHED:,} voxels in all"
        raise Flaw(f"{fault}: {limit}", "Check the labels, and separate the lesions")
    rows = zip(met[chosen].tolist(), ends[chosen].tolist())
    return {lesion: tuple(map(slice, row[::2], row[1::2])) for lesion, row in rows}


class _DrawnLesions:
    """Predicted lesions in a box, whose surface and border are listed once for all true lesions that they meet."""

    def __init__(self, predicted: Components, chosen: Array, box: Box) -> None:
        self._chosen, self._box = chosen, box
        self.mask = predicted.draw(chosen, box)
        self.surface: Optional[Places] = None
        self.border: Optional[Places] = None

    def shows(self, chosen: Array, box: Box) -> bool:
        """Return whether these lesions are drawn in this box."""
        return self._box == box and np.array_equal(self._chosen, chosen)


def _measure_masks(
    truth: Array, drawn: _DrawnLesions, spacing: Spacing, *, nsd: bool
) -> Tuple[float, Tuple[float, float]]:
    """Return HD95 by elements, and BraTS' NSD at 0.5 and 1 mm by border voxels, if it is wanted.

    This NSD is the mean of both borders' shares, with the scripts' small constant.
    """
    surfaces = find_surfaces((truth, drawn.mask), drawn.surface)
    drawn.surface = surfaces[1]
    hd95 = distance_by_weight(measure_surfaces(surfaces, spacing), 95)
    if not nsd:
        return hd95, (0.0, 0.0)
    if drawn.border is None:
        drawn.border = list_border(drawn.mask)
    edges = list_border(truth), drawn.border
    check_noise(*map(len, edges))
    borders = [side.distances for side in measure_surfaces(edges, spacing, _TOLERANCES[-1])]
    half, whole = (
        add([np.count_nonzero(side <= tolerance) / len(side) for side in borders]) / (2 + 1e-8)
        for tolerance in _TOLERANCES
    )
    return hd95, (half, whole)


class LesionScores(NamedTuple):
    """The lesion-wise scores of a region in a case."""

    dice: float
    hd95: float
    nsd: Tuple[float, float]
    #: Counted lesions of the truth: met and missed; and false ones.
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
