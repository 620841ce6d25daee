"""The pages of a challenge, each a function."""

from functools import partial

from starlette.responses import RedirectResponse, Response

from segjudge.server.accounts import PARTICIPANT
from segjudge.server.models import Challenge
from segjudge.server.refusal import Refusal

from .frame import PageRequest, page, shown_at


@shown_at("/")
def home(request: PageRequest) -> Response:
    """Return all challenges; the only one at once."""
    rows = request.services.store.find(Challenge)
    if len(rows) == 1:
        return RedirectResponse(f"/challenges/{rows[0].id}", 303)
    shown = [request.services.json.challenge(row, request.base) for row in rows]
    return page(request, "home.html", challenges=shown)


@shown_at("/login")
def login(request: PageRequest) -> Response:
    """Return the login's form; the address to go to afterwards stays on this server."""
    return page(request, "login.html", next=local_path(request.query("next") or "/"), wrong=False)


def local_path(path: str) -> str:
    """Return a path on this server, whatever was asked for."""
    return path if path.startswith("/") and not path.startswith(("//", "/\\")) else "/"


def challenge_page(request: PageRequest, challenge: int, template: str, **values: object) -> Response:
    """Return a page with the challenge's head and tabs."""
    permissions = request.services.permissions
    return page(
        request,
        template,
        challenge=request.services.json.challenge(named_challenge(request, challenge), request.base),
        host=permissions.is_host(request.user, challenge),
        team=permissions.team_of(request.user, challenge),
        **values,
    )


def named_challenge(request: PageRequest, number: int) -> Challenge:
    """Return a challenge; refuses where there is none."""
    return request.services.store.one(Challenge, number, Refusal(404, "There is no such challenge."))


#: EvalAI's names of pages that have others here.
_NAMES = {"overview": "", "submission": "/submit", "my-submission": "/submissions", "manage": "/host"}


@shown_at("/web/challenges/challenge-page/{challenge:int}/{page:path}")
def as_on_evalai(request: PageRequest, challenge: int, page: str) -> Response:
    """Redirect from the addresses that EvalAI's client prints."""
    named_challenge(request, challenge)
    name = page.split("/", maxsplit=1)[0]
    same = f"/{name}" if name in ("evaluation", "phases", "leaderboard") else ""
    return RedirectResponse(f"/challenges/{challenge}{_NAMES.get(name, same)}", 303)


def with_phases(request: PageRequest, challenge: int, template: str) -> Response:
    """Return a page with the challenge's phases."""
    rows = request.services.permissions.visible_phases(request.user, challenge)
    shown = [request.services.json.phase(row, request.base, host=False) for row in rows]
    return challenge_page(request, challenge, template, phases=shown)


shown_at("/challenges/{challenge:int}")(partial(with_phases, template="overview.html"))
shown_at("/challenges/{challenge:int}/phases")(partial(with_phases, template="phases.html"))
shown_at("/challenges/{challenge:int}/evaluation")(partial(challenge_page, template="evaluation.html"))


@shown_at("/challenges/{challenge:int}/submit")
def submit(request: PageRequest, challenge: int) -> Response:
    """Return the form, with what is left of each limit."""
    services, user = request.services, request.known()
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
