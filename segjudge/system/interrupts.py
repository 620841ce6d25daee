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
#: Seconds in which a command may undo what it began; further signals change nothing meanwhile, and end it later.
_PATIENCE = 5.0
_NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
#: Seconds until Interrupted is raised again, if Python has swallowed it.
_RAISE_AGAIN = 0.01


class Interrupted(KeyboardInterrupt):
    """Raised in the command when a signal arrives."""

    def __init__(self, number: int) -> None:
        self.number = number


class _State:
    """The state that the signal handler reads, so that handlers never have to be replaced."""

    process = os.getpid()
    #: Whether the command has begun what must be undone.
    has_begun = False
    #: The first signal, and when it came.
    number = 0
    came_at = 0.0


def leave_at_once() -> None:
    """Have a signal end the process at once: for the time of importing and of ending, when there is nothing to undo."""
    _State.has_begun = False
    atexit.unregister(_ignore)
    atexit.register(_ignore)
    sys.unraisablehook = _on_swallowed
    for number in _list_signals():
        signal.signal(number, _handle_signal)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _NUMBERS)  # `set_up` holds them back while Python starts


@contextmanager
def interruptible() -> Iterator[None]:
    """Have a signal raise Interrupted in the block, once; forked children just end."""
    leave_at_once()
    _State.has_begun = True
    try:
        yield
    except Exception:
        if _State.number:  # it failed because it was interrupted, as a zip does that has a member half written
            raise Interrupted(_State.number) from None
        raise
    finally:
        leave_at_once()


def _handle_signal(number: int, _frame: FrameType | None) -> None:
    if os.getpid() != _State.process or (_State.number and time.monotonic() > _State.came_at + _PATIENCE):
        os._exit(128 + number)
    if _State.number:
        return
    _State.came_at, _State.number = time.monotonic(), number
    if _State.has_begun:
        raise Interrupted(number)
    os.write(2, STOPPED.encode() + b"\n")
    os._exit(end_by(number))


def _on_swallowed(unraisable: UnraisableHookArgs) -> None:
    """Raise Interrupted again soon: Python goes on after what is raised in a finalizer or around a fork."""
    if not isinstance(unraisable.exc_value, Interrupted):
        sys.__unraisablehook__(unraisable)
    elif os.getpid() == _State.process:
        signal.signal(signal.SIGALRM, _raise_again)
        signal.setitimer(signal.ITIMER_REAL, _RAISE_AGAIN)


def _raise_again(_number: int, _frame: FrameType | None) -> None:
    if os.getpid() == _State.process and _State.has_begun:
        raise Interrupted(_State.number)


def _ignore() -> None:
    """Ignore signals at the very end: once Python has removed its handlers, one would end it without an exit code."""
    for number in (*_list_signals(), signal.SIGALRM):  # an alarm of `_on_swallowed` may still be to come
        signal.signal(number, signal.SIG_IGN)


def end_by(number: int) -> int:
    """The exit code after Ctrl-C; the process ends by any other signal, as its sender expects."""
    if number != signal.SIGINT:
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    return 128 + number


def _list_signals() -> list[signal.Signals]:
    """Those that are not ignored, as nohup has a hangup ignored."""
    return [number for number in _NUMBERS if signal.getsignal(number) is not signal.SIG_IGN]
