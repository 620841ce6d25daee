"""A queue as SQS keeps it: a message that is received hides for a while, and comes back until it is deleted."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .store import Store

#: SQS' default, which EvalAI's queues have and no call extends.
VISIBILITY = 30.0
_FOR_HOSTED = (
    "coalesce(json_extract(body, '$.is_static_dataset_code_upload_submission'), 0) = 0 "
    "AND json_extract(body, '$.submitted_image_uri') IS NULL"
)


@dataclass(frozen=True)
class ReceivedMessage:
    """A message in somebody's hands; the handle is another at each receipt."""

    body: dict[str, Any]
    handle: str
    received: int


class MessageQueues:
    """All queues of the rehearsal, by name."""

    def __init__(self, store: Store, visibility: float = VISIBILITY, again: Callable[[], bool] = lambda: False) -> None:
        """`again` decides whether a message is handed out twice at once, as SQS may."""
        self._store, self._visibility, self._again = store, visibility, again

    def send(self, queue: str, body: dict[str, Any]) -> None:
        """Put a message at the end."""
        now = time.time()
        with self._store.write() as db:
            db.execute(
                "INSERT INTO messages (queue, body, visible_at, sent_at) VALUES (?, ?, ?, ?)",
                (queue, json.dumps(body), now, now),
            )

    def receive(self, queue: str, *, hosted: bool | None = None) -> ReceivedMessage | None:
        """The oldest visible message, hidden from now on.

        EvalAI's own worker (`hosted`) and the one for code uploads (not `hosted`) skip those of the other.
        """
        now = time.time()
        skipped = "" if hosted is None else f" AND ({_FOR_HOSTED}) = {int(hosted)}"
        sql = f"SELECT * FROM messages WHERE queue = ? AND visible_at <= ?{skipped} ORDER BY id LIMIT 1"  # noqa: S608
        if not self._store.row(sql, queue, now):
            return None  # without taking the lock: most looks find nothing
        with self._store.write() as db:
            for row in db.execute(sql, (queue, now)).fetchall():
                body = json.loads(row["body"])
                handle = secrets.token_urlsafe(24)
                until = now if self._again() else now + self._visibility
                db.execute(
                    "UPDATE messages SET visible_at = ?, received = received + 1 WHERE id = ?", (until, row["id"])
                )
                db.execute("INSERT INTO receipts VALUES (?, ?)", (handle, row["id"]))
                return ReceivedMessage(body, handle, row["received"] + 1)
        return None

    def delete(self, queue: str, handle: str) -> bool:
        """Forget a message; an older handle of it serves as well. Whether there was any."""
        with self._store.write() as db:
            found = db.execute(
                "SELECT id FROM messages WHERE queue = ? AND id = (SELECT message_id FROM receipts WHERE handle = ?)",
                (queue, handle),
            ).fetchone()
            if found is None:
                return False
            db.execute("DELETE FROM messages WHERE id = ?", (found["id"],))
            db.execute("DELETE FROM receipts WHERE message_id = ?", (found["id"],))
            return True

    def give_back(self, queue: str, handle: str) -> bool:
        """Show a message to others at once, since its receiver cannot finish; whether there was any."""
        with self._store.write() as db:
            found = db.execute(
                "UPDATE messages SET visible_at = ? WHERE queue = ? "
                "AND id = (SELECT message_id FROM receipts WHERE handle = ?)",
                (time.time(), queue, handle),
            )
            return found.rowcount > 0

    def waiting(self, queue: str) -> list[dict[str, Any]]:
        """What is in a queue, for the host's page."""
        now = time.time()
        rows = self._store.rows("SELECT * FROM messages WHERE queue = ? ORDER BY id LIMIT 200", queue)
        return [
            {
                **json.loads(row["body"]),
                "age": now - row["sent_at"],
                "received": row["received"],
                "hidden": max(0.0, row["visible_at"] - now),
            }
            for row in rows
        ]
