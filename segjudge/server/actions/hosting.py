"""What hosts do to submissions and scores, and what of it a participant may do."""

import json
import time

from segjudge.platforms.evalai.bundle.field_values import FALSE, TRUE
from segjudge.platforms.evalai.rows import CANCELLED, FAILED, is_number
from segjudge.server.evalai_json import TEXT_FIELDS
from segjudge.server.models import ChallengePhaseSplit, LeaderboardData, Submission, User
from segjudge.server.store import Store
from segjudge.server.submissions import OPEN, STATUSES, SUBMITTED, Submissions
from segjudge.server.wire import NOT_AUTHORIZED, JsonObject, Refusal

from .permissions import Permissions
from .submitting import clean

_MARKS = ("is_baseline", "is_public", "is_flagged")
_HOST_FIELDS = ("status", *_MARKS, "method_name", "method_description")
_TEAM_FIELDS = frozenset({"status", "is_public", "method_name", "method_description"})
#: What a rerun takes over.
_COPIED = ("phase_id", "team_id", "created_by", "input_file", "attributes", "is_public", "is_baseline", *TEXT_FIELDS)


class Hosting:
    """The actions of a host."""

    def __init__(self, store: Store, submissions: Submissions, permissions: Permissions) -> None:
        self._store, self._submissions, self._permissions = store, submissions, permissions

    def require_hosted(self, user: User, submission: int) -> Submission:
        """Return a submission; refuses who does not host its challenge."""
        row = self._submissions.get(submission)
        if not self._permissions.hosts_submission(user, row):
            raise Refusal(403, NOT_AUTHORIZED)
        return row

    def rerun(self, user: User, submission: int) -> int:
        """Cancel a submission and send its file again as a new one, as EvalAI does; return its number."""
        old = self.require_hosted(user, submission)
        with self._store.write() as session:
            self._submissions.update(submission, status=CANCELLED)
            new = Submission(
                status=SUBMITTED,
                submitted_at=old.submitted_at,
                rerun_resumed_at=time.time(),
                **{key: getattr(old, key) for key in _COPIED},
            )
            session.add(new)
            session.flush()
            self._submissions.enqueue(new.id)
        return new.id

    def resume(self, user: User, submission: int) -> None:
        """Send a failed submission once more, where the challenge is remote and allows it."""
        row = self.require_hosted(user, submission)
        challenge = self._submissions.challenge_of(row)
        if not challenge.flag("remote_evaluation") or not challenge.flag("allow_resuming_submissions"):
            raise Refusal(406, "Challenge does not allow resuming submissions")
        if row.status != FAILED:
            raise Refusal(400, "Only failed submissions can be resumed")
        with self._store.write():
            self._submissions.update(submission, status="resuming", rerun_resumed_at=time.time(), deaths=0)
            self._submissions.enqueue(submission)

    def cancel(self, user: User, submission: int) -> None:
        """Cancel a submission: a worker that scores it leaves it. On EvalAI it would be scored all the same."""
        self.require_hosted(user, submission)
        with self._store.write():
            self._check_unfinished(submission, 400)
            self._submissions.update(submission, status=CANCELLED)

    def _check_unfinished(self, submission: int, status: int) -> None:
        row = self._submissions.get(submission)
        if row.status not in OPEN:
            raise Refusal(status, f"Submission {submission} is {row.status} already.")

    def mark(self, user: User, submission: int, mark: str) -> None:
        """Set a mark of a submission, or remove it: baseline, shown on the leaderboard, flagged."""
        row = self.require_hosted(user, submission)
        if mark not in _MARKS:
            raise Refusal(400, "There is no such mark.")
        self._submissions.update(submission, **{mark: not getattr(row, mark)})

    def edit(self, user: User, challenge: int, submission: int, fields: JsonObject) -> bool:
        """Change fields of a submission, which its team may cancel; return whether a host did it, who may do more."""
        row = self._submissions.get(submission)
        ours = self._submissions.phase_of(row).challenge_id == challenge
        if not ours or not self._permissions.may_see_submission(user, row):
            raise Refusal(403, NOT_AUTHORIZED)
        changes = {key: fields[key] for key in _HOST_FIELDS if key in fields}
        host = self._permissions.is_host(user, challenge)
        if not host and set(changes) - _TEAM_FIELDS:
            raise Refusal(403, NOT_AUTHORIZED)
        if changes.get("status", CANCELLED) not in (STATUSES if host else (CANCELLED,)):
            raise Refusal(400, {"status": [f'"{changes["status"]}" is not a valid choice.']})
        values = {key: _column_value(key, value) for key, value in changes.items()}
        with self._store.write():
            if not host and "status" in changes:
                self._check_unfinished(submission, 403)
            self._submissions.update(submission, **values)
        return host

    def edit_scores(self, user: User, number: int, scores: object) -> JsonObject:
        """Replace the scores of a leaderboard's row and return them: a number for each label."""
        data = self._store.require(LeaderboardData, number, Refusal(404, "Leaderboard data does not exist"))
        self.require_hosted(user, data.submission_id)
        labels = self._store.require(ChallengePhaseSplit, data.phase_split_id).labels
        try:
            values = json.loads(scores) if isinstance(scores, str) else scores
        except ValueError:
            values = None
        if not isinstance(values, dict) or set(values) != set(labels) or not all(map(is_number, values.values())):
            raise Refusal(400, "leaderboard_data must hold a number for each label, and no other")
        self._store.change(LeaderboardData, number, result=values)
        return values


def _column_value(key: str, value: object) -> object:
    if not key.startswith("is_"):
        return clean(value)
    if value not in (*TRUE, *FALSE):
        raise Refusal(400, {key: ["Must be a valid boolean."]})
    return value in TRUE
