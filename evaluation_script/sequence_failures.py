"""Where the loss of mask sequences comes from: kinds of failure, which sum to 1 - J&F (`docs/ranking.md`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Iterator, List, Optional

import numpy as np
from numpy.typing import NDArray

from .failure_kinds import (
    KINDS,
    RIGHT,
    SHARED,
    TRACKED,
    ComparedBlock,
    states_of,
    tracked_parts,
    window_of,
    with_lateness,
)
from .mask_files import MaskFiles
from .masks import Array, Stack, joined
from .sequence_metrics import ObjectScore
from .sequence_protocols import ObjectRule, SequenceProtocol
from .sequence_truth import VOID, Sequence


@dataclass(frozen=True)
class ScoredSequence:
    """A sequence beside its masks, None where they were not sent, and the scores of its objects."""

    truth: Sequence
    masks: Optional[MaskFiles]
    scores: List[ObjectScore]


def compared_blocks(scored: ScoredSequence, protocol: SequenceProtocol) -> Iterator[ComparedBlock]:
    """Yield the masks of a sequence as the protocol compares them; a frame that was not sent is empty."""
    sequence, masks = scored.truth, scored.masks
    sent = masks.frames() if masks is not None else set()
    for index, block in enumerate(sequence.blocks):
        names = sequence.frames[block.start : block.stop]
        rows = np.flatnonzero([name in sent for name in names])
        truth = sequence.read_block(index)
        found = masks.stacks([names[row] for row in rows], block.size) if masks is not None and len(rows) else {}
        predicted = {label: _spaced(stack, rows, len(names)) for label, stack in (found or {}).items()}
        if protocol.void and VOID in truth:
            predicted = {label: stack.without(truth[VOID]) for label, stack in predicted.items()}
        if protocol.objects is ObjectRule.FOREGROUND:
            truth, predicted = (
                {"1": joined(list(side.values()), len(names), block.size)} for side in (truth, predicted)
            )
        elif protocol.salient:
            salient = joined(list(predicted.values()), len(names), block.size)
            predicted = {score.name: salient for score in scored.scores}
        elif protocol.proposals:
            matched = {str(score.proposal): score.name for score in scored.scores}
            predicted = {matched.get(label, f"proposal {label}"): stack for label, stack in predicted.items()}
        yield ComparedBlock(names, block.size, truth, predicted)


def _spaced(stack: Stack, rows: Array, frames: int) -> Stack:
    """Return a stack of some frames of a block as one of all its frames."""
    if len(rows) == frames:
        return stack
    words = np.zeros((frames, *stack.words.shape[1:]), np.uint64)
    words[rows] = stack.words
    return Stack(words, stack.top, stack.left, stack.size)


@dataclass(frozen=True)
class ObjectLosses:
    """What an object lost in each frame that counts for it, and how."""

    score: ObjectScore
    #: Of each frame a kind, that it is right, or that the object is tracked.
    kinds: List[str]
    #: (frames, kinds)
    parts: NDArray[np.float64]
    #: How much each kind takes of what the object loses.
    shares: List[float]
    #: The mean share of the frame that it takes in the truth where it is there.
    area: float
    #: Whether it is absent in some of the frames.
    absent: bool


def kinds_known(protocol: SequenceProtocol) -> bool:
    """Return whether the kinds sum to what a protocol's mean loses."""
    return not protocol.reappearance and bool({"J&F-Mean", "J-Mean"} & set(protocol.metrics))


class LossCounter:
    """Splits the losses of a sequence's objects, block by block."""

    def __init__(self, scored: ScoredSequence, protocol: SequenceProtocol) -> None:
        self._scored, self._boundaries = scored, "J&F-Mean" in protocol.metrics
        self._places = [{frame: place for place, frame in enumerate(score.frames)} for score in scored.scores]
        self._states = [[RIGHT] * len(score.frames) for score in scored.scores]
        self._areas = [np.zeros(len(score.frames)) for score in scored.scores]
        self._parts = [np.zeros((len(score.frames), len(KINDS))) for score in scored.scores]

    def add(self, block: ComparedBlock) -> None:
        """Take the frames of a block."""
        for number, places in enumerate(self._places):
            rows = np.array([row for row, frame in enumerate(block.frames) if frame in places], int)
            if not len(rows):
                continue
            at = [places[block.frames[row]] for row in rows]
            name = self._scored.scores[number].name
            found = states_of(name, block)
            states = [found[row] for row in rows]
            tracked = [place for place, state in enumerate(states) if state == TRACKED]
            if tracked:
                shared = tracked_parts(window_of(name, block, rows[tracked]), boundaries=self._boundaries)
                self._parts[number][[at[place] for place in tracked], -len(SHARED) :] = shared
            if name in block.truth:
                self._areas[number][at] = block.truth[name].area[rows] / (block.size[0] * block.size[1])
            for place, state in zip(at, states):
                self._states[number][place] = state

    def losses(self) -> List[ObjectLosses]:
        """Return what each object lost, in the order of its scores."""
        found = []
        for score, states, areas, parts in zip(self._scored.scores, self._states, self._areas, self._parts):
            lost = 1 - ((score.j + score.f) / 2 if self._boundaries else score.j)
            kinds = with_lateness(states, (areas > 0).tolist())
            if self._scored.masks is None:  # scored as 0 in each frame, whatever it shows
                kinds, lost = ["miss"] * len(kinds), np.ones(len(kinds))
            for frame, kind in enumerate(kinds):
                if kind in KINDS:
                    parts[frame, KINDS.index(kind)] = lost[frame]
            shares: List[float] = (parts.sum(axis=0) / max(len(parts), 1)).tolist()
            visible = areas[areas > 0]
            area = float(visible.mean()) if len(visible) else 0.0
            found.append(ObjectLosses(score, kinds, parts, shares, area, bool((areas == 0).any())))
        return found
