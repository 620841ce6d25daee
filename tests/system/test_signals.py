"""The effects of signals on a command, with a process and a clock in memory; `test_interrupts.py` sends real ones."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from segjudge.system import interrupts
from segjudge.system.interrupts import Interrupted, _handle_signal, _on_swallowed, _raise_again

INT, TERM = signal.SIGINT, signal.SIGTERM
BEGIN = ["unregisters _ignore", "registers _ignore", "SIGINT by _handle_signal", "SIGTERM by _handle_signal", "unblocks [2, 15, 1]"]  # fmt: skip


class Ended(BaseException):
    """Raised where the process would end."""


class Process:
    """What a process does, whose SIGHUP is ignored as under nohup."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.done: list[str] = []
        self.now = 100.0
        note = self.done.append
        state = {"process": os.getpid(), "has_begun": False, "number": 0, "came_at": 0.0}
        handlers: dict[int, Any] = dict.fromkeys((*interrupts._NUMBERS, signal.SIGALRM), signal.SIG_DFL)
        handlers[signal.SIGHUP] = signal.SIG_IGN

        def end(code: int) -> None:
            raise Ended(code)

        def set_handler(number: int, handler: Any) -> None:
            note(f"{signal.Signals(number).name} by {getattr(handler, '__name__', str(handler))}")

        for owner, name, value in (
            (interrupts, "_State", type("_State", (), state)), (os, "_exit", end), (os, "write", lambda *written: note(str(written))),
            (os, "kill", lambda _pid, number: note(f"kills by {number}")), (interrupts.time, "monotonic", lambda: self.now),
            (signal, "signal", set_handler), (signal, "getsignal", handlers.get), (signal, "setitimer", lambda _kind, wait: note(f"waits {wait}")),
            (signal, "pthread_sigmask", lambda how, mask: note(f"{'un' if how == signal.SIG_UNBLOCK else ''}blocks {[*map(int, mask)]}")),
            (interrupts.atexit, "register", lambda action: note(f"registers {action.__name__}")),
            (interrupts.atexit, "unregister", lambda action: note(f"unregisters {action.__name__}")),
            (sys, "unraisablehook", None), (sys, "__unraisablehook__", lambda _error: note("shows the error")),
        ):  # fmt: skip
            monkeypatch.setattr(owner, name, value)

    def after(self, action: Callable[..., Any], *arguments: object) -> list[str]:
        """Return the effects of a call, its error as the last one."""
        self.done.clear()
        try:
            action(*arguments)
        except (Ended, Interrupted, ValueError) as error:
            self.done.append(f"{type(error).__name__} {error}")
        return [*self.done]


@pytest.fixture
def process(monkeypatch: pytest.MonkeyPatch) -> Process:
    return Process(monkeypatch)


def swallow(error: BaseException) -> None:
    unraisable: Any = SimpleNamespace(exc_value=error)
    _on_swallowed(unraisable)


def run_block(error: Exception | None = None) -> None:
    with interrupts.interruptible():
        assert interrupts._State.has_begun
        if error is not None:
            raise error


def test_a_signal_ends_the_process_at_once_while_nothing_is_begun(process: Process) -> None:
    assert process.after(interrupts.leave_at_once) == BEGIN
    assert sys.unraisablehook is _on_swallowed
    assert process.after(_handle_signal, INT, None) == ["(2, b'segjudge: stopped\\n')", "Ended 130"]
    interrupts._State.number = 0
    stopped = ["(2, b'segjudge: stopped\\n')", "SIGTERM by 0", "kills by 15", "Ended 143"]
    assert process.after(_handle_signal, TERM, None) == stopped
    assert process.after(interrupts._ignore) == ["SIGINT by 1", "SIGTERM by 1", "SIGALRM by 1"]


def test_the_first_signal_interrupts_and_a_second_one_ends_it_after_five_seconds(process: Process) -> None:
    interrupts._State.has_begun = True
    assert process.after(_handle_signal, TERM, None) == ["Interrupted 15"]
    assert (interrupts._State.number, interrupts._State.came_at) == (15, 100.0)
    for seconds, effects in ((0.0, []), (5.0, []), (0.1, ["Ended 130"])):
        process.now += seconds
        assert process.after(_handle_signal, INT, None) == effects


def test_a_swallowed_interrupt_is_raised_again(process: Process) -> None:
    interrupts._State.has_begun, interrupts._State.number = True, 15
    assert process.after(swallow, Interrupted(15)) == ["SIGALRM by _raise_again", "waits 0.01"]
    assert process.after(swallow, ValueError("x")) == []
    assert process.after(_raise_again, 14, None) == ["Interrupted 15"]


def test_a_block_that_fails_after_a_signal_is_interrupted(process: Process) -> None:
    assert process.after(run_block) == BEGIN * 2
    assert process.after(run_block, ValueError("x")) == [*BEGIN * 2, "ValueError x"]
    interrupts._State.number = 15
    assert process.after(run_block, ValueError("x")) == [*BEGIN * 2, "Interrupted 15"]
    assert not interrupts._State.has_begun
    assert process.after(_raise_again, 14, None) == []


def test_forked_children_just_end(process: Process) -> None:
    interrupts._State.process, interrupts._State.has_begun = -1, True
    assert process.after(_handle_signal, INT, None) == ["Ended 130"]
    assert process.after(swallow, Interrupted(15)) == []
    assert process.after(_raise_again, 14, None) == []


def test_errors_that_python_swallows_are_shown_unless_a_signal_came(process: Process) -> None:
    assert process.after(swallow, ValueError("x")) == ["shows the error"]
