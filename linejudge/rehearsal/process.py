"""One process of EvalAI's submission worker, from outside: start it, ask it, notice when it dies or hangs."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import time
from contextlib import suppress
from typing import Any

from . import hosted_worker

#: What EvalAI's default worker has.
MEMORY = 1 << 30
CORES = 0.5


class DiedError(Exception):
    """The process is gone: on EvalAI the submission would stay `running`."""

    def __init__(self, how: str, *, killed: bool = True) -> None:
        super().__init__(how)
        #: Whether a signal ended it, and not its own code.
        self.killed = killed


class HungError(DiedError):
    """It did not answer in time and was killed."""


class Process:
    """A worker with one challenge loaded, which scores one submission after another."""

    def __init__(self, python: str, folder: str, challenge: int, *, memory: int = 0) -> None:
        self._log_path = os.path.join(folder, "worker.log")
        self._lines = b""
        with open(self._log_path, "wb") as log:
            self._process = subprocess.Popen(
                [python, "-I", hosted_worker.__file__, os.path.join(folder, "compute"), str(challenge), str(memory)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                cwd=folder,
                # Neither tokens nor passwords of ours; a group of its own, so that what it leaves can be ended.
                env={key: value for key, value in os.environ.items() if key in _PASSED},
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        """Its number."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether it still runs: one that died between two submissions is no fault of the next."""
        return self._process.poll() is None

    def ask(self, request: dict[str, Any], seconds: float | None = None) -> dict[str, Any]:
        """Its answer; raises `DiedError` or `HungError`."""
        assert self._process.stdin is not None  # noqa: S101 - it was opened as a pipe
        try:
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise self._end() from None
        answer: dict[str, Any] = json.loads(self._line(seconds))
        return answer

    def _line(self, seconds: float | None) -> bytes:
        assert self._process.stdout is not None  # noqa: S101 - likewise
        reader, until = self._process.stdout.fileno(), time.monotonic() + (seconds or 0)
        while b"\n" not in self._lines:
            left = None if seconds is None else max(0.0, until - time.monotonic())
            if not select.select([reader], [], [], left)[0]:
                self.kill()
                raise HungError(f"it did not answer for {seconds:g} seconds")
            piece = os.read(reader, 1 << 16)
            if not piece:
                raise self._end()
            self._lines += piece
        line, _, self._lines = self._lines.partition(b"\n")
        return line

    def _end(self) -> DiedError:
        """How it ended, for people."""
        self.close()
        code = self._process.returncode
        if code < 0:
            return DiedError(f"its process was killed by {signal.Signals(-code).name}")
        return DiedError(f"its process ended with exit code {code}", killed=False)

    def kill(self) -> None:
        """End it and whatever it started."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        self.close()

    def close(self) -> None:
        """Let it end by itself, and wait for that."""
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with suppress(BrokenPipeError):
                    stream.close()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            with suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
            self._process.wait()

    def log(self) -> str:
        """What it wrote to its own streams."""
        with open(self._log_path, encoding="utf-8", errors="replace") as file:
            return file.read()


#: What of our environment a worker needs.
_PASSED = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "LD_LIBRARY_PATH", "LINEJUDGE_SLACK", "LINEJUDGE_WEBHOOK")
