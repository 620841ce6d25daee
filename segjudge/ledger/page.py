"""The page of a ledger: its leaderboards, by the renderer of `segjudge board`, and what became of submissions."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from segjudge.evaluation_script.files.problems import quantity
from segjudge.report.boards import Board, make_board_page, rank_scores, write_csv
from segjudge.report.page import Section, make_list, render_page
from segjudge.system.files import file_name

from .rows import LedgerEntry, Rows
from .rules import BoardRules, PhaseRules, Rules

#: The folder of the page's files.
FOLDER = "page"
_REMOVED = "The organisers removed these submissions from the leaderboards."


def render_pages(rows: Rows, rules: Rules, now: datetime.datetime) -> dict[str, bytes]:
    """Return the files of the page by their paths."""
    return render_boards(rules.title, rank_boards(rows, rules, now).values(), rows)


def render_boards(title: str, ranked: Iterable[Board], rows: Rows) -> dict[str, bytes]:
    """Return the files of the page by their paths, from the ranked leaderboards."""
    boards = list(ranked)
    files = {f"{FOLDER}/index.html": render_page(make_board_page(title, boards, _list_further(rows)))}
    for board in boards:
        stem = f"{FOLDER}/{board.stem}"
        files |= {f"{stem}.csv": write_csv(board), f"{stem}.svg": board.draw_badge()}
    return {path: text.encode("utf-8", "backslashreplace") for path, text in files.items()}


def rank_boards(rows: Rows, rules: Rules, now: datetime.datetime) -> dict[tuple[str, str], Board]:
    """Return the public leaderboards by phase and split."""
    return {
        (phase.codename, board.split): rank_board(rows, phase, board, now)
        for phase in rules.phases
        for board in phase.boards
        if board.public
    }


def rank_board(rows: Rows, phase: PhaseRules, board: BoardRules, now: datetime.datetime) -> Board:
    """Return a leaderboard with the best public result of each account; empty while its phase is blind."""
    name = f"{phase.codename} / {board.name}"
    stem = file_name(f"{phase.codename}-{board.split}")
    if board.split not in phase.list_shown(now):
        about = f"The results of this phase appear on {phase.reveal}." if board.public else ""
        return Board(stem, name, board.order, board.decimals, [], about=about)
    best: dict[str, tuple[float, LedgerEntry, dict[str, float]]] = {}
    for number, entry in sorted(rows.entries.items()):
        scores = rows.scores_of(number).get(board.split, {})
        if entry.phase != phase.codename or rows.is_removed(number) or board.order not in scores:
            continue
        key = -scores[board.order] if board.descending else scores[board.order]
        if entry.account not in best or key < best[entry.account][0]:
            best[entry.account] = (key, entry, scores)
    ranked = sorted(best.values(), key=lambda row: (row[0], row[1].at, row[1].number))
    ranks = rank_scores([key for key, _, _ in ranked])
    cells: list[dict[str, object]] = [
        {
            "rank": rank,
            "team": entry.team,
            "method": entry.method,
            **{label: scores.get(label) for label in board.labels},
            "submitted": entry.at[:10],
            "submission": f"{entry.number} (imported)" if entry.origin else entry.number,
        }
        for rank, (_, entry, scores) in zip(ranks, ranked, strict=True)
    ]
    return Board(stem, name, board.order, board.decimals, cells)


class SubmissionState(NamedTuple):
    """The outcome of a submission, as everybody may read it."""

    about: str
    #: A reason, which may hold names of the participant's files.
    reason: str = ""
    #: Its place and scores on each leaderboard, or when they appear.
    lines: Sequence[str] = ()


def describe_state(
    rows: Rows, rules: Rules, boards: Mapping[tuple[str, str], Board], number: int, now: datetime.datetime
) -> SubmissionState:
    """Return what became of a submission that waits for nothing, with its places on the ranked leaderboards."""
    if number in rows.refusals:
        return SubmissionState("Not accepted", rows.refusals[number].reason)
    if number in rows.disqualifications:
        return SubmissionState("Removed by the organisers", rows.disqualifications[number].reason)
    if number in rows.withdrawals:
        return SubmissionState("Withdrawn")
    phase, last = rules.phase(rows.entries[number].phase), rows.last_outcome(number)
    if last is None or phase is None:
        return SubmissionState("The leaderboards do not show this submission")
    if incident := last[1].incident:
        fault = "Scoring failed; your submission is not the cause"
        return SubmissionState(f"{fault}. Tell the organisers the incident number {incident}")
    if last[1].refused:
        return SubmissionState("Rejected", last[1].refused)
    if phase.is_blind(now):
        return SubmissionState("Scored", lines=[f"The results of this phase appear on {phase.reveal}."])
    lines, scores = [], rows.scores_of(number)
    for board in phase.boards:
        values = scores.get(board.split)
        if values and board.public:
            numbers = ", ".join(
                f"{label} {values[label]:.{board.decimals}f}" for label in board.labels if label in values
            )
            lines.append(
                f"{board.name}: {_describe_place(rows, boards[phase.codename, board.split], number)}; {numbers}"
            )
    return SubmissionState("Scored", lines=lines)


def _describe_place(rows: Rows, board: Board, number: int) -> str:
    """Return the place of a submission on a leaderboard; of an account's other submissions, that of its best."""
    account = rows.entries[number].account
    for row in board.rows:
        shown = row["submission"]
        if isinstance(shown, int) and rows.entries[shown].account == account:
            rank = f"place {row['rank']} of {len(board.rows)}"
            return rank if shown == number else f"not your best; submission {shown} has {rank}"
    return "not shown"


def _list_further(rows: Rows) -> list[Section]:
    """Return the sections below the leaderboards: removed submissions, and how many are waiting."""
    removed: list[dict[str, object]] = [
        {
            "submission": number,
            "team": rows.entries[number].team,
            "method": rows.entries[number].method,
            "phase": rows.entries[number].phase,
            "reason": remark.reason,
        }
        for number, remark in sorted(rows.disqualifications.items())
        if number in rows.entries
    ]
    sections = [make_list("Disqualified", removed, _REMOVED)] if removed else []
    waiting = rows.list_waiting()
    again = sum(rows.last_outcome(number) is not None for number in waiting)
    if waiting:
        about = f"{quantity(len(waiting), 'submission')} not scored yet."
        about += f" {quantity(again, 'result')} above will be replaced: the organisers score again." if again else ""
        sections.append(make_list("Waiting", [], about))
    if imported := sum(bool(entry.origin) for entry in rows.entries.values()):
        about = f"{quantity(imported, 'submission')} of an earlier leaderboard, with the scores that it published."
        sections.append(make_list("Imported", [], about))
    versions = sorted({outcome.version for outcome in rows.outcomes.values() if outcome.version})
    if versions:
        sections.append(make_list("Scored by", [], f"Segjudge {', '.join(versions)}."))
    return sections
