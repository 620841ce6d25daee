"""Untrusted JSON → Python values, checked before and while it is parsed."""

from __future__ import annotations

import json
from typing import Dict, List, NoReturn, Set, Tuple, TypeVar, Union

from .limits import ArchiveLimits, size_text
from .problems import Flaw, printable

Value = TypeVar("Value")

#: No whole number has more digits.
LONGEST_NUMBER = 12

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


def read_json(data: bytes, limits: ArchiveLimits, example: str) -> object:
    """Parse untrusted JSON of a form like the example, which may hold each key once and no NaN."""
    if len(data) > limits.json_bytes:
        raise Flaw(f"is larger than {size_text(limits.json_bytes)}", limits.smaller)
    check_memory(data, limits.memory_bytes, limits.smaller)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise Flaw("is not UTF-8 text", "Write the JSON in UTF-8") from None
    try:
        return json.loads(text, object_pairs_hook=unique_keys, parse_constant=_refuse_constant, parse_int=_whole_number)
    except RecursionError:
        raise Flaw("is nested too deeply", f"Write {example}") from None
    except ValueError as error:
        raise Flaw(f"is not valid JSON ({printable(error)})", "Write it with a JSON library") from None


def _whole_number(digits: str) -> int:
    if len(digits) > LONGEST_NUMBER:
        raise Flaw(f"holds a number of {len(digits)} digits", f"Write numbers of at most {LONGEST_NUMBER} digits")
    return int(digits)


def _refuse_constant(name: str) -> NoReturn:
    raise Flaw(f"holds {name}, which is not JSON", "Write whole numbers")
