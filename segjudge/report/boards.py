"""Leaderboards as rows, a page, CSV and badges, wherever their scores come from."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

from markupsafe import Markup, escape

from segjudge.evaluation_script.files.problems import printable
from segjudge.system.files import open_output

from .page import ReportPage, Section, make_list, render_page
from .tables import escape_cell, format_csv

#: The probability of all rows' places and of a single interval, and the standard errors in half an interval.
_CONFIDENCE = 0.95
_HALF_WIDTH = NormalDist().inv_cdf((1 + _CONFIDENCE) / 2)
#: The sizes of a badge in pixels: its height, a character, and the padding of each of its two texts.
_HEIGHT, _CHARACTER, _SPACE = 20, 6.6, 6
_BADGE = """<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height}" role="img"
  aria-label="{text}">
<title>{text}</title>
<rect width="{width:.0f}" height="{height}" rx="3" fill="#0b5cad"/>
<path d="M3 0H{middle:.0f}V{height}H3a3 3 0 0 1-3-3V3a3 3 0 0 1 3-3" fill="#3b4654"/>
<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">
<text x="{space}" y="14" textLength="{name_width:.0f}" lengthAdjust="spacingAndGlyphs">{name}</text>
<text x="{start:.0f}" y="14" textLength="{score_width:.0f}" lengthAdjust="spacingAndGlyphs">{score}</text>
</g>
</svg>
"""


#: The end of the names of columns with standard errors, and how a page shows them.
ERROR = " ±"
_INTERVALS = (
    "± is half a 95 % interval, from the standard error. Places are those that are possible at a joint confidence of "
    "95 %: two teams differ if their intervals, widened for that, do not meet."
)
#: The first section of a page that is not for publication.
_HIDDEN = "Hidden results"


@dataclass(frozen=True)
class Board:
    """A leaderboard as its visitors see it."""

    #: The number on its server, or another name that its files may have.
    number: int | str
    name: str
    #: The metric that orders it, and the number of decimals.
    order: str
    decimals: int
    #: The rows, best first: place, team, metrics with their standard errors, and time of submission.
    rows: list[dict[str, object]]
    #: Visitors of the server do not see it.
    hidden: bool = False
    #: The sentence about a leaderboard without rows.
    about: str = ""

    @property
    def stem(self) -> str:
        """Return the name of the leaderboard's files, without extension."""
        return f"{self.number}-hidden" if self.hidden else str(self.number)

    def list_places(self) -> list[str]:
        """Return the places that each row may have, all at a joint confidence; empty unless all have standard errors.

        Two rows differ if their intervals, wide enough for all rows at once, do not meet: the server has no scores by
        case, which would tell more rows apart.
        """
        pairs = [(row.get(self.order), row.get(f"{self.order}{ERROR}")) for row in self.rows]
        scores = [(v, e) for v, e in pairs if isinstance(v, int | float) and isinstance(e, int | float)]
        if len(scores) < len(pairs):
            return []
        width = NormalDist().inv_cdf(1 - (1 - _CONFIDENCE) / (2 * max(1, len(scores))))
        places = []
        for number, (value, error) in enumerate(scores):
            differs = [abs(value - each) > width * (error + its_error) for each, its_error in scores]
            best, worst = 1 + sum(differs[:number]), len(scores) - sum(differs[number + 1 :])
            places.append(f"{best}–{worst}" if best < worst else str(best))
        return places

    def draw_badge(self) -> str:
        """Return the first row as an SVG badge."""
        name = f"hidden {self.order}" if self.hidden else self.order
        value = self.rows[0].get(self.order) if self.rows else None
        number = f"{value:.{self.decimals}f}" if isinstance(value, float | int) else "#"
        # A control character in a team's name would make the picture unreadable for XML parsers.
        score = f"{number} {printable(self.rows[0]['team'])}" if self.rows else "nobody yet"
        name_width, score_width = len(name) * _CHARACTER, len(score) * _CHARACTER
        return _BADGE.format(
            text=escape(f"{self.name}: {name} {score}"),
            name=escape(name),
            score=escape(score),
            name_width=name_width,
            score_width=score_width,
            space=_SPACE,
            middle=name_width + 2 * _SPACE,
            start=name_width + 3 * _SPACE,
            width=name_width + score_width + 4 * _SPACE,
            height=_HEIGHT,
        )


def rank_scores(scores: Sequence[object]) -> list[int | str]:
    """Return the rank of each of the scores of a leaderboard, best first; equal ones share a rank, such as `2=`."""
    counts, ranks = Counter(scores), dict[object, int]()
    for place, score in enumerate(scores, 1):
        ranks.setdefault(score, place)
    return [f"{ranks[score]}=" if counts[score] > 1 else ranks[score] for score in scores]


def write_csv(board: Board) -> str:
    """Return a leaderboard as CSV in full precision, with texts escaped for spreadsheets."""
    rows = _complete_rows(board.rows)
    cells = ([escape_cell(value) for value in row.values()] for row in rows)
    return format_csv(list(rows[0]) if rows else ["rank", "team"], cells)


def _complete_rows(rows: list[dict[str, object]]) -> list[dict[str, object]]:
    """Return rows with the columns of the row that has the most; entries may lack standard errors."""
    columns = max(rows, key=len, default={})
    return [{column: row.get(column) for column in columns} for row in rows]


def _show_intervals(board: Board, rows: list[dict[str, object]]) -> list[dict[str, object]]:
    """Return rows with intervals for standard errors, and with the places that each row may have."""
    places = board.list_places() or [""] * len(rows)
    return [
        {
            "rank": row["rank"],
            **({"places": possible} if possible else {}),
            **{
                column: _HALF_WIDTH * value if column.endswith(ERROR) and isinstance(value, int | float) else value
                for column, value in row.items()
                if column != "rank"
            },
        }
        for row, possible in zip(rows, places, strict=True)
    ]


def write_boards(folder: str, title: str, boards: Sequence[Board]) -> None:
    """Write the page of leaderboards into a folder, with the CSV and badge of each."""
    for board in boards:
        for ending, text in ((".csv", write_csv(board)), (".svg", board.draw_badge())):
            with open_output(os.path.join(folder, f"{board.stem}{ending}")) as file:
                file.write(text)
    with open_output(os.path.join(folder, "index.html")) as file:
        file.write(render_page(make_board_page(title, boards)))


def make_board_page(title: str, boards: Sequence[Board], further: Sequence[Section] = ()) -> ReportPage:
    """Return the page of leaderboards, with further sections below them."""
    hidden_rows: list[dict[str, object]] = [{"leaderboard": board.name} for board in boards if board.hidden]
    warning = "This page contains results that the server hides from visitors. Do not publish it."
    sections = [make_list(_HIDDEN, hidden_rows, warning)] if hidden_rows else []
    for board in boards:
        name = f"{board.name} (hidden)" if board.hidden else board.name
        rows = _complete_rows(board.rows)
        about = f"Sorted by {board.order}. Full precision: {board.stem}.csv. Badge of the leader: {board.stem}.svg."
        if any(column.endswith(ERROR) for row in rows for column in row):
            rows, about = _show_intervals(board, rows), f"{_INTERVALS} {about}"
        for row in rows:
            if path := row.get("report"):
                row["report"] = Markup('<a href="{}">report</a>').format(path)
        about = about if rows else board.about or "No submissions yet."
        sections.append(make_list(name, rows, about))
    return ReportPage(title, [*sections, *further])
