"""Challenges, phases and splits: looked at by everybody, pushed by hosts."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from segjudge.bundle.opened_bundle import UPLOAD_BYTES
from segjudge.evalai import routes
from segjudge.evalai.jobs import FINISHED
from segjudge.rehearsal.accounts import PARTICIPANT
from segjudge.rehearsal.challenges import PUBLIC
from segjudge.rehearsal.submissions import Refusal
from segjudge.rehearsal.timestamps import seconds

from .call import Answer, Call, takes
from .teams import listed, may_push

#: As EvalAI words it, though it means: look at the number of your host team.
_NO_TEAM = "ChallengeHostTeam does not exist"
_PERIODS = ("all", "past", "present", "future")


def all_challenges(call: Call) -> dict[str, Any]:
    """By time: all, past, present or future."""
    period, now = call.path["time"].lower(), time.time()
    if period not in _PERIODS:
        raise Refusal(406, "Wrong url pattern!")
    rows = [_shown(call, row) for row in call.services.challenges.all()]
    if period != "all":
        rows = [row for row in rows if _period(row, now) == period]
    return listed(rows)


def _period(row: dict[str, Any], now: float) -> str:
    if seconds(row["end_date"]) < now:
        return "past"
    return "future" if seconds(row["start_date"]) > now else "present"


def challenge(call: Call) -> dict[str, Any]:
    """One of them."""
    return _shown(call, _held(call))


def _shown(call: Call, row: Any) -> dict[str, Any]:
    """A challenge; its script is for its hosts alone."""
    host = call.services.challenges.is_host(call.user, row["id"])
    return call.services.challenges.shown(row, call.base, host=host)


def _held(call: Call) -> Any:
    row = call.services.challenges.row(call.path["challenge"])
    if row is None:
        raise Refusal(404, {"detail": f"Challenge {call.path['challenge']} does not exist"})
    return row


def hosted_by(call: Call) -> dict[str, Any]:
    """The challenges of a host team of the caller's."""
    team = _host_team(call)
    rows = [row for row in call.services.challenges.all() if row["host_team"] == team]
    return listed([_shown(call, row) for row in rows])


def _host_team(call: Call) -> int:
    team = int(call.path["team"])
    if not call.services.store.row("SELECT 1 FROM teams WHERE id = ? AND kind = 'host'", team):
        raise Refusal(406, _NO_TEAM)
    if not call.services.accounts.is_member(call.known(), team):
        raise Refusal(401, "Sorry, you do not belong to this Host Team!")
    return team


def joined_by(call: Call) -> dict[str, Any]:
    """The challenges that a team of the caller's takes part in."""
    team = int(call.path["team"])
    if not call.services.accounts.is_member(call.known(), team):
        raise Refusal(403, "Sorry, you are not a member of this team")
    rows = call.services.store.rows(
        "SELECT challenges.* FROM challenges JOIN participants ON challenge_id = challenges.id WHERE team_id = ?", team
    )
    return listed([_shown(call, row) for row in rows])


def participate(call: Call) -> Answer:
    """Enter a challenge with a team; doing it twice changes nothing."""
    user, held, team = call.known(), _held(call), int(call.path["team"])
    if not call.services.accounts.is_member(user, team, PARTICIPANT):
        raise Refusal(403, "You are not a member of this participant team")
    other = call.services.challenges.team_of(user, held["id"])
    if other is not None and other["id"] != team:
        raise Refusal(406, f"Sorry, you are already participating in this challenge with team {other['team_name']}")
    with call.services.store.write() as db:
        db.execute("INSERT OR IGNORE INTO participants VALUES (?, ?)", (held["id"], team))
    return Answer(201, {})


# ── phases and splits ───────────────────────────────────────────────────────


def phases(call: Call) -> dict[str, Any]:
    """What the caller may see of them."""
    held = _held(call)
    host = call.services.challenges.is_host(call.user, held["id"])
    rows = call.services.challenges.phase_rows(held["id"], call.user)
    return listed([call.services.challenges.phase_shown(row, call.base, host=host) for row in rows])


def phase(call: Call) -> dict[str, Any]:
    """One phase of a challenge."""
    held = call.services.challenges.row(call.path["challenge"])
    if held is None:
        raise Refusal(406, "Challenge does not exist")
    number = call.path["phase"]
    row = next((one for one in call.services.challenges.phase_rows(held["id"], call.user) if one["id"] == number), None)
    if row is None:
        raise Refusal(406, f"Challenge phase {number} does not exist for challenge {held['id']}")
    host = call.services.challenges.is_host(call.user, held["id"])
    return call.services.challenges.phase_shown(row, call.base, host=host)


def phase_alone(call: Call) -> dict[str, Any]:
    """A phase by its number, or by its slug."""
    if "slug" in call.path:
        row = call.services.store.row("SELECT * FROM phases WHERE slug = ?", call.path["slug"])
    else:
        row = call.services.challenges.phase_row(call.path["phase"])
    told = call.path.get("slug", call.path.get("phase"))
    if row is None or not call.services.challenges.may_see_phase(call.user, row):
        raise Refusal(404, {"detail": f"ChallengePhase {told} does not exist"})
    return call.services.challenges.phase_shown(row, call.base, host=False)


def phases_of_host(call: Call) -> list[dict[str, Any]]:
    """All phases with the addresses of their truth."""
    held = hosted(call)
    rows = call.services.challenges.phase_rows(held["id"], call.user)
    return [call.services.challenges.phase_shown(row, call.base, host=True) for row in rows]


def hosted(call: Call, status: int = 401) -> Any:
    """The challenge, where the caller hosts it."""
    held = _held(call)
    if not call.services.challenges.is_host(call.known(), held["id"]):
        raise Refusal(status, "Sorry, you are not authorized to access this challenge.")
    return held


def phase_splits(call: Call) -> list[dict[str, Any]]:
    """Which splits are shown; those for hosts to hosts alone."""
    held = _held(call)
    host = call.services.challenges.is_host(call.user, held["id"])
    return [
        call.services.challenges.split_shown(split, row)
        for row in call.services.challenges.phase_rows(held["id"], call.user)
        for split in call.services.challenges.splits_of(row["id"])
        if host or split["visibility"] == PUBLIC
    ]


def _part(call: Call, table: str, key: str) -> Any:
    """A row that hosts alone see, by its number in the address."""
    row = call.services.store.row(f"SELECT * FROM {table} WHERE id = ?", int(call.path[key]))  # noqa: S608 - our tables
    if row is None or not call.services.challenges.is_host(call.known(), row["challenge_id"]):
        raise Refusal(404, "Not found.")
    return row


def phase_split(call: Call) -> dict[str, Any]:
    """A phase split with the numbers of what it joins."""
    row = call.services.store.row("SELECT * FROM phase_splits WHERE id = ?", int(call.path["split"]))
    phase = call.services.challenges.phase_row(row["phase_id"]) if row else None
    if row is None or phase is None or not call.services.challenges.is_host(call.known(), phase["challenge_id"]):
        raise Refusal(404, "Not found.")
    return {
        "id": row["id"],
        "challenge_phase": row["phase_id"],
        "dataset_split": row["split_id"],
        "leaderboard": row["leaderboard_id"],
        "visibility": row["visibility"],
        "leaderboard_decimal_precision": row["decimals"],
        "is_leaderboard_order_descending": bool(row["descending"]),
    }


def leaderboard_schema(call: Call) -> dict[str, Any]:
    """A leaderboard's labels, with its number in the YAML."""
    row = _part(call, "leaderboards", "leaderboard")
    return {"id": row["id"], "schema": json.loads(row["schema"]), "config_id": row["config_id"]}


def dataset_split(call: Call) -> dict[str, Any]:
    """A dataset split's names, with its number in the YAML."""
    row = _part(call, "splits", "split")
    return {key: row[key] for key in ("id", "name", "codename", "config_id")}


# ── what hosts do ───────────────────────────────────────────────────────────


def _may_push(call: Call) -> None:
    """Asked before a bundle is taken in."""
    _host_team(call)
    may_push(call)


@takes(bytes=UPLOAD_BYTES, files=3, first=_may_push)
def validate(call: Call) -> dict[str, str]:
    """What is wrong with a bundle."""
    with _uploaded(call) as (bundle, repository):
        _accepted(call, bundle, repository, saving=False)
    return {"Success": "The challenge config has been validated successfully"}


@takes(bytes=UPLOAD_BYTES, files=3, first=_may_push)
def create_or_update(call: Call) -> Answer:
    """A new challenge, or a new version of the one that the repository has."""
    team = int(call.path["team"])
    with _uploaded(call) as (bundle, repository):
        held = call.services.store.row("SELECT * FROM challenges WHERE repository = ?", repository)
        if held and not call.services.challenges.is_host(call.known(), held["id"]):
            words = "Sorry, you are not a host for this challenge. Please check your user access token"
            raise Refusal(403, words)
        _accepted(call, bundle, repository)
        try:
            number, new = call.services.intake.create_or_update(bundle, repository, team)
        except ValueError as error:
            raise Refusal(400, {"error": str(error), "error_message": ""}) from None
    title = _shown(call, call.services.challenges.row(number))["title"]
    if new:
        words = f"Challenge {title} has been created successfully and sent for review to EvalAI Admin."
        return Answer(201, {"Success": words})
    return Answer(200, {"Success": f"The challenge {title} has been updated successfully"})


def _accepted(call: Call, bundle: str, repository: str, *, saving: bool = True) -> None:
    refused = call.services.intake.refused(bundle, repository, saving=saving)
    if refused:
        raise Refusal(400, refused)


@contextmanager
def _uploaded(call: Call) -> Iterator[tuple[str, str]]:
    """The bundle in a file of its own, and the repository it comes from."""
    upload, repository = call.files.get("zip_configuration"), str(call.data.get("GITHUB_REPOSITORY", "")).strip()
    if upload is None:
        raise Refusal(400, {"error": {"zip_configuration": ["No file was submitted."]}})
    if not repository:
        raise Refusal(400, "GITHUB_REPOSITORY is missing; EvalAI answers that with an error 500")
    folder = tempfile.mkdtemp(dir=call.services.store.folder)
    try:
        path = os.path.join(folder, "challenge_config.zip")
        with open(path, "wb") as file:
            shutil.copyfileobj(upload.file, file)
        yield path, repository
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def request_approval(call: Call) -> Any:
    """Each phase needs a finished submission first."""
    held = hosted(call, 403)
    idle = [
        row
        for row in call.services.challenges.phase_rows(held["id"], call.user)
        if not call.services.store.row(
            "SELECT 1 FROM submissions WHERE phase_id = ? AND status = ?", row["id"], FINISHED
        )
    ]
    if idle:
        names = ", ".join(call.services.challenges.phase_shown(row, call.base, host=True)["name"] for row in idle)
        raise Refusal(406, f"The following challenge phases do not have finished submissions: {names}")
    return {"message": "Approval request sent!"}


def worker_logs(call: Call) -> dict[str, list[str]]:
    """What the hosted worker wrote."""
    held = _held(call)
    if not call.services.challenges.is_host(call.known(), held["id"]):
        raise Refusal(400, "Sorry, you are not authorized for access worker operations.")
    return {"logs": call.services.challenges.log_lines(held["id"])}


def no_registry(_call: Call) -> None:
    """Images go to a registry of AWS, which a laptop is not."""
    words = "This rehearsal has no image registry: submit a JSON file with submitted_image_uri instead of a push."
    raise Refusal(400, words)


CALLS = [
    ("GET", routes.CHALLENGE, challenge),
    ("GET", routes.CHALLENGES_OF_HOST, hosted_by),
    ("GET", routes.CHALLENGES_OF_PARTICIPANT, joined_by),
    ("POST", routes.PARTICIPATE, participate),
    ("GET", routes.PHASES, phases),
    ("GET", routes.PHASE, phase),
    ("GET", routes.PHASE_ALONE, phase_alone),
    ("GET", routes.PHASE_BY_SLUG, phase_alone),
    ("GET", routes.PHASES_OF_HOST, phases_of_host),
    ("GET", routes.PHASE_SPLITS, phase_splits),
    ("GET", routes.PHASE_SPLIT, phase_split),
    ("GET", routes.LEADERBOARD_SCHEMA, leaderboard_schema),
    ("GET", routes.DATASET_SPLIT, dataset_split),
    ("POST", routes.VALIDATE, validate),
    ("POST", routes.CREATE_OR_UPDATE, create_or_update),
    ("GET", routes.REQUEST_APPROVAL, request_approval),
    ("GET", routes.WORKER_LOGS, worker_logs),
    ("GET", routes.AWS_CREDENTIALS, no_registry),
    # Last: its three places would take the paths of others.
    ("GET", routes.CHALLENGES, all_challenges),
]
