"""Start a child process, and end it with everything that it started.

Between us and each command stands a small process (`evaluation_script/supervisor.py`,
run as a program) that adopts what the command leaves behind: double forks,
sessions of their own and stopped processes end with it, and all of them end when
we are killed.  That is so on Linux; elsewhere the command's process group is
ended, and no more.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import IO, Any

#: Not imported: the remote worker is slim, and the package of the scorers is not.
SUPERVISOR = os.path.join(os.path.dirname(os.path.abspath(__file__)), "evaluation_script", "supervisor.py")
#: Seconds beyond which a keeper that was told to end is killed itself; it gives up after 60.
_PATIENCE = 65.0
#: Seconds within which a keeper says that the command was started, on any machine.
_START = 60.0


@dataclass(frozen=True)
class Streams:
    """What a child reads and writes: descriptors, files, `subprocess.PIPE` or None for ours."""

    input: Any = subprocess.DEVNULL
    output: Any = None
    errors: Any = None
    #: Further descriptors that it inherits under their own numbers.
    passed: tuple[int, ...] = ()


class Child:
    """A running command; nothing of it is left when it has ended.

    Raises OSError where the command cannot be started.
    """

    def __init__(
        self,
        command: Sequence[str],
        streams: Streams | None = None,
        *,
        environment: Mapping[str, str] | None = None,
        folder: str | None = None,
    ) -> None:
        streams = streams or Streams()
        self._leash, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", SUPERVISOR, str(theirs.fileno()), *command],
                stdin=streams.input,
                stdout=streams.output,
                stderr=streams.errors,
                env=None if environment is None else dict(environment),
                cwd=folder,
                pass_fds=(*streams.passed, theirs.fileno()),
                start_new_session=True,
            )
        told = self._first_words()
        #: The command's process number.
        self.pid = int(told[0]) if told else self._process.pid
        error = int(told[1]) if told else 0
        if error or not told:
            self.end()
            self.close_streams()
            words = os.strerror(error) if error else "its keeper ended"
            raise OSError(error, words, command[0])

    def _first_words(self) -> list[bytes]:
        """Return the command's number and the error of its start; nothing where the keeper does not say them."""
        self._leash.settimeout(_START)
        try:
            with self._leash.makefile("rb") as file:
                return file.readline().split()
        except TimeoutError:  # a command may stop its keeper
            return []
        finally:
            self._leash.settimeout(None)

    @property
    def input(self) -> IO[bytes]:
        """Its standard input, which was opened as a pipe."""
        return self._opened(self._process.stdin)

    @property
    def output(self) -> IO[bytes]:
        """Its standard output, likewise."""
        return self._opened(self._process.stdout)

    @property
    def errors(self) -> IO[bytes]:
        """Its standard error, likewise."""
        return self._opened(self._process.stderr)

    @staticmethod
    def _opened(stream: IO[bytes] | None) -> IO[bytes]:
        if stream is None:
            raise ValueError("the stream was not opened as a pipe")
        return stream

    def poll(self) -> int | None:
        """Return its exit code (the signal's number below 0), or None while it runs."""
        return self._process.poll()

    def wait(self, seconds: float | None = None) -> int | None:
        """Wait so long for its end; return its exit code, or None when it still runs."""
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def signal(self, number: int) -> None:
        """Send a signal to the command itself; nothing happens when it has ended."""
        with suppress(OSError):
            self._leash.send(bytes([number]))

    def end(self) -> int:
        """Kill it and all of its descendants, and return its exit code; once more does no harm."""
        with suppress(OSError):
            self._leash.shutdown(socket.SHUT_RDWR)
        code = self.wait(_PATIENCE)
        if code is None:  # stopped or stuck; the command ends with it, and its group here
            self._process.kill()
            code = self._process.wait()
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)
        self._leash.close()
        return code

    def close_streams(self) -> None:
        """Close our ends of its pipes."""
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            if stream is not None:
                with suppress(OSError):  # what was not read any more
                    stream.close()


class Tail:
    """Reads a stream to its end in a thread, and keeps so many bytes of its end, and as many of its beginning if asked.

    Whoever writes is never held up, and neither our memory nor a disk is filled.
    """

    def __init__(self, stream: IO[bytes], kept: int, *, beginning: bool = False) -> None:
        self._stream, self._kept, self._room = stream, kept, kept if beginning else 0
        self._head, self._tail, self._lost = bytearray(), bytearray(), 0
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        with suppress(OSError, ValueError):  # it was closed meanwhile
            while piece := os.read(self._stream.fileno(), 1 << 16):
                with self._lock:
                    self._take(piece)

    def _take(self, piece: bytes) -> None:
        room = self._room - len(self._head)
        self._head += piece[:room]
        self._tail += piece[room:]
        surplus = len(self._tail) - self._kept
        if surplus > 0:
            self._lost += surplus
            del self._tail[:surplus]

    def text(self, seconds: float = 10.0) -> str:
        """Return what was kept; its writers are to be gone by now, but it waits no longer than that for them."""
        self._thread.join(seconds)
        with self._lock:
            cut = f"\n… {self._lost:,} bytes are left out here …\n" if self._lost and self._room else ""
            text = bytes(self._head) + cut.encode() + bytes(self._tail)
        return text.decode("utf-8", "replace").replace("\0", "\N{REPLACEMENT CHARACTER}")


def death(code: int) -> str:
    """Return how a process with this exit code ended, for people."""
    if code >= 0:
        return f"ended with exit code {code}"
    known = {one.value: one.name for one in signal.Signals}
    return f"was killed by {known.get(-code, f'signal {-code}')}"
