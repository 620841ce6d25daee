"""Ctrl-C, SIGTERM and SIGHUP end a command: what it began is undone, and one line says so."""

from __future__ import annotations

import atexit
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

STOPPED = "segjudge: stopped"
#: So long a command may take to undo what it began; meanwhile further signals change nothing, later ones end it.
PATIENCE = 5.0
_NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
#: Seconds until Interrupted is raised again, where it was raised in vain.
_AGAIN = 0.01


class Interrupted(KeyboardInterrupt):
    """Raised where the command stands when a signal arrives."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class _State:
    """What a signal does is looked up when it comes, so that no moment lies between two handlers."""

    process = os.getpid()
    #: Has the command begun what must be undone?
    begun = False
    #: The first signal, and when it came.
    number = 0
    first = 0.0


def leave_at_once() -> None:
    """While nothing is begun there is nothing to undo: for the time of importing, and of ending."""
    _State.begun = False
    atexit.unregister(_ignore)
    atexit.register(_ignore)
    sys.unraisablehook = _swallowed
    for number in _caught():
        signal.signal(number, _handle)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _NUMBERS)  # `set_up` holds them back while Python starts


@contextmanager
def interruptible() -> Iterator[None]:
    """Within, a signal raises Interrupted, once; forked children just end."""
    leave_at_once()
    _State.begun = True
    try:
        yield
    except Exception:
        if _State.number:  # it failed because it was interrupted, as a zip does that has a member half written
            raise Interrupted(_State.number) from None
        raise
    finally:
        leave_at_once()


def _handle(number: int, _frame: FrameType | None) -> None:
    if os.getpid() != _State.process or (_State.number and time.monotonic() > _State.first + PATIENCE):
        os._exit(128 + number)
    if _State.number:
        return
    _State.first, _State.number = time.monotonic(), number
    if _State.begun:
        raise Interrupted(number)
    os.write(2, STOPPED.encode() + b"\n")
    os._exit(end_by(number))


def _swallowed(told: UnraisableHookArgs) -> None:
    """Python goes on after what is raised in a finalizer or around a fork: raise Interrupted once more, soon."""
    if not isinstance(told.exc_value, Interrupted):
        sys.__unraisablehook__(told)
    elif os.getpid() == _State.process:
        signal.signal(signal.SIGALRM, _again)
        signal.setitimer(signal.ITIMER_REAL, _AGAIN)


def _again(_number: int, _frame: FrameType | None) -> None:
    if os.getpid() == _State.process and _State.begun:
        raise Interrupted(_State.number)


def _ignore() -> None:
    """The last that is done before Python takes its handlers away, when a signal would end it without an exit code."""
    for number in _caught():
        signal.signal(number, signal.SIG_IGN)


def end_by(number: int) -> int:
    """The exit code after Ctrl-C; other signals end the process, as whoever sent them expects."""
    if number != signal.SIGINT:
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    return 128 + number


def _caught() -> list[signal.Signals]:
    """Those that nobody asked to be ignored, as nohup does."""
    return [number for number in _NUMBERS if signal.getsignal(number) is not signal.SIG_IGN]
