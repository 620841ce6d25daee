"""The base of families that count each unit separately: an image, video or sequence.

`unit_engine` makes an engine from a family's functions. The rest of what such a family imports from here lies beside:
the truth of units, the files of a submission, and the counts of units with their accumulator.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Callable, Collection, Dict, List, Optional, Sequence

from ...files import ArchiveLimits, Problem, Problems, SubmissionError, inflect, name_list, quantity
from ...files.archive import UPLOAD
from ...masks.overlaps import LabelMap
from ...masks.stack import Array
from ...runner.parallel import Part
from .engine import CountingJob, Engine
from .exchanged_units import UnitSamples, are_in_order, judge_exchanged_units
from .family import Progress, ScoringRules, Values
from .readings import (
    MOVED,
    FirstMaps,
    Reading,
    ReadingScores,
    choose_few,
    choose_units,
    is_moved,
    judge_readings,
    may_explain,
    note_failures,
    score_readings,
    switch,
)
from .reports import Report, Row
from .truth import DEFAULT_SPLIT, AnnotationFile
from .unit_counts import FactForms, PackedUnits, Shapes, UnitAccumulator, UnitCounts, decode_unit
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
    "FilesOfUnits", "PictureFiles", "Rows", "Shapes", "TruthFrame", "Unit", "UnitAccumulator", "UnitComparison",
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
#: Returns the scores of a counted unit, and of its first maps, as those of another unit.
_Look = Callable[[UnitCounts, FirstMaps], ReadingScores]
#: Returns the metrics of counted units.
_Measure = Callable[[UnitAccumulator[Any]], Values]


@dataclass(frozen=True)
class UnitComparison:
    """A family's functions that compare units with others, instead of their first maps."""

    #: Returns the samples of a submission's units.
    open: Callable[[Any], Any]
    #: Returns suspicions that go before those of other readings.
    judge: Callable[[UnitAccumulator[Any]], List[str]]


@dataclass(frozen=True)
class _Counting:
    """A family's functions that count and measure units, and the readings by which it counts low scores again."""

    count: _Count
    measure: _Measure
    readings: Callable[[Any], Sequence[Reading]]
    comparison: Optional[UnitComparison]

    def looks_at_maps(self, protocol: Any) -> bool:
        """Return whether the submission's `read` returns maps."""
        return any(reading.fits is not Reading.fits for reading in self.readings(protocol))

    def count_watched(self, unit: Unit, submission: UnitSubmission, look: _Look) -> UnitCounts:
        """Count a unit whose maps may be compared with other truths."""
        maps = FirstMaps()
        sides = maps.watch(unit, submission) if self.looks_at_maps(submission.protocol) else (unit, submission)
        counts = self.count(*sides)
        reading_scores = {} if counts.problem_count else look(counts, maps)
        return replace(counts, reading_scores=reading_scores) if reading_scores else counts

    def count_twice(
        self, unit: Unit, submission: UnitSubmission, look: _Look, failures: Optional[Dict[str, int]]
    ) -> UnitCounts:
        """Count a unit, also by other readings if its score is low.

        `failures` counts by reading the units that score no more by it; None omits readings that open other files.
        """
        readings, maps = self.readings(submission.protocol), FirstMaps()
        watched = submission
        if self.looks_at_maps(submission.protocol):
            unit, watched = maps.watch(unit, submission)
        in_order = [reading for reading in readings if not reading.compares_frames]
        frames, sides = None, (unit, watched)
        if len(in_order) < len(readings):
            from .frame_order import FrameSamples  # for videos alone

            frames = FrameSamples()
            sides = frames.watch(unit, watched)
        counts = self.count(*sides)

        def score(counts: UnitCounts) -> Optional[float]:
            if counts.problem_count:
                return None
            accumulator = UnitAccumulator(submission.protocol, submission.truth.facts, [unit.name])
            accumulator.update(counts)
            return self.measure(accumulator)[submission.protocol.metrics[0]]

        def score_otherwise(reading: Reading) -> Optional[float]:
            if reading.few_frames or not reading.fits(maps):
                return before
            opened = reading.open_moved(maps, submission) if reading.open_moved else reading.open(submission)
            return score(self.count(unit, opened))

        def score_few_frames() -> ReadingScores:
            fitting = [reading for reading in tried if reading.few_frames and reading.fits(maps)]
            sampled = switch("few_frames")(submission)
            as_sent = score(self.count(unit, sampled)) if fitting else None
            return score_readings(as_sent, fitting, lambda reading: score(self.count(unit, reading.open(sampled))))

        tried = [reading for reading in in_order if not reading.few or may_explain(reading, failures)]
        before = score(counts) if tried else None
        reading_scores = score_readings(before, tried, score_otherwise)
        if failures is not None:
            note_failures(reading_scores, failures)
        if reading_scores:
            reading_scores.update(score_few_frames())
        if MOVED in reading_scores and maps.displacement:
            from .displacement import note_displacement  # few submissions need it

            reading_scores.update(note_displacement(maps.displacement))
        if frames is not None and not counts.problem_count:
            reading_scores = {**reading_scores, **frames.compare()}
        if not counts.problem_count:
            reading_scores = {**reading_scores, **look(counts, maps)}
        return replace(counts, reading_scores=reading_scores) if reading_scores else counts


class _OpenedUnits:
    """A submission beside its truth."""

    def __init__(self, submission: UnitSubmission, truth: UnitTruth, counting: _Counting, rules: ScoringRules) -> None:
        #: The open files.
        self.submission = submission
        self._truth, self._counting, self._rules = truth, counting, rules
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
        numbers = share.select([unit.cost for unit in truth.units])
        units, twice = [truth.units[number] for number in numbers], choose_units(len(truth.units))
        by_all, comparison = choose_few(twice), self._counting.comparison
        samples: Any = comparison.open(self.submission) if comparison else UnitSamples(truth)
        compares = bool(comparison) or self._counting.looks_at_maps(rules.protocol)
        failures: Dict[str, int] = {}

        def count(number: int) -> UnitCounts:
            unit, counting, index = units[number], self._counting, numbers[number]
            look = partial(samples.look, index)
            if index in twice:
                return counting.count_twice(unit, self.submission, look, failures if index in by_all else None).detach()
            if compares and index in samples:
                return counting.count_watched(unit, self.submission, look).detach()
            return counting.count(unit, self.submission).detach()

        def pack(items: List[int], counts: List[UnitCounts]) -> PackedUnits:
            return PackedUnits([numbers[item] for item in items], counts)

        costs, names = [unit.cost for unit in units], [unit.name for unit in units]
        return CountingJob(accumulator, count, costs, names, pack)


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
    readings: Callable[[Any], Sequence[Reading]] = lambda _protocol: (),
    notes: Callable[[UnitAccumulator[Any]], List[str]] = lambda _counts: [],
    added: Collection[str] = (),
    measure_unit: Optional[_Measure] = None,
    comparison: Optional[UnitComparison] = None,
    examine: Optional[Callable[[Any], Examination]] = None,
) -> Engine[UnitTruth, Any, UnitAccumulator[Any]]:
    """Return the engine of a family from its functions for reading, counting and scoring.

    `shapes` gives the table shapes of a unit and `facts` the forms of its facts; both check the tables of parts that
    come from files. Only tables in `signed` may hold negative numbers, and files of earlier versions may lack those in
    `added`. `suspicions` are warnings about all units that suggest a mistake, and `notes` other remarks for
    participants; neither rejects anything. `readings` are a protocol's alternative readings of a submission: the engine
    counts a few units again if their first metric is low, so that metric must rise with quality; `measure_unit` returns
    it for one unit, if `values` are means over classes that most units lack. `comparison` compares units with others.
    `examine` shows a submission to the doctor, which names likely slips.
    """
    counting = _Counting(count, measure_unit or values, readings, comparison)

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
            _suspect(counts, counting, suspicions),
        )

    return Engine(
        UnitAccumulator,
        read_units,
        lambda path, subset, _protocol: AnnotationFile({subset or DEFAULT_SPLIT: read_truth(path, subset)}),
        lambda path, truth, protocol, rules: _OpenedUnits(
            open_submission(path, truth, protocol, rules.limits), truth, counting, rules
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


def _suspect(
    counts: UnitAccumulator[Any], counting: _Counting, suspicions: Callable[[UnitAccumulator[Any]], List[str]]
) -> List[str]:
    """Return the suspicions of a submission's files, then the mistake that explains low scores, or else others."""
    comparison, tried = counting.comparison, counting.readings(counts.protocol)
    metric, scores = counts.protocol.metrics[0], counts.reading_scores()
    units, count = [*scores.values()], len(counts.names)
    explained = judge_readings(units, count, tried, metric)
    moved = [reading for reading in tried if reading.open_moved]
    if not explained and moved and any(map(is_moved, units)):
        from .displacement import judge_displacements

        explained = judge_displacements(units, count, moved[0], metric)
    exchanged = judge_exchanged_units(scores, tried[0].noun) if tried else []
    if exchanged and not are_in_order(counts.names, scores):
        # A reading of neighbours explains few units.
        explained = judge_readings(units, count, [reading for reading in tried if not reading.few], metric)
    explained = (comparison.judge(counts) if comparison else []) or explained or exchanged
    return [*counts.suspicions, *(explained or suspicions(counts))]


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
