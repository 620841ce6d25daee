"""Leaderboards: the best row of each team, in the order that EvalAI gives them."""

import math
from dataclasses import dataclass

from segjudge.evalai.jobs import FINISHED
from segjudge.evalai.result_shapes import is_descending

from .models import Challenge, ChallengePhase, ChallengePhaseSplit, Membership
from .store import BoardEntry, Store


@dataclass(frozen=True)
class BoardRow:
    """A row of a leaderboard."""

    entry: BoardEntry
    #: Label → half the width of the error bar.
    errors: dict[str, object]


@dataclass(frozen=True)
class RankedBoard:
    """A leaderboard of one phase and split."""

    labels: list[str]
    order: str
    descending: bool
    decimals: int
    #: The best first.
    rows: list[BoardRow]
    #: Every row of the same teams, by when it was submitted.
    history: list[BoardEntry]


def board_of(store: Store, phase: ChallengePhase, split: ChallengePhaseSplit, order: str = "") -> RankedBoard:
    """Return the rows that are finished, public and unflagged; hosts' own only as baselines of a public phase."""
    schema = split.leaderboard.schema
    order = order if order in split.labels else schema["default_order_by"]
    descending = is_descending(schema, order, split.descending)
    hosts = _teams_of_hosts(store, phase.challenge_id) if phase.flag("is_public") else set()
    partial = phase.flag("is_partial_submission_evaluation_enabled")
    statuses = (FINISHED, "partially_evaluated") if partial else (FINISHED,)
    best: dict[int, tuple[tuple[float, float], BoardRow]] = {}
    history: list[BoardEntry] = []
    for entry in store.board_entries(split.id, statuses):
        if entry.team_id in hosts and not entry.is_baseline:
            continue
        history.append(entry)
        bars = {label: (entry.error or {}).get(f"error_{label}") for label in split.labels}
        row = BoardRow(entry, {label: bar for label, bar in bars.items() if bar is not None})
        key = _sort_key(row, order, descending=descending)
        if entry.team_id not in best or key < best[entry.team_id][0]:
            best[entry.team_id] = (key, row)
    ranked = [row for _, row in sorted(best.values(), key=lambda pair: pair[0])]
    return RankedBoard(
        split.labels, order, descending, split.decimals, ranked, sorted(history, key=lambda entry: entry.submitted_at)
    )


def _teams_of_hosts(store: Store, challenge: int) -> set[int]:
    """Return every team that a host of a challenge belongs to."""
    host_team = store.one(Challenge, challenge).host_team
    hosts = [membership.user_id for membership in store.find(Membership, Membership.team_id == host_team)]
    return {membership.team_id for membership in store.find(Membership, Membership.user_id.in_(hosts))}


def _sort_key(row: BoardRow, order: str, *, descending: bool) -> tuple[float, float]:
    """Ties go to the smaller error bar; a metric that is not there counts as 0."""
    value = row.entry.result.get(order, 0.0)
    score = float(value) if isinstance(value, (int, float)) else 0.0
    if not math.isfinite(score):
        score = 0.0
    bar = row.errors.get(order)
    return -score if descending else score, float(bar) if isinstance(bar, (int, float)) else 0.0
