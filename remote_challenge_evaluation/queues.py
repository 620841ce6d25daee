"""Where messages come from: EvalAI's queue through its API, or a queue of the host's own, straight from SQS."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Protocol

from segjudge.evalai.client import ApiError
from segjudge.evalai.http_exchange import StoppedError, Watch, awaited, within
from segjudge.evalai.jobs import Jobs, QueueMessage

from .journal import Journal
from .operator_log import Log
from .owners import FETCHED
from .settings import WorkerSettings

#: Seconds that SQS may hold a look, and that a message stays hidden while its heart beats.
_LONG_POLL, _VISIBILITY = 20, 60
#: After so long a message of the host's own queue is left to the sweep.
_BEAT = 20.0
_AWS_SECONDS = 60.0


class WorkQueue(Protocol):
    """What a worker asks of a queue."""

    def due(self) -> bool:
        """Whether it is time to look."""

    def receive(self) -> QueueMessage | None:
        """A message, if there is one."""

    def delete(self, message: QueueMessage) -> None:
        """Its work is safe in the journal, or there is none."""

    def delete_last(self, message: QueueMessage) -> None:
        """All is done."""

    def held(self, message: QueueMessage) -> Any:
        """A context in which the message stays ours."""

    def keep_artifacts(self, submission: int, report: dict[str, Any]) -> None:
        """Put what came of a submission where the host wants it."""


class ApiQueue:
    """EvalAI's own: 30 s of visibility that nobody can extend, so a message goes as soon as the journal has it."""

    def __init__(self, jobs: Jobs, journal: Journal, settings: WorkerSettings, log: Log) -> None:
        self._jobs, self._journal, self._settings, self._log = jobs, journal, settings, log

    def due(self) -> bool:
        return self._journal.turn("poll_at", self._settings.poll_seconds)

    def receive(self) -> QueueMessage | None:
        message = self._jobs.receive()
        if message is not None:
            self._journal.set("poll_at", 0)  # there may be more
        return message

    def delete(self, message: QueueMessage) -> None:
        # A message that stays comes back in 30 s and is recognised.
        with suppress(ApiError):
            self._jobs.delete(message)

    def delete_last(self, message: QueueMessage) -> None:
        """It is gone already."""

    @contextmanager
    def held(self, message: QueueMessage) -> Iterator[None]:
        del message
        yield

    def keep_artifacts(self, submission: int, report: dict[str, Any]) -> None:
        Artifacts(self._settings.artifacts, self._log).keep(submission, report)


class OwnQueue:
    """A queue of the host's own: the message is kept, its visibility renewed by a heartbeat, and deleted last."""

    def __init__(self, settings: WorkerSettings, log: Log, watch: Watch, look_seconds: int = _LONG_POLL) -> None:
        self._settings, self._log, self._watch, self._look_seconds = settings, log, watch, look_seconds
        self._sqs: Any = _aws("sqs")

    def due(self) -> bool:
        return True  # the look itself waits

    def receive(self) -> QueueMessage | None:
        try:
            answer = awaited(self._looked, self._watch)
            (found,) = answer.get("Messages") or [None]
            return _message(found) if found else None
        except StoppedError:
            raise
        except Exception as error:  # noqa: BLE001 - botocore's errors have no family
            raise ApiError(0, f"{self._settings.sqs_queue_url}: {str(error)[:300]}") from None

    def _looked(self) -> Any:
        return self._sqs.receive_message(
            QueueUrl=self._settings.sqs_queue_url,
            MaxNumberOfMessages=1,
            WaitTimeSeconds=self._look_seconds,
            VisibilityTimeout=_VISIBILITY,
        )

    def delete(self, message: QueueMessage) -> None:
        """Not yet: until the end the queue, too, remembers."""

    def delete_last(self, message: QueueMessage) -> None:
        where = {"QueueUrl": self._settings.sqs_queue_url, "ReceiptHandle": message.handle}
        try:
            awaited(lambda: self._sqs.delete_message(**where), within(_AWS_SECONDS))
        except Exception as error:  # noqa: BLE001 - it comes back, and is recognised
            self._log("message stays", why=str(error)[:200])

    @contextmanager
    def held(self, message: QueueMessage) -> Iterator[None]:
        over = threading.Event()
        beating = threading.Thread(target=self._beat, args=(message, over), daemon=True)
        beating.start()
        try:
            yield
        finally:
            over.set()
            beating.join(_AWS_SECONDS)

    def _beat(self, message: QueueMessage, over: threading.Event) -> None:
        while not over.wait(_BEAT):
            try:
                self._sqs.change_message_visibility(
                    QueueUrl=self._settings.sqs_queue_url,
                    ReceiptHandle=message.handle,
                    VisibilityTimeout=_VISIBILITY,
                )
            except Exception as error:  # noqa: BLE001 - the journal remembers; a lost beat costs a redelivery
                self._log("heartbeat lost", why=str(error)[:200])

    def keep_artifacts(self, submission: int, report: dict[str, Any]) -> None:
        Artifacts(self._settings.artifacts, self._log).keep(submission, report)


class Artifacts:
    """What each submission left, in a bucket of the host's."""

    def __init__(self, place: str, log: Log) -> None:
        self._place, self._log = place, log

    def keep(self, submission: int, report: dict[str, Any]) -> None:
        """Write it; nothing where no place is set."""
        if not self._place:
            return
        bucket, prefix = bucket_of(self._place)
        body = json.dumps(report, indent=1, default=str).encode()
        told = {"Bucket": bucket, "Key": os.path.join(prefix, f"submission_{submission}.json"), "Body": body}
        try:
            awaited(lambda: _aws("s3").put_object(**told, ContentType="application/json"), within(_AWS_SECONDS))
        except Exception as error:  # noqa: BLE001 - the result is reported; this copy of it is a courtesy
            self._log("not kept", submission=submission, where=self._place, why=str(error)[:300])


def _aws(service: str) -> Any:
    """A client that does not wait for ever."""
    import boto3
    from botocore.config import Config

    patience = Config(connect_timeout=10, read_timeout=60, retries={"max_attempts": 3})
    return boto3.client(service, config=patience)  # type: ignore[call-overload]


def _message(found: dict[str, Any]) -> QueueMessage:
    try:
        body = json.loads(found["Body"])
    except (ValueError, RecursionError):
        body = found["Body"]
    return QueueMessage(body, found["ReceiptHandle"])


def bucket_of(place: str) -> tuple[str, str]:
    """s3://bucket/prefix in its two parts."""
    bucket, _, prefix = place.removeprefix("s3://").partition("/")
    return bucket, prefix.strip("/")


def annotations_from(place: str, folder: str, names: list[str], owner: str, watch: Watch) -> str:
    """The folder with the truth; from a bucket it is fetched into ours, when it has changed."""
    if not place.startswith("s3://"):
        return os.path.abspath(place)
    try:
        return awaited(lambda: _fetched(place, folder, names, owner), watch)
    except StoppedError:
        raise
    except Exception as error:  # noqa: BLE001 - botocore's errors have no family; all of them say what is wrong
        raise RuntimeError(f"ANNOTATIONS {place}: {error}") from None


def _fetched(place: str, folder: str, names: list[str], owner: str) -> str:
    bucket, prefix = bucket_of(place)
    s3 = _aws("s3")
    target = os.path.join(folder, FETCHED)
    os.makedirs(target, mode=0o700, exist_ok=True)
    for name in names:
        key = os.path.join(prefix, name)
        mark, path = os.path.join(target, f"{name}.etag"), os.path.join(target, name)
        tag = s3.head_object(Bucket=bucket, Key=key)["ETag"]
        if os.path.exists(path) and os.path.exists(mark) and _text(mark) == tag:
            continue
        partial = f"{path}-{owner}.partial"
        s3.download_file(bucket, key, partial)
        os.replace(partial, path)
        with open(mark, "w", encoding="utf-8") as file:
            file.write(tag)
    return target


def _text(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read()
