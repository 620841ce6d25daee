"""EvalAI's REST API, as its official client and remote workers use it, and the signed addresses of files.

Each function answers one method of a route: it takes the request and the values of the address.
"""

import functools
import hashlib
import math
import mimetypes
import os
import re
import shutil
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, JSONResponse, Response

from segjudge.platforms.evalai import routes
from segjudge.platforms.evalai.bundle.opened_bundle import UPLOAD_BYTES
from segjudge.platforms.evalai.rows import FINISHED
from segjudge.platforms.rules.fields import TEXT, Field, validate

from . import bundle_import, host_lists
from .accounts import HOST, PARTICIPANT
from .actions import hosting, submitting
from .actions.reading import file_for_participants
from .actions.submitting import PhaseTarget, part_count
from .evalai_json import board_json, phase_split_json
from .leaderboards import board_of
from .models import (
    Challenge,
    ChallengePhase,
    ChallengePhaseSplit,
    DatasetSplit,
    Leaderboard,
    Participation,
    StoredFile,
    Submission,
    Team,
    UploadPart,
    User,
)
from .services import BodyLimits, Endpoint, Handler, NumberedRoute, UserRequest, require_user, services_of
from .stored_files import MEDIA, PART, PUSH_PREFIX, text_to_sign
from .submissions import STATUSES
from .wire import NOT_AUTHORIZED, JsonObject, Refusal, format_moment, make_storable, parse_moment

ROUTES: list[NumberedRoute] = []
_WINDOW, _ANONYMOUS = 60.0, 100
_NOT_VALID = {
    "detail": "Given token not valid for any token type",
    "code": "token_not_valid",
    "messages": [{"token_class": "RefreshToken", "token_type": "refresh", "message": "Token is invalid or expired"}],
}


class Throttle:
    """A limit of requests per minute for each user, over all paths."""

    def __init__(self, limit: int) -> None:
        self._limit, self._lock = limit, threading.Lock()
        self._moments: dict[str, deque[float]] = {}

    def check(self, user: User | None, address: str) -> None:
        """Reject a request beyond the limit of a user, or of an address without a login."""
        moment, limit = time.monotonic(), max(self._limit, _ANONYMOUS) if user is None else self._limit
        with self._lock:
            moments = self._moments.setdefault(f"user {user.id}" if user else f"at {address}", deque())
            while moments and moments[0] <= moment - _WINDOW:
                moments.popleft()
            if len(moments) < limit:
                moments.append(moment)
                return
            wait = math.ceil(_WINDOW - (moment - moments[0]))
        message = f"Request was throttled. Expected available in {wait} second{'s' if wait != 1 else ''}."
        raise Refusal(429, {"detail": message}, {"Retry-After": str(wait)})


class _ApiEndpoint(Endpoint):
    """An endpoint that knows its user by a token, and answers in JSON."""

    def identify(self, request: UserRequest) -> User | None:
        header = request.headers.get("authorization", "")
        kind, _, token = header.partition(" ")
        user = request.services.accounts.user_of_token(token.strip()) if header else None
        if header and user is None:
            raise Refusal(401, {"detail": "Invalid token"} if kind.lower() == "token" else dict(_NOT_VALID))
        request.app.state.throttle.check(user, request.client.host if request.client else "")
        return user

    def respond(self, request: UserRequest, handler: Handler) -> Response:
        try:
            answer = handler(request, **request.path_params)
            return answer if isinstance(answer, Response) else JSONResponse(answer)
        except (OverflowError, RecursionError, UnicodeError) as error:
            # A value that cannot be used or shown is the caller's fault.
            message = f"The request holds a value that cannot be processed ({error})"
            raise Refusal(400, message.encode("ascii", "backslashreplace").decode()[:300]) from None


#: The limits of a small form, or JSON.
_SMALL = BodyLimits()


def _answer(
    method: str, route: str, *, check: Handler = require_user, limits: BodyLimits = _SMALL
) -> Callable[[Handler], Handler]:
    """Register the handler of a route's method; `check` rejects unread bodies."""

    def register(handler: Handler) -> Handler:
        ROUTES.append(NumberedRoute(route, _ApiEndpoint(handler, check, limits).answer, methods=[method]))
        return handler

    return register


def _list_json(rows: Sequence[JsonObject]) -> JsonObject:
    return {"count": len(rows), "next": None, "previous": None, "results": rows}


def _submission_json(request: UserRequest, number: int, *, host: bool = False) -> JsonObject:
    return request.services.json.submission(request.services.submissions.get(number), request.base, host=host)


# ── challenges ──────────────────────────────────────────────────────────────


@_answer("GET", routes.CHALLENGES)
def _list_challenges(request: UserRequest, time: str, approved: str, published: str) -> JsonObject:
    if not re.fullmatch("[A-Za-z]+", time + approved + published):
        raise HTTPException(404)  # another address, without its slash
    period, moment = time.lower(), request.services.clock()
    if period not in ("all", "past", "present", "future"):
        raise Refusal(406, "Wrong url pattern!")
    rows = [_challenge_json(request, challenge) for challenge in request.services.store.find(Challenge)]
    return _list_json([row for row in rows if period in ("all", _period_of(row, moment))])


def _period_of(challenge: JsonObject, moment: float) -> str:
    if parse_moment(challenge["end_date"]) < moment:
        return "past"
    return "future" if parse_moment(challenge["start_date"]) > moment else "present"


def _challenge_json(request: UserRequest, challenge: Challenge) -> JsonObject:
    """Return a challenge as the caller sees it: only its hosts see its script."""
    host = request.services.accounts.is_host(request.user, challenge.id)
    return request.services.json.challenge(challenge, request.base, host=host)


def _require_host(request: UserRequest, challenge: int, refusal: Refusal) -> None:
    request.services.store.require(Challenge, challenge)
    request.services.accounts.check_host(request.require_user(), challenge, refusal)


@_answer("GET", routes.CHALLENGE)
def _show_challenge(request: UserRequest, challenge: int) -> JsonObject:
    return _challenge_json(request, request.services.store.require(Challenge, challenge))


@_answer("GET", routes.CHALLENGES_OF_HOST)
def _list_challenges_of_host(request: UserRequest, team: int) -> JsonObject:
    request.services.accounts.require_team_member(request.require_user(), team)
    rows = request.services.store.find(Challenge, Challenge.host_team == team)
    return _list_json([_challenge_json(request, row) for row in rows])


_answer("GET", routes.CHALLENGE_OF_HOST)(host_lists.challenge_of_host)
for _route, _key in ((routes.PRIZES, "prizes"), (routes.SPONSORS, "sponsors")):
    _answer("GET", _route)(functools.partial(host_lists.list_blocks, key=_key))


@_answer("GET", routes.TEAMS_OF_CHALLENGE)
def _list_teams_of_challenge(request: UserRequest, challenge: int) -> JsonObject:
    _require_host(request, challenge, Refusal(403, "You are not authorized to make this request"))
    return host_lists.teams_of(request.services, challenge)


@_answer("GET", routes.CHALLENGES_OF_PARTICIPANT)
def _list_challenges_of_participant(request: UserRequest, team: int) -> JsonObject:
    if not request.services.accounts.is_member(request.require_user(), team):
        raise Refusal(403, "Sorry, you are not a member of this team")
    conditions = Challenge.id == Participation.challenge_id, Participation.team_id == team
    return _list_json([_challenge_json(request, row) for row in request.services.store.find(Challenge, *conditions)])


@_answer("POST", routes.PARTICIPATE)
def _participate(request: UserRequest, challenge: int, team: int) -> Response:
    request.services.store.require(Challenge, challenge)
    submitting.participate(request.services, request.require_user(), challenge, team)
    return JSONResponse({}, 201)


@_answer("GET", routes.PHASES)
def _list_phases(request: UserRequest, challenge: int) -> JsonObject:
    request.services.store.require(Challenge, challenge)
    host = request.services.accounts.is_host(request.user, challenge)
    rows = request.services.accounts.visible_phases(request.user, challenge)
    return _list_json([request.services.json.phase(row, request.base, host=host) for row in rows])


@_answer("GET", routes.PHASE)
def _show_phase(request: UserRequest, challenge: int, phase: int) -> JsonObject:
    request.services.store.require(Challenge, challenge, Refusal(406, "Challenge does not exist"))
    row = request.services.accounts.visible_phase(request.user, phase)
    if row is None or row.challenge_id != challenge:
        raise Refusal(406, f"Challenge phase {phase} does not exist for challenge {challenge}")
    host = request.services.accounts.is_host(request.user, challenge)
    return request.services.json.phase(row, request.base, host=host)


@_answer("GET", routes.PHASE_ALONE)
@_answer("GET", routes.PHASE_BY_SLUG)
def _show_phase_alone(request: UserRequest, phase: int = 0, slug: str = "") -> JsonObject:
    condition = ChallengePhase.slug == slug if slug else ChallengePhase.id == phase
    row = request.services.store.find_first(ChallengePhase, condition)
    if row is None or not request.services.accounts.may_see_phase(request.user, row):
        raise Refusal(404, {"detail": f"ChallengePhase {slug or phase} does not exist"})
    return request.services.json.phase(row, request.base, host=False)


@_answer("GET", routes.PHASES_OF_HOST)
def _list_phases_of_host(request: UserRequest, challenge: int) -> list[JsonObject]:
    _require_host(request, challenge, Refusal(401, "Sorry, you are not authorized to access this challenge."))
    phases = request.services.store.phases(challenge)
    return [request.services.json.phase(row, request.base, host=True) for row in phases]


@_answer("GET", routes.PHASE_SPLITS)
def _list_phase_splits(request: UserRequest, challenge: int) -> list[JsonObject]:
    accounts = request.services.accounts
    request.services.store.require(Challenge, challenge)
    return [
        phase_split_json(split, phase)
        for phase in accounts.visible_phases(request.user, challenge)
        for split in accounts.visible_splits(request.user, phase)
    ]


#: Address -> the row that a host reads there, and its columns.
_ROWS_FOR_HOSTS: dict[str, tuple[type[ChallengePhaseSplit | Leaderboard | DatasetSplit], dict[str, str]]] = {
    routes.PHASE_SPLIT: (ChallengePhaseSplit, {
        "id": "id", "challenge_phase": "phase_id", "dataset_split": "split_id", "leaderboard": "leaderboard_id",
        "visibility": "visibility", "leaderboard_decimal_precision": "decimals",
        "is_leaderboard_order_descending": "descending",
    }),
    routes.LEADERBOARD_SCHEMA: (Leaderboard, {"id": "id", "schema": "schema", "config_id": "config_id"}),
    routes.DATASET_SPLIT: (DatasetSplit, {
        "id": "id", "name": "name", "codename": "codename", "config_id": "config_id",
    }),
}  # fmt: skip


def _show_row_for_hosts(request: UserRequest, *, route: str, **address: int) -> JsonObject:
    model, columns = _ROWS_FOR_HOSTS[route]
    row = request.services.store.get(model, *address.values())
    if row is None or not request.services.accounts.is_host(request.require_user(), row.challenge_id):
        raise Refusal(404, "Not found.")
    return {key: getattr(row, column) for key, column in columns.items()}


for _route in _ROWS_FOR_HOSTS:
    _answer("GET", _route)(functools.partial(_show_row_for_hosts, route=_route))


@_answer("GET", routes.REQUEST_APPROVAL)
def _request_approval(request: UserRequest, challenge: int) -> JsonObject:
    _require_host(request, challenge, Refusal(403, "Sorry, you are not authorized to access this challenge."))
    store = request.services.store
    idle = [
        phase.name
        for phase in store.phases(challenge)
        if not store.exists(Submission.phase_id == phase.id, Submission.status == FINISHED)
    ]
    if idle:
        raise Refusal(406, f"The following challenge phases do not have finished submissions: {', '.join(idle)}")
    return {"message": "Approval request sent!"}


@_answer("GET", routes.WORKER_LOGS)
def _show_worker_logs(request: UserRequest, challenge: int) -> JsonObject:
    _require_host(request, challenge, Refusal(400, "Sorry, you are not authorized for access worker operations."))
    return {"logs": request.services.store.log_lines(challenge)}


@_answer("GET", routes.AWS_CREDENTIALS)
def _refuse_registry(_request: UserRequest, **_address: int) -> None:
    message = "This rehearsal has no image registry: submit a JSON file with submitted_image_uri instead of a push."
    raise Refusal(400, message)


# ── accounts and teams ──────────────────────────────────────────────────────


@_answer("POST", routes.LOGIN, check=lambda _request: None, limits=BodyLimits(bytes=16 << 10, text=4 << 10))
def _log_in(request: UserRequest) -> JsonObject:
    accounts, fields = request.services.accounts, request.fields
    user = accounts.authenticate(str(fields.get("username", "")), str(fields.get("password", "")))
    if user is None:
        raise Refusal(400, {"non_field_errors": ["Unable to log in with provided credentials."]})
    return {"token": accounts.mint_token(user, "login")[0]}


@_answer("GET", routes.AUTH_TOKEN)
def _mint_token(request: UserRequest) -> JsonObject:
    """Return the token of the profile page: a new one, because only hashes of tokens are stored."""
    token, expires = request.services.accounts.mint_token(request.require_user(), "profile")
    return {"token": token, "expires_at": format_moment(expires)}


_TEAM_NAME = Field(TEXT, "the name of a team", limit=100)


def _list_teams(request: UserRequest, *, kind: str) -> JsonObject:
    accounts = request.services.accounts
    return _list_json([accounts.team_json(team) for team in accounts.teams(request.require_user(), kind)])


def _create_team(request: UserRequest, *, kind: str) -> Response:
    value = request.fields.get("team_name", "")
    if error := validate("team_name", value, _TEAM_NAME):
        raise Refusal(400, {"team_name": [error.message, *(message for message, _ in error.more)]})
    name = str(value).strip()
    accounts = request.services.accounts
    try:
        number = accounts.create_team(request.require_user(), kind, name, make_storable(request.fields.get("team_url")))
    except ValueError:
        raise Refusal(400, {"team_name": [f"{kind} team with this team name already exists."]}) from None
    return JSONResponse(accounts.team_json(request.services.store.require(Team, number)), 201)


def _check_may_push(request: UserRequest, team: int | None = None) -> None:
    if team is not None:
        request.services.accounts.require_team_member(request.require_user(), team)
    request.services.accounts.check_may_push(request.require_user())


_answer("GET", routes.PARTICIPANT_TEAMS)(functools.partial(_list_teams, kind=PARTICIPANT))
_answer("GET", routes.HOST_TEAMS)(functools.partial(_list_teams, kind=HOST))
_answer("POST", routes.PARTICIPANT_TEAMS)(functools.partial(_create_team, kind=PARTICIPANT))
_answer("POST", routes.CREATE_HOST_TEAM, check=_check_may_push)(functools.partial(_create_team, kind=HOST))


# ── bundles ─────────────────────────────────────────────────────────────────

_UPLOAD = BodyLimits(bytes=UPLOAD_BYTES, files=3)


@_answer("POST", routes.VALIDATE, check=_check_may_push, limits=_UPLOAD)
def _validate(request: UserRequest, team: int) -> JsonObject:  # noqa: ARG001
    with _receive_bundle(request) as (bundle, repository):
        _check_bundle(request, bundle, repository, saving=False)
    return {"Success": "The challenge config has been validated successfully"}


@_answer("POST", routes.CREATE_OR_UPDATE, check=_check_may_push, limits=_UPLOAD)
def _create_or_update(request: UserRequest, team: int) -> Response:
    with _receive_bundle(request) as (bundle, repository):
        existing = bundle_import.find_challenge(request.services, repository)
        if existing is not None:
            message = "Sorry, you are not a host for this challenge. Please check your user access token"
            request.services.accounts.check_host(request.require_user(), existing.id, Refusal(403, message))
        _check_bundle(request, bundle, repository)
        try:
            number, is_new = bundle_import.create_or_update(request.services, bundle, repository, team)
        except ValueError as error:
            raise Refusal(400, {"error": str(error), "error_message": ""}) from None
    title = request.services.store.require(Challenge, number).config.get("title")
    if not is_new:
        return JSONResponse({"Success": f"The challenge {title} has been updated successfully"})
    message = f"Challenge {title} has been created successfully and sent for review to EvalAI Admin."
    return JSONResponse({"Success": message}, 201)


def _check_bundle(request: UserRequest, bundle: str, repository: str, *, saving: bool = True) -> None:
    refusal = bundle_import.refuse_bundle(request.services, bundle, repository, saving=saving)
    if refusal:
        raise Refusal(400, refusal)


@contextmanager
def _receive_bundle(request: UserRequest) -> Iterator[tuple[str, str]]:
    upload = request.files.get("zip_configuration")
    repository = str(request.fields.get("GITHUB_REPOSITORY", "")).strip()
    if upload is None:
        raise Refusal(400, {"error": {"zip_configuration": ["No file was submitted."]}})
    if not repository:
        raise Refusal(400, "GITHUB_REPOSITORY is missing; EvalAI answers that with an error 500")
    parent = request.services.store.folder
    with tempfile.TemporaryDirectory(prefix=PUSH_PREFIX, dir=parent, ignore_cleanup_errors=True) as folder:
        path = os.path.join(folder, "challenge_config.zip")
        with open(path, "wb") as file:
            shutil.copyfileobj(upload.file, file)
        yield path, repository


# ── submissions and leaderboards ────────────────────────────────────────────


def _check_may_submit(request: UserRequest, challenge: int, phase: int) -> None:
    submitting.admit(request.services, request.require_user(), PhaseTarget(challenge, phase))


@_answer("POST", routes.SUBMISSIONS, check=_check_may_submit, limits=_UPLOAD)
def _submit(request: UserRequest, challenge: int, phase: int) -> Response:
    """Submit a file; in a challenge that runs code, it names an image."""
    upload = request.files.get("input_file")
    if request.fields.get("file_url"):
        message = "A rehearsal downloads no files: upload the file itself."
        raise Refusal(400, f"{message} EvalAI itself would download file_url.")
    if upload is None:
        raise Refusal(406, {"input_file": ["No file was submitted."]})
    if not upload.size:
        raise Refusal(406, {"input_file": ["The submitted file is empty."]})
    target, name = PhaseTarget(challenge, phase), upload.filename or "submission"
    number = submitting.submit(request.services, request.require_user(), target, request.fields, upload.file, name)
    return JSONResponse(_submission_json(request, number), 201)


@_answer("GET", routes.SUBMISSIONS)
def _list_own_submissions(request: UserRequest, challenge: int, phase: int) -> JsonObject:
    services = request.services
    submitting.require_target(services, PhaseTarget(challenge, phase))
    team = submitting.require_team(services, request.require_user(), challenge)
    rows = services.submissions.of_team(team.id, phase)
    return _list_json([services.json.submission(row, request.base) for row in rows])


@_answer("GET", routes.SUBMISSION)
def _show_submission(request: UserRequest, submission: int) -> JsonObject:
    user, row, accounts = (
        request.require_user(),
        request.services.submissions.get(submission),
        request.services.accounts,
    )
    if not accounts.may_see_submission(user, row):
        raise Refusal(401, "Sorry, you are not authorized to access this submission.")
    return _submission_json(request, submission, host=accounts.hosts_submission(user, row))


@_answer("GET", routes.SUBMISSIONS_OF_CHALLENGE)
def _list_submissions_of_challenge(request: UserRequest, challenge: int) -> list[JsonObject]:
    """Return every submission of a challenge to its hosts, so that they can find stuck ones."""
    query = request.query_params
    status, after, before = (query.get(key, "") for key in ("status", "submitted_after", "submitted_before"))
    request.services.accounts.check_host(request.require_user(), challenge)
    if status and status not in STATUSES:
        raise Refusal(400, f"Invalid submission status {status}")
    try:
        period = parse_moment(after) if after else 0.0, parse_moment(before) if before else math.inf
    except ValueError as error:
        raise Refusal(400, str(error)) from None
    rows = request.services.submissions.of_challenge(challenge, status, period)
    return [request.services.json.submission(row, request.base, host=True) for row in rows]


@_answer("GET", routes.LEADERBOARD)
def _show_leaderboard(request: UserRequest, split: int, *, private: bool = False) -> JsonObject:
    """Return a leaderboard, for hosts also with private submissions."""
    store = request.services.store
    phase_split = store.require(ChallengePhaseSplit, split)
    phase = store.require(ChallengePhase, phase_split.phase_id)
    if private:
        _require_host(request, phase.challenge_id, Refusal(400, NOT_AUTHORIZED))
    elif not request.services.accounts.may_see_board(request.user, phase, phase_split):
        raise Refusal(400, "Sorry, the leaderboard is not public!")
    board = board_of(store, phase, phase_split, request.query_params.get("order_by", ""), private=private)
    return host_lists.list_page(request, board_json(board, split), sized=True)


_answer("GET", routes.LEADERBOARD_OF_HOST)(functools.partial(_show_leaderboard, private=True))


@_answer("GET", routes.SUBMISSIONS_OF_PHASE)
def _list_submissions_of_phase(request: UserRequest, challenge: int, phase: int) -> JsonObject:
    message = "You are neither host nor participant of the challenge!"
    _require_host(request, challenge, Refusal(400, message))
    row = request.services.store.get(ChallengePhase, phase)
    if row is None or row.challenge_id != challenge:
        raise Refusal(404, f"Challenge Phase {phase} does not exist")
    return host_lists.list_submissions(request, row)


@_answer("GET", routes.SUBMISSION_COUNTS)
def _count_submissions(request: UserRequest, phase: int) -> JsonObject:
    row = request.services.store.require(ChallengePhase, phase)
    _require_host(request, row.challenge_id, Refusal(401, "Sorry, you are not authorized to make this request"))
    return host_lists.count_statuses(request.services, phase)


@_answer("POST", routes.SUBMISSION_RERUN)
def _rerun(request: UserRequest, submission: int) -> JsonObject:
    hosting.rerun(request.services, request.require_user(), submission)
    return {"success": "Submission is successfully submitted for re-running"}


@_answer("POST", routes.SUBMISSION_RESUME)
def _resume(request: UserRequest, submission: int) -> JsonObject:
    hosting.resume(request.services, request.require_user(), submission)
    return {"success": "Submission is successfully resumed"}


@_answer("PATCH", routes.SUBMISSION_META)
def _edit_submission(request: UserRequest, challenge: int, submission: int) -> JsonObject:
    """Change fields of a submission; a change of its status cancels it."""
    host = hosting.edit(request.services, request.require_user(), challenge, submission, request.fields)
    return _submission_json(request, submission, host=host)


@_answer("PATCH", routes.LEADERBOARD_DATA)
def _edit_scores(request: UserRequest, row: int) -> JsonObject:
    values = hosting.edit_scores(request.services, request.require_user(), row, request.fields.get("leaderboard_data"))
    return {"id": row, "result": values}


# ── files, and uploads in parts ─────────────────────────────────────────────


@_answer("GET", routes.SUBMISSION_FILES)
def _refuse_bucket(request: UserRequest) -> None:
    request.require_user()
    if not request.query_params.get("key") or not request.query_params.get("bucket"):
        raise Refusal(400, "key and bucket names can't be empty")
    raise Refusal(403, "This rehearsal keeps no files in buckets: use the addresses that the submission shows.")


@_answer("POST", routes.UPLOAD_URLS)
def _start_upload(request: UserRequest, phase: int) -> Response:
    number, upload = submitting.start_upload(request.services, request.require_user(), phase, request.fields)
    return JSONResponse({**_part_urls(request, upload), "submission_pk": number}, 201)


@_answer("POST", routes.UPLOAD_FINISHED)
def _finish_upload(request: UserRequest, phase: int, submission: int) -> Response:
    upload, parts = str(request.fields.get("upload_id", "")), request.fields.get("parts")
    submitting.finish_upload(request.services, request.require_user(), phase, submission, upload, parts)
    return JSONResponse({"upload_id": request.fields.get("upload_id"), "submission_pk": submission}, 201)


@_answer("POST", routes.UPLOAD_SEND)
def _send_upload(request: UserRequest, phase: int, submission: int) -> JsonObject:
    submitting.send_upload(request.services, request.require_user(), phase, submission)
    return {}


@_answer("POST", routes.ANNOTATION_URLS)
def _start_annotation(request: UserRequest, phase: int) -> JsonObject:
    upload = submitting.start_annotation(request.services, request.require_user(), phase, request.fields)
    return _part_urls(request, upload)


@_answer("POST", routes.ANNOTATION_FINISHED)
def _finish_annotation(request: UserRequest, phase: int) -> Response:
    """Join the parts of a truth, which later pushes keep."""
    upload, parts = str(request.fields.get("upload_id", "")), request.fields.get("parts")
    submitting.finish_annotation(request.services, request.require_user(), phase, upload, parts)
    return JSONResponse({"upload_id": request.fields.get("upload_id"), "challenge_phase_pk": phase}, 201)


def _part_urls(request: UserRequest, upload: str) -> JsonObject:
    numbers, files = range(1, part_count(request.fields) + 1), request.services.files
    urls = [{"partNumber": number, "url": files.part_url(upload, number, request.base)} for number in numbers]
    return {"presigned_urls": urls, "upload_id": upload}


_SPOOLED = 1 << 20
#: Headers that keep browsers from opening an untrusted file as a page of this server.
_FILE_HEADERS = {"X-Content-Type-Options": "nosniff", "Content-Security-Policy": "default-src 'none'; sandbox"}


#: The answer of EvalAI's storage for a file that it no longer has.
_EXPIRED = (
    '<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>NoSuchKey</Code>'
    "<Message>The specified key does not exist.</Message></Error>"
)


def _check_signed(request: Request, text: str) -> None:
    query = request.query_params
    if not services_of(request).files.is_signed(text, query.get("expires", ""), query.get("signature", "")):
        message = "This URL has expired or is not valid: request the submission again to get a new one."
        raise Refusal(403, message)


def _download(request: Request) -> Response:
    services, number, of = services_of(request), request.path_params["file"], request.query_params.get("of", "")
    _check_signed(request, text_to_sign(number, of))
    file = services.store.require(StoredFile, number, Refusal(404, "This file no longer exists."))
    redacted = file_for_participants(services, int(of), number) if of else None
    if redacted is not None:
        headers = {**_FILE_HEADERS, "Content-Disposition": "attachment"}
        return Response(redacted, headers=headers, media_type="application/octet-stream")
    path, inline = services.files.path(number), file.kind == "image"
    if not os.path.exists(path):
        return Response(_EXPIRED, 404, media_type="application/xml")
    return FileResponse(
        path,
        filename=file.name,
        media_type=mimetypes.guess_type(file.name)[0] if inline else "application/octet-stream",
        headers=_FILE_HEADERS,
        content_disposition_type="inline" if inline else "attachment",
    )


async def _put_part(request: Request) -> Response:
    services, upload, number = services_of(request), request.path_params["upload"], request.path_params["number"]
    _check_signed(request, f"{upload}/{number}")
    refusal = Refusal(404, "This upload is finished or does not exist.")
    await run_in_threadpool(services.store.require, UploadPart, (upload, number), refusal)
    with tempfile.SpooledTemporaryFile(max_size=_SPOOLED, dir=services.store.folder) as file:
        # S3's tag of a part is a checksum, not a secret.
        tag = hashlib.md5(usedforsecurity=False)
        try:
            async for block in request.stream():
                tag.update(block)
                file.write(block)
        except ClientDisconnect:
            raise Refusal(400, "The upload was interrupted.") from None
        file.seek(0)
        file_id = await run_in_threadpool(services.files.keep, file, f"part {number}", "part")
    await run_in_threadpool(submitting.keep_part, services, (upload, number), file_id, tag.hexdigest())
    return Response(status_code=200, headers={"ETag": f'"{tag.hexdigest()}"'})


ROUTES += [NumberedRoute(MEDIA, _download, methods=["GET"]), NumberedRoute(PART, _put_part, methods=["PUT"])]


# ── remote and code-upload workers ──────────────────────────────────────────


@_answer("GET", routes.QUEUE)
def _receive_message(request: UserRequest, queue: str) -> JsonObject:
    """Receive at most one message; none does not prove the queue empty."""
    message = request.services.queue.receive(_require_queue(request, queue, "exist").queue)
    return {"body": message.body if message else None, "receipt_handle": message.handle if message else None}


@_answer("POST", routes.QUEUE_DELETE)
def _delete_message(request: UserRequest, queue: str) -> JsonObject:
    _require_queue(request, queue, "exists")
    handle = str(request.fields.get("receipt_handle", ""))
    if not handle:
        raise Refusal(400, "Please add message receipt handle in the body")
    request.services.queue.delete(queue, handle)
    return {"success": f"Message deleted successfully from the queue: {queue}"}


@_answer("GET", routes.CHALLENGE_OF_QUEUE)
def _show_challenge_of_queue(request: UserRequest, queue: str) -> JsonObject:
    return request.services.json.challenge(_require_queue(request, queue, "exist"), request.base, host=True)


def _require_queue(request: UserRequest, queue: str, verb: str) -> Challenge:
    challenge = request.services.store.find_first(Challenge, Challenge.queue == queue)
    if challenge is None:
        raise Refusal(400, f"Challenge with queue name {queue} does not {verb}")
    message = "Sorry, you are not authorized to access this resource"
    request.services.accounts.check_host(request.require_user(), challenge.id, Refusal(401, message))
    return challenge


def _check_worker(request: UserRequest, challenge: int, **_address: str) -> Challenge:
    return hosting.check_worker(request.services, request.require_user(), challenge, request.fields)


#: The limits of a report, and of each text in it.
_REPORT = BodyLimits(bytes=64 << 20, text=16 << 20)
_PRODUCT = BodyLimits(bytes=UPLOAD_BYTES, text=16 << 20, files=3)


@_answer("PATCH", routes.UPDATE_SUBMISSION, check=_check_worker, limits=_PRODUCT)
def _start_scoring(request: UserRequest, challenge: int) -> JsonObject:
    """Start scoring; with a file, store a static code upload's output for EvalAI's own worker."""
    row, product = _check_worker(request, challenge), request.files.get("submission_input_file")
    if product is not None and row.flag("is_static_dataset_code_upload"):
        name = product.filename or "submission.json"
        number = hosting.take_product(request.services, request.fields, product.file, name)
    else:
        number = hosting.start_scoring(request.services, request.fields)
    return _submission_json(request, number, host=True)


def _finish_scoring(request: UserRequest, challenge: int, *, partial: bool) -> JsonObject:
    _check_worker(request, challenge)
    hosting.finish_scoring(request.services, request.fields, partial=partial)
    return {"success": "Submission result has been successfully updated"}


for _route, _partial in ((routes.UPDATE_SUBMISSION, False), (routes.UPDATE_PARTIAL, True)):
    _answer("PUT", _route, check=_check_worker, limits=_REPORT)(functools.partial(_finish_scoring, partial=_partial))


@_answer("PATCH", routes.UPDATE_PARTIAL, check=_check_worker, limits=_REPORT)
def _merge_scores(request: UserRequest, challenge: int) -> JsonObject:
    _check_worker(request, challenge)
    return _submission_json(request, hosting.merge_scores(request.services, request.fields), host=True)


@_answer("PATCH", routes.SUBMISSION_STARTED)
def _note_pod_start(request: UserRequest, submission: int) -> JsonObject:
    hosting.note_pod_start(request.services, request.require_user(), submission)
    return _submission_json(request, submission)


@_answer("PUT", routes.MANAGE_WORKER)
def _refuse_managing(request: UserRequest, challenge: int, action: str) -> JsonObject:  # noqa: ARG001
    """Reject requests to start or stop workers: they start and stop with the server."""
    _check_worker(request, challenge)
    return {"action": "Failure", "error": "The rehearsal's workers run as long as it runs."}


@_answer("PUT", routes.SCALE_RESOURCES)
def _refuse_scaling(request: UserRequest, challenge: int) -> None:
    _check_worker(request, challenge)
    raise Refusal(400, "Scaling inactive workers not supported.")


# Fixed addresses come before addresses with parameters.
ROUTES.sort(key=lambda route: route.path.count("{") - route.path.count(":int}"))
