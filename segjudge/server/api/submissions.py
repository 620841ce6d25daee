"""Submissions, at once or in parts, and leaderboards, as participants and hosts call for them."""

import math

from segjudge.platforms.evalai import routes
from segjudge.platforms.evalai.bundle.opened_bundle import UPLOAD_BYTES
from segjudge.server.actions.submitting import PhaseTarget, part_count
from segjudge.server.evalai_json import board_json
from segjudge.server.leaderboards import board_of
from segjudge.server.models import ChallengePhase, ChallengePhaseSplit
from segjudge.server.submissions import STATUSES
from segjudge.server.wire import JsonObject, Refusal, parse_moment

from .call import Answer, Call, answers
from .challenges import list_json


def _target(call: Call) -> PhaseTarget:
    return PhaseTarget(call.path["challenge"], call.path["phase"])


def _check_admitted(call: Call) -> None:
    """Refuse, before a file is uploaded, who may not submit."""
    call.services.submitting.admit(call.require_user(), _target(call))


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
    number = call.services.submitting.submit(call.require_user(), _target(call), call.data, upload.file, name)
    return Answer(201, call.submission(number))


@answers("GET", routes.SUBMISSIONS)
def own_submissions(call: Call) -> JsonObject:
    """Return the submissions of the caller's team to a phase."""
    user, (challenge, phase) = call.require_user(), call.services.submitting.resolve(_target(call))
    team = call.services.submitting.check_participates(user, challenge.id)
    rows = call.services.submissions.of_team(team.id, phase.id)
    return list_json([call.services.json.submission(row, call.base) for row in rows])


@answers("GET", routes.SUBMISSION)
def submission(call: Call) -> JsonObject:
    """Return a submission, to its team and the hosts."""
    user, row = call.require_user(), call.services.submissions.get(call.path["submission"])
    if not call.services.permissions.may_see_submission(user, row):
        raise Refusal(401, "Sorry, you are not authorized to access this submission.")
    return call.submission(row.id, host=call.services.permissions.hosts_submission(user, row))


@answers("GET", routes.SUBMISSIONS_OF_CHALLENGE)
def submissions_of_challenge(call: Call) -> list[JsonObject]:
    """Return every submission of a challenge, to hosts: the way to find those that are stuck."""
    challenge, status = call.path["challenge"], call.query.get("status", "")
    call.services.permissions.check_host(call.require_user(), challenge)
    if status and status not in STATUSES:
        raise Refusal(400, f"Invalid submission status {status}")
    try:
        after = parse_moment(call.query["submitted_after"]) if call.query.get("submitted_after") else 0.0
        before = parse_moment(call.query["submitted_before"]) if call.query.get("submitted_before") else math.inf
    except ValueError as error:
        raise Refusal(400, str(error)) from None
    rows = call.services.submissions.of_challenge(challenge, status, (after, before))
    return [call.services.json.submission(row, call.base, host=True) for row in rows]


@answers("GET", routes.LEADERBOARD)
def leaderboard(call: Call) -> JsonObject:
    """Return the best row of each team."""
    number = call.path["split"]
    split = call.services.store.require(ChallengePhaseSplit, number)
    phase = call.services.store.require(ChallengePhase, split.phase_id)
    if not call.services.permissions.may_see_board(call.user, phase, split):
        raise Refusal(400, "Sorry, the leaderboard is not public!")
    board = board_of(call.services.store, phase, split, call.query.get("order_by", ""))
    return list_json(board_json(board, number))


# ── what hosts change ───────────────────────────────────────────────────────


@answers("POST", routes.SUBMISSION_RERUN)
def rerun(call: Call) -> JsonObject:
    """Send the same file as a new submission."""
    call.services.hosting.rerun(call.require_user(), call.path["submission"])
    return {"success": "Submission is successfully submitted for re-running"}


@answers("POST", routes.SUBMISSION_RESUME)
def resume(call: Call) -> JsonObject:
    """Send the same submission once more."""
    call.services.hosting.resume(call.require_user(), call.path["submission"])
    return {"success": "Submission is successfully resumed"}


@answers("PATCH", routes.SUBMISSION_META)
def update_meta(call: Call) -> JsonObject:
    """Change fields of a submission; a status too, which is how it is cancelled."""
    number = call.path["submission"]
    host = call.services.hosting.edit(call.require_user(), call.path["challenge"], number, call.data)
    return call.submission(number, host=host)


@answers("PATCH", routes.LEADERBOARD_DATA)
def leaderboard_data(call: Call) -> JsonObject:
    """Edit the scores of a leaderboard's row."""
    number = call.path["row"]
    values = call.services.hosting.edit_scores(call.require_user(), number, call.data.get("leaderboard_data"))
    return {"id": number, "result": values}


@answers("GET", routes.SUBMISSION_FILES)
def files(call: Call) -> None:
    """Refuse to sign a file in a bucket: a laptop has none."""
    call.require_user()
    if not call.query.get("key") or not call.query.get("bucket"):
        raise Refusal(400, "key and bucket names can't be empty")
    raise Refusal(403, "This rehearsal keeps no files in buckets: use the addresses that the submission shows.")


@answers("POST", routes.UPLOAD_URLS)
def start_upload(call: Call) -> Answer:
    """Create a submission whose file comes in parts."""
    number, upload = call.services.uploading.start(call.require_user(), call.path["phase"], call.data)
    return Answer(201, {**_part_urls(call, upload), "submission_pk": number})


@answers("POST", routes.UPLOAD_FINISHED)
def finish_upload(call: Call) -> Answer:
    """Join the parts of a submission's file."""
    number = call.path["submission"]
    call.services.uploading.finish(call.require_user(), call.path["phase"], number, *_upload_parts(call))
    return Answer(201, {"upload_id": call.data.get("upload_id"), "submission_pk": number})


@answers("POST", routes.UPLOAD_SEND)
def send_upload(call: Call) -> JsonObject:
    """Put the submission into the queue."""
    call.services.uploading.send(call.require_user(), call.path["phase"], call.path["submission"])
    return {}


@answers("POST", routes.ANNOTATION_URLS)
def start_annotation(call: Call) -> JsonObject:
    """Let a truth come in parts."""
    return _part_urls(
        call, call.services.uploading.start_annotation(call.require_user(), call.path["phase"], call.data)
    )


@answers("POST", routes.ANNOTATION_FINISHED)
def finish_annotation(call: Call) -> Answer:
    """Join the parts of a truth, which from now on a push does not change."""
    phase = call.path["phase"]
    call.services.uploading.finish_annotation(call.require_user(), phase, *_upload_parts(call))
    return Answer(201, {"upload_id": call.data.get("upload_id"), "challenge_phase_pk": phase})


def _part_urls(call: Call, upload: str) -> JsonObject:
    numbers, files = range(1, part_count(call.data) + 1), call.services.files
    urls = [{"partNumber": number, "url": files.part_url(upload, number, call.base)} for number in numbers]
    return {"presigned_urls": urls, "upload_id": upload}


def _upload_parts(call: Call) -> tuple[str, object]:
    """Return the upload's id, and what the client says of its parts."""
    return str(call.data.get("upload_id", "")), call.data.get("parts")
