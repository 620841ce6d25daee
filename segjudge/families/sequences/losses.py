"""What methods lost on the same mask sequences: by object and kind, with the masks that a page shows, and when."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from itertools import pairwise

from segjudge.evaluation_script.families.base.reports import Report, Row
from segjudge.evaluation_script.families.sequences.engine import OpenedSequences
from segjudge.evaluation_script.families.sequences.losses import (
    KINDS,
    RIGHT,
    TRACKED,
    ObjectLosses,
    ScoredSequence,
    SequenceLosses,
    has_kinds,
    pair_with_scores,
    shares_of,
    view_sequence,
)
from segjudge.evaluation_script.families.sequences.metrics import SequenceReport
from segjudge.evaluation_script.families.sequences.protocols import SequenceProtocol
from segjudge.evaluation_script.families.sequences.truth import Split
from segjudge.evaluation_script.masks.stream import in_page, width_for
from segjudge.families.base.tools import ScoringInputs
from segjudge.report.page import PageOptions
from segjudge.system.errors import UsageError


def list_failures(inputs: ScoringInputs, report: Report) -> list[Row]:
    """Return of each scored object, in the order of the report, how much of 1 - J&F each kind takes."""
    if not isinstance(report, SequenceReport):
        raise TypeError(f"{report.split} holds no mask sequences")
    check_kinds(report.protocol)
    objects = [
        losses
        for sequence in _open_sequences(inputs, report)
        for losses in view_sequence(sequence, report.protocol, "", 0).losses.objects
    ]
    return [
        {"sequence": score.sequence, "object": score.name, **dict(zip(KINDS, losses.shares, strict=True))}
        for score, losses in zip(report.scores, objects, strict=True)
    ]


def check_kinds(protocol: SequenceProtocol) -> None:
    """Raise UsageError where the kinds do not sum to what a protocol's mean loses."""
    if not has_kinds(protocol):
        raise UsageError(f"failures of {protocol.name} have no kinds: J&F is not the mean over its frames")


def _open_sequences(inputs: ScoringInputs, report: SequenceReport) -> Iterator[ScoredSequence]:
    """Yield the sequences of a split, with their scores."""
    with closing(inputs.scorers[report.split].open(inputs.results)) as opened:
        if not isinstance(opened, OpenedSequences):
            raise UsageError(f"failures of {report.protocol.name} have no kinds")
        yield from pair_with_scores(opened.pairs, report)


# ── one or several methods ──────────────────────────────────────────────────


@dataclass(frozen=True)
class MethodLosses:
    """What a method lost in each sequence."""

    name: str
    sequences: list[SequenceLosses]
    #: The loss by kind, as the protocol's mean takes it.
    shares: list[float]


class LossReader:
    """Reads the masks of one or several methods on the same truth, and collects the streams of a page.

    Without options of a page there are no streams.
    """

    def __init__(self, methods: int, options: PageOptions | None) -> None:
        self._count, self._options = methods, options
        #: How wide masks are in the page.
        self.width = 0
        self.methods: list[MethodLosses] = []
        #: zlib streams by name, and without their masks.
        self.streams: dict[str, bytes] = {}
        self._bare: dict[str, bytes] = {}

    def read(self, inputs: ScoringInputs, report: SequenceReport, name: str) -> MethodLosses:
        """Read what a method lost."""
        truth = inputs.scorers[report.split].truth
        if self._options is not None and isinstance(truth, Split):
            frames = sum(len(sequence.frames) for sequence in truth.sequences)
            pictures = bool(self._options.images)
            self.width = width_for(frames, self._count, self._options.budget, pictures=pictures)
        sequences = []
        for sequence in _open_sequences(inputs, report):
            stream = f"{report.split}/{sequence.truth.name}"
            new = stream not in self.streams
            view = view_sequence(sequence, report.protocol, stream, self.width, with_truth=new)
            for bare, streams in ((False, self.streams), (True, self._bare)) if self.width else ():
                streams[f"{stream}/{len(self.methods)}"] = view.prediction_stream(bare=bare)
                if new:
                    streams[stream] = view.truth_stream(bare=bare)
            if view.losses.objects:
                sequences.append(view.losses)
        objects = [
            (losses.shares, losses.score.unseen)
            for sequence in sequences
            for losses in sequence.objects
            if losses.score.frames
        ]
        self.methods.append(MethodLosses(name, sequences, shares_of(objects, report.protocol)))
        return self.methods[-1]

    def leave_out_masks(self, order: list[SequenceLosses], budget: int) -> int:
        """Leave out the masks of the last sequences that are too much, whose numbers stay; return of how many."""
        count = 0
        while in_page(self.streams.values()) > budget and count < len(order):
            count += 1
            stream = order[-count].stream
            for name in self.streams:
                if name == stream or name.rpartition("/")[0] == stream:
                    self.streams[name] = self._bare[name]
        return count

    def add_pictures(self, pictures: Mapping[str, bytes]) -> None:
        """Add pictures to what the page shows."""
        self.streams |= pictures


# ── worst moments ───────────────────────────────────────────────────────────


#: Frames between two runs of failures alike that still make one moment.
_GAP = 2
#: How many moments a page shows, and how many of them of one sequence.
_MOST_MOMENTS, _OF_A_SEQUENCE = 12, 2
#: The aspect in which each kind fails, which gives its colour, and what it is called.
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
    start: str
    end: str
    #: The frame with the greatest loss.
    worst: str


def find_moments(sequences: list[SequenceLosses]) -> list[Moment]:
    """Return the worst moments of some sequences."""
    moments = [
        moment for sequence in sequences for losses in sequence.objects for moment in _moments_of(sequence.name, losses)
    ]
    worst: list[Moment] = []
    for moment in sorted(moments, key=lambda moment: (-moment.cost, moment.sequence, moment.label, moment.start)):
        if sum(shown.sequence == moment.sequence for shown in worst) < _OF_A_SEQUENCE:
            worst.append(moment)
    return worst[:_MOST_MOMENTS]


def _moments_of(sequence: str, losses: ObjectLosses) -> Iterator[Moment]:
    costs = losses.parts.sum(axis=1)
    usual = float(costs.mean()) if len(costs) else 0.0
    # A tracked object always loses a little at its edge: only more than usual makes a moment.
    aspects = [
        "" if kind == RIGHT or (kind == TRACKED and cost <= usual) else MEANINGS.get(kind, ("shape",))[0]
        for kind, cost in zip(losses.kinds, costs.tolist(), strict=True)
    ]
    for start, stop in _find_runs(aspects):
        shares = losses.parts[start:stop].sum(axis=0)
        worst = start + int(costs[start:stop].argmax())
        yield Moment(
            sequence,
            losses.score.name,
            KINDS[int(shares.argmax())],
            float(shares.sum() / len(aspects)),
            losses.score.frames[start],
            losses.score.frames[stop - 1],
            losses.score.frames[worst],
        )


def _find_runs(aspects: list[str]) -> Iterator[tuple[int, int]]:
    """Yield where failures alike begin and end, small gaps within."""
    frames = [frame for frame, aspect in enumerate(aspects) if aspect]
    ends = [
        index
        for index, (before, after) in enumerate(pairwise(frames), 1)
        if aspects[before] != aspects[after] or after - before > _GAP + 1
    ]
    for start, stop in pairwise([0, *ends, len(frames)] if frames else []):
        yield frames[start], frames[stop - 1] + 1
