"""Which objects of a sequence a protocol scores, and in which of its frames."""

from __future__ import annotations

from typing import Dict, List

import numpy as np

from .masks import Array
from .sequence_protocols import LifespanRule, ObjectRule, SequenceProtocol
from .sequence_truth import VOID, Sequence, flags_of, is_number, label_order

#: LVOS leaves out objects that are seen in fewer frames.
SHORTEST_LIFESPAN = 4


def scored_objects(sequence: Sequence, protocol: SequenceProtocol) -> Dict[str, Array]:
    """Return the objects that a protocol scores in a sequence, each with the frames that may count."""
    objects = {}
    for name in _names(sequence, protocol):
        counted = _without_ends(_lifespan(sequence, name, protocol), protocol)
        if protocol.objects is not ObjectRule.SEEN or (_visible(sequence, name) & counted).any():
            objects[name] = counted
    return objects


def frames_to_read(sequence: Sequence, protocol: SequenceProtocol) -> Dict[str, Array]:
    """Return which frames are read for each object; without objects for "", so that the masks are checked anyway."""
    return scored_objects(sequence, protocol) or {"": _without_ends(np.ones(len(sequence.frames), bool), protocol)}


def _without_ends(frames: Array, protocol: SequenceProtocol) -> Array:
    """Return these frames without the first and last of them, where the protocol skips those."""
    indices = np.flatnonzero(frames)
    if protocol.skip_first:
        frames[indices[:1]] = False
    if protocol.skip_last:
        frames[indices[-1:]] = False
    return frames


def _names(sequence: Sequence, protocol: SequenceProtocol) -> List[str]:
    labels = sorted((label for label in sequence.objects if label != VOID), key=label_order)
    first = [label for label in labels if _visible(sequence, label)[:1].any()]
    if protocol.objects is ObjectRule.FOREGROUND:
        return ["1"]
    if protocol.objects is ObjectRule.NUMBERED:
        highest = max((int(label) for label in first if is_number(label)), default=0)
        return [str(number) for number in range(1, highest + 1)]
    if protocol.objects is ObjectRule.SEEN:
        return sorted(sequence.objects, key=label_order)
    if sequence.lists_objects:
        return [label for label, facts in sequence.objects.items() if facts.lifespan is not None]
    if protocol.objects is ObjectRule.FIRST:
        return first
    return [label for label in labels if _lifespan(sequence, label, protocol).sum() >= SHORTEST_LIFESPAN]


def _visible(sequence: Sequence, name: str) -> Array:
    facts = sequence.objects.get(name)
    return flags_of(facts.visible if facts else [], len(sequence.frames))


def _lifespan(sequence: Sequence, name: str, protocol: SequenceProtocol) -> Array:
    facts = sequence.objects.get(name)
    if protocol.lifespan is not LifespanRule.VIDEO and facts is not None and facts.lifespan is not None:
        return flags_of(facts.lifespan, len(sequence.frames))
    if protocol.lifespan is LifespanRule.OWN:
        return np.maximum.accumulate(_visible(sequence, name))
    return np.ones(len(sequence.frames), bool)
