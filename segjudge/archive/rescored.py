"""The leaderboards of submissions that were scored again: published numbers beside new ones, and places."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from segjudge.evaluation_script.files.problems import inflect, name_list, quantity
from segjudge.evaluation_script.scoring import VERSION
from segjudge.report.page import ReportPage, Section, make_list, make_origins
from segjudge.report.tables import escape_cell, format_csv

from .rescoring import EntryOutcome, Label, Number, SubmissionEntry

#: The states of a submission, the worst first.
FAULTY, NO_FILE, DIFFERS, EQUAL, UNPUBLISHED = "not scored", "no file", "differs", "equal", "not published"
_STATES = (FAULTY, NO_FILE, DIFFERS, EQUAL, UNPUBLISHED)
#: The largest difference of equal numbers, from another order of the same sums.
_TOLERANCE = 1e-9
#: The decimals of numbers that were not rounded, and the most that are shown to tell two apart.
_DECIMALS, _MOST_DECIMALS = 3, 17


class Cell(NamedTuple):
    """A published number and the new one."""

    then: Number | None
    now: float | None

    @property
    def difference(self) -> float | None:
        return None if self.then is None or self.now is None else self.now - self.then.value

    @property
    def is_exact(self) -> bool:
        """Return whether the numbers are equal beyond the published decimals."""
        if self.then is None or self.difference is None:
            return False
        return abs(self.difference) <= _TOLERANCE * max(1.0, abs(self.then.value))

    @property
    def is_equal(self) -> bool:
        """Return whether the new number rounds to the published one; half a unit may be rounded either way."""
        if self.then is None or self.difference is None or self.then.decimals is None:
            return self.is_exact
        return self.is_exact or abs(self.difference) <= 0.5 * 10**-self.then.decimals + _TOLERANCE

    @property
    def differs(self) -> bool:
        return self.then is not None and not self.is_equal

    @property
    def ranked(self) -> float | None:
        """Return the new number as the published leaderboard would show it, so that its ties stay ties."""
        if self.then is None or self.now is None:
            return self.now
        return self.then.value if self.is_equal else round(self.now, self.then.decimals or _MOST_DECIMALS)

    def show(self) -> dict[str, str]:
        """Return both numbers, with the decimals that tell them apart, and their difference."""
        numbers = [self.then and self.then.value, self.now]
        decimals = min((self.then and self.then.decimals) or _DECIMALS, 2 * _DECIMALS)
        while True:
            then, now = ("–" if number is None else f"{number:.{decimals}f}" for number in numbers)
            if then != now or decimals == _MOST_DECIMALS:
                difference = "–" if self.difference is None else f"{self.difference:+.3g}"
                return {"published": then, "now": now, "difference": difference}
            decimals += 1


@dataclass
class RescoredRow:
    """A submission on a leaderboard."""

    entry: SubmissionEntry
    cells: dict[str, Cell]
    state: str
    why: str
    #: Its place now and before, if the leaderboard shows or showed it.
    new_place: int | None = None
    published_place: int | None = None
    #: It stands for a team, or itself, whose place changed.
    has_moved: bool = False

    @property
    def names(self) -> dict[str, Any]:
        """Return the names of a submission that are known."""
        named = {"team": self.entry.team, "method": self.entry.method}
        return {"submission": self.entry.name, **{name: text for name, text in named.items() if text}}


class BoardOrder(NamedTuple):
    """The metric that orders a leaderboard, and whether its smallest value is best."""

    metric: str
    is_ascending: bool = False


class Scale(NamedTuple):
    """How a leaderboard shows a score: times a factor, and a metric without a value as `empty`."""

    factor: float = 1.0
    empty: float | None = None

    def show(self, value: float | None) -> float | None:
        return self.empty if value is None else value * self.factor if self.factor != 1 else value


@dataclass(frozen=True)
class RescoredBoard:
    """The leaderboard of a split, the best row first."""

    split: str
    #: The protocol that scores now.
    protocol: str
    order: BoardOrder
    #: Why its numbers may differ from the published ones.
    reason: str
    rows: list[RescoredRow]

    @classmethod
    def compare(
        cls,
        about: tuple[str, str, BoardOrder, str],
        metrics: Sequence[str],
        scored: Sequence[tuple[SubmissionEntry, EntryOutcome]],
        scale: Scale,
    ) -> RescoredBoard:
        """Return the leaderboard of these metrics, whose split, protocol, order and reason are given."""
        split, _, order, reason = about
        rows = []
        for entry, outcome in scored:
            values = {} if outcome.fault else outcome.scores[split]
            now = {metric: None if outcome.fault else scale.show(values.get(metric)) for metric in metrics}
            cells = {metric: Cell(entry.numbers.get(Label(split, metric)), now[metric]) for metric in metrics}
            rows.append(RescoredRow(entry, cells, *_find_state(entry, outcome, cells, reason)))
        _rank(rows, order)
        return cls(*about, sorted(rows, key=lambda row: (row.new_place is None, row.new_place)))

    def make_rows(self) -> list[dict[str, Any]]:
        """Return the rows of a page, the ordering metric first."""
        shown = dict.fromkeys((name for row in self.rows for name in row.names), "")
        metrics = sorted(self.rows[0].cells, key=lambda name: name != self.order.metric) if self.rows else []
        rows = []
        for row in self.rows:
            numbers = dict[str, Any]()
            for metric in metrics:
                cell = row.cells[metric]
                numbers |= {metric: cell.now, f"{metric} then": cell.then and cell.then.value}
            places = {"place": row.new_place or "–", "then": row.published_place}
            rows.append({**places, **shown, **row.names, **numbers, "state": row.state})
        return rows


def _find_state(
    entry: SubmissionEntry, outcome: EntryOutcome, cells: Mapping[str, Cell], reason: str
) -> tuple[str, str]:
    """Return the state of a row, and why it has that."""
    if outcome.fault:
        return (FAULTY if entry.path else NO_FILE), " ".join(outcome.fault.split())
    if all(cell.then is None for cell in cells.values()):
        return UNPUBLISHED, "no number was published"
    if differing := [metric for metric, cell in cells.items() if cell.differs]:
        return DIFFERS, f"{name_list(differing, 4)} {inflect(len(differing), 'differs', 'differ')}; {reason}"
    rounded = {cell.then.decimals for cell in cells.values() if cell.then and not cell.is_exact}
    return EQUAL, f"equal to the {' or '.join(map(str, rounded))} published decimals" if rounded else EQUAL


def _rank(rows: list[RescoredRow], order: BoardOrder) -> None:
    """Set the places; equal numbers share one, and a team has that of its best submission.

    A submission without a new score keeps its published number, so that it moves nobody.
    """
    then, now = dict[str, tuple[float, RescoredRow]](), dict[str, tuple[float, RescoredRow]]()

    def keep_best(bests: dict[str, tuple[float, RescoredRow]], row: RescoredRow, number: float | None) -> None:
        if number is not None:
            value, group = number if order.is_ascending else -number, row.entry.group or row.entry.name
            if group not in bests or value < bests[group][0]:
                bests[group] = value, row

    for row in rows:
        cell = row.cells[order.metric]
        published = cell.then and cell.then.value
        keep_best(then, row, published if row.entry.was_ranked else None)
        new = published if row.state in (NO_FILE, FAULTY) else cell.ranked
        keep_best(now, row, new if row.entry.is_ranked else None)
    if then:  # without published numbers, a submission has no place that could change
        now = {group: best for group, best in now.items() if group in then}
    places = [sorted(value for value, _ in bests.values()) for bests in (then, now)]
    for group, (value, row) in now.items():
        row.new_place = 1 + bisect_left(places[1], value)
        row.has_moved = bool(then) and row.new_place != 1 + bisect_left(places[0], then[group][0])
    for value, row in then.values():
        row.published_place = 1 + bisect_left(places[0], value)


@dataclass(frozen=True)
class RescoredEvent:
    """All leaderboards of submissions that were scored again."""

    title: str
    boards: list[RescoredBoard]
    provenance: Mapping[str, object]
    #: What a reader has to know: omitted splits, ignored columns, the oddities of the truth.
    notes: list[str]

    def count(self) -> dict[str, int]:
        """Return the number of submissions in each state, by their worst state on any leaderboard."""
        states: dict[str, str] = {}
        for _, row in self._list_rows():
            states[row.entry.name] = min(states.get(row.entry.name, row.state), row.state, key=_STATES.index)
        return {state: Counter(states.values())[state] for state in _STATES}

    def summarize(self) -> list[str]:
        """Return the summary, such as `198 of 200 equal, 2 differ, 3 places change`, and a sentence on rounding."""
        counts = self.count()
        published = sum(counts.values()) - counts[UNPUBLISHED]
        if not published:
            return [f"{quantity(counts[UNPUBLISHED], 'submission')} scored, none with published numbers"]
        moves = sum(row.has_moved for _, row in self._list_rows())
        parts = [
            f"{counts[EQUAL]:,} of {published:,} equal",
            f"{counts[DIFFERS]:,} {inflect(counts[DIFFERS], 'differs', 'differ')}",
            f"{quantity(moves, 'place')} {inflect(moves, 'changes', 'change')}",
        ]
        phrases = {NO_FILE: "without a file", FAULTY: "could not be scored", UNPUBLISHED: "not published"}
        parts += [f"{counts[state]:,} {words}" for state, words in phrases.items() if counts[state]]
        rounded = {row.entry.name for _, row in self._list_rows() if row.state == EQUAL != row.why}
        return [", ".join(parts), *([f"{len(rounded):,} are equal in the published decimals only."] if rounded else [])]

    def list_differences(self) -> list[dict[str, Any]]:
        """Return a row for each number that differs."""
        return [
            {**row.names, "metric": metric if len(self.boards) == 1 else f"{board.split}/{metric}", **cell.show()}
            for board, row in self._list_rows()
            for metric, cell in row.cells.items()
            if row.state == DIFFERS and cell.differs
        ]

    def document(self) -> dict[str, Any]:
        """Return everything as the document of `board.json`."""
        boards = [{"split": board.split, **board.order._asdict(), "rows": []} for board in self.boards]
        return {
            "title": self.title,
            "summary": self.summarize()[0],
            "counts": self.count(),
            "notes": self.notes,
            "provenance": self.provenance,
            "boards": [
                {**about, "rows": [row for row in self._make_records() if row["split"] == about["split"]]}
                for about in boards
            ],
        }

    def make_csv(self) -> str:
        """Return a row for each submission and split, in full precision."""
        records = []
        for record in self._make_records():
            for metric, numbers in record.pop("scores").items():
                now, *older = numbers.items()
                record |= {metric: now[1], **{f"{metric} {name}": number for name, number in older}}
            records.append(record)
        columns = dict.fromkeys(name for record in records for name in record)
        return format_csv([*columns], ([escape_cell(record.get(name)) for name in columns] for record in records))

    def make_page(self) -> ReportPage:
        """Return the page: the summary, what changes, the leaderboards, and where the numbers come from."""
        summary, *rounding = self.summarize()
        protocols = name_list(list(dict.fromkeys(board.protocol for board in self.boards)))
        sentences = [f"{summary}.", *rounding, f"Scored by {protocols} of Segjudge {VERSION}."]
        sections = [Section("verdict", "Verdict", {"sentences": sentences})]
        changes = [
            {"submission": row.entry.name, "place": row.new_place, "then": row.published_place, "why": why}
            for board, row in self._list_rows()
            if row.has_moved or row.state in (FAULTY, NO_FILE, DIFFERS)
            for why in [f"{board.split}: {row.why}" if len(self.boards) > 1 else row.why]
        ]
        if changes:
            about = "Rows whose numbers or places differ. Submissions without a new score keep their published ones."
            sections.append(make_list("What changes", changes, about))
        if differences := self.list_differences():
            sections.append(make_list("Numbers that differ", differences, "They differ by more than rounding."))
        for board in self.boards:
            order = f"Ordered by {board.order.metric}, {'smallest' if board.order.is_ascending else 'largest'} first"
            about = f"{order}; equal numbers share a place. Then: as published. board.csv has all digits."
            sections.append(make_list(f"Leaderboard: {board.split}", board.make_rows(), about))
        return ReportPage(self.title, [*sections, make_origins(self.notes, self.provenance)])

    def _list_rows(self) -> Iterator[tuple[RescoredBoard, RescoredRow]]:
        return ((board, row) for board in self.boards for row in board.rows)

    def _make_records(self) -> Iterator[dict[str, Any]]:
        """Yield each row of each leaderboard as JSON values."""
        for board, row in self._list_rows():
            scores = {
                metric: {"now": cell.now, "published": cell.then and cell.then.value, "difference": cell.difference}
                for metric, cell in row.cells.items()
            }
            places = {"place": row.new_place, "published place": row.published_place}
            named = {"submission": row.entry.name, "team": row.entry.team, "method": row.entry.method}
            yield {"split": board.split, **places, **named, "state": row.state, "why": row.why, "scores": scores}
