"""The fields of Codabench's serializers, and the error of each for a value.

They follow codalab/codabench at commit c7dbc75 (release 1.25).
"""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from segjudge.platforms.rules.fields import TEXT, WHOLE, Field, validate
from segjudge.platforms.rules.problems import BundleProblems

from .opened_competition import refusal

_FLAG, _NATURAL, _INTEGER = "flag", "natural number", "whole number"
_CHOICE, _EMAIL, _JSON, _LIST = "choice", "e-mail", "JSON", "list"
#: Represents an absent key.
_MISSING = object()
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


@dataclass(frozen=True)
class SerializerField:
    """The rules of one field, stricter than EvalAI's serializers."""

    kind: str
    #: The number of the violated rule.
    rule: int
    #: The maximum characters.
    limit: int = 0
    required: bool = False
    null: bool = False
    blank: bool = False
    choices: tuple[str, ...] = ()

    def answer(self, value: object) -> str:
        """Return Codabench's answer to an invalid value; "" for a valid one."""
        if value is _MISSING:
            return "This field is required." if self.required else ""
        if value is None:
            return "" if self.null else "This field may not be null."
        if self.kind == _LIST:
            return ""  # other values than lists have their own rules
        if self.kind in _ANSWERS:
            return _ANSWERS[self.kind](self, value)
        kind, least = WHOLE if self.kind in (_NATURAL, _INTEGER) else TEXT, 0 if self.kind == _NATURAL else None
        field = Field(kind, "", limit=self.limit, least=least, blank=self.blank, choices=self.choices)
        error = validate("", value, field)
        half = SURROGATE.search(str(value)) if kind == TEXT else None
        if error is None and half:
            return f"Surrogate characters are not allowed: U+{ord(half[0]):X}."
        return error.message if error else ""


def _flag(_field: SerializerField, value: object) -> str:
    flag = value.lower() if isinstance(value, str) else value
    return "" if isinstance(flag, (str, int, float)) and flag in _FLAGS else "Must be a valid boolean."


def _email(field: SerializerField, value: object) -> str:
    error = replace(field, kind=TEXT).answer(value)
    if error or str(value).strip() == "":
        return error
    user, _, domain = str(value).strip().rpartition("@")
    is_address = len(str(value).strip()) <= _LONGEST_ADDRESS and _USER.fullmatch(user) and _is_domain(domain)
    return "" if is_address else "Enter a valid email address."


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


def _json(_field: SerializerField, value: object) -> str:
    try:
        json.dumps(value)
    except (TypeError, ValueError):
        return "Value must be valid JSON."
    return ""


_ANSWERS = {_FLAG: _flag, _EMAIL: _email, _JSON: _json}


def check_fields(
    subject: str, fields: Mapping[str, SerializerField], item: Mapping[Any, Any], prefix: str = ""
) -> BundleProblems:
    """Yield a serializer's errors about a mapping, in its order; `prefix` precedes a field's name."""
    for key, field in fields.items():
        error = field.answer(item.get(key, _MISSING))
        if not error:
            continue
        path = f"{subject}.{key}".lstrip(".")
        quote = f"{prefix}{key}: {error}\n" + ("\n" if prefix else "")
        fault = "is missing" if key not in item else f"is {item[key]!r:.60}"
        yield refusal(field.rule, path, f"{fault}, but Codabench expects {_kind(field)}", f"Correct {key}", quote)


def _kind(field: SerializerField) -> str:
    if field.choices:
        return " or ".join(field.choices)
    article = "an" if field.kind == _EMAIL else "a"
    return f"{article} {field.kind}" + (f" of up to {field.limit} characters" if field.limit else "")


#: The files of a phase.
PHASE_FILES = ("public_data", "starting_kit")
#: The file keys of a task, in the order in which they are saved.
TASK_FILES = ("ingestion_program", "input_data", "scoring_program", "reference_data")
TASK = {
    "name": SerializerField(TEXT, 22, 256, required=True),
    "description": SerializerField(TEXT, 22, null=True, blank=True),
    "ingestion_only_during_scoring": SerializerField(_FLAG, 22),
}
SOLUTION = {"name": SerializerField(TEXT, 22, 256), "description": SerializerField(TEXT, 22, null=True, blank=True)}
PHASE = {
    "name": SerializerField(TEXT, 31, 256, required=True),
    "description": SerializerField(TEXT, 31, null=True, blank=True),
    "execution_time_limit": SerializerField(_NATURAL, 41),
    "max_submissions_per_day": SerializerField(_NATURAL, 40, null=True),
    "max_submissions": SerializerField(_NATURAL, 40, null=True),
    "auto_migrate_to_this_phase": SerializerField(_FLAG, 42),
    **dict.fromkeys(("hide_output", "hide_prediction_output", "hide_score_output"), SerializerField(_FLAG, 42)),
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
    "primary_index": SerializerField(_NATURAL, 53),
    "title": SerializerField(TEXT, 46, 64, required=True),
    "key": SerializerField(TEXT, 46, 36, required=True),
    "columns": SerializerField(_LIST, 48, required=True),
    "hidden": SerializerField(_FLAG, 46),
    "submission_rule": SerializerField(_CHOICE, 47, choices=_SUBMISSION_RULES),
}
COLUMN = {
    "computation": SerializerField(_CHOICE, 52, null=True, blank=True, choices=("avg", "sum", "min", "max")),
    "title": SerializerField(TEXT, 48, 36, required=True),
    "key": SerializerField(TEXT, 48, 36, required=True),
    "sorting": SerializerField(_CHOICE, 50, choices=("desc", "asc")),
    "index": SerializerField(_NATURAL, 48, required=True),
    "hidden": SerializerField(_FLAG, 48),
    "precision": SerializerField(_INTEGER, 51),
}
PAGE = {"title": SerializerField(TEXT, 13, 255, required=True)}
_FLAG_KEYS = (
    *("registration_auto_approve", "enable_detailed_results", "show_detailed_results_in_submission_panel"),
    *("show_detailed_results_in_leaderboard", "auto_run_submissions"),
    *("can_participants_make_submissions_public", "make_programs_available", "make_input_data_available"),
)
#: The serializer's fields in its order: those before the pages and phases, and those after them.
BEFORE_PAGES = {"title": SerializerField(TEXT, 9, 256, required=True), "docker_image": SerializerField(TEXT, 14, 128)}
AFTER_PHASES = {
    "description": SerializerField(TEXT, 9, null=True, blank=True),
    **dict.fromkeys(_FLAG_KEYS, SerializerField(_FLAG, 17)),
    "competition_type": SerializerField(_CHOICE, 16, choices=("competition", "benchmark")),
    "fact_sheet": SerializerField(_JSON, 18, null=True),
    "reward": SerializerField(TEXT, 16, 256, null=True, blank=True),
    "contact_email": SerializerField(_EMAIL, 16, 256, null=True, blank=True),
    "forum_enabled": SerializerField(_FLAG, 17),
}
