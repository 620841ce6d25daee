"""Leaderboards of an EvalAI server, for pages elsewhere: as rows, and as a badge."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from markupsafe import escape

from . import routes
from .client import Client

#: Pixels of a badge: its height, a character, and the space beside each of its two texts.
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
class PublicBoard:
    """A leaderboard as its server shows it."""

    number: int
    name: str
    #: The metric that orders it, and how many decimals scores have.
    order: str
    decimals: int
    #: The best first: rank, team, metrics, and when it was submitted.
    rows: list[dict[str, object]]

    def draw_badge(self) -> str:
        """The first row as a picture of one line."""
        name = self.order
        value = self.rows[0].get(self.order) if self.rows else None
        number = f"{value:.{self.decimals}f}" if isinstance(value, float | int) else "#"
        score = f"{number} {self.rows[0]['team']}" if self.rows else "nobody yet"
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


def fetch_boards(client: Client, challenge: int) -> tuple[str, list[PublicBoard]]:
    """The title of a challenge, and the leaderboards that the client's account may see."""
    answer = client.call("GET", routes.CHALLENGE, {"challenge": challenge})
    title = answer.get("title", "") if isinstance(answer, dict) else ""
    splits = client.fetch_rows(routes.PHASE_SPLITS, {"challenge": challenge})
    return str(title), [_fetch_board(client, split) for split in splits]


def _fetch_board(client: Client, split: Mapping[str, Any]) -> PublicBoard:
    schema = split.get("leaderboard_schema") or {}
    entries = client.fetch_rows(routes.LEADERBOARD, {"split": int(split["id"])})
    schema = entries[0].get("leaderboard__schema", schema) if entries else schema
    labels, order = list(schema.get("labels") or []), str(schema.get("default_order_by") or "")
    scores = [entry.get("filtering_score") for entry in entries]
    rows = [
        {
            "rank": f"{rank}=" if scores.count(score) > 1 else rank,
            "team": str(entry.get("submission__participant_team__team_name", "")),
            "method": str(entry.get("submission__method_name") or ""),
            **dict(zip(labels, entry.get("result") or [], strict=False)),
            "submitted": str(entry.get("submission__submitted_at") or "")[:10],
        }
        for entry, score in zip(entries, scores, strict=True)
        for rank in [1 + scores.index(score)]
    ]
    name = f"{split.get('challenge_phase_name', '')} / {split.get('dataset_split_name', '')}"
    return PublicBoard(int(split["id"]), name, order, int(split.get("leaderboard_decimal_precision") or 2), rows)
