"""JSON records of predictions, one pair each, as pictures and videos share them."""

from __future__ import annotations

import abc
from collections import Counter
from typing import AbstractSet, Any, ClassVar, Iterable, List, Sequence, Tuple, Union

import numpy as np

from ...doctor import choose_units
from ...files import ArchiveLimits, Flaw, Problem, Problems, inflect, quantity
from ...masks.run_lengths import MaskTexts
from ...masks.stack import Array
from ...runner.tuning import without_collector
from ..base.suspicions import ScoreRange
from ..base.units import UnitSubmission, UnitTruth
from ..instances.json_parts import cut_json
from .protocols import PhraseProtocol

#: The number of bad records after which reading ends.
MOST_PROBLEMS = 1_000
#: The minimum number of masks of the pairs tried, and the share with a twin from which all seem to be sent twice.
_FEWEST_MASKS, _TWINS = 5, 0.9


class PairSubmission(UnitSubmission):
    """The predictions of all pairs; a pair without predictions is a negative answer."""

    noun = "pair"
    #: The name of a record.
    predicted: ClassVar[str]
    protocol: PhraseProtocol
    _reader: RecordReader

    @property
    def notes(self) -> List[str]:
        count = self._reader.empty
        empty = f"{quantity(count, self.predicted)} without pixels {inflect(count, 'was', 'were')} ignored"
        return [*super().notes, *([empty] if count else [])]

    @property
    def suspicions(self) -> List[str]:
        return [*self._reader.scores.judge(), *self._judge_twins()]

    @abc.abstractmethod
    def list_masks(self, pair: str) -> List[Tuple[int, str]]:
        """Return the frames and run lengths of the counted masks of a pair."""

    def _judge_twins(self) -> List[str]:
        """Return a suspicion if nearly all masks of some pairs coincide with another of their pair."""
        names, masks, repeats = self.truth.item_names, 0, 0
        for number in choose_units(len(names)):
            pair_masks = self.list_masks(names[number])
            numbers = Counter(pair_masks)
            masks += len(pair_masks)
            repeats += sum(count for count in numbers.values() if count > 1)
        if masks < _FEWEST_MASKS or repeats < _TWINS * masks:
            return []
        return [f"{repeats:,} of {masks:,} masks tried coincide with another one of their pair: send each once"]

    def names(self) -> AbstractSet[str]:
        return set(self.truth.item_names)


class RecordReader(abc.ABC):
    """Reads records of pairs part by part, and keeps those that count."""

    #: The maximum number of predictions of a pair, their name, and the remedy for more.
    most_predictions: ClassVar[int]
    counted: ClassVar[str]
    send_fewer: ClassVar[str]
    #: The remedy for a file with too many records.
    send_fewer_records: ClassVar[str]

    def __init__(self, truth: UnitTruth, limits: ArchiveLimits, *, official: bool) -> None:
        self._official, self._most_records = official, limits.records
        self._names = [unit.name for unit in truth.units]
        self._elsewhere = truth.elsewhere
        self._count = 0
        self.scores = ScoreRange()
        #: The number of predictions without a pixel, which have no effect.
        self.empty = 0
        #: The masks that count, and their areas, part by part.
        self._masks: List[MaskTexts] = []
        self._areas: List[Array] = []
        #: The number of counted predictions of each pair.
        self._prediction_counts = np.zeros(len(self._names), np.int64)

    def read(self, parts: Iterable[bytes], member: str, problems: Problems) -> None:
        """Read the records of a member."""
        try:
            with without_collector():
                for json_part in cut_json(iter(parts)):
                    self._read_part(json_part.parse(), member, problems)
                    self._count += len(json_part.records)
                    if self._count > self._most_records:
                        raise Flaw(f"holds more than {self._most_records:,} records", self.send_fewer_records)
                    if problems.places >= MOST_PROBLEMS:
                        problems.stop()
                        return
        except Flaw as flaw:
            problems.add(flaw.as_problem(member))

    @abc.abstractmethod
    def _read_part(self, records: List[Any], member: str, problems: Problems) -> None:
        """Read the next records of a member."""

    def _check_counts(self, pairs: Union[Array, Sequence[int]], problems: Problems) -> None:
        """Count the predictions of each pair; raises every problem if a pair has too many."""
        self._prediction_counts.resize(len(self._names), refcheck=False)
        np.add.at(self._prediction_counts, pairs, 1)
        beyond = np.flatnonzero(self._prediction_counts > self.most_predictions).tolist()
        if beyond:
            problem = f"has more than {self.most_predictions:,} {self.counted}"
            problems.add(Problem(f"pair {self._names[beyond[0]]}", problem, self.send_fewer))
            problems.raise_if_any()
