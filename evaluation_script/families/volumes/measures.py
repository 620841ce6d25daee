"""The measures of a region in a case, by name: the function, and its value if a side is empty.

| name | definition |
| --- | --- |
| Dice, IoU, Recall, Precision | shares of voxels |
| NSD, HD, HD95, ASSD, MASD | by elements of the surface, weighted by area |
| NSD-border, HD-border, ASSD-border, MASD-border | by border voxels |
| HD95-border, HD95-pooled | the larger percentile of both borders; the percentile of both together |
| HD95-border26 | as HD95-border, with borders by 26 neighbours |
| VolumeSimilarity, VolumeError (ml), RAVD (percent) | volumes |
| FPV, FNV (ml) | 18-components that the other side does not touch |
| LesionF1, LesionError, B0Error | 26-components |
| PQ, SQ, RQ, ComponentRecall, ComponentPrecision, ComponentDice | pairs of 26-components at IoU 0.5 |
| LesionDice, LesionHD95, LesionNSD0.5, LesionNSD1 | BraTS' lesions |
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Callable, Dict, Iterator, Optional, Tuple

import numpy as np

from ...masks.stack import Array
from ...values.arithmetic import add
from .boxes import Box, select_labels
from .components import PairedComponents, SharedComponents, compare_components, pair_components
from .lesions import LesionCache, LesionScores, find_lesions, match_lesions, score_lesions
from .overlaps import Overlap, count_overlap
from .places import Spacing
from .protocols import BEST, DISTANCES, IGNORED, LabelRegion, VolumeProtocol
from .surfaces import (
    Sides,
    distance_by_side,
    distance_by_weight,
    distance_pooled,
    find_surfaces,
    mean_by_side,
    mean_of_both,
    mean_pooled,
    measure_borders,
    measure_surfaces,
    share_within,
)

#: The cubic millimetres of a millilitre.
_MILLILITRE = 1000.0


class RegionOfCase:
    """A region of one case: its measures, each computed once from masks that are not kept."""

    def __init__(
        self,
        labels: Tuple[Array, Array],
        spacing: Spacing,
        protocol: VolumeProtocol,
        region: LabelRegion,
        volume: Tuple[int, ...],
        overlap: Optional[Overlap] = None,
    ) -> None:
        """Store both sides' labels in the region's box of a volume of this shape; none if the overlap is known."""
        self.volume = volume
        #: The region's box, and the lesions of tissues in boxes of the case.
        self.box: Optional[Box] = None
        self.cache: Optional[LesionCache] = None
        self.voxel = math.prod(spacing) / _MILLILITRE
        self._labels, self.protocol, self.region = labels, protocol, region
        if region.is_cropped:
            self._labels = _crop(self.truth, *labels)
        self.spacing: Spacing = (protocol.voxel,) * 3 if protocol.voxel else spacing
        self.overlap = overlap or count_overlap(self.truth, self.prediction)

    @property
    def truth(self) -> Array:
        """The region's voxels in the truth."""
        return select_labels(self._labels[0], self.region.labels)

    @property
    def prediction(self) -> Array:
        """The region's voxels in the prediction."""
        return select_labels(self._labels[1], self.region.labels)

    @property
    def _masks(self) -> Iterator[Array]:
        """The region's voxels in the truth, then in the prediction."""
        yield self.truth
        yield self.prediction

    def _compare(self, neighbours: int) -> SharedComponents:
        """Return the components of the truth and of the prediction by some neighbours."""
        return compare_components(self.truth, self.prediction, neighbours)

    @cached_property
    def elements(self) -> Sides:
        """The elements of both surfaces; for NSD alone, no distances beyond its tolerance are measured."""
        farthest = self.region.tolerance if _BY_ELEMENTS.isdisjoint(self.protocol.measures) else math.inf
        return measure_surfaces(find_surfaces(self._masks), self.spacing, farthest)

    @cached_property
    def borders(self) -> Sides:
        """The borders of both sides, by six neighbours."""
        return measure_borders(self._masks, self.spacing, open_ends=self.protocol.has_open_ends)

    @cached_property
    def borders_by_corners(self) -> Sides:
        """The borders of both sides, by 26 neighbours."""
        return measure_borders(self._masks, self.spacing, corners=True)

    @cached_property
    def pairs(self) -> PairedComponents:
        return pair_components(self.components)

    @cached_property
    def components(self) -> SharedComponents:
        """The 26-components of the truth and of the prediction."""
        return self._compare(26)

    @cached_property
    def untouched(self) -> Tuple[float, float]:
        """The volumes in ml of true 18-components that no prediction touches, and of predicted ones without truth."""
        true, predicted = self._compare(18).list_untouched()
        return int(true.sum()) * self.voxel, int(predicted.sum()) * self.voxel

    @cached_property
    def lesions(self) -> LesionScores:
        """The scores of BraTS' lesions."""
        tissues = self.protocol.tissues_of(self.region)
        if not tissues:
            raise ValueError(f"{self.protocol.name} has no rule of lesions")
        rule = tissues[0].lesions
        if rule.penalty < 0:
            rule = rule._replace(penalty=math.sqrt(add([side * side for side in self.volume])))
        needs_nsd = any(measure.startswith("LesionNSD") for measure in self.protocol.measures)
        sides = find_lesions(self._labels, tissues, self.box, self.cache)
        return score_lesions(match_lesions(sides, rule, self.spacing, nsd=needs_nsd), rule)

    @property
    def diagonal(self) -> float:
        """The diagonal of the volume in millimetres."""
        lengths = [count * step for count, step in zip(self.volume[::-1], self.spacing)]
        return math.sqrt(add([length * length for length in lengths]))

    def measure(self, name: str) -> Optional[float]:
        """Return a measure by name; None if the protocol ignores it here."""
        value = _OF_ANY[name](self) if name in _OF_ANY else self._measure_pair(name)
        if value is None or self.protocol.digits is None:
            return value
        return round(value, self.protocol.digits)

    def _measure_pair(self, name: str) -> Optional[float]:
        overlap, empties = self.overlap, self.protocol.empties
        if overlap.truth and overlap.prediction:
            if name in _AT_OPEN_ENDS and self.protocol.has_open_ends:
                sides = [len(side.distances) for side in self.borders]  # a mask that fills the volume has no border
                if not all(sides):
                    return (self.protocol.worst_distance or self.diagonal) if any(sides) else 0.0
            return _OF_PAIRS[name](self)
        rule = empties.both if overlap.is_empty else empties.prediction if overlap.truth else empties.truth
        if rule == IGNORED:
            return None
        is_distance = name in DISTANCES
        if rule == BEST:
            return 0.0 if is_distance or name == "RAVD" else 1.0
        if name == "RAVD":
            return 100.0 if overlap.truth else None
        return (self.protocol.worst_distance or self.diagonal) if is_distance else 0.0


#: Distances between elements of surfaces.
_BY_ELEMENTS = frozenset({"HD", "HD95", "ASSD", "MASD"})
#: Distances between borders, which are undefined if a side has no border.
_AT_OPEN_ENDS = ("HD-border", "HD95-border", "ASSD-border", "MASD-border")


def _crop(mask: Array, truth: Array, prediction: Array) -> Tuple[Array, Array]:
    """Return the slices from the true mask's first one to the last, without the last unless it is the only one."""
    slices = np.flatnonzero(mask.any(axis=(1, 2)))
    if not slices.size:
        return truth, prediction
    chosen = slice(int(slices[0]), max(int(slices[-1]), int(slices[0]) + 1))
    return truth[chosen], prediction[chosen]


def _dice(case: RegionOfCase) -> float:
    both, sizes = case.overlap.both, case.overlap.truth + case.overlap.prediction
    return 2 * both / (sizes + case.protocol.smoothing)


def _nsd(case: RegionOfCase) -> float:
    if _dice(case) < case.protocol.least_dice:
        return 0.0
    return share_within(case.elements, case.region.tolerance)


def _false_negative_volume(case: RegionOfCase) -> Optional[float]:
    if not case.overlap.truth and case.protocol.empties.truth == IGNORED:
        return None
    return case.untouched[0]


def _lesion_count_error(case: RegionOfCase) -> float:
    return float(abs(len(case.components.true_sizes) - len(case.components.predicted_sizes)))


def _lesion_f1(case: RegionOfCase) -> float:
    """Return F1 of components: a true one is found, and a predicted one right, if it touches the other side."""
    components = case.components
    if not len(components.true_sizes) + len(components.predicted_sizes):
        return 1.0
    hit = len(set(components.true.tolist()))
    missed, false = map(len, components.list_untouched())
    return hit / (hit + (missed + false) / 2)


def _betti_error(case: RegionOfCase) -> Optional[float]:
    """Return the difference of the numbers of components; None if there are none."""
    return None if case.overlap.is_empty else _lesion_count_error(case)


def _component_recall(case: RegionOfCase) -> Optional[float]:
    return len(case.pairs.ious) / case.pairs.truth if case.pairs.truth else None


def _component_precision(case: RegionOfCase) -> Optional[float]:
    return len(case.pairs.ious) / case.pairs.prediction if case.pairs.prediction else None


def _ratio(name: str) -> Callable[[RegionOfCase], float]:
    return lambda case: float(getattr(case.overlap, name) or 0.0)


def _relative_volume_error(case: RegionOfCase) -> float:
    overlap: Overlap = case.overlap
    return 100 * abs(overlap.truth - overlap.prediction) / overlap.truth


#: Measures of regions that exist on both sides.
_OF_PAIRS: Dict[str, Callable[[RegionOfCase], float]] = {
    "Dice": _dice,
    "IoU": _ratio("iou"),
    "Recall": _ratio("recall"),
    "Precision": _ratio("precision"),
    "VolumeSimilarity": _ratio("volume_similarity"),
    "RAVD": _relative_volume_error,
    "NSD": _nsd,
    "HD": lambda case: distance_by_weight(case.elements, 100),
    "HD95": lambda case: distance_by_weight(case.elements, 95),
    "ASSD": lambda case: mean_of_both(case.elements),
    "MASD": lambda case: mean_by_side(case.elements),
    "NSD-border": lambda case: share_within(case.borders, case.region.tolerance),
    "HD-border": lambda case: distance_by_side(case.borders, 100),
    "HD95-border": lambda case: distance_by_side(case.borders, 95),
    "HD95-pooled": lambda case: distance_pooled(case.borders, 95),
    "HD95-border26": lambda case: distance_by_side(case.borders_by_corners, 95),
    "ASSD-border": lambda case: mean_pooled(case.borders),
    "MASD-border": lambda case: mean_by_side(case.borders),
    "PQ": lambda case: case.pairs.sq * case.pairs.rq,
    "SQ": lambda case: case.pairs.sq,
    "RQ": lambda case: case.pairs.rq,
    "ComponentDice": lambda case: case.pairs.dice,
}
#: Measures of any region.
_OF_ANY: Dict[str, Callable[[RegionOfCase], Optional[float]]] = {
    "VolumeError": lambda case: abs(case.overlap.truth - case.overlap.prediction) * case.voxel,
    "FPV": lambda case: case.untouched[1],
    "FNV": _false_negative_volume,
    "LesionError": _lesion_count_error,
    "LesionF1": _lesion_f1,
    "B0Error": _betti_error,
    "ComponentRecall": _component_recall,
    "ComponentPrecision": _component_precision,
    "LesionDice": lambda case: case.lesions.dice,
    "LesionHD95": lambda case: case.lesions.hd95,
    "LesionNSD0.5": lambda case: case.lesions.nsd[0],
    "LesionNSD1": lambda case: case.lesions.nsd[1],
    "DSCagg": lambda _case: None,
}
