"""What a family is: a way to read and score, and the benchmarks that it has."""

from __future__ import annotations

from dataclasses import Field, dataclass
from typing import Any, ClassVar, Dict, Mapping, Optional, Protocol, Tuple

from ...files.limits import ArchiveLimits

#: Metrics by name; None where there is nothing to average.
Values = Dict[str, Optional[float]]


class TrackProtocol(Protocol):
    """The rules of one benchmark, of any family: a frozen dataclass."""

    __dataclass_fields__: ClassVar[Dict[str, Field[Any]]]
    #: The family's name in `FAMILIES`.
    track: ClassVar[str]

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
    protocols: Mapping[str, TrackProtocol]
    #: Options of `score`, beside the sequences, that say what a published truth leaves open.
    options: Tuple[str, ...] = ()
    #: The layouts in which its truths are published, the usual one first; no other family has one of these names.
    layouts: Tuple[str, ...] = ()


@dataclass(frozen=True)
class ScoringRules:
    """How one split is scored: a protocol, and what a submission may be."""

    protocol: TrackProtocol
    limits: ArchiveLimits
    #: Warnings refuse a submission.
    strict: bool = False
    #: So many processes share the scoring.
    jobs: int = 1
