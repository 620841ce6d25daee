"""One process of EvalAI's submission worker, from outside: start it, ask it, notice when it dies or hangs."""

from __future__ import annotations

import json
import os
import secrets
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
_TICK = 0.3
#: Streams and results in one line of JSON.
_ANSWER = 256 << 20


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
        number = secrets.token_hex(8)
        try:
            self._process.stdin.write(json.dumps({**request, "number": number}).encode() + b"\n")
            self._process.stdin.flush()
        except (OSError, ValueError):
            raise self._end() from None
        try:
            answer: dict[str, Any] = json.loads(self._line(seconds))
            right = answer["number"] == number
        except (ValueError, TypeError, KeyError):
            right = False
        if not right:
            # A script that forks, or writes where answers go, would give one team another's score.
            self.kill()
            raise DiedError("something else than the answer came from its process", killed=False)
        return answer

    def _line(self, seconds: float | None) -> bytes:
        assert self._process.stdout is not None  # noqa: S101 - likewise
        reader, until = self._process.stdout.fileno(), time.monotonic() + (seconds or 0)
        pieces, size = [self._lines], len(self._lines)
        while b"\n" not in pieces[-1]:
            dead = self._process.poll() is not None
            if not select.select([reader], [], [], _TICK)[0]:
                if dead:  # though a child of its own may hold the pipe
                    raise self._end()
                if seconds is not None and time.monotonic() > until:
                    self.kill()
                    raise HungError(f"it did not answer for {seconds:g} seconds")
                continue
            piece = os.read(reader, 1 << 16)
            size += len(piece)
            if not piece:
                raise self._end()
            if size > _ANSWER:
                self.kill()
                raise DiedError(f"its answer is larger than {_ANSWER >> 20} MB", killed=False)
            pieces.append(piece)
        line, _, self._lines = b"".join(pieces).partition(b"\n")
        return line

    def _end(self) -> DiedError:
        """How it ended, for people."""
        self.close()
        self._end_group()
        code = self._process.returncode
        if code < 0:
            known = {one.value: one.name for one in signal.Signals}
            return DiedError(f"its process was killed by {known.get(-code, f'signal {-code}')}")
        return DiedError(f"its process ended with exit code {code}", killed=False)

    def kill(self) -> None:
        """End it and whatever it started."""
        self._end_group()
        self.close()

    def _end_group(self) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)

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
