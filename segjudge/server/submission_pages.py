"""The pages of submissions: the form, lists, one submission with its reports, and the hosts' actions on it."""

import re
import time
from collections.abc import Sequence

from starlette.responses import HTMLResponse, RedirectResponse, Response

from segjudge.platforms.evalai.bundle.opened_bundle import UPLOAD_BYTES
from segjudge.platforms.evalai.rows import FAILED, RUNNING, list_file_types
from segjudge.platforms.rules.fields import TRUE

from .accounts import PARTICIPANT
from .actions import hosting, submitting
from .actions.reading import (
    file_for_participants,
    find_comparison_page,
    find_report_page,
    find_split_summaries,
    may_open_report,
)
from .actions.submitting import PhaseTarget
from .board_pages import LISTED, PAGE_DIGITS, WITH_CAUSES, describe_place, format_score, name_boards, visible_boards
from .leaderboards import RankedBoard, board_of
from .models import ChallengePhase, ChallengePhaseSplit, Submission, Team
from .page_endpoints import HEADERS, TEMPLATES, answer, challenge_page, find_challenge, render
from .services import BodyLimits, UserRequest
from .stored_files import EXCERPT
from .submissions import SUBMITTED
from .wire import JsonObject, Refusal


@answer("GET", "/challenges/{challenge:int}/submit")
def _show_submit_form(request: UserRequest, challenge: int) -> Response:
    services, user = request.services, request.require_user()
    team = services.accounts.team_of(user, challenge)
    shown = [
        {
            **services.json.phase(phase, request.base, host=False),
            "left": submitting.count_remaining(services, team.id, phase) if team else None,
            "types": _file_types(phase),
        }
        for phase in services.accounts.visible_phases(user, challenge)
    ]
    teams = services.accounts.teams(user, PARTICIPANT)
    return challenge_page(request, challenge, "submit.html", phases=shown, teams=teams)


#: A process that read untrusted files wrote the report, so it is isolated from this server's other pages, as if from
#: another site.
_REPORT_POLICY = (
    "sandbox allow-scripts allow-downloads allow-forms; default-src 'none'; img-src data: blob:; "
    "style-src 'unsafe-inline'; script-src 'unsafe-inline'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)


#: The beginning of a report's body, with the link that skips its navigation.
_BODY = re.compile(r'<body>\n(<a class="skip"[^\n]*\n)?')


@answer("GET", "/challenges/{challenge:int}/submissions")
def _show_submissions(request: UserRequest, challenge: int) -> Response:
    services, user = request.services, request.require_user()
    team = services.accounts.team_of(user, challenge)
    phases = services.accounts.visible_phases(user, challenge) if team else []
    rows = [row for phase in phases for row in services.submissions.of_team(team.id if team else 0, phase.id)]
    rows.sort(key=lambda row: -row.id)
    listed = summarize_submissions(request, rows[:LISTED])
    by_id, boards = {phase.id: phase for phase in phases}, dict[int, RankedBoard]()
    for row, summary in zip(rows, listed, strict=False):
        summary["scores"] = _list_scores(request, row, by_id[row.phase_id], boards)
    for row, summary in zip(rows[:WITH_CAUSES], listed, strict=False):
        split_summaries = (find_split_summaries(services, user, row) or {}) if summary["has_report"] else {}
        summary["cause"] = " ".join(filter(None, (split_summary.cause for split_summary in split_summaries.values())))
        summary["picture"] = next(
            filter(None, (split_summary.picture for split_summary in split_summaries.values())), None
        )
    return challenge_page(request, challenge, "submissions.html", rows=listed)


def summarize_submissions(request: UserRequest, submissions: list[Submission]) -> list[JsonObject]:
    """Return the rows of a list of submissions; all names are read by one query."""
    services = request.services
    files = services.files.names(submission.input_file for submission in submissions)
    teams = services.store.find(Team, Team.id.in_({submission.team_id for submission in submissions}))
    team_names = {team.id: team.team_name for team in teams}
    columns = ("id", "status", "submitted_at", "method_name", "is_public", "is_baseline", "is_flagged")
    phases = {
        number: services.store.require(ChallengePhase, number) for number in {row.phase_id for row in submissions}
    }
    return [
        {
            **{key: getattr(submission, key) for key in columns},
            "phase": phases[submission.phase_id].config["name"],
            "took": submission.execution_time,
            "reason": _explain_failure(request, submission) if submission.status == FAILED else "",
            "team": team_names[submission.team_id],
            "file": files.get(submission.input_file, ""),
            "has_report": may_open_report(request.services, request.user, phases[submission.phase_id], submission),
            "submission": submission.id,
            "cause": "",
            "picture": None,
        }
        for submission in submissions
    ]


#: The beginning of our scorer's sentence in a traceback: EvalAI loads it under its own name.
_SENTENCE = re.compile(r"^(?:\w+\.)*SubmissionError: ", re.MULTILINE)


def _explain_failure(request: UserRequest, submission: Submission) -> str:
    """Return why a submission failed: the sentences for participants, or the last line of output."""
    text = _read_text(request, submission, submission.stderr_file, from_end=True).strip()
    *_, sentences = _SENTENCE.split(text)
    if sentences != text:
        return sentences
    return text.splitlines()[-1] if text else "nothing was written to stderr"


def _read_text(request: UserRequest, submission: Submission, file: str | None, *, from_end: bool = False) -> str:
    """Return the beginning or the end of a submission's file, as far as this user may read it."""
    if file and not request.services.accounts.hosts_submission(request.user, submission):
        redacted = file_for_participants(request.services, submission.id, file)
        if redacted is not None:
            return redacted[-EXCERPT:] if from_end else redacted[:EXCERPT]
    return request.services.files.text(file, from_end=from_end)


#: Columns of files, their names, and whether only hosts may read them.
_FILES = {
    "stdout_file": ("stdout", False),
    "stderr_file": ("stderr", False),
    "environment_log_file": ("environment log", True),
    "submission_result_file": ("result", False),
    "metadata_file": ("metadata, for hosts", True),
}


@answer("GET", "/submissions/{submission:int}")
def _show_submission(request: UserRequest, submission: int) -> Response:
    services, user = request.services, request.require_user()
    row = services.submissions.get(submission)
    services.accounts.check_may_see_submission(user, row)
    phase = services.submissions.phase_of(row)
    host = services.accounts.is_host(user, phase.challenge_id)
    files = []
    for column, (name, for_hosts) in _FILES.items():
        file = getattr(row, column)
        if file and (host or not for_hosts):
            url = services.files.url(file, request.base, 0 if host else row.id)
            files.append({"name": name, "text": _read_text(request, row, file), "url": url})
    return challenge_page(
        request,
        phase.challenge_id,
        "submission.html",
        row=summarize_submissions(request, [row])[0],
        started_at=row.started_at,
        completed_at=row.completed_at,
        input_url=services.files.url(row.input_file, request.base),
        files=files,
        scores=_list_scores(request, row, phase, {}),
        split_summaries=find_split_summaries(services, user, row),
        waiting=services.submissions.count_ahead(row) if row.status == SUBMITTED else None,
        running=max(0.0, time.time() - row.started_at) if row.status == RUNNING and row.started_at else None,
    )


def _list_scores(
    request: UserRequest, submission: Submission, phase: ChallengePhase, boards: dict[int, RankedBoard]
) -> list[JsonObject]:
    """Return the scores that the user may see, and the places on leaderboards; a list shares the boards."""
    services, shown = request.services, []
    scores = services.submissions.scores(submission.id)
    for split in services.accounts.visible_splits(request.user, phase):
        if split.id in scores:
            is_listed = services.accounts.may_see_board(request.user, phase, split)
            main = split.leaderboard.schema["default_order_by"]
            if is_listed and split.id not in boards:
                boards[split.id] = board_of(services.store, phase, split)
            shown.append({
                "split": split.dataset_split.name,
                "codename": split.dataset_split.codename,
                "values": [
                    (label, format_score(scores[split.id].get(label), split.decimals)) for label in split.labels
                ],
                "label": main,
                "value": format_score(scores[split.id].get(main), split.decimals),
                "place": describe_place(boards[split.id], submission.id) if is_listed else "",
                "address": f"/challenges/{phase.challenge_id}/leaderboard/{split.id}" if is_listed else "",
            })  # fmt: skip
    return shown


@answer("GET", "/submissions/{submission:int}/report")
def _show_report(request: UserRequest, submission: int) -> Response:
    """Return the report of a submission, or a page that reloads until it is made."""
    services, user = request.services, request.user
    text = find_report_page(services, user, submission)
    row = services.submissions.get(submission)
    trail = _link_parents(request, services.submissions.phase_of(row))
    if services.accounts.may_see_submission(user, row):
        trail.append((f"/submissions/{submission}", f"Submission {submission}"))
    return _report_answer(request, text, trail)


@answer("GET", "/leaderboard/{split:int}/compare")
def _show_comparison(request: UserRequest, split: int) -> Response:
    """Return the comparison of the two selected submissions."""
    services, user = request.services, request.user
    phase_split = services.store.require(ChallengePhaseSplit, split, Refusal(404, "There is no such leaderboard."))
    phase = services.store.require(ChallengePhase, phase_split.phase_id)
    if split not in {visible.id for visible in services.accounts.visible_splits(user, phase)}:
        raise Refusal(404, "There is no such leaderboard.")
    texts = request.query_params.getlist("submission")
    numbers = [int(text) for text in texts if text.isdecimal() and len(text) < PAGE_DIGITS]
    text = find_comparison_page(services, user, phase_split, numbers)
    return _report_answer(request, text, _link_parents(request, phase, split))


def _report_answer(request: UserRequest, text: str | None, trail: Sequence[tuple[str, str]]) -> Response:
    """Return a page below its links back, or a page that reloads until it is made."""
    if text is not None:
        links = TEMPLATES.get_template("trail.html").render(trail=trail)
        text = _BODY.sub(lambda start: f"{start[0]}{links}", text, count=1)
        return HTMLResponse(text, headers={**HEADERS, "Content-Security-Policy": _REPORT_POLICY})
    message = "It will open here."
    waiting = render(request, "message.html", title="Preparing the report…", text=message, trail=trail)
    waiting.headers["Refresh"] = "1"
    return waiting


def _link_parents(request: UserRequest, phase: ChallengePhase, split: int = 0) -> list[tuple[str, str]]:
    """Return the links from a report to its challenge and to a leaderboard of its phase, if the user may see one."""
    challenge = find_challenge(request, phase.challenge_id)
    address = f"/challenges/{challenge.id}"
    boards = [board for board in visible_boards(request, challenge.id) if board[0].id == phase.id]
    names = [name for name in name_boards(boards) if split in (0, name["id"])][:1]
    return [
        (address, str(challenge.config["title"])),
        *((f"{address}/leaderboard/{it['id']}", it["name"]) for it in names),
    ]


def _require_team(request: UserRequest, challenge: int) -> None:
    submitting.require_team(request.services, request.require_user(), challenge)


def _require_hosted(request: UserRequest, submission: int) -> Submission:
    row = request.services.submissions.get(submission)
    if not request.services.accounts.hosts_submission(request.require_user(), row):
        raise Refusal(403, "Only hosts of the challenge may do this.")
    return row


_UPLOAD = BodyLimits(bytes=UPLOAD_BYTES, text=1 << 20, files=1, fields=60)


@answer("POST", "/challenges/{challenge:int}/submit", _require_team, _UPLOAD)
def _submit(request: UserRequest, challenge: int) -> Response:
    upload, phase = request.files.get("input_file"), str(request.fields.get("phase", ""))
    if not phase.isdecimal() or len(phase) > 18:
        raise Refusal(400, "Choose a phase.")
    if upload is None or not upload.filename:
        raise Refusal(400, "Choose a file.")
    if not upload.size:
        raise Refusal(400, f"{upload.filename} is empty.")
    services, user, target = request.services, request.require_user(), PhaseTarget(challenge, int(phase))
    row, _ = submitting.admit(services, user, target)
    _check_type(upload.filename, row)
    questions = row.config.get("submission_meta_attributes") or []
    fields = {**request.fields, "submission_metadata": _read_answers(request, questions, phase)}
    number = submitting.submit(services, user, target, fields, upload.file, upload.filename)
    return RedirectResponse(f"/submissions/{number}", 303)


def _read_answers(request: UserRequest, questions: list[JsonObject], phase: str) -> list[JsonObject] | None:
    """Return the form's answers to a phase's questions, in the shape of EvalAI's API."""
    answers = []
    for index, question in enumerate(questions):
        values = request.form_data.getlist(f"attribute-{phase}-{index}")
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


@answer("POST", "/submissions/{submission:int}/mark", _require_hosted)
def _toggle_mark(request: UserRequest, submission: int) -> Response:
    """Change a mark of a submission: baseline, hidden from the leaderboard, flagged."""
    hosting.toggle_mark(request.services, request.require_user(), submission, str(request.fields.get("what", "")))
    return RedirectResponse(f"/submissions/{submission}", 303)


@answer("POST", "/submissions/{submission:int}/rerun", _require_hosted)
def _rerun(request: UserRequest, submission: int) -> Response:
    number = hosting.rerun(request.services, request.require_user(), submission)
    return RedirectResponse(f"/submissions/{number}", 303)


@answer("POST", "/submissions/{submission:int}/cancel", _require_hosted)
def _cancel(request: UserRequest, submission: int) -> Response:
    row = _require_hosted(request, submission)
    hosting.cancel(request.services, request.require_user(), submission)
    challenge = request.services.submissions.phase_of(row).challenge_id
    return RedirectResponse(f"/challenges/{challenge}/host", 303)


def _file_types(phase: ChallengePhase) -> list[str]:
    """Return the endings that a phase lists; EvalAI's form accepts only these, its API any."""
    return list_file_types(phase.config["allowed_submission_file_types"])


def _check_type(name: str, phase: ChallengePhase) -> None:
    """Reject a file of another type before it counts against the daily limit."""
    types = _file_types(phase)
    if types and not name.lower().endswith(tuple(types)):
        raise Refusal(
            400, f"{name} is no {' or '.join(types)} file; {phase.config['name']} accepts no other file type."
        )
