"""The actions of the pages' forms."""

from starlette.datastructures import UploadFile
from starlette.responses import RedirectResponse, Response

from segjudge.platforms.evalai.bundle.field_values import TRUE
from segjudge.server.accounts import PARTICIPANT
from segjudge.server.actions.submitting import PhaseTarget
from segjudge.server.models import Submission, User
from segjudge.server.wire import JsonObject, Refusal

from .frame import COOKIE, PageRequest, allow_anybody, receive_at, render_page
from .views import find_challenge, local_path


def _check_participates(request: PageRequest) -> None:
    """Refuse, before a file is uploaded, who does not take part."""
    request.services.submitting.check_participates(request.require_user(), request.path["challenge"])


def _require_hosted(request: PageRequest) -> Submission:
    """Return the submission of the address; refuses who does not host it."""
    submission = request.services.submissions.get(request.path["submission"])
    if not request.services.permissions.hosts_submission(request.require_user(), submission):
        raise Refusal(403, "This is for the hosts of the challenge.")
    return submission


@receive_at("/login", allow_anybody)
def login(request: PageRequest, form: JsonObject) -> Response:
    """Begin a session, for a name and a password."""
    after = local_path(str(form.get("next", "/")))
    accounts = request.services.accounts
    user = accounts.authenticate(str(form.get("username", "")), str(form.get("password", "")))
    if user is None:
        answer = render_page(request, "login.html", next=after, wrong=True)
        answer.status_code = 403
        return answer
    token, _ = accounts.mint_token(user, "browser")
    redirect = RedirectResponse(after, 303)
    redirect.set_cookie(COOKIE, token, httponly=True, samesite="lax", max_age=7 * 86400)
    return redirect


@receive_at("/logout", PageRequest.require_user)
def logout(request: PageRequest, _form: JsonObject) -> Response:
    """End the session here and on the server."""
    request.services.accounts.forget_token(request.session)
    answer = RedirectResponse("/", 303)
    answer.delete_cookie(COOKIE)
    return answer


@receive_at("/challenges/{challenge:int}/join", PageRequest.require_user)
def join(request: PageRequest, form: JsonObject) -> Response:
    """Take part, with a team of the user's or a new one."""
    user, challenge = request.require_user(), request.path["challenge"]
    find_challenge(request, challenge)
    if request.services.permissions.team_of(user, challenge) is None:
        request.services.submitting.participate(user, challenge, _choose_team(request, user, form))
    return RedirectResponse(f"/challenges/{challenge}/submit", 303)


def _choose_team(request: PageRequest, user: User, form: JsonObject) -> int:
    chosen, name = str(form.get("team", "")), str(form.get("team_name", "")).strip()[:100]
    accounts = request.services.accounts
    if chosen.isdecimal() and len(chosen) < 19 and accounts.is_member(user, int(chosen), PARTICIPANT):
        return int(chosen)
    if not name:
        raise Refusal(400, "Choose a team, or give a new one a name.")
    try:
        return accounts.new_team(user, PARTICIPANT, name)
    except ValueError:
        raise Refusal(400, f"There is a team named {name} already.") from None


@receive_at("/challenges/{challenge:int}/submit", _check_participates, files=1)
def submit(request: PageRequest, form: JsonObject) -> Response:
    """Submit a file to a phase."""
    upload, phase = form.get("input_file"), str(form.get("phase", ""))
    if not phase.isdecimal() or len(phase) > 18:
        raise Refusal(400, "Choose a phase.")
    if not isinstance(upload, UploadFile) or not upload.filename:
        raise Refusal(400, "Choose a file.")
    if not upload.size:
        raise Refusal(400, f"{upload.filename} is empty.")
    submitting, target = request.services.submitting, PhaseTarget(request.path["challenge"], int(phase))
    phase_row, _ = submitting.admit(request.require_user(), target)
    form["submission_metadata"] = _answers(phase_row.config.get("submission_meta_attributes") or [], phase, form)
    number = submitting.submit(request.require_user(), target, form, upload.file, upload.filename)
    return RedirectResponse(f"/submissions/{number}", 303)


def _answers(questions: list[JsonObject], phase: str, form: JsonObject) -> list[JsonObject] | None:
    """Return what the form holds for a phase's questions, in the shape of EvalAI's API."""
    answers = []
    for index, question in enumerate(questions):
        values = form.get(f"attribute-{phase}-{index}", [])
        if question.get("required") in TRUE and not any(values):
            raise Refusal(400, f"{question['name']} must be answered.")
        answer = {key: question.get(key) for key in ("name", "type", "description", "required")}
        if question["type"] == "checkbox":
            answer |= {"options": question.get("options"), "values": values}
        elif question["type"] == "radio":
            answer |= {"options": question.get("options"), "value": values[0] if values else None}
        else:
            answer["value"] = bool(values) if question["type"] == "boolean" else (values[0] if values else "")
        answers.append(answer)
    return answers or None


@receive_at("/submissions/{submission:int}/mark", _require_hosted)
def mark(request: PageRequest, form: JsonObject) -> Response:
    """Make a submission a baseline, hide it from the leaderboard or flag it; or the opposite."""
    number = request.path["submission"]
    request.services.hosting.mark(request.require_user(), number, str(form.get("what", "")))
    return RedirectResponse(f"/submissions/{number}", 303)


@receive_at("/submissions/{submission:int}/rerun", _require_hosted)
def rerun(request: PageRequest, _form: JsonObject) -> Response:
    """Send the same file once more, as a new submission."""
    number = request.services.hosting.rerun(request.require_user(), request.path["submission"])
    return RedirectResponse(f"/submissions/{number}", 303)


@receive_at("/submissions/{submission:int}/cancel", _require_hosted)
def cancel(request: PageRequest, _form: JsonObject) -> Response:
    """Cancel a submission."""
    submission = _require_hosted(request)
    request.services.hosting.cancel(request.require_user(), submission.id)
    challenge = request.services.submissions.phase_of(submission).challenge_id
    return RedirectResponse(f"/challenges/{challenge}/host", 303)
