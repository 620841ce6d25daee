"""What a remote worker asks of EvalAI, each call by name, and patient where patience helps."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from . import routes
from .client import ApiError, Client
from .patience import patiently
from .shapes import Accuracies

FINISHED, FAILED, CANCELLED, RUNNING = "finished", "failed", "cancelled", "running"
#: Statuses that nobody has to bring to an end.
SETTLED = (FINISHED, FAILED, CANCELLED, "archived")
#: What the server keeps as the file of a large upload until it is there.
PLACEHOLDER = b"file_content"
#: Work that nobody has begun.
WAITING = ("submitted", "resuming", "queued")


@dataclass(frozen=True)
class Message:
    """What the queue handed out; `submission` is 0 where it makes no sense."""

    body: Any
    handle: str

    @property
    def submission(self) -> int:
        """Numbers come as numbers or as texts."""
        told = self.body.get("submission_pk") if isinstance(self.body, dict) else None
        try:
            number = int(told)  # type: ignore[arg-type]
        except (TypeError, ValueError, OverflowError):
            return 0
        return number if 0 < number < 1 << 62 and not isinstance(told, (bool, float)) else 0


class Jobs:
    """The queue and the submissions of one challenge."""

    def __init__(self, client: Client, challenge: int, queue: str, sleep: Callable[[float], object]) -> None:
        self._client, self._challenge, self._queue, self._sleep = client, challenge, queue, sleep

    def receive(self) -> Message | None:
        """At most one message; it can wait, and is tried once."""
        answer = self._client.call("GET", routes.QUEUE, {"queue": self._queue}, urgent=False)
        if not isinstance(answer, dict) or not answer.get("receipt_handle"):
            return None
        return Message(answer.get("body"), str(answer["receipt_handle"]))

    def delete(self, message: Message) -> None:
        """Forget a message; one that stays comes back, and is recognised."""
        data = {"receipt_handle": message.handle}
        self._ask("POST", routes.QUEUE_DELETE, {"queue": self._queue}, data=data)

    def submission(self, number: int) -> dict[str, Any]:
        """A look at one."""
        return self._mapping("GET", routes.SUBMISSION, {"submission": number})

    def begin(self, number: int, name: str) -> None:
        """It runs here."""
        data = {"submission": number, "submission_status": "RUNNING", "job_name": name}
        self._ask("PATCH", routes.UPDATE_SUBMISSION, {"challenge": self._challenge}, data=data)

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
        self._client.call("PUT", routes.UPDATE_SUBMISSION, {"challenge": self._challenge}, json=whole)

    def all_submissions(self) -> list[dict[str, Any]]:
        """Every submission of the challenge; the server's own filter by status is not to be trusted."""
        return self._list(routes.SUBMISSIONS_OF_CHALLENGE)

    def phases(self) -> list[dict[str, Any]]:
        """The challenge's phases, as hosts see them."""
        return self._list(routes.PHASES_OF_HOST)

    def splits(self) -> list[dict[str, Any]]:
        """Which splits are shown."""
        return self._list(routes.PHASE_SPLITS)

    def challenge(self) -> dict[str, Any]:
        """The challenge of the queue."""
        return self._mapping("GET", routes.CHALLENGE_OF_QUEUE, {"queue": self._queue})

    def _list(self, route: str) -> list[dict[str, Any]]:
        answer = self._ask("GET", route, {"challenge": self._challenge})
        if not isinstance(answer, list):
            raise ApiError(0, "the server answers with something else than a list")
        return [row for row in answer if isinstance(row, dict)]

    def _mapping(self, method: str, route: str, values: dict[str, Any]) -> dict[str, Any]:
        answer = self._ask(method, route, values)
        if not isinstance(answer, dict):
            raise ApiError(0, "the server answers with something else than an object")
        return answer

    def _ask(self, method: str, route: str, values: dict[str, Any], **options: Any) -> Any:
        return patiently(lambda: self._client.call(method, route, values, **options), self._sleep)
