"""The causes of sequences' losses: masks by cause, and the sentence about them."""

from __future__ import annotations

from collections import Counter

from segjudge.evaluation_script.families.sequences.losses import (
    KINDS,
    RIGHT,
    SHARED,
    TRACKED,
    ObjectLosses,
    SequenceLosses,
)
from segjudge.evaluation_script.families.sequences.truth import label_order
from segjudge.families.base.causes import CauseCounts
from segjudge.families.base.segments import FAULTS, INEXACT, MISSED, SWAPPED

#: Kinds of failure in whole frames.
_WHOLE = "late", "miss", "swap", "drift"
_GHOST, _SWAP, _CONFUSED = "ghost", "swap", "confused"
_CAUSES = {"miss": FAULTS[MISSED].name, "swap": FAULTS[SWAPPED].name}


def describe_causes(sequences: list[SequenceLosses]) -> str:
    """Describe the two most expensive causes; "" without losses, or if pixels are not counted."""
    causes = CauseCounts("mask", "sequence")
    for sequence in sequences:
        causes.add_swaps(sequence.name, _list_swaps(sequence))
        for losses in sequence.objects:
            _add_object(causes, sequence.name, losses)
    return causes.describe()


def _add_object(counts: CauseCounts, sequence: str, losses: ObjectLosses) -> None:
    """Add the masks of an object in all frames."""
    owner, kinds = (sequence, losses.score.name), Counter(losses.kinds)
    costs = dict(zip(KINDS, losses.parts.sum(axis=0).tolist(), strict=True))
    counts.add_true("", sequence, len(losses.kinds) - kinds[RIGHT] - kinds[_GHOST])
    for kind in (_GHOST, *_WHOLE):
        counts.note_object(_CAUSES.get(kind, kind), kinds[kind], costs[kind], owner)
    tracked = sum(costs[kind] for kind in SHARED)
    inexact = sum(kind == TRACKED and lost > 0 for kind, lost in zip(losses.kinds, losses.parts.sum(axis=1).tolist()))
    if costs[_CONFUSED] > tracked / 2:
        counts.note_object(_CONFUSED, inexact, tracked, owner)
    elif tracked:
        cause = counts.judge_pixels(*losses.pixels) if any(losses.pixels) else FAULTS[INEXACT].name
        counts.note_object(cause, inexact, tracked, owner)


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
