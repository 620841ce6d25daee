"""The commands, thin; with `cli.py` the only place that prints.

`cli.COMMANDS` says which module has a command.  A module's `COMMANDS` has for each of its own what adds options to a
parser and what runs it, which turns the arguments into typed values, and returns the exit code.
"""

import os

__all__ = ["shared", "worker"]

# Commands are programs of their own: numpy, which some of them load, starts in half the time with one thread.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
