"""The base of families that count each unit separately: an image, video or sequence.

`unit_engine` makes an engine from a family's functions. The rest of what such a family imports from here lies beside:
the truth of units, the files of a submission, and the counts of units with their accumulator.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Callable, Collection, Dict, List, Optional, Sequence

from ...files import ArchiveLimits, Problem, Problems, SubmissionError, inflect, name_list, quantity
from ...files.archive import UPLOAD
from ...masks.overlaps import LabelMap
from ...masks.stack import Array
from ...runner.parallel import Part
from .engine import CountingJob, Engine
from .family import Progress, ScoringRules, Values
from .reports import Report, Row
from .truth import DEFAULT_SPLIT, AnnotationFile
from .unit_counts import FactForms, Shapes, UnitAccumulator, UnitCounts, decode_unit
from .unit_submissions import FilesOfUnits, PictureFiles, UnitNouns, UnitSubmission, choose_members
from .unit_truth import (
    Rows,
    TruthFrame,
    Unit,
    UnitTruth,
    guard_reading,
    no_pixels,
    open_dataset,
    png_frame,
    read_units,
    write_units,
)

if TYPE_CHECKING:
    from ...doctor import Examination, Sample

__all__ = [
    "FilesOfUnits", "PictureFiles", "Rows", "Shapes", "TruthFrame", "Unit", "UnitAccumulator",
    "UnitCounts", "UnitNouns", "UnitSubmission", "UnitTruth", "choose_members", "count_by_image", "decode_unit",
    "guard_reading", "no_pixels", "open_dataset", "png_frame", "read_units", "score_samples", "unit_engine",
    "write_units",
]  # fmt: skip


def count_by_image(
    measure: Callable[[Unit, LabelMap, Array, Any], Dict[str, Array]],
) -> Callable[[Unit, Any], UnitCounts]:
    """Return the function that counts a one-image unit with `measure`, from truth, prediction and protocol."""

    def count(unit: Unit, submission: Any) -> UnitCounts:
        problems, (frame,) = Problems(), unit.load()
        prediction = submission.read(unit.name, frame.size, problems)
        if prediction is None:
            return UnitCounts(unit.name, {}, problems.first, problems.count)
        return UnitCounts(unit.name, measure(unit, frame.read(), prediction, submission.protocol))

    return count


_Count = Callable[[Unit, Any], UnitCounts]
#: Returns the metrics of counted units.
_Measure = Callable[[UnitAccumulator[Any]], Values]


class _OpenedUnits:
    """A submission beside its truth."""

    def __init__(self, submission: UnitSubmission, truth: UnitTruth, count: _Count, rules: ScoringRules) -> None:
        #: The open files.
        self.submission = submission
        self._truth, self._count, self._rules = truth, count, rules
        try:
            self._notes = _note_surplus(submission, truth, strict=rules.strict)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the submission's file."""
        self.submission.close()

    def plan(self, share: Part, progress: Progress) -> CountingJob:
        truth, rules = self._truth, self._rules
        notes, suspicions = self._notes, self.submission.suspicions
        accumulator = UnitAccumulator(
            rules.protocol, truth.facts, truth.item_names, notes, suspicions, strict=rules.strict
        )
        units = [truth.units[number] for number in share.select([unit.cost for unit in truth.units])]

        def count(number: int) -> UnitCounts:
            return self._count(units[number], self.submission).detach()

        costs, names = [unit.cost for unit in units], [unit.name for unit in units]
        return CountingJob(accumulator, count, costs, names)


def unit_engine(  # noqa: PLR0913, PLR0917 - each is one thing that a family does in its own way
    read_truth: Callable[[str, str], UnitTruth],
    open_submission: Callable[[str, UnitTruth, Any, ArchiveLimits], UnitSubmission],
    count: _Count,
    values: _Measure,
    tables: Callable[[UnitAccumulator[Any]], Dict[str, List[Row]]],
    shapes: Callable[[Any, Dict[str, Any]], Shapes] = lambda _protocol, _facts: {},
    suspicions: Callable[[UnitAccumulator[Any]], List[str]] = lambda _counts: [],
    facts: Optional[FactForms] = None,
    signed: Collection[str] = (),
    notes: Callable[[UnitAccumulator[Any]], List[str]] = lambda _counts: [],
    added: Collection[str] = (),
    examine: Optional[Callable[[Any], Examination]] = None,
) -> Engine[UnitTruth, Any, UnitAccumulator[Any]]:
    """Return the engine of a family from its functions for reading, counting and scoring.

    `shapes` gives the table shapes of a unit and `facts` the forms of its facts; both check the tables of parts that
    come from files. Only tables in `signed` may hold negative numbers, and files of earlier versions may lack those in
    `added`. `suspicions` are warnings about all units that suggest a mistake, and `notes` other remarks for
    participants; neither rejects anything. `examine` shows a submission to the doctor, which names likely slips.
    """

    def report(split: str, counts: UnitAccumulator[Any]) -> Report:
        return Report(
            split,
            counts.protocol,
            values(counts),
            tables(counts),
            [*counts.notes, *notes(counts)],
            counts,
            len(counts.names),
            partial(counts.without_groups, values),
            [*counts.suspicions, *suspicions(counts)],
        )

    return Engine(
        UnitAccumulator,
        read_units,
        lambda path, subset, _protocol: AnnotationFile({subset or DEFAULT_SPLIT: read_truth(path, subset)}),
        lambda path, truth, protocol, rules: _OpenedUnits(
            open_submission(path, truth, protocol, rules.limits), truth, count, rules
        ),
        report,
        lambda counts: counts.check(shapes(counts.protocol, counts.facts), facts, signed, added),
        examine=None if examine is None else lambda opened: examine(opened.submission),
    )


def score_samples(
    protocol: Any,
    facts: Dict[str, Any],
    values: _Measure,
    tabulate: Callable[[Sample], Dict[str, Array]],
    samples: Sequence[Sample],
) -> Optional[float]:
    """Return the first metric of the doctor's samples, whose tables `tabulate` counts."""
    accumulator: UnitAccumulator[Any] = UnitAccumulator(protocol, facts, [sample.name for sample in samples])
    for sample in samples:
        accumulator.update(UnitCounts(sample.name, tabulate(sample)))
    return values(accumulator)[protocol.metrics[0]]


def _note_surplus(submission: UnitSubmission, truth: UnitTruth, *, strict: bool) -> List[str]:
    """Return a warning about surplus units; raises SubmissionError if any unit is missing."""
    names, noun = submission.names(), submission.noun
    missing = [name for name in truth.item_names if name not in names]
    surplus = sorted(set(names).difference(truth.item_names, truth.elsewhere))
    if missing:
        lacking = f"{quantity(len(missing), noun, len(truth.units))} {inflect(len(missing), 'is', 'are')} missing"
        fault = f"{lacking}: {name_list(missing, 5)}"
        if surplus:
            fault += f"; {len(surplus):,} {inflect(len(surplus), 'is', 'are')} not in the truth: {name_list(surplus)}"
        remedy = submission.explain_missing(missing, surplus)
        if not names and submission.files.sizes:
            fault, remedy = f"{fault}; the upload holds only {name_list(list(submission.files.sizes))}", submission.send
        raise SubmissionError.from_problem(Problem(UPLOAD, fault, remedy))
    unused = [] if submission.used_files is None else sorted(submission.files.sizes.keys() - submission.used_files)
    ignored = _describe_surplus(surplus, noun, unused)
    if ignored and strict:
        raise SubmissionError.from_problem(Problem(UPLOAD, "; ".join(ignored), "Omit everything that is not scored"))
    return [*ignored, *submission.notes]


def _describe_surplus(surplus: List[str], noun: str, unused: List[str]) -> List[str]:
    """Return the sentence about surplus units and unused files of a submission."""
    ignored = []
    if surplus:
        were = inflect(len(surplus), "is not in the truth and was", "are not in the truth and were")
        ignored.append(f"{quantity(len(surplus), noun)} {were} ignored: {name_list(surplus)}")
    if unused:
        were = inflect(len(unused), "is not part of the results and was", "are not part of the results and were")
        ignored.append(f"{quantity(len(unused), 'file')} {were} ignored: {name_list(unused)}")
    return ignored
