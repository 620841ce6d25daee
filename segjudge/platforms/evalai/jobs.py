"""The calls of EvalAI's API that a remote worker makes, each by name, repeated where that helps."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar, Unpack

from . import routes
from .client import ApiError, CallOptions, Client, with_retries
from .result_shapes import (
    ChallengeRow,
    PhaseRow,
    SplitAccuracies,
    SubmissionRow,
    challenge_of,
    number_of,
    phase_of,
    submission_of,
)

FINISHED, FAILED, CANCELLED, RUNNING = "finished", "failed", "cancelled", "running"
#: Statuses of submissions that need no worker any more.
SETTLED = (FINISHED, FAILED, CANCELLED, "archived")
#: Statuses of submissions that no worker has begun.
WAITING = ("submitted", "resuming", "queued")
#: All statuses that a submission can have.
STATUSES = (*WAITING, RUNNING, *SETTLED, "submitting", "partially_evaluated")
#: What the server keeps as the file of a large upload until the upload is complete.
PLACEHOLDER = b"file_content"
#: The most characters of a receipt handle; SQS gives at most 1,024.
_HANDLE_LENGTH = 4096

Parsed = TypeVar("Parsed")


@dataclass(frozen=True)
class QueueMessage:
    """A message of the queue."""

    body: object
    handle: str

    @property
    def submission(self) -> int:
        """The number of the submission; 0 if the message names none."""
        return number_of(self.body.get("submission_pk")) if isinstance(self.body, dict) else 0


class Jobs:
    """The queue and the submissions of one challenge."""

    def __init__(self, client: Client, challenge: int, queue: str, sleep: Callable[[float], object]) -> None:
        self._client, self._challenge, self._queue, self._sleep = client, challenge, queue, sleep

    def receive(self) -> QueueMessage | None:
        """Return a message, or None if the queue is empty; asked once, since the next poll comes anyway."""
        answer = self._client.call("GET", routes.QUEUE, {"queue": self._queue}, urgent=False)
        if not isinstance(answer, dict) or "receipt_handle" not in answer or "body" not in answer:
            raise ApiError(0, "the server answers with something that is not a message")
        handle = answer["receipt_handle"]
        if not handle:
            return None
        if not isinstance(handle, str) or len(handle) > _HANDLE_LENGTH:
            raise ApiError(0, "the server answers with a message that has no receipt handle")
        return QueueMessage(answer["body"], handle)

    def delete(self, message: QueueMessage) -> None:
        """Delete a message; one that stays comes back, and is recognised."""
        data = {"receipt_handle": message.handle}
        self._repeat("POST", routes.QUEUE_DELETE, {"queue": self._queue}, lambda answer: answer, data=data)

    def submission(self, number: int) -> SubmissionRow:
        """Return one submission."""
        return self._repeat(
            "GET", routes.SUBMISSION, {"submission": number}, lambda answer: submission_of(answer, number)
        )

    def begin(self, number: int, name: str) -> None:
        """Report that a submission is running, as a job of this name."""
        data = {"submission": number, "submission_status": "RUNNING", "job_name": name}
        route = ("PATCH", routes.UPDATE_SUBMISSION, {"challenge": self._challenge})
        self._repeat(*route, lambda answer: submission_of(answer, number), data=data)

    def finish(self, number: int, phase: int, result: list[SplitAccuracies], **texts: str) -> None:
        """Report a result; raise `ApiError` 400 if the server does not take it, and then nothing has changed."""
        body = {"submission_status": "FINISHED", "result": json.dumps(result, allow_nan=False), **texts}
        self._put(number, phase, body)

    def fail(self, number: int, phase: int, **texts: str) -> None:
        """Report that a submission failed, and why."""
        self._put(number, phase, {"submission_status": "FAILED", **texts})

    def _put(self, number: int, phase: int, fields: dict[str, str]) -> None:
        # Called once: whether the report arrived is looked up before the next attempt.
        body = {"submission": number, "challenge_phase": phase, **fields}
        answer = self._client.call("PUT", routes.UPDATE_SUBMISSION, {"challenge": self._challenge}, json=body)
        if not isinstance(answer, dict) or "success" not in answer:
            raise ApiError(0, "the server does not say whether it took the result")

    def all_submissions(self) -> list[SubmissionRow]:
        """Return every submission of the challenge, since the server's own filter by status is not reliable."""
        return self._list(routes.SUBMISSIONS_OF_CHALLENGE, submission_of)

    def phases(self) -> list[PhaseRow]:
        """Return the challenge's phases, as hosts see them."""
        return self._list(routes.PHASES_OF_HOST, phase_of)

    def splits(self) -> list[dict[str, object]]:
        """Return the challenge's phase splits."""
        return self._list(routes.PHASE_SPLITS, lambda row: row if isinstance(row, dict) else None)

    def challenge(self) -> ChallengeRow:
        """Return the challenge of the queue."""
        return self._repeat("GET", routes.CHALLENGE_OF_QUEUE, {"queue": self._queue}, challenge_of)

    def _list(self, route: str, parse_row: Callable[[object], Parsed | None]) -> list[Parsed]:
        """Return the rows that can be parsed; a list of which none can is not an answer."""

        def parse(answer: object) -> list[Parsed] | None:
            if not isinstance(answer, list):
                return None
            rows = [row for row in map(parse_row, answer) if row is not None]
            return rows if rows or not answer else None

        return self._repeat("GET", route, {"challenge": self._challenge}, parse)

    def _repeat(
        self,
        method: str,
        route: str,
        values: Mapping[str, int | str],
        parse: Callable[[object], Parsed | None],
        **options: Unpack[CallOptions],
    ) -> Parsed:
        """Call until there is an answer that can be parsed, a few times."""

        def call() -> Parsed:
            parsed = parse(self._client.call(method, route, values, **options))
            if parsed is None:
                raise ApiError(0, f"the server answers {method} {routes.path(route, **values)} with something else")
            return parsed

        return with_retries(call, self._sleep)
