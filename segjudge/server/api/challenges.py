"""Challenges with their phases and splits, accounts and teams, and what hosts push."""

import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from segjudge.platforms.evalai import routes
from segjudge.platforms.evalai.bundle.opened_bundle import UPLOAD_BYTES
from segjudge.platforms.evalai.rows import FINISHED
from segjudge.server.accounts import HOST, PARTICIPANT
from segjudge.server.actions.submitting import clean
from segjudge.server.evalai_json import phase_split_json
from segjudge.server.models import (
    Challenge,
    ChallengePhase,
    ChallengePhaseSplit,
    DatasetSplit,
    Leaderboard,
    Participation,
    Submission,
    Team,
)
from segjudge.server.stored_files import PUSH_PREFIX
from segjudge.server.wire import JsonObject, Refusal, format_moment, parse_moment

from .call import Answer, Call, answers

_PERIODS = ("all", "past", "present", "future")


@answers("GET", routes.CHALLENGES)
def challenges(call: Call) -> JsonObject:
    """Return the challenges of a time: all, past, present or future."""
    period, now = call.path["time"].lower(), call.services.now()
    if period not in _PERIODS:
        raise Refusal(406, "Wrong url pattern!")
    rows = [challenge_json(call, challenge) for challenge in call.services.store.find(Challenge)]
    return list_json([challenge for challenge in rows if period in ("all", _period(challenge, now))])


def _period(challenge: JsonObject, now: float) -> str:
    if parse_moment(challenge["end_date"]) < now:
        return "past"
    return "future" if parse_moment(challenge["start_date"]) > now else "present"


@answers("GET", routes.CHALLENGE)
def challenge(call: Call) -> JsonObject:
    """Return a challenge."""
    return challenge_json(call, find_challenge(call))


def challenge_json(call: Call, challenge: Challenge) -> JsonObject:
    """Return a challenge as the caller sees it: its script is for its hosts alone."""
    host = call.services.permissions.is_host(call.user, challenge.id)
    return call.services.json.challenge(challenge, call.base, host=host)


def list_json(rows: Sequence[JsonObject]) -> JsonObject:
    """Return the envelope of a list."""
    return {"count": len(rows), "next": None, "previous": None, "results": rows}


def find_challenge(call: Call) -> Challenge:
    """Return the challenge of the address; refuses where there is none."""
    return call.services.store.require(Challenge, call.path["challenge"])


def require_hosted(call: Call, refusal: Refusal) -> Challenge:
    """Return the challenge of the address; refuses a caller who does not host it."""
    challenge = find_challenge(call)
    call.services.permissions.check_host(call.require_user(), challenge.id, refusal)
    return challenge


@answers("GET", routes.CHALLENGES_OF_HOST)
def challenges_of_host(call: Call) -> JsonObject:
    """Return the challenges of a host team of the caller's."""
    team = int(call.path["team"])
    call.services.permissions.check_team(call.require_user(), team)
    rows = call.services.store.find(Challenge, Challenge.host_team == team)
    return list_json([challenge_json(call, row) for row in rows])


@answers("GET", routes.CHALLENGES_OF_PARTICIPANT)
def challenges_of_participant(call: Call) -> JsonObject:
    """Return the challenges that a team of the caller's takes part in."""
    team = int(call.path["team"])
    if not call.services.accounts.is_member(call.require_user(), team):
        raise Refusal(403, "Sorry, you are not a member of this team")
    rows = call.services.store.find(
        Challenge, Challenge.id == Participation.challenge_id, Participation.team_id == team
    )
    return list_json([challenge_json(call, row) for row in rows])


@answers("POST", routes.PARTICIPATE)
def participate(call: Call) -> Answer:
    """Enter a challenge with a team."""
    user, challenge = call.require_user(), find_challenge(call)
    call.services.submitting.participate(user, challenge.id, int(call.path["team"]))
    return Answer(201, {})


# ── phases and splits ───────────────────────────────────────────────────────


@answers("GET", routes.PHASES)
def phases(call: Call) -> JsonObject:
    """Return the phases that the caller may see."""
    challenge = find_challenge(call)
    host = call.services.permissions.is_host(call.user, challenge.id)
    rows = call.services.permissions.visible_phases(call.user, challenge.id)
    return list_json([call.services.json.phase(row, call.base, host=host) for row in rows])


@answers("GET", routes.PHASE)
def phase(call: Call) -> JsonObject:
    """Return a phase of a challenge."""
    challenge, number = call.path["challenge"], call.path["phase"]
    call.services.store.require(Challenge, challenge, Refusal(406, "Challenge does not exist"))
    phase = call.services.permissions.visible_phase(call.user, number)
    if phase is None or phase.challenge_id != challenge:
        raise Refusal(406, f"Challenge phase {number} does not exist for challenge {challenge}")
    host = call.services.permissions.is_host(call.user, challenge)
    return call.services.json.phase(phase, call.base, host=host)


@answers("GET", routes.PHASE_ALONE)
@answers("GET", routes.PHASE_BY_SLUG)
def phase_alone(call: Call) -> JsonObject:
    """Return a phase by its number, or by its slug."""
    if "slug" in call.path:
        phase = call.services.store.find_first(ChallengePhase, ChallengePhase.slug == call.path["slug"])
    else:
        phase = call.services.store.get(ChallengePhase, call.path["phase"])
    if phase is None or not call.services.permissions.may_see_phase(call.user, phase):
        name = call.path.get("slug", call.path.get("phase"))
        raise Refusal(404, {"detail": f"ChallengePhase {name} does not exist"})
    return call.services.json.phase(phase, call.base, host=False)


@answers("GET", routes.PHASES_OF_HOST)
def phases_of_host(call: Call) -> list[JsonObject]:
    """Return all phases with the addresses of their truth, to a host."""
    challenge = require_hosted(call, Refusal(401, "Sorry, you are not authorized to access this challenge."))
    return [call.services.json.phase(row, call.base, host=True) for row in call.services.store.phases(challenge.id)]


@answers("GET", routes.PHASE_SPLITS)
def phase_splits(call: Call) -> list[JsonObject]:
    """Return the splits that the caller may see."""
    permissions, challenge = call.services.permissions, find_challenge(call)
    return [
        phase_split_json(split, phase)
        for phase in permissions.visible_phases(call.user, challenge.id)
        for split in permissions.visible_splits(call.user, phase)
    ]


#: Address → what a host reads there: a row, by a number of the address, and its columns.
_FOR_HOSTS: dict[str, tuple[type[ChallengePhaseSplit | Leaderboard | DatasetSplit], str, dict[str, str]]] = {
    routes.PHASE_SPLIT: (ChallengePhaseSplit, "split", {
        "id": "id", "challenge_phase": "phase_id", "dataset_split": "split_id", "leaderboard": "leaderboard_id",
        "visibility": "visibility", "leaderboard_decimal_precision": "decimals",
        "is_leaderboard_order_descending": "descending",
    }),
    routes.LEADERBOARD_SCHEMA: (Leaderboard, "leaderboard", {"id": "id", "schema": "schema", "config_id": "config_id"}),
    routes.DATASET_SPLIT: (DatasetSplit, "split", {
        "id": "id", "name": "name", "codename": "codename", "config_id": "config_id",
    }),
}  # fmt: skip


def row_for_hosts(call: Call, route: str) -> JsonObject:
    """Return a phase split, a leaderboard or a dataset split with their numbers, to a host."""
    model, number, columns = _FOR_HOSTS[route]
    row = call.services.store.get(model, call.path[number])
    if row is None or not call.services.permissions.is_host(call.require_user(), row.challenge_id):
        raise Refusal(404, "Not found.")
    return {key: getattr(row, column) for key, column in columns.items()}


for _route in _FOR_HOSTS:
    answers("GET", _route)(partial(row_for_hosts, route=_route))


# ── accounts and teams ──────────────────────────────────────────────────────


@answers("POST", routes.LOGIN, bytes=16 << 10, text=4 << 10, first=lambda _call: None)
def login(call: Call) -> JsonObject:
    """Return a token that expires, for a name and a password."""
    user = call.services.accounts.authenticate(str(call.data.get("username", "")), str(call.data.get("password", "")))
    if user is None:
        raise Refusal(400, {"non_field_errors": ["Unable to log in with provided credentials."]})
    return {"token": call.services.accounts.mint_token(user, "login")[0]}


@answers("GET", routes.AUTH_TOKEN)
def auth_token(call: Call) -> JsonObject:
    """Return the token of the profile page: a new one, since tokens are kept as hashes."""
    token, expires = call.services.accounts.mint_token(call.require_user(), "profile")
    return {"token": token, "expires_at": format_moment(expires)}


def teams(call: Call, kind: str) -> JsonObject:
    """Return the caller's teams of a kind."""
    accounts = call.services.accounts
    return list_json([accounts.team_json(team) for team in accounts.teams(call.require_user(), kind)])


def check_may_push(call: Call) -> None:
    """Refuse who may not push."""
    call.services.permissions.check_may_push(call.require_user())


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
        number = accounts.new_team(call.require_user(), kind, name, clean(call.data.get("team_url")))
    except ValueError:
        raise Refusal(400, {"team_name": [f"{kind} team with this team name already exists."]}) from None
    return Answer(201, accounts.team_json(call.services.store.require(Team, number)))


answers("GET", routes.PARTICIPANT_TEAMS)(partial(teams, kind=PARTICIPANT))
answers("GET", routes.HOST_TEAMS)(partial(teams, kind=HOST))
answers("POST", routes.PARTICIPANT_TEAMS)(partial(new_team, kind=PARTICIPANT))
answers("POST", routes.CREATE_HOST_TEAM, first=check_may_push)(partial(new_team, kind=HOST))


def _check_may_push(call: Call) -> None:
    """Refuse, before a bundle is uploaded, who may not push it."""
    call.services.permissions.check_team(call.require_user(), int(call.path["team"]))
    check_may_push(call)


@answers("POST", routes.VALIDATE, bytes=UPLOAD_BYTES, files=3, first=_check_may_push)
def validate(call: Call) -> JsonObject:
    """Refuse a bundle with what is wrong with it."""
    with _receive_bundle(call) as (bundle, repository):
        _check_bundle(call, bundle, repository, saving=False)
    return {"Success": "The challenge config has been validated successfully"}


@answers("POST", routes.CREATE_OR_UPDATE, bytes=UPLOAD_BYTES, files=3, first=_check_may_push)
def create_or_update(call: Call) -> Answer:
    """Create a challenge, or a new version of the one that the repository has."""
    team = int(call.path["team"])
    with _receive_bundle(call) as (bundle, repository):
        old = call.services.bundles.of_repository(repository)
        if old is not None:
            words = "Sorry, you are not a host for this challenge. Please check your user access token"
            call.services.permissions.check_host(call.require_user(), old.id, Refusal(403, words))
        _check_bundle(call, bundle, repository)
        try:
            number, new = call.services.bundles.create_or_update(bundle, repository, team)
        except ValueError as error:
            raise Refusal(400, {"error": str(error), "error_message": ""}) from None
    title = call.services.store.require(Challenge, number).config.get("title")
    if new:
        words = f"Challenge {title} has been created successfully and sent for review to EvalAI Admin."
        return Answer(201, {"Success": words})
    return Answer(200, {"Success": f"The challenge {title} has been updated successfully"})


def _check_bundle(call: Call, bundle: str, repository: str, *, saving: bool = True) -> None:
    refusal = call.services.bundles.refusal(bundle, repository, saving=saving)
    if refusal:
        raise Refusal(400, refusal)


@contextmanager
def _receive_bundle(call: Call) -> Iterator[tuple[str, str]]:
    """Give the bundle as a file of its own, and the repository it comes from."""
    upload, repository = call.files.get("zip_configuration"), str(call.data.get("GITHUB_REPOSITORY", "")).strip()
    if upload is None:
        raise Refusal(400, {"error": {"zip_configuration": ["No file was submitted."]}})
    if not repository:
        raise Refusal(400, "GITHUB_REPOSITORY is missing; EvalAI answers that with an error 500")
    with tempfile.TemporaryDirectory(
        prefix=PUSH_PREFIX, dir=call.services.store.folder, ignore_cleanup_errors=True
    ) as folder:
        path = os.path.join(folder, "challenge_config.zip")
        with open(path, "wb") as file:
            shutil.copyfileobj(upload.file, file)
        yield path, repository


@answers("GET", routes.REQUEST_APPROVAL)
def request_approval(call: Call) -> JsonObject:
    """Refuse unless each phase has a finished submission."""
    challenge = require_hosted(call, Refusal(403, "Sorry, you are not authorized to access this challenge."))
    idle = [
        phase.name
        for phase in call.services.store.phases(challenge.id)
        if not call.services.store.exists(Submission.phase_id == phase.id, Submission.status == FINISHED)
    ]
    if idle:
        raise Refusal(406, f"The following challenge phases do not have finished submissions: {', '.join(idle)}")
    return {"message": "Approval request sent!"}


@answers("GET", routes.WORKER_LOGS)
def worker_logs(call: Call) -> JsonObject:
    """Return the hosted worker's log."""
    words = "Sorry, you are not authorized for access worker operations."
    return {"logs": call.services.store.log_lines(require_hosted(call, Refusal(400, words)).id)}


@answers("GET", routes.AWS_CREDENTIALS)
def no_registry(_call: Call) -> None:
    """Refuse: images go to a registry of AWS, which a laptop is not."""
    words = "This rehearsal has no image registry: submit a JSON file with submitted_image_uri instead of a push."
    raise Refusal(400, words)
