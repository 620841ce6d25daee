"""The engine of a family: it opens truths and submissions, counts item by item, and computes scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import (
    TYPE_CHECKING,
    Any,
    Callable,
    Dict,
    Generic,
    Mapping,
    NamedTuple,
    Optional,
    Protocol,
    Sequence,
    Type,
    TypeVar,
)

from ...runner.parallel import Part
from .accumulator import Accumulator
from .family import Progress, ScoringRules
from .reports import Report
from .truth import AnnotationFile, SplitTruth

if TYPE_CHECKING:
    from ...doctor import Examination


class CountingJob(NamedTuple):
    """The items to count in one part of a submission; any process may count them, in any order."""

    #: The accumulator of this job's counts; empty at first.
    accumulator: Accumulator[Any, Any]
    #: Returns the counts of an item, or their encoding.
    count: Callable[[int], Any]
    #: The relative time of each item.
    costs: Sequence[int]
    #: The names of the items in progress messages; empty if it does not name them.
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
#: Returns the data of a page about the losses of a submission in a split, from its scores, the maximum bytes of masks,
#: and the number of processes.
LossReader = Callable[[Any, Any, int, int], Dict[str, Any]]


@dataclass(frozen=True, eq=False, repr=False)
class Engine(Generic[_Truth, _Rules, _Counts]):
    """Scores the benchmarks of a family."""

    accumulator: Type[_Counts]
    #: Reads the splits of a packed annotation file.
    read_packed: Callable[[str], Mapping[str, _Truth]]
    #: Reads a published dataset as one split: a subset, by default val. If its files allow several readings, the
    #: protocol decides.
    read_published: Callable[[str, str, str], AnnotationFile[_Truth]]
    #: Opens a submission; raises SubmissionError if it cannot be read.
    open_submission: Callable[[str, _Truth, _Rules, ScoringRules], OpenedSubmission]
    #: Returns the scores of a completely counted split; raises SubmissionError with every problem.
    report: Callable[[str, _Counts], Report]
    #: Raises ValueError if counts from a file could not result from counting.
    check: Callable[[_Counts], None] = lambda _counts: None
    #: Imports the reader of a submission's losses, if the family shows any; most phases store none.
    load_losses: Optional[Callable[[], LossReader]] = None
    #: Whether a submission is one file that is read as a whole before it is counted.
    reads_whole: bool = False
    #: Shows an open submission to the doctor, which names likely slips; None if the family has nothing to show.
    examine: Optional[Callable[[Any], Examination]] = None
    #: The number of parts per worker of a cluster: enough that no worker waits long for the last parts, and few enough
    #: that their starts cost little.
    parts_each: int = 2
