"""Lesions: the connected components of a mask (z, y, x) after growing, and which of two masks meet."""

from __future__ import annotations

from typing import Any, List, NamedTuple, Tuple

import numpy as np

from ...masks.stack import Array
from ...values.arithmetic import add
from .boxes import cover
from .components import (
    Components,
    SharedComponents,
    find_components,
    find_runs,
    name_components,
    share_components,
)
from .distances import Spacing
from .overlaps import Overlap
from .protocols import LesionRule
from .surfaces import Sides, distance_by_weight, find_border, find_surface, measure_codes, measure_places

#: Voxels that are listed at once.
_SLAB = 1 << 21


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
    """Return the lesions of a truth, grown and as annotated."""
    grown = find_components(truth, neighbours, steps=rule.steps)
    return grown, grown.cut(find_runs(truth)) if rule.steps else grown


def find_predicted(prediction: Array, rule: LesionRule, limit: int) -> Components:
    """Return predicted lesions without those that a rule removes; raises a Flaw if they have too many runs."""
    runs = find_runs(prediction, limit)
    predicted = find_components(prediction, 26, steps=rule.steps).cut(runs) if rule.joins else name_components(runs, 26)
    return predicted.keep(predicted.sizes > rule.removed) if rule.removed else predicted


def match_lesions(sides: LesionSides, rule: LesionRule, spacing: Spacing, *, nsd: bool = False) -> Lesions:
    """Match the lesions of a region by a rule; NSD is measured on request."""
    true, predicted, meetings, shared = sides.true, sides.predicted, sides.meetings, sides.shared
    volume, both = spacing[0] * spacing[1] * spacing[2], np.bincount(shared.true, shared.voxels, true.total)
    surfaces, lesions = _LesionSurfaces(sides, spacing), []
    places = np.searchsorted(meetings.true, np.arange(true.total + 1)).tolist()
    for number, (start, stop) in enumerate(zip(places, places[1:])):
        meeting = meetings.predicted[start:stop]
        overlap = Overlap(int(true.sizes[number]), int(predicted.sizes[meeting].sum()), int(both[number]))
        counts = overlap.truth * volume > rule.ignored
        if len(meeting) and counts:
            hd95, shares = surfaces.measure(number, meeting, nsd=nsd)
        else:
            hd95, shares = rule.penalty, (0.0, 0.0)
        lesions.append(Lesion(counts, len(meeting) > 0, overlap, hd95, shares))
    return Lesions(lesions, np.delete(predicted.sizes, meetings.predicted).tolist())


class _Places(NamedTuple):
    """The non-zero bytes of a sparse array."""

    shape: Tuple[int, ...]
    positions: Array
    values: Array

    def fill(self) -> Array:
        """Return the array."""
        array = np.zeros(self.shape, self.values.dtype)
        array.reshape(-1)[self.positions] = self.values
        return array


def _list_places(array: Array) -> _Places:
    flat = array.reshape(-1)
    positions: Array = np.empty(np.count_nonzero(flat), np.int32 if flat.size < 1 << 31 else np.int64)
    count = 0
    for start in range(0, flat.size, _SLAB):
        listed = np.flatnonzero(flat[start : start + _SLAB])
        positions[count : count + len(listed)] = listed + start
        count += len(listed)
    return _Places(array.shape, positions, flat[positions])


class _LesionSurfaces:
    """The surfaces of lesions; the last prediction's are cached, because it may meet several lesions."""

    def __init__(self, sides: LesionSides, spacing: Spacing) -> None:
        self._lesions, self._spacing = sides, spacing
        self._key: Any = None
        #: By elements, and by border voxels if NSD is measured.
        self._kept: List[_Places] = []

    def measure(self, lesion: int, meeting: Array, *, nsd: bool) -> Tuple[float, Tuple[float, float]]:
        """Return HD95 by elements, and NSD by border voxels, of a lesion and all predicted lesions that meet it."""
        true, predicted = self._lesions.true, self._lesions.predicted
        box = cover([true.box_of(lesion), *map(predicted.box_of, meeting.tolist())])
        key = str(box), meeting.tobytes()
        if key != self._key:
            self._key, self._kept = None, []  # gives up the former ones first
            self._kept = _find_surfaces(predicted.draw(meeting, box), nsd=nsd)
            self._key = key
        surfaces = _find_surfaces(true.draw(np.array([lesion]), box), nsd=nsd)
        codes, *borders = zip(surfaces, self._kept)
        hd95 = distance_by_weight(measure_codes([side.fill() for side in codes], self._spacing), 95)
        if not borders:
            return hd95, (0.0, 0.0)
        return hd95, _share_of_sides(measure_places([side.fill() for side in borders[0]], self._spacing))


def _find_surfaces(mask: Array, *, nsd: bool) -> List[_Places]:
    """Return the codes of a mask's surface, and its border voxels if NSD is measured."""
    codes = _list_places(find_surface(mask))
    return [codes, *([_list_places(find_border(mask))] if nsd else [])]


def _share_of_sides(sides: Sides) -> Tuple[float, float]:
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
