"""The leaderboards of an archive as the first rows of a ledger, for a board that continues an event."""

from __future__ import annotations

import datetime

from segjudge.ledger.page import render_pages
from segjudge.ledger.rows import ENTRIES, RESULTS, LedgerEntry, RunOutcome, Scores, read_rows, row_path, to_bytes
from segjudge.ledger.rules import Rules

from .event import Event, EventSubmission

#: What is added to the numbers of imported submissions, which a board's own submissions never reach.
_FIRST = 10**9


def make_history(event: Event, rules: Rules, now: datetime.datetime) -> tuple[dict[str, bytes], dict[str, bytes]]:
    """Return the public and the private files of a ledger, by their paths: an archive's submissions, and the page.

    The public ones have the submissions and the scores that visitors saw on leaderboards of the platform, and may see
    on the board. Other scores of these submissions are private. Other submissions are omitted.
    """
    public, private = dict[str, bytes](), dict[str, bytes]()
    hidden = {phase: event.find_hidden(phase) for phase in {board.phase for board in event.boards}}
    boards = [board for board in event.boards if board.split not in hidden[board.phase]]
    seen = {(row.submission, board.split) for board in boards for row in board.rows}
    for submission in event.submissions.values():
        phase = rules.phase(submission.phase)
        if phase is None or not submission.is_shown:
            continue
        scores = {
            board.split: {label: value for label, value in numbers.items() if label in board.labels}
            for board in phase.boards
            if (numbers := submission.scores.get(board.split))
        }
        shown = [split for split in phase.list_shown(now) if split in scores and (submission.id, split) in seen]
        if not shown:
            continue
        entry = _make_entry(event, submission)
        path = row_path(RESULTS, entry.number, 1)
        public |= {
            row_path(ENTRIES, entry.number): to_bytes(entry),
            path: _make_outcome(entry, {split: scores.pop(split) for split in shown}),
        }
        if scores:
            private[path] = _make_outcome(entry, scores)
    return {**public, **render_pages(read_rows(public), rules, now)}, private


def _make_entry(event: Event, submission: EventSubmission) -> LedgerEntry:
    """Return a submission of an archive; a baseline is not one of its team's, as on EvalAI."""
    team, platform = event.teams.get(submission.team or 0), event.info.platform
    return LedgerEntry(
        _FIRST + submission.id,
        f"{platform} baseline {submission.id}" if submission.is_baseline else f"{platform} team {submission.team}",
        team.name if team else "",
        submission.method.get("name", ""),
        submission.phase,
        address="",
        sha256=event.digests.get(submission.file or "", ""),
        at=submission.submitted,
        origin=f"{platform} {submission.id}",
    )


def _make_outcome(entry: LedgerEntry, scores: Scores) -> bytes:
    return to_bytes(RunOutcome(entry.at, scores, digest=entry.sha256))
