"""Submissions with their files and scores, and the queues in which they wait for a worker."""

import math
import secrets
import time
from dataclasses import dataclass
from typing import NamedTuple

from sqlalchemy import ColumnElement, or_

from segjudge.platforms.evalai.rows import CANCELLED, FAILED, FINISHED, RUNNING

from .models import Challenge, ChallengePhase, LeaderboardData, MessageReceipt, StoredMessage, Submission
from .store import Store
from .stored_files import FileStore
from .wire import JsonObject, Refusal

#: SQS' default, which EvalAI's queues use and no call extends.
VISIBILITY = 30.0
#: The maximum seconds by which a clock may be corrected at any time.
_SLACK = 1.0
#: The maximum number of messages on the host's page.
_MOST_LISTED = 200


@dataclass(frozen=True)
class ReceivedMessage:
    """A received message; its handle differs at each receipt."""

    body: JsonObject
    handle: str


class MessageQueues:
    """All queues, by name."""

    def __init__(self, store: Store, visibility: float) -> None:
        self._store, self._visibility = store, visibility

    def send(self, queue: str, body: JsonObject) -> None:
        now = time.time()
        fields = body if isinstance(body, dict) else {}  # tests send anything, as holders of the queue's keys could
        code_upload = fields.get("is_static_dataset_code_upload_submission") or "submitted_image_uri" in fields
        with self._store.write() as session:
            session.add(StoredMessage(queue=queue, body=body, hosted=not code_upload, visible_at=now, sent_at=now))

    def receive(self, queue: str, *, hosted: bool | None = None) -> ReceivedMessage | None:
        """Return the oldest visible message, and hide it; None without one.

        EvalAI's own worker (`hosted`) and the one for code uploads (not `hosted`) skip each other's messages.
        """
        now = time.time()
        # A clock that was set back must not hide a message for longer than the visibility.
        visible = or_(StoredMessage.visible_at <= now, StoredMessage.visible_at > now + self._visibility + _SLACK)
        conditions = [StoredMessage.queue == queue, visible]
        if hosted is not None:
            conditions.append(StoredMessage.hosted.is_(hosted))
        if not self._store.exists(*conditions):
            return None  # without taking the lock: most queues are empty most of the time
        with self._store.write() as session:
            message = self._store.find_first(StoredMessage, *conditions)
            if message is None:
                return None
            message.visible_at = now + self._visibility
            message.received += 1
            receipt = MessageReceipt(handle=secrets.token_urlsafe(24), message_id=message.id)
            session.add(receipt)
            return ReceivedMessage(message.body, receipt.handle)

    def _of_handle(self, queue: str, handle: str) -> StoredMessage | None:
        return self._store.find_first(
            StoredMessage,
            StoredMessage.queue == queue,
            StoredMessage.id == MessageReceipt.message_id,
            MessageReceipt.handle == handle,
        )

    def delete(self, queue: str, handle: str) -> None:
        """Delete a message, if it exists, by the handle of any of its receipts."""
        with self._store.write() as session:
            message = self._of_handle(queue, handle)
            if message is not None:
                session.delete(message)  # with its receipts

    def give_back(self, queue: str, handle: str) -> bool:
        """Show a message to others at once; return whether there was one."""
        with self._store.write():
            message = self._of_handle(queue, handle)
            if message is not None:
                message.visible_at = time.time()
            return message is not None

    def messages(self, queue: str) -> list[JsonObject]:
        now = time.time()
        return [
            {
                **message.body,
                "age": max(0.0, now - message.sent_at),
                "received": message.received,
                "hidden": max(0.0, message.visible_at - now),
            }
            for message in self._store.find(StoredMessage, StoredMessage.queue == queue, limit=_MOST_LISTED)
        ]

    def list_submissions(self, queue: str) -> list[object]:
        """Return the submissions of all messages, the oldest message first."""
        messages = self._store.find(StoredMessage, StoredMessage.queue == queue)
        return [message.body.get("submission_pk") for message in messages]


SUBMITTED = "submitted"
#: Statuses that will change, and count against a team's concurrent submissions.
OPEN = (SUBMITTED, "submitting", "resuming", "queued", RUNNING)
STATUSES = (*OPEN, FINISHED, FAILED, CANCELLED, "partially_evaluated", "archived")
#: The kind of a file with only what participants may see.
REPORTED = "reported_result"
_JSON_FILES = ("submission_result_file", "metadata_file")


class SplitScores(NamedTuple):
    """The scores on one phase split, and their error bars if there are any."""

    phase_split: int
    values: JsonObject
    errors: JsonObject | None = None


class Submissions:
    """All submissions."""

    def __init__(self, store: Store, files: FileStore, queue: MessageQueues) -> None:
        self._store, self._files, self._queue = store, files, queue

    # ── reading ──────────────────────────────────────────────────────────────

    def get(self, submission: int) -> Submission:
        """Return a submission; raises a refusal in the server's words if it does not exist."""
        return self._store.require(Submission, submission, Refusal(404, f"Submission {submission} does not exist"))

    def of_message(self, queue: str, message: ReceivedMessage) -> Submission | None:
        """Return the submission of a message; without one, delete the message and return None."""
        row = self._store.get(Submission, int(message.body["submission_pk"]))
        if row is None:
            self._queue.delete(queue, message.handle)
        return row

    def phase_of(self, submission: Submission) -> ChallengePhase:
        return self._store.require(ChallengePhase, submission.phase_id)

    def challenge_of(self, submission: Submission) -> Challenge:
        return self._store.require(Challenge, self.phase_of(submission).challenge_id)

    def of_team(self, team: int, phase: int) -> list[Submission]:
        return self._store.find(
            Submission, Submission.team_id == team, Submission.phase_id == phase, order=Submission.id.desc()
        )

    def of_challenge(
        self, challenge: int, status: str = "", period: tuple[float, float] = (0.0, math.inf), limit: int | None = None
    ) -> list[Submission]:
        """Return a challenge's submissions, the newest first, optionally of one status and period."""
        conditions = [
            *_to_challenge(challenge),
            Submission.submitted_at >= period[0],
            Submission.submitted_at <= period[1],
            *([Submission.status == status] if status else []),
        ]
        return self._store.find(Submission, *conditions, order=Submission.id.desc(), limit=limit)

    def count_statuses(self, challenge: int) -> dict[str, int]:
        return self._store.count_by(Submission.status, *_to_challenge(challenge))

    def count(self, team: int, phase: int, *conditions: ColumnElement[bool]) -> int:
        return self._store.count(Submission, Submission.team_id == team, Submission.phase_id == phase, *conditions)

    def scores(self, submission: int) -> dict[int, JsonObject]:
        return {row.phase_split_id: row.result for row in self.all_scores(submission) if not row.disabled}

    def all_scores(self, submission: int) -> list[LeaderboardData]:
        """Return all scores, including those of earlier runs."""
        return self._store.find(LeaderboardData, LeaderboardData.submission_id == submission)

    def is_cancelled(self, submission: int) -> bool:
        """Return whether a submission is cancelled, which no later report changes."""
        return self.get(submission).status == CANCELLED

    # ── changing ─────────────────────────────────────────────────────────────

    def update(self, submission: int, **values: object) -> None:
        self.get(submission)  # which refuses numbers of none
        self._store.change(Submission, submission, **values)

    def enqueue(self, submission: int, image: str = "") -> None:
        row = self.get(submission)
        challenge = self.challenge_of(row)
        body: JsonObject = {
            "challenge_pk": str(challenge.id),
            "phase_pk": str(row.phase_id),
            "is_static_dataset_code_upload_submission": challenge.flag("is_static_dataset_code_upload")
            and not row.submission_input_file,
            "submission_pk": submission,
        }
        if image:
            body["submitted_image_uri"] = image
        self._queue.send(challenge.queue, body)

    def count_ahead(self, submission: Submission) -> int:
        """Return the number of messages before a submission's."""
        numbers = self._queue.list_submissions(self.challenge_of(submission).queue)
        return numbers.index(submission.id) if submission.id in numbers else 0

    def is_queued(self, submission: Submission) -> bool:
        return submission.id in self._queue.list_submissions(self.challenge_of(submission).queue)

    def begin(self, submission: int) -> bool:
        """Mark a submission as running, unless it was cancelled meanwhile; return whether it is running."""
        with self._store.write():
            if self.is_cancelled(submission):
                return False
            self.update(submission, status=RUNNING, started_at=time.time())
            return True

    def give_back(self, submission: int, queue: str, handle: str) -> None:
        """Return a submission to the queue as if no worker had started it."""
        with self._store.write():
            if self._queue.give_back(queue, handle) and self.get(submission).status == RUNNING:
                self.update(submission, status=SUBMITTED, started_at=None)

    def end(self, submission: int, status: str, scores: list[SplitScores] | None = None, **texts: str) -> bool:
        """Store the outcome of a submission; return False, without a change, if it was cancelled meanwhile."""
        with self._store.write():
            if self.is_cancelled(submission):
                return False
            if scores is not None:
                self.keep_scores(submission, scores)
            self.keep_texts(submission, **texts)
            self.update(submission, status=status, completed_at=time.time())
            return True

    def fail(self, submission: int, message: str) -> None:
        """Mark a submission as failed where EvalAI would leave it running."""
        with self._store.write():
            if self.end(submission, FAILED, stdout_file=""):
                self.keep_texts(submission, REPORTED, stderr_file=message)

    def keep_answer(self, submission: int, answer: JsonObject) -> None:
        """Store the outcome of `evaluate()` in the hosted worker's process."""
        phase, status = self.phase_of(self.get(submission)), answer["status"]
        silent = phase.flag("disable_logs")
        texts = {} if silent else {"stdout_file": answer["stdout"]}
        if status == FAILED and not silent:
            texts["stderr_file"] = answer["stderr"]
        scores = None
        if status == FINISHED:
            splits = {split.dataset_split.codename: split.id for split in self._store.splits_of(phase.id)}
            # Only the first key of each entry is read.
            errors = dict(_first_keys(answer.get("error") or []))
            scores = [
                SplitScores(splits[name], values, errors.get(name)) for name, values in _first_keys(answer["result"])
            ]
            columns = {"submission_result": "submission_result_file", "submission_metadata": "metadata_file"}
            texts |= {columns[key]: answer[key] for key in columns if key in answer}
        self.end(submission, status, scores, **texts)

    def keep_texts(self, submission: int, kind: str = "", **texts: str) -> None:
        """Store streams and results as files, replacing earlier ones."""
        for column, text in texts.items():
            name = f"{column.removesuffix('_file')}.{'json' if column in _JSON_FILES else 'txt'}"
            with self._store.write():
                old = getattr(self.get(submission), column)
                file = self._files.keep(text.encode("utf-8", "replace"), name, kind or column)
                self.update(submission, **{column: file})
                self._files.drop(old)

    def keep_scores(self, submission: int, scores: list[SplitScores]) -> None:
        """Store the scores on each phase split; earlier ones no longer count."""
        with self._store.write() as session:
            for old in self.all_scores(submission):
                old.disabled = True
            for split, values, errors in {row.phase_split: row for row in scores}.values():  # the later of two
                session.add(
                    LeaderboardData(submission_id=submission, phase_split_id=split, result=values, error=errors or None)
                )


def _to_challenge(challenge: int) -> tuple[ColumnElement[bool], ...]:
    return ChallengePhase.id == Submission.phase_id, ChallengePhase.challenge_id == challenge


def _first_keys(entries: list[JsonObject]) -> list[tuple[str, JsonObject]]:
    return [pair for entry in entries for pair in list(entry.items())[:1]]
