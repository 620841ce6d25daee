"""Which rows of a leaderboard can be told apart, from what the phase lets participants read of their sequences."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from segjudge.errors import UsageError
from segjudge.statistics.rankings import differences, means
from segjudge.statistics.score_tables import AlgorithmScores, algorithm_scores, sums_of

from .leaderboards import RankedBoard
from .models import Submission
from .store import Store
from .stored_files import FileStore

#: So many rows are compared; the rest of a long leaderboard has no range of places.
MOST_COMPARED = 20
#: Fewer sequences say too little.
FEWEST_CASES = 5
#: A result file that is larger is not read.
_BYTES = 32 << 20
#: Comparisons that are kept, so that a page which refreshes itself costs nothing.
_KEPT = 64


@dataclass(frozen=True)
class Standings:
    """Rows of a leaderboard, compared on the same sequences with Holm's adjustment for all pairs."""

    #: Submission → the places that it may have, with 95 % certainty for all of them together.
    places: dict[int, tuple[int, int]]
    #: Pairs of submissions of which the first is better than the second, and can be told apart from it.
    better: frozenset[tuple[int, int]]
    #: On how many sequences they were compared.
    cases: int


class Comparisons:
    """Compares the rows of leaderboards."""

    def __init__(self, store: Store, files: FileStore) -> None:
        self._store, self._files = store, files
        self._known: dict[object, Standings | None] = {}

    def of(self, board: RankedBoard, split: str) -> Standings | None:
        """Return how the first rows compare by what orders the board; None where their files do not say."""
        rows = {row.entry.submission: row.entry for row in board.rows[:MOST_COMPARED]}
        if len(rows) < 2:
            return None
        found = self._store.find(Submission, Submission.id.in_(rows))
        files = tuple(sorted((one.id, one.submission_result_file or "") for one in found))
        key = (split, board.order, board.descending, files)
        if key not in self._known:
            while len(self._known) >= _KEPT:
                self._known.pop(next(iter(self._known)), None)
            self._known[key] = self._compared(files, split, board.order, smaller=not board.descending)
        return self._known[key]

    def _compared(
        self, files: Sequence[tuple[int, str]], split: str, metric: str, *, smaller: bool
    ) -> Standings | None:
        try:
            table, sequences = sums_of([self._scores(number, file, split) for number, file in files], metric)
        except (UsageError, OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
            return None  # not a file of ours, one that the phase keeps short, or scores that are no means over objects
        if len(sequences) < FEWEST_CASES:
            return None
        table = type(table)(table.algorithms, table.sums, table.counts, smaller)
        pairs = differences(table)
        better = {
            (one.one, one.other) if (one.difference > 0) != smaller else (one.other, one.one)
            for one in pairs
            if one.apart
        }
        return Standings(
            {int(mean.name): (mean.place_from, mean.place_to) for mean in means(table, pairs)},
            frozenset((int(first), int(second)) for first, second in better),
            len(sequences),
        )

    def _scores(self, submission: int, file: str, split: str) -> AlgorithmScores:
        row = self._files.row(file)
        if row is None or row.size > _BYTES:
            raise LookupError(file)
        with open(self._files.path(file), "rb") as source:
            return algorithm_scores(str(submission), json.load(source), split)
