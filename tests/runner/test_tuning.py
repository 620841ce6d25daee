"""Scoring reuses the memory that it frees, and searches no new objects for cycles."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.data import ROOT

#: Prints how much the memory grows when a block is freed, and when a block follows one that another thread freed.
_PROGRAM = """
import ctypes, gc, threading
from evaluation_script.runner.tuning import reuse_memory

def read_memory():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096

ctypes.CDLL(None).mallopt
collected = gc.get_threshold()[0]
reuse_memory()
before = read_memory()
block = bytearray(32 << 20)
del block
freed = read_memory()
thread = threading.Thread(target=lambda: bytearray(40 << 20))
thread.start()
thread.join()
block = bytearray(40 << 20)
print(freed - before >> 20, read_memory() - before >> 20, gc.get_threshold()[0] > collected)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only glibc is tuned")
def test_freed_blocks_are_kept_and_used_by_all_threads() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    if "undefined symbol: mallopt" in done.stderr:
        pytest.skip("only glibc is tuned")
    kept, grown, rarely = done.stdout.split()
    assert int(kept) >= 30
    assert 38 <= int(grown) < 60
    assert rarely == "True"


#: Prints how many objects are new to the collector after ten thousand were created, without frozen ones and with some,
#: which stay frozen.
_OBJECTS = """
import gc
from evaluation_script.runner.tuning import without_collector

def create():
    with without_collector():
        objects = [[] for _ in range(10_000)]
    return gc.get_count()[0] > 5_000

gc.set_threshold(1_000_000)
print(create(), gc.get_freeze_count(), gc.isenabled())
gc.freeze()
frozen = gc.get_freeze_count()
print(create(), frozen > 0 and gc.get_freeze_count() == frozen)
"""


def test_objects_created_without_the_collector_are_not_searched_next() -> None:
    done = subprocess.run([sys.executable, "-c", _OBJECTS], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == ["False 0 True", "True True"], done.stderr
