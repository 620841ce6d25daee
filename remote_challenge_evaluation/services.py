"""A worker's services: stop request, message queue, host's buckets, and journal.

Messages come from EvalAI's queue through its API, or from the host's own queue; annotations may be in the host's
bucket.
"""

from __future__ import annotations

import json
import os
import select
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from segjudge.platforms.evalai.client import ApiError, Jobs, QueueMessage
from segjudge.system.extras import make_error
from segjudge.system.network import StoppedError, Watch, call_in_thread, with_deadline

from .journal import FETCHED, JobReport, Journal
from .monitoring import Log
from .settings import StartError, WorkerSettings


class JobBlockedError(Exception):
    """Raised if a job is blocked for reasons outside its team and this machine."""


class TokenRefusedError(Exception):
    """Raised if the server no longer accepts the token, which only a person can change."""


#: Signals that stop the worker, unless they are ignored, as a hangup is under nohup.
_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class Stop:
    """A request to stop, and its urgency; unlike an Event it may be set by a signal handler during a wait."""

    def __init__(self, grace: float) -> None:
        self._grace, self._requests = grace, 0
        self._deadline = 0.0
        #: The time of the last check whether to stop; a live process checks repeatedly.
        self.last_look = time.monotonic()
        self._read, self._write = os.pipe()
        os.set_blocking(self._write, False)

    def listen(self) -> None:
        """Install signal handlers that request the stop; a second signal makes it urgent."""
        for number in _SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, lambda *_: self.ask())

    def ask(self) -> None:
        self._requests += 1
        if self._requests == 1:
            self._deadline = time.monotonic() + self._grace
        with suppress(OSError):
            os.write(self._write, b".")

    def is_set(self) -> bool:
        """Return whether no new work should begin."""
        self.last_look = time.monotonic()
        return self._requests > 0

    def is_over(self) -> bool:
        """Return whether running work must be abandoned."""
        self.last_look = time.monotonic()
        return self._requests > 1 or (self._requests == 1 and time.monotonic() >= self._deadline)

    def wait(self, seconds: float) -> bool:
        """Wait for a time or the stop request; return whether it came."""
        if not self._requests:
            select.select([self._read], [], [], seconds)
        return self.is_set()

    def wait_over(self, seconds: float) -> bool:
        """Wait for a time or the urgent stop; return whether it came."""
        deadline = time.monotonic() + seconds
        while not self.is_over() and time.monotonic() < deadline:
            time.sleep(0.1)
        return self.is_over()

    def check(self) -> None:
        """Raise StoppedError after a stop request, during work that is easily repeated."""
        if self.is_set():
            raise StoppedError("asked to stop")

    def check_over(self) -> None:
        """Raise StoppedError after an urgent stop request."""
        if self.is_over():
            raise StoppedError("asked to stop")


# ── queues ──────────────────────────────────────────────────────────────────

#: The maximum seconds that SQS waits for a message, and the seconds that a message stays hidden without a heartbeat.
_LONG_POLL, _VISIBILITY = 20, 60
#: Seconds between heartbeats.
_HEARTBEAT = 20.0


class WorkQueue:
    """A queue of messages that name submissions; unneeded methods do nothing."""

    def is_due(self) -> bool:
        return True

    def receive(self) -> QueueMessage | None:
        raise NotImplementedError

    def expect_more(self) -> None:
        """Make the next poll follow immediately."""

    @contextmanager
    def keep_hidden(self, message: QueueMessage) -> Iterator[None]:  # noqa: ARG002
        """Hide the message from other workers during the block."""
        yield

    def acknowledge_claim(self, message: QueueMessage) -> None:
        """Record that the journal has the message's work, or that there is none."""

    def acknowledge_end(self, message: QueueMessage) -> None:
        """Record that the message's work is done."""


class ApiQueue(WorkQueue):
    """EvalAI's own queue: visibility is fixed at 30 s, so messages are deleted once journaled."""

    def __init__(self, jobs: Jobs, journal: Journal, poll_seconds: float) -> None:
        self._jobs, self._journal, self._poll_seconds = jobs, journal, poll_seconds

    def is_due(self) -> bool:
        return self._journal.take_turn("poll_at", self._poll_seconds)

    def receive(self) -> QueueMessage | None:
        return self._jobs.receive()

    def expect_more(self) -> None:
        self._journal.set("poll_at", 0)

    def acknowledge_claim(self, message: QueueMessage) -> None:
        # An undeleted message returns after 30 s and is recognised.
        with suppress(ApiError):
            self._jobs.delete(message)


class HostQueue(WorkQueue):
    """The host's own queue, with long polling.

    A heartbeat keeps a message hidden; it is deleted when its work is done, so the queue keeps unfinished work.
    """

    def __init__(self, settings: WorkerSettings, log: Log, watch: Watch, poll_seconds: int = _LONG_POLL) -> None:
        self._url, self._log, self._watch, self._poll_seconds = settings.sqs_queue_url, log, watch, poll_seconds
        self._sqs: Any = _aws_client("sqs")

    def receive(self) -> QueueMessage | None:
        limits = {"MaxNumberOfMessages": 1, "WaitTimeSeconds": self._poll_seconds, "VisibilityTimeout": _VISIBILITY}
        try:
            answer = call_in_thread(lambda: self._sqs.receive_message(QueueUrl=self._url, **limits), self._watch)
            (message,) = answer.get("Messages") or [None]
            return _parse_message(message) if message else None
        except StoppedError:
            raise
        except Exception as error:  # noqa: BLE001 - botocore's errors have no family
            raise ApiError(0, f"{self._url}: {str(error)[:300]}") from None

    @contextmanager
    def keep_hidden(self, message: QueueMessage) -> Iterator[None]:
        is_finished = threading.Event()
        heartbeats = threading.Thread(target=self._send_heartbeats, args=(message, is_finished), daemon=True)
        heartbeats.start()
        try:
            yield
        finally:
            is_finished.set()
            heartbeats.join(_AWS_SECONDS)

    def _send_heartbeats(self, message: QueueMessage, is_finished: threading.Event) -> None:
        fields = {"QueueUrl": self._url, "ReceiptHandle": message.handle}
        while not is_finished.wait(_HEARTBEAT):
            try:
                self._sqs.change_message_visibility(**fields, VisibilityTimeout=_VISIBILITY)
            except Exception as error:  # noqa: BLE001 - the journal remembers; a lost heartbeat costs a redelivery
                self._log("heartbeat lost", why=str(error)[:200])

    def acknowledge_end(self, message: QueueMessage) -> None:
        fields = {"QueueUrl": self._url, "ReceiptHandle": message.handle}
        try:
            call_in_thread(lambda: self._sqs.delete_message(**fields), with_deadline(_AWS_SECONDS))
        except Exception as error:  # noqa: BLE001 - the message comes back, and is recognised
            self._log("message not deleted", why=str(error)[:200])


def _parse_message(message: dict[str, str]) -> QueueMessage:
    try:
        body = json.loads(message["Body"])
    except (ValueError, RecursionError):
        body = message["Body"]
    return QueueMessage(body, message["ReceiptHandle"])


# ── buckets ─────────────────────────────────────────────────────────────────

#: The maximum seconds for an answer of AWS.
_AWS_SECONDS = 60.0


def _aws_client(service: str) -> Any:
    """Return an AWS client with timeouts."""
    try:
        import boto3
        from botocore.config import Config
    except ModuleNotFoundError as error:
        raise StartError(str(make_error("aws", "AWS", error.name or ""))) from None

    config = Config(connect_timeout=10, read_timeout=60, retries={"max_attempts": 3})
    return boto3.client(service, config=config)  # type: ignore[call-overload]


def _bucket_and_prefix(address: str) -> tuple[str, str]:
    bucket, _, prefix = address.removeprefix("s3://").partition("/")
    return bucket, prefix.strip("/")


def upload_report(address: str, submission: int, report: JobReport, log: Log) -> None:
    """Upload a report to the bucket of this address, if one is set."""
    if not address:
        return
    bucket, prefix = _bucket_and_prefix(address)
    body = json.dumps(report, indent=1, default=str).encode()
    fields = {"Bucket": bucket, "Key": os.path.join(prefix, f"submission_{submission}.json"), "Body": body}
    try:
        call_in_thread(
            lambda: _aws_client("s3").put_object(**fields, ContentType="application/json"), with_deadline(_AWS_SECONDS)
        )
    except Exception as error:  # noqa: BLE001 - the result is reported; this copy of it is optional
        log("copy not kept", submission=submission, where=address, why=str(error)[:300])


def fetch_annotations(address: str, folder: str, names: list[str], owner: str, watch: Watch) -> str:
    """Return the folder of annotations; a bucket's are fetched if they have changed."""
    if not address.startswith("s3://"):
        return os.path.abspath(address)
    try:
        return call_in_thread(lambda: _fetch(address, folder, names, owner), watch)
    except StoppedError:
        raise
    except Exception as error:  # noqa: BLE001 - botocore's errors have no family; all of them say what is wrong
        raise StartError(f"ANNOTATIONS {address}: {error}") from None


def _fetch(address: str, folder: str, names: list[str], owner: str) -> str:
    bucket, prefix = _bucket_and_prefix(address)
    s3 = _aws_client("s3")
    target = os.path.join(folder, FETCHED)
    os.makedirs(target, mode=0o700, exist_ok=True)
    for name in names:
        key = os.path.join(prefix, name)
        tag_path, path = Path(target, f"{name}.etag"), os.path.join(target, name)
        tag = s3.head_object(Bucket=bucket, Key=key)["ETag"]
        if os.path.exists(path) and tag_path.exists() and tag_path.read_text(encoding="utf-8") == tag:
            continue
        partial_path = f"{path}-{owner}.partial"
        s3.download_file(bucket, key, partial_path)
        os.replace(partial_path, path)
        tag_path.write_text(tag, encoding="utf-8")
    return target


# ── the record ──────────────────────────────────────────────────────────────


@dataclass
class WorkerServices:
    """The services of a worker."""

    settings: WorkerSettings
    journal: Journal
    jobs: Jobs
    queue: WorkQueue
    log: Log
    #: Alerts the operator.
    alert: Callable[[str], None]
    #: Returns the server's time.
    server_time: Callable[[], float]
    stop: Stop
    #: Whether the worker stops when no submission is waiting.
    once: bool = False
