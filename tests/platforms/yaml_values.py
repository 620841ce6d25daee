"""Values that YAML can express, each of which a host may write at any key of a config."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import yaml

VALUES = (
    "!!set {a: null}", "[!!set {a: null}]", "2026-01-01", "!!binary aGVsbG8=", "&a {x: *a}", "!!set {}",
    "2026-01-01 10:00:00", "[2026-01-01]", "[!!binary aGVsbG8=]", "!!omap [a: 1]", "!!pairs [a: 1]", "&a [*a]",
    ".nan", ".inf", "-.inf", "[.nan]", "1e400", "12:30:45", "0x1F", "1_000", "999999999999999999999999", "-1", "1.5",
    "null", "true", "''", '"\\0"', '"\\ud800"', "[]", "{}", "[null]", "[[1]]", "{1: 2}", "{null: 3}", "{? [a, b] : 1}",
)  # fmt: skip
#: Values of types that JSON lacks, and one that holds itself.
ODD_VALUES = VALUES[:5]
_MARK = "@@VALUE@@"


def replace_each(config: dict[str, Any], values: tuple[str, ...]) -> Iterator[tuple[str, bytes]]:
    """Yield the config with one of the values at each of its keys and in each of its lists, and the place."""
    for path in _list_paths(config):
        changed: Any = copy.deepcopy(config)
        above = changed
        for key in path[:-1]:
            above = above[key]
        if path:
            above[path[-1]] = _MARK
        text = yaml.safe_dump(changed if path else _MARK, sort_keys=False)
        for value in values:
            yield f"{path}: {value}", text.replace(f"'{_MARK}'", value).encode()


def _list_paths(value: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield above
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in entries:
        yield from _list_paths(item, (*above, key))
