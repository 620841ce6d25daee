"""What a remote worker asks of EvalAI, each call by name, and patient where patience helps."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from . import routes
from .client import ApiError, Client
from .result_shapes import Accuracies, number_of, phase_of, submission_of
from .retries import with_retries

FINISHED, FAILED, CANCELLED, RUNNING = "finished", "failed", "cancelled", "running"
#: Statuses that nobody has to bring to an end.
SETTLED = (FINISHED, FAILED, CANCELLED, "archived")
#: What the server keeps as the file of a large upload until it is there.
PLACEHOLDER = b"file_content"
#: Work that nobody has begun.
WAITING = ("submitted", "resuming", "queued")
#: All that a submission can be.
STATUSES = (*WAITING, RUNNING, *SETTLED, "submitting", "partially_evaluated")


@dataclass(frozen=True)
class QueueMessage:
    """What the queue handed out; `submission` is 0 where it makes no sense."""

    body: Any
    handle: str

    @property
    def submission(self) -> int:
        """The submission's number."""
        return number_of(self.body.get("submission_pk")) if isinstance(self.body, dict) else 0


Checked = TypeVar("Checked")
#: A receipt handle of SQS has at most 1,024 characters.
_LONGEST_HANDLE = 4096


class Jobs:
    """The queue and the submissions of one challenge."""

    def __init__(self, client: Client, challenge: int, queue: str, sleep: Callable[[float], object]) -> None:
        self._client, self._challenge, self._queue, self._sleep = client, challenge, queue, sleep

    def receive(self) -> QueueMessage | None:
        """At most one message; it can wait, and is tried once."""
        answer = self._client.call("GET", routes.QUEUE, {"queue": self._queue}, urgent=False)
        if not isinstance(answer, dict) or "receipt_handle" not in answer or "body" not in answer:
            raise ApiError(0, "the server answers with something that is not a message")
        handle = answer["receipt_handle"]
        if not handle:
            return None
        if not isinstance(handle, str) or len(handle) > _LONGEST_HANDLE:
            raise ApiError(0, "the server answers with a message that has no receipt handle")
        return QueueMessage(answer["body"], handle)

    def delete(self, message: QueueMessage) -> None:
        """Forget a message; one that stays comes back, and is recognised."""
        data = {"receipt_handle": message.handle}
        self._ask("POST", routes.QUEUE_DELETE, {"queue": self._queue}, check=lambda answer: answer, data=data)

    def submission(self, number: int) -> dict[str, Any]:
        """A look at one."""
        route = ("GET", routes.SUBMISSION, {"submission": number})
        return self._ask(*route, check=lambda row: submission_of(row, number))

    def begin(self, number: int, name: str) -> None:
        """It runs here."""
        data = {"submission": number, "submission_status": "RUNNING", "job_name": name}
        route = ("PATCH", routes.UPDATE_SUBMISSION, {"challenge": self._challenge})
        self._ask(*route, check=lambda row: submission_of(row, number), data=data)

    def finish(self, number: int, phase: int, result: Accuracies, **texts: str) -> None:
        """Its result; raises `ApiError` 400 where the server does not take it, and then nothing has changed."""
        body = {"submission_status": "FINISHED", "result": json.dumps(result, allow_nan=False), **texts}
        self._put(number, phase, body)

    def fail(self, number: int, phase: int, **texts: str) -> None:
        """It failed, and why."""
        self._put(number, phase, {"submission_status": "FAILED", **texts})

    def _put(self, number: int, phase: int, body: dict[str, str]) -> None:
        # One try: whether it came through is looked up before the next.
        whole = {"submission": number, "challenge_phase": phase, **body}
        answer = self._client.call("PUT", routes.UPDATE_SUBMISSION, {"challenge": self._challenge}, json=whole)
        if not isinstance(answer, dict) or "success" not in answer:
            raise ApiError(0, "the server does not say whether it took the result")

    def all_submissions(self) -> list[dict[str, Any]]:
        """Every submission of the challenge; the server's own filter by status is not to be trusted."""
        return self._list(routes.SUBMISSIONS_OF_CHALLENGE, submission_of)

    def phases(self) -> list[dict[str, Any]]:
        """The challenge's phases, as hosts see them."""
        return self._list(routes.PHASES_OF_HOST, phase_of)

    def splits(self) -> list[dict[str, Any]]:
        """Which splits are shown."""
        return self._list(routes.PHASE_SPLITS, lambda row: row if isinstance(row, dict) else None)

    def challenge(self) -> dict[str, Any]:
        """The challenge of the queue."""
        return self._ask("GET", routes.CHALLENGE_OF_QUEUE, {"queue": self._queue}, check=_challenge_of)

    def _list(self, route: str, sound: Callable[[Any], dict[str, Any] | None]) -> list[dict[str, Any]]:
        """Rows that make sense; a list of which none does is not an answer."""

        def check(answer: Any) -> list[dict[str, Any]] | None:
            if not isinstance(answer, list):
                return None
            rows = [row for row in map(sound, answer) if row is not None]
            return rows if rows or not answer else None

        return self._ask("GET", route, {"challenge": self._challenge}, check=check)

    def _ask(
        self, method: str, route: str, values: dict[str, Any], check: Callable[[Any], Checked | None], **options: Any
    ) -> Checked:
        """A call with patience; an answer that makes no sense is asked for again."""

        def call() -> Checked:
            found = check(self._client.call(method, route, values, **options))
            if found is None:
                raise ApiError(0, f"the server answers {method} {routes.path(route, **values)} with something else")
            return found

        return with_retries(call, self._sleep)


def _challenge_of(row: Any) -> dict[str, Any] | None:
    number = number_of(row.get("id")) if isinstance(row, dict) else 0
    return {**row, "id": number} if number else None
