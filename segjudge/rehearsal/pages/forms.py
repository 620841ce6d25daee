"""What the pages' forms do."""

from __future__ import annotations

import json
from typing import Any

from starlette.datastructures import UploadFile
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from segjudge.bundle.field_values import TRUE
from segjudge.evalai.jobs import CANCELLED
from segjudge.rehearsal.accounts import PARTICIPANT
from segjudge.rehearsal.submissions import OPEN, Refusal

from .frame import COOKIE, Frame, PageRequest, by_anybody, in_session, shown
from .views import inside


def routes(frame: Frame) -> list[Route]:
    """All of them."""
    return [
        frame.deed("/login", login, by_anybody),
        frame.deed("/logout", logout, in_session),
        frame.deed("/challenges/{challenge:int}/join", join, in_session),
        frame.deed("/challenges/{challenge:int}/submit", submit, _takes_part, files=1),
        frame.deed("/submissions/{submission:int}/rerun", rerun, _hosted),
        frame.deed("/submissions/{submission:int}/cancel", cancel, _hosted),
        frame.deed("/submissions/{submission:int}/mark", mark, _hosted),
    ]


def _takes_part(look: PageRequest) -> None:
    """Nobody else's file is taken in."""
    if look.services.challenges.team_of(look.known(), look.request.path_params["challenge"]) is None:
        raise Refusal(403, "You haven't participated in the challenge")


def login(look: PageRequest, form: dict[str, Any]) -> Response:
    """A session for a name and a password."""
    after = inside(str(form.get("next", "/")))
    user = look.services.accounts.with_password(str(form.get("username", "")), str(form.get("password", "")))
    if user is None:
        answer = shown(look, "login.html", next=after, wrong=True)
        answer.status_code = 403
        return answer
    token, _ = look.services.accounts.mint(user, "browser")
    answer = RedirectResponse(after, 303)
    answer.set_cookie(COOKIE, token, httponly=True, samesite="lax", max_age=7 * 86400)
    return answer


def logout(look: PageRequest, _form: dict[str, Any]) -> Response:
    """End the session here and on the server."""
    look.services.accounts.forget(look.session)
    answer = RedirectResponse("/", 303)
    answer.delete_cookie(COOKIE)
    return answer


def join(look: PageRequest, form: dict[str, Any]) -> Response:
    """Take part, with a team that there is or a new one."""
    user, challenge = look.known(), look.request.path_params["challenge"]
    if look.services.challenges.row(challenge) is None:
        raise Refusal(404, "There is no such challenge.")
    if look.services.challenges.team_of(user, challenge) is None:
        told, name = str(form.get("team", "")), str(form.get("team_name", "")).strip()[:100]
        if told.isdecimal() and len(told) < 19 and look.services.accounts.is_member(user, int(told), PARTICIPANT):
            team = int(told)
        elif name:
            team = _new_team(look, name)
        else:
            raise Refusal(400, "Choose a team, or give a new one a name.")
        with look.services.store.write() as db:
            db.execute("INSERT OR IGNORE INTO participants VALUES (?, ?)", (challenge, team))
    return RedirectResponse(f"/challenges/{challenge}/submit", 303)


def _new_team(look: PageRequest, name: str) -> int:
    try:
        return look.services.accounts.new_team(look.known(), PARTICIPANT, name)
    except ValueError:
        raise Refusal(400, f"There is a team named {name} already.") from None


def submit(look: PageRequest, form: dict[str, Any]) -> Response:
    """Send a file to a phase."""
    user, challenge = look.known(), look.request.path_params["challenge"]
    upload, phase = form.get("input_file"), str(form.get("phase", ""))
    if not phase.isdecimal() or len(phase) > 18:
        raise Refusal(400, "Choose a phase.")
    if not isinstance(upload, UploadFile) or not upload.filename:
        raise Refusal(400, "Choose a file.")
    if not upload.size:
        raise Refusal(400, f"{upload.filename} is empty.")
    _, stage, _ = look.services.submissions.admitted(user, challenge, int(phase))
    form["submission_metadata"] = _answers(json.loads(stage["config"]).get("submission_meta_attributes"), phase, form)
    image = look.services.submissions.image_of(challenge, upload.file)
    file = look.services.store.keep(upload.file, upload.filename, "input_file")
    number = look.services.submissions.send(user, (challenge, int(phase)), form, file, image)
    return RedirectResponse(f"/submissions/{number}", 303)


def _answers(questions: Any, phase: str, form: dict[str, Any]) -> list[dict[str, Any]] | None:
    """What the form holds for a phase's questions, in the shape of EvalAI's API."""
    answers = []
    for place, one in enumerate(questions or []):
        told = form.get(f"attribute-{phase}-{place}", [])
        if one.get("required") in TRUE and not any(told):
            raise Refusal(400, f"{one['name']} must be answered.")
        answer = {key: one.get(key) for key in ("name", "type", "description", "required")}
        if one["type"] == "checkbox":
            answer |= {"options": one.get("options"), "values": told}
        elif one["type"] == "radio":
            answer |= {"options": one.get("options"), "value": told[0] if told else None}
        else:
            answer["value"] = bool(told) if one["type"] == "boolean" else (told[0] if told else "")
        answers.append(answer)
    return answers or None


def mark(look: PageRequest, form: dict[str, Any]) -> Response:
    """Make it a baseline, or hide it from the leaderboard; or the opposite."""
    row, what = _hosted(look), str(form.get("what", ""))
    if what not in _MARKS:
        raise Refusal(400, "There is no such mark.")
    look.services.submissions.update(row["id"], **{what: not row[what]})
    return RedirectResponse(f"/submissions/{row['id']}", 303)


_MARKS = ("is_baseline", "is_public", "is_flagged")


def _hosted(look: PageRequest) -> Any:
    row = look.services.submissions.row(look.request.path_params["submission"])
    if not look.services.challenges.is_host(look.known(), look.services.submissions.challenge_of(row)["id"]):
        raise Refusal(403, "This is for the hosts of the challenge.")
    return row


def rerun(look: PageRequest, _form: dict[str, Any]) -> Response:
    """The same file once more, as a new submission."""
    number = look.services.submissions.rerun(_hosted(look)["id"])
    return RedirectResponse(f"/submissions/{number}", 303)


def cancel(look: PageRequest, _form: dict[str, Any]) -> Response:
    """No worker takes it any more, and one that is at it leaves it; on EvalAI it would be scored all the same."""
    row = _hosted(look)
    with look.services.submissions.together():
        row = look.services.submissions.row(row["id"])
        if row["status"] not in OPEN:
            raise Refusal(400, f"Submission {row['id']} is {row['status']} already.")
        look.services.submissions.update(row["id"], status=CANCELLED)
    challenge = look.services.submissions.challenge_of(row)["id"]
    return RedirectResponse(f"/challenges/{challenge}/host", 303)
