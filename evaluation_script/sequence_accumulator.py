"""The accumulator of mask sequences: counts by sequence, object and frame, and the scores that they make.

One run, a pool of processes and parts all fill the same accumulators; merging them is exact, in any order
and with repeats, since nothing is summed before all is there.
"""

from __future__ import annotations

from typing import Dict, List, Tuple

import numpy as np

from . import sequence_metrics
from .errors import HostError, Problem, Problems, counted, listed, printable
from .masks import Array
from .matching import best_proposals
from .sequence_counts import SequenceCounts, decoded
from .sequence_metrics import ObjectScore, Values
from .sequence_protocols import LifespanRule, SequenceProtocol
from .sequence_truth import is_number, label_order
from .similarity import Counts, boundary_similarity, region_similarity

#: Warnings of one kind that are shown.
WARNINGS_SHOWN = 4


class Warnings:
    """What a participant should know although the submission is scored; problems when strict."""

    def __init__(self, *, strict: bool, problems: Problems) -> None:
        #: Kinds of warnings and what they are about, in order.
        self.kept: List[Tuple[str, Problem]] = []
        self._strict, self._problems = strict, problems

    def add(self, kind: str, problem: Problem) -> None:
        """Add a warning, or a problem when strict."""
        if self._strict:
            self._problems.add(problem)
        else:
            self.kept.append((kind, problem))

    @property
    def lines(self) -> List[str]:
        """The first warnings of each kind."""
        by_kind: Dict[str, List[str]] = {}
        for kind, problem in self.kept:
            by_kind.setdefault(kind, []).append(f"{printable(problem.where)}: {problem.found}")
        lines = []
        for warnings in by_kind.values():
            lines += warnings[:WARNINGS_SHOWN]
            if len(warnings) > WARNINGS_SHOWN:
                lines.append(f"… and {len(warnings) - WARNINGS_SHOWN} more like this")
        return lines


class SequenceAccumulator:
    """The counts of the sequences of one split, whoever counted them."""

    def __init__(self, protocol: SequenceProtocol, names: List[str], *, strict: bool = False) -> None:
        #: The sequences to be scored, in the truth's order.
        self.names, self.protocol, self._strict = names, protocol, strict
        #: What was noted before anything was decoded: kinds and what they are about.
        self.notes: List[Tuple[str, Problem]] = []
        self._known = frozenset(names)
        self._counts: Dict[str, SequenceCounts] = {}

    def __len__(self) -> int:
        return len(self._counts)

    def update(self, counts: SequenceCounts) -> None:
        """Take the counts of a sequence or of some of its frames; the same again changes nothing."""
        if counts.name not in self._known:
            raise ValueError(f"{counts.name} is no sequence of this split")
        known = self._counts.get(counts.name)
        self._counts[counts.name] = counts if known is None else known.merged(counts)

    def merge(self, other: SequenceAccumulator) -> None:
        """Take all that another accumulator of the same split holds; raises ValueError where they contradict."""
        if self._head() != other._head():
            raise ValueError("they are of different splits, protocols or submissions")
        for counts in other._counts.values():
            self.update(counts)

    def _head(self) -> Tuple[object, ...]:
        return self.protocol, self.names, self._strict, self.notes

    def missing(self) -> List[str]:
        """Return the sequences that lack frames."""
        have = self._counts
        return [name for name in self.names if name not in have or not _is_complete(have[name])]

    def state_dict(self) -> Dict[str, bytes]:
        """Return the counts of each sequence as bytes."""
        return {name: self._counts[name].encoded() for name in self.names if name in self._counts}

    def load_state_dict(self, state: Dict[str, bytes]) -> None:
        """Hold what `state_dict` returned, and nothing else; raises ValueError where it cannot be that."""
        self._counts = {}
        for name, data in state.items():
            counts = decoded(data)
            if counts.name != name:
                raise ValueError(f"{name} holds {counts.name}")
            self.update(counts)

    def refuse_problems(self) -> None:
        """Raise SubmissionError with every problem of the masks that were counted."""
        problems = Problems()
        for name in self.names:
            if name in self._counts:
                problems.extend(self._counts[name].problems, self._counts[name].problem_count)
        problems.raise_if_any()

    def compute(self) -> Tuple[List[ObjectScore], List[str]]:
        """Return the score of every object, and warnings; raises SubmissionError with every problem."""
        missing = self.missing()
        if missing:
            raise HostError(f"{counted(len(missing), 'sequence')} not counted yet: {listed(missing)}")
        problems = Problems()
        warnings = Warnings(strict=self._strict, problems=problems)
        warnings.kept = list(self.notes)
        scores: List[ObjectScore] = []
        for name in self.names:
            counts = self._counts[name]
            problems.extend(counts.problems, counts.problem_count)
            _warn(counts, self.protocol, problems, warnings)
            if not problems:
                scores += _Scorer(counts, self.protocol).scores()
        problems.raise_if_any()
        return scores, warnings.lines


def _is_complete(counts: SequenceCounts) -> bool:
    return bool(counts.problem_count) or len(counts.rows) == len(counts.frames)


def _warn(counts: SequenceCounts, protocol: SequenceProtocol, problems: Problems, warnings: Warnings) -> None:
    """Add what a participant should know of one sequence."""
    where = counts.name
    for label, frame in counts.unknown.items():
        found = f"object {printable(label)} (first in frame {frame}) is not in the truth and was ignored"
        warnings.add("unknown", Problem(where, found, "Use the object numbers of the first frame"))
    surplus = [label for label in counts.proposals if not (is_number(label) and int(label) <= protocol.proposals)]
    if surplus:
        found = f"has proposals beyond {protocol.proposals}: {listed(sorted(surplus, key=label_order))}"
        remedy = f"Number the proposals from 1 to {protocol.proposals}"
        if protocol.surplus_is_error:
            problems.add(Problem(where, found, remedy))
        else:
            warnings.add("surplus", Problem(where, f"{found}, which were ignored", remedy))


class _Scorer:
    """Summarizes the counts of one sequence, object by object."""

    def __init__(self, counts: SequenceCounts, protocol: SequenceProtocol) -> None:
        self._counts, self._protocol = counts, protocol

    def scores(self) -> List[ObjectScore]:
        """Return the score of every object."""
        proposals = self._matched_proposals()
        return [self._score(number, proposals[number]) for number in range(len(self._counts.objects))]

    def _matched_proposals(self) -> List[int]:
        """Return the proposal of each object; 0 in protocols that do not match."""
        objects = len(self._counts.objects)
        if not self._protocol.proposals or not objects or not self._counts.frames:
            return [0] * objects
        rows = self._protocol.proposals
        if self._protocol.surplus_is_error:  # as many as were sent, and as there are objects at least
            rows = max([objects, *(int(label) for label in self._counts.proposals if is_number(label))])
        quality = np.zeros((rows, objects))
        for column in range(objects):
            for row in range(rows):
                _, counts = self._counted(column, row)
                similarities = (region_similarity(counts), boundary_similarity(counts))
                quality[row, column] = sum(sequence_metrics.mean(values) or 0.0 for values in similarities) / 2
        return [row + 1 for row in best_proposals(quality)]

    def _counted(self, number: int, label: int) -> Tuple[Array, Counts]:
        """Return which of the compared frames count for an object, and their counts."""
        counts, flags = self._counts.of(number, label), self._counts.flags(number)
        if self._protocol.lifespan is LifespanRule.FIRST_SEEN:
            flags &= np.maximum.accumulate(flags & ((counts.truth > 0) | (counts.prediction > 0)))
        return flags, counts.at(flags)

    def _score(self, number: int, proposal: int) -> ObjectScore:
        scored = self._counts.objects[number]
        flags, counts = self._counted(number, max(proposal - 1, 0))
        j, f = region_similarity(counts), boundary_similarity(counts)
        if self._protocol.reappearance:
            values = self._reappearance(number, flags, counts)
        else:
            values = sequence_metrics.summary(counts, j, f, self._protocol)
            if not self._counts.sent:
                values = {metric: None if value is None else 0.0 for metric, value in values.items()}
        return ObjectScore(
            self._counts.name,
            scored.name,
            {**values, **sequence_metrics.beside(counts, j, f)},
            [self._counts.frames[frame] for frame in np.flatnonzero(flags)],
            j,
            f,
            scored.unseen,
            proposal,
        )

    def _reappearance(self, number: int, flags: Array, counts: Counts) -> Values:
        """Return MOSEv2's values; a sequence that was not sent, or has no frame to score, has zeros and no absences."""
        f_new, f = self._counts.strict[number][:, flags]
        visible = counts.truth > 0
        values = sequence_metrics.reappearance(sequence_metrics.rewarded_similarity(counts), f_new, f, visible)
        if not self._counts.sent or not self._counts.frames:
            values = {metric: None if "appear_" in metric else 0.0 for metric in values}
        return sequence_metrics.only_named(values, self._protocol)
