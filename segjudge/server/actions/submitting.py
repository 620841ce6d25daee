"""Taking part and submitting, at once or in parts, with EvalAI's checks in its order and words."""

import json
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, NamedTuple

from segjudge.platforms.evalai.rows import CANCELLED, FAILED, PLACEHOLDER
from segjudge.platforms.rules.fields import TRUE
from segjudge.server.accounts import PARTICIPANT
from segjudge.server.evalai_json import TEXT_FIELDS
from segjudge.server.models import (
    Challenge,
    ChallengePhase,
    MultipartUpload,
    Participation,
    Submission,
    Team,
    UploadPart,
    User,
)
from segjudge.server.services import Services
from segjudge.server.submissions import OPEN, SUBMITTED
from segjudge.server.wire import JsonObject, Refusal, make_storable, period_start

_LONGEST_ANSWERS = 1 << 16
#: The maximum bytes of a file that names an image.
_IMAGE_BYTES = 1 << 16
#: Limit of a phase -> its period, and EvalAI's message when it is reached.
_LIMITS = {
    "max_submissions": ("", "The maximum number of submissions has been reached"),
    "max_submissions_per_month": ("month", "The maximum number of submission for this month has been reached"),
    "max_submissions_per_day": ("day", "The maximum number of submission for today has been reached"),
}


class PhaseTarget(NamedTuple):
    """The target of a submission: the numbers of a challenge and a phase."""

    challenge: int
    phase: int


# ── rules ───────────────────────────────────────────────────────────────────


def require_target(services: Services, target: PhaseTarget) -> tuple[Challenge, ChallengePhase]:
    """Return the challenge and the phase; raises a refusal if the phase belongs to another challenge."""
    challenge = services.store.require(Challenge, target.challenge, Refusal(400, "Challenge does not exist"))
    phase = services.store.get(ChallengePhase, target.phase)
    if phase is None or phase.challenge_id != challenge.id:
        raise Refusal(400, "Challenge Phase does not exist")
    return challenge, phase


def check_open(services: Services, target: PhaseTarget) -> tuple[Challenge, ChallengePhase]:
    """Return the challenge and the phase; raises a refusal if either is closed now."""
    challenge, phase = require_target(services, target)
    moment = services.clock()
    if not challenge.is_open(moment):
        raise Refusal(406, "Challenge is not active")
    if not phase.is_open(moment):
        raise Refusal(406, "Sorry, cannot accept submissions since challenge phase is not active")
    if phase.flag("is_submission_paused"):
        message = "Submissions are currently paused for this challenge phase. Please try again later."
        raise Refusal(406, message)
    return challenge, phase


def admit(services: Services, user: User, target: PhaseTarget) -> tuple[ChallengePhase, Team]:
    """Return the phase, and the team with which a user may submit now; raises a refusal as EvalAI would."""
    challenge, phase = check_open(services, target)
    host = services.accounts.is_host(user, challenge.id)
    if not phase.flag("is_public") and not host:
        raise Refusal(403, "Sorry, cannot accept submissions since challenge phase is not public")
    allowed = phase.config.get("allowed_email_ids")
    if allowed and user.email not in allowed and not host:
        raise Refusal(403, "Sorry, you are not allowed to participate in this challenge phase")
    team = require_team(services, user, challenge.id)
    if user.email in (challenge.config.get("banned_email_ids") or []):
        message = "You're a part of participant team and it has been banned from this challenge."
        raise Refusal(403, f"{message} Please contact the challenge host.")
    _check_limits(services, team.id, phase)
    return phase, team


def require_team(services: Services, user: User, challenge: int) -> Team:
    """Return the team with which a user takes part; raises a refusal without one."""
    team = services.accounts.team_of(user, challenge)
    if team is None:
        raise Refusal(403, "You haven't participated in the challenge")
    return team


def _check_limits(services: Services, team: int, phase: ChallengePhase) -> None:
    processed = services.submissions.count(team, phase.id, Submission.status.in_(OPEN))
    if processed >= int(phase.config["max_concurrent_submissions_allowed"]):
        raise Refusal(
            406,
            f"You have {processed} submissions that are being processed. "
            "                           Please wait for them to finish and then try again.",
        )
    for limit, remaining in _remaining_by_limit(services, team, phase).items():
        if remaining <= 0:
            raise Refusal(403, _LIMITS[limit][1])


def count_remaining(services: Services, team: int, phase: ChallengePhase) -> int:
    """Return how many submissions a team may still send to a phase today."""
    return max(0, min(_remaining_by_limit(services, team, phase).values()))


def _remaining_by_limit(services: Services, team: int, phase: ChallengePhase) -> dict[str, int]:
    moment, counted = time.time(), Submission.status.not_in((FAILED, CANCELLED))
    return {
        limit: int(float(phase.config[limit]))
        - services.submissions.count(team, phase.id, counted, Submission.submitted_at >= period_start(period, moment))
        for limit, (period, _) in _LIMITS.items()
    }


# ── actions of participants ──────────────────────────────────────────────────


def participate(services: Services, user: User, challenge: int, team: int) -> None:
    """Enter a challenge with a team; doing it twice changes nothing."""
    if not services.accounts.is_member(user, team, PARTICIPANT):
        raise Refusal(403, "You are not a member of this participant team")
    team_of_user = services.accounts.team_of(user, challenge)
    if team_of_user is not None and team_of_user.id != team:
        message = f"Sorry, you are already participating in this challenge with team {team_of_user.team_name}"
        raise Refusal(406, message)
    record_participation(services, challenge, team)


def record_participation(services: Services, challenge: int, team: int) -> None:
    """Add a team to a challenge without checking its members."""
    with services.store.write() as session:
        session.merge(Participation(challenge_id=challenge, team_id=team))


def submit(services: Services, user: User, target: PhaseTarget, fields: JsonObject, file: IO[bytes], name: str) -> int:
    """Store a file as a submission, put it into the queue, and return its number."""
    image = _image_of(services, target.challenge, file)
    return send(services, user, target, fields, services.files.keep(file, name, "input_file"), image)


def send(services: Services, user: User, target: PhaseTarget, fields: JsonObject, file: str, image: str = "") -> int:
    """Turn a stored file into a submission with its message, atomically; a rejected file is deleted."""
    with services.files.abandon_unless_used(file), services.store.write():
        number = _create_submission(services, user, target, fields, file)
        services.submissions.enqueue(number, image)
    return number


def _create_submission(services: Services, user: User, target: PhaseTarget, fields: JsonObject, file: str) -> int:
    """Create a submission outside the queue; raises a refusal if EvalAI would reject it."""
    with services.store.write() as session:
        # In the transaction, so that two simultaneous ones cannot both be the last allowed one.
        phase, team = admit(services, user, target)
        is_public = phase.flag("is_submission_public")
        if phase.flag("leaderboard_public") and fields.get("is_public") not in (None, ""):
            is_public = fields["is_public"] in TRUE
        submission = Submission(
            phase_id=phase.id,
            team_id=team.id,
            created_by=user.id,
            status=SUBMITTED,
            input_file=file,
            is_public=is_public,
            submitted_at=time.time(),
            attributes=_read_answers(fields),
            **{key: make_storable(fields.get(key)) for key in TEXT_FIELDS},
        )
        session.add(submission)
        session.flush()
    return submission.id


def _image_of(services: Services, challenge: int, file: IO[bytes]) -> str:
    """Return the image that a file names, for a challenge that runs code; "" for any other."""
    row = services.store.get(Challenge, challenge)
    if row is None or not row.flag("is_docker_based"):
        return ""
    try:
        return str(json.loads(file.read(_IMAGE_BYTES))["submitted_image_uri"])
    except (ValueError, KeyError, TypeError) as error:
        raise Refusal(400, f"Error {error} in submitted_image_uri from submission file") from None
    finally:
        file.seek(0)


def _read_answers(fields: JsonObject) -> object:
    """Return the answers to a phase's questions; a client sends them as a JSON text."""
    answers_or_json = fields.get("submission_metadata")
    if answers_or_json in (None, "", "null"):
        return None
    try:
        text = json.dumps(
            json.loads(answers_or_json) if isinstance(answers_or_json, str) else answers_or_json, allow_nan=False
        )
        answers = json.loads(text)
        json.dumps(answers, ensure_ascii=False).encode("utf-8")  # a lone surrogate cannot be shown again
    except (ValueError, RecursionError):
        raise Refusal(406, {"submission_metadata": ["Value must be valid JSON."]}) from None
    if len(text) > _LONGEST_ANSWERS:
        raise Refusal(
            406, {"submission_metadata": [f"Ensure this field has no more than {_LONGEST_ANSWERS} characters."]}
        )
    return answers


_MOST_PARTS = 10_000


# ── a submission's file ─────────────────────────────────────────────────────


def start_upload(services: Services, user: User, phase: int, fields: JsonObject) -> tuple[int, str]:
    """Create a submission with a placeholder as its file; return its number and the upload's id."""
    row = _visible_phase(services, user, phase)
    part_count(fields)
    name = str(fields.get("file_name") or "submission")
    file = services.files.keep(PLACEHOLDER, name, "input_file")
    with services.files.abandon_unless_used(file):
        submission = _create_submission(services, user, PhaseTarget(row.challenge_id, row.id), fields, file)
    return submission, _create_upload(services, user, row, submission, fields)


def finish_upload(services: Services, user: User, phase: int, submission: int, upload: str, parts: object) -> None:
    """Join the parts, replacing the placeholder."""
    check_open(services, _target(services, user, phase))
    with _join_parts(services, user, phase, submission, upload, parts) as file:
        services.files.drop(services.submissions.get(submission).input_file)
        services.submissions.update(submission, input_file=file)


def send_upload(services: Services, user: User, phase: int, submission: int) -> None:
    """Add the submission to the queue, even if its file has not arrived."""
    row = services.submissions.get(submission)
    if not services.accounts.may_see_submission(user, row) or row.phase_id != phase:
        raise Refusal(403, "Sorry, this submission is not yours")
    check_open(services, _target(services, user, phase))
    with services.store.write():
        # EvalAI accepts it repeatedly, and would score it each time.
        row = services.submissions.get(submission)
        if services.submissions.is_queued(row) or row.status != SUBMITTED:
            raise Refusal(400, "This submission was already sent.")
        services.submissions.enqueue(submission)


# ── a truth ──────────────────────────────────────────────────────────────────


def start_annotation(services: Services, user: User, phase: int, fields: JsonObject) -> str:
    """Return the id of an upload of a phase's truth, by a host who may push."""
    return _create_upload(services, user, _host_phase(services, user, phase), None, fields)


def finish_annotation(services: Services, user: User, phase: int, upload: str, parts: object) -> None:
    """Replace the truth of a phase; later pushes keep it."""
    row = _host_phase(services, user, phase)
    with _join_parts(services, user, phase, None, upload, parts) as file:
        services.store.change(ChallengePhase, row.id, annotation=file, by_client=True)
        services.store.require(Challenge, row.challenge_id).version += 1


# ── both ─────────────────────────────────────────────────────────────────────


def keep_part(services: Services, key: tuple[str, int], file: str, tag: str) -> None:
    """Store a part that has arrived, replacing an earlier one."""
    with services.store.write():
        row = services.store.get(UploadPart, key)
        if row is None:  # the upload was finished meanwhile
            services.files.drop(file)
            return
        services.files.drop(row.file)
        row.file, row.etag = file, tag


def _visible_phase(services: Services, user: User, phase: int) -> ChallengePhase:
    row = services.accounts.visible_phase(user, phase)
    if row is None:
        raise Refusal(404, {"detail": f"ChallengePhase {phase} does not exist"})
    return row


def _host_phase(services: Services, user: User, phase: int) -> ChallengePhase:
    services.accounts.check_may_push(user)
    row = _visible_phase(services, user, phase)
    services.accounts.check_host(user, row.challenge_id)
    return row


def _target(services: Services, user: User, phase: int) -> PhaseTarget:
    return PhaseTarget(_visible_phase(services, user, phase).challenge_id, phase)


def _create_upload(
    services: Services, user: User, phase: ChallengePhase, submission: int | None, fields: JsonObject
) -> str:
    parts, name = part_count(fields), str(fields.get("file_name") or "file")[:200]
    upload = MultipartUpload(
        id=secrets.token_hex(16), phase_id=phase.id, submission_id=submission, user_id=user.id, name=name
    )
    with services.store.write() as session:
        session.add(upload)
        session.flush()
        session.add_all(UploadPart(upload_id=upload.id, number=number + 1) for number in range(parts))
    return upload.id


@contextmanager
def _join_parts(
    services: Services, user: User, phase: int, submission: int | None, number: str, parts_or_json: object
) -> Iterator[str]:
    """Join an upload's parts into its file, in the transaction that ends the upload."""
    upload = services.store.get(MultipartUpload, number)
    if upload is None or (upload.user_id, upload.phase_id, upload.submission_id) != (user.id, phase, submission):
        raise Refusal(403, "Sorry, this upload is not yours")
    rows, tags = services.store.find(UploadPart, UploadPart.upload_id == upload.id), _tags(parts_or_json)
    files = [row.file for row in rows if row.file is not None and tags.get(row.number) == row.etag]
    if len(files) < len(rows):
        raise Refusal(400, "One or more of the specified parts could not be found")
    file = services.files.join(files, upload.name)
    with services.files.abandon_unless_used(file), services.store.write():
        for name in files:
            services.files.drop(name)
        services.store.remove(MultipartUpload, MultipartUpload.id == upload.id)  # with its parts
        yield file


def _tags(parts_or_json: object) -> dict[int, str]:
    try:
        parts = json.loads(parts_or_json) if isinstance(parts_or_json, str) else parts_or_json
        if not isinstance(parts, list):
            raise TypeError
        return {int(entry["PartNumber"]): str(entry["ETag"]).strip('"') for entry in parts}
    except (TypeError, ValueError, KeyError):
        raise Refusal(400, "parts must be a list of PartNumber and ETag") from None


def part_count(fields: JsonObject) -> int:
    """Return the number of parts that a client announces."""
    text = str(fields.get("num_file_chunks", ""))
    if not text.isdecimal() or not 1 <= int(text) <= _MOST_PARTS:
        raise Refusal(400, "num_file_chunks must be a number from 1 to 10000")
    return int(text)
