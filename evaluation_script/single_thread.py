"""One thread for linear algebra, of which scoring has none; imported before numpy, it saves half of numpy's start.

OpenBLAS starts a thread for each core while it is loaded.  Where numpy is loaded already, or this package is a part
of a program that may need those threads, all stays as it is.
"""

from __future__ import annotations

import os
import sys

SETTING = "OPENBLAS_NUM_THREADS"

if "numpy" not in sys.modules and not __name__.startswith("segjudge."):
    os.environ.setdefault(SETTING, "1")
