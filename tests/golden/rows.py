"""JSON with one line per row, so that a changed row is a changed line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def write_rows(path: Path, document: dict[str, Any], depth: int = 1) -> None:
    """Write a document whose objects are expanded down to a depth; deeper ones take one line each."""
    path.parent.mkdir(exist_ok=True)
    path.write_text(_lay_out(document, depth, "") + "\n", encoding="utf-8")


def _lay_out(value: Any, depth: int, indent: str) -> str:
    if not depth or not isinstance(value, dict):
        return json.dumps(value, sort_keys=True)
    rows = [f"{indent} {json.dumps(key)}: {_lay_out(row, depth - 1, indent + ' ')}" for key, row in value.items()]
    return "{\n" + ",\n".join(rows) + f"\n{indent}}}" if rows else "{}"


def read_rows(path: Path) -> dict[str, Any]:
    """Return the content; None for a file that does not exist."""
    document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return document
