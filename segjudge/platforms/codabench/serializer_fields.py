"""The fields of Codabench's serializers, and the error of each for a value."""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Mapping
from typing import Any

from segjudge.platforms.rules.fields import FLAG, LIST, TEXT, VALIDATORS, WHOLE, Field, Messages, validate
from segjudge.platforms.rules.problems import BundleProblems

from .opened_competition import refusal

#: Further kinds of values.
_NATURAL, _CHOICE, _EMAIL, _JSON = "natural number", "choice", "e-mail", "JSON"
#: Represents an absent key.
MISSING = object()
_FLAGS = {"t", "y", "yes", "true", "on", "1", 1, "f", "n", "no", "false", "off", "0", 0}
_USER = re.compile(
    r"[-!#$%&'*+/=?^_`{}|~0-9A-Z]+(?:\.[-!#$%&'*+/=?^_`{}|~0-9A-Z]+)*"
    r'|"(?:[\x01-\x08\x0b\x0c\x0e-\x1f!#-\[\]-\x7f]|\\[\x01-\x09\x0b\x0c\x0e-\x7f])*"',
    re.IGNORECASE,
)
_DOMAIN = re.compile(r"(?:[A-Z0-9](?:[A-Z0-9-]{0,61}[A-Z0-9])?\.)+(?:[A-Z0-9-]{2,63}(?<!-))|localhost", re.IGNORECASE)
#: The maximum characters of an address.
_LONGEST_ADDRESS = 320
#: Half of a surrogate pair, which neither UTF-8 nor the database can store.
SURROGATE = re.compile("[\ud800-\udfff]")


def answer(value: object, field: Field) -> str:
    """Return Codabench's answer to an invalid value; "" for a valid one."""
    if value is MISSING:
        return "This field is required." if field.required else ""
    error = validate("", value, field, _VALIDATORS)
    return error.message if error else ""


def _validate_text(value: object, field: Field) -> Messages:
    half = SURROGATE.search(str(value))
    return VALIDATORS[TEXT](value, field) or (
        [(f"Surrogate characters are not allowed: U+{ord(half[0]):X}.", "")] if half else []
    )


def _validate_flag(value: object, _field: Field) -> Messages:
    flag = value.lower() if isinstance(value, str) else value
    is_flag = isinstance(flag, (str, int, float)) and flag in _FLAGS
    return [] if is_flag else [("Must be a valid boolean.", "")]


def _validate_address(value: object, field: Field) -> Messages:
    messages, text = _validate_text(value, field), str(value).strip()
    if messages or text == "":
        return messages
    user, _, domain = text.rpartition("@")
    is_address = len(text) <= _LONGEST_ADDRESS and _USER.fullmatch(user) and _is_domain(domain)
    return [] if is_address else [("Enter a valid email address.", "")]


def _is_domain(domain: str) -> bool:
    """Return whether a string is a valid domain: a name in any script, or a bracketed number."""
    if domain.startswith("[") and domain.endswith("]"):
        try:
            return bool(ipaddress.ip_address(domain[1:-1]))
        except ValueError:
            return False
    if _DOMAIN.fullmatch(domain):
        return True
    try:
        return bool(_DOMAIN.fullmatch(domain.encode("idna").decode("ascii")))
    except UnicodeError:
        return False


def _validate_json(value: object, _field: Field) -> Messages:
    try:
        json.dumps(value)
    except (TypeError, ValueError):
        return [("Value must be valid JSON.", "")]
    return []


#: Stricter than EvalAI's; other values than lists have rules of their own.
_VALIDATORS = {
    **VALIDATORS,
    TEXT: _validate_text,
    FLAG: _validate_flag,
    _NATURAL: VALIDATORS[WHOLE],
    _EMAIL: _validate_address,
    _JSON: _validate_json,
}


def check_fields(
    subject: str, fields: Mapping[str, Field], item: Mapping[Any, Any], prefix: str = ""
) -> BundleProblems:
    """Yield a serializer's errors about a mapping, in its order; `prefix` precedes a field's name."""
    for key, field in fields.items():
        error = answer(item.get(key, MISSING), field)
        if not error:
            continue
        path = f"{subject}.{key}".lstrip(".")
        quote = f"{prefix}{key}: {error}\n" + ("\n" if prefix else "")
        fault = "is missing" if key not in item else f"is {item[key]!r:.60}"
        yield refusal(field.rule, path, f"{fault}, but Codabench expects {_kind(field)}", f"Correct {key}", quote)


def _kind(field: Field) -> str:
    if field.choices:
        return " or ".join(field.choices)
    article = "an" if field.kind == _EMAIL else "a"
    return f"{article} {field.kind}" + (f" of up to {field.limit} characters" if field.limit else "")


#: The files of a phase.
PHASE_FILES = ("public_data", "starting_kit")
#: The file keys of a task, in the order in which they are saved.
TASK_FILES = ("ingestion_program", "input_data", "scoring_program", "reference_data")
TASK = {
    "name": Field(TEXT, rule=22, limit=256, required=True),
    "description": Field(TEXT, rule=22, null=True, blank=True),
    "ingestion_only_during_scoring": Field(FLAG, rule=22),
}
SOLUTION = {"name": Field(TEXT, rule=22, limit=256), "description": Field(TEXT, rule=22, null=True, blank=True)}
PHASE = {
    "name": Field(TEXT, rule=31, limit=256, required=True),
    "description": Field(TEXT, rule=31, null=True, blank=True),
    "execution_time_limit": Field(_NATURAL, rule=41, least=0),
    "max_submissions_per_day": Field(_NATURAL, rule=40, least=0, null=True),
    "max_submissions": Field(_NATURAL, rule=40, least=0, null=True),
    "auto_migrate_to_this_phase": Field(FLAG, rule=42),
    **dict.fromkeys(("hide_output", "hide_prediction_output", "hide_score_output"), Field(FLAG, rule=42)),
}
_SUBMISSION_RULES = (
    "Add",
    "Add_And_Delete",
    "Add_And_Delete_Multiple",
    "Force_Last",
    "Force_Latest_Multiple",
    "Force_Best",
)
BOARD = {
    "primary_index": Field(_NATURAL, rule=53, least=0),
    "title": Field(TEXT, rule=46, limit=64, required=True),
    "key": Field(TEXT, rule=46, limit=36, required=True),
    "columns": Field(LIST, rule=48, required=True),
    "hidden": Field(FLAG, rule=46),
    "submission_rule": Field(_CHOICE, rule=47, choices=_SUBMISSION_RULES),
}
COLUMN = {
    "computation": Field(_CHOICE, rule=52, null=True, blank=True, choices=("avg", "sum", "min", "max")),
    "title": Field(TEXT, rule=48, limit=36, required=True),
    "key": Field(TEXT, rule=48, limit=36, required=True),
    "sorting": Field(_CHOICE, rule=50, choices=("desc", "asc")),
    "index": Field(_NATURAL, rule=48, least=0, required=True),
    "hidden": Field(FLAG, rule=48),
    "precision": Field(WHOLE, rule=51),
}
PAGE = {"title": Field(TEXT, rule=13, limit=255, required=True)}
_FLAG_KEYS = (
    *("registration_auto_approve", "enable_detailed_results", "show_detailed_results_in_submission_panel"),
    *("show_detailed_results_in_leaderboard", "auto_run_submissions"),
    *("can_participants_make_submissions_public", "make_programs_available", "make_input_data_available"),
)
#: The serializer's fields in its order: those before the pages and phases, and those after them.
BEFORE_PAGES = {"title": Field(TEXT, rule=9, limit=256, required=True), "docker_image": Field(TEXT, rule=14, limit=128)}
AFTER_PHASES = {
    "description": Field(TEXT, rule=9, null=True, blank=True),
    **dict.fromkeys(_FLAG_KEYS, Field(FLAG, rule=17)),
    "competition_type": Field(_CHOICE, rule=16, choices=("competition", "benchmark")),
    "fact_sheet": Field(_JSON, rule=18, null=True),
    "reward": Field(TEXT, rule=16, limit=256, null=True, blank=True),
    "contact_email": Field(_EMAIL, rule=16, limit=256, null=True, blank=True),
    "forum_enabled": Field(FLAG, rule=17),
}
