"""The YAML's keys as JSON Schema, so that editors complete and mark them."""

from __future__ import annotations

import json
from typing import Any

from .fields import ANY, CHALLENGE, FLAG, LEADERBOARD, LIST, MOMENT, SCHEMA, URL, WHOLE, Field

#: Where it is published.
PATH = "docs/challenge_config.schema.json"
_TYPES = {FLAG: "boolean", WHOLE: "integer", LIST: "array"}


def schema() -> str:
    """The whole document."""
    document = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "EvalAI challenge configuration",
        **_mapping(CHALLENGE),
    }
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def _mapping(fields: dict[str, Field]) -> dict[str, Any]:
    shown = {key: _field(field) for key, field in fields.items()}
    if fields is LEADERBOARD:
        shown["schema"] = {"description": fields["schema"].about, **_mapping(SCHEMA)}
    return {
        "type": "object",
        "properties": shown,
        "required": [key for key, field in fields.items() if field.required],
        "additionalProperties": False,
    }


def _field(field: Field) -> dict[str, Any]:
    kind: Any = _TYPES.get(field.kind, "string")
    shown: dict[str, Any] = {"description": field.about}
    if field.kind != ANY:
        shown["type"] = [kind, "null"] if field.null else kind
    if field.kind == MOMENT:
        # Editors read an unquoted date as a text.
        shown["pattern"] = r"^\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}(:\d{2})?"
    if field.kind == URL:
        shown["format"] = "uri"
    if field.most and field.kind != LIST:
        shown["maximum" if field.kind == WHOLE else "maxLength"] = field.most
    if field.words:
        shown["items"] = {"type": "string", **({"maxLength": field.most} if field.most else {})}
    if field.least is not None:
        shown["minimum"] = field.least
    if field.choices:
        shown["enum"] = [*field.choices, None] if field.null else list(field.choices)
    if field.items:
        shown["items"] = _mapping(field.items)
    return shown
