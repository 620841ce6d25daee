"""Leaderboards: the best row of each team, in the order that EvalAI gives them."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from typing import Any

from segjudge.bundle.field_values import TRUE
from segjudge.evalai.jobs import FINISHED

from .challenges import Challenges
from .store import Store
from .timestamps import written


@dataclass(frozen=True)
class Board:
    """A leaderboard of one phase and split."""

    labels: list[str]
    order: str
    descending: bool
    decimals: int
    #: Best first.
    rows: list[dict[str, Any]] = field(default_factory=list)


def board_of(store: Store, challenges: Challenges, phase: Any, split: int, order: str = "") -> Board:
    """The leaderboard of a phase split."""
    row = next(one for one in challenges.splits_of(phase["id"]) if one["id"] == split)
    team = challenges.row(phase["challenge_id"])["host_team"]
    hosts = store.rows(
        "SELECT DISTINCT members.team_id FROM members JOIN members AS host ON host.user_id = members.user_id "
        "WHERE host.team_id = ?",
        team,
    )
    config = json.loads(phase["config"])
    public, partial = (config.get(key) in TRUE for key in ("is_public", "is_partial_submission_evaluation_enabled"))
    return board(store, row, hosts={one["team_id"] for one in hosts}, public=public, partial=partial, order=order)


def board(store: Store, split: Any, *, hosts: set[int], public: bool, partial: bool, order: str = "") -> Board:
    """What a phase split shows: finished, public, unflagged; hosts' own only as baselines of a public phase."""
    schema = json.loads(split["schema"])
    order = order if order in schema["labels"] else schema["default_order_by"]
    told = (schema.get("metadata") or {}).get(order)
    # An entry of the metadata decides, even one that does not speak of the direction.
    descending = told.get("sort_ascending") is False if isinstance(told, dict) else bool(split["descending"])
    found = store.rows(
        "SELECT results.id AS row, results.result, results.error, submissions.*, teams.team_name FROM results "
        "JOIN submissions ON submissions.id = submission_id JOIN teams ON teams.id = team_id "
        "WHERE phase_split_id = ? AND disabled = 0 AND status IN (?, ?) AND is_public = 1 AND is_flagged = 0 "
        "ORDER BY results.id",
        split["id"],
        FINISHED,
        "partially_evaluated" if partial else FINISHED,
    )
    best: dict[int, tuple[tuple[float, float], dict[str, Any]]] = {}
    for row in found:
        if public and row["team_id"] in hosts and not row["is_baseline"]:
            continue
        shown = _row(row, schema)
        key = _key(shown, order, descending=descending)
        if row["team_id"] not in best or key < best[row["team_id"]][0]:
            best[row["team_id"]] = (key, shown)
    ranked = [shown for _, shown in sorted(best.values(), key=lambda pair: pair[0])]
    return Board(schema["labels"], order, descending, split["decimals"], ranked)


def _key(shown: dict[str, Any], order: str, *, descending: bool) -> tuple[float, float]:
    """Ties go to the smaller error bar; a metric that is not there counts as 0."""
    value = shown["values"].get(order, 0.0)
    score = float(value) if isinstance(value, (int, float)) else 0.0
    if not math.isfinite(score):
        score = 0.0
    return -score if descending else score, float(shown["errors"].get(order) or 0.0)


def _row(row: Any, schema: dict[str, Any]) -> dict[str, Any]:
    values = json.loads(row["result"])
    errors = json.loads(row["error"]) if row["error"] else {}
    bars = {label: errors.get(f"error_{label}") for label in schema["labels"]}
    return {
        "id": row["row"],
        "submission": row["id"],
        "team": row["team_name"],
        "team_id": row["team_id"],
        "method": row["method_name"],
        "is_baseline": bool(row["is_baseline"]),
        "submitted_at": row["submitted_at"],
        "values": values,
        "errors": {label: bar for label, bar in bars.items() if bar is not None},
    }


def as_api(shown: Board, split: int) -> list[dict[str, Any]]:
    """Rows with the keys that EvalAI's client reads."""
    return [
        {
            "id": row["id"],
            "submission__id": row["submission"],
            "submission__participant_team": row["team_id"],
            "submission__participant_team__team_name": row["team"],
            "submission__submitted_at": written(row["submitted_at"]),
            "submission__is_baseline": row["is_baseline"],
            "submission__method_name": row["method"],
            "challenge_phase_split": split,
            "leaderboard__schema": {"labels": shown.labels, "default_order_by": shown.order},
            "filtering_score": row["values"].get(shown.order, 0.0),
            "result": [row["values"].get(label, "#") for label in shown.labels],
            "error": [row["errors"].get(label) for label in shown.labels] if row["errors"] else None,
        }
        for row in shown.rows
    ]
