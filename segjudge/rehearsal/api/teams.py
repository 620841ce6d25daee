"""Accounts and teams."""

from collections.abc import Sequence
from functools import partial

from segjudge.evalai import routes
from segjudge.rehearsal.accounts import HOST, PARTICIPANT
from segjudge.rehearsal.actions.submitting import clean
from segjudge.rehearsal.column_types import JsonObject
from segjudge.rehearsal.models import Team
from segjudge.rehearsal.refusal import Refusal
from segjudge.rehearsal.timestamps import written

from .call import Answer, Call, answers


@answers("POST", routes.LOGIN, bytes=16 << 10, text=4 << 10, first=lambda _call: None)
def login(call: Call) -> JsonObject:
    """Return a token that expires, for a name and a password."""
    user = call.services.accounts.with_password(str(call.data.get("username", "")), str(call.data.get("password", "")))
    if user is None:
        raise Refusal(400, {"non_field_errors": ["Unable to log in with provided credentials."]})
    return {"token": call.services.accounts.mint(user, "login")[0]}


@answers("GET", routes.AUTH_TOKEN)
def auth_token(call: Call) -> JsonObject:
    """Return the token of the profile page: a new one, since tokens are kept as hashes."""
    token, expires = call.services.accounts.mint(call.known(), "profile")
    return {"token": token, "expires_at": written(expires)}


def listed(rows: Sequence[JsonObject]) -> JsonObject:
    """Return the envelope of a list."""
    return {"count": len(rows), "next": None, "previous": None, "results": rows}


def teams(call: Call, kind: str) -> JsonObject:
    """Return the caller's teams of a kind."""
    accounts = call.services.accounts
    return listed([accounts.team_json(team) for team in accounts.teams(call.known(), kind)])


def check_may_push(call: Call) -> None:
    """Refuse who may not push."""
    call.services.permissions.check_may_push(call.known())


def new_team(call: Call, kind: str) -> Answer:
    """Create a team to take part with, or to host with."""
    name = str(call.data.get("team_name", "")).strip()
    if not name:
        raise Refusal(400, {"team_name": ["This field may not be blank."]})
    if "\0" in name:
        raise Refusal(400, {"team_name": ["Null characters are not allowed."]})
    if len(name) > 100:
        raise Refusal(400, {"team_name": ["Ensure this field has no more than 100 characters."]})
    accounts = call.services.accounts
    try:
        number = accounts.new_team(call.known(), kind, name, clean(call.data.get("team_url")))
    except ValueError:
        raise Refusal(400, {"team_name": [f"{kind} team with this team name already exists."]}) from None
    return Answer(201, accounts.team_json(call.services.store.one(Team, number)))


answers("GET", routes.PARTICIPANT_TEAMS)(partial(teams, kind=PARTICIPANT))
answers("GET", routes.HOST_TEAMS)(partial(teams, kind=HOST))
answers("POST", routes.PARTICIPANT_TEAMS)(partial(new_team, kind=PARTICIPANT))
answers("POST", routes.CREATE_HOST_TEAM, first=check_may_push)(partial(new_team, kind=HOST))
