"""A phase of mask sequences: pair truth with prediction, gather what is wrong, score.

Sequences are independent of each other and stream block by block, so peak
memory is a few frames whatever their length.
"""

from __future__ import annotations

from dataclasses import replace
from typing import List

import numpy as np

from ...files.archive import UPLOAD
from ...files.problems import Problem, SubmissionError, name_list, quantity, verb
from ...masks.files import MaskFiles, ObjectMasks, RequiredFrames
from ...runner.parallel import Part
from ..base.engine import CountingJob, Engine, LossReader
from ..base.family import Progress, ScoringRules
from . import dataset as dataset_reader
from . import truth as sequence_truth
from .counting import SequenceAccumulator, Warnings, count_sequence, frames_to_read
from .layouts import layout_of
from .metrics import SequenceReport, score_objects
from .protocols import MissingRule, SequenceProtocol
from .submission import SequenceSubmission
from .truth import Sequence, SequencePair, Split

#: Whose size MeViS's script takes for that of all frames.
_FIRST_FRAME = "00000"
_SEND_FOLDERS = "Send a folder of masks for each sequence"


class OpenedSequences:
    """A submission beside its truth, opened once for any number of parts."""

    def __init__(self, path: str, split: Split, protocol: SequenceProtocol, rules: ScoringRules) -> None:
        self._split, self._protocol, self._rules = split, protocol, rules
        truth = [sequence for sequence in split.sequences if not protocol.salient or sequence.salient]
        elsewhere = split.elsewhere
        if protocol.rounds:
            truth = [
                replace(sequence, name=f"{folder}/{sequence.name}") for folder in protocol.rounds for sequence in truth
            ]
            of_rounds = split.of_rounds or {sequence.name for sequence in truth}
            other_rounds = {f"{folder}/{name}" for folder in protocol.rounds for name in elsewhere}
            elsewhere = elsewhere | other_rounds | ({sequence.name for sequence in truth} - of_rounds)
            truth = [sequence for sequence in truth if sequence.name in of_rounds]
        self._submission = SequenceSubmission(path, truth, protocol, rules.limits, elsewhere)
        self._warnings = Warnings(strict=rules.strict, problems=self._submission.problems)
        for line in self._submission.warnings:
            self._warnings.add("extra", Problem("extra files", line, "Leave them out"))
        # Nobody chose how a computer writes names, so these refuse nothing, even where warnings do.
        for line in self._submission.notes:
            self._warnings.note("names", Problem("names", line, ""))
        try:
            #: Every sequence with its masks; None where it was not sent.
            self.pairs = self._pair(truth)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the submission's file."""
        self._submission.close()

    def plan(self, share: Part, progress: Progress) -> CountingJob:
        """Return the sequences of a part."""
        del progress
        names, notes = [sequence.name for sequence, _ in self.pairs], self._warnings.entries
        accumulator = SequenceAccumulator(self._protocol, names, notes, strict=self._rules.strict)
        pairs = [self.pairs[number] for number in share.of([sequence.cost for sequence, _ in self.pairs])]

        def count(number: int) -> bytes:
            sequence, masks = pairs[number]
            return count_sequence(sequence, masks, self._protocol, self._split).encode()

        costs, names = [sequence.cost for sequence, _ in pairs], [sequence.name for sequence, _ in pairs]
        return CountingJob(accumulator, count, costs, names)

    def _pair(self, truth: List[Sequence]) -> List[SequencePair]:
        """Return every sequence with its masks; what is missing is found before anything is decoded."""
        self._check_sequences(truth)
        pairs: List[SequencePair] = []
        for whole in truth:
            sequence, masks = whole, self._submission.sequence(whole.name)
            if masks is not None:
                if self._protocol.missing_object is not MissingRule.EMPTY:
                    sequence = self._with_objects(sequence, masks)
                self._check_frames(sequence, masks)
            if masks is not None or self._protocol.missing is MissingRule.ZEROS:
                pairs.append((sequence, masks))
        self._submission.problems.raise_if_any()
        if not pairs:
            raise SubmissionError.of(Problem(UPLOAD, "holds none of the sequences of this phase", _SEND_FOLDERS))
        return pairs

    def _check_sequences(self, truth: List[Sequence]) -> None:
        """Report the sequences that were not sent."""
        names_sent = self._submission.names()
        missing = [sequence.name for sequence in truth if sequence.name not in names_sent]
        if not missing:
            return
        are = verb(len(missing), "is", "are")
        fault = f"{quantity(len(missing), 'sequence', len(truth))} {are} missing: {name_list(missing, 5)}"
        if self._protocol.missing is MissingRule.ERROR:
            self._submission.problems.add(Problem(UPLOAD, fault, f"{_SEND_FOLDERS} of the phase"))
        else:
            meaning = "scored as 0" if self._protocol.missing is MissingRule.ZEROS else "left out of the means"
            self._warnings.add("missing", Problem(UPLOAD, f"{fault} ({meaning})", "Send all sequences"))

    def _with_objects(self, sequence: Sequence, masks: MaskFiles) -> Sequence:
        """Report the objects of a sequence that were not sent; return it without those that are left out."""
        required = self._require_frames(sequence)
        labels_sent = set(masks.labels()) if isinstance(masks, ObjectMasks) else set()
        if self._protocol.missing_object is MissingRule.LEFT_OUT and isinstance(masks, ObjectMasks):
            labels_sent = {
                label
                for label in labels_sent & required.keys()
                if not masks.missing_frames({label: [_FIRST_FRAME, *required[label]]})
            }
            masks.leave_out(set(masks.labels()) - labels_sent)
        missing = [label for label in required if label and label not in labels_sent]
        if not missing:
            return sequence
        lacking = f"{quantity(len(missing), 'expression', len(required))} {verb(len(missing), 'lacks', 'lack')}"
        fault, remedy = f"{lacking} masks: {name_list(missing)}", "Send a folder of masks for each expression"
        if self._protocol.missing_object is MissingRule.ERROR:
            self._submission.problems.add(Problem(sequence.name, fault, remedy))
            return sequence
        self._warnings.add("objects", Problem(sequence.name, f"{fault} (left out of the means)", remedy))
        objects_left = {label: facts for label, facts in sequence.objects.items() if label not in missing}
        return replace(sequence, objects=objects_left)

    def _require_frames(self, sequence: Sequence) -> RequiredFrames:
        return {
            label: [sequence.frames[frame] for frame in np.flatnonzero(counted_frames)]
            for label, counted_frames in frames_to_read(sequence, self._protocol).items()
        }

    def _check_frames(self, sequence: Sequence, masks: MaskFiles) -> None:
        """Report the frames of a sequence that were not sent, and those that the truth does not have."""
        for problem in masks.missing_frames(self._require_frames(sequence)):
            self._submission.problems.add(problem)
        surplus = sorted(masks.frames() - set(sequence.frames))
        if surplus:
            were = verb(len(surplus), "is not in the truth and was", "are not in the truth and were")
            fault = f"{quantity(len(surplus), 'frame')} {were} ignored: {name_list(surplus)}"
            self._warnings.add("frames", Problem(sequence.name, fault, "Name the frames as the truth does"))


def _load_losses() -> LossReader:
    from .losses import read_losses

    return lambda opened, report, room, jobs: read_losses(opened.pairs, report, room, jobs)


ENGINE = Engine(
    SequenceAccumulator,
    lambda path: sequence_truth.read(path).splits,
    lambda path, subset, protocol: dataset_reader.read(path, layout_of(protocol), subset),
    OpenedSequences,
    lambda split, counts: SequenceReport(split, counts.protocol, *score_objects(counts), counts),
    load_losses=_load_losses,
)
