"""Where messages come from: EvalAI's queue through its API, or a queue of the host's own, straight from SQS."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeAlias

from segjudge.platforms.evalai.client import (
    ApiError,
    Jobs,
    QueueMessage,
    StoppedError,
    Watch,
    call_watched,
    with_deadline,
)

from .buckets import AWS_SECONDS, aws_client
from .journal import Journal
from .operator_log import Log
from .settings import WorkerSettings

#: Seconds that SQS may wait for a message, and that a message stays hidden without a heartbeat.
_LONG_POLL, _VISIBILITY = 20, 60
#: Seconds between two heartbeats.
_HEARTBEAT = 20.0


class ApiQueue:
    """EvalAI's own: 30 s of visibility that cannot be extended, so a message is deleted once the journal has it."""

    def __init__(self, jobs: Jobs, journal: Journal, poll_seconds: float) -> None:
        self._jobs, self._journal, self._poll_seconds = jobs, journal, poll_seconds

    def is_due(self) -> bool:
        """Return whether it is time to poll."""
        return self._journal.take_turn("poll_at", self._poll_seconds)

    def receive(self) -> QueueMessage | None:
        """Return a message, if there is one."""
        return self._jobs.receive()

    def expect_more(self) -> None:
        """Have the next poll follow at once."""
        self._journal.set("poll_at", 0)

    @contextmanager
    def keep_hidden(self, message: QueueMessage) -> Iterator[None]:
        """Return a context in which no other worker receives the message."""
        del message
        yield

    def acknowledge_claim(self, message: QueueMessage) -> None:
        """Note that the journal has the message's work, or that there is none."""
        # A message that stays comes back in 30 s and is recognised.
        with suppress(ApiError):
            self._jobs.delete(message)

    def acknowledge_end(self, message: QueueMessage) -> None:
        """Note that the message's work is done; it is deleted already."""


class OwnQueue:
    """A queue of the host's own: a heartbeat keeps a message hidden, and it is deleted when its work is done."""

    def __init__(self, settings: WorkerSettings, log: Log, watch: Watch, poll_seconds: int = _LONG_POLL) -> None:
        self._url, self._log, self._watch, self._poll_seconds = settings.sqs_queue_url, log, watch, poll_seconds
        self._sqs: Any = aws_client("sqs")

    def is_due(self) -> bool:
        return True  # the poll itself waits

    def receive(self) -> QueueMessage | None:
        limits = {"MaxNumberOfMessages": 1, "WaitTimeSeconds": self._poll_seconds, "VisibilityTimeout": _VISIBILITY}
        try:
            answer = call_watched(lambda: self._sqs.receive_message(QueueUrl=self._url, **limits), self._watch)
            (found,) = answer.get("Messages") or [None]
            return _message(found) if found else None
        except StoppedError:
            raise
        except Exception as error:  # noqa: BLE001 - botocore's errors have no family
            raise ApiError(0, f"{self._url}: {str(error)[:300]}") from None

    def expect_more(self) -> None:
        """Do nothing: the next poll follows at once anyway."""

    @contextmanager
    def keep_hidden(self, message: QueueMessage) -> Iterator[None]:
        over = threading.Event()
        heartbeats = threading.Thread(target=self._send_heartbeats, args=(message, over), daemon=True)
        heartbeats.start()
        try:
            yield
        finally:
            over.set()
            heartbeats.join(AWS_SECONDS)

    def _send_heartbeats(self, message: QueueMessage, over: threading.Event) -> None:
        fields = {"QueueUrl": self._url, "ReceiptHandle": message.handle}
        while not over.wait(_HEARTBEAT):
            try:
                self._sqs.change_message_visibility(**fields, VisibilityTimeout=_VISIBILITY)
            except Exception as error:  # noqa: BLE001 - the journal remembers; a lost heartbeat costs a redelivery
                self._log("heartbeat lost", why=str(error)[:200])

    def acknowledge_claim(self, message: QueueMessage) -> None:
        """Do nothing: until the end the queue, too, remembers."""

    def acknowledge_end(self, message: QueueMessage) -> None:
        fields = {"QueueUrl": self._url, "ReceiptHandle": message.handle}
        try:
            call_watched(lambda: self._sqs.delete_message(**fields), with_deadline(AWS_SECONDS))
        except Exception as error:  # noqa: BLE001 - the message comes back, and is recognised
            self._log("message stays", why=str(error)[:200])


#: A queue of messages that name submissions.
WorkQueue: TypeAlias = ApiQueue | OwnQueue


def _message(found: dict[str, str]) -> QueueMessage:
    try:
        body = json.loads(found["Body"])
    except (ValueError, RecursionError):
        body = found["Body"]
    return QueueMessage(body, found["ReceiptHandle"])
