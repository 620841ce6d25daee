"""How a long task reports how far it is."""

from __future__ import annotations

from typing import Callable

#: Called with the name of the next item, the number of items done and the number of all items.
Progress = Callable[[str, int, int], None]


def ignore_progress(name: str, done: int, total: int) -> None:
    """Report to nobody."""
    del name, done, total
