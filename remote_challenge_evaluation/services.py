"""The services that the parts of a worker share, the request to stop among them."""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from segjudge.platforms.evalai.client import ApiError, Jobs, StoppedError

from .journal import Journal
from .monitoring import Log
from .queues import WorkQueue
from .settings import WorkerSettings

#: Signals that ask for the end, unless they are ignored, as a hangup is under nohup.
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class Stop:
    """A request to stop, and its urgency; unlike an Event it may be set by a signal handler during a wait."""

    def __init__(self, grace: float) -> None:
        self._grace, self._requests = grace, 0
        self._deadline = 0.0
        #: When it was last looked whether to stop: what a process that is alive does again and again.
        self.last_look = time.monotonic()
        self._read, self._write = os.pipe()
        os.set_blocking(self._write, False)

    def listen(self) -> None:
        """Have signals ask for the end; a second one allows no more time."""
        for number in SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, lambda *_: self.ask())

    def ask(self) -> None:
        """Ask for the end."""
        self._requests += 1
        if self._requests == 1:
            self._deadline = time.monotonic() + self._grace
        with suppress(OSError):
            os.write(self._write, b".")

    def is_set(self) -> bool:
        """Return whether nothing is to be begun any more."""
        self.last_look = time.monotonic()
        return self._requests > 0

    def is_over(self) -> bool:
        """Return whether what is in hand has to be left."""
        self.last_look = time.monotonic()
        return self._requests > 1 or (self._requests == 1 and time.monotonic() >= self._deadline)

    def wait(self, seconds: float) -> bool:
        """Wait so long, or until the end is asked for; return whether it is."""
        if not self._requests:
            select.select([self._read], [], [], seconds)
        return self.is_set()

    def wait_over(self, seconds: float) -> bool:
        """Wait so long, or until what is in hand has to be left; return whether it has."""
        deadline = time.monotonic() + seconds
        while not self.is_over() and time.monotonic() < deadline:
            time.sleep(0.1)
        return self.is_over()

    def check(self) -> None:
        """Raise StoppedError once the end is asked for: during what is easily begun again."""
        if self.is_set():
            raise StoppedError("asked to stop")

    def check_over(self) -> None:
        """Raise StoppedError once what is in hand has to be left."""
        if self.is_over():
            raise StoppedError("asked to stop")


class JobBlockedError(Exception):
    """Raised when a job cannot go on now, for reasons outside its team and this machine."""


class TokenRefusedError(Exception):
    """Raised when the server no longer accepts the token: only a person can change that."""


@dataclass
class WorkerServices:
    """The services of a worker."""

    settings: WorkerSettings
    journal: Journal
    jobs: Jobs
    queue: WorkQueue
    log: Log
    #: Tells the operator.
    alert: Callable[[str], None]
    #: Returns the server's time.
    now: Callable[[], float]
    stop: Stop
    #: Whether the worker ends when no submission waits any more.
    once: bool = False


def is_token_refusal(error: ApiError) -> bool:
    """Return whether EvalAI itself refuses the token, and not a proxy between us and it."""
    return error.denied and isinstance(error.body, dict) and bool(error.body.keys() & {"detail", "error"})


def is_token_accepted(jobs: Jobs) -> bool:
    """Ask the server whether it still accepts our token, after it refused something."""
    try:
        jobs.challenge()
    except ApiError as error:
        return not is_token_refusal(error)
    return True
