"""The pages of leaderboards and of their teams."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import islice
from types import MappingProxyType

from markupsafe import Markup
from starlette.responses import Response

from .actions.reading import find_open_reports, find_split_summaries
from .leaderboards import RankedBoard, board_of, history_of
from .models import ChallengePhase, ChallengePhaseSplit, Submission
from .page_endpoints import answer, challenge_page
from .report_answers import SplitSummary
from .services import UserRequest
from .store import BoardEntry
from .wire import JsonObject, Refusal

LISTED = 200
#: The maximum digits of a page number, and characters of a search.
PAGE_DIGITS = 9
_WORDS = 100
_DECIMALS = 20


def describe_place(board: RankedBoard, submission: int) -> str:
    """Return the place of a submission on a leaderboard, or why it has none."""
    for rank, row in zip(board.ranks, board.rows, strict=True):
        if row.submission == submission:
            return f"place {rank} of {len(board.rows)}"
    return "not the team's best" if any(row.submission == submission for row in board.history) else "not shown"


def format_score(value: object, decimals: int) -> str:
    """Return a score as a leaderboard shows it; `#` where there is none."""
    return f"{value:.{min(decimals, _DECIMALS)}f}" if isinstance(value, (int, float)) else "#"


#: The rows on a page of a leaderboard, and of a list whose rows name their costliest causes.
_BOARD_ROWS = 100
WITH_CAUSES = 20
_Boards = list[tuple[ChallengePhase, ChallengePhaseSplit]]


def visible_boards(request: UserRequest, challenge: int) -> _Boards:
    accounts = request.services.accounts
    return [
        (phase, split)
        for phase in accounts.visible_phases(request.user, challenge)
        for split in request.services.store.splits_of(phase.id)
        if accounts.may_see_board(request.user, phase, split)
    ]


def name_boards(boards: _Boards) -> list[JsonObject]:
    splits = Counter(phase.id for phase, _ in boards)
    return [
        {"id": split.id, "name": str(phase.config["name"]) + f" / {split.dataset_split.name}" * (splits[phase.id] > 1)}
        for phase, split in boards
    ]


@answer("GET", "/challenges/{challenge:int}/leaderboard")
@answer("GET", "/challenges/{challenge:int}/leaderboard/{split:int}")
def _show_leaderboard(request: UserRequest, challenge: int, split: int = 0) -> Response:
    """Return the leaderboard of a phase split; without a number the first one that the user may see."""
    services = request.services
    visible = visible_boards(request, challenge)
    boards = name_boards(visible)
    index = next((k for k, (_, phase_split) in enumerate(visible) if split in (0, phase_split.id)), None)
    if index is None:
        if split:
            raise Refusal(404, "There is no such leaderboard, or it is not public.")
        return challenge_page(request, challenge, "leaderboard.html", boards=boards, current=None)
    phase, phase_split = visible[index]
    board = board_of(services.store, phase, phase_split, request.query_params.get("order", ""))
    standings = services.comparisons.compare(board, phase_split.dataset_split.codename)
    places = {} if isinstance(standings, str) else standings.places
    team = services.accounts.team_of(request.user, challenge)
    team_query = request.query_params.get("team", "")[:_WORDS]
    own_row = next((k for k, row in enumerate(board.rows) if team is not None and row.team_id == team.id), None)
    listed = [
        k for k, row in enumerate(board.rows) if team_query.lower() in f"{row.team_name} {row.method_name}".lower()
    ]
    pages = max(1, math.ceil(len(listed) / _BOARD_ROWS))
    page = _page_number(request, pages)
    shown = listed[(page - 1) * _BOARD_ROWS : page * _BOARD_ROWS]
    reports = find_open_reports(request.services, request.user, phase, [board.rows[k].submission for k in shown])
    opened = [reports[board.rows[k].submission] for k in shown if board.rows[k].submission in reports]
    split_summaries = _read_split_summaries(request, phase_split, opened)
    rows = [
        {
            **board.rows[k]._asdict(),
            "rank": f"{board.ranks[k]}=" if board.ranks.count(board.ranks[k]) > 1 else board.ranks[k],
            "place": places.get(board.rows[k].submission),
            "cells": _board_cells(board.rows[k], board, places),
            "own": k == own_row,
            "has_report": board.rows[k].submission in reports,
            **_describe_split_summary(split_summaries.get(board.rows[k].submission)),
        }
        for k in shown
    ]
    return challenge_page(
        request,
        challenge,
        "leaderboard.html",
        boards=boards,
        current={**boards[index], "order": board.order, "descending": board.descending},
        columns=_list_columns(phase_split, board),
        rows=rows,
        teams=len(board.rows),
        words=team_query,
        page=page,
        pages=pages,
        own=None if own_row is None else {"rank": board.ranks[own_row], "page": own_row // _BOARD_ROWS + 1},
        standings=None if isinstance(standings, str) else standings,
        why_no_places=standings if isinstance(standings, str) else "",
        history=history_of(board),
    )


def _page_number(request: UserRequest, pages: int) -> int:
    text = request.query_params.get("page", "")
    return min(max(int(text), 1), pages) if text.isdecimal() and len(text) < PAGE_DIGITS else 1


def _read_split_summaries(
    request: UserRequest, split: ChallengePhaseSplit, rows: Iterable[Submission]
) -> dict[int, SplitSummary | None]:
    """Return the summaries of the first submissions on a split."""
    codename, services, user = split.dataset_split.codename, request.services, request.user
    return {
        row.id: (find_split_summaries(services, user, row) or {}).get(codename) for row in islice(rows, WITH_CAUSES)
    }


def _describe_split_summary(split_summary: SplitSummary | None) -> JsonObject:
    """Return the costliest cause of a submission and a picture of its mistakes, if they are known."""
    return {
        "cause": split_summary.cause if split_summary else "",
        "picture": split_summary.picture if split_summary else None,
    }


def _list_columns(split: ChallengePhaseSplit, board: RankedBoard) -> list[JsonObject]:
    descriptions = split.leaderboard.schema.get("metadata") or {}
    return [{"label": label, "about": (descriptions.get(label) or {}).get("description", "")} for label in board.labels]


def _board_cells(
    row: BoardEntry, board: RankedBoard, places: Mapping[int, tuple[int, int]] = MappingProxyType({})
) -> Markup:
    """Return the cells of a row's scores; a significantly best one is marked.

    Digits alone, joined here: half the time of a page with a thousand rows.
    """
    decimals, cells = board.decimals, ""
    for label in board.labels:
        best = " best" if label == board.order and places.get(row.submission) == (1, 1) else ""
        cells += f'<td class="number{best}">{format_score(row.result.get(label), decimals)}'
        cells += (
            f'<span class="spread">± {format_score(row.error_bar(label), decimals)}</span></td>'
            if row.error_bar(label)
            else "</td>"
        )
    return Markup(cells)  # noqa: S704


@answer("GET", "/challenges/{challenge:int}/teams/{team:int}")
def _show_team(request: UserRequest, challenge: int, team: int) -> Response:
    """Show a team's public submissions on the leaderboards that the user may see, the newest first."""
    tables, name = [], ""
    visible = visible_boards(request, challenge)
    for title, (phase, split) in zip(name_boards(visible), visible, strict=True):
        board = board_of(request.services.store, phase, split)
        entries = [entry for entry in board.history if entry.team_id == team]
        if not entries:
            continue
        name = entries[0].team_name
        rank = next(rank for rank, row in zip(board.ranks, board.rows, strict=True) if row.team_id == team)
        entries = entries[-LISTED:]
        reports = find_open_reports(request.services, request.user, phase, [entry.submission for entry in entries])
        rows = [
            {
                **entry._asdict(),
                "cells": _board_cells(entry, board),
                "has_report": entry.submission in reports,
                **_describe_split_summary(None),
            }
            for entry in reversed(entries)
        ]
        tables.append(
            {**title, "rank": rank, "of": len(board.rows), "columns": _list_columns(split, board), "rows": rows}
        )
    if not tables:
        raise Refusal(404, "There is no such team, or it has no public submissions.")
    return challenge_page(request, challenge, "team.html", name=name, tables=tables)
