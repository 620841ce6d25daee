"""The worst moments of objects: runs of frames that fail in one way, by what they cost."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from segjudge.evaluation_script.families.sequences.losses import KINDS, RIGHT, TRACKED, ObjectLosses, SequenceLosses

#: Frames between two runs of a family that still make one moment.
GAP = 2
#: How many moments a page shows, and how many of them of one sequence.
SHOWN, OF_A_SEQUENCE = 12, 2
#: What each kind is called, and the family whose colour it has.
MEANINGS = {
    "ghost": ("time", "shown though absent"),
    "late": ("time", "found late after its return"),
    "miss": ("place", "not shown"),
    "swap": ("place", "on another object"),
    "drift": ("place", "lost on the background"),
    "confused": ("shape", "mixed with a neighbour"),
    "part": ("shape", "a part is missing"),
    "leak": ("shape", "spilled over"),
    "edge": ("shape", "inexact edge"),
}


@dataclass(frozen=True)
class Moment:
    """Frames in which an object fails in one way."""

    sequence: str
    label: str
    #: The kind that costs most, and what share of the object's loss it has here.
    kind: str
    cost: float
    first: str
    last: str
    #: The frame with the greatest loss.
    worst: str


def moments_of(sequences: list[SequenceLosses]) -> list[Moment]:
    """Return the worst moments of some sequences."""
    found = [moment for sequence in sequences for one in sequence.objects for moment in _of_object(sequence.name, one)]
    shown: list[Moment] = []
    for moment in sorted(found, key=lambda one: (-one.cost, one.sequence, one.label, one.first)):
        if sum(one.sequence == moment.sequence for one in shown) < OF_A_SEQUENCE:
            shown.append(moment)
    return shown[:SHOWN]


def _of_object(sequence: str, one: ObjectLosses) -> Iterator[Moment]:
    lost = one.parts.sum(axis=1)
    usual = float(lost.mean()) if len(lost) else 0.0
    # A tracked object always loses a little at its edge: only more than usual makes a moment.
    families = [
        "" if kind == RIGHT or (kind == TRACKED and loss <= usual) else MEANINGS.get(kind, ("shape",))[0]
        for kind, loss in zip(one.kinds, lost.tolist(), strict=True)
    ]
    for start, stop in _runs(families):
        shares = one.parts[start:stop].sum(axis=0)
        worst = start + int(lost[start:stop].argmax())
        yield Moment(
            sequence,
            one.score.name,
            KINDS[int(shares.argmax())],
            float(shares.sum() / len(families)),
            one.score.frames[start],
            one.score.frames[stop - 1],
            one.score.frames[worst],
        )


def _runs(families: list[str]) -> Iterator[tuple[int, int]]:
    """Yield where a family begins and ends, small gaps within."""
    places = [place for place, family in enumerate(families) if family]
    ends = [
        at
        for at, (one, other) in enumerate(pairwise(places), 1)
        if families[one] != families[other] or other - one > GAP + 1
    ]
    for start, stop in pairwise([0, *ends, len(places)] if places else []):
        yield places[start], places[stop - 1] + 1
