"""What a page shows of mask sequences, read in one pass: losses by kind, and the masks of each frame as streams."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from segjudge.evaluation_script.answer import SequenceReport
from segjudge.evaluation_script.sequence_truth import Sequence, Split
from segjudge.failure_kinds import KINDS, RIGHT, SHARED, TRACKED
from segjudge.failures import LossCounter, ObjectLosses, ScoredSequence, compared_blocks, opened_sequences
from segjudge.prepared import PreparedScoring

from .mask_stream import MaskStream, width_for
from .page import PageOptions, link

#: Values in a stream are whole numbers of thousandths.
SCALE = 1000
#: How a stream names what is no kind of a whole frame.
_NUMBERS = {RIGHT: -1, TRACKED: -2, **{kind: place for place, kind in enumerate(KINDS)}}


@dataclass(frozen=True)
class SequenceLosses:
    """What the objects of a sequence lost."""

    truth: Sequence
    objects: list[ObjectLosses]
    #: The stream of its truth; those of predictions have the number of the method behind it.
    stream: str

    @property
    def name(self) -> str:
        """The sequence."""
        return self.truth.name

    @property
    def link(self) -> Markup:
        """The name, which opens it in the page."""
        return link(self.name, self.stream)

    @property
    def shares(self) -> list[float]:
        """The loss by kind, as the mean over the objects."""
        return mean_shares((one.shares, 1.0) for one in self.objects)

    @property
    def lost(self) -> float:
        """The loss, as the mean over the objects."""
        return math.fsum(self.shares)


def mean_shares(weighted: Iterable[tuple[list[float], float]]) -> list[float]:
    """Return the weighted mean of losses by kind."""
    rows = list(weighted)
    total = math.fsum(weight for _, weight in rows) or 1.0
    return [math.fsum(shares[kind] * weight for shares, weight in rows) / total for kind in range(len(KINDS))]


@dataclass(frozen=True)
class MethodLosses:
    """What a method lost in each sequence."""

    name: str
    report: SequenceReport
    sequences: list[SequenceLosses]

    @property
    def shares(self) -> list[float]:
        """The loss by kind, as the protocol's mean takes it."""
        weights = self._weights()
        return mean_shares(
            (one.shares, weights[one.score.unseen])
            for sequence in self.sequences
            for one in sequence.objects
            if one.score.frames
        )

    def _weights(self) -> dict[bool, float]:
        """Return how much an object counts, seen or unseen; the two classes count alike where they are told apart."""
        scores = [score for score in self.report.scores if score.frames]
        counts = {unseen: sum(score.unseen is unseen for score in scores) for unseen in (False, True)}
        alike = not self.report.protocol.by_class
        return {unseen: 1.0 if alike else 1 / max(count, 1) for unseen, count in counts.items()}


class LossReader:
    """Reads the masks of one or several methods on the same truth, and collects the streams of a page.

    Without options of a page there are no streams.
    """

    def __init__(self, methods: int, options: PageOptions | None) -> None:
        self._expected, self._options = methods, options
        #: How wide masks are in the page.
        self.width = 0
        self._methods = 0
        #: zlib streams by name, and without their masks.
        self.streams: dict[str, bytes] = {}
        self._bare: dict[str, bytes] = {}

    def read(self, job: PreparedScoring, report: SequenceReport, name: str) -> MethodLosses:
        """Return what a method lost."""
        truth = job.splits[report.split]
        if self._options is not None and isinstance(truth, Split):
            frames = sum(len(sequence.frames) for sequence in truth.sequences)
            pictures = bool(self._options.images)
            self.width = width_for(frames, self._expected, self._options.budget, pictures=pictures)
        found = [self._sequence(scored, report) for scored in opened_sequences(job, report)]
        self._methods += 1
        return MethodLosses(name, report, [one for one in found if one.objects])

    def _sequence(self, scored: ScoredSequence, report: SequenceReport) -> SequenceLosses:
        stream, counter = f"{report.split}/{scored.truth.name}", LossCounter(scored, report.protocol)
        size = scored.truth.blocks[0].size if scored.truth.blocks else (1, 1)
        names, new = [score.name for score in scored.scores], stream not in self.streams
        truth, predicted = (MaskStream(names, size, max(self.width, 1)) for _ in range(2))
        for block in compared_blocks(scored, report.protocol):
            counter.add(block)
            if self.width:
                predicted.add(block.predicted, len(block.frames), block.size)
            if self.width and new:
                truth.add(block.truth, len(block.frames), block.size)
        losses = counter.losses()
        if self.width:
            places = {frame: place for place, frame in enumerate(scored.truth.frames)}
            entries = [_object_entry(one, places) for one in losses]
            self._keep(f"{stream}/{self._methods}", predicted, {"objects": entries})
        if self.width and new:
            self._keep(stream, truth, {"frames": scored.truth.frames})
        return SequenceLosses(scored.truth, losses, stream)

    def _keep(self, name: str, masks: MaskStream, header: dict[str, object]) -> None:
        self.streams[name], self._bare[name] = masks.packed(header), masks.packed(header, bare=True)

    def leave_out(self, sequence: SequenceLosses) -> None:
        """Leave out a sequence's masks; its numbers stay."""
        for name in self.streams:
            if name == sequence.stream or name.rpartition("/")[0] == sequence.stream:
                self.streams[name] = self._bare[name]


def _object_entry(one: ObjectLosses, places: dict[str, int]) -> dict[str, object]:
    """Return what a page shows of an object's frames, beside the masks."""
    tracked = [kind == TRACKED for kind in one.kinds]
    return {
        "name": one.score.name,
        "at": [places[frame] for frame in one.score.frames],
        "j": _thousandths(one.score.j),
        "f": _thousandths(one.score.f),
        "kinds": [_NUMBERS[kind] for kind in one.kinds],
        "parts": _thousandths(one.parts[tracked][:, -len(SHARED) :].reshape(-1)),
    }


def _thousandths(values: np.ndarray) -> list[int]:
    numbers: list[int] = np.round(values * SCALE).astype(int).tolist()
    return numbers
