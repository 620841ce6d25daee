"""Names of Python 3.11 that 3.10 takes from packages, and dates that only 3.11 reads."""

import datetime
import sys

if sys.version_info >= (3, 11):
    from typing import NotRequired, Self, Unpack
else:
    from typing_extensions import NotRequired, Self, Unpack

__all__ = ["NotRequired", "Self", "Unpack", "read_moment"]


def read_moment(text: str) -> datetime.datetime:
    """Return a moment in ISO's form, also one that ends in Z; raises ValueError for others."""
    return datetime.datetime.fromisoformat(text[:-1] + "+00:00" if text.endswith("Z") else text)
