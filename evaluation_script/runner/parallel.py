"""Several processes for one job, if the machine has free cores (EvalAI's worker has half a core)."""

from __future__ import annotations

import math
import os
import signal
import time
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import partial
from typing import (
    TYPE_CHECKING,
    Callable,
    Generic,
    Iterator,
    List,
    Optional,
    Sequence,
    Tuple,
    TypeVar,
    Union,
)

from ..files.problems import Flaw, HostError, SubmissionError

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.context import ForkContext, ForkProcess

_Result = TypeVar("_Result")

#: The number of 4-byte numbers that fit into any pipe.
_TICKETS = 1024
#: The seconds for which a child gathers results, because each message costs as much as a small unit.
_GATHERED = 0.2
#: The CPU seconds of counting after which further processes may start, and the least that must remain, because several
#: processes take about 0.05 s more.
_TRIAL, _WORTH_SHARING = 0.03, 0.15
#: The exceptions of a child that its parent raises too; all others are defects.
_RAISED = (SubmissionError, HostError, Flaw, MemoryError)


@dataclass(frozen=True)
class Part:
    """One of several parts of the work, counted from 1."""

    number: int
    count: int

    def select(self, costs: Sequence[int]) -> List[int]:
        """Return the items of this part, in order; all parts cost about the same."""
        return list(range(len(costs))) if self.count == 1 else shares(costs, self.count)[self.number - 1]


WHOLE = Part(1, 1)


def shares(costs: Sequence[int], count: int) -> List[List[int]]:
    """Distribute items, the most expensive first, each to the least loaded share; shares stay in order."""
    from heapq import heapreplace  # not in every start

    dealt: List[List[int]] = [[] for _ in range(count)]
    least = [(0, share) for share in range(count)]
    for number in sorted(range(len(costs)), key=lambda number: -costs[number]):
        total, share = least[0]
        dealt[share].append(number)
        heapreplace(least, (total + costs[number], share))
    return [sorted(share) for share in dealt]


def cores() -> int:
    """Return the number of usable cores, by affinity and control group quota."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, int(min(allowed, _quota())))


def _quota() -> float:
    """Return the cores that control groups allow; infinity without a limit."""
    least, folders = math.inf, ["/sys/fs/cgroup", "/sys/fs/cgroup/cpu"]
    with suppress(OSError):
        lines = _read_text("/proc/self/cgroup").splitlines()
        paths = [line.split(":", 2)[2].strip("/") for line in lines if line.count(":") >= 2]
        for path in paths:
            parts = path.split("/") if path else []
            folders += [os.path.join(root, *parts[:end]) for root in folders[:2] for end in range(1, len(parts) + 1)]
    for folder in folders:
        with suppress(OSError, ValueError, ZeroDivisionError):
            quota, period = _read_text(os.path.join(folder, "cpu.max")).split()
            if quota != "max":
                least = min(least, int(quota) / int(period))
        with suppress(OSError, ValueError, ZeroDivisionError):
            micros = int(_read_text(os.path.join(folder, "cpu.cfs_quota_us")))
            if micros > 0:
                least = min(least, micros / int(_read_text(os.path.join(folder, "cpu.cfs_period_us"))))
    return least


def _read_text(path: str) -> str:
    """Return a file of the kernel as text; a stream of text would load an encoding."""
    with open(path, "rb") as file:
        return file.read().decode("ascii", "replace")


def results_of_processes(
    work: Callable[[int], _Result],
    costs: Sequence[int],
    jobs: int,
    started: Callable[[int], None],
    most_jobs: int = 1,
) -> Iterator[_Result]:
    """Yield the results of all items as they arrive, from several processes, most expensive first.

    If no process can be forked, this one does the work. It begins alone if `jobs` is 1: `most_jobs` processes take over
    once the time of the items so far shows that this pays. It calls `started` with each item: before counting it alone,
    else when its result arrives.
    """
    pool = _start_pool(work, costs, range(len(costs)), jobs)
    begin, done, total = time.process_time(), 0, sum(costs)
    for number in range(len(costs)) if pool is None else ():
        started(number)
        yield work(number)
        done += costs[number]
        spent = time.process_time() - begin
        if most_jobs > 1 and spent > _TRIAL and spent * (total - done) > _WORTH_SHARING * done:
            pool = _start_pool(work, costs, range(number + 1, len(costs)), most_jobs)
            if pool is not None:
                break
            most_jobs = 1
    if pool is not None:
        with closing(pool):
            for number, result in pool.results():
                started(number)
                yield result


def _start_pool(
    work: Callable[[int], _Result],
    costs: Sequence[int],
    numbers: Sequence[int],
    jobs: int,
) -> Optional[_Pool[_Result]]:
    """Return a pool for these items; None if there are too few, or no process can be forked."""
    jobs = min(jobs, len(numbers))
    pool = _Pool(work, costs, numbers, jobs) if jobs > 1 and _may_fork() else None
    if pool is not None and not pool.readers:
        pool.close()
        return None
    return pool


def _may_fork() -> bool:
    if not hasattr(os, "fork"):
        return False
    import multiprocessing  # it takes a while, and one process does not need it

    return "fork" in multiprocessing.get_all_start_methods() and not multiprocessing.current_process().daemon


class _Pool(Generic[_Result]):
    """A pool of forked processes that take items until none are left."""

    def __init__(
        self,
        work: Callable[[int], _Result],
        costs: Sequence[int],
        numbers: Sequence[int],
        jobs: int,
    ) -> None:
        """Start up to `jobs` processes for the items of these numbers."""
        import multiprocessing

        self._work, self._count = work, len(numbers)
        self._order = sorted(numbers, key=costs.__getitem__, reverse=True)
        self.readers: List[Connection] = []
        self._children: List[ForkProcess] = []
        self._tickets = -1
        with suppress(OSError):  # too many files are open: the running processes, or this one, do the work
            self._tickets, writing = os.pipe()
            os.write(writing, b"".join(number.to_bytes(4, "little") for number in range(min(self._count, _TICKETS))))
            os.close(writing)  # readers after the last ticket read nothing
            self._start(jobs, multiprocessing.get_context("fork"), os.getpid())

    def _start(self, jobs: int, context: ForkContext, parent: int) -> None:
        """Start processes; raises OSError if no further one can be started."""
        from .supervisor import die_with_parent  # one process does not need it

        for _ in range(jobs):
            reader, writer = context.Pipe(duplex=False)
            child = context.Process(
                target=self._take_items, args=(writer, partial(die_with_parent, parent)), daemon=True
            )
            try:
                child.start()
            except OSError:
                reader.close()
                raise
            finally:
                writer.close()
            self.readers.append(reader)
            self._children.append(child)

    def results(self) -> Iterator[Tuple[int, _Result]]:
        """Yield the items and their results; raises a child's error, or MemoryError if a child was killed."""
        from multiprocessing import connection

        waiting = list(self.readers)
        while waiting:
            ready = connection.wait(waiting)
            for reader in [source for source in waiting if source in ready]:
                try:
                    message: Union[List[Tuple[int, _Result]], Exception, None] = reader.recv()
                except (EOFError, OSError):  # between messages, or in one
                    raise MemoryError("a scoring process was killed") from None
                if isinstance(message, Exception):
                    raise message
                if message is None:
                    waiting.remove(reader)
                else:
                    yield from message

    def close(self) -> None:
        """End all processes at once."""
        for child, reader in zip(self._children, self.readers):
            child.kill()  # before its reader goes: writing to a closed pipe is an error
            child.join()
            reader.close()
        if self._tickets >= 0:
            os.close(self._tickets)
            self._tickets = -1

    def _take_items(self, writer: Connection, die_with_parent: Callable[[], None]) -> None:
        """Take items and send results, in a child."""
        die_with_parent()
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent gets it too, and ends this process
        for number in (signal.SIGTERM, signal.SIGHUP):  # the parent's handlers would continue, or print a traceback
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, signal.SIG_DFL)
        for reader in self.readers:  # otherwise, a pipe would stay open after its reader has ended
            reader.close()
        with suppress(BrokenPipeError):  # the parent died
            try:
                self._send_results(writer)
                writer.send(None)
            except BrokenPipeError:
                raise
            except Exception as error:  # noqa: BLE001 - raised again where it is received
                import traceback  # few parts fail

                writer.send(error if isinstance(error, _RAISED) else RuntimeError(traceback.format_exc()))

    def _send_results(self, writer: Connection) -> None:
        """Take items and send their results, also those before an item that fails."""
        results: List[Tuple[int, _Result]] = []
        batch_start = -math.inf  # the first result shows at once that work goes on
        try:
            while ticket := os.read(self._tickets, 4):
                for index in range(int.from_bytes(ticket, "little"), self._count, _TICKETS):
                    number = self._order[index]
                    results.append((number, self._work(number)))
                    if time.monotonic() - batch_start >= _GATHERED:
                        batch, results = results, []
                        writer.send(batch)
                        batch_start = time.monotonic()
        finally:
            if results:
                writer.send(results)
