"""What remote and code-upload workers call: the queue, and how a submission fares."""

from __future__ import annotations

import time
from typing import Any

from segjudge.bundle.opened_bundle import UPLOAD_BYTES
from segjudge.evalai import routes
from segjudge.rehearsal.results import number_of
from segjudge.rehearsal.submissions import Refusal

from .call import Call, takes

#: What a report may hold, and each text in it.
_REPORT, _TEXT = 64 << 20, 16 << 20
_NOT_HOST = "Sorry, you are not authorized to make this request!"


def receive(call: Call) -> dict[str, Any]:
    """At most one message; none does not prove the queue empty."""
    held = _of_queue(call, "exist")
    message = call.services.queue.receive(held["queue"])
    return {"body": message.body if message else None, "receipt_handle": message.handle if message else None}


def delete(call: Call) -> dict[str, str]:
    """Forget a message."""
    held = _of_queue(call, "exists")
    handle = str(call.data.get("receipt_handle", ""))
    if not handle:
        raise Refusal(400, "Please add message receipt handle in the body")
    call.services.queue.delete(held["queue"], handle)
    return {"success": f"Message deleted successfully from the queue: {held['queue']}"}


def _of_queue(call: Call, verb: str) -> Any:
    queue = call.path["queue"]
    held = call.services.challenges.of_queue(queue)
    if held is None:
        raise Refusal(400, f"Challenge with queue name {queue} does not {verb}")
    if not call.services.challenges.is_host(call.known(), held["id"]):
        raise Refusal(401, "Sorry, you are not authorized to access this resource")
    return held


def challenge(call: Call) -> dict[str, Any]:
    """The challenge of a queue."""
    return call.services.challenges.shown(_of_queue(call, "exist"), call.base, host=True)


def _host(call: Call) -> int:
    number = int(call.path["challenge"])
    if call.services.challenges.row(number) is None:
        raise Refusal(404, {"detail": f"Challenge {number} does not exist"})
    if not call.services.challenges.is_host(call.known(), number):
        raise Refusal(400, _NOT_HOST)
    if "submission" in call.data:
        # EvalAI asks for neither; a host of one challenge could read and overwrite those of another.
        row = call.services.submissions.row(number_of(call.data["submission"]))
        phase = call.services.challenges.phase_row(number_of(call.data.get("challenge_phase", row["phase_id"])))
        ours = phase is not None and phase["challenge_id"] == number
        if call.services.submissions.challenge_of(row)["id"] != number or not ours:
            raise Refusal(400, _NOT_HOST)
    return number


@takes(bytes=UPLOAD_BYTES, text=_TEXT, files=3, first=_host)
def start(call: Call) -> dict[str, Any]:
    """PATCH: begun; or, with a file, the product of a static code upload, which EvalAI's own worker then scores."""
    number = _host(call)
    product = call.files.get("submission_input_file")
    held = call.services.challenges.row(number)
    if product is not None and call.services.challenges.shown(held, call.base)["is_static_dataset_code_upload"]:
        row = call.services.submissions.row(number_of(call.data.get("submission")))
        file = call.services.store.keep(product.file, product.filename or "submission.json", "submission_input_file")
        with call.services.submissions.together():
            if call.services.submissions.is_cancelled(row["id"]):
                call.services.store.drop(file)
            else:
                call.services.submissions.update(row["id"], submission_input_file=file, status="submitted")
                call.services.submissions.enqueue(row["id"])
    else:
        row = call.services.reporting.start(call.data)
    return call.services.submissions.shown(call.services.submissions.row(row["id"]), call.base, host=True)


@takes(bytes=_REPORT, text=_TEXT, first=_host)
def finish(call: Call) -> dict[str, str]:
    """PUT: the result."""
    _host(call)
    call.services.reporting.finish(call.data)
    return {"success": "Submission result has been successfully updated"}


@takes(bytes=_REPORT, text=_TEXT, first=_host)
def finish_part(call: Call) -> dict[str, str]:
    """PUT: a first part of the result."""
    _host(call)
    call.services.reporting.finish(call.data, partial=True)
    return {"success": "Submission result has been successfully updated"}


@takes(bytes=_REPORT, text=_TEXT, first=_host)
def merge(call: Call) -> dict[str, Any]:
    """PATCH: a further part of it."""
    _host(call)
    row = call.services.reporting.merge(call.data)
    return call.services.submissions.shown(row, call.base, host=True)


def started(call: Call) -> dict[str, Any]:
    """The pod is up."""
    call.known()
    row = call.services.submissions.row(call.path["submission"])
    if not call.services.submissions.may_see(call.user, row):
        raise Refusal(403, _NOT_HOST)
    call.services.submissions.update(row["id"], started_at=time.time())
    return call.services.submissions.shown(call.services.submissions.row(row["id"]), call.base)


def manage(call: Call) -> dict[str, str]:
    """Here the workers come and go with the rehearsal."""
    _host(call)
    return {"action": "Failure", "error": "The rehearsal's workers run as long as it runs."}


def scale(call: Call) -> None:
    """Likewise."""
    _host(call)
    raise Refusal(400, "Scaling inactive workers not supported.")


CALLS = [
    ("GET", routes.QUEUE, receive),
    ("POST", routes.QUEUE_DELETE, delete),
    ("GET", routes.CHALLENGE_OF_QUEUE, challenge),
    ("PATCH", routes.UPDATE_SUBMISSION, start),
    ("PUT", routes.UPDATE_SUBMISSION, finish),
    ("PUT", routes.UPDATE_PARTIAL, finish_part),
    ("PATCH", routes.UPDATE_PARTIAL, merge),
    ("PATCH", routes.SUBMISSION_STARTED, started),
    ("PUT", routes.MANAGE_WORKER, manage),
    ("PUT", routes.SCALE_RESOURCES, scale),
]
