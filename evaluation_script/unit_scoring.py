"""Score a submission of the tracks that count by unit; each track is a row of `TRACKS`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import AbstractSet, Any, Callable, Dict, List, Optional, Protocol

from . import panoptic, panoptic_counting, panoptic_files, semantic, tracks, tracks_counting, tracks_files
from .archive import UPLOAD
from .archive_limits import ArchiveLimits
from .errors import HostError, Problem, SubmissionError, counted, listed, verb
from .panoptic_protocols import PanopticProtocol
from .parallel import WHOLE, Part, results_of_processes
from .phase import ScoringRules
from .progress import Progress, ignore_progress
from .semantic_protocols import SemanticProtocol
from .tracks_protocols import TracksProtocol
from .unit_counts import UnitAccumulator, UnitCounts, decoded_unit
from .unit_truth import Unit, UnitTruth


class UnitSubmission(Protocol):
    """An open submission."""

    #: What a unit is called.
    noun: str

    def names(self) -> AbstractSet[str]:
        """Return the names of the units that were sent."""

    def close(self) -> None:
        """Close the file."""


@dataclass(frozen=True)
class UnitTrack:
    """What makes a track: how truth and submissions are read, what is counted, and what follows."""

    read_truth: Callable[[str, str], UnitTruth]
    open_submission: Callable[[str, UnitTruth, Any, ArchiveLimits], Any]
    count: Callable[[Unit, Any], UnitCounts]
    values: Callable[[UnitAccumulator[Any]], Dict[str, Optional[float]]]
    tables: Callable[[UnitAccumulator[Any]], Dict[str, List[Dict[str, Any]]]]


TRACKS = {
    PanopticProtocol.track: UnitTrack(
        panoptic_files.read_truth,
        panoptic_files.PanopticSubmission,
        panoptic_counting.count,
        panoptic.values,
        panoptic.tables,
    ),
    SemanticProtocol.track: UnitTrack(
        semantic.read_truth, semantic.SemanticSubmission, semantic.count, semantic.values, semantic.tables
    ),
    TracksProtocol.track: UnitTrack(
        tracks_files.read_truth, tracks_files.TracksSubmission, tracks_counting.count, tracks.values, tracks.tables
    ),
}


def counted_units(
    path: str, truth: UnitTruth, rules: ScoringRules, *, part: Part = WHOLE, progress: Progress = ignore_progress
) -> UnitAccumulator[Any]:
    """Count a submission, or a part of its units; raises SubmissionError where it cannot be read."""
    if truth.track != rules.protocol.track:
        raise HostError(f"the truth holds {truth.track}, which the protocol {rules.protocol.name} does not score")
    track = TRACKS[truth.track]
    submission: UnitSubmission = track.open_submission(path, truth, rules.protocol, rules.limits)
    accumulator = UnitAccumulator(rules.protocol, truth.facts, [unit.name for unit in truth.units])
    try:
        accumulator.notes = _surplus(submission, accumulator.names, strict=rules.strict)
        units = [truth.units[number] for number in part.of([unit.cost for unit in truth.units])]

        def work(number: int) -> bytes:
            return track.count(units[number], submission).encoded()

        def started(number: int) -> None:
            progress(units[number].name, len(accumulator), len(units))

        for data in results_of_processes(work, [unit.cost for unit in units], rules.jobs, started):
            accumulator.update(decoded_unit(data))
    finally:
        submission.close()
    progress("", len(units), len(units))
    return accumulator


def _surplus(submission: UnitSubmission, names: List[str], *, strict: bool) -> List[str]:
    """Return a warning of units that the truth does not have; raises SubmissionError where any is missing."""
    sent, noun = submission.names(), submission.noun
    missing = [name for name in names if name not in sent]
    if missing:
        found = f"{counted(len(missing), noun, len(names))} {verb(len(missing), 'is', 'are')} missing"
        raise SubmissionError.of(Problem(UPLOAD, f"{found}: {listed(missing, 5)}", f"Send every {noun}"))
    known = frozenset(names)
    surplus = [name for name in sent if name not in known]
    if not surplus:
        return []
    were = verb(len(surplus), "is not in the truth and was", "are not in the truth and were")
    found = f"{counted(len(surplus), noun)} {were} ignored: {listed(surplus)}"
    if strict:
        raise SubmissionError.of(Problem(UPLOAD, found, "Send only what is scored"))
    return [found]
