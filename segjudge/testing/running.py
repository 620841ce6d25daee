"""Running a function in a separate process: its result or error, and its cost."""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, NamedTuple

from segjudge.evaluation_script.files.problems import SubmissionError
from segjudge.system.errors import UsageError

#: The bytes beyond the allowed ones above which the system refuses memory.
_SLACK = 1 << 30
#: The number of jobs in progress, since their files may be large.
_JOBS_AT_ONCE = 32
#: The maximum ratio of wall-clock time to CPU seconds, on a busy machine.
_PATIENCE = 12


class Outcome(NamedTuple):
    """The outcome of a job in a separate process."""

    #: `returned`, `refused` by a SubmissionError, or the failure.
    kind: str
    #: The returned text, the sentence, or the last lines of a traceback.
    text: str
    seconds: float = 0.0
    #: The maximum bytes of memory that it added to the process.
    extra_bytes: int = 0


def run_in_child(
    jobs: Iterable[tuple[str, Callable[[], object]]], seconds: float, memory: int
) -> Iterator[tuple[str, Outcome]]:
    """Run jobs in a separate process; after a death or hang, continue in another one."""
    if not hasattr(os, "fork"):
        raise UsageError("the conformance kit needs Linux or macOS; on Windows, run it in WSL")
    coming = iter(jobs)
    pending: list[tuple[str, Callable[[], object]]] = []
    while pending := pending + list(islice(coming, _JOBS_AT_ONCE - len(pending))):
        count = 0
        for outcome in _run_batch([job for _, job in pending], seconds, memory):
            yield pending[count][0], outcome
            count += 1
        pending = pending[count:]


def _run_batch(jobs: list[Callable[[], object]], seconds: float, memory: int) -> Iterator[Outcome]:
    reader, writer = os.pipe()
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        os.close(reader)
        _run_jobs(jobs, writer, memory)
    os.close(writer)
    ended = 0
    try:
        with os.fdopen(reader, "rb", buffering=0) as file:
            while ended < len(jobs):
                if not select.select([file], [], [], seconds * _PATIENCE)[0]:
                    yield Outcome("hung", f"did not end within {seconds * _PATIENCE:.0f} s")
                    return
                size = int.from_bytes(_read(file, 4), "little")
                if not size:
                    yield Outcome("died", "the process that scored it died")
                    return
                yield Outcome(*json.loads(_read(file, size)))
                ended += 1
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def _read(file: Any, size: int) -> bytes:
    data = b""
    while len(data) < size and (chunk := file.read(size - len(data))):
        data += chunk
    return data if len(data) == size else b""


def _run_jobs(jobs: list[Callable[[], object]], writer: int, memory: int) -> None:
    """Run all jobs, write their outcomes, and exit."""
    try:
        limit = _read_process_bytes("VmSize:") + memory + _SLACK
        if sys.platform == "linux":
            import resource  # which Windows lacks

            resource.setrlimit(resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))
        for job in jobs:
            data = json.dumps(_outcome(job)).encode()
            os.write(writer, len(data).to_bytes(4, "little"))
            while data:
                data = data[os.write(writer, data) :]
    finally:
        os._exit(0)


def _outcome(job: Callable[[], object]) -> Outcome:
    before, started = _peak(reset=True), time.process_time()
    try:
        kind, text = "returned", str(job())
    except SubmissionError as error:
        kind, text = "refused", str(error)
    except BaseException as error:  # noqa: BLE001 - this is what is looked for
        kind, text = type(error).__name__, "".join(traceback.format_exception(error)[-3:]).rstrip()
    return Outcome(kind, text, time.process_time() - started, _peak() - before)


def _peak(*, reset: bool = False) -> int:
    """Return the peak memory in bytes; `reset` restarts from the current use."""
    if sys.platform != "linux":
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    if reset:
        with open("/proc/self/clear_refs", "w", encoding="ascii") as file:
            file.write("5")
        return _read_process_bytes("VmRSS:")
    return _read_process_bytes("VmHWM:")


def _read_process_bytes(key: str) -> int:
    try:
        with open("/proc/self/status", encoding="ascii", errors="replace") as file:
            return next((int(line.split()[1]) << 10 for line in file if line.startswith(key)), 0)
    except OSError:
        return 0
