"""The lists of EvalAI's REST API from which a host takes a challenge home, in pages and shapes of its serializers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import urlencode

from segjudge.platforms.rules.fields import TRUE
from segjudge.platforms.rules.problems import mappings_in

from .accounts import PARTICIPANT
from .models import Challenge, ChallengePhase, Participation, Submission, Team, User
from .services import Services, UserRequest
from .wire import JsonObject, Refusal

#: The rows of a page, and the most that a caller may ask for.
PAGE, _LARGEST_PAGE = 150, 1000


def list_page(
    request: UserRequest,
    rows: Sequence[Any],
    show: Callable[[Any], JsonObject] = lambda row: row,
    *,
    sized: bool = False,
) -> JsonObject:
    """Return the page of a list that the query names; with `sized`, the query may set its size.

    `show` makes the JSON of each of the page's rows.
    """
    query = request.query_params
    size = min(_to_number(query.get("page_size"), PAGE), _LARGEST_PAGE) if sized else PAGE
    page = _to_number(query.get("page"), 1)
    if page > 1 and (page - 1) * size >= len(rows):
        raise Refusal(404, {"detail": "Invalid page."})
    last = page * size >= len(rows)
    links = {step: _link(request, page + step) for step in (1, -1)}
    return {
        "count": len(rows),
        "next": None if last else links[1],
        "previous": links[-1] if page > 1 else None,
        "results": [show(row) for row in rows[(page - 1) * size : page * size]],
    }


def _to_number(text: str | None, default: int) -> int:
    return int(text) if text and text.isdecimal() and 0 < len(text) < 7 and int(text) else default


def _link(request: UserRequest, page: int) -> str:
    return f"{request.base}{request.url.path}?{urlencode({**request.query_params, 'page': page})}"


def challenge_of_host(request: UserRequest, team: int, challenge: int) -> JsonObject:
    """Return a challenge as its page for hosts shows it."""
    services = request.services
    services.accounts.require_team_member(request.require_user(), team)
    row = services.store.require(Challenge, challenge, Refusal(406, "Challenge does not exist"))
    services.accounts.check_host(
        request.require_user(), challenge, Refusal(403, "Sorry, you do not belong to this Host Team!")
    )
    flags = ("is_frozen", "is_submission_paused")
    return {
        **services.json.challenge(row, request.base),
        **{key: row.config.get(key) in TRUE for key in flags},
        **{key: row.config.get(key) or [] for key in ("allowed_email_domains", "banned_email_ids")},
    }


def list_blocks(request: UserRequest, challenge: int, *, key: str) -> list[JsonObject]:
    """Return the prizes or the sponsors of a challenge."""
    config = request.services.store.require(Challenge, challenge, Refusal(406, "Challenge does not exist")).config
    return [{"id": number, "challenge": challenge, **block} for number, block in enumerate(mappings_in(config, key), 1)]


def teams_of(services: Services, challenge: int) -> JsonObject:
    """Return the teams that take part, with their members' addresses."""
    teams = services.store.find(
        Team, Team.id == Participation.team_id, Participation.challenge_id == challenge, Team.kind == PARTICIPANT
    )
    return {"participant_teams": [_team_json(services, team) for team in teams]}


def _team_json(services: Services, team: Team) -> JsonObject:
    members = [
        {"member_name": user.username, "first_name": "", "last_name": "", "email": user.email, "status": "Accepted"}
        for user in services.accounts.members(team.id)
    ]
    return {**services.accounts.team_json(team), "members": members, "approved": True}


def count_statuses(services: Services, phase: int) -> JsonObject:
    counts = services.store.count_by(Submission.status, Submission.phase_id == phase)
    return {"status": [{"status": status, "count": count} for status, count in counts.items()]}


def list_submissions(request: UserRequest, phase: ChallengePhase) -> JsonObject:
    """Return a page of a phase's submissions with names instead of numbers, the newest first."""
    numbers = Counter[int]()
    rows = []
    for row in request.services.store.find(Submission, Submission.phase_id == phase.id):
        numbers[row.team_id] += 1
        rows.append((row, numbers[row.team_id]))
    return list_page(request, rows[::-1], lambda row: _submission_json(request, phase, *row))


def _submission_json(request: UserRequest, phase: ChallengePhase, row: Submission, number: int) -> JsonObject:
    services = request.services
    members = services.accounts.members(row.team_id)
    fields = services.json.submission(row, request.base, host=True)
    creator = services.store.get(User, row.created_by)
    return {
        **{key: value for key, value in fields.items() if key not in _WORKERS_ONLY},
        "participant_team": fields["participant_team_name"],
        "challenge_phase": phase.name,
        "created_by": creator.username if creator else "",
        "submission_number": number,
        "created_at": fields["submitted_at"],
        "participant_team_members": [{"username": user.username, "email": user.email} for user in members],
        "participant_team_members_email_ids": [user.email for user in members],
        "participant_team_members_affiliations": ["" for _ in members],
    }


#: The keys that only the workers' list has.
_WORKERS_ONLY = (
    "participant_team_name", "started_at", "completed_at", "when_made_public", "is_baseline", "ignore_submission",
    "job_name",
)  # fmt: skip
