"""The engine of a family: it opens truths and submissions, counts item by item, and computes scores."""

from __future__ import annotations

from typing import Any, Callable, Dict, Generic, List, Mapping, Optional, Protocol, Sequence, Type, TypeVar

from ...runner.parallel import Part
from ...values import dataclass
from .accumulator import Accumulator
from .family import Progress, ScoringRules
from .reports import Report
from .truth import AnnotationFile, SplitTruth


@dataclass(frozen=True)
class CountingJob:
    """The items to count in one part of a submission; any process may count them, in any order."""

    #: Takes what was counted; empty at first.
    accumulator: Accumulator[Any, Any]
    #: Counts an item and encodes its counts.
    count: Callable[[int], bytes]
    #: How long each item takes beside others.
    costs: Sequence[int]
    #: What progress calls the items; none where it does not tell them apart.
    names: Sequence[str] = ()


class OpenedSubmission(Protocol):
    """A submission and its truth, opened once for any number of parts."""

    def plan(self, share: Part, progress: Progress) -> CountingJob:
        """Return the counting job of a part; `progress` reports the reading before it."""

    def close(self) -> None:
        """Close the submission's file."""


_Truth = TypeVar("_Truth", bound=SplitTruth)
_Rules = TypeVar("_Rules")
_Counts = TypeVar("_Counts", bound=Accumulator[Any, Any])
#: Returns what a page shows of what a submission lost in a split: of its scores, with masks in so many bytes at the
#: most, by so many processes.
LossReader = Callable[[Any, Any, int, int], Dict[str, Any]]


@dataclass(frozen=True)
class Engine(Generic[_Truth, _Rules, _Counts]):
    """Scores the benchmarks of a family."""

    accumulator: Type[_Counts]
    #: Reads the splits of a packed annotation file.
    read_packed: Callable[[str], Mapping[str, _Truth]]
    #: Reads a dataset as it was published, as one split: a subset, or what is called val by default; and where its
    #: files allow several readings, as that of a protocol.
    read_published: Callable[[str, str, str], AnnotationFile[_Truth]]
    #: Opens a submission; raises SubmissionError where it cannot be read.
    open_submission: Callable[[str, _Truth, _Rules, ScoringRules], OpenedSubmission]
    #: Says what a split scored of which all was counted; raises SubmissionError with every problem.
    report: Callable[[str, _Counts], Report]
    #: Raises ValueError where counts that a file brought are such as no counting gives.
    check: Callable[[_Counts], None] = lambda _counts: None
    #: Imports what reads the losses of a submission, if the family shows any; most phases keep none.
    load_losses: Optional[Callable[[], LossReader]] = None
    #: Reads of a submission what needs no truth, while it is asked to go on; large truths are read meanwhile.
    read_ahead: Optional[Callable[[str, _Rules, ScoringRules, Callable[[], bool]], List[Any]]] = None
    #: Parts for each worker of a cluster: the last ones keep none waiting for long, and each costs little to begin.
    parts_each: int = 2
