"""The setup of a scoring process: one thread, and reuse of memory.

While numpy is loaded, OpenBLAS starts a thread per core, which takes half of numpy's start; scoring needs no linear
algebra. This applies only to programs that start with this package: others may have loaded numpy already, or need the
threads.
"""

from __future__ import annotations

import ctypes
import gc
import os
import sys
from contextlib import contextmanager, suppress
from typing import Iterator

_THREADS = "OPENBLAS_NUM_THREADS"
#: Parameters of glibc's `mallopt`, and the size in bytes up to which freed blocks are kept.
_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8
_KEPT, _LARGEST_KEPT = 256 << 20, 64 << 20
#: The number of new objects after which Python searches them for cycles.
_GARBAGE = 1_000_000

if "numpy" not in sys.modules and not __name__.startswith("segjudge."):
    os.environ.setdefault(_THREADS, "1")


def reuse_memory() -> None:
    """Keep freed blocks of megabytes for reuse, and collect garbage rarely, since scoring makes no cycles.

    Otherwise the C library requests each block from the system, which clears it page by page: a sixth of numpy's time
    for sequences.
    """
    gc.set_threshold(_GARBAGE)
    with suppress(OSError, AttributeError, TypeError):  # a C library other than glibc
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_MMAP_THRESHOLD, _LARGEST_KEPT)
        mallopt(_TRIM_THRESHOLD, _KEPT)
        mallopt(_ARENA_MAX, 1)  # otherwise, no thread reuses memory that another one freed


def release_memory() -> None:
    """Return freed blocks to the system, before a job that needs large ones."""
    with suppress(OSError, AttributeError, TypeError):  # a C library other than glibc
        ctypes.CDLL(None).malloc_trim(0)


@contextmanager
def without_collector() -> Iterator[None]:
    """Disable garbage collection while a million acyclic objects are created.

    They are old afterwards; a collection of new objects would search them at once.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            if not gc.get_freeze_count():
                gc.freeze()
                gc.unfreeze()
            gc.enable()
