"""The parent's side of a scoring process: start it, send requests, detect death and hangs.

The simulated hosted worker and the remote worker run their scorers through it.
"""

from __future__ import annotations

import errno
import json
import os
import secrets
import select
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import Any, Literal, TypedDict

from segjudge.system import sandbox
from segjudge.system.bounds import ResourceGroup, TreeBounds, TreeWatch
from segjudge.system.processes import Child, ExitCode, Streams, Tail, clean_environment
from segjudge.system.python310 import NotRequired

from . import program
from .folder import WorkerFolder
from .interpreter import Interpreter

#: Memory, cores and disk of EvalAI's default worker.
MEMORY = 1 << 30
CORES = 0.5
_DISK = 21 << 30
#: The minimum free bytes on the disk of a worker's folder.
_LEAST_DISK = 16 << 20
SCRIPT = "evaluation_script"
#: The time limit of a submission; EvalAI has none, so a submission can stay `running` there forever.
SECONDS = 900.0
#: Seconds between checks whether an answer is still wanted and within its limits.
_TICK = 0.3
#: Seconds between checks of the processes' joint use, since a worker waits most of the time.
_PAUSE = 0.5
#: Seconds in which a process may end by itself.
_FAREWELL = 5.0
#: The maximum bytes of an answer: streams and results in one line of JSON.
_ANSWER_BYTES = 256 << 20
#: The kept bytes of the beginning and of the end of a process's output streams.
_LOG_BYTES = 64 << 10
#: The maximum number of a signal; a sandbox reports signals as exit codes from 128.
_SIGNALS = 64


class DiedError(Exception):
    """Raised if the process died; on EvalAI the submission would stay `running`."""

    def __init__(self, how: str, *, killed: bool = True, blameless: bool = False) -> None:
        super().__init__(how)
        #: Whether a signal ended it.
        self.killed = killed
        #: Whether SIGKILL ended it, which the system or an operator may have sent.
        self.blameless = blameless


class UnloadableError(DiedError):
    """Raised if the script cannot be loaded; EvalAI shows the reason to hosts and scores nothing."""

    def __init__(self, reason: str, log: str = "") -> None:
        super().__init__(f"{SCRIPT} cannot be loaded: {reason}", killed=False)
        self.reason = reason
        #: The text written meanwhile.
        self.log = log


class HungError(DiedError):
    """Raised if the process was killed for not answering in time."""


class UnwantedError(DiedError):
    """Raised if the process was killed because its answer was no longer needed."""


class ScoringOrder(TypedDict):
    """The order of a process: the script to load, and the kind of worker."""

    worker: Literal["hosted", "remote"]
    #: The maximum bytes of memory; 0 for no limit.
    memory: int
    #: A module below a folder.
    module: NotRequired[str]
    folder: NotRequired[str]
    #: A host's own module or package, and its repository; of a built bundle, the name of its script, and the bundle.
    file: NotRequired[str]
    root: NotRequired[str]


@dataclass(frozen=True)
class ProcessTerms:
    """The terms of a scoring process: command and limits."""

    environment: Mapping[str, str]
    #: Its working folder.
    folder: str
    #: The common limits of the process and its descendants; None for no limits.
    bounds: TreeBounds | None = None
    #: Puts a command into a sandbox or a group.
    wrap: Callable[[list[str]], list[str]] = list
    #: Whether it is a sandbox, which reports signals differently.
    is_boxed: bool = False
    #: Further descriptors that it inherits.
    passed: tuple[int, ...] = ()


class ScoringProcess:
    """A process with one script loaded, which scores one submission after another.

    Raises OSError if it cannot be started.
    """

    def __init__(self, python: Sequence[str], order: ScoringOrder, terms: ProcessTerms) -> None:
        self._is_boxed = terms.is_boxed
        #: The bytes after the last complete line.
        self._unread = b""
        with ExitStack() as cleanup:
            self._answers, answers_end = os.pipe()
            log, log_end = os.pipe()
            for descriptor in (answers_end, log_end):
                cleanup.callback(os.close, descriptor)
            self._log = Tail(os.fdopen(log, "rb", buffering=0), _LOG_BYTES, beginning=True)
            arguments = [*python, program.__file__, json.dumps(order), str(answers_end), str(log_end)]
            pipes = (subprocess.PIPE, subprocess.PIPE, subprocess.PIPE)
            try:
                self._child = Child(
                    terms.wrap(arguments),
                    Streams(*pipes, (answers_end, log_end, *terms.passed)),
                    environment=terms.environment,
                    folder=terms.folder,
                )
            except OSError:
                os.close(self._answers)
                raise
        self._tree = TreeWatch(self._child, terms.bounds) if terms.bounds else None
        os.set_blocking(self._child.input.fileno(), False)
        self._output, self._errors = (
            Tail(stream, _LOG_BYTES, beginning=True) for stream in (self._child.output, self._child.errors)
        )

    @property
    def alive(self) -> bool:
        """Return whether the process still runs, so that the next submission is not blamed."""
        return self._child.poll() is None

    def ask(
        self, request: Mapping[str, object], seconds: float | None = None, unwanted: Callable[[], bool] = lambda: False
    ) -> dict[str, Any]:
        """Return an answer; raises `DiedError`, `HungError`, or `UnwantedError` once `unwanted` is True."""
        number = secrets.token_hex(8)
        watch = self._watch(seconds, unwanted)
        self._send(json.dumps({**request, "number": number}).encode() + b"\n", watch)
        line = self._read_line(watch)
        with suppress(ValueError, TypeError, KeyError, RecursionError):
            answer: dict[str, Any] = json.loads(line)
            if answer["number"] == number:
                if "unloadable" in answer:
                    raise UnloadableError(str(answer["unloadable"]))
                return answer
        # A script that forks, or writes to the stream of answers, could give one team another's score.
        self.kill()
        raise DiedError("its process did not send an answer", killed=False)

    def _watch(self, seconds: float | None, unwanted: Callable[[], bool]) -> Callable[[], None]:
        """Raise to end the process if its answer is late or unwanted."""
        deadline = None if seconds is None else time.monotonic() + seconds
        next_check = 0.0

        def check() -> None:
            nonlocal next_check
            if time.monotonic() < next_check:
                return
            next_check = time.monotonic() + _TICK / 2
            if unwanted():
                self.kill()
                raise UnwantedError("the request was cancelled")
            if deadline is not None and time.monotonic() > deadline:
                self.kill()
                raise HungError(f"it did not answer for {seconds:g} seconds")

        return check

    def _send(self, data: bytes, watch: Callable[[], None]) -> None:
        pipe = self._child.input.fileno()
        while data:
            if not select.select([], [pipe], [], _TICK)[1]:
                watch()
                continue
            try:
                data = data[os.write(pipe, data) :]
            except BlockingIOError:
                continue
            except OSError:
                raise self._explain_death() from None

    def _read_line(self, watch: Callable[[], None]) -> bytes:
        """Return the next line of the descriptor for answers."""
        blocks, size = [self._unread], len(self._unread)
        while b"\n" not in blocks[-1]:
            is_dead = self._child.poll() is not None
            if not select.select([self._answers], [], [], _TICK)[0]:
                if is_dead:  # although one of its children may hold the pipe
                    raise self._explain_death()
                watch()
                continue
            block = os.read(self._answers, 1 << 16)
            size += len(block)
            if not block:
                raise self._explain_death()
            if size > _ANSWER_BYTES:
                self.kill()
                raise DiedError(f"its answer is larger than {_ANSWER_BYTES >> 20} MB", killed=False)
            blocks.append(block)
            watch()
        line, _, self._unread = b"".join(blocks).partition(b"\n")
        return line

    def _explain_death(self) -> DiedError:
        self.close()
        code = self._child.end()
        if self._tree is not None and self._tree.sentence:
            return DiedError(self._tree.sentence, killed=False)
        if self._is_boxed:
            code = decode_sandbox_code(code)
        return DiedError(f"its process {code.sentence}", killed=code.is_signal, blameless=code == -signal.SIGKILL)

    def kill(self) -> None:
        """End the process and all that it started."""
        self._child.end()
        self._close_pipes()

    def close(self) -> None:
        """Wait for the process to end, and end its remaining children."""
        self._close_pipes()
        self._child.wait(_FAREWELL)
        self._child.end()

    def _close_pipes(self) -> None:
        with suppress(OSError):
            self._child.input.close()
        if self._answers >= 0:
            os.close(self._answers)
            self._answers = -1

    def streams(self) -> tuple[str, str]:
        """Return standard output and error, shortened in the middle."""
        seconds = 0 if self.alive else 2
        return self._output.text(seconds), self._errors.text(seconds)

    def log(self) -> str:
        """Return the operator's log, shortened like the streams."""
        return self._log.text(0 if self.alive else 2)


@dataclass(frozen=True)
class WorkerTerms:
    """The limits of a hosted worker's process; without a sandbox, only the system sets the others."""

    #: The maximum bytes of memory; 0 for no limit.
    memory: int = 0
    sandbox_program: str | None = None
    #: Paths that the sandbox hides, wherever they lie.
    hidden: Sequence[str] = ()
    #: The group that limits several workers together.
    group: ResourceGroup | None = None


class WorkerProcess(ScoringProcess):
    """A process of EvalAI's hosted worker, with one challenge loaded."""

    def __init__(self, python: Interpreter, folder: WorkerFolder, challenge: int, terms: WorkerTerms) -> None:
        box = terms.sandbox_program
        tmpfs = sandbox.SCORER_TMPFS if box else ()
        home = "/tmp" if box else folder.temporary  # noqa: S108 - inside the sandbox
        module = f"challenge_data.challenge_{challenge}"
        order: ScoringOrder = {"worker": "hosted", "memory": terms.memory, "folder": folder.root, "module": module}
        process = ProcessTerms(
            clean_environment(HOME=home, TMPDIR=home, PATH=python.search_path),
            folder.temporary,
            TreeBounds(terms.memory, sandbox.SCORER_PROCESSES, tmpfs, *disk_bounds(folder.path), pause=_PAUSE),
            lambda arguments: _enclose(arguments, python, folder, terms),
            is_boxed=box is not None,
        )
        try:
            super().__init__([python.path, "-I"], order, process)
        except OSError as error:
            # Without an error number, its starter was killed from outside.
            raise DiedError(
                f"its process could not be started ({error})", killed=not error.errno, blameless=not error.errno
            ) from None

    def log(self) -> str:
        """Return the process's own output and the sandbox's messages."""
        return self.streams()[1] + super().log()


def decode_sandbox_code(code: ExitCode) -> ExitCode:
    """Return the exit code of a sandbox's program: 128 and a signal's number mean that the signal killed it."""
    return ExitCode(128 - code) if 128 < code <= 128 + _SIGNALS else code


def disk_bounds(*folders: str) -> tuple[Sequence[str], int]:
    """Return folders and the bytes that a worker may write to them together; raises OSError for a full disk."""
    free = shutil.disk_usage(folders[0]).free
    if free < _LEAST_DISK:  # no submission is to blame for a full disk
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), folders[0])
    return folders, min(_DISK, free // 2)


def _enclose(arguments: list[str], python: Interpreter, folder: WorkerFolder, terms: WorkerTerms) -> list[str]:
    """Return a worker's command in its sandbox and its group."""
    if terms.sandbox_program is not None:
        arguments = sandbox.scorer_command(
            terms.sandbox_program,
            arguments,
            [*python.folders, program.__file__],
            # Each folder is a separate mount, which no script can replace with a link.
            [(folder.temporary, "/tmp"), (folder.root, folder.root), (folder.submissions, folder.submissions)],  # noqa: S108
            terms.hidden,
            python=python.path,
            memory=terms.memory,
        )
    return terms.group.wrap(arguments) if terms.group else arguments
