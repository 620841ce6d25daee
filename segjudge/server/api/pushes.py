"""What hosts push and ask of their challenges."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from segjudge.platforms.evalai import routes
from segjudge.platforms.evalai.bundle.opened_bundle import UPLOAD_BYTES
from segjudge.platforms.evalai.rows import FINISHED
from segjudge.server.models import Challenge, Submission
from segjudge.server.refusal import JsonObject, Refusal
from segjudge.server.stored_files import PUSH_PREFIX

from .call import Answer, Call, answers
from .challenges import check_may_push, hosted_challenge


def _check_may_push(call: Call) -> None:
    """Refuse, before a bundle is uploaded, who may not push it."""
    call.services.permissions.check_team(call.known(), int(call.path["team"]))
    check_may_push(call)


@answers("POST", routes.VALIDATE, bytes=UPLOAD_BYTES, files=3, first=_check_may_push)
def validate(call: Call) -> JsonObject:
    """Refuse a bundle with what is wrong with it."""
    with _uploaded(call) as (bundle, repository):
        _check_bundle(call, bundle, repository, saving=False)
    return {"Success": "The challenge config has been validated successfully"}


@answers("POST", routes.CREATE_OR_UPDATE, bytes=UPLOAD_BYTES, files=3, first=_check_may_push)
def create_or_update(call: Call) -> Answer:
    """Create a challenge, or a new version of the one that the repository has."""
    team = int(call.path["team"])
    with _uploaded(call) as (bundle, repository):
        old = call.services.bundles.of_repository(repository)
        if old is not None:
            words = "Sorry, you are not a host for this challenge. Please check your user access token"
            call.services.permissions.check_host(call.known(), old.id, Refusal(403, words))
        _check_bundle(call, bundle, repository)
        try:
            number, new = call.services.bundles.create_or_update(bundle, repository, team)
        except ValueError as error:
            raise Refusal(400, {"error": str(error), "error_message": ""}) from None
    title = call.services.store.one(Challenge, number).config.get("title")
    if new:
        words = f"Challenge {title} has been created successfully and sent for review to EvalAI Admin."
        return Answer(201, {"Success": words})
    return Answer(200, {"Success": f"The challenge {title} has been updated successfully"})


def _check_bundle(call: Call, bundle: str, repository: str, *, saving: bool = True) -> None:
    refusal = call.services.bundles.refusal(bundle, repository, saving=saving)
    if refusal:
        raise Refusal(400, refusal)


@contextmanager
def _uploaded(call: Call) -> Iterator[tuple[str, str]]:
    """Give the bundle as a file of its own, and the repository it comes from."""
    upload, repository = call.files.get("zip_configuration"), str(call.data.get("GITHUB_REPOSITORY", "")).strip()
    if upload is None:
        raise Refusal(400, {"error": {"zip_configuration": ["No file was submitted."]}})
    if not repository:
        raise Refusal(400, "GITHUB_REPOSITORY is missing; EvalAI answers that with an error 500")
    with tempfile.TemporaryDirectory(
        prefix=PUSH_PREFIX, dir=call.services.store.folder, ignore_cleanup_errors=True
    ) as folder:
        path = os.path.join(folder, "challenge_config.zip")
        with open(path, "wb") as file:
            shutil.copyfileobj(upload.file, file)
        yield path, repository


@answers("GET", routes.REQUEST_APPROVAL)
def request_approval(call: Call) -> JsonObject:
    """Refuse unless each phase has a finished submission."""
    challenge = hosted_challenge(call, Refusal(403, "Sorry, you are not authorized to access this challenge."))
    idle = [
        phase.name
        for phase in call.services.store.phases(challenge.id)
        if not call.services.store.exists(Submission.phase_id == phase.id, Submission.status == FINISHED)
    ]
    if idle:
        raise Refusal(406, f"The following challenge phases do not have finished submissions: {', '.join(idle)}")
    return {"message": "Approval request sent!"}


@answers("GET", routes.WORKER_LOGS)
def worker_logs(call: Call) -> JsonObject:
    """Return the hosted worker's log."""
    words = "Sorry, you are not authorized for access worker operations."
    return {"logs": call.services.store.log_lines(hosted_challenge(call, Refusal(400, words)).id)}


@answers("GET", routes.AWS_CREDENTIALS)
def no_registry(_call: Call) -> None:
    """Refuse: images go to a registry of AWS, which a laptop is not."""
    words = "This rehearsal has no image registry: submit a JSON file with submitted_image_uri instead of a push."
    raise Refusal(400, words)
