"""Score a submission of a track that counts by unit: its module makes an engine of its own functions."""

from __future__ import annotations

from typing import AbstractSet, Any, Callable, Dict, List

from ...files.archive import UPLOAD
from ...files.limits import ArchiveLimits
from ...files.problems import Problem, SubmissionError, counted, listed, verb
from ...runner.parallel import WHOLE, Part, results_of_processes
from . import unit_truth
from .engine import Engine
from .family import ScoringRules, Values
from .progress import Progress, ignore_progress
from .reports import Row
from .truth import DEFAULT_SPLIT, AnnotationFile
from .unit_counts import Shapes, UnitAccumulator, UnitCounts, UnitReport, decoded_unit
from .unit_files import UnitSubmission
from .unit_truth import Unit, UnitTruth

Count = Callable[[Unit, Any], UnitCounts]


class OpenedUnits:
    """A submission beside its truth, opened once for any number of parts."""

    def __init__(self, submission: UnitSubmission, truth: UnitTruth, count: Count, rules: ScoringRules) -> None:
        self._submission, self._truth, self._count, self._rules = submission, truth, count, rules
        self._names = [unit.name for unit in truth.units]
        try:
            self._notes = _surplus(submission, self._names, truth.elsewhere, strict=rules.strict)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the submission's file."""
        self._submission.close()

    def counted(self, part: Part = WHOLE, progress: Progress = ignore_progress) -> UnitAccumulator[Any]:
        """Count a part of the units."""
        truth, rules = self._truth, self._rules
        accumulator = UnitAccumulator(rules.protocol, truth.facts, self._names, strict=rules.strict)
        accumulator.notes = self._notes
        units = [truth.units[number] for number in part.of([unit.cost for unit in truth.units])]

        def work(number: int) -> bytes:
            return self._count(units[number], self._submission).encoded()

        def started(number: int) -> None:
            progress(units[number].name, len(accumulator), len(units))

        for data in results_of_processes(work, [unit.cost for unit in units], rules.jobs, started):
            accumulator.update(decoded_unit(data))
        progress("", len(units), len(units))
        return accumulator


def unit_engine(  # noqa: PLR0913, PLR0917 - each is one thing that a track does in its own way
    read_truth: Callable[[str, str], UnitTruth],
    open_submission: Callable[[str, UnitTruth, Any, ArchiveLimits], UnitSubmission],
    count: Count,
    values: Callable[[UnitAccumulator[Any]], Values],
    tables: Callable[[UnitAccumulator[Any]], Dict[str, List[Row]]],
    shapes: Callable[[Any, Dict[str, Any]], Shapes] = lambda _protocol, _facts: {},
    oddities: Callable[[UnitAccumulator[Any]], List[str]] = lambda _counts: [],
) -> Engine[UnitTruth, Any, UnitAccumulator[Any]]:
    """Return the engine of a track: how truths and submissions are read, what is counted, and what follows.

    Of parts that files bring the tables are checked where `shapes` says which a unit of a protocol and truth has.
    `oddities` are what a participant should know of all units together, though it refuses nothing.
    """
    return Engine(
        UnitAccumulator,
        unit_truth.read,
        lambda path, subset, _protocol: AnnotationFile({subset or DEFAULT_SPLIT: read_truth(path, subset)}),
        lambda path, truth, protocol, rules: OpenedUnits(
            open_submission(path, truth, protocol, rules.limits), truth, count, rules
        ),
        lambda split, counts: UnitReport(split, counts, values, tables(counts), oddities(counts)),
        lambda counts: counts.check(shapes(counts.protocol, counts.facts)),
    )


def _surplus(submission: UnitSubmission, names: List[str], elsewhere: AbstractSet[str], *, strict: bool) -> List[str]:
    """Return a warning of units that the truth does not have; raises SubmissionError where any is missing."""
    sent, noun = submission.names(), submission.noun
    missing = [name for name in names if name not in sent]
    if missing:
        found = f"{counted(len(missing), noun, len(names))} {verb(len(missing), 'is', 'are')} missing"
        raise SubmissionError.of(Problem(UPLOAD, f"{found}: {listed(missing, 5)}", f"Send every {noun}"))
    known = elsewhere | frozenset(names)
    surplus = sorted(name for name in sent if name not in known)
    if not surplus:
        return submission.truth_names.notes
    were = verb(len(surplus), "is not in the truth and was", "are not in the truth and were")
    found = f"{counted(len(surplus), noun)} {were} ignored: {listed(surplus)}"
    if strict:
        raise SubmissionError.of(Problem(UPLOAD, found, "Send only what is scored"))
    return [found, *submission.truth_names.notes]
