"""Lesions: the connected components of a mask (z, y, x) after growing, and which of two masks meet."""

from __future__ import annotations

from functools import reduce
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

import numpy as np

from ...files.problems import Flaw
from ...masks.backend import backend
from ...masks.stack import Array
from ...runner.tuning import release_memory
from ...values import NamedTuple
from ...values.arithmetic import add
from .boxes import Box, count_voxels, cover, select_labels
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
from .surfaces import (
    check_noise,
    check_specks,
    cut_near,
    distance_by_parts,
    find_surface,
    flag_near,
    list_border,
    measure_distances,
)

#: The maximum number of voxels in all boxes around a lesion of the truth and the lesions that meet it.
_MOST_SEARCHED = 1 << 32
#: The number of a prediction's runs above which memory that finding them freed is returned to the system.
_MANY_RUNS = 1 << 18
#: The maximum number of runs of a truth with fewer voxels per run.
_MOST_SPECKS, _PER_RUN = 1 << 19, 1.5
#: The voxels of a small box around lesions, and the number of such boxes whose measures are kept.
_SMALL, _MOST_ALIKE = 1_000, 10_000
#: The number of runs of lesions in a cache.
_MOST_CACHED = 1 << 22
#: A prediction's surface is used for many lesions if it has this many voxels, so many times those beside it.
_LARGE, _TIMES_LARGER = 1 << 14, 4
#: A prediction of almost the box around all lesions, of which this many are measured, is looked at in that box by all.
_ALMOST, _FEWEST_SHARED = 2, 3
#: HD95, and the shares of both borders within 0.5 and 1 mm.
_Measures = Tuple[float, Tuple[float, float]]
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
    surfaces, lesions = _LesionSurfaces(sides, spacing, boxes), []
    if len(predicted.names) > _MANY_RUNS:
        release_memory()
    numbers = zip(true.sizes.tolist(), both.tolist(), counts.tolist(), places.tolist(), places[1:].tolist())
    for number, (size, voxels, is_counted, start, stop) in enumerate(numbers):
        meeting = meetings.predicted[start:stop]
        overlap = Overlap(size, int(predicted.sizes[meeting].sum()), int(voxels))
        if number in boxes:
            hd95, shares = surfaces.measure(number, meeting, boxes[number], nsd=nsd)
        else:
            hd95, shares = rule.penalty, (0.0, 0.0)
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


class _LesionSurfaces:
    """The surfaces of lesions; the last prediction's are cached, because it may meet several lesions."""

    def __init__(self, sides: LesionSides, spacing: Spacing, boxes: Dict[int, Box]) -> None:
        self._lesions, self._spacing = sides, spacing
        #: The box around all lesions.
        self._outer = cover(boxes.values())
        self._is_lone = len(boxes) < _FEWEST_SHARED
        self._key: Any = None
        #: By elements, and by border voxels if NSD is measured.
        self._kept: List[Places] = []
        #: The measures of small lesions by both masks, many of which are alike if lesions are many.
        self._measured: Dict[Tuple[Tuple[int, ...], bytes], _Measures] = {}

    def measure(self, lesion: int, meeting: Array, box: Box, *, nsd: bool) -> _Measures:
        """Return HD95 by elements, and NSD by border voxels, of a lesion and all predicted lesions that meet it."""
        true, predicted = self._lesions.true, self._lesions.predicted
        if count_voxels(box) > _SMALL:
            return self._measure_box(np.array([lesion]), meeting, box, nsd=nsd)
        masks = np.stack([true.draw(np.array([lesion]), box), predicted.draw(meeting, box)])
        alike = masks.shape, masks.tobytes()
        if alike not in self._measured:
            if len(self._measured) == _MOST_ALIKE:
                self._measured.clear()
            surfaces = [_find_surfaces(mask, nsd=nsd) for mask in masks]
            self._measured[alike] = self._measure_surfaces(*surfaces)
        return self._measured[alike]

    def _measure_box(self, lesion: Array, meeting: Array, box: Box, *, nsd: bool) -> _Measures:
        true, predicted = self._lesions.true, self._lesions.predicted
        largest, small = self._split(meeting)
        is_shared = not self._is_lone and _ALMOST * count_voxels(predicted.box_around(largest)) > count_voxels(
            self._outer
        )
        box = self._outer if is_shared else box
        key = str(box), largest.tobytes()
        if key != self._key:
            self._key, self._kept = None, []  # frees the previous surfaces first
            self._kept = _find_surfaces_in(box, predicted, largest, nsd=nsd)
            self._kept[0].is_shared = is_shared
            self._key = key
        more = [_find_surfaces_in(box, predicted, small, nsd=nsd)] if len(small) else []
        return self._measure_surfaces(_find_surfaces_in(box, true, lesion, nsd=nsd), self._kept, *more)

    def _split(self, meeting: Array) -> Tuple[Array, Array]:
        """Return the largest of some predictions and the others, or all and none if it is not far larger.

        Specks that touch one another meet many lesions, each beside others that are small. Components do not touch, so
        that each has the surface that it has beside the others.
        """
        sizes = self._lesions.predicted.sizes[meeting]
        is_largest = np.arange(len(meeting)) == sizes.argmax()
        if not backend().kernel or int(sizes.max()) < max(_LARGE, _TIMES_LARGER * int(sizes[~is_largest].sum())):
            return meeting, meeting[:0]
        return meeting[is_largest], meeting[~is_largest]

    def _measure_surfaces(self, true: List[Places], *predicted: List[Places]) -> _Measures:
        elements, *borders = zip(*predicted)
        check_noise(len(true[0]), sum(map(len, elements)))
        check_specks(true[0])
        hd95 = distance_by_parts(true[0], elements, self._spacing, 95)
        return hd95, _share_of_sides(true[1], borders[0], self._spacing) if borders else (0.0, 0.0)


def _find_surfaces_in(box: Box, components: Components, chosen: Array, *, nsd: bool) -> List[Places]:
    """Return the surface of some components in a box around them, and their border voxels if NSD is measured."""
    inner = components.box_around(chosen)
    steps, sides = zip(*((side.start - outer.start, outer.stop - outer.start) for side, outer in zip(inner, box)))
    elements, *borders = _find_surfaces(components.draw(chosen, inner), nsd=nsd)
    corners = tuple(side + 1 for side in sides)
    return [elements.move(steps, corners), *(border.move(steps, sides) for border in borders)]


def _find_surfaces(mask: Array, *, nsd: bool) -> List[Places]:
    """Return a mask's surface, and its border voxels if NSD is measured."""
    return [find_surface(mask), *([list_border(mask)] if nsd else [])]


def _share_of_sides(truth: Places, parts: Sequence[Places], spacing: Spacing) -> Tuple[float, float]:
    """Return BraTS' NSD at 0.5 and 1 mm: the mean of both borders' shares, with its small constant.

    The prediction's border is in parts. Only surfaces this near to the lesion are measured.
    """
    totals = len(truth), sum(map(len, parts))
    check_noise(*totals)
    truth, *parts = cut_near([truth, *parts], truth, spacing, _TOLERANCES[-1])
    borders = truth, reduce(Places.merge, parts)
    near = [flag_near(borders, spacing, tolerance) for tolerance in _TOLERANCES]
    flags = [sides for sides in near if sides is not None]
    if len(flags) < len(_TOLERANCES):
        distances = measure_distances(borders, spacing, _TOLERANCES[-1])
        flags = [[side <= tolerance for side in distances] for tolerance in _TOLERANCES]
    half, whole = (
        add([np.count_nonzero(side) / total for side, total in zip(sides, totals)]) / (2 + 1e-8) for sides in flags
    )
    return half, whole


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
