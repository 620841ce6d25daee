"""Under the worker's interpreter only the tests of the uploaded folder run."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from .everything import NEWER, descendants

HERE = Path(__file__).parent

NEEDS_TOOLKIT = (
    [str(path) for path in HERE.rglob("test_*.py") if NEWER.search(path.read_text(encoding="utf-8"))]
    if sys.version_info < (3, 11)
    else []
)
collect_ignore = [*NEEDS_TOOLKIT, *(["journeys", "house"] if NEEDS_TOOLKIT else [])]

# What a shell starts in the background ignores Ctrl-C, and with it all that the tests start and interrupt.  Whatever
# interrupts the tests, they end what they started.
for _number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    if _number == signal.SIGINT or signal.getsignal(_number) is not signal.SIG_IGN:
        signal.signal(_number, signal.default_int_handler)
# Containers often set it, and it hides what a full buffer does at a program's end.
os.environ.pop("PYTHONUNBUFFERED", None)


interruptions: list[Any] = []


def pytest_keyboard_interrupt(excinfo: Any) -> None:
    """Remember it."""
    interruptions.append(excinfo)


def pytest_unconfigure() -> None:
    """End what interrupted tests have left."""
    for pid in descendants() if interruptions else ():
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def pytest_collection_modifyitems(items: list[Any]) -> None:
    """Count as long what runs quickly on one of the two interpreters, and takes long on the other.

    Hostile uploads and the guard are for the worker's; where that runs, real masks are for the kernel.
    """
    if sys.version_info >= (3, 11) and os.environ.get("SEGJUDGE_WORKER_PYTHON"):
        suites = [*HERE.rglob("test_hostile*.py"), HERE / "runner" / "test_guard.py"]
        both = [path for path in suites if not NEWER.search(path.read_text(encoding="utf-8"))]
    else:
        both = [HERE / "families" / "sequences" / "test_golden_real_masks.py"] if sys.version_info < (3, 11) else []
    for item in items:
        if item.path in both:
            item.add_marker(pytest.mark.long)


# A slow machine is no failure; CI draws the same examples every time, so that it fails for what was changed.
settings.register_profile(
    "here",
    derandomize=os.environ.get("CI", "").lower() == "true",
    suppress_health_check=[HealthCheck.too_slow],
    database=None,
)
settings.load_profile("here")

#: No test takes this long, in seconds, on any machine: what waits for longer waits for ever.
DEADLINE = 1200


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item: Any) -> Iterator[None]:
    """Fail a test that hangs instead of hanging with it; again every minute, since what it leaves may hang too."""

    def fail(*_: object) -> None:
        raise TimeoutError(f"{item.nodeid} did not end in {DEADLINE} seconds")

    before = signal.signal(signal.SIGALRM, fail)
    signal.setitimer(signal.ITIMER_REAL, DEADLINE, 60)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)
