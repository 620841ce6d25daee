"""A phase of mask sequences: pair truth with prediction, gather what is wrong, score.

Sequences are independent of each other and stream block by block, so peak
memory is a few frames whatever their length.
"""

from __future__ import annotations

from typing import Dict, List, Optional, Tuple

import numpy as np

from . import sequence_metrics
from .archive import UPLOAD
from .archive_limits import ArchiveLimits
from .errors import Problem, Problems, SubmissionError, counted, listed, printable, verb
from .mask_files import MaskFiles, SalientImages, Stacks
from .masks import Array, Stack, joined, nothing
from .matching import best_proposals
from .progress import Progress, ignore_progress
from .sequence_metrics import ObjectScore, Values
from .sequence_objects import ScoredObject, frames_to_read, scored_objects
from .sequence_protocols import LifespanRule, MissingRule, ObjectRule, SequenceProtocol
from .sequence_submission import SequenceSubmission
from .sequence_truth import VOID, Sequence, Split, is_number, label_order
from .similarity import Counts, Region, boundary_similarity, disk, reach, region_similarity
from .similarity import joined as joined_counts

#: Warnings of one kind that are shown.
WARNINGS_SHOWN = 4
SEND_FOLDERS = "Send a folder of masks for each sequence"


class Warnings:
    """What a participant should know although the submission is scored; problems when strict."""

    def __init__(self, *, strict: bool, problems: Problems) -> None:
        self._by_kind: Dict[str, List[str]] = {}
        self._strict, self._problems = strict, problems

    def add(self, kind: str, problem: Problem) -> None:
        """Add a warning, or a problem when strict."""
        if self._strict:
            self._problems.add(problem)
        else:
            self._by_kind.setdefault(kind, []).append(f"{printable(problem.where)}: {problem.found}")

    @property
    def lines(self) -> List[str]:
        """The first warnings of each kind."""
        lines = []
        for warnings in self._by_kind.values():
            lines += warnings[:WARNINGS_SHOWN]
            if len(warnings) > WARNINGS_SHOWN:
                lines.append(f"… and {len(warnings) - WARNINGS_SHOWN} more like this")
        return lines


def score(
    path: str,
    split: Split,
    protocol: SequenceProtocol,
    limits: ArchiveLimits,
    *,
    strict: bool = False,
    progress: Progress = ignore_progress,
) -> Tuple[List[ObjectScore], List[str]]:
    """Score a submission against one split; return the score of every object, and warnings."""
    truth = [sequence for sequence in split.sequences if not protocol.salient or sequence.salient]
    submission = SequenceSubmission(path, truth, protocol, limits, split.elsewhere)
    warnings = Warnings(strict=strict, problems=submission.problems)
    for line in submission.warnings:
        warnings.add("extra", Problem("extra files", line, "Leave them out"))
    try:
        pairs = _paired(truth, submission, protocol, warnings)
        scores: List[ObjectScore] = []
        for done, (sequence, masks) in enumerate(pairs):
            progress(sequence.name, done, len(pairs))
            scores += SequenceScorer(sequence, masks, protocol, split, warnings).scores()
        submission.problems.raise_if_any()
    finally:
        submission.close()
    progress("", len(pairs), len(pairs))
    return scores, warnings.lines


def _paired(
    truth: List[Sequence], submission: SequenceSubmission, protocol: SequenceProtocol, warnings: Warnings
) -> List[Tuple[Sequence, Optional[MaskFiles]]]:
    """Return every sequence with its masks; what is missing is found before anything is decoded."""
    _check_sequences(truth, submission, protocol, warnings)
    pairs: List[Tuple[Sequence, Optional[MaskFiles]]] = []
    for sequence in truth:
        masks = submission.sequence(sequence.name)
        if masks is not None:
            _check_frames(sequence, masks, protocol, warnings)
        if masks is not None or protocol.missing is MissingRule.ZEROS:
            pairs.append((sequence, masks))
    submission.problems.raise_if_any()
    if not pairs:
        raise SubmissionError.of(Problem(UPLOAD, "holds none of the sequences of this phase", SEND_FOLDERS))
    return pairs


def _check_sequences(
    truth: List[Sequence], submission: SequenceSubmission, protocol: SequenceProtocol, warnings: Warnings
) -> None:
    """Report the sequences that were not sent."""
    sent = submission.names()
    missing = [sequence.name for sequence in truth if sequence.name not in sent]
    if not missing:
        return
    are = verb(len(missing), "is", "are")
    found = f"{counted(len(missing), 'sequence', len(truth))} {are} missing: {listed(missing, 5)}"
    if protocol.missing is MissingRule.ERROR:
        submission.problems.add(Problem(UPLOAD, found, f"{SEND_FOLDERS} of the phase"))
    else:
        meaning = "scored as 0" if protocol.missing is MissingRule.ZEROS else "left out of the means"
        warnings.add("missing", Problem(UPLOAD, f"{found} ({meaning})", "Send all sequences"))


def _check_frames(sequence: Sequence, masks: MaskFiles, protocol: SequenceProtocol, warnings: Warnings) -> None:
    """Report the frames of a sequence that were not sent, and those that the truth does not have."""
    required = {
        label: [sequence.frames[frame] for frame in np.flatnonzero(counted_frames)]
        for label, counted_frames in frames_to_read(sequence, protocol).items()
    }
    for problem in masks.missing_frames(required):
        masks.problems.add(problem)
    surplus = sorted(masks.frames() - set(sequence.frames))
    if surplus:
        were = verb(len(surplus), "is not in the truth and was", "are not in the truth and were")
        found = f"{counted(len(surplus), 'frame')} {were} ignored: {listed(surplus)}"
        warnings.add("frames", Problem(sequence.name, found, "Name the frames as the truth does"))


class SequenceScorer:
    """Scores one sequence: counts pixels block by block, then summarizes them object by object."""

    def __init__(
        self, truth: Sequence, masks: Optional[MaskFiles], protocol: SequenceProtocol, split: Split, warnings: Warnings
    ) -> None:
        self._truth, self._masks, self._protocol, self._split = truth, masks, protocol, split
        self._warnings = warnings
        self._objects = scored_objects(truth, protocol)
        self._frames = np.flatnonzero(np.any(list(frames_to_read(truth, protocol).values()), axis=0))
        #: Of each object and each prediction that it is compared with, block by block.
        self._counts: Dict[Tuple[str, str], List[Counts]] = {}
        self._strict_boundaries: Dict[str, List[Array]] = {scored.name: [] for scored in self._objects}
        #: Predicted objects that the truth does not have, and the first frame of each.
        self._unknown: Dict[str, str] = {}
        self._proposals: List[str] = []

    def scores(self) -> List[ObjectScore]:
        """Return every object's score; nothing when a mask could not be read."""
        complete = True
        for index, block in enumerate(self._truth.blocks):
            frames = self._frames[(self._frames >= block.start) & (self._frames < block.stop)]
            if not len(frames):
                continue
            names = [self._truth.frames[frame] for frame in frames]
            predicted = {} if self._masks is None else self._masks.stacks(names, block.size)
            if predicted is None:
                complete = False
            elif complete:
                truth = self._truth.read_block(index)
                truth = {label: stack.frames(frames - block.start) for label, stack in truth.items()}
                self._count(truth, predicted, names, nothing(len(frames), block.size))
        self._warn()
        if not complete or (self._masks is not None and self._masks.problems):
            return []
        proposals = self._matched_proposals()
        return [self._score(scored, proposals.get(scored.name, 0)) for scored in self._objects]

    def _count(self, truth: Stacks, predicted: Stacks, names: List[str], empty: Stack) -> None:
        """Count the pixels of one block, object by object."""
        protocol, frames, size = self._protocol, len(names), empty.size
        if protocol.void and VOID in truth:
            predicted = {label: stack.without(truth[VOID]) for label, stack in predicted.items()}
        if protocol.objects is ObjectRule.FOREGROUND:
            truth = {"1": joined(list(truth.values()), frames, size)}
        if protocol.salient or protocol.objects is ObjectRule.FOREGROUND:
            predicted = {SalientImages.NAME: joined(list(predicted.values()), frames, size)}
        elif protocol.proposals:
            self._proposals += [label for label in predicted if label not in self._proposals]
        else:
            self._note_unknown(predicted, names)
        regions = {label: Region(stack) for label, stack in predicted.items()}
        no_region, match = Region(empty), disk(reach(size))
        for scored in self._objects:
            region = Region(truth[scored.name]) if scored.name in truth else no_region
            for label in self._compared_labels(scored.name):
                prediction = regions.get(label, no_region)
                self._counts.setdefault((scored.name, label), []).append(region.compared(prediction, match))
                if protocol.reappearance:
                    boundaries = np.array(sequence_metrics.strict_boundary(region, prediction))
                    self._strict_boundaries[scored.name].append(boundaries)

    def _compared_labels(self, name: str) -> List[str]:
        """Return the labels of the predictions that an object is compared with."""
        if self._protocol.proposals:
            most = max(self._protocol.proposals, len(self._objects))
            return [str(number) for number in range(1, most + 1)]
        if self._protocol.salient or self._protocol.objects is ObjectRule.FOREGROUND:
            return [SalientImages.NAME]
        return [name]

    def _note_unknown(self, predicted: Stacks, names: List[str]) -> None:
        known = self._truth.objects.keys() | {scored.name for scored in self._objects}
        for label, stack in predicted.items():
            if label not in known and label not in self._unknown:
                self._unknown[label] = names[int(np.argmax(stack.area > 0))]

    def _warn(self) -> None:
        protocol, where = self._protocol, self._truth.name
        for label, frame in self._unknown.items():
            found = f"object {printable(label)} (first in frame {frame}) is not in the truth and was ignored"
            self._warnings.add("unknown", Problem(where, found, "Use the object numbers of the first frame"))
        surplus = [label for label in self._proposals if not (is_number(label) and int(label) <= protocol.proposals)]
        if surplus:
            found = f"has proposals beyond {protocol.proposals}: {listed(sorted(surplus, key=label_order))}"
            remedy = f"Number the proposals from 1 to {protocol.proposals}"
            if protocol.surplus_is_error and self._masks is not None:
                self._masks.problems.add(Problem(where, found, remedy))
            else:
                self._warnings.add("surplus", Problem(where, f"{found}, which were ignored", remedy))

    def _matched_proposals(self) -> Dict[str, int]:
        """Return the proposal of each object; nothing in protocols that do not match."""
        if not self._protocol.proposals or not self._objects or not len(self._frames):
            return {}
        rows = self._protocol.proposals
        if self._protocol.surplus_is_error:  # as many as were sent, and as there are objects at least
            rows = max([len(self._objects), *(int(label) for label in self._proposals if is_number(label))])
        quality = np.zeros((rows, len(self._objects)))
        for column, scored in enumerate(self._objects):
            for row in range(rows):
                _, counts = self._counted(scored, str(row + 1))
                similarities = (region_similarity(counts), boundary_similarity(counts))
                quality[row, column] = sum(sequence_metrics.mean(values) or 0.0 for values in similarities) / 2
        return {scored.name: row + 1 for scored, row in zip(self._objects, best_proposals(quality))}

    def _counted(self, scored: ScoredObject, label: str) -> Tuple[Array, Counts]:
        """Return which of the frames that were read count for an object, and their counts."""
        if not len(self._frames):
            return np.array([], bool), Counts(*[np.array([], np.int64)] * 7)
        counts = joined_counts(self._counts[scored.name, label])
        counted_frames = scored.counted[self._frames]
        if self._protocol.lifespan is LifespanRule.FIRST_SEEN:
            counted_frames &= np.maximum.accumulate(counted_frames & ((counts.truth > 0) | (counts.prediction > 0)))
        return counted_frames, counts.at(counted_frames)

    def _score(self, scored: ScoredObject, proposal: int) -> ObjectScore:
        label = str(proposal) if proposal else self._compared_labels(scored.name)[0]
        counted_frames, counts = self._counted(scored, label)
        if self._protocol.reappearance:
            values = self._reappearance(scored, counted_frames, counts)
        else:
            values = sequence_metrics.summary(counts, self._protocol)
        return ObjectScore(
            self._truth.name,
            scored.name,
            {**values, **sequence_metrics.beside(counts)},
            [self._truth.frames[frame] for frame in self._frames[counted_frames]],
            region_similarity(counts),
            boundary_similarity(counts),
            self._unseen(scored.name),
            proposal,
        )

    def _reappearance(self, scored: ScoredObject, counted_frames: Array, counts: Counts) -> Values:
        """Return MOSEv2's values; a sequence that was not sent, or has no frame to score, has zeros and no absences."""
        blocks = self._strict_boundaries[scored.name]
        f_new, f = np.concatenate(blocks, axis=1)[:, counted_frames] if blocks else np.zeros((2, 0))
        visible = counts.truth > 0
        values = sequence_metrics.reappearance(sequence_metrics.rewarded_similarity(counts), f_new, f, visible)
        if self._masks is None or not len(self._frames):
            values = {metric: None if "appear_" in metric else 0.0 for metric in values}
        return sequence_metrics.only_named(values, self._protocol)

    def _unseen(self, name: str) -> bool:
        facts = self._truth.objects.get(name)
        category = facts.category if facts else None
        return self._truth.unseen or (category is not None and category in self._split.unseen_categories)
