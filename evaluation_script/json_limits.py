"""Checks of untrusted JSON that both tracks read."""

from __future__ import annotations

from typing import Dict, List, Set, Tuple, TypeVar, Union

from .errors import Flaw, printable

Value = TypeVar("Value")

#: Roughly what JSON takes in memory, in bytes for each of these characters.
MEMORY_COSTS = {b"{": 240, b"[": 80, b",": 40, b'"': 30, b":": 60}


def check_memory(text: Union[str, bytes], most: int, smaller: str) -> None:
    """Refuse JSON that would take more than so many bytes of memory, estimated by its punctuation."""
    data = text.encode() if isinstance(text, str) else text
    estimate = len(data) * (2 if data.isascii() else 8)
    estimate += sum(cost * data.count(mark) for mark, cost in MEMORY_COSTS.items())
    if estimate > most:
        raise Flaw("holds too many lists and numbers to be read", f"Write compressed run lengths. {smaller}")


def unique_keys(pairs: List[Tuple[str, Value]]) -> Dict[str, Value]:
    """Return the object of these pairs; a Flaw when a key stands in it twice."""
    values = dict(pairs)
    if len(values) < len(pairs):
        seen: Set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise Flaw(f"has the key {printable(key)} twice in one object", "Write each key once")
            seen.add(key)
    return values
