"""The accumulator of mask sequences: counts by sequence, object and frame, and the scores that they make."""

from __future__ import annotations

from typing import Any, Dict, List, Tuple

import numpy as np

from ...files.problems import Problem, Problems, listed, printable
from ...masks.matching import best_proposals
from ...masks.similarity import Counts, boundary_similarity, region_similarity
from ...masks.stack import Array
from ..base.accumulator import NamedAccumulator
from ..base.family import Values
from . import metrics as sequence_metrics
from .counts import SequenceCounts, decoded
from .metrics import ObjectScore
from .protocols import LifespanRule, SequenceProtocol
from .truth import is_number, label_order

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


class SequenceAccumulator(NamedAccumulator[SequenceProtocol, SequenceCounts]):
    """The counts of the sequences of one split, whoever counted them."""

    noun = "sequence"
    decoded = staticmethod(decoded)

    def __init__(self, protocol: SequenceProtocol, names: List[str], *, strict: bool = False) -> None:
        super().__init__(protocol, names, strict=strict)
        #: Kinds of notes, and what they are about.
        self.notes: List[Tuple[str, Problem]] = []

    @classmethod
    def restored(cls, protocol: SequenceProtocol, described: Dict[str, Any], *, strict: bool) -> SequenceAccumulator:
        total = cls(protocol, [str(name) for name in described["sequences"]], strict=strict)
        total.notes = [(str(kind), Problem(*map(str, problem))) for kind, *problem in described["notes"]]
        return total

    def described(self) -> Dict[str, Any]:
        notes = [[kind, one.where, one.found, one.remedy] for kind, one in self.notes]
        return {"sequences": self.names, "notes": notes}

    def compute(self) -> Tuple[List[ObjectScore], List[str]]:
        """Return the score of every object, and warnings; raises SubmissionError with every problem."""
        self.refuse_missing()
        problems = Problems()
        warnings = Warnings(strict=self.strict, problems=problems)
        warnings.kept = list(self.notes)
        scores: List[ObjectScore] = []
        for counts in self.held():
            problems.extend(counts.problems, counts.problem_count)
            _warn(counts, self.protocol, problems, warnings)
            if _miss_all(counts, self.protocol):
                found = "no mask shares a pixel with the object of its number: check the numbers of the objects"
                warnings.kept.append(("numbers", Problem(counts.name, found, "")))  # a guess, which refuses nobody
            if not problems:
                scores += _Scorer(counts, self.protocol).scores()
        problems.raise_if_any()
        return scores, warnings.lines


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


def _miss_all(counts: SequenceCounts, protocol: SequenceProtocol) -> bool:
    """Return whether there are masks on both sides, and none of them lies on its object."""
    if protocol.proposals or protocol.salient or protocol.overlapping or counts.problem_count:
        return False
    truth, prediction, shared = (bool(counts.counts[:, :, field].any()) for field in range(3))
    return truth and prediction and not shared


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
