"""What a stored result is made of, checked: anybody may have written its JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NoReturn

from segjudge.system.errors import UsageError


def refuse(found: str) -> NoReturn:
    """Raise UsageError for something else than a stored result."""
    raise UsageError(f"this is no result that was stored: it {found}")


def mapping_of(value: object) -> Mapping[str, Any]:
    """Return what has names."""
    return value if isinstance(value, dict) else refuse("has a list or a value where names belong")


def list_of(value: object) -> list[Any]:
    """Return a list."""
    return list(value) if isinstance(value, (list, tuple)) else refuse("has a value or names where a list belongs")


def text_of(value: object) -> str:
    """Return a text."""
    return value if isinstance(value, str) else refuse("has something else where a text belongs")


def number_of(value: object) -> float:
    """Return a finite number."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        refuse("has something else where a number belongs")
    return float(value)


def value_of(value: object) -> float | None:
    """Return a finite number, or None where there is nothing to average."""
    return None if value is None else number_of(value)


def whole_numbers_of(value: object, least: int, most: int) -> list[int]:
    """Return a list of whole numbers within bounds."""
    found = list_of(value)
    if not all(type(one) is int and least <= one <= most for one in found):
        refuse(f"has something else where numbers from {least} to {most} belong")
    return found


def by_split(result: Mapping[str, object], key: str) -> dict[str, Mapping[str, Any]]:
    """Return what `[{SPLIT: {NAME: …}}, …]` holds."""
    return {
        split: mapping_of(found) for entry in list_of(result.get(key, [])) for split, found in mapping_of(entry).items()
    }
