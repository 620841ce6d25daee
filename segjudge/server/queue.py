"""Queues as SQS keeps them: a message that is received hides for a while, and comes back until it is deleted."""

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass

from sqlalchemy import or_

from .models import MessageReceipt, StoredMessage
from .refusal import JsonObject
from .store import Store

#: SQS' default, which EvalAI's queues have and no call extends.
VISIBILITY = 30.0
#: Seconds by which clocks are corrected all the time.
_SLACK = 1.0
#: Messages that the host's page shows.
_LISTED = 200


@dataclass(frozen=True)
class ReceivedMessage:
    """A message that a worker has received; the handle is another at each receipt."""

    body: JsonObject
    handle: str


class MessageQueues:
    """All queues of the rehearsal, by name."""

    def __init__(self, store: Store, visibility: float, repeats: Callable[[], bool]) -> None:
        """`repeats` decides whether a received message stays visible, as SQS may deliver one twice."""
        self._store, self._visibility, self._repeats = store, visibility, repeats

    def send(self, queue: str, body: JsonObject) -> None:
        """Put a message at the end of a queue."""
        now = time.time()
        fields = body if isinstance(body, dict) else {}  # a test sends anything, as who has the queue's keys could
        code_upload = fields.get("is_static_dataset_code_upload_submission") or "submitted_image_uri" in fields
        with self._store.write() as session:
            session.add(StoredMessage(queue=queue, body=body, hosted=not code_upload, visible_at=now, sent_at=now))

    def receive(self, queue: str, *, hosted: bool | None = None) -> ReceivedMessage | None:
        """Return the oldest visible message, hidden from now on; None where there is none.

        EvalAI's own worker (`hosted`) and the one for code uploads (not `hosted`) skip those of the other.
        """
        now = time.time()
        # A clock that was set back must hide no message for longer than any is hidden.
        visible = or_(StoredMessage.visible_at <= now, StoredMessage.visible_at > now + self._visibility + _SLACK)
        conditions = [StoredMessage.queue == queue, visible]
        if hosted is not None:
            conditions.append(StoredMessage.hosted.is_(hosted))
        if not self._store.exists(*conditions):
            return None  # without taking the lock: most queues are empty most of the time
        with self._store.write() as session:
            message = self._store.first(StoredMessage, *conditions)
            if message is None:
                return None
            message.visible_at = now if self._repeats() else now + self._visibility
            message.received += 1
            receipt = MessageReceipt(handle=secrets.token_urlsafe(24), message_id=message.id)
            session.add(receipt)
            return ReceivedMessage(message.body, receipt.handle)

    def _of_handle(self, queue: str, handle: str) -> StoredMessage | None:
        return self._store.first(
            StoredMessage,
            StoredMessage.queue == queue,
            StoredMessage.id == MessageReceipt.message_id,
            MessageReceipt.handle == handle,
        )

    def delete(self, queue: str, handle: str) -> None:
        """Delete a message, by the handle of any of its receipts; nothing happens where there is none."""
        with self._store.write() as session:
            message = self._of_handle(queue, handle)
            if message is not None:
                self._store.remove(MessageReceipt, MessageReceipt.message_id == message.id)
                session.delete(message)

    def give_back(self, queue: str, handle: str) -> bool:
        """Show a message to others at once, since its receiver cannot finish; return whether there was one."""
        with self._store.write():
            message = self._of_handle(queue, handle)
            if message is not None:
                message.visible_at = time.time()
            return message is not None

    def waiting(self, queue: str) -> list[JsonObject]:
        """Return the messages of a queue, for the host's page."""
        now = time.time()
        return [
            {
                **message.body,
                "age": max(0.0, now - message.sent_at),
                "received": message.received,
                "hidden": max(0.0, message.visible_at - now),
            }
            for message in self._store.find(StoredMessage, StoredMessage.queue == queue, limit=_LISTED)
        ]
