"""The leaderboards of submissions that were scored again: published numbers beside new ones, and places."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from segjudge.evaluation_script.families import FAMILIES
from segjudge.evaluation_script.families.base.family import FamilyProtocol, Progress, ignore_progress
from segjudge.evaluation_script.files.problems import inflect, name_list, quantity
from segjudge.evaluation_script.scoring import VERSION
from segjudge.families import prefers_smaller
from segjudge.report.page import ReportPage, Section, make_list, make_origins
from segjudge.report.tables import escape_cell, format_csv
from segjudge.scoring.request import ScoreRequest, prepare
from segjudge.system.addresses import digest_of, resolve_address

from .published import Label, Number
from .rescoring import Entry, Outcome, Rescoring, choose_splits

if TYPE_CHECKING:
    from segjudge.scoring.sharing import DaskClient

#: The states of a submission.
EQUAL, DIFFERS, NO_FILE, FAULTY, UNPUBLISHED = "equal", "differs", "no file", "not scored", "not published"
#: The largest difference of equal numbers, from another order of the same sums.
_TOLERANCE = 1e-9
#: The decimals of a number that was published without rounding, and the most that are shown to tell two apart.
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
    def ranked(self) -> float | None:
        """Return the new number as the published leaderboard would show it, so that its ties stay ties."""
        if self.then is None or self.now is None:
            return self.now
        return self.then.value if self.is_equal else round(self.now, self.then.decimals or _MOST_DECIMALS)

    def show(self) -> tuple[str, str, str]:
        """Return both numbers and their difference, with the decimals that tell them apart."""
        decimals = (self.then and self.then.decimals) or _DECIMALS
        then = None if self.then is None else self.then.value
        while decimals < _MOST_DECIMALS and then is not None and self.now is not None and not self.is_equal:
            if f"{then:.{decimals}f}" != f"{self.now:.{decimals}f}":
                break
            decimals += 1
        texts = ["–" if value is None else f"{value:.{decimals}f}" for value in (then, self.now)]
        return texts[0], texts[1], "–" if self.difference is None else f"{self.difference:+.{decimals}f}"


@dataclass
class BoardRow:
    """A submission on a leaderboard."""

    entry: Entry
    cells: dict[str, Cell]
    state: str
    why: str
    #: Its place now and before, if the leaderboard shows or showed it.
    place: int | None = None
    published_place: int | None = None

    @property
    def differing(self) -> list[str]:
        return [metric for metric, cell in self.cells.items() if cell.then is not None and not cell.is_equal]


class Order(NamedTuple):
    """The metric that orders a leaderboard, and whether its smallest value is best."""

    metric: str
    is_ascending: bool = False


@dataclass(frozen=True)
class RescoredBoard:
    """The leaderboard of a split."""

    split: str
    #: The protocol that scores now.
    protocol: str
    order: Order
    rows: list[BoardRow]
    #: Why its numbers may differ.
    reason: str

    def explain(self, row: BoardRow) -> str:
        """Return why a row has its state."""
        return f"{row.why}; {self.reason}" if row.state == DIFFERS else row.why

    @property
    def metrics(self) -> list[str]:
        return list(self.rows[0].cells) if self.rows else []

    def list_moves(self) -> list[BoardRow]:
        """Return the rows that now stand for a team, or a submission, whose place changed."""
        before = {row.entry.group or row.entry.name: row.published_place for row in self.rows if row.published_place}
        shown = [row for row in self.rows if row.place]
        return [row for row in shown if before.get(row.entry.group or row.entry.name, row.place) != row.place]

    def find_published_place(self, row: BoardRow) -> int | None:
        """Return the place that the row's team, or submission, had."""
        group = row.entry.group or row.entry.name
        rows = (each for each in self.rows if (each.entry.group or each.entry.name) == group)
        return next((each.published_place for each in rows if each.published_place), None)

    def rank(self) -> None:
        """Set the places; equal numbers share one, and a team has that of its best submission.

        A submission without a new score keeps its published number, so that it moves nobody.
        """
        then, now = dict[str, tuple[float, BoardRow]](), dict[str, tuple[float, BoardRow]]()
        for row in self.rows:
            cell = row.cells[self.order.metric]
            if cell.then is not None and row.entry.was_ranked:
                self._keep_best(then, row, cell.then.value)
            number = cell.then and cell.then.value if row.state in (NO_FILE, FAULTY) else cell.ranked
            if number is not None and row.entry.is_ranked:
                self._keep_best(now, row, number)
        if then:  # without published numbers, a submission has no place that could change
            now = {group: best for group, best in now.items() if group in then}
        for bests, name in ((then, "published_place"), (now, "place")):
            ranked = sorted(value for value, _ in bests.values())
            for value, row in bests.values():
                setattr(row, name, 1 + bisect_left(ranked, value))
        self.rows.sort(key=lambda row: row.place or len(self.rows) + 1)

    def _keep_best(self, bests: dict[str, tuple[float, BoardRow]], row: BoardRow, number: float) -> None:
        value, group = number if self.order.is_ascending else -number, row.entry.group or row.entry.name
        if group not in bests or value < bests[group][0]:
            bests[group] = value, row


class Scale(NamedTuple):
    """How a leaderboard shows a score."""

    factor: float = 1.0
    #: The number of a metric without a value.
    empty: float | None = None

    def show(self, value: float | None) -> float | None:
        return self.empty if value is None else value * self.factor if self.factor != 1 else value


def _make_board(
    source: Source,
    split: str,
    protocol: FamilyProtocol,
    metrics: Sequence[str],
    scored: Sequence[tuple[Entry, Outcome]],
) -> RescoredBoard:
    """Return the leaderboard of a split."""
    published = {label.metric for entry, _ in scored for label in entry.numbers if label.split == split}
    metrics = [metric for metric in metrics if metric in published] or list(protocol.metrics)
    order = source.find_order(split)
    if order is None or order.metric not in metrics:
        order = Order(metrics[0], prefers_smaller(metrics[0], protocol.name))
    rows, scale = [], source.scale
    for entry, outcome in scored:
        values = outcome.scores.get(split, {})
        cells = {
            metric: Cell(
                entry.numbers.get(Label(split, metric)), scale.show(values.get(metric)) if not outcome.fault else None
            )
            for metric in metrics
        }
        rows.append(BoardRow(entry, cells, *_find_state(entry, outcome, cells)))
    reason = source.explain_difference(split, protocol.name)
    board = RescoredBoard(split, protocol.name, order, rows, reason)
    board.rank()
    return board


def _find_state(entry: Entry, outcome: Outcome, cells: Mapping[str, Cell]) -> tuple[str, str]:
    """Return the state of a row, and its explanation."""
    if outcome.fault:
        return (FAULTY if entry.path else NO_FILE), " ".join(outcome.fault.split())
    compared = [cell for cell in cells.values() if cell.then is not None]
    if not compared:
        return UNPUBLISHED, "no number was published"
    if differing := [metric for metric, cell in cells.items() if cell.then is not None and not cell.is_equal]:
        return DIFFERS, f"{name_list(differing, 4)} {inflect(len(differing), 'differs', 'differ')}"
    if all(cell.is_exact for cell in compared):
        return EQUAL, "equal"
    decimals = {cell.then.decimals for cell in compared if cell.then and cell.then.decimals}
    return EQUAL, f"equal to the {' or '.join(map(str, sorted(decimals)))} published decimals"


@dataclass(frozen=True)
class RescoredEvent:
    """All leaderboards of submissions that were scored again."""

    title: str
    boards: list[RescoredBoard]
    provenance: Mapping[str, object]
    #: What a reader has to know: omitted splits, ignored columns, the oddities of the truth.
    notes: list[str] = field(default_factory=list)

    def count(self) -> dict[str, int]:
        """Return the number of submissions in each state, by their worst state on any leaderboard."""
        order = (FAULTY, NO_FILE, DIFFERS, EQUAL, UNPUBLISHED)
        states: dict[str, str] = {}
        for row in (row for board in self.boards for row in board.rows):
            states[row.entry.name] = min(states.get(row.entry.name, row.state), row.state, key=order.index)
        return {state: Counter(states.values())[state] for state in order}

    @property
    def summary(self) -> str:
        """Return the summary in one line, such as `198 of 200 equal, 2 differ, 3 places change`."""
        counts = self.count()
        published = sum(counts.values()) - counts[UNPUBLISHED]
        moves = sum(len(board.list_moves()) for board in self.boards)
        if not published:
            return f"{quantity(counts[UNPUBLISHED], 'submission')} scored, none with published numbers"
        parts = [
            f"{counts[EQUAL]:,} of {published:,} equal",
            f"{counts[DIFFERS]:,} {inflect(counts[DIFFERS], 'differs', 'differ')}",
            *([f"{counts[NO_FILE]:,} without a file"] if counts[NO_FILE] else []),
            *([f"{counts[FAULTY]:,} could not be scored"] if counts[FAULTY] else []),
            f"{quantity(moves, 'place')} {inflect(moves, 'changes', 'change')}",
            *([f"{counts[UNPUBLISHED]:,} not published"] if counts[UNPUBLISHED] else []),
        ]
        return ", ".join(parts)

    def list_rounded(self) -> list[str]:
        """Return a sentence about numbers that are equal only as far as they were published."""
        rows = [row for board in self.boards for row in board.rows if row.state == EQUAL and row.why != EQUAL]
        names = {row.entry.name for row in rows}
        if not names:
            return []
        return [f"{len(names):,} of the equal ones were published with fewer decimals, and are equal in those."]

    def list_differences(self) -> list[dict[str, Any]]:
        """Return a row for each number that differs."""
        rows = []
        for board in self.boards:
            for row in board.rows if len(board.rows) else ():
                for metric in row.differing if row.state == DIFFERS else ():
                    then, now, difference = row.cells[metric].show()
                    named = {"submission": row.entry.name, **({"team": row.entry.team} if row.entry.team else {})}
                    label = metric if len(self.boards) == 1 else f"{board.split}/{metric}"
                    rows.append({**named, "metric": label, "published": then, "now": now, "difference": difference})
        return rows

    def document(self) -> dict[str, Any]:
        """Return everything as the document of `board.json`."""
        return {
            "title": self.title,
            "summary": self.summary,
            "counts": self.count(),
            "notes": self.notes,
            "provenance": self.provenance,
            "boards": [
                {
                    "split": board.split,
                    "order": board.order.metric,
                    "ascending": board.order.is_ascending,
                    "rows": [_make_json(board, row) for row in board.rows],
                }
                for board in self.boards
            ],
        }

    def make_csv(self) -> str:
        """Return a row for each submission and split, in full precision."""
        metrics = list(dict.fromkeys(metric for board in self.boards for metric in board.metrics))
        header = ["split", "place", "published place", "submission", "team", "method", "state", "why"]
        header += [title for metric in metrics for title in (metric, f"{metric} published", f"{metric} difference")]
        rows = []
        for board in self.boards:
            for row in board.rows:
                cells = [row.cells.get(metric, Cell(None, None)) for metric in metrics]
                numbers = [
                    number for cell in cells for number in (cell.now, cell.then and cell.then.value, cell.difference)
                ]
                entry = row.entry
                names = (board.split, row.place, row.published_place, entry.name, entry.team, entry.method)
                rows.append([escape_cell(value) for value in (*names, row.state, board.explain(row), *numbers)])
        return format_csv(header, rows)

    def make_page(self) -> ReportPage:
        """Return the page: the summary, what changes, the leaderboards, and where the numbers come from."""
        protocols = dict.fromkeys(board.protocol for board in self.boards)
        sentences = [
            f"{self.summary}.",
            *self.list_rounded(),
            f"Scored by {name_list([*protocols])} of Segjudge {VERSION}.",
        ]
        sections = [Section("verdict", "Verdict", {"sentences": sentences})]
        several = len(self.boards) > 1
        for board in self.boards:
            moves = [
                {
                    **_name_row(row),
                    "place": row.place,
                    "then": board.find_published_place(row),
                    board.order.metric: row.cells[board.order.metric].show()[1],
                }
                for row in board.list_moves()
            ]
            if moves:
                title = f"Places that change: {board.split}" if several else "Places that change"
                sections.append(make_list(title, moves, "Submissions with equal numbers share a place."))
        if differences := self.list_differences():
            about = "Numbers that differ by more than rounding. Below, each leaderboard says why."
            sections.append(make_list("Differences", differences, about))
        faults = [
            {**_name_row(row), "reason": row.why} for row in self.boards[0].rows if row.state in (FAULTY, NO_FILE)
        ]
        if faults:
            about = "These submissions keep their published numbers and places."
            sections.append(make_list("Without a new score", faults, about))
        for board in self.boards:
            title = f"Leaderboard: {board.split}" if several else "Leaderboard"
            sections.append(make_list(title, [_make_row(board, row) for row in board.rows], _describe_order(board)))
        return ReportPage(self.title, [*sections, make_origins(self.notes, self.provenance)])


def _describe_order(board: RescoredBoard) -> str:
    direction = "smallest" if board.order.is_ascending else "largest"
    return (
        f"Ordered by {board.order.metric}, {direction} first; equal numbers share a place. Then: the published number. "
        f"Where numbers differ: {board.reason}. board.csv has all numbers in full precision."
    )


def _name_row(row: BoardRow) -> dict[str, Any]:
    entry = row.entry
    names = {"submission": entry.name, "team": entry.team, "method": entry.method}
    return {name: value for name, value in names.items() if value or name == "submission"}


def _make_row(board: RescoredBoard, row: BoardRow) -> dict[str, Any]:
    """Return a row of a page's leaderboard, the ordering metric first."""
    shown = {name for each in board.rows for name in _name_row(each)}
    names: dict[str, Any] = {name: "" for name in ("submission", "team", "method") if name in shown} | _name_row(row)
    numbers = dict[str, Any]()
    for metric in sorted(row.cells, key=lambda name: name != board.order.metric):
        cell = row.cells[metric]
        numbers |= {metric: cell.now, f"{metric} then": cell.then and cell.then.value}
    state = row.state if row.state in (FAULTY, NO_FILE) else row.why
    return {"place": row.place or "–", "then": row.published_place, **names, **numbers, "state": state}


def _make_json(board: RescoredBoard, row: BoardRow) -> dict[str, Any]:
    return {
        **_name_row(row),
        "place": row.place,
        "published_place": row.published_place,
        "state": row.state,
        "why": board.explain(row),
        "scores": {
            metric: {
                "now": cell.now,
                "published": cell.then and cell.then.value,
                "decimals": cell.then and cell.then.decimals,
                "difference": cell.difference,
            }
            for metric, cell in row.cells.items()
        },
    }


class Source(Protocol):
    """Where submissions and their published numbers come from."""

    @property
    def title(self) -> str:
        """The title of the page."""

    @property
    def scale(self) -> Scale:
        """How its leaderboards show a score."""

    def find_hidden(self, truths: Collection[str]) -> frozenset[str]:
        """Return the truth's splits that are not scored."""

    def list_entries(self, metrics: Mapping[str, Sequence[str]]) -> tuple[list[Entry], list[str]]:
        """Return the submissions with their numbers of these metrics by split, and notes."""

    def find_order(self, truth: str) -> Order | None:
        """Return the order of a split's leaderboard, if it is known."""

    def explain_difference(self, split: str, protocol: str) -> str:
        """Return why a protocol may give other numbers in a split than were published."""


def rescore(
    source: Source,
    request: ScoreRequest,
    folder: str,
    client: DaskClient | None = None,
    bars: tuple[Progress, Progress] = (ignore_progress, ignore_progress),
) -> RescoredEvent:
    """Score submissions by a request without results, and compare their scores with the published ones.

    The folder keeps each outcome; `bars` show the progress within submissions and over them.
    """
    prepared = prepare(request, bars[0])
    hidden = source.find_hidden(prepared.scorers)
    shown = choose_splits(prepared, hidden)
    protocols = {split: scorer.rules.protocol for split, scorer in shown.scorers.items()}
    known = {split: _list_metrics(protocol) for split, protocol in protocols.items()}
    entries, notes = source.list_entries(known)
    notes = [*notes, *(f"{split} is hidden, and omitted" for split in sorted(hidden)), *shown.notes]
    outcomes = Rescoring(request, prepared, hidden, folder).score(entries, client, bars)
    scored = [(entry, outcomes[entry.name]) for entry in entries]
    boards = [_make_board(source, split, protocol, known[split], scored) for split, protocol in protocols.items()]
    provenance = shown.provenance((digest_of(resolve_address(shown.truth)), "-"))
    return RescoredEvent(
        source.title,
        boards,
        {key: value for key, value in provenance.items() if key != "submission"},
        notes + [hint for hint in [_find_percent(boards)] if hint],
    )


def _list_metrics(protocol: FamilyProtocol) -> list[str]:
    """Return the metrics of a protocol, and those that its family adds."""
    family = FAMILIES.get(protocol.family)
    return list(dict.fromkeys([*protocol.metrics, *(family.own_metrics if family else ())]))


def _find_percent(boards: Sequence[RescoredBoard]) -> str:
    """Return a hint if published numbers look like percents of the new ones; "" if they do not."""
    cells = [row.cells[board.order.metric] for board in boards for row in board.rows if row.state in (EQUAL, DIFFERS)]
    pairs = [(cell.then.value, cell.now) for cell in cells if cell.then is not None and cell.now is not None]
    alike = [then for then, now in pairs if then > 1 >= now > 0 and abs(then / 100 - now) < 0.05 * now]
    if 2 * len(alike) <= len(pairs):
        return ""
    return "the published numbers look like percents of the new ones; if they are, add --percent"
