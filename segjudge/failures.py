"""Where the loss of mask sequences comes from: kinds of failure, which sum to 1 - J&F (`docs/ranking.md`)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from segjudge.errors import UsageError
from segjudge.evaluation_script.answer import SequenceReport
from segjudge.evaluation_script.mask_files import MaskFiles
from segjudge.evaluation_script.masks import Array, Stack, joined
from segjudge.evaluation_script.sequence_metrics import ObjectScore
from segjudge.evaluation_script.sequence_protocols import ObjectRule, SequenceProtocol
from segjudge.evaluation_script.sequence_truth import VOID, Sequence, Split
from segjudge.evaluation_script.sequences import OpenedSequences
from segjudge.failure_kinds import (
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
from segjudge.prepared import PreparedScoring, ScoreRequest, prepared


def failures(request: ScoreRequest, reports: list[SequenceReport]) -> list[dict[str, float]]:
    """Return of each scored object, in the order of the reports, how much of 1 - J&F each kind takes."""
    job, losses = prepared(request), []
    for report in reports:
        for opened in opened_sequences(job, report):
            counter = LossCounter(opened, report.protocol)
            for block in compared_blocks(opened, report.protocol):
                counter.add(block)
            losses += [dict(zip(KINDS, one.shares, strict=True)) for one in counter.losses()]
    return losses


@dataclass(frozen=True)
class ScoredSequence:
    """A sequence beside its masks, None where they were not sent, and the scores of its objects."""

    truth: Sequence
    masks: MaskFiles | None
    scores: list[ObjectScore]


def opened_sequences(job: PreparedScoring, report: SequenceReport) -> Iterator[ScoredSequence]:
    """Yield the sequences that were scored, and keep the results open meanwhile."""
    truth = job.splits[report.split]
    if not isinstance(truth, Split):
        raise UsageError(f"failures of {report.protocol.name} have no kinds")
    opened = OpenedSequences(job.path, truth, report.protocol, job.rules)
    try:
        for sequence, masks in opened.pairs:
            yield ScoredSequence(sequence, masks, [one for one in report.scores if one.sequence == sequence.name])
    finally:
        opened.close()


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
    kinds: list[str]
    #: The share of the frame that it takes in the truth; 0 where it is absent.
    areas: NDArray[np.float64]
    #: (frames, kinds)
    parts: NDArray[np.float64]

    @property
    def shares(self) -> list[float]:
        """How much each kind takes of what the object loses."""
        means: list[float] = (self.parts.sum(axis=0) / max(len(self.parts), 1)).tolist()
        return means


def kinds_known(protocol: SequenceProtocol) -> bool:
    """Return whether the kinds sum to what a protocol's mean loses."""
    return not protocol.reappearance and bool({"J&F-Mean", "J-Mean"} & set(protocol.metrics))


class LossCounter:
    """Splits the losses of a sequence's objects, block by block."""

    def __init__(self, scored: ScoredSequence, protocol: SequenceProtocol) -> None:
        if not kinds_known(protocol):
            raise UsageError(f"failures of {protocol.name} have no kinds: J&F is not the mean over its frames")
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
            for place, state in zip(at, states, strict=True):
                self._states[number][place] = state

    def losses(self) -> list[ObjectLosses]:
        """Return what each object lost, in the order of its scores."""
        found = []
        for score, states, areas, parts in zip(
            self._scored.scores, self._states, self._areas, self._parts, strict=True
        ):
            lost = 1 - ((score.j + score.f) / 2 if self._boundaries else score.j)
            kinds = with_lateness(states, (areas > 0).tolist())
            if self._scored.masks is None:  # scored as 0 in each frame, whatever it shows
                kinds, lost = ["miss"] * len(kinds), np.ones(len(kinds))
            for frame, kind in enumerate(kinds):
                if kind in KINDS:
                    parts[frame, KINDS.index(kind)] = lost[frame]
            found.append(ObjectLosses(score, kinds, areas, parts))
        return found
