"""Several workers of one machine, each in a process of its own."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress

from segjudge.processes import Child, Streams

from .stopping import Stop

#: Between the end of a worker and the start of the next one in its place.
_PAUSE = 2.0
_LOOK = 0.2
#: What a worker needs beyond its grace to leave.
_MARGIN = 5.0


def run_workers(count: int, arguments: list[str], final: tuple[int, ...], grace: float) -> int:
    """Run so many workers; one that dies comes back, one with a final exit code ends all.  The exit code."""
    stop = Stop(grace)
    stop.listen()
    command = [sys.executable, "-m", "segjudge.remote_challenge_evaluation", *arguments]

    def start(number: int) -> Child:
        # Each ends with us, however we end; the first alone serves monitoring.
        environment = dict(os.environ) if not number else {**os.environ, "HEALTH_PORT": "0"}
        return Child(command, Streams(), environment=environment)

    workers = {number: start(number) for number in range(count)}
    try:
        return _watched(workers, start, stop, final, once="--once" in arguments)
    finally:
        _end(workers, grace)


def _watched(
    workers: dict[int, Child], start: Callable[[int], Child], stop: Stop, final: tuple[int, ...], *, once: bool
) -> int:
    back: dict[int, float] = {}
    while (workers or back) and not stop.wait(_LOOK):
        for number, worker in list(workers.items()):
            code = worker.poll()
            if code is None:
                continue
            worker.end()
            del workers[number]
            if code in final:
                return code
            if code or not once:
                back[number] = time.monotonic() + _PAUSE
        for number in [one for one, moment in back.items() if moment <= time.monotonic()]:
            with suppress(OSError):  # no process can be started now
                workers[number] = start(number)
            if number in workers:
                del back[number]
            else:
                back[number] = time.monotonic() + _PAUSE
    return 0


def _end(workers: dict[int, Child], grace: float) -> None:
    """Ask all, then end what is left."""
    for worker in workers.values():
        worker.signal(signal.SIGTERM)
    until = time.monotonic() + grace + _MARGIN
    for worker in workers.values():
        worker.wait(max(0.0, until - time.monotonic()))
        worker.end()
