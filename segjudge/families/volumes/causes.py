"""The sentence that explains the loss of volumes: components by cause, sizes of missed ones, surface accuracy."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from segjudge.evaluation_script.families.volumes.protocols import VolumeProtocol
from segjudge.evaluation_script.files.problems import inflect
from segjudge.evaluation_script.masks.stack import Array
from segjudge.families.base.causes import CauseCounts, describe_share

from .components import (
    INEXACT,
    MERGED,
    MISSED,
    RIGHT,
    SPLIT,
    SURPLUS,
    TOO_LITTLE,
    TOO_MUCH,
    WRONG_LABEL,
    JudgedRegion,
)
from .losses import name_label, overlaps

#: The names of the causes in the sentences of all families.
_CAUSES = {WRONG_LABEL: "wrong class", TOO_LITTLE: "too small", TOO_MUCH: "too large"}
#: Verdicts on true components that a prediction meets.
FOUND = (RIGHT, TOO_LITTLE, TOO_MUCH, INEXACT, MERGED, SPLIT)
#: Names of regions that are lesions.
_LESIONS = ("lesion", "GTV", "mass", "tumor")
#: The minimum share of found components that are larger than all missed ones if the volume of these is stated.
_LARGER = 0.75
#: The minimum share of a label's voxels that are called another one if the label is.
_MOST_OF_LABEL = 0.5
#: The factor from a number with two digits to the next one.
_ABOVE = 1.001


def _name_component(protocol: VolumeProtocol) -> str:
    """Return the noun of a component."""
    names = [region.name for region in protocol.regions]
    by_lesion = protocol.lesions is not None or ("LesionError" in protocol.measures and bool(names))
    return "lesion" if by_lesion or (names and all(name.startswith(_LESIONS) for name in names)) else "component"


@dataclass
class VolumeCauses(CauseCounts):
    """Components by cause, of all examined cases."""

    protocol: VolumeProtocol = field(kw_only=True)
    #: Labels of which only parts are called others, as in `confused_in`.
    partly_confused_in: dict[tuple[str, str], Counter[str]] = field(default_factory=dict)
    #: Predicted components that lie on another label.
    wrong_predicted: int = 0
    #: Volumes of missed and of detected components, in cubic millimetres.
    missed_volumes: list[Array] = field(default_factory=list)
    found_volumes: list[Array] = field(default_factory=list)

    @classmethod
    def for_protocol(cls, protocol: VolumeProtocol) -> VolumeCauses:
        return cls(_name_component(protocol), "case", "voxels", protocol=protocol)

    def add_labels(
        self, case: str, regions: Sequence[JudgedRegion], pairs: Mapping[tuple[int, int], int], voxels: Array
    ) -> None:
        """Add the labels of a case that are called others, given the voxels by true and predicted label, and by label.

        A label is called so if a component is, or most of its voxels; otherwise only a part of it. Regions may share
        labels: one that has both labels hides the change, and one of several labels does not say which it is.
        """
        lone_labels = {region.region.labels[0] for region in regions if len(region.region.labels) == 1}
        if overlaps(self.protocol):
            for label in np.flatnonzero(voxels[1:]).tolist():
                self.units_with.setdefault(name_label(label + 1, self.protocol), set()).add(case)
        called, covered = Counter[tuple[int, int]](), Counter[tuple[int, int]]()
        for judged in regions:
            labels, is_joint = judged.region.labels, len(judged.region.labels) > 1
            for number, predicted in judged.called.items():
                true = max(labels, key=lambda label: pairs.get((label, predicted), 0))
                if judged.counted[number] and not (is_joint and true in lone_labels):
                    called[true, predicted] += 1
            for true in judged.covers.values():
                predicted = max(labels, key=lambda label: pairs.get((true, label), 0))
                if not (is_joint and predicted in lone_labels):
                    covered[true, predicted] += 1
        for pair, count in covered.items():
            if pair not in called and pairs.get(pair, 0) >= _MOST_OF_LABEL * voxels[pair[0]]:
                called[pair] = count
        for (true, predicted), count in {**covered, **called}.items():
            names = name_label(true, self.protocol), name_label(predicted, self.protocol)
            cases = self.confused_in if (true, predicted) in called else self.partly_confused_in
            cases.setdefault(names, Counter())[case] += count

    def add_region(
        self,
        case: str,
        judged: JudgedRegion,
        scale: float,
        spacing: Sequence[float],
        pairs: Mapping[tuple[int, int], int],
    ) -> None:
        """Add the components of a region; costs are scaled to what the region costs."""
        name, (kinds, predicted) = judged.region.name, judged.kinds
        self.units.add(case)
        if len(kinds):
            self.add_true(name, case, int(judged.counted.sum()))
        self.predicted += len(predicted)
        self.wrong_predicted += len(judged.covers)
        self.predicted_classes[name] += len(predicted)
        for kind in np.unique(kinds[judged.counted].astype(str)).tolist():
            chosen = judged.counted & (kinds == kind)
            if kind != RIGHT:
                cost = float(judged.costs[0][chosen].sum()) * scale
                self.note(_CAUSES.get(kind, kind), cost, name, int(chosen.sum()))
        for kind in np.unique(predicted.astype(str)).tolist():
            chosen = predicted == kind
            if kind != RIGHT:
                cost = float(judged.costs[1][chosen].sum()) * scale
                self.note(_CAUSES.get(kind, kind), cost, name, int(chosen.sum()) if kind == SURPLUS else 0)
        self._add_edges(judged)
        self._add_named_voxels(judged, pairs)
        volumes = judged.sizes[0] * float(np.prod(spacing))
        self.missed_volumes.append(volumes[judged.counted & (kinds == MISSED)])
        self.found_volumes.append(volumes[judged.counted & np.isin(kinds, FOUND)])

    def _add_edges(self, judged: JudgedRegion) -> None:
        """Add the voxels of found components."""
        for kind in (TOO_LITTLE, TOO_MUCH, INEXACT):
            chosen = judged.kinds[0] == kind
            parts = np.isin(judged.partner, np.flatnonzero(chosen))
            sums = judged.missing[chosen], judged.wrong[parts], judged.sizes[0][chosen], judged.sizes[1][parts]
            voxels = self.pixels.setdefault(_CAUSES.get(kind, kind), [0.0] * 4)
            for index, values in enumerate(sums):
                voxels[index] += float(values.sum())

    def _add_named_voxels(self, judged: JudgedRegion, pairs: Mapping[tuple[int, int], int]) -> None:
        """Add which labels the missing or extra voxels of a region have, if its components differ in these alone."""
        labels, kinds = judged.region.labels, {*np.concatenate(judged.kinds).tolist()} - {RIGHT}
        for kind, side in ((TOO_LITTLE, 0), (TOO_MUCH, 1)) if len(kinds) == 1 else ():
            for pair, voxels in pairs.items():
                if kind in kinds and pair[side] in labels and pair[1 - side] not in labels:
                    names = self.pixels_of.setdefault(_CAUSES[kind], Counter())
                    names[name_label(pair[1 - side], self.protocol)] += voxels

    # ── words ──

    def describe(self, scope: str = "") -> str:
        """Describe the two most expensive causes, and missed components beside inexact ones."""
        if not any(self.costs.values()):  # the row's first share ignores these
            self.costs = {cause: float(self.counts[cause]) for cause in (MISSED, SURPLUS) if self.counts[cause]}
        text = super().describe(scope)
        worst = max(self.costs, key=lambda cause: self.costs[cause], default="")
        is_named = worst in {MISSED, SURPLUS, "wrong class"} or "missed" in text or not self.counts[MISSED]
        return text if is_named else f"{text[:-1]}; {self._describe_cause(MISSED)}."

    def _describe_cause(self, cause: str) -> str:
        return super()._describe_cause(cause) + (self._describe_missed() if cause == MISSED else "")

    def _has_sentence(self, cause: str) -> bool:
        is_confused = bool(self.confused_in or self.partly_confused_in)
        return super()._has_sentence(cause) or (cause == _CAUSES[WRONG_LABEL] and is_confused)

    def describe_confusion(self, cause: str, some: str, verb: str) -> str:
        if not self.counts[_CAUSES[WRONG_LABEL]]:  # of components that are larger
            predicted = f"predicted {self.segment}"
            some = describe_share(self.wrong_predicted, self.predicted, predicted)
            verb = inflect(self.wrong_predicted, "is", "are")
        if self.confused_in or not self.partly_confused_in:
            return super().describe_confusion(cause, some, verb)
        (name, called), cases = max(self.partly_confused_in.items(), key=lambda item: len(item[1]))
        return f"part of {name} is called {called}{self._count_units(len(cases), self.units_with.get(name, set()))}"

    def _describe_missed(self) -> str:
        """Describe the volume below which all missed components lie, if most found ones are larger."""
        missed, met = (np.concatenate([*volumes, np.zeros(0)]) for volumes in (self.missed_volumes, self.found_volumes))
        if not missed.size or not met.size:
            return ""
        largest = float(missed.max())
        bound = _round_up(largest)
        bound = bound if bound > largest else _round_up(bound * _ABOVE)
        if np.mean(met >= bound) < _LARGER:
            return ""
        return f", {'all ' if len(missed) > 1 else ''}below {bound:,.12g} mm³"


def _round_up(value: float) -> float:
    """Return the next larger number with two digits."""
    if value <= 0:
        return 0.0
    step = 10.0 ** (math.floor(math.log10(value)) - 1)
    return math.ceil(round(value / step, 6)) * step
