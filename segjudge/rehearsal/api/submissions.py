"""Submissions and leaderboards, as participants and hosts call for them."""

from __future__ import annotations

import json
import math
import secrets
from typing import Any

from segjudge.bundle.field_values import FALSE, TRUE
from segjudge.bundle.opened_bundle import UPLOAD_BYTES
from segjudge.evalai import routes
from segjudge.evalai.jobs import CANCELLED, PLACEHOLDER
from segjudge.rehearsal import leaderboards
from segjudge.rehearsal.submissions import OPEN, STATUSES, Refusal, clean
from segjudge.rehearsal.timestamps import seconds

from .call import Answer, Call, takes
from .teams import listed, may_push

#: Attributes that hosts may change afterwards.
_META = ("status", "is_flagged", "is_public", "is_baseline", "method_name", "method_description")


def _admitted(call: Call) -> None:
    call.services.submissions.admitted(call.known(), call.path["challenge"], call.path["phase"])


@takes(bytes=UPLOAD_BYTES, files=3, first=_admitted)
def submit(call: Call) -> Answer:
    """A file, or the address of an image."""
    user, challenge, phase = call.known(), call.path["challenge"], call.path["phase"]
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
    image = call.services.submissions.image_of(challenge, upload.file)
    file = call.services.store.keep(upload.file, upload.filename or "submission", "input_file")
    number = call.services.submissions.send(user, (challenge, phase), call.data, file, image)
    return Answer(201, call.services.submissions.shown(call.services.submissions.row(number), call.base))


def mine(call: Call) -> dict[str, Any]:
    """The caller's team's submissions to a phase."""
    user, challenge = call.known(), call.path["challenge"]
    team = call.services.challenges.team_of(user, challenge)
    if team is None:
        raise Refusal(403, "You haven't participated in the challenge")
    rows = call.services.submissions.of_team(team["id"], call.path["phase"])
    return listed([call.services.submissions.shown(row, call.base) for row in rows])


def one(call: Call) -> dict[str, Any]:
    """One submission, for its team and the hosts."""
    user, row = call.known(), call.services.submissions.row(call.path["submission"])
    if not call.services.submissions.may_see(user, row):
        raise Refusal(401, "Sorry, you are not authorized to access this submission.")
    return _shown(call, row)


def _shown(call: Call, row: Any) -> dict[str, Any]:
    challenge = call.services.submissions.challenge_of(row)["id"]
    host = call.services.challenges.is_host(call.user, challenge)
    return call.services.submissions.shown(row, call.base, host=host)


def of_challenge(call: Call) -> list[dict[str, Any]]:
    """Every submission of a challenge, for hosts: the way to find those that are stuck."""
    challenge, status = call.path["challenge"], call.query.get("status", "")
    if not call.services.challenges.is_host(call.known(), challenge):
        raise Refusal(403, "Sorry, you are not authorized to make this request!")
    if status and status not in STATUSES:
        raise Refusal(400, f"Invalid submission status {status}")
    try:
        after = seconds(call.query["submitted_after"]) if call.query.get("submitted_after") else 0.0
        before = seconds(call.query["submitted_before"]) if call.query.get("submitted_before") else math.inf
    except ValueError as error:
        raise Refusal(400, str(error)) from None
    rows = call.services.submissions.of_challenge(challenge, status, after, before)
    return [call.services.submissions.shown(row, call.base, host=True) for row in rows]


def leaderboard(call: Call) -> dict[str, Any]:
    """The best row of each team."""
    number = call.path["split"]
    row = call.services.store.row("SELECT * FROM phase_splits WHERE id = ?", number)
    if row is None:
        raise Refusal(404, {"detail": f"ChallengePhaseSplit {number} does not exist"})
    phase = call.services.challenges.phase_row(row["phase_id"])
    if not call.services.challenges.may_see_board(call.user, phase, row):
        raise Refusal(400, "Sorry, the leaderboard is not public!")
    shown = board_of(call, phase, number, call.query.get("order_by", ""))
    return listed(leaderboards.as_api(shown, number))


def board_of(call: Call, phase: Any, split: int, order: str) -> leaderboards.Board:
    """A leaderboard of a phase."""
    return leaderboards.board_of(call.services.store, call.services.challenges, phase, split, order)


# ── large uploads ───────────────────────────────────────────────────────────


def upload_urls(call: Call) -> Answer:
    """A submission whose file comes in parts; until then it has a placeholder."""
    phase = _phase(call)
    user = call.known()
    chunks = _chunks(call)
    file = call.services.store.keep(PLACEHOLDER, str(call.data.get("file_name") or "submission"), "input_file")
    try:
        number = call.services.submissions.create(user, phase["challenge_id"], phase["id"], call.data, file)
    except Refusal:
        call.services.store.drop(file)
        raise
    upload, urls = _upload(call, phase["id"], number, chunks)
    return Answer(201, {"presigned_urls": urls, "upload_id": upload, "submission_pk": number})


def _phase(call: Call) -> Any:
    row = call.services.challenges.phase_row(call.path["phase"])
    if row is None or not call.services.challenges.may_see_phase(call.user, row):
        raise Refusal(404, {"detail": f"ChallengePhase {call.path['phase']} does not exist"})
    return row


def _chunks(call: Call) -> int:
    told = str(call.data.get("num_file_chunks", ""))
    if not told.isdecimal() or not 1 <= int(told) <= 10_000:
        raise Refusal(400, "num_file_chunks must be a number from 1 to 10000")
    return int(told)


def _upload(call: Call, phase: int, submission: int | None, chunks: int) -> tuple[str, list[dict[str, Any]]]:
    upload = secrets.token_hex(16)
    with call.services.store.write() as db:
        name = str(call.data.get("file_name") or "file")[:200]
        values = (upload, phase, submission, call.known().id, name)
        db.execute("INSERT INTO uploads VALUES (?, ?, ?, ?, ?)", values)
        db.executemany("INSERT INTO parts (upload_id, number) VALUES (?, ?)", [(upload, k + 1) for k in range(chunks)])
    urls = [{"partNumber": k + 1, "url": call.services.links.part(upload, k + 1, call.base)} for k in range(chunks)]
    return upload, urls


def upload_finished(call: Call) -> Answer:
    """Join the parts."""
    number = call.path["submission"]
    call.services.submissions.opened(_phase(call)["challenge_id"], call.path["phase"])
    file = _joined(call, number)
    old = call.services.submissions.row(number)["input_file"]
    call.services.submissions.update(number, input_file=file)
    call.services.store.drop(old)
    return Answer(201, {"upload_id": call.data.get("upload_id"), "submission_pk": number})


def _joined(call: Call, submission: int | None) -> str:
    held = call.services.store.row("SELECT * FROM uploads WHERE id = ?", str(call.data.get("upload_id", "")))
    mine = held is not None and held["user_id"] == call.known().id and held["phase_id"] == call.path["phase"]
    if held is None or not mine or held["submission_id"] != submission:
        raise Refusal(403, "Sorry, this upload is not yours")
    parts = call.services.store.rows("SELECT * FROM parts WHERE upload_id = ? ORDER BY number", held["id"])
    told = call.data.get("parts")
    try:
        tags = {int(one["PartNumber"]): str(one["ETag"]).strip('"') for one in _loaded(told)}
    except (TypeError, ValueError, KeyError):
        raise Refusal(400, "parts must be a list of PartNumber and ETag") from None
    if any(part["file"] is None or tags.get(part["number"]) != part["etag"] for part in parts):
        raise Refusal(400, "One or more of the specified parts could not be found")
    file = call.services.store.joined([part["file"] for part in parts], held["name"])
    with call.services.store.write() as db:
        db.execute("DELETE FROM parts WHERE upload_id = ?", (held["id"],))
        db.execute("DELETE FROM uploads WHERE id = ?", (held["id"],))
    return file


def _loaded(told: Any) -> Any:
    return json.loads(told) if isinstance(told, str) else told


def upload_sent(call: Call) -> dict[str, Any]:
    """Only now the workers hear of it, whether or not the file came."""
    row = call.services.submissions.row(call.path["submission"])
    if not call.services.submissions.may_see(call.known(), row) or row["phase_id"] != call.path["phase"]:
        raise Refusal(403, "Sorry, this submission is not yours")
    call.services.submissions.opened(_phase(call)["challenge_id"], call.path["phase"])
    with call.services.store.write():
        # EvalAI takes it again and again, and would score it as often.
        sent = any(one.get("submission_pk") == row["id"] for one in call.services.queue.waiting(_queue(call)))
        if sent or call.services.submissions.row(row["id"])["status"] != "submitted":
            raise Refusal(400, "This submission was sent already.")
        call.services.submissions.enqueue(row["id"])
    return {}


def _queue(call: Call) -> str:
    return str(call.services.challenges.row(_phase(call)["challenge_id"])["queue"])


def annotation_urls(call: Call) -> dict[str, Any]:
    """The same for a truth, by a host."""
    may_push(call)
    phase = _phase(call)
    _host(call, phase["challenge_id"])
    upload, urls = _upload(call, phase["id"], None, _chunks(call))
    return {"presigned_urls": urls, "upload_id": upload}


def annotation_finished(call: Call) -> Answer:
    """From now on a push does not change this phase's truth."""
    may_push(call)
    phase = _phase(call)
    _host(call, phase["challenge_id"])
    file = _joined(call, None)
    with call.services.store.write() as db:
        db.execute("UPDATE phases SET annotation = ?, by_client = 1 WHERE id = ?", (file, phase["id"]))
        db.execute("UPDATE challenges SET version = version + 1 WHERE id = ?", (phase["challenge_id"],))
    return Answer(201, {"upload_id": call.data.get("upload_id"), "challenge_phase_pk": phase["id"]})


def _host(call: Call, challenge: int) -> None:
    if not call.services.challenges.is_host(call.known(), challenge):
        raise Refusal(403, "Sorry, you are not authorized to make this request!")


# ── what hosts change ───────────────────────────────────────────────────────


def rerun(call: Call) -> dict[str, str]:
    """The same file as a new submission."""
    row = call.services.submissions.row(call.path["submission"])
    _host(call, call.services.submissions.challenge_of(row)["id"])
    call.services.submissions.rerun(row["id"])
    return {"success": "Submission is successfully submitted for re-running"}


def resume(call: Call) -> dict[str, str]:
    """The same submission once more."""
    row = call.services.submissions.row(call.path["submission"])
    _host(call, call.services.submissions.challenge_of(row)["id"])
    call.services.submissions.resume(row["id"])
    return {"success": "Submission is successfully resumed"}


def update_meta(call: Call) -> dict[str, Any]:
    """Fields of a submission; a status too, which is how one is cancelled."""
    row = call.services.submissions.row(call.path["submission"])
    user = call.known()
    challenge = call.services.submissions.challenge_of(row)["id"]
    if challenge != call.path["challenge"] or not call.services.submissions.may_see(user, row):
        raise Refusal(403, "Sorry, you are not authorized to make this request!")
    changes = {key: call.data[key] for key in _META if key in call.data}
    host = call.services.challenges.is_host(user, challenge)
    if not host and (set(changes) - {"status", "is_public", "method_name", "method_description"}):
        raise Refusal(403, "Sorry, you are not authorized to make this request!")
    if changes.get("status", CANCELLED) not in (STATUSES if host else (CANCELLED,)):
        raise Refusal(400, {"status": [f'"{changes["status"]}" is not a valid choice.']})
    plain = {key: _plain(key, value) for key, value in changes.items()}
    with call.services.submissions.together():
        row = call.services.submissions.row(row["id"])
        if not host and "status" in changes and row["status"] not in OPEN:
            raise Refusal(403, f"Submission {row['id']} is {row['status']} already.")
        if plain:
            call.services.submissions.update(row["id"], **plain)
    return _shown(call, call.services.submissions.row(row["id"]))


def _plain(key: str, value: Any) -> Any:
    if not key.startswith("is_"):
        return clean(value)
    if value not in (*TRUE, *FALSE):
        raise Refusal(400, {key: ["Must be a valid boolean."]})
    return value in TRUE


def leaderboard_data(call: Call) -> dict[str, Any]:
    """Edit a row: all labels, and numbers."""
    number = call.path["row"]
    row = call.services.store.row("SELECT * FROM results WHERE id = ?", number)
    if row is None:
        raise Refusal(404, "Leaderboard data does not exist")
    submission = call.services.submissions.row(row["submission_id"])
    _host(call, call.services.submissions.challenge_of(submission)["id"])
    splits = call.services.challenges.splits_of(submission["phase_id"])
    labels = next(json.loads(one["schema"])["labels"] for one in splits if one["id"] == row["phase_split_id"])
    try:
        values = _loaded(call.data.get("leaderboard_data"))
    except ValueError:
        values = None
    if not isinstance(values, dict) or set(values) != set(labels) or not all(_is_number(v) for v in values.values()):
        raise Refusal(400, "leaderboard_data must hold a number for each label, and no other")
    with call.services.store.write() as db:
        db.execute("UPDATE results SET result = ? WHERE id = ?", (json.dumps(values), number))
    return {"id": number, "result": values}


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def files(call: Call) -> dict[str, Any]:
    """An address for a file in a bucket, which a laptop has not."""
    call.known()
    if not call.query.get("key") or not call.query.get("bucket"):
        raise Refusal(400, "key and bucket names can't be empty")
    raise Refusal(403, "This rehearsal keeps no files in buckets: use the addresses that the submission shows.")


CALLS = [
    ("GET", routes.SUBMISSIONS, mine),
    ("POST", routes.SUBMISSIONS, submit),
    ("GET", routes.SUBMISSIONS_OF_CHALLENGE, of_challenge),
    ("GET", routes.SUBMISSION, one),
    ("GET", routes.LEADERBOARD, leaderboard),
    ("POST", routes.UPLOAD_URLS, upload_urls),
    ("POST", routes.UPLOAD_FINISHED, upload_finished),
    ("POST", routes.UPLOAD_SEND, upload_sent),
    ("POST", routes.ANNOTATION_URLS, annotation_urls),
    ("POST", routes.ANNOTATION_FINISHED, annotation_finished),
    ("POST", routes.SUBMISSION_RERUN, rerun),
    ("POST", routes.SUBMISSION_RESUME, resume),
    ("PATCH", routes.SUBMISSION_META, update_meta),
    ("PATCH", routes.LEADERBOARD_DATA, leaderboard_data),
    ("GET", routes.SUBMISSION_FILES, files),
]
