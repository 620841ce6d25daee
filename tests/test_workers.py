"""Work that is shared by several processes comes to an end with them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from segjudge.evaluation_script.parallel import map_in_processes

from .test_guard import is_gone

CODE = """
import os, sys, time
sys.path.insert(0, sys.argv[1])
from segjudge.evaluation_script.parallel import map_in_processes
def work(number):
    os.write(1, b"%d\\n" % os.getpid())
    if sys.argv[2] == "sleeps":
        time.sleep(1000)
    while sys.argv[2] == "works":
        pass
    return b"x" * (16 << 20)  # more than a pipe holds
if sys.argv[2] == "sends":  # the parent is busy meanwhile, and takes nothing
    ours = os.getpid()
    shared = work
    work = lambda number: shared(number) if os.getpid() != ours else (shared(number), time.sleep(1000))
map_in_processes(work, 3, 3)
"""


@pytest.mark.parametrize("doing", ["sleeps", "works", "sends"])
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_children_end_with_whoever_shares_the_work(doing: str, number: int) -> None:
    words = [sys.executable, "-c", CODE, str(Path(__file__).parent.parent), doing]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        processes = {int(parent.stdout.readline()) for _ in range(3)}
        parent.send_signal(number)
    assert len(processes) == 3
    assert all(is_gone(one) for one in processes)


@pytest.mark.parametrize("jobs", [1, 2, 3, 9])
def test_results_come_in_order(jobs: int) -> None:
    assert map_in_processes(lambda number: (number, os.getpid() != 0), 5, jobs) == [
        (number, True) for number in range(5)
    ]


def test_a_child_that_fails_or_is_killed_is_an_error() -> None:
    ours = os.getpid()

    def fails(number: int) -> Any:
        if os.getpid() != ours:
            raise ValueError("no")

    def dies(number: int) -> Any:
        if os.getpid() != ours:
            os._exit(3)

    with pytest.raises(ValueError, match="no"):
        map_in_processes(fails, 3, 2)
    with pytest.raises(MemoryError):
        map_in_processes(dies, 3, 2)
