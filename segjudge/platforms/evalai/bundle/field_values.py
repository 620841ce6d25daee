"""Validating a value of the YAML against its field, as leniently as the server's serializers and in their words."""

from __future__ import annotations

import datetime
import ipaddress
import json
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from .fields import FILES, FLAG, JSON, LIST, MOMENT, SLUG, TEXT, URL, WHOLE, Field
from .problems import BundleProblem, BundleProblems, FieldError, warning

TRUE = ("t", "T", "y", "Y", "yes", "YES", "true", "True", "TRUE", "on", "On", "ON", "1", 1, True)
FALSE = ("f", "F", "n", "N", "no", "NO", "false", "False", "FALSE", "off", "Off", "OFF", "0", 0, 0.0, False)
FORMAT = "YYYY-MM-DDThh:mm[:ss[.uuuuuu]][+HH:MM|-HH:MM|Z]"
#: The server's messages about a value, each with its code; empty for a valid value.
Messages = list[tuple[str, str]]
_NULL = ("This field may not be null.", "null")
_BLANK = ("This field may not be blank.", "blank")
SLUG_MESSAGE = ('Enter a valid "slug" consisting of letters, numbers, underscores or hyphens.', "invalid")
#: The largest number of a column in the server's database.
_INTEGER = 2**31 - 1
#: Longer texts are not read as numbers.
_DIGITS = 1000
#: As many characters of a value are shown.
_SHOWN = 80


def field_problems(
    subject: str, item: dict[str, Any], fields: dict[str, Field], quote: str, rule: int
) -> BundleProblems:
    """Yield what a serializer says of an item; missing keys and files are left to other rules."""
    for key, field in fields.items():
        if key not in item or field.kind in FILES or (key == "id" and not item[key]):
            continue  # the serializer does not get an empty id
        error = validate("config_id" if key == "id" else key, item[key], field)
        if error:
            fault, remedy = _explained(item[key], field, error)
            yield BundleProblem(f"{subject}{key}", fault, remedy, quote, rule, error=error)
        elif field.kind == FLAG and not isinstance(item[key], bool):
            value = item[key] in TRUE
            yield warning(f"{subject}{key}", f"is {item[key]!r}, which EvalAI takes for {value}", f"Write {value}")


def validate(key: str, value: object, field: Field) -> FieldError | None:
    """Return the serializer's error; None for a valid value."""
    if field.kind == LIST and field.words and value is not None:
        return _list_error(key, value, field)
    if value is None:
        messages = [] if field.null else [_NULL]
    elif field.choices:
        known = str(value) in map(str, field.choices) or (value == "" and field.blank)
        messages = [] if known else [(f'"{value}" is not a valid choice.', "invalid_choice")]
    else:
        validator = _VALIDATORS.get(field.kind)
        messages = validator(value, field) if validator else []
    return FieldError(key, *messages[0], more=tuple(messages[1:])) if messages else None


def as_datetime(value: object) -> datetime.datetime | None:
    """Return a date with its time in UTC, however it is written; None for anything else."""
    if isinstance(value, str):
        value = _parsed_date(value)
    if not isinstance(value, datetime.datetime):
        return None
    try:
        return value.replace(tzinfo=datetime.UTC) if value.tzinfo is None else value.astimezone(datetime.UTC)
    except OverflowError:
        return None


def as_integer(value: object) -> int | None:
    """Return the number that the server reads in a value; None where it reads none."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    try:
        return int(re.sub(r"\.0*\s*$", "", str(value)))
    except ValueError:
        return None


def as_flag(value: object) -> bool | None:
    """Return what the server reads in a flag; None where it reads neither."""
    if not isinstance(value, (str, int, float)):
        return None
    return True if value in TRUE else False if value in FALSE else None


def is_json(value: object) -> bool:
    """Return whether a value of the YAML can be kept as JSON, which has no dates, sets, bytes or NaN."""
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return False
    return True


def _validate_text(value: object, field: Field) -> Messages:
    text = str(value).strip()
    if text == "":
        return [] if field.blank else [_BLANK]
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return [("Not a valid string.", "invalid")]
    messages = []
    if field.most and len(text) > field.most:
        messages.append((f"Ensure this field has no more than {field.most} characters.", "max_length"))
    if "\0" in text:
        messages.append(("Null characters are not allowed.", "null_characters_not_allowed"))
    return messages


def _validate_text_form(value: object, field: Field) -> Messages:
    text, messages = str(value).strip(), _validate_text(value, field)
    if field.kind == SLUG:
        is_valid, message = bool(re.fullmatch(r"[-a-zA-Z0-9_]+", text)), SLUG_MESSAGE
    else:
        is_valid, message = not text or is_url(text), ("Enter a valid URL.", "invalid")
    codes = [code for _, code in messages]
    if "invalid" in codes:
        return [message]  # the server says the same of what is not a text
    return messages if "blank" in codes or is_valid else [*messages, message]


_SCHEMES = ("http", "https", "ftp", "ftps")
_LETTERS = "\u00a1-\uffff"
_BYTE = r"(25[0-5]|2[0-4]\d|[0-1]?\d?\d)"
_NAME = rf"[a-z{_LETTERS}0-9]([a-z{_LETTERS}0-9-]{{0,61}}[a-z{_LETTERS}0-9])?"
_DOMAINS = rf"(\.(?!-)[a-z{_LETTERS}0-9-]{{1,63}}(?<!-))*"
_TOP = rf"\.(?!-)([a-z{_LETTERS}-]{{2,63}}|xn--[a-z0-9]{{1,59}})(?<!-)\.?"
_HOST = rf"({_BYTE}(\.{_BYTE}){{3}}|\[[0-9a-f:.]+\]|{_NAME}{_DOMAINS}{_TOP}|localhost)"
_ADDRESS = rf"[a-z0-9.+-]*://([^\s:@/]+(:[^\s:@/]*)?@)?{_HOST}(:\d{{2,5}})?([/?#]\S*)?"
_IPV6 = re.compile(r"\[(.+)\](:\d{2,5})?")
#: The most characters of a host's name.
_MOST_HOST = 253


def is_url(text: str) -> bool:
    """Return whether a text is an address of http, https, ftp or ftps."""
    if text.split("://", maxsplit=1)[0].lower() not in _SCHEMES:
        return False
    try:
        parts = urlsplit(text)
        if not _is_address(text):
            name = parts.netloc.encode("idna").decode("ascii")
            return _is_address(urlunsplit(parts._replace(netloc=name))) and len(parts.netloc) <= _MOST_HOST
        bracketed = _IPV6.fullmatch(parts.netloc)
        if bracketed:
            ipaddress.IPv6Address(bracketed.group(1))
    except ValueError:
        return False
    return len(parts.netloc) <= _MOST_HOST


def _is_address(text: str) -> bool:
    return re.fullmatch(_ADDRESS, text, re.IGNORECASE) is not None  # compiled when first needed: it takes 30 ms


def _validate_flag(value: object, _field: Field) -> Messages:
    return [("Must be a valid boolean.", "invalid")] if as_flag(value) is None else []


def _validate_integer(value: object, field: Field) -> Messages:
    if isinstance(value, str) and len(value) > _DIGITS:
        return [("String value too large.", "max_string_length")]
    number = as_integer(value)
    if number is None:
        return [("A valid integer is required.", "invalid")]
    most = field.most or _INTEGER
    least = -most - 1 if field.least is None else field.least
    if number > most:
        return [(f"Ensure this value is less than or equal to {most}.", "max_value")]
    return [(f"Ensure this value is greater than or equal to {least}.", "min_value")] if number < least else []


_DATE = re.compile(
    r"(\d{4})-(\d{1,2})-(\d{1,2})[T ](\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d{1,6})\d{0,6})?)?"
    r"(Z|[+-]\d{2}(?::?\d{2})?)?\n?"
)


def _parsed_date(text: str) -> datetime.datetime | None:
    """Return the date in a text as the server reads it; None where it reads none."""
    match = _DATE.fullmatch(text)
    if not match:
        return None
    *parts, fraction, zone = match.groups()
    year, month, day, hour, minute, second = (int(part or 0) for part in parts)
    try:
        microsecond = int((fraction or "").ljust(6, "0"))
        return datetime.datetime(year, month, day, hour, minute, second, microsecond, _time_zone(zone))
    except ValueError:
        return None


def _time_zone(text: str | None) -> datetime.tzinfo | None:
    if text is None:
        return None
    if text == "Z":
        return datetime.UTC
    minutes = 60 * int(text[1:3]) + (int(text[-2:]) if len(text) > 3 else 0)
    return datetime.timezone(datetime.timedelta(minutes=-minutes if text[0] == "-" else minutes))


def _validate_date(value: object, _field: Field) -> Messages:
    if isinstance(value, datetime.date) and not isinstance(value, datetime.datetime):
        return [("Expected a datetime but got a date.", "date")]
    date = _parsed_date(value) if isinstance(value, str) else value
    if not isinstance(date, datetime.datetime):
        return [(f"Datetime has wrong format. Use one of these formats instead: {FORMAT}.", "invalid")]
    return [] if as_datetime(date) else [("Datetime value out of range.", "overflow")]


def _validate_json(value: object, _field: Field) -> Messages:
    return [] if is_json(value) else [("Value must be valid JSON.", "invalid")]


def _list_error(key: str, value: Any, field: Field) -> FieldError | None:
    if isinstance(value, (str, Mapping)) or not hasattr(value, "__iter__"):
        message = f'Expected a list of items but got type "{type(value).__name__}".'
        return FieldError(key, message, "not_a_list")
    item_field = Field(TEXT, "", most=field.most, blank=True, null=field.null)
    validated = {index: validate("", item, item_field) for index, item in enumerate(value)}
    errors = {index: error for index, error in validated.items() if error}
    if not errors:
        return None
    first = next(iter(errors.values()))
    printed = ", ".join(f"{index}: {error.printed}" for index, error in errors.items())
    return FieldError(key, first.message, first.code, printed_list=f"{{{printed}}}")


_VALIDATORS = {
    TEXT: _validate_text,
    FLAG: _validate_flag,
    WHOLE: _validate_integer,
    MOMENT: _validate_date,
    URL: _validate_text_form,
    SLUG: _validate_text_form,
    JSON: _validate_json,
}
_REMEDIES_BY_CODE = {
    "null": "Give it a value, or remove the line",
    "blank": "Give it a value, or remove the line",
    "date": "Add the time, as 2026-01-01 00:00:00",
}
_REMEDIES_BY_KIND = {
    FLAG: "Write True or False",
    LIST: "Begin each item with -",
    JSON: "Keep to texts, numbers, lists and mappings; put a date in quotes",
    SLUG: "Remove the line: the server makes it",
}


def _explained(value: object, field: Field, error: FieldError) -> tuple[str, str]:
    """Return what was found and the remedy, in words for the host."""
    if error.code == "max_length":
        longest = max(map(len, map(str, value))) if isinstance(value, (list, set, tuple)) else len(str(value))
        return f"has {longest} characters", f"Shorten it to {field.most}"
    if error.code == "min_value":
        return f"is {value!r}", f"Write {field.least or 0} or more"
    if error.code == "max_value":
        return f"is {as_written(value)}", f"Write {field.most or _INTEGER} or less"
    remedy = _REMEDIES_BY_CODE.get(error.code, _REMEDIES_BY_KIND.get(field.kind, f"Write a {field.kind}"))
    if field.choices:
        remedy = f"Use one of {', '.join(map(str, field.choices))}"
    elif field.kind == MOMENT and error.code == "invalid":
        remedy = "Write it unquoted, as 2026-01-01 00:00:00"
    return "is empty" if error.code in ("null", "blank") else f"is {as_written(value)}", remedy


def as_written(value: object) -> str:
    """Return a value as a host would write it, dates included, cut to a readable length."""
    try:
        text = str(value) if isinstance(value, (datetime.date, datetime.datetime)) else repr(value)
    except ValueError:  # more digits than Python prints
        text = "a number of thousands of digits"
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
