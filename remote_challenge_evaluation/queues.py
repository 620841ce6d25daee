"""Where messages come from: EvalAI's queue through its API, or a queue of the host's own, straight from SQS."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Protocol

from linejudge.evalai.client import ApiError
from linejudge.evalai.jobs import Jobs, Message

from .journal import Journal
from .log import Log
from .settings import Settings

#: Seconds that SQS may hold a look, and that a message stays hidden while its heart beats.
_LONG_POLL, _VISIBILITY = 20, 60
#: After so long a message of the host's own queue is left to the sweep.
_BEAT = 20.0


class Queue(Protocol):
    """What a worker asks of a queue."""

    def due(self) -> bool:
        """Whether it is time to look."""

    def receive(self) -> Message | None:
        """A message, if there is one."""

    def delete(self, message: Message) -> None:
        """Its work is safe in the journal, or there is none."""

    def delete_last(self, message: Message) -> None:
        """All is done."""

    def held(self, message: Message) -> Any:
        """A context in which the message stays ours."""

    def keep_artifacts(self, submission: int, report: dict[str, Any]) -> None:
        """Put what came of a submission where the host wants it."""


class ApiQueue:
    """EvalAI's own: 30 s of visibility that nobody can extend, so a message goes as soon as the journal has it."""

    def __init__(self, jobs: Jobs, journal: Journal, settings: Settings) -> None:
        self._jobs, self._journal, self._settings = jobs, journal, settings

    def due(self) -> bool:
        return self._journal.turn("poll_at", self._settings.poll_seconds)

    def receive(self) -> Message | None:
        message = self._jobs.receive()
        if message is not None:
            self._journal.set("poll_at", 0)  # there may be more
        return message

    def delete(self, message: Message) -> None:
        # A message that stays comes back in 30 s and is recognised.
        with suppress(ApiError):
            self._jobs.delete(message)

    def delete_last(self, message: Message) -> None:
        """It is gone already."""

    @contextmanager
    def held(self, message: Message) -> Iterator[None]:
        del message
        yield

    def keep_artifacts(self, submission: int, report: dict[str, Any]) -> None:
        Artifacts(self._settings.artifacts).keep(submission, report)


class OwnQueue:
    """A queue of the host's own: the message is kept, its visibility renewed by a heartbeat, and deleted last."""

    def __init__(self, settings: Settings, log: Log) -> None:
        import boto3

        self._settings, self._log = settings, log
        self._sqs = boto3.client("sqs")

    def due(self) -> bool:
        return True  # the look itself waits

    def receive(self) -> Message | None:
        answer = self._sqs.receive_message(
            QueueUrl=self._settings.sqs_queue_url,
            MaxNumberOfMessages=1,
            WaitTimeSeconds=_LONG_POLL,
            VisibilityTimeout=_VISIBILITY,
        )
        for one in answer.get("Messages", []):
            try:
                body = json.loads(one["Body"])
            except ValueError:
                body = one["Body"]
            return Message(body, one["ReceiptHandle"])
        return None

    def delete(self, message: Message) -> None:
        """Not yet: until the end the queue, too, remembers."""

    def delete_last(self, message: Message) -> None:
        self._sqs.delete_message(QueueUrl=self._settings.sqs_queue_url, ReceiptHandle=message.handle)

    @contextmanager
    def held(self, message: Message) -> Iterator[None]:
        over = threading.Event()
        beating = threading.Thread(target=self._beat, args=(message, over), daemon=True)
        beating.start()
        try:
            yield
        finally:
            over.set()
            beating.join()

    def _beat(self, message: Message, over: threading.Event) -> None:
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
        Artifacts(self._settings.artifacts).keep(submission, report)


class Artifacts:
    """What each submission left, in a bucket of the host's."""

    def __init__(self, place: str) -> None:
        self._place = place

    def keep(self, submission: int, report: dict[str, Any]) -> None:
        """Write it; nothing where no place is set."""
        if not self._place:
            return
        import boto3

        bucket, prefix = bucket_of(self._place)
        body = json.dumps(report, indent=1, default=str).encode()
        key = os.path.join(prefix, f"submission_{submission}.json")
        boto3.client("s3").put_object(Bucket=bucket, Key=key, Body=body, ContentType="application/json")


def bucket_of(place: str) -> tuple[str, str]:
    """s3://bucket/prefix in its two parts."""
    bucket, _, prefix = place.removeprefix("s3://").partition("/")
    return bucket, prefix.strip("/")


def annotations_from(place: str, folder: str, names: list[str]) -> str:
    """The folder with the truth; from a bucket it is fetched into ours, when it has changed."""
    if not place.startswith("s3://"):
        return os.path.abspath(place)
    try:
        return _fetched(place, folder, names)
    except Exception as error:  # noqa: BLE001 - botocore's errors have no family; all of them say what is wrong
        raise RuntimeError(f"ANNOTATIONS {place}: {error}") from None


def _fetched(place: str, folder: str, names: list[str]) -> str:
    import boto3

    bucket, prefix = bucket_of(place)
    s3 = boto3.client("s3")
    target = os.path.join(folder, "annotations")
    os.makedirs(target, mode=0o700, exist_ok=True)
    for name in names:
        key = os.path.join(prefix, name)
        mark, path = os.path.join(target, f"{name}.etag"), os.path.join(target, name)
        tag = s3.head_object(Bucket=bucket, Key=key)["ETag"]
        if os.path.exists(path) and os.path.exists(mark) and _text(mark) == tag:
            continue
        partial = f"{path}.{os.getpid()}.partial"
        s3.download_file(bucket, key, partial)
        os.replace(partial, path)
        with open(mark, "w", encoding="utf-8") as file:
            file.write(tag)
    return target


def _text(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read()
