"""What a family does: open truths and submissions, count, and say what follows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, Generic, Mapping, Protocol, Type, TypeVar

from ...runner.parallel import WHOLE, Part
from .accumulator import Accumulator
from .family import ScoringRules
from .reports import Report
from .truth import AnnotationFile, SplitTruth

#: Called with the name of the next item, the number of items done and the number of all items.
Progress = Callable[[str, int, int], None]


def ignore_progress(name: str, done: int, total: int) -> None:
    """Report to nobody."""
    del name, done, total


Truth = TypeVar("Truth", bound=SplitTruth)
Rules = TypeVar("Rules")
Counts = TypeVar("Counts", bound=Accumulator[Any, Any])


class OpenedSubmission(Protocol):
    """A submission beside its truth, opened once for any number of parts."""

    def count(self, part: Part = WHOLE, progress: Progress = ignore_progress) -> Accumulator[Any, Any]:
        """Count a part, by the processes that the rules allow."""

    def close(self) -> None:
        """Close the submission's file."""


@dataclass(frozen=True)
class Engine(Generic[Truth, Rules, Counts]):
    """Scores the benchmarks of a track."""

    accumulator: Type[Counts]
    #: Reads the splits of a packed annotation file.
    read_packed: Callable[[str], Mapping[str, Truth]]
    #: Reads a dataset as it was published, as one split: a subset, or what is called val by default; and where its
    #: files allow several readings, as that of a protocol.
    read_published: Callable[[str, str, str], AnnotationFile[Truth]]
    #: Opens a submission; raises SubmissionError where it cannot be read.
    open_submission: Callable[[str, Truth, Rules, ScoringRules], OpenedSubmission]
    #: Says what a split scored of which all was counted; raises SubmissionError with every problem.
    report: Callable[[str, Counts], Report]
    #: Raises ValueError where counts that a file brought are such as no counting gives.
    check: Callable[[Counts], None] = lambda _counts: None
    #: Parts for each worker of a cluster: the last ones keep none waiting for long, and each costs little to begin.
    parts_each: int = 4
