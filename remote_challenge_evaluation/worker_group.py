"""Several workers of one machine, each in a process of its own."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable

from segjudge.system.processes import Child, Streams

from .stopping import Stop

#: Seconds between the end of a worker and the start of the next one in its place.
_PAUSE = 2.0
#: Seconds between two looks at the workers.
_WATCH_PAUSE = 0.2
#: Seconds that a worker needs beyond its grace to end.
_MARGIN = 5.0


def run_workers(count: int, arguments: list[str], final: tuple[int, ...], grace: float) -> int:
    """Run so many workers, start one that dies again, and return the exit code; a final exit code of one ends all."""
    stop = Stop(grace)
    stop.listen()
    command = [sys.executable, "-m", "segjudge.remote_challenge_evaluation", *arguments]

    def start(number: int) -> Child:
        # The first alone serves monitoring.
        environment = dict(os.environ) if not number else {**os.environ, "HEALTH_PORT": "0"}
        return Child(command, Streams(), environment=environment)

    workers = {number: start(number) for number in range(count)}
    try:
        return _watch(workers, start, stop, final, once="--once" in arguments)
    finally:
        _end(workers, grace)


def _watch(
    workers: dict[int, Child], start: Callable[[int], Child], stop: Stop, final: tuple[int, ...], *, once: bool
) -> int:
    #: When the workers that died are started again.
    restarts: dict[int, float] = {}
    while (workers or restarts) and not stop.wait(_WATCH_PAUSE):
        for number, worker in list(workers.items()):
            code = worker.poll()
            if code is None:
                continue
            worker.end()
            del workers[number]
            if code in final:
                return code
            if code or not once:
                restarts[number] = time.monotonic() + _PAUSE
        for number in [number for number, moment in restarts.items() if moment <= time.monotonic()]:
            try:
                workers[number] = start(number)
                del restarts[number]
            except OSError:  # no process can be started now
                restarts[number] = time.monotonic() + _PAUSE
    return 0


def _end(workers: dict[int, Child], grace: float) -> None:
    """Ask all, then end what is left."""
    for worker in workers.values():
        worker.signal(signal.SIGTERM)
    deadline = time.monotonic() + grace + _MARGIN
    for worker in workers.values():
        worker.wait(max(0.0, deadline - time.monotonic()))
        worker.end()
