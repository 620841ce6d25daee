"""A phase of mask sequences: pair truth with prediction, gather what is wrong, score.

Sequences are independent of each other and stream block by block, so peak
memory is a few frames whatever their length.
"""

from __future__ import annotations

from typing import AbstractSet, Callable, Dict, List, Optional

import numpy as np

from . import sequence_metrics
from .archive_limits import ArchiveLimits
from .errors import Problem, Problems, SubmissionError, counted, listed, printable, verb
from .mask_files import MaskFiles, SalientImages, Stacks
from .masks import Array, Stack, joined, nothing
from .matching import best_proposals
from .sequence_metrics import ObjectScore, Values
from .sequence_objects import ScoredObject, ends_cut, scored_objects
from .sequence_protocols import LifespanRule, MissingRule, ObjectRule, SequenceProtocol
from .sequence_submission import SequenceSubmission
from .sequence_truth import VOID, Sequence, Split, is_number, label_order
from .similarity import Counts, Region, boundary_similarity, disk, reach, region_similarity
from .similarity import joined as joined_counts

#: Warnings of one kind that are shown.
ALIKE = 4

#: Told before each sequence: its name, how many are done, how many there are.
Progress = Callable[[str, int, int], None]


class Warnings:
    """Things a participant should know though the submission is scored; errors when strict."""

    def __init__(self, *, strict: bool, problems: Problems) -> None:
        self._found: Dict[str, List[str]] = {}
        self._strict, self._problems = strict, problems

    def add(self, kind: str, where: str, found: str, remedy: str) -> None:
        """Note it, or refuse it."""
        if self._strict:
            self._problems.add(Problem(where, found, remedy))
        else:
            self._found.setdefault(kind, []).append(f"{printable(where)}: {found}")

    @property
    def lines(self) -> List[str]:
        """Kind by kind, the first few of each."""
        lines = []
        for found in self._found.values():
            lines += found[:ALIKE]
            if len(found) > ALIKE:
                lines.append(f"… and {len(found) - ALIKE} more like this")
        return lines


def _unheard(name: str, done: int, total: int) -> None:
    """Progress that nobody asked for."""
    del name, done, total


def score(  # noqa: PLR0913 - the one place where everything meets
    path: str,
    split: Split,
    protocol: SequenceProtocol,
    limits: ArchiveLimits,
    *,
    strict: bool = False,
    elsewhere: AbstractSet[str] = frozenset(),
    progress: Progress = _unheard,
) -> tuple[List[ObjectScore], List[str]]:
    """Score a submission against one split: every object, and warnings.

    `elsewhere` names the sequences of other splits, which a submission may hold too.
    """
    truth = [sequence for sequence in split.sequences if not protocol.salient or sequence.salient]
    submission = SequenceSubmission(path, truth, protocol, limits, elsewhere)
    warnings = Warnings(strict=strict, problems=submission.problems)
    for line in submission.warnings:
        warnings.add("extra", "extra files", line, "Leave them out")
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
) -> List[tuple[Sequence, Optional[MaskFiles]]]:
    """Every sequence with its masks; what is missing is found before anything is decoded."""
    pairs: List[tuple[Sequence, Optional[MaskFiles]]] = []
    sent = submission.names()
    missing = [sequence.name for sequence in truth if sequence.name not in sent]
    absent = f"{counted(len(missing), 'sequence', len(truth))} {verb(len(missing), 'is', 'are')} missing"
    found = f"{absent}: {listed(missing, 5)}"
    if missing and protocol.missing is MissingRule.ERROR:
        submission.problems.add(Problem("your file", found, "Send a folder of masks for each sequence of the phase"))
    elif missing:
        meaning = "scored as 0" if protocol.missing is MissingRule.ZEROS else "left out of the means"
        warnings.add("missing", "your file", f"{found} ({meaning})", "Send all sequences")
    for sequence in truth:
        masks = submission.sequence(sequence.name)
        if masks is not None:
            living = scored_objects(sequence, protocol) or [
                ScoredObject("", ends_cut(np.ones(len(sequence.frames), bool), protocol))
            ]
            wanted = {life.name: [sequence.frames[frame] for frame in np.flatnonzero(life.counted)] for life in living}
            for problem in masks.lacks(wanted):
                submission.problems.add(problem)
            surplus = sorted(masks.frames() - set(sequence.frames))
            if surplus:
                were = verb(len(surplus), "is not in the truth and was", "are not in the truth and were")
                found = f"{counted(len(surplus), 'frame')} {were} ignored: {listed(surplus)}"
                warnings.add("frames", sequence.name, found, "Name the frames as the truth does")
        if masks is not None or protocol.missing is MissingRule.ZEROS:
            pairs.append((sequence, masks))
    submission.problems.raise_if_any()
    if not pairs:
        found = "holds none of the sequences of this phase"
        raise SubmissionError.of(Problem("your file", found, "Send a folder of masks for each sequence"))
    return pairs


class SequenceScorer:
    """Scores one sequence: reads block by block, counts, then sums up."""

    def __init__(
        self, truth: Sequence, masks: Optional[MaskFiles], protocol: SequenceProtocol, split: Split, warnings: Warnings
    ) -> None:
        self._truth, self._masks, self._protocol, self._split = truth, masks, protocol, split
        self._warnings = warnings
        self._lives = scored_objects(truth, protocol)
        # Without objects the masks are read all the same: what is wrong with them is said.
        wanted = [life.counted for life in self._lives] or [ends_cut(np.ones(len(truth.frames), bool), protocol)]
        self._read = np.flatnonzero(np.any(wanted, axis=0))
        self._counts: Dict[tuple[str, str], List[Counts]] = {}
        self._strict: Dict[str, List[Array]] = {life.name: [] for life in self._lives}
        self._strays: Dict[str, str] = {}
        self._proposals: List[str] = []

    def scores(self) -> List[ObjectScore]:
        """Every object's score; nothing when a mask could not be read."""
        complete = True
        for index, block in enumerate(self._truth.blocks):
            frames = self._read[(self._read >= block.start) & (self._read < block.stop)]
            if len(frames):
                names = [self._truth.frames[frame] for frame in frames]
                predicted: Optional[Stacks] = {}
                if self._masks is not None:
                    predicted = self._masks.stacks(names, block.size)
                if predicted is None:
                    complete = False
                elif complete:
                    truth = self._truth.read_block(index)
                    places = frames - block.start
                    here = {name: stack.frames(places) for name, stack in truth.items()}
                    self._block(here, predicted, names, nothing(len(frames), block.size))
        self._warn()
        if not complete or (self._masks is not None and self._masks.problems):
            return []
        return self._summed()

    def _block(self, truth: Stacks, predicted: Stacks, names: List[str], empty: Stack) -> None:
        """Count one block, object by object."""
        protocol, frames, size = self._protocol, len(names), empty.size
        if protocol.void and VOID in truth:
            predicted = {name: stack.without(truth[VOID]) for name, stack in predicted.items()}
        if protocol.objects is ObjectRule.FOREGROUND:
            truth = {"1": joined(list(truth.values()), frames, size)}
        if protocol.salient or protocol.objects is ObjectRule.FOREGROUND:
            predicted = {SalientImages.NAME: joined(list(predicted.values()), frames, size)}
        elif protocol.proposals:
            self._note_proposals(predicted)
        else:
            self._note_strays(predicted, names)
        regions = {name: Region(stack) for name, stack in predicted.items()}
        none, match = Region(empty), disk(reach(size))
        for life in self._lives:
            region = Region(truth[life.name]) if life.name in truth else none
            for partner in self._partners(life.name):
                other = regions.get(partner, none)
                counts = region.compared(other, match)
                self._counts.setdefault((life.name, partner), []).append(counts)
                if protocol.reappearance:
                    self._strict[life.name].append(np.array(sequence_metrics.strict_boundary(region, other)))

    def _partners(self, name: str) -> List[str]:
        """Which predictions an object is compared with."""
        if self._protocol.proposals:
            most = max(self._protocol.proposals, len(self._lives))
            return [str(number) for number in range(1, most + 1)]
        if self._protocol.salient or self._protocol.objects is ObjectRule.FOREGROUND:
            return [SalientImages.NAME]
        return [name]

    def _note_proposals(self, predicted: Stacks) -> None:
        self._proposals += [name for name in predicted if name not in self._proposals]

    def _note_strays(self, predicted: Stacks, names: List[str]) -> None:
        known = self._truth.objects.keys() | {life.name for life in self._lives}
        for name, stack in predicted.items():
            if name not in known and name not in self._strays:
                first = int(np.argmax(stack.area > 0))
                self._strays[name] = names[first]

    def _warn(self) -> None:
        protocol, where = self._protocol, self._truth.name
        for name, frame in self._strays.items():
            found = f"object {printable(name)} (first in frame {frame}) is not in the truth and was ignored"
            self._warnings.add("stray", where, found, "Use the object numbers of the first frame")
        surplus = [name for name in self._proposals if not (is_number(name) and int(name) <= protocol.proposals)]
        if surplus:
            found = f"has proposals beyond {protocol.proposals}: {listed(sorted(surplus, key=label_order))}"
            remedy = f"Number the proposals from 1 to {protocol.proposals}"
            if protocol.surplus_is_error and self._masks is not None:
                self._masks.problems.add(Problem(where, found, remedy))
            else:
                self._warnings.add("surplus", where, found + ", which were ignored", remedy)

    def _summed(self) -> List[ObjectScore]:
        chosen = self._matched()
        return [self._object(life, chosen.get(life.name, 0)) for life in self._lives]

    def _matched(self) -> Dict[str, int]:
        """The proposal of each object; nothing in protocols that do not match."""
        if not self._protocol.proposals or not self._lives or not len(self._read):
            return {}
        rows = self._protocol.proposals
        if self._protocol.surplus_is_error:  # as many as were sent, and as there are objects at least
            rows = max([len(self._lives), *(int(name) for name in self._proposals if is_number(name))])
        quality = np.zeros((rows, len(self._lives)))
        for column, life in enumerate(self._lives):
            for row in range(rows):
                _, counts = self._counted(life, str(row + 1))
                both = (region_similarity(counts), boundary_similarity(counts))
                quality[row, column] = sum(sequence_metrics.mean(values) or 0.0 for values in both) / 2
        return {life.name: row + 1 for life, row in zip(self._lives, best_proposals(quality))}

    def _counted(self, life: ScoredObject, partner: str) -> tuple[Array, Counts]:
        """The frames that count for an object, and their counts."""
        counts = joined_counts(self._counts[life.name, partner])
        counted = life.counted[self._read]
        if self._protocol.span is LifespanRule.SIGHT:
            counted &= np.maximum.accumulate(counted & ((counts.truth > 0) | (counts.prediction > 0)))
        return counted, counts.at(counted)

    def _object(self, life: ScoredObject, proposal: int) -> ObjectScore:
        protocol = self._protocol
        partner = str(proposal) if proposal else self._partners(life.name)[0]
        if len(self._read):
            counted, counts = self._counted(life, partner)
        else:
            counted, counts = np.array([], bool), Counts(*[np.array([], np.int64)] * 7)
        if protocol.reappearance:
            values = self._reappearance(life, counted, counts)
        else:
            values = sequence_metrics.summary(counts, protocol)
        return ObjectScore(
            self._truth.name,
            life.name,
            {**values, **sequence_metrics.beside(counts)},
            [self._truth.frames[frame] for frame in self._read[counted]],
            region_similarity(counts),
            boundary_similarity(counts),
            self._unseen(life.name),
            proposal,
        )

    def _reappearance(self, life: ScoredObject, counted: Array, counts: Counts) -> Values:
        """MOSEv2's values; a sequence that was not sent, or has no frame to score, has zeros and no absences."""
        both = np.concatenate(self._strict[life.name], axis=1) if self._strict[life.name] else np.zeros((2, 0))
        f_new, f = both[:, counted] if len(counted) else both
        visible = counts.truth > 0
        values = sequence_metrics.reappearance(sequence_metrics.rewarded_similarity(counts), f_new, f, visible)
        if self._masks is None or not len(self._read):
            values = {name: None if "appear_" in name else 0.0 for name in values}
        return sequence_metrics.only_named(values, self._protocol)

    def _unseen(self, name: str) -> bool:
        facts = self._truth.objects.get(name)
        category = facts.category if facts else None
        return self._truth.unseen or (category is not None and category in self._split.unseen_categories)
