"""Several processes for one job, where a machine has cores to spare (EvalAI's worker has half a one)."""

from __future__ import annotations

import multiprocessing
from typing import Any, Callable, List, TypeVar

Result = TypeVar("Result")

#: What the children of the current call do: they are forked, so they see it and everything it refers to.
_work: List[Callable[[int], Any]] = []


def mapped(work: Callable[[int], Result], count: int, jobs: int) -> List[Result]:
    """The results for 0, 1, … count - 1, in order, by so many processes."""
    if jobs < 2 or count < 2 or "fork" not in multiprocessing.get_all_start_methods():
        return [work(number) for number in range(count)]
    _work.append(work)
    try:
        with multiprocessing.get_context("fork").Pool(min(jobs, count)) as pool:
            return pool.map(_run, range(count), chunksize=1)
    finally:
        _work.pop()


def _run(number: int) -> Any:
    return _work[-1](number)
