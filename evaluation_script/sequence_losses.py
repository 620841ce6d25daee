"""What mask sequences lost, read from their masks once more: by kind, frame by frame, and small masks to look at."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Dict, Iterable, List, Optional, Tuple

import numpy as np

from .failure_kinds import KINDS, RIGHT, SHARED, TRACKED
from .mask_stream import MaskStream
from .reports import SequenceReport
from .sequence_failures import LossCounter, ObjectLosses, ScoredSequence, compared_blocks
from .sequence_metrics import ObjectScore
from .sequence_protocols import SequenceProtocol
from .sequences import OpenedSequences

#: Values in a stream are whole numbers of thousandths.
SCALE = 1000
#: How a stream names what is no kind of a whole frame.
STATES = {RIGHT: -1, TRACKED: -2, **{kind: place for place, kind in enumerate(KINDS)}}


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
