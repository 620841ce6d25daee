"""Accounts and teams."""

from __future__ import annotations

from typing import Any

from segjudge.evalai import routes
from segjudge.rehearsal.accounts import HOST, PARTICIPANT
from segjudge.rehearsal.submissions import Refusal, clean
from segjudge.rehearsal.timestamps import written

from .call import Answer, Call, takes


@takes(bytes=16 << 10, text=4 << 10, first=lambda _call: None)
def login(call: Call) -> dict[str, str]:
    """A token that ends, for a name and a password."""
    user = call.services.accounts.with_password(str(call.data.get("username", "")), str(call.data.get("password", "")))
    if user is None:
        raise Refusal(400, {"non_field_errors": ["Unable to log in with provided credentials."]})
    return {"token": call.services.accounts.mint(user, "login")[0]}


def auth_token(call: Call) -> dict[str, Any]:
    """The token of the profile page: a new one, since ours are kept as hashes."""
    token, expires = call.services.accounts.mint(call.known(), "profile")
    return {"token": token, "expires_at": written(expires)}


def listed(rows: list[Any]) -> dict[str, Any]:
    """The envelope of a list."""
    return {"count": len(rows), "next": None, "previous": None, "results": rows}


def participant_teams(call: Call) -> dict[str, Any]:
    """The caller's teams."""
    return listed(call.services.accounts.teams(call.known(), PARTICIPANT))


def host_teams(call: Call) -> dict[str, Any]:
    """The caller's host teams."""
    return listed(call.services.accounts.teams(call.known(), HOST))


def new_participant_team(call: Call) -> Answer:
    """A team to take part with."""
    return _new(call, PARTICIPANT)


def may_push(call: Call) -> None:
    """What hosts push is run here, so that only those may whom the rehearsal was started for."""
    if not call.services.accounts.may_push(call.known()):
        name = call.known().username
        raise Refusal(403, f"{name} is not a host of this rehearsal; start it with --hosts {name} to change that.")


@takes(first=may_push)
def new_host_team(call: Call) -> Answer:
    """A team to host with."""
    return _new(call, HOST)


def _new(call: Call, kind: str) -> Answer:
    user, name = call.known(), str(call.data.get("team_name", "")).strip()
    if not name:
        raise Refusal(400, {"team_name": ["This field may not be blank."]})
    if "\0" in name:
        raise Refusal(400, {"team_name": ["Null characters are not allowed."]})
    if len(name) > 100:
        raise Refusal(400, {"team_name": ["Ensure this field has no more than 100 characters."]})
    try:
        number = call.services.accounts.new_team(user, kind, name, clean(call.data.get("team_url")))
    except ValueError:
        raise Refusal(400, {"team_name": [f"{kind} team with this team name already exists."]}) from None
    team = next(one for one in call.services.accounts.teams(user, kind) if one["id"] == number)
    return Answer(201, team)


CALLS = [
    ("POST", routes.LOGIN, login),
    ("GET", routes.AUTH_TOKEN, auth_token),
    ("GET", routes.PARTICIPANT_TEAMS, participant_teams),
    ("POST", routes.PARTICIPANT_TEAMS, new_participant_team),
    ("GET", routes.HOST_TEAMS, host_teams),
    ("POST", routes.CREATE_HOST_TEAM, new_host_team),
]
