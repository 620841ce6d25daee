"""What methods lost on the same mask sequences, and the streams of their page."""

from __future__ import annotations

from dataclasses import dataclass

from segjudge.evaluation_script.families.sequences.losses import SequenceLosses, shares_of, view_sequence
from segjudge.evaluation_script.families.sequences.metrics import SequenceReport
from segjudge.evaluation_script.families.sequences.truth import Split
from segjudge.evaluation_script.masks.stream import width_for
from segjudge.families.base.tools import ScoringInputs
from segjudge.families.sequences.failures import sequences_of
from segjudge.report.page import PageOptions


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
        self._expected, self._options = methods, options
        #: How wide masks are in the page.
        self.width = 0
        self.methods: list[MethodLosses] = []
        #: zlib streams by name, and without their masks.
        self.streams: dict[str, bytes] = {}
        self._bare: dict[str, bytes] = {}

    def read(self, inputs: ScoringInputs, report: SequenceReport, name: str) -> MethodLosses:
        """Return what a method lost."""
        truth = inputs.scorers[report.split].truth
        if self._options is not None and isinstance(truth, Split):
            frames = sum(len(sequence.frames) for sequence in truth.sequences)
            pictures = bool(self._options.images)
            self.width = width_for(frames, self._expected, self._options.budget, pictures=pictures)
        found = []
        for scored in sequences_of(inputs, report):
            stream = f"{report.split}/{scored.truth.name}"
            new = stream not in self.streams
            view = view_sequence(scored, report.protocol, stream, self.width, with_truth=new)
            for bare, streams in ((False, self.streams), (True, self._bare)) if self.width else ():
                streams[f"{stream}/{len(self.methods)}"] = view.prediction_stream(bare=bare)
                if new:
                    streams[stream] = view.truth_stream(bare=bare)
            if view.losses.objects:
                found.append(view.losses)
        objects = [(one.shares, one.score.unseen) for view in found for one in view.objects if one.score.frames]
        self.methods.append(MethodLosses(name, found, shares_of(objects, report.protocol)))
        return self.methods[-1]

    def leave_out(self, sequence: SequenceLosses) -> None:
        """Leave out a sequence's masks; its numbers stay."""
        for name in self.streams:
            if name == sequence.stream or name.rpartition("/")[0] == sequence.stream:
                self.streams[name] = self._bare[name]
