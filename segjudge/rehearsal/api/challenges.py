"""Challenges, phases and splits, as everybody reads them."""

import time

from segjudge.evalai import routes
from segjudge.rehearsal.column_types import JsonObject
from segjudge.rehearsal.evalai_json import phase_split_json
from segjudge.rehearsal.models import (
    Challenge,
    ChallengePhase,
    ChallengePhaseSplit,
    DatasetSplit,
    Leaderboard,
    Participation,
)
from segjudge.rehearsal.refusal import Refusal
from segjudge.rehearsal.timestamps import seconds

from .call import Answer, Call, answers
from .teams import listed

_PERIODS = ("all", "past", "present", "future")


@answers("GET", routes.CHALLENGES)
def all_challenges(call: Call) -> JsonObject:
    """Return the challenges of a time: all, past, present or future."""
    period, now = call.path["time"].lower(), time.time()
    if period not in _PERIODS:
        raise Refusal(406, "Wrong url pattern!")
    shown = [challenge_json(call, challenge) for challenge in call.services.challenges.all()]
    return listed([challenge for challenge in shown if period in ("all", _period(challenge, now))])


def _period(challenge: JsonObject, now: float) -> str:
    if seconds(challenge["end_date"]) < now:
        return "past"
    return "future" if seconds(challenge["start_date"]) > now else "present"


@answers("GET", routes.CHALLENGE)
def one_challenge(call: Call) -> JsonObject:
    """Return a challenge."""
    return challenge_json(call, named_challenge(call))


def challenge_json(call: Call, challenge: Challenge) -> JsonObject:
    """Return a challenge as the caller sees it: its script is for its hosts alone."""
    host = call.services.permissions.is_host(call.user, challenge.id)
    return call.services.json.challenge(challenge, call.base, host=host)


def named_challenge(call: Call) -> Challenge:
    """Return the challenge of the address; refuses where there is none."""
    challenge = call.services.challenges.get(call.path["challenge"])
    if challenge is None:
        raise Refusal(404, {"detail": f"Challenge {call.path['challenge']} does not exist"})
    return challenge


def hosted_challenge(call: Call, refusal: Refusal) -> Challenge:
    """Return the challenge of the address; refuses a caller who does not host it."""
    challenge = named_challenge(call)
    call.services.permissions.check_host(call.known(), challenge.id, refusal)
    return challenge


@answers("GET", routes.CHALLENGES_OF_HOST)
def hosted_by(call: Call) -> JsonObject:
    """Return the challenges of a host team of the caller's."""
    team = int(call.path["team"])
    call.services.permissions.check_team(call.known(), team)
    rows = call.services.store.find(Challenge, Challenge.host_team == team)
    return listed([challenge_json(call, row) for row in rows])


@answers("GET", routes.CHALLENGES_OF_PARTICIPANT)
def joined_by(call: Call) -> JsonObject:
    """Return the challenges that a team of the caller's takes part in."""
    team = int(call.path["team"])
    if not call.services.accounts.is_member(call.known(), team):
        raise Refusal(403, "Sorry, you are not a member of this team")
    rows = call.services.store.find(
        Challenge, Challenge.id == Participation.challenge_id, Participation.team_id == team
    )
    return listed([challenge_json(call, row) for row in rows])


@answers("POST", routes.PARTICIPATE)
def participate(call: Call) -> Answer:
    """Enter a challenge with a team."""
    user, challenge = call.known(), named_challenge(call)
    call.services.submitting.participate(user, challenge.id, int(call.path["team"]))
    return Answer(201, {})


# ── phases and splits ───────────────────────────────────────────────────────


@answers("GET", routes.PHASES)
def phases(call: Call) -> JsonObject:
    """Return the phases that the caller may see."""
    challenge = named_challenge(call)
    host = call.services.permissions.is_host(call.user, challenge.id)
    rows = call.services.permissions.visible_phases(call.user, challenge.id)
    return listed([call.services.json.phase(row, call.base, host=host) for row in rows])


@answers("GET", routes.PHASE)
def one_phase(call: Call) -> JsonObject:
    """Return a phase of a challenge."""
    challenge, number = call.path["challenge"], call.path["phase"]
    if call.services.challenges.get(challenge) is None:
        raise Refusal(406, "Challenge does not exist")
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
        phase = call.services.store.first(ChallengePhase, ChallengePhase.slug == call.path["slug"])
    else:
        phase = call.services.challenges.phase(call.path["phase"])
    if phase is None or not call.services.permissions.may_see_phase(call.user, phase):
        name = call.path.get("slug", call.path.get("phase"))
        raise Refusal(404, {"detail": f"ChallengePhase {name} does not exist"})
    return call.services.json.phase(phase, call.base, host=False)


@answers("GET", routes.PHASES_OF_HOST)
def phases_of_host(call: Call) -> list[JsonObject]:
    """Return all phases with the addresses of their truth, to a host."""
    challenge = hosted_challenge(call, Refusal(401, "Sorry, you are not authorized to access this challenge."))
    return [
        call.services.json.phase(row, call.base, host=True) for row in call.services.challenges.phases(challenge.id)
    ]


@answers("GET", routes.PHASE_SPLITS)
def phase_splits(call: Call) -> list[JsonObject]:
    """Return the splits that the caller may see."""
    permissions, challenge = call.services.permissions, named_challenge(call)
    return [
        phase_split_json(split, phase)
        for phase in permissions.visible_phases(call.user, challenge.id)
        for split in permissions.visible_splits(call.user, phase)
    ]


@answers("GET", routes.PHASE_SPLIT)
def phase_split(call: Call) -> JsonObject:
    """Return a phase split with the numbers of what it joins, to a host."""
    split = call.services.store.get(ChallengePhaseSplit, int(call.path["split"]))
    if split is None or not call.services.permissions.is_host(call.known(), split.dataset_split.challenge_id):
        raise Refusal(404, "Not found.")
    return {
        "id": split.id,
        "challenge_phase": split.phase_id,
        "dataset_split": split.split_id,
        "leaderboard": split.leaderboard_id,
        "visibility": split.visibility,
        "leaderboard_decimal_precision": split.decimals,
        "is_leaderboard_order_descending": split.descending,
    }


@answers("GET", routes.LEADERBOARD_SCHEMA)
def leaderboard_schema(call: Call) -> JsonObject:
    """Return a leaderboard's labels, with its number in the YAML, to a host."""
    board = call.services.store.get(Leaderboard, int(call.path["leaderboard"]))
    if board is None or not call.services.permissions.is_host(call.known(), board.challenge_id):
        raise Refusal(404, "Not found.")
    return {"id": board.id, "schema": board.schema, "config_id": board.config_id}


@answers("GET", routes.DATASET_SPLIT)
def dataset_split(call: Call) -> JsonObject:
    """Return a dataset split's names, with its number in the YAML, to a host."""
    split = call.services.store.get(DatasetSplit, int(call.path["split"]))
    if split is None or not call.services.permissions.is_host(call.known(), split.challenge_id):
        raise Refusal(404, "Not found.")
    return {"id": split.id, "name": split.name, "codename": split.codename, "config_id": split.config_id}
