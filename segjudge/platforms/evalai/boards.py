"""Leaderboards of an EvalAI server as rows and badges, for pages elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any

from markupsafe import escape

from segjudge.evaluation_script.files.problems import printable

from . import routes
from .bundle.secrecy import is_visible
from .client import ApiError, Client

#: The end of the names of columns with standard errors.
ERROR = " ±"
#: The statuses of the server's answer for a non-public leaderboard.
_HIDDEN_STATUSES = (400, 401, 403)
#: The probability of all rows' places and of a single interval, and the standard errors in half an interval.
_CONFIDENCE = 0.95
HALF_WIDTH = NormalDist().inv_cdf((1 + _CONFIDENCE) / 2)
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


@dataclass(frozen=True)
class Board:
    """A leaderboard as the server shows it."""

    number: int
    name: str
    #: The metric that orders it, and the number of decimals.
    order: str
    decimals: int
    #: The rows, best first: place, team, metrics with their standard errors, and time of submission.
    rows: list[dict[str, object]]
    #: Visitors of the server do not see it.
    hidden: bool = False

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


def fetch_boards(host: str, challenge: int) -> tuple[str, list[Board]]:
    """Return the title of a challenge, and the leaderboards that its server shows to an anonymous visitor."""
    client = Client(host, "")
    title, splits = _fetch_splits(client, challenge)
    # Even if a server listed others, they would be ignored.
    boards = [_fetch_board(client, split) for split in splits if is_visible(split.get("visibility"))]
    return title, [board for board in boards if board is not None]


def fetch_boards_of_host(host: str, token: str, challenge: int) -> tuple[str, list[Board]]:
    """Return the title of a challenge, and all leaderboards visible to a token, marked if they need it."""
    client = Client(host, token)
    title, splits = _fetch_splits(client, challenge)
    try:
        _, public_boards = fetch_boards(host, challenge)
    except ApiError:  # the challenge itself is not published
        public_boards = []
    boards = [_fetch_board(client, split) for split in splits]
    return title, [replace(board, hidden=board not in public_boards) for board in boards if board is not None]


def _fetch_splits(client: Client, challenge: int) -> tuple[str, list[dict[str, Any]]]:
    """Return the title of a challenge, and its splits as the server lists them."""
    answer = client.call("GET", routes.CHALLENGE, {"challenge": challenge})
    title = answer.get("title", "") if isinstance(answer, dict) else ""
    return str(title), client.fetch_rows(routes.PHASE_SPLITS, {"challenge": challenge})


def _fetch_board(client: Client, split: Mapping[str, Any]) -> Board | None:
    """Return a leaderboard; None for one that the server lists but does not show."""
    schema = split.get("leaderboard_schema") or {}
    try:
        entries = client.fetch_rows(routes.LEADERBOARD, {"split": int(split["id"])})
    except ApiError as error:
        if error.status in _HIDDEN_STATUSES:
            return None
        raise
    schema = entries[0].get("leaderboard__schema", schema) if entries else schema
    labels, order = list(schema.get("labels") or []), str(schema.get("default_order_by") or "")
    scores = [entry.get("filtering_score") for entry in entries]
    rows = [
        {
            "rank": f"{rank}=" if scores.count(score) > 1 else rank,
            "team": str(entry.get("submission__participant_team__team_name", "")),
            "method": str(entry.get("submission__method_name") or ""),
            **_list_cells(labels, entry),
            "submitted": str(entry.get("submission__submitted_at") or "")[:10],
        }
        for entry, score in zip(entries, scores, strict=True)
        for rank in [1 + scores.index(score)]
    ]
    name = f"{split.get('challenge_phase_name', '')} / {split.get('dataset_split_name', '')}"
    return Board(int(split["id"]), name, order, int(split.get("leaderboard_decimal_precision") or 2), rows)


def _list_cells(labels: list[str], entry: Mapping[str, Any]) -> dict[str, object]:
    """Return the metrics of an entry, each before its standard error if the server has any."""
    cells: dict[str, object] = {}
    errors = entry.get("error") or [None] * len(labels)
    for label, value, error in zip(labels, entry.get("result") or [], errors, strict=False):
        cells[label] = value
        if isinstance(error, int | float):
            cells[f"{label}{ERROR}"] = error
    return cells
