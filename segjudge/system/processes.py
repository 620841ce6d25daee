"""Child processes: in a clean environment, watched, with bounded output, and ended with all descendants.

A small process (`evaluation_script/runner/supervisor.py`, run as a program) stands between this process and each
command. On Linux it adopts the command's orphans: double forks, separate sessions and stopped processes end with the
command, and all of them end if this process is killed. On other systems only the command's process group is ended.
"""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import IO, TypeAlias

from segjudge.system import IMPORT_ROOT

#: Not imported: the remote worker must stay slim, and the scorers' package is not.
_SUPERVISOR = os.path.join(IMPORT_ROOT, "segjudge", "evaluation_script", "runner", "supervisor.py")
#: Variables that every program needs; none contains a token, an address or a folder of ours.
_COMMON_VARIABLES = ("PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH")
#: The seconds after which a supervisor that was asked to stop is killed; it gives up by itself after 60.
_END_SECONDS = 65.0
#: Seconds within which a supervisor reports the command's start, on any machine.
_START_SECONDS = 60.0
#: Seconds between two calls of a watch.
_WATCH_PAUSE = 0.05

#: A descriptor, a file, `subprocess.PIPE`, or None for our own stream.
_Stream: TypeAlias = int | IO[bytes] | None


def clean_environment(*names: str, **values: str) -> dict[str, str]:
    """Return a new environment: common variables, the named ones, then the given values."""
    passed = {name: os.environ[name] for name in (*_COMMON_VARIABLES, *names) if name in os.environ}
    return {**passed, **values}


class ExitCode(int):
    """The exit code of a process, or the negative number of the signal that killed it."""

    @property
    def is_signal(self) -> bool:
        return self < 0

    @property
    def sentence(self) -> str:
        """Return the ending as a sentence without subject."""
        if not self.is_signal:
            return f"ended with exit code {int(self)}"
        names = {number.value: number.name for number in signal.Signals}
        return f"was killed by {names.get(-self, f'signal {-self}')}"


@dataclass(frozen=True)
class Streams:
    """The standard streams of a child process."""

    input: _Stream = subprocess.DEVNULL
    output: _Stream = None
    errors: _Stream = None
    #: Further descriptors that the child inherits under their own numbers.
    passed: tuple[int, ...] = ()


class Child:
    """A running command; ending it ends all of its processes. Raises OSError if the command cannot be started."""

    def __init__(
        self,
        command: Sequence[str],
        streams: Streams | None = None,
        *,
        environment: Mapping[str, str] | None = None,
        folder: str | None = None,
    ) -> None:
        streams = streams or Streams()
        # Bytes sent are signals for the command; closing the socket ends everything.
        self._control, supervisor_end = socket.socketpair()
        with supervisor_end:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", _SUPERVISOR, str(supervisor_end.fileno()), *command],
                stdin=streams.input,
                stdout=streams.output,
                stderr=streams.errors,
                env=None if environment is None else dict(environment),
                cwd=folder,
                pass_fds=(*streams.passed, supervisor_end.fileno()),
                start_new_session=True,
            )
        report = self._start_report()
        #: The command's process id, and the id of the process above all that it started.
        self.pid, self.above = report[0] if report else self._process.pid, self._process.pid
        error = report[1] if report else 0
        if error or not report:
            self.end()
            self.close_streams()
            reason = os.strerror(error) if error else "its supervisor ended"
            raise OSError(error, reason, command[0])

    def _start_report(self) -> list[int]:
        """Return the command's process id and the error number of its start; None without a report."""
        self._control.settimeout(_START_SECONDS)
        try:
            with self._control.makefile("rb") as file:
                return [int(number) for number in file.readline().split()]
        except TimeoutError:  # a command may stop its supervisor
            return []
        finally:
            self._control.settimeout(None)

    @property
    def input(self) -> IO[bytes]:
        return self._require_pipe(self._process.stdin)

    @property
    def output(self) -> IO[bytes]:
        return self._require_pipe(self._process.stdout)

    @property
    def errors(self) -> IO[bytes]:
        return self._require_pipe(self._process.stderr)

    @staticmethod
    def _require_pipe(stream: IO[bytes] | None) -> IO[bytes]:
        if stream is None:
            raise ValueError("the stream was not opened as a pipe")
        return stream

    def poll(self) -> ExitCode | None:
        return self.wait(0)

    def wait(self, seconds: float | None = None) -> ExitCode | None:
        """Wait for the command up to a time; return its exit code, or None if it still runs."""
        try:
            return ExitCode(self._process.wait(seconds))
        except subprocess.TimeoutExpired:
            return None

    def watch(self, check: Callable[[], object], seconds: float | None = None) -> ExitCode:
        """Wait for the command, calling `check` meanwhile, which raises to stop waiting.

        Raises TimeoutError after `seconds`.
        """
        deadline = None if seconds is None else time.monotonic() + seconds
        while (code := self.wait(_WATCH_PAUSE)) is None:
            check()
            if deadline is not None and time.monotonic() > deadline:
                raise TimeoutError
        return code

    def signal(self, number: int) -> None:
        """Send a signal to the command only, if it still runs."""
        with suppress(OSError):
            self._control.send(bytes([number]))

    def end(self) -> ExitCode:
        """Kill the command and all descendants, and return its exit code; idempotent."""
        with suppress(OSError):
            self._control.shutdown(socket.SHUT_RDWR)
        code = self.wait(_END_SECONDS)
        if code is None:  # stopped or stuck; the command ends with it, and its group here
            self._process.kill()
            code = ExitCode(self._process.wait())
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)
        self._control.close()
        return code

    def close_streams(self) -> None:
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            if stream is not None:
                with suppress(OSError):  # the output is no longer read
                    stream.close()


class Tail:
    """A reader thread that keeps the last (and optionally first) bytes of a stream.

    The writer is never blocked, and memory is bounded.
    """

    def __init__(self, stream: IO[bytes], size: int, *, beginning: bool = False) -> None:
        self._stream, self._size, self._first_size = stream, size, size if beginning else 0
        self._first_bytes, self._last_bytes, self._omitted = bytearray(), bytearray(), 0
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        with suppress(OSError, ValueError), self._stream:  # it may have been closed
            while block := os.read(self._stream.fileno(), 1 << 16):
                with self._lock:
                    self._append(block)

    def _append(self, block: bytes) -> None:
        room = self._first_size - len(self._first_bytes)
        self._first_bytes += block[:room]
        self._last_bytes += block[room:]
        surplus = len(self._last_bytes) - self._size
        if surplus > 0:
            self._omitted += surplus
            del self._last_bytes[:surplus]

    def text(self, seconds: float = 10.0) -> str:
        """Return the kept text after the stream ends or the time is up."""
        self._thread.join(seconds)
        with self._lock:
            gap = f"\n… {self._omitted:,} bytes are omitted here …\n" if self._omitted and self._first_size else ""
            text = bytes(self._first_bytes) + gap.encode() + bytes(self._last_bytes)
        return text.decode("utf-8", "replace").replace("\0", "\N{REPLACEMENT CHARACTER}")
