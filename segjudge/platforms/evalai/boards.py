"""Leaderboards of an EvalAI server, for pages elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from segjudge.report.boards import ERROR, Board, rank_scores

from . import routes
from .bundle.secrecy import is_visible
from .client import ApiError, Client

#: The statuses of the server's answer for a non-public leaderboard.
_HIDDEN_STATUSES = (400, 401, 403)


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
    ranks = rank_scores([entry.get("filtering_score") for entry in entries])
    rows = [
        {
            "rank": rank,
            "team": str(entry.get("submission__participant_team__team_name", "")),
            "method": str(entry.get("submission__method_name") or ""),
            **_list_cells(labels, entry),
            "submitted": str(entry.get("submission__submitted_at") or "")[:10],
        }
        for entry, rank in zip(entries, ranks, strict=True)
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
