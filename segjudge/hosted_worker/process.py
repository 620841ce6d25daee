"""One process of EvalAI's submission worker, from outside: start it, ask it, notice when it dies or hangs."""

from __future__ import annotations

import json
import os
import secrets
import select
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import IO, Any

from segjudge import sandbox
from segjudge.evaluation_script.errors import HostError
from segjudge.processes import Child, Streams, death

from . import program
from .compute import Compute
from .interpreter import Interpreter

#: What EvalAI's default worker has.
MEMORY = 1 << 30
CORES = 0.5
DISK = 21 << 30
_TICK = 0.3
_FAREWELL = 5.0
#: Streams and results in one line of JSON.
_ANSWER = 256 << 20
#: Bytes of the beginning and of the end of what a process writes to its own streams.
_LOGGED = 64 << 10
#: Measuring a folder takes at most this share of the time.
_MEASURED = 0.05
#: Signals are numbered up to here, and a sandbox reports them as exit codes from 128 on.
_SIGNALS = 64
#: What of our environment a worker needs: no address, no token, no folder of ours.
_PASSED = ("PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH")


class DiedError(Exception):
    """The process is gone: on EvalAI the submission would stay `running`."""

    def __init__(self, how: str, *, killed: bool = True) -> None:
        super().__init__(how)
        #: Whether a signal ended it, and not its own code.
        self.killed = killed


class HungError(DiedError):
    """It did not answer in time and was killed."""


class GivenUpError(DiedError):
    """Nobody wants its answer any more, so it was killed."""


@dataclass(frozen=True)
class WorkerTerms:
    """What a process may use; without a sandbox the rest is up to the operating system."""

    memory: int = 0
    #: The sandbox's program.
    box: str | None = None
    #: What the sandbox hides, wherever it lies.
    hidden: Sequence[str] = ()
    #: The file of a cgroup that takes process numbers.
    cgroup: str = ""


def walls(python: Interpreter, *, required: bool = False) -> str | None:
    """The sandbox, where it is there and this interpreter runs in it; raises HostError where one is required."""
    box = sandbox.found(sandbox.ProcessLimits(sandbox=required))
    if box is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        words = [python.path, "-I", "-c", ""]
        command = sandbox.scorer_command(box, words, python.folders, [(folder, "/tmp")], ())  # noqa: S108
        tried = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    if tried.returncode == 0:
        return box
    if required:
        said = tried.stderr.strip()[-300:]
        raise HostError(f"--require-sandbox: {python.path} does not run in the sandbox ({said}); name another Python")
    return None


class WorkerProcess:
    """A worker with one challenge loaded, which scores one submission after another."""

    def __init__(self, python: Interpreter, compute: Compute, challenge: int, terms: WorkerTerms) -> None:
        self._compute, self._lines, self._measured = compute, b"", 0.0
        self._boxed = terms.box is not None
        self._room = min(DISK, shutil.disk_usage(compute.folder).free // 2)
        command = _command(python, compute, challenge, terms)
        home = "/tmp" if self._boxed else compute.temporary  # noqa: S108 - inside the sandbox
        passed = {key: value for key, value in os.environ.items() if key in _PASSED}
        try:
            self._child = Child(
                command,
                Streams(subprocess.PIPE, subprocess.PIPE, subprocess.PIPE),
                environment={**passed, "HOME": home, "TMPDIR": home},
                folder=compute.temporary,
            )
        except OSError as error:
            raise DiedError(f"its process could not be started ({error})", killed=False) from None
        os.set_blocking(self._child.input.fileno(), False)
        self._log = _Log(self._child.errors)

    @property
    def pid(self) -> int:
        """Its number."""
        return self._child.pid

    @property
    def alive(self) -> bool:
        """Whether it still runs: one that died between two submissions is no fault of the next."""
        return self._child.poll() is None

    def ask(
        self, request: dict[str, Any], seconds: float | None = None, unwanted: Callable[[], bool] = lambda: False
    ) -> dict[str, Any]:
        """Its answer; raises `DiedError`, `HungError`, or `GivenUpError` once `unwanted` says so."""
        number = secrets.token_hex(8)
        watch = _Watch(seconds, unwanted)
        self._send(json.dumps({**request, "number": number}).encode() + b"\n", watch)
        try:
            answer: dict[str, Any] = json.loads(self._line(watch))
            right = answer["number"] == number
        except (ValueError, TypeError, KeyError):
            right = False
        if not right:
            # A script that forks, or writes where answers go, would give one team another's score.
            self.kill()
            raise DiedError("something else than the answer came from its process", killed=False)
        return answer

    def _send(self, data: bytes, watch: _Watch) -> None:
        pipe = self._child.input.fileno()
        while data:
            if not select.select([], [pipe], [], _TICK)[1]:
                self._judge(watch)
                continue
            try:
                data = data[os.write(pipe, data) :]
            except BlockingIOError:
                continue
            except OSError:
                raise self._end() from None

    def _line(self, watch: _Watch) -> bytes:
        reader = self._child.output.fileno()
        pieces, size = [self._lines], len(self._lines)
        while b"\n" not in pieces[-1]:
            dead = self._child.poll() is not None
            if not select.select([reader], [], [], _TICK)[0]:
                if dead:  # though a child of its own may hold the pipe
                    raise self._end()
                self._judge(watch)
                continue
            piece = os.read(reader, 1 << 16)
            size += len(piece)
            if not piece:
                raise self._end()
            if size > _ANSWER:
                self.kill()
                raise DiedError(f"its answer is larger than {_ANSWER >> 20} MB", killed=False)
            pieces.append(piece)
            self._judge(watch)
        line, _, self._lines = b"".join(pieces).partition(b"\n")
        return line

    def _judge(self, watch: _Watch) -> None:
        """Whether to wait on: ends the process where nobody wants its answer, or where it uses too much."""
        if not watch.due():
            return
        if watch.unwanted():
            self.kill()
            raise GivenUpError("nobody waits for it any more")
        if watch.over:
            self.kill()
            raise HungError(f"it did not answer for {watch.seconds:g} seconds")
        started = time.monotonic()
        if started < self._measured:
            return
        written = self._compute.written()
        self._measured = time.monotonic() + max(1.0, (time.monotonic() - started) / _MEASURED)
        if written > self._room:
            self.kill()
            raise DiedError(f"it wrote more than {self._room >> 20} MB to the disk", killed=False)

    def _end(self) -> DiedError:
        """How it ended, for people."""
        self.close()
        code = self._child.end()
        if self._boxed and 128 < code <= 128 + _SIGNALS:
            code = 128 - code
        return DiedError(f"its process {death(code)}", killed=code < 0)

    def kill(self) -> None:
        """End it and whatever it started."""
        self._child.end()
        self._close_pipes()

    def close(self) -> None:
        """Let it end by itself, and end whatever it leaves."""
        self._close_pipes()
        self._child.wait(_FAREWELL)
        self._child.end()

    def _close_pipes(self) -> None:
        for stream in (self._child.input, self._child.output):
            with suppress(OSError):
                stream.close()

    def log(self) -> str:
        """What it wrote to its own streams: of very much the beginning and the end."""
        return self._log.text(ended=not self.alive)


class _Watch:
    """How long to wait for an answer, and whether anybody still does."""

    def __init__(self, seconds: float | None, unwanted: Callable[[], bool]) -> None:
        self.seconds, self.unwanted = seconds, unwanted
        self._until = None if seconds is None else time.monotonic() + seconds
        self._next = 0.0

    def due(self) -> bool:
        """Whether it is time to look again."""
        if time.monotonic() < self._next:
            return False
        self._next = time.monotonic() + _TICK / 2
        return True

    @property
    def over(self) -> bool:
        return self._until is not None and time.monotonic() > self._until


class _Log:
    """Takes in a stream without end, and keeps its beginning and its end."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream, self._head, self._tail, self._left_out = stream, b"", b"", 0
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._drain, daemon=True)
        self._thread.start()

    def _drain(self) -> None:
        with suppress(OSError, ValueError), self._stream:
            while piece := os.read(self._stream.fileno(), 1 << 16):
                with self._lock:
                    room = _LOGGED - len(self._head)
                    self._head += piece[:room]
                    tail = self._tail + piece[room:] if room > 0 else self._tail + piece
                    self._left_out += max(0, len(tail) - _LOGGED)
                    self._tail = tail[-_LOGGED:]

    def text(self, *, ended: bool) -> str:
        """What was kept; of a process that has ended, all of it has come by then."""
        if ended:
            self._thread.join(2)
        with self._lock:
            cut = f"\n[{self._left_out} bytes are left out here]\n".encode() if self._left_out else b""
            return (self._head + cut + self._tail).decode("utf-8", "replace")


#: Enters a cgroup before anything else runs, so that every process of the worker's is in it.
_ENTER = 'echo $$ > "$0" 2>/dev/null; exec "$@"'


def _command(python: Interpreter, compute: Compute, challenge: int, terms: WorkerTerms) -> list[str]:
    """The words that start a worker."""
    words = [python.path, "-I", program.__file__, compute.root, str(challenge), str(terms.memory)]
    if terms.box is not None:
        words = sandbox.scorer_command(
            terms.box,
            [*words, str(program.PROCESSES)],
            [*python.folders, program.__file__],
            # Each folder is a mount of its own, which nothing inside can replace by a link.
            [(compute.temporary, "/tmp"), (compute.root, compute.root), (compute.submissions, compute.submissions)],  # noqa: S108
            terms.hidden,
        )
    return ["/bin/sh", "-c", _ENTER, terms.cgroup, *words] if terms.cgroup else words
