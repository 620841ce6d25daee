"""The web pages: rendered on the server, readable without scripts, renewed by a small one; and their forms' actions.

Each function answers one method of a route: it takes the request and the values of the address.
"""

import hashlib
import math
import os
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache, partial
from itertools import islice
from types import MappingProxyType
from urllib.parse import SplitResult, quote, urlsplit

import nh3
from itsdangerous import Signer
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from segjudge.platforms.evalai.bundle.fields import TRUE
from segjudge.platforms.evalai.bundle.opened_bundle import UPLOAD_BYTES
from segjudge.platforms.evalai.rows import FAILED, RUNNING
from segjudge.report.page import PAGES as REPORT

from .accounts import PARTICIPANT
from .actions import hosting, submitting
from .actions.reading import (
    file_for_participants,
    find_comparison_page,
    find_glances,
    find_report_page,
    is_on_boards,
    opens_all_reports,
    why_no_report,
)
from .actions.submitting import PhaseTarget
from .leaderboards import RankedBoard, board_of, history_of
from .models import Challenge, ChallengePhase, ChallengePhaseSplit, Submission, Team, User
from .services import BodyLimits, Endpoint, Handler, UserRequest, require_user, services_of
from .store import BoardEntry
from .stored_files import EXCERPT
from .submissions import OPEN, SUBMITTED
from .wire import JsonObject, Refusal, format_moment

_HERE = os.path.dirname(__file__)
_STATIC = os.path.join(_HERE, "static")
#: Policies of every page.
_HEADERS = {
    "Content-Security-Policy": "default-src 'self'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; "
    "form-action 'self'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
}


@lru_cache(maxsize=256)
def _safe_html(text: str | None) -> Markup:
    """Return a host's HTML without anything that could run."""
    return Markup(nh3.clean(text or ""))  # noqa: S704 - just cleaned


def _moment(seconds: float | None) -> str:
    return (format_moment(seconds) or "")[:19].replace("T", " ")


_TEMPLATES = Environment(
    loader=FileSystemLoader(os.path.join(_HERE, "templates")),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_TEMPLATES.filters.update(moment=_moment, safe_html=_safe_html)
_TEMPLATES.globals["OPEN"] = OPEN


def render(request: Request, template: str, code: int = 200, /, **values: object) -> Response:
    """Return a page for the request's user, or for an anonymous visitor if the user was not looked up."""
    user: User | None = request.scope.get("user")
    token = _form_signer(request).get_signature(_session_of(request)).decode() if user else ""
    text = _TEMPLATES.get_template(template).render(path=request.url.path, user=user, form_token=token, **values)
    return HTMLResponse(text, code, _HEADERS)


def _cookie_of(request: Request) -> str:
    """Return the name of the session's cookie: browsers send a cookie to every port of this machine."""
    return "segjudge_session_" + re.sub(r"[^0-9]", "", request.headers.get("host", "").rpartition(":")[2])


def _session_of(request: Request) -> str:
    return request.cookies.get(_cookie_of(request), "")


def find_user(request: Request) -> User | None:
    session = _session_of(request)
    return services_of(request).accounts.user_of_token(session) if session else None


def ask_for_login(request: Request) -> Response:
    """Redirect to the login, and from there to the requested page or the form's page."""
    page = str(request.url) if request.method in ("GET", "HEAD") else request.headers.get("referer", "")
    path = _local_path(_parse_address(page)._replace(scheme="", netloc="", fragment="").geturl())
    return RedirectResponse(f"/login?next={quote(path)}", 303)


def _parse_address(text: str) -> SplitResult:
    try:
        return urlsplit(text)
    except ValueError:
        return urlsplit("")


def _form_signer(request: Request) -> Signer:
    """Return the function that derives a session's secret form token."""
    return Signer(services_of(request).store.secret, salt="form", digest_method=hashlib.sha256)


class _PageEndpoint(Endpoint):
    """An endpoint that identifies its user by a cookie, and accepts only forms of its own pages."""

    def identify(self, request: UserRequest) -> User | None:
        if request.method == "POST" and not _has_own_origin(request):
            raise Refusal(403, "Another site sent this form.")
        return find_user(request)

    def respond(self, request: UserRequest, handler: Handler) -> Response:
        if request.method == "POST" and self.check is not _allow_anybody:
            request.require_user()
            token = str(request.fields.get("form_token", ""))
            if not _form_signer(request).verify_signature(_session_of(request), token):
                raise Refusal(403, "This form belongs to another session: reload the page.")
        response: Response = handler(request, **request.path_params)
        return response


def _has_own_origin(request: Request) -> bool:
    """Return whether a form came from this server; browsers say where it came from."""
    origin = request.headers.get("origin") or request.headers.get("referer", "")
    return bool(origin) and _parse_address(origin).netloc == request.headers.get("host", "")


def _allow_anybody(_request: UserRequest, **_address: int) -> None:
    """Accept everybody, as the login form needs."""


_FORM = BodyLimits(text=1 << 20, fields=60)
#: The routes of static files, of the pages, and of the actions of their forms.
ROUTES: list[BaseRoute] = [
    Route("/static/report.css", lambda _request: FileResponse(os.path.join(REPORT, "page.css"))),
    Mount("/static", StaticFiles(directory=_STATIC), name="static"),
]


def _answer(
    method: str, path: str, check: Handler = _allow_anybody, limits: BodyLimits = _FORM
) -> Callable[[Handler], Handler]:
    """Register who answers a method of an address; `check` refuses before a form is read."""

    def register(handler: Handler) -> Handler:
        ROUTES.append(Route(path, _PageEndpoint(handler, check, limits).answer, methods=[method]))
        return handler

    return register


# ── pages ───────────────────────────────────────────────────────────────────


@_answer("GET", "/")
def _show_home(request: UserRequest) -> Response:
    rows = request.services.store.find(Challenge)
    if len(rows) == 1:
        return RedirectResponse(f"/challenges/{rows[0].id}", 303)
    shown = [request.services.json.challenge(row, request.base) for row in rows]
    return render(request, "home.html", challenges=shown)


@_answer("GET", "/login")
def _show_login(request: UserRequest) -> Response:
    return render(request, "login.html", next=_local_path(request.query_params.get("next") or "/"), wrong=False)


def _local_path(path: str) -> str:
    """Return a path on this server for any requested one."""
    return path if path.startswith("/") and not path.startswith(("//", "/\\")) else "/"


def _challenge_page(request: UserRequest, challenge: int, template: str, **values: object) -> Response:
    accounts = request.services.accounts
    return render(
        request,
        template,
        200,
        challenge=request.services.json.challenge(_find_challenge(request, challenge), request.base),
        host=accounts.is_host(request.user, challenge),
        team=accounts.team_of(request.user, challenge),
        **values,
    )


def _find_challenge(request: UserRequest, number: int) -> Challenge:
    return request.services.store.require(Challenge, number, Refusal(404, "There is no such challenge."))


#: EvalAI's names of pages that have others here.
_NAMES = {"overview": "", "submission": "/submit", "my-submission": "/submissions", "manage": "/host"}


@_answer("GET", "/web/challenges/challenge-page/{challenge:int}/{page:path}")
def _redirect_from_evalai(request: UserRequest, challenge: int, page: str) -> Response:
    """Redirect from the addresses that EvalAI's client prints."""
    _find_challenge(request, challenge)
    name = page.split("/", maxsplit=1)[0]
    same = f"/{name}" if name in ("evaluation", "phases", "leaderboard") else ""
    return RedirectResponse(f"/challenges/{challenge}{_NAMES.get(name, same)}", 303)


def _phases_page(request: UserRequest, challenge: int, template: str) -> Response:
    rows = request.services.accounts.visible_phases(request.user, challenge)
    shown = [request.services.json.phase(row, request.base, host=False) for row in rows]
    return _challenge_page(request, challenge, template, phases=shown)


_answer("GET", "/challenges/{challenge:int}/phases")(partial(_phases_page, template="phases.html"))
_answer("GET", "/challenges/{challenge:int}/evaluation")(partial(_challenge_page, template="evaluation.html"))


@_answer("GET", "/challenges/{challenge:int}")
def _show_overview(request: UserRequest, challenge: int) -> Response:
    """Show what a challenge is about, its phases with their leaders, and how a baseline, or else a leader, fails."""
    services, address = request.services, f"/challenges/{challenge}"
    phases = services.accounts.visible_phases(request.user, challenge)
    listed: dict[int, list[JsonObject]] = {phase.id: [] for phase in phases}
    shown: JsonObject | None = None
    visible = _visible_boards(request, challenge)
    for name, (phase, split) in zip(_name_boards(visible), visible, strict=True):
        board = board_of(services.store, phase, split)
        leader = board.rows[0] if board.rows else None
        value = _number(leader.result.get(board.order), board.decimals) if leader else ""
        listed[phase.id].append({
            **name,
            "split": split.dataset_split.name,
            "leader": leader.team_name if leader else "",
            "label": board.order,
            "value": value,
        })  # fmt: skip
        if leader and shown is None:
            row = next((row for row in reversed(board.rows) if row.is_baseline), leader)
            glances = find_glances(services, request.user, services.submissions.get(row.submission))
            glance = (glances or {}).get(split.dataset_split.codename)
            if glance and glance.film:
                shown = {"submission": row.submission, "team": row.team_name, "glance": glance}
                shown |= {"place": _place(board, row.submission), "board": name["name"]}
                shown["address"] = f"{address}/leaderboard/{split.id}"
    described = [services.json.phase(row, request.base, host=False) for row in phases]
    return _challenge_page(
        request, challenge, "overview.html", phases=described, boards=listed, shown=shown, here=address
    )


@_answer("GET", "/challenges/{challenge:int}/submit")
def _show_submit_form(request: UserRequest, challenge: int) -> Response:
    services, user = request.services, request.require_user()
    team = services.accounts.team_of(user, challenge)
    shown = [
        {
            **services.json.phase(phase, request.base, host=False),
            "left": submitting.count_remaining(services, team.id, phase) if team else None,
            "types": _file_types(phase),
        }
        for phase in services.accounts.visible_phases(user, challenge)
    ]
    teams = services.accounts.teams(user, PARTICIPANT)
    return _challenge_page(request, challenge, "submit.html", phases=shown, teams=teams)


_LISTED = 200
#: Digits of a number of a page, at most, and characters of what is searched for.
_PAGE_DIGITS = 9
_WORDS = 100
_DECIMALS = 20
_LOG_LINES = 40
#: A process that read untrusted files wrote a report, so it is kept apart from this server's other pages, as if it came
#: from elsewhere.
_REPORT_POLICY = (
    "sandbox allow-scripts allow-downloads allow-forms; default-src 'none'; img-src data: blob:; "
    "style-src 'unsafe-inline'; script-src 'unsafe-inline'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)


@_answer("GET", "/challenges/{challenge:int}/submissions")
def _show_submissions(request: UserRequest, challenge: int) -> Response:
    services, user = request.services, request.require_user()
    team = services.accounts.team_of(user, challenge)
    phases = services.accounts.visible_phases(user, challenge) if team else []
    rows = [row for phase in phases for row in services.submissions.of_team(team.id if team else 0, phase.id)]
    rows.sort(key=lambda row: -row.id)
    listed = _summaries(request, rows[:_LISTED])
    by_id, boards = {phase.id: phase for phase in phases}, dict[int, RankedBoard]()
    for row, summary in zip(rows, listed, strict=False):
        summary["scores"] = _scores(request, row, by_id[row.phase_id], boards)
    for row, summary in zip(rows[:_WITH_CAUSES], listed, strict=False):
        glances = (find_glances(services, user, row) or {}) if summary["has_report"] else {}
        summary["cause"] = " ".join(filter(None, (glance.cause for glance in glances.values())))
    return _challenge_page(request, challenge, "submissions.html", rows=listed)


def _summaries(request: UserRequest, submissions: list[Submission]) -> list[JsonObject]:
    """Return the rows of a list of submissions; all names are read by one query."""
    services = request.services
    files = services.files.names(submission.input_file for submission in submissions)
    teams = services.store.find(Team, Team.id.in_({submission.team_id for submission in submissions}))
    team_names = {team.id: team.team_name for team in teams}
    columns = ("id", "status", "submitted_at", "method_name", "is_public", "is_baseline", "is_flagged")
    phases = {
        number: services.store.require(ChallengePhase, number) for number in {row.phase_id for row in submissions}
    }
    return [
        {
            **{key: getattr(submission, key) for key in columns},
            "phase": phases[submission.phase_id].config["name"],
            "took": submission.execution_time,
            "reason": _reason(request, submission) if submission.status == FAILED else "",
            "team": team_names[submission.team_id],
            "file": files.get(submission.input_file, ""),
            "has_report": _has_report(request, phases[submission.phase_id], submission),
            "submission": submission.id,
            "cause": "",
        }
        for submission in submissions
    ]


def _has_report(request: UserRequest, phase: ChallengePhase, submission: Submission) -> bool:
    """Return whether there is a page of a submission for this user."""
    services, challenge = request.services, _find_challenge(request, phase.challenge_id)
    return (
        services.accounts.may_see_submission(request.user, submission)
        and not why_no_report(services, challenge, phase, submission)
        and bool(submission.submission_result_file or services.accounts.is_host(request.user, challenge.id))
    )


#: What begins the sentence of a scorer of ours in a traceback: EvalAI loads it under a name of its own.
_SENTENCE = re.compile(r"^(?:\w+\.)*SubmissionError: ", re.MULTILINE)


def _reason(request: UserRequest, submission: Submission) -> str:
    """Return why a submission failed: the sentences for its participants, or the last line that was written."""
    text = _text(request, submission, submission.stderr_file, from_end=True).strip()
    *_, sentences = _SENTENCE.split(text)
    if sentences != text:
        return sentences
    return text.splitlines()[-1] if text else "nothing was written to stderr"


def _text(request: UserRequest, submission: Submission, file: str | None, *, from_end: bool = False) -> str:
    """Return the beginning of a file about a submission, or its end, as far as this user may read it."""
    if file and not request.services.accounts.hosts_submission(request.user, submission):
        redacted = file_for_participants(request.services, submission.id, file)
        if redacted is not None:
            return redacted[-EXCERPT:] if from_end else redacted[:EXCERPT]
    return request.services.files.text(file, from_end=from_end)


#: Columns of files, their names, and whether they are for hosts alone.
_FILES = {
    "stdout_file": ("stdout", False),
    "stderr_file": ("stderr", False),
    "environment_log_file": ("environment log", True),
    "submission_result_file": ("result", False),
    "metadata_file": ("metadata, for hosts", True),
}


@_answer("GET", "/submissions/{submission:int}")
def _show_submission(request: UserRequest, submission: int) -> Response:
    services, user = request.services, request.require_user()
    row = services.submissions.get(submission)
    services.accounts.check_may_see_submission(user, row)
    phase = services.submissions.phase_of(row)
    host = services.accounts.is_host(user, phase.challenge_id)
    files = []
    for column, (name, for_hosts) in _FILES.items():
        file = getattr(row, column)
        if file and (host or not for_hosts):
            url = services.files.url(file, request.base, 0 if host else row.id)
            files.append({"name": name, "text": _text(request, row, file), "url": url})
    return _challenge_page(
        request,
        phase.challenge_id,
        "submission.html",
        row=_summaries(request, [row])[0],
        started_at=row.started_at,
        completed_at=row.completed_at,
        input_url=services.files.url(row.input_file, request.base),
        files=files,
        scores=_scores(request, row, phase, {}),
        glances=find_glances(services, user, row),
        waiting=services.submissions.count_ahead(row) if row.status == SUBMITTED else None,
        running=max(0.0, time.time() - row.started_at) if row.status == RUNNING and row.started_at else None,
    )


def _scores(
    request: UserRequest, submission: Submission, phase: ChallengePhase, boards: dict[int, RankedBoard]
) -> list[JsonObject]:
    """Return the scores that the user may see, and the places on leaderboards; a list shares the boards."""
    services, shown = request.services, []
    scores = services.submissions.scores(submission.id)
    for split in services.accounts.visible_splits(request.user, phase):
        if split.id in scores:
            is_listed = services.accounts.may_see_board(request.user, phase, split)
            main = split.leaderboard.schema["default_order_by"]
            if is_listed and split.id not in boards:
                boards[split.id] = board_of(services.store, phase, split)
            shown.append({
                "split": split.dataset_split.name,
                "codename": split.dataset_split.codename,
                "values": _cells(scores[split.id], split),
                "label": main,
                "value": _number(scores[split.id].get(main), split.decimals),
                "place": _place(boards[split.id], submission.id) if is_listed else "",
                "address": f"/challenges/{phase.challenge_id}/leaderboard/{split.id}" if is_listed else "",
            })  # fmt: skip
    return shown


def _place(board: RankedBoard, submission: int) -> str:
    """Return the place of a submission on a leaderboard, or why it has none."""
    for rank, row in zip(board.ranks, board.rows, strict=True):
        if row.submission == submission:
            return f"place {rank} of {len(board.rows)}"
    return "not the team's best" if any(row.submission == submission for row in board.history) else "not shown"


def _cells(values: JsonObject, split: ChallengePhaseSplit) -> list[tuple[str, str]]:
    return [(label, _number(values.get(label), split.decimals)) for label in split.labels]


def _number(value: object, decimals: int) -> str:
    """Return a score as a leaderboard shows it; `#` where there is none."""
    return f"{value:.{min(decimals, _DECIMALS)}f}" if isinstance(value, (int, float)) else "#"


@_answer("GET", "/submissions/{submission:int}/report")
def _show_report(request: UserRequest, submission: int) -> Response:
    """Return the report of a submission, or until it is made a page that looks again."""
    services, user = request.services, request.user
    text = find_report_page(services, user, submission)
    row = services.submissions.get(submission)
    trail = _trail(request, services.submissions.phase_of(row))
    if services.accounts.may_see_submission(user, row):
        trail.append((f"/submissions/{submission}", f"Submission {submission}"))
    return _report_answer(request, text, trail)


@_answer("GET", "/leaderboard/{split:int}/compare")
def _show_comparison(request: UserRequest, split: int) -> Response:
    """Return the comparison of the two submissions that were ticked."""
    services, user = request.services, request.user
    phase_split = services.store.require(ChallengePhaseSplit, split, Refusal(404, "There is no such leaderboard."))
    phase = services.store.require(ChallengePhase, phase_split.phase_id)
    if split not in {visible.id for visible in services.accounts.visible_splits(user, phase)}:
        raise Refusal(404, "There is no such leaderboard.")
    texts = request.query_params.getlist("submission")
    numbers = [int(text) for text in texts if text.isdecimal() and len(text) < _PAGE_DIGITS]
    text = find_comparison_page(services, user, phase_split, numbers)
    return _report_answer(request, text, _trail(request, phase, split))


def _report_answer(request: UserRequest, text: str | None, trail: Sequence[tuple[str, str]]) -> Response:
    """Return a page below the links that lead back, or until it is made a page that looks again."""
    if text is not None:
        links = _TEMPLATES.get_template("trail.html").render(trail=trail)
        text = text.replace("<body>\n", f"<body>\n{links}", 1)
        return HTMLResponse(text, headers={**_HEADERS, "Content-Security-Policy": _REPORT_POLICY})
    message = "It will open here."
    waiting = render(request, "message.html", title="Preparing the report…", text=message, trail=trail)
    waiting.headers["Refresh"] = "1"
    return waiting


def _trail(request: UserRequest, phase: ChallengePhase, split: int = 0) -> list[tuple[str, str]]:
    """Return the links from a report to its challenge and to a leaderboard of its phase, if the user may see one."""
    challenge = _find_challenge(request, phase.challenge_id)
    address = f"/challenges/{challenge.id}"
    boards = [board for board in _visible_boards(request, challenge.id) if board[0].id == phase.id]
    names = [name for name in _name_boards(boards) if split in (0, name["id"])][:1]
    return [
        (address, str(challenge.config["title"])),
        *((f"{address}/leaderboard/{it['id']}", it["name"]) for it in names),
    ]


#: Rows that a page of a leaderboard shows, and those of a list whose rows say what costs them most.
_BOARD_ROWS = 100
_WITH_CAUSES = 20
_Boards = list[tuple[ChallengePhase, ChallengePhaseSplit]]


def _visible_boards(request: UserRequest, challenge: int) -> _Boards:
    accounts = request.services.accounts
    return [
        (phase, split)
        for phase in accounts.visible_phases(request.user, challenge)
        for split in request.services.store.splits_of(phase.id)
        if accounts.may_see_board(request.user, phase, split)
    ]


def _name_boards(boards: _Boards) -> list[JsonObject]:
    splits = Counter(phase.id for phase, _ in boards)
    return [
        {
            "id": split.id,
            "name": str(phase.config["name"]) + f" / {split.dataset_split.name}" * (splits[phase.id] > 1),
        }
        for phase, split in boards
    ]


@_answer("GET", "/challenges/{challenge:int}/leaderboard")
@_answer("GET", "/challenges/{challenge:int}/leaderboard/{split:int}")
def _show_leaderboard(request: UserRequest, challenge: int, split: int = 0) -> Response:
    """Return the leaderboard of a phase split; without a number the first one that the user may see."""
    services = request.services
    visible = _visible_boards(request, challenge)
    boards = _name_boards(visible)
    index = next((k for k, (_, phase_split) in enumerate(visible) if split in (0, phase_split.id)), None)
    if index is None:
        if split:
            raise Refusal(404, "There is no such leaderboard, or it is not public.")
        return _challenge_page(request, challenge, "leaderboard.html", boards=boards, current=None)
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
    reports = _reports(request, phase, [board.rows[k].submission for k in shown])
    opened = [reports[board.rows[k].submission] for k in shown if board.rows[k].submission in reports]
    causes = _causes(request, phase_split, opened)
    rows = [
        {
            **board.rows[k]._asdict(),
            "rank": f"{board.ranks[k]}=" if board.ranks.count(board.ranks[k]) > 1 else board.ranks[k],
            "place": places.get(board.rows[k].submission),
            "cells": _board_cells(board.rows[k], board, places),
            "own": k == own_row,
            "has_report": board.rows[k].submission in reports,
            "cause": causes.get(board.rows[k].submission, ""),
        }
        for k in shown
    ]
    return _challenge_page(
        request,
        challenge,
        "leaderboard.html",
        boards=boards,
        current={**boards[index], "order": board.order, "descending": board.descending},
        columns=_columns(phase_split, board),
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
    return min(max(int(text), 1), pages) if text.isdecimal() and len(text) < _PAGE_DIGITS else 1


def _reports(request: UserRequest, phase: ChallengePhase, submissions: list[int]) -> dict[int, Submission]:
    """Return the submissions whose page this user may open."""
    services, challenge = request.services, _find_challenge(request, phase.challenge_id)
    rows = services.store.find(Submission, Submission.id.in_(submissions))
    opens_all = opens_all_reports(services, request.user, phase)
    return {
        row.id: row
        for row in rows
        if _has_report(request, phase, row)
        or (opens_all and is_on_boards(services, phase, row) and not why_no_report(services, challenge, phase, row))
    }


def _causes(request: UserRequest, split: ChallengePhaseSplit, rows: Iterable[Submission]) -> dict[int, str]:
    """Return what costs the first submissions most on a split."""
    codename, causes = split.dataset_split.codename, {}
    for row in islice(rows, _WITH_CAUSES):
        glance = (find_glances(request.services, request.user, row) or {}).get(codename)
        causes[row.id] = glance.cause if glance else ""
    return causes


def _columns(split: ChallengePhaseSplit, board: RankedBoard) -> list[JsonObject]:
    descriptions = split.leaderboard.schema.get("metadata") or {}
    return [{"label": label, "about": (descriptions.get(label) or {}).get("description", "")} for label in board.labels]


def _board_cells(
    row: BoardEntry, board: RankedBoard, places: Mapping[int, tuple[int, int]] = MappingProxyType({})
) -> Markup:
    """Return the cells of a row's scores; one that is certainly the best is marked.

    Digits alone, joined here: half the time of a page with a thousand rows.
    """
    decimals, cells = board.decimals, ""
    for label in board.labels:
        best = " best" if label == board.order and places.get(row.submission) == (1, 1) else ""
        cells += f'<td class="number{best}">{_number(row.result.get(label), decimals)}'
        cells += (
            f'<span class="spread">± {_number(row.error_bar(label), decimals)}</span></td>'
            if row.error_bar(label)
            else "</td>"
        )
    return Markup(cells)  # noqa: S704


@_answer("GET", "/challenges/{challenge:int}/teams/{team:int}")
def _show_team(request: UserRequest, challenge: int, team: int) -> Response:
    """Show a team's public submissions on the leaderboards that the user may see, the newest first."""
    tables, name = [], ""
    visible = _visible_boards(request, challenge)
    for title, (phase, split) in zip(_name_boards(visible), visible, strict=True):
        board = board_of(request.services.store, phase, split)
        entries = [entry for entry in board.history if entry.team_id == team]
        if not entries:
            continue
        name = entries[0].team_name
        rank = next(rank for rank, row in zip(board.ranks, board.rows, strict=True) if row.team_id == team)
        entries = entries[-_LISTED:]
        reports = _reports(request, phase, [entry.submission for entry in entries])
        rows = [
            {
                **entry._asdict(),
                "cells": _board_cells(entry, board),
                "has_report": entry.submission in reports,
                "cause": "",
            }
            for entry in reversed(entries)
        ]
        tables.append({**title, "rank": rank, "of": len(board.rows), "columns": _columns(split, board), "rows": rows})
    if not tables:
        raise Refusal(404, "There is no such team, or it has no public submissions.")
    return _challenge_page(request, challenge, "team.html", name=name, tables=tables)


@_answer("GET", "/challenges/{challenge:int}/host")
def _show_host_page(request: UserRequest, challenge: int) -> Response:
    services, user = request.services, request.require_user()
    row = _find_challenge(request, challenge)
    services.accounts.check_host(user, challenge, Refusal(403, "Only hosts of the challenge may see this page."))
    status = request.query_params.get("status", "")
    counted = services.submissions.count_statuses(challenge)
    submissions_shown = services.submissions.of_challenge(challenge, status, limit=_LISTED)
    return _challenge_page(
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


# ── forms ───────────────────────────────────────────────────────────────────


def _check_participates(request: UserRequest, challenge: int) -> None:
    submitting.require_team(request.services, request.require_user(), challenge)


def _require_hosted(request: UserRequest, submission: int) -> Submission:
    row = request.services.submissions.get(submission)
    if not request.services.accounts.hosts_submission(request.require_user(), row):
        raise Refusal(403, "Only hosts of the challenge may do this.")
    return row


@_answer("POST", "/login", _allow_anybody)
def _log_in(request: UserRequest) -> Response:
    accounts, fields = request.services.accounts, request.fields
    next_path = _local_path(str(fields.get("next", "/")))
    user = accounts.authenticate(str(fields.get("username", "")), str(fields.get("password", "")))
    if user is None:
        return render(request, "login.html", 403, next=next_path, wrong=True)
    token, _ = accounts.mint_token(user, "browser")
    redirect = RedirectResponse(next_path, 303)
    redirect.set_cookie(_cookie_of(request), token, httponly=True, samesite="lax", max_age=7 * 86400)
    return redirect


@_answer("POST", "/logout", require_user)
def _log_out(request: UserRequest) -> Response:
    request.services.accounts.forget_token(_session_of(request))
    answer = RedirectResponse("/", 303)
    answer.delete_cookie(_cookie_of(request))
    return answer


@_answer("POST", "/challenges/{challenge:int}/join", require_user)
def _join(request: UserRequest, challenge: int) -> Response:
    user = request.require_user()
    _find_challenge(request, challenge)
    if request.services.accounts.team_of(user, challenge) is None:
        submitting.participate(request.services, user, challenge, _choose_team(request, user))
    return RedirectResponse(f"/challenges/{challenge}/submit", 303)


def _choose_team(request: UserRequest, user: User) -> int:
    number, name = str(request.fields.get("team", "")), str(request.fields.get("team_name", "")).strip()[:100]
    accounts = request.services.accounts
    if number.isdecimal() and len(number) < 19 and accounts.is_member(user, int(number), PARTICIPANT):
        return int(number)
    if not name:
        raise Refusal(400, "Choose a team, or enter a name for a new one.")
    try:
        return accounts.create_team(user, PARTICIPANT, name)
    except ValueError:
        raise Refusal(400, f"A team named {name} already exists.") from None


_UPLOAD = BodyLimits(bytes=UPLOAD_BYTES, text=1 << 20, files=1, fields=60)


@_answer("POST", "/challenges/{challenge:int}/submit", _check_participates, _UPLOAD)
def _submit(request: UserRequest, challenge: int) -> Response:
    upload, phase = request.files.get("input_file"), str(request.fields.get("phase", ""))
    if not phase.isdecimal() or len(phase) > 18:
        raise Refusal(400, "Choose a phase.")
    if upload is None or not upload.filename:
        raise Refusal(400, "Choose a file.")
    if not upload.size:
        raise Refusal(400, f"{upload.filename} is empty.")
    services, user, target = request.services, request.require_user(), PhaseTarget(challenge, int(phase))
    row, _ = submitting.admit(services, user, target)
    _check_type(upload.filename, row)
    questions = row.config.get("submission_meta_attributes") or []
    fields = {**request.fields, "submission_metadata": _read_answers(request, questions, phase)}
    number = submitting.submit(services, user, target, fields, upload.file, upload.filename)
    return RedirectResponse(f"/submissions/{number}", 303)


def _read_answers(request: UserRequest, questions: list[JsonObject], phase: str) -> list[JsonObject] | None:
    """Return the form's answers to a phase's questions, in the shape of EvalAI's API."""
    answers = []
    for index, question in enumerate(questions):
        values = request.form_data.getlist(f"attribute-{phase}-{index}")
        if question.get("required") in TRUE and not any(values):
            raise Refusal(400, f"{question['name']} must be answered.")
        answer = {key: question.get(key) for key in ("name", "type", "description", "required")}
        if question["type"] == "checkbox":
            answer |= {"options": question.get("options"), "values": values}
        elif question["type"] == "radio":
            answer |= {"options": question.get("options"), "value": values[0] if values else None}
        else:
            answer["value"] = bool(values) if question["type"] == "boolean" else (values[0] if values else "")
        answers.append(answer)
    return answers or None


@_answer("POST", "/submissions/{submission:int}/mark", _require_hosted)
def _mark(request: UserRequest, submission: int) -> Response:
    """Make a submission a baseline, hide it from the leaderboard or flag it; or the opposite."""
    hosting.toggle_mark(request.services, request.require_user(), submission, str(request.fields.get("what", "")))
    return RedirectResponse(f"/submissions/{submission}", 303)


@_answer("POST", "/submissions/{submission:int}/rerun", _require_hosted)
def _rerun(request: UserRequest, submission: int) -> Response:
    number = hosting.rerun(request.services, request.require_user(), submission)
    return RedirectResponse(f"/submissions/{number}", 303)


@_answer("POST", "/submissions/{submission:int}/cancel", _require_hosted)
def _cancel(request: UserRequest, submission: int) -> Response:
    row = _require_hosted(request, submission)
    hosting.cancel(request.services, request.require_user(), submission)
    challenge = request.services.submissions.phase_of(row).challenge_id
    return RedirectResponse(f"/challenges/{challenge}/host", 303)


def _file_types(phase: ChallengePhase) -> list[str]:
    """Return the endings that a phase lists; EvalAI's form accepts only these, its API any."""
    endings = str(phase.config["allowed_submission_file_types"] or "").lower().split(",")
    return [] if "*" in "".join(endings) else [f".{word.strip(' .')}" for word in endings if word.strip(" .")]


def _check_type(name: str, phase: ChallengePhase) -> None:
    """Refuse a file of another type before it counts as a submission of the day."""
    types = _file_types(phase)
    if types and not name.lower().endswith(tuple(types)):
        raise Refusal(
            400, f"{name} is no {' or '.join(types)} file; {phase.config['name']} accepts no other file type."
        )
