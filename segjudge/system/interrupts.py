"""Interrupts: Ctrl-C, SIGTERM and SIGHUP end a command, undo its work, and print one line."""

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
#: The seconds in which a command may undo its work; signals are ignored meanwhile, and end it later.
_PATIENCE = 5.0
_NUMBERS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
#: Seconds until Interrupted is raised again, if Python has swallowed it.
_RAISE_AGAIN = 0.01


class Interrupted(KeyboardInterrupt):
    """Raised in the command when a signal arrives."""

    def __init__(self, number: int) -> None:
        self.number = number


class _State:
    """The state of the signal handler, so that handlers never change."""

    process = os.getpid()
    #: Whether the command has begun work that must be undone.
    has_begun = False
    #: The first signal, and its time.
    number = 0
    came_at = 0.0


def leave_at_once() -> None:
    """Restore signals that end the process at once, during imports and at the end."""
    _State.has_begun = False
    atexit.unregister(_ignore)
    atexit.register(_ignore)
    sys.unraisablehook = _on_swallowed
    for number in _list_signals():
        signal.signal(number, _handle_signal)
    if hasattr(signal, "pthread_sigmask"):  # `set_up` delays them while Python starts
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _NUMBERS)


@contextmanager
def interruptible() -> Iterator[None]:
    """Raise Interrupted once if a signal arrives in the block; forked children just end."""
    leave_at_once()
    _State.has_begun = True
    try:
        yield
    except Exception:
        if _State.number:  # it failed because it was interrupted, as a zip with an incomplete member does
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
    os._exit(end_by_signal(number))


def _on_swallowed(unraisable: UnraisableHookArgs) -> None:
    """Report an exception that Python ignores in finalizers and around forks, and re-raise a lost Interrupted soon."""
    if not isinstance(unraisable.exc_value, Interrupted):
        if not _State.number:  # after a signal it is the finalizer of an object that was interrupted while it was made
            sys.__unraisablehook__(unraisable)
    elif not hasattr(signal, "setitimer"):  # on Windows the next signal ends the command
        _State.number = 0
    elif os.getpid() == _State.process:
        signal.signal(signal.SIGALRM, _raise_again)
        signal.setitimer(signal.ITIMER_REAL, _RAISE_AGAIN)


def _raise_again(_number: int, _frame: FrameType | None) -> None:
    if os.getpid() == _State.process and _State.has_begun:
        raise Interrupted(_State.number)


def _ignore() -> None:
    """Ignore signals at exit, when Python's handlers are gone and signals would lose the exit code."""
    alarms = [signal.SIGALRM] if hasattr(signal, "SIGALRM") else []
    for number in (*_list_signals(), *alarms):  # an alarm of `_on_swallowed` may still be to come
        signal.signal(number, signal.SIG_IGN)


def end_by_signal(number: int) -> int:
    """End the process by a signal, as its sender expects; for Ctrl-C return the exit code instead."""
    if number != signal.SIGINT:
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    return 128 + number


def _list_signals() -> list[signal.Signals]:
    """Return the signals that are not ignored, as SIGHUP is under nohup."""
    return [number for number in _NUMBERS if signal.getsignal(number) is not signal.SIG_IGN]
