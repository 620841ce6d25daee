"""The services that the parts of a worker share, and the errors that they raise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from segjudge.platforms.evalai.client import ApiError, Jobs

from .journal import Journal
from .operator_log import Log
from .queues import WorkQueue
from .settings import WorkerSettings
from .stopping import Stop


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
