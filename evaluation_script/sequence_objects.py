"""Which objects of a sequence a protocol scores, and in which of its frames."""

from __future__ import annotations

from dataclasses import dataclass
from typing import List

import numpy as np

from .masks import Array
from .sequence_protocols import LifespanRule, ObjectRule, SequenceProtocol
from .sequence_truth import VOID, Sequence, flags_of, is_number, label_order

#: LVOS leaves out objects that are seen in fewer frames.
SHORTEST_LIFESPAN = 4


@dataclass(frozen=True)
class ScoredObject:
    """An object to be scored and the frames that may count for it."""

    name: str
    counted: Array


def scored_objects(sequence: Sequence, protocol: SequenceProtocol) -> List[ScoredObject]:
    """The objects that a protocol scores in a sequence, each with the frames that may count."""
    found = []
    for name in _objects(sequence, protocol):
        counted = ends_cut(_span(sequence, name, protocol), protocol)
        if protocol.objects is ObjectRule.SEEN and not (_visible(sequence, name) & counted).any():
            continue
        found.append(ScoredObject(name, counted))
    return found


def ends_cut(counted: Array, protocol: SequenceProtocol) -> Array:
    """These frames without the first and last of them, where the protocol skips those."""
    places = np.flatnonzero(counted)
    if protocol.skip_first:
        counted[places[:1]] = False
    if protocol.skip_last:
        counted[places[-1:]] = False
    return counted


def _objects(sequence: Sequence, protocol: SequenceProtocol) -> List[str]:
    numbered = sorted((name for name in sequence.objects if name != VOID), key=label_order)
    first = [name for name in numbered if _visible(sequence, name)[:1].any()]
    if protocol.objects is ObjectRule.FOREGROUND:
        return ["1"]
    if protocol.objects is ObjectRule.NUMBERED:
        highest = max((int(name) for name in first if is_number(name)), default=0)
        return [str(number) for number in range(1, highest + 1)]
    if protocol.objects is ObjectRule.SEEN:
        return sorted(sequence.objects, key=label_order)
    if sequence.lists_objects:
        return [name for name, facts in sequence.objects.items() if facts.lifespan is not None]
    if protocol.objects is ObjectRule.FIRST:
        return first
    return [name for name in numbered if _span(sequence, name, protocol).sum() >= SHORTEST_LIFESPAN]


def _visible(sequence: Sequence, name: str) -> Array:
    facts = sequence.objects.get(name)
    return flags_of(facts.visible if facts else [], len(sequence.frames))


def _span(sequence: Sequence, name: str, protocol: SequenceProtocol) -> Array:
    count = len(sequence.frames)
    facts = sequence.objects.get(name)
    if protocol.span is not LifespanRule.VIDEO and facts is not None and facts.lifespan is not None:
        return flags_of(facts.lifespan, count)
    if protocol.span is LifespanRule.LIFE:
        return np.maximum.accumulate(_visible(sequence, name))
    return np.ones(count, bool)
