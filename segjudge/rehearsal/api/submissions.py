"""Submissions and leaderboards, as participants and hosts call for them."""

import json
import math
import time

from segjudge.bundle.field_values import FALSE, TRUE
from segjudge.bundle.opened_bundle import UPLOAD_BYTES
from segjudge.evalai import routes
from segjudge.evalai.jobs import CANCELLED, FAILED
from segjudge.evalai.result_shapes import is_number
from segjudge.rehearsal.actions.submitting import PhaseTarget, clean
from segjudge.rehearsal.evalai_json import board_json
from segjudge.rehearsal.leaderboards import board_of
from segjudge.rehearsal.models import ChallengePhase, ChallengePhaseSplit, LeaderboardData
from segjudge.rehearsal.refusal import NOT_AUTHORIZED, JsonObject, Refusal
from segjudge.rehearsal.submissions import STATUSES
from segjudge.rehearsal.timestamps import seconds

from .call import Answer, Call, answers
from .challenges import listed

_HOST_FIELDS = ("status", "is_flagged", "is_public", "is_baseline", "method_name", "method_description")
_TEAM_FIELDS = frozenset({"status", "is_public", "method_name", "method_description"})


def _target(call: Call) -> PhaseTarget:
    return PhaseTarget(call.path["challenge"], call.path["phase"])


def _check_admitted(call: Call) -> None:
    """Refuse, before a file is uploaded, who may not submit."""
    call.services.submitting.admit(call.known(), _target(call))


@answers("POST", routes.SUBMISSIONS, bytes=UPLOAD_BYTES, files=3, first=_check_admitted)
def submit(call: Call) -> Answer:
    """Submit a file, or the address of an image."""
    upload = call.files.get("input_file")
    if call.data.get("file_url"):
        words = (
            "A rehearsal fetches nothing from elsewhere: upload the file itself. EvalAI itself would fetch file_url."
        )
        raise Refusal(400, words)
    if upload is None:
        raise Refusal(406, {"input_file": ["No file was submitted."]})
    if not upload.size:
        raise Refusal(406, {"input_file": ["The submitted file is empty."]})
    name = upload.filename or "submission"
    number = call.services.submitting.submit(call.known(), _target(call), call.data, upload.file, name)
    return Answer(201, call.submission(number))


@answers("GET", routes.SUBMISSIONS)
def own_submissions(call: Call) -> JsonObject:
    """Return the submissions of the caller's team to a phase."""
    team = call.services.submitting.check_participates(call.known(), call.path["challenge"])
    rows = call.services.submissions.of_team(team.id, call.path["phase"])
    return listed([call.services.json.submission(row, call.base) for row in rows])


@answers("GET", routes.SUBMISSION)
def one_submission(call: Call) -> JsonObject:
    """Return a submission, to its team and the hosts."""
    user, row = call.known(), call.services.submissions.get(call.path["submission"])
    if not call.services.permissions.may_see_submission(user, row):
        raise Refusal(401, "Sorry, you are not authorized to access this submission.")
    return call.submission(row.id, host=call.services.permissions.hosts_submission(user, row))


@answers("GET", routes.SUBMISSIONS_OF_CHALLENGE)
def of_challenge(call: Call) -> list[JsonObject]:
    """Return every submission of a challenge, to hosts: the way to find those that are stuck."""
    challenge, status = call.path["challenge"], call.query.get("status", "")
    call.services.permissions.check_host(call.known(), challenge)
    if status and status not in STATUSES:
        raise Refusal(400, f"Invalid submission status {status}")
    try:
        after = seconds(call.query["submitted_after"]) if call.query.get("submitted_after") else 0.0
        before = seconds(call.query["submitted_before"]) if call.query.get("submitted_before") else math.inf
    except ValueError as error:
        raise Refusal(400, str(error)) from None
    rows = call.services.submissions.of_challenge(challenge, status, (after, before))
    return [call.services.json.submission(row, call.base, host=True) for row in rows]


@answers("GET", routes.LEADERBOARD)
def leaderboard(call: Call) -> JsonObject:
    """Return the best row of each team."""
    number = call.path["split"]
    split = call.services.store.one(ChallengePhaseSplit, number)
    phase = call.services.store.one(ChallengePhase, split.phase_id)
    if not call.services.permissions.may_see_board(call.user, phase, split):
        raise Refusal(400, "Sorry, the leaderboard is not public!")
    board = board_of(call.services.store, phase, split, call.query.get("order_by", ""))
    return listed(board_json(board, number))


# ── what hosts change ───────────────────────────────────────────────────────


@answers("POST", routes.SUBMISSION_RERUN)
def rerun(call: Call) -> JsonObject:
    """Send the same file as a new submission."""
    call.services.submitting.rerun(call.known(), call.path["submission"])
    return {"success": "Submission is successfully submitted for re-running"}


@answers("POST", routes.SUBMISSION_RESUME)
def resume(call: Call) -> JsonObject:
    """Send a failed submission once more, where the challenge is remote and allows it."""
    services, number = call.services, call.path["submission"]
    row = services.submitting.hosted(call.known(), number)
    challenge = services.submissions.challenge_of(row)
    if not challenge.flag("remote_evaluation") or not challenge.flag("allow_resuming_submissions"):
        raise Refusal(406, "Challenge does not allow resuming submissions")
    if row.status != FAILED:
        raise Refusal(400, "Only failed submissions can be resumed")
    with services.store.write():
        services.submissions.update(number, status="resuming", rerun_resumed_at=time.time(), deaths=0)
        services.submissions.enqueue(number)
    return {"success": "Submission is successfully resumed"}


@answers("PATCH", routes.SUBMISSION_META)
def update_meta(call: Call) -> JsonObject:
    """Change fields of a submission; its team may cancel it by its status, hosts may set any."""
    services, user, number, challenge = call.services, call.known(), call.path["submission"], call.path["challenge"]
    row = services.submissions.get(number)
    ours = services.submissions.phase_of(row).challenge_id == challenge
    if not ours or not services.permissions.may_see_submission(user, row):
        raise Refusal(403, NOT_AUTHORIZED)
    changes = {key: call.data[key] for key in _HOST_FIELDS if key in call.data}
    host = services.permissions.is_host(user, challenge)
    if not host and set(changes) - _TEAM_FIELDS:
        raise Refusal(403, NOT_AUTHORIZED)
    if changes.get("status", CANCELLED) not in (STATUSES if host else (CANCELLED,)):
        raise Refusal(400, {"status": [f'"{changes["status"]}" is not a valid choice.']})
    values = {key: _column_value(key, value) for key, value in changes.items()}
    with services.store.write():
        if not host and "status" in changes:
            services.submitting.check_unfinished(number, 403)
        services.submissions.update(number, **values)
    return call.submission(number, host=host)


def _column_value(key: str, value: object) -> object:
    if not key.startswith("is_"):
        return clean(value)
    if value not in (*TRUE, *FALSE):
        raise Refusal(400, {key: ["Must be a valid boolean."]})
    return value in TRUE


@answers("PATCH", routes.LEADERBOARD_DATA)
def leaderboard_data(call: Call) -> JsonObject:
    """Replace the scores of a leaderboard's row: a number for each label."""
    services, number, sent = call.services, call.path["row"], call.data.get("leaderboard_data")
    missing = Refusal(404, "Leaderboard data does not exist")
    data = services.store.one(LeaderboardData, number, missing)
    services.submitting.hosted(call.known(), data.submission_id)
    labels = services.store.one(ChallengePhaseSplit, data.phase_split_id).labels
    try:
        values = json.loads(sent) if isinstance(sent, str) else sent
    except ValueError:
        values = None
    if not isinstance(values, dict) or set(values) != set(labels) or not all(map(is_number, values.values())):
        raise Refusal(400, "leaderboard_data must hold a number for each label, and no other")
    with services.store.write():
        services.store.one(LeaderboardData, number).result = values
    return {"id": number, "result": values}


@answers("GET", routes.SUBMISSION_FILES)
def files(call: Call) -> None:
    """Refuse to sign a file in a bucket: a laptop has none."""
    call.known()
    if not call.query.get("key") or not call.query.get("bucket"):
        raise Refusal(400, "key and bucket names can't be empty")
    raise Refusal(403, "This rehearsal keeps no files in buckets: use the addresses that the submission shows.")
