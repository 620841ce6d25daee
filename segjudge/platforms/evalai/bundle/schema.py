"""The JSON Schema of the YAML, with which editors complete and mark its keys."""

from __future__ import annotations

import json
from typing import Any

from .fields import ANY, CHALLENGE, FLAG, LEADERBOARD, LIST, MOMENT, SCHEMA, URL, WHOLE, Field

#: Where the schema is published.
PATH = "docs/challenge_config.schema.json"
_TYPES = {FLAG: "boolean", WHOLE: "integer", LIST: "array"}


def json_schema() -> str:
    """Return the JSON Schema of the challenge config."""
    document = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "EvalAI challenge configuration",
        **_object_schema(CHALLENGE),
    }
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def _object_schema(fields: dict[str, Field]) -> dict[str, Any]:
    properties = {key: _field_schema(field) for key, field in fields.items()}
    if fields is LEADERBOARD:
        properties["schema"] = {"description": fields["schema"].about, **_object_schema(SCHEMA)}
    return {
        "type": "object",
        "properties": properties,
        "required": [key for key, field in fields.items() if field.required],
        "additionalProperties": False,
    }


def _field_schema(field: Field) -> dict[str, Any]:
    kind = _TYPES.get(field.kind, "string")
    schema: dict[str, Any] = {"description": field.about}
    if field.kind != ANY:
        schema["type"] = [kind, "null"] if field.null else kind
    if field.kind == MOMENT:
        # Editors parse an unquoted date as a string.
        schema["pattern"] = r"^\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}(:\d{2})?"
    if field.kind == URL:
        schema["format"] = "uri"
    if field.most and field.kind != LIST:
        schema["maximum" if field.kind == WHOLE else "maxLength"] = field.most
    if field.words:
        schema["items"] = {"type": "string", **({"maxLength": field.most} if field.most else {})}
    if field.least is not None:
        schema["minimum"] = field.least
    if field.choices:
        schema["enum"] = [*field.choices, None] if field.null else list(field.choices)
    if field.items:
        schema["items"] = _object_schema(field.items)
    return schema
