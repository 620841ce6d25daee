"""The causes of sequences' losses: masks by cause, and the sentence about them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from segjudge.evaluation_script.families.sequences.losses import (
    KINDS,
    RIGHT,
    SHARED,
    TRACKED,
    ObjectLosses,
    SequenceLosses,
)
from segjudge.evaluation_script.families.sequences.truth import label_order
from segjudge.evaluation_script.files.problems import inflect, quantity
from segjudge.families.base.causes import INEXACT_CAUSES, CauseCounts, describe_share
from segjudge.families.base.mirrored import WAYS
from segjudge.families.base.segments import FAULTS, INEXACT, MISSED, SWAPPED

from .misplaced import Placement

#: Kinds of failure in whole frames, and the end of a sentence about their masks.
_WHOLE = {
    "late": "missed after the return of the object",
    "miss": "missed",
    "swap": "on another object",
    "drift": "lost on the background",
}
_GHOST, _SWAP, _CONFUSED = "ghost", "swap", "confused"
_CAUSES = {"miss": FAULTS[MISSED].name, "swap": FAULTS[SWAPPED].name}
#: The maximum number of objects to name.
_MOST_NAMED = 2


def describe_causes(sequences: list[SequenceLosses], misplaced: Mapping[str, Placement]) -> str:
    """Describe the two most expensive causes; "" without losses, or if pixels are not counted. For misplaced sequences
    the cause names where their masks belong.
    """
    causes = _SequenceCauses("mask", "sequence")
    for sequence in sequences:
        placement = misplaced.get(sequence.name, Placement())
        causes.edges += placement.edges
        if placement.owner or placement.mirrored or placement.offset:
            causes.add_misplaced(sequence, placement)
            continue
        causes.add_swaps(sequence.name, _list_swaps(sequence))
        for losses in sequence.objects:
            causes.add_object(sequence.name, losses)
    return causes.describe()


@dataclass
class _SequenceCauses(CauseCounts):
    """Masks of objects in frames, by cause."""

    #: The objects with each cause, by sequence and number.
    objects: dict[str, Counter[tuple[str, str]]] = field(default_factory=dict)
    #: Causes that are shifts in time.
    offsets: set[str] = field(default_factory=set)

    def add_object(self, sequence: str, losses: ObjectLosses) -> None:
        """Add the masks of an object in all frames."""
        name, kinds = losses.score.name, Counter(losses.kinds)
        costs = dict(zip(KINDS, losses.parts.sum(axis=0).tolist(), strict=True))
        self.add_true("", sequence, len(losses.kinds) - kinds[RIGHT] - kinds[_GHOST])
        for kind in (_GHOST, *_WHOLE):
            self._add(_CAUSES.get(kind, kind), kinds[kind], costs[kind], (sequence, name))
        tracked = sum(costs[kind] for kind in SHARED)
        inexact = sum(
            kind == TRACKED and lost > 0 for kind, lost in zip(losses.kinds, losses.parts.sum(axis=1).tolist())
        )
        if tracked and costs[_CONFUSED] > tracked / 2:
            self._add(_CONFUSED, inexact, tracked, (sequence, name))
        elif tracked:
            cause = self.judge_pixels(*losses.pixels) if any(losses.pixels) else FAULTS[INEXACT].name
            self._add(cause, inexact, tracked, (sequence, name))

    def add_misplaced(self, sequence: SequenceLosses, placement: Placement) -> None:
        """Add a sequence whose masks belong elsewhere."""
        cost = sum(float(losses.parts.sum()) for losses in sequence.objects)
        frames = sum(len(losses.kinds) for losses in sequence.objects)
        if placement.owner:
            self.add_elsewhere((sequence.name, ""), (placement.owner, ""), (frames, 0), (), cost)
        else:
            self.add_true("", sequence.name, frames)
            cause = placement.mirrored
            if placement.offset:
                cause = f"{quantity(abs(placement.offset), 'frame')} {'early' if placement.offset > 0 else 'late'}"
                self.offsets.add(cause)
            self._add(cause, 1, cost, (sequence.name, ""))

    def _add(self, cause: str, count: int, cost: float, owner: tuple[str, str]) -> None:
        if count and cost:
            self.costs[cause] = self.costs.get(cause, 0.0) + cost
            self.counts[cause] += count
            self.objects.setdefault(cause, Counter())[owner] += count

    def _finds_all(self) -> bool:
        return self.counts.keys() <= {RIGHT, *INEXACT_CAUSES}

    def _describe_cause(self, cause: str) -> str:
        number = self.counts[cause]
        if cause == FAULTS[SWAPPED].name and self.swapped:
            return super()._describe_cause(cause)
        if cause in {*WAYS, *self.offsets}:
            some = describe_share(number, len(self.units), self.unit)
            if cause in WAYS:
                return f"{cause} are exchanged in {some}"
            return f"the masks of {some} are {cause}"
        if cause == _GHOST:
            masks = quantity(number, "predicted mask")
            return f"{masks} {inflect(number, 'shows', 'show')} an absent object{self._name_objects(cause)}"
        kinds = {**_WHOLE, **{_CAUSES[kind]: text for kind, text in _WHOLE.items() if kind in _CAUSES}}
        about = {**kinds, _CONFUSED: "mixed with a neighbour"}.get(cause)
        if about is None:
            return super()._describe_cause(cause)
        return f"{self._count_some(cause)} {inflect(number, 'is', 'are')} {about}{self._name_objects(cause)}"

    def _describe_inexact(self, cause: str, some: str, verb: str) -> str:
        """Describe inexact masks, without shares if their pixels are not counted."""
        return super()._describe_inexact(cause, some, verb) if cause in self.pixels else f"{some} {verb} inexact"

    def _name_objects(self, cause: str) -> str:
        """Name the objects that have a cause, if they are few and of one sequence."""
        objects = sorted(self.objects[cause], key=lambda owner: label_order(owner[1]))
        sequences = {sequence for sequence, _ in objects}
        if len(objects) > _MOST_NAMED or len(sequences) > 1 or len(self.units) < 2:
            return ""
        names = " and ".join(name for _, name in objects)
        return f" ({inflect(len(objects), 'object', 'objects')} {names} of {sequences.pop()})"


def _list_swaps(sequence: SequenceLosses) -> list[tuple[str, str, str]]:
    """List the objects of a sequence that have another object's masks: object, other object, first frame. The other
    object is the one swapped in most of the same frames.
    """
    frames = {
        losses.score.name: [
            frame for frame, kind in zip(losses.score.frames, losses.kinds, strict=True) if kind == _SWAP
        ]
        for losses in sequence.objects
        if _SWAP in losses.kinds
    }
    swaps = []
    for name in sorted(frames, key=label_order):
        common = {label: len({*frames[label]} & {*frames[name]}) for label in frames if label != name}
        swapped = max(common, key=lambda label: common[label], default="")
        if common.get(swapped):
            swaps.append((f"object {name}", f"object {swapped}", frames[name][0]))
    return swaps
