"""The leaderboards of an archive as `board` writes those of a live challenge, and what they may show."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from contextlib import suppress

from segjudge.evaluation_script.files import HostError
from segjudge.evaluation_script.scoring.phase import DETAILS
from segjudge.platforms.evalai.bundle.build import SAMPLES_FOLDER
from segjudge.platforms.evalai.bundle.bundle_source import CONFIG, SCRIPT_FOLDER, BundleSource, find_bundle
from segjudge.report.boards import ERROR, Board, rank_scores
from segjudge.report.stored import read_result
from segjudge.scoring.report import make_stored_report
from segjudge.system.errors import UsageError
from segjudge.system.files import make_folder, open_output, temporary_folder

from .event import BUNDLE, Event, EventBoard, EventRow, EventSubmission

#: The number of a leaderboard's first submissions that are samples.
_SAMPLES = 3


def read_boards(event: Event, folder: str, *, as_host: bool) -> tuple[str, list[Board]]:
    """Return the title of a challenge, and the leaderboards that visitors saw, or all of them.

    Reports of their submissions are written into a folder, if the phase shows everything to everybody.
    """
    hidden = {phase: event.find_hidden(phase) for phase in dict.fromkeys(board.phase for board in event.boards)}
    boards, open_phases = [], _find_open_phases(event, hidden)
    for number, board in enumerate(sorted(event.boards, key=lambda each: (each.phase, each.split)), 1):
        is_hidden = board.split in hidden[board.phase]
        if as_host or not is_hidden:
            rows = [row for row in board.places() if as_host or _is_public(event, row)]
            name = f"{board.phase} / {board.split}"
            cells = _list_rows(event, board, rows)
            if board.phase in open_phases:
                for cell, row in zip(cells, rows, strict=True):
                    cell["report"] = _write_report(event, event.submissions.get(row.submission), folder)
            boards.append(Board(number, name, board.order, board.decimals, cells, is_hidden))
    return event.info.title, boards


def _find_open_phases(event: Event, hidden: Mapping[str, frozenset[str]]) -> Collection[str]:
    """Return the phases that show everything of all splits; none if other scripts scored the event."""
    with temporary_folder("segjudge-") as folder, suppress(HostError, UsageError):
        event.copy(f"{BUNDLE}/{CONFIG}", os.path.join(folder, CONFIG))
        event.copy_folder(f"{BUNDLE}/{SCRIPT_FOLDER}", os.path.join(folder, SCRIPT_FOLDER))
        phases = [phase for phase in find_bundle(folder).phases() if phase.detail == DETAILS[-1]]
        return [phase.codename for phase in phases if not phase.hidden | hidden.get(phase.codename, frozenset())]
    return []


def _write_report(event: Event, submission: EventSubmission | None, folder: str) -> str:
    """Write the page of a submission's stored result; return its path in the folder, "" without a result."""
    if submission is None or "result" not in submission.extra_files:
        return ""
    with temporary_folder("segjudge-") as temporary, suppress(UsageError):  # a result of other scripts
        result, path = os.path.join(temporary, "result"), os.path.join("reports", f"{submission.id}.html")
        event.copy(submission.extra_files["result"], result)
        text = make_stored_report(read_result(result), f"Submission {submission.id}")
        make_folder(os.path.join(folder, "reports"))
        with open_output(os.path.join(folder, path)) as file:
            file.write(text)
        return path
    return ""


def _is_public(event: Event, row: EventRow) -> bool:
    submission = event.submissions.get(row.submission)
    return row.is_baseline or submission is None or submission.is_shown


def _list_rows(event: Event, board: EventBoard, rows: list[EventRow]) -> list[dict[str, object]]:
    """Return the rows of a leaderboard in its order; equal numbers share a rank."""
    cells = list[dict[str, object]]()
    for row, rank in zip(rows, rank_scores([row.scores.get(board.order) for row in rows]), strict=True):
        submission, team = event.submissions.get(row.submission), event.teams.get(row.team or 0)
        numbers = dict[str, object]()
        for label in board.labels:
            numbers[label] = row.scores.get(label)
            if label in row.errors:
                numbers[f"{label}{ERROR}"] = row.errors[label]
        cells.append(
            {
                "rank": rank,
                "team": team.name if team else "",
                "method": submission.method.get("name", "") if submission else "",
                **numbers,
                "submitted": submission.submitted[:10] if submission else "",
            }
        )
    return cells


def copy_bundle(event: Event, folder: str) -> BundleSource:
    """Copy the bundle of an archive into a folder, with the first submissions of its leaderboards as samples."""
    event.copy_folder(BUNDLE, folder)
    for board in event.boards:
        for rank, row in enumerate(board.places()[:_SAMPLES], 1):
            submission = event.submissions.get(row.submission)
            if submission is not None and submission.file:
                name = f"{rank}-{submission.id}-{os.path.basename(submission.file)}"
                event.copy(submission.file, os.path.join(folder, SAMPLES_FOLDER, board.phase, name))
    return find_bundle(folder)
