"""What remote and code-upload workers call: the queue, and reports on submissions."""

import functools

from segjudge.platforms.evalai import routes
from segjudge.platforms.evalai.bundle.opened_bundle import UPLOAD_BYTES
from segjudge.server.models import Challenge
from segjudge.server.wire import JsonObject, Refusal

from .call import Call, answers

#: Bytes of a report, and of each text in it.
_REPORT, _TEXT = 64 << 20, 16 << 20


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
    challenge = call.services.store.find_first(Challenge, Challenge.queue == queue)
    if challenge is None:
        raise Refusal(400, f"Challenge with queue name {queue} does not {verb}")
    words = "Sorry, you are not authorized to access this resource"
    call.services.permissions.check_host(call.require_user(), challenge.id, Refusal(401, words))
    return challenge


@answers("GET", routes.CHALLENGE_OF_QUEUE)
def challenge_of_queue(call: Call) -> JsonObject:
    """Return the challenge of a queue."""
    return call.services.json.challenge(_challenge_of_queue(call, "exist"), call.base, host=True)


def _check_worker(call: Call) -> Challenge:
    return call.services.reports.check_worker(call.require_user(), call.path["challenge"], call.data)


@answers("PATCH", routes.UPDATE_SUBMISSION, bytes=UPLOAD_BYTES, text=_TEXT, files=3, first=_check_worker)
def start(call: Call) -> JsonObject:
    """Begin; or, with a file, take the product of a static code upload, which EvalAI's own worker then scores."""
    challenge, product = _check_worker(call), call.files.get("submission_input_file")
    if product is not None and challenge.flag("is_static_dataset_code_upload"):
        name = product.filename or "submission.json"
        number = call.services.reports.take_product(call.data, product.file, name)
    else:
        number = call.services.reports.start(call.data)
    return call.submission(number, host=True)


def finish(call: Call, *, partial: bool) -> JsonObject:
    """Store a result, or a first part of one."""
    _check_worker(call)
    call.services.reports.finish(call.data, partial=partial)
    return {"success": "Submission result has been successfully updated"}


for _route, _partial in ((routes.UPDATE_SUBMISSION, False), (routes.UPDATE_PARTIAL, True)):
    answers("PUT", _route, bytes=_REPORT, text=_TEXT, first=_check_worker)(functools.partial(finish, partial=_partial))


@answers("PATCH", routes.UPDATE_PARTIAL, bytes=_REPORT, text=_TEXT, first=_check_worker)
def merge(call: Call) -> JsonObject:
    """Store a further part of a result."""
    _check_worker(call)
    return call.submission(call.services.reports.merge(call.data), host=True)


@answers("PATCH", routes.SUBMISSION_STARTED)
def note_pod_start(call: Call) -> JsonObject:
    """Note when the pod of a code upload began."""
    number = call.path["submission"]
    call.services.reports.note_pod_start(call.require_user(), number)
    return call.submission(number)


@answers("PUT", routes.MANAGE_WORKER)
def manage(call: Call) -> JsonObject:
    """Refuse to start or stop workers: they come and go with the server."""
    _check_worker(call)
    return {"action": "Failure", "error": "The rehearsal's workers run as long as it runs."}


@answers("PUT", routes.SCALE_RESOURCES)
def scale(call: Call) -> None:
    """Refuse to scale workers."""
    _check_worker(call)
    raise Refusal(400, "Scaling inactive workers not supported.")
