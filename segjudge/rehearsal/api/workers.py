"""What remote and code-upload workers call: the queue, and reports on submissions, which are stored or refused."""

import functools
import json
import re
import time

from starlette.datastructures import UploadFile

from segjudge.bundle.opened_bundle import UPLOAD_BYTES
from segjudge.evalai import routes
from segjudge.evalai.jobs import CANCELLED, FAILED, FINISHED, RUNNING
from segjudge.rehearsal.models import HOST_ONLY, Challenge, ChallengePhase, ChallengePhaseSplit, Submission
from segjudge.rehearsal.refusal import NOT_AUTHORIZED, JsonObject, Refusal
from segjudge.rehearsal.submissions import REPORTED, SUBMITTED, SplitScores

from .call import Call, answers

#: Bytes of a report, and of each text in it.
_REPORT, _TEXT = 64 << 20, 16 << 20
_PARTIAL = "partially_evaluated"
#: A score is smaller; larger numbers are not floats.
_MOST = 10**300

# ── the queue ───────────────────────────────────────────────────────────────


@answers("GET", routes.QUEUE)
def receive(call: Call) -> JsonObject:
    """Receive at most one message; none does not prove the queue empty."""
    message = call.services.queue.receive(_challenge_of_queue(call, "exist").queue)
    return {"body": message.body if message else None, "receipt_handle": message.handle if message else None}


@answers("POST", routes.QUEUE_DELETE)
def delete(call: Call) -> JsonObject:
    """Delete a message."""
    challenge = _challenge_of_queue(call, "exists")
    handle = str(call.data.get("receipt_handle", ""))
    if not handle:
        raise Refusal(400, "Please add message receipt handle in the body")
    call.services.queue.delete(challenge.queue, handle)
    return {"success": f"Message deleted successfully from the queue: {challenge.queue}"}


def _challenge_of_queue(call: Call, verb: str) -> Challenge:
    queue = call.path["queue"]
    challenge = call.services.store.first(Challenge, Challenge.queue == queue)
    if challenge is None:
        raise Refusal(400, f"Challenge with queue name {queue} does not {verb}")
    words = "Sorry, you are not authorized to access this resource"
    call.services.permissions.check_host(call.known(), challenge.id, Refusal(401, words))
    return challenge


@answers("GET", routes.CHALLENGE_OF_QUEUE)
def challenge_of_queue(call: Call) -> JsonObject:
    """Return the challenge of a queue."""
    return call.services.json.challenge(_challenge_of_queue(call, "exist"), call.base, host=True)


# ── reports ─────────────────────────────────────────────────────────────────


def _check_worker(call: Call) -> Challenge:
    """Return the challenge that a worker reports to; refuses who does not host it or reports on another's."""
    services, challenge = call.services, call.path["challenge"]
    row = services.store.one(Challenge, challenge)
    services.permissions.check_host(call.known(), challenge, Refusal(400, NOT_AUTHORIZED))
    if "submission" in call.data:
        # EvalAI asks for neither; a host of one challenge could read and overwrite those of another.
        submission = _submission(call)
        phase = services.store.get(ChallengePhase, _number_of(call.data.get("challenge_phase", submission.phase_id)))
        ours = services.submissions.phase_of(submission).challenge_id == challenge
        if not ours or phase is None or phase.challenge_id != challenge:
            raise Refusal(400, NOT_AUTHORIZED)
    return row


def _submission(call: Call) -> Submission:
    return call.services.submissions.get(_number_of(call.data.get("submission")))


def _number_of(value: object) -> int:
    """Return a submission's number as a client sends it."""
    text = str(value)[:100]
    if not re.fullmatch(r"\d{1,18}", text):
        raise Refusal(404, f"Submission {text} does not exist")
    return int(text)


def _status(call: Call, *possible: str) -> str:
    status = str(call.data.get("submission_status", "")).lower()
    if status not in possible:
        raise Refusal(400, "Sorry, submission status is invalid")
    return status


@answers("PATCH", routes.UPDATE_SUBMISSION, bytes=UPLOAD_BYTES, text=_TEXT, files=3, first=_check_worker)
def start(call: Call) -> JsonObject:
    """Begin; or, with a file, take the product of a static code upload, which EvalAI's own worker then scores."""
    challenge, product = _check_worker(call), call.files.get("submission_input_file")
    if product is not None and challenge.flag("is_static_dataset_code_upload"):
        return _take_product(call, product)
    return _start(call)


def _start(call: Call) -> JsonObject:
    """Note that a worker has begun, or has put the submission into a queue of its own."""
    status, row, name = _status(call, "queued", RUNNING), _submission(call), call.data.get("job_name")
    if row.status != CANCELLED:
        names = [*row.job_name, *([str(name)[:200]] if name else [])]
        call.services.submissions.update(row.id, status=status, started_at=time.time(), job_name=names)
    return call.submission(row.id, host=True)


def _take_product(call: Call, file: UploadFile) -> JsonObject:
    row, submissions = _submission(call), call.services.submissions
    kept = call.services.files.keep(file.file, file.filename or "submission.json", "submission_input_file")
    with call.services.store.write():
        if submissions.is_cancelled(row.id):
            call.services.files.drop(kept)
        else:
            submissions.update(row.id, submission_input_file=kept, status=SUBMITTED)
            submissions.enqueue(row.id)
    return call.submission(row.id, host=True)


def finish(call: Call, *, partial: bool) -> JsonObject:
    """Store a result, or a first part of one.  After a refusal nothing is changed."""
    _check_worker(call)
    status = _status(call, FINISHED, FAILED, CANCELLED, *([_PARTIAL] if partial else []))
    number, submissions = _submission(call).id, call.services.submissions
    phase = _number_of(call.data.get("challenge_phase"))
    texts = {key: call.data.get(key, "") for key in ("stdout", "stderr", "environment_log")}
    if not all(isinstance(text, str) for text in texts.values()):
        raise Refusal(500, "stdout, stderr and environment_log must be texts")
    kept = {f"{key}_file": text for key, text in texts.items() if text or key != "environment_log"}
    scores, shown = None, list[JsonObject]()
    if status in (FINISHED, _PARTIAL):
        scores, shown = _read(call, phase, partial=partial)
        kept["metadata_file"] = str(call.data.get("metadata", ""))
    with call.services.store.write():
        if submissions.end(number, status, scores, **kept) and scores is not None:
            submissions.keep_texts(number, REPORTED, submission_result_file=str(shown))
    return {"success": "Submission result has been successfully updated"}


for _route, _partial in ((routes.UPDATE_SUBMISSION, False), (routes.UPDATE_PARTIAL, True)):
    answers("PUT", _route, bytes=_REPORT, text=_TEXT, first=_check_worker)(functools.partial(finish, partial=_partial))


@answers("PATCH", routes.UPDATE_PARTIAL, bytes=_REPORT, text=_TEXT, first=_check_worker)
def merge(call: Call) -> JsonObject:
    """Merge a further part of a result into the one that an earlier PUT stored."""
    _check_worker(call)
    status = _status(call, RUNNING, _PARTIAL, FINISHED)
    if status == RUNNING:
        return _start(call)
    number, submissions = _submission(call).id, call.services.submissions
    phase = _number_of(call.data.get("challenge_phase"))
    new = {row.phase_split: row.values for row in _read(call, phase, partial=True)[0]}
    streams = {f"{key}_file": call.data.get(key) for key in ("stdout", "stderr")}
    texts = {key: text for key, text in streams.items() if isinstance(text, str) and text}
    with call.services.store.write():
        stored = submissions.scores(number)
        merged = [SplitScores(split, {**values, **new.get(split, {})}) for split, values in stored.items()]
        if submissions.end(number, status, merged, **texts) and set(new) - set(stored):
            words = f"Leaderboard Data does not exist with phase_id: {phase} andsubmission id: {number}"
            raise Refusal(400, words)
    return call.submission(number, host=True)


def _read(call: Call, phase: int, *, partial: bool) -> tuple[list[SplitScores], list[JsonObject]]:
    """Return the scores that a remote worker sent, and those of them that it lets participants see."""
    splits: dict[str, list[ChallengePhaseSplit]] = {}
    for split in call.services.store.splits_of(phase):
        splits.setdefault(split.dataset_split.codename, []).append(split)
    row = call.services.store.get(ChallengePhase, phase)
    loose = partial and row is not None and row.flag("is_partial_submission_evaluation_enabled")
    scores, shown = list[SplitScores](), list[JsonObject]()
    for name, values, public in _entries(call.data.get("result")):
        mapped = splits.get(name, []) if isinstance(name, str) else []
        if len(mapped) != 1 or not isinstance(values, dict):
            words = f"Challenge Phase Split does not exist with phase_id: {phase} andsplit codename: {name}"
            raise Refusal(400 if len(mapped) < 2 else 500, words)
        _check_values(values, mapped[0].labels, loose=loose)
        scores.append(SplitScores(mapped[0].id, values))
        # EvalAI shows whatever the worker says.
        if public and mapped[0].visibility != HOST_ONLY:
            shown.append(values)
    return scores, shown


def _entries(text: object) -> list[tuple[object, object, object]]:
    """Return split, scores and whether to show them, of each entry of a result."""
    try:
        entries = json.loads(text)  # type: ignore[arg-type]  # what is not a text is refused here
        return [(entry.get("split"), entry.get("accuracies"), entry.get("show_to_participant")) for entry in entries]
    except (TypeError, ValueError, AttributeError, RecursionError) as error:
        words = f"`result` key contains invalid data with error {error}.Please try again with correct format."
        raise Refusal(400, words) from None


def _check_values(values: JsonObject, labels: list[str], *, loose: bool) -> None:
    unknown = [name for name in values if name not in labels]
    if unknown and not loose:
        raise Refusal(400, f"Following metrics are missing in theleaderboard data: {unknown}")
    wrong = [(name, type(value)) for name, value in values.items() if not isinstance(value, (int, float))]
    if wrong:
        raise Refusal(400, f"Values for following metrics are not offloat/int: {wrong}")
    if not all(-_MOST < value < _MOST for value in values.values()):  # NaN is not
        raise Refusal(400, {"result": ["Value must be valid JSON."]})


@answers("PATCH", routes.SUBMISSION_STARTED)
def pod_started(call: Call) -> JsonObject:
    """Note when the pod of a code upload began."""
    user, number = call.known(), call.path["submission"]
    if not call.services.permissions.may_see_submission(user, call.services.submissions.get(number)):
        raise Refusal(403, NOT_AUTHORIZED)
    call.services.submissions.update(number, started_at=time.time())
    return call.submission(number)


@answers("PUT", routes.MANAGE_WORKER)
def manage(call: Call) -> JsonObject:
    """Refuse to start or stop workers: they come and go with the rehearsal."""
    _check_worker(call)
    return {"action": "Failure", "error": "The rehearsal's workers run as long as it runs."}


@answers("PUT", routes.SCALE_RESOURCES)
def scale(call: Call) -> None:
    """Refuse to scale workers."""
    _check_worker(call)
    raise Refusal(400, "Scaling inactive workers not supported.")
