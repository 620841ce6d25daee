"""Score in a forked child with limits, so that the worker survives whatever it is sent.

EvalAI calls `evaluate()` inside its own long-lived process.  A child that is
killed, hangs, exits or runs out of memory becomes a sentence; fork and answer
cost about 20 ms.
"""

from __future__ import annotations

import json
import os
import select
import signal
import struct
import sys
import time
import traceback
import warnings
from typing import Any, Callable, Iterator, List, NoReturn, Tuple

from .errors import HostError, SubmissionError

Say = Callable[[str], None]
Job = Callable[[Say], Any]

#: The child ends itself this long after its time, should the parent be gone.
ORPHAN_SECONDS = 5

_HEADER = struct.Struct(">I")
_told: List[str] = []


class Crash(Exception):
    """A defect of ours in the child; the text is its traceback, for the operator."""


def guarded(job: Job, *, memory: int, seconds: float, say: Say) -> Any:
    """Run a job in a child; what it returns, or SubmissionError, or Crash.

    What the job returns must be fit for JSON.
    """
    try:
        child, reader, writer = _fork()
    except (AttributeError, OSError) as error:
        if not _told:
            _told.append(str(error))
            say(f"Scoring runs without limits here: no process can be forked ({error}).")
        return job(say)
    if child == 0:
        os.close(reader)  # else a child would not notice that its worker is gone
        _work(job, writer, memory, seconds)
    os.close(writer)
    try:
        return _outcome(_messages(reader, time.monotonic() + seconds), say, child, memory, seconds)
    finally:
        os.close(reader)
        _end(child)


def _fork() -> Tuple[int, int, int]:
    """The child's number (0 in the child), and both ends of a pipe from it."""
    reader, writer = os.pipe()
    try:
        with warnings.catch_warnings():  # numpy's idle threads; none of them holds a lock here
            warnings.simplefilter("ignore", DeprecationWarning)
            return os.fork(), reader, writer
    except BaseException:
        os.close(reader)
        os.close(writer)
        raise


def _work(job: Job, writer: int, memory: int, seconds: float) -> NoReturn:
    """The child's whole life."""
    try:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGALRM):
            signal.signal(number, signal.SIG_DFL)
        signal.alarm(int(seconds) + ORPHAN_SECONDS)
        _limit_memory(memory)
        try:
            _send(writer, *_answer(job, lambda text: _send(writer, "say", text)))
        except (TypeError, ValueError):  # an answer that is no JSON is a defect of ours
            _send(writer, "crash", traceback.format_exc())
    finally:
        os._exit(0)


def _answer(job: Job, say: Say) -> Tuple[str, Any]:
    sys.stdout = sys.stderr = _Relay(say)
    try:
        return "done", job(say)
    except SubmissionError as error:
        return "refused", str(error)
    except MemoryError:
        return "memory", None
    except HostError as error:
        return "crash", f"HostError: {error}"
    except SystemExit as error:
        return "exit", repr(error.code)
    except BaseException:  # noqa: BLE001 - whatever it is, the worker must hear of it
        return "crash", traceback.format_exc()


class _Relay:
    """The child's streams: what is printed is said by the parent."""

    def __init__(self, say: Say) -> None:
        self._say = say

    def write(self, text: str) -> int:
        if text.strip():
            self._say(text.rstrip("\n"))
        return len(text)

    def flush(self) -> None:
        """Nothing is held back."""


def _limit_memory(memory: int) -> None:
    """Bound what this process may add to the memory it was born with."""
    try:
        import resource

        with open("/proc/self/statm", encoding="ascii") as file:
            born_with = int(file.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (born_with + memory, born_with + memory))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    except (ImportError, OSError, ValueError):
        return  # not on this system; the wall clock still holds


def _send(writer: int, kind: str, value: Any) -> None:
    data = json.dumps([kind, value]).encode()
    data = _HEADER.pack(len(data)) + data
    while data:
        data = data[os.write(writer, data) :]


def _messages(reader: int, deadline: float) -> Iterator[Tuple[str, Any]]:
    """What the child says, until it ends; "late" when its time is over."""
    data = b""
    waiting = select.poll()  # select itself ends at 1024 open files
    waiting.register(reader, select.POLLIN)
    while True:
        if not waiting.poll(1000 * max(0.0, deadline - time.monotonic())):
            yield "late", None
            return
        part = os.read(reader, 1 << 20)
        if not part:
            return
        data += part
        while len(data) >= _HEADER.size:
            end = _HEADER.size + _HEADER.unpack_from(data)[0]
            if len(data) < end:
                break
            kind, value = json.loads(data[_HEADER.size : end])
            yield kind, value
            data = data[end:]


def _outcome(messages: Iterator[Tuple[str, Any]], say: Say, child: int, memory: int, seconds: float) -> Any:
    for kind, value in messages:
        if kind == "say":
            say(value)
        elif kind == "done":
            return value
        elif kind == "refused":
            raise SubmissionError(value)
        elif kind == "memory":
            raise SubmissionError(_sentence(f"it needs more than {memory >> 20} MB of memory"))
        elif kind == "late":
            raise SubmissionError(_sentence(f"it takes longer than {seconds:g} seconds"))
        elif kind == "exit":
            raise SubmissionError(_sentence(f"the scoring process ended itself with {value}"))
        else:
            raise Crash(value)
    status = _end(child)
    if os.WIFSIGNALED(status):
        name = signal.Signals(os.WTERMSIG(status)).name
        why = ", as happens when memory runs out" if name == "SIGKILL" else ""
        raise SubmissionError(_sentence(f"the scoring process was ended by {name}{why}"))
    raise SubmissionError(_sentence(f"the scoring process ended without an answer (exit {os.WEXITSTATUS(status)})"))


def _sentence(cause: str) -> str:
    return f"Your submission could not be scored: {cause}. Check it with a local run, then tell the organisers."


def _end(child: int) -> int:
    """Kill the child if it lives, and bury it."""
    try:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            return status
        # It may be on its way out: what it said last counts, not how we hurry it.
        for _ in range(20):
            time.sleep(0.005)
            found, status = os.waitpid(child, os.WNOHANG)
            if found:
                return status
        os.kill(child, signal.SIGKILL)
        return os.waitpid(child, 0)[1]
    except (ChildProcessError, ProcessLookupError):
        return 0
