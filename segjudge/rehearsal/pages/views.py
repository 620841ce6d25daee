"""The pages, each a function."""

from __future__ import annotations

import json
import time
from typing import Any

from markupsafe import Markup
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from segjudge.evalai.jobs import FAILED
from segjudge.rehearsal import leaderboards
from segjudge.rehearsal.accounts import PARTICIPANT
from segjudge.rehearsal.challenges import PUBLIC
from segjudge.rehearsal.file_routes import for_participants
from segjudge.rehearsal.store import SHOWN
from segjudge.rehearsal.submissions import Refusal
from segjudge.rehearsal.timestamps import since

from .frame import Frame, PageRequest, shown

_LISTED = 200
_DECIMALS = 20


def routes(frame: Frame) -> list[Route]:
    """All of them."""
    return [
        frame.page("/", home),
        frame.page("/login", login),
        frame.page("/challenges/{challenge:int}", overview),
        frame.page("/challenges/{challenge:int}/evaluation", evaluation),
        frame.page("/challenges/{challenge:int}/phases", phases),
        frame.page("/challenges/{challenge:int}/submit", submit),
        frame.page("/challenges/{challenge:int}/submissions", submissions),
        frame.page("/challenges/{challenge:int}/leaderboard", leaderboard),
        frame.page("/challenges/{challenge:int}/leaderboard/{split:int}", leaderboard),
        frame.page("/challenges/{challenge:int}/host", host),
        frame.page("/submissions/{submission:int}", submission),
        frame.page("/web/challenges/challenge-page/{challenge:int}/{page:path}", as_on_evalai),
    ]


def home(look: PageRequest) -> Response:
    """All challenges; the only one at once."""
    rows = look.services.challenges.all()
    if len(rows) == 1:
        return RedirectResponse(f"/challenges/{rows[0]['id']}", 303)
    return shown(look, "home.html", challenges=[look.services.challenges.shown(row, look.base) for row in rows])


def login(look: PageRequest) -> Response:
    """The form; where to go afterwards stays on this server."""
    return shown(look, "login.html", next=inside(look.request.query_params.get("next", "/")), wrong=False)


def inside(path: str) -> str:
    """A path of ours, whatever was asked for."""
    return path if path.startswith("/") and not path.startswith(("//", "/\\")) else "/"


def framed(look: PageRequest, challenge: int, template: str, **values: Any) -> Response:
    """A page with the challenge's head and tabs."""
    row = _challenge(look, challenge)
    config = look.services.challenges.shown(row, look.base)
    return shown(
        look,
        template,
        challenge=config,
        host=look.services.challenges.is_host(look.user, challenge),
        team=look.services.challenges.team_of(look.user, challenge),
        **values,
    )


def _challenge(look: PageRequest, number: int) -> Any:
    row = look.services.challenges.row(number)
    if row is None:
        raise Refusal(404, "There is no such challenge.")
    return row


def overview(look: PageRequest, challenge: int) -> Response:
    """What it is about."""
    return framed(look, challenge, "overview.html", phases=_phases(look, challenge))


#: EvalAI's names of pages that have others here.
_NAMES = {"overview": "", "submission": "/submit", "my-submission": "/submissions", "manage": "/host"}


def as_on_evalai(look: PageRequest, challenge: int, page: str) -> Response:
    """The addresses that EvalAI's client prints."""
    _challenge(look, challenge)
    name = page.split("/", maxsplit=1)[0]
    known = ("evaluation", "phases", "leaderboard")
    return RedirectResponse(f"/challenges/{challenge}{_NAMES.get(name, f'/{name}' if name in known else '')}", 303)


def evaluation(look: PageRequest, challenge: int) -> Response:
    """How it is scored, and the rules."""
    return framed(look, challenge, "evaluation.html")


def phases(look: PageRequest, challenge: int) -> Response:
    """The phases with their dates and limits."""
    return framed(look, challenge, "phases.html", phases=_phases(look, challenge))


def _phases(look: PageRequest, challenge: int) -> list[dict[str, Any]]:
    rows = look.services.challenges.phase_rows(challenge, look.user)
    return [look.services.challenges.phase_shown(row, look.base, host=False) for row in rows]


def submit(look: PageRequest, challenge: int) -> Response:
    """The form, with what is left of each limit."""
    user = look.known()
    team = look.services.challenges.team_of(user, challenge)
    teams = look.services.accounts.teams(user, PARTICIPANT)
    found = _phases(look, challenge)
    for phase in found:
        phase["left"] = _left(look, phase, team["id"]) if team else None
    return framed(look, challenge, "submit.html", phases=found, teams=teams)


def _left(look: PageRequest, phase: dict[str, Any], team: int) -> int:
    """Submissions that may still be sent today."""
    now = time.time()
    starts = {"max_submissions_per_day": since("day", now), "max_submissions_per_month": since("month", now)}
    left = [
        int(phase[limit]) - look.services.submissions.counted(team, phase["id"], starts.get(limit, 0.0))
        for limit in (*starts, "max_submissions")
    ]
    return max(0, min(left))


def submissions(look: PageRequest, challenge: int) -> Response:
    """What the user's team has sent."""
    user = look.known()
    team = look.services.challenges.team_of(user, challenge)
    rows = []
    for phase in look.services.challenges.phase_rows(challenge, user) if team else []:
        rows += [_line(look, row, phase) for row in look.services.submissions.of_team(team["id"], phase["id"])]
    rows.sort(key=lambda row: -row["id"])
    return framed(look, challenge, "submissions.html", rows=rows[:_LISTED])


def _line(look: PageRequest, row: Any, phase: Any) -> dict[str, Any]:
    reason = ""
    if row["status"] == FAILED:
        lines = _stderr(look, row).strip().splitlines()
        reason = lines[-1] if lines else "nothing was written to stderr"
    took = row["completed_at"] - row["started_at"] if row["completed_at"] and row["started_at"] else None
    return {
        **{
            key: row[key]
            for key in ("id", "status", "submitted_at", "method_name", "is_public", "is_baseline", "is_flagged")
        },
        "phase": json.loads(phase["config"])["name"],
        "team": look.services.store.value("SELECT team_name FROM teams WHERE id = ?", row["team_id"]),
        "file": look.services.store.value("SELECT name FROM files WHERE id = ?", row["input_file"]) or "",
        "took": took,
        "reason": reason,
    }


def _stderr(look: PageRequest, row: Any) -> str:
    """As much of it as this user may read."""
    file = row["stderr_file"]
    if file and not look.services.challenges.is_host(look.user, look.services.submissions.challenge_of(row)["id"]):
        less = for_participants(look.services, row["id"], file, _kind(look, file))
        if less is not None:
            return less
    return look.services.store.text(file)


_FILES = {
    "stdout_file": "stdout",
    "stderr_file": "stderr",
    "environment_log_file": "environment log",
    "submission_result_file": "result",
    "metadata_file": "metadata, for hosts",
}
_FOR_HOSTS = ("environment_log_file", "metadata_file")


def submission(look: PageRequest, submission: int) -> Response:
    """One submission: status, scores, what was written."""
    user, row = look.known(), look.services.submissions.row(submission)
    if not look.services.submissions.may_see(user, row):
        raise Refusal(403, "This submission is another team's.")
    phase = look.services.challenges.phase_row(row["phase_id"])
    challenge = phase["challenge_id"]
    host = look.services.challenges.is_host(user, challenge)
    files = []
    for column, name in _FILES.items():
        if row[column] and (host or column not in _FOR_HOSTS):
            less = None if host else for_participants(look.services, row["id"], row[column], _kind(look, row[column]))
            text = look.services.store.text(row[column]) if less is None else less[:SHOWN]
            url = look.services.links.file(row[column], look.base, 0 if host else row["id"])
            files.append({"name": name, "text": text, "url": url})
    return framed(
        look,
        challenge,
        "submission.html",
        row=_line(look, row, phase),
        started_at=row["started_at"],
        completed_at=row["completed_at"],
        input_url=look.services.links.file(row["input_file"], look.base),
        files=files,
        scores=_scores(look, row),
    )


def _kind(look: PageRequest, file: str) -> str:
    return str(look.services.store.value("SELECT kind FROM files WHERE id = ?", file))


def _scores(look: PageRequest, row: Any) -> list[dict[str, Any]]:
    host = look.services.challenges.is_host(look.user, look.services.submissions.challenge_of(row)["id"])
    splits = {one["id"]: one for one in look.services.challenges.splits_of(row["phase_id"])}
    return [
        {"split": splits[number]["split_name"], "values": _cells(values, splits[number])}
        for number, values in look.services.submissions.results(row["id"]).items()
        if host or splits[number]["visibility"] == PUBLIC  # EvalAI shows 2, "owner and host", to hosts alone
    ]


def _cells(values: dict[str, Any], split: Any) -> list[tuple[str, str]]:
    labels = json.loads(split["schema"])["labels"]
    return [(label, number(values.get(label), split["decimals"])) for label in labels]


def number(value: Any, decimals: int) -> str:
    """As a leaderboard shows it; `#` where there is none."""
    return f"{value:.{min(decimals, _DECIMALS)}f}" if isinstance(value, (int, float)) else "#"


def leaderboard(look: PageRequest, challenge: int, split: int = 0) -> Response:
    """A board for each phase and split; the first one that may be seen without a number."""
    boards = [
        (one, row)
        for row in look.services.challenges.phase_rows(challenge, look.user)
        for one in look.services.challenges.splits_of(row["id"])
        if look.services.challenges.may_see_board(look.user, row, one)
    ]
    listed = [
        {"id": one["id"], "name": f"{json.loads(row['config'])['name']} / {one['split_name']}"} for one, row in boards
    ]
    chosen = next(((one, row) for one, row in boards if split in (0, one["id"])), None)
    if chosen is None:
        if split:
            raise Refusal(404, "There is no such leaderboard, or it is not public.")
        return framed(look, challenge, "leaderboard.html", boards=listed, current=None, columns=[], rows=[])
    one, phase = chosen
    board = leaderboards.board_of(
        look.services.store, look.services.challenges, phase, one["id"], look.request.query_params.get("order", "")
    )
    described = json.loads(one["schema"]).get("metadata") or {}
    columns = [{"label": label, "about": (described.get(label) or {}).get("description", "")} for label in board.labels]
    current = {**next(entry for entry in listed if entry["id"] == one["id"]), "order": board.order}
    current["descending"] = board.descending
    team = look.services.challenges.team_of(look.user, challenge)
    rows = [_ranked(place, row, board, team) for place, row in enumerate(board.rows, 1)]
    return framed(look, challenge, "leaderboard.html", boards=listed, current=current, columns=columns, rows=rows)


def _ranked(place: int, row: dict[str, Any], board: leaderboards.Board, team: Any) -> dict[str, Any]:
    values, errors, decimals = row["values"], row["errors"], board.decimals
    cells = "".join(
        f'<td class="number">{number(values.get(label), decimals)}'
        + (f'<span class="bar">± {number(errors[label], decimals)}</span></td>' if errors.get(label) else "</td>")
        for label in board.labels
    )
    return {
        "place": place,
        "team": row["team"],
        "method": row["method"],
        "baseline": row["is_baseline"],
        "submitted_at": row["submitted_at"],
        # Digits alone, joined here: half the time of a page with a thousand rows.
        "cells": Markup(cells),  # noqa: S704
        "mine": bool(team and team["id"] == row["team_id"]),
    }


def host(look: PageRequest, challenge: int) -> Response:
    """Queue, workers, submissions and what went wrong."""
    look.known()
    row = _challenge(look, challenge)
    if not look.services.challenges.is_host(look.user, challenge):
        raise Refusal(403, "This page is for the hosts of the challenge.")
    status = look.request.query_params.get("status", "")
    found = look.services.submissions.of_challenge(challenge, status)
    stages = {one["id"]: one for one in look.services.challenges.phase_rows(challenge, look.user)}
    counted: dict[str, int] = {}
    for one in look.services.submissions.of_challenge(challenge) if status else found:
        counted[one["status"]] = counted.get(one["status"], 0) + 1
    return framed(
        look,
        challenge,
        "host.html",
        queue=row["queue"],
        messages=look.services.queue.waiting(row["queue"]),
        workers=sorted(look.services.workers.items()),
        rows=[_line(look, one, stages[one["phase_id"]]) for one in found[:_LISTED]],
        counted=counted,
        status=status,
        more=max(0, len(found) - _LISTED),
        log=look.services.challenges.log_lines(challenge)[-40:],
    )
