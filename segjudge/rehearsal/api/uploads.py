"""Large uploads, in parts: of a submission's file, or of a truth."""

import json
import secrets

from segjudge.evalai import routes
from segjudge.evalai.jobs import PLACEHOLDER
from segjudge.rehearsal.actions.submitting import PhaseTarget
from segjudge.rehearsal.models import Challenge, ChallengePhase, MultipartUpload, UploadPart
from segjudge.rehearsal.refusal import JsonObject, Refusal
from segjudge.rehearsal.submissions import SUBMITTED

from .call import Answer, Call, answers

_MOST_PARTS = 10_000

# ── a submission's file ─────────────────────────────────────────────────────


@answers("POST", routes.UPLOAD_URLS)
def start(call: Call) -> Answer:
    """Create a submission with a placeholder as its file, which comes in parts."""
    user, phase, files = call.known(), _visible_phase(call), call.services.files
    _part_count(call)
    file = files.keep(PLACEHOLDER, str(call.data.get("file_name") or "submission"), "input_file")
    try:
        number = call.services.submitting.create(user, PhaseTarget(phase.challenge_id, phase.id), call.data, file)
    except Refusal:
        files.drop(file)
        raise
    return Answer(201, {**_started(call, phase, number), "submission_pk": number})


@answers("POST", routes.UPLOAD_FINISHED)
def finish(call: Call) -> Answer:
    """Join the parts of a submission's file, in the place of the placeholder."""
    number, submissions = call.path["submission"], call.services.submissions
    _check_open(call)
    file = _joined(call, number)
    old = submissions.get(number).input_file
    submissions.update(number, input_file=file)
    call.services.files.drop(old)
    return Answer(201, {"upload_id": call.data.get("upload_id"), "submission_pk": number})


@answers("POST", routes.UPLOAD_SEND)
def send(call: Call) -> JsonObject:
    """Put the submission into the queue, whether or not its file has come."""
    services, number = call.services, call.path["submission"]
    row = services.submissions.get(number)
    if not services.permissions.may_see_submission(call.known(), row) or row.phase_id != call.path["phase"]:
        raise Refusal(403, "Sorry, this submission is not yours")
    challenge = _check_open(call)
    with services.store.write():
        # EvalAI takes it again and again, and would score it as often.
        waiting = services.queue.waiting(challenge.queue)
        queued = any(message.get("submission_pk") == number for message in waiting)
        if queued or services.submissions.get(number).status != SUBMITTED:
            raise Refusal(400, "This submission was sent already.")
        services.submissions.enqueue(number)
    return {}


# ── a truth ─────────────────────────────────────────────────────────────────


@answers("POST", routes.ANNOTATION_URLS)
def start_annotation(call: Call) -> JsonObject:
    """Let the truth of a phase come in parts, from a host who may push."""
    return _started(call, _host_phase(call), None)


@answers("POST", routes.ANNOTATION_FINISHED)
def finish_annotation(call: Call) -> Answer:
    """Join the parts of a truth, which from now on a push does not change."""
    phase, store = _host_phase(call), call.services.store
    file = _joined(call, None)
    with store.write():
        phase = store.one(ChallengePhase, phase.id)
        phase.annotation, phase.by_client = file, True
        store.one(Challenge, phase.challenge_id).version += 1
    return Answer(201, {"upload_id": call.data.get("upload_id"), "challenge_phase_pk": phase.id})


# ── both ────────────────────────────────────────────────────────────────────


def _visible_phase(call: Call) -> ChallengePhase:
    """Return the phase of the address; refuses where there is none that the caller may see."""
    number = call.path["phase"]
    phase = call.services.permissions.visible_phase(call.known(), number)
    if phase is None:
        raise Refusal(404, {"detail": f"ChallengePhase {number} does not exist"})
    return phase


def _host_phase(call: Call) -> ChallengePhase:
    call.services.permissions.check_may_push(call.known())
    phase = _visible_phase(call)
    call.services.permissions.check_host(call.user, phase.challenge_id)
    return phase


def _check_open(call: Call) -> Challenge:
    """Return the challenge of the phase; refuses when either is not open now."""
    phase = _visible_phase(call)
    return call.services.submitting.check_open(PhaseTarget(phase.challenge_id, phase.id))[0]


def _part_count(call: Call) -> int:
    """Return the number of parts that a client announces."""
    text = str(call.data.get("num_file_chunks", ""))
    if not text.isdecimal() or not 1 <= int(text) <= _MOST_PARTS:
        raise Refusal(400, "num_file_chunks must be a number from 1 to 10000")
    return int(text)


def _started(call: Call, phase: ChallengePhase, submission: int | None) -> JsonObject:
    """Begin an upload, and return where its parts are put."""
    numbers, name = range(1, _part_count(call) + 1), str(call.data.get("file_name") or "file")[:200]
    upload = secrets.token_hex(16)
    with call.services.store.write() as session:
        user = call.known().id
        session.add(MultipartUpload(id=upload, phase_id=phase.id, submission_id=submission, user_id=user, name=name))
        session.flush()
        session.add_all(UploadPart(upload_id=upload, number=number) for number in numbers)
    files = call.services.files
    urls = [{"partNumber": number, "url": files.part_url(upload, number, call.base)} for number in numbers]
    return {"presigned_urls": urls, "upload_id": upload}


def _joined(call: Call, submission: int | None) -> str:
    """Return the file that the parts of an upload make; the upload is over then."""
    store, wanted = call.services.store, (call.known().id, call.path["phase"], submission)
    upload = store.get(MultipartUpload, str(call.data.get("upload_id", "")))
    if upload is None or (upload.user_id, upload.phase_id, upload.submission_id) != wanted:
        raise Refusal(403, "Sorry, this upload is not yours")
    parts, tags = store.find(UploadPart, UploadPart.upload_id == upload.id), _tags(call.data.get("parts"))
    files = [part.file for part in parts if part.file is not None and tags.get(part.number) == part.etag]
    if len(files) < len(parts):
        raise Refusal(400, "One or more of the specified parts could not be found")
    file = call.services.files.joined(files, upload.name)
    store.remove(UploadPart, UploadPart.upload_id == upload.id)
    store.remove(MultipartUpload, MultipartUpload.id == upload.id)
    return file


def _tags(sent: object) -> dict[int, str]:
    """Return the tag of each part by its number, from a list or its JSON as a client sends it."""
    try:
        parts = json.loads(sent) if isinstance(sent, str) else sent
        if not isinstance(parts, list):
            raise TypeError
        return {int(part["PartNumber"]): str(part["ETag"]).strip('"') for part in parts}
    except (TypeError, ValueError, KeyError):
        raise Refusal(400, "parts must be a list of PartNumber and ETag") from None
