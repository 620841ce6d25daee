"""One evaluation in a process of its own, watched from outside until nothing of it is left."""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from segjudge.evalai.http_exchange import Watch
from segjudge.processes import Child, Streams, death

#: How much of each stream is kept, at its beginning and at its end.
KEPT = 64 << 10
_SET_DUMPABLE = 4
#: Of a scorer's answer.
_ANSWER_BYTES = 64 << 20
_PASSED = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "TZ", "LD_LIBRARY_PATH", "SEGJUDGE_SLACK", "SEGJUDGE_WEBHOOK")
_LOOK = 0.05


@dataclass(frozen=True)
class ScoringOutcome:
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
    """Nobody may read our memory or environment."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_SET_DUMPABLE, 0)


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


def described(folder: str, watch: Watch = lambda: None) -> dict[str, Any]:
    """The phases that this machine can score; RuntimeError where the scorers cannot be loaded."""
    return _asked(["describe"], folder, watch)


def opened_annotations(folder: str, annotations: str, watch: Watch = lambda: None) -> dict[str, Any]:
    """For each phase, what its annotation file holds (`facts`) or what is wrong with it (`wrong`)."""
    return _asked(["annotations", annotations], folder, watch)


def _asked(what: list[str], folder: str, watch: Watch) -> dict[str, Any]:
    """The JSON that a scorer prints to a question."""
    child = Child(
        _command(*what),
        Streams(output=subprocess.PIPE, errors=subprocess.PIPE),
        environment=_environment(folder),
        folder=folder,
    )
    output, errors = _Tail(os.dup(child.output.fileno()), _ANSWER_BYTES), _Tail(os.dup(child.errors.fileno()))
    try:
        while child.wait(_LOOK) is None:
            watch()
        code = child.end()
        if code == 0:
            with suppress(ValueError, RecursionError):
                found = json.loads(output.text())
                if isinstance(found, dict):
                    return found
        raise RuntimeError(f"the scorers cannot be loaded (the process {death(code)}):\n{errors.text().strip()}")
    finally:
        child.end()
        child.close_streams()


def evaluated(
    request: dict[str, Any], folder: str, seconds: float, lock: int, stopped: Callable[[], bool]
) -> ScoringOutcome:
    """Score, within so many seconds; handed back when the worker has to stop meanwhile."""
    pipes: list[tuple[int, int]] = []
    try:
        pipes += [os.pipe() for _ in range(5)]
        child = _scorer(pipes, folder, lock)
    except OSError:
        for end in (end for pipe in pipes for end in pipe):
            os.close(end)
        raise
    (ask_out, ask_in), *others = pipes
    for descriptor in (ask_out, *(theirs for _, theirs in others)):
        os.close(descriptor)
    answer = _Tail(others[0][0], _ANSWER_BYTES)
    readers = {name: _Tail(ours) for name, (ours, _) in zip(("log", "stdout", "stderr"), others[1:], strict=True)}
    # A scorer that does not read would keep us: it has as long as it has for its answer.
    threading.Thread(target=_ask, args=(ask_in, request), daemon=True).start()
    try:
        how = _waited(child, seconds, stopped)
    finally:
        code = child.end()
    found = _outcome(code, how, answer.text())
    stdout, stderr, log = (readers[name].text() for name in ("stdout", "stderr", "log"))
    return replace(found, stdout=stdout, stderr=stderr, log=log)


def _scorer(pipes: list[tuple[int, int]], folder: str, lock: int) -> Child:
    (ask_out, _), (_, answer_in), (_, log_in), (_, out_in), (_, err_in) = pipes
    given = [str(one) for one in (ask_out, answer_in, log_in)]
    # With the lock: as long as any of them lives, no other worker takes this submission for free.
    streams = Streams(output=out_in, errors=err_in, passed=(ask_out, answer_in, log_in, lock))
    command = [sys.executable, "-c", _START, *given, *_command("score")]
    return Child(command, streams, environment=_environment(folder), folder=folder)


def _ask(descriptor: int, request: dict[str, Any]) -> None:
    with suppress(OSError), os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump(request, file)


def _command(*what: str) -> list[str]:
    return [sys.executable, "-P", "-m", "segjudge.remote_challenge_evaluation.scoring_process", *what]


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
    ours = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    kept = {key: value for key, value in os.environ.items() if key in _PASSED}
    return {**kept, "PYTHONPATH": ours, "TMPDIR": kept.get("TMPDIR", folder), "PYTHONDONTWRITEBYTECODE": "1"}


def _waited(child: Child, seconds: float, stopped: Callable[[], bool]) -> str:
    """How it ended: by itself, by its time, or because the worker must stop."""
    until = time.monotonic() + seconds
    while child.wait(_LOOK) is None:
        if stopped():
            return "stopped"
        if time.monotonic() > until:
            return "late"
    return "ended"


def _outcome(code: int, end: str, answer: str) -> ScoringOutcome:
    if end == "stopped":
        return ScoringOutcome(handed_back=True)
    if end == "late":
        words = "Scoring took longer than this challenge allows and was ended. Send a smaller submission."
        return ScoringOutcome(refused=words)
    with suppress(ValueError, RecursionError):
        told = json.loads(answer)
        if isinstance(told, dict) and told.keys() & {"accuracies", "refused", "incident"}:
            refused, incident = (str(told.get(name) or "") for name in ("refused", "incident"))
            return ScoringOutcome(told.get("accuracies"), told.get("submission_result"), refused, incident)
    return ScoringOutcome(incident=f"the scorer {death(code)} without an answer")


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
