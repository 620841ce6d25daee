"""What a family is: a way to read and score, and the benchmarks that it has."""

from __future__ import annotations

from dataclasses import Field
from typing import Any, Callable, ClassVar, Dict, List, Mapping, Optional, Protocol, Sequence, Tuple

from ...files import ArchiveLimits
from ...values import dataclass

#: Metrics by name; None where there is nothing to average.
Values = Dict[str, Optional[float]]


def mean_of_all(values: Sequence[Optional[float]]) -> Optional[float]:
    """Return the mean of values, None where any has none."""
    numbers = [value for value in values if value is not None]
    return sum(numbers) / len(numbers) if numbers and len(numbers) == len(values) else None


class FamilyProtocol(Protocol):
    """The rules of one benchmark, of any family: a frozen dataclass."""

    __dataclass_fields__: ClassVar[Dict[str, Field[Any]]]
    #: The family's name in `FAMILIES`.
    family: ClassVar[str]

    @property
    def form(self) -> str:
        """What it scores, where truths of its family hold one thing or another, such as images or videos."""

    @property
    def name(self) -> str:
        """The protocol's name in `PROTOCOLS`."""

    @property
    def about(self) -> str:
        """One line for people: what is applied, and what it skips."""

    @property
    def metrics(self) -> Tuple[str, ...]:
        """The names of its metrics, in the benchmark's order."""

    @property
    def revision(self) -> int:
        """Raised with whatever changes any score."""


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
    """How one split is scored: a protocol, and what a submission may be."""

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
    """Report to nobody."""
    del name, done, total
