"""The setup of a scoring process: reuse of memory, and fewer searches for cycles."""

from __future__ import annotations

import ctypes
import gc
from contextlib import contextmanager, suppress
from typing import Iterator

#: Parameters of glibc's `mallopt`, and the size in bytes up to which freed blocks are kept.
_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8
_KEPT, _LARGEST_KEPT = 256 << 20, 64 << 20
#: The number of new objects after which Python searches them for cycles.
_GARBAGE = 1_000_000


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
