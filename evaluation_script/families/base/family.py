"""Family: the rules for reading and scoring its benchmarks."""

from __future__ import annotations

from dataclasses import Field, dataclass
from typing import Any, Callable, ClassVar, Dict, Mapping, Optional, Protocol, Sequence, Tuple

from ...files import ArchiveLimits

#: Metric -> value; None if there is nothing to average.
Values = Dict[str, Optional[float]]


def mean_of_all(values: Sequence[Optional[float]]) -> Optional[float]:
    """Return the mean of the values; None if any value is missing."""
    from ...values.arithmetic import mean  # numpy comes with it, which help does not need

    numbers = [value for value in values if value is not None]
    return mean(numbers) if numbers and len(numbers) == len(values) else None


class FamilyProtocol(Protocol):
    """The rules of one benchmark, of any family: a frozen dataclass."""

    __dataclass_fields__: ClassVar[Dict[str, Field[Any]]]
    #: The family's name in `FAMILIES`.
    family: ClassVar[str]

    @property
    def form(self) -> str:
        """The form of truth that it scores, if its family has several, such as images and videos."""

    @property
    def name(self) -> str:
        """The protocol's name in `PROTOCOLS`."""

    @property
    def about(self) -> str:
        """One line for people: the rules that apply, and the frames or pixels that are skipped."""

    @property
    def metrics(self) -> Tuple[str, ...]:
        """The names of its metrics, in the benchmark's order."""

    @property
    def revision(self) -> int:
        """The revision, which rises with every change of a score."""


@dataclass(frozen=True)
class ScriptedProtocol:
    """The rules of a benchmark whose official script has quirks that a protocol can enable."""

    name: str
    about: str
    #: Follow the benchmark's script, including its quirks.
    as_script: bool = False
    revision: int = 1


@dataclass(frozen=True)
class Family:
    """A way to read and score submissions."""

    #: Its name in protocols and packed truths.
    name: str
    #: Its benchmarks.
    protocols: Mapping[str, FamilyProtocol]
    #: Options of `score`, besides `sequences`, that resolve an ambiguous published truth.
    options: Tuple[str, ...] = ()
    #: The layouts of its published truths, the usual one first. No two families share a layout's name.
    layouts: Tuple[str, ...] = ()
    #: Metrics that are reported in addition to the protocol's.
    own_metrics: Tuple[str, ...] = ()
    #: Rules that options of `score` change.
    adjustable_rules: Tuple[str, ...] = ()
    #: Packed truths score faster than published ones.
    gains_by_packing: bool = True
    #: Scoring needs pycocotools or SciPy.
    needs_packages: bool = False


@dataclass(frozen=True)
class ScoringRules:
    """The scoring rules of one split: its protocol and the limits of a submission."""

    protocol: FamilyProtocol
    limits: ArchiveLimits
    #: Warnings reject a submission.
    strict: bool = False
    #: The number of processes that score.
    jobs: int = 1
    #: The number of processes that take over from one once that pays.
    most_jobs: int = 1


#: Called with the name of the next item, the number of items done and the number of all items.
Progress = Callable[[str, int, int], None]


def ignore_progress(name: str, done: int, total: int) -> None:
    """Ignore progress; the default callback."""
    del name, done, total
