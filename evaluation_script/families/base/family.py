"""Family: the rules for reading and scoring its benchmarks."""

from __future__ import annotations

from dataclasses import Field
from typing import Any, Callable, ClassVar, Dict, List, Mapping, Optional, Protocol, Sequence, Tuple

from ...files import ArchiveLimits
from ...values import dataclass

#: Metrics by name; None where there is nothing to average.
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
    #: The rules are those of the benchmark's script, with its quirks.
    as_script: bool = False
    revision: int = 1


@dataclass(frozen=True)
class Family:
    """A way to read and score submissions."""

    #: What protocols and packed truths call it.
    name: str
    #: Its benchmarks.
    protocols: Mapping[str, FamilyProtocol]
    #: Options of `score`, beside the sequences, that say what a published truth leaves open.
    options: Tuple[str, ...] = ()
    #: The layouts in which its truths are published, the usual one first; no other family has one of these names.
    layouts: Tuple[str, ...] = ()
    #: Metrics that are reported beside those of every protocol.
    own_metrics: Tuple[str, ...] = ()
    #: Rules that options of `score` change.
    adjustable_rules: Tuple[str, ...] = ()
    #: A packed truth scores faster than one as it was published.
    gains_by_packing: bool = True
    #: It is scored with pycocotools or SciPy.
    needs_packages: bool = False


@dataclass(frozen=True)
class ScoringRules:
    """The scoring rules of one split: its protocol and the limits of a submission."""

    protocol: FamilyProtocol
    limits: ArchiveLimits
    #: Warnings refuse a submission.
    strict: bool = False
    #: So many processes share the scoring.
    jobs: int = 1
    #: What was read of a submission before its truth; whoever reads the rest takes it out.
    ahead: Optional[List[Any]] = None


#: Called with the name of the next item, the number of items done and the number of all items.
Progress = Callable[[str, int, int], None]


def ignore_progress(name: str, done: int, total: int) -> None:
    """Ignore progress; the default callback."""
    del name, done, total
