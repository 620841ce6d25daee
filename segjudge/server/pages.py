"""The pages of challenges and of their hosts, and the login: rendered here, readable without scripts.

`ROUTES` has these and those of leaderboards and submissions.
"""

from functools import partial

from starlette.responses import RedirectResponse, Response

from .accounts import PARTICIPANT
from .actions import submitting
from .actions.reading import find_split_summaries
from .board_pages import LISTED, describe_place, format_score, name_boards, visible_boards
from .leaderboards import board_of
from .models import Challenge, User
from .page_endpoints import (
    ROUTES,
    allow_anybody,
    answer,
    challenge_page,
    cookie_of,
    find_challenge,
    local_path,
    render,
    session_of,
)
from .services import UserRequest, require_user
from .submission_pages import summarize_submissions
from .wire import JsonObject, Refusal

__all__ = ["ROUTES"]


@answer("GET", "/")
def _show_home(request: UserRequest) -> Response:
    rows = request.services.store.find(Challenge)
    if len(rows) == 1:
        return RedirectResponse(f"/challenges/{rows[0].id}", 303)
    shown = [request.services.json.challenge(row, request.base) for row in rows]
    return render(request, "home.html", challenges=shown)


@answer("GET", "/login")
def _show_login(request: UserRequest) -> Response:
    return render(request, "login.html", next=local_path(request.query_params.get("next") or "/"), wrong=False)


#: EvalAI's names of pages that are named differently here.
_NAMES = {"overview": "", "submission": "/submit", "my-submission": "/submissions", "manage": "/host"}


@answer("GET", "/web/challenges/challenge-page/{challenge:int}/{page:path}")
def _redirect_from_evalai(request: UserRequest, challenge: int, page: str) -> Response:
    """Redirect from the addresses that EvalAI's client prints."""
    find_challenge(request, challenge)
    name = page.split("/", maxsplit=1)[0]
    same = f"/{name}" if name in ("evaluation", "phases", "leaderboard") else ""
    return RedirectResponse(f"/challenges/{challenge}{_NAMES.get(name, same)}", 303)


def _phases_page(request: UserRequest, challenge: int, template: str) -> Response:
    rows = request.services.accounts.visible_phases(request.user, challenge)
    shown = [request.services.json.phase(row, request.base, host=False) for row in rows]
    return challenge_page(request, challenge, template, phases=shown)


answer("GET", "/challenges/{challenge:int}/phases")(partial(_phases_page, template="phases.html"))
answer("GET", "/challenges/{challenge:int}/evaluation")(partial(challenge_page, template="evaluation.html"))


@answer("GET", "/challenges/{challenge:int}")
def _show_overview(request: UserRequest, challenge: int) -> Response:
    """Show a challenge, its phases with their leaders, and why a baseline or a leader loses."""
    services, address = request.services, f"/challenges/{challenge}"
    phases = services.accounts.visible_phases(request.user, challenge)
    listed: dict[int, list[JsonObject]] = {phase.id: [] for phase in phases}
    shown: JsonObject | None = None
    visible = visible_boards(request, challenge)
    for name, (phase, split) in zip(name_boards(visible), visible, strict=True):
        board = board_of(services.store, phase, split)
        leader = board.rows[0] if board.rows else None
        value = format_score(leader.result.get(board.order), board.decimals) if leader else ""
        listed[phase.id].append({
            **name,
            "split": split.dataset_split.name,
            "leader": leader.team_name if leader else "",
            "label": board.order,
            "value": value,
        })  # fmt: skip
        if leader and shown is None:
            row = next((row for row in reversed(board.rows) if row.is_baseline), leader)
            split_summaries = find_split_summaries(services, request.user, services.submissions.get(row.submission))
            split_summary = (split_summaries or {}).get(split.dataset_split.codename)
            if split_summary and split_summary.film:
                shown = {"submission": row.submission, "team": row.team_name, "split_summary": split_summary}
                shown |= {"place": describe_place(board, row.submission), "board": name["name"]}
                shown["address"] = f"{address}/leaderboard/{split.id}"
    described = [services.json.phase(row, request.base, host=False) for row in phases]
    return challenge_page(
        request, challenge, "overview.html", phases=described, boards=listed, shown=shown, here=address
    )


_LOG_LINES = 40


@answer("GET", "/challenges/{challenge:int}/host")
def _show_host_page(request: UserRequest, challenge: int) -> Response:
    services, user = request.services, request.require_user()
    row = find_challenge(request, challenge)
    services.accounts.check_host(user, challenge, Refusal(403, "Only hosts of the challenge may see this page."))
    status = request.query_params.get("status", "")
    counted = services.submissions.count_statuses(challenge)
    submissions_shown = services.submissions.of_challenge(challenge, status, limit=LISTED)
    return challenge_page(
        request,
        challenge,
        "host.html",
        queue=row.queue,
        messages=services.queue.messages(row.queue),
        workers=sorted(services.workers.items()),
        turns=[turn for group in services.background for turn in group.loops],
        rows=summarize_submissions(request, submissions_shown),
        counted=counted,
        status=status,
        more=(counted.get(status, 0) if status else sum(counted.values())) - len(submissions_shown),
        log=services.store.log_lines(challenge)[-_LOG_LINES:],
    )


@answer("POST", "/login", allow_anybody)
def _log_in(request: UserRequest) -> Response:
    accounts, fields = request.services.accounts, request.fields
    next_path = local_path(str(fields.get("next", "/")))
    user = accounts.authenticate(str(fields.get("username", "")), str(fields.get("password", "")))
    if user is None:
        return render(request, "login.html", 403, next=next_path, wrong=True)
    token, _ = accounts.mint_token(user, "browser")
    redirect = RedirectResponse(next_path, 303)
    redirect.set_cookie(cookie_of(request), token, httponly=True, samesite="lax", max_age=7 * 86400)
    return redirect


@answer("POST", "/logout", require_user)
def _log_out(request: UserRequest) -> Response:
    request.services.accounts.forget_token(session_of(request))
    redirect = RedirectResponse("/", 303)
    redirect.delete_cookie(cookie_of(request))
    return redirect


@answer("POST", "/challenges/{challenge:int}/join", require_user)
def _join(request: UserRequest, challenge: int) -> Response:
    user = request.require_user()
    find_challenge(request, challenge)
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
