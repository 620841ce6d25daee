"""Scoring in a forked child with limits, so that the worker survives any submission.

EvalAI calls `evaluate()` in its own long-lived process. If the child is killed, hangs, exits or runs out of memory, one
sentence says so. A supervisor (`supervisor.py`) stands between worker and child: it ends all processes that the child
started, and ends everything with the worker.

The child sends log lines and one answer. A message is one letter, a 2-byte length and text of at most `PIPE_BUF` bytes,
written at once; the system never mixes such messages, so threads and forks of the job may write too.
"""

from __future__ import annotations

import json
import os
import re
import select
import signal
import socket
import sys
import threading
import time
import traceback
import warnings
from contextlib import suppress
from typing import Any, Callable, Iterator, List, NoReturn, Optional, Tuple

from ..files.problems import HostError, SubmissionError, escape
from . import supervisor

#: The maximum number of characters of a job's output, as in the participant's log.
_LOG_CHARACTERS = 1 << 20
#: Kinds of messages: a part of a line and its last part, a part of the answer and its last part.
_LINE_PART, _LINE_END, _ANSWER_PART, _ANSWER_END = b"s", b"S", b"a", b"A"
_LONGEST = getattr(select, "PIPE_BUF", 512)
_HEADER = 3
#: Characters that move a cursor, hide text or cannot be encoded.
_UNPRINTABLE = re.compile(r"[\0-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufff9-\ufffb]")


class _MessageSender:
    """A sender of messages to the parent, from any thread and any forked process."""

    def __init__(self, writer: int) -> None:
        self._writer, self._process = writer, os.getpid()
        self._lock = threading.RLock()

    def say(self, text: str) -> None:
        """Send a line in parts, each written atomically."""
        size = (_LONGEST - _HEADER) // 4  # characters, each at most this many bytes
        text = text[: _LOG_CHARACTERS + 1]
        with self._lock:
            for start in range(0, len(text), size):
                kind = _LINE_END if start + size >= len(text) else _LINE_PART
                self._write(kind, text[start : start + size].encode("utf-8", "surrogatepass"))

    def answer(self, data: bytes) -> None:
        """Send the answer, unless this process is a fork of the answering one."""
        size = _LONGEST - _HEADER
        for start in range(0, len(data) if os.getpid() == self._process else 0, size):
            self._write(_ANSWER_END if start + size >= len(data) else _ANSWER_PART, data[start : start + size])

    def _write(self, kind: bytes, data: bytes) -> None:
        os.write(self._writer, kind + len(data).to_bytes(2, "big") + data)


class _OutputRelay:
    """The child's output streams, which send each printed line to the parent."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say, self._room = say, _LOG_CHARACTERS + 1
        self._line: List[str] = []
        self._lock = threading.RLock()

    def write(self, text: str) -> int:
        with self._lock:
            shown_text = text[: self._room]
            self._room -= len(shown_text)
            line_end, *lines = shown_text.split("\n")
            self._line.append(line_end)
            for line in lines:
                self.finish()
                self._line = [line]
        return len(text)

    def flush(self) -> None:
        """Do nothing: a line is sent when it is complete."""

    def finish(self) -> None:
        """Send the unfinished line."""
        with self._lock:
            line, self._line = "".join(self._line), []
            self._say(line)


class _MessageReader:
    """A reader that passes on the child's lines up to the limit of a log."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say, self._room = say, _LOG_CHARACTERS
        self._line: List[str] = []

    def receive(self, kind: bytes, data: bytes) -> None:
        """Add a part of a line; write the line when this is its last part."""
        if self._room < 0:
            return
        text = data.decode("utf-8", "surrogatepass")
        self._room -= len(text) + (kind == _LINE_END)
        self._line.append(text)
        if self._room < 0:
            self._line = [f"... output beyond {_LOG_CHARACTERS:,} characters is omitted ..."]
        if kind == _LINE_END or self._room < 0:
            line, self._line = "".join(self._line), []
            self._say(_escape_controls(line.replace("\r\n", "\n").replace("\r", "\n")))


def _escape_controls(text: str) -> str:
    """Return text with escapes for characters that move a cursor or cannot be encoded."""
    return _UNPRINTABLE.sub(lambda match: escape(match[0]), text)


def _take_messages(data: bytearray) -> Iterator[Tuple[bytes, bytes]]:
    """Yield the complete messages, and remove them from the data."""
    start = 0
    while len(data) - start >= _HEADER:
        end = start + _HEADER + int.from_bytes(data[start + 1 : start + _HEADER], "big")
        if len(data) < end:
            break
        yield bytes(data[start : start + 1]), bytes(data[start + _HEADER : end])
        start = end
    del data[:start]


Say = Callable[[str], None]
_Job = Callable[[Say], object]

#: The maximum size of an answer, in bytes of JSON.
_ANSWER_BYTES = 64 << 20
#: The seconds in which a job usually ends after its answer.
_GRACE = 0.1
#: The reason why no process could be forked, once the participant has seen it.
_reported: List[str] = []


class CrashError(Exception):
    """Raised for a defect of Segjudge in the child; the text is its traceback, for operators."""


class UnfinishedError(SubmissionError):
    """Raised for a job that ended without an answer: by a limit, a signal or its own exit."""

    def __init__(self, cause: str) -> None:
        super().__init__(
            f"Your submission could not be scored: {cause}. Check it with a local run, then tell the organisers."
        )
        #: The cause of its end: "it takes longer than 60 seconds".
        self.cause = cause


def run_guarded(job: _Job, *, memory: int, seconds: float, say: Say) -> Any:
    """Run a job in a child and return its result, which must fit into JSON.

    Raises SubmissionError, as UnfinishedError for a child without an answer, and CrashError for a defect of ours.
    """
    try:
        child = _Child(lambda writer: _run_and_exit(job, writer, memory))
    except (AttributeError, OSError) as error:
        if not _reported:
            _reported.append(str(error) if hasattr(os, "fork") else "this system has no fork")
            say(f"Memory and time are not limited: this system cannot fork a process ({_reported[0]}).")
        return job(say)
    try:
        return _outcome(child, _MessageReader(say), memory, seconds)
    finally:
        child.end()


class _Child:
    """A job in a forked child with a supervisor; raises OSError if forking fails."""

    def __init__(self, work: Callable[[int], object]) -> None:
        self.reader, writer = os.pipe()
        self._leash, supervisor_end = socket.socketpair()
        parent, self._supervisor = os.getpid(), -1
        try:
            with warnings.catch_warnings():  # numpy's idle threads; none of them holds a lock here
                warnings.simplefilter("ignore", DeprecationWarning)
                self._supervisor = os.fork()
            if self._supervisor == 0:
                supervisor.keep_forked(lambda: work(writer), supervisor_end.fileno(), parent)
        finally:
            os.close(writer)
            supervisor_end.close()
            if self._supervisor < 0:
                self._close()
        _, _, error = self._line().partition(" ")
        if error not in ("", "0"):  # without a line, its supervisor died after the job began
            self.end()
            raise OSError(int(error), os.strerror(int(error)))

    def fileno(self) -> int:
        """Return the descriptor that becomes readable when the job and all its processes have ended."""
        return self._leash.fileno()

    def status(self) -> Optional[supervisor.Status]:
        """Wait for the job and return its status; None if the supervisor was ended first."""
        line = self._line()
        return int(line) if line else None

    def end(self) -> None:
        """End the job and all its processes."""
        if not self._is_over(_GRACE):
            with suppress(OSError):
                self._leash.shutdown(socket.SHUT_WR)
            if not self._is_over(supervisor.GIVE_UP_SECONDS):
                os.kill(self._supervisor, signal.SIGKILL)
        self._close()
        with suppress(ChildProcessError):
            os.waitpid(self._supervisor, 0)

    def _is_over(self, seconds: float) -> bool:
        waiting = select.poll()
        waiting.register(self.fileno(), select.POLLIN)
        return bool(waiting.poll(1000 * seconds))

    def _line(self) -> str:
        text = b""
        with suppress(OSError):
            while not text.endswith(b"\n"):
                byte = self._leash.recv(1)
                if not byte:
                    return ""
                text += byte
        return text.decode().strip()

    def _close(self) -> None:
        self._leash.close()
        os.close(self.reader)


# ── in the child ────────────────────────────────────────────────────────────


def _run_and_exit(job: _Job, writer: int, memory: int) -> NoReturn:
    """Run the job in the child, answer and exit."""
    try:
        _limit_memory(memory)
        sender = _MessageSender(writer)
        sender.answer(_answer(job, sender))
    finally:
        os._exit(0)


def _answer(job: _Job, sender: _MessageSender) -> bytes:
    """Return how the job ended, as JSON."""
    streams = sys.stdout, sys.stderr = _OutputRelay(sender.say), _OutputRelay(_log)
    try:
        ending = _run_job(job, sender.say)
        for stream in streams:
            stream.finish()
        answer = json.dumps(ending).encode()
    except MemoryError:
        return b'["memory", null]'
    except (TypeError, ValueError, RecursionError):  # an answer that is not JSON is our defect
        return json.dumps(["crash", traceback.format_exc()]).encode()
    if len(answer) > _ANSWER_BYTES:
        return json.dumps(
            ["crash", f"the answer has {len(answer) >> 20} MB; the limit is {_ANSWER_BYTES >> 20}"]
        ).encode()
    return answer


def _log(line: str) -> None:
    """Write a line to the worker's own log, such as warnings of libraries."""
    with suppress(OSError):
        os.write(2, f"{_escape_controls(line)}\n".encode("utf-8", "replace") if line else b"")


def _run_job(job: _Job, say: Say) -> Tuple[str, object]:
    """Run the job; return its ending, and its result or message."""
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


def _limit_memory(memory: int) -> None:
    """Limit the memory that this process may add."""
    try:
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        with open("/proc/self/statm", encoding="ascii") as file:
            bound = int(file.read().split()[0]) * resource.getpagesize() + memory
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        bound = bound if hard == resource.RLIM_INFINITY else min(bound, hard)
        resource.setrlimit(resource.RLIMIT_AS, (bound, bound))
    except (ImportError, OSError, ValueError):
        return  # not on this system; the wall clock still limits it


# ── in the parent ───────────────────────────────────────────────────────────


def _read_messages(child: _Child, deadline: float) -> Iterator[Tuple[bytes, bytes]]:
    """Yield the child's messages until it ends; raises TimeoutError at the time limit."""
    data = bytearray()
    waiting = select.poll()  # select itself ends at 1024 open files
    for source in (child.reader, child.fileno()):
        waiting.register(source, select.POLLIN)
    while True:
        ready = [source for source, _ in waiting.poll(1000 * max(0.0, deadline - time.monotonic()))]
        if child.reader in ready:
            chunk = os.read(child.reader, 1 << 20)
            if not chunk:  # it closed its end; the supervisor knows whether it still runs
                waiting.unregister(child.reader)
            data += chunk
            yield from _take_messages(data)
        elif ready:
            return
        if time.monotonic() > deadline:  # checked last: output that was written in time counts
            raise TimeoutError


def _outcome(child: _Child, reader: _MessageReader, memory: int, seconds: float) -> Any:
    parts: List[bytes] = []
    size = 0
    try:
        for kind, data in _read_messages(child, time.monotonic() + seconds):
            if kind in (_LINE_PART, _LINE_END):
                reader.receive(kind, data)
                continue
            parts.append(data)
            size += len(data)
            if kind not in (_ANSWER_PART, _ANSWER_END) or size > _ANSWER_BYTES:
                raise CrashError("the scoring process sent something other than messages")
            if kind == _ANSWER_END:
                return _result_of(b"".join(parts), memory)
    except TimeoutError:
        raise UnfinishedError(f"it takes longer than {seconds:g} seconds") from None
    except UnicodeDecodeError:
        raise CrashError("the scoring process sent something other than text") from None
    raise _explain_death(child.status())


def _result_of(answer: bytes, memory: int) -> Any:
    """Return the job's result, or raise its error."""
    try:
        kind, value = json.loads(answer)
    except (ValueError, TypeError, RecursionError):
        raise CrashError("the scoring process did not answer in JSON") from None
    if kind == "done":
        return value
    if kind == "refused":
        raise SubmissionError(_escape_controls(str(value)))
    if kind == "memory":
        raise UnfinishedError(f"it needs more than {memory >> 20} MB of memory")
    if kind == "exit":
        raise UnfinishedError(f"the scoring process ended itself with {_escape_controls(str(value))}")
    raise CrashError(str(value))


def _explain_death(status: Optional[supervisor.Status]) -> Exception:
    """Return the error for a child that ended without an answer."""
    if status is None:
        return CrashError("the supervisor of the scoring process was killed")
    if os.WIFSIGNALED(status):
        names = {number.value: number.name for number in signal.Signals}
        name = names.get(os.WTERMSIG(status), f"signal {os.WTERMSIG(status)}")
        reason = ", as happens if memory runs out" if name == "SIGKILL" else ""
        return UnfinishedError(f"the scoring process was killed by {name}{reason}")
    code = os.WEXITSTATUS(status)
    return UnfinishedError(f"the scoring process ended without an answer (exit {code})")
