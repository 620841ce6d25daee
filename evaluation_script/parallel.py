"""Several processes for one job, where a machine has cores to spare (EvalAI's worker has half a one)."""

from __future__ import annotations

import multiprocessing
import os
from contextlib import suppress
from typing import Any, Callable, List, TypeVar

from .supervisor import die_with_parent

Result = TypeVar("Result")


def map_in_processes(work: Callable[[int], Result], count: int, jobs: int) -> List[Result]:
    """The results for 0, 1, … count - 1, in order, by so many processes, this one included.

    Children are forked, so they see whatever the work refers to; each does
    every so-manieth number and sends its results when all are done.  They end
    with this process, however it ends: on Linux at once, elsewhere when they
    send their results.
    """
    jobs = min(jobs, count)
    if jobs < 2 or "fork" not in multiprocessing.get_all_start_methods():
        return [work(number) for number in range(count)]
    context = multiprocessing.get_context("fork")
    children: List[Any] = []
    readers: List[Any] = []
    try:
        for place in range(1, jobs):
            reader, writer = context.Pipe(duplex=False)
            readers.append(reader)
            numbers = range(place, count, jobs)
            children.append(context.Process(target=_answer, args=(work, numbers, writer, readers, os.getpid())))
            children[-1].start()
            writer.close()
        results = [[work(number) for number in range(0, count, jobs)], *map(_received, readers)]
        return [results[number % jobs][number // jobs] for number in range(count)]
    finally:
        for child, reader in zip(children, readers):
            if child.pid is not None:  # else it was not started
                child.kill()  # before its reader goes: whoever writes to nobody complains
                child.join()
            reader.close()


def _answer(work: Callable[[int], Any], numbers: range, writer: Any, readers: List[Any], parent: int) -> None:
    die_with_parent(parent)
    for reader in readers:  # else nobody would notice that the one who reads is gone
        reader.close()
    with suppress(BrokenPipeError):  # who shared the work was interrupted, and has said so
        try:
            writer.send(([work(number) for number in numbers], None))
        except Exception as error:  # noqa: BLE001 - it is raised again where it is received
            writer.send((None, error))


def _received(reader: Any) -> Any:
    try:
        results, error = reader.recv()
    except EOFError:
        raise MemoryError("a process that scored was ended") from None
    if error is not None:
        raise error
    return results
