"""The actions of hosts and their workers on submissions and scores, some also for participants."""

import json
import re
import time
from typing import IO

from segjudge.platforms.evalai.bundle.secrecy import is_visible
from segjudge.platforms.evalai.rows import CANCELLED, FAILED, FINISHED, RUNNING, is_number
from segjudge.platforms.rules.fields import FALSE, TRUE
from segjudge.server.evalai_json import TEXT_FIELDS
from segjudge.server.models import Challenge, ChallengePhase, ChallengePhaseSplit, LeaderboardData, Submission, User
from segjudge.server.services import Services
from segjudge.server.submissions import OPEN, REPORTED, STATUSES, SUBMITTED, SplitScores
from segjudge.server.wire import NOT_AUTHORIZED, JsonObject, Refusal, make_storable

_MARKS = ("is_baseline", "is_public", "is_flagged")
_HOST_FIELDS = ("status", *_MARKS, "method_name", "method_description")
_TEAM_FIELDS = frozenset({"status", "is_public", "method_name", "method_description"})
#: The fields that a rerun copies.
_COPIED = ("phase_id", "team_id", "created_by", "input_file", "attributes", "is_public", "is_baseline", *TEXT_FIELDS)


def _require_hosted(services: Services, user: User, submission: int) -> Submission:
    row = services.submissions.get(submission)
    if not services.accounts.hosts_submission(user, row):
        raise Refusal(403, NOT_AUTHORIZED)
    return row


def rerun(services: Services, user: User, submission: int) -> int:
    """Cancel a submission and send its file again as a new one, as EvalAI does; return its number."""
    previous = _require_hosted(services, user, submission)
    with services.store.write() as session:
        services.submissions.update(submission, status=CANCELLED)
        rerun_submission = Submission(
            status=SUBMITTED,
            submitted_at=previous.submitted_at,
            rerun_resumed_at=time.time(),
            **{key: getattr(previous, key) for key in _COPIED},
        )
        session.add(rerun_submission)
        session.flush()
        services.submissions.enqueue(rerun_submission.id)
    return rerun_submission.id


def resume(services: Services, user: User, submission: int) -> None:
    """Send a failed submission again, if the challenge is remote and allows it."""
    row = _require_hosted(services, user, submission)
    challenge = services.submissions.challenge_of(row)
    if not challenge.flag("remote_evaluation") or not challenge.flag("allow_resuming_submissions"):
        raise Refusal(406, "Challenge does not allow resuming submissions")
    if row.status != FAILED:
        raise Refusal(400, "Only failed submissions can be resumed")
    with services.store.write():
        services.submissions.update(submission, status="resuming", rerun_resumed_at=time.time(), deaths=0)
        services.submissions.enqueue(submission)


def cancel(services: Services, user: User, submission: int) -> None:
    """Cancel a submission: its worker abandons it. EvalAI would finish scoring it."""
    _require_hosted(services, user, submission)
    with services.store.write():
        _check_unfinished(services, submission, 400)
        services.submissions.update(submission, status=CANCELLED)


def _check_unfinished(services: Services, submission: int, status: int) -> None:
    row = services.submissions.get(submission)
    if row.status not in OPEN:
        raise Refusal(status, f"Submission {submission} is {row.status} already.")


def toggle_mark(services: Services, user: User, submission: int, mark: str) -> None:
    """Set a mark of a submission, or remove it: baseline, shown on the leaderboard, flagged."""
    row = _require_hosted(services, user, submission)
    if mark not in _MARKS:
        raise Refusal(400, "There is no such mark.")
    services.submissions.update(submission, **{mark: not getattr(row, mark)})


def edit(services: Services, user: User, challenge: int, submission: int, fields: JsonObject) -> bool:
    """Change fields of a submission; its team may only cancel it. Return whether the user is a host."""
    row = services.submissions.get(submission)
    is_of_challenge = services.submissions.phase_of(row).challenge_id == challenge
    if not is_of_challenge or not services.accounts.may_see_submission(user, row):
        raise Refusal(403, NOT_AUTHORIZED)
    changes = {key: fields[key] for key in _HOST_FIELDS if key in fields}
    host = services.accounts.is_host(user, challenge)
    if not host and set(changes) - _TEAM_FIELDS:
        raise Refusal(403, NOT_AUTHORIZED)
    if changes.get("status", CANCELLED) not in (STATUSES if host else (CANCELLED,)):
        raise Refusal(400, {"status": [f'"{changes["status"]}" is not a valid choice.']})
    values = {key: _column_value(key, value) for key, value in changes.items()}
    with services.store.write():
        if not host and "status" in changes:
            _check_unfinished(services, submission, 403)
        services.submissions.update(submission, **values)
    return host


def edit_scores(services: Services, user: User, number: int, scores: object) -> JsonObject:
    """Replace the scores of a leaderboard's row and return them: a number for each label."""
    data = services.store.require(LeaderboardData, number, Refusal(404, "Leaderboard data does not exist"))
    _require_hosted(services, user, data.submission_id)
    labels = services.store.require(ChallengePhaseSplit, data.phase_split_id).labels
    try:
        values = json.loads(scores) if isinstance(scores, str) else scores
    except ValueError:
        values = None
    if not isinstance(values, dict) or set(values) != set(labels) or not all(map(is_number, values.values())):
        raise Refusal(400, "leaderboard_data must have a number for each label and nothing else")
    services.store.change(LeaderboardData, number, result=values)
    return values


def _column_value(key: str, value: object) -> object:
    if not key.startswith("is_"):
        return make_storable(value)
    if value not in (*TRUE, *FALSE):
        raise Refusal(400, {key: ["Must be a valid boolean."]})
    return value in TRUE


# ── reports of remote and code-upload workers ───────────────────────────────

_PARTIAL = "partially_evaluated"
#: The maximum score; larger numbers are not floats.
_MOST = 10**300


def check_worker(services: Services, user: User, challenge: int, fields: JsonObject) -> Challenge:
    """Return the challenge that a worker reports to; rejects users who do not host it."""
    row = services.store.require(Challenge, challenge)
    services.accounts.check_host(user, challenge, Refusal(400, NOT_AUTHORIZED))
    if "submission" in fields:
        # EvalAI asks for neither; a host of one challenge could read and overwrite those of another.
        submission = _submission_of(services, fields)
        phase = services.store.get(ChallengePhase, _number_of(fields.get("challenge_phase", submission.phase_id)))
        is_of_challenge = services.submissions.phase_of(submission).challenge_id == challenge
        if not is_of_challenge or phase is None or phase.challenge_id != challenge:
            raise Refusal(400, NOT_AUTHORIZED)
    return row


def _submission_of(services: Services, fields: JsonObject) -> Submission:
    return services.submissions.get(_number_of(fields.get("submission")))


def start_scoring(services: Services, fields: JsonObject) -> int:
    """Record that a worker has started or queued a submission; return its number."""
    status = _read_status(fields, "queued", RUNNING)
    row, name = _submission_of(services, fields), fields.get("job_name")
    if row.status != CANCELLED:
        names = [*row.job_name, *([str(name)[:200]] if name else [])]
        services.submissions.update(row.id, status=status, started_at=time.time(), job_name=names)
    return row.id


def note_pod_start(services: Services, user: User, submission: int) -> None:
    """Record when the pod of a code upload started."""
    if not services.accounts.may_see_submission(user, services.submissions.get(submission)):
        raise Refusal(403, NOT_AUTHORIZED)
    services.submissions.update(submission, started_at=time.time())


def take_product(services: Services, fields: JsonObject, file: IO[bytes], name: str) -> int:
    """Store the output of a static code upload for EvalAI's own worker; return the submission's number."""
    row, submissions = _submission_of(services, fields), services.submissions
    file_id = services.files.keep(file, name, "submission_input_file")
    with services.store.write():
        if submissions.is_cancelled(row.id):
            services.files.drop(file_id)
        else:
            submissions.update(row.id, submission_input_file=file_id, status=SUBMITTED)
            submissions.enqueue(row.id)
    return row.id


def finish_scoring(services: Services, fields: JsonObject, *, partial: bool) -> None:
    """Store a result, or a first part of one.  A rejection changes nothing."""
    status = _read_status(fields, FINISHED, FAILED, CANCELLED, *([_PARTIAL] if partial else []))
    number, submissions = _submission_of(services, fields).id, services.submissions
    phase = _number_of(fields.get("challenge_phase"))
    texts = {key: fields.get(key, "") for key in ("stdout", "stderr", "environment_log")}
    if not all(isinstance(text, str) for text in texts.values()):
        raise Refusal(500, "stdout, stderr and environment_log must be text")
    stored_texts = {f"{key}_file": text for key, text in texts.items() if text or key != "environment_log"}
    scores, public_scores = None, list[JsonObject]()
    if status in (FINISHED, _PARTIAL):
        scores, public_scores = _read_scores(services, phase, fields.get("result"), partial=partial)
        stored_texts["metadata_file"] = str(fields.get("metadata", ""))
    with services.store.write():
        if submissions.end(number, status, scores, **stored_texts) and scores is not None:
            submissions.keep_texts(number, REPORTED, submission_result_file=str(public_scores))


def merge_scores(services: Services, fields: JsonObject) -> int:
    """Merge a further part of a result into the one that an earlier PUT stored; return the submission's number."""
    status = _read_status(fields, RUNNING, _PARTIAL, FINISHED)
    if status == RUNNING:
        return start_scoring(services, fields)
    number, submissions = _submission_of(services, fields).id, services.submissions
    phase = _number_of(fields.get("challenge_phase"))
    new_scores = {
        row.phase_split: row.values for row in _read_scores(services, phase, fields.get("result"), partial=True)[0]
    }
    streams = {f"{key}_file": fields.get(key) for key in ("stdout", "stderr")}
    texts = {key: text for key, text in streams.items() if isinstance(text, str) and text}
    with services.store.write():
        stored = submissions.scores(number)
        merged = [SplitScores(split, {**values, **new_scores.get(split, {})}) for split, values in stored.items()]
        if submissions.end(number, status, merged, **texts) and set(new_scores) - set(stored):
            message = f"Leaderboard Data does not exist with phase_id: {phase} andsubmission id: {number}"
            raise Refusal(400, message)
    return number


def _read_scores(
    services: Services, phase: int, result: object, *, partial: bool
) -> tuple[list[SplitScores], list[JsonObject]]:
    """Return the scores from a remote worker, and the part that participants may see."""
    splits: dict[str, list[ChallengePhaseSplit]] = {}
    for split in services.store.splits_of(phase):
        splits.setdefault(split.dataset_split.codename, []).append(split)
    row = services.store.get(ChallengePhase, phase)
    allows_other_labels = partial and row is not None and row.flag("is_partial_submission_evaluation_enabled")
    scores, public_scores = list[SplitScores](), list[JsonObject]()
    for name, values, is_public in _parse_entries(result):
        mapped = splits.get(name, []) if isinstance(name, str) else []
        if len(mapped) != 1 or not isinstance(values, dict):
            message = f"Challenge Phase Split does not exist with phase_id: {phase} andsplit codename: {name}"
            raise Refusal(400 if len(mapped) < 2 else 500, message)
        _check_values(values, mapped[0].labels, allows_other_labels=allows_other_labels)
        scores.append(SplitScores(mapped[0].id, values))
        # EvalAI shows any status of the worker.
        if is_public and is_visible(mapped[0].visibility):
            public_scores.append(values)
    return scores, public_scores


def _number_of(value: object) -> int:
    text = str(value)[:100]
    if not re.fullmatch(r"\d{1,18}", text):
        raise Refusal(404, f"Submission {text} does not exist")
    return int(text)


def _read_status(fields: JsonObject, *possible: str) -> str:
    status = str(fields.get("submission_status", "")).lower()
    if status not in possible:
        raise Refusal(400, "Sorry, submission status is invalid")
    return status


def _parse_entries(text: object) -> list[tuple[object, object, object]]:
    """Return split, scores and whether to show them, of each entry of a result."""
    try:
        entries = json.loads(text)  # type: ignore[arg-type]  # values other than text are refused here
        return [(entry.get("split"), entry.get("accuracies"), entry.get("show_to_participant")) for entry in entries]
    except (TypeError, ValueError, AttributeError, RecursionError) as error:
        message = f"`result` key contains invalid data with error {error}.Please try again with correct format."
        raise Refusal(400, message) from None


def _check_values(values: JsonObject, labels: list[str], *, allows_other_labels: bool) -> None:
    unknown = [name for name in values if name not in labels]
    if unknown and not allows_other_labels:
        raise Refusal(400, f"Following metrics are missing in theleaderboard data: {unknown}")
    wrong = [(name, type(value)) for name, value in values.items() if not isinstance(value, (int, float))]
    if wrong:
        raise Refusal(400, f"Values for following metrics are not offloat/int: {wrong}")
    if not all(-_MOST < value < _MOST for value in values.values()):  # NaN is not
        raise Refusal(400, {"result": ["Value must be valid JSON."]})
