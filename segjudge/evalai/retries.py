"""Repeat calls that may succeed later, with growing pauses."""

import itertools
import random
from collections.abc import Callable, Iterator
from typing import TypeVar

from .client import ApiError

Result = TypeVar("Result")
#: Seconds of the first and of the longest pause between tries.
FIRST, LONGEST = 0.5, 30.0


def growing_pauses(first: float = 2.0, longest: float = 60.0) -> Iterator[float]:
    """Yield the seconds to wait after each failure, without end."""
    while True:
        yield first
        first = min(longest, 2 * first)


def waits(tries: int, first: float = FIRST) -> Iterator[float]:
    """Yield the seconds to wait after each try but the last, with jitter, so that many do not come back together."""
    for pause in itertools.islice(growing_pauses(first, LONGEST), tries - 1):
        yield pause * random.uniform(0.5, 1.5)


def with_retries(call: Callable[[], Result], sleep: Callable[[float], object], tries: int = 5) -> Result:
    """Return what a call returns; raise its error after so many tries, or at once if it is not transient.

    A sleep that returns True was interrupted by the end of the process: nothing is tried after it.
    """
    for wait in waits(tries):
        try:
            return call()
        except ApiError as error:
            if not error.transient or sleep(max(wait, error.wait or 0.0)) is True:
                raise
    return call()
