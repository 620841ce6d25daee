"""How many examples a property is tried on."""

from __future__ import annotations

import sys

from hypothesis import settings

#: The quick tests alone were asked for.
_QUICK = "not long" in sys.argv


def examples(count: int) -> settings:
    """Draw so many, and of quick tests a quarter: other draws come with each run."""
    return settings(max_examples=count // 4 if _QUICK else count)
