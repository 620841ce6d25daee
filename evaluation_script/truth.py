"""What the truths of all tracks have in common."""

from __future__ import annotations

import abc
from dataclasses import dataclass, field
from typing import Generic, List, Mapping, TypeVar

#: The split of a published dataset that names none.
DEFAULT_SPLIT = "val"


class SplitTruth(abc.ABC):
    """The truth of one split."""

    #: The track that scores it.
    track: str
    #: What is odd about it, for the host.
    notes: List[str]

    @property
    def form(self) -> str:
        """What it holds, where truths of its track hold one thing or another; each is scored by other protocols."""
        return ""

    def only(self, names: List[str]) -> SplitTruth:
        """Return the truth of what is named; raises KeyError for what it does not have.  Without names it is whole."""
        del names
        return self

    @abc.abstractmethod
    def read_through(self) -> str:
        """Read all masks, and return in words how much there is; raises HostError where any cannot be read."""


Truth_co = TypeVar("Truth_co", bound=SplitTruth, covariant=True)


@dataclass(frozen=True)
class AnnotationFile(Generic[Truth_co]):
    """The splits of an annotation file or of a published dataset, all of one track."""

    splits: Mapping[str, Truth_co]
    #: What the host should know, e.g. that a packed file would score faster.
    notes: List[str] = field(default_factory=list)
