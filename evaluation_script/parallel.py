"""Several processes for one job, where a machine has cores to spare (EvalAI's worker has half a one)."""

from __future__ import annotations

import multiprocessing
import os
from contextlib import suppress
from typing import TYPE_CHECKING, Callable, List, TypeVar

from .supervisor import die_with_parent

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.context import ForkProcess

Result = TypeVar("Result")


def map_in_processes(work: Callable[[int], Result], count: int, jobs: int) -> List[Result]:
    """Return the results for 0, 1, … count - 1, in order, from so many processes, this one included.

    Children are forked, so they see whatever the work refers to; with n
    processes each does every nth number and sends its results when all are
    done.  They end with this process, however it ends: on Linux at once,
    elsewhere when they send their results.
    """
    jobs = min(jobs, count)
    if jobs < 2 or "fork" not in multiprocessing.get_all_start_methods():
        return [work(number) for number in range(count)]
    context = multiprocessing.get_context("fork")
    children: List[ForkProcess] = []
    readers: List[Connection] = []
    try:
        for first in range(1, jobs):
            reader, writer = context.Pipe(duplex=False)
            readers.append(reader)
            numbers = range(first, count, jobs)
            children.append(context.Process(target=_send_results, args=(work, numbers, writer, readers, os.getpid())))
            children[-1].start()
            writer.close()
        results = [[work(number) for number in range(0, count, jobs)], *map(_received, readers)]
        return [results[number % jobs][number // jobs] for number in range(count)]
    finally:
        for child, reader in zip(children, readers):
            if child.pid is not None:  # else it was not started
                child.kill()  # before its reader goes: writing to a closed pipe is an error
                child.join()
            reader.close()


def _send_results(
    work: Callable[[int], object], numbers: range, writer: Connection, readers: List[Connection], parent: int
) -> None:
    die_with_parent(parent)
    for reader in readers:  # else the pipe would stay open after its reader has ended
        reader.close()
    with suppress(BrokenPipeError):  # the parent was interrupted, and has reported it
        try:
            writer.send(([work(number) for number in numbers], None))
        except Exception as error:  # noqa: BLE001 - it is raised again where it is received
            writer.send((None, error))


def _received(reader: Connection) -> List[Result]:
    try:
        results, error = reader.recv()
    except EOFError:
        raise MemoryError("a process that scored was ended") from None
    if error is not None:
        raise error
    return list(results)
