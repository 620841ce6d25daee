"""What mask sequences lost, read from their masks once more: kinds of failure that sum to 1 - J&F (`docs/ranking.md`).

They are known frame by frame, and there are small masks to look at.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Dict, Iterable, Iterator, List, Optional, Tuple

import numpy as np
from numpy.typing import NDArray

from ...masks.files import MaskFiles, SalientImages
from ...masks.stack import Array, Stack, nothing
from ...masks.stream import MaskStream
from .counting import comparable, is_one_mask
from .engine import OpenedSequences
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
from .metrics import ObjectScore, SequenceReport
from .protocols import SequenceProtocol
from .truth import Sequence

#: Values in a stream are whole numbers of thousandths.
SCALE = 1000
#: How a stream names what is no kind of a whole frame.
STATES = {RIGHT: -1, TRACKED: -2, **{kind: place for place, kind in enumerate(KINDS)}}


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
        truth, predicted = comparable(truth, predicted, protocol, nothing(len(names), block.size))
        if is_one_mask(protocol):
            predicted = {score.name: predicted[SalientImages.NAME] for score in scored.scores}
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


@dataclass(frozen=True)
class SequenceLosses:
    """What the objects of a sequence lost."""

    name: str
    frames: List[str]
    objects: List[ObjectLosses]
    #: What objects are, where the dataset says so.
    categories: Dict[str, str]
    #: How wide its frames are.
    width: int
    #: The stream of its truth; those of predictions have the number of the method behind it.
    stream: str

    @property
    def shares(self) -> List[float]:
        """The loss by kind, as the mean over the objects."""
        return mean_shares((one.shares, 1.0) for one in self.objects)

    @property
    def lost(self) -> float:
        """The loss, as the mean over the objects."""
        return math.fsum(self.shares)


def mean_shares(weighted: Iterable[Tuple[List[float], float]]) -> List[float]:
    """Return the weighted mean of losses by kind."""
    rows = list(weighted)
    total = math.fsum(weight for _, weight in rows) or 1.0
    return [math.fsum(shares[kind] * weight for shares, weight in rows) / total for kind in range(len(KINDS))]


def shares_of(objects: List[Tuple[List[float], bool]], protocol: SequenceProtocol) -> List[float]:
    """Return the loss by kind as the protocol's mean takes it, from that of each object and whether it is unseen.

    Where the protocol tells classes apart, those that are seen count as much as those that are not.
    """
    counts = {unseen: sum(one[1] is unseen for one in objects) for unseen in (False, True)}
    weights = {unseen: 1 / max(count, 1) if protocol.by_class else 1.0 for unseen, count in counts.items()}
    return mean_shares((shares, weights[unseen]) for shares, unseen in objects)


def scored_sequences(opened: OpenedSequences, report: SequenceReport) -> List[ScoredSequence]:
    """Return the sequences of a submission with their scores."""
    scores: Dict[str, List[ObjectScore]] = {}
    for score in report.scores:
        scores.setdefault(score.sequence, []).append(score)
    return [ScoredSequence(sequence, masks, scores.get(sequence.name, [])) for sequence, masks in opened.pairs]


@dataclass(frozen=True)
class SequenceView:
    """What a sequence lost, and its masks for a page."""

    losses: SequenceLosses
    truth: Optional[MaskStream]
    predicted: Optional[MaskStream]

    def truth_stream(self, *, bare: bool = False) -> bytes:
        """Return the stream of the truth; bare it has no masks."""
        return b"" if self.truth is None else self.truth.packed({"frames": self.losses.frames}, bare=bare)

    def predicted_stream(self, *, bare: bool = False) -> bytes:
        """Return the stream of the prediction, and of its numbers; bare it has no masks."""
        places = {frame: place for place, frame in enumerate(self.losses.frames)}
        entries = [_object_entry(one, places) for one in self.losses.objects]
        return b"" if self.predicted is None else self.predicted.packed({"objects": entries}, bare=bare)


def viewed(
    scored: ScoredSequence,
    protocol: SequenceProtocol,
    stream: str,
    width: int,
    *,
    with_truth: bool = True,
    most: float = math.inf,
) -> SequenceView:
    """Read a sequence; its masks become so wide at most, and are left out for a width of 0 or more runs than `most`."""
    sequence, counter = scored.truth, LossCounter(scored, protocol)
    size = sequence.blocks[0].size if sequence.blocks else (1, 1)
    names = [score.name for score in scored.scores]
    predicted = MaskStream(names, size, width, most) if width else None
    truth = MaskStream(names, size, width, most) if width and with_truth else None
    for block in compared_blocks(scored, protocol):
        counter.add(block)
        for side, masks in ((predicted, block.predicted), (truth, block.truth)):
            if side is not None:
                side.add(masks, len(block.frames), block.size)
    categories = {label: facts.category or "" for label, facts in sequence.objects.items()}
    widest = max((block.size[1] for block in sequence.blocks), default=1)
    losses = SequenceLosses(sequence.name, sequence.frames, counter.losses(), categories, widest, stream)
    return SequenceView(losses, truth, predicted)


def _object_entry(one: ObjectLosses, places: Dict[str, int]) -> Dict[str, object]:
    """Return what a page shows of an object's frames, beside the masks."""
    tracked = [kind == TRACKED for kind in one.kinds]
    return {
        "name": one.score.name,
        "at": [places[frame] for frame in one.score.frames],
        "j": _thousandths(one.score.j),
        "f": _thousandths(one.score.f),
        "kinds": [STATES[kind] for kind in one.kinds],
        "parts": _thousandths(one.parts[tracked][:, -len(SHARED) :].reshape(-1)),
    }


def _thousandths(values: np.ndarray) -> List[int]:
    numbers: List[int] = np.round(values * SCALE).astype(int).tolist()
    return numbers
