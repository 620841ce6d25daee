"""The commands, thin; with `cli.py` the only place that prints."""

import os

# Commands are programs of their own: numpy, which some of them load, starts in half the time with one thread.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
