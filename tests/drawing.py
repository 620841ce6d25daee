"""The number of examples for a property."""

from __future__ import annotations

import sys

from hypothesis import settings

#: Whether only the quick tests run.
QUICK = "not long" in sys.argv


def examples(count: int) -> settings:
    """Draw this many random examples, a quarter in quick tests; a run of all tests draws others each time."""
    return settings(max_examples=count // 4 if QUICK else count)
