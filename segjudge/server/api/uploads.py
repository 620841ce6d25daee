"""Large uploads, in parts, of submissions and truths."""

from segjudge.platforms.evalai import routes
from segjudge.server.actions.uploading import part_count
from segjudge.server.refusal import JsonObject

from .call import Answer, Call, answers


@answers("POST", routes.UPLOAD_URLS)
def start(call: Call) -> Answer:
    """Create a submission whose file comes in parts."""
    number, upload = call.services.uploading.start(call.known(), call.path["phase"], call.data)
    return Answer(201, {**_started(call, upload), "submission_pk": number})


@answers("POST", routes.UPLOAD_FINISHED)
def finish(call: Call) -> Answer:
    """Join the parts of a submission's file."""
    number = call.path["submission"]
    call.services.uploading.finish(call.known(), call.path["phase"], number, *_sent(call))
    return Answer(201, {"upload_id": call.data.get("upload_id"), "submission_pk": number})


@answers("POST", routes.UPLOAD_SEND)
def send(call: Call) -> JsonObject:
    """Put the submission into the queue."""
    call.services.uploading.send(call.known(), call.path["phase"], call.path["submission"])
    return {}


@answers("POST", routes.ANNOTATION_URLS)
def start_annotation(call: Call) -> JsonObject:
    """Let a truth come in parts."""
    return _started(call, call.services.uploading.start_annotation(call.known(), call.path["phase"], call.data))


@answers("POST", routes.ANNOTATION_FINISHED)
def finish_annotation(call: Call) -> Answer:
    """Join the parts of a truth, which from now on a push does not change."""
    phase = call.path["phase"]
    call.services.uploading.finish_annotation(call.known(), phase, *_sent(call))
    return Answer(201, {"upload_id": call.data.get("upload_id"), "challenge_phase_pk": phase})


def _started(call: Call, upload: str) -> JsonObject:
    numbers, files = range(1, part_count(call.data) + 1), call.services.files
    urls = [{"partNumber": number, "url": files.part_url(upload, number, call.base)} for number in numbers]
    return {"presigned_urls": urls, "upload_id": upload}


def _sent(call: Call) -> tuple[str, object]:
    """Return the upload's id, and what the client says of its parts."""
    return str(call.data.get("upload_id", "")), call.data.get("parts")
