"""The truth: what all families' truths share."""

from __future__ import annotations

import abc
from dataclasses import dataclass, field, replace
from typing import Any, Dict, Generic, Iterable, List, Mapping, TypeVar

from ...files import LETTER, ArchiveLimits, inflect, name_list, quantity

#: The default split of a published dataset.
DEFAULT_SPLIT = "val"


class SplitTruth(abc.ABC):
    """The truth of one split."""

    #: The family that scores it.
    family: str
    #: Notes for the host about oddities.
    notes: List[str]

    @property
    def form(self) -> str:
        """The form of truth that it holds, if its family has several; each form has its own protocols."""
        return ""

    @property
    def item_names(self) -> List[str]:
        """The names of its items; empty if it has no items."""
        return []

    def select(self, names: List[str], protocol: Any) -> SplitTruth:
        """Return the truth of the named items, as the protocol names them; raises KeyError for unknown ones.

        A truth without names is returned whole.
        """
        return self

    def spell(self, names: List[str]) -> List[str]:
        """Return names as the truth spells them; raises KeyError for unknown ones."""
        items = self.item_names
        spelled = list(map(TruthNames(items).respell, names))
        if not set(items) >= set(spelled):
            raise KeyError(*[name for name in names if TruthNames(items).respell(name) not in items])
        return spelled

    def list_oddities(self, protocol: Any) -> List[str]:
        """Return remarks for the host about this truth under a protocol."""
        return self.notes

    def find_fault(self, protocol: Any) -> str:
        """Return why a protocol cannot score this truth; empty if it can."""
        return ""

    @abc.abstractmethod
    def read_through(self) -> str:
        """Read all masks and return their number in words; raises HostError for unreadable ones."""


class TruthNames:
    """The names of a truth. A submission may spell them in another Unicode form, as macOS does."""

    def __init__(self, names: Iterable[str]) -> None:
        ordered = dict.fromkeys(names)
        self._names = ordered.keys()
        self._by_form = {compose(name): name for name in ordered if not name.isascii()}
        #: Submitted names that differ in form, by the truth's names.
        self.respelled: Dict[str, str] = {}

    def respell(self, name: str) -> str:
        """Return a name as the truth spells it; unknown names stay as they are."""
        if name.isascii() or name in self._names or compose(name) not in self._by_form:
            return name
        spelling = self._by_form[compose(name)]
        self.respelled[spelling] = name
        return spelling

    def spare_backslashes(self, limits: ArchiveLimits) -> ArchiveLimits:
        """Return limits that treat a backslash as a letter, if any name of the truth contains one."""
        return replace(limits, backslash=LETTER) if any("\\" in name for name in self._names) else limits

    @property
    def notes(self) -> List[str]:
        """A note for participants about names in another Unicode form."""
        if not self.respelled:
            return []
        count = len(self.respelled)
        respelled = f"{quantity(count, 'name')} {inflect(count, 'is', 'are')} in another Unicode form than the truth's"
        return [
            f"{respelled}, and {inflect(count, 'was', 'were')} treated as equal: {name_list(sorted(self.respelled))}"
        ]


def compose(name: str) -> str:
    """Return a name in the Unicode form in which equal letters are equal characters."""
    if name.isascii():
        return name
    from unicodedata import normalize  # a library that few names need

    return normalize("NFC", name)


_Truth_co = TypeVar("_Truth_co", bound=SplitTruth, covariant=True)


@dataclass(frozen=True)
class AnnotationFile(Generic[_Truth_co]):
    """The splits of an annotation file or of a published dataset, all of one family."""

    splits: Mapping[str, _Truth_co]
    #: Notes for the host, e.g. that a packed file would score faster.
    notes: List[str] = field(default_factory=list)
