"""One evaluation in a process of its own, watched from outside until nothing of it is left."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

#: How much of each stream is kept, at its beginning and at its end.
KEPT = 64 << 10
_SET_DUMPABLE, _SET_CHILD_SUBREAPER = 4, 36
_PASSED = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "TZ", "LD_LIBRARY_PATH", "LINEJUDGE_SLACK", "LINEJUDGE_WEBHOOK")
_LOOK = 0.05


@dataclass(frozen=True)
class Outcome:
    """What came of it: accuracies, or a sentence for the participant, or a fault of ours."""

    accuracies: list[dict[str, Any]] | None = None
    submission_result: Any = None
    refused: str = ""
    incident: str = ""
    stdout: str = ""
    stderr: str = ""
    log: str = ""
    handed_back: bool = False


def harden() -> None:
    """Nobody may read our memory or environment, and what a scorer leaves behind becomes our child."""
    with suppress(OSError, AttributeError):
        library = ctypes.CDLL(None)
        library.prctl(_SET_DUMPABLE, 0)
        library.prctl(_SET_CHILD_SUBREAPER, 1)


def limited() -> bool:
    """Whether whoever started us bounds how many processes we may have, by a cgroup."""
    with suppress(OSError), open("/proc/self/cgroup", encoding="ascii") as file:
        for line in file.read().splitlines():
            _, kind, path = line.split(":", 2)
            for root in ("/sys/fs/cgroup", f"/sys/fs/cgroup/{kind}"):
                with suppress(OSError), open(f"{root}{path}/pids.max", encoding="ascii") as most:
                    if most.read().strip() != "max":
                        return True
    return False


def described(folder: str) -> dict[str, Any]:
    """The phases that this machine can score."""
    done = subprocess.run(
        _command("describe"), env=_environment(folder), cwd=folder, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"the scorers cannot be loaded:\n{done.stderr.strip()}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def evaluated(request: dict[str, Any], folder: str, seconds: float, lock: int, stopped: Callable[[], bool]) -> Outcome:
    """Score, within so many seconds; handed back when the worker has to stop meanwhile."""
    pipes = [os.pipe() for _ in range(5)]
    (ask_out, ask_in), (answer_out, answer_in), (log_out, log_in), (out_out, out_in), (err_out, err_in) = pipes
    process = subprocess.Popen(
        [sys.executable, "-c", _START, str(ask_out), str(answer_in), str(log_in), *_command("score")],
        stdin=subprocess.DEVNULL,
        stdout=out_in,
        stderr=err_in,
        env=_environment(folder),
        cwd=folder,
        # With the lock: as long as any of them lives, no other worker takes this submission for free.
        pass_fds=(ask_out, answer_in, log_in, lock),
        start_new_session=True,
    )
    for descriptor in (ask_out, answer_in, log_in, out_in, err_in):
        os.close(descriptor)
    readers = {name: _Tail(end) for name, end in (("stdout", out_out), ("stderr", err_out), ("log", log_out))}
    answer = _Tail(answer_out, 64 << 20)
    with suppress(BrokenPipeError), os.fdopen(ask_in, "w", encoding="utf-8") as file:
        json.dump(request, file)
    end = _waited(process, seconds, stopped)
    _sweep(process)
    found = _outcome(process, end, answer.text())
    stdout, stderr, log = (readers[name].text() for name in ("stdout", "stderr", "log"))
    return replace(found, stdout=stdout, stderr=stderr, log=log)


def _command(what: str) -> list[str]:
    return [sys.executable, "-P", "-m", "remote_challenge_evaluation.child", what]


#: Puts the three descriptors where the scorer expects them, then becomes the scorer.
_START = (
    "import fcntl, os, sys\n"
    "given = [int(n) for n in sys.argv[1:4]]\n"
    "high = [fcntl.fcntl(n, fcntl.F_DUPFD_CLOEXEC, 50) for n in given]\n"
    "[os.set_inheritable(n, False) for n in given]\n"
    "[os.dup2(n, k) for k, n in enumerate(high, 3)]\n"
    "os.execv(sys.argv[4], sys.argv[4:])\n"
)


def _environment(folder: str) -> dict[str, str]:
    """Built from nothing: no token, no key, and our own code first."""
    ours = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    kept = {key: value for key, value in os.environ.items() if key in _PASSED}
    return {**kept, "PYTHONPATH": ours, "TMPDIR": kept.get("TMPDIR", folder), "PYTHONDONTWRITEBYTECODE": "1"}


def _waited(process: subprocess.Popen[bytes], seconds: float, stopped: Callable[[], bool]) -> str:
    """How it ended: by itself, by its time, or because the worker must stop."""
    until = time.monotonic() + seconds
    while True:
        try:
            process.wait(_LOOK)
        except subprocess.TimeoutExpired:
            if stopped():
                return "stopped"
            if time.monotonic() > until:
                return "late"
        else:
            return "ended"


def _sweep(process: subprocess.Popen[bytes]) -> None:
    """End the process, its group, and whatever it left: orphans come to us, since we are their subreaper."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for _ in range(100):
        left = _children()
        if not left:
            return
        for pid in left:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            with suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
        time.sleep(_LOOK / 5)


def _children() -> list[int]:
    found: list[int] = []
    with suppress(OSError):
        for task in os.listdir("/proc/self/task"):
            with open(f"/proc/self/task/{task}/children", encoding="ascii") as file:
                found += [int(pid) for pid in file.read().split()]
    return found


def _outcome(process: subprocess.Popen[bytes], end: str, answer: str) -> Outcome:
    if end == "stopped":
        return Outcome(handed_back=True)
    if end == "late":
        words = "Scoring took longer than this challenge allows and was ended. Send a smaller submission."
        return Outcome(refused=words)
    try:
        told = json.loads(answer)
        result, extra = told.get("accuracies"), told.get("submission_result")
        return Outcome(result, extra, told.get("refused", ""), told.get("incident", ""))
    except (ValueError, AttributeError):
        code = process.returncode
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
        return Outcome(incident=f"the scorer {how} without an answer")


class _Tail:
    """Reads a stream to its end in a thread, and keeps its beginning and its end."""

    def __init__(self, descriptor: int, kept: int = KEPT) -> None:
        self._descriptor, self._kept = descriptor, kept
        self._head, self._tail, self._lost = bytearray(), bytearray(), 0
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        with os.fdopen(self._descriptor, "rb", buffering=0) as file:
            while piece := file.read(1 << 16):
                room = self._kept - len(self._head)
                self._head += piece[:room]
                self._tail += piece[room:]
                if len(self._tail) > 2 * self._kept:
                    self._lost += len(self._tail) - self._kept
                    del self._tail[: -self._kept]

    def text(self) -> str:
        """What was kept; all writers are gone by now, and the wait is for the thread alone."""
        self._thread.join(10)
        lost = self._lost + max(0, len(self._tail) - self._kept)
        tail = bytes(self._tail[-self._kept :])
        cut = f"\n… {lost:,} bytes are left out here …\n".encode() if lost else b""
        return (bytes(self._head) + cut + tail).decode("utf-8", "replace").replace("\0", "\N{REPLACEMENT CHARACTER}")
