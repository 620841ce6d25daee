"""The pages, each a function."""

from functools import partial

from markupsafe import Markup
from starlette.responses import HTMLResponse, RedirectResponse, Response

from segjudge.platforms.evalai.rows import FAILED
from segjudge.server.accounts import PARTICIPANT
from segjudge.server.actions.reading import file_for_participants, report_page, why_no_report
from segjudge.server.leaderboards import RankedBoard, board_of
from segjudge.server.models import Challenge, ChallengePhase, ChallengePhaseSplit, Submission, Team
from segjudge.server.store import BoardEntry
from segjudge.server.stored_files import EXCERPT
from segjudge.server.wire import JsonObject, Refusal

from .board_history import history_of
from .frame import HEADERS, PageRequest, render_page, show_at


@show_at("/")
def home(request: PageRequest) -> Response:
    """Return all challenges; the only one at once."""
    rows = request.services.store.find(Challenge)
    if len(rows) == 1:
        return RedirectResponse(f"/challenges/{rows[0].id}", 303)
    shown = [request.services.json.challenge(row, request.base) for row in rows]
    return render_page(request, "home.html", challenges=shown)


@show_at("/login")
def login(request: PageRequest) -> Response:
    """Return the login's form; the address to go to afterwards stays on this server."""
    return render_page(request, "login.html", next=local_path(request.query("next") or "/"), wrong=False)


def local_path(path: str) -> str:
    """Return a path on this server, whatever was asked for."""
    return path if path.startswith("/") and not path.startswith(("//", "/\\")) else "/"


def challenge_page(request: PageRequest, challenge: int, template: str, **values: object) -> Response:
    """Return a page with the challenge's head and tabs."""
    permissions = request.services.permissions
    return render_page(
        request,
        template,
        challenge=request.services.json.challenge(find_challenge(request, challenge), request.base),
        host=permissions.is_host(request.user, challenge),
        team=permissions.team_of(request.user, challenge),
        **values,
    )


def find_challenge(request: PageRequest, number: int) -> Challenge:
    """Return a challenge; refuses where there is none."""
    return request.services.store.require(Challenge, number, Refusal(404, "There is no such challenge."))


#: EvalAI's names of pages that have others here.
_NAMES = {"overview": "", "submission": "/submit", "my-submission": "/submissions", "manage": "/host"}


@show_at("/web/challenges/challenge-page/{challenge:int}/{page:path}")
def redirect_from_evalai(request: PageRequest, challenge: int, page: str) -> Response:
    """Redirect from the addresses that EvalAI's client prints."""
    find_challenge(request, challenge)
    name = page.split("/", maxsplit=1)[0]
    same = f"/{name}" if name in ("evaluation", "phases", "leaderboard") else ""
    return RedirectResponse(f"/challenges/{challenge}{_NAMES.get(name, same)}", 303)


def phases_page(request: PageRequest, challenge: int, template: str) -> Response:
    """Return a page with the challenge's phases."""
    rows = request.services.permissions.visible_phases(request.user, challenge)
    shown = [request.services.json.phase(row, request.base, host=False) for row in rows]
    return challenge_page(request, challenge, template, phases=shown)


show_at("/challenges/{challenge:int}")(partial(phases_page, template="overview.html"))
show_at("/challenges/{challenge:int}/phases")(partial(phases_page, template="phases.html"))
show_at("/challenges/{challenge:int}/evaluation")(partial(challenge_page, template="evaluation.html"))


@show_at("/challenges/{challenge:int}/submit")
def submit(request: PageRequest, challenge: int) -> Response:
    """Return the form, with what is left of each limit."""
    services, user = request.services, request.require_user()
    team = services.permissions.team_of(user, challenge)
    shown = [
        {
            **services.json.phase(phase, request.base, host=False),
            "left": services.submitting.remaining(team.id, phase) if team else None,
        }
        for phase in services.permissions.visible_phases(user, challenge)
    ]
    teams = services.accounts.teams(user, PARTICIPANT)
    return challenge_page(request, challenge, "submit.html", phases=shown, teams=teams)


_LISTED = 200
_DECIMALS = 20
_LOG_LINES = 40
#: A process that read untrusted files wrote a report, so it is kept apart from this server's other pages, as if it came
#: from elsewhere.
_REPORT_POLICY = (
    "sandbox allow-scripts allow-downloads allow-forms; default-src 'none'; img-src data: blob:; "
    "style-src 'unsafe-inline'; script-src 'unsafe-inline'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)


@show_at("/challenges/{challenge:int}/submissions")
def submissions(request: PageRequest, challenge: int) -> Response:
    """Return what the user's team has submitted."""
    services, user = request.services, request.require_user()
    team = services.permissions.team_of(user, challenge)
    phases = services.permissions.visible_phases(user, challenge) if team else []
    rows = [row for phase in phases for row in services.submissions.of_team(team.id if team else 0, phase.id)]
    rows.sort(key=lambda row: -row.id)
    return challenge_page(request, challenge, "submissions.html", rows=_summaries(request, rows[:_LISTED]))


def _summaries(request: PageRequest, submissions: list[Submission]) -> list[JsonObject]:
    """Return the rows of a list of submissions; all names are read by one query."""
    services = request.services
    files = services.files.names(submission.input_file for submission in submissions)
    teams = services.store.find(Team, Team.id.in_({submission.team_id for submission in submissions}))
    team_names = {team.id: team.team_name for team in teams}
    columns = ("id", "status", "submitted_at", "method_name", "is_public", "is_baseline", "is_flagged")
    return [
        {
            **{key: getattr(submission, key) for key in columns},
            "phase": services.submissions.phase_of(submission).config["name"],
            "took": submission.execution_time,
            "reason": _reason(request, submission) if submission.status == FAILED else "",
            "team": team_names[submission.team_id],
            "file": files.get(submission.input_file, ""),
            "has_report": not why_no_report(services, submission)
            and bool(
                submission.submission_result_file or services.permissions.hosts_submission(request.user, submission)
            ),
        }
        for submission in submissions
    ]


def _reason(request: PageRequest, submission: Submission) -> str:
    lines = _text(request, submission, submission.stderr_file).strip().splitlines()
    return lines[-1] if lines else "nothing was written to stderr"


def _text(request: PageRequest, submission: Submission, file: str | None) -> str:
    """Return the beginning of a file about a submission, as far as this user may read it."""
    if file and not request.services.permissions.hosts_submission(request.user, submission):
        redacted = file_for_participants(request.services, submission.id, file)
        if redacted is not None:
            return redacted[:EXCERPT]
    return request.services.files.text(file)


#: Columns of files, their names, and whether they are for hosts alone.
_FILES = {
    "stdout_file": ("stdout", False),
    "stderr_file": ("stderr", False),
    "environment_log_file": ("environment log", True),
    "submission_result_file": ("result", False),
    "metadata_file": ("metadata, for hosts", True),
}


@show_at("/submissions/{submission:int}")
def submission(request: PageRequest, submission: int) -> Response:
    """Return a submission: its status, its scores, what was written about it."""
    services, user = request.services, request.require_user()
    row = services.submissions.get(submission)
    services.permissions.check_may_see_submission(user, row)
    phase = services.submissions.phase_of(row)
    host = services.permissions.is_host(user, phase.challenge_id)
    files = []
    for column, (name, for_hosts) in _FILES.items():
        file = getattr(row, column)
        if file and (host or not for_hosts):
            url = services.files.url(file, request.base, 0 if host else row.id)
            files.append({"name": name, "text": _text(request, row, file), "url": url})
    return challenge_page(
        request,
        phase.challenge_id,
        "submission.html",
        row=_summaries(request, [row])[0],
        started_at=row.started_at,
        completed_at=row.completed_at,
        input_url=services.files.url(row.input_file, request.base),
        files=files,
        scores=_scores(request, row, phase),
    )


def _scores(request: PageRequest, submission: Submission, phase: ChallengePhase) -> list[JsonObject]:
    splits = {split.id: split for split in request.services.permissions.visible_splits(request.user, phase)}
    return [
        {"split": splits[split].dataset_split.name, "values": _cells(values, splits[split])}
        for split, values in request.services.submissions.scores(submission.id).items()
        if split in splits
    ]


def _cells(values: JsonObject, split: ChallengePhaseSplit) -> list[tuple[str, str]]:
    return [(label, _number(values.get(label), split.decimals)) for label in split.labels]


def _number(value: object, decimals: int) -> str:
    """Return a score as a leaderboard shows it; `#` where there is none."""
    return f"{value:.{min(decimals, _DECIMALS)}f}" if isinstance(value, (int, float)) else "#"


@show_at("/submissions/{submission:int}/report")
def report(request: PageRequest, submission: int) -> Response:
    """Return the report of a submission, or until it is made a page that looks again."""
    text = report_page(request.services, request.require_user(), submission)
    if text is not None:
        return HTMLResponse(text, headers={**HEADERS, "Content-Security-Policy": _REPORT_POLICY})
    words = "It is shown here as soon as it is there."
    waiting = render_page(request, "message.html", title="The report is being made", text=words)
    waiting.headers["Refresh"] = "1"
    return waiting


@show_at("/challenges/{challenge:int}/leaderboard")
@show_at("/challenges/{challenge:int}/leaderboard/{split:int}")
def leaderboard(request: PageRequest, challenge: int, split: int = 0) -> Response:
    """Return the leaderboard of a phase split; without a number the first one that the user may see."""
    services = request.services
    visible = [
        (phase, phase_split)
        for phase in services.permissions.visible_phases(request.user, challenge)
        for phase_split in services.store.splits_of(phase.id)
        if services.permissions.may_see_board(request.user, phase, phase_split)
    ]
    boards = [
        {"id": phase_split.id, "name": f"{phase.config['name']} / {phase_split.dataset_split.name}"}
        for phase, phase_split in visible
    ]
    index = next((k for k, (_, phase_split) in enumerate(visible) if split in (0, phase_split.id)), None)
    if index is None:
        if split:
            raise Refusal(404, "There is no such leaderboard, or it is not public.")
        return challenge_page(request, challenge, "leaderboard.html", boards=boards, current=None, columns=[], rows=[])
    phase, phase_split = visible[index]
    board = board_of(services.store, phase, phase_split, request.query("order"))
    descriptions = phase_split.leaderboard.schema.get("metadata") or {}
    columns = [
        {"label": label, "about": (descriptions.get(label) or {}).get("description", "")} for label in board.labels
    ]
    current = {**boards[index], "order": board.order, "descending": board.descending}
    team = services.permissions.team_of(request.user, challenge)
    standings = services.comparisons.compare(board, phase_split.dataset_split.codename)
    rows = [_board_row(rank, row, board, team) for rank, row in enumerate(board.rows, 1)]
    return challenge_page(
        request,
        challenge,
        "leaderboard.html",
        boards=boards,
        current=current,
        columns=columns,
        rows=rows,
        standings=standings,
        history=history_of(board),
    )


def _board_row(rank: int, row: BoardEntry, board: RankedBoard, team: Team | None) -> JsonObject:
    decimals = board.decimals
    cells = "".join(
        f'<td class="number">{_number(row.result.get(label), decimals)}'
        + (f'<span class="spread">± {_number(row.bar(label), decimals)}</span></td>' if row.bar(label) else "</td>")
        for label in board.labels
    )
    return {
        **row._asdict(),
        "rank": rank,
        # Digits alone, joined here: half the time of a page with a thousand rows.
        "cells": Markup(cells),  # noqa: S704
        "own": team is not None and team.id == row.team_id,
    }


@show_at("/challenges/{challenge:int}/host")
def host(request: PageRequest, challenge: int) -> Response:
    """Return the queue, the workers, the submissions and what went wrong, to a host."""
    services, user = request.services, request.require_user()
    row = find_challenge(request, challenge)
    services.permissions.check_host(user, challenge, Refusal(403, "This page is for the hosts of the challenge."))
    status = request.query("status")
    counted = services.submissions.count_statuses(challenge)
    submissions_shown = services.submissions.of_challenge(challenge, status, limit=_LISTED)
    return challenge_page(
        request,
        challenge,
        "host.html",
        queue=row.queue,
        messages=services.queue.messages(row.queue),
        workers=sorted(services.workers.items()),
        turns=[turn for group in services.background for turn in group.loops],
        rows=_summaries(request, submissions_shown),
        counted=counted,
        status=status,
        more=(counted.get(status, 0) if status else sum(counted.values())) - len(submissions_shown),
        log=services.store.log_lines(challenge)[-_LOG_LINES:],
    )
